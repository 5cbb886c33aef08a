"""The estimator: what it refuses, what it spends, and that it fits."""

import dataclasses
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import discreet
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.models.regression import (
    AutoLinearRegression,
    ColumnScaling,
    PrivateLinearRegression,
    project_psd,
    ridge,
)
from discreet.models.regression._row_lattice import RowLattice, sum_moments
from discreet.models.regression._row_sources import ArrayRows, first_rows
from discreet.noise.random_source import seeded_rng, system_rng
from discreet_studies.linear_regression.as_published import as_published, published_scaling

DECLARED = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 10), "target_bounds": (-10, 30)}


def table(rows=20_000, seed=1):
    """Three features between 0 and 10."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, size=(rows, 3))
    return x, 5 + x @ [1.0, -0.5, 0.0] + rng.normal(size=rows)


def model(**changes):
    """A model for `table`."""
    usual = {"scaling": "bounds", "mapping": "ball", "rng": seeded_rng(1)}
    return PrivateLinearRegression(**{**DECLARED, **usual, **changes})


def opened(tmp_path, epsilon=10):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    return ledger.account("survey", limit=discreet.approx_dp(epsilon, 1e-5))


# ── it fits ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mapping", ["ball", "box", "row", "weighted"])
@pytest.mark.parametrize("method", ["psd", "adassp", "ridge", "ssp"])
def test_every_method_finds_the_line(method, mapping):
    x, y = table()
    found = model(method=method, mapping=mapping, radius=1.0, epsilon=3).fit(x, y)
    assert found.score(x, y) > (0.5 if mapping == "row" else 0.85)
    assert found.guarantee_.epsilon(1e-6) <= 3
    if mapping == "row":
        assert not hasattr(found, "coef_")  # K21: directions only, there is no linear form
        return
    assert found.coef_ == pytest.approx([1.0, -0.5, 0.0], abs=0.1)
    assert found.intercept_ == pytest.approx(5.0, abs=0.6)
    inside = x[:50] @ found.coef_ + found.intercept_
    assert found.predict(x[:50]) == pytest.approx(inside, abs=1e-9)


def test_a_function_of_released_moments_is_a_method():
    x, y = table()
    found = model(method=lambda moments: ridge(moments, 3.0)).fit(x, y)
    assert found.penalty_ == 3.0


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_weighted_rows_give_slopes_that_can_be_read(relation):
    """With a small ball, projected rows inflate the slopes; weighted rows do not."""
    x, y = table()
    small = {"radius": 0.4, "epsilon": 3, "relation": relation}
    weighted = model(mapping="weighted", **small).fit(x, y)
    assert weighted.coef_ == pytest.approx([1.0, -0.5, 0.0], abs=0.1)
    found = weighted.intervals(confidence=0.9999)
    assert ((found.low[0] < [1.0, -0.5, 0.0]) & (found.high[0] > [1.0, -0.5, 0.0])).all()
    assert 0 < weighted.moments_.rows < len(x)
    assert model(mapping="ball", **small).fit(x, y).coef_[0] > 1.3
    with pytest.raises(InvalidArgument, match="fit_intercept"):
        model(mapping="weighted", fit_intercept=False).fit(x, y)


def test_several_outputs_and_names():
    pandas = pytest.importorskip("pandas")
    x, y = table()
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    both = pandas.DataFrame({"up": y, "down": -y})
    found = model(
        bounds={"c": (0, 10), "a": (0, 10), "b": (0, 10)}, target_bounds=[(-10, 30), (-30, 10)]
    ).fit(frame, both)
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    assert found.coef_.shape == (2, 3)
    assert found.predict(frame).shape == (20_000, 2)
    assert found.coef_[0] == pytest.approx(-found.coef_[1], abs=0.1)


def test_no_intercept():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, size=(20_000, 2))
    y = x @ [0.3, -0.2]
    found = model(fit_intercept=False, bounds=(-1, 1), target_bounds=(-1, 1), mapping="box")
    found.fit(x, y)
    assert found.intercept_ == 0.0
    assert found.coef_ == pytest.approx([0.3, -0.2], abs=0.02)


def test_a_declared_scaling_needs_no_bounds():
    """K25: the constants are declared; an absurd row cannot change them, nor much else."""
    x, y = table()
    declared = ColumnScaling(center=5.0, scale=(3.0, 3.0, 3.0))
    before = model(bounds=None, scaling=declared).fit(x, y)
    x[0], y[0] = 1e12, 1e12
    after = model(bounds=None, scaling=declared).fit(x, y)
    for name in ("center", "scale", "radius", "target_half"):
        assert np.array_equal(getattr(before.moments_.map, name), getattr(after.moments_.map, name))
    # The same noise: one row moves the noiseless sums by no more than their sensitivity.
    moved = np.linalg.norm(before.moments_.gram - after.moments_.gram)
    assert moved <= math.sqrt(2) * (1 + 0.35**2)


@pytest.mark.parametrize("scaling", [ColumnScaling(center=5.0, scale=3.0), "private"])
def test_clipping_to_tight_bounds(scaling):
    """K25: columns are clipped on both sides, to declared or privately found multiples."""
    x, y = table()
    bounds = None if isinstance(scaling, ColumnScaling) else (-100, 100)
    found = model(bounds=bounds, scaling=scaling, mapping="box", epsilon=3).fit(x, y)
    rows = found.moments_.map
    assert (rows.upper - rows.center) / rows.scale == pytest.approx(2.0)
    assert rows.radius == pytest.approx(2 * math.sqrt(3))
    assert found.coef_ == pytest.approx([1.0, -0.5, 0.0], abs=0.15)
    assert np.array_equal(found.predict(x[:1] + 1e6), found.predict(rows.upper[None]))


def test_predictions_stay_within_the_declared_range():
    x, y = table()
    found = model(target_bounds=(0, 8), clip_predictions=True).fit(x, y)
    assert found.predict(x).min() >= 0
    assert found.predict(x).max() <= 8


def test_an_unstable_solution_is_told():
    x, y = table(50)
    with pytest.warns(UserWarning, match="not positive definite"):
        model(method="ssp", epsilon=0.01).fit(x, y)


def test_fewer_rows_than_columns_and_constant_columns_are_no_trouble():
    found = model().fit(np.full((2, 3), 4.0), [1.0, 2.0])
    assert np.isfinite(found.coef_).all()


# ── it spends ────────────────────────────────────────────────────────────────


def test_a_fit_is_reserved_and_settled(tmp_path):
    account = opened(tmp_path)
    x, y = table()
    found = model(account=account, rng=None, label="wages").fit(x, y)
    (entry,) = (one for one in account.history if one.kind == "reserve")
    assert (entry.label, entry.outcome) == ("wages", "released")
    assert account.spent.epsilon(1e-6) == pytest.approx(found.guarantee_.epsilon(1e-6))
    assert found.receipt_.label == "wages"
    # K39: ten models of the same release, nothing more is spent.
    spent = account.spent
    for features in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        project_psd(found.moments_.subset(features))
    for penalty in (0.5, 1.0, 2.0):
        ridge(found.moments_, penalty)
    assert account.spent == spent


def test_the_budget_is_spent_before_a_row_is_read(tmp_path):
    account = opened(tmp_path)
    x, y = table(100)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ArrayRows, "add_up", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(account=account, rng=None).fit(x, y)
    (entry,) = (one for one in account.history if one.kind == "reserve")
    assert entry.outcome == "failed"


def test_what_can_be_known_before_is_refused_before(tmp_path):
    account = opened(tmp_path, epsilon=0.5)
    x, y = table(100)
    for changes in ({"bounds": None}, {"target_bounds": None}, {"method": "best"}, {"radius": -1}):
        with pytest.raises(InvalidArgument):
            model(account=account, rng=None, **changes).fit(x, y)
    with pytest.raises(BudgetExceeded):
        model(account=account, rng=None).fit(x, y)
    with pytest.raises(NotCertified, match="seeded"):
        model(account=account, epsilon=0.1).fit(x, y)
    assert [one.kind for one in account.history] == ["open"]


def test_clones_share_the_account(tmp_path):
    account = opened(tmp_path)
    assert clone(model(account=account)).account is account


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": None},
        {"delta": None},
        {"bounds": [(0, 10)]},
        {"bounds": [(10, 0)] * 3},
        {"bounds": (0, math.inf)},
        {"bounds": (-1e200, 1e200)},
        {"bounds": (1e15, 1e15 + 2)},
        {"target_bounds": (0, 1e-200)},
        {"bounds": {"a": (0, 1)}},
        {"bounds": None},
        {"bounds": None, "mapping": "box"},
        {"target_bounds": None},
        {"target_bounds": [(0, 1)] * 2},
        {"mapping": "maximum"},
        {"scaling": "exact"},
        {"scaling": ColumnScaling(scale=0.0)},
        {"scaling": ColumnScaling(center=(1.0, 2.0))},
        {"method": "ols"},
        {"relation": NeighboringRelation.LOCAL},
        {"max_rows_per_unit": 0},
        {"constants": "wang"},
        {"constants": "wang", "method": "adassp", "scaling": "private"},
        {"squares_share": 1},
        {"intercept_scale": 100.0},
        {"radius": 0.0},
        {"radius": 1e-320},
        {"scaling": ColumnScaling(scale=1e-320)},
        {"scaling": ColumnScaling(scale=1e300)},
    ],
)
def test_wrong_declarations_are_refused(changes):
    x, y = table(20)
    with pytest.raises(InvalidArgument):
        model(**changes).fit(x, y)


def test_wrong_tables_are_refused_without_their_values():
    x, y = table(20)
    for bad_x, bad_y in (
        (x[:, 0], y),
        (x, y[:10]),
        (x, None),
        (x[:, :0], y),
        (x.astype(complex), y),
        (x, np.zeros((20, 2, 2))),
    ):
        with pytest.raises(InvalidArgument):
            model().fit(bad_x, bad_y)
    secret = x.astype(object)
    secret[0, 0] = "diagnosis"
    fitted = model().fit(secret, y)
    assert np.array_equal(fitted.moments_.gram, model().fit(x[1:], y[1:]).moments_.gram)
    with pytest.raises(OutOfDomain) as caught:
        fitted.predict(secret)
    assert "diagnosis" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(NotFittedError):
        model().predict(x)
    with pytest.raises(InvalidArgument, match="expecting 3"):
        model().fit(x, y).predict(x[:, :2])


@pytest.mark.parametrize("missing", [math.nan, None, pd.NA])
def test_rows_without_a_unit_are_left_out(missing):
    """Taken as one unit they would be many people, of whom one makes room for another."""
    x, y = table(4)
    for others in ((1, 2), ("a", "b")):
        units = [missing, *others, missing]
        for held in (units, np.array(units, dtype=object)):
            limited = model().fit(x, y, units=held)
            alone = model().fit(x[1:3], y[1:3])
            assert np.array_equal(limited.moments_.gram, alone.moments_.gram)
    for doubles in (
        np.array([1.0, 2.0, 3.0, 4.0]),
        pd.Series([1.0, 2.0, 3.0, 4.0], dtype="Float64"),
    ):
        with pytest.raises(InvalidArgument, match="not doubles"):
            model().fit(x, y, units=doubles)


def test_published_constants_are_refused_where_they_do_not_hold():
    x, y = table(100)
    fine = model(method="adassp", constants="wang").fit(x, y)
    assert fine.guarantee_.epsilon(1e-6) < 0.61
    with pytest.raises(NotCertified, match="nominal 40"):
        model(method="adassp", constants="wang", epsilon=40).fit(x, y)


# ── units ────────────────────────────────────────────────────────────────────


def test_only_the_first_rows_of_a_unit_count():
    owners = np.array(["b", "a", "b", "b", "a", "c"])
    assert first_rows(owners, 2).tolist() == [True, True, True, False, True, True]
    x, y = table(6)
    kept = first_rows(owners, 1)
    limited = model().fit(x, y, units=owners)
    alone = model().fit(x[kept], y[kept])
    assert np.array_equal(limited.moments_.gram, alone.moments_.gram)
    with pytest.raises(InvalidArgument, match="units"):
        model().fit(x, y, units=owners[:3])


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_a_unit_moves_the_sums_by_at_most_its_sensitivity(relation):
    """Exact sums with and without a unit of up to two rows, worst rows first."""
    lattice = RowLattice.of(features=2)
    fitted = model(bounds=(-1, 1), target_bounds=(-1, 1), radius=1 / math.sqrt(2)).fit(
        np.zeros((1, 2)), [0.0]
    )
    rows = fitted.moments_.map
    rng = np.random.default_rng(3)
    unit = [np.array([[1.0, 0.0]] * 2), rng.normal(size=(2, 2))]
    other = [np.array([[0.5, math.sqrt(0.75)]] * 2), rng.normal(size=(2, 2))]
    bound = 4 * lattice.joint(relation)
    for one, two in zip(unit, other, strict=True):
        have = sum_moments(rows, one, np.ones((2, 1)))
        swap = sum_moments(rows, two, -np.ones((2, 1)))
        moved = (
            have.total if relation is NeighboringRelation.ADD_REMOVE else have.total - swap.total
        )
        d = rows.lattice.columns
        square = (moved[:d, :d].astype(object) ** 2).sum() + (
            moved[:d, d:].astype(object) ** 2
        ).sum()
        assert square <= bound


# ── as published ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("policy", [1, 2])
def test_pipelines_as_published_say_that_they_are_not_private(policy):
    """K26: also when the statistics are withheld."""
    x, y = table(500)
    shown = as_published(x, y, epsilon=1, delta=1e-6, rng=seeded_rng(1), policy=policy)
    assert shown.statement.startswith("no DP guarantee")
    assert not shown.is_private
    assert not shown.scaling.is_private
    with pytest.raises(NotCertified, match="no DP guarantee"):
        as_published(x, y, epsilon=1, delta=1e-6, rng=system_rng())


def test_one_outlier_moves_everything_under_the_maximum_norm():
    """K19, M4: the claim is 1; with fixed constants it is kept, with the maximum it is not."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 4))
    y = x[:, 0]
    more = np.vstack((x, 10 * x[:1]))
    lattice = RowLattice.of(features=4, intercept=0.0)

    def gram(table, scaling):
        found = sum_moments(scaling.rows(lattice), table, np.zeros((len(table), 1)))
        return found.total[:4, :4] / lattice.steps**2

    fixed = published_scaling(x, y)
    moved = np.linalg.norm(gram(more, fixed) - gram(x, fixed))
    assert moved <= 1
    radius = np.linalg.norm((more - fixed.center) / fixed.scale, axis=1).max()
    data_dependent = dataclasses.replace(fixed, radius=float(radius))
    assert np.linalg.norm(gram(more, data_dependent) - gram(x, fixed)) > 20
    rows = published_scaling(x, y, mapping="row")
    assert np.linalg.norm(gram(more, rows) - gram(x, rows)) == pytest.approx(1.0, abs=1e-3)


