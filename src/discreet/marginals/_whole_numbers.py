"""Whole numbers that add up: rounding of tables whose margins are rounded, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import optimize, sparse

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.marginals.design import TableKey
from discreet.noise.distribution import Floats, Ints

MOST_BOTH = 100_000
"""Cells of a table of two columns up to which both of its margins are kept within one."""
_BITS = 30
_NEAR = 1e-6


def split_apart(tables: Sequence[TableKey], names: Sequence[str]) -> None:
    """Refuse tables that share columns: whole numbers near all of them need not exist."""
    seen: dict[int, TableKey] = {}
    for table in tables:
        for i in table:
            if i in seen:
                one, other = (
                    "(" + ", ".join(repr(names[k]) for k in each) + ")" for each in (seen[i], table)
                )
                raise InvalidArgument(
                    f"integers must be of tables that share no column; {one} and {other} share "
                    f"{names[i]!r}. Tables of synthetic rows are whole numbers that agree."
                )
            seen[i] = table


def rounded_total(total: float) -> int:
    """The nearest whole number of rows."""
    return max(round(total), 0)


def rounded(cells: Floats, total: int) -> Ints:
    """Whole cells that add up to a whole total near theirs, each within one of its estimate.

    With two columns both margins are within one, too; with more, those along the order of the
    columns are, and all others are sums of cells.
    """
    units, unit = _in_units(cells, total)
    if cells.ndim == 2 and cells.size <= MOST_BOTH:
        return _both_margins(units, unit, total)
    return _along(units, unit, np.array([total]), first=1)


def rounded_spine(nodes: Floats, parents: Sequence[Ints], total: int) -> Ints:
    """The same from the top of a tree to its bottom, whose nodes are the first axis of the cells.

    Every node of every level is within one of its estimate, and so are cells along the order of
    the columns. ``parents`` are those of the nodes of each level.
    """
    units, unit = _in_units(nodes, total)
    levels = [units.sum(axis=tuple(range(1, units.ndim)))]
    for above, own in reversed(list(pairwise(parents))):
        sums = np.zeros(len(above), dtype=np.int64)
        np.add.at(sums, own, levels[0])
        levels.insert(0, sums)
    found = np.array([total])
    for sums, own in zip(levels, parents, strict=True):
        found = _split(found, sums, own, unit)
    return _along(units, unit, found, first=2)


def _in_units(cells: Floats, total: int) -> tuple[Ints, int]:
    """Cells in whole units far below one row: their sums are exact and agree at every level."""
    whole = float(cells.sum())
    if total and whole <= 0:
        raise InvalidArgument("integers must be of tables with cells above zero.")
    near = cells if abs(whole - total) < 1 / 2 + _NEAR else cells * (total / whole)
    unit = 1 << min(_BITS, 61 - max(total, 1).bit_length())
    return np.rint(near * unit).astype(np.int64), unit


def _along(units: Ints, unit: int, found: Ints, *, first: int) -> Ints:
    """Whole cells along the order of the columns, from whole sums of those before the first."""
    for order in range(first, units.ndim + 1):
        sums = units.sum(axis=tuple(range(order, units.ndim)))
        parents = np.repeat(np.arange(found.size), sums.size // found.size)
        found = _split(found.ravel(), sums.ravel(), parents, unit).reshape(sums.shape)
    return found.reshape(units.shape)


def _split(whole: Ints, sums: Ints, parents: Ints, unit: int) -> Ints:
    # Theorem: every node of the tree (the total, the sums of the first column, of the first two,
    #   ...) is the floor or the ceiling of its estimate, and children add up to their parent.
    # Proof: the floors of the children add up to a whole number that is at most their sum p, so at
    #   most floor(p); likewise the ceilings to at least ceil(p). The parent is one of the two, so
    #   between none and all of the children that are not whole are to be rounded up. Induction.
    # Source: docs/theory/marginals.md.
    # Needs: the total is the floor or the ceiling of the sum; sums in whole units.
    floors, rest = np.divmod(sums, unit)
    up = whole.copy()
    np.subtract.at(up, parents, floors)
    order = np.lexsort((-rest, parents))
    firsts = np.searchsorted(parents[order], np.arange(len(whole)))
    ranks = np.empty(len(sums), dtype=np.int64)
    ranks[order] = np.arange(len(sums)) - firsts[parents[order]]
    found: Ints = floors + (ranks < up[parents])
    return found


def _both_margins(units: Ints, unit: int, total: int) -> Ints:
    # Theorem: there is a table of whole numbers with this total in which every cell and every sum
    #   of a row or of a column is the floor or the ceiling of its estimate.
    # Proof: it is an integral flow from rows to columns; the estimate is a flow within the bounds,
    #   the values of such flows fill an interval with whole ends, and bounds are whole (Bacharach
    #   1966; Cox 1987). A vertex of the polytope is whole.
    # Source: docs/theory/marginals.md.
    # Needs: the total is the floor or the ceiling of the sum.
    floors, rest = np.divmod(units, unit)
    rows, columns = units.shape
    by_row = sparse.kron(sparse.eye_array(rows), np.ones((1, columns)))
    by_column = sparse.kron(np.ones((1, rows)), sparse.eye_array(columns))
    every = sparse.csr_array(np.ones((1, units.size)))
    low, high = [], []
    for axis in (1, 0):
        least, more = np.divmod(units.sum(axis=axis), unit)
        low.append(least - floors.sum(axis=axis))
        high.append(low[-1] + (more > 0))
    left = [total - floors.sum()]
    solved = optimize.milp(
        1 - 2 * (rest.ravel() / unit),
        constraints=optimize.LinearConstraint(
            sparse.csr_array(sparse.vstack([by_row, by_column, every])),
            np.concatenate([*low, left]),
            np.concatenate([*high, left]),
        ),
        bounds=optimize.Bounds(0, (rest > 0).ravel().astype(np.float64)),
    )
    found = floors if solved.x is None else floors + np.rint(solved.x).reshape(units.shape)
    whole: Ints = found.astype(np.int64)
    if solved.x is None or whole.sum() != total:
        raise Unsupported("no whole numbers were found for this table; leave out integers.")
    return whole
