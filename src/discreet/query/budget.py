"""How much a question may cost, and the noise which that buys for integers that move together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from discreet.accounting.calibrate import smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.selection import ExponentialMechanism, exponential_mechanism

Noise: TypeAlias = AdditiveMechanism | ExponentialMechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChange:
    """How far one step of the relation moves a vector of integers.

    With ``choice`` the integers are scores, and one of them is chosen in each group; ``l1`` is then
    the sum over groups of the furthest that a score moves.
    """

    l1: int
    l2_squared: int
    choice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBudget:
    """Pure (epsilon), concentrated (rho) or approximate (epsilon with delta)."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho {float(self.rho):g}"
        also = "" if self.delta is None else f", delta {float(self.delta):g}"
        return f"epsilon {float(self.epsilon or 0):g}{also}"

    def mechanisms(
        self,
        moves: Sequence[BudgetChange],
        *,
        shares: Sequence[Fraction],
        relation: NeighboringRelation,
    ) -> tuple[Noise, ...]:
        """One mechanism for each vector; together they cost the budget.

        Theorem: the composition of the mechanisms is within the budget under ``relation``.
        Proof: epsilons and rhos add up, and the shares add up to one. For (epsilon, delta) the
            variances are proportional to ``l2_squared / share``, and the smallest common factor is
            taken for which the exact composition of all of them is certified. Independent choices
            in several groups with the same rate have log-ratios that range over intervals of length
            ``2 rate * (move of the group's scores)``; these lengths add up to ``2 rate * l1``: of
            bounded range epsilon, and so epsilon**2 / 8 zCDP.
        Source: Dwork, McSherry, Nissim, Smith 2006; Bun, Steinke 2016; Canonne et al. 2020; Dong,
            Durfee, Rogers 2020; Cesar, Rogers 2021.
        Needs: the shares are positive and sum to one; the moves bound the vectors.
        """
        if sum(shares) != 1 or any(share <= 0 for share in shares):
            raise InvalidArgument("shares must be positive and sum to one.")
        if self.rho is not None:
            rho = self.rho
            return tuple(
                _choice(move, relation, epsilon=root_down(8 * rho * share))
                if move.choice
                else _gaussian(move, relation, rho=rho * share)
                for move, share in zip(moves, shares, strict=True)
            )
        epsilon = check.positive("epsilon", self.epsilon)
        if self.delta is None:
            return tuple(
                _choice(move, relation, epsilon=epsilon * share)
                if move.choice
                else laplace(
                    sensitivity=move.l1,
                    epsilon=epsilon * share,
                    domain="integers",
                    relation=relation,
                )
                for move, share in zip(moves, shares, strict=True)
            )
        return _jointly(moves, shares, (float(epsilon), float(self.delta)), relation)


def budget(
    *, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None
) -> QueryBudget:
    """A checked budget: epsilon, or epsilon with delta, or rho."""
    if (epsilon is None) == (rho is None) or (delta is not None and rho is not None):
        raise InvalidArgument("Give epsilon, or epsilon and delta, or rho: how much this may cost.")
    if rho is not None:
        return QueryBudget(rho=check.positive("rho", rho))
    return QueryBudget(
        epsilon=check.positive("epsilon", epsilon),
        delta=None if delta is None else check.probability("delta", delta, zero=False, one=False),
    )


def _jointly(
    moves: Sequence[BudgetChange],
    shares: Sequence[Fraction],
    target: tuple[float, float],
    relation: NeighboringRelation,
) -> tuple[Noise, ...]:
    """Discrete Gaussians (and choices of the same rho) whose exact composition is certified."""
    ratios = [_ratio(move, share) for move, share in zip(moves, shares, strict=True)]

    def make(width: Fraction) -> tuple[Noise, ...]:
        # A Gaussian of this width has rho share / (2 width**2); so has a choice of this epsilon.
        return tuple(
            _choice(move, relation, epsilon=2 * root_down(share) / width)
            if move.choice
            else _gaussian(move, relation, sigma=width * ratio)
            for move, ratio, share in zip(moves, ratios, shares, strict=True)
        )

    def event(width: Fraction) -> Event:
        return events.compose([mechanism.guarantee.event for mechanism in make(width)])

    start = Fraction(gaussian_sigma(target[0], delta=target[1]))
    return make(smallest_scale(event, target=target, start=start))


def _gaussian(
    move: BudgetChange,
    relation: NeighboringRelation,
    *,
    rho: Fraction | None = None,
    sigma: Fraction | None = None,
) -> AdditiveMechanism:
    # A squared distance N is that of N coordinates which move by one: no root is rounded.
    return gaussian(
        sensitivity=1,
        norm="linf",
        dimension=move.l2_squared,
        rho=rho,
        sigma=sigma,
        domain="integers",
        relation=relation,
    )


def _choice(
    move: BudgetChange, relation: NeighboringRelation, *, epsilon: Fraction
) -> ExponentialMechanism:
    return exponential_mechanism(sensitivity=move.l1, epsilon=epsilon, relation=relation)


def _ratio(move: BudgetChange, share: Fraction) -> Fraction:
    """About ``sqrt(l2_squared / share)``, short; the common factor makes up for the rounding."""
    root = math.sqrt(move.l2_squared / share)
    unit = Fraction(2) ** (24 - math.frexp(root)[1])
    return math.ceil(Fraction(root) * unit) / unit
