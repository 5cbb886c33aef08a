"""The planner: the error of every strategy in closed form, before any budget is spent (F59).

Mechanisms whose error depends on the data are offered on request only, without a rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.core.tabular import Record, Tabular
from discreet.noise.distribution import Floats, Ints
from discreet.query.budget import QueryBudget
from discreet.ranges._strategy_design import RangeDesign, StrategyDesign
from discreet.ranges.domain import Domain
from discreet.ranges.grid.domain import GridDomain, GridWorkload, product
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies.base import (
    Contribution,
    MeasurementCost,
    Strategy,
    families,
    measurement_cost,
)
from discreet.ranges.strategies.data_dependent import DAWA, MOST_CELLS, MWEM
from discreet.ranges.strategies.haar import haar, optimal_haar
from discreet.ranges.strategies.hierarchical_histogram import flat, optimal_blocks, tree
from discreet.ranges.strategies.square_root import SquareRootStrategy
from discreet.ranges.strategies.weighted_sums import LARGEST, optimal_sums
from discreet.ranges.workload import LengthWorkload, ListedWorkload, Workload, listed

# ── Data-dependent mechanisms ────────────────────────────────────────────────────────────────────


Aware: TypeAlias = DAWA | MWEM


def data_aware(
    grid: GridDomain,
    workload: GridWorkload,
    budget: QueryBudget,
    *,
    relation: NeighboringRelation,
    contribution: Contribution,
) -> tuple[Aware, ...]:
    """What fits the grid: DAWA on one axis, MWEM if its workload can be listed."""
    if budget.epsilon is None or budget.delta is not None:
        raise InvalidArgument("data_aware needs a pure budget: epsilon alone.")
    found: list[Aware] = []
    if len(grid.domains) == 1 and grid.size <= MOST_CELLS:
        found.append(
            DAWA(
                domain=grid.domains[0],
                budget=budget,
                relation=relation,
                contribution=contribution,
            )
        )
    with suppress(InvalidArgument):  # too many rectangles to choose from
        found.append(
            MWEM(
                grid=grid,
                workload=workload,
                budget=budget,
                relation=relation,
                contribution=contribution,
            )
        )
    return tuple(found)


def listed_names(offers: tuple[Aware, ...]) -> list[str]:
    """One line for each, below a table."""
    return [f"{offer.describe()}, laplace noise" for offer in offers]


# ── Candidates ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class StrategyCandidate:
    """A structure with its noise, and its error over the workload."""

    design: StrategyDesign
    noise: Floats
    mean: float
    """Mean variance over the workload."""

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.mean)

    @property
    def name(self) -> str:
        """Structure and noise in a few words."""
        return self.design.describe()


def table(lines: list[list[str]], *, words: int = 1) -> list[str]:
    """Columns below each other: so many of words, to the left, then numbers, to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            [
                *map(str.ljust, line[:words], widths[:words]),
                *map(str.rjust, line[words:], widths[words:]),
            ]
        )
        for line in lines
    ]


# ── Plans ────────────────────────────────────────────────────────────────────────────────────────


BRANCHINGS = (2, 4, 8, 16, 32)
_SMALL_GAUSSIAN = 1024
"""Up to this size matrices are optimized without being asked for: it takes seconds."""
_SMALL_ROOTS = 1 << 16
_TRIED = 1 << 14
_TRIED_ROOTS = 1 << 20
"""Ranges among which the largest error is looked for; for square roots, ranges times cells."""


@dataclass(frozen=True, kw_only=True)
class RangeCandidate(StrategyCandidate):
    """A structure on a domain."""

    design: RangeDesign
    largest: float
    """The largest variance among many ranges of the workload."""
    widest: tuple[int, int]
    """The range that has it."""

    def by_length(self, lengths: Ints) -> Floats:
        """Root mean squared error over all ranges of each length: the data of a figure."""
        found = self.design.strategy.by_length(np.asarray(lengths), self.noise)
        return np.sqrt(np.maximum(found, 0.0))

    def width(self, *, confidence: float) -> float:
        """The half-width of the interval of the widest range."""
        return self.design.width(*self.widest, confidence=confidence)


