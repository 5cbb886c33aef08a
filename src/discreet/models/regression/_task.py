"""What every way of fitting is told, and what it gives back; its budget in named parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import Unsupported
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.selection import Exponential
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import RowMap
from discreet.models.regression._row_sources import Rows
from discreet.models.regression.sufficient_statistics import Statistic, gaussian_budget
from discreet.noise.random_source import Bits
from discreet.query.budget import Budget, Move


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """Public facts: bounds, the relation, and about how many rows there are."""

    lower: Floats
    upper: Floats
    target: tuple[float, float]
    rows: float
    mu: float
    """About what the budget is worth in Gaussian differential privacy (see `strength`)."""
    relation: Relation
    rows_per_unit: int = 1

    @property
    def features(self) -> int:
        """How many features there are."""
        return len(self.lower)

    @property
    def signal(self) -> float:
        """Rows times mu, for each root of a column: what decides which method is best."""
        return self.rows * self.mu / (self.rows_per_unit * math.sqrt(self.features + 1))

    @property
    def middle(self) -> Floats:
        """Midpoints of the bounds of the features."""
        return np.asarray((self.lower + self.upper) / 2)

    @property
    def half(self) -> Floats:
        """Half the declared ranges of the features."""
        return np.asarray((self.upper - self.lower) / 2)

    @property
    def target_middle(self) -> float:
        """The midpoint of the bounds of the target."""
        return (self.target[0] + self.target[1]) / 2

    @property
    def target_half(self) -> float:
        """Half the declared range of the target."""
        return (self.target[1] - self.target[0]) / 2

    @property
    def replaced(self) -> bool:
        """Whether a unit is replaced instead of added or removed."""
        return self.relation is not Relation.ADD_REMOVE

    def vector(self, square: int, *, replaced: int = 4) -> Move:
        """A unit moves a vector: one row by ``square`` in squared norm.

        Theorem: a replaced row moves it by at most four times that in squared norm (or
            ``replaced`` times, where that is proved); m rows of a unit m times as far.
        Proof: triangle inequality.
        """
        times = self.rows_per_unit**2 * (replaced if self.replaced else 1)
        return Move(l1=square * times, l2_squared=square * times)

    def choice(self, added: int, replaced: int) -> Move:
        """A unit moves scores by at most this if one row is added or replaced, times its rows."""
        moved = self.rows_per_unit * (replaced if self.replaced else added)
        return Move(l1=moved, l2_squared=moved**2, choice=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One release of a fit: its name, how far a unit moves it, its share of the budget."""

    name: str
    move: Move
    share: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Noises:
    """Mechanisms for the parts, in order, that cost the budget together."""

    parts: tuple[Part, ...]
    mechanisms: tuple[Additive | Exponential, ...] = field(repr=False)
    costs: tuple[Guarantee, ...] = ()
    """What each costs, where what the mechanism itself would claim is not what is proved."""
    declared: Guarantee | None = None
    """What they cost together in that case."""

    @property
    def released(self) -> tuple[Statistic, ...]:
        """Each released statistic with its cost."""
        costs = self.costs or tuple(one.guarantee for one in self.mechanisms)
        return tuple(
            Statistic(name=part.name, guarantee=cost)
            for part, cost in zip(self.parts, costs, strict=True)
        )

    @property
    def guarantee(self) -> Guarantee:
        """What all releases cost together."""
        if self.declared is not None:
            return self.declared
        first, *others = (one.guarantee for one in self.mechanisms)
        return sum(others, start=first)

    def additive(self, name: str) -> list[Additive]:
        """The noises of the parts of this name."""
        return [one for one in self._named(name) if isinstance(one, Additive)]

    def choices(self, name: str) -> list[Exponential]:
        """The choices of the parts of this name."""
        return [one for one in self._named(name) if isinstance(one, Exponential)]

    def _named(self, name: str) -> list[Additive | Exponential]:
        pairs = zip(self.parts, self.mechanisms, strict=True)
        return [mechanism for part, mechanism in pairs if part.name == name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """A public result: how rows are mapped, and coefficients in mapped units."""

    map: RowMap
    theta: Floats
    notes: Mapping[str, float] = field(default_factory=dict)


class Method(Protocol):
    """A way of fitting: what it will release, and how it fits."""

    @property
    def name(self) -> str:
        """What it is called."""

    def plan(self, task: Task, amount: Budget) -> Noises:
        """What is released, and the noise for it, before a row is read."""

    def fit(self, rows: Rows, task: Task, *, noises: Noises, bits: Bits) -> Fit:
        """Read the rows, through the noises only."""


@lru_cache(maxsize=64)
def spend(parts: tuple[Part, ...], amount: Budget, *, relation: Relation) -> Noises:
    """Mechanisms for all parts that cost the amount together.

    Theorem: the composition of all releases is within the amount under ``relation``.
    Proof: `Budget.mechanisms`; later parts may depend on earlier ones, which composition allows.
    """
    total = sum((part.share for part in parts), start=Fraction(0))
    found = []
    for one in amount.mechanisms(
        [part.move for part in parts],
        shares=[part.share / total for part in parts],
        relation=relation,
    ):
        if not isinstance(one, Additive | Exponential):
            raise Unsupported("Only additive noise and choices are planned here.")
        found.append(one)
    return Noises(parts=parts, mechanisms=tuple(found))


def strength(amount: Budget) -> float:
    """The mu of Gaussian differential privacy that is worth about as much: for planning only."""
    if amount.rho is not None:
        return math.sqrt(2 * float(amount.rho))
    gaussian_budget(epsilon=amount.epsilon, delta=amount.delta, rho=None)
    return 1 / gaussian_sigma(float(amount.epsilon or 0), delta=float(amount.delta or 0))
