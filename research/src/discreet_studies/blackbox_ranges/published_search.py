"""The local search as it is printed in Aoutouf 2021, with everything that is wrong with it.

For studies: buffers are exchanged where they should be recomputed, neighbors are moved along one
ring deep, undoing is no inverse. What it finds may break its own constraint, and must not be used
without the certificate of `Prototype`.
"""

from __future__ import annotations

import numpy as np

from discreet_studies.blackbox_ranges.area_tables import neighbors
from discreet_studies.blackbox_ranges.local_search import SCHEDULE, Ending, SearchResult, SearchTask


class Listing:
    """The state of the listing: centers and two buffers for each area."""

    def __init__(self, task: SearchTask, *, start: int | None = None) -> None:
        self.task = task
        self.near = neighbors(task.shape, adjacency=task.adjacency)
        self.flat = [[b for line in area for b in line] for area in self.near]
        many = len(self.near)
        self.full = task.width / 2
        self.c = [task.start if start is None else start] * many
        self.far = [0] * many
        self.lower = [self.full] * many
        self.upper = [self.full] * many
        self.by_rank = self._ranks()
        self.of_rank = [frozenset(areas) for areas in self.by_rank]
        # A loop of the listing reads this variable of another loop (M5 d).
        self.position = len(task.shape) - 1

    def _ranks(self) -> list[list[int]]:
        """In the order in which the listing finds them."""
        found: list[list[int]] = [list(dict.fromkeys(self.task.areas.tolist()))]
        seen = set(found[0])
        for _ in range(4):
            following: list[int] = []
            for area in found[-1]:
                for line in self.near[area]:
                    following += [b for b in line if b not in seen]
                    seen.update(line)
            found.append(following)
        return [*found, [area for area in range(len(self.near)) if area not in seen]]

    def too_far(self, a: int, b: int) -> bool:
        """Whether two centers are more than half the width apart."""
        return 2 * abs(self.c[a] - self.c[b]) > self.task.width

    def refresh(self, area: int) -> None:
        """A8 as listed: the sides are exchanged, on purpose."""
        lower, upper = self.lower[area], self.upper[area]
        if self.far[area]:
            here, half = self.c[area], self.full
            for b in self.flat[area]:
                away = here - self.c[b]
                if away > half:
                    lower = min(lower, self.upper[b])
                elif -away > half:
                    upper = min(upper, self.lower[b])
        self.lower[area], self.upper[area] = upper, lower

    def move(self, area: int, s: int) -> None:
        """Shift a center, and count anew how many neighbors are too far away from whom."""
        here, half = self.c[area], self.full
        there = self.c[area] = here + s
        for b in self.flat[area]:
            value = self.c[b]
            change = (abs(there - value) > half) - (abs(here - value) > half)
            if change:
                self.far[area] += change
                self.far[b] += change

    def exchange(self, areas: list[int]) -> None:
        """A refresh against a list of numbers, in which no record is ever found (M5 c)."""
        for area in areas:
            self.lower[area], self.upper[area] = self.upper[area], self.lower[area]

    def has_buffer(self, area: int, s: int) -> bool:
        """Whether an area may move."""
        return min(self.lower[area] - s, self.upper[area] + s) >= 0

    def update(self, current: int, area: int, s: int, log: Moves, above: frozenset[int]) -> None:
        """A9 as listed: move a neighbor along."""
        self.move(area, s)
        if self.lower[area] - s <= self.full:
            self.lower[area] -= s
            log.lower.add(area)
        else:
            self.lower[area] = self.full
        if self.upper[area] + s <= self.full:
            self.upper[area] += s
            log.upper.add(area)
        else:
            self.upper[area] = self.full
        log.moved.append(area)
        for _ in self.task.shape:
            for b in self.near[area][self.position]:
                if b not in {current, area} and b not in above:
                    self.refresh(b)

    def undo(self, current: int, s: int, log: Moves) -> None:
        """A10 as listed: buffers of the current area and of second neighbors stay as they are."""
        self.move(current, -s)
        for area in log.moved:
            self.move(area, -s)
            if area in log.lower:
                self.lower[area] = min(self.lower[area] + s, self.full)
            if area in log.upper:
                self.upper[area] = min(self.upper[area] - s, self.full)

    def synchronize(self) -> None:
        """The schedule of A12 as listed."""
        for rank in SCHEDULE:
            self._follow(rank)

    def _follow(self, rank: int) -> None:
        first, second = self.by_rank[rank], self.by_rank[rank + 1]
        if any(self.far[area] for area in first):  # else two exchanges change nothing
            for area in first * 2:
                self.refresh(area)
        for area in second:
            known = [self.c[b] for b in self.flat[area] if b in self.of_rank[rank]]
            away = round(sum(known) / len(known)) - self.c[area] if known else 0
            if not away:
                continue
            s = 1 if away > 0 else -1
            if self.has_buffer(area, s):
                self._toward(area, s, self.of_rank[rank + 2])
            # Of the listing's seven refreshes an odd number meets this rank only.
            self.exchange(second)

    def _toward(self, area: int, s: int, above: frozenset[int]) -> None:
        self.move(area, s)
        upper = min(self.upper[area] + s, self.full)
        lower = min(self.lower[area] - s, self.full)
        log = Moves()
        for line in self.near[area]:
            for b in line:
                if self.too_far(area, b):
                    if not self.has_buffer(b, s):
                        self.undo(area, s, log)
                        return
                    self.update(area, b, s, log, above)
                if 2 * (self.c[area] - self.c[b]) > self.task.width:
                    lower = min(lower, self.lower[b])
                elif 2 * (self.c[b] - self.c[area]) > self.task.width:
                    upper = min(upper, self.upper[b])
        self.lower[area], self.upper[area] = upper, lower

    def fill(self) -> None:
        """A11: all areas at the mean."""
        mean = int(np.mean(self.c))
        many = len(self.c)
        self.c = [mean] * many
        self.far = [0] * many
        self.lower, self.upper = [self.full] * many, [self.full] * many


