"""Which measurement gets how much noise: optimal variances, in closed form or by descent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import optimize, sparse

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats

ROUNDS = 400
GAP = 5e-4
_POWER = 24
"""The largest of many is taken for the mean of so high a power, where there is no closed form."""
_WHOLE = 4096
_BITS = 13
_SMALLEST_SHARE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is to be small: a weighted mean over tables, or the largest of them."""

    energies: sparse.csr_array
    """For each table and part, its share of the table's mean variance."""
    weights: Floats
    """Of each table; for the largest, what its variance is multiplied by."""
    largest: bool

    def value(self, variances: Floats) -> float:
        """The goal at the variances of the parts."""
        each = self.weights * (self.energies @ variances)
        return float(each.max() if self.largest else each.sum())


def optimal_contrasts(goal: Goal, costs: Floats) -> tuple[Floats, float]:
    """Normalized variances of the parts that cost one in all, and how far they may be from best."""
    # Theorem: a weighted sum `sum a sigma^2` under `sum p / sigma^2 <= 1` is least at
    #   `sigma^2 = sqrt(p / a) sum sqrt(a p)`, and is then `(sum sqrt(a p))^2`. For the largest of
    #   several, any weights u on the tables give a lower bound in this way, and the largest at
    #   these variances is an upper one.
    # Proof: Cauchy-Schwarz; a weighted mean is at most the maximum.
    # Source: docs/theory/marginals.md.
    weights = goal.weights.astype(np.float64)
    if not goal.largest:
        return _closed_form(goal.energies.T @ weights, costs), 0.0
    share = np.full(len(weights), 1 / len(weights))
    best, value, bound = np.zeros(0), math.inf, 0.0
    for _ in range(ROUNDS):
        a = goal.energies.T @ (share * weights)
        variances = _closed_form(a, costs)
        each = weights * (goal.energies @ variances)
        bound = max(bound, float(np.sqrt(a * costs).sum() ** 2))
        if each.max() < value:
            best, value = variances, float(each.max())
        if value <= bound * (1 + GAP):
            break
        share = share * each
        share /= share.sum()
    return best, math.sqrt(value / bound) - 1


def _closed_form(a: Floats, costs: Floats) -> Floats:
    found = np.zeros(len(a))
    used = (a > 0) & (costs > 0)
    found[used] = np.sqrt(costs[used] / a[used]) * float(np.sqrt(a * costs).sum())
    # What no answer weighs would get noise without end; it gets a thousandth of the cost.
    idle = ~used & (costs > 0)
    if idle.any():
        found[used] *= 1000 / 999
        found[idle] = 1000 * costs[idle] * int(idle.sum())
    return found


def optimal_plain(
    goal: Goal, information: sparse.csr_array, starts: Sequence[Floats]
) -> tuple[Floats, float]:
    """Shares of the budget for plain tables, and the goal at noise of variance ``1 / share^2``.

    ``information`` says, for each part and table, how much of the precision of the table's cells
    is about the part.
    """
    weights = goal.weights.astype(np.float64)

    def value(logits: Floats) -> tuple[float, Floats]:
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        precision = information @ (shares * shares)
        variances = 1 / np.maximum(precision, 1e-300)
        each = weights * (goal.energies @ variances)
        if goal.largest:
            top = float(each.max())
            powers = (each / top) ** _POWER
            found = top * float(powers.mean()) ** (1 / _POWER)
            slope = found * (each / top) ** (_POWER - 1) / top / powers.sum() * weights
        else:
            found, slope = float(each.sum()), weights
        down = -(goal.energies.T @ slope) * variances * variances
        gradient = (information.T @ down) * 2 * shares / found
        return math.log(found), shares * (gradient - float(gradient @ shares) / shares.sum())

    def gradient_safe(logits: Floats) -> tuple[float, Floats]:
        found, slope = value(logits)
        return found, slope

    best, least = np.zeros(0), math.inf
    for start in starts:
        found = optimize.minimize(
            gradient_safe, np.log(np.maximum(start, 1e-12)), jac=True, method="L-BFGS-B"
        )
        if found.fun < least:
            best, least = found.x, float(found.fun)
    shares = np.exp(best - best.max())
    shares /= shares.sum()
    shares[shares < _SMALLEST_SHARE] = 0
    shares /= shares.sum()
    if not np.all(information @ (shares * shares) > 0):
        raise InvalidArgument("no share of the budget answers all tables: ask for fewer of them.")
    return shares, math.exp(least)


def short_squares(variances: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Variances of integer noise, rounded up: whole if large, else to few bits."""
    return tuple([_short(one) for one in variances])


def _short(square: Fraction) -> Fraction:
    if square >= _WHOLE:
        return Fraction(math.ceil(square))
    unit = Fraction(2) ** (math.floor(math.log2(square)) - _BITS)
    return math.ceil(square / unit) * unit


def smallest_factor(meets: Callable[[Fraction], bool], *, start: Fraction) -> Fraction:
    """The smallest factor of all variances that is certified, to about one in 10**5."""
    step, high = Fraction(1, 100_000), start
    while not meets(high):
        high = start * (1 + step)
        step *= 2
        if step > 10**9:
            raise InvalidArgument("no amount of noise meets this budget.")
    if high == start:
        low = start
        while meets(low * Fraction(9, 10)):
            low = low * Fraction(9, 10)
            if low < start / 10**9:
                return low
        low, high = low * Fraction(9, 10), low
    else:
        low = start
    while high - low > low / 100_000:
        middle = _mean(low, high)
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


def _mean(low: Fraction, high: Fraction) -> Fraction:
    return ((low + high) / 2).limit_denominator(10**15)
