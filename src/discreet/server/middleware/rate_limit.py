"""How often somebody may ask: a bucket of tokens for each, in the memory of one worker."""

from __future__ import annotations

import math
import threading
import time

_MOST = 10_000


class RateLimit:
    """So many requests a second, and so many at once."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._pace = per_second
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}
        self._turn = threading.Lock()

    def take(self, key: str) -> int:
        """0, or the seconds after which the same may be asked again."""
        moment = time.monotonic()
        with self._turn:
            held, at = self._buckets.get(key, (float(self._burst), moment))
            held = min(self._burst, held + (moment - at) * self._pace)
            if held < 1:
                return math.ceil((1 - held) / self._pace)
            if len(self._buckets) >= _MOST:
                self._forget(moment)
            self._buckets[key] = held - 1, moment
            return 0

    def _forget(self, moment: float) -> None:
        """Those who have not asked for so long that their bucket is full again."""
        full = self._burst / self._pace
        self._buckets = {k: v for k, v in self._buckets.items() if moment - v[1] < full}
        if len(self._buckets) >= _MOST:  # more callers than we remember: begin anew
            self._buckets.clear()
