"""Rows of several values: each row is read by itself, and a row of another width is a misfit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import (
    Floats,
    Ints,
    as_double,
    doubles,
    listed,
    numeric_array,
    steps,
)


def matrix(rows: object, *, columns: int) -> Floats:
    """Return one row of ``columns`` doubles for each row; NaN where a value is a misfit.

    A frame is read column by column, an array of numbers as it is. Rows of a list are read one by
    one: a row that has another number of values is a row of misfits.
    """
    names = getattr(rows, "column_names", getattr(rows, "columns", None))
    if names is not None and callable(getattr(rows, "__getitem__", None)):
        series = [doubles(rows[name]) for name in names]  # type: ignore[index]
        return np.column_stack(series) if series else np.empty((0, columns))
    array = numeric_array(rows)
    if array is not None and (array.ndim == 2 or (array.ndim == 1 and columns == 1)):
        with np.errstate(all="ignore"):
            found = np.ascontiguousarray(array, dtype=np.float64)
            return found if found.ndim == 2 else found[:, None]
    each = listed(rows)
    flat: list[object] = []
    for row in each:
        # The values of all rows of the declared length are read one by one, but together.
        if (type(row) is list or type(row) is tuple) and len(row) == columns:
            flat += row
        else:
            flat += _row(row, columns).tolist()
    return doubles(flat).reshape(len(each), columns)


def _row(row: object, columns: int) -> Floats:
    try:
        values = _row_values(row, columns)
    except Exception:  # noqa: BLE001 - code of its own: what cannot be read is a misfit
        values = np.empty(0)
    return values if values.shape == (columns,) else np.full(columns, np.nan)


def _row_values(row: object, columns: int) -> Floats:
    if not isinstance(row, np.ndarray | list | tuple):
        series = numeric_array(row)
        row = row if series is None or series.ndim == 0 else series
    if isinstance(row, np.ndarray) and row.ndim and row.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return row.astype(np.float64).reshape(-1)
    if isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim):
        if len(row) != columns:
            return np.empty(0)
        return np.array([as_double(value) for value in row], dtype=np.float64)
    return np.array([as_double(row)]) if columns == 1 else np.empty(0)


def cells(values: object, *, shape: tuple[int, ...], lower: int, upper: int) -> Ints | None:
    """Return the counts of cells as whole numbers within bounds; None if the shape is another.

    The shape, and the type of an array, are public. A count inside of a list is read by itself: it
    is rounded and clipped, and what is no number counts nothing.
    """
    array = numeric_array(values)
    if array is not None:
        if array.dtype.kind not in "iu" or array.shape != shape:
            return None
        return steps(array, exponent=0, lower=lower, upper=upper, misfit=0).reshape(shape)
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return None
    flat = _flattened(values, shape)
    if flat is None:
        return None
    return steps(flat, exponent=0, lower=lower, upper=upper, misfit=0).reshape(shape)


def shape_of(values: object, *, axes: int) -> tuple[int, ...] | None:
    """Return the shape of an array, or of lists by their first entries; None with other axes."""
    array = values if isinstance(values, np.ndarray) else numeric_array(values)
    if array is not None:
        return array.shape if array.ndim == axes else None
    shape: tuple[int, ...] = ()
    for _ in range(axes):
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            return None
        entries = listed(values)
        shape += (len(entries),)
        values = entries[0] if entries else ()
    return shape


def _flattened(values: object, shape: tuple[int, ...]) -> list[object] | None:
    if not shape:
        return [values]
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        return None
    rows = listed(values)
    if len(rows) != shape[0]:
        return None
    if len(shape) == 1:
        return rows
    found: list[object] = []
    for row in rows:
        part = _flattened(row, shape[1:])
        if part is None:
            return None
        found += part
    return found


def choose_rows(rows: NDArray[Any] | Sequence[object], places: NDArray[np.int64]) -> NDArray[Any]:
    """Return some rows as an array whose type follows from these rows alone.

    An array keeps its type, which the caller fixed. Of a list, only the chosen rows decide whether
    the result holds integers, doubles or objects: the rows of one group cannot change another's.
    """
    if isinstance(rows, np.ndarray):
        return rows[places]
    chosen = [rows[place] for place in places.tolist()]
    try:
        return np.asarray(chosen)
    except Exception:  # noqa: BLE001 - ragged rows: the text could quote them
        held = np.empty(len(chosen), dtype=object)
        for place, row in enumerate(chosen):  # one by one: all at once, NumPy asks for their length
            held[place] = row
        return held
