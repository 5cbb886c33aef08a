"""Other rules: Laplace noise, and teachers who are asked only where a student is wrong."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.pate import aggregators as laplace
from discreet.models.pate import aggregators as old
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax
from discreet.models.pate.label_plan import LabelPlan
from discreet.models.pate.teacher_assignment import UNITS, assign_weighting
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet_studies.personalized_pate.exact_divergence import divergence
from discreet_studies.personalized_pate.interactive_gnmax import reinforced

MADE = assign_weighting(100, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 2})


def winner(first, second, scale):
    """The exact law of the winner of two noisy counts, ties to the first."""
    law = DiscreteLaplace(scale)
    z = np.arange(-60 * scale, 60 * scale + 1)
    mass = np.exp(law.log_pmf(z))
    lost = float((mass * law.sf(z + first - second)).sum())  # z0 + first < z1 + second
    return np.array([1 - lost, lost])


def test_errors_of_laplace_votes():
    """Exact for two classes; near the published formula on the fine grid of units."""
    for gap in range(30):
        bound = math.exp(laplace.log_error([[gap, 0]], scale=Fraction(5, UNITS))[0])
        law = DiscreteLaplace(5)
        z = np.arange(-300, 301)
        exactly = float((np.exp(law.log_pmf(z)) * law.sf(z + gap - 1)).sum())
        assert bound == pytest.approx(exactly, rel=1e-9)
    fine = laplace.log_error([[30 * UNITS, 0]], scale=20)[0]
    assert math.exp(fine) == pytest.approx(0.195239, rel=1e-3)
    votes = np.array([[230, 10, 5, 2, 1, 1, 1, 0, 0, 0]])
    assert laplace.log_error(votes * UNITS, scale=20) == pytest.approx(
        old.laplace_log_error(votes, gamma=0.05), abs=1e-3
    )


def test_laplace_costs_hold_in_both_directions():
    orders = np.array([1.5, 2, 5, 20])
    scale = 3
    worst, one_sided = 0.0, 0.0
    for first, share in itertools.product(range(31), (1, 2)):
        for moved in {-share, share}:
            if not 0 <= first + moved <= 30:
                continue
            here = np.log(winner(first, 30 - first, scale))
            there = np.log(winner(first + moved, 30 - first - moved, scale))
            error = laplace.log_error([[first, 30 - first]], scale=Fraction(scale, UNITS))
            two = laplace.answer_cost(error, scale=scale, share=share, orders=orders)[0]
            one = old.laplace_cost(np.minimum(error, 0), gamma=share / scale, orders=orders)[0]
            reverse = divergence(there, here, orders=orders)
            both = np.maximum(divergence(here, there, orders=orders), reverse)
            worst = max(worst, float((both / two).max()))
            one_sided = max(one_sided, float((reverse / one).max()))
    assert 0.5 < worst <= 1
    assert one_sided > 1


def test_laplace_answers():
    rule = laplace.LNMax(scale=20)
    counts = np.tile([[55 * UNITS, 25 * UNITS]], (20_000, 1))
    lost = (rule.answers(counts, rng=seeded_rng(1)) == 1).mean()
    assert lost == pytest.approx(0.195239, abs=5 * math.sqrt(0.16 / 20_000))
    cost = rule.answer_cost(MADE)
    assert cost["b"].epsilon() == pytest.approx(2 * MADE.shares["b"] / UNITS / 20, rel=1e-6)
    assert (laplace.answer_cost([-3.0], scale=20, share=0, orders=[2]) == 0).all()
    with pytest.raises(InvalidArgument, match="scale"):
        laplace.LNMax(scale=0)


# ── a student who asks ─────────────────────────────────────────────────────────────────────────


def plan(questions=60, answers=60):
    rule = ConfidentGNMax(threshold=40, sigma_threshold=2, sigma_votes=2)
    return LabelPlan(
        assignment=MADE, aggregator=rule, classes=3, queries=questions, answers=answers
    )


def test_a_student_is_corrected_where_wrong():
    counts = np.tile([[0, 100 * UNITS, 0]], (60, 1))
    known = np.zeros((60, 3))
    known[:20, 1] = 1  # right, and sure
    known[20:40, 2] = 1  # wrong, and sure
    known[40:] = [0.2, 0.7, 0.1]  # right, and not sure
    found = reinforced(counts, known, plan=plan(), sure=0.9, rng=seeded_rng(1))
    assert (found.labels[:40] == 1).all()
    assert (found.labels[40:] == UNANSWERED).all()
    # Right labels of a sure student came without votes: nobody was asked more than for the wrong.
    few = reinforced(counts, known, plan=plan(answers=5), sure=0.9, rng=seeded_rng(1))
    assert few.query_count == 25
    assert found.guarantee == plan().guarantee
    short = reinforced(counts, known, plan=plan(questions=10), sure=0.9, rng=seeded_rng(1))
    assert short.query_count == 10


def test_what_a_student_may_say():
    counts = np.zeros((4, 3), dtype=int)
    with pytest.raises(InvalidArgument, match="probabilities"):
        reinforced(counts, np.full((4, 3), 2.0), plan=plan(), sure=0.9)
    with pytest.raises(InvalidArgument, match="column"):
        reinforced(counts, np.zeros((4, 2)), plan=plan(), sure=0.9)
    with pytest.raises(InvalidArgument, match="sure"):
        reinforced(counts, np.zeros((4, 3)), plan=plan(), sure=2)


# ── audit ──────────────────────────────────────────────────────────────────────────────────────


def test_an_auditor_with_a_teacher_of_each_level():
    """A teacher who votes one way or another: the leak is below the claim, and larger for b."""
    rule = ConfidentGNMax(threshold=1, sigma_threshold=1, sigma_votes=2)
    trials = 40_000
    found = {}
    for level in ("a", "b"):
        share = MADE.shares[level]
        claim = rule.answer_cost(MADE, classes=2)[level].epsilon(1e-5)
        wins = []
        for votes in ([5 * UNITS + share, 5 * UNITS], [5 * UNITS, 5 * UNITS + share]):
            labels = rule.answers(np.tile([votes], (trials, 1)), rng=seeded_rng(len(wins)))
            wins.append(int((labels == 0).sum()))
        # Six standard deviations on each side: lower and upper rates of the two worlds.
        rates = np.array(wins) / trials
        slack = 6 * np.sqrt(rates * (1 - rates) / trials)
        found[level] = math.log((rates[0] - slack[0]) / (rates[1] + slack[1]))
        assert found[level] <= claim
        assert found[level] > 0.05  # the auditor does see something
    assert found["b"] > found["a"]
