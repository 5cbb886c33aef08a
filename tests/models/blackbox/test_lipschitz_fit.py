"""Centers at the anchors: exact, with a proof of optimality, against an independent solver."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.lipschitz_fit import fit_centers, shortest_rises


def instance(rng, *, n=None, top=20):
    n = n or int(rng.integers(1, 5))
    many = int(rng.integers(1, top))
    cells = rng.integers(0, 3, (many, n))
    return cells, rng.normal(size=many) * 3, float(rng.random() * 2)


def hamming(cells):
    return (cells[:, None] != cells[None]).sum(axis=-1).astype(float)


def program(y, area, pairs, areas, *, tube=0.0):
    """Least total deviation of y from centers with bounded differences, by a library's simplex."""
    many = len(y)
    rows, bounds = [], []
    for a, b, rise in pairs:
        row = np.zeros(areas + many)
        row[a], row[b] = 1, -1
        rows.append(row)
        bounds.append(rise)
    for k in range(many):
        for sign in (1, -1):
            row = np.zeros(areas + many)
            row[area[k]], row[areas + k] = sign, -1
            rows.append(row)
            bounds.append(sign * y[k] + tube)
    cost = np.concatenate([np.zeros(areas), np.ones(many)])
    limits = [(None, None)] * areas + [(0, None)] * many
    return linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=limits).fun


def all_pairs(apart, slope):
    return [(a, b, slope * apart[a, b]) for a, b in itertools.permutations(range(len(apart)), 2)]


@pytest.mark.parametrize("tube", [0.0, 0.4])
def test_a32_the_assignment_is_the_linear_program(tube):
    rng = np.random.default_rng(1)
    for _ in range(40):
        cells, y, slope = instance(rng)
        apart = hamming(cells)
        fit = fit_centers(y, apart, slope, loss="tube", tube=tube)
        best = program(y, range(len(y)), all_pairs(apart, slope), len(y), tube=tube)
        assert fit.loss == pytest.approx(best, abs=1e-9)
        assert abs(fit.gap) < 1e-9
        assert (fit.centers[:, None] - fit.centers - slope * apart).max() < 1e-9


def test_a31_anchors_alone_are_as_good_as_all_areas():
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = int(rng.integers(1, 4))
        cells, y, slope = instance(rng, n=n, top=10)
        areas = np.array(list(itertools.product(range(3), repeat=n)))
        area = [int((areas == cell).all(axis=1).argmax()) for cell in cells]
        edges = [
            (a, b, slope)
            for a, b in itertools.permutations(range(len(areas)), 2)
            if (areas[a] != areas[b]).sum() == 1
        ]
        full = program(y, area, edges, len(areas))
        assert fit_centers(y, hamming(cells), slope).loss == pytest.approx(full, abs=1e-9)


def test_a30_whole_numbers_have_whole_answers():
    rng = np.random.default_rng(3)
    for _ in range(100):
        cells, y, _ = instance(rng)
        fit = fit_centers(np.rint(10 * y), hamming(cells), int(rng.integers(0, 9)))
        # The middle of two whole solutions: a half at most.
        assert (2 * fit.centers == np.rint(2 * fit.centers)).all()
        assert fit.gap == 0


def test_a30_the_largest_deviation_has_a_closed_form():
    rng = np.random.default_rng(4)
    for _ in range(40):
        cells, y, slope = instance(rng)
        apart = hamming(cells)
        fit = fit_centers(y, apart, slope, loss="largest")
        many = len(y)
        pairs = all_pairs(apart, slope)
        rows = np.zeros((len(pairs) + 2 * many, many + 1))
        bounds = np.concatenate([[rise for _, _, rise in pairs], y, -y])
        for at, (a, b, _) in enumerate(pairs):
            rows[at, a], rows[at, b] = 1, -1
        rows[len(pairs) :, -1] = -1
        rows[len(pairs) : len(pairs) + many, :many] = np.eye(many)
        rows[len(pairs) + many :, :many] = -np.eye(many)
        cost = np.eye(many + 1)[-1]
        best = linprog(cost, A_ub=rows, b_ub=bounds, bounds=[(None, None)] * (many + 1)).fun
        assert fit.loss == pytest.approx(best, abs=1e-9)
        assert abs(fit.gap) < 1e-9
        assert (fit.centers[:, None] - fit.centers - slope * apart).max() < 1e-9


