"""E8: labels with a guarantee that is fixed beforehand: the thesis's rule, and a searched one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.models.pate._tune_aggregator import expected_label_quality, tune_aggregator
from discreet.models.pate.binary_labels import BinaryLabelPlan, plan_binary_labels
from discreet.models.pate.classifier import LabelRelease, publish_labels
from discreet.models.pate.label_plan import LabelPlan, plan_labels, vote_weights
from discreet.models.pate.teacher_assignment import TeacherAssignment, assign_weighting, count_votes
from discreet.noise.random_source import seeded_rng
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.reference_values import LABELS
from discreet_studies.personalized_pate.run_helpers import menu, weights
from discreet_studies.personalized_pate.students import accuracy
from discreet_studies.personalized_pate.teachers import COPIES
from discreet_studies.personalized_pate.votes import (
    DELTA,
    TEACHERS,
    WORLDS,
    Votes,
    World,
    imagined,
    plain,
    public_split,
)
from discreet_studies.study import (
    Cell,
    Figure,
    Findings,
    Line,
    StudyCheck,
    StudySetting,
    StudyTable,
)

MORE = 1.4
"""Labels over those of the thesis's rule, at least."""
RUNS = 10
CELLS = ((2.0, 0.5), (3.0, 0.5), (5.0, 0.5))
_IMAGINED = 9  # of the votes that rules are searched on: never those that are asked
_GUESSED = 2000
_LESS = 0.005  # more labels that are as good but for half a point make a better student
_SOURCE = "M14, M18, M26, M43"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOutcome:
    """Runs of one plan."""

    plan: LabelPlan | BinaryLabelPlan
    labels: float
    right: float
    """Share of labels that are right."""
    student: float
    """Its accuracy in per cent, in the mean; not a number without features."""
    error: float
    """The standard error of that."""

    @property
    def rule(self) -> str:
        """Threshold and both noises."""
        rule = (
            self.plan.aggregator.aggregator
            if isinstance(self.plan, BinaryLabelPlan)
            else self.plan.aggregator
        )
        return f"{rule.threshold:.4g} / {rule.sigma_threshold:.4g} / {rule.sigma_votes:.4g}"


def valid_guarantees(setting: StudySetting) -> Findings:
    """The same budgets, both kept whatever the votes are."""
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    figures = []
    for world in WORLDS:
        pairs = {}
        for cell in CELLS[:1] if setting.quick else CELLS:
            thesis = _ran(setting, world, as_published(world, cell), cell)
            ours = _ran(setting, world, searched(world, cell), cell)
            pairs[cell] = (thesis, ours)
            checks += _judged(setting, world, cell, thesis, ours)
            rows += [_row(world, cell, name, each)
                     for name, each in (("thesis", thesis), ("searched", ours))]  # fmt: skip
        if not setting.quick:
            figures.append(_figure(world, pairs))
    table = StudyTable(
        id="E8/honest",
        title="Labels under guarantees that are fixed beforehand",
        columns=("set", "high, share", "rule", "threshold / noises", "labels, at most", "published",
                 "right", "student, per cent", "by the thesis's accounting"),
        rows=tuple(rows),
        note="Fixed guarantees: epsilon 1 and high, delta 1e-5, whatever the votes. The last "
        "column is printed in the thesis, after the fact and not private.",
    )  # fmt: skip
    return Findings(checks=tuple(checks), tables=(table,), figures=tuple(figures))


def as_published(world: World, cell: tuple[float, float]) -> LabelPlan:
    """Weights, threshold and noises of the thesis, with the longest run that is honest."""
    high, share = cell
    made = weights(share, high)
    guess = _guess(world)
    answered, _ = expected_label_quality(_units(guess, made), guess.truth, world.rule)
    return plan_labels(
        made, world.rule, menu(high), classes=world.classes, answered_share=answered,
        items=world.sizes[1],
    )  # fmt: skip


def searched(world: World, cell: tuple[float, float]) -> LabelPlan | BinaryLabelPlan:
    """The most labels of about the same quality, found on simulated votes."""
    high, share = cell
    limits = menu(high)
    made = assign_weighting(
        TEACHERS,
        people={"high": share, "low": 1 - share},
        sensitivities=vote_weights(limits),
    )
    guess = _guess(world)
    counts = _units(guess, made)
    _, right = expected_label_quality(counts, guess.truth, world.rule)
    choice = tune_aggregator(
        counts,
        guess.truth,
        assignment=made,
        limits=limits,
        accuracy=right - _LESS,
        items=world.sizes[1],
    )
    if world.classes > 2:
        return choice.plan
    return plan_binary_labels(
        made,
        choice.plan.aggregator,
        limits,
        answered_share=choice.answered_share,
        items=world.sizes[1],
    )


