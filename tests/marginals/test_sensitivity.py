"""How far one unit moves what is measured: all neighbors of small domains, one by one."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet.core.relation import NeighboringRelation
from discreet.marginals.columns import MarginalColumn, ordered_chain
from discreet.marginals.design import (
    EACH,
    closure,
    measured,
    moved_plain,
    moved_squared,
    places_of,
)

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def columns_of(sizes, ordered=()):
    return [
        MarginalColumn(
            name=f"c{i}",
            labels=tuple(range(size)),
            chain=ordered_chain(size) if i in ordered else (1, size),
        )
        for i, size in enumerate(sizes)
    ]


def units(sizes, rows):
    """The counts of every unit with at most so many rows: one line each."""
    cells = int(np.prod(sizes))
    found = [
        np.bincount(np.array(chosen, dtype=int), minlength=cells)
        for many in range(rows + 1)
        for chosen in combinations_with_replacement(range(cells), many)
    ]
    return np.array(found, dtype=np.int64)


def all_measured(place, columns, counts, *, plain=False):
    """What is measured at a place of each unit: one line each."""
    sizes = [column.size for column in columns]
    kept = [i for i, _ in place]
    rest = tuple(1 + i for i in range(len(sizes)) if i not in kept)
    tables = counts.reshape(-1, *sizes).sum(axis=rest)
    return np.array([measured(place, one, columns, plain=plain).ravel() for one in tables])


def furthest(moved, relation):
    """The largest squared L2 distance of neighbors, and the largest L1 distance."""
    if relation is ADD:
        return int((moved**2).sum(1).max()), int(np.abs(moved).sum(1).max())
    two, one = 0, 0
    for each in moved:
        away = moved - each
        two = max(two, int((away**2).sum(1).max()))
        one = max(one, int(np.abs(away).sum(1).max()))
    return two, one


CASES = [
    ((2, 3, 4), (), 1),
    ((2, 3, 4), (), 2),
    ((2, 2), (), 3),
    ((3, 3), (), 3),
    ((2, 5), (), 2),
    ((2, 2, 2), (), 2),
    ((4, 3), (0,), 2),
    ((8,), (0,), 3),
    ((5, 2), (0,), 2),
    ((4, 4), (0, 1), 2),
]


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize(("sizes", "ordered", "rows"), CASES)
def test_contrasts_move_as_far_as_stated(sizes, ordered, rows, relation):
    columns = columns_of(sizes, ordered)
    counts = units(sizes, rows)
    for place in places_of([tuple(range(len(sizes)))], columns):
        stated = moved_squared(place, columns, rows=rows, relation=relation)
        found, _ = furthest(all_measured(place, columns, counts), relation)
        # Attained, except where positions that are filled up hold no value.
        padded = any(not column.plain for column in columns)
        assert found <= stated if padded else found == stated, place


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize(("sizes", "rows"), [((2, 3), 3), ((2, 2, 2), 2)])
def test_plain_tables_move_as_far_as_stated(sizes, rows, relation):
    columns = columns_of(sizes)
    counts = units(sizes, rows)
    for table in closure([tuple(range(len(sizes)))]):
        place = tuple((i, EACH) for i in table)
        found = furthest(all_measured(place, columns, counts, plain=True), relation)[1]
        assert found == moved_plain(place, rows=rows, relation=relation), table


def test_published_vectors():
    columns = columns_of((2, 3, 4))
    wanted = {
        (): (1, 1),
        (0,): (2, 8),
        (1,): (6, 18),
        (2,): (12, 32),
        (0, 1): (12, 48),
        (0, 2): (24, 96),
        (1, 2): (72, 216),
        (0, 1, 2): (144, 576),
    }
    for table, both in wanted.items():
        place = tuple((i, 1) for i in table)
        found = [moved_squared(place, columns, rows=1, relation=one) for one in (ADD, REPLACE)]
        assert tuple(found) == both, table


def test_the_joint_cost_of_a_row_is_attained_by_the_same_rows():
    # Every cell is worst for all places at once: no slack in the composition.
    columns = columns_of((2, 3, 4))
    one = np.eye(24, dtype=np.int64)
    for place in places_of([(0, 1, 2)], columns):
        lengths = (all_measured(place, columns, one) ** 2).sum(1)
        assert len(set(lengths.tolist())) == 1, place


def test_rows_of_different_places_are_orthogonal():
    columns = columns_of((4, 3, 5), ordered=(0,))
    matrices = [
        all_measured(place, columns, np.eye(60, dtype=np.int64)).T
        for place in places_of([(0, 1, 2)], columns)
    ]
    for i, one in enumerate(matrices):
        for other in matrices[:i]:
            assert not np.any(one @ other.T)
    assert np.linalg.matrix_rank(np.vstack(matrices)) == 60


def test_counts_beyond_any_file_neither_wrap_nor_move_further():
    columns = columns_of((2, 3))
    for place in places_of([(0, 1)], columns):
        shape = [columns[i].size for i, _ in place]
        full = np.full(shape, 2**63 - 2, dtype=np.int64)
        more = full.copy()
        more[(0,) * len(shape)] += 1
        away = measured(place, more, columns, plain=False) - measured(
            place, full, columns, plain=False
        )
        assert (away**2).sum() <= moved_squared(place, columns, rows=1, relation=ADD)
