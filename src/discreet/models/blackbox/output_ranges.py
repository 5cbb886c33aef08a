"""A public range for every input, into which any function's value is clipped, in whole steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Number
from discreet.core._validate import count, exponent_below, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox.metrics import FINE, ONE, Floats, Ints, Metric, tuples

# Sums in fine units stay below this, so that 64-bit integers never wrap around.
LARGEST_FINE = 1 << 61
# Distances times anchors times positions that are worked on at once: one megabyte.
_CHUNK = 1 << 17
_BEYOND = 2.0**62


class OutputRanges(ABC):
    """``[low(D), high(D)]`` in steps, for every input D."""

    # Theorem: what `clip` returns changes by at most `width` steps between neighbors, for every
    #   function, whatever it returns, random or not.
    # Proof: `low <= high` always, and `high(D) - low(D') <= width` for all neighbors D, D' and
    #   for D' = D: each kind of ranges proves this. Values are made whole *before* they are
    #   clipped, so their own rounding does not matter (A43).

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
        """Public bounds of all ranges, in steps: for clipping after the noise."""

    @property
    @abstractmethod
    def relation_words(self) -> str:
        """Which two inputs are neighbors, for people."""

    def clip(self, values: ArrayLike, inputs: ArrayLike) -> Ints:
        """Values in whole steps, inside the range of their inputs; what is no number goes midway.

        >>> from discreet.models.blackbox.output_ranges import LeaveOneOutRange
        >>> from discreet.models.blackbox.metrics import Records
        >>> clip = LeaveOneOutRange(
        ...     anchors=[[0], [1]], centers=[0, 8], slope=4, width=4, metric=Records()
        ... )
        >>> clip.clip([100.0, float("nan")], [[0], [0]])
        array([6, 4])
        """
        return clip_to_range(values, *self.ranges(inputs), step=self.step)


class MetricRanges(OutputRanges):
    """Ranges whose neighbors are those of a metric."""

    metric: Metric

    @property
    def relation_words(self) -> str:
        return self.metric.relation_words


def common(doubled: Ints, *, spread: int, unit: int = ONE) -> tuple[Ints, Ints]:
    """What the intervals ``(doubled -+ spread) / 2`` of each row share; ``unit`` of them: a step.

    Floor at both ends: rounding inward would make single points off the grid empty.
    """
    low: Ints = (doubled.max(axis=1) - spread) // (2 * unit)
    high: Ints = (doubled.min(axis=1) + spread) // (2 * unit)
    return low, high


def clip_to_range(values: ArrayLike, low: Ints, high: Ints, *, step: Fraction) -> Ints:
    """Values in whole steps, between the ends; what is not finite goes to the middle."""
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
    return make_read_only(array.astype(np.int64))


def make_read_only(array: Ints) -> Ints:
    """The same array, read-only from now on: ranges are proved once."""
    array.setflags(write=False)
    return array


def check_anchors(metric: Metric, anchors: ArrayLike, many: int) -> Floats:
    """Public inputs, finite, one for each center."""
    if not isinstance(metric, Metric):
        raise InvalidArgument(f"metric must be a Metric, got {type(metric).__name__}.")
    found = tuples("anchors", anchors).copy()
    if len(found) != many or not np.isfinite(found).all() or 0 in found.shape:
        raise InvalidArgument(f"anchors must be {many} finite inputs, one for each center.")
    found.setflags(write=False)
    return found


def slope_and_width(slope: int, width: int) -> tuple[int, int]:
    """``0 <= slope <= width``: with a steeper slope ranges would be empty."""
    slope, width = count("slope", slope, minimum=0), count("width", width, minimum=0)
    if slope > width:
        raise InvalidArgument(f"slope must not exceed width={width}, got {slope}.")
    return slope, width


def check_size(centers: Ints, slope: int, width: int, *, farthest: int) -> None:
    """Refuse numbers whose sums would not fit into 64 bits."""
    largest = max(abs(int(centers.max())), abs(int(centers.min())))
    if 2 * ((largest + width) << FINE) + 2 * slope * farthest > LARGEST_FINE:
        raise InvalidArgument("centers, slope and width have too many steps: use a larger step.")


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


# ── One range for all inputs ─────────────────────────────────────────────────────────────────────


_MOST_TRIED = 2048
_MOST_STEPS = 1 << 52
_FAR = 1 << 40


class ConstantRange(OutputRanges):
    """The same range everywhere, whatever a neighbor is."""

    # Theorem: clipped answers differ by at most `width`. Proof: they lie in one interval.

    def __init__(self, *, low: int, high: int, step: Fraction) -> None:
        if low > high:
            raise InvalidArgument("A window must have low below high.")
        self.low, self.high, self.width = low, high, high - low
        self.step = power_of_two(step)

    @property
    def hull(self) -> tuple[int, int]:
        return self.low, self.high

    @property
    def relation_words(self) -> str:
        return "the whole input replaced by anything"

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        many = len(tuples("inputs", inputs))
        return np.full(many, self.low, dtype=np.int64), np.full(many, self.high, dtype=np.int64)

    @classmethod
    def fit(cls, said: Floats, *, width: int, step: Fraction) -> Self:
        """The window of this width that cuts off least from public outputs."""
        steps = to_steps(said, step)
        tried = np.unique(np.concatenate([steps, steps - width]))
        if len(tried) > _MOST_TRIED:
            tried = tried[np.linspace(0, len(tried) - 1, _MOST_TRIED).astype(np.int64)]
        gaps = steps[:, None] - tried
        cut = np.maximum(gaps - width, 0) + np.maximum(-gaps, 0)
        low = int(tried[np.argmin(cut.mean(axis=0))])
        return cls(low=low, high=low + width, step=step)


class DeclaredSensitivityRange(OutputRanges):
    """No limits that matter: the function itself is declared to change by little enough."""

    # Theorem: clipped answers of neighbors differ by at most `width` steps if the function changes
    #   by at most `width - 1` steps. Proof: values are rounded down and clipped to one interval,
    #   which moves no two apart by more than a step; within it doubles are exact to far less.
    # Needs: that the declaration is true, for all inputs of the domain. It is tried, not proved.

    def __init__(self, *, width: int, step: Fraction) -> None:
        self.width, self.step = width, power_of_two(step)

    @property
    def hull(self) -> tuple[int, int]:
        return -_FAR, _FAR

    @property
    def relation_words(self) -> str:
        return "what the sensitivity was declared for"

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        many = len(tuples("inputs", inputs))
        return np.full(many, -_FAR, dtype=np.int64), np.full(many, _FAR, dtype=np.int64)


def to_steps(values: Floats, step: Fraction) -> Ints:
    """Public values in whole steps, rounded down."""
    scaled = np.floor(np.asarray(values, dtype=np.float64) / float(step))
    return np.clip(scaled, -_MOST_STEPS, _MOST_STEPS).astype(np.int64)


# ── Leave-one-out ranges ─────────────────────────────────────────────────────────────────────────


# So many anchors are tried to see whether a metric keeps its bounds.
_TRIED = 16


class LeaveOneOutRange(MetricRanges):
    """Ranges around a public surrogate that never look at the record that may change.

    ``anchors`` are public inputs (K, positions, attributes), ``centers`` what the function should
    be near there, in whole steps; between anchors the surrogate changes by at most ``slope`` steps
    per unit of distance. ``width`` is the sensitivity. Both are in steps of ``step``.

    >>> from discreet.models.blackbox.metrics import Records
    >>> clip = LeaveOneOutRange(
    ...     anchors=[[0, 0]], centers=[10], slope=2, width=4, metric=Records()
    ... )
    >>> clip.ranges([[0, 0], [1, 0]])
    (array([8, 8]), array([12, 12]))
    """

    # Theorem: for every function g, clipping g(D) into the range of D changes by at most `width`
    #   steps between neighbors of `metric`, whatever the centers are, fitted well or badly.
    # Proof: for a neighborhood b (a record, an attribute, a window) let e_k be the distance of D to
    #   anchor k without b, and lo = min(z_k + slope e_k), hi = max(z_k - slope e_k), T = lo + hi.
    #   The full distance lies in [e_k, e_k + 1], so the surrogate's two ends lie in [lo, lo +
    #   slope] and [hi - slope, hi], and their sum within `slope` of T: the T of all b differ by
    #   at most 2 slope <= 2 width, so `max T - width <= min T + width` and, floored alike at
    #   both ends, low <= high. Neighbors that differ in b share T_b, and both lie in the floors of
    #   (T_b -+ width) / 2, which are `width` steps apart. Everything is a sum of integers. A35.
    # Source: Aoutouf 2021 (clipping to learned ranges); McShane 1934, Whitney 1934 (extension).
    # Needs: slope <= width; parts of distances in [0, 1] (held there by force, so any metric will
    #   do, symmetric or not); public anchors, centers, slope, width and metric.

    def __init__(
        self,
        *,
        anchors: ArrayLike,
        centers: ArrayLike,
        slope: int,
        width: int,
        metric: Metric,
        step: Number = 1,
    ) -> None:
        self.centers = whole_steps("centers", centers)
        self.anchors = check_anchors(metric, anchors, len(self.centers))
        self._accept(metric, metric.coordinates(self.anchors), self.anchors[:_TRIED])
        self._steps(slope, width, step)

    def _accept(self, metric: Metric, coordinates: Ints, examples: Floats) -> None:
        """Keep the coordinates of what distances are taken to; refuse a metric that is none."""
        if not metric.record_like:
            raise InvalidArgument(
                f"{type(metric).__name__} has no record to leave out: use TubeClip."
            )
        self.metric = metric
        self.shape: tuple[int, ...] = examples.shape[1:]
        self._coordinates = make_read_only(coordinates)
        parts = metric.between(metric.coordinates(examples), coordinates)
        if parts.min() < 0 or parts.max() > ONE:
            raise InvalidArgument("metric must have parts between 0 and 1, in units of 2**-20.")
        self.positions = parts.shape[-1]

    def _steps(self, slope: int, width: int, step: Number) -> None:
        self.slope, self.width = slope_and_width(slope, width)
        self.step: Fraction = power_of_two(step)
        check_size(self.centers, self.slope, self.width, farthest=self.positions * ONE)

    @property
    def hull(self) -> tuple[int, int]:
        # With k attaining lo, hi >= z_k - slope e_k, so T >= 2 z_k; likewise T <= 2 max z.
        low, high = int(self.centers.min()), int(self.centers.max())
        return (2 * low - self.width) // 2, (2 * high + self.width) // 2

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        whole = same_shape(inputs, self.shape)
        if len(whole) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        ends = [self._few(few) for few in chunks(whole, len(self.centers) * self.positions)]
        return (
            np.concatenate([low for low, _ in ends]),
            np.concatenate([high for _, high in ends]),
        )

    def doubled(self, inputs: ArrayLike) -> Ints:
        """Twice the centers of the intervals, one for each neighborhood, in fine units: (Q, B)."""
        parts = self.metric.between(self.metric.coordinates(inputs), self._coordinates)
        np.clip(parts, 0, ONE, out=parts)
        rise = self.metric.left_out(parts)
        rise *= self.slope
        z = (self.centers << FINE)[:, None]
        lowest: Ints = (z + rise).min(axis=1)
        highest: Ints = np.subtract(z, rise, out=rise).max(axis=1)
        return lowest + highest

    def _few(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        return common(self.doubled(inputs), spread=self.width << FINE)
