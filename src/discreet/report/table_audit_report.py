"""What published tables reveal, as pictures, as one HTML page and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from string import Template

import numpy as np

from discreet.core.number_format import number
from discreet.disclosure import CellFinding, PublishedTable, TableAudit
from discreet.report import html_page as document
from discreet.report.drawing.panel import HeatPanel, printable

_MOST_ROWS = 1000
_MOST_MAPS = 8
_MOST_LINES = 60
_NOTE = "Black: the count is known. Gray: few counts are possible. White: published, or open."
_BODY = Template("""<div class="box"><p><strong>Confidential.</strong> This page shows counts that
the publisher meant to hide. Keep it with the data.</p></div>
<p>$summary</p>
<section><h2>What to do</h2><ul>$advice</ul></section>
<section><h2>The tables</h2>$maps</section>
<section><h2>Findings, the worst first</h2>$findings</section>
<section><h2>What this rests on</h2><ul>
<li>Each published cell is an equation about the same people, and counts are whole numbers from
zero on. The bounds are exact: no rounding of the computer can make one false.</li>
<li>Columns of the same name mean the same in all tables, and the published labels are all that
there are, unless a column was declared open.</li>
<li>An attacker may know more: their own cell, other tables, some of the people. A page without
findings is no guarantee. Differential privacy gives one.</li>
</ul></section>""")


def maps(audit: TableAudit) -> tuple[HeatPanel, ...]:
    """Each table with hidden cells: the narrower the bounds of a cell, the darker."""
    marked = sorted({table for table, _ in audit.cells})[:_MOST_MAPS]
    return tuple(_map(audit, at) for at in marked or [0])


def _map(audit: TableAudit, at: int) -> HeatPanel:
    table = audit.tables[at]
    down = list(dict.fromkeys(cell.labels[0] for cell in table.cells))
    across = list(dict.fromkeys(cell.labels[1:] for cell in table.cells))
    values = np.zeros((len(down), len(across)))
    texts = [[""] * len(across) for _ in down]
    rows, columns = ({one: i for i, one in enumerate(held)} for held in (down, across))
    for place, cell in enumerate(table.cells):
        i, j = rows[cell.labels[0]], columns[cell.labels[1:]]
        finding = audit.cells.get((at, place))
        texts[i][j] = printable(cell.text) if finding is None else _range(finding)
        if finding is not None:
            values[i, j] = 1 / (1 + finding.width)
    more = f" The first {_MOST_LINES} of {len(down)} lines." if len(down) > _MOST_LINES else ""
    return HeatPanel(
        values=values[:_MOST_LINES],
        across=[printable(_words(one) or "count") for one in across],
        down=[printable(_words((one,))) for one in down][:_MOST_LINES],
        title=f"{printable(table.name)}: what is known about hidden cells",
        note=_NOTE + more,
        texts=texts[:_MOST_LINES],
    )


def _words(labels: Sequence[str | None]) -> str:
    return ", ".join("total" if one is None else one for one in labels)


def _range(finding: CellFinding) -> str:
    if finding.high is None:
        return f"≥ {number(finding.low)}"
    ends = f"{number(finding.low)}–{number(finding.high)}"
    return number(finding.low) if finding.low == finding.high else ends


def _published(finding: CellFinding) -> str:
    if finding.kind == "difference":
        return "not published"
    if finding.published_high is None:
        return f"≥ {number(finding.published_low)}" if finding.published_low else "hidden"
    return f"{number(finding.published_low)}–{number(finding.published_high)}"


def as_html(audit: TableAudit, *, title: str) -> str:
    """One page without a single outside address; everything is escaped."""
    found = audit.findings
    table = document.table(
        ("table", "cell", "published", "follows", "state", "how"),
        (
            (
                printable(one.table),
                printable(one.cell),
                _published(one),
                _range(one),
                one.status,
                printable(one.argument),
            )
            for one in found[:_MOST_ROWS]
        ),
        words=2,
    )
    more = f"<p>... and {len(found) - _MOST_ROWS:,} more.</p>" if len(found) > _MOST_ROWS else ""
    body = _BODY.substitute(
        summary=escape(sentence(audit)),
        advice="".join(f"<li>{escape(one)}</li>" for one in audit.advice()),
        maps="".join(one.svg() for one in maps(audit)),
        findings=(table + more) if found else "<p>None.</p>",
    )
    return document.page(title, body, width="64rem")


def sentence(audit: TableAudit) -> str:
    """The result in two sentences, for the press office."""
    names = ", ".join(printable(one.name) for one in audit.tables)
    if not audit.hidden and not audit.differences:
        return (
            f"The published tables ({names}) hide no cell, and no small count follows from their "
            "differences."
        )
    share = f"{audit.known_exactly:,} of {len(audit.hidden):,} hidden cells can be computed exactly"
    ones = f"{audit.singled_out:,} counts of exactly one person follow"
    late = "" if audit.finished else " Time ran out: more may follow."
    return (
        f"From the published tables ({names}) alone, {share}. {ones}, and "
        f"{len(audit.differences):,} small counts follow from differences of tables.{late}"
    )


def as_json(audit: TableAudit) -> str:
    """Everything, for machines."""
    content = {
        "tables": [_shape(one) for one in audit.tables],
        "unknowns": audit.unknowns,
        "threshold": audit.threshold,
        "finished": audit.finished,
        "hidden_cells": len(audit.hidden),
        "known_exactly": audit.known_exactly,
        "singled_out": audit.singled_out,
        "small": audit.small,
        "differences": len(audit.differences),
        "advice": list(audit.advice()),
        "findings": [
            {
                "kind": one.kind,
                "table": one.table,
                "cell": one.cell,
                "low": one.low,
                "high": one.high,
                "status": one.status,
                "argument": one.argument,
            }
            for one in audit.findings
        ],
    }
    return json.dumps(content, indent=1)


def _shape(table: PublishedTable) -> dict[str, object]:
    return {
        "name": table.name,
        "columns": list(table.columns),
        "population": dict(table.population),
        "cells": len(table.cells),
    }
