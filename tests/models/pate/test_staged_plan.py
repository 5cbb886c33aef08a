"""Runs that go on without who has spent it all, and runs with turns: limits, lengths, charges."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import discreet
from discreet.accounting.filters import rho_of
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, Unsupported
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax
from discreet.models.pate.binary_labels import plan_binary_labels
from discreet.models.pate.classifier import PATEClassifier
from discreet.models.pate.label_plan import LabelPlan, plan_labels, vote_weights
from discreet.models.pate.staged_plan import StagedPlan, TurnPlan, plan_stages, plan_turns
from discreet.models.pate.teacher_assignment import (
    UNITS,
    TeacherSchedule,
    assign_upsampling,
    assign_weighting,
    vanishing_schedule,
)
from discreet.noise.random_source import seeded_rng
from discreet_studies.personalized_pate.smooth_cost import CostRelease
from discreet_studies.personalized_pate.tested_plan import ProposeTestReleasePlan

DELTA = 1e-5
LIMITS = {"open": discreet.approx_dp(2, DELTA), "strict": discreet.approx_dp(1, DELTA)}
PEOPLE = {"open": 50, "strict": 50}
RULE = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)


def even(**weights):
    return assign_weighting(250, people=PEOPLE, sensitivities={"open": 1, "strict": 1, **weights})


def within(plan, limits=LIMITS):
    spent = plan.guarantee.epsilons(DELTA)
    return all(spent[name] <= float(limit.event.epsilon) for name, limit in limits.items())


def test_rule_b_goes_on_without_the_strict():
    first = plan_labels(even(), RULE, LIMITS, classes=10, answered_share=0.58)
    plan = plan_stages(even(), RULE, LIMITS, classes=10, answered_share=0.58)
    assert plan.stages[0].answers == first.answers == 53
    assert [stage.answers for stage in plan.stages] == [53, 33]
    assert within(plan)
    spent = plan.guarantee.epsilons(DELTA)
    assert spent["strict"] == pytest.approx(first.guarantee.epsilons(DELTA)["strict"])
    assert spent["open"] > 1.9
    later = plan.stages[1]
    assert later.assignment.shares["strict"] == 0
    # Noise in proportion to the weight that is left.
    assert float(later.aggregator.sigma_votes) == pytest.approx(20)
    # One label more would pass the limit of the open.
    longer = LabelPlan(
        assignment=later.assignment,
        aggregator=later.aggregator,
        classes=10,
        queries=later.queries + 2,
        answers=later.answers + 1,
    )
    assert not within(StagedPlan(stages=(plan.stages[0], longer)))


def test_rule_b_has_nothing_to_add_where_all_end_together():
    together = even(**vote_weights(LIMITS))
    plan = plan_stages(together, RULE, LIMITS, classes=10, answered_share=0.58)
    assert len(plan.stages) == 1
    assert (
        plan.answers == plan_labels(together, RULE, LIMITS, classes=10, answered_share=0.58).answers
    )


def test_rule_b_ends_with_upsampling_and_with_the_items():
    """Every teacher learns from the strict: nobody is left without them."""
    copied = assign_upsampling(250, copies={"open": 1, "strict": 1})
    assert len(plan_stages(copied, RULE, LIMITS, classes=10, answered_share=0.58).stages) == 1
    few = plan_stages(even(), RULE, LIMITS, classes=10, answered_share=0.58, items=30)
    assert sum(stage.queries for stage in few.stages) <= 30
    wide = plan_stages(even(), RULE, LIMITS, classes=10, answered_share=0.58, least=0.6)
    assert len(wide.stages) == 1


def test_a_staged_run_goes_on_where_the_last_stage_ended():
    small = ConfidentGNMax(
        threshold=2, sigma_threshold=Fraction(1, 10), sigma_votes=Fraction(1, 10)
    )
    assignment = assign_weighting(4, people=PEOPLE, sensitivities={"open": 1, "strict": 1})
    make = {"assignment": assignment, "aggregator": small, "classes": 2}
    plan = StagedPlan(
        stages=(
            LabelPlan(**make, queries=6, answers=3),
            LabelPlan(**make, queries=4, answers=9),
        )
    )
    votes = np.zeros((12, 4), dtype=np.int64)
    votes[1] = votes[3:] = 1
    votes[0] = [0, 0, 1, 1]  # no clear winner: 2 votes, at the threshold
    found = plan.publish(votes, rng=seeded_rng(2))
    # Three answers end the first stage; then four questions.
    assert 3 <= found.query_count - 4 <= 4
    told = found.labels[1:]
    assert (told == votes[1 : found.query_count, 0]).all()


def test_turns_keep_every_limit_and_are_the_longest():
    schedule = vanishing_schedule(250, people=PEOPLE, turns={"open": 4, "strict": 1})
    plan = plan_turns(schedule, RULE, LIMITS, classes=10, answered_share=0.58)
    assert within(plan)
    assert plan.answers == 72
    # Weighting is better, and doing without personal budgets worse (M21).
    weighted = plan_labels(
        even(**vote_weights(LIMITS)), RULE, LIMITS, classes=10, answered_share=0.58
    ).answers
    assert 53 < plan.answers < weighted
    longer = TurnPlan(
        schedule=schedule,
        aggregator=RULE,
        classes=10,
        slot_queries=plan.slot_queries + 2,
        slot_answers=plan.slot_answers + 1,
    )
    assert not within(longer)


def test_turns_charge_no_less_than_any_teacher_moves():
    """By brute force over teachers: squared weights of all slots, questions and answers apart."""
    schedule = vanishing_schedule(
        13, people={"open": 5, "strict": 8}, turns={"open": 5, "strict": 2}
    )
    plan = TurnPlan(schedule=schedule, aggregator=RULE, classes=3, slot_queries=3, slot_answers=2)
    for name, block in zip(plan.assignment.names, plan.assignment.blocks, strict=True):
        charged = float(rho_of(plan.guarantee[name].event))
        for teacher in range(*block):
            weights = [int(slot.weights[teacher]) for slot in schedule.slots]
            rho = sum(
                3 * w**2 / (2 * (150 * UNITS) ** 2) + 2 * w**2 / (40 * UNITS) ** 2 for w in weights
            )
            assert rho <= charged * (1 + 1e-12)
            assert rho > 0.8 * charged


def test_turns_publish_by_slot():
    schedule = vanishing_schedule(
        6, people={"open": 3, "strict": 3}, turns={"open": 2, "strict": 1}
    )
    calm = ConfidentGNMax(
        threshold=0, sigma_threshold=Fraction(1, 100), sigma_votes=Fraction(1, 100)
    )
    plan = TurnPlan(schedule=schedule, aggregator=calm, classes=2, slot_queries=3, slot_answers=2)
    votes = np.arange(10)[:, None] // 2 % 2 * np.ones(6, dtype=np.int64)
    found = plan.publish(votes, rng=seeded_rng(1)).labels
    # Two answers a slot, then nothing more is asked there.
    assert found.tolist() == [0, 0, 1, 1, UNANSWERED, UNANSWERED]


@pytest.fixture(scope="module")
def ensemble():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (OWNERS, 2))
    y = (x[:, 0] > 0).astype(int)
    assignment = assign_weighting(20, people=PEOPLE, sensitivities={"open": 2, "strict": 1})
    made = PATEClassifier(GaussianNB(), assignment=assignment, classes=2)
    return made.fit(x, y, owners=np.arange(OWNERS), privacy_levels=CHOSEN)


OWNERS = 400
CHOSEN = np.where(np.arange(OWNERS) % 2, "open", "strict")
SMALL = ConfidentGNMax(threshold=10, sigma_threshold=20, sigma_votes=20)
ITEMS = np.random.default_rng(1).normal(0, 1, (30, 2))


def plans(ensemble):
    """Each with costs that have a delta of their own, or not."""
    assignment = ensemble.assignment
    release = CostRelease(order=4.0, b=0.01, sigma=40.0, tau=40.0, failure=1e-6)
    names = assignment.names
    tested = ProposeTestReleasePlan(
        assignment=assignment,
        rule=SMALL,
        classes=2,
        questions=30,
        allowed=dict.fromkeys(names, 1.0),
        releases=dict.fromkeys(names, release),
        delta=1e-6,
    )
    bits = plan_binary_labels(assignment, SMALL, LIMITS, answered_share=0.5, items=30)
    staged = plan_stages(assignment, SMALL, LIMITS, classes=2, answered_share=0.5, items=30)
    return {"tested": tested, "bits": bits, "staged": staged}


@pytest.mark.parametrize("kind", ["tested", "bits", "staged"])
def test_an_account_pays_for_any_plan_before_a_vote(ensemble, kind, tmp_path, monkeypatch):
    plan = plans(ensemble)[kind]
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        account = ledger.account("labels", limit=discreet.approx_dp(20, 1e-3))
        found = ensemble.label(ITEMS, plan=plan, account=account)
        assert found.guarantee == plan.guarantee
        assert account.spent.epsilon(1e-4) > 0
        with pytest.raises(NotCertified):
            ensemble.label(ITEMS, plan=plan, account=account, rng=seeded_rng(1))
        poor = ledger.account("poor", limit=discreet.approx_dp(0.01, 1e-9))
        monkeypatch.setattr(ensemble, "votes", lambda _: pytest.fail("votes were counted"))
        with pytest.raises(BudgetExceeded):
            ensemble.label(ITEMS, plan=plan, account=poor)


def test_what_cannot_be_published_is_not_paid(ensemble, tmp_path):
    """A plan for other questions publishes what it can; teachers that were not trained, nothing."""
    plan = plans(ensemble)["tested"]
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        account = ledger.account("labels", limit=discreet.approx_dp(20, 1e-3))
        fresh = PATEClassifier(GaussianNB(), assignment=ensemble.assignment, classes=2)
        with pytest.raises(InvalidArgument, match="call fit first"):
            fresh.label(ITEMS, plan=plan, account=account)
        assert account.spent.epsilon(1e-4) == 0
        labels = ensemble.label(np.vstack([ITEMS, ITEMS]), plan=plan, account=account)
        assert labels.query_count == 30


def test_a_crowd_refuses_costs_with_a_delta_and_says_what_to_do(ensemble, tmp_path):
    made = plans(ensemble)
    limits = {"open": discreet.zcdp(100), "strict": discreet.zcdp(100)}
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        crowd = ledger.personal_budgets(
            "all", limits=limits, members=np.arange(OWNERS), privacy_levels=CHOSEN
        )
        for kind in ("tested", "bits"):
            with pytest.raises(Unsupported, match="account"):
                ensemble.label(ITEMS, plan=made[kind], personal_budgets=crowd)
        assert not crowd.spent().any()
        ensemble.label(ITEMS, plan=made["staged"], personal_budgets=crowd)
        assert crowd.spent().all()


def test_owners_whom_a_crowd_would_not_charge_are_refused(ensemble, tmp_path):
    plan = plans(ensemble)["staged"]
    limits = {"open": discreet.zcdp(100), "strict": discreet.zcdp(100)}
    one_less = np.arange(OWNERS - 1), CHOSEN[:-1]
    one_other = np.arange(OWNERS), np.where(np.arange(OWNERS) == 3, CHOSEN[2], CHOSEN)
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        for name, (members, levels) in {"less": one_less, "other": one_other}.items():
            crowd = ledger.personal_budgets(
                name, limits=limits, members=members, privacy_levels=levels
            )
            with pytest.raises(InvalidArgument, match="Every owner"):
                ensemble.label(ITEMS, plan=plan, personal_budgets=crowd)
            assert not crowd.spent().any()


def test_what_is_refused():
    schedule = vanishing_schedule(
        6, people={"open": 3, "strict": 3}, turns={"open": 2, "strict": 1}
    )
    with pytest.raises(InvalidArgument, match="answered"):
        plan_turns(schedule, RULE, LIMITS, classes=2, answered_share=0)
    with pytest.raises(InvalidArgument, match="levels"):
        plan_turns(schedule, RULE, {"open": LIMITS["open"]}, classes=2, answered_share=1)
    loud = ConfidentGNMax(threshold=1, sigma_threshold=Fraction(1, 10), sigma_votes=Fraction(1, 10))
    with pytest.raises(BudgetExceeded):
        plan_turns(schedule, loud, LIMITS, classes=2, answered_share=1)


def test_who_has_several_teachers_pays_for_all_of_them():
    """One teacher's weight alone would be a sixteenth of what an owner of four costs."""
    copied = assign_upsampling(20, copies={"open": 4, "strict": 1})
    rule = ConfidentGNMax(threshold=5, sigma_threshold=10, sigma_votes=5)
    numbers = {"aggregator": rule, "classes": 3}
    turns = TurnPlan(
        schedule=TeacherSchedule(slots=(copied,) * 2), slot_queries=5, slot_answers=4, **numbers
    )
    plain = LabelPlan(assignment=copied, queries=10, answers=8, **numbers)
    assert turns.guarantee.epsilons(DELTA) == pytest.approx(plain.guarantee.epsilons(DELTA))
    assert turns.schedule.squares == {"open": 2 * (4 * UNITS) ** 2, "strict": 2 * UNITS**2}


def test_slots_have_the_same_teachers():
    with pytest.raises(InvalidArgument, match="at least one"):
        TeacherSchedule(slots=())
    plain = assign_weighting(
        20, people={"open": 1, "strict": 1}, sensitivities={"open": 1, "strict": 1}
    )
    with pytest.raises(InvalidArgument, match="same teachers"):
        TeacherSchedule(slots=(plain, replace(plain, key="other")))


def test_stages_have_the_same_teachers():
    rule = ConfidentGNMax(threshold=5, sigma_threshold=10, sigma_votes=5)
    plain = assign_weighting(
        20, people={"open": 1, "strict": 1}, sensitivities={"open": 1, "strict": 1}
    )
    moved = replace(plain, blocks=plain.blocks[::-1])
    first = LabelPlan(assignment=plain, aggregator=rule, classes=3, queries=5, answers=5)
    for other in (replace(first, assignment=moved), replace(first, classes=4)):
        with pytest.raises(InvalidArgument, match="same teachers"):
            StagedPlan(stages=(first, other))
    with pytest.raises(InvalidArgument, match="negative"):
        replace(plain, weights=-plain.weights)