@dataclass(frozen=True, kw_only=True, repr=False)
class RangePlan(Tabular):
    """Compare strategies for range queries, best first. Made by `plan_ranges`.

    Attributes:
        domain: Cells that are counted.
        workload: Ranges that matter.
        budget: Privacy budget of a release.
        candidates: Every strategy with its error, best first.
        expected_rows: Number of rows that errors are shown as a share of.
        aware: Mechanisms whose error depends on the data, without a rank.

    Examples:
        >>> from discreet import ranges
        >>> plan = ranges.plan_ranges(4, "points", epsilon=1)
        >>> plan.best.guarantee.epsilon()
        1.0
    """

    domain: Domain
    workload: Workload
    budget: QueryBudget
    candidates: tuple[RangeCandidate, ...]
    expected_rows: int | None = None
    aware: tuple[Aware, ...] = ()
    """On request: mechanisms whose error depends on the data, unranked."""

    @property
    def best(self) -> RangeDesign:
        """The design with the smallest mean squared error over the workload."""
        return self.candidates[0].design

    def rows(self) -> list[Record]:
        """List each candidate with its standard errors, best first.

        Returns:
            One record for each: `strategy`, `rmse` and `largest`.

        Examples:
            >>> errors = [row["rmse"] for row in plan.rows()]
            >>> errors == sorted(errors)
            True
        """
        return [
            {"strategy": one.name, "rmse": one.rmse, "largest": math.sqrt(one.largest)}
            for one in self.candidates
        ]

    def curves(self, lengths: Ints | None = None) -> tuple[Ints, dict[str, Floats]]:
        """Return the error against the length of a range, for every strategy.

        Args:
            lengths: Numbers of cells of a range. If None, a selection.

        Returns:
            The lengths, and the standard errors of each strategy by name.

        Examples:
            >>> lengths, errors = plan.curves()
            >>> lengths.tolist(), sorted(errors) == sorted(row["strategy"] for row in plan.rows())
            ([1, 2, 3, 4], True)
        """
        given = lengths_of(self.domain.size) if lengths is None else np.asarray(lengths)
        return given, {one.name: one.by_length(given) for one in self.candidates}

    def __str__(self) -> str:
        size = self.domain.size
        marks = np.array(sorted({1, max(1, size // 10), max(1, size // 2)}))
        head = ["structure", "RMSE", "largest", *(f"length {mark}" for mark in marks), "to best"]
        if self.expected_rows:
            head.append("of all rows")
        lines = [head]
        best = max(self.candidates[0].rmse, np.finfo(float).tiny)
        for one in self.candidates:
            line = [one.name, short(one.rmse), short(math.sqrt(one.largest))]
            line += [short(error) for error in one.by_length(marks)]
            line.append(short(one.rmse / best) if one.rmse > 0 else "1")
            if self.expected_rows:
                line.append(percent(one.rmse / self.expected_rows))
            lines.append(line)
        title = f"Ranges of {self.domain}, {self.workload}, {self.budget}: standard errors"
        return "\n".join([title, *table(lines), *listed_names(self.aware)])

    __repr__ = __str__


def plan_ranges(
    domain: Domain,
    workload: Workload,
    budget: QueryBudget,
    *,
    expected_rows: int | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    contribution: Contribution | None = None,
    thorough: bool = False,
    data_aware: bool = False,
) -> RangePlan:
    """Rank every structure by its mean squared error over a workload. Reads no data.

    ``expected_rows`` is how many there are. Under REPLACE_ONE, with one row of each unit, it is
    public and
    makes answers better; otherwise it is a guess that only serves to show relative errors.
    ``thorough`` also optimizes matrices on domains where that takes minutes. ``data_aware`` also
    offers DAWA and MWEM, whose error nobody can state beforehand: they are not ranked.
    """
    # Theorem: the stated mean variances are those of the releases: exactly for Laplace noise and
    #   for rho; for (epsilon, delta) up to the calibration, within one percent; for square roots on
    #   more than 1024 cells up to interpolation, within one percent.
    # Proof: closed forms of each structure, docs/theory/ranges.md.
    # Source: F59.
    # Needs: a declared domain; ADD_REMOVE or REPLACE_ONE.
    central_relation(relation)
    check.flag("thorough", thorough)
    check.flag("data_aware", data_aware)
    if expected_rows is not None:
        check.count("expected_rows", expected_rows)
    units = Contribution() if contribution is None else contribution
    if isinstance(workload, ListedWorkload):
        workload.arrays(domain.size)  # outside of the domain: refused before the work
    public = (
        expected_rows if relation is NeighboringRelation.REPLACE_ONE and units.rows == 1 else None
    )
    tried = tried_ranges(workload, domain.size)
    found = []
    for family in families(budget):
        cost = measurement_cost(budget, family=family)
        made = _strategies(
            domain.size,
            workload=workload,
            price=cost,
            relation=relation,
            contribution=units,
            total=public,
            thorough=thorough,
        )
        for strategy in dict.fromkeys(made):
            design = RangeDesign(
                domain=domain,
                strategy=strategy,
                budget=budget,
                family=family,
                relation=relation,
                contribution=units,
            )
            found.append(_candidate(design, cost, workload, tried))
    if not found:
        raise InvalidArgument("there is nothing to measure: a single cell with a public total.")
    found.sort(key=lambda one: one.mean)
    return RangePlan(
        domain=domain,
        workload=workload,
        budget=budget,
        candidates=tuple(found),
        expected_rows=expected_rows,
        aware=_aware(domain, workload, budget, relation, units) if data_aware else (),
    )


def lengths_of(size: int) -> Ints:
    """Lengths for a figure, dense where they are short."""
    return np.unique(np.rint(np.geomspace(1, size, 40)).astype(np.int64))


def _aware(
    domain: Domain,
    workload: Workload,
    budget: QueryBudget,
    relation: NeighboringRelation,
    contribution: Contribution,
) -> tuple[Aware, ...]:
    grid = GridDomain(domains=(domain,))
    return data_aware(grid, product(workload), budget, relation=relation, contribution=contribution)


def _candidate(
    design: RangeDesign, cost: MeasurementCost, workload: Workload, tried: tuple[Ints, Ints]
) -> RangeCandidate:
    strategy = design.strategy
    noise = cost.variances(strategy.shares, strategy.moves(design.contribution, design.relation))
    mean = strategy.mean_variance(workload, noise)
    last = len(tried[0]) - 1
    if isinstance(strategy, SquareRootStrategy) and strategy.size > _TRIED_ROOTS // 4:
        some = last - last // np.array([80, 26])  # long ones, in the middle
    else:
        few = _TRIED_ROOTS // strategy.size if isinstance(strategy, SquareRootStrategy) else _TRIED
        some = np.unique(np.linspace(0, last, few).astype(np.int64))
    found = strategy.variance(tried[0][some], tried[1][some], noise)
    place = some[int(np.argmax(found))]
    return RangeCandidate(
        design=design,
        noise=noise,
        mean=mean,
        largest=max(mean, float(found.max())),
        widest=(int(tried[0][place]), int(tried[1][place])),
    )


def _strategies(
    size: int,
    *,
    workload: Workload,
    price: MeasurementCost,
    relation: NeighboringRelation,
    contribution: Contribution,
    total: int | None,
    thorough: bool,
) -> Iterator[Strategy]:
    if size == 1:
        if total is None:
            yield flat(size)
        return
    yield flat(size, total=total)
    trees = {tree(size, branching=b, total=total) for b in BRANCHINGS if b < size}
    yield from sorted(trees, key=lambda one: one.sizes)
    optimal: tuple[Callable[..., Strategy], ...] = (optimal_blocks, optimal_haar)
    for best in optimal:
        yield best(
            size,
            workload=workload,
            price=price,
            relation=relation,
            contribution=contribution,
            total=total,
        )
    yield haar(size, total=total)
    if price.family == "gaussian":
        # The normalized root is the better one throughout; on large domains each takes seconds.
        both = (False, True) if thorough or size <= _SMALL_ROOTS else (True,)
        roots = (SquareRootStrategy(size=size, normalized=normalized) for normalized in both)
        yield from (root for root in roots if root.can_mean(workload))
        if size <= (dense.LARGEST_GAUSSIAN if thorough else _SMALL_GAUSSIAN):
            yield dense.optimal_gaussian(size, workload=workload)
    elif size <= LARGEST:
        yield optimal_sums(size, workload=workload)


def tried_ranges(workload: Workload, size: int) -> tuple[Ints, Ints]:
    """Ranges of a workload among which the largest error is looked for."""
    if size <= 256 or isinstance(workload, ListedWorkload):
        a, b, _ = listed(workload, size)
        return a, b
    lengths = lengths_of(size)
    if isinstance(workload, LengthWorkload):
        low, high = workload.bounds(size)
        lengths = np.unique(np.clip(lengths, low, high))
        pairs = [
            np.stack([starts, starts + r - 1])
            for r in lengths
            for starts in [np.unique(np.linspace(0, size - r, 400).astype(np.int64))]
        ]
        a, b = np.concatenate(pairs, axis=1)
        return a, b
    stops = np.unique(np.linspace(0, size - 1, 16000).astype(np.int64))
    return np.zeros_like(stops), stops
