"""Codes of the columns of a frame, with NumPy: the same functions of a value as in `encode_sql`.

Texts are decoded once for each different one, by the grammar in `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import as_text
from discreet.core._rational import round_down, round_up
from discreet.data._text_parsing import decoder, missing_numbers, object_text, respeller
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    Column,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    spelling_of,
)
from discreet.data.source import Type

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Series: TypeAlias = "nw.Series[Any]"

_SECONDS = {"day": 86_400, "hour": 3600}
_TICKS = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
"""How a moment is counted: ticks in a second."""


def encode(series: Series, column: Column, *, kind: Type) -> Ints:
    """The codes of one column."""
    if kind in ("text", "exact", "object"):
        return by_value(distinct(series, kind, column), decoder(column))
    series = unwrapped(series)
    if isinstance(column, DateColumn):
        return _dates(series, column, kind)
    if kind == "float":
        doubles = _floats(series)
        return _without(_doubles(_said(doubles, column), column), doubles, column)
    null = series.is_null().to_numpy()
    values = series.cast(nw.Int64).fill_null(0).to_numpy().astype(np.int64, copy=False)
    if isinstance(column, NumericColumn) and column.exponent:
        codes = np.where(null, column.missing, _doubles(values.astype(np.float64), column))
    elif kind == "boolean":
        codes = _integers(values, null, column)
    else:
        codes = _integers(_said(values, column), null, column)
    is_truth = kind == "boolean" and isinstance(column, BooleanColumn)
    return codes if is_truth else _without(codes, values, column)


def _said(values: NDArray[Any], column: Column) -> NDArray[Any]:
    """Numbers of a column of truth values as the ones and zeros that they are declared to be."""
    spelling = spelling_of(column)
    if not isinstance(column, BooleanColumn) or spelling is None or not spelling.true:
        return values
    yes, no = (_is_one_of(values, one.numbers) for one in (spelling.true, spelling.false))
    return np.where(yes, 1, np.where(no, 0, 2)).astype(values.dtype)


def _without(codes: Ints, values: NDArray[Any], column: Column) -> Ints:
    """Codes in which numbers that are declared missing are missing."""
    gaps = missing_numbers(column)
    return np.where(_is_one_of(values, gaps), column.missing, codes) if gaps else codes


def _is_one_of(values: NDArray[Any], numbers: Iterable[float]) -> Flags:
    found = np.zeros(len(values), dtype=bool)
    whole = values.dtype.kind == "i"
    for number in numbers:
        if not whole:
            found |= values == number
        elif number.is_integer():  # below 2**53, or no integer has it
            found |= values == int(number)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DistinctTexts:
    """The different texts of a column, empty for what is missing, and which of them a row has."""

    texts: list[str]
    places: Ints


def by_value(found: DistinctTexts, function: Callable[[str], int]) -> Ints:
    """A function of text, computed once for each different text."""
    codes: Ints = np.array([function(text) for text in found.texts], dtype=np.int64)
    return codes[found.places]


def distinct(series: Series, kind: Type, column: ColumnSpec | None = None) -> DistinctTexts:
    """A column as text, in the usual spelling of what ``column`` declares.

    A text that is no Unicode is missing; it changes no other row's.
    """
    if len(series) == 0:
        return numbered([])
    native = series.to_native()
    if kind == "object":
        text = as_text if column is None else object_text(column)
        categories = getattr(native.dtype, "categories", None)
        if categories is None:
            return numbered([text(value) for value in series.to_list()])
        # pandas counts what is missing as -1, the last place.
        found = numbered([*(text(value) for value in categories.to_list()), text(None)])
        return replace(found, places=found.places[native.cat.codes.to_numpy()])
    found = _texts(series)
    respelled = respeller(column) if column is not None and kind == "text" else None
    if respelled is None:
        return found
    usual = numbered([respelled(text) for text in found.texts])
    return DistinctTexts(texts=usual.texts, places=usual.places[found.places])


def _texts(series: Series) -> DistinctTexts:
    try:
        plain = series.cast(nw.String).fill_null("")
    except UnicodeError:  # Arrow takes no surrogate of a pandas column of objects
        return numbered([as_text(value) for value in series.to_list()])
    if series.implementation.is_polars():
        plain = plain.cast(nw.Binary)  # of bytes that are no text Polars cannot make a list
    with suppress(UnicodeError):  # a surrogate in pandas, or bytes that Arrow did not look at
        values = plain.unique().to_list()
        places = plain.replace_strict(values, range(len(values)), return_dtype=nw.Int64).to_numpy()
        found = numbered([_plain_text(value) for value in values])
        return replace(found, places=found.places[places])
    with suppress(UnicodeDecodeError):
        return numbered([as_text(value) for value in plain.to_list()])
    return numbered([_decoded(value) for value in _bytes(plain)])


def numbered(texts: Iterable[str]) -> DistinctTexts:
    """Texts in the order in which they first occur."""
    known: dict[str, int] = {}
    places = [known.setdefault(text, len(known)) for text in texts]
    return DistinctTexts(texts=list(known), places=np.array(places, dtype=np.int64))


def _bytes(series: Series) -> list[bytes]:
    """The texts of an Arrow column as they are stored."""
    native = series.to_native()
    arrow = native if hasattr(native, "to_pylist") else native.array.__arrow_array__()
    stored: list[bytes] = arrow.cast("large_binary").to_pylist()
    return stored


def _plain_text(value: object) -> str:
    return _decoded(value) if isinstance(value, bytes) else as_text(value)


def _decoded(stored: bytes) -> str:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return ""


def unwrapped(series: Series) -> Series:
    """Values that are no texts, out of a dictionary or a category of them."""
    native = series.to_native()
    kind: Any = getattr(native, "type", None) or getattr(native, "dtype", None)
    stored: Any = getattr(kind, "pyarrow_dtype", kind)
    if hasattr(stored, "value_type") and hasattr(stored, "index_type"):  # Arrow's dictionary
        found = native.cast(stored.value_type) if stored is kind else _of_arrow(native, stored)
    elif getattr(kind, "categories", None) is not None:
        found = native.astype(native.cat.categories.dtype)
    else:
        return series
    return nw.from_native(found, series_only=True)


def _of_arrow(native: Any, stored: Any) -> Any:
    """A pandas column over an Arrow dictionary."""
    return native.astype(type(native.dtype)(stored.value_type))


def _floats(series: Series) -> NDArray[np.float64]:
    """Doubles, with NaN for null."""
    return series.cast(nw.Float64).fill_null(float("nan")).to_numpy()


def _integers(values: Ints, null: Flags, column: Column) -> Ints:
    if isinstance(column, NumericColumn):
        codes = np.clip(values, column.lower, column.upper)
    elif isinstance(column, CategoryColumn | LookupColumn):
        codes = _places(values, column)
    else:
        codes = np.where((values == 0) | (values == 1), values, column.missing)
    return np.where(null, column.missing, codes)


def _doubles(values: NDArray[np.float64], column: Column) -> Ints:
    null = np.isnan(values)
    plain = np.where(null, 0.0, values)
    if isinstance(column, NumericColumn):
        codes = _rounded(plain, column)
    else:
        # A double is a level, or a truth value, only if it is that whole number.
        fits = (plain == np.floor(plain)) & (np.abs(plain) < 2.0**63)
        whole = np.where(fits, plain, 0.0).astype(np.int64)
        codes = _integers(whole, np.zeros(len(plain), dtype=bool), column)
        codes = np.where(
            fits, codes, column.unknown if isinstance(column, CategoryColumn) else column.missing
        )
    return np.where(null, column.missing, codes)


def _rounded(values: NDArray[np.float64], column: NumericColumn) -> Ints:
    """``floor(x / 2**exponent + 1/2)``, exactly, then clipped."""
    # Proof: scaling by a power of two is exact (or overflows beyond the bounds). `x - floor(x)` is
    #   exact, or at least 1/2 before and after rounding; so the test decides as the exact sum
    #   would.
    with np.errstate(over="ignore", under="ignore"):
        scaled = values * 2.0**-column.exponent
    above = scaled >= round_up(Fraction(column.upper))
    below = scaled <= round_down(Fraction(column.lower))
    inside = np.where(above | below, 0.0, scaled)
    whole = np.floor(inside)
    codes = whole.astype(np.int64) + (inside - whole >= 0.5)
    return np.where(above, column.upper, np.where(below, column.lower, codes))


def _places(values: Ints, column: CategoryColumn | LookupColumn) -> Ints:
    """Positions among whole levels, or the codes of keys."""
    if isinstance(column, CategoryColumn):
        keys, codes, unknown = (
            column.categories,
            tuple(range(len(column.categories))),
            column.unknown,
        )
    else:
        keys, codes, unknown = column.keys, column.codes, column.missing
    if not keys:
        return np.full(len(values), unknown, dtype=np.int64)
    levels, places = np.array(keys, dtype=np.int64), np.array(codes, dtype=np.int64)
    order = np.argsort(levels)
    found = np.searchsorted(levels[order], values).clip(max=len(levels) - 1)
    hit = levels[order][found] == values
    return np.where(hit, places[order][found], unknown)


def _dates(series: Series, column: DateColumn, kind: Type) -> Ints:
    spelling = column.spelling
    local = None if spelling is None else spelling.local
    gaps = () if spelling is None else spelling.codes
    null = series.is_null().to_numpy()
    codes = np.full(len(series), column.missing, dtype=np.int64)
    present = series.filter(~series.is_null())
    if kind == "date":
        found = present.cast(nw.Int32).to_numpy().astype(np.int64)
        found *= 24 if column.step == "hour" else 1
    else:
        # In ticks of its own: a moment far away would not fit into others.
        ticks = present.cast(nw.Int64).to_numpy().astype(np.int64, copy=False)
        per_second = _TICKS[_ticks_of(series)]
        if local is None or getattr(series.dtype, "time_zone", None) is not None:
            found = ticks // (_SECONDS[column.step] * per_second)
        else:
            minutes = ticks // (60 * per_second)
            places = np.searchsorted(np.array(local.starts, dtype=np.int64), minutes, side="right")
            minutes = minutes - np.array(local.offsets, dtype=np.int64)[places]
            found = minutes // (_SECONDS[column.step] // 60)
    inside = (found >= column.lower) & (found <= column.upper)
    if gaps:
        inside &= ~np.isin(found, gaps)
    codes[~null] = np.where(inside, found, column.missing)
    return codes


def _ticks_of(series: Series) -> str:
    kind = series.dtype
    return kind.time_unit if isinstance(kind, nw.Datetime) else "us"
