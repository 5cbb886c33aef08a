"""Clipped slopes as whole numbers: what a record contributes, a function of its own integers alone.

The gradient of a record is its slope times its row. The row is whole already; here the slope gets
whole, and short enough that the product is at most ``sensitivity`` long. Sums of such products are
exact in any order, and the bound on one record's share holds in integers, not up to rounding.

Margins come as exact numbers on a grid. Exponentials are looked up in tables, because a vectorised
exponential may round the same number differently at different places of an array; then a record
could change what others contribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.sgd.features import FEATURE_BITS, Steps, squared_norms
from discreet.models.sgd.objectives import Floats, Huber, Logistic, Objective, Softmax, Squared

Slopes: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""From margins, targets and caps to whole slopes, none longer than its cap."""

# Bits of the longest contribution; sums of 2**22 of them stay below 2**53.
_SHARE_BITS = 30
# Beyond this margin a logistic slope is flat; inside it, slopes are read off every 2**-11.
_REACH = 16
_TABLE_BITS = 11
_WEIGHT_BITS = 40
_CHUNK = 1 << 13
# Weights of this many classes can be added up exactly.
_MOST_CLASSES = 4096
# Squares of slopes of this many bits can be added up exactly.
_FINEST = 22
# Less than all that rounding can add in a root, a quotient and a product.
_SAFE = 1 - 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The steps of slopes and of gradients for a clipping norm, all powers of two."""

    clip: float

    def __post_init__(self) -> None:
        if not 2.0**-16 <= float(positive("clip", self.clip)) <= 2.0**16:
            raise InvalidArgument(f"clip must lie in 2**-16 ... 2**16, got {self.clip}.")

    @property
    def slope_bits(self) -> int:
        """Steps in a unit of slope, as a power of two."""
        return min(_FINEST, _SHARE_BITS - FEATURE_BITS - math.ceil(math.log2(self.clip)))

    @property
    def unit(self) -> float:
        """The step of a gradient."""
        return 2.0 ** -(FEATURE_BITS + self.slope_bits)

    @property
    def sensitivity(self) -> int:
        """The longest contribution of a record in steps: at most ``clip``."""
        return math.floor(self.clip / self.unit)

    def caps(self, steps: Steps) -> Floats:
        """The longest whole slope of each row whose product with it is short enough.

        Theorem: ``caps**2 * |row|**2 <= sensitivity**2`` in whole numbers.
        Proof: the quotient and the root are off by less than 2**-51 in parts; the factor below one
            takes 2**-40 off; floor takes the rest.
        """
        squares = np.empty(len(steps))
        for start in range(0, len(steps), _CHUNK):
            rows = steps[start : start + _CHUNK].astype(np.float64)
            squares[start : start + _CHUNK] = squared_norms(rows)
        # An empty row contributes nothing, whatever its slope.
        lengths = np.sqrt(np.maximum(squares, 1.0))
        return np.where(squares > 0, np.floor(self.sensitivity / lengths * _SAFE), 0.0)


def whole_slopes(objective: Objective, grid: Grid) -> Slopes:
    """The slopes of an objective in steps of ``2**-slope_bits``."""
    unit = 2.0**grid.slope_bits
    match objective:
        case Logistic():
            return lambda margins, targets, caps: _logistic(margins, targets, caps, unit=unit)
        case Huber(knee=knee):
            limit = math.floor(knee * unit)
            return lambda margins, targets, caps: np.clip(
                np.rint(np.clip(margins - targets, -knee, knee) * unit),
                *_both(np.minimum(caps, limit)),
            )
        case Squared(weight=weight):
            return lambda margins, targets, caps: np.clip(
                np.rint((margins - targets) * (weight * unit)), *_both(caps)
            )
        case Softmax(classes=classes) if classes <= _MOST_CLASSES:
            return lambda margins, targets, caps: _softmax(margins, targets, caps, unit=unit)
        case _:
            raise Unsupported(
                f"{type(objective).__name__} has no slopes in whole numbers; train Logistic, "
                f"Softmax of up to {_MOST_CLASSES} classes, Huber or Squared."
            )


def _both(caps: Floats) -> tuple[Floats, Floats]:
    return -caps, caps


def _places(margins: Floats) -> Floats:
    ends = _REACH * 2.0**_TABLE_BITS
    return np.clip(np.rint(margins * 2.0**_TABLE_BITS), -ends, ends)


def _logistic(margins: Floats, targets: Floats, caps: Floats, *, unit: float) -> Floats:
    places = _places(margins).astype(np.intp)
    places += _REACH << _TABLE_BITS
    slopes = _logistic_table(unit)[places]
    slopes -= targets * unit
    clipped: Floats = np.clip(slopes, -caps, caps)
    return clipped


def _softmax(margins: Floats, targets: Floats, caps: Floats, *, unit: float) -> Floats:
    below = _places(margins - margins.max(axis=1, keepdims=True)).astype(np.intp)
    weights = _exponential_table()[-below]
    # Whole weights below 2**40: their sum is exact, every quotient correctly rounded.
    slopes: Floats = np.rint(weights / weights.sum(axis=1, keepdims=True) * unit)
    slopes[np.arange(len(slopes)), targets.astype(np.intp)] -= unit
    squares = squared_norms(slopes)
    long = np.flatnonzero(squares > caps * caps)
    if long.size:
        factor = caps[long] / np.sqrt(squares[long]) * _SAFE
        slopes[long] = np.trunc(slopes[long] * factor[:, None])
    return slopes


@lru_cache(maxsize=16)
def _logistic_table(unit: float) -> Floats:
    """``1 / (1 + e^-z)`` in steps, for z on a grid from one end of the reach to the other."""
    ends = _REACH << _TABLE_BITS
    table: Floats = np.rint(expit(np.arange(-ends, ends + 1) * 2.0**-_TABLE_BITS) * unit)
    return table


@lru_cache(maxsize=1)
def _exponential_table() -> Floats:
    """``e^-z`` in steps of 2**-40, for z >= 0; whatever happens, a class keeps a little."""
    z = np.arange((_REACH << _TABLE_BITS) + 1) * 2.0**-_TABLE_BITS
    table: Floats = np.rint(np.exp(-z) * 2.0**_WEIGHT_BITS)
    return table
