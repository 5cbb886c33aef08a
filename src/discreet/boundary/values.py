"""Give one raw value its meaning: a number, or a misfit.

Every function here is total (no exception, no warning, whatever the value) and local (the result
depends on that value alone). NumPy picks one type for a whole list, and pandas for a whole column:
one NaN makes everybody's integers doubles, one text makes everybody's numbers texts. So lists are
read value by value, and only arrays that have a numeric type already are read as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

NAN = math.nan
_NUMERIC = "biuf"
# Decimals outside of these powers of ten are infinite or zero as doubles: no fraction is built.
_DECIMAL_REACH = 400
_INT64 = 2**63 - 1
_EXACT = 2**53
"""Integers up to here are doubles."""
_BLOCK = 4096
"""Values of a list that are read together if all are plain: a strange one slows down no others."""
_MISSING = ("NAType", "NaTType")  # pandas' own, which is not imported for this
_LONGEST_WHOLE = 10**38 - 1


def as_double(value: object) -> float:
    """Return the double nearest to a number, ±inf beyond all doubles, NaN for a misfit.

    Numbers are bool, int, float, Decimal, Fraction and their NumPy counterparts. Texts, dates,
    complex numbers, None and everything else are misfits.
    """
    number = as_number(value)
    if number is None:
        return NAN
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_number(value: object) -> int | float | Fraction | None:
    """Return a number exactly, as a plain Python one; None for a misfit (NaN is one)."""
    # The base class's own methods: a subclass cannot run code of its own here.
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        plain = float.__float__(value)
        return None if math.isnan(plain) else plain
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return _numpy_number(value)
    if isinstance(value, Decimal):
        return _decimal_number(value)
    if isinstance(value, Fraction):
        return Fraction(value.numerator, value.denominator)
    return None


def as_whole(value: object) -> int | None:
    """Return the integer that a number is exactly; None for fractions, infinities and misfits."""
    number = as_number(value)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    return int(number) if number == int(number) else None


def as_text(value: object) -> str:
    """Return how a CSV would hold one value; empty for what is missing or has no text.

    Numbers are written by what they are, not by their type: True, 1, 1.0 and Decimal("1.00") are
    the text "1". A number of more digits than a 64-bit integer has is written like a double.
    """
    if isinstance(value, str):
        return _encodable(str.__str__(value))
    number = as_number(value)
    if number is not None:
        whole = as_whole(number)
        if whole is not None and abs(whole) <= _LONGEST_WHOLE:
            return str(whole)
        return repr(as_double(number))
    if value is None or isinstance(value, float | complex | np.inexact | Decimal):
        return ""
    nat = isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))
    if nat or type(value).__name__ in _MISSING:
        return ""
    try:
        return _encodable(str(value))
    except Exception:  # noqa: BLE001 - code of its own: what has no text is missing
        return ""


def _encodable(text: str) -> str:
    """Return a text that every engine can hold; one with lone surrogates is missing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return ""
    return text


def _numpy_number(value: np.generic | NDArray[Any]) -> int | float | Fraction | None:
    if isinstance(value, np.ma.MaskedArray):
        # A masked number is a missing one; NumPy would say so in a warning.
        return None if np.ma.getmaskarray(value).any() else _numpy_number(value.data)
    if value.dtype.kind == "O":
        item = value.item()
        # A container that holds itself would never end.
        return None if isinstance(item, np.ndarray) else as_number(item)
    if value.dtype.kind not in _NUMERIC:
        return None
    if value.dtype.kind == "f":
        with np.errstate(all="ignore"):
            plain = float(value)
        return None if math.isnan(plain) else plain
    return int(value)


def _decimal_number(value: Decimal) -> float | Fraction | None:
    if Decimal.is_nan(value):
        return None
    if Decimal.is_infinite(value):
        return -math.inf if Decimal.is_signed(value) else math.inf
    if Decimal.is_zero(value) or Decimal.adjusted(value) < -_DECIMAL_REACH:
        return Fraction(0)
    if Decimal.adjusted(value) > _DECIMAL_REACH:
        return -math.inf if Decimal.is_signed(value) else math.inf
    return Fraction(*Decimal.as_integer_ratio(value))


