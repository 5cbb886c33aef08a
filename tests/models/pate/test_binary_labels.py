"""Two classes: the bits that are published have the law that is accounted, and cost less."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import discreet
from discreet.core._rational import rational
from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain, Unsupported
from discreet.models.pate._data_dependent_cost import ORDERS
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.binary_labels import BinaryLabelPlan, BinaryLabels, plan_binary_labels
from discreet.models.pate.classifier import publish_labels
from discreet.models.pate.label_plan import LabelPlan, plan_labels, vote_weights
from discreet.models.pate.teacher_assignment import UNITS, assign_weighting
from discreet.noise.random_source import seeded_rng
from discreet_studies.personalized_pate.exact_divergence import divergence

RULE = ConfidentGNMax(threshold=160, sigma_threshold=80, sigma_votes=40)
LIMITS = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(2, 1e-5)}
MADE = assign_weighting(250, people={"low": 1, "high": 1}, sensitivities=vote_weights(LIMITS))


def bit(mean, sigma):
    return np.array([norm.logcdf(mean / sigma), norm.logsf(mean / sigma)])


@pytest.mark.parametrize("share", [1, 3])
def test_costs_hold_for_every_pair_of_counts(share):
    """All differences and largest counts, all moves up to the share, both directions."""
    ask, tell = BinaryLabels(
        aggregator=ConfidentGNMax(threshold=20, sigma_threshold=4, sigma_votes=5)
    ).costs(share * UNITS)
    worst = np.zeros((2, len(ORDERS)))
    for v in np.linspace(-30, 70, 101):
        for moved in {-share, -share / 2, share / 2, share}:
            here, there = bit(v - 20, 4), bit(v + moved - 20, 4)
            worst[0] = np.maximum(worst[0], divergence(here, there, orders=ORDERS) / ask)
            wide = 5 * math.sqrt(2)
            here, there = bit(v, wide), bit(v + 2 * moved, wide)
            worst[1] = np.maximum(worst[1], divergence(here, there, orders=ORDERS) / tell)
    assert (worst <= 1 + 1e-9).all()
    assert (worst[:, :20] > 0.95).all()  # attained: nothing is given away


def test_bits_follow_their_law():
    rule = BinaryLabels(aggregator=RULE)
    counts = np.tile([[140 * UNITS, 110 * UNITS]], (40_000, 1))
    told = rule.passes_threshold(counts, rng=seeded_rng(1)).mean()
    first = (rule.answers(counts, rng=seeded_rng(2)) == 0).mean()
    slack = 5 * math.sqrt(0.25 / 40_000)
    assert told == pytest.approx(norm.cdf(-20 / 80), abs=slack)
    assert first == pytest.approx(norm.cdf(30 / (40 * math.sqrt(2))), abs=slack)


def test_more_labels_for_the_same_promise():
    """About a third more than the exact Gaussian plan, which sees noisy numbers."""
    bits = plan_binary_labels(MADE, RULE, LIMITS, answered_share=0.6)
    plain = plan_labels(MADE, RULE, LIMITS, classes=2, answered_share=0.6)
    assert 1.25 * plain.answers < bits.answers < 1.45 * plain.answers
    spent = bits.guarantee
    assert float(spent["low"].event.epsilon) <= 1
    assert float(spent["high"].event.epsilon) <= 2
    more = BinaryLabelPlan(
        assignment=MADE,
        aggregator=bits.aggregator,
        queries=math.ceil((bits.answers + 1) / 0.6 * 1.1),
        answers=bits.answers + 1,
        deltas=bits.deltas,
    ).guarantee
    assert float(more["low"].event.epsilon) > 1 or float(more["high"].event.epsilon) > 2


@pytest.mark.parametrize("delta", [1e-5, 3e-7, 0.1 + 0.2, Fraction(1, 300_001), Decimal("2e-5")])
def test_the_promise_is_finite_at_the_delta_that_was_asked(tmp_path, delta):
    """1e-5 is 1/100000, which is below its nearest double: a claim at the double would not do."""
    limits = {"low": discreet.approx_dp(1, delta), "high": discreet.approx_dp(2, delta)}
    plan = plan_binary_labels(MADE, RULE, limits, answered_share=0.8, items=60)
    for name, limit in limits.items():
        spent = plan.guarantee[name]
        assert spent.event.delta == limit.event.delta
        assert spent.epsilon(delta) <= limit.epsilon(delta)
        assert spent.delta(spent.epsilon(delta)) <= float(delta)
    less = rational(delta) * (1 - Fraction(1, 10**20))
    assert plan.guarantee["low"].epsilon(less) == math.inf  # no more than that is claimed
    account = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").account("data", limit=limits["high"])
    account.charge(plan.guarantee.worst, label="labels")


def test_a_run_of_bits(tmp_path):
    plan = plan_binary_labels(MADE, RULE, LIMITS, answered_share=0.8, items=60)
    assert plan.queries <= 60
    counts = np.tile([[0, 250 * UNITS]], (60, 1))
    found = publish_labels(counts, plan, rng=seeded_rng(1))
    assert len(found.answered) <= plan.answers
    assert (found.labels[found.answered] == 1).mean() > 0.9
    assert found.guarantee == plan.guarantee
    # A crowd keeps zCDP, which bits do not have a better one of than the plain plan.
    crowd = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").personal_budgets(
        "data", limits=LIMITS, members=[1, 2], privacy_levels=["low", "high"]
    )
    with pytest.raises(Unsupported):
        crowd.charge_all(plan.guarantee, label="labels")


@pytest.mark.parametrize("items", [-3, 0, 2.5, True])
def test_a_plan_has_whole_numbers_of_items(items):
    """Fewer than no questions would be paid for with what they cost, and asked all the same."""
    with pytest.raises(InvalidArgument, match="items"):
        plan_binary_labels(MADE, RULE, LIMITS, answered_share=0.5, items=items)
    with pytest.raises(InvalidArgument, match="items"):
        plan_labels(MADE, RULE, LIMITS, classes=2, answered_share=0.5, items=items)


@pytest.mark.parametrize(("name", "number"), [("queries", -3), ("answers", 0), ("answers", 1.5)])
def test_a_plan_has_whole_numbers_of_questions_and_answers(name, number):
    deltas = dict.fromkeys(LIMITS, 1e-5)
    numbers = {"assignment": MADE, "queries": 5, "answers": 3, name: number}
    with pytest.raises(InvalidArgument, match=name):
        BinaryLabelPlan(aggregator=BinaryLabels(aggregator=RULE), deltas=deltas, **numbers)
    with pytest.raises(InvalidArgument, match=name):
        LabelPlan(aggregator=RULE, classes=2, **numbers)


def test_bad_input_is_named():
    with pytest.raises(OutOfDomain, match="two columns"):
        BinaryLabels(aggregator=RULE).passes_threshold([[1, 2, 3]])
    with pytest.raises(InvalidArgument, match="answered"):
        plan_binary_labels(MADE, RULE, LIMITS, answered_share=0)
    with pytest.raises(InvalidArgument, match="levels"):
        plan_binary_labels(MADE, RULE, {"low": LIMITS["low"]}, answered_share=1)
    tiny = {name: discreet.approx_dp(1e-6, 1e-9) for name in LIMITS}
    with pytest.raises(BudgetExceeded):
        plan_binary_labels(MADE, RULE, tiny, answered_share=1)
    assert (BinaryLabels(aggregator=RULE).costs(0)[0] == 0).all()
