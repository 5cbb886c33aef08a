"""Intervals for a median or any quantile, from two private choices of an order statistic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import expit, ndtr, ndtri

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import Number
from discreet.core.errors import Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.intervals import interval as laws
from discreet.intervals.interval import (
    IntervalAnswers,
    IntervalForecast,
    IntervalPlan,
    laplace_points,
)
from discreet.intervals.studentized import column_of
from discreet.mechanisms._drawn import cumulated, releases_follow
from discreet.mechanisms._piecewise_exponential import PiecewiseExponential
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck
from discreet.mechanisms.quantiles import PrivateQuantile, SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

_POINTS = 64
_ROUNDING = 1 + 1e-7
# Splits of epsilon between both ends, and steps of a grid, as powers of two, that may be taken.
_SPLITS = tuple(Fraction(k, 8) for k in (4, 3, 5, 2, 6))
_RESOLUTIONS = (6, 8, 10, 12, 14)
_USUAL = 10
# Steps of the grid on which a certificate draws.
_SPAN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEnd:
    """One end: which rank is aimed at, and for which epsilon; None if the bound itself is taken."""

    rank: int | None
    epsilon: Fraction

    @property
    def rate(self) -> Fraction:
        """What a rank is worth, as a logarithm of probability."""
        return self.epsilon / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileInterval(IntervalPlan):
    """Two chosen points between which the quantile lies. Made by `quantile_interval`."""

    column: SortedColumn
    public_rows: int
    quantile: Fraction
    confidence: float
    ends: tuple[QuantileEnd, QuantileEnd]

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: two choices, each of bounded range."""
        parts = [events.BoundedRangeEvent(end.epsilon) for end in self.ends if end.rank is not None]
        if not parts:
            return Guarantee(events.NOTHING, NeighboringRelation.REPLACE_ONE)
        return Guarantee(events.compose(tuple(parts)), NeighboringRelation.REPLACE_ONE)

    @property
    def std(self) -> float:
        """A choice has no standard deviation that holds for all data."""
        raise Unsupported("A chosen quantile has no standard deviation.")

    @property
    def guaranteed(self) -> float | None:
        """The level: for every law, and any number of rows."""
        return self.confidence

    @property
    def needs(self) -> str:
        """What the coverage rests on."""
        return "independent rows of any law"

    @property
    def misfit(self) -> float:
        """The middle between the bounds."""
        return self.column.number(self.column.span // 2)

    def answers(self, tables: Floats, rng: RandomSource) -> IntervalAnswers:
        """Intervals of private columns; the value is the middle."""
        codes = np.sort(self.column.places(tables), axis=1)
        found = np.array([[self._place(row, side, rng) for side in (0, 1)] for row in codes])
        places = np.sort(found, axis=1)  # crossed ends have failed already
        step, low = self.column.step, self.column.first
        lower, upper = (low + places[:, 0]) * step, (low + places[:, 1]) * step
        bottom, top = self.column.number(0), self.column.number(self.column.span)
        return IntervalAnswers(
            low=np.maximum(lower - step / 2, bottom),  # the grid may have moved the quantile
            high=np.minimum(upper + step / 2, top),
            value=(lower + upper) / 2,
            released=(lower, upper),
        )

    def _place(self, codes: Ints, side: int, rng: RandomSource) -> int:
        end = self.ends[side]
        if end.rank is None:
            return side * self.column.span
        choice = PiecewiseExponential(
            values=codes,
            span=self.column.span,
            level=Fraction(end.rank, self.public_rows),
            climbing=False,
            rate=end.rate,
        )
        return choice.draw(rng)

    def forecast(self, std: float, mean: float | None = None) -> IntervalForecast:
        """The width before release, if the rows are normal: both numbers are public guesses."""
        low, high = self.column.number(0), self.column.number(self.column.span)
        at = (low + high) / 2 if mean is None else mean
        plain = math.sqrt(float(self.quantile * (1 - self.quantile)) / self.public_rows)
        z, q = -float(ndtri((1 - self.confidence) / 2)), float(self.quantile)
        ordinary = [float(np.clip(q + sign * z * plain, 1e-9, 1 - 1e-9)) for sign in (-1, 1)]
        return IntervalForecast(
            width=self._width(at, std),
            largest=high - low,
            plain=float(std * (ndtri(ordinary[1]) - ndtri(ordinary[0]))),
            guess=f"the rows are normal with standard deviation {short(std)}",
            nominal=self.confidence,
            guaranteed=self.guaranteed,
            needs=self.needs,
        )

    def _width(self, mean: float, std: float) -> float:
        low, high = self.column.number(0), self.column.number(self.column.span)
        first, last = ndtr((low - mean) / std), ndtr((high - mean) / std)
        ends = []
        for end, bound in zip(self.ends, (low, high), strict=True):
            if end.rank is None:
                ends.append(bound)
                continue
            ranks = end.rank + laplace_points(_POINTS) / float(end.rate)
            shares = np.clip(ranks / self.public_rows, first + 1e-12, last - 1e-12)
            ends.append(float(np.clip(mean + std * ndtri(shares), low, high).mean()))
        return max(ends[1] - ends[0], 0.0) + self.column.step

    def certify(self) -> Certificate:
        """Recompute the guarantee of either choice on small data, and draw it there."""
        checks: list[CertificateCheck] = []
        drawn: list[DrawCheck] = []
        for side, end in enumerate(self.ends):
            if end.rank is not None:
                choice = PrivateQuantile(
                    column=self.column,
                    quantile=Fraction(end.rank, self.public_rows).limit_denominator(64),
                    epsilon=end.epsilon,
                    method="exponential",
                    relation=NeighboringRelation.REPLACE_ONE,
                )
                one = choice.certify()
                checks += one.checks
                drawn += [*one.drawn, self._drawn(side, end.rank, choice)]
        spent = sum((end.epsilon for end in self.ends if end.rank is not None), start=Fraction(0))
        drawn.append(
            DrawCheck(
                part="what is charged",
                found=float(spent),
                allowed=self.guarantee.epsilon(),
                route="epsilons of both choices, and epsilon charged",
            )
        )
        return Certificate(
            mechanism="quantile_interval",
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=tuple(drawn),
        ).demand()

    def _drawn(self, side: int, rank: int, choice: PrivateQuantile) -> DrawCheck:
        """One end of intervals on the points 0 to 5, against the law of the choice."""
        small = replace(self, column=SortedColumn(first=0, span=_SPAN, exponent=0))
        # The rows that decide lie about the rank; others at either bound.
        spread = min(max(1, round(1 / float(self.ends[side].rate))), self.public_rows)
        codes = np.clip((np.arange(self.public_rows) - rank) // spread + _SPAN // 2, 0, _SPAN)
        exact = replace(choice, column=small.column, quantile=Fraction(rank, self.public_rows))
        return releases_follow(
            f"end at rank {rank}",
            lambda rng: small._place(codes, side, rng),  # noqa: SLF001 - its own
            cumulated(exact.probabilities(codes)),
        )


def quantile_interval(
    quantile: Number = Fraction(1, 2),
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    confidence: float = 0.95,
    std: Number | None = None,
    granularity: Number | None = None,
) -> QuantileInterval:
    """Plan a confidence interval for a quantile, by default the median.

    It holds the quantile of the population from which the rows were drawn.
    The exponential mechanism chooses both ends. Its loss grows with the logarithm of the number of
    possible ends, so choose a granularity no finer than you need.

    Args:
        quantile: Level of the quantile, between 0 and 1.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows.
        epsilon: Privacy loss of the interval.
        confidence: Confidence level, between 0 and 1.
        std: Public guess of the standard deviation of the rows. With it, granularity and split of
            epsilon are chosen to make the interval short.
        granularity: Spacing of the ends, a power of two.

    Returns:
        A plan with `forecast(std)`, `release(values)` and `guarantee`. It covers for every
        distribution and every number of rows.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        epsilon-DP if one row is replaced. If you pass `account` to `release`, it is charged before
        the data are read.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.quantile(
        ...     0.5, lower=0, upper=100, public_rows=1_000, epsilon=1, granularity=1
        ... )
        >>> interval = plan.release(range(1_000))
        >>> interval.low <= interval.high
        True

    References:
        McSherry and Talwar (2007).
        [Proof](../theory/theorems.md#intervals._quantile.quantile_interval).
    """
    # Theorem: the release is epsilon-DP if one row is replaced. It holds each quantile of the law,
    #   clipped to the bounds (a number with at most this share below, and at least this share up to
    #   it), with probability at least `confidence`, for any law and any number of rows.
    # Proof: a point is chosen with weight exp(-rate d), d its distance in ranks to the target t,
    #   and one replaced row moves d by at most 1. Let N rows be not above the quantile. Points
    #   above it, at most w, have d >= max(0, N - t), and a point not above it has d <= max(0, t -
    #   N); so one above is chosen with probability at most x / (1 + x) with x = w exp(-rate (N -
    #   t)). N is at least binomial, and this falls in N. t is the largest rank at which the
    #   expectation is (1 - level) / 2. The other end mirrored.
    # Source: McSherry, Talwar 2007; compare Drechsler et al. 2022. C6; docs/theory/intervals.md.
    # Needs: bounds, grid, rows and std from elsewhere than the private column; rows >= 1.
    share = check.probability("quantile", quantile, zero=False, one=False)
    size = check.count("public_rows", public_rows)
    price = check.positive("epsilon", epsilon)
    inside = float(check.probability("confidence", confidence, zero=False, one=False))
    guess = None if std is None else float(check.positive("std", std))
    plans = [
        _plan(column, size, share, inside, (price * part, price * (1 - part)))
        for column in _columns(lower, upper, granularity, size, several=guess is not None)
        for part in _SPLITS[: None if guess is not None and share != Fraction(1, 2) else 1]
    ]
    if guess is None:
        return plans[0]
    return min(plans, key=lambda plan: plan.forecast(guess).width)


def _columns(
    lower: Number, upper: Number, granularity: Number | None, public_rows: int, *, several: bool
) -> Iterator[SortedColumn]:
    finest = column_of(lower, upper, granularity, public_rows)
    if granularity is not None:
        yield finest
        return
    bits = finest.span.bit_length() - 1
    for resolution in _RESOLUTIONS if several else (_USUAL,):
        exponent = finest.exponent + max(0, bits - resolution)
        yield column_of(lower, upper, Fraction(2) ** exponent, public_rows)


def _plan(
    column: SortedColumn,
    public_rows: int,
    quantile: Fraction,
    confidence: float,
    prices: tuple[Fraction, Fraction],
) -> QuantileInterval:
    low = _rank(
        column.span, public_rows, float(quantile), float(prices[0]) / 2, (1 - confidence) / 2
    )
    high = _rank(
        column.span, public_rows, 1 - float(quantile), float(prices[1]) / 2, (1 - confidence) / 2
    )
    mirrored = None if high is None else public_rows - high
    return QuantileInterval(
        column=column,
        public_rows=public_rows,
        quantile=quantile,
        confidence=confidence,
        ends=(
            QuantileEnd(rank=low, epsilon=prices[0]),
            QuantileEnd(rank=mirrored, epsilon=prices[1]),
        ),
    )


def _rank(span: int, rows: int, quantile: float, rate: float, tail: float) -> int | None:
    """The largest rank to aim at for a lower end; None if there is none.

    The expectation over the binomial number N of rows that are not above the quantile grows with
    the rank. Its law is summed where it is not negligible; the rest counts as failed.
    """
    counts, law, left = laws.binomial(rows, quantile)

    def fails(rank: int) -> float:
        return float(law @ expit(math.log(span) - rate * (counts - rank))) * _ROUNDING + left

    low, high = -1, rows + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) <= tail else (low, middle)
    return low if low >= 0 else None