def numeric_array(values: object) -> NDArray[Any] | None:
    """Return values that have one numeric type already, as an array; None for everything else."""
    if isinstance(values, np.ma.MaskedArray):
        return None  # as a whole it would be what its mask hides
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind in _NUMERIC else None
    if isinstance(values, list | tuple | str | bytes):
        return None
    array: object = None
    for method in ("to_numpy", "__array__"):
        if array is None and callable(getattr(values, method, None)):
            # A frame's own conversion may refuse what it holds: then it is read value by value.
            with suppress(Exception):
                array = getattr(values, method)()
    if not isinstance(array, np.ndarray) or array.dtype.kind not in _NUMERIC:
        return None
    return None if array.dtype.kind == "f" and not _holds_doubles(values) else array


def _holds_doubles(values: object) -> bool:
    """Return whether a container that becomes doubles says that it holds them.

    NumPy has no missing integer: one of them would make doubles of all others in Polars, Arrow and
    pandas' own types, and integers beyond 2**53 would be rounded.
    """
    kind = getattr(values, "dtype", None)
    kind = getattr(values, "type", None) if kind is None else kind
    return kind is None or any(word in str(kind).lower() for word in ("float", "double"))


def listed(values: object) -> list[object]:
    """Return the single values of a list, a series or an array; a lone value is a list of one."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ndarray):
        # tolist would turn a long double and a moment into other types; items stay what they are.
        return list(values) if values.ndim else [values[()]]
    if isinstance(values, str | bytes):
        return [values]
    for method in ("to_pylist", "to_list"):
        if callable(getattr(values, method, None)):
            return list(getattr(values, method)())
    return list(values) if isinstance(values, Iterable) else [values]


def doubles(values: object) -> Floats:
    """Return one double for each value of a one-dimensional list, array or series; NaN: misfit."""
    array = numeric_array(values)
    if array is not None:
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
    rows = values if isinstance(values, list) else listed(values)
    found = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        array = _plain_array(some)
        found[start : start + _BLOCK] = _mixed_doubles(some) if array is None else array
    return found


def _plain_array(values: list[object]) -> NDArray[Any] | None:
    """Return Python's floats, or its integers within 64 bits, as an array; None for all else."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return np.fromiter(values, np.float64, len(values))
    if kinds == {int}:
        with suppress(OverflowError):
            return np.fromiter(values, np.int64, len(values))
    return None


def _mixed_doubles(values: list[object]) -> Floats:
    found = _exact_doubles(values)
    for place in np.flatnonzero(np.isnan(found)).tolist():
        found[place] = as_double(values[place])
    return found


def _exact_doubles(values: list[object]) -> Floats:
    """Return each double, and each integer that a double holds exactly; NaN for all others."""
    exact = [
        value
        if (kind := type(value)) is float or (kind is int and -_EXACT <= value <= _EXACT)  # type: ignore[operator]
        else NAN
        for value in values
    ]
    return np.array(exact, dtype=np.float64)


def steps(values: object, *, exponent: int, lower: int, upper: int, misfit: int) -> Ints:
    """Round to the nearest multiple of ``2**exponent``, halves up, and clip, all in steps.

    The result is ``floor(x / 2**exponent + 1/2)`` between ``lower`` and ``upper``, exactly; misfits
    get the code ``misfit``, which the caller declares.
    """
    array = numeric_array(values)
    if array is not None:
        return _array_steps(array.reshape(-1), exponent, lower, upper, misfit)
    rows = values if isinstance(values, list) else listed(values)
    found = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        array = _plain_array(some)
        found[start : start + _BLOCK] = (
            _mixed_steps(some, exponent, lower, upper, misfit)
            if array is None
            else _array_steps(array, exponent, lower, upper, misfit)
        )
    return found


