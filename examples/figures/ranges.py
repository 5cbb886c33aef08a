"""Births of a year, released once so that any range can be asked: planned, and answered."""

from pathlib import Path

import numpy as np

from discreet import plan_ranges, ranges, seeded_rng
from discreet.report.drawing.figure import stacked
from discreet.report.drawing.panel import BarPanel
from discreet.report.range_section import against_length
from discreet_studies.public_data import births

days = ranges.dates("1969-01-01", "1969-12-31")
born = births(days.size)
plan = plan_ranges(days, "all", epsilon=0.01)
release = plan.best.release(born, rng=seeded_rng(1))

firsts = np.arange("1969-01", "1970-01", dtype="datetime64[M]").astype("datetime64[D]")
lasts = np.append(firsts[1:], np.datetime64("1970-01-01")) - 1
ends = [release.answer_interval(first, last) for first, last in zip(firsts, lasts, strict=True)]
months = BarPanel(
    labels=[str(first)[:7] for first in firsts],
    values=(release.answer_many(firsts, lasts) / 1000).tolist(),
    low=[low / 1000 for low, _ in ends],
    high=[high / 1000 for _, high in ends],
    title="Births by month, from one release of all ranges (epsilon 0.01)",
    note="Whiskers hold the count without noise 95 times of 100.",
    unit="Thousands of births in the United States",
    dots=True,
)
Path("ranges.svg").write_text(stacked([against_length(plan).svg(), months.svg()]), encoding="utf-8")
