"""Which regression, before a row is read: the error to expect of each method."""

from pathlib import Path

from discreet.models.regression import choose_method
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

rows = [100, 300, 1_000, 3_000, 10_000, 30_000]
found = [choose_method(expected_rows=n, features=5, epsilon=1, delta=1e-6) for n in rows]
names = sorted({name for one in found for name in one.errors})

save(
    [
        LinePanel(
            lines=[
                ChartCurve(
                    label=name, x=rows, y=[one.errors.get(name, float("inf")) for one in found]
                )
                for name in names
            ],
            x=ChartAxis(label="rows", log=True),
            y=ChartAxis(label="error, least squares without privacy = 1", log=True),
            title="Five features, epsilon 1, delta 1e-6: the error to expect",
            note="Forecast from public numbers alone. Chosen: the lowest, if it is clearly so.",
        )
    ],
    Path("regression.svg"),
)
