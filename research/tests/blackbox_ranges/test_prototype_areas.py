"""Partitions, ranks, tables: A4-A6, A16, A17, A20-A22."""

import itertools
import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox.surrogates import leaves_of
from discreet_studies.blackbox_ranges import area_tables as areas
from discreet_studies.blackbox_ranges import example_functions as statistics
from discreet_studies.blackbox_ranges.input_partition import (
    InputPartition,
    chessboard,
    of_cuts,
    of_tree,
)


def appendix():
    x = statistics.uniform(many=10, positions=3, attributes=2, seed=10)
    y = statistics.wave(x)
    tree = DecisionTreeRegressor(random_state=0).fit(x.reshape(10, 6), y)
    return x, y, tree, of_tree(tree, positions=3, lower=0, upper=1)


def brute(shape, adjacency="replace"):
    """Edges of the neighbor graph by their definition."""
    every = list(np.ndindex(shape))
    for a, b in itertools.product(every, every):
        changed = [abs(i - j) for i, j in zip(a, b, strict=True) if i != j]
        if len(changed) == 1 and (adjacency == "replace" or changed[0] == 1):
            yield a, b


def test_a4_the_chessboard_has_a_cell_for_every_input():
    board = chessboard(positions=4, parts=3, lower=0, upper=633)
    assert board.areas == 81
    assert board.shape == (3, 3, 3, 3)
    odd = [[0, 633, -1, 700], [math.nan, math.inf, -math.inf, 211], [210.9, 422, 421.9, 1e300]]
    assert board.cells(np.array(odd)).tolist() == [[0, 2, 0, 2], [1, 2, 0, 1], [0, 2, 1, 2]]
    assert board.numbers(np.array(odd)[..., None]).tolist() == [20, 46, 23]


def test_a5_the_appendix_has_128_areas_and_its_tree_is_constant_on_each():
    _x, _, tree, grid = appendix()
    assert tree.get_n_leaves() == 10
    assert [[len(one) for one in row] for row in grid.cuts] == [[3, 1], [1, 0], [3, 1]]
    assert grid.shape == (8, 2, 8)
    drawn = np.random.default_rng(1).uniform(size=(20_000, 3, 2))
    found, said = grid.numbers(drawn), tree.predict(drawn.reshape(-1, 6))
    for area in np.unique(found):
        assert np.ptp(said[found == area]) == 0
    assert len(np.unique(found)) > 120


def test_a5_a_value_on_a_cut_lies_with_the_left_child_and_cuts_are_not_repeated():
    x, _y, tree, grid = appendix()
    edge = np.tile(x[0], (9, 1, 1))
    cuts = [(i, j, t) for i, row in enumerate(grid.cuts) for j, one in enumerate(row) for t in one]
    above = edge.copy()
    for k, (i, j, t) in enumerate(cuts):
        edge[k, i, j] = np.float32(t)
        above[k, i, j] = np.nextafter(np.float32(t), np.float32(2))
        if np.float32(t) > t:
            edge[k, i, j] = np.nextafter(np.float32(t), np.float32(0))
    for both in (edge, above):
        said = tree.predict(both.reshape(-1, 6))
        for k, area in enumerate(grid.numbers(both)):
            inside = np.flatnonzero(grid.numbers(DRAWN) == area)
            assert said[k] == tree.predict(DRAWN[inside[:1]].reshape(1, 6))[0]
    twice = of_cuts([[[0.5, 0.5, 0.2]]], lower=0, upper=1)
    assert twice.shape == (3,)


DRAWN = np.random.default_rng(2).uniform(size=(20_000, 3, 2))


def test_a5_leaves_keep_apart_as_their_points_do():
    _x, _, tree, grid = appendix()
    boxes, predicted = leaves_of(tree, (3, 2))
    leaf = tree.apply(DRAWN.reshape(-1, 6))
    cells = grid.cells(DRAWN)
    apart = boxes.apart()
    assert np.array_equal(apart, apart.T)
    assert len(predicted) == 10
    # Brute force: the fewest positions in which points of two leaves differ, on the grid of cells.
    names = np.unique(leaf)
    values = {name: tree.predict(DRAWN[leaf == name][:1].reshape(1, 6))[0] for name in names}
    order = {float(v): k for k, v in enumerate(predicted)}
    for one, other in itertools.combinations(names, 2):
        a, b = (np.unique(cells[leaf == name], axis=0) for name in (one, other))
        least = min(int((a != row).sum(axis=1).min()) for row in b)
        assert apart[order[float(values[one])], order[float(values[other])]] == least


