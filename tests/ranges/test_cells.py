"""Counts of cells: each is read by itself, and none of them decides for the others."""

import warnings
from decimal import Decimal

import numpy as np
import pytest

from discreet import ranges
from discreet.core.errors import OutOfDomain
from discreet.noise.random_source import seeded_rng


class Hostile:
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __float__ = __int__ = __index__ = __hash__ = __eq__ = __str__


ODD = [
    *(float("nan"), None, "x", "3", b"3", 1j, [3], Hostile(), Decimal("NaN"), "\ud800"),
    *(-1, -(2**62), -(2**63), -(10**5000), -float("inf"), np.float64("nan")),
]
BEYOND = [2**63, 10**5000, float("inf"), 2**41, Decimal("1e400")]
DESIGNS = {
    "ranges": lambda: ranges.plan_ranges(ranges.integers(0, 7), epsilon=1).best,
    "gaussian": lambda: ranges.plan_ranges(ranges.integers(0, 7), rho=1).best,
    "grid": lambda: (
        ranges.plan_grid([ranges.integers(0, 1), ranges.integers(0, 3)], epsilon=1).best
    ),
}


def answers(design, counts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = design.release(counts, rng=seeded_rng(4))
    return np.asarray(release.cells, dtype=np.float64).ravel().tolist()


def shaped(design, cells):
    return [cells[:4], cells[4:]] if "Grid" in type(design).__name__ else cells


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_cell_that_is_no_count_counts_nothing(name, odd):
    design = DESIGNS[name]()
    found = answers(design, shaped(design, [5, 3, odd, 9, 0, 1, 2, 4]))
    assert found == answers(design, shaped(design, [5, 3, 0, 9, 0, 1, 2, 4]))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("odd", BEYOND, ids=range(len(BEYOND)))
def test_a_cell_beyond_all_bounds_is_cut(name, odd):
    design = DESIGNS[name]()
    found = answers(design, shaped(design, [5, 3, odd, 9, 0, 1, 2, 4]))
    assert found == answers(design, shaped(design, [5, 3, 2**40, 9, 0, 1, 2, 4]))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint8])
def test_an_array_is_what_a_list_of_the_same_numbers_is(name, kind):
    design = DESIGNS[name]()
    cells = shaped(design, [5, 3, 2, 9, 0, 1, 2, 4])
    assert answers(design, np.array(cells, dtype=kind)) == answers(design, cells)


@pytest.mark.parametrize("name", DESIGNS)
def test_what_is_public_is_checked(name):
    design = DESIGNS[name]()
    good = np.array(shaped(design, [5, 3, 2, 9, 0, 1, 2, 4]))
    for wrong in (good[:-1], good.astype(float), good.astype(str), "12345678", 3, [[1], [2, 3]]):
        with pytest.raises(OutOfDomain, match="counts must be"):
            design.release(wrong, rng=seeded_rng(1))


def test_sums_of_merged_cells_do_not_wrap():
    cells = np.full((4, 2), 2**63 - 1)
    assert (ranges.merge_cells(cells, blocks=(4, 2)) == 8 * 2**40).all()
    assert ranges.merge_cells([[1, None], [2, 3]], blocks=(2, 2)).tolist() == [[6]]
    with pytest.raises(OutOfDomain):
        ranges.merge_cells([[1, 2], [3]], blocks=(1, 1))
