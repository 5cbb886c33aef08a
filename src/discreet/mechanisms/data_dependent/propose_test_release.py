"""Propose, test, release: a bound on the sensitivity is proposed, and tested privately.

If the data are far from any whose local sensitivity passes the bound, the statistic is released
with noise of that bound; else nothing is. The noise is public, unlike that of smooth sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw
from discreet.mechanisms.data_dependent._smooth_statistics import TrimmedMean
from discreet.mechanisms.data_dependent.smooth_sensitivity import Name, trimmed_statistic
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

_PRECISION = 128
# A tail is known to 2**-128: no threshold would be shown to keep less than this.
_SMALLEST_DELTA = Fraction(1, 1 << 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease(Mechanism):
    """A statistic, or None. Made by `propose_test_release`."""

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
        """What one attempt costs, whether or not something is released."""
        event = events.ApproxEvent(self.test + self.answer, self.delta)
        return Guarantee(event, NeighboringRelation.REPLACE_ONE)

    @property
    def test_noise(self) -> DiscreteLaplace:
        """Noise on the number of rows that would have to change."""
        return DiscreteLaplace(1 / self.test)

    @property
    def threshold(self) -> int:
        """What the noisy distance must pass: noise alone does so with probability below delta."""
        noise = self.test_noise
        low, high = 0, 1
        while self._beyond(noise, high) > self.delta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if self._beyond(noise, middle) > self.delta else (low, middle)
            )
        return high

    @staticmethod
    def _beyond(noise: DiscreteLaplace, threshold: int) -> Fraction:
        return Fraction(noise.at_least(threshold + 1, _PRECISION)[1], 1 << _PRECISION)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of what is released."""
        return math.sqrt(2) * float(self.bound / self.answer) * self.column.step

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise of a release with probability at least ``confidence``."""
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = -math.log1p(-inside) * float(self.bound / self.answer) * self.column.step
        return -high - self.column.step, high + self.column.step

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float | None:
        """The noisy statistic between the bounds, or None if the test failed."""
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
        """Recompute the two ways to lose: a test passed by noise, and a move within the bound."""
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
        return Certificate(mechanism=repr(self), guarantee=self.guarantee, checks=checks).demand()

    def __repr__(self) -> str:
        return f"propose_test_release({self.name}; {self.guarantee!r})"


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
    """A statistic with noise of a proposed sensitivity ``bound``, if the data allow it.

    A share ``test`` of epsilon pays for the test. The guarantee holds whether or not the bound is a
    good one; a bad one gets None.

    Theorem: (epsilon, delta)-DP if one of ``public_rows`` rows is replaced.
    Proof: the distance to data whose local sensitivity passes the bound changes by at most 1
        between neighbors, so the test is (test * epsilon)-DP. If the statistic of two neighbors
        differs by at most the bound, the answer is ((1 - test) epsilon)-DP, and the two compose. If
        it differs by more, both are at distance 0: what they release is None but with the same
        probability, at most delta by the choice of the threshold.
    Source: Dwork, Lei 2009.
    Needs: bounds, bound, rows and grid public; 2**-100 <= delta < 1; the bound at least one step.
    """
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
    return ProposeTestRelease(
        statistic=chosen,
        column=column,
        bound=steps,
        test=eps * share,
        answer=eps * (1 - share),
        delta=dlt,
        name=name,
    )
