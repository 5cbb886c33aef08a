"""Arithmetic with budgets for plans and displays: amounts, shares of a limit, what remains.

An amount is a number in the measure of a limit: epsilon, rho or mu. Amounts of epsilon and rho
add up; of mu the squares add up. The ledger decides what is granted; the floats here are shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

from discreet.accounting import composition
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.ledger._limit_words import LimitMeasure
from discreet.ledger._limit_words import cost_amount as amount_of_event
from discreet.query.budget import QueryBudget, budget

_CURVE = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
_LARGEST_FACTOR = 1 << 20
_CLOSE = Fraction(101, 100)


# ── Amounts ──────────────────────────────────────────────────────────────────────────────────────


def limit_amount(limit: Guarantee) -> float:
    """All of a limit, in its measure."""
    match limit.event:
        case events.PureEvent(epsilon) | events.ApproxEvent(epsilon, _):
            return float(epsilon)
        case events.ZcdpEvent(rho, _):
            return float(rho)
        case events.GdpEvent(mu):
            return float(mu)
        case _:
            raise InvalidArgument("limit must be pure_dp, approx_dp, zcdp or gdp.")


def cost_amount(cost: Guarantee, limit: Guarantee) -> float:
    """A cost in the measure of a limit; Unsupported, with what to do, if it has none there."""
    return amount_of_event(cost.event, limit)


def stated_amount(cost: Guarantee, limit: Guarantee) -> float:
    """As `cost_amount`, but of pure noise the epsilon that was stated, not a tighter one."""
    if isinstance(limit.event, events.ApproxEvent | events.PureEvent):
        total, failure = composition.basic(cost.event)
        if total is not None and not failure:
            return float(total)
    return cost_amount(cost, limit)


def split_evenly(amount: Fraction, parts: int) -> Fraction:
    """The amount of each of several equal parts of a pure budget."""
    return amount / parts


# ── Shares and remainders ────────────────────────────────────────────────────────────────────────


def share_of_limit(amount: float, limit: float, *, measure: LimitMeasure) -> float:
    """The part of a limit that an amount takes by itself; squares of mu add up."""
    part = amount / limit
    return part**2 if measure == "mu" else part


def share_spent(remaining: float, limit: float, *, measure: LimitMeasure) -> float:
    """The part of a limit that is spent, between 0 and 1."""
    return 1 - min(share_of_limit(remaining, limit, measure=measure), 1.0)


def amount_spent(remaining: float, limit: float, *, measure: LimitMeasure) -> float:
    """What is spent of a limit; the tightest accountant would take seconds for long histories."""
    if measure == "mu":
        return math.sqrt(max(limit**2 - remaining**2, 0.0))
    return max(limit - remaining, 0.0)


def amount_left(remaining: float, cost: float, *, measure: LimitMeasure) -> float:
    """What remains after a cost, at least 0."""
    if measure == "mu":
        return math.sqrt(max(remaining**2 - cost**2, 0.0))
    return max(remaining - cost, 0.0)


def percent_left(remaining: float, limit: float) -> float:
    """What remains, in percent of the limit; of mu, not of its square."""
    return 100 * remaining / limit


def percent_spent(remaining: float, limit: float) -> float:
    """What is spent, in percent of the limit; of mu, not of its square."""
    return 100 * (1 - remaining / limit)


def days_left(remaining: Sequence[float], *, days: float, now: float) -> float | None:
    """Days until nothing is left, if spending goes on at the same pace.

    ``remaining`` is what was left after some entries of an account, oldest first, ``days`` is how
    long ago the first was, ``now`` is what is left. None if there are fewer than three entries,
    nothing was spent, or nothing is left.
    """
    if len(remaining) < 3 or now <= 0:
        return None
    spent = remaining[0] - remaining[-1]
    # A day at least: five releases within one minute are no pace.
    return None if spent <= 0 else now * max(days, 1.0) / spent


# ── Budgets of plans ─────────────────────────────────────────────────────────────────────────────


def fast_budgets(given: QueryBudget) -> tuple[QueryBudget, ...]:
    """For comparisons: each noise by its formula, not certified to the last digit."""
    if given.delta is None or given.epsilon is None:
        return (given,)
    sigma = gaussian_sigma(float(given.epsilon), delta=float(given.delta))
    ways = {
        "laplace": QueryBudget(epsilon=given.epsilon),
        "gaussian": QueryBudget(rho=Fraction(1 / (2 * sigma**2)), noise="gaussian"),
    }
    return tuple(ways[noise] for noise in given.noises)


def curve_budgets(
    measure: Literal["epsilon", "rho"], *, delta: Number | None
) -> list[tuple[float, QueryBudget]]:
    """Amounts from small to large with their budgets, for a curve of errors."""
    if measure == "rho":
        return [(float(at**2), QueryBudget(rho=at**2)) for at in _CURVE]
    return [(float(at), budget(epsilon=at, delta=delta)) for at in _CURVE]


def smallest_factor(fits: Callable[[Fraction], bool]) -> float | None:
    """The smallest factor above 1 that fits, rounded up to hundredths; None if none is useful.

    ``fits`` must be monotone. The answer is at most a hundredth part too large, and was checked.
    """
    low, high = Fraction(1), Fraction(2)
    while not fits(high):
        low, high = high, 2 * high
        if high > _LARGEST_FACTOR:
            return None
    while high > low * _CLOSE:
        middle = (high + low) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return float(math.ceil(high * 100) / Fraction(100))
