"""Centres and scales of columns: declared, taken from bounds, or found with a share of the budget.

Nothing here looks at exact statistics of private data: see `as_published` for what happens then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.models.inputs import Bounds, Floats, bounds_of
from discreet.models.regression.rows import Ints
from discreet.models.regression.tables import Rows, empty
from discreet.noise.bits import Bits
from discreet.queries.budget import Move

ROUNDS = 2
BINS = 16
# A bin is believed in beyond so many deviations of its noise, and above this part of the rows.
_BELIEVED = 3.0
_PART = 0.02
# Zoom in only on bins that hold together so much of all rows.
_MOST = 0.5


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
        if not (np.isfinite(centre).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InvalidArgument("centre and scale must be finite, and scale positive.")
        return np.broadcast_to(centre, columns).copy(), np.broadcast_to(scale, columns).copy()


def midpoints(bounds: Bounds, *, columns: int) -> Scaling:
    """The scaling to -1 and 1 between declared bounds."""
    lower, upper = bounds_of("bounds", bounds, columns=columns)
    centre, scale = (lower + upper) / 2, (upper - lower) / 2
    return Scaling(centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))


def histogram_moves(
    columns: int, *, relation: Relation, rows_per_unit: int = 1, rounds: int = ROUNDS
) -> list[Move]:
    """How far a unit moves the histograms of all columns, in each round.

    Theorem: one row is in one bin of each column: adding it moves ``columns`` counts by one,
        replacing it twice as many; m rows of a unit move them m times as far.
    """
    moved = columns if relation is Relation.ADD_REMOVE else 2 * columns
    square = moved * count("rows_per_unit", rows_per_unit) ** 2
    return [Move(l1=square, l2_squared=square)] * rounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Privately found centres and scales of features and targets; ``trusted``: not the bounds."""

    centre: Floats
    scale: Floats
    trusted: bool


def private_scaling(
    rows: Rows, *, lower: Floats, upper: Floats, noises: tuple[Additive, ...], bits: Bits
) -> Found:
    """Centre and spread of each column, from noisy histograms that zoom in on its rows (K34).

    Theorem: as private as the composition of ``noises``; the windows of a round are functions of
        the noisy counts of the round before.
    Needs: public outermost bounds; noises for `histogram_moves`.

    If the noise hides the rows, the bounds themselves are used: the guard against nonsense.
    """
    low, high = lower.copy(), upper.copy()
    trusted = True
    noisy = np.zeros((len(low), BINS + 2))
    many = 0.0
    for place, noise in enumerate(noises):
        counts = rows.add_up(partial(_histograms, low, high), start=empty(len(low) * (BINS + 2)))
        noisy = np.asarray(noise.release(counts, bits=bits), dtype=np.float64)
        noisy = noisy.reshape(len(low), BINS + 2)
        many = float(noisy.sum(axis=1).mean())
        trusted = many > _BELIEVED * noise.std * math.sqrt(BINS + 2)
        if not trusted or place + 1 == len(noises):
            break
        for column in range(len(low)):
            low[column], high[column] = _zoomed(
                noisy[column], low[column], high[column], std=noise.std, many=many
            )
    if not trusted:
        return Found(centre=(lower + upper) / 2, scale=(upper - lower) / 2, trusted=False)
    centre, scale = _spread(noisy, low, high, std=noises[-1].std)
    return Found(centre=centre, scale=scale, trusted=True)


def _histograms(low: Floats, high: Floats, x: Floats, y: Floats) -> Ints:
    """Counts of all columns: below the window, in each of its bins, above it."""
    values = np.column_stack((x, y))
    places = np.floor((values - low) * (BINS / (high - low)))
    codes = np.clip(places, -1, BINS).astype(np.int64) + 1
    codes += np.arange(len(low)) * (BINS + 2)
    return np.bincount(codes.ravel(), minlength=len(low) * (BINS + 2)).astype(np.int64)


def _zoomed(
    noisy: Floats, low: float, high: float, *, std: float, many: float
) -> tuple[float, float]:
    """The window of the bins that surely hold rows, and one more on each side."""
    inside = noisy[1:-1]
    believed = np.flatnonzero(inside > max(_BELIEVED * std, _PART * many))
    if not len(believed) or inside[believed].sum() < _MOST * many:
        return low, high
    width = (high - low) / BINS
    first, last = max(int(believed[0]) - 1, 0), min(int(believed[-1]) + 1, BINS - 1)
    return low + first * width, low + (last + 1) * width


def _spread(noisy: Floats, low: Floats, high: Floats, *, std: float) -> tuple[Floats, Floats]:
    """Mean and deviation of winsorised rows, from bins that surely hold some."""
    width = (high - low) / BINS
    middle = np.clip(np.arange(-1, BINS + 1) + 0.5, 0, BINS)  # what is outside counts at the edge
    kept = np.where(noisy > _BELIEVED * std, noisy, 0.0)
    total = kept.sum(axis=1)
    flat = total <= 0  # spread so evenly that no bin stands out: as good as uniform
    weight = np.where(flat[:, None], 1.0 / (BINS + 2), kept / np.where(flat, 1.0, total)[:, None])
    mean = weight @ middle
    variance = (weight * np.square(middle - mean[:, None])).sum(axis=1) + 1 / 12
    return low + mean * width, np.sqrt(variance) * width
