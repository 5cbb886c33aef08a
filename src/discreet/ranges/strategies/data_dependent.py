"""Strategies that adapt to the data, DAWA (F37) and MWEM (F38): their error is not known before.

DAWA first partitions the cells into buckets within which the counts look alike, then releases noisy
bucket totals, spread evenly. Published first stages leave single cells without noise and break
their epsilon; here every candidate has noise for one common sensitivity. MWEM applies
multiplicative weights to the ranges that were found to be most wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.selection import ExponentialMechanism, exponential_mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import QueryBudget
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import Domain, integers
from discreet.ranges.grid.domain import (
    Ends,
    GridDomain,
    GridWorkload,
    corners,
    listed_rectangles,
    signed_sums,
)
from discreet.ranges.release import NO_PRIOR_ERROR, DataDependentRelease
from discreet.ranges.strategies.base import (
    LARGEST_COUNT,
    Contribution,
    group_move,
    measurement_cost,
    read_cells,
)
from discreet.ranges.strategies.hierarchical_histogram import optimal_blocks
from discreet.ranges.workload import all_ranges

# ── DAWA ─────────────────────────────────────────────────────────────────────────────────────────


LONGEST = 1 << 10
"""Cells of the longest bucket that is tried."""
MOST_CELLS = 1 << 16
DELTA = 2
"""No deviation from the mean moves further when one row comes or goes."""
_FIRST = Fraction(1, 4)
_LARGEST_COST = 1 << 59


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSelection:
    """The first stage: a private choice of buckets."""

    size: int
    epsilon: Fraction
    penalty: Fraction
    """What a bucket costs besides its deviation: public, about the noise of its total."""
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        if check.count("size", self.size) > MOST_CELLS:
            raise InvalidArgument(f"size must be at most {MOST_CELLS} cells, got {self.size}.")
        check.positive("epsilon", self.epsilon)
        check.non_negative("penalty", self.penalty)
        check.count("rows", self.rows)
        central_relation(self.relation)

    @property
    def levels(self) -> int:
        """Lengths 1, 2, 4, ... of candidate buckets: so many."""
        return min(self.size, LONGEST).bit_length()

    @property
    def unit(self) -> int:
        """Costs are whole multiples of one over this: deviations are, for all lengths at once."""
        return 1 << (self.levels - 1)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of every candidate's cost, in units."""
        steps = self.rows * (2 if self.relation is NeighboringRelation.REPLACE_ONE else 1)
        return DiscreteLaplace(2 * DELTA * self.unit * steps / self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the choice costs."""
        # Theorem: the partition is epsilon-DP under `relation`.
        # Proof: let one row come or go in cell j. Fix an outcome, the bucket I of it that holds j,
        #   and the noise of all other candidates. Other partitions with I cost as much more as
        #   before: they share I, and no other interval of either holds j. A partition without I
        #   has exactly one interval J that holds j. So the outcome wins iff the noise of I is at
        #   most a threshold, which moves by at most the moves of the costs of I and of J, in all
        #   `2 DELTA`; ties go by a fixed order. The discrete Laplace distribution function at
        #   two integers that far apart has a ratio of at most `exp(2 DELTA / scale)`. Several
        #   rows, or a row replaced, are several steps.
        # Source: Li, Hay, Miklau 2014, with noise on all; docs/theory/grids.md.
        # Needs: noise on every candidate, single cells too.
        return Guarantee(events.PureEvent(self.epsilon), self.relation)

    def release(self, counts: Ints, *, rng: RandomSource | None = None) -> Ints:
        """The first cell of each bucket."""
        source = resolve_rng(rng)
        costs = self.costs(counts)
        flat = np.concatenate(costs)
        noisy = flat + self.noise.sample(len(flat), source)
        ends = np.cumsum([len(level) for level in costs])[:-1]
        return cheapest([level.tolist() for level in np.split(noisy, ends)])

    def costs(self, counts: Ints) -> list[Ints]:
        """For each length the costs of all intervals of that length, in units: private.

        Proof of the sensitivity: ``length * deviation`` is the sum of ``|length x_i - S|``. One
            row moves the mean by 1/length, so the deviation by at most
            ``(1 - 1/length) + (length - 1)/length < 2``. Bounding the cells moves nothing apart.
        """
        most = min(LARGEST_COUNT, _LARGEST_COST // (4 * self.unit * self.unit))
        x = np.clip(np.asarray(counts, dtype=np.int64), 0, most)
        sums = np.concatenate([[0], np.cumsum(x)])
        penalty = round(self.penalty * self.unit)
        found = []
        for level in range(self.levels):
            length = 1 << level
            total = sums[length:] - sums[:-length]
            apart = np.zeros(len(total), dtype=np.int64)
            for shift in range(length):
                apart += np.abs(length * x[shift : shift + len(total)] - total)
            found.append(apart * (self.unit // length) + penalty)
        return found


def cheapest(costs: list[list[int]]) -> Ints:
    """The first cells of the cheapest partition; of equal ones the one with shorter last buckets.

    ``costs[l][i]`` is that of the interval of ``2**l`` cells from i on. The order among equal
    partitions is the same for all data: lengths compared from the last bucket backwards.
    """
    size = len(costs[0])
    best = [0] * (size + 1)
    taken = [0] * (size + 1)
    for end in range(1, size + 1):
        lowest, chosen = best[end - 1] + costs[0][end - 1], 1
        for level in range(1, len(costs)):
            length = 1 << level
            if length > end:
                break
            cost = best[end - length] + costs[level][end - length]
            if cost < lowest:
                lowest, chosen = cost, length
        best[end], taken[end] = lowest, chosen
    starts, end = [], size
    while end:
        end -= taken[end]
        starts.append(end)
    return np.array(starts[::-1], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class DAWA:
    """Both stages, for ranges of one domain."""

    domain: Domain
    budget: QueryBudget
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    contribution: Contribution = field(default_factory=Contribution)

    def __post_init__(self) -> None:
        if self.budget.epsilon is None or self.budget.delta is not None:
            raise Unsupported("DAWA needs a pure budget: epsilon alone.")
        self.partition  # noqa: B018 - refuses what it cannot do, before the data

    @property
    def partition(self) -> BucketSelection:
        """The first stage, with a quarter of the budget."""
        epsilon = check.positive("epsilon", self.budget.epsilon)
        return BucketSelection(
            size=self.domain.size,
            epsilon=_FIRST * epsilon,
            penalty=1 / ((1 - _FIRST) * epsilon),
            relation=self.relation,
            rows=self.contribution.rows,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What a release costs: both stages composed, whatever the buckets are."""
        # Proof: given the buckets, which are public, every row counts in one bucket, so the second
        #   stage is a release of ranges over buckets as cells.
        first = self.partition.guarantee
        rest = check.positive("epsilon", self.budget.epsilon) * (1 - _FIRST)
        return Guarantee(events.compose([first.event, events.PureEvent(rest)]), self.relation)

    def release(
        self, counts: ArrayLike, *, rng: RandomSource | None = None
    ) -> DataDependentRelease:
        """Choose buckets, measure their totals, spread them evenly."""
        wanted = f"{self.domain.size} integers, one for each cell"
        cells = read_cells(counts, shape=(self.domain.size,), wanted=wanted)
        source = resolve_rng(rng)
        exact = np.maximum(cells, 0)
        starts = self.partition.release(exact, rng=source)
        lengths = np.diff(np.append(starts, len(exact)))
        totals = self._second(len(starts)).release(np.add.reduceat(exact, starts), rng=source)
        even: Floats = np.repeat(totals.cells / lengths, lengths)
        return DataDependentRelease(
            grid=GridDomain(domains=(self.domain,)),
            cells=even,
            method="DAWA",
            guarantee=self.guarantee,
            private=source.private,
        )

    def describe(self) -> str:
        """In a few words."""
        return f"DAWA ({NO_PRIOR_ERROR})"

    def _second(self, buckets: int) -> RangeDesign:
        rest = QueryBudget(epsilon=check.positive("epsilon", self.budget.epsilon) * (1 - _FIRST))
        units = Contribution(rows=self.contribution.rows)  # a bucket has many cells
        blocks = optimal_blocks(
            buckets,
            workload=all_ranges(),
            price=measurement_cost(rest, family="laplace"),
            relation=self.relation,
            contribution=units,
        )
        return RangeDesign(
            domain=integers(0, buckets - 1),
            strategy=blocks,
            budget=rest,
            family="laplace",
            relation=self.relation,
            contribution=units,
        )


# ── MWEM ─────────────────────────────────────────────────────────────────────────────────────────


_ROUNDS = 10
_REPLAYS = 10
_LARGEST_TOTAL = 1 << 50
"""Below this, counts are exact in doubles."""


@dataclass(frozen=True, kw_only=True)
class MWEM:
    """Rounds of choosing the worst rectangle of a workload, measuring it, and reweighting."""

    grid: GridDomain
    workload: GridWorkload
    budget: QueryBudget
    rounds: int = _ROUNDS
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    contribution: Contribution = field(default_factory=Contribution)

    def __post_init__(self) -> None:
        check.count("rounds", self.rounds)
        if self.budget.epsilon is None or self.budget.delta is not None:
            raise Unsupported("MWEM needs a pure budget: epsilon alone.")
        central_relation(self.relation)
        self._rectangles()  # refuses too many, before the data

    @property
    def each(self) -> Fraction:
        """What every choice and every measurement costs; the total is one measurement more."""
        return check.positive("epsilon", self.budget.epsilon) / (2 * self.rounds + 1)

    @property
    def choosing(self) -> ExponentialMechanism:
        """Picks a rectangle whose estimate is far off."""
        return exponential_mechanism(
            sensitivity=self._moved, epsilon=self.each, relation=self.relation
        )

    @property
    def measuring(self) -> AdditiveMechanism:
        """Counts one rectangle with noise."""
        return laplace(
            sensitivity=self._moved, epsilon=self.each, domain="integers", relation=self.relation
        )

    @property
    def guarantee(self) -> Guarantee:
        """What a release costs."""
        # Theorem: epsilon-DP under `relation`.
        # Proof: the count of a rectangle moves by at most `group_move` of one entry; so does its
        #   distance from an estimate, rounded to an integer, that depends on earlier releases
        #   only. One measurement of the total, and in each round a choice and a measurement, are
        #   composed adaptively; all the rest is post-processing.
        # Source: Hardt, Ligett, McSherry 2012. F38.
        # Needs: units keep to the contribution.
        both = [self.choosing.guarantee.event, self.measuring.guarantee.event]
        parts = [self.measuring.guarantee.event, *both * self.rounds]
        return Guarantee(events.compose(parts), self.relation)

    def release(
        self, counts: ArrayLike, *, rng: RandomSource | None = None
    ) -> DataDependentRelease:
        """Estimates of all cells, which sum to the noisy total."""
        wanted = f"an array of {self.grid.shape} integers"
        cells = read_cells(counts, shape=self.grid.shape, wanted=wanted)
        source = resolve_rng(rng)
        most = _LARGEST_TOTAL // self.grid.size
        ends = self._rectangles()
        table = corners(np.clip(cells, 0, most).astype(np.float64))
        exact: Ints = signed_sums(table, ends).astype(np.int64)
        whole = int(table[(-1,) * table.ndim])
        total = max(1.0, float(self.measuring.release(whole, rng=source)))
        found = np.full(self.grid.shape, total / self.grid.size)
        seen: list[tuple[tuple[slice, ...], float]] = []
        average = np.zeros(self.grid.shape)
        for _ in range(self.rounds):
            guess = np.rint(signed_sums(corners(found), ends)).astype(np.int64)
            worst = self.choosing.release(np.abs(exact - guess), rng=source)
            value = float(self.measuring.release(int(exact[worst]), rng=source))
            box = tuple(slice(int(a[worst]), int(b[worst]) + 1) for a, b in ends)
            seen.append((box, value))
            found = _reweighted(found, seen, total)
            average += found / self.rounds
        return DataDependentRelease(
            grid=self.grid,
            cells=average,
            method=f"MWEM, {self.rounds} rounds",
            guarantee=self.guarantee,
            private=source.private,
        )

    def describe(self) -> str:
        """In a few words."""
        return f"MWEM, {self.rounds} rounds ({NO_PRIOR_ERROR})"

    @property
    def _moved(self) -> int:
        return group_move(self.contribution, self.relation, entries=1, cells=self.grid.size).l1

    def _rectangles(self) -> Ends:
        ends, _ = listed_rectangles(self.workload, self.grid.shape)
        if not ends[0][0].size:
            raise InvalidArgument("the workload must have at least one rectangle.")
        return ends


def _reweighted(cells: Floats, seen: list[tuple[tuple[slice, ...], float]], total: float) -> Floats:
    """Multiplicative updates with all that was measured, several times over."""
    found = cells.copy()
    for _ in range(_REPLAYS):
        for box, value in seen:
            # Bounded, so that one wild measurement does not overflow: post-processing anyway.
            step = np.clip((value - found[box].sum()) / (2 * total), -20.0, 20.0)
            found[box] *= np.exp(step)
            found *= total / found.sum()
    return found
