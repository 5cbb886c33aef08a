"""The staircase mechanism: the least loss that a pure epsilon allows on one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import positive
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import Domain, ScoreScale
from discreet.mechanisms.scalar._base import LOSSES, Loss, ScalarNoise
from discreet.noise.piecewise_constant import Staircase

# Treads of so many widths are tried one by one; beyond, the best share of the shift is searched.
_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StaircaseMechanism(ScalarNoise):
    """Staircase noise. Made by `staircase`."""

    name = "staircase"
    scale: ScoreScale
    noise: Staircase
    target: tuple[Fraction, Fraction]
    relation: NeighboringRelation

    def exact(self) -> tuple[float, str]:
        """The excess of one flight over the next, at the edges of all treads and risers."""
        law, shift = self.noise, self.scale.shift
        edges = np.array([0, law.tread - 1, law.tread, shift - 1, shift, 2 * shift])
        places = np.unique(np.concatenate([edges - shift, edges, -edges]))
        gap = law.log_pmf(places) - law.log_pmf(places + shift)
        excess = float(np.max(gap)) - float(self.target[0])
        return (0.0 if excess <= 1e-12 else 1.0), "largest ratio of the law"


def staircase(
    *,
    sensitivity: Number,
    epsilon: Number,
    loss: Loss = "mse",
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> StaircaseMechanism:
    """Staircase noise on one number: a constant near zero, then flights that fall by e^epsilon."""
    # Theorem: epsilon-DP under `relation`; with the best tread no additive noise of a pure
    #   epsilon has a smaller expected loss, for every loss that grows with the error.
    # Proof: places at most `sensitivity` apart have ratios of at most e^epsilon by construction.
    #   Optimality: Geng and Viswanath 2014. The tread is searched among those of the grid.
    # Source: Geng, Viswanath 2014. B49.
    # Needs: a scalar. For a sensitivity of one step this is discrete Laplace noise.
    eps = positive("epsilon", epsilon)
    scale = ScoreScale.of(sensitivity, domain=domain)
    measure = LOSSES[loss]

    def cost(tread: int) -> float:
        return measure(Staircase(eps, shift=scale.shift, tread=tread))

    best = _smallest(cost, scale.shift)
    noise = Staircase(eps, shift=scale.shift, tread=best)
    return StaircaseMechanism(
        scale=scale, noise=noise, target=(eps, Fraction(0)), relation=relation
    )


def _smallest(cost: Callable[[int], float], most: int) -> int:
    """The tread of least cost, which has one valley: narrow a grid, then try the last few."""
    low, high = 1, most
    while high - low > _FEW:
        tried = [low + (high - low) * i // 8 for i in range(9)]
        at = min(range(len(tried)), key=lambda i: cost(tried[i]))
        low, high = tried[max(at - 1, 0)], tried[min(at + 1, len(tried) - 1)]
    return min(range(low, high + 1), key=cost)
