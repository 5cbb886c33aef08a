"""NumPy: not private (floating point, predictable generator), but the limit of speed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Continuous Laplace noise."""
    rng = np.random.default_rng(1)
    return lambda: _drop(rng.laplace(0.0, scale, n))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Continuous Gaussian noise."""
    rng = np.random.default_rng(1)
    return lambda: _drop(rng.normal(0.0, sigma, n))


def _drop(_: object) -> None:
    """The answer is the time."""
