"""What is written down about requests and failures: never a value, a question or a secret."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import TypeAlias

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
