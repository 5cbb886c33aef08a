"""Raw values of a source, some rows at a time, for its owner alone: no release reads them so.

Each comes as the text whose meaning `_text_parsing` gives it on every engine, with the number of
its line where the source is a CSV of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import narwhals.stable.v2 as nw

from discreet.boundary.values import as_text
from discreet.core.errors import Unsupported
from discreet.data._duckdb.engine import open_files, spilling
from discreet.data._numpy.encode import distinct, unwrapped
from discreet.data._text_parsing import object_text
from discreet.data.csv_records import Dialect, numbered_records, read_header
from discreet.data.schema import ColumnSpec
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    FileSource,
    FrameSource,
    Source,
    Type,
    decoded,
    quoted_name,
)

_ROWS = 16_384
_USUAL: frozenset[Type] = frozenset({"exact", "date", "time", "time_s", "time_ns"})
"""Types of which every value has one text: what a column declares of texts is not said of them."""
Values: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RawRows:
    """Some rows, column by column; a column that a file does not have is missing there."""

    rows: int
    values: Values
    places: Sequence[str] | None = None
    """The line of each row, in a CSV of lines."""
    malformed: Sequence[str] = ()
    """Lines without any value; they are not among the rows."""


def usual_text(column: ColumnSpec, kind: Type) -> Callable[[object], str]:
    """The usual text of a raw value, as the engines read it."""
    return as_text if kind in _USUAL else object_text(column)


def raw_rows(source: Source, names: Sequence[str]) -> Iterator[RawRows]:
    """All rows of a source, with the values of these columns."""
    match source:
        case FileSource(format="csv", records="lines"):
            several = len(source.paths) > 1
            for part in source.parts or (source,):
                for place, path in enumerate(part.paths):
                    yield from _lines(part, place, names, named=several and Path(path).name)
        case FileSource():
            with spilling() as connection:
                yield from _fetched(open_files(source, connection), source.columns, names)
        case DuckDBSource(relation=relation, columns=columns):
            yield from _fetched(decoded(relation, columns), columns, names)
        case ArrowStreamSource(batches=batches, columns=columns):
            read = list(names) or list(columns)[:1]
            with spilling() as connection, batches(read) as reader:
                yield from _fetched(decoded(connection.from_arrow(reader), columns), columns, names)
        case FrameSource(frame=frame, columns=columns):
            yield from _framed(frame, columns, names)
        case _:
            raise Unsupported(
                "check reads rows in this process: open the files without engine='spark', and "
                "check tables before they are joined."
            )


def _lines(
    files: FileSource, place: int, names: Sequence[str], *, named: str | bool
) -> Iterator[RawRows]:
    path, stored = Path(files.paths[place]), list(files.stored)
    at = {name: stored.index(name) for name in names if name in stored}
    folder = (
        {}
        if files.folders is None
        else dict(zip(files.folders.names, files.folders.values[place], strict=True))
    )
    dialect = Dialect(delimiter=files.delimiter, fields=len(stored))
    records = numbered_records(path, dialect, read_header(path))
    prefix = f"{named}:" if named else ""
    while some := list(islice(records, _ROWS)):
        rows = [(f"{prefix}{number}", fields) for number, fields in some if fields is not None]
        yield RawRows(
            rows=len(rows),
            values={
                name: [fields[at[name]] for _, fields in rows]
                if name in at
                else [folder.get(name)] * len(rows)
                for name in names
            },
            places=[line for line, _ in rows],
            malformed=[f"{prefix}{number}" for number, fields in some if fields is None],
        )


def _fetched(
    relation: duckdb.DuckDBPyRelation, columns: Mapping[str, Type], names: Sequence[str]
) -> Iterator[RawRows]:
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    read = [_plain(name, columns[name], types[name]) for name in names]
    rows = relation.project(", ".join(["1 AS one", *read])).iter_rows(_ROWS)
    while some := list(islice(rows, _ROWS)):
        _, *found = zip(*some, strict=True)
        yield RawRows(rows=len(some), values=dict(zip(names, found, strict=True)))


def _plain(name: str, kind: Type, exact: str) -> str:
    """A column as numbers or texts that Python has; a moment far away stays a text."""
    value = quoted_name(name)
    text = f"CAST({value} AS VARCHAR)"
    if not kind.startswith("time"):
        return text if kind in _USUAL or kind == "text" else value
    zoned = exact == "TIMESTAMP WITH TIME ZONE"
    moment = f"make_timestamp(epoch_us({value}))" if zoned else f"CAST({value} AS TIMESTAMP)"
    written = f"TRY(strftime({moment}, '%Y-%m-%d %H:%M:%S{'Z' if zoned else ''}'))"
    return f"CASE WHEN {value} IS NOT NULL THEN coalesce({written}, {text}) END"


def _framed(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Mapping[str, Type], names: Sequence[str]
) -> Iterator[RawRows]:
    read = frame.select(list(names) or list(columns)[:1])
    data = read.collect() if isinstance(read, nw.LazyFrame) else read
    for start in range(0, len(data), _ROWS):
        some = data[start : start + _ROWS]
        values = {name: _listed(some[name], columns[name]) for name in names}
        yield RawRows(rows=len(some), values=values)


def _listed(series: nw.Series[Any], kind: Type) -> Sequence[Any]:
    if kind in ("text", "exact"):
        found = distinct(series, kind)
        return [found.texts[place] for place in found.places.tolist()]
    return (series if kind == "object" else unwrapped(series)).to_list()
