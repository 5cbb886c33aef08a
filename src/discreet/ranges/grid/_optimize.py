"""The best boxes for a workload on a grid: which shapes, and how to share the budget (F30, F40)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations
from itertools import product as crossed

import numpy as np

from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, floats
from discreet.ranges.grid.box_strategy import BoxStrategy, drops
from discreet.ranges.grid.domain import GridWorkload, mean_energies, on_axes, product
from discreet.ranges.strategies.base import (
    Contribution,
    MeasurementCost,
    group_move,
    rounded_shares,
)

_STEPS = 60
_LAST_STEPS = 600
_LEAST = 1e-7
_WORTH = 1e-3
"""A change of shapes must lower the mean variance by this part."""
_KEPT = 2e-4
_UNIT = 1 << 16
_MOST_LEVELS = 4
_BATCH = 1 << 22


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxLattice:
    """Boxes with sides that are powers of two, with what decides their worth."""

    shape: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]
    """Sides along each axis."""
    drops: Floats
    """The mean drops of energy of the workload."""
    l1: Floats
    l2_squared: Floats
    price: MeasurementCost

    @cached_property
    def cells(self) -> Floats:
        """Cells of a box of each shape."""
        each = [np.array(sides, dtype=np.float64) for sides in self.sides]
        return floats(reduce(np.multiply.outer, each))

    def cost(self, shares: Floats) -> tuple[Floats, Floats]:
        """Mean variances of several sets of shares, and minus their slopes in each share.

        The mean is the sum of ``drop / lambda`` over the lattice, and its slope in the rate of a
        shape minus the sum of ``drop / lambda^2`` over all shapes that are no smaller.
        """
        used = shares > 0
        kept = np.where(used, shares, 1.0)
        rates = np.where(used, self.price.precision(kept, self.l1, self.l2_squared), 0.0)
        axes = range(1, shares.ndim)
        held = reduce(lambda x, axis: np.cumsum(x, axis=axis), axes, rates * self.cells)
        pull = self.drops / held / held  # the square may overflow
        for axis in axes:
            pull = np.flip(np.cumsum(np.flip(pull, axis), axis=axis), axis)
        slope = self.price.slope(kept, self.l1, self.l2_squared)
        return (self.drops / held).sum(axis=tuple(axes)), np.where(
            used, pull * self.cells * slope, 0.0
        )

    def balanced(self, shares: Floats, *, steps: int) -> tuple[Floats, Floats]:
        """Shares at which all slopes agree, and the costs there; see `optimize`."""
        power = 1 / 3 if self.price.family == "laplace" else 1 / 2
        axes = tuple(range(1, shares.ndim))
        used = shares > 0
        for _ in range(steps):
            _, pull = self.cost(shares)
            shares = shares * np.maximum(pull, 1e-300) ** power
            shares = shares / shares.sum(axis=axes, keepdims=True)
            shares = np.where(used, np.maximum(shares, _LEAST), 0.0)
        shares = shares / shares.sum(axis=axes, keepdims=True)
        return shares, self.cost(shares)[0]

    def boxes(self, shares: Floats, *, name: str) -> BoxStrategy:
        """The structure with these shares."""
        places = [tuple(int(i) for i in place) for place in np.argwhere(shares > 0)]
        sides = tuple(
            tuple(axis[i] for axis, i in zip(self.sides, place, strict=True)) for place in places
        )
        weights = np.array([shares[place] for place in places])
        parts = rounded_shares(weights, unit=_UNIT)
        return BoxStrategy(shape=self.shape, sides=sides, shares=parts, name=name)


def lattice(
    shape: tuple[int, ...],
    *,
    workload: GridWorkload,
    price: MeasurementCost,
    relation: NeighboringRelation,
    contribution: Contribution,
    sides: Sequence[Sequence[int]] | None = None,
) -> BoxLattice:
    """All shapes with some sides along each axis; by default powers of two up to the whole."""
    given = [powers(size) for size in shape] if sides is None else sides
    moves = [
        group_move(
            contribution,
            relation,
            entries=math.prod(-(-n // s) for n, s in zip(shape, box, strict=True)),
            cells=math.prod(map(min, shape, box)),
        )
        for box in crossed(*given)
    ]
    levels = [len(axis) for axis in given]
    return BoxLattice(
        shape=shape,
        sides=tuple(tuple(axis) for axis in given),
        drops=drops(mean_energies(workload, shape, given)),
        l1=np.array([float(move.l1) for move in moves]).reshape(levels),
        l2_squared=np.array([float(move.l2_squared) for move in moves]).reshape(levels),
        price=price,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisBlocks:
    """Sides that blocks of an axis may have, and the best blocks of the axis by itself."""

    sides: tuple[int, ...]
    blocks: BoxStrategy
    mean: float


def best_axes(
    shape: tuple[int, ...],
    *,
    workload: GridWorkload,
    price: MeasurementCost,
    relation: NeighboringRelation,
    contribution: Contribution,
) -> tuple[AxisBlocks, ...]:
    """For each axis by itself the best blocks, over several ways to fill it up.

    Cells that fill up the last block are measured as if they were unknown, which costs: an axis of
    365 cells is better cut in blocks of 1, 2, .., 128, 384 than of 1, 2, .., 512. Which sides are
    best for an axis alone is taken for the grid.
    """

    def tried(one: GridWorkload, size: int, sides: tuple[int, ...]) -> AxisBlocks:
        found = lattice(
            (size,),
            workload=one,
            price=price,
            relation=relation,
            contribution=contribution,
            sides=[sides],
        )
        blocks = optimal_quadtree(found)
        noise = price.variances(blocks.shares, blocks.moves(contribution, relation))
        return AxisBlocks(sides=sides, blocks=blocks, mean=blocks.mean_variance(one, noise))

    return tuple(
        min(
            (tried(product(one), size, sides) for sides in _fillings(size)),
            key=lambda axis: axis.mean,
        )
        for one, size in zip(on_axes(workload, shape), shape, strict=True)
    )


def powers(size: int) -> tuple[int, ...]:
    """Powers of two up to the first that holds all cells."""
    return tuple(1 << j for j in range((size - 1).bit_length() + 1))


def extended(size: int, last: int) -> tuple[int, ...]:
    """A chain of sides that ends with the smallest multiple of ``last`` that holds all cells."""
    whole = -(-size // last) * last
    sides, factor = [1], 2
    while sides[-1] < whole:
        rest = whole // sides[-1]
        while rest % factor and factor * factor <= rest:
            factor += 1
        sides.append(sides[-1] * (factor if rest % factor == 0 else rest))
    return tuple(sides)


def _fillings(size: int) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(extended(size, last) for last in powers(size)))


def flat_grid(shape: tuple[int, ...]) -> BoxStrategy:
    """A histogram alone."""
    cell = (1,) * len(shape)
    return BoxStrategy(shape=shape, sides=(cell,), shares=(Fraction(1),), name="flat")


def quadtree(shape: tuple[int, ...]) -> BoxStrategy:
    """Sides doubled along all axes at once, with equal shares; the whole grid is left out.

    An axis that is exhausted stays whole.
    """
    tops = [(size - 1).bit_length() for size in shape]
    sides = tuple(tuple(1 << min(j, top) for top in tops) for j in range(max(1, *tops)))
    shares = (Fraction(1, len(sides)),) * len(sides)
    return BoxStrategy(shape=shape, sides=sides, shares=shares, name="quadtree, equal levels")


def optimal_quadtree(found: BoxLattice) -> BoxStrategy:
    """The levels of a quadtree with the best shares; few levels for Laplace noise (F30)."""
    tops = [len(axis) - 1 for axis in found.sides]
    levels = [tuple(min(j, top) for top in tops) for j in range(max(tops) + 1)]
    most = _MOST_LEVELS if found.price.family == "laplace" else len(levels)
    fewest = 1 if found.price.family == "laplace" else len(levels)
    starts = [
        _even(found, (levels[0], *more))
        for number in range(fewest, min(most, len(levels)) + 1)
        for more in combinations(levels[1:], number - 1)
    ]
    shares, _ = _best(found, np.array(starts))
    return found.boxes(_last(found, shares), name="quadtree, weighted levels")


def product_boxes(axes: Sequence[AxisBlocks]) -> BoxStrategy:
    """All combinations of the blocks of each axis; shares multiply."""
    # Proof: it is the Kronecker product of the axes' matrices with rows weighted by their shares:
    #   one noise for all rows is what shares do to groups.
    each = [one.blocks for one in axes]
    return BoxStrategy(
        shape=tuple(one.shape[0] for one in each),
        sides=tuple(crossed(*([side for (side,) in one.sides] for one in each))),
        shares=tuple(
            math.prod(parts, start=Fraction(1)) for parts in crossed(*(one.shares for one in each))
        ),
        name="product of blocks",
    )


def optimal_boxes(found: BoxLattice, starts: Iterable[BoxStrategy]) -> BoxStrategy:
    """The boxes of least mean variance over a workload, for a budget.

    Heuristic: no theorem about the optimum; the variance of what is returned is exact. Gaussian
        noise: the problem is convex, all shapes are taken and those that get nothing are dropped.
        Laplace noise: from each start, shapes are added, left out or changed one at a time, with
        the shares at which all slopes agree, until nothing helps.
    """
    # Source: F30, F40; docs/theory/grids.md.
    if found.price.family == "gaussian":
        shares = _last(found, np.full(found.cells.shape, 1 / found.cells.size))
        kept = shares > _KEPT
        kept[(0,) * shares.ndim] = True
        return found.boxes(_last(found, np.where(kept, shares, 0.0)), name="weighted boxes")
    best: tuple[Floats, float] | None = None
    for start in starts:
        reached = _climbed(found, _on_lattice(found, start))
        if best is None or reached[1] < best[1]:
            best = reached
    if best is None:
        raise AssertionError  # there is always the flat histogram
    return found.boxes(_last(found, best[0]), name="weighted boxes")


def _climbed(found: BoxLattice, shares: Floats) -> tuple[Floats, float]:
    """Change one shape at a time while it helps."""
    shares, cost = _best(found, shares[None])
    while True:
        changed = list(_changes(shares))
        if not changed:  # a single cell
            return shares, cost
        better, lower = _best(found, np.array(changed))
        if not lower < cost * (1 - _WORTH):
            return shares, cost
        shares, cost = better, lower


def _changes(shares: Floats) -> Iterable[Floats]:
    """One shape more, one less, or one with a side doubled or halved."""
    cell = (0,) * shares.ndim
    part = 1 / (1 + np.count_nonzero(shares))
    for place in np.ndindex(shares.shape):
        if shares[place] == 0:
            added = shares * (1 - part)
            added[place] = part
            yield added
    for place in map(tuple, np.argwhere(shares > 0)):
        if place == cell:
            continue
        without = shares.copy()
        without[place] = 0.0
        yield without
        for axis, step in crossed(range(shares.ndim), (-1, 1)):
            near = (*place[:axis], place[axis] + step, *place[axis + 1 :])
            if 0 <= near[axis] < shares.shape[axis] and shares[near] == 0:
                moved = without.copy()
                moved[near] = shares[place]
                yield moved


def _best(found: BoxLattice, starts: Floats) -> tuple[Floats, float]:
    """The best of several sets of shapes."""
    few = max(1, _BATCH // found.cells.size)
    best: tuple[Floats, float] | None = None
    for first in range(0, len(starts), few):
        shares, costs = found.balanced(starts[first : first + few], steps=_STEPS)
        leader = int(np.argmin(costs))
        if best is None or costs[leader] < best[1]:
            best = shares[leader], float(costs[leader])
    if best is None:
        raise AssertionError  # there is always a start
    return best


def _last(found: BoxLattice, shares: Floats) -> Floats:
    return floats(found.balanced(shares[None], steps=_LAST_STEPS)[0][0])


def _even(found: BoxLattice, places: Sequence[tuple[int, ...]]) -> Floats:
    shares = np.zeros(found.cells.shape)
    for place in places:
        shares[place] = 1 / len(places)
    return shares


def _on_lattice(found: BoxLattice, boxes: BoxStrategy) -> Floats:
    shares = np.zeros(found.cells.shape)
    for sides, share in zip(boxes.sides, boxes.shares, strict=True):
        place = (axis.index(side) for axis, side in zip(found.sides, sides, strict=True))
        shares[tuple(place)] = float(share)
    return shares