def test_a30_least_squares_agree_with_another_solver_and_with_their_dual():
    rng = np.random.default_rng(5)
    for _ in range(12):
        cells, y, slope = instance(rng, top=9)
        apart = hamming(cells)
        fit = fit_centers(y, apart, slope, loss="squared")
        constraints = [
            {"type": "ineq", "fun": lambda z, a=a, b=b, rise=rise: rise - z[a] + z[b]}
            for a, b, rise in all_pairs(apart, slope)
        ]
        other = minimize(
            lambda z, y=y: ((z - y) ** 2).sum(),
            np.full(len(y), y.mean()),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        ).fun
        assert fit.loss == pytest.approx(other, rel=1e-6, abs=1e-8)
        assert abs(fit.gap) <= 1e-8 * (1 + fit.loss)
        assert (fit.centers[:, None] - fit.centers - slope * apart).max() < 1e-9


def test_a32_a_thousand_anchors():
    rng = np.random.default_rng(6)
    inputs = rng.random((1000, 20))
    y = 100 * np.median(inputs, axis=1) + rng.normal(size=1000)
    apart = np.zeros((1000, 1000))
    for column in inputs.T:
        apart += np.minimum(1, np.abs(column[:, None] - column) / 0.3)
    fit = fit_centers(y, apart, 2.0)
    assert fit.loss > 0
    assert abs(fit.gap) < 1e-9 * fit.loss
    assert (fit.centers[:, None] - fit.centers - 2.0 * apart).max() < 1e-9


def test_weights_repeat_samples():
    cells = np.array([[0, 0], [0, 1], [1, 1]])
    y, weights = np.array([9.0, 0.0, -4.0]), np.array([1, 5, 2])
    many = np.repeat(np.arange(3), weights)
    whole = fit_centers(y[many], hamming(cells[many]), 1.0)
    fit = fit_centers(y, hamming(cells), 1.0, weights=weights)
    assert fit.loss == whole.loss
    assert (np.repeat(fit.centers, weights) == whole.centers).all()


def test_distances_without_the_triangle_inequality_are_closed_first():
    apart = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
    y = np.array([10.0, 0.0, -10.0])
    fit = fit_centers(y, apart, 1.0)
    best = program(y, range(3), all_pairs(apart, 1.0), 3)
    assert fit.loss == pytest.approx(best, abs=1e-9)
    assert abs(fit.gap) < 1e-9
    assert shortest_rises(apart)[0, 2] == 2.0


def test_a48_the_deadlock_of_the_search_is_no_deadlock():
    cells = np.array([[0, 0], [0, 0], [0, 0], [1, 1]])
    assert fit_centers([10, 10, 10, -10], hamming(cells), 1).loss == 18.0  # the search stalls at 25


def test_what_is_no_problem_is_refused():
    for wrong in (
        lambda: fit_centers([], np.zeros((0, 0)), 1),
        lambda: fit_centers([float("nan")], [[0]], 1),
        lambda: fit_centers([1, 2], [[0]], 1),
        lambda: fit_centers([1, 2], [[0, -1], [-1, 0]], 1),
        lambda: fit_centers([1, 2], [[0, 1], [1, 2]], 1),
        lambda: fit_centers([1], [[0]], -1),
        lambda: fit_centers([1], [[0]], 1, loss="median"),
        lambda: fit_centers([1], [[0]], 1, tube=1),
        lambda: fit_centers([1], [[0]], 1, weights=[0.5]),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
