"""Tables of a spine without negative cells, or in whole numbers: from the top to the bottom."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

import numpy as np

from discreet.marginals import _whole_numbers as whole_numbers
from discreet.marginals._margins_first import (
    CellsAboveZero,
    Margin,
    along_axis,
    largest,
    margins_first,
    part_variances,
    raked,
)
from discreet.marginals.design import Place, TableKey
from discreet.marginals.spine import SpineDesign
from discreet.noise.distribution import Floats, Ints


class SpineCellsAboveZero(CellsAboveZero):
    """Tables without negative cells, fitted to those of the level above and to their own margins.

    Tables of a level and one other column agree with all of these but for rounding; of two other
    columns and more they can miss them: `mismatch` says by how much.
    """

    def __init__(self, design: SpineDesign, parts: Mapping[Place, Floats]) -> None:
        rests = largest([design.spine.split(table)[1] for table in design.tables])
        variances = {place: float(each[0][0]) for place, each in design.node_variances.items()}
        top = margins_first(
            {rest: design.table(rest, parts) for rest in rests},
            part_variances(design.columns, variances),
            [column.size for column in design.columns],
        )
        super().__init__(top)
        self._design, self._linear = design, parts

    def table(self, table: TableKey) -> Floats:
        """The cells of one table."""
        # Proof: a level that adds up to the one above, and tables whose margins add up to the same
        #   margins above, exist without negative cells: cells in proportion, for one other column.
        spine = self._design.spine
        level, rest = spine.split(table)
        if not level:
            return super().table(table)
        if table not in self._known:
            above = self._nodes(level - 1, rest, self.table(spine.joined(level - 1, rest)))
            linear = self._nodes(level, rest, self._design.table(table, self._linear))
            cells = on_simplexes(linear, above, spine.parents[level - 1])
            margins: list[Margin] = []
            for axis, i in enumerate(rest, 1):
                fewer = tuple([k for k in rest if k != i])
                wanted = self._nodes(level, fewer, self.table(spine.joined(level, fewer)))
                margins.append(along_axis(axis, wanted))
            if margins:
                summed = partial(spine.summed, level=level)
                margins.append((summed, above, lambda held: held[spine.parents[level - 1]]))
                cells, missed = raked(cells, margins)
                self.mismatch = max(self.mismatch, missed)
            self._known[table] = np.moveaxis(cells, 0, self._axis(level, rest))
        return self._known[table]

    def rounded(self, table: TableKey, total: int) -> Ints:
        """The cells of one table in whole numbers that add up to the total, level by level."""
        spine = self._design.spine
        level, rest = spine.split(table)
        nodes = self._nodes(level, rest, self.table(table))
        found = whole_numbers.rounded_spine(nodes, spine.parents[:level], total)
        return np.moveaxis(found, 0, self._axis(level, rest)) if level else found[0]

    def _nodes(self, level: int, rest: TableKey, cells: Floats) -> Floats:
        """The cells of a table with its nodes as the first axis; one, above all levels."""
        return np.moveaxis(cells, self._axis(level, rest), 0) if level else cells[None]

    def _axis(self, level: int, rest: TableKey) -> int:
        own = self._design.spine.columns[level - 1]
        return sum(i < own for i in rest)


def on_simplexes(cells: Floats, above: Floats, parents: Ints) -> Floats:
    """The nearest cells >= 0 whose sums over the nodes of each parent, the first axis, are given.

    A sum of nothing stays nothing, and what is wanted of it is lost.
    """
    # Proof: the projection on a simplex takes the same off all cells and cuts at zero; off the k
    #   largest it takes their sum less the wanted one, over k, for the largest k that leaves them
    #   above zero (Held, Wolfe, Crowder 1974).
    found = np.zeros_like(cells)
    order = np.argsort(parents, kind="stable")
    bounds = np.searchsorted(parents[order], np.arange(len(above) + 1))
    for parent, (start, end) in enumerate(pairwise(bounds.tolist())):
        if start == end:
            continue
        own = cells[order[start:end]]
        falling = -np.sort(-own, axis=0)
        many = np.arange(1, end - start + 1).reshape(-1, *[1] * (own.ndim - 1))
        offs = (falling.cumsum(axis=0) - above[parent]) / many
        kept = np.maximum((falling > offs).sum(axis=0), 1)
        off = np.take_along_axis(offs, (kept - 1)[None], axis=0)
        found[order[start:end]] = np.maximum(own - off, 0)
    return found
