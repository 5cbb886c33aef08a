"""How much a question may cost, and the noise which that buys for integers that move together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.accounting import composition
from discreet.accounting.calibrate import smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.selection import ExponentialMechanism, exponential_mechanism

Noise: TypeAlias = AdditiveMechanism | ExponentialMechanism
NoiseName: TypeAlias = Literal["laplace", "gaussian"]

_GAIN = Fraction(101, 100)
"""Laplace noise keeps its pure epsilon unless exact composition needs so much less of it."""
_PRECISION = 1e-6
_FEW = 4


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
    noise: NoiseName | None = None
    """Which noise is added; None if it is chosen by the margin of error (`plan_release`)."""

    @property
    def noises(self) -> tuple[NoiseName, ...]:
        """The noise that may be added; the first one wins ties."""
        if self.noise is not None:
            return (self.noise,)
        return ("laplace",) if self._is_pure else ("laplace", "gaussian")

    @property
    def gaussian(self) -> bool:
        """Whether noise is Gaussian; where it is not stated, for all budgets but pure ones."""
        return not self._is_pure if self.noise is None else self.noise == "gaussian"

    @property
    def _is_pure(self) -> bool:
        return self.rho is None and self.delta is None

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho {number(self.rho)}"
        also = "" if self.delta is None else f", delta {number(self.delta)}"
        return f"epsilon {number(self.epsilon or 0)}{also}"

    def mechanisms(
        self,
        moves: Sequence[BudgetChange],
        *,
        shares: Sequence[Fraction],
        relation: NeighboringRelation,
    ) -> tuple[Noise, ...]:
        """One mechanism for each vector; together they cost the budget.

        Without a stated noise it is Laplace for a pure budget and Gaussian for others.
        """
        # Theorem: the composition of the mechanisms is within the budget under `relation`.
        # Proof: epsilons and rhos add up, and the shares add up to one; Laplace noise at a rho has
        #   the smallest scale whose `rho_of` is certified. For (epsilon, delta) the Gaussian
        #   variances are proportional to `l2_squared / share`, the epsilons of Laplace noise to
        #   the shares, and the smallest common factor is taken for which the exact composition of
        #   all of them is certified. Independent choices
        #   in several groups with the same rate have log-ratios that range over intervals of length
        #   `2 rate * (move of the group's scores)`; these lengths add up to `2 rate * l1`: of
        #   bounded range epsilon, and so epsilon**2 / 8 zCDP.
        # Source: Dwork, McSherry, Nissim, Smith 2006; Bun, Steinke 2016; Canonne et al. 2020; Dong,
        #   Durfee, Rogers 2020; Cesar, Rogers 2021.
        # Needs: the shares are positive and sum to one; the moves bound the vectors.
        if sum(shares) != 1 or min(shares) <= 0:
            raise InvalidArgument("shares must be positive and sum to one.")
        if self.rho is not None:
            make = _gaussian_at if self.gaussian else _laplace_at
            rho = self.rho
            return _each(
                moves,
                shares,
                lambda move, share: (
                    _choice(move, relation, epsilon=root_down(8 * rho * share))
                    if move.choice
                    else make(move, relation, rho=rho * share)
                ),
            )
        epsilon = self.epsilon
        if epsilon is None or epsilon <= 0:
            raise InvalidArgument(f"epsilon must be positive, got {epsilon}.")
        if self.delta is None:
            if self.gaussian:
                raise InvalidArgument(_NEEDS_DELTA)
            return _purely(moves, shares, epsilon, relation)
        target = (float(epsilon), float(self.delta))
        if self.gaussian:
            return _jointly(moves, shares, target, relation)
        return _laplace_jointly(moves, shares, (epsilon, target), relation)


_NEEDS_DELTA = "noise='gaussian' needs a delta or a rho: with epsilon alone the noise is Laplace."


def budget(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    noise: NoiseName | None = None,
) -> QueryBudget:
    """A checked budget: epsilon, or epsilon with delta, or rho; and its noise, if it is fixed."""
    if noise is not None:
        check.one_of("noise", noise, get_args(NoiseName))
    if (epsilon is None) == (rho is None) or (delta is not None and rho is not None):
        raise InvalidArgument("Give epsilon, or epsilon and delta, or rho: how much this may cost.")
    if rho is not None:
        return QueryBudget(rho=check.positive("rho", rho), noise=noise)
    if noise == "gaussian" and delta is None:
        raise InvalidArgument(_NEEDS_DELTA)
    return QueryBudget(
        epsilon=check.positive("epsilon", epsilon),
        delta=None if delta is None else check.probability("delta", delta, zero=False, one=False),
        noise=noise,
    )


def _each(
    moves: Sequence[BudgetChange],
    shares: Sequence[Fraction],
    make: Callable[[BudgetChange, Fraction], Noise],
) -> tuple[Noise, ...]:
    """One mechanism for each vector; vectors of one move and share have the same."""
    if len(moves) <= _FEW:
        return tuple([make(*one) for one in zip(moves, shares, strict=True)])
    made: dict[tuple[BudgetChange, Fraction], Noise] = {}
    for key in zip(moves, shares, strict=True):
        if key not in made:
            made[key] = make(*key)
    return tuple([made[key] for key in zip(moves, shares, strict=True)])


def _purely(
    moves: Sequence[BudgetChange],
    shares: Sequence[Fraction],
    epsilon: Fraction,
    relation: NeighboringRelation,
) -> tuple[Noise, ...]:
    """Laplace noise (and choices) whose epsilons add up."""
    return tuple(
        [
            _choice(move, relation, epsilon=epsilon * share)
            if move.choice
            else laplace(
                sensitivity=move.l1, epsilon=epsilon * share, domain="integers", relation=relation
            )
            for move, share in zip(moves, shares, strict=True)
        ]
    )


def _composed(mechanisms: Sequence[Noise]) -> Event:
    return events.compose([mechanism.guarantee.event for mechanism in mechanisms])


def _laplace_jointly(
    moves: Sequence[BudgetChange],
    shares: Sequence[Fraction],
    price: tuple[Fraction, tuple[float, float]],
    relation: NeighboringRelation,
) -> tuple[Noise, ...]:
    """Laplace noise whose exact composition is certified; pure if that is as good."""
    epsilon, target = price

    def made(factor: Fraction) -> tuple[Noise, ...]:
        return _purely(moves, shares, epsilon / factor, relation)

    pure = made(Fraction(1))
    if len(moves) == 1 or _needs_all(made(1 / _GAIN), target):
        return pure
    if composition.delta(_composed(made(1 / _GAIN)), epsilon=target[0]).value > target[1]:
        return pure
    return made(
        smallest_scale(
            lambda factor: _composed(made(factor)),
            target=target,
            start=Fraction(1),
            precision=_PRECISION,
        )
    )


def _needs_all(mechanisms: Sequence[Noise], target: tuple[float, float]) -> bool:
    """Whether the target is missed, as seen without composing.

    With probability above a half each Laplace noise loses all of its epsilon.
    """
    if not all(isinstance(one, AdditiveMechanism) for one in mechanisms):
        return False
    total, _ = composition.basic(_composed(mechanisms))
    if total is None:
        return False
    return 0.5 ** len(mechanisms) * -math.expm1(target[0] - float(total)) > target[1]


def _jointly(
    moves: Sequence[BudgetChange],
    shares: Sequence[Fraction],
    target: tuple[float, float],
    relation: NeighboringRelation,
) -> tuple[Noise, ...]:
    """Discrete Gaussians (and choices of the same rho) whose exact composition is certified."""

    def make(width: Fraction) -> tuple[Noise, ...]:
        # A Gaussian of this width has rho share / (2 width**2); so has a choice of this epsilon.
        return _each(
            moves,
            shares,
            lambda move, share: (
                _choice(move, relation, epsilon=2 * root_down(share) / width)
                if move.choice
                else _gaussian(move, relation, sigma=width * _ratio(move, share))
            ),
        )

    start = Fraction(gaussian_sigma(target[0], delta=target[1]))
    return make(smallest_scale(lambda width: _composed(make(width)), target=target, start=start))


def _gaussian_at(
    move: BudgetChange, relation: NeighboringRelation, *, rho: Fraction
) -> AdditiveMechanism:
    return _gaussian(move, relation, rho=rho)


def _laplace_at(
    move: BudgetChange, relation: NeighboringRelation, *, rho: Fraction
) -> AdditiveMechanism:
    """The least Laplace noise of a rho: its true one, the supremum over all orders."""
    scale = smallest_scale(
        lambda width: events.DiscreteLaplaceEvent(width * move.l1, move.l1),
        target=Guarantee(events.ZcdpEvent(rho), relation),
        start=1 / root_down(2 * rho),
    )
    return laplace(sensitivity=move.l1, scale=scale * move.l1, domain="integers", relation=relation)


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
