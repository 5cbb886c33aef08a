from discreet.queries.ranges import grid, workload
from discreet.queries.ranges.coarse import coarsened, merged, suggested_cells
from discreet.queries.ranges.domain import bins, dates, integers, ordered
from discreet.queries.ranges.grid_question import plan_grid
from discreet.queries.ranges.grid_release import GridRelease
from discreet.queries.ranges.question import plan_ranges
from discreet.queries.ranges.release import RangeRelease
from discreet.queries.ranges.stream_plan import plan_stream

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
