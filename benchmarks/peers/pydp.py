"""PyDP: Google's C++ noise behind a scalar call."""

from __future__ import annotations

from collections.abc import Callable

from pydp.algorithms.numerical_mechanisms import LaplaceMechanism


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Laplace noise on an integer, one at a time."""
    mechanism = LaplaceMechanism(epsilon=1 / scale, sensitivity=1.0)

    def work() -> None:
        for _ in range(n):
            mechanism.add_noise(0)

    return work
