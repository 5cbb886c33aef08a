"""Who will see a physician often next year? A classifier of real people, at several budgets."""

from importlib.resources import files
from pathlib import Path

import duckdb
import numpy as np

from discreet import seeded_rng
from discreet.models import PrivateLogisticRegression
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

source = files("discreet.spec") / "demo_data" / "health.parquet"
rows = duckdb.read_parquet(str(source))
this, next_ = (rows.filter(f"year = {year}").set_alias(f"y{year}") for year in (1, 2))
both = this.join(next_.project("person, visits AS later"), "person").order("person")
columns = "age, sex = 'female', plan = 'free', health = 'excellent', visits, later"
people = np.array(both.project(columns).fetchall(), dtype=float)
X, often = people[:, :5], (people[:, 5] >= 3).astype(int)
bounds = [(0, 64), (0, 1), (0, 1), (0, 1), (0, 20)]
train, test = slice(0, 4_000), slice(4_000, None)


def right(epsilon: float, seed: int) -> float:
    """Per cent right among people who were not in the fit."""
    declared = {"bounds": bounds, "classes": (0, 1), "public_rows": 4_000}
    model = PrivateLogisticRegression(epsilon=epsilon, delta=1e-5, rng=seeded_rng(seed), **declared)
    return 100 * model.fit(X[train], often[train]).score(X[test], often[test])


budgets = [0.03, 0.1, 0.3, 1, 3]
scores = [float(np.mean([right(epsilon, seed) for seed in range(3)])) for epsilon in budgets]
usual = 100 * (1 - float(often[test].mean()))
save(
    [
        LinePanel(
            lines=[
                ChartCurve(label="private model", x=budgets, y=scores),
                ChartCurve(label="always 'no'", x=budgets, y=[usual] * len(budgets)),
            ],
            x=ChartAxis(label="epsilon of the fit (delta 1e-5)", log=True),
            y=ChartAxis(label="per cent right, of people not in the fit", zero=False),
            title="Three visits or more next year? 4,000 people, five columns",
            note="Mean of three fits. RAND Health Insurance Experiment, years 1 and 2.",
        )
    ],
    Path("sgd.svg"),
)
