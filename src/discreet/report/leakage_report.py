"""What a series leaks, as pictures, as one HTML page, as CSV and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Any

import numpy as np

from discreet.audit.series._design import NoiseSaving
from discreet.audit.series._leakage import epsilon_of
from discreet.audit.series._report import LeakageReport
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.worst_case import StressTest
from discreet.core.number_format import number, percent, short
from discreet.core.tabular import csv_text
from discreet.ledger.ledger import plain
from discreet.report import html_page as document
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.panel import BarPanel, LinePanel, Panel, printable

_MOST_ROWS = 1000
_MOST_BARS = 15
_BODY = Template("""<div class="box"><p><strong>Who may see this.</strong> $publication</p></div>
<p>$summary</p>
$sections
<section><h2>What this rests on</h2><ul>
$assumptions
<li>This is not differential privacy. It says what an attacker who knows how values depend on each
other learns from all releases together; if the model is wrong, so are the numbers.</li>
</ul></section>""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPage:
    """A report with what is needed to show it."""

    report: LeakageReport
    title: str
    times: tuple[str, ...]
    """What the times are called."""
    names: tuple[str, ...] = ()
    """What the people are called; none, where one line stands for everybody."""
    stressed: tuple[StressTest, ...] = ()
    model: ExchangeableVAR | None = None
    """A model that may be shown."""

    def who(self, person: int) -> str:
        """What a person is called."""
        if self.report.alike:
            return f"everybody ({self.report.number:,} people)"
        return printable(self.names[person]) if self.names else str(person)

    def rows(self) -> list[dict[str, Any]]:
        """One for each person, the worst first."""
        return [
            {
                "person": self.who(one.person),
                "time": self.times[one.time],
                "mu": one.mu,
                "leaks": one.epsilon,
                "promised": one.promised,
                "all_values": one.user,
            }
            for one in self.report.people
        ]

    def noise(self) -> list[dict[str, Any]]:
        """The noise there is, and what would meet the target: standard errors of a mean."""
        now = float(np.sqrt(np.mean(np.diag(self.report.releases.covariance))))
        leaks = epsilon_of(self.report.cells.worst, delta=self.report.delta)
        rows = [
            {"noise": "as it is", "error": now, "leaks": leaks, "least": None, "below_equal": None}
        ]
        for fix in self.report.fixes:
            size = len(fix.releases.times)
            rows.append(
                {
                    "noise": fix.shape,
                    "error": math.sqrt(fix.total / size),
                    "leaks": epsilon_of(fix.reached, delta=self.report.delta),
                    "least": math.sqrt(fix.least / size),
                    "below_equal": 1 - fix.total / fix.equal,
                }
            )
        return rows


def pictures(told: SeriesPage) -> list[Panel]:
    """The leakage over time, the noise that would do, the people who leak most."""
    return [over_time(told), errors(told), *([] if told.report.alike else [people(told)])]


def over_time(told: SeriesPage) -> LinePanel:
    """What one value leaks, by its time."""
    report = told.report
    times = [float(t) for t in range(len(told.times))]

    def line(label: str, mu: Any) -> ChartCurve:
        y = [epsilon_of(float(value), delta=report.delta) for value in mu]
        return ChartCurve(label=label, x=times, y=y)

    mu = report.cells.mu
    lines = [line("leaks, worst person" if len(mu) > 1 else "leaks", mu.max(axis=0))]
    if len(mu) > 1:
        lines.append(line("leaks, median person", np.median(mu, axis=0)))
    lines.append(line("guaranteed by the noise", report.cells.direct.max(axis=0)))
    names = told.times

    def words(tick: float) -> str:
        inside = tick == int(tick) and 0 <= tick < len(names)
        return printable(names[int(tick)])[:12] if inside else ""

    return LinePanel(
        lines=lines,
        x=ChartAxis(label="time", words=words),
        y=ChartAxis(label=f"epsilon of one value (delta {number(report.delta)})"),
        title="What one value leaks, by its time",
        note="Guaranteed: if nothing depended on anything. Leaks: under the model.",
    )


def people(told: SeriesPage) -> BarPanel:
    """The people who leak most."""
    rows = told.rows()[:_MOST_BARS]
    return BarPanel(
        labels=[row["person"] for row in rows],
        values=[row["leaks"] for row in rows],
        low=[None] * len(rows),
        high=[None] * len(rows),
        title="Whose values leak most",
        unit="epsilon of the worst value",
        note=f"The noise alone guarantees {short(rows[0]['promised'], digits=3)}.",
    )


def errors(told: SeriesPage) -> BarPanel:
    """The standard error of a published mean: now, and with noise that meets the target."""
    rows = told.noise()
    return BarPanel(
        labels=[row["noise"] for row in rows],
        values=[row["error"] for row in rows],
        low=[None] * len(rows),
        high=[None] * len(rows),
        title=f"Noise that keeps epsilon {short(told.report.target, digits=3)} for every value",
        unit="standard error of a published mean",
        note=f"As it is: epsilon {short(rows[0]['leaks'], digits=3)}.",
    )


