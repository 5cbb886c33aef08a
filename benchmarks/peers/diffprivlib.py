"""diffprivlib: scalar mechanisms in Python."""

from __future__ import annotations

from collections.abc import Callable

from diffprivlib.mechanisms import Geometric


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """The two-sided geometric mechanism, one integer at a time."""
    mechanism = Geometric(epsilon=1 / scale, sensitivity=1)

    def work() -> None:
        for _ in range(n):
            mechanism.randomise(0)

    return work
