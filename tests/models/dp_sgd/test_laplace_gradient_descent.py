"""Descent with Laplace noise under pure epsilon, and the estimators without mini-batches."""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import discreet
from discreet.audit._attack import attack
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    RelationMismatch,
)
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import laplace
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd.laplace_gradient_descent import laplace_descent
from discreet.models.dp_sgd.losses import Huber, Logistic, Softmax, Squared
from discreet.models.dp_sgd.output_perturbation_logistic import OutputPerturbationLogisticRegression
from discreet.models.dp_sgd.train import FEATURE_BITS, clipped_rows
from discreet.noise.random_source import seeded_rng
from tests import distributions as laws

BOTH = (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE)
OBJECTIVES = (Logistic(), Huber(), Softmax(classes=4))


def descent(objective=None, **changes):
    asked = {"features": 2, "public_rows": 3, "row_norm": 1.0, "epsilon": 1, "steps": 3, **changes}
    return laplace_descent(objective or Logistic(), **asked)


def grid(rows):
    return clipped_rows(np.asarray(rows, dtype=np.float64), 1.0, norm="l1", bits=FEATURE_BITS)


RECORDS = list(
    itertools.product(([1.0, 0.0], [-1.0, 0.0], [0.3, -0.7], [0.2, 0.1], [0.0, 0.0]), (0.0, 1.0))
)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_record_contributes_more_than_is_covered(objective):
    mechanism = descent(objective)
    rng = np.random.default_rng(1)
    longest = 0
    for theta in rng.normal(size=(40, objective.dimension(2))) * 50:
        sums = [mechanism._sum(theta, grid([row]), np.array([target])) for row, target in RECORDS]
        longest = max(longest, *(int(np.abs(part).sum()) for part in sums))
        for left, right in itertools.combinations(sums, 2):
            assert np.abs(left - right).sum() <= 2 * mechanism.longest
    assert 0.99 * mechanism.longest < longest <= mechanism.longest


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_a_record_contributes_does_not_depend_on_the_others(objective):
    mechanism = descent(objective)
    rng = np.random.default_rng(2)
    theta = rng.normal(size=objective.dimension(2)) * 7
    x, y = grid(rng.normal(size=(5001, 2))), rng.integers(0, 2, 5001).astype(float)
    alone = sum(mechanism._sum(theta, x[i : i + 1], y[i : i + 1]) for i in range(0, 5001, 25))
    together = mechanism._sum(theta, x[::25], y[::25])
    assert np.array_equal(alone, together)
    order = rng.permutation(5001)
    assert np.array_equal(mechanism._sum(theta, x, y), mechanism._sum(theta, x[order], y[order]))


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize(
    "changes",
    [
        {"relation": NeighboringRelation.ADD_REMOVE},
        {"relation": NeighboringRelation.REPLACE_ONE},
        {"relation": NeighboringRelation.REPLACE_ONE, "batch": 1, "public_rows": 100},
    ],
)
def test_a_run_spends_its_epsilon_and_no_more(changes, decay):
    mechanism = descent(**changes, schedule=PowerSchedule(start=2.0, decay=decay))
    spent = mechanism.guarantee
    assert spent.relation is changes["relation"]
    assert 1 - 1e-6 < spent.epsilon() <= 1
    assert mechanism.certify().holds
    assert len({step.std for step in mechanism.steps}) == (1 if decay == 0 else 3)


def test_released_parameters_have_the_stated_spread():
    # Beyond the knee gradients are constant: the noise of all steps adds up.
    mechanism = descent(Huber(), epsilon=3, features=1)
    x, y = np.ones((3, 1)), np.full(3, 100.0)
    drawn = np.array([mechanism.release(x, y, rng=seeded_rng(i))[0] for i in range(400)])
    assert laws.mean_of(drawn, 3.0, mechanism.std**2)
    assert not laws.mean_of(drawn, 3.0 + mechanism.std, mechanism.std**2)
    squares = ((drawn - 3.0) / mechanism.std) ** 2
    # Fourth moment of the sum of three Laplace variables in units of its variance: 3 + 3/3.
    assert laws.mean_of(squares, 1.0, 3.0)
    assert not laws.mean_of(squares / 4, 1.0, 3.0)


def test_the_average_is_one_of_the_iterates_functions():
    mechanism = descent(average=True)
    x, y = np.array([r for r, _ in RECORDS[:3]]), np.array([t for _, t in RECORDS[:3]])
    seen = list(mechanism.iterates(x, y, rng=seeded_rng(5)))
    path = [np.zeros(2), *(theta for theta, _ in seen[:-1])]
    assert mechanism.release(x, y, rng=seeded_rng(5)) == pytest.approx(np.mean(path, axis=0))
    last = replace(mechanism, average=False)
    assert last.release(x, y, rng=seeded_rng(5)) == pytest.approx(seen[-1][0])


