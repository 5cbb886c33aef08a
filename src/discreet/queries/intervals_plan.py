"""The door to intervals for a mean: arguments are checked, and the budget is split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
from discreet.queries.intervals import (
    LARGEST_SPAN,
    LARGEST_SUM,
    Assume,
    MeanInterval,
    Method,
    variance_noise,
)

_Word = TypeVar("_Word", bound=str)

# Shares of epsilon that the variance may get, and how much of what may fail.
_SHARES = [Fraction(0), *(Fraction(k, 64) for k in (1, 2, 3, 4, 6, 8, 11, 14, 18, 22, 27, 32))]
_GAMMA = Fraction(1, 10)
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
        spread = None
        if share:
            spread = variance_noise(self.column.span, self.rows, epsilon=self.epsilon * share)
        return MeanInterval(
            column=self.column,
            rows=self.rows,
            centre=self._centre(self.epsilon * (1 - share)),
            spread=spread,
            variance=self.variance,
            level=self.level,
            gamma=(1 - self.level) * float(_GAMMA),
            method=self.method,
            assume=self.assume,
        )

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
    balanced over many). A wrong guess costs width, not coverage. ``method="published"`` plugs in
    the noisy variance as it is, and can fall far short of its level; ``assume="nothing"`` covers
    for any law of the rows and any number of them, with wider intervals.

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
        method=_choice("method", method, ("safe", "published")),
        assume=_choice("assume", assume, ("normal", "nothing")),
    )
    if method == "published" and assume == "nothing":
        raise InvalidArgument("assume must be 'normal' for method='published': it assumes that.")
    if share is not None:
        part = check.probability("share", share, one=False)
        if part and variance is not None:
            raise InvalidArgument("share must be 0 if the variance is public, or leave one out.")
        return setting.plan(part)
    if variance is not None:
        return setting.plan(Fraction(0))
    span = float(Fraction(setting.column.span) * Fraction(2) ** setting.column.exponent)
    guesses = [span * part for part in _GUESSES]
    if std is not None:
        guesses = [float(check.positive("std", std))]
    shares = _SHARES if method == "safe" else _SHARES[1:]
    return min((setting.plan(part) for part in shares), key=lambda plan: _loss(plan, guesses))


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
