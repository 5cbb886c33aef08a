"""Confidence intervals for a mean, a variance and the difference of two means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.intervals.interval import Interval, IntervalForecast, IntervalPayer
from discreet.intervals.statistics import DifferenceStatistic, MeanStatistic, VarianceStatistic
from discreet.intervals.studentized import (
    Assume,
    Method,
    StudentizedInterval,
    column_of,
    interval_spec,
)
from discreet.mechanisms._inputs import read
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Difference of two means ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceInterval(Mechanism):
    """The difference of the means of two columns. Made by `difference_interval`."""

    inner: StudentizedInterval
    """The same for both columns, one after the other."""
    sizes: tuple[int, int]

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: one row of either column is replaced."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on the difference."""
        return self.inner.std

    @property
    def confidence(self) -> float:
        """Nominal coverage."""
        return self.inner.confidence

    @property
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""
        return self.inner.guaranteed

    @property
    def needs(self) -> str:
        """What the nominal coverage rests on."""
        return self.inner.needs

    @property
    def rows(self) -> int:
        """Of both columns together."""
        return self.inner.public_rows

    def release(
        self,
        first: ArrayLike,
        second: ArrayLike,
        *,
        rng: RandomSource | None = None,
        account: IntervalPayer | None = None,
        label: str = "difference",
    ) -> Interval:
        """The interval for the mean of ``first`` less that of ``second``.

        An ``account`` pays before either is read.
        """
        source = resolve_rng(rng)
        if account is None:
            return self.inner.release(self._both(first, second), rng=source)
        with account.reserve(self.guarantee, label=label, private=source.private):
            return self.inner.release(self._both(first, second), rng=source)

    def _both(self, first: ArrayLike, second: ArrayLike) -> Floats:
        both = [read(first), read(second)]
        if any(
            len(one.shape) != 1 or one.size != size
            for one, size in zip(both, self.sizes, strict=True)
        ):
            raise OutOfDomain(
                f"first and second must be {self.sizes[0]} and {self.sizes[1]} numbers, the "
                "declared numbers of rows."
            )
        return np.concatenate([one.doubles for one in both])

    def simulate(self, tables: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        """Ends for each row of ``tables``: a first column followed by a second, for `coverage`."""
        return self.inner.simulate(tables, rng)

    def forecast(self, std: float) -> IntervalForecast:
        """The width before release, if rows of both have this standard deviation."""
        return self.inner.forecast(std)

    def certify(self) -> Certificate:
        """Recompute the guarantees of both noises from their exact laws."""
        return self.inner.certify()


def difference_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    public_rows: tuple[int, int],
    epsilon: Number,
    delta: Number = 0,
    confidence: float = 0.95,
    share: Number | None = None,
    std: Number | None = None,
    method: Method = "safe",
    assume: Assume = "normal",
    granularity: Number | None = None,
) -> DifferenceInterval:
    """A confidence interval for the difference of the means of two populations.

    Two columns, of public numbers of rows: treated and not, say, where who is in which group is
    public. One difference is released, not two means: its noise is that of the smaller column
    alone. The rest is as for `mean_interval`; unequal variances are allowed.

    Theorem: the release is (epsilon, delta)-DP if one row of either column is replaced; its
        coverage is that of `Studentized`.
    Proof: a replaced row moves one of the means, by at most w / n, and one of the squared errors
        s^2 / n, by at most w^2 / n^2, for the smaller n at most. Noise for that; they compose.
    Source: Welch 1947 (degrees of freedom, from below); docs/theory/intervals.md. C9-C12.
    Needs: bounds, rows and std from elsewhere than the private columns; each at least two rows.
    """
    if len(check.as_tuple("public_rows", public_rows)) != 2:
        raise InvalidArgument("public_rows must be two numbers, one for each column.")
    first, second = (check.count("public_rows", one, minimum=2) for one in public_rows)
    asked = interval_spec(
        DifferenceStatistic(
            column=column_of(lower, upper, granularity, first + second), sizes=(first, second)
        ),
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        method=method,
        assume=assume,
    )
    inner = asked.best(share=0 if assume == "nothing" else share, std=std)
    return DifferenceInterval(inner=inner, sizes=(first, second))


# ── Mean ─────────────────────────────────────────────────────────────────────────────────────────


def mean_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number = 0,
    confidence: float = 0.95,
    variance: Number | None = None,
    share: Number | None = None,
    std: Number | None = None,
    mean: Number | None = None,
    method: Method = "safe",
    assume: Assume = "normal",
    granularity: Number | None = None,
) -> StudentizedInterval:
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
        `Studentized`.
    Proof: sum and variance get noise for their sensitivities, and compose; the interval is
        post-processing.
    Source: Biswal 2024, section 5.7, corrected; docs/theory/intervals.md. C9-C12.
    Needs: bounds, rows, variance, std and mean from elsewhere than the private column; rows >= 2.
    """
    size = check.count("public_rows", public_rows, minimum=2)
    known = None if variance is None else float(check.non_negative("variance", variance)) / size
    asked = interval_spec(
        MeanStatistic(column=column_of(lower, upper, granularity, size), size=size),
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        method=method,
        assume=assume,
        known=known,
    )
    return asked.best(share=share, std=std, mean=mean)


# ── Variance ─────────────────────────────────────────────────────────────────────────────────────


def variance_interval(  # noqa: PLR0913 - each is a public choice with a name
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number = 0,
    confidence: float = 0.95,
    share: Number | None = None,
    std: Number | None = None,
    assume: Assume = "normal",
    granularity: Number | None = None,
) -> StudentizedInterval:
    """A confidence interval for the variance of the population a private column was drawn from.

    ``share`` of epsilon goes to the noisy error of the noisy variance, by default what makes the
    interval short if the standard deviation is ``std``, a public guess. With ``assume="nothing"``
    it covers for any law of the rows and any number of them.

    Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
        `Studentized`.
    Proof: the sample variance of n rows in a range of w moves by at most w^2 / n; the sample
        variance of squared half-differences of disjoint pairs of rows by the same with their range
        and number; they compose, and the interval is post-processing. If nothing is assumed, a
        U-statistic is bounded like a mean of n // 2 numbers.
    Source: Hoeffding 1963; docs/theory/intervals.md. C1, C11.
    Needs: bounds, rows and std from elsewhere than the private column; rows >= 4.
    """
    size = check.count("public_rows", public_rows, minimum=4)
    asked = interval_spec(
        VarianceStatistic(column=column_of(lower, upper, granularity, size), size=size),
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        method="safe",
        assume=assume,
    )
    return asked.best(share=0 if assume == "nothing" else share, std=std)
