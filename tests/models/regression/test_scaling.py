"""Centers and scales found with a share of the budget: correct cost, sensible values, a guard."""

from functools import partial

import numpy as np
import pytest

from discreet.core.relation import NeighboringRelation
from discreet.models.regression import PrivateLinearRegression
from discreet.models.regression._row_mapping import (
    BINS,
    ROUNDS,
    ColumnScaling,
    _histograms,
    histogram_sensitivities,
    midpoints,
)
from discreet.noise.random_source import seeded_rng

CONCRETE_LIKE = (0.0, 2000.0)


def columns(rows=2000, seed=0):
    """Columns that are narrow, skewed, mostly zero, two-valued, or spread over all their bounds."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(280, 60, rows),
            rng.gamma(2, 50, rows),
            np.where(rng.random(rows) < 0.5, 0.0, rng.uniform(20, 350, rows)),
            rng.integers(0, 2, rows) * 2000.0,
            rng.uniform(0, 2000, rows),
        ]
    )
    y = 30 + 0.05 * (x[:, 0] - 280) + 0.03 * x[:, 1] + rng.normal(0, 3, rows)
    return x, y


def fitted(epsilon, seed, rows=2000, **changes):
    x, y = columns(rows)
    chosen = {
        "epsilon": epsilon,
        "delta": 1e-6,
        "bounds": CONCRETE_LIKE,
        "target_bounds": (0, 1000),
        "scaling": "private",
        "mapping": "ball",
        "rng": seeded_rng(seed),
        **changes,
    }
    return PrivateLinearRegression(**chosen).fit(x, y)


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_no_row_moves_the_histograms_further_than_stated(relation):
    """Brute force over rows at, between and beyond the edges of the bins."""
    moves = histogram_sensitivities(2, 1, relation=relation)
    low, high = np.zeros(3), np.array([1.0, 2.0, 3.0])
    count = partial(_histograms, low - 1, high + 1, low, high)
    values = [-np.inf, -1e300, -1e-300, 0.0, 1e-9, 0.5, 1.0, 3.0, 1e300, np.inf]
    rows = [(np.array([[a, b]]), np.array([[a + 0.1]])) for a in values for b in values]
    with np.errstate(invalid="ignore", over="ignore"):
        counts = np.array([count(x, y) for x, y in rows])
    size = BINS + 2
    features, targets = counts[:, : 2 * size], counts[:, 2 * size :]
    for part, (move, _) in zip((features, targets), moves[:2], strict=True):
        if relation is NeighboringRelation.ADD_REMOVE:
            worst = int(np.square(part).sum(axis=1).max())
        else:
            worst = max(int(np.square(part - other).sum(axis=1).max()) for other in part)
        assert worst == move.l2_squared
    assert sum(share for _, share in moves) == 1
    assert len(moves) == 2 * ROUNDS


def test_several_rows_a_unit_move_them_as_a_group():
    (one, _), *_ = histogram_sensitivities(4, 1, relation=NeighboringRelation.ADD_REMOVE)
    (three, _), *_ = histogram_sensitivities(
        4, 1, relation=NeighboringRelation.ADD_REMOVE, max_rows_per_unit=3
    )
    assert three.l2_squared == 9 * one.l2_squared == 36


def test_every_part_is_paid_for():
    """K26, K34: a fifth of mu^2 for the scaling, and the whole stays within the budget."""
    model = fitted(1.0, seed=1)
    names = [one.name for one in model.released_]
    assert names[: 2 * ROUNDS : 2] == [f"histograms of features, round {i + 1}" for i in range(3)]
    assert names[1 : 2 * ROUNDS : 2] == [f"histograms of targets, round {i + 1}" for i in range(3)]
    squares = [one.mu**2 for one in model.released_]
    assert sum(squares[: 2 * ROUNDS]) == pytest.approx(0.2 * sum(squares), rel=1e-3)
    assert 0.99e-6 < model.guarantee_.delta(1.0) <= 1e-6


def test_scales_are_found_within_a_small_factor():
    x, y = columns()
    for seed in range(5):
        rows = fitted(3.0, seed).moments_.map
        ratio = rows.scale / x.std(axis=0)
        assert (ratio[[0, 1, 3, 4]] > 0.4).all()
        assert (ratio < 2.5).all()
        off = np.abs(rows.center - x.mean(axis=0)) / x.std(axis=0)
        assert off.max() < 1
        assert abs(rows.target_center[0] - y.mean()) < 1.5 * y.std()
        assert 1.5 < rows.target_half[0] / y.std() < 8


def test_the_noise_hides_few_rows_and_the_bounds_are_kept():
    """K34: the guard; with hardly any budget nothing is believed."""
    for seed in range(5):
        rows = fitted(0.01, seed, rows=50).moments_.map
        assert rows.target_half[0] == 500
        assert rows.target_center[0] == 500


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_fit_is_much_worse_than_the_mean(epsilon):
    """The bar of K34: never above 1.5 times the error of the trivial prediction."""
    x, y = columns()
    errors = [np.mean((fitted(epsilon, seed).predict(x) - y) ** 2) / y.var() for seed in range(6)]
    assert max(errors) < 1.5
    if epsilon >= 1:
        assert np.mean(errors) < 0.8


def test_no_statistic_of_the_rows_is_used_without_noise():
    """An absurd row moves no constant: with the same noise they differ by nothing it could show."""
    x, y = columns()
    arguments = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "bounds": CONCRETE_LIKE,
        "target_bounds": (0, 1000),
        "scaling": "private",
    }
    before = PrivateLinearRegression(rng=seeded_rng(3), **arguments).fit(x, y).moments_.map
    x[0], y[0] = 1e15, -1e15
    after = PrivateLinearRegression(rng=seeded_rng(3), **arguments).fit(x, y).moments_.map
    assert after.scale == pytest.approx(before.scale, rel=0.05)
    assert after.center == pytest.approx(before.center, rel=0.05)


def test_midpoints():
    found = midpoints([(0, 10), (-2, 2)], columns=2)
    assert found == ColumnScaling(center=(5.0, 0.0), scale=(5.0, 2.0))
