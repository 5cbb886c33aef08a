"""The picture of a schedule: every term, the verdict, the costs."""

import pytest

from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd.convergence import ConvergenceProblem
from discreet.models.dp_sgd.schedule_analysis import analyze_schedule
from discreet_studies.private_inference.schedule_figure import costs, save_schedule, terms

FACTS = ConvergenceProblem(dimension=10, smoothness=0.25, variance=0.2, distance=5.0)


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 1, "schedule": PowerSchedule(start=0.1, decay=0.5, growth=0.8)},
        {"epsilon": 1, "schedule": PowerSchedule(start=0.1), "budget": "run", "public_rows": 100},
        {"rho": 0.1, "schedule": PowerSchedule(start=0.1), "budget": "run"},
    ],
)
def test_a_schedule_is_drawn(asked, tmp_path):
    found = analyze_schedule(FACTS, sensitivity=2, steps=1000, **asked)
    text = save_schedule(found, tmp_path / "schedule.svg").read_text(encoding="utf-8")
    for word in ("distance", "variance", "noise", found.verdict):
        assert word in text
    assert ("all iterates" in text) == (found.budget == "iterate")
    lines = {line.label: line.y for line in terms(found).lines}
    assert len(lines) == 4
    assert list(lines["noise"]) == [point.bound.noise for point in found.points]
    assert ("epsilon" if "epsilon" in asked else "rho") in costs(found).y.label


def test_another_format_needs_only_a_suffix(tmp_path):
    pytest.importorskip("matplotlib")
    found = analyze_schedule(
        FACTS, sensitivity=2, steps=50, epsilon=1, schedule=PowerSchedule(start=0.1)
    )
    assert save_schedule(found, tmp_path / "schedule.png").stat().st_size > 10_000
