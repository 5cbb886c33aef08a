"""What every regression method receives, and what it returns; its budget in named parts."""

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
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import RowMap
from discreet.models.regression._row_sources import RowSource
from discreet.models.regression.sufficient_statistics import (
    ReleasedStatistic,
    gaussian_budget,
    mechanisms_within,
)
from discreet.noise.random_source import RandomSource
from discreet.query.budget import BudgetChange, QueryBudget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionTask:
    """Public facts: bounds, the relation, and about how many rows there are."""

    lower: Floats
    upper: Floats
    target: tuple[float, float]
    rows: float
    mu: float
    """About the mu of Gaussian differential privacy that equals the budget (see `gaussian_mu`)."""
    relation: NeighboringRelation
    max_rows_per_unit: int = 1

    @property
    def features(self) -> int:
        """How many features there are."""
        return len(self.lower)

    @property
    def signal(self) -> float:
        """Rows times mu, for each root of a column: what decides which method is best."""
        return self.rows * self.mu / (self.max_rows_per_unit * math.sqrt(self.features + 1))

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
        return self.relation is not NeighboringRelation.ADD_REMOVE

    def vector(self, square: int, *, replaced: int = 4) -> BudgetChange:
        """A unit moves a vector: one row by ``square`` in squared norm."""
        # Theorem: a replaced row moves it by at most four times that in squared norm (or
        #   `replaced` times, where that is proved); m rows of a unit m times as far.
        # Proof: triangle inequality.
        times = self.max_rows_per_unit**2 * (replaced if self.replaced else 1)
        return BudgetChange(l1=square * times, l2_squared=square * times)

    def choice(self, added: int, replaced: int) -> BudgetChange:
        """A unit moves scores by at most this if one row is added or replaced, times its rows."""
        moved = self.max_rows_per_unit * (replaced if self.replaced else added)
        return BudgetChange(l1=moved, l2_squared=moved**2, choice=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitStage:
    """One release of a fit: its name, how far a unit moves it, its share of the budget."""

    name: str
    sensitivity: BudgetChange
    share: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScales:
    """Mechanisms for the parts, in order, that cost the budget together."""

    parts: tuple[FitStage, ...]
    mechanisms: tuple[AdditiveMechanism | ExponentialMechanism, ...] = field(repr=False)
    costs: tuple[Guarantee, ...] = ()
    """What each costs, where what the mechanism itself would claim is not what is proved."""
    declared: Guarantee | None = None
    """What they cost together in that case."""

    @property
    def released(self) -> tuple[ReleasedStatistic, ...]:
        """Each released statistic with its cost."""
        costs = self.costs or tuple(one.guarantee for one in self.mechanisms)
        return tuple(
            ReleasedStatistic(name=part.name, guarantee=cost)
            for part, cost in zip(self.parts, costs, strict=True)
        )

    @property
    def guarantee(self) -> Guarantee:
        """What all releases cost together."""
        if self.declared is not None:
            return self.declared
        first, *others = (one.guarantee for one in self.mechanisms)
        return sum(others, start=first)

    def additive(self, name: str) -> list[AdditiveMechanism]:
        """The noises of the parts of this name."""
        return [one for one in self._named(name) if isinstance(one, AdditiveMechanism)]

    def choices(self, name: str) -> list[ExponentialMechanism]:
        """The choices of the parts of this name."""
        return [one for one in self._named(name) if isinstance(one, ExponentialMechanism)]

    def _named(self, name: str) -> list[AdditiveMechanism | ExponentialMechanism]:
        pairs = zip(self.parts, self.mechanisms, strict=True)
        return [mechanism for part, mechanism in pairs if part.name == name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionFit:
    """A public result: how rows are mapped, and coefficients in mapped units."""

    map: RowMap
    theta: Floats
    notes: Mapping[str, float] = field(default_factory=dict)


class RegressionMethod(Protocol):
    """A way of fitting: what it will release, and how it fits."""

    @property
    def name(self) -> str:
        """What it is called."""

    def plan(self, task: RegressionTask, amount: QueryBudget) -> NoiseScales:
        """What is released, and the noise for it, before a row is read."""

    def fit(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RegressionFit:
        """Read the rows, through the noises only."""


@lru_cache(maxsize=64)
def spend(
    parts: tuple[FitStage, ...], amount: QueryBudget, *, relation: NeighboringRelation
) -> NoiseScales:
    """Mechanisms for all parts that cost the amount together."""
    # Theorem: the composition of all releases is within the amount under `relation`.
    # Proof: `QueryBudget.mechanisms`; later parts may depend on earlier ones, which composition
    #   allows.
    total = sum((part.share for part in parts), start=Fraction(0))
    found = []
    for one in mechanisms_within(
        amount,
        [part.sensitivity for part in parts],
        shares=[part.share / total for part in parts],
        relation=relation,
    ):
        if not isinstance(one, AdditiveMechanism | ExponentialMechanism):
            raise Unsupported("Only additive noise and choices are planned here.")
        found.append(one)
    return NoiseScales(parts=parts, mechanisms=tuple(found))


def gaussian_mu(amount: QueryBudget) -> float:
    """The mu of Gaussian differential privacy that costs about as much: for planning only."""
    if amount.rho is not None:
        return math.sqrt(2 * float(amount.rho))
    gaussian_budget(epsilon=amount.epsilon, delta=amount.delta, rho=None)
    return 1 / gaussian_sigma(float(amount.epsilon or 0), delta=float(amount.delta or 0))
