"""Rectangles in a report: a heat map, the totals of rows and columns, some examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np

from discreet.noise.law import Floats
from discreet.queries.ranges.domain import Domain
from discreet.queries.ranges.grid_plan import GridPlan
from discreet.report.heat import heat
from discreet.report.ranged import cell_words, ends, example_table, ranked, summary
from discreet.tables.ranges import ChargedGrid
from discreet.tables.release import worth

_MOST = (120, 60)
"""Columns and rows of a picture; what is finer is summed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rectangles:
    """A grid that was released, what else could have been, and the file that answers it."""

    release: ChargedGrid
    plan: GridPlan
    file: str

    def section(self) -> str:
        """The part of a page about one grid."""
        release = self.release
        asked = " ".join(["FIRST LAST"] * len(release.grid.shape))
        return (
            f"<section><h2>{escape(release.title)}</h2>\n{picture(release)}\n"
            f"<p>Any rectangle can be answered from <code>{escape(self.file)}</code>, at no "
            f"further cost: <code>discreet ranges {escape(self.file)} {asked}</code>. Some of "
            "them:</p>\n"
            f"{example_table(self.examples())}\n"
            f"<p>Asked: {escape(release.question)}. Cost: {escape(worth(release.guarantee))}. Low "
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
            low, high = release.interval(*spans)
            words = "; ".join("all" if a is b is None else f"{a} – {b}" for a, b in spans)
            yield words, release.answer(*spans), low, high, release.std(*spans)

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
        low, high = release.interval(*spans)
        columns = zip(release.cells.ravel(), release.cell_std.ravel(), low, high, strict=True)
        for words, numbers in zip(product(*names), columns, strict=True):
            value, std, a, b = map(float, numbers)
            yield ", ".join(words), value, std, a, b

    def summary(self) -> dict[str, Any]:
        """What a machine wants to know, and where the artefact is."""
        return summary(self.release, self.plan, file=self.file)


def picture(release: ChargedGrid) -> str:
    """The first two columns as a heat map, summed over any others, as SVG text."""
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
    return heat(
        summed.T,
        across=words[0],
        down=words[1],
        title=f"{release.title} ({worth(release.guarantee)})",
        note="White: none, or less after noise. The shades hide the noise of single cells.",
    )


def _all_ends(domain: Domain) -> tuple[list[Any], list[Any]]:
    pairs = [ends(domain, cell, cell) for cell in range(domain.size)]
    return [a for a, _ in pairs], [b for _, b in pairs]
