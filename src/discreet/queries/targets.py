"""How much a stated accuracy costs: the smallest amount whose forecast stays within a width."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.queries.ask import Query
from discreet.queries.bins import settled
from discreet.queries.budget import Budget
from discreet.queries.design import design, single
from discreet.queries.forecast import forecast
from discreet.queries.passes import Setting

Currency: TypeAlias = Literal["epsilon", "rho"]
_LARGEST = Fraction(2) ** 20
_SMALLEST = Fraction(1, 2**40)
_CLOSE = Fraction(1001, 1000)


def amount_for(
    query: Query,
    *,
    setting: Setting,
    within: Number,
    rows: int | None = None,
    level: float = 0.95,
    currency: Currency = "epsilon",
    delta: Number | None = None,
) -> Budget:
    """The smallest budget, up to a thousandth, at which the error stays ``within`` a half-width.

    The forecast at the result has been checked, so the target is met; it is the question's own
    price, and questions that share what they measure need no more together. For quantiles the
    width is one of rank, as a share of the rows.
    """
    wanted, budget = check.positive("within", within), budgets(currency, delta)
    fixed = settled(single(query), setting=setting, budget=budget(Fraction(1)))

    def meets(amount: Fraction) -> bool:
        (question,) = design([fixed], setting=setting, budget=budget(amount)).questions
        width = forecast(question, rows=rows, level=level).width
        if width is None:
            raise InvalidArgument(
                f"rows must be stated for {query.title!r}: its error depends on their number."
            )
        return Fraction(width) <= wanted

    return budget(least(meets, title=query.title))


def budgets(currency: Currency, delta: Number | None) -> Callable[[Fraction], Budget]:
    """What an amount of a currency is as a budget."""
    check.one_of("currency", currency, get_args(Currency))
    if currency == "rho":
        if delta is not None:
            raise InvalidArgument("delta goes with epsilon; rho has none.")
        return lambda amount: Budget(rho=amount)
    failure = None if delta is None else check.probability("delta", delta, zero=False, one=False)
    return lambda amount: Budget(epsilon=amount, delta=failure)


def least(meets: Callable[[Fraction], bool], *, title: str) -> Fraction:
    """The smallest amount that meets a target: doubled, halved, rounded up to four digits."""
    high = Fraction(1)
    while not meets(high):
        high *= 2
        if high > _LARGEST:
            raise InvalidArgument(
                f"within cannot be met for {title!r} at any sensible amount: state a wider one, "
                "more rows, or a finer question."
            )
    low = high / 2
    while low > _SMALLEST and meets(low):
        high, low = low, low / 2
    while high > low * _CLOSE:
        middle = (high + low) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    short = _rounded_up(high)
    # Less noise is a smaller width, so this holds; if it did not, the exact amount would do.
    return short if meets(short) else high


def _rounded_up(amount: Fraction) -> Fraction:
    """Four significant digits, upwards: an amount that people can copy."""
    unit = Fraction(Decimal(10) ** (math.floor(math.log10(amount)) - 3))
    return -(-amount // unit) * unit
