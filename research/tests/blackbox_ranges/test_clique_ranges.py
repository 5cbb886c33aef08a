"""Ranges on any graph of neighbors."""

import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified
from discreet_studies.blackbox_ranges.clique_ranges import clique_ranges, intersections


def lipschitz(rng, near, gap):
    """Whole centers that differ by at most ``gap`` between neighbors."""
    centers = rng.integers(-50, 50, len(near))
    for _ in near:
        centers = np.where(near, centers + gap, 10**6).min(axis=1)
    return np.minimum(centers, np.where(near, centers + gap, 10**6).min(axis=1))


def test_a34_edges_of_random_graphs_with_an_isolated_area():
    rng = np.random.default_rng(1)
    for _ in range(200):
        areas, width = int(rng.integers(2, 9)), int(rng.integers(0, 9))
        edges = [
            pair for pair in itertools.combinations(range(areas - 1), 2) if rng.random() < 0.4
        ]  # the last area has no neighbor
        near = np.eye(areas, dtype=bool)
        for a, b in edges:
            near[a, b] = near[b, a] = True
        centers = lipschitz(rng, near, width)
        low, high = clique_ranges(centers, edges, width=width)
        assert (low <= high).all()
        assert (high[:, None] - low)[near].max() <= width
        assert high[-1] - low[-1] == width
        assert (low <= centers).all()
        assert (centers <= high).all()


def test_a16_lines_of_a_path_are_no_cliques():
    # Centers S, S/2, 0 on three cells in a row: as one line the ranges would allow 1.25 S.
    width = 8
    low, high = clique_ranges([8, 4, 0], [(0, 1), (1, 2)], width=width)
    assert max(high[0] - low[1], high[1] - low[2]) <= width
    lines = [(0, 1, 2)]
    low, high = clique_ranges([8, 4, 0], lines, width=width)
    assert high[0] - low[2] <= width  # sound, but a clique: the ends are neighbors there
    assert (low == low[0]).all()


def test_a34_lines_of_a_grid_give_the_ranges_of_the_prototype():
    rng = np.random.default_rng(2)
    cells = np.array(list(itertools.product(range(3), repeat=3)))
    near = (cells[:, None] != cells[None]).sum(axis=-1) <= 1
    lines = [
        np.flatnonzero((np.delete(cells, i, axis=1) == rest).all(axis=1))
        for i in range(3)
        for rest in itertools.product(range(3), repeat=2)
    ]
    for _ in range(50):
        width = int(rng.integers(1, 20))
        centers = lipschitz(rng, near, width)
        low, high = clique_ranges(centers, lines, width=width)
        assert (high[:, None] - low)[near].max() <= width
        tensor = centers.reshape(3, 3, 3)
        doubled = np.stack(
            np.broadcast_arrays(
                *(
                    tensor.max(axis=i, keepdims=True) + tensor.min(axis=i, keepdims=True)
                    for i in range(3)
                )
            )
        )
        assert (low == ((doubled.max(axis=0) - width) // 2).ravel()).all()
        assert (high == ((doubled.min(axis=0) + width) // 2).ravel()).all()


def test_a34_functions_that_never_meet_are_refused():
    # t_1 = 10 D_2, t_2 = -10 D_1 for binary records: empty ranges at D = (1, 1).
    inputs = list(itertools.product((0, 1), repeat=2))
    cliques = [[k for k, d in enumerate(inputs) if d[1] == v] for v in (0, 1)]
    cliques += [[k for k, d in enumerate(inputs) if d[0] == v] for v in (0, 1)]
    with pytest.raises(NotCertified, match="do not meet"):
        intersections(cliques, [0, 20, 0, -20], areas=4, width=1)
    low, high = intersections(cliques, [0, 2, 0, 1], areas=4, width=1)
    assert (low <= high).all()


def test_a34_steep_centers_and_missing_cliques_are_refused():
    with pytest.raises(NotCertified, match="do not meet"):
        clique_ranges([0, 10, 0], [(0, 1), (1, 2), (0, 2)], width=1)
    with pytest.raises(NotCertified, match="lie in a clique"):
        intersections([(0, 1)], [0], areas=3, width=1)
    with pytest.raises(InvalidArgument, match="from 0 to 1"):
        clique_ranges([0, 1], [(0, 2)], width=1)
    with pytest.raises(InvalidArgument, match="each of 1 cliques"):
        intersections([(0, 1)], [0, 0], areas=2, width=1)
