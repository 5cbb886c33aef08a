"""Pictures of what the service says, through the drawing of `report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from discreet.core.number_format import number, percent, short
from discreet.report.drawing import responsive as fluid
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.panel import BarPanel, LinePanel
from discreet.report.plot import panel
from discreet.report.range_section import cumulative
from discreet.server.schemas import (
    AccountInfo,
    BudgetInfo,
    ErrorPoint,
    LeakageInfo,
    PlanInfo,
    PrivacyLevelInfo,
    RangePlanInfo,
    StatisticPlanInfo,
)
from discreet.spec.budget_arithmetic import (
    percent_left,
    percent_spent,
    share_of_limit,
    share_spent,
)
from discreet.tables.range_release import AnyRangeRelease, ChargedRangeRelease
from discreet.tables.release import Release

_MOST_LINES = 6
_DAY_S = 86_400


def curve(points: Sequence[ErrorPoint], *, now: ErrorPoint, measure: str, unit: str) -> str:
    """The error against the amount, with what is asked for."""
    known = [(p.amount, p.width) for p in points if p.width is not None and p.width > 0]
    if len(known) < 2:
        return ""
    lines = [ChartCurve(label="error", x=[x for x, _ in known], y=[y for _, y in known])]
    if now.width:
        lines.append(ChartCurve(label="as asked", x=[now.amount], y=[now.width], joined=False))
    return fluid.drawn(
        LinePanel(
            lines=lines,
            x=ChartAxis(label=measure, log=True),
            y=ChartAxis(label=unit, log=True),
            title=f"What another {measure} would give",
            note="Computed from the declared columns alone; no row was read.",
        )
    )


def alternatives(one: StatisticPlanInfo) -> str:
    """Other mechanisms at the same price."""
    known = [(a, a.width) for a in one.alternatives if a.width is not None]
    if len(known) < 2:
        return ""
    return fluid.drawn(
        BarPanel(
            labels=[f"{a.name} (as asked)" if a.chosen else a.name for a, _ in known],
            values=[width for _, width in known],
            low=[None] * len(known),
            high=[None] * len(known),
            title="Other noise for the same epsilon",
            unit=f"Error, {number(100 * one.level)} times of 100 at most",
            note="Shorter is better.",
        )
    )


def structures(one: RangePlanInfo) -> str:
    """Range structures: their errors by the size of a range."""
    best = one.structures[:_MOST_LINES]
    bars = fluid.drawn(
        BarPanel(
            labels=[s.name for s in one.structures],
            values=[s.rmse for s in one.structures],
            low=[None] * len(one.structures),
            high=[None] * len(one.structures),
            title="Structures that could answer, the best first",
            unit="Mean standard error",
            note=f"Mean over: {one.workload}. The first is used.",
        )
    )
    places = [float(i) for i in range(len(one.shown))]
    lines = fluid.drawn(
        LinePanel(
            lines=[ChartCurve(label=s.name, x=places, y=list(s.errors)) for s in best],
            x=ChartAxis(label="size of the range", words=lambda tick: _word(one.shown, tick)),
            y=ChartAxis(label="standard error", log=True),
            title="Error by the size of a range",
            note="A structure that is good for single values may be bad for wide ranges.",
        )
    )
    return bars + (lines if len(places) > 1 else "")


def budget_meter(budget: BudgetInfo, *, now: float | None = None) -> str:
    """What is spent, what this would take, what is left."""
    spent = share_spent(budget.remaining, budget.limit, measure=budget.currency)
    parts = [("spent", spent)]
    words = f"{percent(spent)} of {budget.limit_words} is spent"
    if now is not None:
        share = share_of_limit(now, budget.limit, measure=budget.currency)
        parts.append(("this" if share <= 1 - spent else "over", share))
        words += f", this takes {percent(share)}"
    return fluid.meter(parts, words=words)


def over_time(accounts: Sequence[AccountInfo]) -> str:
    """What is left of each account, as a share of its limit."""
    now = datetime.now(UTC).timestamp()
    lines = []
    for one in accounts[:_MOST_LINES]:
        x: list[float] = []
        y: list[float] = []
        last = 100.0
        for entry in one.history:
            if entry.remaining is None:
                continue
            at, left = _seconds(entry.time), percent_left(entry.remaining, one.budget.limit)
            x += [at, at]
            y += [last if x[2:] else left, left]
            last = left
        if x:
            lines.append(
                ChartCurve(label=one.budget.account, x=[*x, max(now, x[-1])], y=[*y, last])
            )
    if not lines:
        return ""
    left_out = len(accounts) - _MOST_LINES
    first = min(line.x[0] for line in lines)
    return fluid.drawn(
        LinePanel(
            lines=lines,
            x=ChartAxis(
                label="time (UTC)",
                words=lambda tick: _moment(tick, span=now - first),
                zero=False,
            ),
            y=ChartAxis(label="left, % of the limit"),
            title="Budget over time",
            note=f"{left_out} more accounts are in the table." if left_out > 0 else "",
        )
    )


def spenders(accounts: Sequence[AccountInfo]) -> str:
    """Who spent what."""
    shares = [
        (one.budget.account, percent_spent(one.budget.remaining, one.budget.limit))
        for one in accounts
    ]
    return fluid.drawn(
        BarPanel(
            labels=[name for name, _ in shares],
            values=[share for _, share in shares],
            low=[None] * len(shares),
            high=[None] * len(shares),
            title="Who spent what",
            unit="% of the own limit that is spent",
            note="",
        )
    )


def leaks(found: LeakageInfo) -> str:
    """What the value of each time leaks, and what noise would do."""
    places = [float(i) for i in range(len(found.over_time))]
    names = [one.time for one in found.over_time]
    lines = fluid.drawn(
        LinePanel(
            lines=[
                ChartCurve(label="leaks", x=places, y=[one.leaks for one in found.over_time]),
                ChartCurve(
                    label="guaranteed by the noise",
                    x=places,
                    y=[one.promised for one in found.over_time],
                ),
            ],
            x=ChartAxis(label="time", words=lambda tick: _word(names, tick)),
            y=ChartAxis(label=f"epsilon of one value, delta {number(found.delta)}"),
            title="What one value leaks, by its time",
            note="Guaranteed: if nothing depended on anything. Leaks: under the model.",
        )
    )
    none = [None] * len(found.noise)
    bars = fluid.drawn(
        BarPanel(
            labels=[one.noise for one in found.noise],
            values=[one.error for one in found.noise],
            low=none,
            high=none,
            title=f"Noise that keeps epsilon {short(found.target, digits=3)} for every value",
            unit="Standard error of a published mean",
            note=f"As it is, epsilon is {short(found.noise[0].leaks, digits=3)}.",
        )
    )
    return lines + bars


def consent(level: PrivacyLevelInfo) -> str:
    """How the members of a level have spent."""
    tenths = [f"{10 * i} to {10 * (i + 1)} %" for i in range(len(level.counts))]
    return fluid.drawn(
        BarPanel(
            labels=tenths,
            values=[float(count) for count in level.counts],
            low=[None] * len(tenths),
            high=[None] * len(tenths),
            title=f"{level.name}: {level.members:,} members, limit {level.limit}",
            unit="Members by the share of their limit that is spent",
            note="",
        )
    )


def result(release: Release) -> str:
    """A release with its error bars."""
    shown = panel(release)
    unit = (
        release.query_text
        if release.query_text != release.title
        else "By " + ", ".join(release.key_columns)
    )
    return fluid.drawn(replace(shown, unit=unit))


def ranges(release: AnyRangeRelease) -> str:
    """How many there are up to each cell; of rectangles there is no picture."""
    if not isinstance(release, ChargedRangeRelease):
        return ""
    return fluid.drawn(cumulative(release))


def cost_words(planned: PlanInfo) -> str:
    """What a plan costs, in the currency of the account."""
    if planned.cost is None or planned.budget is None:
        return planned.worth
    return f"{planned.budget.currency} {short(planned.cost, digits=3)}"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _moment(tick: float, *, span: float) -> str:
    """As exact as a whole span of time needs."""
    moment = datetime.fromtimestamp(tick, UTC)
    if span >= 2 * _DAY_S:
        return f"{moment.day} {moment:%b}"
    return f"{moment:%H:%M}" if span >= 600 else f"{moment:%H:%M:%S}"


def _word(words: Sequence[str], tick: float) -> str:
    inside = tick == int(tick) and 0 <= tick < len(words)
    return words[int(tick)] if inside else ""
