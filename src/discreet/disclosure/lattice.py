"""Full-domain generalisation: one level for each column, found in the lattice of all levels.

Two facts carry the search. Coarser levels only merge classes, so the number of rows in small
classes never grows on the way up: what fails, fails for everything below. And the loss of a node is
at least its loss without suppression, which is a sum over columns and known for all nodes at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import Unsupported
from discreet.disclosure.classes import Floats, Ints, together
from discreet.disclosure.hierarchy import Coded

LARGEST_LATTICE = 200_000
_ROUNDING = 1e-12  # of two sums of losses

Node = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A node that keeps the promise: levels, loss with suppression counted as total, rows lost."""

    node: Node
    loss: float
    suppressed: int


@dataclass(slots=True)
class Lattice:
    """Classes at any node, each rolled up from the smallest known node below it."""

    columns: Sequence[Coded]
    k: int
    allowed: int
    progress: Callable[[str], None] = lambda _: None
    rows: int = 0
    tables: dict[Node, tuple[Ints, Ints]] = field(default_factory=dict)
    """Of nodes seen: one cell of each class, and the rows in it."""
    lost: dict[Node, int] = field(default_factory=dict)
    """Of each node seen: rows in classes that are too small."""
    marginal: list[Floats] = field(default_factory=list)
    codes: dict[tuple[int, int], NDArray[np.int32]] = field(default_factory=dict)
    heads: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """One row of each cell: of the rows that agree in all exact values."""

    def __post_init__(self) -> None:
        self.rows = len(self.columns[0].codes)
        cells = together(
            [column.codes for column in self.columns], [column.size(0) for column in self.columns]
        )
        self.heads = cells.head
        self.tables[(0,) * len(self.columns)] = (np.arange(len(cells.head)), cells.sizes)
        for column in self.columns:
            seen = np.bincount(column.codes, minlength=column.size(0))
            lost = [column.loss[i][column.up[i]] @ seen for i in range(column.height + 1)]
            self.marginal.append(np.array(lost) / max(self.rows, 1))

    @property
    def top(self) -> Node:
        """Where all rows are alike."""
        return tuple(column.height for column in self.columns)

    def lower(self, node: Node) -> float:
        """The loss without suppression."""
        parts = zip(self.marginal, node, strict=True)
        return math.fsum(losses[i] for losses, i in parts) / len(node)

    def classes(self, node: Node) -> tuple[Ints, Ints]:
        """One cell of each class of a node, and the rows in each."""
        if node in self.tables:
            return self.tables[node]
        cells, counts = self._smallest_below(node)
        whole = len(cells) == len(self.heads)
        parts = [self._codes(c, level) for c, level in enumerate(node)]
        bounds = [column.size(level) for column, level in zip(self.columns, node, strict=True)]
        merged = together(
            parts if whole else [part[cells] for part in parts], bounds, counts=counts
        )
        made = cells[merged.head], merged.sizes
        # Tables nearly as large as the one they were made of are not worth their memory.
        if 2 * len(made[0]) <= len(cells):
            self.tables[node] = made
        return made

    def lost_rows(self, node: Node) -> int:
        """Rows in classes that are too small."""
        if node not in self.lost:
            _, sizes = self.classes(node)
            self.lost[node] = int(sizes[sizes < self.k].sum())
            self.progress(f"searching: {len(self.lost)} combinations of levels tried")
        return self.lost[node]

    def found(self, node: Node) -> Found | None:
        """The node, if it keeps the promise."""
        suppressed = self.lost_rows(node)
        if suppressed > self.allowed:
            return None
        cells, sizes = self.classes(node)
        kept = sizes >= self.k
        lost = np.zeros(len(cells))
        for place, level in enumerate(node):
            lost += self.columns[place].loss[level][self._codes(place, level)[cells]]
        total = float(lost[kept] @ sizes[kept]) / len(node) + suppressed
        return Found(node=node, loss=total / max(self.rows, 1), suppressed=suppressed)

    def _smallest_below(self, node: Node) -> tuple[Ints, Ints]:
        below = (m for m in self.tables if all(a <= b for a, b in zip(m, node, strict=True)))
        return self.tables[min(below, key=lambda m: len(self.tables[m][0]))]

    def _codes(self, column: int, level: int) -> NDArray[np.int32]:
        """The codes of all cells at a level, looked up once."""
        if (column, level) not in self.codes:
            exact = self.columns[column].codes[self.heads]
            self.codes[column, level] = self.columns[column].up[level][exact].astype(np.int32)
        return self.codes[column, level]


def optimal(lattice: Lattice) -> Found:
    """The node of smallest loss among all that keep the promise.

    Proof: nodes are visited in the order of their loss without suppression, a lower bound of the
    loss, until the bound reaches the best loss found. A node is skipped only when one above it
    failed, and then it fails too (head of this module).
    """
    sizes = [height + 1 for height in lattice.top]
    if math.prod(sizes) > LARGEST_LATTICE:
        raise Unsupported(
            f"The lattice has {math.prod(sizes):,} combinations of levels, more than "
            f"{LARGEST_LATTICE:,}: use method='greedy' or 'local', or fewer levels."
        )
    nodes = np.indices(sizes).reshape(len(sizes), -1).T
    lower = np.mean([lattice.marginal[c][nodes[:, c]] for c in range(len(sizes))], axis=0)
    failed = np.zeros(len(nodes), dtype=np.bool_)
    best = greedy(lattice)
    for place in np.argsort(lower, kind="stable"):
        if lower[place] >= best.loss - _ROUNDING:
            break
        if failed[place]:
            continue
        first, below = _first_on_chain(lattice, tuple(map(int, nodes[place])))
        if below is not None:
            failed |= (nodes <= np.array(below)).all(axis=1)
        best = first if first.loss < best.loss else best
    return best


def greedy(lattice: Lattice) -> Found:
    """Up the cheapest way until the promise is kept, then down, or sideways, while that is better.

    Heuristic: no theorem. The node keeps the promise. No step down, and no step down in one column
    with a step up in another, would lose less.
    """
    here, _ = _first_on_chain(lattice, (0,) * len(lattice.columns))
    while (better := _better(lattice, here)) is not None:
        here = better
    return here


def _better(lattice: Lattice, here: Found) -> Found | None:
    """A neighbour that loses less, the most promising first; what cannot is not looked at."""
    down = [_moved(here.node, c, -1) for c, level in enumerate(here.node) if level > 0]
    aside = [up for node in down for up in _steps_up(lattice, node) if up != here.node]
    for node in sorted([*down, *aside], key=lattice.lower):
        if lattice.lower(node) >= here.loss - _ROUNDING:
            return None
        found = lattice.found(node)
        if found is not None and found.loss < here.loss:
            return found
    return None


def _moved(node: Node, column: int, step: int) -> Node:
    return (*node[:column], node[column] + step, *node[column + 1 :])


def _steps_up(lattice: Lattice, node: Node) -> list[Node]:
    return [_moved(node, c, 1) for c, top in enumerate(lattice.top) if node[c] < top]


def _first_on_chain(lattice: Lattice, node: Node) -> tuple[Found, Node | None]:
    """The first node that keeps the promise on a way to the top, and the one before it."""
    chain = [node]
    while chain[-1] != lattice.top:
        chain.append(min(_steps_up(lattice, chain[-1]), key=lattice.lower))
    low, high = -1, len(chain) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if lattice.lost_rows(chain[middle]) <= lattice.allowed:
            high = middle
        else:
            low = middle
    first = lattice.found(chain[high])
    assert first is not None  # noqa: S101 - the top has one class of all rows
    return first, chain[low] if low >= 0 else None
