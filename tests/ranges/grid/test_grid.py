"""Boxes on grids against the matrix that they stand for: errors, estimates, sensitivities."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.ranges import workload as w
from discreet.ranges.domain import dates, integers, ordered
from discreet.ranges.grid import domain as g
from discreet.ranges.grid._optimize import (
    best_axes,
    extended,
    flat_grid,
    lattice,
    optimal_boxes,
    optimal_quadtree,
    product_boxes,
    quadtree,
)
from discreet.ranges.grid.box_strategy import BoxStrategy, read_boxes
from discreet.ranges.grid.domain import GridDomain, listed_rectangles
from discreet.ranges.strategies.base import Contribution, MeasurementCost, rounded_shares
from discreet.ranges.strategies.haar import optimal_haar

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def boxes(shape, *sides):
    return BoxStrategy(
        shape=shape, sides=sides, shares=rounded_shares(np.arange(1.0, len(sides) + 1))
    )


STRUCTURES = {
    "flat": boxes((5, 3), (1, 1)),
    "quadtree": quadtree((8, 8)),
    "quadtree of unequal axes": quadtree((8, 3)),
    "product": boxes((6, 6), *product((1, 2, 6), (1, 3))),
    "padded": boxes((7, 5), (1, 1), (2, 1), (1, 3), (4, 3)),
    "three axes": boxes((3, 4, 2), (1, 1, 1), (2, 2, 2), (1, 4, 1)),
    "one axis": boxes((7,), (1,), (3,)),
}


@pytest.fixture(params=STRUCTURES, name="strategy")
def fixture_strategy(request):
    return STRUCTURES[request.param]


@pytest.fixture(name="noise")
def fixture_noise(strategy):
    return np.random.default_rng(3).uniform(0.5, 3, size=len(strategy.shares))


def dense(strategy, noise):
    """The measured matrix over the padded grid, and the covariance of least squares."""
    whole = BoxStrategy(shape=strategy.padded, sides=strategy.sides, shares=strategy.shares)
    cells = np.eye(math.prod(whole.shape), dtype=np.int64)
    columns = [whole.measure(cell.reshape(whole.shape)) for cell in cells]
    groups = [np.stack(group, axis=1).astype(float) for group in zip(*columns, strict=True)]
    rate = np.concatenate([np.full(len(g), 1 / v) for g, v in zip(groups, noise, strict=True)])
    a = np.concatenate(groups)
    return a, rate, np.linalg.inv((a.T * rate) @ a)


def rows_of(ends, strategy):
    found = np.zeros((len(ends[0][0]), *strategy.padded))
    for i, row in enumerate(found):
        row[tuple(slice(a[i], b[i] + 1) for a, b in ends)] = 1
    return found.reshape(len(found), -1)


def test_variances_are_those_of_least_squares(strategy, noise):
    _, _, covariance = dense(strategy, noise)
    for workload in (g.all_rectangles(), g.points(), g.marginals(), g.product(w.prefixes())):
        ends, weights = listed_rectangles(workload, strategy.shape)
        rows = rows_of(ends, strategy)
        direct = ((rows @ covariance) * rows).sum(axis=1)
        assert strategy.variance(ends, noise) == pytest.approx(direct, rel=1e-10)
        mean = strategy.mean_variance(workload, noise)
        assert mean == pytest.approx(weights @ direct, rel=1e-10)
    number = len(strategy.shape)
    pairs = [[(0, 0)] * number, [(0, size - 1) for size in strategy.shape]]
    listed = g.rectangles(pairs, weights=[1, 3])
    direct = strategy.variance(listed.ends(), noise)
    assert strategy.mean_variance(listed, noise) == pytest.approx(direct @ [0.25, 0.75])


def test_estimates_are_least_squares(strategy, noise):
    a, rate, covariance = dense(strategy, noise)
    source = np.random.default_rng(4)
    noisy = [source.integers(-(10**6), 10**6, size=math.prod(s)) for s in strategy.shapes()]
    direct = covariance @ (a.T @ (rate * np.concatenate(noisy)))
    inside = tuple(map(slice, strategy.shape))
    expected = direct.reshape(strategy.padded)[inside]
    assert strategy.estimate(noisy, noise) == pytest.approx(expected, abs=1e-4)


def test_without_noise_the_counts_come_back(strategy, noise):
    counts = np.random.default_rng(5).integers(0, 1000, size=strategy.shape)
    assert strategy.estimate(strategy.measure(counts), noise) == pytest.approx(counts, abs=1e-6)


def test_weights_of_the_noise(strategy, noise):
    ends, _ = listed_rectangles(g.all_rectangles(), strategy.shape)
    variance = strategy.variance(ends, noise)
    bounds = strategy.largest_weights(noise)
    for i in range(0, len(variance), 5):
        terms = strategy.terms([(int(a[i]), int(b[i])) for a, b in ends], noise)
        parts = zip(noise, terms, strict=True)
        each = [v * float(np.square(weights) @ counts) for v, (weights, counts) in parts]
        assert sum(each) == pytest.approx(variance[i], rel=1e-9)
        for (weights, _), bound in zip(terms, bounds, strict=True):
            assert weights.max() <= bound * (1 + 1e-9)
        sizes = [math.prod(shape) for shape in strategy.shapes()]
        assert [counts.sum() for _, counts in terms] == sizes


def units(cells, contribution):
    """All a unit may have: at most so many rows, at most so many in a cell."""
    for number in range(contribution.rows + 1):
        for rows in combinations_with_replacement(range(cells), number):
            found = np.bincount(rows, minlength=cells) if rows else np.zeros(cells, dtype=np.int64)
            if contribution.per_cell is None or found.max() <= contribution.per_cell:
                yield found


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(
    "contribution", [Contribution(), Contribution(rows=2), Contribution(rows=2, per_cell=1)]
)
@pytest.mark.parametrize(
    "strategy",
    [
        boxes((3, 3), (1, 1), (2, 2), (4, 4)),
        boxes((4, 2), *product((1, 2), (1, 2))),
        boxes((2, 3), (1, 1), (2, 1), (1, 3)),
        boxes((2, 2, 2), (1, 1, 1), (2, 1, 2)),
    ],
    ids=str,
)
def test_sensitivity_over_all_neighbors(strategy, contribution, relation):
    base = np.full(strategy.shape, 5)
    before = strategy.measure(base)
    reached = [(0, 0)] * len(before)
    each = [
        [after - old for after, old in zip(strategy.measure(base + u), before, strict=True)]
        for unit in units(base.size, contribution)
        for u in [unit.reshape(base.shape)]
    ]
    for x, y in product(each, each if relation is REPLACE else each[:1]):
        moved = [a - b for a, b in zip(x, y, strict=True)]
        reached = [
            (max(l1, int(np.abs(m).sum())), max(l2, int(np.square(m).sum())))
            for (l1, l2), m in zip(reached, moved, strict=True)
        ]
    claimed = strategy.moves(contribution, relation)
    for (l1, l2), move in zip(reached, claimed, strict=True):
        assert l1 <= move.l1
        assert l2 <= move.l2_squared
    # The claim for single cells is not just safe but reached.
    assert reached[0] == (claimed[0].l1, claimed[0].l2_squared)


def mean_of(strategy, price, workload):
    noise = price.variances(strategy.shares, strategy.moves(Contribution(), ADD))
    return strategy.mean_variance(workload, noise)


PUBLISHED = {  # F40: flat, quadtree, quadtree weighted, product; Laplace epsilon 1, Gaussian rho 1
    32: ((257, 759, 198, 257), (64.2, 37.9, 21.1, 12.9)),
    64: ((968, 2254, 530, 669), (242, 93.9, 48.7, 24.2)),
    128: ((3756, 6276, 1400, 1451), (939, 224, 109, 42.4)),
    256: ((14792, 16637, 3295, 3116), (3698, 520, 236, 69.7)),
}


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("size", PUBLISHED)
def test_published_errors_of_all_rectangles(size, family):
    # So little budget that discrete noise has the variance of continuous noise.
    price = MeasurementCost(family=family, strength=1e-3 if family == "laplace" else 2e-6)
    shape, workload = (size, size), g.all_rectangles()
    given = {"workload": workload, "price": price, "relation": ADD, "contribution": Contribution()}
    found = lattice(shape, **given)
    flat, tree, combined = (
        flat_grid(shape),
        optimal_quadtree(found),
        product_boxes(best_axes(shape, **given)),
    )
    best = optimal_boxes(found, [flat, tree, combined])
    means = [
        mean_of(one, price, workload) * 1e-6
        for one in (flat, quadtree(shape), tree, combined, best)
    ]
    published = PUBLISHED[size][family == "gaussian"]
    assert means[0] == pytest.approx(published[0], rel=0.01)
    assert means[1] == pytest.approx(published[1], rel=0.01)
    # At 128 by 128 one more level than the published search tried is better by 1.6 percent.
    assert means[2] == pytest.approx(published[2], rel=0.02)
    assert means[3] == pytest.approx(published[3], rel=0.01)
    assert means[4] <= min(means[:4]) * (1 + 1e-4)


def test_gaussian_boxes_are_as_good_as_the_product_of_the_best_wavelets():
    price = MeasurementCost(family="gaussian", strength=2e-6)
    workload = g.all_rectangles()
    given = {"price": price, "relation": ADD, "contribution": Contribution()}
    wave = optimal_haar(64, workload=w.all_ranges(), **given)
    noise = price.variances(wave.shares, wave.moves(Contribution(), ADD))
    unit = wave.mean_variance(w.all_ranges(), noise) * price.strength
    best = optimal_boxes(lattice((64, 64), workload=workload, **given), [])
    assert mean_of(best, price, workload) * price.strength == pytest.approx(unit**2, rel=2e-3)


def test_chains_of_sides_fill_up_an_axis_closely():
    assert extended(365, 128) == (1, 2, 4, 8, 16, 32, 64, 128, 384)
    assert extended(365, 1) == (1, 5, 365)
    assert extended(50, 2) == (1, 2, 10, 50)
    assert extended(1, 1) == (1,)


def test_counts_that_would_overflow_are_bounded():
    strategy = boxes((4, 4), (1, 1), (4, 4))
    huge = np.full((4, 4), np.iinfo(np.int64).max)
    cells, whole = strategy.measure(huge)
    assert 0 < whole[0] == cells.sum() <= 1 << 61


def test_boxes_refuse_what_has_no_closed_form():
    share = (Fraction(1, 2),) * 2
    with pytest.raises(InvalidArgument, match="divide"):
        BoxStrategy(shape=(6, 6), sides=((1, 1), (2, 2), (3, 2)), shares=(Fraction(1, 3),) * 3)
    with pytest.raises(InvalidArgument, match="single cells"):
        BoxStrategy(shape=(6, 6), sides=((2, 2), (1, 1)), shares=share)
    with pytest.raises(InvalidArgument, match="differ"):
        BoxStrategy(shape=(6, 6), sides=((1, 1), (1, 1)), shares=share)
    with pytest.raises(InvalidArgument, match="one side for each axis"):
        BoxStrategy(shape=(6, 6), sides=((1, 1), (2,)), shares=share)


def test_boxes_come_back_from_their_content(strategy):
    assert read_boxes(strategy.content()) == strategy


def test_grids_say_what_they_cannot_read():
    grid = GridDomain(domains=(dates("2024-01-01", "2024-01-31"), ordered(["north", "south"])))
    assert grid.shape == (31, 2)
    assert grid.labels[1] == ("north", "south")
    (a, b), (c, d) = grid.ends([("2024-01-02", None), None])
    assert [int(x) for x in (a, b, c, d)] == [1, 30, 0, 1]
    with pytest.raises(InvalidArgument, match="each of 2 axes"):
        grid.ends([None])
    with pytest.raises(InvalidArgument, match="pair"):
        grid.ends(["2024-01-02", None])
    with pytest.raises(InvalidArgument, match="as many ends"):
        grid.ends([(np.array(["2024-01-02"] * 3), None), (np.array(["north"] * 2), None)])
    with pytest.raises(InvalidArgument, match="at most"):
        GridDomain(domains=(integers(0, 10**4), integers(0, 10**4)))


@pytest.mark.parametrize(
    "listed", [[[(0, 1)], [(0, 1), (0, 1)]], [[(1, 0)]], [[(-1, 0)]], [[(0.5, 1)]], []]
)
def test_listed_rectangles_are_checked(listed):
    with pytest.raises(InvalidArgument):
        g.rectangles(listed)


def test_workloads_must_fit_the_grid():
    strategy = boxes((5, 3), (1, 1))
    for workload in (
        g.rectangles([[(0, 5), (0, 1)]]),
        g.rectangles([[(0, 1)]]),
        g.product(w.points(), w.points(), w.points()),
    ):
        with pytest.raises(InvalidArgument):
            strategy.mean_variance(workload, np.ones(1))
