"""How far the noise of an answer reaches: bounds that hold, for the noise of many tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from discreet.noise.distribution import Distribution, Floats, floats
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.ranges import _noise_tails as tails
from discreet.ranges.strategies.base import Terms

_ADDED = (1.25, 1.5, 2.0, 3.0)
"""Deviations of the normal noise that is added to every measurement, on paper."""
_ROOMS = np.linspace(0.5, 4.0, 29)
_BUMPS = 0.01
"""At most so large a share of a tail may the lattice take."""
_MOST_CLOSE = 1 << 14
"""Weights of noise up to which the exact law of an answer is computed."""


def single(law: Distribution, tail: float) -> float:
    """The half-width of one number with noise of this law."""
    return float(law.interval(1 - tail)[1])


def gaussian(
    laws: Sequence[tuple[DiscreteGaussian, int]], variance: Floats, unit: Floats, tail: float
) -> Floats:
    """Half-widths for weighted sums of discrete Gaussians of the given variance.

    ``laws`` are the noises and how many numbers have each; ``unit`` would be the variance, had
    every noise a variance of one.
    """
    # Theorem: the noise Z of an answer leaves `[-w, w]` with probability at most `tail`.
    # Proof: (a) Chernoff: Z is subgaussian, so `w = sqrt(2 V log(2/tail))` holds (Canonne, Kamath,
    #   Steinke 2020). (b) Let every noise X_i get an independent normal Y_i of deviation t, on
    #   paper. The density of `X_i + Y_i` is that of a normal of variance `s_i^2 + t^2`, times a
    #   factor within `1 +- e_i`, `e_i = 4 exp(-2 pi^2 s_i^2 t^2 / (s_i^2 + t^2))` (Poisson
    #   summation, for `e_i < 1/4`). So Z + Y is normal up to a factor `exp(2 sum e_i)`. If
    #   `|Z| > w` and Y is not further than c of its deviations against the sign of Z, then
    #   `|Z + Y| > w - c dev(Y)`; Y is symmetric and independent of Z, so
    #   `P(|Z| > w) <= P(|Z + Y| > w - c dev(Y)) / Phi(c)`. Each t and c is valid.
    # Source: docs/theory/marginals.md.
    proxy, smoothed = _smoothed(tuple(laws))
    found = np.sqrt(2 * proxy * variance * math.log(2 / tail))
    for t, bumps in smoothed:
        deviation, added = np.sqrt(proxy * variance + t * t * unit), np.sqrt(t * t * unit)
        for room in _ROOMS:
            allowed = tail * (1 - _tail(room)) * math.exp(-2 * bumps)
            width = -ndtri(allowed / 2) * deviation + room * added
            found = np.minimum(found, width)
    return floats(found * (1 + 1e-9))


@lru_cache(maxsize=32)
def _smoothed(
    laws: tuple[tuple[DiscreteGaussian, int], ...],
) -> tuple[float, tuple[tuple[float, float], ...]]:
    """How far parameters exceed variances at most, and the deviations t that smooth all noise."""
    proxy = max([float(law.square) / law.variance for law, _ in laws], default=1.0)
    usable = []
    for t in _ADDED:
        bumps = 0.0
        for law, many in laws:
            square = float(law.square)
            one = 4 * math.exp(-2 * math.pi**2 * square * t * t / (square + t * t))
            bumps += many * one if one < 1 / 4 else math.inf
        if 2 * bumps <= _BUMPS:
            usable.append((t, bumps))
    return proxy, tuple(usable)


def quick(
    laws: Sequence[DiscreteGaussian | DiscreteLaplace],
    largest: Floats,
    variance: Floats,
    tail: float,
) -> Floats:
    """Half-widths for many weighted sums, from their variances and the largest weights alone."""
    return floats(tails.quick(laws, largest, variance, tail))


def sums(
    laws: Sequence[DiscreteGaussian | DiscreteLaplace], terms: Terms, variance: float, tail: float
) -> float:
    """The half-width for one weighted sum of discrete Laplace and Gaussian noise."""
    largest = np.array([float(np.abs(held).max(initial=0.0)) for held, _ in terms])
    quick = float(tails.quick(laws, largest, np.array(variance), tail))
    if sum(len(held) for held, _ in terms) > _MOST_CLOSE:
        return quick
    return min(quick, tails.close(laws, terms, variance, tail))


def _tail(room: float) -> float:
    return 0.5 * math.erfc(room / math.sqrt(2))
