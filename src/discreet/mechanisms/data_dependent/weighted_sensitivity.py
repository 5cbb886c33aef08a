"""Weighted sensitivity: Laplace noise between the local and the global sensitivity.

Most of the noise may follow the data if a share of it does not. Smooth sensitivity needs less noise
for medians; this needs nothing but the local sensitivity, or a bound on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import as_tuple, count, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import SameWords, laplace_cdf, moves, releases_follow
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw, laplace_log_density
from discreet.mechanisms.data_dependent._smooth_statistics import TrimmedMean, pad_with_bounds
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    MOST_ROWS,
    Name,
    divergence,
    neighboring_columns,
    trimmed_statistic,
)
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

Weights: TypeAlias = tuple[Fraction, ...]

# The share is rounded up to a multiple of this.
_SHARES = 1 << 20
# Doubles know nothing of much smaller ones.
_SMALLEST_DELTA = Fraction(1, 1 << 1000)
_SMALLEST_EPSILON = Fraction(1, 1 << 20)
_LARGEST_EPSILON = 100
_LARGEST_DELTA = Fraction(9, 10)
# Scales are read off releases, which are rounded to steps: to this factor where noise is wide.
_MET = 1.01


def weighted_delta(epsilon: float, share: float) -> float:
    """The delta of scale ``((1 - share) local + share * global) / epsilon``."""
    # Theorem: it is `(1 - b) exp(-b (epsilon + log(1/b)) / (1 - b))` for the share b, and 0 at 1.
    # Proof: docs/theory/smooth-sensitivity.md. The worst case is a local sensitivity that jumps
    #   between 0 and the global one where the statistic itself does not move.
    # Source: B36 (corrected from the published `exp(epsilon/2 - epsilon / (2 |log b|))`).
    if share >= 1:
        return 0.0
    return (1 - share) * math.exp(-share * (epsilon - math.log(share)) / (1 - share))


def smallest_share(epsilon: float, delta: float) -> Fraction:
    """The smallest share of the global sensitivity that keeps delta, rounded up. B38."""
    low, high = 0, _SHARES  # weighted_delta falls from 1 to 0
    while high - low > 1:
        middle = (low + high) // 2
        keeps = weighted_delta(epsilon, middle / _SHARES) <= delta * (1 - 1e-12)
        low, high = (low, middle) if keeps else (middle, high)
    return Fraction(high, _SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSensitivity(Mechanism):
    """A statistic with noise between local and global sensitivity.

    Made by `weighted_sensitivity`.
    """

    statistic: TrimmedMean
    column: SortedColumn
    epsilon: Fraction
    delta: Fraction
    share: Fraction
    ceilings: Weights
    """What stands for the global sensitivity, as multiples of it; one is drawn for each release."""
    name: str

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release, if one row is replaced."""
        return Guarantee(
            events.ApproxEvent(self.epsilon, self.delta), NeighboringRelation.REPLACE_ONE
        )

    @property
    def _largest(self) -> float:
        return float(self._global * max(self.ceilings) / self.epsilon) * self.column.step

    @property
    def _global(self) -> Fraction:
        """The global sensitivity of the rounded statistic, in steps."""
        return self.statistic.largest(self.column.span) + (not self.statistic.whole)

    @property
    def std(self) -> float:
        """Largest standard deviation of the noise over all data.

        That for given private data is private.
        """
        return math.sqrt(2) * self._largest

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise, for all data.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.weighted_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1, delta=1e-6
            ... )
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = -math.log1p(-inside) * self._largest + self.column.step
        return -high, high

    def forecast(self, values: ArrayLike) -> float:
        """Compute the standard deviation of the noise on public or simulated data.

        Args:
            values: Public or simulated values. For private values the result is private.

        Returns:
            The standard deviation.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.weighted_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1, delta=1e-6
            ... )
            >>> mechanism.forecast([10, 20, 30, 40, 50]) <= mechanism.std
            True
        """
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        local = self._local(codes)
        squares = [self._scale(local, ceiling) ** 2 for ceiling in self.ceilings]
        return math.sqrt(2 * float(sum(squares)) / len(squares)) * self.column.step

    def _local(self, codes: Ints) -> Fraction:
        """The local sensitivity of the rounded statistic, in steps."""
        reach = self.statistic.reach(pad_with_bounds(codes, self.column.span), 0)
        return Fraction(reach, self.statistic.kept) + (not self.statistic.whole)

    def _scale(self, local: Fraction, ceiling: Fraction) -> Fraction:
        return ((1 - self.share) * local + self.share * ceiling * self._global) / self.epsilon

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """Release the statistic of a column.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy statistic, within the range that it can have.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.weighted_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1, delta=1e-6
            ... )
            >>> isinstance(mechanism.release([12, 37, 41, 58, 93]), float)
            True
        """
        source = resolve_rng(rng)
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        which = (
            int(uniform_integers(len(self.ceilings), 1, source)[0]) if len(self.ceilings) > 1 else 0
        )
        scale = self._scale(self._local(codes), self.ceilings[which])
        noisy = math.floor(self.statistic.value(codes)) + laplace_draw(scale, source)
        return self.column.number(min(max(noisy, 0), self.column.span))

    def certify(self) -> Certificate:
        """Recompute the guarantee by integrating pairs of distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.weighted_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1, delta=1e-6
            ... )
            >>> mechanism.certify().holds
            True
        """
        eps, b = float(self.epsilon), float(self.share)
        sizes = (0.0, 0.1, 0.5, 0.9, 1.0)
        worst = 0.0
        for one in sizes:
            for other in sizes:
                left, right = ((1 - b) * one + b) / eps, ((1 - b) * other + b) / eps
                for shift in {0.0, min(one, other)}:
                    pair = (0.0, left), (shift, right)
                    worst = max(worst, divergence(laplace_log_density, *pair, eps))
        check = CertificateCheck(
            part=f"share {short(b, digits=6)} of the global sensitivity",
            epsilon=eps,
            claimed=float(self.delta),
            exact=worst,
            route="integrals of the densities, both directions",
        )
        return Certificate(
            mechanism=repr(self),
            guarantee=self.guarantee,
            checks=(check,),
            drawn=self._looks(),
        ).demand()

    def _looks(self) -> tuple[DrawCheck, ...]:
        """How far columns with one row moved are apart, in what their noise allows; and draws."""
        if self.statistic.public_rows > MOST_ROWS:
            return ()
        everywhere = float(self.share * self._global)
        worst = 0.0
        for rows in neighboring_columns(self.column, self.statistic.public_rows):
            (one, narrow), (other, wide) = (self._noted(values) for values in rows)
            needed = float(1 - self.share) * abs(one - other) + everywhere
            worst = max(worst, needed / (min(narrow, wide) * float(self.epsilon)))
        return (
            moves("share of local and global sensitivity, in what the noise allows", worst, _MET),
            self._drawn(),
        )

    def _noted(self, values: Floats) -> tuple[int, float]:
        """A release without noise, in steps, and the scale of the noise, both by what comes out."""
        exact = self._steps(values, SameWords.exceeded(1.0))
        # Noise towards the farther bound, as large as half the way there if it is of this scale.
        expected = self._expected(values)
        reach = max(exact, self.column.span - exact) / 2
        lengths = min(1.0, reach / expected)
        word = SameWords.exceeded(math.exp(-lengths))
        up = exact <= self.column.span // 2
        drawn = self._steps(values, word if up else SameWords(word.words(1)[0].item() | 1))
        return exact, max(abs(drawn - exact) + 1, 1) / lengths

    def _expected(self, values: Floats) -> float:
        return float(self._scale(self._local(self._codes(values)), max(self.ceilings)))

    def _codes(self, values: Floats) -> Ints:
        return self.column.sorted(values, rows=self.statistic.public_rows)

    def _steps(self, values: Floats, words: RandomSource) -> int:
        found = Fraction(self.release(values, rng=words)) / Fraction(2) ** self.column.exponent
        return round(found) - self.column.first

    def _drawn(self) -> DrawCheck:
        """Releases of a column half at either bound, against Laplace noise of the stated scale."""
        many, span = self.statistic.public_rows, self.column.span
        low, high = self.column.number(0), self.column.number(span)
        values = np.repeat([low, high], [many - many // 2, many // 2])
        exact = self._steps(values, SameWords.exceeded(1.0))
        laws = [
            laplace_cdf(float(self._scale(self._local(self._codes(values)), ceiling)))
            for ceiling in self.ceilings
        ]

        def cdf(k: Ints) -> Floats:
            inside = np.mean([law(k) for law in laws], axis=0)
            return np.where(k + exact >= span, 1.0, np.where(k + exact < 0, 0.0, inside))

        return releases_follow("releases", lambda rng: self._steps(values, rng) - exact, cdf)

    def __repr__(self) -> str:
        return (
            f"weighted_sensitivity({self.name}, share {short(float(self.share))}; "
            f"{self.guarantee!r})"
        )


def weighted_sensitivity(  # noqa: PLR0913 - each has a default and a name
    statistic: Name = "median",
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number,
    quantile: Number | None = None,
    trim: int | None = None,
    blur: tuple[Number, ...] | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
) -> WeightedSensitivity:
    """Create a mechanism with noise between local and global sensitivity.

    The noise is proportional to a weighted mean of the two. The weight of the global sensitivity is
    the smallest that satisfies `delta`, and does not depend on the data.

    Args:
        statistic: `"median"`, `"quantile"`, `"trimmed_mean"` or `"mean"`.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP, at least 2**-1000.
        quantile: Level of the quantile. Required for `"quantile"` only.
        trim: Number of rows that are dropped at each end. Required for `"trimmed_mean"` only.
        blur: Multiples of the global sensitivity, each at least 1, of which one is drawn per
            release. It never reduces the noise and exists for comparison.
        granularity: Spacing to which values are rounded, a power of two.
        relation: Must be `NeighboringRelation.REPLACE_ONE`.

    Returns:
        A mechanism with `release(values)`, `forecast(values)` for public data, and `guarantee`.

    Raises:
        InvalidArgument: An argument is outside its range, or does not fit the statistic.

    Privacy:
        (epsilon, delta)-DP if one of `public_rows` rows is replaced. The scale of the noise is
        private.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.weighted_sensitivity(
        ...     lower=0, upper=100, public_rows=5, epsilon=1, delta=1e-6
        ... )
        >>> mechanism.guarantee.epsilon(1e-6)
        1.0

    See Also:
        `smooth_sensitivity`.

    References:
        [Theory](../theory/smooth-sensitivity.md).
    """
    # Theorem: (epsilon, delta)-DP if one of `public_rows` rows is replaced.
    # Proof: `weighted_delta` holds for every ceiling that is at least the global sensitivity, and a
    #   mixture over ceilings that do not depend on the data is no worse (joint convexity). The
    #   noise is continuous, of a rational scale, and rounded to the grid: post-processing.
    # Source: B36-B38; the published constants are wrong, see the theory.
    # Needs: bounds, rows and grid public; 2**-1000 <= delta < 1.
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise InvalidArgument("Weighted sensitivity is for a public number of rows: REPLACE_ONE.")
    public = count("public_rows", public_rows)
    chosen, name = trimmed_statistic(statistic, public, quantile, trim)
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False, one=False)
    if not _SMALLEST_DELTA <= dlt <= _LARGEST_DELTA:
        raise InvalidArgument(f"delta must lie within 2**-1000 and 0.9, got {delta}.")
    given = (Fraction(1),) if blur is None else as_tuple("blur", blur)
    ceilings = tuple(positive("blur", one) for one in given)
    if not ceilings or min(ceilings) < 1:
        raise InvalidArgument(
            "blur must hold multiples of the global sensitivity, each at least 1: with less than "
            "that there is no guarantee."
        )
    made = WeightedSensitivity(
        statistic=chosen,
        column=SortedColumn.of(lower, upper, granularity),
        epsilon=eps,
        delta=dlt,
        share=smallest_share(float(eps), float(dlt)),
        ceilings=ceilings,
        name=name,
    )
    if not _SMALLEST_EPSILON <= eps <= _LARGEST_EPSILON:
        raise InvalidArgument(f"epsilon must lie within 2**-20 and 100, got {epsilon}.")
    return made
