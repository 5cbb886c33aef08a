"""The door to intervals for a variance."""

from __future__ import annotations

from discreet.core import check
from discreet.core.exact import Number
from discreet.queries.intervals.planning import column_of, setting
from discreet.queries.intervals.statistics import VarianceOf
from discreet.queries.intervals.studentised import Assume, Studentised


def variance_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    rows: int,
    epsilon: Number,
    delta: Number = 0,
    level: float = 0.95,
    share: Number | None = None,
    std: Number | None = None,
    assume: Assume = "normal",
    grid: Number | None = None,
) -> Studentised:
    """A confidence interval for the variance of the population a private column was drawn from.

    ``share`` of epsilon goes to the noisy error of the noisy variance, by default what makes the
    interval short if the standard deviation is ``std``, a public guess. With ``assume="nothing"``
    it covers for any law of the rows and any number of them.

    Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
        `Studentised`.
    Proof: the sample variance of n rows in a range of w moves by at most w^2 / n; the sample
        variance of squared half-differences of disjoint pairs of rows by the same with their range
        and number; they compose, and the interval is post-processing. If nothing is assumed, a
        U-statistic is bounded like a mean of n // 2 numbers.
    Source: Hoeffding 1963; docs/theory/intervals.md. C1, C11.
    Needs: bounds, rows and std from elsewhere than the private column; rows >= 4.
    """
    size = check.count("rows", rows, minimum=4)
    asked = setting(
        VarianceOf(column=column_of(lower, upper, grid, size), size=size),
        epsilon=epsilon,
        delta=delta,
        level=level,
        method="safe",
        assume=assume,
    )
    return asked.best(share=0 if assume == "nothing" else share, std=std)
