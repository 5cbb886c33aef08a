"""Read reports from a column of a frame, a relation, a file or a stream of Arrow batches.

A report is binary, or text in base64 (with its padding) or in hexadecimal digits. Where both texts
have the same length, base64 ends in "=". Other values of the column are not reports.
"""

from __future__ import annotations

import binascii
import importlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, TypeAlias, assert_never

import narwhals.stable.v2 as nw
import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._duckdb.engine import open_files
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    FileSource,
    FrameSource,
    JoinedSource,
    Source,
    SparkSource,
    open_source,
    private_connection,
    run_sealed,
)
from discreet.local.randomizer import Reports

Piece: TypeAlias = Any
"""Some values of a column: a list, or an array of pyarrow, which this module does not import."""

ROWS = 1 << 17
"""Values that are held at once."""
_URL_SAFE = str.maketrans("-_", "+/")


def open_reports(frame: object, column: str) -> Source:
    """Open a frame, a relation, a path or a stream that has a column of reports.

    An object that only has Arrow's stream protocol is read by DuckDB.
    """
    known = nw.from_native(frame, pass_through=True)
    speaks = hasattr(frame, "__arrow_c_stream__")
    if speaks and not isinstance(known, nw.DataFrame | nw.LazyFrame):
        frame = run_sealed("opening the stream", lambda: private_connection().from_arrow(frame))
    source = open_source(frame)
    if column not in source.columns:
        raise InvalidArgument(f"column {column!r} is not in the frame: check its name.")
    return source


def arrow_stream(stream: BinaryIO) -> Any:
    """The reader of Arrow batches that come through a pipe; `open_reports` takes it."""
    try:
        ipc = importlib.import_module("pyarrow.ipc")
    except ImportError:
        ipc = None
    if ipc is None:
        raise Unsupported("A stream of Arrow batches needs pyarrow: pip install pyarrow.")
    return run_sealed("opening the stream", lambda: ipc.open_stream(stream))


def pieces(source: Source, column: str) -> Iterator[Piece]:
    """The values of a column, some at a time."""
    match source:
        case DuckDBSource(relation=relation):
            yield from _of_relation(relation, column)
        case FileSource() as files:
            with private_connection() as connection:
                yield from _of_relation(open_files(files, connection), column)
        case ArrowStreamSource(batches=batches):
            with batches([column]) as reader:
                for batch in reader:
                    yield batch.column(0)
        case FrameSource(frame=frame):
            for part in _parts(frame.select(column)):
                yield from _of_series(part[column])
        case SparkSource() | JoinedSource():
            raise InvalidArgument("this source cannot be read in pieces.")
        case _:
            assert_never(source)


def rows(piece: Piece, *, width: int) -> Reports:
    """The values that are reports of this width, as rows of bytes."""
    if hasattr(piece, "to_pylist"):
        found = _of_arrow(piece, width)
        if found is not None:
            return found
        piece = piece.to_pylist()
    good = [report for value in piece if (report := _bytes(value, width)) is not None]
    return np.frombuffer(b"".join(good), dtype=np.uint8).reshape(len(good), width)


def _of_relation(relation: Any, column: str) -> Iterator[Piece]:
    quoted = '"' + column.replace('"', '""') + '"'
    narrow = relation.project(quoted)
    try:
        reader = narrow.to_arrow_reader(ROWS)
    except ImportError:  # pyarrow is optional; without it DuckDB holds the column in its memory
        answers = narrow.iter_rows(ROWS)
        while some := [value for (value,) in islice(answers, ROWS)]:
            yield some
        return
    for batch in reader:
        yield batch.column(0)


def _parts(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    if isinstance(frame, nw.DataFrame):
        for start in range(0, len(frame), ROWS):
            yield frame[start : start + ROWS]
    else:  # of Polars: no other lazy frame is a source
        for batch in frame.to_native().collect_batches(chunk_size=ROWS):
            yield nw.from_native(batch, eager_only=True)


def _of_series(series: nw.Series[Any]) -> Iterator[Piece]:
    # A column of objects may hold anything, which Arrow refuses as a whole.
    if series.dtype in {nw.Binary, nw.String}:
        try:
            yield series.to_arrow()
        except ImportError:
            yield series.to_list()
    else:
        yield series.to_list()


def _of_arrow(array: Any, width: int) -> Reports | None:
    """Without a copy if the reports lie one after the other; None for the slow way."""
    kind = str(array.type)
    if kind not in {"binary", "large_binary", f"fixed_size_binary[{width}]"}:
        return None
    if array.null_count:
        array = array.drop_null()
    many, start = len(array), array.offset
    if many == 0:
        return np.empty((0, width), dtype=np.uint8)
    buffers = array.buffers()
    if kind.startswith("fixed"):
        first = start * width
    else:
        number = np.int64 if kind.startswith("large") else np.int32
        ends = np.frombuffer(buffers[1], dtype=number)[start : start + many + 1]
        if (np.diff(ends) != width).any():
            return None
        first = int(ends[0])
    data = np.frombuffer(buffers[-1], dtype=np.uint8, count=many * width, offset=first)
    return data.reshape(many, width)


def _bytes(value: object, width: int) -> bytes | None:
    """One report, or None."""
    if isinstance(value, str):
        try:
            if len(value) == 2 * width and not value.endswith("="):
                value = bytes.fromhex(value)
            else:
                value = binascii.a2b_base64(value.translate(_URL_SAFE), strict_mode=True)
        except ValueError:
            return None
    if not isinstance(value, bytes | bytearray | memoryview):
        return None
    found = bytes(value)
    return found if len(found) == width else None
