"""Visits to physicians by age: a heat map from one release of all rectangles."""

from importlib.resources import files
from pathlib import Path

import duckdb
import numpy as np

from discreet import ranges, seeded_rng
from discreet.report.drawing.heat_map import heat

ages = ["0-9", "10-19", "20-29", "30-39", "40-49", "50-64"]
visits = ["none", "1", "2", "3", "4-5", "6-9", "10+"]
source = files("discreet.spec") / "demo_data" / "health.parquet"
rows = duckdb.read_parquet(str(source)).filter("year = 1").fetchnumpy()
age = np.minimum(rows["age"] // 10, 5)
often = np.searchsorted([1, 2, 3, 4, 6, 10], rows["visits"], side="right")
counts = np.zeros((6, 7), dtype=np.int64)
np.add.at(counts, (age, often), 1)

plan = ranges.plan_grid([ranges.ordered(ages), ranges.ordered(visits)], "all", epsilon=0.5)
release = plan.best.release(counts, rng=seeded_rng(1))
Path("grid.svg").write_text(
    heat(
        release.cells,
        across=visits,
        down=ages,
        title="People by age (down) and visits to a physician in a year (across), epsilon 0.5",
        note=f"Standard error of a cell: {np.max(release.cell_std):.1f} people.",
    ),
    encoding="utf-8",
)
