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

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
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

    Missing values, and text that is no number, are refused: declare what stands for them first.
    """
    check_columns(source, columns)
    if isinstance(source, SparkSource):
        module = importlib.import_module("discreet.data._spark.float_columns")
        total: Ints = module.add_up(source.frame, list(columns), piece, start=start)
    else:
        total = run_sealed("reading the rows", lambda: _added(source, columns, piece, start))
    return total


def check_columns(source: Source, columns: Sequence[str]) -> None:
    """Refuse columns that a source does not have, or that cannot be numbers."""
    missing = [name for name in columns if name not in source.columns]
    if missing:
        raise InvalidArgument(f"columns {missing} are not in the source: check names and header.")
    wrong = [name for name in columns if source.columns[name] not in _READABLE]
    if wrong:
        raise InvalidArgument(f"columns {wrong} must be numbers in the source.")


def checked(values: Doubles) -> Doubles:
    """Finite doubles, or an error without any of them."""
    if not np.isfinite(values).all():
        raise OutOfDomain("A column holds missing or infinite values, or text that is no number.")
    return values


def _added(source: Source, columns: Sequence[str], piece: Piece, start: Ints) -> Ints:
    total = start.copy()
    for values in _pieces(source, columns):
        total += piece(checked(values))
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
        series = (part[name].cast(nw.Float64).fill_null(float("nan")) for name in columns)
        yield np.column_stack([one.to_numpy() for one in series])


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
