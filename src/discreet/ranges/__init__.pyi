from discreet.ranges import grid as grid
from discreet.ranges import workload as workload
from discreet.ranges.domain import bins as bins
from discreet.ranges.domain import coarsen as coarsen
from discreet.ranges.domain import dates as dates
from discreet.ranges.domain import integers as integers
from discreet.ranges.domain import merge_cells as merge_cells
from discreet.ranges.domain import ordered as ordered
from discreet.ranges.domain import suggest_cell_count as suggest_cell_count
from discreet.ranges.grid.release import GridRelease as GridRelease
from discreet.ranges.grid.table_query import plan_grid as plan_grid
from discreet.ranges.release import RangeRelease as RangeRelease
from discreet.ranges.stream.plan import plan_stream as plan_stream
from discreet.ranges.table_query import plan_ranges as plan_ranges

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
