"""Ranges in a report: error against length, the cumulative curve with its band, some examples."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.noise.law import Ints
from discreet.queries.ranges.domain import Bins
from discreet.queries.ranges.plan import RangePlan, lengths_of
from discreet.queries.ranges.workload import Listed
from discreet.report.chart import Axis, Band, Curve, curves
from discreet.report.panels import Lines
from discreet.tables.ranges import ChargedRanges
from discreet.tables.release import worth

_SHOWN = 6
_POINTS = 300
_PARTS = 4
_LEGEND = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranges:
    """Ranges that were released, what else could have been, and the file that answers them."""

    release: ChargedRanges
    plan: RangePlan
    file: str

    def section(self) -> str:
        """The part of a page about one release of ranges."""
        return section(self)

    def cells(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For each cell its words, value, std, low and high (95%)."""
        return cells(self.release)

    def summary(self) -> dict[str, Any]:
        """What a machine wants to know, and where the artefact is."""
        return summary(self)


def section(one: Ranges) -> str:
    """The part of a page about one release of ranges."""
    release = one.release
    lines = "\n".join(
        f'<tr><td class="k">{escape(words)}</td>'
        + "".join(f"<td>{number:,.6g}</td>" for number in numbers)
        + "</tr>"
        for words, *numbers in examples(one)
    )
    return (
        f"<section><h2>{escape(release.title)}</h2>\n{cumulative(release)}\n"
        f"<p>Any range can be answered from <code>{escape(one.file)}</code>, at no further cost: "
        f"<code>discreet ranges {escape(one.file)} FIRST LAST</code>. Some of them:</p>\n"
        '<table><tr><th class="k">from – to</th><th>value</th><th>low</th><th>high</th>'
        f"<th>std</th></tr>\n{lines}</table>\n"
        f"<p>Asked: {escape(release.question)}. Cost: {escape(worth(release.guarantee))}. Low and "
        "high hold the value without noise with probability at least 95%, each by itself; the band "
        "holds all totals at once.</p>\n"
        f"{against_length(one.plan)}\n{_ranked(one.plan)}\n"
        f"<p><code>{escape(release.mechanism)}</code></p></section>"
    )


def cumulative(release: ChargedRanges, *, level: float = 0.95) -> str:
    """How many there are up to each cell, with a band that holds all of it, as SVG text."""
    return cumulative_panel(release, level=level).svg()


def cumulative_panel(release: ChargedRanges, *, level: float = 0.95) -> Lines:
    """How many there are up to each cell, with a band that holds all of it."""
    curve = release.cdf(level=level)
    places = np.unique(np.linspace(0, release.domain.size - 1, _POINTS).astype(np.int64))
    x = places.astype(float).tolist()
    return Lines(
        lines=[Curve(label="up to here", x=x, y=curve.values[places].tolist())],
        x=Axis(label=release.question, words=lambda tick: _tick(release, tick)),
        y=Axis(label="rows up to here"),
        title=f"{_cut(release.title, 60)} ({worth(release.guarantee)})",
        note=f"The band holds all of the curve without noise {100 * level:g} times of 100.",
        band=Band(x=x, low=curve.low[places].tolist(), high=curve.high[places].tolist()),
    )


def against_length(plan: RangePlan) -> str:
    """Standard error against the length of a range, for the best structures, as SVG text."""
    lengths: Ints = lengths_of(plan.domain.size)
    return curves(
        [
            Curve(
                label=_cut(one.design.strategy.describe(), _LEGEND),
                x=lengths.astype(float).tolist(),
                y=one.by_length(lengths).tolist(),
            )
            for one in plan.candidates[:_SHOWN]
        ],
        x=Axis(label="cells in the range", log=True),
        y=Axis(label="standard error", log=True),
        title=f"Error by length of a range, {plan.budget}; the first is used",
        note="From formulas alone, before any data were read.",
    )


def examples(one: Ranges) -> Iterator[tuple[str, float, float, float, float]]:
    """Words, value, low, high and std of the whole, its quarters, and ranges that were listed."""
    release, size = one.release, one.release.domain.size
    marks = np.unique(np.linspace(0, size, _PARTS + 1).astype(np.int64))
    pairs = [(0, size - 1), *((int(a), int(b) - 1) for a, b in pairwise(marks))]
    if isinstance(one.plan.workload, Listed):
        first, last, _ = one.plan.workload.arrays(size)
        pairs += [(int(a), int(b)) for a, b in zip(first[:_SHOWN], last[:_SHOWN], strict=True)]
    for a, b in dict.fromkeys(pairs):
        low, high = ends(release, a, b)
        bounds = release.interval(low, high)
        yield f"{low} – {high}", release.answer(low, high), *bounds, release.std(low, high)


def cells(release: ChargedRanges) -> Iterator[tuple[str, float, float, float, float]]:
    """For each cell its words, value, std, low and high (95%)."""
    domain = release.domain
    if isinstance(domain, Bins):
        edges = np.array(domain.edges)
        first, last = edges[:-1], edges[1:]
    else:
        first = last = np.array([domain.label(cell) for cell in range(domain.size)])
    low, high = release.interval(first, last)
    words = (_words(release, cell) for cell in range(domain.size))
    columns = zip(words, release.cells, release.std(first, last), low, high, strict=True)
    for label, *numbers in columns:
        value, std, a, b = map(float, numbers)
        yield label, value, std, a, b


def summary(one: Ranges) -> dict[str, Any]:
    """What a machine wants to know, and where the artefact is."""
    release = one.release
    return {
        "title": release.title,
        "question": release.question,
        "domain": str(release.domain),
        "cells": release.domain.size,
        "structure": release.strategy.describe(),
        "workload": str(one.plan.workload),
        "rmse": one.plan.candidates[0].rmse,
        "guarantee": json.loads(release.guarantee.to_json()),
        "total": release.total,
        "file": one.file,
    }


def ends(release: ChargedRanges, a: int, b: int) -> tuple[object, object]:
    """The labels between which the cells ``a .. b`` are."""
    domain = release.domain
    if isinstance(domain, Bins):
        return domain.edges[a], domain.edges[b + 1]
    return domain.label(a), domain.label(b)


def _words(release: ChargedRanges, cell: int) -> str:
    first, last = ends(release, cell, cell)
    return f"{first:g} – {last:g}" if isinstance(release.domain, Bins) else str(first)


def _tick(release: ChargedRanges, tick: float) -> str:
    inside = tick == int(tick) and 0 <= tick < release.domain.size
    return _cut(str(ends(release, int(tick), int(tick))[1]), 12) if inside else ""


def _ranked(plan: RangePlan) -> str:
    best = plan.candidates[0].rmse or math.inf  # at a huge epsilon there is no noise at all
    lines = "\n".join(
        f'<tr><td class="k">{escape(one.name)}</td><td>{one.rmse:.4g}</td>'
        f"<td>{max(one.rmse / best, 1):.3f}</td></tr>"
        for one in plan.candidates[:_SHOWN]
    )
    return (
        '<table><tr><th class="k">structure</th><th>standard error</th><th>to best</th></tr>\n'
        f"{lines}</table>\n<p>Mean over: {escape(str(plan.workload))}.</p>"
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
