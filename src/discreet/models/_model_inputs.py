"""Checks of private rows: rectangular tables of finite numbers, and their declared bounds.

No value of the rows appears in an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core._validate import finite
from discreet.core.errors import InvalidArgument, OutOfDomain

Floats: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = Any
"""One pair ``(lower, upper)`` for all columns, a pair for each, or a mapping from their names."""

LARGEST = 1e150
SMALLEST = 1e-9
"""Bounds whose squares are no numbers, or between which doubles are coarse, are refused."""


def names_of(x: object) -> tuple[str, ...] | None:
    """The column names of a data frame; None for arrays and frames with other names."""
    columns = getattr(x, "columns", None)
    if columns is None:
        return None
    names = [name for name in columns if isinstance(name, str)]
    return tuple(names) if names and len(names) == len(columns) else None


def shaped(name: str, values: object) -> NDArray[Any]:
    """An array as it is: its shape may be known before its values are read."""
    if hasattr(values, "toarray"):
        raise InvalidArgument(f"{name} is sparse: sparse data is not supported, use toarray().")
    found = None
    with suppress(TypeError, ValueError):
        found = np.asarray(values)
    if found is None:
        raise OutOfDomain(f"{name} must be a rectangular table of numbers, and is not.")
    if found.dtype.kind in "mM":
        # pandas and NumPy choose the unit of a whole column by its finest value.
        raise InvalidArgument(
            f"{name} holds dates or durations: divide by a unit, as in x / np.timedelta64(1, 's')."
        )
    if found.dtype.kind == "c":
        raise InvalidArgument(f"Complex data not supported: {name} must hold real numbers.")
    return found


def matrix_shape(x: NDArray[Any]) -> None:
    """Refuse what is not a table with at least one column."""
    if x.ndim != 2:
        raise InvalidArgument(
            f"X must be a table: Expected 2D array, got {x.ndim} dimensions instead. Reshape your "
            "data with array.reshape(-1, 1) if it has a single feature."
        )
    if x.shape[1] == 0:
        # In the words of scikit-learn, but for the number of rows, which may be private.
        raise InvalidArgument("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")


def target_table(y: object) -> NDArray[Any]:
    """Targets as a table: one column for each output."""
    if y is None:
        raise InvalidArgument("This estimator requires y to be passed, but the target y is None.")
    found = shaped("y", y)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] == 0:
        raise InvalidArgument(f"y should be a 1d array or a table, got {found.ndim} dimensions.")
    return found


def same_rows(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Refuse tables of different lengths."""
    if len(x) != len(y):
        raise InvalidArgument("X and y have inconsistent numbers of rows.")


def doubles(name: str, values: NDArray[Any]) -> Floats:
    """Finite doubles. The conversion's own messages can quote a value and are dropped."""
    found: Floats | None = None
    with suppress(TypeError, ValueError, OverflowError):
        found = np.asarray(values, dtype=np.float64)
    if found is None:
        raise OutOfDomain(
            f"{name} must hold numbers: each argument must be a string or a real number's text."
        )
    all_finite(name, found)
    return found


def all_finite(name: str, values: Floats) -> None:
    """Refuse missing and infinite values."""
    if not np.isfinite(values).all():
        raise OutOfDomain(
            f"{name} contains NaN or infinity: put a declared value in the place of missing ones."
        )


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
