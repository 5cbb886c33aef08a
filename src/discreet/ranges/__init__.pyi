from discreet.ranges import workload
from discreet.ranges.domain import (
    bins,
    coarsened,
    dates,
    integers,
    merged,
    ordered,
    suggested_cells,
)
from discreet.ranges.grid import domain as grid
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.grid.table_query import plan_grid
from discreet.ranges.release import RangeRelease
from discreet.ranges.stream.plan import plan_stream
from discreet.ranges.table_query import plan_ranges

__all__ = [
    "GridRelease",
    "RangeRelease",
    "bins",
    "coarsened",
    "dates",
    "grid",
    "integers",
    "merged",
    "ordered",
    "plan_grid",
    "plan_ranges",
    "plan_stream",
    "suggested_cells",
    "workload",
]
