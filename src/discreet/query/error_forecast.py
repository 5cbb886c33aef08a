"""The error of a query before its release, and the smallest budget for a stated error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import UNKNOWN, number, percent, short
from discreet.core.tabular import Record, Tabular
from discreet.query._measure import TableSpec
from discreet.query._release_plan import (
    EXPONENTIAL,
    PlannedQuery,
    check_query,
    noise_words,
    plan_release,
)
from discreet.query.budget import NoiseName, QueryBudget
from discreet.query.builders import Query

# ── Error forecasts ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorForecast(Tabular):
    """Describe the error of a query before its release, from public numbers only.

    `std` and `width` are for one group. For means, variances and covariances both are upper bounds
    at `expected_rows` rows in the group (`std` to first order), and unknown without
    `expected_rows`. For quantiles the error is one of rank, as a share of the rows: a median within
    0.02 is a quantile between 0.48 and 0.52.

    Attributes:
        title: Title of the query.
        groups: Number of groups.
        std: Noise standard deviation of the number of one group, in the unit of the number; None if
            unknown.
        width: Margin of error: half of the width of the interval; None if unknown.
        confidence: Probability with which the error stays within `width`.
        expected_rows: Number of rows in a group that the forecast assumes; None if the error does
            not depend on it.
        guarantee: Privacy guarantee of the release.
        step: Width of the cells of quantiles; None for other queries.
        noise: Noise that a release adds: "laplace", "gaussian" or, for a choice by rank,
            "exponential".
        other_widths: Margin of error with the noise that was not chosen, at the same privacy loss,
            by its name; empty where the budget or `noise` leaves no choice.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"age": [23, 35, 41]})
        >>> people = discreet.table(rows, columns={"age": discreet.integer(0, 120)})
        >>> people.forecast(discreet.query.count(), epsilon=0.5).width
        6.0
    """

    title: str
    groups: int
    std: float | None
    width: float | None
    confidence: float
    expected_rows: int | None
    guarantee: Guarantee
    step: float | None = None
    noise: str = "laplace"
    other_widths: Mapping[str, float | None] = field(default_factory=dict)

    def rows(self) -> list[Record]:
        """List the forecast as one row.

        Returns:
            One dict: title, groups, std, width, confidence, expected_rows, step and noise.

        Examples:
            >>> import discreet
            >>> import pandas as pd
            >>> rows = pd.DataFrame({"age": [23, 35, 41]})
            >>> people = discreet.table(rows, columns={"age": discreet.integer(0, 120)})
            >>> people.forecast(discreet.query.count(), epsilon=0.5).rows()[0]["width"]
            6.0
        """
        names = ("title", "groups", "std", "width", "confidence", "expected_rows", "step", "noise")
        return [{name: getattr(self, name) for name in names}]

    def _noise_words(self) -> str:
        """Which noise, and what the other one would give."""
        others = [
            f"±{short(width)} with {noise_words(name)}"
            for name, width in self.other_widths.items()
            if width is not None
        ]
        return "; ".join([noise_words(self.noise), *others])

    def __str__(self) -> str:
        if self.width is None:
            return f"{self.title}: give expected_rows to know the error"
        rows = "" if self.expected_rows is None else f", {self.expected_rows:,} rows"
        known = f"({percent(self.confidence)} confidence{rows}; {self._noise_words()})"
        if self.step is not None:
            return (
                f"{self.title}: rank within ±{short(self.width)} of the rows {known}, in bins of "
                f"{number(self.step)}"
            )
        std = UNKNOWN if self.std is None else short(self.std)
        return f"{self.title}: noise std {std}, margin of error ±{short(self.width)} {known}"

    __repr__ = __str__


def forecast(
    question: PlannedQuery, *, expected_rows: int | None = None, confidence: float = 0.95
) -> ErrorForecast:
    """The error of an answer, at a stated number of rows in its group where that matters."""
    inside = float(check.probability("confidence", confidence, zero=False, one=False))
    n = None if expected_rows is None else check.count("expected_rows", expected_rows)
    found = question.error(n, inside)
    return ErrorForecast(
        title=question.query.title,
        groups=len(question.keys),
        std=found.std,
        width=found.width,
        confidence=inside,
        expected_rows=found.rows,
        guarantee=question.guarantee,
        step=found.step,
        noise=question.noise_name,
        other_widths={
            name: other.error(n, inside).width
            for name, other in question.others.items()
            if question.noise_name != EXPONENTIAL
        },
    )


# ── Budgets for a stated error ───────────────────────────────────────────────────────────────────


Measure: TypeAlias = Literal["epsilon", "rho"]
_LARGEST = Fraction(2) ** 20
_SMALLEST = Fraction(1, 2**40)
_CLOSE = Fraction(1001, 1000)


def budget_for(
    query: Query,
    *,
    setting: TableSpec,
    within: Number,
    expected_rows: int | None = None,
    confidence: float = 0.95,
    measure: Measure = "epsilon",
    delta: Number | None = None,
    noise: NoiseName | None = None,
) -> QueryBudget:
    """The smallest budget, up to a thousandth, at which the error stays ``within`` a half-width.

    The forecast at the result has been checked, so the target is met; it is the question's own
    price, and questions that share what they measure need no more together. For quantiles the
    width is one of rank, as a share of the rows.
    """
    wanted, made = check.positive("within", within), budget_factory(measure, delta)

    def budget(amount: Fraction) -> QueryBudget:
        return replace(made(amount), noise=noise)

    fixed = check_query(query)

    def meets(amount: Fraction) -> bool:
        (question,) = plan_release([fixed], setting=setting, budget=budget(amount)).questions
        width = forecast(question, expected_rows=expected_rows, confidence=confidence).width
        if width is None:
            raise InvalidArgument(
                f"expected_rows must be stated for {query.title!r}: its error depends on their "
                "number."
            )
        return Fraction(width) <= wanted

    return budget(smallest_amount(meets, title=query.title))


def budget_factory(measure: Measure, delta: Number | None) -> Callable[[Fraction], QueryBudget]:
    """What an amount of a currency is as a budget."""
    check.one_of("measure", measure, get_args(Measure))
    if measure == "rho":
        if delta is not None:
            raise InvalidArgument("delta goes with epsilon; rho has none.")
        return lambda amount: QueryBudget(rho=amount)
    failure = None if delta is None else check.probability("delta", delta, zero=False, one=False)
    return lambda amount: QueryBudget(epsilon=amount, delta=failure)


def smallest_amount(meets: Callable[[Fraction], bool], *, title: str) -> Fraction:
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
