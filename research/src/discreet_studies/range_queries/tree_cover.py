"""How a range is put together from nodes of a tree: two runs of neighbors on each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.noise.distribution import Floats, Ints

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRuns:
    """The nodes of one height in the cover of many ranges: [left, left_end) and [right, right_end).

    Both runs are empty where a range needs no node of this height.
    """

    height: int
    left: Ints
    left_end: Ints
    right: Ints
    right_end: Ints

    @property
    def nodes(self) -> Ints:
        """How many nodes of this height each range needs."""
        return self.left_end - self.left + self.right_end - self.right

    def mass(self, counts: NDArray[Number]) -> NDArray[Number]:
        """What the nodes hold together, for the counts of this height."""
        before = running(counts)
        return (
            before[self.left_end] - before[self.left] + before[self.right_end] - before[self.right]
        )

    def incidence(self, size: int) -> Floats:
        """A row for each range with a one for each node in its cover."""
        place = np.arange(size)

        def run(start: Ints, end: Ints) -> Floats:
            inside = (start[:, None] <= place) & (place < end[:, None])
            return inside.astype(np.float64)

        return run(self.left, self.left_end) + run(self.right, self.right_end)


def running(values: NDArray[Number]) -> NDArray[Number]:
    """Sums of the first 0, 1, 2, ... values."""
    return np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(values)])


def height(domain: int, *, degree: int) -> int:
    """Levels above the leaves: the smallest h with degree**h >= domain, by integers (M23)."""
    levels, leaves = 0, 1
    while leaves < domain:
        levels, leaves = levels + 1, leaves * degree
    return levels


def starts(domain: int, *, length: int) -> Ints:
    """The first bin of every range with exactly ``length`` bins (F19)."""
    return np.arange(domain - length + 1, dtype=np.int64)


def cover(first: Ints, *, length: int, degree: int, top: int) -> list[NodeRuns]:
    """The fewest nodes of heights 0 to ``top`` that make up [first, first + length)  # F9."""
    low, high = first, first + length
    none = np.zeros_like(first)
    active = np.ones(first.shape, dtype=bool)
    found = []
    for level in range(top + 1):
        inner, outer = -(-low // degree), high // degree
        ends = (inner >= outer) | (level == top)
        stop, go = active & ends, active & ~ends
        left_end = np.where(stop, high, inner * degree)
        found.append(
            NodeRuns(
                height=level,
                left=np.where(active, low, none),
                left_end=np.where(active, left_end, none),
                right=np.where(go, outer * degree, none),
                right_end=np.where(go, high, none),
            )
        )
        low, high, active = np.where(go, inner, none), np.where(go, outer, none), go
    return found


def padded(counts: Ints, *, degree: int) -> Ints:
    """Counts with empty bins up to a whole tree."""
    leaves = degree ** height(len(counts), degree=degree)
    return np.concatenate([counts, np.zeros(leaves - len(counts), dtype=np.int64)])


def level_counts(counts: Ints, *, degree: int, top: int) -> list[Ints]:
    """The exact counts of the nodes, height by height."""
    levels = [padded(counts, degree=degree)]
    for _ in range(top):
        levels.append(levels[-1].reshape(-1, degree).sum(axis=1))
    return levels
