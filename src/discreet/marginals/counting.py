"""Exact tables from coded rows: every table of the same rows, in one pass.

Tables that share columns are counted together: one histogram of a few columns, small enough for the
cache, gives all asked tables within those columns as its margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.marginals.design import TableKey
from discreet.noise.distribution import Ints

_TOGETHER = 1 << 14
"""Cells of a histogram that several tables share: it stays in the cache."""
_CHUNK = 1 << 17
"""Rows that are worked on at a time."""


def count_tables(
    chunks: Iterable[Ints], sizes: Sequence[int], tables: Sequence[TableKey]
) -> dict[TableKey, Ints]:
    """Count the rows in each cell of each table; chunks hold one line of codes for each column."""
    wanted = tuple(dict.fromkeys(tables))
    groups = _groups(wanted, sizes)
    totals = {
        group: np.zeros(math.prod([sizes[i] for i in group]), dtype=np.int64) for group in groups
    }
    for chunk in chunks:
        for start in range(0, chunk.shape[1], _CHUNK):
            _add(totals, chunk[:, start : start + _CHUNK], sizes)
    found = {}
    for group, members in groups.items():
        whole = totals[group].reshape([sizes[i] for i in group])
        for table in members:
            rest = tuple([axis for axis, i in enumerate(group) if i not in table])
            found[table] = whole.sum(axis=rest)
    return found


def _add(totals: dict[TableKey, Ints], codes: Ints, sizes: Sequence[int]) -> None:
    many = codes.shape[1]
    partial: dict[TableKey, Ints] = {(): np.zeros(many, dtype=np.int32)}
    for group in sorted(totals):
        # Groups that begin alike share the beginning of their code.
        known = max((k for k in range(len(group) + 1) if group[:k] in partial), default=0)
        index = partial[group[:known]]
        for k in range(known, len(group)):
            index = index * np.int32(sizes[group[k]]) + codes[group[k]].astype(np.int32)
            if k < len(group) - 1:
                for old in [one for one in partial if len(one) > k and one != ()]:
                    del partial[old]
                partial[group[: k + 1]] = index
        totals[group] += np.bincount(index, minlength=len(totals[group]))


def _groups(tables: Sequence[TableKey], sizes: Sequence[int]) -> dict[TableKey, list[TableKey]]:
    """Sets of columns that are counted together, and the tables that each of them gives."""
    left = sorted(tables, key=lambda one: (-len(one), one))
    covered: set[TableKey] = set()
    groups: dict[TableKey, list[TableKey]] = {}
    by_column: dict[int, set[TableKey]] = {}
    for table in left:
        for i in table:
            by_column.setdefault(i, set()).add(table)
    for table in left:
        if table in covered:
            continue
        group, many = set(table), math.prod([sizes[i] for i in table])
        while True:
            gain: dict[int, int] = {}
            for other in {one for i in group for one in by_column[i]} - covered:
                missing = set(other) - group
                if len(missing) == 1:
                    (i,) = missing
                    if many * sizes[i] <= _TOGETHER:
                        gain[i] = gain.get(i, 0) + 1
            if not gain:
                break
            best = max(gain, key=lambda i: (gain[i] / math.log(sizes[i] + 1), -i))
            group.add(best)
            many *= sizes[best]
        members = [
            one
            for one in {t for i in group for t in by_column[i]} | ({()} & set(left))
            if one not in covered and set(one) <= group
        ]
        if () in left and () not in covered and () not in members:
            members.append(())
        covered.update(members)
        groups[tuple(sorted(group))] = members
    return groups