def test_no_warning_tells_of_a_huge_target():
    x, y = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, -1.0]]), np.array([1.0, 1.7e308, -1.7e308])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        descent(Huber(huber_threshold=0.5)).release(x, y, rng=seeded_rng(1))


def test_hardly_any_noise_is_fine():
    x, y = np.zeros((3, 2)), np.zeros(3)
    mechanism = descent(epsilon=1000, steps=2, relation=NeighboringRelation.REPLACE_ONE, batch=2)
    assert np.abs(mechanism.release(x, y, rng=seeded_rng(1))).max() < 0.1
    assert mechanism.guarantee.epsilon() <= 1000


def test_nothing_stops_a_run_early():
    # At the minimum from the start, and all steps are taken all the same.
    mechanism = descent(Huber(), steps=7)
    assert len(list(mechanism.iterates(np.zeros((3, 2)), np.zeros(3), rng=seeded_rng(1)))) == 7


@pytest.mark.parametrize(
    ("objective", "changes", "error"),
    [
        (Squared(), {}, InvalidArgument),
        (None, {"batch": 4, "relation": NeighboringRelation.REPLACE_ONE}, InvalidArgument),
        (None, {"batch": 2}, RelationMismatch),
        (None, {"relation": NeighboringRelation.LOCAL}, RelationMismatch),
        (None, {"epsilon": 0}, InvalidArgument),
        (None, {"steps": 0}, InvalidArgument),
    ],
)
def test_contradictions_are_refused(objective, changes, error):
    with pytest.raises(error):
        descent(objective, **changes)


def test_the_number_of_rows_is_checked_where_it_is_public():
    x, y = np.zeros((2, 2)), np.zeros(2)
    with pytest.raises(OutOfDomain):
        descent(relation=NeighboringRelation.REPLACE_ONE).release(x, y, rng=seeded_rng(1))
    assert descent().release(x, y, rng=seeded_rng(1)).shape == (2,)
    assert descent().release(np.empty((0, 2)), np.empty(0), rng=seeded_rng(1)).shape == (2,)


def outputs(mechanism):
    def run(target, size):
        start = outputs.seed
        outputs.seed += size
        x, y = np.ones((1, 1)), np.array([target])
        return np.array(
            [mechanism.release(x, y, rng=seeded_rng(start + i))[0] for i in range(size)]
        )

    return run


outputs.seed = 0


@pytest.mark.slow
def test_an_audit_finds_missing_noise_and_nothing_else():
    sound = descent(
        Huber(),
        epsilon=1.5,
        features=1,
        public_rows=1,
        steps=1,
        relation=NeighboringRelation.REPLACE_ONE,
    )
    asked = {"claimed": (1.5, 0.0), "samples": 1500, "failure_probability": 1e-9}
    assert not attack(outputs(sound), -100.0, 100.0, **asked).broken
    scale = sound.steps[0].integers.noise.scale / 2
    halved = laplace(sensitivity=2 * sound.longest, scale=scale, domain="integers")
    broken = replace(sound, steps=(halved,))
    assert attack(outputs(broken), -100.0, 100.0, **asked).broken


# ── the estimator ─────────────────────────────────────────────────────────────────────────────


def people(n=2000, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    margin = x @ [3.0, -2.0, 0.0] + 0.5
    return x, np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), "yes", "no")


def model(**changes):
    asked = {
        "epsilon": 2.0,
        "bounds": (-1, 1),
        "classes": ("no", "yes"),
        "public_rows": 2000,
        "rng": seeded_rng(1),
        **changes,
    }
    return OutputPerturbationLogisticRegression(**asked)


METHODS = [
    {},
    {"relation": NeighboringRelation.REPLACE_ONE, "public_rows": None},
    {"method": "output"},
    {"method": "output", "delta": 1e-6},
    {
        "method": "last iterate",
        "delta": 1e-6,
        "relation": NeighboringRelation.REPLACE_ONE,
        "steps": 60,
    },
]


@pytest.mark.parametrize("changes", METHODS)
def test_every_method_learns_and_keeps_its_budget(changes):
    x, y = people()
    fitted = model(**changes).fit(x, y)
    assert fitted.score(x, y) > 0.72 > max((y == "yes").mean(), (y == "no").mean())
    assert fitted.guarantee_.epsilon(changes.get("delta", 0)) <= 2
    assert fitted.guarantee_.relation is changes.get("relation", NeighboringRelation.ADD_REMOVE)
    assert fitted.certify().holds
    assert fitted.predict_proba(x[:4]).sum(axis=1) == pytest.approx(1)
    short = x[np.linalg.norm(x, axis=1) < 0.5]  # longer rows are shrunk
    inside = short @ fitted.coef_.T + fitted.intercept_
    assert fitted.decision_function(short) == pytest.approx(inside[:, 0], abs=0.01)


def test_several_classes():
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (3000, 2))
    y = np.argmax(np.column_stack([x[:, 0], x[:, 1], -x.sum(axis=1)]) * 4, axis=1)
    fitted = model(classes=(0, 1, 2), public_rows=3000, epsilon=4).fit(x, y)
    assert fitted.score(x, y) > 0.75
    assert fitted.predict_proba(x).shape == (3000, 3)


