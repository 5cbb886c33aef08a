"""How many steps a private run should have: distance falls, noise grows."""

from discreet.models.dp_sgd import ConvergenceProblem, PowerSchedule, analyze_schedule
from discreet_studies.private_inference.schedule_figure import save_schedule

facts = ConvergenceProblem(dimension=10, smoothness=0.25, variance=0.2, distance=5)
plan = analyze_schedule(
    facts,
    schedule=PowerSchedule(start=0.03),
    sensitivity=2,
    epsilon=1,
    public_rows=5_000,
    budget="run",
    steps=[10, 30, 100, 300, 1_000, 3_000, 10_000],
)
save_schedule(plan, "schedule.svg")
