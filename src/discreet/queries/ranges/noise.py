"""What a share of a budget buys: the variance of the noise of each group, before calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.conversion import gaussian_sigma
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.law import Floats
from discreet.queries.budget import Budget, Move

Family: TypeAlias = Literal["laplace", "gaussian"]
_CONTINUOUS = 64.0
"""Above this variance a discrete Gaussian has that of its parameter, to the last bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The inverse variance of the noise as a smooth function of the share of a budget."""

    family: Family
    strength: float
    """epsilon for Laplace noise; ``1 / sigma^2`` at unit sensitivity for Gaussian noise."""

    def precision(self, share: Floats, l1: Floats, l2_squared: Floats) -> Floats:
        """The inverse variance; for Gaussian noise that of its parameter, which is no more."""
        if self.family == "gaussian":
            return self.strength * share / l2_squared
        # A scale of l1 / (epsilon share): the variance is 1 / (2 sinh^2(1 / (2 scale))).
        return 2 * np.square(np.sinh(np.minimum(self.strength * share / (2 * l1), 300)))

    def slope(self, share: Floats, l1: Floats, l2_squared: Floats) -> Floats:
        """The derivative of ``precision``."""
        if self.family == "gaussian":
            return self.strength / l2_squared + 0 * share
        return self.strength / l1 * np.sinh(np.minimum(self.strength * share / l1, 600))

    def variances(self, shares: Sequence[Fraction], moves: Sequence[Move]) -> Floats:
        """The variance of the noise of each group: exact for Laplace noise and for rho.

        For (epsilon, delta) it is that of continuous noise; what is calibrated later differs by
        less than one part in a hundred.
        """
        l1 = np.array([float(move.l1) for move in moves])
        l2 = np.array([float(move.l2_squared) for move in moves])
        found = 1 / self.precision(np.array([float(share) for share in shares]), l1, l2)
        if self.family == "gaussian":
            exact = [
                DiscreteGaussian(square=Fraction(value)).variance if value < _CONTINUOUS else value
                for value in found
            ]
            return np.array(exact)
        return found


def price(budget: Budget, *, family: Family) -> Price:
    """What a budget buys in noise of a family. Laplace noise does not need the delta."""
    if family == "laplace":
        return Price(family=family, strength=float(budget.epsilon or 0))
    if budget.rho is not None:
        return Price(family=family, strength=2 * float(budget.rho))
    sigma = gaussian_sigma(float(budget.epsilon or 0), delta=float(budget.delta or 0))
    return Price(family=family, strength=sigma**-2)


def families(budget: Budget) -> tuple[Family, ...]:
    """The kinds of noise that can keep a budget."""
    if budget.rho is not None:
        return ("gaussian",)
    return ("laplace",) if budget.delta is None else ("laplace", "gaussian")


def spent(budget: Budget, *, family: Family) -> Budget:
    """The budget as the mechanisms of a family take it: Laplace noise is pure."""
    return Budget(epsilon=budget.epsilon) if family == "laplace" else budget
