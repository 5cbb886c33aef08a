"""PATE: labels from votes of teachers, if people choose their own privacy level."""

from pathlib import Path

import discreet
from discreet.models.pate import ConfidentGNMax, assign_weighting, plan_labels, vote_weights
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.figure import save
from discreet.report.drawing.panel import LinePanel

rule = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)
limits = {
    "strict": discreet.approx_dp(1, 1e-6),
    "usual": discreet.approx_dp(2, 1e-6),
    "open": discreet.approx_dp(3, 1e-6),
}


def labels(limits: dict[str, discreet.Guarantee], strict: int) -> int:
    """How many labels the budgets buy, if so many per cent are strict and the rest split."""
    rest = 100 - strict
    people = {"strict": strict, "usual": rest - rest // 3, "open": rest // 3}
    teachers = assign_weighting(250, people=people, sensitivities=vote_weights(limits))
    return plan_labels(teachers, rule, limits, classes=10, answered_share=0.58).answers


shares = [5, 35, 65, 95]
as_strict = dict.fromkeys(limits, limits["strict"])
save(
    [
        LinePanel(
            lines=[
                ChartCurve(
                    label="everybody as they chose", x=shares, y=[labels(limits, s) for s in shares]
                ),
                ChartCurve(
                    label="everybody as the strictest",
                    x=shares,
                    y=[labels(as_strict, s) for s in shares],
                ),
            ],
            x=ChartAxis(label="per cent of the people who chose epsilon 1"),
            y=ChartAxis(label="labels that may be published"),
            title="Labels of 250 teachers: privacy levels of epsilon 1, 2 and 3",
            note="Planned before a vote is cast; the others chose 2 and 3, two to one.",
        )
    ],
    Path("pate.svg"),
)
