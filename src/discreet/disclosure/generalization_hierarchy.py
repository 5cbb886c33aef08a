"""Public hierarchies that make a column coarser, and equivalence classes of rows that look alike.

Level 0 is the value itself, the last level is ``*``. In between stand intervals, groups of
categories or the first letters of a code. The result depends on the value alone: levels are
declared, never read from the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import as_number, as_text
from discreet.core._validate import as_mapping, as_tuple, count, finite
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.data._numpy.encode import DistinctTexts, by_value, numbered
from discreet.data._numpy.encode import distinct as distinct_texts

# ── Equivalence classes
# ────────────────────────────────────────────────────────────────────────────


Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_LARGEST_KEY = 1 << 62
# A table of all combinations is used up to so many entries for each row, and a few more.
_DENSE = 4
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceClasses:
    """A partition: the class of each item, one item of each class, the rows in each class."""

    of: Ints = field(repr=False)
    head: Ints = field(repr=False)
    sizes: Ints = field(repr=False)


def together(
    parts: Sequence[NDArray[np.signedinteger]],
    bounds: Sequence[int],
    *,
    counts: Ints | None = None,
    items: int = 0,
) -> EquivalenceClasses:
    """Items with equal codes in all parts, in the order of the codes.

    ``bounds`` says below what the codes of each part lie; ``counts`` how many rows an item stands
    for (one each, if not given). Without parts all ``items`` are one class.
    """
    key, limit = _key(parts, bounds, items)
    n = len(key)
    if limit <= _DENSE * n + _SMALL:
        seen = np.zeros(limit, dtype=np.bool_)
        seen[key] = True
        present = np.flatnonzero(seen)
        rank = np.empty(limit, dtype=np.int64)
        rank[present] = np.arange(len(present))
        of = rank[key]
        head = np.empty(len(present), dtype=np.int64)
        head[of] = np.arange(n)
    else:
        _, head, of = np.unique(key, return_index=True, return_inverse=True)
    return EquivalenceClasses(of=of, head=head, sizes=total(of, len(head), counts))


def total(of: Ints, classes: int, counts: Ints | None) -> Ints:
    """Rows in each class. Sums stay below 2**53, so doubles are exact."""
    if counts is None:
        return np.bincount(of, minlength=classes)
    return np.bincount(of, weights=counts, minlength=classes).astype(np.int64)


def _key(
    parts: Sequence[NDArray[np.signedinteger]], bounds: Sequence[int], items: int
) -> tuple[Ints, int]:
    """One number for each combination, and what all of them lie below."""
    key: Ints = np.zeros(len(parts[0]) if parts else items, dtype=np.int64)
    limit = 1
    for part, bound in zip(parts, bounds, strict=True):
        if limit * max(bound, 1) > _LARGEST_KEY:
            found, key = np.unique(key, return_inverse=True)
            limit = max(len(found), 1)
        key = key * max(bound, 1) + part
        limit *= max(bound, 1)
    return key, limit


# ── Hierarchies
# ────────────────────────────────────────────────────────────────────────────────────


Series: TypeAlias = "nw.Series[Any]"

MISSING = "(missing)"
OTHER = "(other)"
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedColumn:
    """A column in codes, at every level of its hierarchy.

    ``up[level][code]`` is what a code of level 0 becomes, ``labels[level]`` are the names of the
    codes of a level (level 0: what ``exact`` holds), ``loss[level]`` how much of the column is
    lost, from 0 for an exact value to 1 for nothing.
    """

    codes: Ints = field(repr=False)
    exact: tuple[Any, ...] | Floats | Ints = field(repr=False)
    up: tuple[Ints, ...] = field(repr=False)
    labels: tuple[tuple[str, ...], ...] = field(repr=False)
    loss: tuple[Floats, ...] = field(repr=False)

    @property
    def height(self) -> int:
        """The last level."""
        return len(self.up) - 1

    def size(self, level: int) -> int:
        """How many codes a level has."""
        return len(self.loss[level])

    def names(self, level: int) -> Sequence[str]:
        """The labels of a level; exact values as text."""
        return self.labels[level] if level else [name(value) for value in self.exact]


@dataclass(frozen=True, slots=True)
class IntervalHierarchy:
    """Nested intervals for a column of numbers. Made by `interval_hierarchy`.

    Args:
        edges: Edges of the intervals of each level, finest level first.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.interval_hierarchy(range(0, 101, 5), range(0, 101, 20)).height
        3
    """

    edges: tuple[tuple[float, ...], ...]

    @property
    def height(self) -> int:
        """The last level, at which all values are equal."""
        return len(self.edges) + 1

    def code(self, series: Series) -> EncodedColumn:
        """Encode a column at every level.

        Args:
            series: Column of numbers, as a narwhals series.

        Returns:
            Codes of the values, and what they become at each level.

        Raises:
            OutOfDomain: The column does not contain numbers.

        Examples:
            >>> import narwhals.stable.v2 as narwhals
            >>> import polars
            >>> from discreet import disclosure
            >>> ages = narwhals.from_native(polars.Series([31, 62]), series_only=True)
            >>> disclosure.interval_hierarchy(range(0, 101, 20)).code(ages).height
            2
        """
        exact, doubles, codes = numbers(series)
        levels = []
        for edges in self.edges:
            widths = np.diff(edges) / (edges[-1] - edges[0])
            loss = np.concatenate([widths, [1.0, 1.0, 0.0]])
            levels.append((_bins(doubles, edges), _bin_labels(edges), loss))
        return _coded(codes, exact, levels)


@dataclass(frozen=True, slots=True)
class CategoryHierarchy:
    """Groups of increasing size for a column of names. Made by `category_hierarchy`.

    Args:
        maps: Maps from one level to the next, finest level first.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.category_hierarchy({"Ulm": "south", "Kiel": "north"}).height
        2
    """

    maps: tuple[Mapping[str, str], ...]

    @property
    def height(self) -> int:
        """The last level, at which all values are equal."""
        return len(self.maps) + 1

    def code(self, series: Series) -> EncodedColumn:
        """Encode a column at every level.

        Args:
            series: Column, as a narwhals series.

        Returns:
            Codes of the values, and what they become at each level.

        Examples:
            >>> import narwhals.stable.v2 as narwhals
            >>> import polars
            >>> from discreet import disclosure
            >>> towns = narwhals.from_native(polars.Series(["Ulm", "Kiel"]), series_only=True)
            >>> regions = disclosure.category_hierarchy({"Ulm": "south", "Kiel": "north"})
            >>> regions.code(towns).names(1)
            ('north', 'south', '(other)', '(missing)')
        """
        exact, codes = distinct(series)
        levels = []
        groups = {leaf: leaf for leaf in self.maps[0]} if self.maps else {}
        for step in self.maps:
            groups = {leaf: step[group] for leaf, group in groups.items()}
            known = sorted(set(groups.values()))
            names = (*known, OTHER, MISSING)
            place = {label: i for i, label in enumerate(names)}
            found = [place[_group(value, groups)] for value in exact]
            sizes = np.bincount([place[group] for group in groups.values()])
            share = (sizes - 1) / max(len(groups) - 1, 1)
            levels.append((np.array(found, dtype=np.int64), names, np.append(share, [1.0, 0.0])))
        return _coded(codes, tuple(exact), levels)


@dataclass(frozen=True, slots=True)
class PrefixHierarchy:
    """Prefixes of codes such as postcodes. Made by `prefix_hierarchy`.

    Args:
        length: Number of characters of a code.
        keep: Number of characters that are kept at each level.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.prefix_hierarchy(5, keep=[3, 2]).height
        3
    """

    length: int
    keep: tuple[int, ...]

    @property
    def height(self) -> int:
        """The last level, at which all values are equal."""
        return len(self.keep) + 1

    def code(self, series: Series) -> EncodedColumn:
        """Encode a column at every level.

        Args:
            series: Column, as a narwhals series.

        Returns:
            Codes of the values, and what they become at each level.

        Examples:
            >>> import narwhals.stable.v2 as narwhals
            >>> import polars
            >>> from discreet import disclosure
            >>> codes = narwhals.from_native(polars.Series(["10115", "10999"]), series_only=True)
            >>> disclosure.prefix_hierarchy(5, keep=[3, 2]).code(codes).names(2)
            ('10*',)
        """
        exact, codes = distinct(series)
        levels = []
        for keep in self.keep:
            short = [MISSING if value is None else value[:keep] + ANY for value in exact]
            names = tuple(sorted(set(short)))
            place = {label: i for i, label in enumerate(names)}
            lost = [0.0 if label == MISSING else 1 - keep / self.length for label in names]
            found = np.array([place[label] for label in short], dtype=np.int64)
            levels.append((found, names, np.array(lost)))
        return _coded(codes, tuple(exact), levels)


Hierarchy: TypeAlias = IntervalHierarchy | CategoryHierarchy | PrefixHierarchy


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyLevel:
    """One level of a hierarchy, as a fixed public map. Made by `hierarchy_level`.

    Attributes:
        hierarchy: The hierarchy.
        level: Level from 0 (values are kept) to `hierarchy.height` (all values are equal).

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.hierarchy_level(disclosure.prefix_hierarchy(5, keep=[3]), 1).level
        1
    """

    hierarchy: Hierarchy
    level: int

    def labels(self, series: Series) -> tuple[Sequence[str], Ints]:
        """Map the values of a column to labels.

        Args:
            series: Column, as a narwhals series.

        Returns:
            The labels, and the index of the label of each row.

        Examples:
            >>> import narwhals.stable.v2 as narwhals
            >>> import polars
            >>> from discreet import disclosure
            >>> level = disclosure.hierarchy_level(disclosure.prefix_hierarchy(5, keep=[3]), 1)
            >>> codes = narwhals.from_native(polars.Series(["10115", "10999"]), series_only=True)
            >>> labels, index = level.labels(codes)
            >>> [labels[i] for i in index]
            ['101*', '109*']
        """
        coded = self.hierarchy.code(series)
        return coded.names(self.level), coded.up[self.level][coded.codes]


def interval_hierarchy(*levels: Iterable[float]) -> IntervalHierarchy:
    """Create a hierarchy of intervals for a column of numbers.

    A value on an edge belongs to the interval on its right, and the last edge to the last interval.
    Values outside become `"< first"` or `"> last"`.

    Args:
        levels: Edges of each level, finest first. Edges of a level must also be edges of the level
            before, with the same ends.

    Returns:
        The hierarchy.

    Raises:
        InvalidArgument: There is no level, or the edges do not increase or are not nested.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.interval_hierarchy(range(0, 101, 5), range(0, 101, 20)).height
        3
    """
    if not levels:
        raise InvalidArgument("intervals takes the edges of at least one level, got none.")
    read: list[tuple[float, ...]] = []
    for edges in levels:
        found = tuple(float(finite("edges", edge)) for edge in as_tuple("edges", edges))
        if len(found) < 2 or any(a >= b for a, b in pairwise(found)):
            raise InvalidArgument("edges must be at least two numbers in increasing order.")
        if read and (not set(found) <= set(read[-1]) or _ends(found) != _ends(read[-1])):
            raise InvalidArgument(
                "edges of a level must be among those of the finer level before it, "
                "with the same first and last edge."
            )
        read.append(found)
    return IntervalHierarchy(tuple(read))


def category_hierarchy(*maps: Mapping[Any, str]) -> CategoryHierarchy:
    """Create a hierarchy of groups for a column of names.

    Without a map, the column is either kept or suppressed as a whole.

    Args:
        maps: Maps from one level to the next, finest first. A value that the first map does not
            contain becomes `"(other)"`.

    Returns:
        The hierarchy.

    Raises:
        InvalidArgument: A map is empty, or does not contain a group of the level before.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.category_hierarchy({"Ulm": "south", "Kiel": "north"}).height
        2
    """
    read: list[Mapping[str, str]] = []
    for given in maps:
        if not as_mapping("maps", given):
            raise InvalidArgument("maps must not be empty: each leads one level on, finest first.")
        step = {name(key): name(value) for key, value in given.items()}
        if read and not set(read[-1].values()) <= set(step):
            raise InvalidArgument("maps must lead every group of a level on to the next level.")
        read.append(step)
    return CategoryHierarchy(tuple(read))


def prefix_hierarchy(length: int, *, keep: Iterable[int]) -> PrefixHierarchy:
    """Create a hierarchy of prefixes for codes such as postcodes.

    Args:
        length: Number of characters of a code.
        keep: Number of characters that are kept at each level, decreasing and below `length`.

    Returns:
        The hierarchy.

    Raises:
        InvalidArgument: The numbers do not decrease.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.prefix_hierarchy(5, keep=[3, 2]).height
        3
    """
    whole = count("length", length)
    read = tuple(count("keep", n) for n in as_tuple("keep", keep))
    decreasing = all(a > b for a, b in zip((whole, *read), read, strict=False))
    if not read or not decreasing:
        raise InvalidArgument(f"keep must be decreasing numbers below length={whole}.")
    return PrefixHierarchy(whole, read)


def hierarchy_level(hierarchy: Hierarchy, level: int) -> HierarchyLevel:
    """Choose one level of a hierarchy as a fixed public map.

    Args:
        hierarchy: Hierarchy of a column.
        level: Level from 0 (values are kept) to `hierarchy.height` (all values are equal).

    Returns:
        The map, for `safe_k_anonymity`.

    Raises:
        InvalidArgument: `hierarchy` is not a hierarchy, or has no such level.

    Examples:
        >>> from discreet import disclosure
        >>> ages = disclosure.interval_hierarchy(range(0, 101, 5), range(0, 101, 20))
        >>> disclosure.hierarchy_level(ages, 2).level
        2
    """
    if not isinstance(hierarchy, IntervalHierarchy | CategoryHierarchy | PrefixHierarchy):
        raise InvalidArgument(
            "hierarchy must come from interval_hierarchy(), category_hierarchy() or "
            f"prefix_hierarchy(), got {type(hierarchy).__name__}."
        )
    step = count("level", level, minimum=0)
    if step > hierarchy.height:
        raise InvalidArgument(f"level must be at most {hierarchy.height}, got {step}.")
    return HierarchyLevel(hierarchy=hierarchy, level=step)


def name(value: object) -> str:
    """A value as a label."""
    if value is None:
        return MISSING
    if isinstance(value, float):  # also NumPy's
        if math.isnan(value):
            return MISSING
        whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else repr(float(value))
    return str(value)


def _ends(edges: tuple[float, ...]) -> tuple[float, float]:
    return edges[0], edges[-1]


def _group(value: str | None, groups: Mapping[str, str]) -> str:
    return MISSING if value is None else groups.get(value, OTHER)


def numbers(series: Series) -> tuple[Any, Floats, Ints]:
    """The different values of a column as they are and as doubles, and the place of each row's.

    Whole numbers stay whole beside a missing one: no row may change how another is written.
    """
    if not series.dtype.is_numeric():
        raise OutOfDomain("intervals() needs a column of numbers: convert it, or group it by name.")
    if not series.dtype.is_integer():
        values = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
        exact, codes = np.unique(values, return_inverse=True)
        return exact, exact, codes
    null = _null(series)
    if not null.any():
        exact, codes = np.unique(series.to_numpy(), return_inverse=True)
        return exact, exact.astype(np.float64), codes
    exact, places = np.unique(series.fill_null(0).to_numpy()[~null], return_inverse=True)
    codes = np.full(len(null), len(exact))
    codes[~null] = places
    return (*exact.tolist(), None), np.append(exact.astype(np.float64), math.nan), codes


def _bins(values: Floats, edges: tuple[float, ...]) -> Ints:
    """Intervals, then below, above, missing."""
    many = len(edges) - 1
    found = np.searchsorted(edges, values, side="right") - 1
    found[values == edges[-1]] = many - 1
    found[values < edges[0]] = many
    found[values > edges[-1]] = many + 1
    found[np.isnan(values)] = many + 2
    return found


def _bin_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    last = len(edges) - 2
    inside = [
        f"[{name(a)}, {name(b)}{']' if i == last else ')'}"
        for i, (a, b) in enumerate(pairwise(edges))
    ]
    return (*inside, f"< {name(edges[0])}", f"> {name(edges[-1])}", MISSING)


def _labels(series: Series) -> DistinctTexts:
    """Each value as Python writes it, whatever the others are; what has no text is empty."""
    null = _null(series)
    return numbered("" if n else _label(v) for v, n in zip(series.to_list(), null, strict=True))


def _null(series: Series) -> NDArray[np.bool_]:
    """Which values are missing."""
    try:
        missing: NDArray[np.bool_] = series.is_null().to_numpy()
    except ArithmeticError:  # pandas asks each decimal, and a signaling NaN answers by an error
        return np.array([not isinstance(v, str) and not as_text(v) for v in series.to_list()])
    return missing


def _label(value: object) -> str:
    """What `distinct` shows of a value in a column of its own type: 1.0 is 1 beside texts, too."""
    try:
        if isinstance(value, complex | np.complexfloating):  # NumPy made all of them complex
            value = value.real if value.imag == 0 else None
        if isinstance(value, int | float | np.number | np.bool_):
            number = as_number(value)
            value = bool(number) if isinstance(value, bool | np.bool_) else number
        found = "" if value is None else name(value)
        found.encode()
    except Exception:  # noqa: BLE001 - its text could quote the value
        return ""
    return found


def distinct(series: Series) -> tuple[list[str | None], Ints]:
    """The different values of a column as text, and the place of each row's; missing is None.

    A whole number is written alike whether it came as an integer or, as pandas has it where values
    are missing, as a double; truth values are True and False on every backend.
    """
    if series.dtype.is_float() or series.dtype == nw.Boolean:
        doubles = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
        values, places = np.unique(doubles, return_inverse=True)
        kind = bool if series.dtype == nw.Boolean else float
        shown = [None if math.isnan(value) else name(kind(value)) for value in values]
        return shown, places.astype(np.int64, copy=False)
    # pandas writes moments and durations by what the whole column needs: here each by itself.
    alone = series.dtype in (nw.String, nw.Date) or series.dtype.is_integer()
    found = distinct_texts(series, "text") if alone else _labels(series)
    known: list[str | None] = [*sorted(found.texts)]
    place = {text: i for i, text in enumerate(known)}
    codes = by_value(found, place.__getitem__)
    null = _null(series)
    if null.any():  # empty text is a text
        codes = np.where(null, len(known), codes)
        known.append(None)
    return known, codes


def _coded(
    codes: Ints,
    exact: tuple[Any, ...] | Floats | Ints,
    levels: Sequence[tuple[Ints, tuple[str, ...], Floats]],
) -> EncodedColumn:
    """With the first level, the values themselves, and the last, all values alike."""
    first = (np.arange(len(exact)), (), np.zeros(len(exact)))
    last = (np.zeros(len(exact), dtype=np.int64), (ANY,), np.ones(1))
    up, labels, loss = zip(first, *levels, last, strict=True)
    return EncodedColumn(
        codes=codes.astype(np.int64, copy=False), exact=exact, up=up, labels=labels, loss=loss
    )
