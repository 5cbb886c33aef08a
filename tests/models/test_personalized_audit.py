"""Personal descent and votes, attacked level by level through a person the auditor controls."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.runner import FAMILY, audit_case
from discreet.models.dp_sgd.losses import Huber
from discreet.models.dp_sgd.personalized import descend_personalized, plan_personalized
from discreet.models.dp_sgd.train import FeatureMap, SlopeGrid, TrainingRun
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.label_plan import LabelPlan
from discreet.models.pate.staged_plan import TurnPlan
from discreet.models.pate.teacher_assignment import (
    UNITS,
    TeacherSchedule,
    assign_upsampling,
    assign_weighting,
    count_votes,
    vanishing_schedule,
)
from discreet.noise.random_source import seeded_rng

LEVELS = ("open", "strict")


def audited(case, samples):
    return audit_case(case, failure_probability=FAMILY / 20, samples=samples, seed=3)


# ── votes ────────────────────────────────────────────────────────────────────────────────────────

# Every item is answered: what is asked tells nothing, and costs next to nothing.
RULE = ConfidentGNMax(threshold=-(10**5), sigma_threshold=10**3, sigma_votes=4)
TEACHERS, ITEMS = 8, 8
EVEN = {"open": 1, "strict": 1}
COLLECTORS = {
    "weighting": assign_weighting(TEACHERS, people=EVEN, sensitivities={"open": 3, "strict": 1}),
    "upsampling": assign_upsampling(TEACHERS, copies={"open": 3, "strict": 1}),
    "vanishing": vanishing_schedule(TEACHERS, people=EVEN, turns={"open": 4, "strict": 1}),
}


def turns(collector, runs=1):
    """A plan for ``runs`` times eight items, all of them answered."""
    made = COLLECTORS[collector]
    schedule = made if isinstance(made, TeacherSchedule) else TeacherSchedule(slots=(made,))
    many = runs * ITEMS // len(schedule.slots)
    return TurnPlan(
        schedule=schedule, aggregator=RULE, classes=2, slot_queries=many, slot_answers=many
    )


def claimed(collector, level):
    made = COLLECTORS[collector]
    if isinstance(made, TeacherSchedule):
        return turns(collector).guarantee[level]
    plan = LabelPlan(assignment=made, aggregator=RULE, classes=2, queries=ITEMS, answers=ITEMS)
    return plan.guarantee[level]


def canary(collector, level, label):
    """The votes on an item, in which the teachers of one owner say what the auditor wants."""
    made = COLLECTORS[collector]
    first = made.slots[0] if isinstance(made, TeacherSchedule) else made
    place = first.names.index(level)
    start = first.blocks[place][0]
    votes = np.arange(TEACHERS) % 2
    votes[start : start + first.copies[place]] = label
    return votes


def ones(collector, votes, n, seed):
    """How many of the items of a run get the label 1."""
    plan = turns(collector, runs=n)
    found = plan.publish(np.tile(votes, (n * ITEMS, 1)), rng=seeded_rng(seed))
    return found.labels.reshape(n, ITEMS).sum(axis=1)


def count_law(collector, votes):
    """Of that number: a sum of independent bits with known chances."""
    law = np.ones(1)
    plan = turns(collector)
    for item in range(ITEMS):
        ((a, b),) = count_votes(votes[None, :], plan.schedule.at(item), classes=2)
        # Of equal noisy counts the first wins.
        chance = float(stats.norm.cdf((b - a - 0.5) / (math.sqrt(2) * 4 * UNITS)))
        law = np.convolve(law, [1 - chance, chance])
    return dict(enumerate(law.tolist()))


def vote_case(collector, level, claim, *, broken=False):
    left, right = (canary(collector, level, label) for label in (0, 1))
    return AuditCase(
        name=f"{collector}, {level}",
        claimed=claim,
        draw=lambda votes, n, seed: ones(collector, votes, n, seed),
        left=left,
        right=right,
        laws=lambda: exact.pair(
            count_law(collector, left), count_law(collector, right), error=1e-6
        ),
        broken=broken,
    )


@pytest.mark.parametrize("collector", COLLECTORS)
def test_votes_keep_what_each_level_was_promised(collector):
    found = {}
    for level in LEVELS:
        row = audited(vote_case(collector, level, claimed(collector, level)), 10_000)
        assert row.ok, row
        found[level] = row
    # An owner of the open level really loses more.
    assert found["open"].attacked.epsilon > found["strict"].attacked.epsilon
    delta = 1e-3
    for level in LEVELS:
        case = vote_case(collector, level, claimed(collector, level))
        true = exact.epsilon(case.laws(), delta)
        claim = claimed(collector, level).epsilon(delta)
        assert true.lower <= claim
        # The winner of a noisy vote tells less than the noisy counts that are paid for.
        assert true.lower > 0.1 * claim


@pytest.mark.parametrize("collector", ["weighting", "upsampling"])
def test_a_level_that_is_charged_as_a_stricter_one_is_caught(collector):
    row = audited(vote_case(collector, "open", (0.4, 1e-3), broken=True), 40_000)
    assert claimed(collector, "strict").epsilon(1e-3) > 0.4
    assert row.verdict == "BROKEN", row


# ── descent ──────────────────────────────────────────────────────────────────────────────────────

DELTA = 1e-3
LIMITS = {"open": discreet.approx_dp(4, DELTA), "strict": discreet.approx_dp(0.2, DELTA)}
COLUMNS = FeatureMap.of((-1, 1), columns=1, names=None, intercept=False, row_norm=1.0)
RUN = TrainingRun(
    # Its slope at zero is the longest there is for a target of one.
    objective=Huber(l2=0.0, intercept=False, huber_threshold=1.0),
    rate=Fraction(3, 4),
    steps=1,
    noise=Fraction(1),
    clip=0.25,
    rows=1.0,
    learning_rate=1.0,
    momentum=0.0,
    average=0.0,
)


def planned(way):
    return plan_personalized(RUN, LIMITS, {"open": 1, "strict": 1}, method=way)


def fitted(plan, levels, n, seed):
    """The parameter after a step; every record's gradient is as long as it may be."""
    steps = COLUMNS.steps(np.ones((len(levels), 1)))
    targets, bits = np.ones(len(levels)), seeded_rng(seed)
    return np.array(
        [
            descend_personalized(steps, targets, np.array(levels), plan=plan, rng=bits)[0]
            for _ in range(n)
        ]
    )


