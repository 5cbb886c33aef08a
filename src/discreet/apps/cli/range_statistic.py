"""A statistic of kind "ranges" in a release file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.data.expression import Expression
from discreet.queries.budget import Budget, budget
from discreet.queries.passes import Setting
from discreet.queries.ranges.grid_question import GridQuery, planned_grid, rectangles
from discreet.queries.ranges.question import RangeQuery, planned, ranges
from discreet.table.ranges import AnyPlanned

_AMOUNTS = ("epsilon", "delta", "rho")
_ASKED = ("workload", "bins", "edges", "name")
KNOWN = ("kind", "of", "where", "rows", *_ASKED, *_AMOUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStatistic:
    """All ranges of columns: the question, what it may cost, the rows that are expected."""

    query: RangeQuery | GridQuery
    budget: Budget
    rows: int | None

    def planned(self, setting: Setting) -> AnyPlanned:
        """The structures that could be released, best first."""
        if isinstance(self.query, GridQuery):
            return planned_grid(self.query, setting=setting, budget=self.budget, rows=self.rows)
        return planned(self.query, setting=setting, budget=self.budget, rows=self.rows)


def is_ranges(given: object) -> bool:
    """Whether a statistic of the file is of this kind."""
    return isinstance(given, Mapping) and given.get("kind") == "ranges"


def range_statistic(given: Mapping[str, Any], *, where: Expression | None) -> RangeStatistic:
    """One column gives ranges, a list of columns gives rectangles."""
    of: Any = given.get("of")
    more = {name: given[name] for name in _ASKED if name in given}
    asked: RangeQuery | GridQuery
    if isinstance(of, list):
        asked = rectangles(of, where=where, **more)
    else:
        asked = ranges(of, where=where, **more)
    amount = budget(**{name: given.get(name) for name in _AMOUNTS})
    return RangeStatistic(query=asked, budget=amount, rows=given.get("rows"))
