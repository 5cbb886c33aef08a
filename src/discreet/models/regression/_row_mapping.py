"""Centres and scales of columns: declared, taken from bounds, or found with a share of the budget.

Nothing here looks at exact statistics of private data: see `as_published` for what happens then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.models.inputs import LARGEST, Bounds, Floats, bounds_of
from discreet.models.regression.rows import CHUNK, Ints
from discreet.models.regression.tables import Rows, empty
from discreet.noise.bits import Bits
from discreet.queries.budget import Move

Flags: TypeAlias = NDArray[np.bool_]

ROUNDS = 3
BINS = 16
_MERGED = (1, 2, 4)
# The targets' part of the share: without their range nothing works.
_TARGETS = Fraction(1, 3)
# What is taken off the sum of bins, in deviations of its noise, before it is believed.
_DOUBT = 2.5
# A wrong range of the targets would be worse than a wide one.
_DOUBT_OF_TARGETS = 3.0
# Deviations of the noise beyond which a bin of its own surely holds rows.
_SURE = 3.5
# How much more a coarser stretch must hold than a finer one.
_CLEARLY = 1.25
# Zoom in if the bins that hold rows are at most so much of the window.
_NARROW = 0.5
# Bins that are kept on each side of those.
_EDGE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Declared centres and scales, ``z = (x - centre) / scale``: from a code book, an old survey.

    One number for all columns, or one for each. They must not come from the private rows.
    """

    centre: float | tuple[float, ...] = 0.0
    scale: float | tuple[float, ...] = 1.0

    def arrays(self, columns: int) -> tuple[Floats, Floats]:
        """One centre and one scale for each column."""
        centre = np.asarray(self.centre, dtype=np.float64)
        scale = np.asarray(self.scale, dtype=np.float64)
        for name, given in (("centre", centre), ("scale", scale)):
            if given.shape not in ((), (columns,)):
                raise InvalidArgument(f"{name} must be one number, or {columns} of them.")
        if not ((np.abs(centre) < LARGEST) & (scale > 1 / LARGEST) & (scale < LARGEST)).all():
            raise InvalidArgument(
                f"centre and scale must be below {LARGEST:g}, and scale above {1 / LARGEST:g}."
            )
        return np.broadcast_to(centre, columns).copy(), np.broadcast_to(scale, columns).copy()


def midpoints(bounds: Bounds, *, columns: int) -> Scaling:
    """The scaling to -1 and 1 between declared bounds."""
    lower, upper = bounds_of("bounds", bounds, columns=columns)
    centre, scale = (lower + upper) / 2, (upper - lower) / 2
    return Scaling(centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))


