"""What ranges and rectangles share in a report: labels of cells, examples, structures, summary."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from html import escape
from typing import Any

from discreet.queries.ranges.domain import Bins, Domain
from discreet.queries.ranges.grid_plan import GridPlan
from discreet.queries.ranges.plan import RangePlan
from discreet.report.document import table
from discreet.tables.ranges import AnyRanges, ChargedGrid

SHOWN = 6
"""How many structures are listed."""


def ends(domain: Domain, a: int, b: int) -> tuple[Any, Any]:
    """The labels between which the cells ``a .. b`` are."""
    if isinstance(domain, Bins):
        return domain.edges[a], domain.edges[b + 1]
    return domain.label(a), domain.label(b)


def cell_words(domain: Domain, cell: int) -> str:
    """What a cell is called."""
    first, last = ends(domain, cell, cell)
    return f"{first:g} – {last:g}" if isinstance(domain, Bins) else str(first)


def example_table(examples: Iterable[tuple[str, float, float, float, float]]) -> str:
    """Words, value, low, high and std of some answers."""
    return table(
        ("from – to", "value", "low", "high", "std"),
        ([words, *(f"{number:,.6g}" for number in numbers)] for words, *numbers in examples),
    )


def ranked(plan: RangePlan | GridPlan) -> str:
    """The best structures, and what each has in error."""
    best = plan.candidates[0].rmse or math.inf  # at a huge epsilon there is no noise at all
    listed = table(
        ("structure", "standard error", "to best"),
        (
            (one.name, f"{one.rmse:.4g}", f"{max(one.rmse / best, 1):.3f}")
            for one in plan.candidates[:SHOWN]
        ),
    )
    return (
        f"{listed}\n<p>Mean over: {escape(str(plan.workload))}; from formulas alone, before any "
        "data were read.</p>"
    )


def summary(release: AnyRanges, plan: RangePlan | GridPlan, *, file: str) -> dict[str, Any]:
    """What a machine wants to know, and where the artefact is."""
    domain = release.grid if isinstance(release, ChargedGrid) else release.domain
    return {
        "title": release.title,
        "question": release.question,
        "domain": str(domain),
        "cells": domain.size,
        "structure": release.strategy.describe(),
        "workload": str(plan.workload),
        "rmse": plan.candidates[0].rmse,
        "guarantee": json.loads(release.guarantee.to_json()),
        "total": release.total,
        "file": file,
    }