def test_a_unit_does_not_make_one_of_two_others():
    large = [2**53, 2**53 + 1]
    assert first_rows(np.array(large), 1).tolist() == [True, True]
    assert first_rows([7.0, 7.0, 0.5], 1).tolist() == [True, False, True]
    assert first_rows([*large, 0.5], 1).tolist() == [True, True, True]
    for told_apart in (["a", "a\0"], [1, "1"], [b"a", "a"]):
        assert first_rows(told_apart, 1).tolist() == [True, True]


def test_columns_in_another_order_are_not_predicted_from():
    frame = pd.DataFrame(np.random.default_rng(1).uniform(-1, 1, (200, 2)), columns=["a", "b"])
    declared = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "target_bounds": (-1, 1)}
    for made in (
        PrivateLinearRegression(**declared, rng=seeded_rng(1)),
        AutoLinearRegression(**declared, expected_rows=200, rng=seeded_rng(1)),
    ):
        made.fit(frame, frame["a"])
        expected = made.predict(frame.to_numpy()).tolist()
        assert made.predict(frame).tolist() == expected
        for wrong in (frame[["b", "a"]], frame.rename(columns={"b": "c"})):
            with pytest.raises(InvalidArgument, match="feature names should match"):
                made.predict(wrong)


# ── scikit-learn ─────────────────────────────────────────────────────────────

