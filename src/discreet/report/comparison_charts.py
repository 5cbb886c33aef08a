"""Charts that compare options: intervals, trust models, range strategies, noise."""

from __future__ import annotations

import math
from typing import get_args

from discreet.accounting.guarantee import describe_epsilon
from discreet.core.number_format import number, short
from discreet.intervals.central_vs_local import (
    CentralLocalComparison,
    CentralLocalComparisons,
    Statistic,
)
from discreet.local.ranges.plan import LocalPlan
from discreet.local.trust_models import TrustComparison
from discreet.mechanisms.scalar.best_noise import BestAdditiveNoise
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.panel import BarPanel, LinePanel, Panel

# ── Central and local intervals
# ────────────────────────────────────────────────────────────────────


def against_rows(found: CentralLocalComparisons) -> tuple[LinePanel, ...]:
    """One picture for each statistic: its error if a server is trusted, and if none is."""
    return tuple(
        _panel(found, statistic, found.of(statistic))
        for statistic in get_args(Statistic)
        if found.of(statistic)
    )


def _panel(
    found: CentralLocalComparisons, statistic: Statistic, rows: tuple[CentralLocalComparison, ...]
) -> LinePanel:
    x = [float(row.public_rows) for row in rows]
    lines = [
        ChartCurve(label="central: noise on the answer", x=x, y=[row.central for row in rows]),
        ChartCurve(label="local: noise on every row", x=x, y=[row.local for row in rows]),
    ]
    note = "Exact, for any rows with this standard deviation."
    if statistic == "median":
        lines[0] = ChartCurve(label="central: chosen by rank", x=x, y=[row.central for row in rows])
        lines.append(
            ChartCurve(label="central: noise on the answer", x=x, y=[row.output for row in rows])
        )
        note = "For many normal rows: elsewhere the median of noisy rows is biased, too."
    if statistic == "variance":
        lines.append(
            ChartCurve(label="local, noise not taken off", x=x, y=[row.uncorrected for row in rows])
        )
    last = rows[-1]
    return LinePanel(
        lines=lines,
        x=ChartAxis(label="rows", log=True),
        y=ChartAxis(label=f"error of the {statistic} (root mean square)", log=True),
        title=(
            f"What it costs to trust no server: {statistic}, epsilon {number(found.epsilon)}, "
            f"range {number(found.width)}, standard deviation {number(found.std)}"
        ),
        note=(
            f"{note} At {last.public_rows:,} rows, noise on every row needs epsilon "
            f"{short(last.matched, digits=3)} "
            "to be as good."
        ),
    )


# ── Trust models
# ───────────────────────────────────────────────────────────────────────────────────


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
        case TrustComparison():
            return (rungs(shown),)
        case BestAdditiveNoise():
            return (losses(shown),)
        case CentralLocalComparisons():
            return against_rows(shown)
    return None


def rungs(ladder: TrustComparison) -> BarPanel:
    """What the same guarantee costs if fewer parties are trusted."""
    none = [None] * len(ladder.rungs)
    alone = [
        f"{short(rung.local_epsilon)} ({rung.model})"
        for rung in ladder.rungs
        if math.isfinite(rung.local_epsilon)
    ]
    return BarPanel(
        labels=[f"{rung.model}: {rung.trusted}" for rung in ladder.rungs],
        values=[rung.rmse for rung in ladder.rungs],
        low=none,
        high=none,
        title=(
            f"Error of a range by who is trusted: {ladder.expected_clients:,} clients, "
            f"({number(ladder.epsilon)}, {number(ladder.delta)})-DP if one is replaced"
        ),
        note=f"A report alone: epsilon {', '.join(alone)}.",
        unit=f"Standard error in clients (log scale), {ladder.workload} of {ladder.domain}",
        log=True,
    )


def against_length(plan: LocalPlan) -> LinePanel:
    """Standard error against the length of a range, for every candidate; the chosen one first."""
    lengths, errors = plan.curves()
    chosen = plan.chosen.name
    names = [chosen, *(name for name in errors if name != chosen)]
    return LinePanel(
        lines=[
            ChartCurve(label=name, x=lengths.astype(float).tolist(), y=errors[name].tolist())
            for name in names[:_MOST]
        ],
        x=ChartAxis(label="cells in the range", log=True),
        y=ChartAxis(label=f"standard error, in clients of {plan.expected_clients:,}", log=True),
        title=(
            f"Error by length of a range of {plan.domain} "
            f"({plan.expected_clients:,} reports of epsilon {number(plan.epsilon)}); the first "
            "is used"
        ),
        note="Root mean square over ranges if cells are equally frequent; no report was read.",
    )


def losses(best: BestAdditiveNoise) -> BarPanel:
    """Expected losses of all noises that keep a promise."""
    none = [None] * len(best.candidates)
    left = ", ".join(name for name, _ in best.refused)
    return BarPanel(
        labels=[one.name for one in best.candidates],
        values=[one.loss for one in best.candidates],
        low=none,
        high=none,
        title=f"Noise for one number ({describe_epsilon(best.guarantee)}); the first is used",
        note=f"Does not fit: {left}." if left else "",
        unit=f"{_LOSSES[best.loss].capitalize()}, in the unit of the number",
    )
