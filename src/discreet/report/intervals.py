"""Noise before and after a query, as curves against the number of rows."""

from __future__ import annotations

from typing import get_args

from discreet.queries.intervals.compare import Comparison, Comparisons, Statistic
from discreet.report.chart import Axis, Curve
from discreet.report.panels import Lines


def against_rows(found: Comparisons) -> tuple[Lines, ...]:
    """One picture for each statistic: its error if a server is trusted, and if none is."""
    return tuple(
        _panel(found, statistic, found.of(statistic))
        for statistic in get_args(Statistic)
        if found.of(statistic)
    )


def _panel(found: Comparisons, statistic: Statistic, rows: tuple[Comparison, ...]) -> Lines:
    x = [float(row.rows) for row in rows]
    lines = [
        Curve(label="central: noise on the answer", x=x, y=[row.central for row in rows]),
        Curve(label="local: noise on every row", x=x, y=[row.local for row in rows]),
    ]
    note = "Exact, for any rows with this standard deviation."
    if statistic == "median":
        lines[0] = Curve(label="central: chosen by rank", x=x, y=[row.central for row in rows])
        lines.append(
            Curve(label="central: noise on the answer", x=x, y=[row.output for row in rows])
        )
        note = "For many normal rows: elsewhere the median of noisy rows is biased, too."
    if statistic == "variance":
        lines.append(
            Curve(label="local, noise not taken off", x=x, y=[row.uncorrected for row in rows])
        )
    last = rows[-1]
    return Lines(
        lines=lines,
        x=Axis(label="rows", log=True),
        y=Axis(label=f"error of the {statistic} (root mean square)", log=True),
        title=(
            f"What it costs to trust no server: {statistic}, epsilon {found.epsilon:g}, range "
            f"{found.width:g}, standard deviation {found.std:g}"
        ),
        note=(
            f"{note} At {last.rows:,} rows, noise on every row needs epsilon {last.matched:.3g} "
            "to be as good."
        ),
    )
