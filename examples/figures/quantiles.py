"""Private medians of simulated columns: how far off each mechanism is."""

from pathlib import Path

from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import BarPanel
from discreet_studies.noise_mechanisms.median_errors import median_errors

rows = [row for row in median_errors(rows=501, trials=20) if row.shape == "exponential"]
none = [None] * len(rows)
save(
    [
        BarPanel(
            labels=[row.mechanism for row in rows],
            values=[row.mean_absolute for row in rows],
            low=none,
            high=none,
            title="Error of a median of 501 rows between 0 and 100, epsilon 1",
            note="Exponential rows, 20 releases each.",
            unit="Mean absolute error (log scale)",
            log=True,
        )
    ],
    Path("quantiles.svg"),
)
