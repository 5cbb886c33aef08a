"""Confidence intervals for a mean, a variance and the difference of two means."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from discreet.mechanisms._drawn import charges
from discreet.mechanisms._inputs import read_column
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
        both = [read_column(first), read_column(second)]
        if tuple(map(len, both)) != self.sizes:
            raise OutOfDomain(
                f"first and second must be {self.sizes[0]} and {self.sizes[1]} numbers, the "
                "declared numbers of rows."
            )
        return np.concatenate(both)

    def simulate(self, tables: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        """Ends for each row of ``tables``: a first column followed by a second, for `coverage`."""
        return self.inner.simulate(tables, rng)

    def forecast(self, std: float) -> IntervalForecast:
        """The width before release, if rows of both have this standard deviation."""
        return self.inner.forecast(std)

    def certify(self) -> Certificate:
        """Recompute the guarantees of both noises, and how far one row moves what they are for."""
        inner = self.inner.certify()
        drawn = (*inner.drawn, charges("what is charged", self.guarantee, self.inner.guarantee))
        return replace(inner, guarantee=self.guarantee, drawn=drawn).demand()


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
    """Plan a confidence interval for the difference of the means of two groups.

    The groups may be, for example, people with and without a treatment. Who is in which group is
    public. The variances may differ.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Numbers of rows of the two groups, each at least 2.
        epsilon: Privacy loss of the interval.
        delta: Probability parameter of (epsilon, delta)-DP. Without it the noise is Laplace noise.
        confidence: Confidence level, between 0 and 1.
        share: Share of epsilon that pays for a noisy standard error. By default it is chosen to
            make the interval short.
        std: Public guess of the standard deviation of the rows. A wrong guess makes the interval
            wider, but does not reduce its coverage.
        method: `"safe"`, `"calibrated"` (shorter, based on a computation instead of a union bound)
            or `"published"` (can be far below its confidence level).
        assume: `"normal"` for rows that are approximately normal, or `"nothing"` for intervals that
            cover for every distribution.
        granularity: Spacing to which values are rounded, a power of two.

    Returns:
        A plan with `forecast(std)`, `release(first, second)` and `guarantee`.

    Raises:
        InvalidArgument: An argument is outside its range, or `method` does not fit `assume`.

    Privacy:
        (epsilon, delta)-DP if one row of either group is replaced. If you pass `account` to
        `release`, it is charged before the data are read.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.difference(
        ...     lower=0, upper=10, public_rows=(500, 400), epsilon=1, assume="nothing"
        ... )
        >>> 0 < plan.forecast(std=2).width < 20
        True

    See Also:
        `discreet.intervals.mean`, [confidence intervals](../how-to/intervals.md).

    References:
        Welch (1947). [Proof](../theory/theorems.md#intervals._mean.difference_interval).
    """
    # Theorem: the release is (epsilon, delta)-DP if one row of either column is replaced; its
    #   coverage is that of `Studentized`.
    # Proof: a replaced row moves one of the means, by at most w / n, and one of the squared errors
    #   s^2 / n, by at most w^2 / n^2, for the smaller n at most. Noise for that; they compose.
    # Source: Welch 1947 (degrees of freedom, from below); docs/theory/intervals.md. C9-C12.
    # Needs: bounds, rows and std from elsewhere than the private columns; each at least two rows.
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
    """Plan a confidence interval for the mean of a column.

    It covers noise and sampling error. Without `delta` the noise is Laplace noise, and the interval
    uses the exact distribution of sampling error plus noise.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows, at least 2.
        epsilon: Privacy loss of the interval.
        delta: Probability parameter of (epsilon, delta)-DP. With it the noise is Gaussian noise.
        confidence: Confidence level, between 0 and 1.
        variance: Variance of the population, if it is public.
        share: Share of epsilon that pays for a noisy variance, 0 for none. By default it is chosen
            to make the interval short.
        std: Public guess of the standard deviation of the rows. A wrong guess makes the interval
            wider, but does not reduce its coverage.
        mean: Public guess of the mean.
        method: `"safe"`, `"calibrated"` (shorter, based on a computation instead of a union bound)
            or `"published"` (can be far below its confidence level).
        assume: `"normal"` for rows that are approximately normal, or `"nothing"` for intervals that
            cover for every distribution and every number of rows, also for rare events.
        granularity: Spacing to which values are rounded, a power of two.

    Returns:
        A plan with `forecast(std)`, `release(values)` and `guarantee`.

    Raises:
        InvalidArgument: An argument is outside its range, or `method` does not fit `assume`.

    Privacy:
        (epsilon, delta)-DP if one row is replaced. If you pass `account` to `release`, it is
        charged before the data are read.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.mean(
        ...     lower=0, upper=10, public_rows=1_000, epsilon=1, variance=4
        ... )
        >>> interval = plan.release([5] * 1_000)
        >>> interval.low < interval.high
        True

    See Also:
        [Confidence intervals](../how-to/intervals.md), [theory](../theory/intervals.md).

    References:
        [Proof](../theory/theorems.md#intervals._mean.mean_interval).
    """
    # Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
    #   `Studentized`.
    # Proof: sum and variance get noise for their sensitivities, and compose; the interval is
    #   post-processing.
    # Source: Biswal 2024, section 5.7, corrected; docs/theory/intervals.md. C9-C12.
    # Needs: bounds, rows, variance, std and mean from elsewhere than the private column; rows >= 2.
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
    """Plan a confidence interval for the variance of the population of a column.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows, at least 4.
        epsilon: Privacy loss of the interval.
        delta: Probability parameter of (epsilon, delta)-DP. Without it the noise is Laplace noise.
        confidence: Confidence level, between 0 and 1.
        share: Share of epsilon that pays for the noisy error of the variance. By default it is
            chosen to make the interval short.
        std: Public guess of the standard deviation of the rows. A wrong guess makes the interval
            wider, but does not reduce its coverage.
        assume: `"normal"` for rows that are approximately normal, or `"nothing"` for intervals that
            cover for every distribution.
        granularity: Spacing to which values are rounded, a power of two.

    Returns:
        A plan with `forecast(std)`, `release(values)` and `guarantee`.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        (epsilon, delta)-DP if one row is replaced. If you pass `account` to `release`, it is
        charged before the data are read.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.variance(
        ...     lower=0, upper=10, public_rows=1_000, epsilon=1, assume="nothing"
        ... )
        >>> 0 < plan.forecast(std=2).width < 100
        True

    References:
        [Proof](../theory/theorems.md#intervals._mean.variance_interval).
    """
    # Theorem: the release is (epsilon, delta)-DP if one row is replaced; its coverage is that of
    #   `Studentized`.
    # Proof: the sample variance of n rows in a range of w moves by at most w^2 / n; the sample
    #   variance of squared half-differences of disjoint pairs of rows by the same with their range
    #   and number; they compose, and the interval is post-processing. If nothing is assumed, a
    #   U-statistic is bounded like a mean of n // 2 numbers.
    # Source: Hoeffding 1963; docs/theory/intervals.md. C1, C11.
    # Needs: bounds, rows and std from elsewhere than the private column; rows >= 4.
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
