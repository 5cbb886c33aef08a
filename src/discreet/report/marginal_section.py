"""Many tables in a report: their errors, how columns go together, and one table with error bars."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any

import numpy as np

from discreet.accounting.guarantee import describe_epsilon
from discreet.core.number_format import short
from discreet.marginals.measured_tables import MarginalTable
from discreet.marginals.plan import MarginalPlan
from discreet.noise.distribution import Floats
from discreet.report.drawing.panel import HeatPanel
from discreet.report.drawing.paper import cut
from discreet.report.html_page import table
from discreet.tables.marginals import ChargedMarginalRelease

_TABLES = 40
_ROWS = 60
_COLUMNS = 40
_NAME = 14
_NOISE = 2
"""Standard deviations by which an association must exceed what noise alone gives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalSection:
    """Tables that were released at once, their plan, and the file that answers them."""

    release: ChargedMarginalRelease
    plan: MarginalPlan
    file: str

    def section(self) -> str:
        """The part of a page about these tables."""
        release, file = self.release, escape(self.file)
        picture = triangle(release)
        shown = min(release.tables(), key=lambda one: (one.cells.size > _ROWS, -one.cells.size))
        return (
            f"<section><h2>{escape(release.title)}</h2>\n{self._errors()}\n"
            f"{'' if picture is None else picture.svg()}\n{_table(shown)}\n"
            f"<p>Every table, and every subset of its columns, is answered from "
            f"<code>{file}</code>, at no further cost: <code>discreet tables {file} --by "
            f"{escape(','.join(column.name for column in shown.columns))}</code>. All of them "
            "agree. Numbers are unbiased and can be negative; for printing there are "
            "<code>--nonnegative</code> and <code>--integers</code>, which are biased.</p>\n"
            f"<p>Asked: {escape(release.query_text)}. Cost: "
            f"{escape(describe_epsilon(release.guarantee))}. Low and high hold the value without "
            "noise with probability at least 95%, each by itself.</p>\n"
            f"<p><code>{escape(release.mechanism)}</code></p></section>"
        )

    def _errors(self) -> str:
        rows = self.plan.rows()
        listed = table(
            ("table", "cells", "std", "95% within", "all its cells within"),
            (
                (
                    str(row["table"]),
                    f"{row['cells']:,}",
                    *(short(row[name]) for name in ("std", "width", "width of all")),
                )
                for row in rows[:_TABLES]
            ),
        )
        left = len(rows) - _TABLES
        return listed + (f"\n<p>... and {left:,} more tables.</p>" if left > 0 else "")

    def cells(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For each cell of each asked table its words, value, std, low and high (95%)."""
        for row in self.release.rows():
            words = f"{row['table']}: {row['cell']}" if row["cell"] else str(row["table"])
            yield words, row["value"], row["std"], row["low"], row["high"]

    def summary(self) -> dict[str, Any]:
        """What a machine wants to know, and where the artifact is."""
        release = self.release
        return {
            "title": release.title,
            "question": release.query_text,
            "tables": [[column.name for column in one.columns] for one in release.tables()],
            "guarantee": json.loads(release.guarantee.to_json()),
            "total": release.total,
            "file": self.file,
        }


def triangle(release: ChargedMarginalRelease) -> HeatPanel | None:
    """How strongly each pair of columns goes together, where that is more than noise."""
    columns = release.columns
    names = [cut(column.name, _NAME) for column in columns[:_COLUMNS]]
    answered = release.design.answered
    found = {
        pair: association(release.table([columns[i].name for i in pair]))
        for pair in combinations(range(len(names)), 2)
        if pair in answered
    }
    if not found:
        return None
    values, texts = np.zeros((len(names), len(names))), [[""] * len(names) for _ in names]
    for (i, j), (strength, seen) in found.items():
        values[j, i] = strength if seen else 0.0
        texts[j][i] = f"{strength:.2f}" if seen else "–"
    return HeatPanel(
        values=values,
        across=names,
        down=names,
        title="How columns go together (Cramér's V, from the noisy tables)",
        note="–: no more than noise alone would show. Biased by noise; no interval.",
        texts=texts,
    )


def association(pair: MarginalTable) -> tuple[float, bool]:
    """Cramér's V of a table of two columns, and whether it is more than its noise."""
    cells = pair.cells
    total = float(cells.sum())
    if total <= 0:
        return 0.0, False
    apart: Floats = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / total
    away = cells - apart
    variance = np.broadcast_to(np.square(np.reshape(pair.std, cells.shape)), cells.shape)
    noise = float(variance.sum())
    spread = math.sqrt(2 * float(np.square(variance).sum()))
    seen = float(np.square(away).sum()) > noise + _NOISE * spread
    used = apart > _NOISE * np.sqrt(variance)
    # What noise adds to the sum of squares is taken off, on average.
    excess = (np.square(away) - variance)[used] / apart[used]
    strength = max(float(excess.sum()), 0.0) / total / (min(cells.shape) - 1)
    return min(math.sqrt(strength), 1.0), seen


def _table(one: MarginalTable) -> str:
    names = [column.name for column in one.columns]
    rows = one.rows()
    listed = table(
        (*names, "value", "low", "high", "std"),
        (
            [
                *(str(row[name]) for name in names),
                *(short(row[key], digits=6) for key in ("value", "low", "high", "std")),
            ]
            for row in rows[:_ROWS]
        ),
        words=len(names),
    )
    left = len(rows) - _ROWS
    more = f"\n<p>... and {left:,} more cells.</p>" if left > 0 else ""
    return f"<h3>Count by {escape(', '.join(names)) or 'nothing'}</h3>\n{listed}{more}"
