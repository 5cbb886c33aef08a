"""Range and grid releases in a report, with their plans.

A range section has the error against the length, the cumulative curve with its band, and examples.
A grid section has a heat map, the totals of rows and columns, and examples.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise, product
from typing import Any

import numpy as np

from discreet.accounting.guarantee import describe_epsilon
from discreet.core.number_format import number, short
from discreet.noise.distribution import Floats, Ints
from discreet.query._release_plan import PlannedScan
from discreet.ranges.domain import BinnedDomain, Domain
from discreet.ranges.grid.plan import GridPlan
from discreet.ranges.plan import RangePlan, lengths_of
from discreet.ranges.workload import ListedWorkload
from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.panel import HeatPanel, LinePanel
from discreet.report.drawing.paper import cut
from discreet.report.html_page import table
from discreet.tables.range_release import (
    AnyRangeRelease,
    ChargedGridRelease,
    ChargedRangeRelease,
)

# ── Shared parts
# ───────────────────────────────────────────────────────────────────────────────────


SHOWN = 6
"""How many structures are listed."""


def ends(domain: Domain, a: int, b: int) -> tuple[Any, Any]:
    """The labels between which the cells ``a .. b`` are."""
    if isinstance(domain, BinnedDomain):
        return domain.edges[a], domain.edges[b + 1]
    return domain.label(a), domain.label(b)


def cell_words(domain: Domain, cell: int) -> str:
    """What a cell is called."""
    first, last = ends(domain, cell, cell)
    return f"{first:g} – {last:g}" if isinstance(domain, BinnedDomain) else str(first)


def example_table(examples: Iterable[tuple[str, float, float, float, float]]) -> str:
    """Words, value, low, high and std of some answers."""
    return table(
        ("from – to", "value", "low", "high", "std"),
        ([words, *(short(number, digits=6) for number in numbers)] for words, *numbers in examples),
    )


def ranked(plan: RangePlan | GridPlan) -> str:
    """The best structures, and what each has in error."""
    best = plan.candidates[0].rmse or math.inf  # at a huge epsilon there is no noise at all
    listed = table(
        ("structure", "standard error", "to best"),
        (
            (one.name, short(one.rmse), short(max(one.rmse / best, 1)))
            for one in plan.candidates[:SHOWN]
        ),
    )
    return (
        f"{listed}\n<p>Mean over: {escape(str(plan.workload))}; from formulas alone, before any "
        "data were read.</p>"
    )


def summary(release: AnyRangeRelease, plan: RangePlan | GridPlan, *, file: str) -> dict[str, Any]:
    """What a machine wants to know, and where the artifact is."""
    domain = release.grid if isinstance(release, ChargedGridRelease) else release.domain
    return {
        "title": release.title,
        "question": release.query_text,
        "domain": str(domain),
        "cells": domain.size,
        "structure": release.strategy.describe(),
        "workload": str(plan.workload),
        "rmse": plan.candidates[0].rmse,
        "guarantee": json.loads(release.guarantee.to_json()),
        "total": release.total,
        "file": file,
    }


# ── Grids
# ──────────────────────────────────────────────────────────────────────────────────────────


_MOST = (120, 60)
"""Columns and rows of a picture; what is finer is summed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridSection:
    """A grid that was released, what else could have been, and the file that answers it."""

    release: ChargedGridRelease
    plan: GridPlan
    file: str

    def section(self) -> str:
        """The part of a page about one grid."""
        release = self.release
        asked = " ".join(["FIRST LAST"] * len(release.grid.shape))
        return (
            f"<section><h2>{escape(release.title)}</h2>\n{shades(release).svg()}\n"
            f"<p>Any rectangle can be answered from <code>{escape(self.file)}</code>, at no "
            f"further cost: <code>discreet ranges {escape(self.file)} {asked}</code>. Some of "
            "them:</p>\n"
            f"{example_table(self.examples())}\n"
            f"<p>Asked: {escape(release.query_text)}. Cost: "
            f"{escape(describe_epsilon(release.guarantee))}. Low "
            "and high hold the value without noise with probability at least 95%, each by itself."
            f"</p>\n{ranked(self.plan)}\n"
            f"<p><code>{escape(release.mechanism)}</code></p></section>"
        )

    def examples(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Words, value, low, high and std: everything, and the halves of each axis crossed."""
        release = self.release
        axes = []
        for domain in release.grid.domains:
            middle = domain.size // 2
            halves = [(0, middle - 1), (middle, domain.size - 1)] if middle else []
            axes.append([ends(domain, a, b) for a, b in halves] or [(None, None)])
        whole = [tuple((None, None) for _ in release.grid.domains)]
        for spans in (*whole, *product(*axes)):
            low, high = release.answer_interval(*spans)
            words = "; ".join("all" if a is b is None else f"{a} – {b}" for a, b in spans)
            yield words, release.answer(*spans), low, high, release.answer_std(*spans)

    def cells(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For each cell its words, value, std, low and high (95%)."""
        release = self.release
        names = [
            [cell_words(domain, cell) for cell in range(domain.size)]
            for domain in release.grid.domains
        ]
        places = np.indices(release.grid.shape).reshape(len(names), -1)
        spans = [
            tuple(np.array(ends)[place] for ends in _all_ends(domain))
            for domain, place in zip(release.grid.domains, places, strict=True)
        ]
        low, high = release.answer_interval(*spans)
        columns = zip(release.cells.ravel(), release.cell_std.ravel(), low, high, strict=True)
        for words, numbers in zip(product(*names), columns, strict=True):
            value, std, a, b = map(float, numbers)
            yield ", ".join(words), value, std, a, b

    def summary(self) -> dict[str, Any]:
        """What a machine wants to know, and where the artifact is."""
        return summary(self.release, self.plan, file=self.file)


def shades(release: ChargedGridRelease) -> HeatPanel:
    """The first two columns as a heat map, summed over any others."""
    parts = [
        np.unique(np.linspace(0, size, min(size, most) + 1).astype(np.int64))
        for size, most in zip(release.grid.shape[:2], _MOST, strict=True)
    ]
    across, down = parts
    rest = tuple(range(2, len(release.grid.shape)))
    cells = release.cells.sum(axis=rest) if rest else release.cells
    summed: Floats = np.add.reduceat(np.add.reduceat(cells, across[:-1], axis=0), down[:-1], axis=1)
    words = [
        [str(ends(domain, int(a), int(a))[0]) for a in marks[:-1]]
        for domain, marks in zip(release.grid.domains[:2], parts, strict=True)
    ]
    return HeatPanel(
        values=summed.T,
        across=words[0],
        down=words[1],
        title=f"{release.title} ({describe_epsilon(release.guarantee)})",
        note="White: none, or less after noise. The shades hide the noise of single cells.",
    )


def _all_ends(domain: Domain) -> tuple[list[Any], list[Any]]:
    pairs = [ends(domain, cell, cell) for cell in range(domain.size)]
    return [a for a, _ in pairs], [b for _, b in pairs]


# ── Ranges
# ─────────────────────────────────────────────────────────────────────────────────────────


_POINTS = 300
_PARTS = 4
_LEGEND = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeSection:
    """Ranges that were released, what else could have been, and the file that answers them."""

    release: ChargedRangeRelease
    plan: RangePlan
    file: str

    def section(self) -> str:
        """The part of a page about one release of ranges."""
        return section(self)

    def cells(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For each cell its words, value, std, low and high (95%)."""
        return cells(self.release)

    def summary(self) -> dict[str, Any]:
        """What a machine wants to know, and where the artifact is."""
        return summary(self.release, self.plan, file=self.file)


def section(one: RangeSection) -> str:
    """The part of a page about one release of ranges."""
    release = one.release
    return (
        f"<section><h2>{escape(release.title)}</h2>\n{cumulative(release).svg()}\n"
        f"<p>Any range can be answered from <code>{escape(one.file)}</code>, at no further cost: "
        f"<code>discreet ranges {escape(one.file)} FIRST LAST</code>. Some of them:</p>\n"
        f"{example_table(examples(one))}\n"
        f"<p>Asked: {escape(release.query_text)}. Cost: "
        f"{escape(describe_epsilon(release.guarantee))}. Low and "
        "high hold the value without noise with probability at least 95%, each by itself; the band "
        "holds all totals at once.</p>\n"
        f"{against_length(one.plan).svg()}\n{ranked(one.plan)}\n"
        f"<p><code>{escape(release.mechanism)}</code></p></section>"
    )


def cumulative(release: ChargedRangeRelease, *, confidence: float = 0.95) -> LinePanel:
    """How many there are up to each cell, with a band that holds all of it."""
    curve = release.cdf(confidence=confidence)
    places = np.unique(np.linspace(0, release.domain.size - 1, _POINTS).astype(np.int64))
    x = places.astype(float).tolist()
    return LinePanel(
        lines=[ChartCurve(label="up to here", x=x, y=curve.values[places].tolist())],
        x=ChartAxis(label=release.query_text, words=lambda tick: _tick(release, tick)),
        y=ChartAxis(label="rows up to here"),
        title=f"{cut(release.title, 60)} ({describe_epsilon(release.guarantee)})",
        note=(
            f"The band holds all of the curve without noise {number(100 * confidence)} times of "
            "100."
        ),
        band=ChartBand(x=x, low=curve.low[places].tolist(), high=curve.high[places].tolist()),
    )


def against_length(plan: RangePlan) -> LinePanel:
    """Standard error against the length of a range, for the best structures."""
    lengths: Ints = lengths_of(plan.domain.size)
    return LinePanel(
        lines=[
            ChartCurve(
                label=cut(one.design.strategy.describe(), _LEGEND),
                x=lengths.astype(float).tolist(),
                y=one.by_length(lengths).tolist(),
            )
            for one in plan.candidates[:SHOWN]
        ],
        x=ChartAxis(label="cells in the range", log=True),
        y=ChartAxis(label="standard error", log=True),
        title=f"Error by length of a range, {plan.budget}; the first is used",
        note="From formulas alone, before any data were read.",
    )


def examples(one: RangeSection) -> Iterator[tuple[str, float, float, float, float]]:
    """Words, value, low, high and std of the whole, its quarters, and ranges that were listed."""
    release, size = one.release, one.release.domain.size
    marks = np.unique(np.linspace(0, size, _PARTS + 1).astype(np.int64))
    pairs = [(0, size - 1), *((int(a), int(b) - 1) for a, b in pairwise(marks))]
    if isinstance(one.plan.workload, ListedWorkload):
        first, last, _ = one.plan.workload.arrays(size)
        pairs += [(int(a), int(b)) for a, b in zip(first[:SHOWN], last[:SHOWN], strict=True)]
    for a, b in dict.fromkeys(pairs):
        low, high = ends(release.domain, a, b)
        bounds = release.answer_interval(low, high)
        yield f"{low} – {high}", release.answer(low, high), *bounds, release.answer_std(low, high)


def cells(release: ChargedRangeRelease) -> Iterator[tuple[str, float, float, float, float]]:
    """For each cell its words, value, std, low and high (95%)."""
    domain = release.domain
    if isinstance(domain, BinnedDomain):
        edges = np.array(domain.edges)
        first, last = edges[:-1], edges[1:]
    else:
        first = last = np.array([domain.label(cell) for cell in range(domain.size)])
    low, high = release.answer_interval(first, last)
    words = (cell_words(domain, cell) for cell in range(domain.size))
    columns = zip(words, release.cells, release.answer_std(first, last), low, high, strict=True)
    for label, *numbers in columns:
        value, std, a, b = map(float, numbers)
        yield label, value, std, a, b


def _tick(release: ChargedRangeRelease, tick: float) -> str:
    inside = tick == int(tick) and 0 <= tick < release.domain.size
    return cut(str(ends(release.domain, int(tick), int(tick))[1]), 12) if inside else ""


# ── Sections
# ───────────────────────────────────────────────────────────────────────────────────────


def shown(release: AnyRangeRelease, plan: PlannedScan, *, file: str) -> RangeSection | GridSection:
    """What a report shows of a release that ``file`` holds."""
    match release, plan.ranked:
        case ChargedRangeRelease(), RangePlan() as ranked:
            return RangeSection(release=release, plan=ranked, file=file)
        case ChargedGridRelease(), GridPlan() as ranked:
            return GridSection(release=release, plan=ranked, file=file)
    raise AssertionError  # a plan makes its own kind of release
