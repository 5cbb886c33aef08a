"""The error of a query before its release, and the smallest budget for a stated error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.query._estimate import CovarianceEstimator, half_width
from discreet.query._measure import SumEstimator, TableSpec, settle_quantiles
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query._release_plan import PlannedQuery, check_query, plan_release
from discreet.query.budget import QueryBudget
from discreet.query.builders import Query

# ── Error forecasts ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorForecast:
    """The error of an answer before it is asked: from public numbers only.

    ``std`` and ``width`` are for one group. The error stays within ``width`` with probability at
    least ``confidence``. For means, variances and covariances both are upper bounds at
    ``expected_rows`` rows in
    the group (``std`` to first order); without ``expected_rows`` they are unknown. For quantiles
    the error
    is one of rank, as a share of the rows (a median within 0.02 is some quantile between 0.48 and
    0.52), and ``step`` is the width of the bins; the error in value depends on the data.
    """

    title: str
    groups: int
    std: float | None
    width: float | None
    confidence: float
    expected_rows: int | None
    guarantee: Guarantee
    step: float | None = None

    def __str__(self) -> str:
        if self.width is None:
            return f"{self.title}: state the number of rows to know the error."
        if self.step is not None:
            return (
                f"{self.title}: rank within ±{self.width:.4g} of the rows "
                f"{100 * self.confidence:g} times of 100 with {self.expected_rows} rows, in "
                f"bins of {self.step:g}"
            )
        n = "" if self.expected_rows is None else f" with {self.expected_rows} rows"
        return (
            f"{self.title}: std {self.std:.4g}, within ±{self.width:.4g} of the truth "
            f"{100 * self.confidence:g} times of 100{n}"
        )

    __repr__ = __str__


def forecast(
    question: PlannedQuery, *, expected_rows: int | None = None, confidence: float = 0.95
) -> ErrorForecast:
    """The error of an answer, at a stated number of rows in its group where that matters.

    Proof: with probability ``confidence`` all k parts are within their half-widths w (union
        bound). Then
        ``|s'/n' - s/n| = |(s' - s) - (n' - n) s/n| / n' <= (w_s + h w_n) / (n - w_n)`` with h the
        bound of |s/n|, and a variance moves by half of the error of its first term and 2 h times
        that of the mean.
    """
    inside = float(check.probability("confidence", confidence, zero=False, one=False))
    n = None if expected_rows is None else check.count("expected_rows", expected_rows)
    if isinstance(question.scale, QuantileEstimator):
        return _ranks(question, question.scale, n, inside)
    scale, many = question.scale, len(question.measurements)
    laws = [one.law for one in question.measurements]
    factors = [2.0**shift for shift in scale.shifts]
    stds = [law.std * factor for law, factor in zip(laws, factors, strict=True)]
    widths = [
        (half_width(law, 1 - (1 - inside) / many) + (shift > 0)) * factor
        for law, factor, shift in zip(laws, factors, scale.shifts, strict=True)
    ]
    std: float | None
    width: float | None
    if many == 1:
        std, width = (math.ldexp(x, scale.exponent) for x in (stds[0], widths[0]))
        n = None
    elif isinstance(scale, SumEstimator) and scale.kind == "sum":
        middle = abs(scale.lower + scale.upper)
        std = math.ldexp(math.hypot(stds[1], middle * stds[0]), scale.exponent - 1)
        width = math.ldexp(widths[1] + middle * widths[0], scale.exponent - 1)
        n = None
    elif n is None:
        std = width = None
    elif isinstance(scale, CovarianceEstimator):
        std, width = scale.forecast(stds, widths, n)
    else:
        std, width = _ratio_error(scale, stds, widths, n)
    return ErrorForecast(
        title=question.query.title,
        groups=len(question.keys),
        std=std,
        width=width,
        confidence=inside,
        expected_rows=n,
        guarantee=question.guarantee,
    )


def _ranks(
    question: PlannedQuery, scale: QuantileEstimator, expected_rows: int | None, confidence: float
) -> ErrorForecast:
    """The error in rank, as a share of the rows."""
    laws = [
        float(one.mechanism.rate) if isinstance(one.mechanism, ExponentialMechanism) else one.law
        for one in question.measurements
    ]
    std, width = scale.rank_error(laws, confidence)
    return ErrorForecast(
        title=question.query.title,
        groups=len(question.keys),
        std=None if expected_rows is None or std is None else min(std / expected_rows, 1.0),
        width=None if expected_rows is None else min(width / expected_rows, 1.0),
        confidence=confidence,
        expected_rows=expected_rows,
        guarantee=question.guarantee,
        step=scale.step,
    )


def _ratio_error(
    scale: SumEstimator, stds: Sequence[float], widths: Sequence[float], n: int
) -> tuple[float, float]:
    """First-order deviation and certain width of a mean or a variance, at worst."""
    h = float(scale.width)
    left = n - widths[0]
    b = min((widths[1] + h * widths[0]) / left, 2 * h) if left > 0 else 2 * h
    if scale.kind == "mean":
        std = min(math.hypot(stds[1], h * stds[0]) / n, h)
        return math.ldexp(std, scale.exponent - 1), math.ldexp(b, scale.exponent - 1)
    a = (widths[2] + h**2 * widths[0]) / left if left > 0 else 2 * h**2
    std = min(math.hypot(stds[2] / 2, 2 * h * stds[1], 1.5 * h**2 * stds[0]) / n, h**2)
    width = min(a / 2 + 2 * h * b, h**2)
    return math.ldexp(std, 2 * scale.exponent - 2), math.ldexp(width, 2 * scale.exponent - 2)


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
) -> QueryBudget:
    """The smallest budget, up to a thousandth, at which the error stays ``within`` a half-width.

    The forecast at the result has been checked, so the target is met; it is the question's own
    price, and questions that share what they measure need no more together. For quantiles the
    width is one of rank, as a share of the rows.
    """
    wanted, budget = check.positive("within", within), budget_factory(measure, delta)
    fixed = settle_quantiles(check_query(query), setting=setting, budget=budget(Fraction(1)))

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
