"""Rules from simulated votes: honest limits, the promised quality, more labels; then a student."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import discreet
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.pate._tune_aggregator import (
    expected_label_quality,
    simulate_votes,
    tune_aggregator,
)
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax
from discreet.models.pate.classifier import LabelRelease, publish_labels, train_student
from discreet.models.pate.label_plan import plan_labels, vote_weights
from discreet.models.pate.teacher_assignment import assign_weighting, count_votes
from discreet.noise.random_source import seeded_rng

LIMITS = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(2, 1e-5)}
MADE = assign_weighting(250, people={"low": 1, "high": 1}, sensitivities=vote_weights(LIMITS))
THESIS = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)


@pytest.fixture(scope="module")
def simulated():
    # Teachers of 240 digits each: 85 % are right, 56 % of the items answered by the thesis's rule.
    votes = simulate_votes(600, teachers=250, classes=10, accuracy=0.86, spread=1.4, seed=3)
    return count_votes(votes.votes, MADE, classes=10), votes.truth


def test_simulated_teachers_are_as_accurate_as_asked():
    found = simulate_votes(4000, teachers=50, classes=10, accuracy=0.9, seed=2)
    assert (found.votes == found.truth[:, None]).mean() == pytest.approx(0.902, abs=0.015)
    assert (found.votes[0] == found.votes[1]).mean() < 1
    again = simulate_votes(4000, teachers=50, classes=10, accuracy=0.9, seed=2)
    assert (again.votes == found.votes).all()
    even = simulate_votes(2000, teachers=50, classes=3, accuracy=0.7, spread=1e6)
    right = (even.votes == even.truth[:, None]).mean(axis=1)
    assert right.std() < 1.5 * np.sqrt(0.7 * 0.3 / 50)


def test_expectations_are_those_of_runs(simulated):
    counts, truth = simulated
    share, quality = expected_label_quality(counts, truth, THESIS)
    many, right = np.tile(counts, (40, 1)), np.tile(truth, 40)
    told = np.flatnonzero(THESIS.passes_threshold(many, rng=seeded_rng(1)))
    labels = THESIS.answers(many[told], rng=seeded_rng(2))
    assert len(told) / len(many) == pytest.approx(share, abs=0.015)
    assert (labels == right[told]).mean() == pytest.approx(quality, abs=0.01)


def test_the_search_beats_the_rule_of_the_thesis(simulated):
    """Both honestly accounted, at the same budgets and at least the same quality of labels."""
    counts, truth = simulated
    share, quality = expected_label_quality(counts, truth, THESIS)
    plain = plan_labels(MADE, THESIS, LIMITS, classes=10, answered_share=share)
    found = tune_aggregator(
        counts, truth, assignment=MADE, limits=LIMITS, accuracy=quality, items=9000
    )
    assert found.accuracy >= quality - 1e-3
    assert found.plan.answers >= 1.4 * plain.answers
    spent = found.plan.guarantee.epsilons(1e-5)
    assert spent["low"] <= 1
    assert spent["high"] <= 2
    # What the search says of the labels is what happens to them.
    run = publish_labels(np.tile(counts, (30, 1)), found.plan, rng=seeded_rng(3))
    right = run.labels[run.answered] == np.tile(truth, 30)[run.answered]
    assert len(right) == found.plan.answers
    assert right.mean() == pytest.approx(found.accuracy, abs=0.05)


def test_a_small_pool_is_the_limit(simulated):
    counts, truth = simulated
    found = tune_aggregator(counts, truth, assignment=MADE, limits=LIMITS, accuracy=0.9, items=40)
    assert found.plan.queries <= 40
    assert found.plan.answers <= 40


def test_bad_input_is_named(simulated):
    counts, truth = simulated
    given = {"assignment": MADE, "limits": LIMITS, "items": 100}
    with pytest.raises(InvalidArgument, match="accuracy"):
        tune_aggregator(counts, truth, accuracy=1.5, **given)
    with pytest.raises(InvalidArgument, match="truth"):
        tune_aggregator(counts, truth[1:], accuracy=0.5, **given)
    with pytest.raises(InvalidArgument, match="truth"):
        tune_aggregator(counts, truth + 5, accuracy=0.5, **given)
    with pytest.raises(NotCertified, match="No rule"):
        tune_aggregator(counts[:, ::-1], truth, accuracy=0.99, **given)
    with pytest.raises(InvalidArgument, match="accuracy"):
        simulate_votes(5, teachers=5, classes=3, accuracy=1)


# ── the student ────────────────────────────────────────────────────────────────────────────────


def labeled(told, guarantee):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    items = rng.normal(size=(400, 2)) + 3 * truth[:, None]
    labels = np.full(300, UNANSWERED)
    labels[told] = truth[told]
    return items, truth, LabelRelease(labels=labels, guarantee=guarantee)


def test_a_student_learns_from_labels_alone():
    plan = plan_labels(MADE, THESIS, LIMITS, classes=2, answered_share=1)
    items, truth, labels = labeled([0, 3, 5, 8, 13, 21], plan.guarantee)
    plain = train_student(LogisticRegression(), items, labels)
    wider = train_student(LogisticRegression(), items, labels, semi_supervised=True)
    assert (plain.predict(items) == truth).mean() > 0.8
    assert (wider.predict(items) == truth).mean() > 0.9
    assert (wider.transduction_ != UNANSWERED).sum() > 100
    # The same model from the labels by hand.
    told = labels.answered
    by_hand = LogisticRegression().fit(items[told], labels.labels[told])
    assert (by_hand.coef_ == plain.coef_).all()


def test_students_that_cannot_learn_are_refused():
    plan = plan_labels(MADE, THESIS, LIMITS, classes=2, answered_share=1)
    items, _, labels = labeled([0, 3], plan.guarantee)
    with pytest.raises(InvalidArgument, match="predict_proba"):
        train_student(LinearSVC(), items, labels, semi_supervised=True)
    with pytest.raises(InvalidArgument, match="threshold"):
        train_student(LogisticRegression(), items, labels, semi_supervised=True, threshold=1)
    with pytest.raises(InvalidArgument, match="300 items"):
        train_student(LogisticRegression(), items[:10], labels)
    _, _, silent = labeled([], plan.guarantee)
    with pytest.raises(InvalidArgument, match="No item"):
        train_student(LogisticRegression(), items, silent)
