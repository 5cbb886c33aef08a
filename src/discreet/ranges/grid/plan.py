"""The planner of grids: errors in closed form before any budget is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import _validate as check
from discreet.core.errors import OutOfDomain
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.core.tabular import Record, Tabular
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget
from discreet.ranges._strategy_design import StrategyDesign
from discreet.ranges.domain import Domain
from discreet.ranges.grid import _optimize as optimize
from discreet.ranges.grid.box_strategy import BoxStrategy
from discreet.ranges.grid.domain import Ends, GridDomain, GridWorkload, check_workload
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.plan import Aware, StrategyCandidate, listed_names, table
from discreet.ranges.plan import data_aware as aware
from discreet.ranges.strategies.base import (
    Contribution,
    MeasurementCost,
    families,
    measurement_cost,
    read_cells,
)


@dataclass(frozen=True, kw_only=True)
class GridDesign(StrategyDesign):
    """What will be measured on a grid, with which noise, for which guarantee.

    Attributes:
        grid: Cells that are counted.
        strategy: What is measured.
        budget: Privacy budget of a release.
        family: Noise, `"laplace"` or `"gaussian"`.
        relation: Neighboring relation of the guarantee.
        contribution: What one privacy unit can contribute.

    Examples:
        >>> from discreet import ranges
        >>> axes = [ranges.integers(0, 3), ranges.ordered(["a", "b"])]
        >>> plan = ranges.plan_grid(axes, "points", epsilon=1)
        >>> plan.best.guarantee.epsilon()
        1.0
    """

    grid: GridDomain
    strategy: BoxStrategy

    def __post_init__(self) -> None:
        if self.strategy.shape != self.grid.shape:
            raise OutOfDomain(
                f"the strategy is for {self.strategy.shape} cells, the grid has {self.grid.shape}."
            )

    def variance(self, ends: Ends) -> Floats:
        """Return the exact variance of the answers to rectangles of cells.

        Args:
            ends: First and last cell of each axis, counted from 0.

        Returns:
            One variance for each rectangle.

        Examples:
            >>> import numpy as np
            >>> whole = [(np.array([0]), np.array([3])), (np.array([0]), np.array([1]))]
            >>> plan.best.variance(whole).shape
            (1,)
        """
        return self.strategy.variance(ends, self.noise)

    def mean_variance(self, workload: GridWorkload) -> float:
        """Return the mean variance over a workload.

        Args:
            workload: Rectangles over which the variance is averaged.

        Returns:
            The mean variance.

        Examples:
            >>> plan.best.mean_variance(plan.workload) > 0
            True
        """
        return self.strategy.mean_variance(workload, self.noise)

    def release(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> GridRelease:
        """Measure counts with noise.

        Args:
            counts: Array of the exact count of each cell. Private.
            rng: Random source. By default the operating system's; pass another one in tests only.

        Returns:
            A release that answers every rectangle.

        Raises:
            OutOfDomain: `counts` does not have one number for each cell.

        Privacy:
            The release has the `guarantee` of this design. Nothing is charged: charge an account
            before you publish, or use `Table.ranges`.

        Examples:
            >>> len(plan.best.release([[1, 2], [3, 4], [5, 6], [7, 8]]).rows())
            8
        """
        wanted = f"an array of {self.grid.shape} integers, one for each cell"
        cells = read_cells(counts, shape=self.grid.shape, wanted=wanted)
        return GridRelease(grid=self.grid, **self.measured(cells, rng))

    def __str__(self) -> str:
        return f"{self.describe()} on {self.grid} ({self.budget}, {self.relation.value})"

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class GridCandidate(StrategyCandidate):
    """A structure on a grid."""

    design: GridDesign

    def std(self, ends: Ends) -> Floats:
        """Standard deviations of the answers to rectangles of cells, counted from zero."""
        return np.sqrt(self.design.strategy.variance(ends, self.noise))


@dataclass(frozen=True, kw_only=True, repr=False)
class GridPlan(Tabular):
    """Compare strategies for rectangles, best first. Made by `ranges.plan_grid`.

    Attributes:
        grid: Cells that are counted.
        workload: Rectangles that matter.
        budget: Privacy budget of a release.
        candidates: Every strategy with its error, best first.
        expected_rows: Number of rows that errors are shown as a share of.
        aware: On request: mechanisms whose error depends on the data, without a rank.

    Examples:
        >>> plan.grid.shape, plan.best == plan.candidates[0].design
        ((4, 2), True)
    """

    grid: GridDomain
    workload: GridWorkload
    budget: QueryBudget
    candidates: tuple[GridCandidate, ...]
    expected_rows: int | None = None
    aware: tuple[Aware, ...] = ()

    @property
    def best(self) -> GridDesign:
        """The design with the smallest mean squared error over the workload."""
        return self.candidates[0].design

    def rows(self) -> list[Record]:
        """List each candidate with its standard errors, best first.

        Returns:
            One record for each.

        Examples:
            >>> errors = [row["rmse"] for row in plan.rows()]
            >>> errors == sorted(errors)
            True
        """
        marks = ("one cell", "a quarter", "everything")
        return [
            {
                "strategy": one.name,
                "rmse": one.rmse,
                **dict(zip(marks, map(float, one.std(_shown(self.grid.shape))), strict=True)),
            }
            for one in self.candidates
        ]

    def __str__(self) -> str:
        head = ["structure", "RMSE", "one cell", "a quarter", "everything", "to best"]
        if self.expected_rows:
            head.append("of all rows")
        lines = [head]
        for one in self.candidates:
            line = [one.name, short(one.rmse)]
            line += [short(error) for error in one.std(_shown(self.grid.shape))]
            line.append(short(one.rmse / self.candidates[0].rmse))
            if self.expected_rows:
                line.append(percent(one.rmse / self.expected_rows))
            lines.append(line)
        title = f"Grid of {self.grid}, {self.workload}, {self.budget}: standard errors"
        return "\n".join([title, *table(lines), *listed_names(self.aware)])

    __repr__ = __str__


def plan_grid(
    domains: Sequence[Domain],
    workload: GridWorkload,
    budget: QueryBudget,
    *,
    expected_rows: int | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    contribution: Contribution | None = None,
    data_aware: bool = False,
) -> GridPlan:
    """Rank structures by their mean squared error over rectangles of a grid. Reads no data.

    ``expected_rows`` is a guess at the number of rows that only serves to show relative errors.
    ``data_aware`` also offers MWEM, whose error nobody can state beforehand: it is not ranked.
    """
    # Theorem: the stated mean variances are those of the releases: exactly for Laplace noise and
    #   for rho; for (epsilon, delta) up to the calibration, within one percent.
    # Proof: closed forms, docs/theory/grids.md.
    # Source: F40, F59.
    # Needs: declared domains; ADD_REMOVE or REPLACE_ONE.
    central_relation(relation)
    if expected_rows is not None:
        check.count("expected_rows", expected_rows)
    units = Contribution() if contribution is None else contribution
    grid = GridDomain(domains=tuple(domains))
    check_workload(workload, grid.shape)
    best: dict[tuple[str, str], GridCandidate] = {}
    for family in families(budget):
        cost = measurement_cost(budget, family=family)
        for strategy in _strategies(
            grid.shape, workload, cost, relation=relation, contribution=units
        ):
            noise = cost.variances(strategy.shares, strategy.moves(units, relation))
            design = GridDesign(
                grid=grid,
                strategy=strategy,
                budget=budget,
                family=family,
                relation=relation,
                contribution=units,
            )
            mean = strategy.mean_variance(workload, noise)
            one = GridCandidate(design=design, noise=noise, mean=mean)
            kept = best.setdefault((strategy.name, family), one)
            if one.mean < kept.mean:
                best[strategy.name, family] = one
    # Of equal ones the simplest comes first: sorting keeps the order in which they were made.
    found = sorted(best.values(), key=lambda one: float(f"{one.mean:.9g}"))
    offers = (
        aware(grid, workload, budget, relation=relation, contribution=units) if data_aware else ()
    )
    return GridPlan(
        grid=grid,
        workload=workload,
        budget=budget,
        candidates=tuple(found),
        expected_rows=expected_rows,
        aware=offers,
    )


def _strategies(
    shape: tuple[int, ...],
    workload: GridWorkload,
    price: MeasurementCost,
    *,
    relation: NeighboringRelation,
    contribution: Contribution,
) -> Iterator[BoxStrategy]:
    """The simplest first; two ways to fill up the axes are tried."""
    flat = optimize.flat_grid(shape)
    yield flat
    yield optimize.quadtree(shape)
    axes = optimize.best_axes(
        shape, workload=workload, price=price, relation=relation, contribution=contribution
    )
    combined = optimize.product_boxes(axes)
    yield combined
    for sides in (None, [axis.sides for axis in axes]):
        lattice = optimize.lattice(
            shape,
            workload=workload,
            price=price,
            relation=relation,
            contribution=contribution,
            sides=sides,
        )
        tree = optimize.optimal_quadtree(lattice)
        yield tree
        starts = [flat, tree, *([combined] if sides else [])]
        yield optimize.optimal_boxes(lattice, starts)


def _shown(shape: tuple[int, ...]) -> Ends:
    """One cell, a rectangle with about half of each axis, and everything."""
    found = []
    for size in shape:
        quarter = size // 4
        last = np.array([quarter, quarter + max(1, size // 2) - 1, size - 1])
        found.append((np.array([quarter, quarter, 0]), last))
    return tuple(found)
