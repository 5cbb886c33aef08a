"""Coarser cells: names, counts and neighbors."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges.domain import (
    bins,
    coarsen,
    dates,
    integers,
    merge_cells,
    ordered,
    suggest_cell_count,
)
from discreet.ranges.grid import domain as g
from discreet.ranges.grid.plan import plan_grid


def test_cells_are_named_by_what_they_hold():
    assert coarsen(integers(0, 9), block=4) == bins([0, 4, 8, 10])
    assert coarsen(bins([0, 1, 2, 4, 8]), block=3) == bins([0, 4, 8])
    assert coarsen(ordered(["a", "b", "c"]), block=2) == ordered(["a .. b", "c"])
    weeks = coarsen(dates("2024-01-01", "2024-01-10"), block=7)
    assert weeks == ordered(["2024-01-01 .. 2024-01-07", "2024-01-08 .. 2024-01-10"])
    with pytest.raises(InvalidArgument):
        coarsen(integers(0, 9), block=0)


def test_counts_are_summed_and_a_row_counts_once():
    counts = np.random.default_rng(1).integers(0, 9, size=(10, 5))
    found = merge_cells(counts, blocks=(4, 2))
    assert found.shape == (3, 3)
    assert found[1, 2] == counts[4:8, 4:].sum()
    assert found.sum() == counts.sum()
    for cell in np.ndindex(counts.shape):
        more = counts.copy()
        more[cell] += 1
        assert np.abs(merge_cells(more, blocks=(4, 2)) - found).sum() == 1
    with pytest.raises(OutOfDomain):
        merge_cells(counts, blocks=(4,))
    with pytest.raises(OutOfDomain):
        merge_cells(counts.astype(float), blocks=(4, 2))


def test_coarse_grids_are_grids():
    days, regions = dates("2024-01-01", "2024-01-28"), ordered(["north", "south"])
    counts = np.full((28, 2), 10)
    weeks = coarsen(days, block=7)
    design = plan_grid([weeks, regions], g.all_rectangles(), budget(epsilon=1)).best
    release = design.release(merge_cells(counts, blocks=(7, 1)), rng=seeded_rng(1))
    first = "2024-01-01 .. 2024-01-07"
    assert release.answer((first, first), None) == pytest.approx(140, abs=40)


def test_the_published_rule():
    assert suggest_cell_count(100_000, epsilon=1) == 100
    assert suggest_cell_count(1, epsilon=0.1) == 1
