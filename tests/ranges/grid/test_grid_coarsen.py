"""Coarser cells: names, counts and neighbours."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.random_source import seeded
from discreet.query.budget import budget
from discreet.ranges.domain import (
    bins,
    coarsened,
    dates,
    integers,
    merged,
    ordered,
    suggested_cells,
)
from discreet.ranges.grid import domain as g
from discreet.ranges.grid.plan import plan_grid


def test_cells_are_named_by_what_they_hold():
    assert coarsened(integers(0, 9), block=4) == bins([0, 4, 8, 10])
    assert coarsened(bins([0, 1, 2, 4, 8]), block=3) == bins([0, 4, 8])
    assert coarsened(ordered(["a", "b", "c"]), block=2) == ordered(["a .. b", "c"])
    weeks = coarsened(dates("2024-01-01", "2024-01-10"), block=7)
    assert weeks == ordered(["2024-01-01 .. 2024-01-07", "2024-01-08 .. 2024-01-10"])
    with pytest.raises(InvalidArgument):
        coarsened(integers(0, 9), block=0)


def test_counts_are_summed_and_a_row_counts_once():
    counts = np.random.default_rng(1).integers(0, 9, size=(10, 5))
    found = merged(counts, blocks=(4, 2))
    assert found.shape == (3, 3)
    assert found[1, 2] == counts[4:8, 4:].sum()
    assert found.sum() == counts.sum()
    for cell in np.ndindex(counts.shape):
        more = counts.copy()
        more[cell] += 1
        assert np.abs(merged(more, blocks=(4, 2)) - found).sum() == 1
    with pytest.raises(OutOfDomain):
        merged(counts, blocks=(4,))
    with pytest.raises(OutOfDomain):
        merged(counts.astype(float), blocks=(4, 2))


def test_coarse_grids_are_grids():
    days, regions = dates("2024-01-01", "2024-01-28"), ordered(["north", "south"])
    counts = np.full((28, 2), 10)
    weeks = coarsened(days, block=7)
    design = plan_grid([weeks, regions], g.all_rectangles(), budget(epsilon=1)).best
    release = design.release(merged(counts, blocks=(7, 1)), bits=seeded(1))
    first = "2024-01-01 .. 2024-01-07"
    assert release.answer((first, first), None) == pytest.approx(140, abs=40)


def test_the_published_rule():
    assert suggested_cells(100_000, epsilon=1) == 100
    assert suggested_cells(1, epsilon=0.1) == 1
