"""Randomised response: the oldest mechanism, and the building block of the local model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import count, positive, probability
from discreet.core.errors import OutOfDomain
from discreet.core.exact import Enclosure, Number, ceil_div, exp_minus
from discreet.core.relation import Relation
from discreet.mechanisms.mechanism import Certificate, Check, Mechanism
from discreet.mechanisms.values import Released, read
from discreet.noise.bits import Bits, system
from discreet.noise.law import Floats
from discreet.noise.uniform import below, bernoulli_real


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse(Mechanism):
    """Keep a category with probability e^epsilon / (e^epsilon + k - 1), else another at random."""

    categories: int
    epsilon: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """What one report costs its client."""
        return Guarantee(events.Pure(self.epsilon), Relation.LOCAL)

    @property
    def keep(self) -> float:
        """Probability that a category is reported as it is."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    @property
    def other(self) -> float:
        """Probability of each wrong category."""
        return (1 - self.keep) / (self.categories - 1)

    @property
    def std(self) -> float:
        """Of the unbiased estimate of a count from one report (times sqrt(n) for n reports)."""
        worst = max(p * (1 - p) for p in (self.keep, self.other))
        return math.sqrt(worst) / (self.keep - self.other)

    def interval(self, level: float, *, reports: int) -> tuple[float, float]:
        """Hoeffding bounds of the error of an estimated count."""
        inside = float(probability("level", level, zero=False, one=False))
        n = count("reports", reports)
        high = math.sqrt(n * math.log(2 / (1 - inside)) / 2) / (self.keep - self.other)
        return -high, high

    def release(self, value: ArrayLike, *, bits: Bits | None = None) -> Released:
        """Report categories, each coded 0 .. categories - 1."""
        values = read(value)
        codes = values.whole
        if codes is None or (codes.size and not 0 <= codes.min() <= codes.max() < self.categories):
            raise OutOfDomain(f"value must hold whole numbers from 0 to {self.categories - 1}.")
        source = system() if bits is None else bits
        lies = bernoulli_real(self._lie, codes.size, source)
        # Drawn for all, so that the time does not tell how many lied.
        shifts = 1 + below(self.categories - 1, codes.size, source)
        return values.restore(np.where(lies, (codes + shifts) % self.categories, codes))

    def estimate(self, reports: ArrayLike) -> Floats:
        """Unbiased counts of all categories from many reports (post-processing)."""
        codes = read(reports).whole
        if codes is None:
            raise OutOfDomain("reports must hold whole numbers.")
        seen = np.bincount(codes, minlength=self.categories).astype(np.float64)
        return (seen - codes.size * self.other) / (self.keep - self.other)

    def _lie(self, precision: int) -> Enclosure:
        """Enclose (k - 1) r / (1 + (k - 1) r) with r = e^-epsilon."""
        work = precision + self.categories.bit_length() + 8
        one = 1 << work
        low, high = ((self.categories - 1) * end for end in exp_minus(self.epsilon, work))
        return (low << precision) // (one + low), ceil_div(high << precision, one + high)

    def certify(self) -> Certificate:
        """The exact ratio and divergence of the reports of two clients."""
        epsilon = float(self.epsilon)
        exact = max(0.0, self.keep - math.exp(epsilon) * self.other)
        check = Check(
            part=f"{self.categories} categories",
            epsilon=epsilon,
            claimed=self.guarantee.delta(epsilon),
            exact=exact,
            route="exact law of a report",
        )
        return Certificate(
            mechanism="randomised_response", guarantee=self.guarantee, checks=(check,)
        ).demand()

    def __repr__(self) -> str:
        return f"randomised_response({self.guarantee!r}, categories={self.categories})"


def randomised_response(*, categories: int, epsilon: Number) -> RandomisedResponse:
    """Randomised response over ``categories`` codes; two make Warner's original.

    Theorem: each report is epsilon-DP in the local model, and no report of this kind is better.
    Proof: a report has probability keep or other under any two inputs; keep / other = e^epsilon.
    Source: Warner 1965; Kairouz, Oh, Viswanath 2014. B20.
    Needs: categories >= 2, epsilon > 0.
    """
    return RandomisedResponse(
        categories=count("categories", categories, minimum=2),
        epsilon=positive("epsilon", epsilon),
    )
