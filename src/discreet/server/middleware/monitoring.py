"""Log lines and metrics for an operator: never a value, a query or a secret.

Metrics are counts and times by route and status, in the format of Prometheus.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import PurePath
from typing import TypeAlias

# ── Log ──────────────────────────────────────────────────────────────────────────────────────────


Note: TypeAlias = Callable[[str, BaseException], None]
access = logging.getLogger("discreet.web.access")
problems = logging.getLogger("discreet.web.problems")
_FRAMES = 4


def failure(where: str, error: BaseException) -> None:
    """The kind of an error and where it came from; its words may quote what must not be seen."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{PurePath(f.filename).name}:{f.lineno}" for f in reversed(frames))
    problems.error("%s: %s at %s", where, type(error).__name__, places)


def request(
    *, number: str, role: str, method: str, route: str, status: int, milliseconds: float
) -> None:
    """One line for each request; the route is the template, without what stood in its place."""
    access.info(
        "request=%s role=%s method=%s route=%s status=%d ms=%.1f",
        *(number, role, method, route, status, milliseconds),
    )


# ── Metrics ──────────────────────────────────────────────────────────────────────────────────────


METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ServerMetrics:
    """What one worker has seen since it began."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._open = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: dict[str, float] = {}
        self._counts: Counter[str] = Counter()

    def begin(self) -> None:
        """A request came."""
        with self._turn:
            self._open += 1

    def end(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        known = method if method in METHODS else "other"
        with self._turn:
            self._open -= 1
            self._requests[known, route, status] += 1
            self._counts[route] += 1
            self._sums[route] = self._sums.get(route, 0.0) + seconds
            for edge in _SECONDS:
                if seconds <= edge:
                    self._buckets[route, edge] += 1

    def text(self, *, waiting: int) -> str:
        """All of it in Prometheus' words."""
        with self._turn:
            lines = [
                "# TYPE discreet_requests_total counter",
                *(
                    f'discreet_requests_total{{method="{m}",route="{r}",status="{s}"}} {n}'
                    for (m, r, s), n in sorted(self._requests.items())
                ),
                "# TYPE discreet_request_seconds histogram",
            ]
            for route in sorted(self._counts):
                lines += [
                    f'discreet_request_seconds_bucket{{route="{route}",le="{edge:g}"}} '
                    f"{self._buckets[route, edge]}"
                    for edge in _SECONDS
                ]
                count = self._counts[route]
                lines += [
                    f'discreet_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}',
                    f'discreet_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}',
                    f'discreet_request_seconds_count{{route="{route}"}} {count}',
                ]
            lines += [
                "# TYPE discreet_requests_open gauge",
                f"discreet_requests_open {self._open}",
                "# TYPE discreet_releases_waiting gauge",
                f"discreet_releases_waiting {waiting}",
            ]
        return "\n".join(lines) + "\n"
