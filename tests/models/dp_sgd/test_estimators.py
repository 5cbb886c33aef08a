"""Estimators by private gradient descent: what they learn, refuse, charge and certify."""

import copy
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import discreet
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd import (
    OutputPerturbationLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.dp_sgd._estimator_base import GradientDescentEstimator
from discreet.models.dp_sgd.train import FeatureMap
from discreet.noise.random_source import seeded_rng

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (3000, 4))
TRUTH = np.array([1.5, -2.0, 0.5, 0.0])
LABELS = (X @ TRUTH + 0.3 + RNG.logistic(size=3000) / 3 > 0).astype(int)
Y = X @ TRUTH + 0.3 + RNG.normal(0, 0.3, 3000)


def classifier(seed: int = 1, **changes: Any) -> PrivateLogisticRegression:
    plain = {**BUDGET, "bounds": (-1, 1), "classes": (0, 1), "rng": seeded_rng(seed)}
    return PrivateLogisticRegression(**{**plain, **changes})


def regressor(kind: type[Any] = PrivateRidge, seed: int = 1, **changes: Any) -> Any:
    plain = {**BUDGET, "bounds": (-1, 1), "target_bounds": (-5, 5), "rng": seeded_rng(seed)}
    return kind(**{**plain, **changes})


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    with discreet.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield lambda epsilon, **terms: ledger.account(
            "models", limit=discreet.approx_dp(epsilon, 1e-6, **terms)
        )


def outcomes(held: Any) -> list[str | None]:
    return [entry.outcome for entry in held.history if entry.kind == "reserve"]


def test_two_classes_are_learned_without_tuning() -> None:
    model = classifier().fit(X, LABELS)
    best = np.mean((X @ TRUTH + 0.3 > 0) == LABELS)
    assert model.score(X, LABELS) > best - 0.02
    direction = model.coef_[0] / np.linalg.norm(model.coef_[0])
    assert direction @ TRUTH / np.linalg.norm(TRUTH) > 0.97
    assert model.guarantee_.delta(1.0) <= 1e-6
    assert model.guarantee_.relation is NeighboringRelation.ADD_REMOVE
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert ((chances[:, 1] > 0.5) == (model.decision_function(X) > 0)).all()


@pytest.mark.parametrize("classes", [[None, "a"], [[0], [1, 2]]])
def test_classes_without_an_order_are_refused(classes: object) -> None:
    model = PrivateLogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 1), classes=classes)
    with pytest.raises(InvalidArgument, match="classes must be"):
        model.fit(np.zeros((4, 1)), np.zeros(4))


def test_several_classes_are_learned_and_named() -> None:
    data, digits = load_digits(return_X_y=True)
    names = np.array([f"digit {digit}" for digit in digits])
    model = classifier(bounds=(0, 16), classes=sorted(set(names)), epsilon=4.0).fit(data, names)
    assert model.score(data, names) > 0.85
    assert model.coef_.shape == (10, 64)
    assert model.predict_proba(data[:5]).shape == (5, 10)


def test_real_columns_of_different_sizes() -> None:
    data, labels = load_breast_cancer(return_X_y=True)
    limits = [(0, 3 * float(f"{high:.0e}")) for high in np.median(data, axis=0)]
    assert classifier(bounds=limits).fit(data, labels).score(data, labels) > 0.85


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateHuberRegressor])
def test_regressions_are_near_least_squares(kind: type[Any]) -> None:
    model = regressor(kind).fit(X, Y)
    best = Ridge(alpha=1e-6).fit(X, Y)
    assert np.abs(model.coef_ - TRUTH).max() < 0.25
    assert abs(model.intercept_ - 0.3) < 0.1
    assert model.score(X, Y) > best.score(X, Y) - 0.02
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_, atol=1e-2)


def test_huber_resists_outliers_that_bend_least_squares() -> None:
    wild = Y.copy()
    wild[X[:, 0] > 0.8] = -5.0
    options = {"epsilon": 50.0, "clip": 4.0}
    robust = regressor(PrivateHuberRegressor, huber_threshold=0.5, **options).fit(X, wild)
    plain = regressor(PrivateRidge, **options).fit(X, wild)
    assert abs(robust.coef_[0] - 1.5) < 0.6 < abs(plain.coef_[0] - 1.5)


