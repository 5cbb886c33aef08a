"""Rectangle queries on a table: several declared columns together, as a grid of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.query._measure import TableSpec
from discreet.query.budget import QueryBudget, budget
from discreet.query.builders import Value, as_expression, plainly
from discreet.ranges.grid import domain as grid
from discreet.ranges.grid.domain import GridWorkload
from discreet.ranges.grid.plan import GridPlan
from discreet.ranges.grid.plan import plan_grid as ranked
from discreet.ranges.strategies.base import Contribution
from discreet.ranges.table_query import (
    MOST_CELLS,
    Axis,
    CellQuery,
    PlannedCells,
    cells_of,
    contribution_of,
    count_cells,
    domain_of,
    ranges,
    with_limits,
)

WORKLOADS: Mapping[str, Callable[[], GridWorkload]] = {
    "all": grid.all_rectangles,
    "points": grid.points,
    "marginals": grid.marginals,
}
GridWorkloadLike: TypeAlias = str | GridWorkload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridQuery(CellQuery):
    """A question about all rectangles of several columns; made by `rectangles`."""

    values: Mapping[str, Expression]
    workload: GridWorkloadLike = "all"
    bins: Mapping[str, int]

    @property
    def columns(self) -> str:
        """The columns in words."""
        return " by ".join(self.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedGrid(PlannedCells):
    """Planned rectangles of several columns."""

    query: GridQuery
    ranked: GridPlan


def rectangles(
    values: Sequence[Value],
    *,
    workload: GridWorkloadLike = "all",
    bins: Mapping[str, int] | None = None,
    where: Expression | None = None,
    name: str = "",
    limits: ContributionLimits | None = None,
) -> GridQuery:
    """All rectangles of several columns: a range of each of them at once.

    ``bins`` says into how many parts of equal width a column of numbers is cut. ``workload`` is
    "all", "points" (single cells) or "marginals". ``limits`` are the question's own.
    """
    made = [as_expression("values", value) for value in values]
    found = {plainly(one): one for one in made}
    if isinstance(values, str) or len(found) != len(made) or len(made) < 2:
        raise InvalidArgument("Give at least two different columns.")
    cut = dict(bins or {})
    if unknown := sorted(set(cut) - set(found)):
        raise InvalidArgument(f"bins names {unknown}; the columns are {sorted(found)}.")
    checked = ranges(made[0], where=where, name=name, limits=limits)
    return GridQuery(
        values=found,
        workload=workload,
        bins=cut,
        where=checked.where,
        name=checked.name,
        limits=checked.limits,
    )


def plan_grid_query(
    query: GridQuery, *, setting: TableSpec, budget: QueryBudget, expected_rows: int | None = None
) -> PlannedGrid:
    """Cells, sensitivity and noise from public facts; `expected_rows` only scales what is shown."""
    # Theorem: as for `planned`, with the cells of the grid as groups.
    # Source: docs/theory/data.md, docs/theory/grids.md.
    # Needs: nothing of the data.
    axes = {
        name: cells_of(ranges(value, bins=query.bins.get(name)), setting.schema)
        for name, value in query.values.items()
    }
    domains = [domain for _, domain in axes.values()]
    size = grid.GridDomain(domains=tuple(domains)).size
    if size > MOST_CELLS:
        raise InvalidArgument(f"the grid has {size} cells, more than 10**7: use bins=.")
    by = {name: cell for name, (cell, _) in axes.items()}
    counted = count_cells(by, where=query.where, setting=with_limits(setting, query.limits))
    found = ranked(
        domains,
        _workload(query.workload),
        budget,
        relation=setting.relation,
        contribution=contribution_of(counted),
    )
    shown = None if expected_rows is None else check.count("expected_rows", expected_rows)
    return PlannedGrid(query=query, counted=counted, ranked=replace(found, expected_rows=shown))


def plan_grid(  # noqa: PLR0913 - each has a name, most a default
    domains: Sequence[Axis],
    workload: GridWorkloadLike = "all",
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    expected_rows: int | None = None,
    max_rows_per_unit: int = 1,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    data_aware: bool = False,
) -> GridPlan:
    """Compare the strategies for counting rectangles by their exact error.

    Nothing is read and nothing is charged.

    Args:
        domains: For each axis a declared column such as `discreet.integer(0, 120)`, a domain such
            as `ranges.integers(0, 120)`, or a number of cells.
        workload: Rectangles that matter: "all", "points", "marginals", or a workload of
            `ranges.grid`.
        epsilon: Privacy loss to plan for, as epsilon.
        delta: Probability parameter of (epsilon, delta)-DP. With it, the noise is Gaussian noise.
        rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
        expected_rows: Guess of the number of rows, to show errors as a share of it.
        max_rows_per_unit: Contribution limit: number of rows of one privacy unit that are used.
        relation: Neighboring relation of the guarantee, such as `NeighboringRelation.ADD_REMOVE`.
        data_aware: Whether a mechanism is also offered whose error depends on the data. It is
            listed without a rank.

    Returns:
        A plan: every strategy with its error. `plan.best` is the design with the smallest error.

    Raises:
        InvalidArgument: An argument is not valid, or the budget is not stated in one way.

    Privacy:
        The plan releases nothing. A release of its design has the stated privacy loss for one
        privacy unit with at most `max_rows_per_unit` rows.

    Examples:
        >>> from discreet import ranges
        >>> plan = ranges.plan_grid([4, 2], "points", epsilon=1)
        >>> plan.best.guarantee.epsilon()
        1.0

    See Also:
        `Table.plan_ranges`.
    """
    return ranked(
        [domain_of(domain) for domain in check.as_tuple("domains", domains)],
        _workload(workload),
        budget(epsilon=epsilon, delta=delta, rho=rho),
        expected_rows=expected_rows,
        relation=relation,
        contribution=Contribution(rows=max_rows_per_unit),
        data_aware=check.flag("data_aware", data_aware),
    )


def _workload(asked: GridWorkloadLike) -> GridWorkload:
    if isinstance(asked, GridWorkload):
        return asked
    word: object = asked
    if not isinstance(word, str) or word not in WORKLOADS:
        known = ", ".join(WORKLOADS)
        raise InvalidArgument(
            f"workload of a grid must be one of {known}, or made by ranges.grid; got {asked!r}."
        )
    return WORKLOADS[asked]()