def test_a6_ranks_are_layers_of_a_breadth_first_search():
    rng = np.random.default_rng(3)
    for shape, adjacency in itertools.product([(3, 3, 3), (2, 4, 3)], ["replace", "step"]):
        trained = rng.random(shape) < 0.1
        trained.ravel()[rng.integers(trained.size)] = True
        wanted = np.where(trained, 0, -1)
        edges = list(brute(shape, adjacency))
        for layer in range(20):
            for a, b in edges:
                if wanted[a] == layer and wanted[b] == -1:
                    wanted[b] = layer + 1
        assert np.array_equal(areas.ranks(trained, adjacency=adjacency), wanted)


def test_a16_the_table_is_what_loops_over_lines_give():
    rng = np.random.default_rng(4)
    for _ in range(40):
        shape = tuple(rng.integers(1, 4, size=rng.integers(1, 4)))
        centers = rng.integers(-20, 20, size=shape)
        low, high = areas.doubled_ranges(centers, 11)
        for a in np.ndindex(shape):
            lines = [centers[(*a[:i], slice(None), *a[i + 1 :])] for i in range(len(shape))]
            assert low[a] == max(line.min() + line.max() - 11 for line in lines)
            assert high[a] == min(line.min() + line.max() + 11 for line in lines)


def test_a16_whatever_the_centers_the_sensitivity_is_kept_if_no_range_is_empty():
    rng = np.random.default_rng(5)
    kept = broken = 0
    a, b = (np.ravel_multi_index(np.array(ends).T, (3, 3, 3)) for ends in zip(*EDGES, strict=True))
    for _ in range(1000):
        centers = rng.integers(0, rng.integers(2, 40), size=(3, 3, 3))
        low, high = areas.ranges(centers, 8)
        bottom, top = low.ravel(), high.ravel()
        found = max((top - bottom).max(), (top[a] - bottom[b]).max())
        assert areas.largest_change(low, high) == found
        if (low <= high).all():
            kept += 1
            assert found <= 8
        if areas.widest_gap(centers) <= 8:
            assert (low <= high).all()
        # With min(max(g, low), high) an empty range always says high: outside of some line.
        said = np.minimum(np.maximum(np.array([[-99], [99]]), bottom), top)
        broken += bool((said.max(axis=0)[a] - said.min(axis=0)[b]).max() > 8)
    assert kept > 100
    assert broken > 100  # which is why an empty range is refused


EDGES = list(brute((3, 3, 3)))


def test_a16_cells_that_only_meet_their_next_cells_are_no_clique():
    # M7: three cells, centers S, S/2, 0: the ranges allow 1.25 S.
    low, high = areas.doubled_ranges(np.array([4, 2, 0]), 4, adjacency="step")
    assert (low / 8).tolist() == [0.25, 0, -0.25]
    assert areas.largest_change(low, high, adjacency="step") / 8 == 1.25
    low, high = areas.doubled_ranges(np.array([4, 2, 0]), 4)
    assert areas.largest_change(low, high) / 8 == 1


def test_a17_whatever_the_function_says_is_clipped():
    low, high = np.full(5, -1.0), np.full(5, 3.0)
    said = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300])
    assert areas.clipped(said, low, high).tolist() == [1, 1, 1, 3, -1]


def test_a20_all_attributes_of_one_position_are_one_step():
    board = chessboard(positions=2, parts=3, attributes=2, lower=0, upper=1)
    assert board.shape == (9, 9)
    one, other = board.cells([[[0, 0], [0, 0]], [[1, 1], [0, 0]]])
    assert (one != other).sum() == 1
    assert areas.ranks(np.arange(81).reshape(9, 9) == 0).max() == 2