def test_an_unlimited_budget_gives_the_minimizer() -> None:
    """C33, C34: with hardly any noise, clipping aside, a ridge is the closed form."""
    model = regressor(
        epsilon=1e5, clip=20.0, l2=0.1, steps=1000, rate=1, public_rows=3000, average=0.1
    )
    model.fit(X, Y)
    closed = Ridge(alpha=0.1 * 3000).fit(X, Y)
    assert np.allclose(model.coef_, closed.coef_, atol=2e-3)


def test_bounds_clip_and_row_norms_shrink() -> None:
    """Values beyond their bounds count as the bounds: for fitting and for predicting."""
    far = X.copy()
    far[:10] *= 1e9
    clipped = np.clip(far, -1, 1)
    one, two = classifier().fit(far, LABELS), classifier().fit(clipped, LABELS)
    assert (one.theta_ == two.theta_).all()
    assert (one.predict_proba(far) == one.predict_proba(clipped)).all()


def test_the_guarantee_is_charged_before_values_are_read(account: Callable[..., Any]) -> None:
    held = account(1.5)
    with pytest.raises(NotCertified, match="seeded"):
        classifier(account=held).fit(X, LABELS)
    assert not outcomes(held)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FeatureMap, "steps", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            classifier(account=held, rng=None, epsilon=0.1).fit(X, LABELS)
    assert outcomes(held) == ["failed"]
    model = classifier(account=held, rng=None).fit(X, LABELS)
    assert model.receipt_.guarantee == model.guarantee_
    assert outcomes(held) == ["failed", "released"]
    model.set_params(account=None, rng=seeded_rng(1)).fit(X, LABELS)
    assert model.receipt_ is None  # that of an earlier fit says nothing of this one
    with pytest.raises(BudgetExceeded):
        classifier(account=held, rng=None, epsilon=1.4).fit(X, LABELS)


def test_what_can_be_known_before_reading_costs_nothing(account: Callable[..., Any]) -> None:
    held = account(9.0)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"bounds": None}, "bounds"),
        ({"bounds": (1, -1)}, "lower"),
        ({"bounds": [(0, 1)] * 3}, "bounds"),
        ({"bounds": (0, math.inf)}, "bounds"),
        ({"bounds": (17, math.nextafter(17, 18))}, "further apart"),
        ({"classes": None}, "classes"),
        ({"classes": (1,)}, "one class|two labels"),
        ({"epsilon": None}, "epsilon"),
        ({"rate": 0}, "rate"),
        ({"clip": -1.0}, "clip"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"public_rows": 0}, "rows"),
        ({"l2": -1.0}, "l2"),
    ]
    for changes, words in refused:
        with pytest.raises(InvalidArgument, match=words):
            classifier(account=held, rng=None, **changes).fit(X, LABELS)
    with pytest.raises(InvalidArgument, match="rows"):
        classifier(account=held, rng=None).fit(X, LABELS[:-1])
    with pytest.raises(InvalidArgument, match="2D"):
        classifier(account=held, rng=None).fit(X[:, 0], LABELS)
    with pytest.raises(InvalidArgument, match="target_bounds"):
        regressor(account=held, rng=None, target_bounds=None).fit(X, Y)
    with pytest.raises(RelationMismatch):
        classifier(account=held, rng=None, relation=NeighboringRelation.REPLACE_ONE).fit(X, LABELS)
    assert not outcomes(held)


def test_errors_show_no_private_value() -> None:
    table = X.astype(object)
    table[5, 2] = "secret word"
    with pytest.raises(OutOfDomain) as caught:
        classifier().fit(X, LABELS).predict(table)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_odd_data_are_fitted_like_any_other() -> None:
    """Whether there are rows, both classes or a varying column is private: no error says so."""
    empty = classifier().fit(np.zeros((0, 4)), np.zeros(0))
    assert np.isfinite(empty.coef_).all()
    one = classifier().fit(X, np.ones(3000))
    assert one.predict(X).mean() > 0.99
    flat = classifier().fit(np.zeros((50, 4)), LABELS[:50])
    assert np.isfinite(flat.coef_).all()


def test_rows_are_counted_with_noise_unless_they_are_known() -> None:
    counted = classifier().fit(X, LABELS)
    assert counted.rows_ != 3000
    assert abs(counted.rows_ - 3000) < 6 * float(counted.plan_.counting)
    declared = classifier(public_rows=2500).fit(X, LABELS)
    assert (declared.rows_, declared.plan_.counting) == (2500, None)
    public = classifier(relation=NeighboringRelation.REPLACE_ONE).fit(X, LABELS)
    assert (public.rows_, public.plan_.counting) == (3000, None)
    assert public.guarantee_.relation is NeighboringRelation.REPLACE_ONE
    assert public.guarantee_.delta(1.0) <= 1e-6


