"""Ordered domains: the cells that are counted, their labels, and coarser cells made of them.

A domain is declared, never inferred from the data. Ranges include both ends; an end of None is
open. For bins, a range starts at the lower edge of one bin and ends at the upper edge of another.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.boundary.rows import cells, shape_of
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.distribution import Ints

# ── Domains ──────────────────────────────────────────────────────────────────────────────────────


LARGEST = 1 << 26
"""Most cells of a domain: what fits the memory of a desk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerDomain:
    """The whole numbers ``lower .. upper``."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            check.count(name, getattr(self, name), minimum=-(2**63))
        _sized(self.upper - self.lower + 1)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.upper - self.lower + 1

    def first(self, labels: Any) -> Ints:
        """The cells at which ranges start."""
        given = np.asarray(labels)
        if given.dtype.kind not in "iu":
            raise InvalidArgument(f"a range of integers needs whole ends, got {given.dtype}.")
        if given.dtype.kind == "u" and given.size and given.max() > np.iinfo(np.int64).max:
            raise InvalidArgument(f"a range must lie in {self}.")
        whole: Ints = given.astype(np.int64)
        # Compared before subtracting: an end far outside must not wrap around into the domain.
        return np.where((whole >= self.lower) & (whole <= self.upper), whole - self.lower, -1)

    last = first

    def label(self, cell: int) -> object:
        """The label of a cell."""
        return self.lower + cell

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "integers", "lower": self.lower, "upper": self.upper}

    def __str__(self) -> str:
        return f"{self.lower} .. {self.upper}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateDomain:
    """The days ``lower .. upper``."""

    lower: dt.date
    upper: dt.date

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            given = getattr(self, name)
            if not isinstance(given, dt.date):
                raise InvalidArgument(f"{name} must be a date, got {type(given).__name__}.")
        _sized((self.upper - self.lower).days + 1)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return (self.upper - self.lower).days + 1

    def first(self, labels: Any) -> Ints:
        """The cells at which ranges start."""
        try:
            days = np.asarray(labels, dtype="datetime64[D]")
        except (ValueError, TypeError):
            raise InvalidArgument("a range of dates needs dates, such as '2024-02-29'.") from None
        if np.isnat(days).any():
            raise InvalidArgument("a range of dates needs dates; use None for an open end.")
        return (days - np.datetime64(self.lower, "D")).astype(np.int64)

    last = first

    def label(self, cell: int) -> object:
        """The label of a cell."""
        return self.lower + dt.timedelta(days=int(cell))

    def content(self) -> dict[str, Any]:
        """As JSON."""
        ends = self.lower.isoformat(), self.upper.isoformat()
        return {"kind": "dates", "lower": ends[0], "upper": ends[1]}

    def __str__(self) -> str:
        return f"{self.lower} .. {self.upper}"


@dataclass(frozen=True, kw_only=True)
class BinnedDomain:
    """Real numbers between edges; the bin ``[e_i, e_(i+1))`` is a cell, the last one closed."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _sized(len(check.as_tuple("edges", self.edges)) - 1)
        pairs = zip(self.edges, self.edges[1:], strict=False)
        if not all(math.isfinite(edge) for edge in self.edges) or any(a >= b for a, b in pairs):
            raise InvalidArgument("edges must be finite and increase.")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1

    @cached_property
    def _array(self) -> NDArray[np.float64]:
        return np.array(self.edges)

    def first(self, labels: Any) -> Ints:
        """The cells at which ranges start: by their lower edges."""
        return self._edge(labels)

    def last(self, labels: Any) -> Ints:
        """The cells at which ranges end: by their upper edges."""
        return self._edge(labels) - 1

    def label(self, cell: int) -> object:
        """The label of a cell."""
        return self.edges[cell], self.edges[cell + 1]

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "bins", "edges": list(self.edges)}

    def __str__(self) -> str:
        return f"{self.size} bins of {self.edges[0]:g} .. {self.edges[-1]:g}"

    def _edge(self, labels: Any) -> Ints:
        try:
            values = np.asarray(labels, dtype=np.float64)
        except (ValueError, TypeError):
            raise InvalidArgument("a range of bins needs numbers, its edges.") from None
        found = np.searchsorted(self._array, values)
        if (self._array[np.minimum(found, self.size)] != values).any():
            raise InvalidArgument("a range of bins must start and end at declared edges.")
        return found.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class OrdinalDomain:
    """Categories in a declared order."""

    labels: tuple[str | int, ...]

    def __post_init__(self) -> None:
        _sized(len(check.as_tuple("labels", self.labels)))
        if not all(isinstance(label, str | int) for label in self.labels):
            raise InvalidArgument("labels must be texts or whole numbers.")
        if len(set(self.labels)) != len(self.labels):
            raise InvalidArgument("labels must differ from each other.")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.labels)

    @cached_property
    def _places(self) -> dict[str | int, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def first(self, labels: Any) -> Ints:
        """The cells at which ranges start."""
        given = np.asarray(labels, dtype=object)
        try:
            flat = [self._places[label] for label in given.ravel()]
        except (KeyError, TypeError):
            raise InvalidArgument("a range must start and end at declared labels.") from None
        return np.array(flat, dtype=np.int64).reshape(given.shape)

    last = first

    def label(self, cell: int) -> object:
        """The label of a cell."""
        return self.labels[cell]

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "ordered", "labels": list(self.labels)}

    def __str__(self) -> str:
        return f"{self.size} categories, {self.labels[0]} .. {self.labels[-1]}"


