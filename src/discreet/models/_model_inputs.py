"""Where private rows enter a model: every row is read by itself, and none can make a fit fail.

A row is a misfit if it has another number of values than declared columns, a value that is missing
(NaN, None) or no number, a label that was not declared, or no owner where owners are given. Then
all of it is left out: its weight is zero. What is infinite, or too large for a double, is clipped.
"""

# Theorem: with misfits left out, fits have the guarantee that they claim, under both relations.
# Proof: whether a row fits is a function of that row and of what is declared. So tables that differ
#   in one row still differ in one row at most: in one that is there or not, or in one that is
#   replaced, or (under replace-one) in one that is there in one table only. In the last case sums
#   move by one row's contribution, not by the difference of two; every bound for a replaced row is
#   at least the bound for an added one (docs/theory/regression.md). Where the number of rows
#   is public it is the number of all rows, misfits among them.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.rows import matrix as boundary_matrix
from discreet.boundary.values import as_double, listed, numeric_array
from discreet.core._validate import finite
from discreet.core.errors import InvalidArgument, OutOfDomain

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = Any
"""One pair ``(lower, upper)`` for all columns, a pair for each, or a mapping from their names."""

LARGEST = 1e150
SMALLEST = 1e-9
"""Bounds whose squares are no numbers, or between which doubles are coarse, are refused."""


_TEXT_TYPES = ("string", "str", "large_string", "string_view", "utf8", "binary")
"""Names of types of columns that hold text, in pandas, Polars and Arrow."""


def names_of(x: object) -> tuple[str, ...] | None:
    """The column names of a data frame; None for arrays and frames with other names."""
    columns = getattr(x, "column_names", getattr(x, "columns", None))
    if columns is None:
        return None
    names = [name for name in columns if isinstance(name, str)]
    return tuple(names) if names and len(names) == len(columns) else None


