"""A weekly mean of the same people: what each value leaks, and noise that keeps the guarantee."""

from pathlib import Path

import numpy as np

from discreet import seeded_rng
from discreet.audit import series
from discreet.report.drawing.figure import save
from discreet.report.leakage_report import SeriesPage, errors, over_time

people, weeks = 40, 10
model = series.VAR(lags=np.diag(np.linspace(0.2, 0.9, people)), noise=0.9 * np.eye(people) + 0.1)
panel = model.simulate(times=weeks, rng=seeded_rng(1))[0]
report = series.report(panel, bounds=(-4, 4), std=0.5, model=model)
page = SeriesPage(
    report=report, title="Weekly mean", times=tuple(f"week {week + 1}" for week in range(weeks))
)
save([over_time(page), errors(page)], Path("leakage.svg"))
