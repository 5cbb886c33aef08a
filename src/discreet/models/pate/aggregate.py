"""Noisy votes: whole counts, discrete Gaussian noise, costs that do not depend on the votes.

Every cost here is fixed by public numbers, so it can be charged, and when a budget is empty nobody
learns from that more than the guarantee allows. (Costs that depend on the votes are smaller, and as
private as the votes: `published`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core import events
from discreet.core.check import finite, positive
from discreet.core.errors import OutOfDomain
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.models.pate.assignment import UNITS, Assignment
from discreet.noise.bits import Bits, source_of
from discreet.noise.gaussian import DiscreteGaussian

UNANSWERED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Confident:
    """Confident-GNMax: a label if the largest count is large enough, after noise on both (M14).

    Theorem: a question costs an owner whose data move ``share`` units ``share**2 / (2 s1**2)`` in
        zCDP, and an answer ``share**2 / s2**2`` more, s1 and s2 being the noises in units. Under
        add or remove, and under replacement too.
    Proof: the largest count moves by at most ``share``; whether it passes is a post-processing of
        its noisy value. The counts move by at most ``share`` down in all and ``share`` up in all,
        so by at most ``2 share**2`` in squared length; the winner is a post-processing of the
        noisy counts. Discrete Gaussian noise of parameter s is ``length**2 / (2 s**2)``-zCDP.
        Whether there is an answer is published, so its cost may depend on it (adaptive
        composition).
    Source: Papernot et al. 2018; Canonne, Kamath, Steinke 2020; Muehl 2021 (M14, M19, M44).
    """

    threshold: Number
    """Votes that the largest noisy count must reach."""
    sigma_threshold: Number
    """Noise of that test, in votes."""
    sigma_votes: Number
    """Noise of the counts, in votes."""

    def __post_init__(self) -> None:
        finite("threshold", self.threshold)
        positive("sigma_threshold", self.sigma_threshold)
        positive("sigma_votes", self.sigma_votes)

    def question(self, assignment: Assignment) -> PersonalGuarantee:
        """What every owner pays for a question, answered or not."""
        return self._cost(assignment, self.sigma_threshold, squares=1, dimension=1)

    def answer(self, assignment: Assignment, *, classes: int) -> PersonalGuarantee:
        """What every owner pays for an answer, beside the question."""
        return self._cost(assignment, self.sigma_votes, squares=2, dimension=classes)

    def ask(self, counts: ArrayLike, *, bits: Bits | None = None) -> NDArray[np.bool_]:
        """Whether each item is answered; ``counts`` in units, one row for each item."""
        found = as_counts(counts)
        noise = self._noise(self.sigma_threshold, len(found), bits)
        # Whole units: the noisy count is compared in exact numbers.
        limit = math.ceil(finite("threshold", self.threshold) * UNITS)
        return np.asarray(found.max(axis=1) + noise >= limit)

    def answers(self, counts: ArrayLike, *, bits: Bits | None = None) -> NDArray[np.int64]:
        """The winner of each row; of equal noisy counts the first."""
        found = as_counts(counts)
        noise = self._noise(self.sigma_votes, found.size, bits).reshape(found.shape)
        return np.asarray((found + noise).argmax(axis=1), dtype=np.int64)

    def _noise(self, sigma: Number, size: int, bits: Bits | None) -> NDArray[np.int64]:
        variance = (positive("sigma", sigma) * UNITS) ** 2
        return DiscreteGaussian(square=variance).sample(size, source_of(bits))

    def _cost(
        self, assignment: Assignment, sigma: Number, *, squares: int, dimension: int
    ) -> PersonalGuarantee:
        variance = (positive("sigma", sigma) * UNITS) ** 2
        return personal(
            {
                name: Guarantee(
                    events.DiscreteGaussian(variance, Fraction(squares * share**2), dimension),
                    Relation.ADD_REMOVE,
                )
                for name, share in assignment.shares.items()
            }
        )


def as_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Counts at the door: whole units, a row for each item."""
    found = np.asarray(counts)
    if found.ndim != 2 or not np.issubdtype(found.dtype, np.integer):
        raise OutOfDomain("counts must be whole units of votes, one row for each item.")
    return found.astype(np.int64)
