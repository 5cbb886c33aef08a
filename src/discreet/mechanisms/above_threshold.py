"""Above threshold, the sparse vector technique."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, flag, positive, probability
from discreet.core.errors import OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import ScoreScale, read
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.noise.distribution import Floats
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Mechanism):
    """Which queries pass a threshold, until ``positives`` have. Made by `above_threshold`."""

    epsilon: Fraction
    scale: ScoreScale
    positives: int
    monotonic: bool
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one whole run costs, however many queries it answers."""
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
        """How far on the wrong side of the threshold any answered query may lie."""
        tail = (1 - float(probability("confidence", confidence, zero=False, one=False))) / 2
        each = tail / count("queries", queries)
        steps = max(map(abs, self.threshold_noise.interval(1 - tail))) + max(
            map(abs, self.query_noise.interval(1 - each))
        )
        return -steps * self.scale.step, steps * self.scale.step

    def release(
        self, values: ArrayLike, *, threshold: float, rng: RandomSource | None = None
    ) -> NDArray[np.bool_]:
        """One answer for each query up to and including the last allowed positive.

        The noise of all queries is drawn at once, so the time does not tell where it stopped.
        """
        steps = self.scale.read(values, name="values")
        level = self.scale.read([_threshold(threshold)], name="threshold")[0]
        source = resolve_rng(rng)
        noisy_level = level + self.threshold_noise.sample(1, source)[0]
        noisy = steps + self.query_noise.sample(len(steps), source)
        above: NDArray[np.bool_] = noisy >= noisy_level
        passed = np.flatnonzero(above)
        if len(passed) >= self.positives:
            return above[: passed[self.positives - 1] + 1]
        return above

    def probabilities(self, values: ArrayLike, *, threshold: float) -> Floats:
        """P(stop at query i) for one positive, the last entry for "none passed": for audits."""
        steps = self.scale.read(values, name="values")
        level = int(self.scale.read([_threshold(threshold)], name="threshold")[0])
        noise = self.threshold_noise
        reach = math.ceil(45 * float(noise.scale))
        levels = np.arange(-reach, reach + 1) + level
        weights = noise.pmf(levels - level)
        stays = np.array([self.query_noise.cdf(levels - 1 - s) for s in steps])
        reached = np.vstack([np.ones_like(weights), np.cumprod(stays, axis=0)])
        stops = reached[:-1] * np.array([self.query_noise.sf(levels - 1 - s) for s in steps])
        return np.append(stops @ weights, reached[-1] @ weights)

    def certify(self) -> Certificate:
        """Compare the exact laws of a run with one positive on the worst neighbors of each length.

        More positives cost no more: each has its own part of the noise scale.
        """
        single = AboveThreshold(
            epsilon=self.epsilon,
            scale=ScoreScale(exponent=0, shift=1),
            positives=1,
            monotonic=self.monotonic,
            relation=self.relation,
        )
        claimed = self.guarantee.delta(float(self.epsilon))
        checks = [
            CertificateCheck(
                part=f"{size} queries",
                epsilon=float(self.epsilon),
                claimed=claimed,
                exact=single._divergence(size),
                route="exact law of the run",
            )
            for size in (1, 3, 10)
        ]
        certificate = Certificate(
            mechanism="above_threshold", guarantee=self.guarantee, checks=tuple(checks)
        )
        return certificate.demand()

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
        return f"above_threshold({self.guarantee!r}, std={self.std:.4g})"


def above_threshold(
    *,
    sensitivity: Number,
    epsilon: Number,
    positives: int = 1,
    monotonic: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AboveThreshold:
    """Answer "is it above the threshold?" for many queries; only the positives cost.

    Theorem: a run with at most ``positives`` positive answers is epsilon-DP under ``relation``.
    Proof: fix the noise of the queries. Raise the threshold noise by the sensitivity D: all
        negative answers stay (price epsilon_1). Raise the noise of each positive query by 2D (D if
        monotonic): they stay positive (price epsilon_2 / positives each). Discrete Laplace masses
        and tails change by exactly these factors on the integers.
    Source: Dwork et al. 2009; Lyu, Su, Li 2017, Algorithm 7 (its threshold noise is not redrawn,
        noisy values are never released, the run stops).
    Needs: every query moves by at most ``sensitivity``.
    """
    return AboveThreshold(
        epsilon=positive("epsilon", epsilon),
        scale=ScoreScale.of(sensitivity),
        positives=count("positives", positives),
        monotonic=flag("monotonic", monotonic),
        relation=relation,
    )


def _threshold(value: float) -> float | int:
    """A public threshold, checked like a value."""
    number = read(value)
    if number.shape:
        raise OutOfDomain("threshold must be one number.")
    flat = number.real if number.whole is None else number.whole
    assert flat is not None  # noqa: S101 - Values holds one or the other
    return flat.item()