EXEMPT = {
    "check_dtype_object": "a value that is no number is a misfit of its row, no error",
    "check_regressors_train": "fits lists: the number of columns must be declared for them",
    "check_estimators_nan_inf": "a missing value is a misfit of its row, no error",
    "check_supervised_y_no_nan": "a missing target is a misfit of its row, no error",
    "check_estimators_empty_data_messages": "no rows at all is a neighbor of one row",
    "check_regressor_data_not_an_array": "compares two fits: noise",
    "check_supervised_y_2d": "compares two fits: noise",
    "check_regressors_int": "compares two fits: noise",
    "check_fit_idempotent": "compares two fits: noise",
    "check_parameters_default_constructible": "the default relation is an enumeration",
}


@pytest.mark.slow
def test_it_is_an_estimator_as_far_as_privacy_allows():
    wide = model(epsilon=1000, bounds=(-1000, 1000), target_bounds=(-1000, 1000), rng=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(wide, expected_failed_checks=EXEMPT, on_fail=None)
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    passed = [one for one in results if one["status"] == "passed"]
    assert not failed
    assert len(passed) >= 37


def test_a_published_pipeline_has_two_maps():
    x, y = table(100)
    with pytest.raises(InvalidArgument, match="mapping must be 'max' or 'row'"):
        as_published(x, y, epsilon=1, delta=1e-6, rng=seeded_rng(1), mapping="nonsense")


@pytest.mark.parametrize(("epsilon", "least"), [(1, -0.2), (3, -0.05)])
def test_a_fit_of_noise_predicts_about_as_well_as_the_mean(epsilon, least):
    """Slopes that the noise had made predicted worse: medians were -0.28 and -0.14."""
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(500, 1))
        x = rng.normal(size=(500, 13))
        y = 20 + 5 * z[:, 0] + rng.normal(0, 4, 500)
        model = PrivateLinearRegression(
            epsilon=epsilon,
            delta=1e-6,
            bounds=(-4, 4),
            target_bounds=(0, 40),
            rng=seeded_rng(seed),
        ).fit(x[:400], y[:400])
        scores.append(model.score(x[400:], y[400:]))
        assert model.penalty_ > 0
    assert np.median(scores) > least


def test_slopes_that_need_no_penalty_are_not_shrunk():
    x = np.random.default_rng(1).uniform(0, 10, (20_000, 2))
    model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
    model.fit(x, x @ [1, -0.5])
    assert model.penalty_ == 0
    assert (model.solution_.theta == project_psd(model.moments_).theta).all()
