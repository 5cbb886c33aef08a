"""A study as JSON and as one self-contained HTML page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from html import escape
from string import Template

from discreet.report.chart import Axis, Curve, curves
from discreet.studies.study import Check, Experiment, Figure, Findings, Study, Table, Value

_PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body{font:15px/1.5 sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#111}
table{border-collapse:collapse;margin:.6rem 0;font-size:.92em}
caption{text-align:left;font-weight:bold;padding:.3rem 0}
td,th{border-bottom:1px solid #ccc;padding:.15rem .6rem;text-align:right}
td.k,th.k{text-align:left} svg{max-width:100%;height:auto}
section{margin:2.4rem 0} .box{border:1px solid #999;padding:.6rem 1rem} .bad{font-weight:bold}
details{margin:.6rem 0} summary{cursor:pointer}
</style></head><body>
<h1>$title</h1>
<p>$source</p>
<div class="box"><p>$summary</p><p><strong>$count.</strong> $how</p></div>
$sections
</body></html>
""")


def as_json(study: Study) -> str:
    """Tables, figures and checks for machines; what is not finite becomes null."""
    return json.dumps(
        {
            "study": study.plan.name,
            "title": study.plan.title,
            "source": study.plan.source,
            "quick": study.setting.quick,
            "seed": study.setting.seed,
            "ok": study.ok,
            "tables": [_finite(asdict(table)) for table in study.tables],
            "figures": [_finite(asdict(figure)) for figure in study.figures],
            "checks": [_finite(asdict(check)) for check in study.checks],
        },
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def as_html(study: Study) -> str:
    """One page without a single outside address; everything is escaped."""
    how = "less simulation than a full run" if study.setting.quick else "a full run"
    return _PAGE.substitute(
        title=escape(study.plan.title),
        source=escape(study.plan.source),
        summary=escape(study.plan.summary),
        count=escape(tally(study)),
        how=escape(f"Seed {study.setting.seed}, {how}."),
        sections="\n".join(_section(*section) for section in study.sections),
    )


def tally(study: Study) -> str:
    """How the checks came out, in one line."""
    wrong = sum(not check.ok for check in study.checks)
    settled = sum(check.ok and check.verdict == "not reproducible" for check in study.checks)
    return (
        f"{len(study.checks)} checks: {study.count('reproduced')} reproduced, "
        f"{study.count('corrected')} corrected, {settled} beyond checking, {wrong} failed"
    )


def shown(value: Value) -> str:
    """A value for people."""
    match value:
        case None:
            return "–"
        case tuple():
            return " < ".join(map(shown, value))
        case float():
            return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _section(experiment: Experiment, found: Findings) -> str:
    return (
        f"<section><h2>{escape(experiment.id)}. {escape(experiment.title)}</h2>\n"
        + "\n".join(map(picture, found.figures))
        + "\n".join(map(_table, found.tables))
        + _checks(found.checks)
        + "</section>"
    )


def picture(figure: Figure) -> str:
    """A figure as SVG text."""
    return curves(
        [
            Curve(label=line.label, x=line.x, y=line.y, joined=not line.points)
            for line in figure.lines
        ],
        x=Axis(label=figure.x, log=figure.log_x),
        y=Axis(label=figure.y, log=figure.log_y),
        title=figure.title,
        note=figure.note,
    )


def _table(table: Table) -> str:
    heads = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f"<table><caption>{escape(table.title)}</caption><tr>{heads}</tr>\n{rows}</table>{note}\n"
    )


def _checks(checks: tuple[Check, ...]) -> str:
    heads = "".join(
        f'<th class="k">{name}</th>'
        for name in ("check", "claim", "stated by", "expected", "got", "verdict", "why")
    )
    rows = "\n".join(map(_check, checks))
    wrong = sum(not check.ok for check in checks)
    mark = f", {wrong} failed" if wrong else ""
    return (
        f"<details{' open' if wrong else ''}><summary>{len(checks)} checks{mark}</summary>"
        f"<table><tr>{heads}</tr>\n{rows}</table></details>"
    )


def _check(check: Check) -> str:
    kind = {"at least": "≥ ", "at most": "≤ "}.get(check.rule, "")
    plus = "" if check.tolerance is None else f" ± {shown(check.tolerance)}"
    cells = (
        check.id,
        check.claim,
        check.source,
        kind + shown(check.expected) + plus,
        shown(check.got),
        check.verdict if check.ok else "FAILED",
        check.why,
    )
    bad = "" if check.ok else ' class="bad"'
    return f"<tr{bad}>" + "".join(f'<td class="k">{escape(cell)}</td>' for cell in cells) + "</tr>"


def _finite(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case _:
            return value
