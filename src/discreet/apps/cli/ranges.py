"""`discreet ranges`: any range of a released artefact; and how plans of ranges are shown."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from discreet.apps.cli.budget import Standing
from discreet.core.errors import InvalidArgument
from discreet.queries.ranges.domain import Bins, Dates, Domain, Integers
from discreet.queries.ranges.question import PlannedRanges
from discreet.queries.ranges.release import RangeRelease

OPEN = "-"
_SHOWN = 6


def run(path: Path, first: str | None, last: str | None, *, level: float, as_json: bool) -> int:
    """Answer one range; neither the data nor the ledger are needed."""
    try:
        release = RangeRelease.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"{path}: cannot be read.") from None
    if last is None and not isinstance(release.domain, Bins):
        last = first
    lower, upper = (_label(release.domain, end) for end in (first, last))
    low, high = release.interval(lower, upper, level=level)
    content = {
        "first": None if lower is None else str(lower),
        "last": None if upper is None else str(upper),
        "value": release.answer(lower, upper),
        "std": release.std(lower, upper),
        "low": low,
        "high": high,
        "level": level,
        "private": release.private,
    }
    if as_json:
        print(json.dumps(content))
        return 0
    what = "all" if lower is None and upper is None else f"{lower or '...'} .. {upper or '...'}"
    print(
        f"{what}: {content['value']:,.6g}  ({100 * level:g}% between {low:,.6g} and {high:,.6g}; "
        f"std {content['std']:,.4g})"
    )
    return 0


def range_content(one: PlannedRanges, found: Standing) -> dict[str, Any]:
    """What a plan shows about ranges, for machines."""
    plan = one.ranked
    size = plan.domain.size
    lengths = sorted({1, max(1, size // 10), max(1, size // 2), size})
    share = found.share(one.guarantee)
    return {
        "name": one.query.title,
        "asked": one.query.text,
        "budget": str(plan.budget),
        "share": share if math.isfinite(share) else None,
        "cells": size,
        "workload": str(plan.workload),
        "lengths": lengths,
        "structures": [
            {
                "structure": candidate.name,
                "rmse": candidate.rmse,
                "by_length": candidate.by_length(np.array(lengths)).tolist(),
            }
            for candidate in plan.candidates
        ],
    }


def range_table(one: dict[str, Any]) -> Table:
    """The best structures and their errors."""
    share = "?" if one["share"] is None else f"{100 * one['share']:.3g}%"
    made = Table(
        title=f"{one['name']}: {one['cells']} cells, {one['budget']}, {share} of the limit",
        caption=f"Standard errors; the first is used. Mean over: {one['workload']}.",
    )
    made.add_column("structure", overflow="fold")
    for head in ("mean", *(f"{length} cells" for length in one["lengths"])):
        made.add_column(head, justify="right")
    for candidate in one["structures"][:_SHOWN]:
        numbers = (candidate["rmse"], *candidate["by_length"])
        made.add_row(candidate["structure"], *(f"{number:.4g}" for number in numbers))
    return made


def _label(domain: Domain, text: str | None) -> Any:
    """What was typed as a label of the domain; None is an open end."""
    if text is None or text == OPEN:
        return None
    try:
        match domain:
            case Integers():
                return int(text)
            case Bins():
                return float(text)
            case Dates():
                return text
            case _:
                return text if text in domain.labels else int(text)
    except ValueError:
        raise InvalidArgument(f"{text!r} is no label of {domain}.") from None
