"""A schedule of private descent as a picture: the terms of its bound, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

if TYPE_CHECKING:  # models need scikit-learn, which is an extra
    from discreet.models.dp_sgd.schedule_analysis import ScheduleAnalysis

_TERMS = {
    "distance": "distance still to go",
    "variance": "variance of single records",
    "noise": "noise",
    "total": "bound: the sum",
}


def terms(analysis: ScheduleAnalysis) -> LinePanel:
    """The terms of the bound against the number of steps."""
    table = analysis.rows()
    best = analysis.best
    return LinePanel(
        lines=[
            ChartCurve(
                label=label,
                x=[row["steps"] for row in table],
                y=[row[name] for row in table],
            )
            for name, label in _TERMS.items()
        ],
        x=ChartAxis(label="steps", log=True),
        y=ChartAxis(label="expected excess loss", log=True),
        title=(
            f"Bound by steps: {_rates(analysis)}, {analysis.noise.capitalize()} noise, "
            f"a budget for {_budget(analysis)}"
        ),
        note=(
            f"With more steps the bound {analysis.verdict}; smallest: {best.bound.total:.3g} after "
            f"{best.steps:,} steps. A bound, not an error: computed from public or made-up "
            "constants."
        ),
    )


def costs(analysis: ScheduleAnalysis) -> LinePanel:
    """What the last iterate and what all of them cost, against the number of steps."""
    table = analysis.rows()
    steps = [row["steps"] for row in table]
    unit = "epsilon" if analysis.noise == "laplace" else "rho"
    return LinePanel(
        lines=[
            ChartCurve(
                label="the last iterate alone", x=steps, y=[row["last_cost"] for row in table]
            ),
            ChartCurve(
                label="all iterates, their average", x=steps, y=[row["run_cost"] for row in table]
            ),
        ],
        x=ChartAxis(label="steps", log=True),
        y=ChartAxis(label=unit, log=True),
        title=f"What the run costs, in {unit}",
        note="One record replaced; the number of steps is fixed before the first.",
    )


def save_schedule(analysis: ScheduleAnalysis, path: str | Path) -> Path:
    """Draw the terms, and the costs unless they are fixed; the format follows the suffix."""
    if analysis.budget == "run":
        return save((terms(analysis),), Path(path))
    return save((terms(analysis), costs(analysis)), Path(path))


def _rates(analysis: ScheduleAnalysis) -> str:
    start, decay = analysis.schedule.start, analysis.schedule.decay
    return f"rate {start:g}" if decay == 0 else f"rates {start:g} (1+t)^-{decay:g}"


def _budget(analysis: ScheduleAnalysis) -> str:
    if analysis.budget == "run":
        return "the whole run"
    growth = analysis.schedule.growth
    return "each iterate" if growth == 0 else f"each iterate, growing as t^{growth:g}"
