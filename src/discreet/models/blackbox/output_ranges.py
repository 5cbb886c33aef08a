"""A public range for every input, into which any function's value is clipped, in whole steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.core.grid import exponent_below
from discreet.models.learned.metrics import FINE, ONE, Floats, Ints, Metric, tuples

# Sums in fine units stay below this, so that 64-bit integers never wrap around.
LARGEST_FINE = 1 << 61
# Distances times anchors times positions that are worked on at once: one megabyte.
_CHUNK = 1 << 17
_BEYOND = 2.0**62


class Ranges(ABC):
    """``[low(D), high(D)]`` in steps, for every input D.

    Theorem: what ``clip`` returns changes by at most ``width`` steps between neighbours, for every
        function, whatever it returns, random or not.
    Proof: ``low <= high`` always, and ``high(D) - low(D') <= width`` for all neighbours D, D' and
        for D' = D: each kind of ranges proves this. Values are made whole *before* they are
        clipped, so their own rounding does not matter (A43).
    """

    width: int
    """The sensitivity of what ``clip`` returns, in steps."""
    step: Fraction
    """The grid of values: a power of two."""

    @abstractmethod
    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """Lowest and highest allowed value for each input, in steps."""

    @property
    @abstractmethod
    def hull(self) -> tuple[int, int]:
        """Public bounds of all ranges, in steps: for clipping after the noise (A47)."""

    @property
    @abstractmethod
    def relation_words(self) -> str:
        """Which two inputs are neighbours, for people."""

    def clip(self, values: ArrayLike, inputs: ArrayLike) -> Ints:
        """Values in whole steps, inside the range of their inputs; what is no number goes midway.

        >>> from discreet.models.learned.loo import LooClip
        >>> from discreet.models.learned.metrics import Records
        >>> clip = LooClip(anchors=[[0], [1]], centres=[0, 8], slope=4, width=4, metric=Records())
        >>> clip.clip([100.0, float("nan")], [[0], [0]])
        array([6, 4])
        """
        return clipped(values, *self.ranges(inputs), step=self.step)


class MetricRanges(Ranges):
    """Ranges whose neighbours are those of a metric."""

    metric: Metric

    @property
    def relation_words(self) -> str:
        return self.metric.relation_words


def common(doubled: Ints, *, spread: int, unit: int = ONE) -> tuple[Ints, Ints]:
    """What the intervals ``(doubled -+ spread) / 2`` of each row share; ``unit`` of them: a step.

    Floor at both ends: rounding inward would make single points off the grid empty (A43).
    """
    low: Ints = (doubled.max(axis=1) - spread) // (2 * unit)
    high: Ints = (doubled.min(axis=1) + spread) // (2 * unit)
    return low, high


def clipped(values: ArrayLike, low: Ints, high: Ints, *, step: Fraction) -> Ints:
    """Values in whole steps, between the ends; what is not finite goes to the middle (A17)."""
    try:
        floats: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        floats = np.full(low.shape, np.nan)
    if floats.shape != low.shape:
        raise OutOfDomain(f"values must have shape {low.shape}, one for each input.")
    with np.errstate(all="ignore"):
        steps = np.floor(np.ldexp(floats, -exponent_of(step)))
        whole = np.clip(np.nan_to_num(steps), -_BEYOND, _BEYOND).astype(np.int64)
    # Infinite only after scaling: the value was finite and its sign says where it goes.
    middle = low + (high - low) // 2
    clipped_whole: Ints = np.where(np.isfinite(floats), np.clip(whole, low, high), middle)
    return clipped_whole


def power_of_two(step: Number) -> Fraction:
    """A grid that doubles hit exactly."""
    positive("step", step)
    size = Fraction(step)  # a power of two is exactly its double, not the digits it prints with
    if Fraction(2) ** exponent_of(size) != size:
        raise InvalidArgument(f"step must be a power of two, got {step}.")
    return size


def exponent_of(step: Fraction) -> int:
    """The exponent of a power of two."""
    return exponent_below(step, resolution=0)


def whole_steps(name: str, values: Any) -> Ints:
    """A vector of whole numbers; floats are refused, because something would have to round them."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidArgument(f"{name} must be a sequence of whole numbers of steps, at least one.")
    if int(array.max()) > _BEYOND or int(array.min()) < -_BEYOND:
        raise InvalidArgument(f"{name} must lie within 2**62 steps.")
    return fixed(array.astype(np.int64))


def fixed(array: Ints) -> Ints:
    """The same array, which nobody can write to any more: ranges are proved once."""
    array.setflags(write=False)
    return array


def anchored(metric: Metric, anchors: ArrayLike, many: int) -> Floats:
    """Public inputs, finite, one for each centre."""
    if not isinstance(metric, Metric):
        raise InvalidArgument(f"metric must be a Metric, got {type(metric).__name__}.")
    found = tuples("anchors", anchors).copy()
    if len(found) != many or not np.isfinite(found).all() or 0 in found.shape:
        raise InvalidArgument(f"anchors must be {many} finite inputs, one for each centre.")
    found.setflags(write=False)
    return found


def slope_and_width(slope: int, width: int) -> tuple[int, int]:
    """``0 <= slope <= width``: with a steeper slope ranges would be empty (A35 i)."""
    slope, width = count("slope", slope, minimum=0), count("width", width, minimum=0)
    if slope > width:
        raise InvalidArgument(f"slope must not exceed width={width}, got {slope}.")
    return slope, width


def fits(centres: Ints, slope: int, width: int, *, farthest: int) -> None:
    """Refuse numbers whose sums would not fit into 64 bits."""
    largest = max(abs(int(centres.max())), abs(int(centres.min())))
    if 2 * ((largest + width) << FINE) + 2 * slope * farthest > LARGEST_FINE:
        raise InvalidArgument("centres, slope and width have too many steps: use a larger step.")


def chunks(inputs: Floats, cells: int) -> list[NDArray[np.float64]]:
    """Inputs in groups whose distances fit into the cache."""
    group = max(1, _CHUNK // max(1, cells))
    return [inputs[at : at + group] for at in range(0, len(inputs), group)]


def same_shape(inputs: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Inputs with as many positions and attributes as the anchors, which are public."""
    found = tuples("inputs", inputs)
    if found.shape[1:] != shape:
        raise OutOfDomain(f"inputs must have shape (inputs, {shape[0]}, {shape[1]}).")
    return found
