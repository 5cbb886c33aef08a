"""Partitions of people by their budgets, so that nobody's budget is wasted on the strictest (M35).

Sorted by budget, people are cut into runs; each run is used with the smallest budget in it. All
of this depends on the public budgets alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRuns:
    """Where sorted people are cut, and what it costs."""

    order: NDArray[np.intp]
    """People from the smallest budget to the largest."""
    ends: tuple[int, ...]
    """End of each run in that order; the last is the number of people."""
    epsilons: tuple[float, ...]
    """The budget at which each run is used: the smallest in it."""
    cost: float

    @property
    def parts(self) -> tuple[NDArray[np.intp], ...]:
        """The people of each run."""
        return tuple(np.split(self.order, self.ends[:-1]))


def privacy_aware(budgets: ArrayLike, *, runs: int, smallest: int = 1) -> BudgetRuns:
    """At most ``runs`` runs of at least ``smallest`` people that waste the least budget."""
    # Theorem: no partition into that many or fewer runs of sorted people has a smaller sum of
    #   squares of wasted budgets.
    # Proof: dynamic programming over the last cut. The waste of a run from i to j has the Monge
    #   property: its smallest member is its left end, so a later end adds at least as much to a
    #   run that starts earlier. Hence the best last cut moves monotonically, and halving the
    #   range finds all of them in O(n log n) for each run.
    # Source: Li et al. 2017; Muehl 2021, section 3.2.4 (M35), with a faster search.
    sorted_, order = _sorted(budgets)
    first = np.concatenate(([0.0], np.cumsum(sorted_)))
    second = np.concatenate(([0.0], np.cumsum(sorted_**2)))

    def waste(start: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
        low = sorted_[start]
        wasted: Floats = (
            second[end]
            - second[start]
            - 2 * low * (first[end] - first[start])
            + (end - start) * low**2
        )
        return np.maximum(wasted, 0)

    return _cut(sorted_, order, waste, runs=runs, smallest=smallest)


def utility_based(
    budgets: ArrayLike,
    *,
    loss: Callable[[NDArray[np.intp], Floats], ArrayLike],
    runs: int,
    smallest: int = 1,
) -> BudgetRuns:
    """Runs that minimize a sum of losses, each a function of a run's size and budget.

    ``loss(sizes, epsilons)``, vectorized. No structure is assumed: every last cut is tried, so it
    takes O(n^2) evaluations for each run; give it levels, not a million people.
    """
    sorted_, order = _sorted(budgets)

    def waste(start: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
        low = sorted_[start]
        return np.asarray(loss(end - start, low), dtype=np.float64)

    return _cut(sorted_, order, waste, runs=runs, smallest=smallest, monge=False)


_Waste = Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]


def _sorted(budgets: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    found = np.asarray(budgets, dtype=np.float64)
    if found.ndim != 1 or not found.size or not (np.isfinite(found) & (found > 0)).all():
        raise InvalidArgument("budgets must be positive and finite, one for each person.")
    order = np.argsort(found, kind="stable")
    return found[order], order


def _cut(
    sorted_: Floats,
    order: NDArray[np.intp],
    waste: _Waste,
    *,
    runs: int,
    smallest: int,
    monge: bool = True,
) -> BudgetRuns:
    people = len(sorted_)
    fewest = count("smallest", smallest)
    most = min(count("runs", runs), people // fewest)
    if most < 1:
        raise InvalidArgument(f"smallest must be at most the number of people, {people}.")
    ends = np.arange(fewest, people + 1)
    best = np.full(people + 1, np.inf)
    best[fewest:] = waste(np.zeros_like(ends), ends)
    cuts, costs = [], [float(best[people])]
    for _ in range(most - 1):
        best, last = _step(best, waste, fewest, monge=monge)
        cuts.append(last)
        costs.append(float(best[people]))
    chosen = int(np.argmin(costs))
    found = [people]
    for last in reversed(cuts[:chosen]):
        found.insert(0, int(last[found[0]]))
    return BudgetRuns(
        order=order,
        ends=tuple(found),
        epsilons=tuple(float(sorted_[start]) for start in [0, *found[:-1]]),
        cost=costs[chosen],
    )


def _step(
    best: Floats, waste: _Waste, fewest: int, *, monge: bool
) -> tuple[Floats, NDArray[np.intp]]:
    """One more run: for each end the smallest sum, and where the last run starts."""
    people = len(best) - 1
    sums, last = np.full(people + 1, np.inf), np.zeros(people + 1, dtype=np.intp)
    todo = [(fewest, people, 0, people)]
    while todo:
        low, high, left, right = todo.pop()
        if low > high:
            continue
        middle = (low + high) // 2
        # Never empty: ``left <= low - fewest`` holds at first, and in both halves.
        starts = np.arange(left, min(right, middle - fewest) + 1)
        tried = best[starts] + waste(starts, np.full_like(starts, middle))
        place = int(np.argmin(tried))
        found = int(starts[place])
        sums[middle], last[middle] = tried[place], found
        # Where nothing is possible yet, the first is found: nothing is lost for later ends.
        todo.append((low, middle - 1, left, found if monge else right))
        todo.append((middle + 1, high, found if monge else left, right))
    return sums, last