def test_several_rows_a_person_cost_more_and_hide_their_number() -> None:
    several = classifier(
        relation=NeighboringRelation.REPLACE_ONE, max_rows_per_unit=4, steps=50
    ).fit(X, LABELS)
    assert several.plan_.counting is not None
    assert several.guarantee_.delta(1.0) <= 1e-6
    one = classifier(relation=NeighboringRelation.REPLACE_ONE, steps=50).fit(X, LABELS)
    assert several.plan_.effective_noise > 3.5 * one.plan_.effective_noise


def test_other_currencies_use_all_rows() -> None:
    model = classifier(epsilon=None, delta=None, rho=0.05).fit(X, LABELS)
    assert model.plan_.rate == 1
    spent = sum(count / (2 * part.sigma**2) for part, count in model.guarantee_.event.parts)
    assert float(spent) == pytest.approx(0.05, rel=1e-6)
    assert spent <= Fraction(1, 20)
    assert classifier(epsilon=None, delta=None, mu=0.4).fit(X, LABELS).score(X, LABELS) > 0.8


def test_plans_are_free_and_true() -> None:
    model = classifier(public_rows=3000)
    plan = model.plan(features=4)
    fitted = model.fit(X, LABELS)
    assert plan == fitted.plan_
    assert plan.guarantee == fitted.guarantee_
    assert fitted.n_iter_ == plan.steps


def test_certify_recomputes_the_claim_and_notices_a_false_one() -> None:
    model = classifier(steps=40).fit(X, LABELS)
    assert model.certify().holds
    model.epsilon = 0.8
    with pytest.raises(NotCertified):
        model.certify()


def test_frames_and_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    limits = {"d": (-1, 1), "a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}
    model = classifier(bounds=limits).fit(frame, pd.Series(LABELS))
    assert list(model.feature_names_in_) == list("abcd")
    assert (model.theta_ == classifier().fit(X, LABELS).theta_).all()
    with pytest.raises(InvalidArgument, match="columns"):
        classifier(bounds={"a": (0, 1)}).fit(frame, LABELS)


def test_clones_share_the_account_and_cross_validation_works(account: Callable[..., Any]) -> None:
    held = account(9.0)
    copied = clone(classifier(account=held, rng=None))
    assert copied.account is held
    assert not hasattr(copied, "coef_")
    scores = cross_val_score(classifier(), X, LABELS, cv=3)
    assert scores.mean() > 0.8


def test_what_is_read_from_a_pickle_predicts_but_never_fits_for_free(
    account: Callable[..., Any],
) -> None:
    held = account(2.0)
    model = classifier(account=held, rng=None)
    fitted = pickle.loads(pickle.dumps(model.fit(X, LABELS)))
    assert fitted.guarantee_ == model.guarantee_
    assert (fitted.predict_proba(X) == model.predict_proba(X)).all()
    for read in (fitted, pickle.loads(pickle.dumps(classifier(account=held, rng=None)))):
        for copied in (read, clone(read), copy.copy(read), copy.deepcopy(read)):
            with pytest.raises(PrivacyError, match="comes from a pickle"):
                copied.fit(X, LABELS)
    assert len(outcomes(held)) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, clone])