class Moves:
    """What was moved along, and whose buffers followed."""

    def __init__(self) -> None:
        self.moved: list[int] = []
        self.lower: set[int] = set()
        self.upper: set[int] = set()


class _PublishedRun:
    """Counters of the main loop."""

    def __init__(self) -> None:
        self.syncs = self.simple = self.count = 0
        self.forced = True
        self.stopped = False


def search_as_published(task: SearchTask, *, start: int | None = None) -> SearchResult:
    """Centers by A14 as printed; where the print lost its indentation, the plainest reading.

    ``start``: in the listing the mean of the first hundred outputs, by default that of all.
    """
    state, run = Listing(task, start=start), _PublishedRun()
    ending: Ending = "epochs"
    epoch = 0
    while epoch < task.epochs:
        epoch += 1
        before = np.array(state.c)
        for area, target in zip(task.areas.tolist(), task.targets.tolist(), strict=True):
            away = target - state.c[area]
            if abs(away) > 0.5:
                _sample(state, run, area, 1 if away > 0 else -1)
            if run.stopped:
                break
        change = np.abs(before - np.array(state.c)).mean() * len(task.areas) / len(state.c)
        quiet = task.min_change > change
        done = quiet and run.count > task.patience
        run.count += quiet and not done
        if run.count >= task.patience - 1 and run.forced:
            run.forced = False
            state.synchronize()
            run.syncs += 1
        if done or run.stopped:
            ending = "stuck" if run.stopped else "quiet"
            break
    centers = np.array(state.c, dtype=np.int64).reshape(task.shape)
    return SearchResult(centers=centers, epochs=epoch, syncs=run.syncs + run.simple, ending=ending)


def _sample(state: Listing, run: _PublishedRun, area: int, s: int) -> None:
    """One training data set pulls at its area."""
    if not state.has_buffer(area, s):
        return
    state.move(area, s)
    state.lower[area] = min(state.lower[area] - s, state.full)
    state.upper[area] = min(state.upper[area] + s, state.full)
    log = Moves()
    for position, line in enumerate(state.near[area]):
        state.position = position
        for b in line:
            if not state.too_far(area, b):
                continue
            if state.has_buffer(b, s):
                state.update(area, b, s, log, state.of_rank[2])
                continue
            _blocked(state, run, area, s, log)
            state.refresh(area)
            return
    state.refresh(area)


def _blocked(state: Listing, run: _PublishedRun, area: int, s: int, log: Moves) -> None:
    if state.by_rank[2]:
        state.undo(area, s, log)
        state.synchronize()
        run.forced = False
        run.syncs += 1
    elif run.simple < state.task.patience:
        state.fill()
        run.simple += 1
    else:
        state.undo(area, s, log)
        run.stopped = True
