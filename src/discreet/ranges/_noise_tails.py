"""How far the noise of an answer reaches: bounds that hold, for weighted sums of integer noise.

Two bounds, both valid. ``quick`` is Chernoff's, from the variance alone, for any number of answers.
``close`` adds a little Gaussian noise to the sum on paper, which makes its distribution smooth,
computes that exactly from characteristic functions, and pays for what was added: a few percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.core.errors import Unsupported
from discreet.noise.distribution import Floats, floats
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.ranges.strategies.base import Terms

NoiseDistribution: TypeAlias = DiscreteLaplace | DiscreteGaussian
_FINE = 1 << 10
"""From this sigma on the lattice is invisible, and sums of discrete Gaussians are normal."""
_SMOOTHING = 0.06
"""Standard deviation of what is added on paper, relative to that of the answer."""
_ROOM = 2.6
"""How many of these deviations are paid for."""
_REACH = 60.0
_SLACK = 1e-9
"""Room for the numerical error of the inversion."""
_POINTS = 128
_PROBES, _GONE = 48, 60.0
_BATCH = 1 << 15
_MANY = 4096
_FAR = 16.0
_LEAST = 1e-100
_IMAGE = 200.0
"""Deviations: only noise beyond them can be taken for noise that is within `_FAR`."""


def variances(laws: Sequence[NoiseDistribution]) -> Floats:
    """Of the noise of each law; so little that doubles have none is rounded up, to divide by it."""
    return np.array([max(law.variance, _LEAST) for law in laws])


def quick(
    laws: Sequence[NoiseDistribution], largest: Floats, variance: Floats, tail: float
) -> Floats:
    """Half-widths w with P(|noise| > w) <= tail, from variances alone."""
    # Theorem: a sum of independent `a_i X_i` with X_i discrete Laplace of scale b_i or discrete
    #   Gaussian of parameter s_i leaves `[-w, w]` with probability at most
    #   `2 exp(k(t) - t w)` for every t in (0, 1/B), `k(t) = -V log(1 - t^2 B^2) / (2 B^2)`
    #   (`V t^2 / 2` for B = 0); B bounds `|a_i| b_i`, and V sums `2 a_i^2 b_i^2` and
    #   `a_i^2 s_i^2`.
    # Proof: `log E exp(uX) = -log(1 - y)` for discrete Laplace noise, with
    #   `y = (sinh(u/2) / sinh(1/(2b)))^2 <= (ub)^2` by convexity, and `-log(1-y)/y` grows with
    #   y, which is at most `t^2 B^2`; at most `u^2 s^2 / 2` for discrete Gaussians (Canonne,
    #   Kamath, Steinke 2020, Cor. 17). Then Markov's inequality for `exp(tZ)`, on both sides.
    # Source: docs/theory/ranges.md.
    # Needs: `largest` bounds the weights of each law; `variance` is that of `variances`.
    if np.size(variance) > _MANY:  # widths grow with the variance: look them up, rounded up
        positive = variance[variance > 0]
        if not positive.size:
            return np.zeros_like(variance)
        grid = np.geomspace(positive.min(), positive.max() * (1 + 1e-9), _MANY)
        known = np.append(0.0, _chernoff(laws, largest, grid, tail))
        return floats(known[np.where(variance > 0, np.searchsorted(grid, variance) + 1, 0)])
    return np.where(variance > 0, _chernoff(laws, largest, variance, tail), 0.0)


def _chernoff(
    laws: Sequence[NoiseDistribution], largest: Floats, variance: Floats, tail: float
) -> Floats:
    ratio, heaviest = _spread(laws, largest)
    proxy = variance * ratio
    cost = math.log(2 / tail)
    best = np.full(np.shape(variance), np.inf)
    # Any t gives a valid bound: look around the one that is best without B.
    ideal = np.sqrt(2 * cost / np.maximum(proxy, 1e-300))
    for factor in np.geomspace(0.02, 1.0, _POINTS):
        t = factor * ideal
        # One term's square is at most the whole sum: 2 a^2 b^2 <= V.
        y = np.square(t) * np.minimum(heaviest**2, proxy / 2)
        usable = y < 1
        safe = np.where(usable & (y > 0), y, 0.5)
        growth = np.where(y > 0, -np.log1p(-safe) / safe, 1.0)
        bound = (cost + proxy / 2 * t * t * growth) / t
        best = np.where(usable, np.minimum(bound, best), best)
    return best * (1 + 1e-12)


def close(laws: Sequence[NoiseDistribution], terms: Terms, variance: float, tail: float) -> float:
    """A half-width w with P(|noise| > w) <= tail, for one answer with known weights."""
    # Theorem: let Z be the noise and Y an independent normal of deviation s. Then
    #   `P(|Z| > w) <= P(|Z + Y| > w - cs) / Phi(c)`.
    # Proof: if `|Z| > w` and Y is not further than cs against the sign of Z, `|Z + Y| > w - cs`;
    #   Y is independent of Z and symmetric. The law of Z + Y is a lattice sum over its
    #   characteristic function (Davies 1973), whose truncation is below 1e-12 because of Y. The sum
    #   has a period of 240 deviations, so it misses no more than what is beyond `_IMAGE`.
    # Source: docs/theory/ranges.md.
    deviation = math.sqrt(variance)
    if deviation == 0:
        return 0.0
    inside = float(ndtr(_ROOM))
    allowed = tail * inside - _SLACK - _images(laws, terms, variance)
    if allowed <= 0:
        return math.inf
    if fine(laws):
        return float(normal(laws, np.array(deviation), tail))
    step = 2 * math.pi / (2 * _REACH * deviation)
    u = (np.arange(math.ceil(7.5 / _SMOOTHING / deviation / step)) + 0.5) * step
    u = _seen(laws, terms, floats(u))
    log = _log_of_sum(laws, terms, u) - np.square(_SMOOTHING * deviation * u) / 2
    mass = np.exp(log) / (np.pi * u / step)

    def beyond(width: float) -> float:
        return 1 - 2 * float((mass * np.sin(u * width)).sum())

    low, high = 0.0, _FAR * deviation
    if beyond(high) > allowed:
        return math.inf
    while high - low > 1e-6 * deviation:
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= allowed else (middle, high)
    return high + _ROOM * _SMOOTHING * deviation


def _images(laws: Sequence[NoiseDistribution], terms: Terms, variance: float) -> float:
    """At least the probability of noise beyond `_IMAGE`; none if it is far below `_SLACK`."""
    # Proof: as in `quick`, at one t; else Chebyshev's inequality. Rare noise, of which the few that
    #   are not zero lie hundreds of deviations out, needs it.
    proxy, heaviest = _spread(laws, np.array([np.abs(x).max(initial=0.0) for x, _ in terms]))
    proxy *= variance
    most = min(heaviest**2, proxy / 2)
    t = min(20 / math.sqrt(proxy), math.sqrt(0.8 / most)) if most > 0 else 20 / math.sqrt(proxy)
    y = t * t * most
    growth = -math.log1p(-y) / y if y > 0 else 1.0
    cost = proxy / 2 * t * t * growth - t * _IMAGE * math.sqrt(variance)
    return 0.0 if cost < math.log(_SLACK / 20) else _IMAGE**-2


def _log_of_sum(laws: Sequence[NoiseDistribution], terms: Terms, u: Floats) -> Floats:
    """The logarithm of the characteristic function of the noise."""
    log = np.zeros(len(u))
    some = max(1, _BATCH // len(u))
    for law, (weights, counts) in zip(laws, terms, strict=True):
        for k in range(0, len(weights), some):
            each = np.outer(weights[k : k + some], u)
            logs = _log_characteristic(law, each.ravel()).reshape(each.shape)
            log += counts[k : k + some] @ logs
    return log


def _seen(laws: Sequence[NoiseDistribution], terms: Terms, u: Floats) -> Floats:
    """The part of u where the characteristic function can be told from zero."""
    # Proof: the factors fall as long as `weight * u` is below pi, so what is left out is below
    #   exp(-60) in every place, and in sum far below `_SLACK`.
    heaviest = max(float(np.abs(weights).max(initial=0.0)) for weights, _ in terms)
    if heaviest * u[-1] >= math.pi:
        return u
    places = np.unique(np.linspace(0, len(u) - 1, _PROBES).astype(np.int64))
    gone = _log_of_sum(laws, terms, u[places]) < -_GONE
    return u[: places[int(np.argmax(gone))] + 1] if gone.any() else u


def fine(laws: Sequence[NoiseDistribution]) -> bool:
    """Whether ``normal`` applies: Gaussian noise on a grid far below it."""
    return all(isinstance(law, DiscreteGaussian) and law.square >= _FINE**2 for law in laws)


def normal(laws: Sequence[NoiseDistribution], deviation: Floats, tail: float) -> Floats:
    """Half-widths for sums of discrete Gaussians of large sigma."""
    # Theorem: with `sigma >= 1024` and normal noise of deviation 8 added to each coordinate on
    #   paper, the sum's density is within `1 +- 1e-100` of a normal one; so the normal quantile,
    #   larger by at most four percent, is valid.
    # Proof: the smoothing lemma for lattice Gaussians: the density of `X + Y` is that of a normal
    #   times `1 +- 4 exp(-2 pi^2 s^2 t^2 / (s^2 + t^2))` (Micciancio, Regev 2007); the product
    #   over at most 2^30 coordinates stays within 1e-100. Then as in `close` with c = 4, where
    #   the added deviation is below 1/128 of the sum's.
    # Source: docs/theory/ranges.md.
    # Needs: `fine`.
    if not fine(laws):
        raise Unsupported("the normal quantile is for fine Gaussian noise only.")
    added = 8 / math.sqrt(min(_proxy(law) for law in laws))
    quantile = -float(ndtri(tail * float(ndtr(4.0)) / 2))
    return (quantile * math.sqrt(1 + added**2) + 4 * added) * (1 + 1e-9) * deviation


def _spread(laws: Sequence[NoiseDistribution], largest: Floats) -> tuple[float, float]:
    """V of `quick` for noise of variance one, and B."""
    ratio = max(_proxy(law) / each for law, each in zip(laws, variances(laws), strict=True))
    heaviest = max(
        float(law.scale) * float(size) if isinstance(law, DiscreteLaplace) else 0.0
        for law, size in zip(laws, largest, strict=True)
    )
    return ratio, heaviest


def _proxy(law: NoiseDistribution) -> float:
    if isinstance(law, DiscreteLaplace):
        return 2 * float(law.scale) ** 2
    return float(law.square)


def _log_characteristic(law: NoiseDistribution, u: Floats) -> Floats:
    """The logarithm of the characteristic function's size (it is real, and positive enough)."""
    if isinstance(law, DiscreteLaplace):
        # 1 / (1 + v (1 - cos u)) with the variance v.
        return -np.log1p(2 * law.variance * np.square(np.sin(u / 2)))
    square = float(law.square)
    if square < 0.5:  # few values: sum them
        k = np.arange(1, 32)
        weights = np.exp(-k * k / (2 * square))
        waves = 1 + 2 * (np.cos(u[:, None] * k) * weights).sum(axis=1)
        return floats(np.log(np.maximum(waves, 0.0) / (1 + 2 * weights.sum()) + 1e-300))
    # Poisson summation: normal bumps at the multiples of 2 pi.
    shifts = 2 * np.pi * np.arange(-3, 4)
    v = np.mod(u + np.pi, 2 * np.pi) - np.pi
    bumps = np.exp(-square * np.square(v[:, None] + shifts) / 2).sum(axis=1)
    whole = np.exp(-square * np.square(shifts) / 2).sum()
    return floats(np.log(bumps / whole + 1e-300))
