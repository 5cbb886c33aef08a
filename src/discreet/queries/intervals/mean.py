"""The door to intervals for a mean: arguments are checked, and the budget is split."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.column import Column
from discreet.mechanisms.gaussian import gaussian
from discreet.mechanisms.laplace import laplace
from discreet.queries.intervals.studentised import (
    LARGEST_SPAN,
    LARGEST_SUM,
    Assume,
    MeanInterval,
    Method,
    variance_noise,
)

_Word = TypeVar("_Word", bound=str)

# Shares of epsilon that the variance may get, and how much of what may fail.
_SHARES = [Fraction(0), *(Fraction(k, 64) for k in (1, 2, 4, 6, 9, 13, 18, 24, 32))]
_GAMMA = Fraction(1, 10)
# What may be added instead to a noisy variance, in scales of its noise, and how a tail is found.
_REACHES = (0.7, 0.0)
_STEPS = 6
_BELOW = 0.999
_LARGEST_TAIL = 0.4
# Standard deviations, as parts of the range, over which a split without a guess is balanced.
_GUESSES = (1 / 3, 1 / 6, 1 / 12, 1 / 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    column: Column
    rows: int
    epsilon: Fraction
    delta: Fraction
    level: float
    variance: float | None
    method: Method
    assume: Assume

    def plan(self, share: Fraction) -> MeanInterval:
        """The interval with this share of epsilon for the variance."""
        spread, gamma = None, (1 - self.level) * float(_GAMMA)
        if share:
            spread = variance_noise(self.column.span, self.rows, epsilon=self.epsilon * share)
        return MeanInterval(
            column=self.column,
            rows=self.rows,
            centre=self._centre(self.epsilon * (1 - share)),
            spread=spread,
            variance=self.variance,
            level=self.level,
            gamma=gamma,
            reach=-math.log(2 * gamma),
            tail=(1 - self.level - (gamma if self._reserves else 0.0)) / 2,
            method=self.method,
            assume=self.assume,
        )

    def plans(self, share: Fraction) -> list[MeanInterval]:
        """The interval with this share, or several of which the shortest is to be taken."""
        plan = self.plan(share)
        if self.method != "calibrated" or plan.spread is None:
            return [plan]
        shorter = [_calibrated(replace(plan, reach=reach)) for reach in _REACHES]
        return [plan, *itertools.chain.from_iterable(shorter)]

    @property
    def _reserves(self) -> bool:
        """Whether gamma is kept for the variance, or for a mean that is not quite normal."""
        return self.variance is None and self.method != "published"

    def _centre(self, epsilon: Fraction) -> Additive:
        """Noise for the sum: a replaced row moves it by the range."""
        span, relation = self.column.span, Relation.REPLACE_ONE
        if not self.delta:
            return laplace(sensitivity=span, epsilon=epsilon, on="reals", relation=relation)
        return gaussian(
            sensitivity=span, epsilon=epsilon, delta=self.delta, on="reals", relation=relation
        )


def mean_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    rows: int,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    variance: Number | None = None,
    share: Number | None = None,
    std: Number | None = None,
    method: Method = "safe",
    assume: Assume = "normal",
    grid: Number | None = None,
) -> MeanInterval:
    """A confidence interval for a mean, of a column with a public number of rows.

    ``epsilon`` (and ``delta``) pay for all of it; without a delta the noise is Laplace and the
    interval uses the exact law of sampling error plus noise. ``variance`` is that of the population
    if it is public. Otherwise ``share`` of epsilon goes to a noisy variance: 0 for none, by default
    what makes the interval short if the standard deviation is ``std``, a public guess (without one,
    balanced over many). A wrong guess costs width, not coverage.

    ``method="calibrated"`` is shorter: its level rests on a computation instead of a union bound.
    ``method="published"`` plugs in the noisy variance as it is, and can fall far short of its
    level. ``assume="nothing"`` covers for any law of the rows and any number of them, with wider
    intervals.

    Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
        `MeanInterval`.
    Proof: sum and variance get noise for their sensitivities, and compose; the interval is
        post-processing.
    Source: Biswal 2024, section 5.7, corrected; docs/theory/intervals.md. C9-C12.
    Needs: bounds, rows, variance and std from elsewhere than the private column; rows >= 2.
    """
    setting = _Setting(
        column=_column(lower, upper, grid, check.count("rows", rows, minimum=2)),
        rows=int(rows),
        epsilon=check.positive("epsilon", epsilon),
        delta=check.probability("delta", delta, one=False),
        level=float(check.probability("level", level, zero=False, one=False)),
        variance=None if variance is None else float(check.non_negative("variance", variance)),
        method=_choice("method", method, ("safe", "calibrated", "published")),
        assume=_choice("assume", assume, ("normal", "nothing")),
    )
    if method != "safe" and assume == "nothing":
        raise InvalidArgument(f"assume must be 'normal' for method={method!r}: it assumes that.")
    if share is not None:
        part = check.probability("share", share, one=False)
        if part and variance is not None:
            raise InvalidArgument("share must be 0 if the variance is public, or leave one out.")
        shares = [part]
    elif variance is not None:
        shares = [Fraction(0)]
    else:
        shares = _SHARES if method != "published" else _SHARES[1:]
    span = float(Fraction(setting.column.span) * Fraction(2) ** setting.column.exponent)
    guesses = [span * part for part in _GUESSES]
    if std is not None:
        guesses = [float(check.positive("std", std))]
    plans = [plan for part in shares for plan in setting.plans(part)]
    return plans[0] if len(plans) == 1 else min(plans, key=lambda plan: _loss(plan, guesses))


def _calibrated(plan: MeanInterval) -> list[MeanInterval]:
    """The same with the largest tail at which no variance is missed more often than allowed.

    A tenth of what may fail is kept back: for variances between those that are computed, and for a
    mean that is not quite normal.
    """
    allowed, tail, found = 1 - plan.level - plan.gamma, plan.tail, 0.0
    for _ in range(_STEPS):  # what is missed is nearly proportional to the tail
        missed = replace(plan, tail=tail).worst_miss()
        if missed <= allowed:
            found = max(found, tail)
        tail = min(tail * _BELOW * allowed / missed, _LARGEST_TAIL)
    return [replace(plan, tail=found)] if found else []  # or no tail is small enough: leave it


def _loss(plan: MeanInterval, guesses: Sequence[float]) -> float:
    return sum(math.log(plan.forecast(guess).width) for guess in guesses)


def _column(lower: Number, upper: Number, grid: Number | None, rows: int) -> Column:
    column = Column.of(lower, upper, grid)
    if column.span > LARGEST_SPAN + 1 or column.span * rows > LARGEST_SUM:
        raise InvalidArgument(
            "grid must leave at most 2**27 steps between the bounds, and 2**53 in the sum of all "
            "rows: give a coarser one."
        )
    return column


def _choice(name: str, value: _Word, allowed: tuple[str, ...]) -> _Word:
    if value not in allowed:
        raise InvalidArgument(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")
    return value
