"""Releases of ranges together with their plans, as a report shows them."""

from __future__ import annotations

from discreet.queries.ranges.grid_plan import GridPlan
from discreet.queries.ranges.plan import RangePlan
from discreet.report.grid import Rectangles
from discreet.report.ranges import Ranges
from discreet.tables.ranges import AnyPlanned, AnyRanges, ChargedGrid, ChargedRanges


def shown(release: AnyRanges, plan: AnyPlanned, *, file: str) -> Ranges | Rectangles:
    """What a report shows of a release that ``file`` holds."""
    match release, plan.ranked:
        case ChargedRanges(), RangePlan() as ranked:
            return Ranges(release=release, plan=ranked, file=file)
        case ChargedGrid(), GridPlan() as ranked:
            return Rectangles(release=release, plan=ranked, file=file)
    raise AssertionError  # a plan makes its own kind of release
