"""Choosing one of many: exponential mechanism, permute-and-flip, report noisy maximum.

Each takes scores of candidates (larger is better) and returns the index of one. A score may move
by at most the sensitivity when one unit changes; ``monotonic=True`` promises that all scores move
in the same direction, which halves the price.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
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
from discreet.mechanisms._inputs import ScoreScale
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli_exp, exponential_choice, uniform_integers


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

    @property
    def guarantee(self) -> Guarantee:
        """What one choice costs."""
        return Guarantee(events.PureEvent(self.epsilon), self.relation)

    @property
    def std(self) -> float:
        """A choice has no standard deviation."""
        raise Unsupported("A choice has no standard deviation; interval() bounds its loss.")

    def interval(self, confidence: float, *, candidates: int) -> tuple[float, float]:
        """How far the chosen score may be below the best, with probability ``confidence``."""
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
        """The index of the chosen candidate."""
        steps = self.scale.read(scores)
        return self.choose(steps, resolve_rng(rng))

    def certify(self) -> Certificate:
        """Compare the exact laws on the neighbors that are hardest to protect.

        All scores equal and one against the rest, for 2, 3 and 10 candidates, in both directions:
        the patterns in which the ratio of the laws is largest for these mechanisms.
        """
        checks = []
        claimed = self.guarantee.delta(float(self.epsilon))
        for size in (2, 3, 10):
            exact = max(self._divergence(*pair) for pair in self._neighbors(size))
            checks.append(
                CertificateCheck(
                    part=f"{size} candidates",
                    epsilon=float(self.epsilon),
                    claimed=claimed,
                    exact=exact,
                    route="exact law of the choice",
                )
            )
        certificate = Certificate(
            mechanism=self.name, guarantee=self.guarantee, checks=tuple(checks)
        )
        return certificate.demand()

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
    """P(i) proportional to exp(rate * score_i). Made by `exponential`."""

    @property
    def name(self) -> str:
        return "exponential"

    @property
    def guarantee(self) -> Guarantee:
        """Bounded range: composes better than other epsilon-DP mechanisms."""
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
    """Candidates in random order, each taken with exp(-rate * gap). Made by `permute_and_flip`."""

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
    """The largest score after discrete Laplace noise; ties to the first. Made by `noisy_max`."""

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
        law = DiscreteLaplace(1 / self.rate)
        reach = math.ceil(45 / float(self.rate)) + int(steps.max() - steps.min())
        if reach > 1 << 22:
            raise Unsupported("The exact law is computed for noise below 10**5 steps.")
        top = np.arange(-reach, reach + 1) + steps.max()
        # Candidate i wins at level v if the earlier ones stay below v and the later at most at v.
        below_v = np.array([law.cdf(top - 1 - s) for s in steps])
        at_most = np.array([law.cdf(top - s) for s in steps])
        chosen = np.empty(len(steps))
        for i, s in enumerate(steps):
            others = np.prod(below_v[:i], axis=0) * np.prod(at_most[i + 1 :], axis=0)
            chosen[i] = float(np.sum(law.pmf(top - s) * others))
        return chosen


def exponential_mechanism(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> ExponentialMechanism:
    """The exponential mechanism: an exact draw with P(i) proportional to exp(rate * score_i).

    Theorem: epsilon-DP under ``relation``, and of bounded range epsilon.
    Proof: the log-ratio of candidate i is ``rate * (change of score i) - log(change of the
        normalizer)``; over i it ranges over an interval of length 2 rate * sensitivity (rate *
        sensitivity if monotonic), which is epsilon, and it contains zero.
    Source: McSherry, Talwar 2007; Dong, Durfee, Rogers 2020 (bounded range).
    Needs: every score moves by at most ``sensitivity``.
    """
    return ExponentialMechanism.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)


def permute_and_flip(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PermuteAndFlip:
    """Permute-and-flip: never a larger expected loss than the exponential mechanism.

    Theorem: epsilon-DP under ``relation`` (but not of bounded range: it composes as pure DP).
    Proof: McKenna, Sheldon 2020, Theorem 1; `certify` recomputes it from the exact law.
    Source: McKenna, Sheldon 2020.
    Needs: every score moves by at most ``sensitivity``.
    """
    return PermuteAndFlip.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)


def report_noisy_max(
    *,
    sensitivity: Number,
    epsilon: Number,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> ReportNoisyMax:
    """Report noisy maximum with discrete Laplace noise; only the index is released.

    Theorem: epsilon-DP under ``relation``.
    Proof: fix the noise of all but candidate i. It wins iff its noise reaches an integer c; on a
        neighbor c grows by at most twice the sensitivity (once, if monotonic), and the discrete
        Laplace tail P(Z >= c) falls by at most exp(growth / scale). Ties go to the first index,
        which only makes c an integer.
    Source: Dwork, Roth 2014, Claim 3.9, adapted to the integers.
    Needs: every score moves by at most ``sensitivity``.
    """
    return ReportNoisyMax.of(sensitivity, epsilon, monotonic=monotonic, relation=relation)