Domain: TypeAlias = IntegerDomain | DateDomain | BinnedDomain | OrdinalDomain


def check_domain(domain: Domain) -> Domain:
    """The domain itself; an error if it is something else."""
    if not isinstance(domain, IntegerDomain | DateDomain | BinnedDomain | OrdinalDomain):
        raise InvalidArgument(
            "domain must be declared, such as local.integers(lower=0, upper=63); got "
            f"{type(domain).__name__}."
        )
    return domain


def integers(lower: int, upper: int) -> IntegerDomain:
    """Declare a domain of whole numbers.

    Args:
        lower: Smallest number, included.
        upper: Largest number, included.

    Returns:
        A domain with one cell for each number.

    Raises:
        InvalidArgument: The ends are not whole numbers, or there are more than 2**26 cells.

    Examples:
        >>> from discreet import ranges
        >>> ranges.integers(0, 120).size
        121
    """
    ends = (check.finite("lower", lower), check.finite("upper", upper))
    if any(end.denominator != 1 for end in ends):
        raise InvalidArgument("lower and upper must be whole.")
    return IntegerDomain(lower=int(ends[0]), upper=int(ends[1]))


def dates(lower: dt.date | str, upper: dt.date | str) -> DateDomain:
    """Declare a domain of days.

    Args:
        lower: First day, as a date or as text such as "2024-01-31", included.
        upper: Last day, included.

    Returns:
        A domain with one cell for each day.

    Raises:
        InvalidArgument: The ends are no dates.

    Examples:
        >>> ranges.dates("2024-01-01", "2024-01-31").size
        31
    """
    return DateDomain(lower=_date("lower", lower), upper=_date("upper", upper))


def bins(edges: Sequence[float]) -> BinnedDomain:
    """Declare a domain of real numbers that are cut at public edges.

    Args:
        edges: Finite, increasing edges. A cell includes its lower edge; the last one includes both.

    Returns:
        A domain with one cell between each two edges.

    Raises:
        InvalidArgument: The edges are not finite or do not increase.

    Examples:
        >>> ranges.bins([0, 0.5, 2]).size
        2
    """
    given = check.as_tuple("edges", edges)
    return BinnedDomain(edges=tuple(float(check.finite("edges", edge)) for edge in given))


def ordered(labels: Sequence[str | int]) -> OrdinalDomain:
    """Declare a domain of categories in their natural order.

    Args:
        labels: Different categories, texts or whole numbers, in order.

    Returns:
        A domain with one cell for each category.

    Raises:
        InvalidArgument: A category is listed twice, or is no text or whole number.

    Examples:
        >>> ranges.ordered(["low", "medium", "high"]).size
        3
    """
    return OrdinalDomain(labels=tuple(check.as_tuple("labels", labels)))


def span(domain: Domain, lower: Any, upper: Any) -> tuple[Ints, Ints]:
    """The first and last cells of ranges, which are checked; None is an open end."""
    low = np.asarray(0) if lower is None else domain.first(lower)
    high = np.asarray(domain.size - 1) if upper is None else domain.last(upper)
    try:
        a, b = np.broadcast_arrays(low, high)
    except ValueError:
        raise InvalidArgument(
            f"ranges need as many lower as upper ends, got {low.shape} and {high.shape}."
        ) from None
    if a.size and (min(a.min(), b.min()) < 0 or max(a.max(), b.max()) >= domain.size):
        raise InvalidArgument(f"a range must lie in the declared domain {domain}.")
    if (a > b).any():
        raise InvalidArgument("a range must not be reversed: its lower end comes first.")
    return a.astype(np.int64), b.astype(np.int64)


