"""Costs that are published: smooth bounds hold for all neighbors, releases cost what they say."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.special as sp
from scipy.integrate import quad
from scipy.stats import norm

import discreet
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.pate import _data_dependent_cost as costs
from discreet.models.pate import aggregators as old
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax
from discreet.models.pate.teacher_assignment import UNITS, assign_weighting
from discreet.noise.random_source import seeded_rng
from discreet_studies.personalized_pate import smooth_cost as smooth
from discreet_studies.personalized_pate.tested_plan import ProposeTestReleasePlan

VOTES = [
    [250] + [0] * 9,
    [230, 10, 5, 2, 1, 1, 1, 0, 0, 0],
    [150, 60, 20, 10, 5, 2, 1, 1, 1, 0],
    [90, 80, 30, 20, 10, 10, 5, 3, 1, 1],
]


def published_curve(order):
    def curve(log_error):
        return old.gaussian_cost(np.minimum(log_error, 0), sigma=40, orders=[order])[..., 0]

    return curve


# ── smooth bounds ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("order", "flat"), [(5, -4.332515), (10, -3.680933), (20, -3.156873)])
def test_where_the_cost_is_flat(order, flat):
    """ln q0 of M16: from there on the data-dependent bound does not help."""
    bound = smooth.votes_bound(
        published_curve(order), classes=10, sigma=40, most=1, total=250, b=0.01
    )
    start = bound.edges[0] + 2 * bound.reach
    assert smooth.error_at(start, classes=10) == pytest.approx(flat, abs=1e-6)


def test_smooth_sensitivities_as_printed():
    bound = smooth.votes_bound(published_curve(20), classes=10, sigma=40, most=1, total=250, b=0.01)
    errors = [sp.logsumexp(sp.log_ndtr((np.array(v[1:]) - v[0]) / 40 / 2**0.5)) for v in VOTES]
    places = smooth.place(errors, classes=10)
    assert places == pytest.approx([3.125, 2.842392, 1.618070, 0.829400], abs=1e-6)
    found = bound.at(places, whole_steps=True)
    assert found == pytest.approx([5.213375e-4, 5.819576e-4, 7.934556e-4, 5.761670e-4], rel=1e-6)
    # Without whole steps: at most one step more, and robust to rounding at their edges.
    ours = bound.at(places)
    assert ((found <= ours) & (ours <= found * math.exp(0.01))).all()


def histograms(total, classes):
    for cuts in itertools.combinations_with_replacement(range(total + 1), classes - 1):
        edges = (0, *cuts, total)
        yield tuple(b - a for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize(
    ("classes", "total", "sigma", "order"),
    [(2, 14, 2, 2), (3, 14, 2, 2), (2, 100, 8, 20), (3, 60, 5, 20)],
)
def test_bounds_hold_for_all_neighbors(classes, total, sigma, order):
    """Every histogram: the cost moves by at most the bound, the bound by at most e^b."""
    b = 0.05
    curve = smooth.votes_curve(classes=classes, sigma=sigma / UNITS, share=1 / UNITS, order=order)
    bound = smooth.votes_bound(
        curve, classes=classes, sigma=sigma / UNITS, most=1 / UNITS, total=total / UNITS, b=b
    )
    seen = list(histograms(total, classes))
    errors = costs.log_error(seen, sigma=Fraction(sigma, UNITS))
    cost = dict(zip(seen, curve(errors), strict=True))
    smoothed = dict(zip(seen, bound.at(smooth.place(errors, classes=classes)), strict=True))
    worst = 0.0
    for here in seen:
        for i, j in itertools.permutations(range(classes), 2):
            if not here[i]:
                continue
            there = tuple(c - (k == i) + (k == j) for k, c in enumerate(here))
            moved = abs(cost[here] - cost[there])
            assert moved <= smoothed[here]
            assert smoothed[here] <= math.exp(b) * smoothed[there] * (1 + 1e-9)
            worst = max(worst, moved / max(smoothed[here], 1e-300))
    assert worst > 0.5


@pytest.mark.parametrize("share", [1, 2])
def test_questions_have_smooth_bounds_too(share):
    """The cost peaks at the threshold: moves of every size up to the largest share."""
    most, b = 2, 0.03
    bound = smooth.questions_bound(
        threshold=60, sigma=4, share=share, most=most, total=100, order=8, b=b
    )
    values = np.arange(0, 100.01, 0.25)
    cost = costs.query_cost(values * UNITS, threshold=60, sigma=4, share=share, orders=[8])[:, 0]
    found = bound.at(values)
    worst = 0.0
    for step in range(1, 9):
        moved = np.abs(cost[step:] - cost[:-step])
        assert (moved <= np.minimum(found[step:], found[:-step])).all()
        ratio = found[step:] / found[:-step]
        assert np.abs(np.log(ratio)).max() <= b + 1e-9
        worst = max(worst, float((moved / found[step:]).max()))
    assert worst > 0.4


def test_a_cost_that_falls_with_the_error_is_refused():
    with pytest.raises(NotCertified, match="monotone"):
        smooth.votes_bound(
            lambda e: np.where(e > -3, 1.0, 0.5 + 0.1 * np.sin(10 * e)),
            classes=3,
            sigma=4,
            most=1,
            total=60,
            b=0.01,
        )


# ── releases ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("order", "b", "sigma", "bound", "exactly"),
    [
        (20, 0.01, 50, 0.03213071, 0.00923443),
        (20, 0.02, 100, 0.06548788, 0.02375391),
        (5, 0.05, 30, 0.15528324, 0.02303325),
        (10, 0.03, 20, 0.11078429, 0.04336021),
    ],
)
def test_what_a_release_costs(order, b, sigma, bound, exactly):
    assert smooth.published_release_cost(order, b=b, sigma=sigma) == pytest.approx(bound, rel=1e-6)
    found = smooth.release_cost(order, b=b, sigma=sigma)
    assert found == pytest.approx(exactly, rel=3e-6)
    # A wrong formula would not pass: two laws at the ends, integrated.
    for r in (-b, b):
        shift, spread = min(1, math.exp(r)), math.exp(r) * sigma
        value, _ = quad(
            lambda x, shift=shift, spread=spread: math.exp(
                order * norm.logpdf(x, shift, sigma) + (1 - order) * norm.logpdf(x, 0, spread)
            ),
            -25 * sigma,
            25 * sigma,
            limit=200,
            points=[0.0],
        )
        assert math.log(value) / (order - 1) <= found * (1 + 1e-6)


def test_too_large_a_b_costs_infinitely_much():
    assert smooth.release_cost(20, b=0.03, sigma=50) == math.inf
    assert smooth.published_release_cost(20, b=0.03, sigma=50) == math.inf


def test_released_numbers_are_above_the_cost():
    made = smooth.CostRelease(order=8, b=0.02, sigma=10, tau=5, failure=0.1)
    draws = np.array([made.draw(0.5, 1e-3, seeded_rng(i)) for i in range(800)])
    # At most a tenth below; 800 draws, six standard deviations.
    assert (draws < 0.5).mean() <= 0.1 + 6 * math.sqrt(0.09 / 800)
    assert (draws < 0.5).mean() > 0.001  # it is no constant far above
    z = -norm.ppf(0.05)
    assert np.median(draws) == pytest.approx(0.5 + 10 * z * 1e-3 * math.exp(0.1 * z), rel=0.02)


# ── propose, test, release ─────────────────────────────────────────────────────────────────────

CLEAR = np.tile([[1000 * UNITS, 0, 0]], (40, 1))
HARD = np.tile([[400 * UNITS, 350 * UNITS, 250 * UNITS]], (40, 1))


def proposal(allowed=0.3):
    made = assign_weighting(1000, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 1.5})
    release = smooth.CostRelease(order=6, b=0.03, sigma=20, tau=6, failure=1e-6)
    return ProposeTestReleasePlan(
        assignment=made,
        rule=ConfidentGNMax(threshold=300, sigma_threshold=60, sigma_votes=40),
        classes=3,
        questions=40,
        allowed={"a": allowed, "b": allowed},
        releases={"a": release, "b": release},
        delta=1e-6,
    )


def test_the_promise_is_finite_at_the_sum_of_both_deltas(tmp_path):
    """1e-6 + 1e-6 is 2e-6: sums of their nearest doubles are above what people mean by it."""
    plan = proposal()
    for name in "ab":
        spent = plan.guarantee[name]
        assert spent.event.delta == Fraction(2, 10**6)
        assert math.isfinite(spent.epsilon(2e-6))
        assert spent.epsilon(Fraction(2, 10**6) * (1 - Fraction(1, 10**20))) == math.inf
    other = replace(plan, delta=1e-5)  # its double is above 1/100000
    limit = discreet.approx_dp(3, 1.1e-5)
    account = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").account("data", limit=limit)
    account.charge(other.guarantee.worst, label="labels")


def test_clear_votes_pass_and_hard_ones_do_not():
    plan = proposal()
    clear = plan.run(CLEAR, rng=seeded_rng(1))
    assert (clear.labels == 0).all()
    for seed in range(5):
        hard = plan.run(HARD, rng=seeded_rng(seed))
        assert (hard.labels == UNANSWERED).all()
    # The loose bound of the same answers is far above what was allowed.
    loose = plan.rule.answer_cost(plan.assignment, classes=3)["a"].rdp(6) * 40
    assert loose > 0.05
    assert (proposal(allowed=1e-9).run(CLEAR, rng=seeded_rng(1)).labels == UNANSWERED).all()


def test_everyone_pays_all_tests_and_all_questions():
    plan = proposal()
    found = plan.guarantee
    release = plan.releases["a"]
    share = plan.assignment.shares["b"] / UNITS
    total = 0.3 + 2 * release.cost(6) + 40 * share**2 * 6 / (2 * 60**2)
    expected = total + math.log(1 / (6 * 1e-6)) / 5 + math.log(5 / 6)
    assert float(found["b"].event.epsilon) == pytest.approx(expected, rel=1e-6)
    assert float(found["b"].event.delta) == pytest.approx(2e-6)
    assert plan.run(CLEAR, rng=seeded_rng(1)).guarantee == found
    assert plan.run(HARD, rng=seeded_rng(1)).guarantee == found


def test_labels_are_drawn_after_the_test():
    """With the same bits for flags and tests, other votes for the labels cannot change the test."""
    drawn = []

    class Watched(ConfidentGNMax):
        def answers(self, counts, *, rng=None):
            drawn.append(len(counts))
            return super().answers(counts, rng=rng)

    plan = proposal()
    watched = ProposeTestReleasePlan(
        assignment=plan.assignment,
        rule=Watched(threshold=300, sigma_threshold=60, sigma_votes=40),
        classes=3,
        questions=40,
        allowed=plan.allowed,
        releases=plan.releases,
        delta=1e-6,
    )
    watched.run(HARD, rng=seeded_rng(2))
    assert drawn == []
    watched.run(CLEAR, rng=seeded_rng(2))
    assert drawn == [40]


def test_a_test_asks_at_most_what_was_planned():
    """More items than questions are cut, as by every plan: what is paid covers no more."""
    plan = proposal()
    more = np.vstack([CLEAR, HARD])
    assert np.array_equal(
        plan.run(more, rng=seeded_rng(3)).labels, plan.run(CLEAR, rng=seeded_rng(3)).labels
    )
    assert len(plan.run(CLEAR[:7], rng=seeded_rng(3)).labels) == 7


def test_bad_input_is_named():
    with pytest.raises(InvalidArgument, match="column for each of 3 classes"):
        proposal().run(CLEAR[:, 1:])
    with pytest.raises(InvalidArgument, match="order"):
        smooth.CostRelease(order=1, b=0.1, sigma=1, tau=1, failure=0.1)
    with pytest.raises(InvalidArgument, match="failure"):
        smooth.CostRelease(order=2, b=0.1, sigma=1, tau=1, failure=0)
    plan = proposal()
    with pytest.raises(InvalidArgument, match="levels a, b"):
        ProposeTestReleasePlan(
            assignment=plan.assignment,
            rule=plan.rule,
            classes=3,
            questions=40,
            allowed={"a": 1.0},
            releases=plan.releases,
            delta=1e-6,
        )
    for wrong in (-0.01, math.nan):
        with pytest.raises(InvalidArgument, match="allowed"):
            replace(plan, allowed={"a": wrong, "b": 1.0})
    wide = smooth.CostRelease(order=6, b=0.2, sigma=20, tau=6, failure=1e-6)
    steep = ProposeTestReleasePlan(
        assignment=plan.assignment,
        rule=plan.rule,
        classes=3,
        questions=40,
        allowed=plan.allowed,
        releases={"a": wide, "b": wide},
        delta=1e-6,
    )
    with pytest.raises(NotCertified, match="b is too large"):
        assert steep.guarantee
