"""What a plan of ranges tells about itself, as plain values: for pages, tables and JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.noise.distribution import Floats
from discreet.query._release_plan import PlannedScan
from discreet.ranges.grid.plan import GridPlan
from discreet.ranges.plan import RangePlan, StrategyCandidate
from discreet.spec.release_file import BudgetStatus

_LEVEL = 0.95


def range_content(one: PlannedScan, found: BudgetStatus) -> dict[str, Any]:
    """What a plan shows about ranges, for machines."""
    plan = one.ranked
    shown, errors = _errors(plan)
    share = found.share(one.guarantee)
    return {
        "name": one.query.title,
        "asked": one.query.text,
        "budget": str(plan.budget),
        "share": share if math.isfinite(share) else None,
        "cells": plan.grid.size if isinstance(plan, GridPlan) else plan.domain.size,
        "workload": str(plan.workload),
        "shown": shown,
        "structures": errors,
        "width": plan.candidates[0].width(confidence=_LEVEL)
        if isinstance(plan, RangePlan)
        else None,
    }


def _errors(plan: RangePlan | GridPlan) -> tuple[list[str], list[dict[str, Any]]]:
    """What is shown of each structure: by length, or by the size of a rectangle."""
    if isinstance(plan, RangePlan):
        size = plan.domain.size
        lengths = sorted({1, max(1, size // 10), max(1, size // 2), size})
        words = [f"{length} cell{'s' * (length > 1)}" for length in lengths]
        return words, [_told(c, c.by_length(np.array(lengths))) for c in plan.candidates]
    ends = tuple(
        (np.array([n // 2, n // 4, 0]), np.array([n // 2, n // 4 + max(n // 2, 1) - 1, n - 1]))
        for n in plan.grid.shape
    )
    words = ["one cell", "the middle half of each", "everything"]
    return words, [_told(candidate, candidate.std(ends)) for candidate in plan.candidates]


def _told(one: StrategyCandidate, errors: Floats) -> dict[str, Any]:
    return {"structure": one.name, "rmse": one.rmse, "errors": errors.tolist()}
