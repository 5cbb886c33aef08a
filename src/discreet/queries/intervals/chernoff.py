"""Bounds for sampling error and noise together that hold for every law and every number of rows.

Chernoff: P(error > t) <= exp(log E exp(rate * error) - rate * t) for every rate, and the errors of
sampling and of the noise are independent, so that their logarithms add up. Any rate gives a bound;
the best of many is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from discreet.mechanisms.additive import Additive
from discreet.noise.law import Floats
from discreet.queries.intervals.statistics import Statistic

LogMgf: TypeAlias = Callable[[Floats], Floats]
_RATES = 300
_ROUNDING = 1 + 2.0**-40


def reach(sampling: LogMgf, noise: Additive, unit: float, *, tail: float, std: float) -> Floats:
    """The t that sampling error plus noise exceeds with probability at most ``tail``.

    ``sampling`` gives rows of bounds for a column of rates; ``std`` is about that of the sum.

    Theorem: holds for the noise as it is released.
    Proof: if P(Z > z) <= c exp(-rate z) for all z, then P(S + Z > t) <= c E exp(rate (S - t)). For
        normal noise c = exp(rate^2 sigma^2 / 2). For Laplace noise of scale b and a = rate b <= 1,
        the supremum of P(Z > z) exp(rate z) is (2a / (1 + a))^a / (1 + a), below zero: less than
        E exp(rate Z), and finite at rate = 1 / b. Rounding to the grid of the noise moves it by at
        most half a step, which is added.
    """
    assert noise.grid is not None  # noqa: S101 - made on reals
    scale = noise.grid.scale * unit
    centre = math.sqrt(-2 * math.log(tail)) / std
    if noise.name == "laplace":
        rates = np.minimum(np.geomspace(centre / 1e3, centre * 1e3, _RATES), 1 / scale)
        part = rates * scale
        own = part * np.log(2 * part / (1 + part)) - np.log1p(part)
    else:
        rates = np.geomspace(centre / 1e3, centre * 1e3, _RATES)
        own = (rates * scale) ** 2 / 2
    rates, own = rates[:, None], own[:, None]
    with np.errstate(over="ignore"):
        bounds = (sampling(rates) + own - math.log(tail)) / rates
    return np.asarray(bounds.min(axis=0) * _ROUNDING + noise.grid.step * unit / 2)


@lru_cache(maxsize=32)
def upper_variance(
    statistic: Statistic, noise: Additive, unit: float, *, tail: float
) -> tuple[Floats, Floats]:
    """Noisy sample variances, and what the variance of the law then does not exceed.

    Theorem: the law's variance is above the second, read at the noisy one, with probability at
        most ``tail``.
    Proof: v is refused if the noisy variance is below v - t(v), which has probability at most
        ``tail`` if v is the truth; the largest v that is not refused is returned.
    """
    top = statistic.bounds[1]
    found = top * np.linspace(0.0, 1.0, 513) ** 2
    std = math.hypot(top / math.sqrt(statistic.rows), noise.std * unit)

    def sampling(rates: Floats) -> Floats:
        return statistic.log_mgf(-rates, found[None, :])

    refused = found - reach(sampling, noise, unit, tail=tail, std=std)
    # For the largest: what a larger v needs, a smaller one may not undercut. One place outward.
    least = np.minimum.accumulate(refused[::-1])[::-1]
    return least, np.append(found[1:], top)


def bennett(rate: Floats, variance: Floats, width: float, rows: int) -> Floats:
    """At least ``log E exp(rate * (mean - expectation))`` for rows of at most this variance.

    Theorem: for rows whose distance above their expectation is at most ``width`` (Bennett 1962): a
        law with two points has the largest.
    """
    part, square = rate / rows, width**2
    weight = variance / (variance + square)
    up = np.expm1(part * (width + variance / width))
    return np.asarray(rows * (np.log1p(weight * up) - part * variance / width))
