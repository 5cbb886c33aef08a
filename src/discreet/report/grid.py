"""Rectangles in a report: a heat map, the totals of rows and columns, some examples."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np

from discreet.noise.law import Floats
from discreet.queries.ranges.domain import Bins, Domain
from discreet.queries.ranges.grid_plan import GridPlan
from discreet.report.heat import heat
from discreet.tables.ranges import ChargedGrid
from discreet.tables.release import worth

_MOST = (120, 60)
"""Columns and rows of a picture; what is finer is summed."""
_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rectangles:
    """A grid that was released, what else could have been, and the file that answers it."""

    release: ChargedGrid
    plan: GridPlan
    file: str

    def section(self) -> str:
        """The part of a page about one grid."""
        release = self.release
        lines = "\n".join(
            f'<tr><td class="k">{escape(words)}</td>'
            + "".join(f"<td>{number:,.6g}</td>" for number in numbers)
            + "</tr>"
            for words, *numbers in self.examples()
        )
        ends = " ".join(["FIRST LAST"] * len(release.grid.shape))
        return (
            f"<section><h2>{escape(release.title)}</h2>\n{self.picture()}\n"
            f"<p>Any rectangle can be answered from <code>{escape(self.file)}</code>, at no "
            f"further cost: <code>discreet ranges {escape(self.file)} {ends}</code>. Some of "
            "them:</p>\n"
            '<table><tr><th class="k">from – to</th><th>value</th><th>low</th><th>high</th>'
            f"<th>std</th></tr>\n{lines}</table>\n"
            f"<p>Asked: {escape(release.question)}. Cost: {escape(worth(release.guarantee))}. Low "
            "and high hold the value without noise with probability at least 95%, each by itself."
            f"</p>\n{_ranked(self.plan)}\n"
            f"<p><code>{escape(release.mechanism)}</code></p></section>"
        )

    def picture(self) -> str:
        """The first two columns as a heat map, summed over any others."""
        release = self.release
        parts = [
            np.unique(np.linspace(0, size, min(size, most) + 1).astype(np.int64))
            for size, most in zip(release.grid.shape[:2], _MOST, strict=True)
        ]
        across, down = parts
        rest = tuple(range(2, len(release.grid.shape)))
        cells = release.cells.sum(axis=rest) if rest else release.cells
        summed: Floats = np.add.reduceat(
            np.add.reduceat(cells, across[:-1], axis=0), down[:-1], axis=1
        )
        words = [
            [str(_ends(domain, int(a), int(a))[0]) for a in marks[:-1]]
            for domain, marks in zip(release.grid.domains[:2], parts, strict=True)
        ]
        return heat(
            summed.T,
            across=words[0],
            down=words[1],
            title=f"{release.title} ({worth(release.guarantee)})",
            note="White: none, or less after noise. The shades hide the noise of single cells.",
        )

    def examples(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Words, value, low, high and std: everything, and the halves of each axis crossed."""
        release = self.release
        axes = []
        for domain in release.grid.domains:
            middle = domain.size // 2
            halves = [(0, middle - 1), (middle, domain.size - 1)] if middle else []
            axes.append([_ends(domain, a, b) for a, b in halves] or [(None, None)])
        whole = [tuple((None, None) for _ in release.grid.domains)]
        for spans in (*whole, *product(*axes)):
            low, high = release.interval(*spans)
            words = "; ".join("all" if a is b is None else f"{a} – {b}" for a, b in spans)
            yield words, release.answer(*spans), low, high, release.std(*spans)

    def cells(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For each cell its words, value, std, low and high (95%)."""
        release = self.release
        names = [
            [_cell(domain, cell) for cell in range(domain.size)] for domain in release.grid.domains
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
        release = self.release
        return {
            "title": release.title,
            "question": release.question,
            "domain": str(release.grid),
            "cells": release.grid.size,
            "structure": release.strategy.describe(),
            "workload": str(self.plan.workload),
            "rmse": self.plan.candidates[0].rmse,
            "guarantee": json.loads(release.guarantee.to_json()),
            "total": release.total,
            "file": self.file,
        }


def _ends(domain: Domain, a: int, b: int) -> tuple[Any, Any]:
    """The labels between which the cells ``a .. b`` are."""
    if isinstance(domain, Bins):
        return domain.edges[a], domain.edges[b + 1]
    return domain.label(a), domain.label(b)


def _all_ends(domain: Domain) -> tuple[list[Any], list[Any]]:
    pairs = [_ends(domain, cell, cell) for cell in range(domain.size)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _cell(domain: Domain, cell: int) -> str:
    first, last = _ends(domain, cell, cell)
    return f"{first:g} – {last:g}" if isinstance(domain, Bins) else str(first)


def _ranked(plan: GridPlan) -> str:
    best = plan.candidates[0].rmse or math.inf  # at a huge epsilon there is no noise at all
    lines = "\n".join(
        f'<tr><td class="k">{escape(one.name)}</td><td>{one.rmse:.4g}</td>'
        f"<td>{max(one.rmse / best, 1):.3f}</td></tr>"
        for one in plan.candidates[:_SHOWN]
    )
    return (
        '<table><tr><th class="k">structure</th><th>standard error</th><th>to best</th></tr>\n'
        f"{lines}</table>\n<p>Mean over: {escape(str(plan.workload))}; from formulas alone, before "
        "any data were read.</p>"
    )
