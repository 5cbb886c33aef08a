"""How much one report may say, if so many are shuffled."""

from pathlib import Path

from discreet.accounting.shuffle import local_epsilon
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

thousands = [1, 3, 10, 30, 100, 300, 1000]
save(
    [
        LinePanel(
            lines=[
                ChartCurve(
                    label=f"epsilon {epsilon:g} after shuffling",
                    x=thousands,
                    y=[local_epsilon(epsilon, delta=1e-6, reports=1000 * n) for n in thousands],
                )
                for epsilon in (1.0, 0.5, 0.1)
            ],
            x=ChartAxis(label="thousands of reports that are shuffled", log=True),
            y=ChartAxis(label="epsilon of one report"),
            title="What a shuffler buys (delta 1e-6, any randomizer)",
            note="If the shuffler fails, the epsilon of one report is what is left.",
        )
    ],
    Path("shuffle.svg"),
)
