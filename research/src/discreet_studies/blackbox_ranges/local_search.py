"""The local search of Aoutouf 2021 with true slacks: it keeps its constraint, and can stall.

One center for each area, in whole steps. Training data sets pull the center of their area one step
at a time; neighbors that would be left behind are moved along; where nothing can move, areas
without data are brought nearer to those with data. `descent` finds the optimum instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats, Ints
from discreet_studies.blackbox_ranges.area_tables import Adjacency, neighbors, ranks

SCHEDULE = (0, 1, 2, 3, 1)
"""Ranks whose followers are moved in one synchronization, as listed (A12)."""
Ending: TypeAlias = Literal["quiet", "stuck", "epochs"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchTask:
    """What a search is given: all of it public."""

    shape: tuple[int, ...]
    areas: Ints
    """Of each training data set, as one number."""
    targets: Floats
    """Outputs in steps."""
    width: int
    """The target sensitivity in steps; neighboring centers may differ by half of it."""
    adjacency: Adjacency = "replace"
    epochs: int = 500
    patience: int = 2
    """Quiet epochs before the end, and simple synchronizations (the text's ``count_max``)."""
    min_change: float = 1e-4

    def __post_init__(self) -> None:
        if len(self.areas) == 0 or self.areas.shape != self.targets.shape:
            raise InvalidArgument("A search needs one area for each of its outputs, and some.")
        if not np.isfinite(self.targets).all():
            raise InvalidArgument("Outputs on public inputs must be finite.")
        count("width", self.width)
        count("epochs", self.epochs)
        count("patience", self.patience, minimum=0)

    @property
    def start(self) -> int:
        """The first value of all centers: the mean of all outputs (A7)."""
        return round(float(self.targets.mean()))

    @property
    def by_rank(self) -> list[list[int]]:
        """Areas of rank 0 to 4, and all others."""
        trained = np.zeros(self.shape, dtype=bool)
        trained.ravel()[self.areas] = True
        found = np.minimum(ranks(trained, adjacency=self.adjacency).ravel(), 5)
        return [np.flatnonzero(found == rank).tolist() for rank in range(6)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """Centers in steps, and how the search went."""

    centers: Ints
    epochs: int
    syncs: int
    ending: Ending

    def loss(self, task: SearchTask) -> float:
        """Mean distance of the outputs from their centers, in steps."""
        return float(np.abs(task.targets - self.centers.ravel()[task.areas]).mean())


class Centers:
    """Centers with their slacks, kept up to date with every move; moves can be taken back (A8-A10).

    ``up[a]`` steps may a climb before a neighbor below is left behind by more than ``most``;
    ``down[a]`` the same downwards. Both are at most ``most``.
    """

    def __init__(self, values: Iterable[int], near: list[list[int]], *, most: int) -> None:
        self.values = list(values)
        self.near = near
        self.most = most
        self.up = [0] * len(self.values)
        self.down = [0] * len(self.values)
        self._refresh(range(len(self.values)))

    def slack(self, area: int) -> tuple[int, int]:
        """Both slacks from scratch."""
        here = self.values[area]
        others = [self.values[b] for b in self.near[area]]
        return (
            self.most - max(0, here - min(others, default=here)),
            self.most - max(0, max(others, default=here) - here),
        )

    def _refresh(self, areas: Iterable[int]) -> None:
        for area in areas:
            self.up[area], self.down[area] = self.slack(area)

    def shift(self, moved: Iterable[int], by: int) -> None:
        """Move areas together; the slacks of these and of their neighbors follow."""
        group = set(moved)
        for area in group:
            self.values[area] += by
        self._refresh(group.union(*(self.near[area] for area in group)))

    def consistent(self, areas: Iterable[int]) -> bool:
        """Whether none of these has a neighbor too far away."""
        return all(self.up[area] >= 0 and self.down[area] >= 0 for area in areas)

    def pull(self, area: int, by: int, *, fixed: AbstractSet[int] = frozenset()) -> list[int]:
        """Move an area, and neighbors that it leaves behind; the areas moved, or none.

        A move that would leave anything inconsistent is taken back whole.
        """
        slack = self.up if by > 0 else self.down
        group = [area]
        if slack[area] < 1:
            here = self.values[area] + by
            group += [b for b in self.near[area] if abs(here - self.values[b]) > self.most]
        if not fixed.isdisjoint(group):
            return []
        self.shift(group, by)
        if self.consistent(group):
            return group
        self.shift(group, -by)
        return []

    def fill(self, value: int) -> None:
        """All areas at one value."""
        self.values = [value] * len(self.values)
        self._refresh(range(len(self.values)))


def synchronize(centers: Centers, by_rank: list[list[int]], *, rank: int) -> int:
    """Move areas after ``rank`` toward the mean of their neighbors of that rank (A12).

    Every area moves by one step at most, and none that is nearer to the data. Returns how many
    moved.
    """
    first = set(by_rank[rank])
    fixed = {area for areas in by_rank[: rank + 1] for area in areas}
    before = len(fixed)
    for area in by_rank[rank + 1]:
        known = [centers.values[b] for b in centers.near[area] if b in first]
        if not known or area in fixed:
            continue
        away = round(sum(known) / len(known)) - centers.values[area]
        if away:
            fixed.update(centers.pull(area, 1 if away > 0 else -1, fixed=fixed))
    return len(fixed) - before


def search(task: SearchTask) -> SearchResult:
    """Centers by the search of Aoutouf 2021, corrected: no gap ever exceeds half the width.

    An epoch is quiet if centers moved by at most ``min_change`` steps in the mean, or if the loss
    did not fall below the best so far. The search ends after ``patience + 1`` quiet epochs in a
    row (with any ``min_change``: the loss cannot fall for ever), or when no epoch is left.
    """
    lines = neighbors(task.shape, adjacency=task.adjacency)
    near = [[b for line in area for b in line] for area in lines]
    centers = Centers([task.start] * len(near), near, most=task.width // 2)
    run = _Run(task)
    best, found = math.inf, list(centers.values)
    quiet = 0
    for epoch in range(1, task.epochs + 1):
        before = list(centers.values)
        run.epoch(centers)
        change = sum(abs(a - b) for a, b in zip(before, centers.values, strict=True)) / len(near)
        loss = float(np.abs(task.targets - np.array(centers.values)[task.areas]).sum())
        quiet = quiet + 1 if change <= task.min_change or loss >= best else 0
        if loss < best:
            best, found = loss, list(centers.values)
        if quiet > task.patience:
            return _found(task, found, epoch, run.syncs, "quiet")
    return _found(task, found, task.epochs, run.syncs, "epochs")


class _Run:
    """One pass over the training data after the other."""

    def __init__(self, task: SearchTask) -> None:
        self.pulls = list(zip(task.areas.tolist(), task.targets.tolist(), strict=True))
        self.by_rank = task.by_rank
        self.simple = task.patience
        self.syncs = 0

    def epoch(self, centers: Centers) -> None:
        """Every data set pulls once; the first that is blocked has the areas synchronized."""
        synchronized = False
        for area, target in self.pulls:
            away = target - centers.values[area]
            if abs(away) <= 0.5 or centers.pull(area, 1 if away > 0 else -1) or synchronized:
                continue
            synchronized = True
            if self.by_rank[2]:
                for rank in SCHEDULE:
                    synchronize(centers, self.by_rank, rank=rank)
            elif self.simple:
                centers.fill(sum(centers.values) // len(centers.values))
                self.simple -= 1
            else:
                continue
            self.syncs += 1


def _found(
    task: SearchTask, values: list[int], epochs: int, syncs: int, ending: Ending
) -> SearchResult:
    centers = np.array(values, dtype=np.int64).reshape(task.shape)
    return SearchResult(centers=centers, epochs=epochs, syncs=syncs, ending=ending)
