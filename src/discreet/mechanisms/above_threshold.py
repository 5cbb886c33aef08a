"""Above threshold, the sparse vector technique."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, flag, positive, probability
from discreet.core.errors import Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import FEW, cumulated, releases_follow
from discreet.mechanisms._inputs import LARGEST_INPUT, ScoreScale
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.noise.distribution import Floats
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# Noise of a scale up to this is listed level by level; wider noise is read at so many levels.
_LISTED = 1 << 9
_LEVELS = 1 << 17
_MOST_LEVELS = 1 << 22
_LARGEST_LISTED = 300
# What reading a wide law at some levels may move the law of a run by.
_COARSE = 2e-3
# Logarithms of probabilities in doubles are good to this.
_LOG_ROUNDING = 1e-12
# Answers of all runs of a certificate together.
_ANSWERS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Mechanism):
    """A run of the sparse vector technique. Made by `above_threshold`."""

    epsilon: Fraction
    scale: ScoreScale
    positives: int
    monotonic: bool
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of a whole run, whatever the number of queries."""
        return Guarantee(events.PureEvent(self.epsilon), self.relation)

    @property
    def _share(self) -> Fraction:
        """Part of epsilon for the threshold: the split of least variance of the difference."""
        weight = (self.positives * (1 if self.monotonic else 2)) ** (2 / 3)
        return max(Fraction(1 / (1 + weight)).limit_denominator(1000), Fraction(1, 1000))

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """Drawn once."""
        return DiscreteLaplace(self.scale.shift / (self.epsilon * self._share))

    @property
    def query_noise(self) -> DiscreteLaplace:
        """Drawn for every query."""
        steps = self.scale.shift * self.positives * (1 if self.monotonic else 2)
        return DiscreteLaplace(steps / (self.epsilon * (1 - self._share)))

    @property
    def std(self) -> float:
        """Standard deviation of the noise in one comparison."""
        steps = math.hypot(self.threshold_noise.std, self.query_noise.std)
        return steps * self.scale.step

    def interval(self, confidence: float, *, queries: int) -> tuple[float, float]:
        """Bound how far on the wrong side of the threshold an answered query may be.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.
            queries: Number of queries of the run.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
            >>> low, high = mechanism.interval(0.95, queries=10)
            >>> low <= high
            True
        """
        tail = (1 - float(probability("confidence", confidence, zero=False, one=False))) / 2
        each = tail / count("queries", queries)
        steps = max(map(abs, self.threshold_noise.interval(1 - tail))) + max(
            map(abs, self.query_noise.interval(1 - each))
        )
        return -steps * self.scale.step, steps * self.scale.step

    def release(
        self, values: ArrayLike, *, threshold: float, rng: RandomSource | None = None
    ) -> NDArray[np.bool_]:
        """Test which queries are above a threshold.

        The noise of all queries is drawn at once, so the running time does not reveal where the run
        stopped.

        Args:
            values: Exact values of the queries.
            threshold: Public threshold.
            rng: Random source. By default the operating system's.

        Returns:
            One boolean per query, up to and including the last allowed positive.

        Raises:
            OutOfDomain: The input does not have the right shape.

        Privacy:
            A whole run satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
            >>> mechanism.release([3, 90_000], threshold=1_000).tolist()
            [False, True]
        """
        steps = self.scale.read(values, name="values")
        level = self.scale.read_one(threshold, name="threshold")[0]
        source = resolve_rng(rng)
        noisy_level = level + self.threshold_noise.sample(1, source)[0]
        noisy = steps + self.query_noise.sample(len(steps), source)
        above: NDArray[np.bool_] = noisy >= noisy_level
        passed = np.flatnonzero(above)
        if len(passed) >= self.positives:
            return above[: passed[self.positives - 1] + 1]
        return above

    def probabilities(self, values: ArrayLike, *, threshold: float) -> Floats:
        """P(stop at query i) for one positive, the last entry for "none passed": for audits.

        With several positives: after all but one of them.
        """
        reach = math.ceil(45 * float(self.threshold_noise.scale))
        if 2 * reach > _MOST_LEVELS:
            raise Unsupported("The exact law is computed for noise below 40,000 steps.")
        return self._summed(values, threshold, reach, 1)

    def _nearly(self, values: ArrayLike, threshold: float) -> Floats:
        """The same, read at every so many levels if they are many: good to a thousandth."""
        reach = math.ceil(45 * float(self.threshold_noise.scale))
        return self._summed(values, threshold, reach, 1 + 2 * reach // _LEVELS)

    def _summed(self, values: ArrayLike, threshold: float, reach: int, stride: int) -> Floats:
        steps = self.scale.read(values, name="values")
        level = int(self.scale.read_one(threshold, name="threshold")[0])
        noise = self.threshold_noise
        levels = np.arange(-reach, reach + 1, stride) + level
        weights = noise.cdf(levels + stride // 2 - level)
        weights[1:] -= weights[:-1].copy()
        if stride == 1:
            weights = noise.pmf(levels - level)
        stays = np.array([self.query_noise.cdf(levels - 1 - s) for s in steps])
        reached = np.vstack([np.ones_like(weights), np.cumprod(stays, axis=0)])
        stops = reached[:-1] * np.array([self.query_noise.sf(levels - 1 - s) for s in steps])
        return np.append(stops @ weights, reached[-1] @ weights)

    def certify(self) -> Certificate:
        """Compare the exact distributions of short runs on the worst neighbors.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        claimed = self.guarantee.delta(float(self.epsilon))
        found = [("any number of queries", "largest ratios of both laws", self._largest_loss())]
        single = replace(self, scale=ScoreScale(exponent=0, shift=1), positives=1)
        listed = self.epsilon <= _LARGEST_LISTED and single.threshold_noise.scale <= _LISTED
        if listed:
            found += [
                (f"{size} queries", "exact law of the run", single._divergence(size))  # noqa: SLF001 - its own
                for size in (1, 3, 10)
            ]
        checks = tuple(
            CertificateCheck(
                part=part, epsilon=float(self.epsilon), claimed=claimed, exact=exact, route=route
            )
            for part, route, exact in found
        )
        certificate = Certificate(
            mechanism="above_threshold",
            guarantee=self.guarantee,
            checks=checks,
            drawn=(self._drawn(),),
        )
        return certificate.demand()

    def _largest_loss(self) -> float:
        """What a run may lose beyond epsilon, by the proof at `above_threshold`.

        The threshold's noise is raised by the sensitivity, that of each positive query by twice
        as much, if not all queries move alike.
        """
        shift, raised = self.scale.shift, self.scale.shift * (1 if self.monotonic else 2)
        level, query = self.threshold_noise, self.query_noise
        at = np.arange(-3.0, 4.0)
        places = np.rint(at * float(level.scale))
        threshold = np.abs(level.log_pmf(places) - level.log_pmf(places + shift)).max()
        places = np.rint(np.abs(at) * float(query.scale))
        with np.errstate(divide="ignore", invalid="ignore"):  # tails beyond the reach of doubles
            tails = np.log(query.sf(places)) - np.log(query.sf(places + raised))
        masses = query.log_pmf(places) - query.log_pmf(places + raised)
        each = float(np.maximum(masses, np.where(np.isfinite(tails), tails, 0.0)).max())
        lost = float(threshold) + self.positives * each - float(self.epsilon)
        rounding = _LOG_ROUNDING * (1 + self.positives) * max(1.0, float(self.epsilon))
        return max(0.0, lost - rounding)

    def _drawn(self) -> DrawCheck:
        """Where runs stop: certain positives but for one, then queries a noise apart."""
        spread = math.ceil(max(self.threshold_noise.scale, self.query_noise.scale))
        far = min(128 * spread, LARGEST_INPUT >> 1)
        places = np.array([-1, 0, 1, -1, 0, 1]) * min(spread, far)
        certain = self.positives - 1
        queries = np.concatenate([np.full(certain, far), places]) * self.scale.step
        stops = self._nearly(places * self.scale.step, 0.0)

        def run(rng: RandomSource) -> int:
            above = self.release(queries, threshold=0.0, rng=rng)
            passed = int(np.count_nonzero(above))
            if passed > self.positives:
                return len(stops)  # the law has nothing there
            return len(places) if passed < self.positives else len(above) - 1 - certain

        return releases_follow(
            f"runs with {self.positives} positive(s)",
            run,
            cumulated(stops),
            many=max(64, min(FEW, _ANSWERS // len(queries))),
            slack=_COARSE,
        )

    def _divergence(self, size: int) -> float:
        low = np.zeros(size, dtype=np.int64)
        high = low + 1
        last = low.copy()
        last[-1] = 1
        mixed = low.copy()
        mixed[:-1], mixed[-1] = (0, 1) if self.monotonic else (-1, 1)
        factor = math.exp(float(self.epsilon))
        worst = 0.0
        for other in (high, last, mixed):
            p = self.probabilities(low, threshold=0)
            q = self.probabilities(other, threshold=0)
            for a, b in ((p, q), (q, p)):
                worst = max(worst, float(np.maximum(a - factor * b, 0).sum()))
        return worst

    def __repr__(self) -> str:
        return f"above_threshold({self.guarantee!r}, std={short(self.std)})"


def above_threshold(
    *,
    sensitivity: Number,
    epsilon: Number,
    positives: int = 1,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AboveThreshold:
    """Create a mechanism that finds queries above a threshold.

    This is the sparse vector technique.
    Only positive answers cost budget. Any number of queries can be answered until `positives` of
    them were above the threshold.

    Args:
        sensitivity: Largest change of each query between neighboring data sets.
        epsilon: Privacy loss of a whole run.
        positives: Number of positive answers after which a run stops.
        monotonic: Whether all queries change in the same direction between neighbors, like counts
            under add/remove. Then less noise is needed. discreet cannot check this for you.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism. `release(values, threshold=...)` returns one boolean per query, up to the last
        allowed positive.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        A run is epsilon-DP, whatever the number of queries. The noisy values are not released.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.above_threshold(sensitivity=1, epsilon=1, monotonic=True)
        >>> answers = mechanism.release([3, 5, 90_000], threshold=1_000)
        >>> answers.tolist()
        [False, False, True]

    References:
        Dwork, Naor, Reingold, Rothblum and Vadhan (2009). Lyu, Su and Li (2017).
        [Proof](../theory/theorems.md#mechanisms.above_threshold.above_threshold).
    """
    # Theorem: a run with at most `positives` positive answers is epsilon-DP under `relation`.
    # Proof: fix the noise of the queries. Raise the threshold noise by the sensitivity D: all
    #   negative answers stay (price epsilon_1). Raise the noise of each positive query by 2D (D if
    #   monotonic): they stay positive (price epsilon_2 / positives each). Discrete Laplace masses
    #   and tails change by exactly these factors on the integers.
    # Source: Dwork et al. 2009; Lyu, Su, Li 2017, Algorithm 7 (its threshold noise is not redrawn,
    #   noisy values are never released, the run stops).
    # Needs: every query moves by at most `sensitivity`.
    made = AboveThreshold(
        epsilon=positive("epsilon", epsilon),
        scale=ScoreScale.of(sensitivity),
        positives=count("positives", positives),
        monotonic=flag("monotonic", monotonic),
        relation=relation,
    )
    for noise in ("threshold_noise", "query_noise"):
        getattr(made, noise)  # refused here, if it is too wide or too narrow to be drawn
    return made
