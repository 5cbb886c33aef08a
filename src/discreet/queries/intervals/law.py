"""Half-widths of intervals for a mean: sampling error and the noise of a release, together.

Functions of public numbers and of released ones, vectorised over the spread.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, stdtrit

Floats: TypeAlias = NDArray[np.float64]

# Beyond these ratios of the two spreads, the smaller one is replaced by a larger one.
_LARGEST_RATIO = 1e4
_SMALLEST_RATIO = 1e-9
_HALVINGS = 50


def normal_laplace(sigma: Floats, scale: float, *, tail: float) -> Floats:
    """The t with P(N(0, sigma^2) + Laplace(scale) > t) = tail, from above (C12).

    Theorem: the sum exceeds the returned t with probability at most ``tail``.
    Proof: the tail is decreasing in t, so halving keeps an end at which it is at most ``tail``. At
        the start, N exceeds its part and Laplace its part with probability tail / 2 each. A ratio
        of the spreads outside the range of doubles is moved into it by raising the smaller spread:
        both laws are symmetric and unimodal, so this only raises the tail.
    Source: Reed 2006; Biswal 2024, section 5.7, where this interval is called infeasible.
    Needs: sigma >= 0, scale > 0, 0 < tail < 1/2.
    """
    spread = np.maximum(sigma, scale * _SMALLEST_RATIO)
    width = np.maximum(scale, spread / _LARGEST_RATIO)
    low = np.zeros_like(spread)
    high = -spread * ndtri(tail / 2) - width * math.log(tail)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        out = exceeds(middle, spread, width) > tail
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return high


def normal(sigma: Floats, noise: float, *, tail: float) -> Floats:
    """The t with P(N(0, sigma^2) + N(0, noise^2) > t) = tail (C9)."""
    return np.asarray(-float(ndtri(tail)) * np.hypot(sigma, noise))


def normal_exceeds(x: Floats, sigma: Floats, noise: float) -> Floats:
    """P(N(0, sigma^2) + N(0, noise^2) > x)."""
    return np.asarray(ndtr(-x / np.hypot(sigma, noise)))


def student(freedom: int, *, tail: float) -> float:
    """How much wider Student's law is than the normal one, with so many degrees of freedom."""
    return float(stdtrit(freedom, tail) / ndtri(tail))


def normal_points(many: int) -> Floats:
    """Quantiles of the standard normal law, each for an equal share of it."""
    return np.asarray(ndtri((np.arange(many) + 0.5) / many))


def exceeds(x: Floats, sigma: Floats, scale: Floats) -> Floats:
    """P(N(0, sigma^2) + Laplace(scale) > x) for x >= 0.

    ``Phi(-x/sigma) + (h(x) - h(-x)) / 2``, as in `accounting.normal_laplace`, in arrays.
    """
    ratio = sigma / scale
    up = np.exp(-x / scale + ratio**2 / 2 + log_ndtr(x / sigma - ratio))
    down = np.exp(x / scale + ratio**2 / 2 + log_ndtr(-x / sigma - ratio))
    return np.asarray(ndtr(-x / sigma) + (up - down) / 2)
