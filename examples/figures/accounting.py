"""What a hundred releases cost together: epsilons added up, and what the accountant proves."""

from pathlib import Path

import discreet
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

times = [1, 2, 5, 10, 20, 50, 100, 200]
one = discreet.laplace(sensitivity=1, epsilon=0.1).guarantee
same = discreet.gaussian(sensitivity=1, epsilon=0.1, delta=1e-8).guarantee

save(
    [
        LinePanel(
            lines=[
                ChartCurve(label="added up", x=times, y=[0.1 * k for k in times]),
                ChartCurve(
                    label="Laplace, delta 1e-6", x=times, y=[(one * k).epsilon(1e-6) for k in times]
                ),
                ChartCurve(
                    label="Gaussian, delta 1e-6",
                    x=times,
                    y=[(same * k).epsilon(1e-6) for k in times],
                ),
            ],
            x=ChartAxis(label="releases of epsilon 0.1", log=True),
            y=ChartAxis(label="epsilon of all of them", log=True),
            title="What many small releases cost together",
            note="By exact distributions of the privacy loss, rounded up.",
        )
    ],
    Path("accounting.svg"),
)
