"""What can be asked of a table about ranges: all of one column, or rectangles of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, cast

from discreet.core import check
from discreet.core.exact import Number
from discreet.data.expression import Expression
from discreet.data.plan import Limits
from discreet.noise.bits import system
from discreet.queries.ask import Value
from discreet.queries.budget import Budget, budget
from discreet.queries.ranges.answers import LEVEL
from discreet.queries.ranges.descent import Descent, descent, planned_descent
from discreet.queries.ranges.grid_plan import GridPlan
from discreet.queries.ranges.grid_question import AskedGrid, planned_grid, rectangles
from discreet.queries.ranges.plan import RangePlan
from discreet.queries.ranges.question import Asked, ranges
from discreet.queries.ranges.question import planned as planned_ranges
from discreet.queries.ranges.target import range_amount_for
from discreet.queries.targets import Currency
from discreet.tables.descent import FineQuantiles, descend
from discreet.tables.opened import Amount, Opened, amount_of
from discreet.tables.ranges import AnyRanges, ChargedGrid, ChargedRanges
from discreet.tables.release import Release
from discreet.tables.work import Work, carry_out


class Own(TypedDict, total=False):
    """Limits for one question, in place of the table's."""

    rows_per_unit: int
    groups_per_unit: int
    rows_per_unit_and_group: int


class Priced(Amount, Own, total=False):
    """What ranges may cost, and limits of their own."""


def split(given: Priced) -> tuple[Limits, Budget]:
    """The limits, and the amount."""
    check.known(given, Priced.__annotations__)
    rest: dict[str, Any] = dict(given)
    own = {name: rest.pop(name) for name in Own.__annotations__ if name in rest}
    return Limits(**own), budget(**rest)


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
        **more: Unpack[Priced],
    ) -> ChargedRanges:
        """Answers to every range of a column, each with its exact error, for one price.

        Whole numbers, days and categories are counted value by value; real numbers are cut into
        ``bins`` or at ``edges``. ``workload`` says which ranges matter: "all", "points", "short",
        "long", "prefixes", or pairs of labels. `plan_ranges` shows what is chosen, and why.

        ``rows_per_unit``, ``groups_per_unit`` (a cell is a group) and ``rows_per_unit_and_group``
        are limits for this question alone, in place of the table's.
        """
        own, amount = split(more)
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where, limits=own)
        found = planned_ranges(query, setting=self.setting, budget=amount)
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
        **more: Unpack[Priced],
    ) -> RangePlan:
        """Every structure for `ranges` with its exact error, best first; nothing is read or spent.

        ``rows`` is a guess of how many there are, to show errors as a share of them.
        """
        own, amount = split(more)
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where, limits=own)
        return planned_ranges(query, setting=self.setting, budget=amount, rows=rows).ranked

    def amount_for_ranges(  # noqa: PLR0913 - each has a name, most a default
        self,
        value: Value,
        *,
        within: Number,
        workload: Asked = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        level: float = LEVEL,
        currency: Currency = "epsilon",
        delta: Number | None = None,
        **own: Unpack[Own],
    ) -> Amount:
        """The smallest amount at which every range of the workload is within a half-width.

        It goes where an amount is asked: ``table.ranges(value, **amount)``, with the same workload.
        Nothing is read or spent.
        """
        limits = Limits(**own)
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where, limits=limits)
        found = range_amount_for(
            query,
            setting=self.setting,
            within=within,
            level=level,
            currency=currency,
            delta=delta,
        )
        return amount_of(found)

    def fine_quantiles(
        self,
        value: Value,
        levels: Iterable[Number],
        *,
        where: Expression | None = None,
        **more: Unpack[Priced],
    ) -> FineQuantiles:
        """Quantiles of numbers or dates with up to 2**63 values, exact to the last of them.

        Unlike `quantiles` there are no bins: the data are read a few times, each time closer to the
        quantiles. All answers share one budget, and their ranks one bound that is known before.
        """
        found = self.plan_fine_quantiles(value, levels, where=where, **more)
        return descend(self, found, bits=system())

    def plan_fine_quantiles(
        self,
        value: Value,
        levels: Iterable[Number],
        *,
        where: Expression | None = None,
        **more: Unpack[Priced],
    ) -> Descent:
        """How `fine_quantiles` goes: its ``rank_width`` in rows; nothing is read or spent."""
        own, amount = split(more)
        query = descent(value, levels, where=where, limits=own)
        return planned_descent(query, setting=self.setting, budget=amount)

    def grid(
        self,
        values: Sequence[Value],
        *,
        workload: AskedGrid = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        **more: Unpack[Priced],
    ) -> ChargedGrid:
        """Answers to every rectangle of several columns, each with its exact error, for one price.

        ``bins`` cuts columns of numbers; ``workload`` is "all", "points" or "margins".
        """
        own, amount = split(more)
        query = rectangles(values, workload=workload, bins=bins, where=where, limits=own)
        found = planned_grid(query, setting=self.setting, budget=amount)
        return cast("ChargedGrid", self.run_all(Work(ranges=(found,)))[1][0])

    def plan_grid(
        self,
        values: Sequence[Value],
        *,
        workload: AskedGrid = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        rows: int | None = None,
        **more: Unpack[Priced],
    ) -> GridPlan:
        """Every structure for `grid` with its exact error, best first; nothing is read or spent."""
        own, amount = split(more)
        query = rectangles(values, workload=workload, bins=bins, where=where, limits=own)
        return planned_grid(query, setting=self.setting, budget=amount, rows=rows).ranked

    def run_all(
        self,
        work: Work,
        *,
        label: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[tuple[Release, ...], tuple[AnyRanges, ...]]:
        """Carry out questions and ranges that are planned: reserved together, or not at all."""
        return carry_out(self, work, label=label, bits=system(), progress=progress)
