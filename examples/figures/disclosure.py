"""Bounded noise wears off: how well a record is known after several releases of the same kind."""

from pathlib import Path

from discreet import disclosure as dc
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

releases = [1, 2, 3, 5, 10, 20, 50, 100]
save(
    [
        LinePanel(
            lines=[
                ChartCurve(
                    label=f"noise up to {half:g} years",
                    x=releases,
                    y=[dc.width_after_releases(m, half_width=half) for m in releases],
                )
                for half in (10, 5, 2.5)
            ],
            x=ChartAxis(label="releases of the same records", log=True),
            y=ChartAxis(label="years between which an age is known", log=True),
            title="k-noise: what is left of it after several releases",
            note="Exact expectation. This is no differential privacy, and here is why.",
        )
    ],
    Path("disclosure.svg"),
)