def test_copies_of_a_fitted_model_pay_for_their_fits(
    copied: Callable[[Any], Any], account: Callable[..., Any]
) -> None:
    held = account(3.0)
    model = copied(classifier(account=held, rng=None, steps=40).fit(X, LABELS))
    assert model.account is held
    model.fit(X, LABELS)
    assert outcomes(held) == ["released", "released"]


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateHuberRegressor])
def test_no_warning_tells_of_a_huge_target(kind: type[Any]) -> None:
    y = np.where(np.arange(len(Y)) == 7, 1.7e308, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regressor(kind, steps=3, target_bounds=(-1e-6, 1e-7)).fit(X, y)


def test_numbers_too_large_for_doubles_are_clipped() -> None:
    huge = np.full((3, 1), 10**400, dtype=object)
    found = classifier(steps=3).fit(huge, [0, 1, 0])
    assert (found.theta_ == classifier(steps=3).fit(np.ones((3, 1)), [0, 1, 0]).theta_).all()


def test_no_error_tells_how_many_rows_there_are() -> None:
    for x, y in ((np.zeros((1234, 0)), np.zeros(1234)), (np.zeros((1234, 2)), np.zeros(1235))):
        with pytest.raises(InvalidArgument) as caught:
            classifier().fit(x, y)
        assert "123" not in str(caught.value)


def test_a_fit_that_fails_leaves_no_model() -> None:
    """New labels or scales with old parameters would predict nonsense."""
    for model, changes, y in (
        (classifier(steps=3), {"classes": (7, 8)}, LABELS),
        (regressor(steps=3), {"target_bounds": (0, 1000)}, Y),
        (
            OutputPerturbationLogisticRegression(
                bounds=(-1, 1), classes=(0, 1), public_rows=3000, steps=3, rng=seeded_rng(1)
            ),
            {"classes": (7, 8)},
            LABELS,
        ),
    ):
        model.fit(X, y).predict(X)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(FeatureMap, "steps", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                model.set_params(**changes).fit(X, y)
        for use in (lambda model=model: model.predict(X), model.certify):
            with pytest.raises(NotFittedError):
                use()


def test_what_cannot_be_trained_is_refused_before_paying(account: Callable[..., Any]) -> None:
    held = account(3.0)
    for changes in ({"clip": 1e9}, {"classes": range(5000), "clip": 1.0}):
        with pytest.raises(PrivacyError):
            classifier(account=held, rng=None, **changes).fit(X, LABELS)
    assert outcomes(held) == []


def test_a_budget_whose_noise_would_leave_whole_numbers_is_refused() -> None:
    changes = {"epsilon": None, "delta": None, "public_rows": 100, "steps": 4}
    with pytest.raises(Unsupported, match="does not fit"):
        classifier(**changes, mu=1e-9).fit(X, LABELS)
    assert classifier(**changes, mu=1e-6).fit(X, LABELS).certify().holds


def test_seeds_repeat_and_fits_differ() -> None:
    one, two = classifier(3).fit(X, LABELS), classifier(3).fit(X, LABELS)
    assert (one.coef_ == two.coef_).all()
    assert not (one.fit(X, LABELS).coef_ == two.coef_).all()


_NOISE = "noise is drawn anew at every fit, so that two fits on equal data differ"
_LISTS = "fits lists: the number of columns must be declared for them"
EXEMPT = {
    "check_estimators_overwrite_params": "a seeded source is a stream, and a fit reads from it",
    "check_dtype_object": "a value that is no number is a misfit of its row, no error",
    "check_classifiers_train": _LISTS,
    "check_regressors_train": _LISTS,
    "check_estimators_nan_inf": "a missing value is a misfit of its row, no error",
    "check_parameters_default_constructible": "relation is an enumeration",
    "check_fit_idempotent": _NOISE,
}
EXEMPT_REGRESSORS = {
    **EXEMPT,
    "check_supervised_y_no_nan": "a missing target is a misfit of its row, no error",
    "check_estimators_empty_data_messages": "an error would tell no rows from one row",
    "check_regressor_data_not_an_array": _NOISE,
    "check_supervised_y_2d": _NOISE,
    "check_regressors_int": _NOISE,
}


def exempt(estimator: GradientDescentEstimator) -> dict[str, str]:
    return EXEMPT if isinstance(estimator, PrivateLogisticRegression) else EXEMPT_REGRESSORS


@parametrize_with_checks(
    [
        classifier(epsilon=1e5, bounds=(-4, 4), classes="public"),
        regressor(PrivateRidge, epsilon=1e5, bounds=(-4, 4), target_bounds=(-300, 300)),
        regressor(PrivateHuberRegressor, epsilon=1e5, bounds=(-4, 4), target_bounds=(-300, 300)),
    ],
    expected_failed_checks=exempt,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_coefficients_are_those_of_the_likelihood() -> None:
    """Cutting gradients, or shrinking rows, inflates them at every budget."""
    rng = np.random.default_rng(12)
    x = np.column_stack([rng.uniform(-1, 1, (20_000, 3)), rng.random((20_000, 2)) < 0.3])
    truth = np.array([2.0, -1.5, 1.0, 0.8, -0.8])
    y = (rng.random(20_000) < 1 / (1 + np.exp(0.5 - x @ truth))).astype(int)
    model = PrivateLogisticRegression(
        epsilon=50, delta=1e-6, bounds=(-1, 1), classes=(0, 1), rng=seeded_rng(1)
    ).fit(x, y)
    exact = LogisticRegression(C=np.inf).fit(x, y)
    assert np.abs(model.coef_ / exact.coef_ - 1).max() < 0.1
    gap = model.predict_proba(x) - exact.predict_proba(x)
    assert np.abs(gap).max() < 0.03
