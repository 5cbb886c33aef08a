"""The analysis of noisy votes as published in 2018: one query after the other, one-sided.

Papernot et al. 2018, Propositions 7, 8 and 10 and Theorem 6, in floats, written out as their
listing does it: a histogram comes in, an array of Rényi costs goes out. Two sensitivities.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

SIGMA, THRESHOLD_NOISE = 40.0, 150.0
SHARES = (2 / 3, 4 / 3)


def vote_costs(*, n: int, classes: int) -> Callable[[], None]:
    """All answered; costs added up for two levels at the orders that ours has."""
    rng = np.random.default_rng(1)
    votes = rng.multinomial(250, rng.dirichlet(np.full(classes, 0.1), size=n)).astype(float)
    steps = ((11, 20, 1, 10), (4, 21, 1, 2), (11, 65, 1, 1), (72, 257, 8, 1), (320, 1025, 64, 1))
    orders = np.array([k / part for low, high, by, part in steps for k in range(low, high, by)])

    def work() -> None:
        totals = np.zeros((len(SHARES), len(orders)))
        for row in votes:
            lnq = _log_error(row)
            for level, share in enumerate(SHARES):
                asked = share**2 * orders / (2 * THRESHOLD_NOISE**2)
                totals[level] += _cost(lnq, SIGMA / share, orders) + asked

    return work


def _log_error(row: NDArray[np.float64]) -> float:
    best = int(np.argmax(row))
    gaps = row[best] - np.delete(row, best)
    bound = float(logsumexp(norm.logsf(gaps, scale=math.sqrt(2) * SIGMA)))
    return min(bound, math.log(1 - 1 / len(row)))


def _cost(lnq: float, sigma: float, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    found = orders / sigma**2
    second = sigma * math.sqrt(-lnq)
    first = second + 1
    if second <= 1:
        return found
    eps1, eps2 = first / sigma**2, second / sigma**2
    limit = (second - 1) * eps2 - second * (
        math.log(first / (first - 1)) + math.log(second / (second - 1))
    )
    if lnq + eps2 >= 0 or lnq > limit:
        return found
    stay = math.log1p(-math.exp(lnq))
    rest = math.log(-math.expm1((lnq + eps2) * (1 - 1 / second)))
    good = orders <= first
    a = orders[good]
    tight = np.logaddexp(stay + (a - 1) * (stay - rest), lnq + (a - 1) * (eps1 - lnq / second))
    found[good] = np.minimum(found[good], tight / (a - 1))
    return found