def test_a21_the_norm_of_the_listing_is_spectral():
    first = statistics.uniform(many=10, positions=3, attributes=2, seed=10)[0]
    assert np.linalg.norm(first, 2) == pytest.approx(1.268, abs=0.001)
    assert np.linalg.norm(first) == pytest.approx(1.363, abs=0.001)
    spectral, euclidean = statistics.wave(first), statistics.wave(first, norm="euclidean")
    assert spectral == pytest.approx(math.sin(4 * math.pi * 1.26846094927))
    assert euclidean == pytest.approx(math.sin(4 * math.pi * 1.36258074675))
    assert statistics.hyperplane(np.ones((2, 3, 2)), offset=1).tolist() == [7, 7]
    with pytest.raises(InvalidArgument, match="norm must be"):
        statistics.wave(first, norm="taxi")


def test_a21_the_made_up_day_looks_like_the_real_one():
    for seed in range(5):
        day = statistics.traffic_day(np.random.default_rng(seed))
        x, y = statistics.windows(day)
        assert x.shape == (283, 4, 1)
        assert 305 <= y.mean() <= 317
        assert 182 <= y.std() <= 191
        board = chessboard(positions=4, parts=3, lower=0, upper=633)
        assert 19 <= len(np.unique(board.numbers(x))) <= 29
        assert 25 <= np.abs(y - x[:, -1, 0]).mean() <= 32
        said = statistics.Forecaster(x, y)(x)
        assert np.abs(said - y).mean() == pytest.approx(24.8, abs=2.5)


def test_a22_a_domain_of_astronomical_size_has_cells_but_no_list():
    board = chessboard(positions=50, parts=10, lower=0, upper=1)
    assert board.areas == 10**50
    assert board.cells(np.full((3, 50, 1), 0.55)).tolist() == [[5] * 50] * 3
    with pytest.raises(InvalidArgument, match="too many to be listed"):
        board.numbers(np.zeros((1, 50, 1)))


def test_a31_an_extension_keeps_its_slope_and_what_already_does():
    rng = np.random.default_rng(6)
    for adjacency in ("replace", "step"):
        values = np.where(rng.random((3, 4, 3)) < 0.3, rng.normal(size=(3, 4, 3)), np.nan)
        values[0, 0, 0] = 0.0
        made = areas.extended(values, 0.5, adjacency=adjacency)
        gaps = [abs(made[a] - made[b]) for a, b in brute((3, 4, 3), adjacency)]
        assert max(gaps) <= 0.5 + 1e-12
        again = areas.extended(np.where(np.isnan(values), np.nan, made), 0.5, adjacency=adjacency)
        known = ~np.isnan(values)
        assert again[known] == pytest.approx(made[known])


@pytest.mark.parametrize("wrong", [
    lambda: chessboard(positions=0, parts=3, lower=0, upper=1),
    lambda: chessboard(positions=2, parts=3, lower=1, upper=1),
    lambda: areas.neighbors((20,) * 5),
    lambda: InputPartition(cuts=(), lower=np.zeros((0, 1)), upper=np.ones((0, 1))),
    lambda: InputPartition(cuts=((np.array([1.0, 1.0]),),), lower=np.zeros((1, 1)),
                      upper=np.ones((1, 1))),
    lambda: of_tree(appendix()[2], positions=4, lower=0, upper=1),
    lambda: areas.ranks(np.zeros((2, 2), dtype=bool)),
    lambda: areas.ranks(np.ones((2, 2), dtype=bool), adjacency="diagonal"),
    lambda: areas.extended(np.full((2, 2), np.nan), 1.0),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        wrong()


@pytest.mark.parametrize(
    "given", [[[0, 0, 0]], ["secret"], [[1], [2, 3], [4]], "secret", 3, [None]]
)
def test_a_data_set_of_another_shape_is_refused_without_its_values(given):
    board = chessboard(positions=2, parts=3, lower=0, upper=1)
    with pytest.raises(OutOfDomain, match="2 positions of 1 attributes") as caught:
        board.cells(given)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
