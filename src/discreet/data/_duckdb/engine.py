"""The default engine: one generated query, run by DuckDB inside the process, out of core.

The query knows the source by one alias and builds on nothing but integers after its first steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from discreet.data._duckdb.compile import (
    ALIAS,
    compile_counted,
    compile_keys,
    compile_query,
    compile_rows,
    compile_spread,
)
from discreet.data._duckdb.encode import listed, text
from discreet.data._numpy.contribution_limits import LimitedRows, tally
from discreet.data.program import Program, Row, fields
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    EngineFailure,
    FileSource,
    Type,
    arrow_dataset,
    private_connection,
    run_sealed,
)

_FEW_ROWS = 4_000_000
"""Rows that are worked on in memory, about a hundred bytes each; more of them out of core."""


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Files and streams in a private connection, a relation in its own."""

    source: FileSource | DuckDBSource | ArrowStreamSource

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        types = dict(self.source.columns)
        if program.unit is not None and types[program.unit] == "integer":
            answer = run_sealed("the query", lambda: self._in_memory(program, types, key))
            if answer is not None:
                return answer
        return self._run(program, compile_query(program, types=types, key=key))

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self._run(program, compile_keys(program, types=dict(self.source.columns), key=key))

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self._run(program, compile_rows(program, types=dict(self.source.columns), key=key))

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        queries = compile_spread(program, types=dict(self.source.columns))
        return self._run(program, queries[0]), self._run(program, queries[1])

    def _in_memory(
        self, program: Program, types: dict[str, Type], key: int
    ) -> Sequence[Row] | None:
        """Limits and sums in NumPy, for files of few rows: several times faster, the same answer.

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
        rows = LimitedRows(unit=unit, number=unit, group=group, values=tuple(values))
        return tally(program, rows, key)

    def _run(self, program: Program, query: str) -> Sequence[Sequence[Any]]:
        return run_sealed("the query", lambda: self._answer(program, query))

    def _answer(self, program: Program, query: str) -> Sequence[Sequence[Any]]:
        match self.source:
            case DuckDBSource(relation=relation):
                return _fetch(relation, query)
            case FileSource() as files:
                with spilling() as connection:
                    return _fetch(open_files(files, connection), query)
            case ArrowStreamSource(batches=batches, columns=columns):
                used = {name for name, _ in fields(program)} | {program.unit}
                # A row needs a column to be counted.
                names = [name for name in columns if name in used] or list(columns)[:1]
                with spilling() as connection, batches(names) as reader:
                    return _fetch(connection.from_arrow(reader), query)


@contextmanager
def spilling() -> Iterator[duckdb.DuckDBPyConnection]:
    """What does not fit into memory is spilled where only this user can read it."""
    with tempfile.TemporaryDirectory() as spill, private_connection() as connection:
        connection.execute(f"SET temp_directory = {text(spill)}")
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def _fetch(relation: duckdb.DuckDBPyRelation, query: str) -> Sequence[Row]:
    return _asked(relation, query).fetchall()


def _asked(relation: duckdb.DuckDBPyRelation, query: str) -> duckdb.DuckDBPyRelation:
    answer = relation.query(ALIAS, query)
    if answer is None:
        raise EngineFailure("the query gave no answer.")
    return answer


def open_files(files: FileSource, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Files of one format as a relation of this connection."""
    paths = listed(map(text, files.paths))
    match files.format:
        case "parquet":
            return connection.sql(f"FROM read_parquet({paths}, hive_partitioning = false)")
        case "csv":
            # Nothing is detected: types and dialect must not depend on the rows.
            columns = ", ".join(f"{text(column)}: 'VARCHAR'" for column in files.columns)
            return connection.sql(
                f"FROM read_csv({paths}, auto_detect = false, header = true, "
                f"delim = {text(files.delimiter)}, quote = '\"', escape = '\"', nullstr = '', "
                f"hive_partitioning = false, columns = {{{columns}}})"
            )
        case "arrow":
            return connection.from_arrow(arrow_dataset(files.paths))
