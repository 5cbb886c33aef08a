"""Shuffled guarantees: what a user holds, composed, grouped, stored and explained."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.filters import PureDPFilter
from discreet.accounting.guarantee import Guarantee, approx_dp, pure_dp
from discreet.accounting.shuffle import block_design_parts
from discreet.core import events
from discreet.core.errors import BudgetExceeded, InvalidArgument, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.ledger.ledger import Ledger

LOCAL, REPLACE = NeighboringRelation.LOCAL, NeighboringRelation.REPLACE_ONE


def shuffled(local, reports, parts=()):
    return pure_dp(local, relation=LOCAL).shuffled(reports=reports, parts=parts)


def clones_pair(local, reports):
    """Both laws of the clones, written out: all values of C, then of A."""
    p, q = [], []
    odds, rate = math.exp(local), math.exp(-local)
    for c in range(reports):
        chance = math.comb(reports - 1, c) * rate**c * (1 - rate) ** (reports - 1 - c)
        coins = np.array([math.comb(c, a) for a in range(c + 1)]) / 2**c
        up, stay = np.append(0, coins), np.append(coins, 0)
        p.append(chance * (odds * up + stay) / (odds + 1))
        q.append(chance * (up + odds * stay) / (odds + 1))
    return np.concatenate(p), np.concatenate(q)


def hockey(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("local", "reports"), [(1.0, 2), (0.4, 12), (2.0, 40)])
def test_one_and_several_rounds_against_the_product(local, reports):
    p, q = clones_pair(local, reports)
    one = shuffled(local, reports)
    other = pure_dp(0.3, relation=REPLACE)
    answer = np.array([1, math.exp(-0.3)]) / (1 + math.exp(-0.3))
    cases = [
        (one, (p, q), 1e-6),
        (one * 2, (np.outer(p, p).ravel(), np.outer(q, q).ravel()), 2e-3),
        (one + other, (np.outer(p, answer).ravel(), np.outer(q, answer[::-1]).ravel()), 2e-3),
    ]
    for guarantee, (first, second), slack in cases:
        for epsilon in (0.0, 0.1, 0.4, 0.9):
            true = hockey(first, second, epsilon)
            assert hockey(second, first, epsilon) == pytest.approx(true, abs=1e-12)
            assert true - 1e-15 <= guarantee.delta(epsilon) <= true * (1 + slack) + 1e-5


def test_renyi_divergences_are_above_the_exact_ones():
    p, q = clones_pair(1.0, 30)
    for order in (1.5, 2.0, 8.0):
        exact = math.log(float(np.sum(q * (p / q) ** order))) / (order - 1)
        assert exact <= shuffled(1.0, 30).rdp(order) <= exact * 1.05


def test_the_local_epsilon_is_never_exceeded():
    g = shuffled(2, 10)
    assert g.epsilon() == 2.0
    assert g.epsilon(1e-12) <= 2.0
    assert g.delta(2.0) == 0.0
    assert (g * 3).epsilon() == 6.0
    assert shuffled(0, 10).epsilon() == 0.0
    assert shuffled(1, 1).epsilon(1e-9) == pytest.approx(1.0, rel=1e-6)


def test_groups_take_more():
    one, three = shuffled(1, 1000), shuffled(1, 1000).for_group(3)
    assert three.epsilon() == 3.0
    assert 2 * one.epsilon(1e-6) < three.epsilon(1e-6) < 5 * one.epsilon(1e-6)
    grown = one.delta(0.1) * math.expm1(0.3) / math.expm1(0.1)
    assert three.delta(0.3) == pytest.approx(grown, rel=1e-9)
    assert (three + three).epsilon(1e-6) > three.epsilon(1e-6)


def test_a_sample_of_clients_may_be_shuffled():
    g = shuffled(1, 1000)
    drawn = g.sampled(sample=1000, population=10**5)
    assert drawn.epsilon(1e-6) < g.epsilon(1e-6)
    with pytest.raises(RelationMismatch):
        g.sampled(0.1)


def test_only_local_reports_are_shuffled_and_only_replaced():
    with pytest.raises(RelationMismatch):
        pure_dp(1).shuffled(reports=10)
    with pytest.raises(Unsupported):
        approx_dp(1, 1e-6, relation=LOCAL).shuffled(reports=10)
    bundle = pure_dp(0.5, relation=LOCAL) * 2
    assert bundle.shuffled(reports=10) == shuffled(1, 10)
    with pytest.raises(Unsupported):
        bundle.shuffled(reports=10, parts=block_design_parts(points=2))
    for relation in (NeighboringRelation.ADD_REMOVE, LOCAL):
        with pytest.raises(RelationMismatch, match="REPLACE_ONE"):
            Guarantee(events.ShuffledEvent(Fraction(1), 10), relation)
    with pytest.raises(InvalidArgument):
        shuffled(1, 0)


def test_a_described_randomizer_is_worth_more():
    plain, tight = shuffled(4, 10**4), shuffled(4, 10**4, block_design_parts(points=32))
    assert tight.epsilon(1e-6) < 0.6 * plain.epsilon(1e-6)
    assert (tight * 10).epsilon(1e-6) < 0.6 * (plain * 10).epsilon(1e-6)


def test_rounds_compose_like_their_root():
    g = shuffled(4, 10**5)
    assert (g * 100).epsilon(1e-6) < 13 * g.epsilon(1e-6)


@pytest.mark.parametrize("parts", [(), block_design_parts(points=5, chosen=2)])
def test_stored_and_shown(parts):
    g = shuffled(Fraction(3, 2), 1000, parts)
    assert Guarantee.from_json(g.to_json()) == g
    assert events.from_json(events.to_json((g * 3).event)) == (g * 3).event
    assert (
        repr(g) == "Guarantee(shuffle(1000 reports, epsilon 1.5), NeighboringRelation.REPLACE_ONE)"
    )
    text = (g + pure_dp(0.1, relation=REPLACE)).explain(delta=1e-6)
    assert ("Balle" if parts else "Feldman, McMillan, Talwar 2021") in text


def test_equal_descriptions_are_equal_events():
    half = Fraction(1, 2)
    merged = events.ShuffledTwoLevelEvent(1, 10, ((half, half, half), (half, half, half)))
    assert merged == shuffled(1, 10, block_design_parts(points=2)).event
    for wrong in (((1, half, Fraction(2, 3)),), ((half, half, half),), ((1, 1, 0),), ((1, 2),), 3):
        with pytest.raises(InvalidArgument):
            events.ShuffledTwoLevelEvent(1, 10, wrong)


def test_a_budget_of_pure_epsilons_counts_the_local_one():
    budget = PureDPFilter(limit=Fraction(3), relation=REPLACE)
    budget.charge(shuffled(2, 10**6))
    assert budget.spent == 2


def test_a_ledger_keeps_shuffled_rounds(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("survey", limit=approx_dp(1, 1e-6, relation=REPLACE))
    for _ in range(10):
        account.charge(shuffled(4, 10**5), label="a round")
    assert account.spent == shuffled(4, 10**5) * 10
    with pytest.raises(BudgetExceeded):
        account.charge(shuffled(4, 10**5) * 90, label="too many")
