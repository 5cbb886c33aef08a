"""What teachers are given: records of one declared type, each read by itself.

NumPy picks one type for all records of a list; an estimator that looks at the type would then learn
something else for everybody because of one record.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import as_double, as_text, as_whole
from discreet.core.errors import InvalidArgument
from discreet.models._model_inputs import (
    Floats,
    as_objects,
    doubles,
    frame_columns,
    held_values,
    matrix,
    target_values,
)

Flags = NDArray[np.bool_]


def record_type(dtype: Any) -> np.dtype[Any]:
    """The declared type of features: numbers, text (``str``) or any objects (``object``)."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise InvalidArgument("dtype must be a type of NumPy, such as np.float32.") from None
    if found.kind not in "biufUO":
        raise InvalidArgument(f"dtype must be of real numbers, str or object, got {found}.")
    return found


def read_features(
    x: object, dtype: np.dtype[Any], *, columns: int | None, missing: bool
) -> tuple[NDArray[Any], Flags]:
    """Records of the declared type, and which of them fit.

    A record fits if all its values are numbers of the type; ``missing`` says that NaN is one. Whole
    types cut fractions off and take the nearest number that they have. Text and objects always fit.
    """
    if dtype.kind in "UO":
        held = _objects(x, columns)
        if dtype.kind == "U":
            # Objects, because the type of an array of texts would tell the longest of all.
            texts = [as_text(value) for value in held.ravel()]
            held = held_values(texts).reshape(held.shape)
        return held, np.ones(len(held), dtype=bool)
    if isinstance(x, np.ndarray) and x.ndim > 2:
        flat = matrix("X", x.reshape(len(x), -1) if len(x) else x.reshape(0, 1), columns=columns)
        found, fits = _cast(flat, dtype, missing=missing)
        return found.reshape(x.shape), fits
    return _cast(matrix("X", x, columns=columns), dtype, missing=missing)


def _objects(x: object, columns: int | None) -> NDArray[Any]:
    """Records as they are: a table of objects, or one object for each."""
    if isinstance(x, np.ndarray):
        return x.astype(object)
    columns_of_frame = frame_columns(x)
    if columns_of_frame is not None:
        held = as_objects("X", x)
        for place, column in enumerate(columns_of_frame):
            if hasattr(column, "iloc") and isinstance(column.dtype, np.dtype):
                held[:, place] = [_settled(value) for value in held[:, place]]
        return held
    rows = target_values(x)
    if columns is None:
        return rows.astype(object)
    held = np.full((len(rows), columns), None, dtype=object)
    for place, row in enumerate(rows):
        if isinstance(row, list | tuple) and len(row) == columns:
            for column, value in enumerate(row):
                held[place, column] = value
    return held


def _settled(value: object) -> object:
    """A value of pandas as it would be in any type that pandas may choose because of other rows.

    There one missing number makes doubles of a column of integers, and one text makes objects.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.integer | np.floating):
        number = as_double(value)
        if np.isnan(number):
            return None
        return int(number) if np.isfinite(number) and number == np.floor(number) else number
    return value


def _cast(
    table: NDArray[Any], dtype: np.dtype[Any], *, missing: bool
) -> tuple[NDArray[Any], Flags]:
    with np.errstate(all="ignore"):
        if table.dtype.kind in "biu" and dtype.kind in "iu":
            found: NDArray[Any] = np.clip(table, *_ends(table.dtype, dtype)).astype(dtype)
            return found, np.ones(len(found), dtype=bool)
        if dtype.kind == "f":
            found = table.astype(dtype)
            fits = np.isfinite(found) | (np.isnan(found) if missing else False)
            return found, _whole_rows(fits)
        given = doubles(table)
        fits = np.isfinite(given)
        values: Floats = np.where(fits, given, 0.0)
        if dtype.kind == "b":
            return values != 0, _whole_rows(fits)
        info = np.iinfo(dtype)
        # The largest double below the end: the end itself may round to one above.
        top = np.nextafter(float(info.max) + 1.0, 0.0)
        return np.clip(np.trunc(values), float(info.min), top).astype(dtype), _whole_rows(fits)


def _ends(held: np.dtype[Any], wanted: np.dtype[Any]) -> tuple[int, int]:
    """The ends that both types have."""
    low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
    if held.kind == "b":
        return 0, 1
    return max(low, np.iinfo(held).min), min(high, np.iinfo(held).max)


def _whole_rows(fits: Flags) -> Flags:
    kept = np.ones(len(fits), dtype=bool)
    if not fits.all():
        kept &= fits.reshape(len(fits), -1).all(axis=1)
    return kept


def read_classes(y: object, classes: int) -> NDArray[np.int64]:
    """The class of each record, a whole number below ``classes``; -1 for anything else."""
    given = target_values(y)
    if given.ndim != 1:
        raise InvalidArgument("X and y must have one row and one label for each record.")
    if given.dtype.kind == "U":
        raise InvalidArgument(f"y must be whole numbers 0..{classes - 1}, as declared, not text.")
    if given.dtype.kind == "O":
        found = [as_whole(value) for value in given]
        whole = [-1 if one is None or not 0 <= one < classes else one for one in found]
        return np.array(whole, dtype=np.int64)
    with np.errstate(all="ignore"):
        fits = (given >= 0) & (given < classes)
        if given.dtype.kind == "f":
            fits &= given == np.floor(given)
        return np.where(fits, np.where(fits, given, 0).astype(np.int64), -1)