def step_laws(plan, level):
    """A mixture of two normals against one, in units of the noise; cells of the line."""
    moved = float(plan.clips[level] / plan.run.noise)
    rate = float(plan.rates[level])
    edges = np.concatenate([[-np.inf], np.linspace(-9, 9, 20_001), [np.inf]])
    without = np.diff(stats.norm.cdf(edges))
    present = rate * np.diff(stats.norm.cdf(edges - moved)) + (1 - rate) * without
    return exact.OutputPair(outcomes=range(len(without)), left=present, right=without, error=1e-9)


def descent_case(plan, level, claim, *, broken=False):
    return AuditCase(
        name=f"descent, {level}",
        claimed=claim,
        draw=lambda levels, n, seed: fitted(plan, levels, n, seed),
        left=(level, "open"),
        right=("open",),
        laws=lambda: step_laws(plan, level),
        broken=broken,
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sampling", "clipping"])
def test_descent_keeps_what_each_level_was_promised(way):
    plan = planned(way)
    for level, limit in LIMITS.items():
        case = descent_case(plan, level, (float(limit.event.epsilon), DELTA))
        row = audited(case, 150)
        assert row.ok, row
        true = exact.epsilon(case.laws(), DELTA)
        # Nothing is given away: the law itself needs all of it.
        assert 0.9 * float(limit.event.epsilon) < true.lower <= float(limit.event.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sampling", "clipping"])
def test_a_strict_level_that_takes_part_like_the_open_is_caught(way):
    plan = planned(way)
    wrong = replace(
        plan,
        rates=dict.fromkeys(plan.rates, plan.rates["open"]),
        clips=dict.fromkeys(plan.clips, Fraction(1)),
    )
    row = audited(descent_case(wrong, "strict", (0.2, DELTA), broken=True), 1_000)
    assert row.verdict == "BROKEN", row


def test_the_law_is_that_of_the_run():
    """The mean and the spread of what is drawn, against the mixture."""
    plan = planned("clipping")
    grid = SlopeGrid(clip=RUN.clip)
    scale = grid.unit * grid.sensitivity / (float(RUN.rate) * plan.run.rows)
    drawn = -fitted(plan, ("strict",), 1500, 7) / scale  # in clipping norms
    rate, clip = float(plan.rates["strict"]), float(plan.clips["strict"])
    noise = float(plan.run.noise)
    expected, spread = -rate * clip, math.hypot(noise, clip * math.sqrt(rate * (1 - rate)))
    assert drawn.mean() == pytest.approx(expected, abs=5.5 * spread / math.sqrt(1500))
    assert drawn.std() == pytest.approx(spread, rel=5.5 / math.sqrt(2 * 1500))
