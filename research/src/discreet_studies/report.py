"""A study as JSON and as one self-contained HTML page."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape

from discreet.report import html_page as document
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.line_chart import curves
from discreet_studies.study import (
    Experiment,
    Figure,
    Findings,
    Study,
    StudyCheck,
    StudyTable,
    Value,
)


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
            "tables": [document.finite(asdict(table)) for table in study.tables],
            "figures": [document.finite(asdict(figure)) for figure in study.figures],
            "checks": [document.finite(asdict(check)) for check in study.checks],
        },
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def as_html(study: Study) -> str:
    """One page without a single outside address; everything is escaped."""
    how = "less simulation than a full run" if study.setting.quick else "a full run"
    sections = "\n".join(_section(*section) for section in study.sections)
    body = (
        f"<p>{escape(study.plan.source)}</p>\n"
        f'<div class="box"><p>{escape(study.plan.summary)}</p><p><strong>{escape(tally(study))}.'
        f"</strong> {escape(f'Seed {study.setting.seed}, {how}.')}</p></div>\n{sections}"
    )
    return document.page(study.plan.title, body, width="62rem")


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
            ChartCurve(label=line.label, x=line.x, y=line.y, joined=not line.points)
            for line in figure.lines
        ],
        x=ChartAxis(label=figure.x, log=figure.log_x),
        y=ChartAxis(label=figure.y, log=figure.log_y),
        title=figure.title,
        note=figure.note,
    )


def _table(table: StudyTable) -> str:
    cells = ([shown(cell) for cell in row] for row in table.rows)
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return document.table(table.columns, cells, words=0, caption=table.title) + f"{note}\n"


def _checks(checks: tuple[StudyCheck, ...]) -> str:
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


def _check(check: StudyCheck) -> str:
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
