r"""Whose a row is: the canonical form of one owner's name, compared value by value.

NumPy would make `7` and `"7"` one owner in a list of both, cut the zero bytes off `"a\0"`, and
turn 64-bit ids into doubles, two of which are then one, because of a single missing id.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import Ints, as_number, as_text, listed
from discreet.core.errors import InvalidArgument

OwnerKey: TypeAlias = tuple[str, Hashable]

NOBODY = -1
"""The number of rows that have no owner."""
_LONGEST = 8


def owner_key(value: object) -> OwnerKey | None:
    """Return what an owner is compared by; None if the row has no owner.

    Equal numbers are one owner, whatever their type. Texts, bytes, dates, moments, UUIDs and tuples
    are compared with their kind only: the text "7" is not the number 7. A missing value, NaN,
    infinity and objects of any other type name nobody.
    """
    return _key(value, depth=0)


def _key(value: object, *, depth: int) -> OwnerKey | None:
    if isinstance(value, str):
        return ("text", str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return ("bytes", bytes(value))
    number = as_number(value)
    if number is not None:
        if isinstance(number, float) and not np.isfinite(number):
            return None
        # An integer and the fraction that equals it have one hash and are one key.
        return ("number", Fraction(number))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _moment(value)
    if isinstance(value, dt.datetime):
        return _datetime(value)
    if isinstance(value, dt.date):
        return ("date", value.toordinal())
    if isinstance(value, uuid.UUID):
        return ("uuid", value.int)
    if isinstance(value, tuple) and depth < _LONGEST:
        parts = tuple(_key(part, depth=depth + 1) for part in value)
        return None if None in parts else ("tuple", parts)
    return None


def _datetime(value: dt.datetime) -> OwnerKey | None:
    if value != value:  # pandas' NaT  # noqa: PLR0124
        return None
    try:
        zone = value.utcoffset()
        naive = value.replace(tzinfo=None)
        micros = (naive - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
        nanos = 1000 * int(micros) + int(getattr(value, "nanosecond", 0))
        if zone is None:
            return ("local moment", nanos)
        return ("moment", nanos - 1000 * int(zone // dt.timedelta(microseconds=1)))
    except Exception:  # noqa: BLE001 - a zone is code of its own; what has no moment has no owner
        return None


def _moment(value: np.datetime64 | np.timedelta64) -> OwnerKey | None:
    if np.isnat(value):
        return None
    unit, multiple = np.datetime_data(value.dtype)
    kind = "local moment" if isinstance(value, np.datetime64) else "duration"
    nanos = {"D": 86_400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9}
    nanos |= {"W": 7 * 86_400 * 10**9, "ms": 10**6, "us": 1000, "ns": 1}
    if unit not in nanos:  # months differ in length, and a picosecond is no whole nanosecond
        return (f"{kind} in {unit}", int(value.astype(np.int64)) * multiple)
    return (kind, int(value.astype(np.int64)) * multiple * nanos[unit])


def check_owner_type(name: str, values: object) -> None:
    """Refuse owners in an array or a series of doubles, by its type alone.

    NumPy and pandas make doubles of whole numbers as soon as one row has no owner or a fraction,
    and ids beyond 2**53 are then no longer told apart: people would become one.
    """
    dtype = getattr(values, "dtype", None)
    dtype = getattr(values, "type", None) if dtype is None else dtype
    if getattr(dtype, "kind", "") == "f" or str(dtype).lower().startswith(("float", "double")):
        raise InvalidArgument(
            f"{name} must be whole numbers or text, not doubles: use Int64 or str."
        )


def number_owners(values: object) -> tuple[Ints, int]:
    """Number owners in the order of their first row; rows without an owner get `NOBODY`.

    Returns one number for each row, and how many owners there are. A row that is added at the end
    leaves the numbers of all others as they are.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biu":
        return _number_whole(values)
    numbers: dict[OwnerKey, int] = {}
    known: dict[int | str, int] = {}  # by plain values: a key is made once for each owner
    found: list[int] = []
    for value in listed(values):
        if type(value) is int or type(value) is str:
            number = known.get(value)
            if number is None:
                # The key of an integer has the fraction that equals it, and its hash.
                key = ("text" if type(value) is str else "number", value)
                number = known[value] = numbers.setdefault(key, len(numbers))
        else:
            other = owner_key(value)
            number = NOBODY if other is None else numbers.setdefault(other, len(numbers))
        found.append(number)
    return np.array(found, dtype=np.int64), len(numbers)


def level_places(values: object, names: Sequence[str]) -> Ints:
    """Return the place of each privacy level among the declared ones; `NOBODY` for any other.

    A level is compared by its text, value by value: one row's level cannot change another's.
    """
    places = {name: place for place, name in enumerate(names)}
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuU":
        kinds, inverse = np.unique(values, return_inverse=True)
        known = [places.get(as_text(kind), NOBODY) for kind in kinds]
        return np.array(known, dtype=np.int64)[inverse].reshape(values.shape)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        return np.full(values.shape, NOBODY, dtype=np.int64)
    found = [places.get(as_text(value), NOBODY) for value in listed(values)]
    return np.array(found, dtype=np.int64)


def _number_whole(values: NDArray[Any]) -> tuple[Ints, int]:
    """Number integers as a whole: their type is one already."""
    names, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(names), dtype=np.int64)
    order[np.argsort(first, kind="stable")] = np.arange(len(names))
    return order[inverse.reshape(-1)], len(names)
