"""A forecast made private by ranges learned from public inputs, against a public constant."""

from pathlib import Path

import numpy as np

from discreet import blackbox
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel
from discreet_studies.public_data import births

born = births(730)  # two years: one to fit the forecast, one of public examples
weeks = np.lib.stride_tricks.sliding_window_view(born / 100.0, 8)[::6]
weights = np.linalg.lstsq(weeks[:60, :7], weeks[:60, 7], rcond=None)[0]


def forecast(days: np.ndarray) -> float:
    """The next day from the last seven, in hundreds of births."""
    return float(days @ weights)


budgets = [0.5, 2, 8]
found = [
    blackbox.make_private(
        forecast, public_inputs=weeks[60:, :7], metric="record", epsilon=epsilon, bounds=(60, 130)
    ).expected
    for epsilon in budgets
]
save(
    [
        LinePanel(
            lines=[
                ChartCurve(label="released", x=budgets, y=[100 * one.error for one in found]),
                ChartCurve(label="of it: clipping", x=budgets, y=[100 * one.bias for one in found]),
                ChartCurve(label="a constant", x=budgets, y=[100 * one.constant for one in found]),
            ],
            x=ChartAxis(label="epsilon of an answer, which hides a whole day", log=True),
            y=ChartAxis(label="mean error of the forecast, in births"),
            title="Births of tomorrow from those of a week, made private",
            note="Ranges learned from public inputs; errors on others, by cross-validation.",
        )
    ],
    Path("learned.svg"),
)
