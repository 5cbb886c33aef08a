"""Tables without negative cells that agree: small tables are held tighter than large ones.

The nearest tables without negative cells, in the metric of the noise, are biased upward where most
cells are small: totals are loose in that metric, and give way. So the parts of smaller tables are
held tighter than their own noise says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from discreet.marginals import _whole_numbers as whole_numbers
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import Place, TableKey, subsets
from discreet.noise.distribution import Floats, Ints

_ROUNDS = 300
_ROUNDS_ABOVE = 60
"""Of tables of three columns and more, whose rounds are long."""
_RAKES = 200
_CLOSE = 1e-3
"""Rows by which a cell may miss zero before the rounds end early."""
_TIGHTER = {0: 1.0, 1: 0.01, 2: 0.01}
_TIGHTER_ABOVE = 0.1
_LEAST = 1e-12
_EVEN = 1e-7
"""Rows by which a sum may miss what it is fitted to."""


def largest(tables: Sequence[TableKey]) -> tuple[TableKey, ...]:
    """The tables that are not within another one."""
    found: list[TableKey] = []
    for table in sorted(set(tables), key=lambda one: (-len(one), one)):
        if not any(set(table) <= set(other) for other in found):
            found.append(table)
    return tuple(sorted(found, key=lambda one: (len(one), one)))


class Parts:
    """A family of tables that agree: for each set of columns, what only all of them tell."""

    def __init__(self, sizes: Sequence[int], held: Mapping[TableKey, Floats]) -> None:
        self.sizes = tuple(sizes)
        self.held = dict(held)

    def table(self, table: TableKey) -> Floats:
        """The cells of one table."""
        total = np.zeros([self.sizes[i] for i in table])
        for part in subsets(table):
            total += _spread(self.held[part], part, table, self.sizes)
        return total


def _spread(found: Floats, part: TableKey, table: TableKey, sizes: Sequence[int]) -> Floats:
    """A part, evenly over the other columns of a table."""
    rest = math.prod([sizes[i] for i in table if i not in part])
    return (found / rest).reshape([sizes[i] if i in part else 1 for i in table])


def parts_of(table: TableKey, cells: Floats) -> dict[TableKey, Floats]:
    """The parts of one table: for each set of its columns their sums, centered along each axis."""
    # One axis at a time: its sum, and what is left of it.
    found: dict[TableKey, Floats] = {(): cells}
    for i in reversed(table):
        split: dict[TableKey, Floats] = {}
        for part, held in found.items():
            axis = table.index(i)
            split[part] = held.sum(axis=axis)
            split[(i, *part)] = held - held.mean(axis=axis, keepdims=True)
        found = split
    return found


def part_variances(
    columns: Sequence[MarginalColumn], variances: Mapping[Place, float]
) -> dict[TableKey, float]:
    """The mean variance of each set of columns, over the directions that it has."""
    sums = [column.mean_cell_energies * column.size for column in columns]
    found: dict[TableKey, float] = {}
    for place, variance in variances.items():
        key = tuple([i for i, _ in place])
        own = math.prod([float(sums[i][level]) for i, level in place])
        free = math.prod([columns[i].size - 1 for i in key])
        found[key] = found.get(key, 0.0) + variance * own / free
    return found


def margins_first(
    linear: Mapping[TableKey, Floats], variances: Mapping[TableKey, float], sizes: Sequence[int]
) -> Parts:
    """Parts near those of unbiased tables, whose tables have no cell far below zero.

    ``linear`` has the largest tables; all their margins follow.
    """
    # Theorem: each step below is the exact minimum of its half of the augmented Lagrangian of
    #   `sum |r - rhat|^2 / q` under "all tables of r are >= 0", so the rounds tend to the optimum.
    # Proof: tables of r are linear in r, and `|T_W(r)|^2 = sum_A |r_A|^2 / prod_{W \ A} n_i`
    #   because the spread parts of a table are orthogonal. So the quadratic in r is diagonal. The
    #   other half is a projection on cells >= 0. Convex: ADMM converges (Boyd et al. 2011).
    # Source: docs/theory/marginals.md.
    # Needs: nothing private; `linear` is what was released.
    order = max(len(table) for table in linear)
    tighter = _TIGHTER.get(order, _TIGHTER_ABOVE)
    target: dict[TableKey, Floats] = {}
    for table, cells in linear.items():
        target.update(parts_of(table, cells))
    precision = {
        part: 1 / max(variances[part] * tighter ** (order - len(part)), _LEAST) for part in target
    }
    pull = float(
        np.median([1 / max(variances[part], _LEAST) for part in target if len(part) == order])
    )
    rests = {
        table: {
            part: math.prod([sizes[i] for i in table if i not in part]) for part in subsets(table)
        }
        for table in linear
    }
    weight = dict.fromkeys(target, 0.0)
    for rest in rests.values():
        for part, many in rest.items():
            weight[part] += 1 / many
    parts = Parts(sizes, target)
    copies = {table: np.maximum(cells, 0) for table, cells in linear.items()}
    multipliers = {table: np.zeros_like(cells) for table, cells in linear.items()}
    for _ in range(_ROUNDS if order <= 2 else _ROUNDS_ABOVE):
        sums = {part: np.zeros_like(found) for part, found in target.items()}
        for table in linear:
            for part, found in parts_of(table, copies[table] - multipliers[table]).items():
                sums[part] += found / rests[table][part]
        parts.held = {
            part: (target[part] * precision[part] + pull * sums[part])
            / (precision[part] + pull * weight[part])
            for part in target
        }
        below = 0.0
        for table in linear:
            cells = parts.table(table)
            below = min(below, float(cells.min()))
            moved = cells + multipliers[table]
            copies[table] = np.maximum(moved, 0)
            multipliers[table] = moved - copies[table]
        if below > -_CLOSE:
            break
    return parts


class CellsAboveZero:
    """Tables without negative cells, made from parts: each is fitted to the margins of its own.

    Up to two columns they agree but for rounding. Tables of more columns whose margins no table
    without negative cells has can miss them: `mismatch` says by how much.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: dict[TableKey, Floats] = {}
        self.mismatch = 0.0

    def table(self, table: TableKey) -> Floats:
        """The cells of one table."""
        if table not in self._known:
            margins = [
                along_axis(axis, self.table(tuple([k for k in table if k != i])))
                for axis, i in enumerate(table)
            ]
            cells = np.maximum(self._parts.table(table), 0)
            fitted, missed = raked(cells, margins)
            self._known[table] = fitted
            self.mismatch = max(self.mismatch, missed)
        return self._known[table]

    def rounded(self, table: TableKey, total: int) -> Ints:
        """The cells of one table in whole numbers that add up to the total."""
        return whole_numbers.rounded(self.table(table), total)


Margin: TypeAlias = tuple[Callable[[Floats], Floats], Floats, Callable[[Floats], Floats]]
"""How cells add up, to what, and how numbers for the sums are those of the cells."""


def along_axis(axis: int, wanted: Floats) -> Margin:
    """The sums along one axis."""
    return (
        lambda cells: np.asarray(cells.sum(axis=axis)),
        wanted,
        lambda held: np.expand_dims(held, axis),
    )


def raked(cells: Floats, margins: Sequence[Margin]) -> tuple[Floats, float]:
    """Cells with these sums, by scaling; and how far a sum is still off."""
    total = min([float(wanted.sum()) for _, wanted, _ in margins], default=0.0)
    if not margins:
        return cells, 0.0
    if total <= 0:
        return np.zeros_like(cells), 0.0
    # A cell of exactly zero could never be scaled up: all get a little.
    found = cells + 1e-9 * total / cells.size
    missed = 0.0
    for _ in range(_RAKES):
        missed = 0.0
        for summed, wanted, over in margins:
            sums = summed(found)
            missed = max(missed, float(np.abs(sums - wanted).max()))
            scale = np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)
            found = found * over(scale)
        if missed <= _EVEN:
            break
    return found, missed
