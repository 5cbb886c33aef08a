"""Comparisons of what could be used: models of trust, structures, noises."""

from __future__ import annotations

import math

from discreet.mechanisms.best import BestAdditive
from discreet.queries.intervals.compare import Comparisons
from discreet.queries.ranges.local.ladder import Ladder
from discreet.queries.ranges.local.plan import LocalPlan
from discreet.report.chart import Axis, Curve
from discreet.report.intervals import against_rows
from discreet.report.panels import Bars, Lines, Panel
from discreet.tables.release import worth

_MOST = 9
_LOSSES = {
    "mse": "root of the mean squared error",
    "mae": "mean absolute error",
    "p95": "error that 95 of 100 releases stay below",
}


def panels(shown: object) -> tuple[Panel, ...] | None:
    """How a comparison is drawn; None if it is none."""
    match shown:
        case LocalPlan():
            return (against_length(shown),)
        case Ladder():
            return (rungs(shown),)
        case BestAdditive():
            return (losses(shown),)
        case Comparisons():
            return against_rows(shown)
    return None


def rungs(ladder: Ladder) -> Bars:
    """What the same guarantee costs if fewer parties are trusted."""
    none = [None] * len(ladder.rungs)
    alone = [
        f"{rung.local_epsilon:.4g} ({rung.model})"
        for rung in ladder.rungs
        if math.isfinite(rung.local_epsilon)
    ]
    return Bars(
        labels=[f"{rung.model}: {rung.trusted}" for rung in ladder.rungs],
        values=[rung.rmse for rung in ladder.rungs],
        low=none,
        high=none,
        title=(
            f"Error of a range by who is trusted: {ladder.clients:,} clients, "
            f"({ladder.epsilon:g}, {ladder.delta:g})-DP if one is replaced"
        ),
        note=f"A report alone: epsilon {', '.join(alone)}.",
        unit=f"Standard error in clients (log scale), {ladder.workload} of {ladder.domain}",
        log=True,
    )


def against_length(plan: LocalPlan) -> Lines:
    """Standard error against the length of a range, for every candidate; the chosen one first."""
    lengths, errors = plan.curves()
    chosen = plan.chosen.name
    names = [chosen, *(name for name in errors if name != chosen)]
    return Lines(
        lines=[
            Curve(label=name, x=lengths.astype(float).tolist(), y=errors[name].tolist())
            for name in names[:_MOST]
        ],
        x=Axis(label="cells in the range", log=True),
        y=Axis(label=f"standard error, in clients of {plan.clients:,}", log=True),
        title=(
            f"Error by length of a range of {plan.domain} "
            f"({plan.clients:,} reports of epsilon {float(plan.epsilon):g}); the first is used"
        ),
        note="Root mean square over ranges if cells are equally frequent; no report was read.",
    )


def losses(best: BestAdditive) -> Bars:
    """Expected losses of all noises that keep a promise."""
    none = [None] * len(best.candidates)
    left = ", ".join(name for name, _ in best.refused)
    return Bars(
        labels=[one.name for one in best.candidates],
        values=[one.loss for one in best.candidates],
        low=none,
        high=none,
        title=f"Noise for one number ({worth(best.guarantee)}); the first is used",
        note=f"Does not fit: {left}." if left else "",
        unit=f"{_LOSSES[best.loss].capitalize()}, in the unit of the number",
    )
