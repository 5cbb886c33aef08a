"""MWEM: multiplicative weights on what was found to be most wrong (F38); no prior error."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import check, events
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import Relation, trusted
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.laplace import laplace
from discreet.mechanisms.selection import Exponential, exponential
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats, Ints
from discreet.queries.budget import Budget
from discreet.queries.ranges.aware import NO_PRIOR_ERROR, AwareRelease
from discreet.queries.ranges.grid import (
    Ends,
    Grid,
    GridWorkload,
    corners,
    listed_rectangles,
    signed_sums,
)
from discreet.queries.ranges.strategy import Contribution, group_move

_ROUNDS = 10
_REPLAYS = 10
_LARGEST_TOTAL = 1 << 50
"""Below this, counts are exact in doubles."""


@dataclass(frozen=True, kw_only=True)
class Mwem:
    """Rounds of choosing the worst rectangle of a workload, measuring it, and reweighting."""

    grid: Grid
    workload: GridWorkload
    budget: Budget
    rounds: int = _ROUNDS
    relation: Relation = Relation.ADD_REMOVE
    contribution: Contribution = field(default_factory=Contribution)

    def __post_init__(self) -> None:
        check.count("rounds", self.rounds)
        if self.budget.epsilon is None or self.budget.delta is not None:
            raise Unsupported("MWEM needs a pure budget: epsilon alone.")
        trusted(self.relation)
        self._rectangles()  # refuses too many, before the data

    @property
    def each(self) -> Fraction:
        """What every choice and every measurement costs; the total is one measurement more."""
        return check.positive("epsilon", self.budget.epsilon) / (2 * self.rounds + 1)

    @property
    def choosing(self) -> Exponential:
        """Picks a rectangle whose estimate is far off."""
        return exponential(sensitivity=self._moved, epsilon=self.each, relation=self.relation)

    @property
    def measuring(self) -> Additive:
        """Counts one rectangle with noise."""
        return laplace(
            sensitivity=self._moved, epsilon=self.each, on="integers", relation=self.relation
        )

    @property
    def guarantee(self) -> Guarantee:
        """What a release costs.

        Theorem: epsilon-DP under ``relation``.
        Proof: the count of a rectangle moves by at most ``group_move`` of one entry; so does its
            distance from an estimate, rounded to an integer, that depends on earlier releases
            only. One measurement of the total, and in each round a choice and a measurement, are
            composed adaptively; all the rest is post-processing.
        Source: Hardt, Ligett, McSherry 2012. F38.
        Needs: units keep to the contribution.
        """
        both = [self.choosing.guarantee.event, self.measuring.guarantee.event]
        parts = [self.measuring.guarantee.event, *both * self.rounds]
        return Guarantee(events.compose(parts), self.relation)

    def release(self, counts: ArrayLike, *, bits: Bits | None = None) -> AwareRelease:
        """Estimates of all cells, which sum to the noisy total."""
        cells = np.asarray(counts)
        if cells.shape != self.grid.shape or cells.dtype.kind not in "iu":
            raise OutOfDomain(f"counts must be an array of {self.grid.shape} integers.")
        source = source_of(bits)
        most = _LARGEST_TOTAL // self.grid.size
        ends = self._rectangles()
        table = corners(np.clip(cells, 0, most).astype(np.float64))
        exact: Ints = signed_sums(table, ends).astype(np.int64)
        whole = int(table[(-1,) * table.ndim])
        total = max(1.0, float(self.measuring.release(whole, bits=source)))
        found = np.full(self.grid.shape, total / self.grid.size)
        seen: list[tuple[tuple[slice, ...], float]] = []
        average = np.zeros(self.grid.shape)
        for _ in range(self.rounds):
            guess = np.rint(signed_sums(corners(found), ends)).astype(np.int64)
            worst = self.choosing.release(np.abs(exact - guess), bits=source)
            value = float(self.measuring.release(int(exact[worst]), bits=source))
            box = tuple(slice(int(a[worst]), int(b[worst]) + 1) for a, b in ends)
            seen.append((box, value))
            found = _reweighted(found, seen, total)
            average += found / self.rounds
        return AwareRelease(
            grid=self.grid,
            cells=average,
            method=f"MWEM, {self.rounds} rounds",
            guarantee=self.guarantee,
            private=source.private,
        )

    def describe(self) -> str:
        """In a few words."""
        return f"MWEM, {self.rounds} rounds ({NO_PRIOR_ERROR})"

    @property
    def _moved(self) -> int:
        return group_move(self.contribution, self.relation, entries=1, cells=self.grid.size).l1

    def _rectangles(self) -> Ends:
        ends, _ = listed_rectangles(self.workload, self.grid.shape)
        if not ends[0][0].size:
            raise InvalidArgument("the workload must have at least one rectangle.")
        return ends


def _reweighted(cells: Floats, seen: list[tuple[tuple[slice, ...], float]], total: float) -> Floats:
    """Multiplicative updates with all that was measured, several times over."""
    found = cells.copy()
    for _ in range(_REPLAYS):
        for box, value in seen:
            # Bounded, so that one wild measurement does not overflow: post-processing anyway.
            step = np.clip((value - found[box].sum()) / (2 * total), -20.0, 20.0)
            found[box] *= np.exp(step)
            found *= total / found.sum()
    return found
