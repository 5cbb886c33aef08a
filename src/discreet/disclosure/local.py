"""Local recoding: every class has its own levels, found from the top down.

All rows begin as one class. A class is split along the column in which it is coarsest, into the
groups of the next finer level; groups that would be too small stay together at the level they had.
The idea is that of Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), along public hierarchies: no
border is read from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.disclosure.classes import Flags, Floats, Ints, together, total
from discreet.disclosure.hierarchy import Coded


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """The levels of every row, column by column."""

    levels: tuple[Ints, ...] = field(repr=False)
    loss: float


@dataclass(slots=True)
class _State:
    """Cells (different rows) in classes, and the levels of each class."""

    codes: list[Ints]
    counts: Ints
    k: int
    of: Ints
    levels: Ints
    open: Flags
    """Columns along which a class may still be split."""
    ups: list[Ints]
    losses: list[Floats]

    def split(self) -> bool:
        """Split every class that can be split, once; False when none can."""
        heads = np.zeros(len(self.levels), dtype=np.int64)
        heads[self.of] = np.arange(len(self.of))
        able = self.open & (self.levels > 0)
        lost = [
            losses[self.levels[:, c], self.codes[c][heads]] for c, losses in enumerate(self.losses)
        ]
        choice = np.where(able, np.stack(lost, axis=1), -1.0).argmax(axis=1)
        choice[~able.any(axis=1)] = -1
        # Classes made along one column of this round wait for the next round.
        chosen = choice[self.of]
        for c in range(len(self.codes)):
            cells = np.flatnonzero(chosen == c)
            if len(cells):
                self._split_along(c, cells)
        return bool((choice >= 0).any())

    def _split_along(self, c: int, cells: Ints) -> None:
        """Split the classes of these cells along one column.

        Groups of their own become classes one level finer. What stays is closed for the column,
        and a class of which nothing stays is closed altogether.
        """
        parent = self.of[cells]
        child = self.ups[c][self.levels[parent, c] - 1, self.codes[c][cells]]
        bounds = [len(self.levels), int(self.ups[c].max()) + 1]
        groups = together([parent, child], bounds, counts=self.counts[cells])
        origin = parent[groups.head]
        alone = self._alone(origin, groups.sizes)
        levels, inherited = self.levels[origin[alone]], self.open[origin[alone]]
        levels[:, c] -= 1
        self.open[origin[alone]] &= _rest(origin, alone, len(self.levels))[origin[alone], None]
        self.open[origin[~alone], c] = False
        new = np.cumsum(alone) - 1 + len(self.levels)
        moved = alone[groups.of]
        self.of[cells[moved]] = new[groups.of[moved]]
        self.levels = np.concatenate([self.levels, levels])
        self.open = np.concatenate([self.open, inherited])

    def _alone(self, origin: Ints, sizes: Ints) -> Flags:
        """Which groups become classes of their own; the others of a class stay together."""
        alone = sizes >= self.k
        rest = total(origin[~alone], len(self.levels), sizes[~alone])
        short = (rest > 0) & (rest < self.k)
        # A rest that is too small takes in the smallest of the others.
        order = np.lexsort((sizes, ~alone, origin))
        smallest = order[np.unique(origin[order], return_index=True)[1]]
        alone[smallest[short[origin[smallest]]]] = False
        return alone


def _rest(origin: Ints, alone: Flags, classes: int) -> Flags:
    """Which classes keep something."""
    return np.bincount(origin[~alone], minlength=classes) > 0


def recode(
    columns: Sequence[Coded], *, k: int, progress: Callable[[str], None] = lambda _: None
) -> Recoded:
    """Levels for every row such that each class has at least k rows (if there are so many in all).

    Theorem: every class of the result has at least k rows.
    Proof: the first class has all rows. A split makes classes of at least k rows, and leaves a
        rest that is empty or has at least k rows (a smaller rest takes in another group, and if
        there is none, nothing is split). Classes with the same label only merge.
    Source: after LeFevre, DeWitt, Ramakrishnan 2006.
    """
    cells = together([column.codes for column in columns], [column.size(0) for column in columns])
    state = _State(
        codes=[column.codes[cells.head] for column in columns],
        counts=cells.sizes,
        k=k,
        of=np.zeros(len(cells.head), dtype=np.int64),
        levels=np.array([[column.height for column in columns]], dtype=np.int64),
        open=np.ones((1, len(columns)), dtype=np.bool_),
        ups=[np.stack(column.up) for column in columns],
        losses=[
            np.stack([column.loss[i][column.up[i]] for i in range(column.height + 1)])
            for column in columns
        ],
    )
    rounds = 0
    while len(cells.head) and state.split():
        rounds += 1
        progress(f"splitting: round {rounds}")
    levels = state.levels[state.of]
    lost = sum(
        float(state.losses[c][levels[:, c], state.codes[c]] @ state.counts)
        for c in range(len(columns))
    )
    rows = max(len(cells.of), 1)
    return Recoded(
        levels=tuple(levels[cells.of, c] for c in range(len(columns))),
        loss=lost / len(columns) / rows,
    )
