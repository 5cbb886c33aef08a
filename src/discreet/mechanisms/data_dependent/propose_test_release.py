"""Propose, test, release: a bound on the sensitivity is proposed, and tested privately.

If the data are far from any whose local sensitivity passes the bound, the statistic is released
with noise of that bound; else nothing is. The noise is public, unlike that of smooth sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import (
    REFUSED,
    EvenWords,
    cumulated,
    laplace_cdf,
    moves,
    releases_follow,
)
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw
from discreet.mechanisms.data_dependent._smooth_statistics import TrimmedMean
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    MOST_ROWS,
    Name,
    neighboring_columns,
    trimmed_statistic,
)
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

_PRECISION = 128
# A tail is known to 2**-128: no threshold would be shown to keep less than this.
_SMALLEST_DELTA = Fraction(1, 1 << 100)
# A certificate looks at answers only if so large a share of attempts gets one.
_LIKELY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease(Mechanism):
    """A statistic that is released if a test passes. Made by `propose_test_release`."""

    statistic: TrimmedMean
    column: SortedColumn
    bound: Fraction
    """The proposed sensitivity of the rounded statistic, in steps."""
    test: Fraction
    """What the test costs, of epsilon."""
    answer: Fraction
    """What the answer costs."""
    delta: Fraction
    name: str

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one attempt, whether or not something is released."""
        event = events.ApproxEvent(self.test + self.answer, self.delta)
        return Guarantee(event, NeighboringRelation.REPLACE_ONE)

    @property
    def test_noise(self) -> DiscreteLaplace:
        """Noise on the number of rows that would have to change."""
        return DiscreteLaplace(1 / self.test)

    @property
    def threshold(self) -> int:
        """What the noisy distance must pass: noise alone does so with probability below delta."""
        return _smallest_threshold(self.test_noise, self.delta)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of a release."""
        return math.sqrt(2) * float(self.bound / self.answer) * self.column.step

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise of a release.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.propose_test_release(
            ...     "median", bound=1, lower=0, upper=100, public_rows=3, epsilon=1, delta=1e-6
            ... )
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = -math.log1p(-inside) * float(self.bound / self.answer) * self.column.step
        return -high - self.column.step, high + self.column.step

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float | None:
        """Test the proposed sensitivity, and release the statistic if the test passes.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy statistic, or None if the test failed.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Privacy:
            Each attempt satisfies `guarantee`, whether or not something is released. No account is
            charged; charge `mechanism.guarantee` before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.propose_test_release(
            ...     "median", bound=1, lower=0, upper=100, public_rows=3, epsilon=1, delta=1e-6
            ... )
            >>> mechanism.release([1, 50, 99])
        """
        source = resolve_rng(rng)
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        # Rounding the statistic down takes up a step of the proposed bound.
        room = self.bound - (not self.statistic.whole)
        distance = self.statistic.distance(codes, self.column.span, bound=room)
        passed = distance + int(self.test_noise.sample(1, source)[0]) > self.threshold
        noise = laplace_draw(self.bound / self.answer, source)
        if not passed:
            return None
        noisy = math.floor(self.statistic.value(codes)) + noise
        return self.column.number(min(max(noisy, 0), self.column.span))

    def certify(self) -> Certificate:
        """Recompute both parts of the guarantee: the test and the release.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.propose_test_release(
            ...     "median", bound=1, lower=0, upper=100, public_rows=3, epsilon=1, delta=1e-6
            ... )
            >>> mechanism.certify().holds
            True
        """
        epsilon = float(self.test + self.answer)
        lucky = float(self.test_noise.sf(self.threshold))
        test, answer = float(self.test), float(self.answer)
        # One row moves the distance by one: the ratio of the two tests, in doubles.
        k = range(-3, 4)
        noise = self.test_noise
        worst = max(abs(float(noise.log_pmf(i)) - float(noise.log_pmf(i + 1))) - test for i in k)
        scale = float(self.bound / self.answer)
        worst = max(worst, float(self.bound) / scale - answer)
        checks = (
            CertificateCheck(
                part="sensitivity above the bound",
                epsilon=epsilon,
                claimed=float(self.delta),
                exact=lucky,
                route="tail of the test's noise",
            ),
            CertificateCheck(
                part="sensitivity within the bound",
                epsilon=epsilon,
                claimed=0.0,
                exact=max(0.0, worst - 1e-12),
                route="ratios of the laws of test and answer",
            ),
        )
        return Certificate(
            mechanism=repr(self), guarantee=self.guarantee, checks=checks, drawn=self._looks()
        ).demand()

    def _looks(self) -> tuple[DrawCheck, ...]:
        many = self.statistic.public_rows
        if many > MOST_ROWS:
            return ()
        pairs = neighboring_columns(self.column, many)
        farther, out, tried, words = 0, 0, 0, EvenWords()
        for rows in pairs:
            one, other = (self._exact(values) for values in rows)
            farther = max(farther, abs(self._distance(rows[0]) - self._distance(rows[1])))
            if abs(one - other) > self.bound:
                tried += 2
                out += sum(self.release(values, rng=words) is not None for values in rows)
        # From columns that are all alike to columns half at either bound: where the test is open.
        middle = self.column.number(self.column.span // 2)
        columns = [np.full(many, middle)]
        for ends in np.unique(np.geomspace(1, max(1, many), 24).astype(int)):
            columns.append(columns[0].copy())
            columns[-1][: ends // 2] = self.column.number(0)
            columns[-1][ends // 2 : ends] = self.column.number(self.column.span)
        nearest = min(columns, key=lambda rows: abs(self._distance(rows) - self.threshold))
        return (
            moves("distance to data that move farther", farther, 1),
            DrawCheck(
                part="statistics that move by more than the bound",
                found=float(out),
                allowed=float(stats.binom.isf(REFUSED, tried, float(self.delta))) if tried else 0.0,
                route=f"releases of {tried} that are not refused",
            ),
            *self._drawn(nearest, columns[0]),
        )

    def _drawn(self, nearest: Floats, stable: Floats) -> tuple[DrawCheck, ...]:
        """How often the test is passed near its threshold, and what answers are like."""
        passes = float(self.test_noise.sf(self.threshold - self._distance(nearest)))
        test = releases_follow(
            "tests passed",
            lambda rng: int(self.release(nearest, rng=rng) is not None),
            cumulated([1 - passes, passes]),
        )
        likely = float(self.test_noise.sf(self.threshold - self._distance(stable)))
        if likely < _LIKELY:
            return (test,)  # too few rows for an answer to come out
        exact, span = self._exact(stable), self.column.span
        law = laplace_cdf(float(self.bound / self.answer))
        refused = span + 1  # beyond every answer

        def answer(rng: RandomSource) -> int:
            found = self.release(stable, rng=rng)
            if found is None:
                return refused - exact
            return round(Fraction(found) / Fraction(2) ** self.column.exponent) - (
                self.column.first + exact
            )

        def cdf(k: Ints) -> Floats:
            at = np.asarray(k) + exact
            inside = likely * np.where(at >= span, 1.0, np.where(at < 0, 0.0, law(k)))
            return np.where(at >= refused, 1.0, inside)

        return test, releases_follow("answers", answer, cdf)

    def _exact(self, values: Floats) -> int:
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        return math.floor(self.statistic.value(codes))

    def _distance(self, values: Floats) -> int:
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        room = self.bound - (not self.statistic.whole)
        return self.statistic.distance(codes, self.column.span, bound=room)

    def __repr__(self) -> str:
        return f"propose_test_release({self.name}; {self.guarantee!r})"


@lru_cache(maxsize=64)
def _smallest_threshold(noise: DiscreteLaplace, delta: Fraction) -> int:
    """The smallest threshold that noise alone passes with probability delta at most."""

    def passed(threshold: int) -> bool:
        return Fraction(noise.at_least(threshold + 1, _PRECISION)[1], 1 << _PRECISION) > delta

    low, high = 0, 1
    while passed(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passed(middle) else (low, middle)
    return high


def propose_test_release(  # noqa: PLR0913 - each has a default and a name
    statistic: Name = "median",
    *,
    bound: Number,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number,
    test: Number = Fraction(1, 2),
    quantile: Number | None = None,
    trim: int | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
) -> ProposeTestRelease:
    """Create a mechanism that tests a proposed sensitivity before it releases.

    If the data are too close to data with a larger sensitivity, nothing is released and the result
    is None. The budget is spent either way.

    Args:
        statistic: `"median"`, `"quantile"`, `"trimmed_mean"` or `"mean"`.
        bound: Proposed sensitivity, in the unit of the data.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows.
        epsilon: Privacy loss of test and release together.
        delta: Probability parameter of (epsilon, delta)-DP, at least 2**-100.
        test: Share of `epsilon` that pays for the test, between 0 and 1.
        quantile: Level of the quantile. Required for `"quantile"` only.
        trim: Number of rows that are dropped at each end. Required for `"trimmed_mean"` only.
        granularity: Spacing to which values are rounded, a power of two.
        relation: Must be `NeighboringRelation.REPLACE_ONE`.

    Returns:
        A mechanism. `release(values)` returns a number or None.

    Raises:
        InvalidArgument: An argument is outside its range, or does not fit the statistic.

    Privacy:
        (epsilon, delta)-DP if one of `public_rows` rows is replaced, whether or not the bound is
        right.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.propose_test_release(
        ...     "median", bound=1, lower=0, upper=100, public_rows=3, epsilon=1, delta=1e-6
        ... )
        >>> mechanism.guarantee.epsilon(1e-6)
        1.0

    See Also:
        `smooth_sensitivity`, [median](../how-to/median.md).

    References:
        Dwork and Lei (2009). [Theory](../theory/smooth-sensitivity.md).
    """
    # Theorem: (epsilon, delta)-DP if one of `public_rows` rows is replaced.
    # Proof: the distance to data whose local sensitivity passes the bound changes by at most 1
    #   between neighbors, so the test is (test * epsilon)-DP. If the statistic of two neighbors
    #   differs by at most the bound, the answer is ((1 - test) epsilon)-DP, and the two compose. If
    #   it differs by more, both are at distance 0: what they release is None but with the same
    #   probability, at most delta by the choice of the threshold.
    # Source: Dwork, Lei 2009.
    # Needs: bounds, bound, rows and grid public; 2**-100 <= delta < 1; the bound at least one step.
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise InvalidArgument("propose_test_release is for a public number of rows: REPLACE_ONE.")
    chosen, name = trimmed_statistic(statistic, count("public_rows", public_rows), quantile, trim)
    column = SortedColumn.of(lower, upper, granularity)
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False, one=False)
    if dlt < _SMALLEST_DELTA:
        raise InvalidArgument(f"delta must be at least 2**-100, got {delta}.")
    share = probability("test", test, zero=False, one=False)
    steps = Fraction(positive("bound", bound)) / Fraction(2) ** column.exponent
    if steps < 1:
        raise InvalidArgument(f"bound must be at least a step of the grid, {column.step:g}.")
    made = ProposeTestRelease(
        statistic=chosen,
        column=column,
        bound=steps,
        test=eps * share,
        answer=eps * (1 - share),
        delta=dlt,
        name=name,
    )
    made.test_noise  # noqa: B018 - refused here, if it cannot be drawn
    return made
