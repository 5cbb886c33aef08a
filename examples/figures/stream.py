"""A stream: births of the last 28 days, published every day of a year, charged once."""

from pathlib import Path

import numpy as np

import discreet
from discreet import seeded_rng
from discreet.ranges.stream.state import advance, begin
from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel
from discreet_studies.public_data import births

born = births(365)
plan = discreet.plan_stream(epsilon=0.01, window=28)
_, answers = advance(plan, begin(plan), born, rng=seeded_rng(1))
low, high = answers.interval(0.95)
truth = np.convolve(born, np.ones(28, dtype=int))[:365]

shown = np.arange(27, 365)
x = shown.astype(float).tolist()
save(
    [
        LinePanel(
            lines=[
                ChartCurve(label="published", x=x, y=(answers.values[shown] / 1000).tolist()),
                ChartCurve(
                    label="the truth",
                    x=x[::14],
                    y=(truth[shown] / 1000)[::14].tolist(),
                    joined=False,
                ),
            ],
            x=ChartAxis(label="day of 1969"),
            y=ChartAxis(label="births of the last 28 days, in thousands", zero=False),
            title="Births of the last four weeks, every day, for epsilon 0.01 in all",
            note="The band holds each number without noise 95 times of 100.",
            band=ChartBand(
                x=x, low=(low[shown] / 1000).tolist(), high=(high[shown] / 1000).tolist()
            ),
        )
    ],
    Path("stream.svg"),
)
