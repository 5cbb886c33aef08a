"""What can be asked of a table about ranges: all of one column, or rectangles of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack, cast

from discreet.core.exact import Number
from discreet.data.expression import Expression
from discreet.noise.bits import system
from discreet.queries.ask import Value
from discreet.queries.budget import budget
from discreet.queries.ranges.grid_plan import GridPlan
from discreet.queries.ranges.grid_question import AskedGrid, planned_grid, rectangles
from discreet.queries.ranges.plan import RangePlan
from discreet.queries.ranges.question import Asked, ranges
from discreet.queries.ranges.question import planned as planned_ranges
from discreet.table.opened import Amount, Opened
from discreet.table.ranges import AnyRanges, ChargedGrid, ChargedRanges
from discreet.table.release import Release
from discreet.table.work import Work, carry_out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranged(Opened):
    """A private table that is asked for ranges; see `Table`."""

    def ranges(
        self,
        value: Value,
        *,
        workload: Asked = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **amount: Unpack[Amount],
    ) -> ChargedRanges:
        """Answers to every range of a column, each with its exact error, for one price.

        Whole numbers, days and categories are counted value by value; real numbers are cut into
        ``bins`` or at ``edges``. ``workload`` says which ranges matter: "all", "points", "short",
        "long", "prefixes", or pairs of labels. `plan_ranges` shows what is chosen, and why.
        """
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where)
        found = planned_ranges(query, setting=self.setting, budget=budget(**amount))
        return cast("ChargedRanges", self.run_all(Work(ranges=(found,)))[1][0])

    def plan_ranges(
        self,
        value: Value,
        *,
        workload: Asked = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        rows: int | None = None,
        **amount: Unpack[Amount],
    ) -> RangePlan:
        """Every structure for `ranges` with its exact error, best first; nothing is read or spent.

        ``rows`` is a guess of how many there are, to show errors as a share of them.
        """
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where)
        amounts = budget(**amount)
        return planned_ranges(query, setting=self.setting, budget=amounts, rows=rows).ranked

    def grid(
        self,
        values: Sequence[Value],
        *,
        workload: AskedGrid = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        **amount: Unpack[Amount],
    ) -> ChargedGrid:
        """Answers to every rectangle of several columns, each with its exact error, for one price.

        ``bins`` cuts columns of numbers; ``workload`` is "all", "points" or "margins".
        """
        query = rectangles(values, workload=workload, bins=bins, where=where)
        found = planned_grid(query, setting=self.setting, budget=budget(**amount))
        return cast("ChargedGrid", self.run_all(Work(ranges=(found,)))[1][0])

    def plan_grid(
        self,
        values: Sequence[Value],
        *,
        workload: AskedGrid = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        rows: int | None = None,
        **amount: Unpack[Amount],
    ) -> GridPlan:
        """Every structure for `grid` with its exact error, best first; nothing is read or spent."""
        query = rectangles(values, workload=workload, bins=bins, where=where)
        amounts = budget(**amount)
        return planned_grid(query, setting=self.setting, budget=amounts, rows=rows).ranked

    def run_all(
        self,
        work: Work,
        *,
        label: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[tuple[Release, ...], tuple[AnyRanges, ...]]:
        """Carry out questions and ranges that are planned: reserved together, or not at all."""
        return carry_out(self, work, label=label, bits=system(), progress=progress)
