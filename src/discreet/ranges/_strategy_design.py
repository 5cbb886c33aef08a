"""A strategy with its noise: its cost and its error, known before a row is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core.errors import OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import Noise, QueryBudget
from discreet.ranges import _noise_tails as tails
from discreet.ranges._measurements import half_widths
from discreet.ranges._noise_tails import NoiseDistribution
from discreet.ranges.domain import Domain
from discreet.ranges.grid.box_strategy import BoxStrategy
from discreet.ranges.release import RangeRelease
from discreet.ranges.strategies.base import (
    Contribution,
    Family,
    Strategy,
    family_budget,
    read_cells,
)
from discreet.ranges.workload import Workload


@dataclass(frozen=True, kw_only=True)
class StrategyDesign:
    """What will be measured, with which noise, for which guarantee. Subclasses say of what."""

    strategy: Strategy | BoxStrategy
    budget: QueryBudget
    family: Family
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    contribution: Contribution = field(default_factory=Contribution)

    @cached_property
    def mechanisms(self) -> tuple[Noise, ...]:
        """One for each group of measured integers; together they cost the budget."""
        return family_budget(self.budget, family=self.family).mechanisms(
            self.strategy.moves(self.contribution, self.relation),
            shares=self.strategy.shares,
            relation=self.relation,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What a release costs."""
        # Theorem: the release of all groups has this guarantee under `relation`.
        # Proof: each group is a vector of integers whose distance on neighbors the strategy bounds
        #   (`moves`), released by a mechanism for that distance; groups compose. Everything after
        #   is post-processing.
        # Source: docs/theory/ranges.md, docs/theory/grids.md.
        # Needs: the counts are of the declared cells, and units keep to the contribution.
        each = [mechanism.guarantee.event for mechanism in self.mechanisms]
        return Guarantee(events.compose(each), self.relation)

    @cached_property
    def laws(self) -> tuple[NoiseDistribution, ...]:
        """The noise of each group."""
        return tuple(noise_distribution(mechanism) for mechanism in self.mechanisms)

    @cached_property
    def noise(self) -> Floats:
        """The exact variance of the noise of each group."""
        return tails.variances(self.laws)

    def measured(self, cells: Ints, rng: RandomSource | None) -> dict[str, Any]:
        """Measure the cells with noise, and return the fields of a release.

        Args:
            cells: Exact counts of the cells.
            rng: Random source, by default the operating system's.

        Returns:
            Noisy integers, with all that is known of them.

        Privacy:
            The result satisfies `guarantee`. No account is charged.

        Examples:
            >>> from discreet import ranges
            >>> design = ranges.plan_ranges(4, "points", epsilon=1).best
            >>> import discreet
            >>> import numpy as np
            >>> sorted(design.measured(np.array([5, 3, 8, 1]), discreet.seeded_rng(1)))
            ['contribution', 'guarantee', 'laws', 'measured', 'private', 'strategy']
        """
        source = resolve_rng(rng)
        # A cell below zero is none: bounding it moves no pair of data sets apart.
        exact = self.strategy.measure(np.clip(cells, 0, np.iinfo(np.int64).max).astype(np.int64))
        noisy = [
            np.asarray(mechanism.release(group, rng=source), dtype=np.int64)
            for mechanism, group in zip(self.mechanisms, exact, strict=True)
        ]
        return {
            "strategy": self.strategy,
            "laws": self.laws,
            "measured": tuple(noisy),
            "guarantee": self.guarantee,
            "contribution": self.contribution,
            "private": source.private,
        }

    def describe(self) -> str:
        """Describe the strategy and its noise in a few words.

        Returns:
            Such as "flat, laplace noise".

        Examples:
            >>> from discreet import ranges
            >>> ranges.plan_ranges(4, "points", epsilon=1).best.describe()
            'flat, laplace noise'
        """
        return f"{self.strategy.describe()}, {self.family} noise"


@dataclass(frozen=True, kw_only=True)
class RangeDesign(StrategyDesign):
    """What will be measured on a domain, with which noise, for which guarantee.

    Attributes:
        domain: Cells that are counted.
        strategy: What is measured.
        budget: Privacy budget of a release.
        family: Noise, `"laplace"` or `"gaussian"`.
        relation: Neighboring relation of the guarantee.
        contribution: What one privacy unit can contribute.

    Examples:
        >>> from discreet import ranges
        >>> design = ranges.plan_ranges(4, "points", epsilon=1).best
        >>> design.guarantee.epsilon()
        1.0
    """

    domain: Domain
    strategy: Strategy

    def __post_init__(self) -> None:
        if self.strategy.size != self.domain.size:
            raise OutOfDomain(
                f"the strategy is for {self.strategy.size} cells, the domain has "
                f"{self.domain.size}."
            )

    def variance(self, a: Ints, b: Ints) -> Floats:
        """Return the exact variance of the answers to ranges of cells.

        Args:
            a: First cell of each range, counted from 0.
            b: Last cell of each range.

        Returns:
            One variance for each range.

        Examples:
            >>> design.variance([0, 1], [3, 1]).shape
            (2,)
        """
        return self.strategy.variance(np.asarray(a), np.asarray(b), self.noise)

    def mean_variance(self, workload: Workload) -> float:
        """Return the mean variance over a workload.

        Args:
            workload: Ranges over which the variance is averaged.

        Returns:
            The mean variance.

        Examples:
            >>> design.mean_variance(ranges.workload.points()) > 0
            True
        """
        return self.strategy.mean_variance(workload, self.noise)

    def width(self, a: int, b: int, *, confidence: float) -> float:
        """Return half the width of the interval of a range of cells.

        Args:
            a: First cell, counted from 0.
            b: Last cell.
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Half of the width.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> design.width(0, 1, confidence=0.95) < design.width(0, 1, confidence=0.99)
            True
        """
        tail = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        return float(half_widths(self.strategy, self.laws, np.array(a), np.array(b), tail=tail))

    def release(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> RangeRelease:
        """Measure counts with noise.

        Args:
            counts: Exact count of each cell. Private.
            rng: Random source. By default the operating system's; pass another one in tests only.

        Returns:
            A release that answers every range.

        Raises:
            OutOfDomain: `counts` does not have one number for each cell.

        Privacy:
            The release has the `guarantee` of this design. Nothing is charged: charge an account
            before you publish, or use `Table.ranges`.

        Examples:
            >>> len(design.release([5, 3, 8, 1]).rows())
            4
        """
        wanted = f"{self.domain.size} integers, one for each cell of {self.domain}"
        cells = read_cells(counts, shape=(self.domain.size,), wanted=wanted)
        return RangeRelease(domain=self.domain, **self.measured(cells, rng))

    def __str__(self) -> str:
        return f"{self.describe()} on {self.domain} ({self.budget}, {self.relation.value})"


def noise_distribution(mechanism: Noise) -> NoiseDistribution:
    """The noise of a mechanism on counts."""
    lattice = mechanism.integers if isinstance(mechanism, AdditiveMechanism) else None
    if lattice is None or not isinstance(lattice.noise, DiscreteLaplace | DiscreteGaussian):
        raise AssertionError  # for sums of counts, budgets make additive noise on integers
    return lattice.noise
