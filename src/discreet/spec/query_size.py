"""How large a query is: its groups or cells, and the rows that each group may expect."""

from __future__ import annotations

import math
from collections.abc import Iterable

from discreet.data.expression import Expression
from discreet.query._release_plan import TableSpec
from discreet.query.builders import Query
from discreet.ranges.grid.table_query import GridQuery
from discreet.ranges.table_query import RangeQuery

_BINS = 64
"""Counted for quantiles that leave the number of bins to the plan."""


def count_groups(query: Query, setting: TableSpec) -> int:
    """Groups of a statistic, times bins for quantiles."""
    each = query.bins or _BINS if query.q else 1
    if query.keys is not None:
        return each * (len(query.keys) + query.include_other)
    return each * math.prod(_width(one, setting) for one in query.by.values())


def count_cells(query: RangeQuery | GridQuery, setting: TableSpec) -> int:
    """Cells of ranges or of rectangles."""
    if isinstance(query, GridQuery):
        return math.prod(
            query.bins.get(name) or _width(one, setting) for name, one in query.values.items()
        )
    if query.bins is not None:
        return query.bins
    return _width(query.value, setting) if query.edges is None else len(query.edges)


def rows_per_group(rows: int, groups: Iterable[int]) -> int:
    """A guess of the rows of each group: all groups alike, ``groups`` along each column."""
    return max(1, rows // max(1, math.prod(groups)))


def _width(expression: Expression, setting: TableSpec) -> int:
    bound = expression.bind(setting.schema)
    return 1 if bound.kind == "text" else bound.upper - bound.lower + 1
