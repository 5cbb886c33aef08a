"""How the budget of an interval is split between an estimate and its standard error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.column import Column
from discreet.mechanisms.gaussian import gaussian
from discreet.mechanisms.laplace import laplace
from discreet.queries.intervals.statistics import Statistic
from discreet.queries.intervals.studentised import Assume, Method, Studentised
from discreet.queries.intervals.sums import LARGEST_SPAN, LARGEST_SUM

# Shares of epsilon that the standard error may get, and how much of what may fail.
_SHARES = [Fraction(0), *(Fraction(k, 64) for k in (1, 2, 4, 6, 9, 13, 18, 24, 32))]
_GAMMA = Fraction(1, 10)
# And how much may fail where nothing but the bounds tells the error: yes or no is not quite normal.
_OUTER = 0.7
# What may be added instead to a noisy squared error, in scales of its noise; how a tail is found.
_REACHES = (1.4, 0.7, 0.0)
_OUTERS = (0.5, 0.2)
_STEPS = 6
_ALLOWED = 0.82
_BELOW = 0.999
_LARGEST_TAIL = 0.4
# Standard deviations, as parts of the range, over which a split without a guess is balanced.
_GUESSES = (1 / 3, 1 / 6, 1 / 12, 1 / 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was asked for, checked."""

    statistic: Statistic
    epsilon: Fraction
    delta: Fraction
    level: float
    known: float | None
    method: Method
    assume: Assume

    def best(
        self, *, share: Number | None, std: Number | None, mean: Number | None = None
    ) -> Studentised:
        """The plan with this share of epsilon for the standard error, or the shortest of many."""
        if self.method != "safe" and self.assume == "nothing":
            raise InvalidArgument(
                f"assume must be 'normal' for method={self.method!r}: it assumes that."
            )
        guesses = [_std(std)] if std is not None else self._guesses()
        about = None if mean is None else float(check.finite("mean", mean))
        plans = [plan for part in self._shares(share) for plan in self._plans(part)]
        if len(plans) == 1:
            return plans[0]
        return min(plans, key=lambda plan: _loss(plan, guesses, about))

    def _shares(self, share: Number | None) -> Sequence[Fraction]:
        if share is not None:
            part = check.probability("share", share, one=False)
            if part and self.known is not None:
                raise InvalidArgument(
                    "share must be 0 if the variance is public, or leave one out."
                )
            return [part]
        if self.known is not None:
            return [Fraction(0)]
        return _SHARES if self.method != "published" else _SHARES[1:]

    def _guesses(self) -> list[float]:
        column = self.statistic.column
        return [column.span * column.step * part for part in _GUESSES]

    def _plans(self, share: Fraction) -> Iterator[Studentised]:
        """Intervals with this share, of which the shortest is to be taken."""
        plan = self._plan(share)
        yield plan
        if self.method == "calibrated" and share:
            for reach, outer in itertools.product(_REACHES, _OUTERS):
                other = replace(plan, reach=reach, outer=outer * (1 - self.level) / 2)
                yield from _calibrated(other)

    def _plan(self, share: Fraction) -> Studentised:
        alpha = 1 - self.level
        gamma = alpha * float(_GAMMA)
        # Kept for the standard error, or for an estimate that is not quite normal.
        reserved = gamma if self.known is None and self.method != "published" else 0.0
        if self.assume == "nothing" and not share:
            reserved = 0.0
        tail = (alpha - reserved) / 2
        return Studentised(
            statistic=self.statistic,
            centre=self._centre(self.epsilon * (1 - share)),
            spread=self._spread(self.epsilon * share) if share else None,
            known=self.known,
            level=self.level,
            gamma=gamma,
            reach=-math.log(2 * gamma),
            tail=tail,
            outer=tail if self.assume == "nothing" else _OUTER * alpha / 2,
            method=self.method,
            assume=self.assume,
        )

    def _centre(self, epsilon: Fraction) -> Additive:
        moved, relation = self.statistic.moved[0], Relation.REPLACE_ONE
        if not self.delta:
            return laplace(sensitivity=moved, epsilon=epsilon, on="reals", relation=relation)
        return gaussian(
            sensitivity=moved, epsilon=epsilon, delta=self.delta, on="reals", relation=relation
        )

    def _spread(self, epsilon: Fraction) -> Additive:
        return laplace(
            sensitivity=self.statistic.moved[1],
            epsilon=epsilon,
            on="reals",
            relation=Relation.REPLACE_ONE,
        )


def setting(
    statistic: Statistic,
    *,
    epsilon: Number,
    delta: Number,
    level: float,
    method: Method,
    assume: Assume,
    known: float | None = None,
) -> Setting:
    """Arguments that all intervals share, checked."""
    return Setting(
        statistic=statistic,
        epsilon=check.positive("epsilon", epsilon),
        delta=check.probability("delta", delta, one=False),
        level=float(check.probability("level", level, zero=False, one=False)),
        known=known,
        method=check.one_of("method", method, ("safe", "calibrated", "published")),
        assume=check.one_of("assume", assume, ("normal", "nothing")),
    )


def _calibrated(plan: Studentised) -> list[Studentised]:
    """The same with the largest tail at which no variance is missed more often than allowed.

    A part of what may fail is kept back: for variances between those that are computed, and for an
    estimate that is not quite normal.
    """
    allowed, tail, found = (1 - plan.level) * _ALLOWED, plan.tail, 0.0
    for _ in range(_STEPS):  # what is missed is nearly proportional to the tail
        missed = replace(plan, tail=tail).worst_miss()
        if missed <= allowed:
            found = max(found, tail)
        tail = min(tail * _BELOW * allowed / missed, _LARGEST_TAIL)
    return [replace(plan, tail=found)] if found else []  # or no tail is small enough: leave it


def _loss(plan: Studentised, guesses: Sequence[float], mean: float | None) -> float:
    return sum(math.log(plan.forecast(guess, mean).width) for guess in guesses)


def column_of(lower: Number, upper: Number, grid: Number | None, rows: int) -> Column:
    """A column whose sums and squares are exact."""
    low, high = check.bounds(lower, upper)
    for number in (low, high, high - low):
        check.moderate("lower, upper and their distance", number)
    column = Column.of(lower, upper, grid)
    if column.span > LARGEST_SPAN + 1 or column.span * rows > LARGEST_SUM:
        raise InvalidArgument(
            "grid must leave at most 2**27 steps between the bounds, and 2**53 in the sum of all "
            "rows: give a coarser one."
        )
    return column


def _std(std: Number) -> float:
    return float(check.moderate("std", check.positive("std", std)))
