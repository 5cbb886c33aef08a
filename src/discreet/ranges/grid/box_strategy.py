"""Boxes of nested sides on a grid: flat, quadtrees and products of blocks in one family (F40).

A group measures the sums over all boxes of one shape. Along each axis the sides that occur divide
each other, so that everything is diagonal in the same basis and all errors are closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.budget import BudgetChange
from discreet.ranges.grid.domain import Ends, GridWorkload, mean_energies
from discreet.ranges.strategies.base import (
    LARGEST_COUNT,
    Contribution,
    Terms,
    checked_shares,
    group_move,
)
from discreet.ranges.workload import energy

_LARGEST_SUM = 1 << 60
_DIGITS = 12
"""Weights of noise that agree to so many digits are one."""


@dataclass(frozen=True, kw_only=True)
class BoxStrategy:
    """Noisy sums over boxes of several shapes, made consistent by weighted least squares."""

    shape: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]
    """For each group the sides of its boxes; single cells come first."""
    shares: tuple[Fraction, ...]
    name: str = "boxes"

    def __post_init__(self) -> None:
        for size in self.shape:
            check.count("shape", size)
        if any(len(sides) != len(self.shape) for sides in self.sides):
            raise InvalidArgument("sides must give each group one side for each axis.")
        if not self.sides or any(side != 1 for side in self.sides[0]):
            raise InvalidArgument("sides must start with single cells.")
        if len(set(self.sides)) != len(self.sides):
            raise InvalidArgument("sides must differ from group to group.")
        for chain in self.chains:
            if any(a < 1 or b % a for a, b in pairwise(chain)):
                raise InvalidArgument("along each axis the sides must divide each other.")
        checked_shares(self.shares, len(self.sides))

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """The sides that occur along each axis, in order."""
        return tuple(tuple(sorted(set(axis))) for axis in zip(*self.sides, strict=True))

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """Cells of each axis after filling up the last box with public zeros."""
        return tuple(
            -(-size // chain[-1]) * chain[-1]
            for size, chain in zip(self.shape, self.chains, strict=True)
        )

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far each group moves: boxes of one shape are disjoint, so `group_move` applies."""
        return tuple(
            group_move(
                contribution,
                relation,
                entries=math.prod(-(-n // s) for n, s in zip(self.shape, sides, strict=True)),
                cells=math.prod(map(min, self.shape, sides)),
            )
            for sides in self.sides
        )

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        """The exact sums of each group, flattened: private."""
        most = min(LARGEST_COUNT, _LARGEST_SUM // math.prod(self.padded))
        whole = np.zeros(self.padded, dtype=np.int64)
        whole[tuple(map(slice, self.shape))] = np.minimum(counts, most)
        return tuple(_summed(whole, sides).ravel() for sides in self.sides)

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of what each group measures."""
        return tuple(
            tuple(n // s for n, s in zip(self.padded, sides, strict=True)) for sides in self.sides
        )

    def estimate(self, noisy: Sequence[Ints], noise: Floats) -> Floats:
        """The best linear unbiased estimate of each cell, in O(cells x shapes)."""
        # Theorem: it is `C b` with `b = A^T Sigma^-1 y` and `C = (A^T Sigma^-1 A)^-1`.
        # Proof: C is a sum over the shapes m of the lattice of `c_m P_m`, P_m averaging over boxes
        #   of that shape and c the mixed differences of `1 / lambda` (summation by parts).
        # Source: docs/theory/grids.md; F27, F40.
        found = np.zeros(self.padded)
        for group, shape, sides, variance in zip(
            noisy, self.shapes(), self.sides, noise, strict=True
        ):
            found += _spread(group.reshape(shape) / variance, sides)
        return floats(self._averaged(found, noise)[tuple(map(slice, self.shape))])

    def variance(self, ends: Ends, noise: Floats) -> Floats:
        """The exact variance of the answers to rectangles."""
        # Theorem: `sum over (i, j, ...) of q_i q_j ... / lambda_(ij...)` with the drops q of each
        #   axis' energies, and lambda the sum of `cells of the box / noise` over all groups whose
        #   boxes are no longer than (i, j, ...) along any axis.
        # Proof: docs/theory/grids.md.
        held = self._inverse(noise)[None]
        for (a, b), chain in zip(ends, self.chains, strict=True):
            drops = self._drops(np.ravel(a), np.ravel(b), chain)
            held = (drops.reshape(*drops.shape, *[1] * (held.ndim - 2)) * held).sum(axis=1)
        return floats(np.maximum(held, 0.0).reshape(np.shape(ends[0][0])))

    def outer_variance(self, ends: Ends, noise: Floats) -> Floats:
        """The variance for all combinations of one range of each axis."""
        held = self._inverse(noise)
        for (a, b), chain in zip(ends, self.chains, strict=True):
            held = np.tensordot(held, self._drops(a, b, chain), axes=(0, 1))
        return floats(np.maximum(held, 0.0))

    def mean_variance(self, workload: GridWorkload, noise: Floats) -> float:
        """The mean of ``variance`` over a workload, in closed form."""
        held = mean_energies(workload, self.shape, self.chains)
        return float((drops(held) * self._inverse(noise)).sum())

    def terms(self, ends: Sequence[tuple[int, int]], noise: Floats) -> Terms:
        """The weights of the noise in the answer to one rectangle, and how often each occurs."""
        # Proof: a box e of shape g has weight `e^T C w / v_g`, and `e^T P_m w` is, axis by axis,
        #   the overlap of w with the block of side max(m, g) that holds e, scaled to side g.
        mixed = self._mixed(noise)
        found = []
        for sides, variance in zip(self.sides, noise, strict=True):
            weights, counts = mixed, np.ones(1)
            for (a, b), chain, side, n in zip(ends, self.chains, sides, self.padded, strict=True):
                parts, number = _overlaps(a, b, chain, side, n)
                weights = np.tensordot(weights, parts, axes=(0, 0))
                counts = np.multiply.outer(counts, number)
            found.append(_merged(weights.ravel() / variance, counts.ravel().astype(np.float64)))
        return tuple(found)

    def largest_weights(self, noise: Floats) -> Floats:
        """No noise of a group has a larger weight in any rectangle."""
        # Proof: as in `terms` the weight is a sum over shapes m >= g of coefficients times overlaps
        #   that lie between 0 and the cells of the box: at most the sum of the positive
        #   coefficients, or of the negative ones.
        inverse = self._inverse(noise)
        found = []
        for sides, variance in zip(self.sides, noise, strict=True):
            above = inverse[self._place(sides)]
            mixed = _differences(above)
            most = max(mixed[mixed > 0].sum(), -mixed[mixed < 0].sum())
            found.append(math.prod(sides) / variance * most)
        return np.array(found)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "shape": list(self.shape),
            "sides": [list(sides) for sides in self.sides],
            "shares": [str(share) for share in self.shares],
            "name": self.name,
        }

    def describe(self) -> str:
        """In a few words."""
        number = len(self.sides)
        return self.name if number == 1 else f"{self.name}, {number} shapes"

    def _place(self, sides: tuple[int, ...]) -> tuple[slice, ...]:
        """The part of the lattice at and above a shape."""
        return tuple(
            slice(chain.index(side), None) for side, chain in zip(sides, self.chains, strict=True)
        )

    def _inverse(self, noise: Floats) -> Floats:
        """``1 / lambda`` on the lattice of shapes."""
        rates = np.zeros([len(chain) for chain in self.chains])
        for sides, variance in zip(self.sides, noise, strict=True):
            rates[tuple(place.start for place in self._place(sides))] = math.prod(sides) / variance
        return floats(1 / accumulated(rates))

    def _mixed(self, noise: Floats) -> Floats:
        return _differences(self._inverse(noise))

    def _drops(self, a: Ints, b: Ints, chain: Sequence[int]) -> Floats:
        """One row for each range, one column for each side."""
        held = np.stack([energy(a, b, side) for side in chain], axis=-1)
        return floats(held - np.concatenate([held[..., 1:], 0 * held[..., :1]], axis=-1))

    def _averaged(self, x: Floats, noise: Floats) -> Floats:
        """``C x``: sums of boxes going up, weighted averages spread going down, axis by axis."""
        return _combined(x, self._mixed(noise), self.chains, 0)


def accumulated(rates: Floats) -> Floats:
    """Sums over everything at or below a place of the lattice."""
    return reduce(lambda held, axis: np.cumsum(held, axis=axis), range(rates.ndim), rates)


def drops(held: Floats) -> Floats:
    """From energies to what is lost from each side to the next, along all axes."""
    for axis in range(held.ndim):
        after = np.roll(held, -1, axis=axis)
        after[(slice(None),) * axis + (-1,)] = 0.0
        held = held - after
    return held


def _differences(inverse: Floats) -> Floats:
    for axis in range(inverse.ndim):
        inverse = np.diff(inverse, axis=axis, prepend=0.0)
    return inverse


def _combined(x: Floats, mixed: Floats, chains: Sequence[Sequence[int]], axis: int) -> Floats:
    """The sum over the lattice of ``mixed`` times box averages, from ``axis`` on."""
    if axis == len(chains):
        return floats(x * mixed)
    chain = chains[axis]
    sums = [x]
    for a, b in pairwise(chain):
        sums.append(_fold(sums[-1], b // a, axis))
    found: Floats | None = None
    for level in reversed(range(len(chain))):
        here = _combined(sums[level], mixed[level], chains, axis + 1) / chain[level]
        if found is not None:
            here = here + np.repeat(found, chain[level + 1] // chain[level], axis=axis)
        found = here
    if found is None:
        raise AssertionError  # a chain is never empty
    return found


def _fold(x: Any, factor: int, axis: int) -> Any:
    shape = (*x.shape[:axis], x.shape[axis] // factor, factor, *x.shape[axis + 1 :])
    return x.reshape(shape).sum(axis=axis + 1)


def _summed(x: Ints, sides: Sequence[int]) -> Ints:
    for axis, side in enumerate(sides):
        x = _fold(x, side, axis)
    return x


def _spread(x: Floats, sides: Sequence[int]) -> Floats:
    for axis, side in enumerate(sides):
        x = np.repeat(x, side, axis=axis)
    return x


@lru_cache(maxsize=4096)
def _overlaps(
    a: int, b: int, chain: tuple[int, ...], side: int, cells: int
) -> tuple[Floats, Floats]:
    """For each side m (rows) and each kind of block of ``side``: what `Boxes.terms` multiplies."""
    starts = np.arange(0, cells, side)
    rows = []
    for m in chain:
        block = max(m, side)
        first = starts // block * block
        covered = np.minimum(b + 1, first + block) - np.maximum(a, first)
        rows.append(np.maximum(covered, 0) * (side / block))
    kinds, number = np.unique(np.stack(rows), axis=1, return_counts=True)
    return floats(kinds), number.astype(np.float64)


def _merged(weights: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Weights that are equal up to rounding, and their signs, counted together: noise is even."""
    size = np.abs(weights)
    largest = float(size.max(initial=0.0)) or 1.0
    kept, where = np.unique(np.round(size / largest, _DIGITS), return_inverse=True)
    return kept * largest, floats(np.bincount(where.ravel(), weights=counts))


def read_boxes(content: dict[str, Any]) -> BoxStrategy:
    """The inverse of ``content``."""
    return BoxStrategy(
        shape=tuple(content["shape"]),
        sides=tuple(tuple(sides) for sides in content["sides"]),
        shares=tuple(Fraction(share) for share in content["shares"]),
        name=str(content["name"]),
    )
