"""Methods that choose, descend and boost: sensitivities by brute force, guarantees, behavior."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models.regression._residual_rounds import (
    EncodedRows,
    RowCoding,
    encode_rows,
    gradient_square,
    products,
    steps_of,
)
from discreet.models.regression._row_mapping import (
    CELLS,
    RADII,
    cell_counts,
    median_sensitivity,
    radii,
    radius_counts,
    radius_sensitivity,
)
from discreet.models.regression._row_sources import ArrayRows, empty
from discreet.models.regression._task import RegressionTask, spend
from discreet.models.regression.auto import METHODS, AutoLinearRegression, choose_method
from discreet.models.regression.boosted_adassp import MATRIX, BoostedAdaSSP
from discreet.models.regression.clipped_gradient import (
    MEANS,
    PRODUCTS,
    ClippedGradient,
    MedianBaseline,
    box_map,
    norm_counts,
)
from discreet.models.regression.expected_error import simulate, synthetic_rows
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def task(features=2, *, relation=ADD, rows=1000.0, mu=0.2, max_rows_per_unit=1):
    return RegressionTask(
        lower=np.full(features, -1.0),
        upper=np.full(features, 3.0),
        target=(0.0, 10.0),
        rows=rows,
        mu=mu,
        relation=relation,
        max_rows_per_unit=max_rows_per_unit,
    )


def rows(many, features, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 5, (many, features)), rng.uniform(-5, 15, many)


def estimator(**changes):
    given = {
        "epsilon": 1,
        "delta": 1e-6,
        "bounds": (-1, 3),
        "target_bounds": (0, 10),
        "expected_rows": 1000,
        "rng": seeded_rng(1),
    }
    return AutoLinearRegression(**(given | changes))


def scores_of_median(counts):
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    return -np.maximum(0, np.maximum(2 * below - many, many - 2 * upto))


def scores_of_radius(counts):
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    return -np.maximum(0, np.maximum(5 * below - 4 * many, 4 * many - 5 * upto))


@pytest.mark.parametrize(
    ("scores", "move"),
    [(scores_of_median, median_sensitivity), (scores_of_radius, radius_sensitivity)],
)
def test_no_row_moves_a_score_further_than_is_claimed(scores, move):
    furthest = {ADD: 0, REPLACE: 0}
    for data in itertools.product(range(3), repeat=4):
        counts = np.array(data)
        for cell in range(4):
            more = counts + np.eye(4, dtype=int)[cell]
            change = np.abs(scores(more) - scores(counts)).max()
            furthest[ADD] = max(furthest[ADD], change)
            for other in range(4):
                swapped = counts + np.eye(4, dtype=int)[other]
                change = np.abs(scores(more) - scores(swapped)).max()
                furthest[REPLACE] = max(furthest[REPLACE], change)
    for relation, found in furthest.items():
        assert found == move(task(relation=relation)).l1  # attained, so no smaller claim holds


def test_a_row_is_in_one_cell_and_within_one_radius():
    x, _ = rows(200, 3, 0)
    lower, upper = np.full(3, -1.0), np.full(3, 3.0)
    assert (cell_counts(x, lower, upper).sum(axis=1) == len(x)).all()
    one = cell_counts(x[:1], lower, upper)
    assert one.shape == (3, CELLS)
    assert (np.count_nonzero(one, axis=1) == 1).all()
    tops = np.full(3, 8.0)
    near = radius_counts(np.abs(x), tops)
    assert near.shape == (3, RADII)
    assert (near.sum(axis=1) == len(x)).all()
    for column in range(3):
        edges = radii(8.0)[::-1]
        inside = [int((np.abs(x[:, column]) <= edge).sum()) for edge in edges]
        assert np.cumsum(near[column]).tolist() == inside


def test_counts_of_norms_do_not_depend_on_other_rows():
    x, y = rows(257, 3, 1)
    given = (np.full(3, -1.0), np.full(3, 3.0), np.zeros(3), np.full(3, 0.7), np.array([9.0]))
    whole = norm_counts(*given, x, y)
    parts = sum(norm_counts(*given, x[i : i + 1], y[i : i + 1]) for i in range(len(x)))
    assert whole.tolist() == parts.tolist()


def test_products_are_exact_sums_over_rows_and_bounded():
    known = task(3)
    mapped = box_map(known, center=5.0, half=5.0)
    grid, clip = mapped.lattice, 3000
    x, y = rows(300, 3, 2)
    y = y[:, None]
    x[0], y[0] = 1e9, 1e9
    x[1], y[1] = 3.0, -1e9  # a corner of the box, the largest residual
    theta = steps_of(np.array([3.0, -2.0, 5.0, 0.25]), grid)
    kept, anew = encode_rows(ArrayRows(x, y), mapped), RowCoding(ArrayRows(x, y), mapped)
    assert isinstance(kept, EncodedRows)
    whole, again = (
        rows.add_up(partial(products, theta, clip), start=empty(4)) for rows in (kept, anew)
    )
    assert whole.tolist() == again.tolist()
    each = [products(theta, clip, mapped.codes(x[i : i + 1], y[i : i + 1])) for i in range(len(x))]
    assert whole.tolist() == np.sum(each, axis=0).tolist()
    lengths = [int(sum(int(v) ** 2 for v in one)) for one in each]
    assert max(lengths) <= gradient_square(grid, clip)
    assert max(lengths) >= 0.99 * gradient_square(grid, clip)


def test_coefficients_on_the_grid_keep_predictions_exact():
    known = task(40)
    grid = box_map(known, center=5.0, half=5.0).lattice
    wild = steps_of(np.full(41, 1e300), grid)
    assert np.abs(wild).max() * math.sqrt(grid.row_squared) * grid.columns < 2**53
    assert (wild == np.rint(wild)).all()


@pytest.mark.parametrize("method", [MedianBaseline(), ClippedGradient(), BoostedAdaSSP()])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_all_releases_together_cost_the_budget(method, relation):
    noises = method.plan(task(relation=relation), budget(epsilon=1, delta=1e-6))
    worth = noises.guarantee
    assert worth.relation is relation
    assert worth.delta(1.0) <= 1e-6 * (1 + 1e-9)
    assert worth.epsilon(1e-6) > 0.9  # and is used
    assert len(noises.released) == len(noises.parts)


@pytest.mark.parametrize("method", [MedianBaseline(), ClippedGradient(), BoostedAdaSSP()])
def test_a_concentrated_budget_is_spent_exactly(method):
    noises = method.plan(task(), budget(rho=Fraction(1, 50)))
    total = 0.0
    for part, mechanism in zip(noises.parts, noises.mechanisms, strict=True):
        if part.sensitivity.choice:
            total += float(mechanism.epsilon) ** 2 / 8
        else:
            total += part.sensitivity.l2_squared / (2 * mechanism.std**2)
    assert total == pytest.approx(0.02, rel=1e-3)


def test_moves_grow_with_the_rows_of_a_unit_and_with_replacement():
    one = {part.name: part.sensitivity for part in BoostedAdaSSP().parts(task())}
    three = {
        part.name: part.sensitivity for part in BoostedAdaSSP().parts(task(max_rows_per_unit=3))
    }
    swapped = {
        part.name: part.sensitivity for part in BoostedAdaSSP().parts(task(relation=REPLACE))
    }
    for name, move in one.items():
        if move.choice:
            assert three[name].l1 == 3 * move.l1
        else:
            assert three[name].l2_squared == 9 * move.l2_squared
    assert swapped[MATRIX].l2_squared == 2 * one[MATRIX].l2_squared
    assert swapped[PRODUCTS].l2_squared == 4 * one[PRODUCTS].l2_squared


def test_the_matrix_moves_by_no_more_than_twice_when_a_row_is_replaced():
    rng = np.random.default_rng(3)
    u, w = rng.normal(size=(2, 20_000, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    w /= np.linalg.norm(w, axis=1)[:, None]
    change = 2 - 2 * np.square((u * w).sum(axis=1))  # |uu' - ww'|^2 for unit rows
    assert change.max() <= 2
    assert change.max() > 1.99


def test_more_rows_make_boosting_approach_least_squares():
    errors = [
        simulate(BoostedAdaSSP(), signal=s, features=4, width=10.0, repeats=2) for s in (30, 1000)
    ]
    assert errors[1] < errors[0]
    assert errors[1] < 1.15


def test_the_level_is_the_midpoint_until_rows_object():
    y = np.full(100, 5.05)
    still = estimator(method="level", epsilon=0.05).fit(np.zeros((100, 1)), y)
    assert still.intercept_ == 5.0
    moved = estimator(method="level", epsilon=3).fit(np.zeros((1000, 1)), np.full(1000, 8.0))
    assert moved.intercept_ == pytest.approx(8.0, abs=0.05)
    assert (moved.coef_ == 0).all()


@pytest.mark.parametrize("method", ["level", "gradient", "boosted"])
def test_fitting_is_a_function_of_rows_as_a_set_and_of_bits(method):
    x, y = rows(120, 2, 4)
    one = estimator(method=method, rng=seeded_rng(9)).fit(x, y)
    other = estimator(method=method, rng=seeded_rng(9)).fit(x[::-1], y[::-1])
    assert np.array_equal(one.coef_, other.coef_)
    assert one.intercept_ == other.intercept_


@pytest.mark.parametrize("method", ["level", "gradient", "boosted"])
def test_coefficients_in_original_units_predict_the_same(method):
    rng = np.random.default_rng(5)
    x = rng.normal(1.0, 0.1, (3000, 2))
    y = np.clip(x @ [1.0, 2.0] + 1, 0, 10)
    model = estimator(method=method, expected_rows=3000).fit(x, y)
    inside = np.tile(model.fit_.map.center, (2, 1)) + 1e-3
    by_hand = inside @ model.coef_ + model.intercept_
    assert model.predict(inside) == pytest.approx(np.clip(by_hand, 0, 10), abs=1e-9)


def test_a_fit_reserves_before_it_reads_and_a_failure_stays_spent(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("survey", limit=discreet.approx_dp(2, 1e-5))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ArrayRows, "used", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            estimator(account=account, rng=None).fit(np.zeros((10, 1)), np.zeros(10))
    assert account.spent.epsilon(1e-6) > 0.9
    with pytest.raises(InvalidArgument, match="rows must be declared"):
        estimator(account=account, rng=None, expected_rows=None).fit(
            np.zeros((10, 1)), np.zeros(10)
        )
    kinds = [entry.kind for entry in account.history]
    assert kinds.count("reserve") == 1  # what is known before reading costs nothing


def test_what_is_wrong_is_said_before_anything_is_read():
    x, y = rows(20, 2, 6)
    for changes, words in (
        ({"bounds": None}, "declared"),
        ({"expected_rows": 0}, "positive"),
        ({"bounds": (-1e308, 1e308)}, "at most 1e300"),
        ({"bounds": (-1e200, 1e200)}, "apart"),
        ({"method": "magic"}, "magic"),
        ({"method": "theil_sen"}, "one feature"),
        ({"delta": None}, "delta"),
        ({"relation": NeighboringRelation.LOCAL}, "relation"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            estimator(**changes).fit(x, y)
    with pytest.raises(InvalidArgument, match="one target"):
        estimator().fit(x, np.zeros((20, 2)))
    with pytest.raises(InvalidArgument, match="expecting 2 features"):
        estimator().fit(x, y).predict(x[:, :1])


@pytest.mark.parametrize("method", ["level", "gradient", "boosted"])
@pytest.mark.parametrize("many", [0, 1, 3])
def test_hardly_any_rows_and_constant_columns_still_give_numbers(method, many):
    x, y = np.full((many, 4), 0.5), np.full(many, 3.0)
    model = estimator(method=method, bounds=(0, 1e-9), expected_rows=5).fit(x, y)
    seen = model.predict(np.array([[0.0] * 4, [1e300] * 4]))
    assert np.isfinite(seen).all()
    assert ((seen >= 0) & (seen <= 10)).all()


def test_choosing_looks_at_public_facts_only_and_ranks():
    little = choose_method(expected_rows=300, features=8, epsilon=0.1, delta=1e-6)
    much = choose_method(expected_rows=1_000_000, features=8, epsilon=1, delta=1e-6)
    assert little.method == "level"
    assert much.method == "boosted"
    assert list(much.errors.values()) == sorted(much.errors.values())
    assert "theil_sen" not in much.errors
    assert (
        "theil_sen" in choose_method(expected_rows=1000, features=1, epsilon=1, delta=1e-6).errors
    )
    assert "* boosted" in str(much)
    assert (
        choose_method(expected_rows=500, bounds=[(0, 1)] * 3, rho=0.01).errors.keys()
        <= METHODS.keys()
    )
    with pytest.raises(InvalidArgument, match="features"):
        choose_method(expected_rows=500, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidArgument, match="rows"):
        choose_method(expected_rows=-1, features=2, epsilon=1, delta=1e-6)


def test_forecasts_fall_with_more_rows():
    for method in ("gradient", "boosted"):
        found = [
            choose_method(expected_rows=n, features=8, epsilon=1, delta=1e-6).errors[method]
            for n in (100, 1000, 10_000, 100_000)
        ]
        assert found == sorted(found, reverse=True)


def test_made_up_rows_are_as_described():
    x, y, told = synthetic_rows(20_000, 3, 12.0, np.random.default_rng(0))
    assert np.std(y) == pytest.approx(1, abs=0.03)
    assert len(np.unique(x[:, 2])) == 2
    design = np.column_stack((np.ones(len(x)), x))
    theta, *_ = np.linalg.lstsq(design, y, rcond=None)
    assert np.var(y - design @ theta) == pytest.approx(0.3, abs=0.03)
    assert ((x >= told.lower) & (x <= told.upper)).mean() > 0.99


def test_spending_is_planned_once():
    parts = tuple(ClippedGradient(rounds=3).parts(task()))
    amount = budget(epsilon=1, delta=1e-6)
    assert spend(parts, amount, relation=ADD) is spend(parts, amount, relation=ADD)
    assert [part.name for part in parts].count(PRODUCTS) == 3
    assert MEANS in {part.name for part in parts}
