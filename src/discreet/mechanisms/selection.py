"""Choosing one of many: exponential mechanism, permute-and-flip, report noisy maximum.

Each takes scores of candidates (larger is better) and returns the index of one. A score may move
by at most the sensitivity when one unit changes; ``monotonic=True`` promises that all scores move
in the same direction, which halves the price.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, flag, positive, probability
from discreet.core.errors import Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import cumulated, releases_follow
from discreet.mechanisms._inputs import LARGEST_INPUT, ScoreScale
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_exp, exponential_choice, uniform_integers

# Levels at which a law is read, and what that may move the law of a choice by, if it is wider.
_LEVELS = 1 << 17
_LARGEST_LISTED = 300
_COARSE = 2e-3
# Logarithms of probabilities in doubles are good to this.
_LOG_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Mechanism):
    """A private choice among candidates."""

    epsilon: Fraction
    scale: ScoreScale
    rate: Fraction
    """Factor of the scores in steps: the log-ratio that one step of score is worth."""
    monotonic: bool
    relation: NeighboringRelation

    @classmethod
    def of(
        cls, sensitivity: Number, epsilon: Number, *, monotonic: bool, relation: NeighboringRelation
    ) -> Self:
        """Check the parameters and set the rate: epsilon / (2 shift), or epsilon / shift."""
        scale = ScoreScale.of(sensitivity)
        price = positive("epsilon", epsilon)
        rate = price / (scale.shift * (1 if flag("monotonic", monotonic) else 2))
        return cls(epsilon=price, scale=scale, rate=rate, monotonic=monotonic, relation=relation)

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it."""

    @abstractmethod
    def choose(self, scores: Ints, rng: RandomSource) -> int:
        """The index of the choice for scores in steps."""

    @abstractmethod
    def probabilities(self, scores: ArrayLike) -> Floats:
        """The exact law of the choice, in double precision: private, for audits and planning."""

    def _nearly(self, scores: ArrayLike) -> Floats:
        """The law of the choice, good to a thousandth."""
        return self.probabilities(scores)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one choice."""
        return Guarantee(events.PureEvent(self.epsilon), self.relation)

    @property
    def std(self) -> float:
        """A choice has no standard deviation."""
        raise Unsupported("A choice has no standard deviation; interval() bounds its loss.")

    def interval(self, confidence: float, *, candidates: int) -> tuple[float, float]:
        """Bound how far the chosen score may be below the best score.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.
            candidates: Number of candidates.

        Returns:
            Zero and the largest distance.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.exponential_mechanism(sensitivity=1, epsilon=1)
            >>> low, high = mechanism.interval(0.95, candidates=10)
            >>> low <= high
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        others = max(1, count("candidates", candidates) - 1)
        return 0.0, self.lag(others, 1 - inside) * self.scale.step

    def lag(self, others: int, miss: float) -> float:
        """Steps below the best that ``others`` candidates must lie to be chosen this rarely.

        P(loss >= g) <= others * exp(-rate * g), by a union bound: a candidate that lies g below
        the best is chosen with at most exp(-rate * g).
        """
        return max(0.0, math.log(others / miss) / float(self.rate))

    def release(self, scores: ArrayLike, *, rng: RandomSource | None = None) -> int:
        """Choose a candidate.

        Args:
            scores: Exact scores of the candidates. Higher is better.
            rng: Random source. By default the operating system's.

        Returns:
            Index of the chosen candidate.

        Raises:
            OutOfDomain: The input does not have the right shape.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.exponential_mechanism(sensitivity=1, epsilon=1)
            >>> mechanism.release([10, 500, 20])
            1
        """
        steps = self.scale.read(scores)
        return self.choose(steps, resolve_rng(rng))

    def certify(self) -> Certificate:
        """Compare the exact distributions on the neighbors that are hardest to protect.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.exponential_mechanism(sensitivity=1, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        epsilon = float(self.epsilon)
        claimed = self.guarantee.delta(epsilon)
        checks = [
            CertificateCheck(part=part, epsilon=epsilon, claimed=claimed, exact=exact, route=route)
            for part, exact, route in self._listed()._recomputed()  # noqa: SLF001 - its own
        ]
        certificate = Certificate(
            mechanism=self.name,
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=tuple(self._drawn(places) for places in ((0, 1, 2), (2, 1, 1, 0))),
        )
        return certificate.demand()

    def _listed(self) -> Self:
        """The same choice at an epsilon whose laws doubles can hold: of the same rate for it."""
        if self.epsilon <= _LARGEST_LISTED:
            return self
        rate = self.rate * _LARGEST_LISTED / self.epsilon
        return replace(self, epsilon=Fraction(_LARGEST_LISTED), rate=rate)

    def _recomputed(self) -> list[tuple[str, float, str]]:
        """Divergences of neighbors at epsilon, and how they were found."""
        return [
            (
                f"{size} candidates",
                max(self._divergence(*pair) for pair in self._neighbors(size)),
                "exact law of the choice",
            )
            for size in (2, 3, 10)
        ]

    def _drawn(self, places: tuple[int, ...]) -> DrawCheck:
        """Releases for scores that differ by what one e-fold of probability is worth."""
        gap = min(max(1, round(1 / self.rate)), LARGEST_INPUT >> 2)
        scores = np.array([place * gap for place in places]) * self.scale.step
        return releases_follow(
            f"choices among {len(places)} candidates",
            lambda rng: self.release(scores, rng=rng),
            cumulated(self._nearly(scores)),
            slack=_COARSE,
        )

    def _neighbors(self, size: int) -> list[tuple[Floats, Floats]]:
        shift = self.scale.shift * self.scale.step
        up = np.zeros(size)
        up[0] = shift
        down = np.full(size, 0.0 if self.monotonic else -shift)
        down[0] = 0.0 if self.monotonic else shift
        far = np.zeros(size)
        far[0] = -20 * shift
        near = far + up
        return [(up, np.zeros(size)), (down, np.zeros(size)), (near, far)]

    def _divergence(self, left: Floats, right: Floats) -> float:
        p, q = self.probabilities(left), self.probabilities(right)
        factor = math.exp(float(self.epsilon))
        excess = [float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p))]
        return max(excess)

    def __repr__(self) -> str:
        return f"{self.name}({self.guarantee!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExponentialMechanism(Selection):
    """The exponential mechanism. Made by `exponential_mechanism`."""

    @property
    def name(self) -> str:
        return "exponential"

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one choice, of bounded range.

        It composes better than that of other epsilon-DP mechanisms.
        """
        return Guarantee(events.BoundedRangeEvent(self.epsilon), self.relation)

    def choose(self, scores: Ints, rng: RandomSource) -> int:
        return exponential_choice(scores, self.rate, rng)

    def probabilities(self, scores: ArrayLike) -> Floats:
        steps = self.scale.read(scores)
        weights = np.exp(-float(self.rate) * (steps.max() - steps))
        shares: Floats = weights / weights.sum()
        return shares


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PermuteAndFlip(Selection):
    """Permute-and-flip. Made by `permute_and_flip`.

    Candidates are visited in random order, and each is taken with probability exp(-rate * gap).
    """

    @property
    def name(self) -> str:
        return "permute_and_flip"

    def choose(self, scores: Ints, rng: RandomSource) -> int:
        # The first head in a random order is a uniformly random head: flip all, choose one.
        heads = np.flatnonzero(bernoulli_exp(scores.max() - scores, self.rate, rng))
        return int(heads[uniform_integers(len(heads), 1, rng)[0]])

    def probabilities(self, scores: ArrayLike) -> Floats:
        steps = self.scale.read(scores)
        p = np.exp(-float(self.rate) * (steps.max() - steps))
        # P(i) = p_i E[1 / (1 + heads among the others)] = p_i int_0^1 prod_{j != i} (1 - p_j t) dt
        nodes, weights = np.polynomial.legendre.leggauss(len(p) // 2 + 2)
        t = (nodes + 1) / 2
        factors = 1 - p[:, None] * t
        products = [np.prod(np.delete(factors, i, axis=0), axis=0) for i in range(len(p))]
        chosen: Floats = p * (np.array(products) @ weights) / 2
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportNoisyMax(Selection):
    """Report noisy max with discrete Laplace noise. Made by `report_noisy_max`.

    Ties go to the first candidate.
    """

    @property
    def name(self) -> str:
        return "noisy_max"

    def choose(self, scores: Ints, rng: RandomSource) -> int:
        noise = DiscreteLaplace(1 / self.rate).sample(len(scores), rng)
        return int(np.argmax(scores + noise))

    def lag(self, others: int, miss: float) -> float:
        """As for every choice, but with the heavier tail of the difference of two noises.

        P(Z - Z' >= g) = r^g ((g + c) (1 - r) + r) / (1 + r)^2 for g >= 0, where r = exp(-rate) and
        c = (1 + r^2) / (1 - r^2).
        """
        rate = float(self.rate)
        r, rest = math.exp(-rate), -math.expm1(-rate)

        def beats(g: int) -> float:
            near = g * rest + (1 + r * r) / (1 + r) + r
            return others * math.exp(-rate * g) * near / (1 + r) ** 2

        far = 1
        while beats(far) > miss:
            far *= 2
        return float(bisect_left(range(far), True, key=lambda g: beats(g) <= miss))  # noqa: FBT003

    def probabilities(self, scores: ArrayLike) -> Floats:
        steps = self.scale.read(scores)
        reach = math.ceil(45 / float(self.rate)) + int(steps.max() - steps.min())
        if reach > 1 << 22:
            raise Unsupported("The exact law is computed for noise below 10**5 steps.")
        return self._summed(steps, reach, 1)

    def _nearly(self, scores: ArrayLike) -> Floats:
        steps = self.scale.read(scores)
        reach = math.ceil(45 / float(self.rate)) + int(steps.max() - steps.min())
        return self._summed(steps, reach, 1 + 2 * reach // _LEVELS)

    def _summed(self, steps: Ints, reach: int, stride: int) -> Floats:
        """The law of the choice, summed over every so many levels of the winning score."""
        law = DiscreteLaplace(1 / self.rate)
        top = np.arange(-reach, reach + 1, stride) + steps.max()
        # Candidate i wins at level v if the earlier ones stay below v and the later at most at v.
        below_v = np.array([law.cdf(top - 1 - s) for s in steps])
        at_most = np.array([law.cdf(top - s) for s in steps])
        chosen = np.empty(len(steps))
        for i, s in enumerate(steps):
            others = np.prod(below_v[:i], axis=0) * np.prod(at_most[i + 1 :], axis=0)
            chosen[i] = stride * float(np.sum(law.pmf(top - s) * others))
        return chosen

    def _recomputed(self) -> list[tuple[str, float, str]]:
        """Of wide noise the ratio that the proof needs, instead of the listed law."""
        growth = self.scale.shift * (1 if self.monotonic else 2)
        if 45 / self.rate + 22 * self.scale.shift <= _LEVELS >> 1:
            return super(ReportNoisyMax, self)._recomputed()
        law = DiscreteLaplace(1 / self.rate)
        lost = float(law.log_pmf(0) - law.log_pmf(growth)) - float(self.epsilon)
        exact = max(0.0, lost - _LOG_ROUNDING)
        return [("any number of candidates", exact, "largest ratio of the law of the noise")]


def exponential_mechanism(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> ExponentialMechanism:
    """Create an exponential mechanism that chooses one of several candidates.

    It chooses candidate i with probability proportional to `exp(rate * score_i)`, so higher scores
    are more likely.

    Args:
        sensitivity: Largest change of each score between neighboring data sets.
        epsilon: Privacy loss of one choice.
        monotonic: Whether all scores change in the same direction between neighbors, like counts
            under add/remove. Then half the budget suffices. discreet cannot check this for you.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism. `release(scores)` returns the index of a candidate, and `interval(confidence,
        candidates=...)` bounds how far its score is below the best.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        epsilon-DP, and of bounded range epsilon, so it composes better than other epsilon-DP
        mechanisms.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.exponential_mechanism(sensitivity=1, epsilon=1, monotonic=True)
        >>> mechanism.release([10, 500, 20])
        1

    See Also:
        `permute_and_flip`: never a larger expected loss. `report_noisy_max`.

    References:
        McSherry and Talwar (2007). Dong, Durfee and Rogers (2020).
        [Proof](../theory/theorems.md#mechanisms.selection.exponential_mechanism).
    """
    # Theorem: epsilon-DP under `relation`, and of bounded range epsilon.
    # Proof: the log-ratio of candidate i is `rate * (change of score i) - log(change of the
    #   normalizer)`; over i it ranges over an interval of length 2 rate * sensitivity (rate *
    #   sensitivity if monotonic), which is epsilon, and it contains zero.
    # Source: McSherry, Talwar 2007; Dong, Durfee, Rogers 2020 (bounded range).
    # Needs: every score moves by at most `sensitivity`.
    return ExponentialMechanism.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)


def permute_and_flip(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PermuteAndFlip:
    """Create a permute-and-flip mechanism that chooses one of several candidates.

    Its expected loss is never larger than that of the exponential mechanism.

    Args:
        sensitivity: Largest change of each score between neighboring data sets.
        epsilon: Privacy loss of one choice.
        monotonic: Whether all scores change in the same direction between neighbors, like counts
            under add/remove. Then half the budget suffices. discreet cannot check this for you.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism. `release(scores)` returns the index of a candidate, and `interval(confidence,
        candidates=...)` bounds how far its score is below the best.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        epsilon-DP.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.permute_and_flip(sensitivity=1, epsilon=1, monotonic=True)
        >>> mechanism.release([10, 500, 20])
        1

    References:
        McKenna and Sheldon (2020).
        [Proof](../theory/theorems.md#mechanisms.selection.permute_and_flip).
    """
    # Theorem: epsilon-DP under `relation` (but not of bounded range: it composes as pure DP).
    # Proof: McKenna, Sheldon 2020, Theorem 1; `certify` recomputes it from the exact law.
    # Source: McKenna, Sheldon 2020.
    # Needs: every score moves by at most `sensitivity`.
    return PermuteAndFlip.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)


def report_noisy_max(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> ReportNoisyMax:
    """Create a mechanism that reports which score is largest after adding noise.

    Only the index is released, not the noisy score. The noise is discrete Laplace noise.

    Args:
        sensitivity: Largest change of each score between neighboring data sets.
        epsilon: Privacy loss of one choice.
        monotonic: Whether all scores change in the same direction between neighbors, like counts
            under add/remove. Then half the budget suffices. discreet cannot check this for you.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism. `release(scores)` returns the index of a candidate, and `interval(confidence,
        candidates=...)` bounds how far its score is below the best.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        epsilon-DP.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.report_noisy_max(sensitivity=1, epsilon=1, monotonic=True)
        >>> mechanism.release([10, 500, 20])
        1

    References:
        Dwork and Roth (2014), Claim 3.9.
        [Proof](../theory/theorems.md#mechanisms.selection.report_noisy_max).
    """
    # Theorem: epsilon-DP under `relation`.
    # Proof: fix the noise of all but candidate i. It wins iff its noise reaches an integer c; on a
    #   neighbor c grows by at most twice the sensitivity (once, if monotonic), and the discrete
    #   Laplace tail P(Z >= c) falls by at most exp(growth / scale). Ties go to the first index,
    #   which only makes c an integer.
    # Source: Dwork, Roth 2014, Claim 3.9, adapted to the integers.
    # Needs: every score moves by at most `sensitivity`.
    made = ReportNoisyMax.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)
    DiscreteLaplace(1 / made.rate)  # refused here, if it cannot be drawn
    return made
