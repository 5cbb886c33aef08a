"""Ranges in a report: error against length, the cumulative curve with its band, some examples."""

from __future__ import annotations

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
from discreet.report.chart import Axis, Band, Curve
from discreet.report.panels import Lines
from discreet.report.ranged import SHOWN, cell_words, ends, example_table, ranked, summary
from discreet.report.svg import cut
from discreet.tables.ranges import ChargedRanges
from discreet.tables.release import worth

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
        return summary(self.release, self.plan, file=self.file)


def section(one: Ranges) -> str:
    """The part of a page about one release of ranges."""
    release = one.release
    return (
        f"<section><h2>{escape(release.title)}</h2>\n{cumulative(release).svg()}\n"
        f"<p>Any range can be answered from <code>{escape(one.file)}</code>, at no further cost: "
        f"<code>discreet ranges {escape(one.file)} FIRST LAST</code>. Some of them:</p>\n"
        f"{example_table(examples(one))}\n"
        f"<p>Asked: {escape(release.question)}. Cost: {escape(worth(release.guarantee))}. Low and "
        "high hold the value without noise with probability at least 95%, each by itself; the band "
        "holds all totals at once.</p>\n"
        f"{against_length(one.plan).svg()}\n{ranked(one.plan)}\n"
        f"<p><code>{escape(release.mechanism)}</code></p></section>"
    )


def cumulative(release: ChargedRanges, *, level: float = 0.95) -> Lines:
    """How many there are up to each cell, with a band that holds all of it."""
    curve = release.cdf(level=level)
    places = np.unique(np.linspace(0, release.domain.size - 1, _POINTS).astype(np.int64))
    x = places.astype(float).tolist()
    return Lines(
        lines=[Curve(label="up to here", x=x, y=curve.values[places].tolist())],
        x=Axis(label=release.question, words=lambda tick: _tick(release, tick)),
        y=Axis(label="rows up to here"),
        title=f"{cut(release.title, 60)} ({worth(release.guarantee)})",
        note=f"The band holds all of the curve without noise {100 * level:g} times of 100.",
        band=Band(x=x, low=curve.low[places].tolist(), high=curve.high[places].tolist()),
    )


def against_length(plan: RangePlan) -> Lines:
    """Standard error against the length of a range, for the best structures."""
    lengths: Ints = lengths_of(plan.domain.size)
    return Lines(
        lines=[
            Curve(
                label=cut(one.design.strategy.describe(), _LEGEND),
                x=lengths.astype(float).tolist(),
                y=one.by_length(lengths).tolist(),
            )
            for one in plan.candidates[:SHOWN]
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
        pairs += [(int(a), int(b)) for a, b in zip(first[:SHOWN], last[:SHOWN], strict=True)]
    for a, b in dict.fromkeys(pairs):
        low, high = ends(release.domain, a, b)
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
    words = (cell_words(domain, cell) for cell in range(domain.size))
    columns = zip(words, release.cells, release.std(first, last), low, high, strict=True)
    for label, *numbers in columns:
        value, std, a, b = map(float, numbers)
        yield label, value, std, a, b


def _tick(release: ChargedRanges, tick: float) -> str:
    inside = tick == int(tick) and 0 <= tick < release.domain.size
    return cut(str(ends(release.domain, int(tick), int(tick))[1]), 12) if inside else ""
