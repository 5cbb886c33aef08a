"""Mistakes that were published or shipped: what samples alone prove of some that claim 1."""

from pathlib import Path

from discreet.audit import run_audit
from discreet.audit.cases.broken import cases
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import BarPanel

NAMES = [
    "scale 10% too small",
    "float Laplace, low bits",
    "redrawn until positive",
    "same noise twice",
    "sparse vector: 4, Lee and Clifton 2014",
    "clamp forgotten",
    "deviation by R/n",
    "median by local sensitivity",
    "NaN passes",
]
known = {case.name: case for case in cases()}
rows = run_audit([known[name] for name in NAMES], samples=100_000)
none = [None] * len(rows)
save(
    [
        BarPanel(
            labels=[row.name.partition(",")[0] for row in rows],
            values=[row.attacked.epsilon for row in rows],
            low=none,
            high=none,
            title="Each of these claims epsilon 1. Samples prove at least:",
            note="Wrong with probability 1e-6, all together.",
            unit="Epsilon, from 100,000 outputs",
        )
    ],
    Path("audit.svg"),
)