def savings(rows: Sequence[NoiseSaving]) -> LinePanel:
    """Total error of designed noise against equal noise, by how strong habits are."""
    habits = [row.habit for row in rows]
    return LinePanel(
        lines=[
            ChartCurve(label="independent noise", x=habits, y=[row.independent for row in rows]),
            ChartCurve(label="correlated noise", x=habits, y=[row.correlated for row in rows]),
            ChartCurve(
                label="less is impossible (proof)",
                x=habits,
                y=[row.least for row in rows],
                joined=False,
            ),
        ],
        x=ChartAxis(label="habit: how much of a value comes from the last one"),
        y=ChartAxis(label="total variance, equal noise = 1"),
        title="Noise for the same worst leakage",
        note="Equal independent noise is 1. Below 0.7: at least 30% less.",
    )


def as_html(told: SeriesPage) -> str:
    """One page without a single outside address; everything is escaped."""
    report = told.report
    worst = report.people[0]
    body = _BODY.substitute(
        publication=escape(report.publication),
        summary=escape(
            f"{report.number:,} people, {len(told.times)} times, {len(report.releases.times)} of "
            "them published. Each release guarantees epsilon "
            f"{short(worst.promised, digits=3)} for one value; "
            "under the model the worst value leaks epsilon "
            f"{short(worst.epsilon, digits=3)}. All values of a "
            f"person together: {short(worst.user, digits=3)}, by the noise alone. Delta is "
            f"{number(report.delta)}."
        ),
        sections="\n".join(_sections(told)),
        assumptions="\n".join(f"<li>Assumed: {escape(a)}.</li>" for a in report.cells.assumptions),
    )
    return document.page(told.title, body)


def _sections(told: SeriesPage) -> list[str]:
    drawn = [f"<section>{panel.svg()}</section>" for panel in pictures(told)]
    rows = told.rows()
    heads = ("person", "worst time", "mu", "leaks", "guaranteed", "all values")
    more = len(rows) - _MOST_ROWS
    remarks = " ".join(f"{line[:1].upper()}{line[1:]}." for line in told.report.remarks())
    parts = [
        *drawn,
        f"<section><h2>People</h2>{_table(heads, rows[:_MOST_ROWS])}"
        + (f"<p>{more:,} more are in the CSV.</p>" if more > 0 else "")
        + f"<p>{escape(remarks)}</p></section>",
        "<section><h2>Noise</h2>"
        + _table(("noise", "error", "leaks", "least error", "below equal"), _shares(told.noise()))
        + "<p>Error: standard error of a published mean. Least: a proof that no noise of this "
        "kind does better. Below equal: in total variance.</p></section>",
    ]
    if told.stressed:
        cells = [{"change": s.change, "mu": s.mu, "leaks": s.epsilon} for s in told.stressed]
        parts.append(
            "<section><h2>If the model is wrong</h2>"
            + _table(("change", "mu", "leaks"), cells)
            + "</section>"
        )
    if told.model is not None:
        parts.append(f"<section><h2>The model</h2><p>{escape(str(told.model))}</p></section>")
    return parts


def _shares(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With what is saved in per cent."""
    return [
        {**row, "below_equal": None if row["least"] is None else percent(row["below_equal"])}
        for row in rows
    ]


def _table(heads: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    return document.table(heads, ([_word(value) for value in row.values()] for row in rows))


def _word(value: Any) -> str:
    if value is None:
        return "–"
    return short(value) if isinstance(value, float) else str(value)


def as_csv(told: SeriesPage) -> str:
    """One line for each person, the worst first."""
    rows = told.rows()
    lines = ({**row, "person": plain(row["person"])} for row in rows)
    return csv_text([list(rows[0]), *(list(line.values()) for line in lines)])


def as_json(told: SeriesPage) -> str:
    """Everything, for machines; what is infinite is null."""
    report = told.report
    content = {
        "title": told.title,
        "publication": report.publication,
        "private": report.origin == "fitted" or report.clipped is not None,
        "origin": report.origin,
        "guarantee": None if report.guarantee is None else json.loads(report.guarantee.to_json()),
        "model": None
        if told.model is None
        else {
            "habits": list(told.model.habits),
            "variance": told.model.variance,
            "correlation": told.model.correlation,
        },
        "people": report.number,
        "times": list(told.times),
        "released": list(report.releases.times),
        "delta": report.delta,
        "target": report.target,
        "clipped": report.clipped,
        "plausible": list(report.plausible),
        "leaks": told.rows(),
        "noise": [
            {
                **row,
                "covariance": None if i == 0 else report.fixes[i - 1].releases.covariance.tolist(),
            }
            for i, row in enumerate(told.noise())
        ],
        "stress": [{"change": s.change, "mu": s.mu, "leaks": s.epsilon} for s in told.stressed],
        "assumptions": list(report.cells.assumptions),
    }
    return json.dumps(document.finite(content), indent=1)
