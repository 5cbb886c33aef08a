"""Binomial laws with many trials: masses and tails that keep their relative precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln

from discreet.accounting.conversion import Floats

# Below this a factorial is taken from its logarithm, above it from Stirling's series.
_STIRLING = 16.0


def log_mass(k: Floats, *, trials: Floats | float, chance: float) -> Floats:
    """The logarithm of P(X = k)."""
    # Theorem: `log P = -trials KL(k/trials, chance) + log(trials/(2 pi k (trials-k)))/2` plus the
    #   errors of Stirling's formula: no large logarithms cancel.
    # Source: Loader 2000, "Fast and accurate computation of binomial probabilities".
    # Needs: `0 < chance < 1` and `0 <= k <= trials`.
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), np.shape(k))
    rest = n - k
    edge = (k == 0) | (rest == 0)
    inside = np.where(edge, 1.0, k), np.where(edge, 1.0, rest), np.where(edge, 2.0, n)
    deviance = _deviance(inside[0], inside[2] * chance)
    deviance = deviance + _deviance(inside[1], inside[2] * (1 - chance))
    stirling = _stirling(inside[2]) - _stirling(inside[0]) - _stirling(inside[1])
    root = np.log(inside[2] / (2 * math.pi * inside[0] * inside[1])) / 2
    # At either end the mass is a power of one of the two chances.
    ends = np.where(k == 0, rest * math.log1p(-chance), k * math.log(chance))
    return np.where(edge, ends, root - deviance + stirling)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """``x log(x/mean) - x + mean`` without cancellation when x is near its mean."""
    gap = (x - mean) / mean
    near = np.abs(gap) < 0.1
    g = np.where(near, gap, 0.0)
    # (1 + g) log(1 + g) - g = sum over j >= 2 of (-g)^j / (j (j - 1)).
    series = np.zeros_like(g)
    for j in range(18, 1, -1):
        series = series * -g + 1 / (j * (j - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        far = x * np.log(x / mean) - (x - mean)
    return np.where(near, mean * g * g * series, far)


def _stirling(n: Floats) -> Floats:
    """log(n!) minus Stirling's formula."""
    small = np.minimum(n, _STIRLING)
    listed = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - math.log(2 * math.pi) / 2
    x = np.maximum(n, _STIRLING)
    square = x * x
    series = (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square
    ) / x
    return np.where(n < _STIRLING, listed, series)


def at_least(k: Floats, *, trials: Floats | float, chance: float) -> Floats:
    """P(X >= k), precise when it is small."""
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), np.shape(k))
    inside = (k > 0) & (k <= n)
    tail = betainc(np.where(inside, k, 1.0), np.where(inside, n - k + 1, 1.0), chance)
    return np.where(inside, tail, np.where(k <= 0, 1.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BinomialWindow:
    """Values ``first .. last`` that hold all but ``tail`` of a binomial law on each side."""

    first: int
    last: int


def window(trials: int, *, chance: float, tail: float) -> BinomialWindow:
    """The window by Chernoff's bound: P(X <= k) <= exp(-trials KL(k/trials, chance)) below it."""
    # Source: Hoeffding 1963, Theorem 1.
    wanted = math.log(1 / tail)
    mean = trials * chance

    def outside(k: int) -> bool:
        x, rest = np.asarray(float(k)), np.asarray(float(trials - k))
        value = _or_zero(x, mean) + _or_zero(rest, trials - mean)
        return value > wanted

    below = _last(lambda k: outside(math.floor(mean) - k), math.floor(mean))
    above = _last(lambda k: outside(math.ceil(mean) + k), trials - math.ceil(mean))
    return BinomialWindow(first=math.floor(mean) - below, last=math.ceil(mean) + above)


def _or_zero(x: Floats, mean: float) -> float:
    return float(mean if x == 0 else _deviance(x, np.asarray(mean)))


def _last(outside: Callable[[int], bool], most: int) -> int:
    """The largest distance in 0 .. most that is not outside."""
    if most <= 0 or not outside(most):
        return max(most, 0)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) else (middle, high)
    return low
