"""Columns of doubles, piece by piece: what a function makes of each piece is added up.

For statistics that no plan of sums can express. The function turns the doubles of some rows into
whole numbers on a public grid; those add up exactly, on every engine and in every order. At most a
piece is in memory.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import NAN, as_double
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._duckdb.compile import ALIAS
from discreet.data._duckdb.encode import name as quoted
from discreet.data._duckdb.engine import open_files, spilling
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    FileSource,
    FrameSource,
    Source,
    SparkSource,
    run_sealed,
)

Doubles: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Piece: TypeAlias = Callable[[Doubles], Ints]
"""From the doubles of some rows (rows x columns) to whole numbers that add up."""

ROWS = 1 << 16
_READABLE = {"integer", "exact", "float", "text", "boolean"}


def add_up(source: Source, columns: Sequence[str], piece: Piece, *, start: Ints) -> Ints:
    """``start`` plus the sum of ``piece`` over the rows of a source.

    Missing values, and text that is no number, are NaN: the function says what they mean.
    """
    check_columns(source, columns)
    if isinstance(source, SparkSource):
        module = importlib.import_module("discreet.data._spark.float_columns")
        total: Ints = module.add_up(source.frame, list(columns), piece, start=start)
    else:
        total = run_sealed("reading the rows", lambda: _added(source, columns, piece, start))
    return total


def read_columns(source: Source, columns: Sequence[str]) -> Doubles:
    """The doubles of all rows, in an order of the engine's own; NaN for what is no number."""
    check_columns(source, columns)
    found = run_sealed("reading the rows", lambda: list(_pieces(source, columns)))
    return np.concatenate(found) if found else np.empty((0, len(columns)))


def read_frame(source: Source, *, numbers: Sequence[str], others: Sequence[str]) -> Any:
    """Some columns of all rows as one eager frame: numbers as doubles, others as they are."""
    match source:
        case FrameSource(frame=frame):
            narrow = frame.select([*numbers, *others])
            return narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
        case DuckDBSource(relation=relation):
            return _frame_of(relation, numbers, others)
        case FileSource() as files:
            with spilling() as connection:
                return _frame_of(open_files(files, connection), numbers, others)
        case ArrowStreamSource(batches=batches):
            with spilling() as connection, batches([*numbers, *others]) as reader:
                return _frame_of(connection.from_arrow(reader), numbers, others)
        case _:
            raise Unsupported(
                "Rows of a Spark frame or a joined table cannot be limited for each unit here: "
                "limit them before, or make a frame of them."
            )


def _frame_of(relation: Any, numbers: Sequence[str], others: Sequence[str]) -> Any:
    wanted = [
        *(f"TRY_CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}" for name in numbers),
        *map(quoted, others),
    ]
    answer = relation.query(ALIAS, f"SELECT {', '.join(wanted)} FROM {ALIAS}")  # noqa: S608
    return nw.from_native(answer.to_arrow_table(), eager_only=True)


def check_columns(source: Source, columns: Sequence[str]) -> None:
    """Refuse columns that a source does not have, or that cannot be numbers."""
    missing = [name for name in columns if name not in source.columns]
    if missing:
        raise InvalidArgument(f"columns {missing} are not in the source: check names and header.")
    wrong = [name for name in columns if source.columns[name] not in _READABLE]
    if wrong:
        raise InvalidArgument(f"columns {wrong} must be numbers in the source.")


def _added(source: Source, columns: Sequence[str], piece: Piece, start: Ints) -> Ints:
    total = start.copy()
    for values in _pieces(source, columns):
        total += piece(values)
    return total


def _pieces(source: Source, columns: Sequence[str]) -> Iterator[Doubles]:
    match source:
        case FrameSource(frame=frame):
            yield from _from_frame(frame, columns)
        case DuckDBSource(relation=relation):
            yield from _from_duckdb(relation, columns)
        case FileSource() as files:
            with spilling() as connection:
                yield from _from_duckdb(open_files(files, connection), columns)
        case ArrowStreamSource(batches=batches):
            with spilling() as connection, batches(list(columns)) as reader:
                yield from _from_duckdb(connection.from_arrow(reader), columns)
        case _:
            raise Unsupported("Rows of a joined table cannot be read as doubles: join them before.")


def _from_frame(frame: Any, columns: Sequence[str]) -> Iterator[Doubles]:
    narrow = frame.select(list(columns))
    if isinstance(narrow, nw.LazyFrame):
        narrow = narrow.collect()
    for first in range(0, len(narrow), ROWS):
        part = narrow[first : first + ROWS]
        yield np.column_stack([_doubles(part[name]) for name in columns])


def _doubles(series: nw.Series[Any]) -> Doubles:
    """One double for each value. A text is read by itself: a cast fails for all or none."""
    if series.dtype.is_integer():  # Arrow's own cast fails for all if one is beyond 2**53
        found = np.asarray(series.fill_null(0).to_numpy()).astype(np.float64)
        return np.where(series.is_null().to_numpy(), NAN, found)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).fill_null(NAN).to_numpy(), dtype=np.float64)
    return np.array([_number(value) for value in series.to_list()], dtype=np.float64)


def _number(value: object) -> float:
    if not isinstance(value, str):
        return as_double(value)
    try:
        return float(value)
    except ValueError:
        return NAN


def _from_duckdb(relation: Any, columns: Sequence[str]) -> Iterator[Doubles]:
    if importlib.util.find_spec("pyarrow") is None:
        raise Unsupported("Reading rows from DuckDB needs pyarrow: pip install pyarrow.")
    wanted = ", ".join(f"TRY_CAST({quoted(name)} AS DOUBLE)" for name in columns)
    answer = relation.query(ALIAS, f"SELECT {wanted} FROM {ALIAS}")  # noqa: S608 - quoted names
    for batch in answer.to_arrow_reader(ROWS):
        yield of_batch(batch)


def of_batch(batch: Any) -> Doubles:
    """The columns of an Arrow batch of doubles, NaN for null."""
    out = np.empty((batch.num_rows, batch.num_columns), order="F")
    for place, column in enumerate(batch.columns):
        out[:, place] = column.to_numpy(zero_copy_only=False)
    return out
