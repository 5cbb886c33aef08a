"""The default engine: one generated query, run by DuckDB inside the process, out of core.

The query knows the source by one alias and builds on nothing but integers after its first steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from discreet.data._duckdb.compile import (
    ALIAS,
    compile_counted,
    compile_keys,
    compile_query,
    compile_rows,
    compile_spread,
    compile_values,
)
from discreet.data._duckdb.encode import listed, name, text
from discreet.data._numpy.contribution_limits import LimitedRows, limit, tally
from discreet.data.program import Program, Row, fields
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    EngineFailure,
    FileSource,
    Type,
    arrow_files,
    check_unchanged,
    decoded,
    private_connection,
    read_query,
    run_sealed,
)

Answer = TypeVar("Answer")
_WIDE: Mapping[Type, str] = {
    "integer": "BIGINT",
    "exact": "VARCHAR",
    "float": "DOUBLE",
    "text": "VARCHAR",
}
"""What files of a folder that differ are read as; exact numbers are read as texts anyway."""
_FEW_ROWS = 4_000_000
"""Rows that are worked on in memory, about a hundred bytes each; more of them out of core."""


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Files and streams in a private connection, a relation in its own."""

    source: FileSource | DuckDBSource | ArrowStreamSource

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        types = dict(self.source.columns)
        if _has_whole_units(program, types):
            rows = run_sealed("the query", lambda: self._in_memory(program, types))
            if rows is not None:
                return run_sealed("the query", lambda: tally(program, rows, key))
        return self._run(program, compile_query(program, types=types, key=key))

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self._run(program, compile_keys(program, types=dict(self.source.columns), key=key))

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self._run(program, compile_rows(program, types=dict(self.source.columns), key=key))

    def values(self, program: Program, *, key: int) -> tuple[NDArray[np.int64], ...]:
        types = dict(self.source.columns)
        if _has_whole_units(program, types):
            rows = run_sealed("the query", lambda: self._in_memory(program, types))
            if rows is not None:
                return run_sealed("the query", lambda: limit(program, rows, key).values)
        query = compile_values(program, types=types, key=key)
        return run_sealed("the query", lambda: self._answer(program, query, _fetch_values))

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        queries = compile_spread(program, types=dict(self.source.columns))
        return self._run(program, queries[0]), self._run(program, queries[1])

    def _in_memory(self, program: Program, types: dict[str, Type]) -> LimitedRows | None:
        """Rows for NumPy, if the files have few: several times faster, the same answer.

        Sorting the rows of each unit takes most of the time, and NumPy sorts packed integers best.
        """
        if not isinstance(self.source, FileSource) or self.source.format != "parquet":
            return None
        with spilling() as connection:
            paths = listed(map(text, self.source.paths))
            size = f"SELECT sum(num_rows) FROM parquet_file_metadata({paths})"  # noqa: S608
            if connection.sql(size).fetchall()[0][0] > _FEW_ROWS:
                return None
            counted = compile_counted(program, types=types)
            found = _asked(open_files(self.source, connection), counted).fetchnumpy()
        unit, group, *values = (
            np.asarray(found[name]).astype(np.int64, copy=False)
            for name in ("u", "g", *(f"v{i}" for i in range(len(program.values))))
        )
        return LimitedRows(unit=unit, number=unit, group=group, values=tuple(values))

    def _run(self, program: Program, query: str) -> Sequence[Sequence[Any]]:
        return run_sealed("the query", lambda: self._answer(program, query, _fetch))

    def _answer(
        self,
        program: Program,
        query: str,
        fetch: Callable[[duckdb.DuckDBPyRelation, str], Answer],
    ) -> Answer:
        match self.source:
            case DuckDBSource(relation=relation, columns=columns):
                return fetch(decoded(relation, columns), query)
            case FileSource() as files:
                with spilling() as connection:
                    return fetch(open_files(files, connection), query)
            case ArrowStreamSource(batches=batches, columns=columns):
                used = {name for name, _ in fields(program)} | set(program.unit_columns)
                # A row needs a column to be counted.
                names = [name for name in columns if name in used] or list(columns)[:1]
                with spilling() as connection, batches(names) as reader:
                    return fetch(decoded(connection.from_arrow(reader), columns), query)


def _has_whole_units(program: Program, types: dict[str, Type]) -> bool:
    return isinstance(program.unit, str) and types[program.unit] == "integer"


@contextmanager
def spilling() -> Iterator[duckdb.DuckDBPyConnection]:
    """What does not fit into memory is spilled where only this user can read it."""
    with tempfile.TemporaryDirectory() as spill, private_connection() as connection:
        connection.execute(f"SET temp_directory = {text(spill)}")
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def _fetch(relation: duckdb.DuckDBPyRelation, query: str) -> Sequence[Row]:
    return _asked(relation, query).fetchall()


def _fetch_values(relation: duckdb.DuckDBPyRelation, query: str) -> tuple[NDArray[np.int64], ...]:
    columns = list(_asked(relation, query).fetchnumpy().values())
    # No encoder makes NULL; a row of one would count nowhere.
    there = np.logical_and.reduce([~np.ma.getmaskarray(column) for column in columns])
    return tuple([np.asarray(column)[there].astype(np.int64, copy=False) for column in columns])


def _asked(relation: duckdb.DuckDBPyRelation, query: str) -> duckdb.DuckDBPyRelation:
    answer = relation.query(ALIAS, query)
    if answer is None:
        raise EngineFailure("the query gave no answer.")
    return answer


def open_files(files: FileSource, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Files of one format as a relation of this connection."""
    check_unchanged(files)
    if not files.parts:
        return _files_of_one_header(files, connection)
    queries = []
    for place, part in enumerate(files.parts):
        view = f"discreet_part_{place}"
        _files_of_one_header(part, connection).create_view(view)
        columns = (_read_as(column, kind, part) for column, kind in files.columns.items())
        queries.append(f"SELECT {', '.join(columns)} FROM {view}")  # noqa: S608 - quoted names
    return connection.sql(" UNION ALL ".join(queries))


def _files_of_one_header(
    files: FileSource, connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    kind = files.format if files.copies is None else files.copies.format
    if kind == "arrow" or files.through_arrow:
        return decoded(connection.from_arrow(arrow_files(files, format=kind)), files.columns)
    return connection.sql(read_query(files))


def _read_as(column: str, kind: Type, part: FileSource) -> str:
    """A column of some files as it is in all of them; missing where they do not have it."""
    if column not in part.columns or kind == "mixed":
        return f"NULL AS {name(column)}"
    wide = _WIDE.get(kind)
    value = name(column) if wide is None else f"CAST({name(column)} AS {wide})"
    return f"{value} AS {name(column)}"