def test_a_fit_is_paid_for_before_it_reads(tmp_path):
    x, y = people()
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("survey", limit=discreet.pure_dp(3))
    fitted = model(account=account, rng=None).fit(x, y)
    assert float(account.remaining) == pytest.approx(1, abs=1e-5)
    assert fitted.receipt_.account == "survey"
    with pytest.raises(BudgetExceeded):
        clone(fitted).fit(x, y)
    with pytest.raises(NotCertified):
        model(account=account, epsilon=0.5).fit(x, y)
    # What cannot be read was paid for.
    model(account=account, rng=None, epsilon=0.5).fit(np.full_like(x, np.nan), y)
    assert float(account.remaining) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"bounds": None}, InvalidArgument),
        ({"classes": None}, InvalidArgument),
        ({"classes": ("yes",)}, InvalidArgument),
        ({"public_rows": None}, InvalidArgument),
        ({"method": "none"}, InvalidArgument),
        ({"delta": 1e-6}, InvalidArgument),
        ({"method": "last iterate", "delta": 1e-6}, RelationMismatch),
        ({"method": "last iterate", "relation": NeighboringRelation.REPLACE_ONE}, InvalidArgument),
        ({"classes": (1, 2)}, InvalidArgument),
        ({"relation": NeighboringRelation.REPLACE_ONE, "public_rows": 1999}, InvalidArgument),
        ({"learning_rate": 0}, InvalidArgument),
        ({"l2": -1.0, "method": "output"}, InvalidArgument),
    ],
)
def test_what_cannot_be_fitted_is_refused(changes, error):
    with pytest.raises(error):
        model(**changes).fit(*people())


def test_the_penalty_is_chosen_from_public_numbers():
    few = model(method="output").plan(features=3, public_rows=1000).objective.l2
    many = model(method="output").plan(features=3, public_rows=100_000).objective.l2
    assert few > 10 * many
    assert math.isclose(
        model(method="output", l2=0.3).plan(features=3, public_rows=10).objective.l2, 0.3
    )


_EXEMPT = {
    "check_estimators_overwrite_params": "seeded bits are a stream, and a fit reads from it",
    "check_dtype_object": "a value that is no number is a misfit of its row, no error",
    "check_estimators_nan_inf": "a missing value is a misfit of its row, no error",
    "check_classifiers_train": "fits lists: the number of columns must be declared for them",
    "check_parameters_default_constructible": "relation is an enumeration",
    "check_fit_idempotent": "noise is drawn anew at every fit, so that two fits differ",
    "check_supervised_y_2d": "a column of labels is taken without a warning",
}


@parametrize_with_checks(
    [
        model(
            epsilon=1e5,
            bounds=(-4, 4),
            classes="public",
            public_rows=100,
            steps=200,
            learning_rate=2.0,
        )
    ],
    expected_failed_checks=lambda _: _EXEMPT,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_public_labels_are_found():
    x, y = people()
    assert list(model(classes="public").fit(x, y).classes_) == ["no", "yes"]
    with pytest.raises(InvalidArgument, match="one class"):
        model(classes="public").fit(x, np.full(2000, "yes"))
    assert model().fit(x, y[:, None]).score(x, y) > 0.72


@pytest.mark.parametrize("objective", [Logistic(), Softmax(classes=3)])
def test_long_rows_weigh_less_and_are_no_longer_than_what_is_covered(objective):
    mechanism = descent(objective, longest_row=2.0, public_rows=1)
    rows = np.array([[1.5, 0.5], [-2.0, 0.0], [0.4, 0.1], [0.3, -1.1]])
    for theta in np.random.default_rng(1).normal(size=(20, objective.dimension(2))):
        sums = [mechanism._sum(theta, rows[[i]], np.zeros(1)) for i in range(4)]
        assert all(np.abs(one).sum() <= mechanism.longest for one in sums)
        # None is left out for being too long by what rounding adds.
        assert all(np.abs(one).any() for one in sums)
    with pytest.raises(InvalidArgument, match="longest_row"):
        descent(longest_row=0.5)


def test_coefficients_are_not_inflated_by_long_rows():
    """Rows that are shrunk with their labels left made them twice as large, at every epsilon."""
    rng = np.random.default_rng(1)
    x, truth = rng.uniform(-1, 1, (20_000, 5)), np.array([3.0, -2.0, 1.0, 0.0, 0.0])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-(x @ truth + 0.5)))).astype(int)
    made = OutputPerturbationLogisticRegression(
        epsilon=10, bounds=(-1, 1), classes=(0, 1), public_rows=20_000, rng=seeded_rng(1)
    ).fit(x, y)
    assert np.abs(made.coef_[0] - truth).max() < 0.2
    assert abs(made.intercept_[0] - 0.5) < 0.2
