"""How much a stated accuracy of ranges costs: the smallest amount whose intervals are within it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.queries.budget import Budget
from discreet.queries.passes import Setting
from discreet.queries.ranges.question import RangeQuery, planned
from discreet.queries.targets import Currency, budgets, least

_PLANS = 12


def range_amount_for(
    query: RangeQuery,
    *,
    setting: Setting,
    within: Number,
    level: float = 0.95,
    currency: Currency = "epsilon",
    delta: Number | None = None,
) -> Budget:
    """The budget at which every range of the workload has an interval ``within`` a half-width.

    It is the smallest, up to a thousandth, for the structure that is best at the amount one. The
    plan at the result is made and its widest interval checked, so the target is met by what will
    be released; where another structure is best there, the amount grows until it is.

    On more than 256 cells, "every range" is every one of the many that the planner tries.
    """
    wanted, budget = check.positive("within", within), budgets(currency, delta)
    first = planned(query, setting=setting, budget=budget(Fraction(1))).ranked.candidates[0]

    def meets(amount: Fraction) -> bool:
        design = replace(first.design, budget=budget(amount))
        return Fraction(design.width(*first.widest, level=level)) <= wanted

    amount = least(meets, title=query.title)
    for _ in range(_PLANS):
        best = planned(query, setting=setting, budget=budget(amount)).ranked.candidates[0]
        width = Fraction(best.width(level=level))
        if width <= wanted:
            return budget(amount)
        part = (width / wanted).limit_denominator(10**4)
        amount *= max(part if currency == "epsilon" else part**2, Fraction(1001, 1000))
    raise InvalidArgument(
        f"within cannot be met for {query.title!r}: state a wider one, or an amount."
    )