def read(content: Mapping[str, Any]) -> Domain:
    """The inverse of ``content``."""
    match content["kind"]:
        case "integers":
            return integers(content["lower"], content["upper"])
        case "dates":
            return dates(content["lower"], content["upper"])
        case "bins":
            return bins(content["edges"])
        case "ordered":
            return ordered(content["labels"])
        case _:
            raise InvalidArgument("text must be a release of ranges; its domain is unknown.")


def _date(name: str, value: dt.date | str) -> dt.date:
    if isinstance(value, dt.datetime):
        raise InvalidArgument(f"{name} must be a date without a time.")
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (ValueError, TypeError):
        raise InvalidArgument(f"{name} must be a date, such as '2024-02-29'.") from None


def _sized(size: int) -> None:
    if not 1 <= size <= LARGEST:
        raise InvalidArgument(
            f"a domain must have 1 .. {LARGEST} cells in increasing order, got {size}."
        )


# ── Coarser cells ────────────────────────────────────────────────────────────────────────────────


_CELLS_CONSTANT = 10


def coarsen(domain: Domain, *, block: int) -> Domain:
    """Merge neighboring cells of a domain.

    Numbers become bins, named by their edges. Days and categories become categories such as
    "2024-01-01 .. 2024-01-07".

    Args:
        domain: Domain to make coarser.
        block: Number of neighboring cells in each new cell; the last one may have fewer.

    Returns:
        The coarser domain.

    Raises:
        InvalidArgument: `block` is not a positive whole number.

    Examples:
        >>> str(ranges.coarsen(ranges.integers(0, 9), block=5))
        '2 bins of 0 .. 10'

    See Also:
        `merge_cells`.
    """
    step = check.count("block", block)
    starts = range(0, check_domain(domain).size, step)
    match domain:
        case IntegerDomain():
            return bins([*(domain.lower + start for start in starts), domain.upper + 1])
        case BinnedDomain():
            return bins([*(domain.edges[start] for start in starts), domain.edges[-1]])
        case _:
            lasts = (min(start + step, domain.size) - 1 for start in starts)
            names = [_name(domain, first, last) for first, last in zip(starts, lasts, strict=True)]
            return ordered(names)


def merge_cells(counts: ArrayLike, *, blocks: Sequence[int]) -> Ints:
    """Add up the counts of neighboring cells, as `coarsen` merges the cells.

    The result is as private as `counts`. Every row still counts in exactly one cell, so
    sensitivities do not change.

    Args:
        counts: Array of counts with one axis for each domain.
        blocks: Number of neighboring cells in each new cell, for each axis.

    Returns:
        The array of merged counts.

    Raises:
        InvalidArgument: A block is not a positive whole number.
        OutOfDomain: `counts` is no array of whole numbers with as many axes as `blocks`.

    Examples:
        >>> ranges.merge_cells([1, 2, 3, 4], blocks=[2]).tolist()
        [3, 7]
    """
    steps = [check.count("blocks", block) for block in check.as_tuple("blocks", blocks)]
    shape = shape_of(counts, axes=len(steps))
    # No sum leaves 64 bits: there is no memory for 2**23 cells of each of 2**40.
    found = None if shape is None else cells(counts, shape=shape, lower=0, upper=1 << 40)
    if found is None:
        raise OutOfDomain(f"counts must be an array of integers with {len(steps)} axes.")
    for axis, step in enumerate(steps):
        found = np.add.reduceat(found, np.arange(0, found.shape[axis], step), axis=axis)
    return found


def suggest_cell_count(expected_rows: int, *, epsilon: Number) -> int:
    """Suggest the number of cells for each axis of a table of two columns.

    This is a rule of thumb, `sqrt(expected_rows * epsilon / 10)`. It assumes that rows are spread
    evenly inside a cell.

    Args:
        expected_rows: Expected number of rows: public, or your guess.
        epsilon: Privacy loss of the release.

    Returns:
        The number of cells of each axis.

    Raises:
        InvalidArgument: An argument is not positive.

    Examples:
        >>> ranges.suggest_cell_count(10_000, epsilon=1)
        32
    """
    # Source: Qardaji, Yang, Li 2013. F40.
    guess = check.count("expected_rows", expected_rows)
    price = float(check.positive("epsilon", epsilon))
    return max(1, round(math.sqrt(guess * price / _CELLS_CONSTANT)))


def _name(domain: Domain, first: int, last: int) -> str:
    low, high = str(domain.label(first)), str(domain.label(last))
    return low if first == last else f"{low} .. {high}"
