"""Ensembles: owners stay with their teachers, costs hold for the exact law, limits are kept."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.naive_bayes import GaussianNB

import discreet
from discreet.accounting.individual_filter import limit_rho
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, OutOfDomain
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.classifier import PATEClassifier, publish_labels
from discreet.models.pate.label_plan import LabelPlan, plan_labels
from discreet.models.pate.teacher_assignment import (
    UNITS,
    assign_upsampling,
    assign_weighting,
    count_votes,
)
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.random_source import seeded_rng

LIMITS = {"open": discreet.approx_dp(3, 1e-5), "strict": discreet.approx_dp(1, 1e-5)}
# Half of what a crowd of LIMITS has: a second run does not fit.
SMALLER = {"open": discreet.approx_dp(2.5, 1e-5), "strict": discreet.approx_dp(0.8, 1e-5)}
RULE = ConfidentGNMax(threshold=100, sigma_threshold=60, sigma_votes=30)


def shares_of(budgets):
    return {name: math.sqrt(float(limit_rho(limit))) for name, limit in budgets.items()}


def even(teachers=200):
    return assign_weighting(
        teachers, people={"open": 1, "strict": 1}, sensitivities=shares_of(LIMITS), key="k"
    )


# ── who teaches whom ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", [9, 11])
def test_every_record_has_an_owner(named):
    ensemble = PATEClassifier(GaussianNB(), assignment=even(8), classes=2)
    owners, levels = [f"p{i}" for i in range(named)], ["open"] * named
    with pytest.raises(InvalidArgument, match="every record"):
        ensemble.fit(
            np.zeros((10, 1)), np.zeros(10, dtype=int), owners=owners, privacy_levels=levels
        )


@pytest.mark.parametrize("missing", [math.nan, None, 2.5])
def test_an_owner_without_a_name_does_not_rename_the_others(missing):
    named, levels = [1, 2, 3], ["open", "open", "strict"]
    found = [rows.tolist() for rows in even(200).rows(named, levels)]
    for same in (np.array(named), np.array(named, dtype=object), ["1", "2", "3"]):
        assert [rows.tolist() for rows in even(200).rows(same, levels)] == found
    more = [rows.tolist() for rows in even(200).rows([*named, missing], [*levels, "open"])]
    nobody = not isinstance(missing, float) or math.isnan(missing)
    for before, after in zip(found, more, strict=True):
        assert [row for row in after if row < 3] == before
    assert sum(3 in rows for rows in more) == (0 if nobody else 1)


def test_a_name_that_is_no_text_has_teachers_and_a_long_key_is_refused():
    found = even(8).rows(["anna\ud800", "ben"], ["open", "strict"])
    assert sorted(np.concatenate(found).tolist()) == [0, 1]
    with pytest.raises(InvalidArgument, match="key must be"):
        assign_upsampling(8, copies={"open": 1}, key="k" * 65)


@pytest.mark.parametrize(
    "assignment", [even(8), assign_upsampling(8, copies={"open": 3, "strict": 1})]
)
def test_without_an_owner_only_the_own_teachers_change(assignment):
    owners = np.array([f"p{i}" for i in range(30)] + ["p3", "p4"])
    levels = np.array(["open", "strict"] * 15 + ["strict", "open"])
    whole = assignment.rows(owners, levels)
    for name in np.unique(owners):
        kept = np.flatnonzero(owners != name)
        left = assignment.rows(owners[kept], levels[kept])
        level = levels[owners == name][0]
        changed = [
            t
            for t in range(8)
            if not np.array_equal(whole[t][owners[whole[t]] != name], kept[left[t]])
        ]
        assert changed == []
        touched = [t for t in range(8) if (owners[whole[t]] == name).any()]
        assert sum(assignment.weights[touched]) <= assignment.shares[level]


def test_a_shuffle_and_split_is_caught():
    """T7: an even split of a shuffled list moves everybody when one is missing."""
    rng = np.random.default_rng(1)
    owners = np.arange(40)
    whole = np.array_split(owners[np.random.default_rng(1).permutation(40)], 8)
    left = np.array_split(owners[:-1][rng.permutation(39)], 8)
    changed = sum(set(a) != set(b) for a, b in zip(whole, left, strict=True))
    assert changed > 1


@pytest.mark.parametrize(
    ("ratio", "share", "low", "high"),
    [(1.5, 0.25, 0.888889, 1.333333), (2, 0.5, 0.666667, 1.333333), (5, 0.25, 0.5, 2.5)],
)
def test_weights_of_the_thesis(ratio, share, low, high):
    made = assign_weighting(
        400, people={"high": share, "low": 1 - share}, sensitivities={"high": ratio, "low": 1}
    )
    assert made.shares["low"] / UNITS == pytest.approx(low, abs=2e-3)
    assert made.shares["high"] / UNITS == pytest.approx(high, abs=2e-3)
    assert made.weights.sum() <= 400 * UNITS


# ── costs ──────────────────────────────────────────────────────────────────────────────────────


def winner_law(counts, sigma):
    """The exact law of the winner of two noisy whole counts, ties to the first."""
    law = DiscreteGaussian(square=Fraction(sigma) ** 2)
    reach = np.arange(-40 * sigma, 40 * sigma + 1)
    mass = np.exp(law.log_pmf(reach))
    upto = np.cumsum(mass)
    # second wins if n0 + z0 < n1 + z1
    gap = counts[1] - counts[0]
    places = np.clip(np.arange(len(reach)) + gap - 1, -1, len(reach) - 1)
    second = float((mass * np.where(places >= 0, upto[places], 0)).sum())
    return np.array([1 - second, second])


def divergence(p, q, order):
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def test_the_cost_of_an_answer_holds_for_the_exact_law():
    """Two classes, small counts in units: every move of a share, many orders, both directions."""
    sigma, share = 3, 2
    rho = Fraction(2 * share**2, 2 * sigma**2)
    worst = 0.0
    for total, moved in itertools.product((4, 7, 10), (-share, share)):
        for first in range(total + 1):
            if not 0 <= first + moved <= total:
                continue
            here = winner_law((first, total - first), sigma)
            there = winner_law((first + moved, total - first - moved), sigma)
            for order in (1.5, 2, 5, 10):
                worst = max(worst, divergence(here, there, order) / (float(rho) * order))
    # A claim of half the cost, as if only one count moved, would be refuted.
    assert 0.5 < worst <= 1


def test_events_say_what_happens():
    made = even()
    ask, tell = RULE.query_cost(made), RULE.answer_cost(made, classes=10)
    share = made.shares["open"]
    assert ask["open"].event.shift_squared == share**2
    assert tell["open"].event.shift_squared == 2 * share**2
    assert tell["open"].event.dimension == 10
    assert ask["open"].event.variance == (60 * UNITS) ** 2
    expected = Fraction(share**2, 2 * (60 * UNITS) ** 2)
    assert ask["open"].rdp(2) <= float(2 * expected) * (1 + 1e-9)


# ── runs ───────────────────────────────────────────────────────────────────────────────────────


def simulated(rng, items, teachers):
    truth = rng.integers(0, 5, (items, 1))
    said = rng.integers(0, 5, (items, teachers))
    return np.where(rng.random((items, teachers)) < 0.8, truth, said), truth[:, 0]


def test_a_plan_is_as_long_as_the_limits_allow():
    made = even()
    plan = plan_labels(made, RULE, LIMITS, classes=5, answered_share=0.7)
    spent = plan.guarantee.epsilons(1e-5)
    assert spent["strict"] <= 1
    assert spent["open"] <= 3
    more = LabelPlan(
        assignment=made,
        aggregator=RULE,
        classes=5,
        queries=math.ceil((plan.answers + 1) / 0.7 * 1.1),
        answers=plan.answers + 1,
    ).guarantee.epsilons(1e-5)
    assert more["strict"] > 1 or more["open"] > 3
    # Both levels end at about the same time, as their weights were meant.
    assert spent["strict"] > 0.9
    assert spent["open"] > 2.7


def test_the_accounting_is_that_of_gaussian_privacy():
    """The filter of M26 (D): 55 answered queries at epsilon 1, where loose Rényi allows 32."""
    alone = assign_weighting(250, people={"all": 1}, sensitivities={"all": 1})
    rule = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)
    plan = plan_labels(
        alone, rule, {"all": discreet.approx_dp(1, 1e-5)}, classes=10, answered_share=1
    )
    assert plan.answers == plan.queries == 55


def test_a_run_ends_with_its_plan():
    made = even()
    plan = plan_labels(made, RULE, LIMITS, classes=5, answered_share=0.7)
    votes, truth = simulated(np.random.default_rng(2), 4000, 200)
    counts = count_votes(votes, made, classes=5)
    found = publish_labels(counts, plan, rng=seeded_rng(5))
    assert len(found.answered) == plan.answers
    assert found.query_count <= plan.queries
    assert found.labels[-1] >= 0  # nothing is asked after the last answer
    assert (found.labels[found.answered] == truth[found.answered]).mean() > 0.9
    stingy = LabelPlan(assignment=made, aggregator=RULE, classes=5, queries=10, answers=1000)
    assert publish_labels(counts, stingy, rng=seeded_rng(5)).query_count == 10
    assert publish_labels(counts[:7], stingy, rng=seeded_rng(5)).query_count == 7
    assert found.guarantee == plan.guarantee


def test_when_a_run_ends_is_a_function_of_its_outputs():
    """M26 (D): clear votes and barely sufficient ones that publish the same end together."""
    made = even()
    plan = LabelPlan(assignment=made, aggregator=RULE, classes=2, queries=50, answers=20)
    clear, close = (np.tile([[n * UNITS, 0]], (80, 1)) for n in (100_000, 10_000))
    first, second = (publish_labels(c, plan, rng=seeded_rng(1)) for c in (clear, close))
    assert (first.labels == second.labels).all()
    assert first.query_count == second.query_count == 20


def blobs(rng, n):
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) + 4 * np.stack([y == 1, y == 2], axis=1), y


def test_labels_from_real_teachers(tmp_path):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 3000)
    items, truth = blobs(rng, 400)
    owners = np.arange(3000)
    levels = np.where(owners % 2, "open", "strict")
    ensemble = PATEClassifier(GaussianNB(), assignment=even(), classes=3)
    ensemble.fit(X, y, owners=owners, privacy_levels=levels)
    crowd = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").personal_budgets(
        "data", limits=LIMITS, members=owners, privacy_levels=levels
    )
    plan = plan_labels(ensemble.assignment, RULE, SMALLER, classes=3, answered_share=0.8)
    found = ensemble.label(items, plan=plan, personal_budgets=crowd)
    right = found.labels[found.answered] == truth[found.answered]
    assert len(right) > 15
    assert right.mean() > 0.8
    with pytest.raises(BudgetExceeded):
        ensemble.label(items, plan=plan, personal_budgets=crowd)
    with pytest.raises(NotCertified):
        ensemble.label(items, plan=plan, personal_budgets=crowd, rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="plan"):
        PATEClassifier(GaussianNB(), assignment=even(100), classes=3).label(items, plan=plan)


def test_a_teacher_without_records_still_votes():
    made = assign_upsampling(6, copies={"all": 1})
    ensemble = PATEClassifier(GaussianNB(), assignment=made, classes=2)
    ensemble.fit(np.zeros((1, 2)), np.array([1]), owners=["a"], privacy_levels=["all"])
    assert sorted(ensemble.votes(np.zeros((1, 2)))[0].tolist()) == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("do", "error", "words"),
    [
        (
            lambda: assign_weighting(1, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 1}),
            InvalidArgument,
            "enough",
        ),
        (
            lambda: assign_weighting(5, people={"a": 1}, sensitivities={"b": 1}),
            InvalidArgument,
            "same",
        ),
        (
            lambda: assign_weighting(5, people={"a": 0}, sensitivities={"a": 1}),
            InvalidArgument,
            "posit",
        ),
        (lambda: assign_upsampling(2, copies={"a": 3}), InvalidArgument, "at most"),
        (lambda: count_votes([[0, 1]], even(4), classes=2), InvalidArgument, "one column"),
        (lambda: count_votes([[0, 1, 2, 9]], even(4), classes=3), InvalidArgument, "0..2"),
        (lambda: RULE.passes_threshold([[0.5, 1.0]]), OutOfDomain, "whole"),
        (
            lambda: ConfidentGNMax(threshold=1, sigma_threshold=0, sigma_votes=1),
            InvalidArgument,
            "pos",
        ),
        (
            lambda: plan_labels(
                even(4),
                RULE,
                {**LIMITS, "open": discreet.approx_dp(1e-6, 1e-9)},
                classes=2,
                answered_share=1,
            ),
            BudgetExceeded,
            "open does not pay",
        ),
        (
            lambda: plan_labels(even(4), RULE, LIMITS, classes=2, answered_share=0),
            InvalidArgument,
            "answered",
        ),
        (
            lambda: plan_labels(
                even(4), RULE, {"open": discreet.approx_dp(1, 1e-6)}, classes=2, answered_share=1
            ),
            InvalidArgument,
            "levels open, strict",
        ),
    ],
)
def test_bad_input_is_named(do, error, words):
    with pytest.raises(error, match=words):
        do()


# ── an estimator of scikit-learn ───────────────────────────────────────────────────────────────


def test_it_is_a_classifier_of_scikit_learn():
    made = PATEClassifier(GaussianNB(), assignment=even(8), classes=3, dtype="float32", seed=4)
    copied = clone(made)
    assert is_classifier(copied)
    assert copied.get_params()["assignment"] == made.assignment
    assert {name: copied.get_params()[name] for name in ("classes", "dtype", "seed")} == {
        "classes": 3,
        "dtype": "float32",
        "seed": 4,
    }
    x = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
    fitted = copied.fit(
        x, np.arange(60) % 3, owners=[f"p{i}" for i in range(60)], privacy_levels=["open"] * 60
    )
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert len(fitted.estimators_) == 8
    assert not hasattr(made, "estimators_")


def test_a_plan_that_was_written_to_a_file_is_that_plan():
    ensemble = PATEClassifier(GaussianNB(), assignment=even(), classes=2).fit(
        np.random.default_rng(0).normal(size=(400, 1)),
        np.arange(400) % 2,
        owners=[f"p{i}" for i in range(400)],
        privacy_levels=["open", "strict"] * 200,
    )
    plan = plan_labels(ensemble.assignment, RULE, LIMITS, classes=2, answered_share=1)
    read = pickle.loads(pickle.dumps(plan))
    items = np.zeros((3, 1))
    one = ensemble.label(items, plan=plan, rng=seeded_rng(1))
    assert (one.labels == ensemble.label(items, plan=read, rng=seeded_rng(1)).labels).all()
    other = assign_upsampling(200, copies={"open": 1, "strict": 1}, key="k")
    assert other != ensemble.assignment
    away = plan_labels(other, RULE, LIMITS, classes=2, answered_share=1)
    with pytest.raises(InvalidArgument, match="assignment"):
        ensemble.label(items, plan=away)
