"""The door to intervals for a mean."""

from __future__ import annotations

from discreet.core import check
from discreet.core.exact import Number
from discreet.queries.intervals.planning import column_of, setting
from discreet.queries.intervals.statistics import MeanOf
from discreet.queries.intervals.studentised import Assume, Method, Studentised


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
    mean: Number | None = None,
    method: Method = "safe",
    assume: Assume = "normal",
    grid: Number | None = None,
) -> Studentised:
    """A confidence interval for a mean, of a column with a public number of rows.

    ``epsilon`` (and ``delta``) pay for all of it; without a delta the noise is Laplace and the
    interval uses the exact law of sampling error plus noise. ``variance`` is that of the population
    if it is public. Otherwise ``share`` of epsilon goes to a noisy variance: 0 for none, by default
    what makes the interval short if the standard deviation is ``std`` (and the mean ``mean``),
    public guesses (without one, balanced over many). A wrong guess costs width, not coverage.

    ``method="calibrated"`` is shorter: its level rests on a computation instead of a union bound.
    ``method="published"`` plugs in the noisy variance as it is, and can fall far short of its
    level. ``assume="nothing"`` covers for any law of the rows and any number of them, with wider
    intervals; for rare events, too.

    Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
        `Studentised`.
    Proof: sum and variance get noise for their sensitivities, and compose; the interval is
        post-processing.
    Source: Biswal 2024, section 5.7, corrected; docs/theory/intervals.md. C9-C12.
    Needs: bounds, rows, variance, std and mean from elsewhere than the private column; rows >= 2.
    """
    size = check.count("rows", rows, minimum=2)
    known = None if variance is None else float(check.non_negative("variance", variance)) / size
    asked = setting(
        MeanOf(column=column_of(lower, upper, grid, size), size=size),
        epsilon=epsilon,
        delta=delta,
        level=level,
        method=method,
        assume=assume,
        known=known,
    )
    return asked.best(share=share, std=std, mean=mean)
