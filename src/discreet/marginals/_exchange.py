"""Rows whose tables are near given ones: a start along a tree, then entries are exchanged.

Everything here is made of released tables and of public randomness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from discreet.core.errors import InvalidArgument
from discreet.marginals.design import TableKey
from discreet.noise.distribution import Floats, Ints

_PHASES = (250, 500, 500, 1000, 1000, 2000, 2000)
"""Rows of a phase's batches: so many batches would hold all rows."""
_LOOKS = 0.3
"""Share of the entries of each column that a phase looks at."""
_TEMPERATURE = 0.3
"""Of the choice among values, as a share of a batch: rows of one batch must not all move alike."""
_ENOUGH = 0.05
"""A phase that improves less ends the search."""
_SMALLEST_BATCH = 16
_REPAIRS = 50


@dataclass(frozen=True, kw_only=True)
class Impossible:
    """Combinations that no row may have: for each of some columns, the values in question."""

    values: Mapping[int, Floats]
    """For each column one for a value that belongs to the combination, else zero."""

    def broken(self, codes: Ints) -> Ints:
        """The rows that have the combination."""
        held = [self.values[i][codes[:, i]] > 0 for i in self.values]
        return np.flatnonzero(np.logical_and.reduce(held))


class Exchange:
    """Rows, and how far their tables are from the wanted ones."""

    # Theorem: with batches of one row and no temperature, no exchange increases the loss, the sum
    #   of squares of `D` over both halves of the matrix and over the larger tables.
    # Proof: moving one entry from a to v changes cell (x, a) of each table with the column by -1
    #   and (x, v) by +1, x the row's other entries: the squares change by `2 (S_v - S_a) + 2 deg`
    #   for each half, S the sums of D there. The chosen v has the least `S_v`, where `S_a` counts
    #   less deg; a itself is among them, with a change of zero.
    # Source: docs/theory/marginals.md.
    # Needs: nothing private.

    def __init__(
        self,
        codes: Ints,
        sizes: Sequence[int],
        wanted: Mapping[TableKey, Floats],
        *,
        impossible: Sequence[Impossible],
        rng: np.random.Generator,
    ) -> None:
        self.codes = codes
        self.sizes = tuple(sizes)
        self.impossible = tuple(impossible)
        self._rng = rng
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self._pairs: dict[int, list[int]] = {i: [] for i in range(len(sizes))}
        whole = int(self._starts[-1])
        self.away = np.zeros((whole, whole))
        self._larger: dict[TableKey, Floats] = {}
        for table, cells in wanted.items():
            if len(table) == 2:
                i, j = table
                self._pairs[i].append(j)
                self._pairs[j].append(i)
                found = self._counted(table) - cells
                self.away[self._block(i), self._block(j)] = found
                self.away[self._block(j), self._block(i)] = found.T
            elif len(table) > 2:
                self._larger[table] = self._counted(table) - cells
        self._within = {
            i: [table for table in self._larger if i in table] for i in range(len(sizes))
        }

    def _block(self, i: int) -> slice:
        return slice(int(self._starts[i]), int(self._starts[i + 1]))

    def _counted(self, table: TableKey) -> Floats:
        shape = tuple([self.sizes[i] for i in table])
        index = np.ravel_multi_index(tuple([self.codes[:, i] for i in table]), shape)
        return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)

    @property
    def loss(self) -> float:
        """The sum of squares of what the tables of the rows are away from the wanted ones."""
        larger = sum(float(np.square(one).sum()) for one in self._larger.values())
        return float(np.square(self.away).sum()) / 2 + larger

    def run(self) -> None:
        """Exchange entries until a phase brings little."""
        many = len(self.codes)
        free = [i for i in range(len(self.sizes)) if self._pairs[i] or self._within[i]]
        before = self.loss
        for batches in _PHASES:
            size = min(max(many // batches, _SMALLEST_BATCH), many)
            for _ in range(max(round(_LOOKS * many / size), 1)):
                rows = self._rng.choice(many, size, replace=False, shuffle=False)
                for i in self._rng.permutation(free):
                    self.move(rows, int(i), temperature=_TEMPERATURE * size)
            after = self.loss
            if after > before * (1 - _ENOUGH):
                break
            before = after

    def repair(self) -> None:
        """Move rows out of impossible combinations; an error if some are left."""
        for attempt in range(_REPAIRS):
            rows = self._broken()
            if not len(rows):
                return
            columns = sorted({i for one in self.impossible for i in one.values})
            for i in self._rng.permutation(columns):
                self.move(rows, int(i), temperature=float(attempt + 1))
        if len(self._broken()):
            raise InvalidArgument(
                "impossible must leave every row some values: no rows without these combinations "
                "were found."
            )

    def _broken(self) -> Ints:
        none = np.zeros(0, dtype=np.int64)
        return np.unique(
            np.concatenate([none, *[one.broken(self.codes) for one in self.impossible]])
        )

    def move(self, rows: Ints, i: int, *, temperature: float) -> None:
        """Give some rows the value of a column that their tables miss most."""
        own = self.codes[rows]
        here = np.arange(len(rows))
        old = own[:, i].copy()
        others = self._pairs[i]
        scores = np.zeros((len(rows), self.sizes[i]))
        held = None
        if others:
            places = own[:, others] + self._starts[others]
            held = sparse.csr_array(
                (
                    np.ones(places.size),
                    places.ravel(),
                    np.arange(0, places.size + 1, len(others)),
                ),
                shape=(len(rows), len(self.away)),
            )
            scores += held @ np.ascontiguousarray(self.away[:, self._block(i)])
        for table in self._within[i]:
            axis = table.index(i)
            rest = tuple([own[:, k] for k in table if k != i])
            scores += np.moveaxis(self._larger[table], axis, -1)[rest]
        scores[here, old] -= len(others) + len(self._within[i])
        if temperature:
            scores += temperature * np.log(self._rng.standard_exponential(scores.shape))
        for one in self.impossible:
            if i in one.values:
                held_by = [one.values[k][own[:, k]] > 0 for k in one.values if k != i]
                hit = np.logical_and.reduce(held_by) if held_by else np.ones(len(rows), bool)
                scores[np.ix_(hit, one.values[i] > 0)] = np.inf
        new = scores.argmin(axis=1)
        new = np.where(np.isinf(scores[here, new]), old, new)
        moved = new != old
        if not moved.any():
            return
        self.codes[rows, i] = new
        if held is not None:
            change = np.zeros(scores.shape)
            change[here, new] += 1
            change[here, old] -= 1
            found = held[moved].T @ change[moved]
            self.away[:, self._block(i)] += found
            self.away[self._block(i), :] += found.T
        for table in self._within[i]:
            for values, step in ((old, -1.0), (new, 1.0)):
                at = tuple([values[moved] if k == i else own[moved, k] for k in table])
                np.add.at(self._larger[table], at, step)


def tree_start(
    many: int,
    sizes: Sequence[int],
    wanted: Mapping[TableKey, Floats],
    rng: np.random.Generator,
) -> Ints:
    """Rows that follow the pair tables along a tree of those that tell most."""
    pairs = {table: cells for table, cells in wanted.items() if len(table) == 2}
    order, parent = _tree(len(sizes), {table: _information(one) for table, one in pairs.items()})
    codes = np.zeros((many, len(sizes)), dtype=np.int64)
    for i in order:
        above = parent[i]
        if above is None:
            single = wanted.get((i,), np.ones(sizes[i]))
            codes[:, i] = rng.permutation(_systematic(single, many, rng))
            continue
        cells = pairs[(above, i)] if above < i else pairs[(i, above)].T
        for value in range(sizes[above]):
            rows = rng.permutation(np.flatnonzero(codes[:, above] == value))
            codes[rows, i] = _systematic(cells[value], len(rows), rng)
    return codes


def _systematic(weights: Floats, many: int, rng: np.random.Generator) -> Ints:
    """Values by their weights, each within one of its share."""
    sums = np.cumsum(np.maximum(weights, 0))
    if sums[-1] <= 0:
        sums = np.arange(1.0, len(weights) + 1)
    points = (rng.random() + np.arange(many)) / max(many, 1) * sums[-1]
    found: Ints = np.minimum(np.searchsorted(sums, points, side="right"), len(weights) - 1)
    return found


def _information(cells: Floats) -> float:
    total = cells.sum()
    if total <= 0:
        return 0.0
    shares = cells / total
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    used = (shares > 0) & (apart > 0)
    return float((shares[used] * np.log(shares[used] / apart[used])).sum())


def _tree(
    many: int, information: Mapping[TableKey, float]
) -> tuple[list[int], dict[int, int | None]]:
    """A spanning forest of the pairs that tell most, from its roots."""
    edges: dict[int, list[int]] = {i: [] for i in range(many)}
    group = list(range(many))
    for table in sorted(information, key=lambda one: (-information[one], one)):
        i, j = table
        if group[i] != group[j]:
            edges[i].append(j)
            edges[j].append(i)
            joined = group[j]
            group = [group[i] if one == joined else one for one in group]
    order: list[int] = []
    parent: dict[int, int | None] = {}
    for root in range(many):
        if root in parent:
            continue
        parent[root] = None
        left = [root]
        while left:
            i = left.pop()
            order.append(i)
            for j in edges[i]:
                if j not in parent:
                    parent[j] = i
                    left.append(j)
    return order, parent


def wanted_tables(
    tables: Sequence[TableKey],
) -> tuple[list[TableKey], list[TableKey]]:
    """The tables that rows are made after: all pairs within, and the larger ones themselves."""
    pairs = {pair for table in tables for pair in combinations(table, 2)}
    return sorted(pairs), [table for table in tables if len(table) > 2]
