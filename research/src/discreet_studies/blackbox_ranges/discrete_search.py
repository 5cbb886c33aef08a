"""A discrete search that does find the best centers: whole sets of areas move together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from discreet.core.errors import NotCertified
from discreet.noise.distribution import Ints
from discreet_studies.blackbox_ranges.area_tables import neighbors
from discreet_studies.blackbox_ranges.local_search import SearchTask

_MOST_MOVES = 10_000
_INFINITE = 1 << 29


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descended:
    """The best centers in steps, for outputs that are rounded to steps."""

    centers: Ints
    moves: int
    loss: int
    """Total distance of the rounded outputs from their centers: no centers have less."""


def descend(task: SearchTask) -> Descended:
    """Centers of least total distance whose gaps are at most half the width (A48)."""
    # Theorem: no centers on the grid, and none off it, have a smaller loss.
    # Proof: the loss is a sum of convex functions of one center each, the constraints bound
    #   differences: the problem is L-natural-convex, so a point is optimal if and only if no set of
    #   areas gains by moving one step up, or one step down (Murota 2003). The best set is a
    #   minimum cut: an area that moves up takes along every neighbor that is already `most`
    #   below. Differences are bounded by whole numbers, so that a best solution is whole (A30).
    # Source: A48; Murota 2003, Discrete convex analysis.
    # Needs: fewer than 2**29 training data sets.
    lines = neighbors(task.shape, adjacency=task.adjacency)
    pairs = np.array([(a, b) for a, area in enumerate(lines) for line in area for b in line])
    wanted = np.rint(task.targets).astype(np.int64)
    most = task.width // 2
    centers = np.full(len(lines), task.start, dtype=np.int64)
    for moves in range(_MOST_MOVES):
        found = max((_best_set(centers, task.areas, wanted, pairs, most, s) for s in (1, -1)),
                    key=lambda one: one[0])  # fmt: skip
        if found[0] <= 0:
            loss = int(np.abs(wanted - centers[task.areas]).sum())
            return Descended(centers=centers.reshape(task.shape), moves=moves, loss=loss)
        _, together, s = found
        gain = found[0]
        while gain > 0 and _feasible(centers + s * together, pairs, most):
            centers = centers + s * together
            gain = -int((_slopes(centers, task.areas, wanted, s) * together).sum())
    raise NotCertified("The descent did not end: give a coarser step.")


def _slopes(centers: Ints, areas: Ints, wanted: Ints, s: int) -> Ints:
    """By how much the loss of every area changes if its center moves by s."""
    here = centers[areas]
    change = np.abs(wanted - here - s) - np.abs(wanted - here)
    return np.bincount(areas, weights=change, minlength=len(centers)).astype(np.int64)


def _feasible(centers: Ints, pairs: Ints, most: int) -> bool:
    return bool((centers[pairs[:, 0]] - centers[pairs[:, 1]] <= most).all()) if len(pairs) else True


def _best_set(
    centers: Ints, areas: Ints, wanted: Ints, pairs: Ints, most: int, s: int
) -> tuple[int, Ints, int]:
    """The set of areas that gains most by moving by s, and how much: a minimum cut."""
    many = len(centers)
    gains = -_slopes(centers, areas, wanted, s)
    tight = np.empty((0, 2), dtype=np.int64)
    if len(pairs):
        tight = pairs[s * (centers[pairs[:, 0]] - centers[pairs[:, 1]]) >= most]
    source, sink = many, many + 1
    good, bad = np.flatnonzero(gains > 0), np.flatnonzero(gains < 0)
    if not len(good):
        return 0, np.zeros(many, dtype=np.int64), s
    rows = np.concatenate((np.full(len(good), source), bad, tight[:, 0]))
    columns = np.concatenate((good, np.full(len(bad), sink), tight[:, 1]))
    capacity = np.concatenate((gains[good], -gains[bad], np.full(len(tight), _INFINITE)))
    graph = sparse.csr_array(
        (capacity.astype(np.int32), (rows, columns)), shape=(many + 2, many + 2)
    )
    cut = maximum_flow(graph, source, sink)
    left: Any = graph - cut.flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    together = np.zeros(many + 2, dtype=np.int64)
    together[reached] = 1
    return int(gains[good].sum()) - int(cut.flow_value), together[:many], s