def _array_steps(values: NDArray[Any], exponent: int, lower: int, upper: int, misfit: int) -> Ints:
    if values.dtype.kind == "f":
        return _double_steps(values, exponent, lower, upper, misfit)
    return _whole_steps(values, exponent, lower, upper)


def _mixed_steps(values: list[object], exponent: int, lower: int, upper: int, misfit: int) -> Ints:
    exact = _exact_doubles(values)
    found = _double_steps(exact, exponent, lower, upper, misfit)
    for place in np.flatnonzero(np.isnan(exact)).tolist():
        found[place] = _step(values[place], exponent, lower, upper, misfit)
    return found


def _step(value: object, exponent: int, lower: int, upper: int, misfit: int) -> int:
    number = as_number(value)
    if number is None:
        return misfit
    if isinstance(number, float) and math.isinf(number):
        return upper if number > 0 else lower
    exact = Fraction(number) / Fraction(2) ** exponent
    # The bounds first: a number of a million digits is compared, never divided.
    if exact >= upper:
        return upper
    return lower if exact <= lower else math.floor(exact + Fraction(1, 2))


def _double_steps(values: NDArray[Any], exponent: int, lower: int, upper: int, misfit: int) -> Ints:
    """Scale by a power of two, which is exact or beyond the bounds, then compare the fraction."""
    with np.errstate(all="ignore"):
        scaled = np.ldexp(values.astype(np.float64), -exponent)
    missing = np.isnan(scaled)
    above = scaled >= _double_above(upper)
    below = scaled <= _double_below(lower)
    inside = np.where(missing | above | below, 0.0, scaled)
    floor = np.floor(inside)
    codes = floor.astype(np.int64) + (inside - floor >= 0.5)
    codes = np.clip(np.where(above, upper, np.where(below, lower, codes)), lower, upper)
    return np.where(missing, misfit, codes)


def _double_above(bound: int) -> float:
    """Return the smallest double at or above a bound, so that what is below it fits 64 bits."""
    nearest = float(bound)
    return nearest if nearest >= bound else math.nextafter(nearest, math.inf)


def _double_below(bound: int) -> float:
    return -_double_above(-bound)


def _whole_steps(values: NDArray[Any], exponent: int, lower: int, upper: int) -> Ints:
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype == np.uint64 and values.size and int(values.max()) > _INT64:
        codes = [_step(value, exponent, lower, upper, 0) for value in values.tolist()]
        return np.array(codes, dtype=np.int64)
    # Clipped to what the bounds are in whole numbers, so that no product leaves 64 bits.
    scale = Fraction(2) ** exponent
    least = max(math.floor(lower * scale), -_INT64 - 1)
    most = min(math.ceil(upper * scale), _INT64)
    low, high = _within(values.dtype, least, most)
    clipped = np.clip(values, low, high).astype(np.int64, copy=False)
    if exponent == 0 and (low, high) == (lower, upper):
        whole: Ints = clipped
        return whole
    if exponent <= 0 and max(abs(least), abs(most)) > _INT64 >> -exponent:
        codes = [_step(value, exponent, lower, upper, 0) for value in clipped.tolist()]
        return np.array(codes, dtype=np.int64)
    if exponent <= 0:
        found = clipped << -exponent
    else:
        # The bit below the last kept one says whether to round up; beyond 64 bits only a sign is
        # left, and a shift of 63 is minus one or zero.
        kept, half = min(exponent, 63), min(exponent - 1, 63)
        found = (clipped >> kept) + ((clipped >> half) & 1)
    inside: Ints = np.clip(found, lower, upper)
    return inside


def _within(dtype: np.dtype[Any], least: int, most: int) -> tuple[int, int]:
    """Return bounds as numbers that an integer type has."""
    info = np.iinfo(dtype)
    return min(max(least, info.min), info.max), min(max(most, info.min), info.max)