def _guess(world: World) -> Votes:
    """Imagined votes to choose a rule with: enough for two digits of its shares."""
    found = imagined(world, teachers=TEACHERS, run=_IMAGINED)
    return replace(found, said=found.said[:_GUESSED], truth=found.truth[:_GUESSED])


def _units(votes: Votes, assignment: TeacherAssignment) -> NDArray[np.int64]:
    return count_votes(votes.said, assignment, classes=votes.classes)


def _ran(
    setting: StudySetting,
    world: World,
    plan: LabelPlan | BinaryLabelPlan,
    cell: tuple[float, float],
) -> LabelOutcome:
    """Several runs on votes that the plan was not made with."""
    votes = plain(setting, world)
    counts = _units(votes, plan.assignment)
    rng = setting.rng(f"E8/{world.name}/{cell}")
    labels, right, student = [], [], []
    for time in range(setting.times(RUNS, quick=5)):
        order = rng.permutation(len(counts))
        found: LabelRelease = publish_labels(counts[order], plan, rng=seeded_rng(time))
        items, told = order[found.answered], found.labels[found.answered]
        labels.append(len(items))
        right.append(float((told == votes.truth[items]).mean()))
        if not setting.quick:
            data = public_split(world, setting.data, 0, COPIES)
            student.append(accuracy(data, items, told, order[: found.query_count]))
    return LabelOutcome(
        plan=plan,
        labels=float(np.mean(labels)),
        right=float(np.mean(right)),
        student=float(np.mean(student)) if student else math.nan,
        error=float(np.std(student, ddof=1) / math.sqrt(len(student))) if student else math.nan,
    )


def _judged(
    setting: StudySetting,
    world: World,
    cell: tuple[float, float],
    thesis: LabelOutcome,
    ours: LabelOutcome,
) -> list[StudyCheck]:
    claims = Claims(
        source=_SOURCE,
        why="What the thesis counts is known after the fact and depends on private votes. Here "
        "both rules end by numbers that are fixed before the first vote.",
    )
    tail = f"{world.name}/{cell[0]:g}, {cell[1]:.0%}"
    made = [
        claims.at_least(f"E8/more/{tail}", "labels over those of the thesis's rule, same budgets, "
                        f"honestly accounted, {world.name}", expected=MORE,
                        got=ours.labels / thesis.labels),
        claims.at_least(f"E8/right/{tail}", "share of labels that are right, less that of the "
                        f"thesis's rule, {world.name}", expected=-0.025,
                        got=ours.right - thesis.right),
        *(
            claims.at_most(f"E8/kept/{tail}/{name}/{level}", f"epsilon that the level {level} "
                           f"pays, {name}", expected=menu(cell[0])[level].epsilon(DELTA),
                           got=each.plan.guarantee[level].epsilon(DELTA))
            for name, each in (("thesis", thesis), ("searched", ours))
            for level in ("low", "high")
        ),
    ]  # fmt: skip
    if not setting.quick:
        made.append(
            claims.at_least(f"E8/student/{tail}", "accuracy of the student, points above that with "
                            f"the thesis's rule, {world.name}", expected=0.0 if world.classes > 2
                            else -0.5, got=ours.student - thesis.student)
        )  # fmt: skip
    return made


def _row(
    world: World, cell: tuple[float, float], name: str, found: LabelOutcome
) -> tuple[Cell, ...]:
    student = None if math.isnan(found.student) else f"{found.student:.1f} ± {found.error:.1f}"
    return (
        world.name,
        f"{cell[0]:g}, {cell[1]:.0%}",
        name,
        found.rule,
        found.plan.answers,
        round(found.labels),
        found.right,
        student,
        LABELS[world.name]["weighting"][cell] if name == "thesis" else None,
    )


def _figure(
    world: World, pairs: dict[tuple[float, float], tuple[LabelOutcome, LabelOutcome]]
) -> Figure:
    x = tuple(high for high, _ in pairs)
    return Figure(
        id=f"E8/{world.name}",
        title=f"{world.name}: labels with a guarantee, half of the owners generous",
        x="epsilon of the generous half (the others: 1)",
        y="labels",
        lines=(
            Line(label="searched rule", x=x, y=tuple(p[1].labels for p in pairs.values())),
            Line(label="rule of the thesis", x=x, y=tuple(p[0].labels for p in pairs.values())),
        ),
        note=f"delta 1e-5; fixed beforehand; means of {RUNS} runs, noise drawn",
    )
