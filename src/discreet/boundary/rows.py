"""Rows of several values: each row is read by itself, and a row of another width is a misfit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import Floats, as_double, doubles, listed, numeric_array


def matrix(rows: object, *, columns: int) -> Floats:
    """Return one row of ``columns`` doubles for each row; NaN where a value is a misfit.

    A frame is read column by column, an array of numbers as it is. Rows of a list are read one by
    one: a row that has another number of values is a row of misfits.
    """
    names = getattr(rows, "columns", None)
    if names is not None and callable(getattr(rows, "__getitem__", None)):
        series = [doubles(rows[name]) for name in names]  # type: ignore[index]
        return np.column_stack(series) if series else np.empty((0, columns))
    array = numeric_array(rows)
    if array is not None and array.ndim == 2:
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array, dtype=np.float64)
    found = [_row(row, columns) for row in listed(rows)]
    return np.array(found, dtype=np.float64).reshape(len(found), columns)


def _row(row: object, columns: int) -> Floats:
    if isinstance(row, np.ndarray) and row.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            values = row.astype(np.float64).reshape(-1)
    elif isinstance(row, np.ndarray | list | tuple):
        values = np.array([as_double(value) for value in row], dtype=np.float64).reshape(-1)
    else:
        values = np.array([as_double(row)]) if columns == 1 else np.empty(0)
    return values if values.shape == (columns,) else np.full(columns, np.nan)


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
        held[:] = chosen
        return held