def histogram_moves(
    features: int, outputs: int, *, relation: Relation, rows_per_unit: int = 1
) -> list[tuple[Move, Fraction]]:
    """How far a unit moves the histograms of features and of targets, in each round; and shares.

    Theorem: one row is in one bin of each column: adding it moves as many counts by one as there
        are columns, replacing it twice as many; m rows of a unit move them m times as far.
    """
    times = count("rows_per_unit", rows_per_unit) ** 2
    if relation is not Relation.ADD_REMOVE:
        times *= 2
    found = []
    for columns, part in ((features, 1 - _TARGETS), (outputs, _TARGETS)):
        move = Move(l1=columns * times, l2_squared=columns * times)
        found.append((move, part / ROUNDS))
    return found * ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Privately found centres and spreads of all columns; those of the bounds if not ``seen``."""

    centre: Floats
    scale: Floats
    seen: Flags


def private_scaling(
    rows: Rows, *, lower: Floats, upper: Floats, noises: tuple[Additive, ...], bits: Bits
) -> Found:
    """Centre and spread of each column, from noisy histograms that zoom in on its rows (K34).

    Theorem: as private as the composition of ``noises``; the windows of a round are functions of
        the noisy counts of the round before.
    Needs: public outermost bounds; noises for `histogram_moves`.

    A column whose rows the noise hides keeps its bounds: the guard against nonsense.
    """
    low, high = lower.copy(), upper.copy()
    columns, size = len(low), BINS + 2
    doubts = np.where(np.arange(columns) < rows.features, _DOUBT, _DOUBT_OF_TARGETS)
    noisy, stds, times = np.zeros((columns, size)), np.zeros(columns), np.zeros(columns)
    for features, targets in zip(noises[::2], noises[1::2], strict=True):
        if times.any():
            before = low, high
            low, high = _zoomed(noisy / times[:, None], low, high, stds / np.sqrt(times), doubts)
            moved = (low != before[0]) | (high != before[1])
            noisy[moved], times[moved] = 0.0, 0.0
        counting = partial(_histograms, lower, upper, low, high)
        exact = rows.add_up(counting, start=empty(columns * size))
        first = rows.features * size
        parts = [
            features.release(exact[:first], bits=bits),
            targets.release(exact[first:], bits=bits),
        ]
        del exact
        # A window that stays is measured again, and the mean is taken.
        noisy += np.concatenate(parts).reshape(columns, size)
        times += 1
        stds[: rows.features], stds[rows.features :] = features.std, targets.std
    found = _spread(noisy / times[:, None], low, high, stds / np.sqrt(times), doubts)
    # A window that was drawn in was seen before, even if its last histogram shows nothing.
    return replace(found, seen=found.seen | (low > lower) | (high < upper))


def _histograms(
    lower: Floats, upper: Floats, low: Floats, high: Floats, x: Floats, y: Floats
) -> Ints:
    """Counts of all columns: below the window, in each of its bins, above it."""
    size = len(low) * (BINS + 2)
    # A hair less than so many bins a unit: the upper end belongs to the last bin.
    steps = BINS * (1 - 2.0**-40) / (high - low)
    first = np.arange(len(low), dtype=np.float64) * (BINS + 2) + 1
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, len(x), CHUNK):
        values = np.column_stack((x[start : start + CHUNK], y[start : start + CHUNK]))
        np.clip(values, lower, upper, out=values)
        values -= low
        values *= steps
        np.floor(values, out=values)
        np.clip(values, -1.0, float(BINS), out=values)
        values += first
        total += np.bincount(values.ravel(order="K").astype(np.intp), minlength=size)
    return total


def _box(counts: Floats, *, std: float, doubt: float) -> tuple[int, int] | None:
    """The bins first..last that hold most rows; None if their sum might be noise.

    For bins by themselves, pairs and fours: the stretch whose sum is largest after each paid one
    deviation of its noise, so that noise alone does not extend it; of these the finest, unless a
    coarser one surely holds clearly more.
    """
    best, most = None, 0.0
    for size in _MERGED:
        merged = counts[1:-1].reshape(-1, size).sum(axis=1)
        paid = np.concatenate(([0.0], np.cumsum(merged - std * math.sqrt(size))))
        gains = np.triu(paid[None, :] - paid[:, None], 1)
        first, last = divmod(int(gains.argmax()), len(paid))
        surely = merged[first:last].sum() - doubt * std * math.sqrt(size * max(last - first, 1))
        if last > first and surely > _CLEARLY * most:
            best, most = (first * size, last * size - 1), surely
    return best


def _zoomed(
    noisy: Floats, low: Floats, high: Floats, stds: Floats, doubts: Floats
) -> tuple[Floats, Floats]:
    """The windows of the bins that surely hold rows, and one more on each side."""
    low, high = low.copy(), high.copy()
    for column, (counts, std) in enumerate(zip(noisy, stds, strict=True)):
        box = _box(counts, std=std, doubt=doubts[column])
        if box is None:
            continue
        width = (high[column] - low[column]) / BINS
        first, last = max(box[0] - _EDGE, 0), min(box[1] + 1 + _EDGE, BINS)
        if last - first <= _NARROW * BINS:
            low[column], high[column] = low[column] + first * width, low[column] + last * width
    return low, high


def _spread(noisy: Floats, low: Floats, high: Floats, stds: Floats, doubts: Floats) -> Found:
    """Centre and spread of the rows that are surely seen, else of the window."""
    centre, scale = (low + high) / 2, (high - low) / math.sqrt(12)
    seen = np.zeros(len(low), dtype=bool)
    for column, (counts, std) in enumerate(zip(noisy, stds, strict=True)):
        box = _box(counts, std=std, doubt=doubts[column])
        if box is None:
            continue
        seen[column] = True
        # Bins in the box that are likely to hold rows, and any others that surely do; what lies
        # outside of the window counts at its edge.
        least = np.full(BINS + 2, _SURE * std)
        least[box[0] : box[1] + 3] = std
        kept = np.where(counts > least, counts, 0.0)
        weight = kept / kept.sum()
        middle = np.clip(np.arange(-1, BINS + 1) + 0.5, 0, BINS)
        mean = float(weight @ middle)
        variance = float(weight @ np.square(middle - mean)) + 1 / 12
        width = (high[column] - low[column]) / BINS
        centre[column] = low[column] + mean * width
        scale[column] = math.sqrt(variance) * width
    return Found(centre=centre, scale=scale, seen=seen)
