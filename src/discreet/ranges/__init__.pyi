from discreet.ranges import grid, workload
from discreet.ranges.domain import (
    bins,
    coarsen,
    dates,
    integers,
    merge_cells,
    ordered,
    suggest_cell_count,
)
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.grid.table_query import plan_grid
from discreet.ranges.release import RangeRelease
from discreet.ranges.stream.plan import plan_stream
from discreet.ranges.table_query import plan_ranges

__all__ = [
    "GridRelease",
    "RangeRelease",
    "bins",
    "coarsen",
    "dates",
    "grid",
    "integers",
    "merge_cells",
    "ordered",
    "plan_grid",
    "plan_ranges",
    "plan_stream",
    "suggest_cell_count",
    "workload",
]