def matrix(name: str, values: object, *, columns: int | None = None) -> NDArray[Any]:
    """Rows of numbers: an array of numbers as it is, else doubles, NaN where a value is a misfit.

    What is refused follows from the type and the shape of the container, never from a value.
    Lists are read row by row, frames and arrays of objects value by value. ``columns``: how many
    the declaration names, which a list needs: one of its rows must not say it for all others.
    """
    found = _frame(name, values)
    if found is None and isinstance(values, list | tuple):
        if columns is None:
            raise InvalidArgument(
                f"{name} is a list of rows, which may differ in length: declare the bounds of each "
                f"column, one pair each, or give an array, np.asarray({name}, dtype=float)."
            )
        return rows_of_list(values, columns=columns)
    array = _container(name, values) if found is None else found
    if array.ndim == 1 and array.dtype.kind == "O" and columns is not None:
        return rows_of_list(list(array), columns=columns)
    if array.ndim != 2:
        raise InvalidArgument(
            f"{name} must be a table: Expected 2D array, got {array.ndim} dimensions instead. "
            "Reshape your data with array.reshape(-1, 1) if it has a single feature."
        )
    if array.shape[1] == 0:
        # In the words of scikit-learn, but for the number of rows, which may be private.
        raise InvalidArgument("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return _numbers(name, array)


def target_table(y: object, *, columns: int | None = None) -> tuple[NDArray[Any], bool]:
    """Targets as a table with one column for each output, and whether they came as flat values.

    ``columns``: how many the declaration names; a list is flat unless it names several.
    """
    if y is None:
        raise InvalidArgument("This estimator requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple):
        return rows_of_list(y, columns=1 if columns is None else columns), columns is None
    found = _frame("y", y)
    array = _container("y", y) if found is None else found
    if array.ndim not in (1, 2) or array.shape[-1:] == (0,) == array.shape[1:]:
        raise InvalidArgument(f"y should be a 1d array or a table, got {array.ndim} dimensions.")
    flat = array.ndim == 1
    return _numbers("y", array[:, None] if flat else array), flat


def target_values(y: object) -> NDArray[Any]:
    """One target for each row, of any type: an array, whose own type says what it holds."""
    if y is None:
        raise InvalidArgument("requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple):
        held = np.empty(len(y), dtype=object)
        # One by one: NumPy would look whether all of them are lists of one length.
        for place, value in enumerate(y):
            held[place] = value[0] if isinstance(value, list) and len(value) == 1 else value
        return held
    found = _frame("y", y, text=True)
    return _container("y", y, text=True) if found is None else found


def rows_of_list(rows: Iterable[object], *, columns: int) -> Floats:
    """One row of doubles for each row of a list; NaN where a value or a whole row is a misfit."""
    return boundary_matrix(list(rows), columns=columns)


def _container(name: str, values: object, *, text: bool = False) -> NDArray[Any]:
    """An array as it is, if its type can hold what is wanted."""
    if hasattr(values, "toarray"):
        raise InvalidArgument(f"{name} is sparse: sparse data is not supported, use toarray().")
    if isinstance(values, Mapping | set | frozenset | str | bytes | Iterator):
        raise InvalidArgument(f"{name} must be an array, a data frame or a list of rows.")
    array: NDArray[Any] | None = None
    column = _series(values)
    if column is not None:
        array = _column(name, column, text=text)
    elif isinstance(values, np.ndarray):
        array = values
    else:
        with suppress(Exception):  # a message could quote values
            array = np.asarray(values)
    if array is None:
        raise InvalidArgument(f"{name} must be an array, a data frame or a list of rows.")
    _check_kind(name, array.dtype.kind, text=text)
    return array


def _check_kind(name: str, kind: str, *, text: bool = False) -> None:
    """Refuse types that hold no numbers; ``text`` says that texts are fine."""
    if kind in ("m", "M"):
        # pandas and NumPy choose the unit of a whole column by its finest value.
        raise InvalidArgument(
            f"{name} holds dates or durations: divide by a unit, as in x / np.timedelta64(1, 's')."
        )
    if kind == "c":
        raise InvalidArgument(f"Complex data not supported: {name} must hold real numbers.")
    if kind in ("S", "V", "T") or (kind == "U" and not text):
        raise InvalidArgument(f"{name} holds text, not numbers: convert it where it is read.")


def _frame(name: str, values: Any, *, text: bool = False) -> NDArray[Any] | None:
    """The columns of a frame of pandas, Polars or Arrow, side by side; None for anything else."""
    if _is_numeric_pandas(values):  # in one piece: a column by itself takes pandas long
        with np.errstate(all="ignore"):
            return np.asarray(values.to_numpy(dtype=np.float64))
    columns = frame_columns(values)
    if columns is None:
        return None
    read = [_column(name, column, text=text) for column in columns]
    if not read:
        return np.empty((0, 0))
    if all(one.dtype.kind in "biuf" for one in read):
        return np.column_stack([doubles(one) for one in read])
    held = np.empty((len(read[0]), len(read)), dtype=object)
    for place, one in enumerate(read):
        held[:, place] = one
    return held


def _is_numeric_pandas(values: Any) -> bool:
    """Whether all columns of a frame of pandas have numeric types of NumPy."""
    if not (hasattr(values, "iloc") and hasattr(values, "columns") and len(values.columns)):
        return False
    return all(isinstance(one, np.dtype) and one.kind in "biuf" for one in values.dtypes)


def as_objects(name: str, values: object) -> NDArray[Any]:
    """The columns of a frame as a table of objects, each as its column holds it."""
    columns = frame_arrays(name, values)
    held = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=object)
    for place, one in enumerate(columns):
        held[:, place] = one
    return held


def frame_arrays(name: str, values: object) -> list[NDArray[Any]]:
    """The columns of a frame, each as an array of its own type."""
    return [_column(name, one, text=True) for one in frame_columns(values) or []]


def frame_columns(values: object) -> list[Any] | None:
    """The columns of a data frame, in order; None for what is none."""
    frame: Any = values
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):
        return list(frame.get_columns())
    if hasattr(frame, "column_names") and hasattr(frame, "columns"):
        return list(frame.columns)
    return None


def _series(values: object) -> Any | None:
    """A column of a frame by itself."""
    known = hasattr(values, "to_numpy") and not isinstance(values, np.ndarray)
    return values if known else None


def _column(name: str, column: Any, *, text: bool) -> NDArray[Any]:
    """One column as an array: of its numeric type, or of objects. Its type alone decides."""
    dtype = getattr(column, "dtype", None) or getattr(column, "type", None)
    kind = str(getattr(dtype, "kind", ""))
    _check_kind(name, kind, text=True)
    if not text and str(dtype).lower() in _TEXT_TYPES:
        _check_kind(name, "U")
    if text and _is_nullable_whole(dtype):
        # NumPy has no missing integer: one of them would make doubles of everybody's labels.
        return held_values(listed(column))
    array: NDArray[Any] | None = None
    with suppress(Exception):
        if kind in tuple("biuf") and hasattr(column, "iloc") and not isinstance(dtype, np.dtype):
            # pandas' own types: missing values must not make objects of all others.
            array = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            array = column.to_numpy()
    if array is None:  # Arrow refuses doubles with missing ones, which NumPy has
        array = numeric_array(column)
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        array = held_values(listed(column))
    _check_kind(name, array.dtype.kind, text=True)
    return array


def _is_nullable_whole(dtype: Any) -> bool:
    """Whether a type of pandas, Polars or Arrow holds whole numbers beside missing ones."""
    categories = getattr(dtype, "categories", None)
    inner = getattr(dtype, "value_type", getattr(categories, "dtype", None))
    if inner is not None:
        return str(inner).lower().startswith(("int", "uint"))
    return not isinstance(dtype, np.dtype) and str(dtype).lower().startswith(("int", "uint"))


def held_values(values: Sequence[object]) -> NDArray[Any]:
    """Values as they are, none of them looked at."""
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return held


def _numbers(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers as it is; of objects value by value, NaN where one is a misfit."""
    if array.dtype.kind in "biuf":
        return array
    _check_kind(name, array.dtype.kind)
    read = [as_double(value) for value in array.ravel()]
    return np.array(read, dtype=np.float64).reshape(array.shape)


def same_rows(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Refuse tables of different lengths."""
    if len(x) != len(y):
        raise InvalidArgument("X and y have inconsistent numbers of rows.")


def doubles(values: NDArray[Any]) -> Floats:
    """Numbers as doubles; what is beyond them is infinite, without a warning."""
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64)


def fitting(*tables: Floats) -> NDArray[np.bool_]:
    """Which rows have a number everywhere (infinity is one); all others are misfits."""
    kept = np.ones(len(tables[0]), dtype=bool)
    for table in tables:
        # The least of all values is NaN if one is: most tables are settled in one pass.
        if table.size and np.isnan(table.min()):
            missing = np.isnan(table)
            kept &= ~(missing if table.ndim == 1 else missing.any(axis=1))
    return kept


def all_finite(name: str, values: Floats) -> None:
    """Refuse missing and infinite values: of rows to predict for, never of rows to fit."""
    if not np.isfinite(values).all():
        raise OutOfDomain(
            f"{name} contains NaN or infinity: put a declared value in the place of missing ones."
        )


def declared_columns(declared: object) -> int | None:
    """How many columns a declaration of bounds names; None if it is one pair for all."""
    if isinstance(declared, Mapping):
        return len(declared)
    try:
        shape = np.shape(np.array(declared, dtype=object))
    except ValueError:
        return None
    return int(shape[0]) if len(shape) == 2 else None


def bounds_of(
    name: str, bounds: Bounds, *, columns: int, names: Sequence[str] | None = None
) -> tuple[Floats, Floats]:
    """Declared lower and upper bounds of each column, finite and in order."""
    if isinstance(bounds, Mapping):
        if names is None or set(bounds) != set(names):
            raise InvalidArgument(f"{name} names columns: give a data frame with just these.")
        bounds = [bounds[column] for column in names]
    try:
        pairs = np.array(bounds, dtype=object)
    except ValueError:
        pairs = np.empty(0)
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (columns, 1))
    if pairs.shape != (columns, 2):
        raise InvalidArgument(
            f"{name} must be one pair (lower, upper), or {columns} of them, one for each column."
        )
    numbers = np.array([[float(finite(name, end)) for end in pair] for pair in pairs])
    lower, upper = numbers.T
    if not (lower < upper).all():
        raise InvalidArgument(f"{name} must have lower below upper in each pair.")
    furthest, width = np.maximum(np.abs(lower), np.abs(upper)), upper / 2 - lower / 2
    if not ((furthest < LARGEST) & (width > 1 / LARGEST) & (width > SMALLEST * furthest)).all():
        raise InvalidArgument(
            f"{name} must lie within {LARGEST:g} of zero, and be further apart than the "
            f"{SMALLEST:g}th part of that: use another unit, or a nearer zero."
        )
    return lower.copy(), upper.copy()
