"""Which two inputs are neighbors, and how far any two are apart, in whole numbers.

Every entry of an input is turned into an integer by itself, and distances are sums of integers: a
position that is left out leaves no trace, not even in the last bit. The unit is 2**-20.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._validate import count, finite
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported

# ── Nested tuples ────────────────────────────────────────────────────────────────────────────────
# One number for all, one for each attribute, one for each entry.


def fits_into(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether one shape stretches to another, without stretching the other."""
    try:
        return np.broadcast_shapes(small, large) == large
    except ValueError:
        return False


def nested(name: str, value: Any) -> Any:
    """Numbers in tuples in tuples, as doubles; lists and arrays are welcome."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(nested(name, part) for part in value)
    return float(finite(name, value))


def depth_of(cuts: tuple[Any, ...]) -> int:
    """0: thresholds for all; 1: for each attribute; 2: for each attribute of each position."""
    depth = 0
    while cuts and isinstance(cuts[0], tuple):
        depth, cuts = depth + 1, cuts[0]
    return depth


def leaves_in(cuts: tuple[Any, ...]) -> list[tuple[float, ...]]:
    """The innermost tuples."""
    if depth_of(cuts) == 0:
        return [cuts]
    return [leaf for part in cuts for leaf in leaves_in(part)]


# ── Metrics ──────────────────────────────────────────────────────────────────────────────────────


Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Level: TypeAlias = Literal["record", "attribute"]
Nested: TypeAlias = float | tuple[Any, ...]

FINE = 20
ONE = 1 << FINE
"""One whole distance, in the unit of all distances."""

# Parts of distances that are worked on at once: a few megabytes.
_CHUNK = 1 << 19
_LARGEST_COORDINATE = 2.0**51
_LARGEST_COUNT = 2.0**28


def tuples(name: str, inputs: ArrayLike) -> Floats:
    """Inputs as floats (many, positions, attributes); one attribute may be left out."""
    try:
        array = np.asarray(inputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is not None and array.shape == (0,):  # an empty list does not tell its shape
        return np.empty((0, 0, 0))
    if array is None or array.ndim not in (2, 3):
        raise OutOfDomain(
            f"{name} must be numbers of shape (inputs, positions, attributes)."
        ) from None
    return array[:, :, None] if array.ndim == 2 else array


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A public distance of inputs, position by position.

    Distances are exact integers in units of 2**-20.

    Args:
        missing: Public number that replaces values that are not finite.

    Raises:
        InvalidArgument: `missing` is not finite.

    Examples:
        >>> from discreet import blackbox
        >>> isinstance(blackbox.Records(), blackbox.Metric)
        True
    """

    missing: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", float(finite("missing", self.missing)))

    @property
    @abstractmethod
    def relation_words(self) -> str:
        """What a neighboring input is, in words."""

    @property
    def record_like(self) -> bool:
        """Whether leaving out what a neighbor changes moves a distance by at most one."""
        return True

    @property
    def discrete(self) -> bool:
        """Whether every part of a distance is zero or one."""
        return False

    def cells(self, coordinates: Ints) -> tuple[Ints, tuple[int | None, ...]]:
        """Label the cell of each input at each position.

        Args:
            coordinates: Coordinates of inputs, from `coordinates`.

        Returns:
            Labels, inputs x positions, and the number of cells of each position.

        Raises:
            Unsupported: The metric has no cells.

        Examples:
            >>> from discreet import blackbox
            >>> metric = blackbox.Records()
            >>> labels, sizes = metric.cells(metric.coordinates([[1, 2], [1, 3]]))
            >>> labels.tolist()
            [[0, 0], [0, 1]]
        """
        raise Unsupported(f"{type(self).__name__} has no cells ({len(coordinates)} inputs).")

    def cleaned(self, inputs: ArrayLike) -> Floats:
        """Replace values that are not finite.

        Args:
            inputs: Inputs, inputs x positions, or inputs x positions x attributes.

        Returns:
            The inputs with `missing` in place of such values.

        Raises:
            OutOfDomain: The inputs do not have two or three dimensions.

        Examples:
            >>> from discreet import blackbox
            >>> blackbox.Records(missing=7).cleaned([[1, float("nan")]]).ravel().tolist()
            [1.0, 7.0]
        """
        array = tuples("inputs", inputs)
        return np.where(np.isfinite(array), array, self.missing)

    @abstractmethod
    def coordinates(self, inputs: ArrayLike) -> Ints:
        """Convert each value to an integer.

        Args:
            inputs: Inputs, inputs x positions, or inputs x positions x attributes.

        Returns:
            Integers, inputs x positions x attributes.

        Raises:
            OutOfDomain: The inputs do not fit the metric.

        Examples:
            >>> from discreet import blackbox
            >>> blackbox.UnitCount().coordinates([[1, 2.7]]).ravel().tolist()
            [1, 2]
        """

    @abstractmethod
    def between(self, queries: Ints, anchors: Ints) -> Ints:
        """Compute the parts of distances between coordinates.

        Args:
            queries: Coordinates of inputs, from `coordinates`.
            anchors: Coordinates of other inputs.

        Returns:
            Integers in units of 2**-20, queries x anchors x positions.

        Examples:
            >>> from discreet import blackbox
            >>> metric = blackbox.Records()
            >>> one, other = metric.coordinates([[1, 2]]), metric.coordinates([[1, 3]])
            >>> (metric.between(one, other) / 2**20).tolist()
            [[[0.0, 1.0]]]
        """

    def parts(self, queries: ArrayLike, anchors: ArrayLike) -> Ints:
        """Compute the parts of distances between inputs.

        Args:
            queries: Inputs.
            anchors: Other inputs.

        Returns:
            Integers in units of 2**-20, queries x anchors x positions.

        Examples:
            >>> from discreet import blackbox
            >>> (blackbox.Records().parts([[1, 2]], [[1, 3]]) / 2**20).tolist()
            [[[0.0, 1.0]]]
        """
        return self.between(self.coordinates(queries), self.coordinates(anchors))

    def total(self, parts: Ints) -> Ints:
        """Add up the parts of distances.

        Args:
            parts: Parts, from `parts` or `between`.

        Returns:
            Distances in units of 2**-20, queries x anchors.

        Examples:
            >>> from discreet import blackbox
            >>> metric = blackbox.Records()
            >>> (metric.total(metric.parts([[1, 2]], [[3, 4]])) / 2**20).tolist()
            [[2.0]]
        """
        summed: Ints = parts.sum(axis=-1)
        return summed

    def left_out(self, parts: Ints) -> Ints:
        """Compute distances without what one neighbor may change.

        Args:
            parts: Parts, from `parts` or `between`.

        Returns:
            Distances in units of 2**-20, queries x anchors x neighborhoods.

        Raises:
            Unsupported: The metric is not one of records.

        Examples:
            >>> from discreet import blackbox
            >>> metric = blackbox.Records()
            >>> (metric.left_out(metric.parts([[1, 2]], [[1, 3]])) / 2**20).tolist()
            [[[1.0, 0.0]]]
        """
        rest: Ints = parts.sum(axis=-1, keepdims=True) - parts
        return rest

    def distances(self, queries: ArrayLike, anchors: ArrayLike) -> Ints:
        """Compute all distances between two sets of inputs.

        Args:
            queries: Inputs.
            anchors: Other inputs.

        Returns:
            Distances in units of 2**-20, queries x anchors.

        Examples:
            >>> from discreet import blackbox
            >>> (blackbox.Records().distances([[1, 2]], [[1, 3], [1, 2]]) / 2**20).tolist()
            [[1.0, 0.0]]
        """
        a, b = self.coordinates(queries), self.coordinates(anchors)
        group = max(1, _CHUNK // max(1, b.size))
        rows = [self.total(self.between(a[at : at + group], b)) for at in range(0, len(a), group)]
        return np.concatenate(rows) if rows else np.zeros((0, len(b)), dtype=np.int64)

    def distance(self, a: ArrayLike, b: ArrayLike) -> Fraction:
        """Compute the exact distance of two inputs.

        Args:
            a: Input, positions or positions x attributes.
            b: Other input of the same shape.

        Returns:
            The distance.

        Examples:
            >>> from discreet import blackbox
            >>> blackbox.Records().distance([1, 2], [1, 3])
            Fraction(1, 1)
        """
        pair = [np.asarray(one, dtype=np.float64)[None] for one in (a, b)]
        return Fraction(int(self.distances(pair[0], pair[1])[0, 0]), ONE)


@dataclass(frozen=True, kw_only=True)
class _Positions(Metric):
    """Metrics whose neighbors differ in one position: a record, or one attribute of one record."""

    level: Level = "record"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.level not in ("record", "attribute"):
            raise InvalidArgument(f"level must be 'record' or 'attribute', got {self.level!r}.")

    @property
    def relation_words(self) -> str:
        unit = "one attribute of one record" if self.level == "attribute" else "one whole record"
        return f"{unit} replaced by anything; how many records and their order are public"

    def _unfolded(self, coordinates: Ints) -> Ints:
        """At attribute level each attribute is a position of its own."""
        if self.level == "record":
            return coordinates
        return coordinates.reshape(len(coordinates), -1, 1)


@dataclass(frozen=True, kw_only=True)
class Records(_Positions):
    """Hamming distance: the number of records, or of their attributes, that differ.

    Args:
        missing: Public number that replaces values that are not finite.
        level: `"record"` if a neighbor changes one record, `"attribute"` if it changes one
            attribute of one record.

    Examples:
        >>> from discreet import blackbox
        >>> blackbox.Records().distance([1, 2, 3], [1, 5, 6])
        Fraction(2, 1)
    """

    @property
    def discrete(self) -> bool:
        return True

    def cells(self, coordinates: Ints) -> tuple[Ints, tuple[int | None, ...]]:
        unfolded = self._unfolded(coordinates)
        labels = [
            np.unique(unfolded[:, i], axis=0, return_inverse=True)[1].reshape(-1)
            for i in range(unfolded.shape[1])
        ]
        return np.stack(labels, axis=1), self._sizes(coordinates.shape[1:])

    def _sizes(self, shape: tuple[int, ...]) -> tuple[int | None, ...]:
        """How many values each position can have: for numbers, no limit is known."""
        return (None,) * (shape[0] if self.level == "record" else math.prod(shape))

    def coordinates(self, inputs: ArrayLike) -> Ints:
        # Equal doubles have equal bits, but for the two zeros, which adding zero makes one.
        return (self.cleaned(inputs) + 0.0).view(np.int64)

    def between(self, queries: Ints, anchors: Ints) -> Ints:
        a, b = self._unfolded(queries), self._unfolded(anchors)
        differs = a[:, None, :, 0] != b[None, :, :, 0]
        for j in range(1, a.shape[-1]):
            differs |= a[:, None, :, j] != b[None, :, :, j]
        parts: Ints = differs.astype(np.int64) << FINE
        return parts


@dataclass(frozen=True, kw_only=True)
class CellMetric(Records):
    """Hamming distance of cells: a record differs if it lies in another cell.

    Args:
        missing: Public number that replaces values that are not finite.
        level: `"record"` or `"attribute"`, as in `Records`.
        cuts: Increasing thresholds between cells: one list for all attributes, one per attribute,
            or one per attribute of each position. A value that equals a threshold lies below it.
        single: Whether values are rounded to single precision first, as trees of scikit-learn do.

    Raises:
        InvalidArgument: The thresholds do not increase.

    Examples:
        >>> from discreet import blackbox
        >>> blackbox.CellMetric(cuts=(1, 2)).distance([0.2, 1.5], [0.8, 2.5])
        Fraction(1, 1)
    """

    cuts: tuple[Any, ...]
    single: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cuts", nested("cuts", self.cuts))
        for cut in leaves_in(self.cuts):
            if any(a >= b for a, b in pairwise(cut)):
                raise InvalidArgument("cuts must be increasing, without repetition.")

    @classmethod
    def even(cls, *, low: float, high: float, cells: int) -> CellMetric:
        """Create a metric with cells of equal width for every attribute.

        Args:
            low: Lower end of the range. The first cell contains all smaller values.
            high: Upper end of the range. The last cell contains all larger values.
            cells: Number of cells.

        Returns:
            The metric.

        Raises:
            InvalidArgument: `low` is not below `high`, or `cells` is not a positive integer.

        Examples:
            >>> from discreet import blackbox
            >>> blackbox.CellMetric.even(low=0, high=3, cells=3).cuts
            (1.0, 2.0)
        """
        cells, low, high = count("cells", cells), float(low), float(high)
        if not low < high:
            raise InvalidArgument(f"low must be below high, got {low} and {high}.")
        return cls(cuts=tuple(float(cut) for cut in np.linspace(low, high, cells + 1)[1:-1]))

    def coordinates(self, inputs: ArrayLike) -> Ints:
        array = self.cleaned(inputs)
        if self.single:
            with np.errstate(over="ignore"):  # beyond single precision is beyond every cut
                array = array.astype(np.float32).astype(np.float64)
        found = np.empty(array.shape, dtype=np.int64)
        for i, j in np.ndindex(array.shape[1:]):
            cut = self._cut(i, j, array.shape[1:])
            found[:, i, j] = np.searchsorted(cut, array[:, i, j], side="left")
        return found

    def _sizes(self, shape: tuple[int, ...]) -> tuple[int | None, ...]:
        each = [len(self._cut(i, j, shape)) + 1 for i, j in np.ndindex(shape)]
        if self.level == "attribute":
            return tuple(each)
        return tuple(math.prod(row) for row in np.reshape(each, shape).tolist())

    def _cut(self, position: int, attribute: int, shape: tuple[int, ...]) -> tuple[float, ...]:
        cut = self.cuts
        for size, index in zip(
            shape[2 - depth_of(cut) :], (position, attribute)[2 - depth_of(cut) :], strict=True
        ):
            if len(cut) != size:
                raise OutOfDomain("cuts do not fit the shape of the inputs.")
            cut = cut[index]
        return cut


@dataclass(frozen=True, kw_only=True)
class Truncated(_Positions):
    """Distance min(1, |x - x'| / width) per record, for numbers without cells.

    Args:
        missing: Public number that replaces values that are not finite.
        level: `"record"` or `"attribute"`, as in `Records`.
        width: Difference from which two values count as entirely different: one number, one per
            attribute, or one per attribute of each position.
        combine: `"largest"` or `"sum"` of the attributes of a record, before the distance is
            truncated.

    Raises:
        InvalidArgument: A width is not positive and finite, or `combine` is unknown.

    Examples:
        >>> from discreet import blackbox
        >>> blackbox.Truncated(width=10).distance([0, 0], [5, 50])
        Fraction(3, 2)
    """

    width: Nested
    combine: Literal["largest", "sum"] = "largest"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", nested("width", self.width))
        if not all(0 < w < 1e300 for w in np.ravel(np.asarray(self.width, dtype=float))):
            raise InvalidArgument("width must be positive and finite everywhere.")
        if self.combine not in ("largest", "sum"):
            raise InvalidArgument(f"combine must be 'largest' or 'sum', got {self.combine!r}.")

    def coordinates(self, inputs: ArrayLike) -> Ints:
        array, width = self.cleaned(inputs), np.asarray(self.width)
        if not fits_into(width.shape, array.shape):
            raise OutOfDomain("width does not fit the shape of the inputs.")
        with np.errstate(over="ignore", under="ignore"):
            scaled: Floats = np.rint(array / width * ONE)
        return np.clip(scaled, -_LARGEST_COORDINATE, _LARGEST_COORDINATE).astype(np.int64)

    def between(self, queries: Ints, anchors: Ints) -> Ints:
        a, b = self._unfolded(queries), self._unfolded(anchors)
        apart = np.abs(a[:, None, :, 0] - b[None, :, :, 0])
        for j in range(1, a.shape[-1]):
            other = np.abs(a[:, None, :, j] - b[None, :, :, j])
            if self.combine == "sum":
                # Cut off before adding: far coordinates cannot overflow, the minimum is the same.
                apart = np.minimum(apart, ONE) + np.minimum(other, ONE)
            else:
                apart = np.maximum(apart, other)
        parts: Ints = np.minimum(apart, ONE, out=apart)
        return parts


@dataclass(frozen=True, kw_only=True)
class UnitCount(Metric):
    """The number of events by which two series of counts differ.

    One event more or less is distance one, and an event that moves to another reading is distance
    two. Values are rounded down to integers.

    Args:
        missing: Public number that replaces values that are not finite.

    Examples:
        >>> from discreet import blackbox
        >>> blackbox.UnitCount().distance([3, 4], [3, 6])
        Fraction(2, 1)
    """

    @property
    def relation_words(self) -> str:
        return "one event more or less in one count; counts are whole numbers, their order public"

    @property
    def record_like(self) -> bool:
        return False

    def coordinates(self, inputs: ArrayLike) -> Ints:
        whole = np.floor(self.cleaned(inputs))
        return np.clip(whole, -_LARGEST_COUNT, _LARGEST_COUNT).astype(np.int64)

    def between(self, queries: Ints, anchors: Ints) -> Ints:
        apart: Ints = np.abs(queries[:, None] - anchors[None]).sum(axis=-1)
        return apart << FINE

    def left_out(self, parts: Ints) -> Ints:
        raise Unsupported(
            f"UnitCount has no leave-one-out ranges ({parts.shape[-1]} positions): use TubeClip."
        )


@dataclass(frozen=True, kw_only=True)
class WindowGroups(Metric):
    """The number of windows of consecutive positions that cover all differences.

    It protects runs of consecutive records (w-event privacy).

    Args:
        missing: Taken from `parts_of`.
        length: Number of positions of a window.
        parts_of: Metric of single positions: `Records`, `CellMetric` or `Truncated` at record
            level.

    Raises:
        InvalidArgument: `length` is not a positive integer, or `parts_of` is another metric.

    Examples:
        >>> from discreet import blackbox
        >>> metric = blackbox.WindowGroups(length=2, parts_of=blackbox.Records())
        >>> metric.distance([1, 1, 1, 1], [2, 2, 1, 2])
        Fraction(2, 1)

    References:
        Kellaris, Papadopoulos, Xiao and Papadias (2014).
        [Proof](../theory/theorems.md#models.blackbox.metrics.WindowGroups).
    """

    # Theorem: a metric; changing any `length` consecutive positions moves it by at most one.
    # Proof: covers add up, so the triangle inequality of the parts passes on. A neighbor's window
    #   at height one covers all it changed. From left to right, raising the window that *starts*
    #   at the first position not yet covered is best, because it reaches furthest: so the greedy
    #   sum below is the smallest total. Windows that reach beyond the end shift back for free.
    # Source: Kellaris, Papadopoulos, Xiao, Papadias 2014 (w-event privacy); Aoutouf 2021, 8.4.

    length: int
    parts_of: Metric

    def __post_init__(self) -> None:
        super().__post_init__()
        count("length", self.length)
        if not isinstance(self.parts_of, _Positions) or self.parts_of.level != "record":
            raise InvalidArgument(
                "parts_of must be Records, CellMetric or Truncated at record level."
            )
        object.__setattr__(self, "missing", self.parts_of.missing)

    @property
    def relation_words(self) -> str:
        return (
            f"up to {self.length} consecutive records replaced by anything; "
            "how many records and their order are public"
        )

    def coordinates(self, inputs: ArrayLike) -> Ints:
        return self.parts_of.coordinates(inputs)

    def between(self, queries: Ints, anchors: Ints) -> Ints:
        return self.parts_of.between(queries, anchors)

    def total(self, parts: Ints) -> Ints:
        covered: Ints = self._covers(np.moveaxis(parts, -1, 0))[-1]
        return covered

    def left_out(self, parts: Ints) -> Ints:
        """Compute distances without each window.

        What is before the window and what is after it are covered separately. No window that starts
        before the one left out reaches beyond it, so the two do not meet.

        Args:
            parts: Parts, from `parts` or `between`.

        Returns:
            Distances in units of 2**-20, queries x anchors x windows.

        Examples:
            >>> from discreet import blackbox
            >>> metric = blackbox.WindowGroups(length=2, parts_of=blackbox.Records())
            >>> parts = metric.parts([[1, 1, 1]], [[2, 2, 2]])
            >>> (metric.left_out(parts) / 2**20).tolist()
            [[[1.0, 1.0]]]
        """
        by_position = np.ascontiguousarray(np.moveaxis(parts, -1, 0))
        n = len(by_position)
        before = self._covers(by_position)
        after = self._covers(by_position[::-1])[::-1]
        starts = np.arange(max(1, n - self.length + 1))
        rest = before[starts] + after[np.minimum(starts + self.length, n)]
        return np.ascontiguousarray(np.moveaxis(rest, 0, -1))

    def _covers(self, parts: Ints) -> Ints:
        """The smallest cover of the first 0, 1, ..., n positions: (n + 1, ...)."""
        n = len(parts)
        totals = np.zeros((n + 1, *parts.shape[1:]), dtype=np.int64)
        for i in range(n):
            # What windows that began among the last length - 1 positions cover here.
            covered = totals[i] - totals[max(0, i - self.length + 1)]
            totals[i + 1] = totals[i] + np.maximum(0, parts[i] - covered)
        return totals


# ── Neighbors by name ────────────────────────────────────────────────────────────────────────────


AdjacencyLevel: TypeAlias = Literal["record", "attribute", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """One record, one attribute of one record, one event of a count, or a run of records.

    A distance that was given is used as it is; otherwise public data choose one that fits. It must
    be one whose neighbors are known: nothing here could tell what any other distance hides.
    """

    level: AdjacencyLevel = "record"
    group: int = 1
    metric: Metric | None = None

    @classmethod
    def of(cls, metric: AdjacencyLevel | Metric, *, group: int = 1) -> Adjacency:
        """From what the user said; there is no default."""
        run = count("group", group)
        if isinstance(metric, Metric):
            if run != 1:
                raise InvalidArgument("group is for a named metric: use WindowGroups here.")
            return cls._from(metric)
        word: object = metric
        if not isinstance(word, str) or word not in get_args(AdjacencyLevel):
            raise InvalidArgument(
                f"metric must be 'record', 'attribute', 'count' or a Metric, got {metric!r}."
            )
        if run > 1 and metric != "record":
            raise InvalidArgument("group is for metric='record': consecutive records.")
        return cls(level=metric, group=run)

    @classmethod
    def _from(cls, metric: Metric) -> Adjacency:
        if isinstance(metric, UnitCount):
            return cls(level="count", metric=metric)
        if isinstance(metric, WindowGroups):
            return cls(level="record", group=metric.length, metric=metric)
        if not isinstance(metric, Records | Truncated):
            raise InvalidArgument(
                "metric must be Records, CellMetric, Truncated, UnitCount, WindowGroups or derived "
                f"from one: who is a neighbor under {type(metric).__name__} is not known here."
            )
        return cls(level=metric.level, metric=metric)

    @property
    def words(self) -> str:
        """What is hidden."""
        return self.plain.relation_words

    @property
    def plain(self) -> Metric:
        """The distance that counts units that differ."""
        return self._grouped(self._leveled())

    def truncated(self, widths: Floats) -> Metric:
        """Distances that grow up to one for each record, with these widths of ``(n, d)``."""
        if self.level == "attribute":
            return Truncated(width=widths.tolist(), level="attribute")
        return self._grouped(Truncated(width=widths.tolist()))

    def cells(self, cuts: list[list[float]]) -> Metric:
        """Distances between cells; one list of cuts for each attribute."""
        if self.level == "attribute":
            return CellMetric(cuts=tuple(map(tuple, cuts)), level="attribute")
        return self._grouped(CellMetric(cuts=tuple(map(tuple, cuts))))

    def _leveled(self) -> Metric:
        if self.level == "count":
            return UnitCount()
        return Records(level="attribute") if self.level == "attribute" else Records()

    def _grouped(self, metric: Metric) -> Metric:
        if self.group == 1:
            return metric
        return WindowGroups(length=self.group, parts_of=metric)
