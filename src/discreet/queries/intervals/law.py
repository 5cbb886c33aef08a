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
_STEPS = 8
_ROUNDING = 1 + 1e-8


def normal_laplace(sigma: Floats, scale: float, *, tail: float) -> Floats:
    """The t with P(N(0, sigma^2) + Laplace(scale) > t) = tail, from above (C12).

    Theorem: the sum exceeds the returned t with probability at most ``tail`` (up to rounding).
    Proof: both laws are log-concave, so the sum's is, and the logarithm of its tail is concave. A
        tangent lies above, so Newton's steps for it from the right stay on the right. At the start,
        N exceeds its part and Laplace its part with probability tail / 2 each. A ratio of the
        spreads outside the range of doubles is moved into it by raising the smaller spread: both
        laws are symmetric and unimodal, so this only raises the tail.
    Source: Reed 2006; Biswal 2024, section 5.7, where this interval is called infeasible.
    Needs: sigma >= 0, scale > 0, 0 < tail < 1/2.
    """
    spread = np.maximum(sigma, scale * _SMALLEST_RATIO)
    width = np.maximum(scale, spread / _LARGEST_RATIO)
    found = -spread * ndtri(tail / 2) - width * math.log(tail)
    for _ in range(_STEPS):
        above, density = _tail(found, spread, width)
        found = found + np.minimum(np.log(above / tail), 0.0) * above / density
    return np.asarray(found * _ROUNDING)


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
    return _tail(x, sigma, scale)[0]


def _tail(x: Floats, sigma: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """The same, and the density, ``(h(x) + h(-x)) / (2 scale)``."""
    ratio = sigma / scale
    up = np.exp(-x / scale + ratio**2 / 2 + log_ndtr(x / sigma - ratio))
    down = np.exp(x / scale + ratio**2 / 2 + log_ndtr(-x / sigma - ratio))
    return np.asarray(ndtr(-x / sigma) + (up - down) / 2), np.asarray((up + down) / (2 * scale))


def binomial(rows: int, share: float) -> tuple[Floats, Floats, float]:
    """Counts that matter, their probabilities, and more than the mass of all others.

    Beyond nine deviations and 45 more, less than 1e-15 is left (Bernstein). From one count to the
    next the law changes by a known factor; logarithms of factorials would lose what matters from a
    hundred million rows on.
    """
    centre, wide = rows * share, 9 * math.sqrt(rows * share * (1 - share)) + 45
    counts = np.arange(max(0, math.floor(centre - wide)), min(rows, math.ceil(centre + wide)) + 1.0)
    if share in (0, 1):
        return counts, np.asarray(counts == centre, dtype=np.float64), 1e-13
    before = counts[:-1]
    steps = np.log((rows - before) / (before + 1) * (share / (1 - share)))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    law = np.exp(logs - logs.max())
    return counts, np.asarray(law / law.sum()), 1e-13
