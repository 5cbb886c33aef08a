"""The default engine: one generated query, run by DuckDB inside the process, out of core.

The query knows the source by one alias and builds on nothing but integers after its first steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

import duckdb

from discreet.data.code import Bin, Binary, Clip, Code, Const, Divide, Pick, Ref
from discreet.data.encode_sql import listed, name, steps, text, whole
from discreet.data.engine import Row
from discreet.data.limit_sql import limited
from discreet.data.plan import Program
from discreet.data.schema import INT64
from discreet.data.source import (
    EngineFailure,
    Files,
    Relation,
    Stream,
    Type,
    arrow_dataset,
    private_connection,
    sealed,
)

_ALIAS = "discreet_source"


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Files and streams in a private connection, a relation in its own."""

    source: Files | Relation | Stream

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        query = compile_query(program, types=dict(self.source.columns), key=key)
        return sealed("the query", lambda: self._run(program, query))

    def _run(self, program: Program, query: str) -> Sequence[Row]:
        match self.source:
            case Relation(relation=relation):
                return _fetch(relation, query)
            case Files() as files:
                with _spilling() as connection:
                    return _fetch(_open(files, connection), query)
            case Stream(batches=batches, columns=columns):
                used = {name for name, _ in program.columns} | {program.unit}
                # A row needs a column to be counted.
                names = [name for name in columns if name in used] or list(columns)[:1]
                with _spilling() as connection, batches(names) as reader:
                    return _fetch(connection.from_arrow(reader), query)


@contextmanager
def _spilling() -> Iterator[duckdb.DuckDBPyConnection]:
    """What does not fit into memory is spilled where only this user can read it."""
    with tempfile.TemporaryDirectory() as spill, private_connection() as connection:
        connection.execute(f"SET temp_directory = {text(spill)}")
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def _fetch(relation: duckdb.DuckDBPyRelation, query: str) -> Sequence[Row]:
    answer = relation.query(_ALIAS, query)
    if answer is None:
        raise EngineFailure("the query gave no answer.")
    return answer.fetchall()


def _open(files: Files, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
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


def compile_query(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The whole program as one SELECT: group, rows, units, sums."""
    query = _encode(program, types)
    query, where, index, values = _evaluate(program, query)
    query = _group(program, query, where=where, index=index, values=values)
    if program.unit is not None:
        query = limited(program, query, textual=types[program.unit] == "text", key=key)
    if program.bins is not None:
        place, many = program.bins
        query = f"SELECT * REPLACE (g * {many} + v{place} AS g) FROM ({query})"  # noqa: S608
    return _aggregate(program, query)


def _encode(program: Program, types: dict[str, Type]) -> str:
    parts = [
        steps(column, kind=types[field], source=f"{_ALIAS}.{name(field)}", i=i)
        for i, (field, column) in enumerate(program.columns)
    ]
    unit = "NULL" if program.unit is None else _unit(program.unit, types[program.unit])
    raws = [f"{unit} AS u", *(f"{part.raw} AS r{i}" for i, part in enumerate(parts))]
    query = f"SELECT {', '.join(raws)} FROM {_ALIAS}"  # noqa: S608
    numbers = ["*", *(f"{part.number} AS n{i}" for i, part in enumerate(parts))]
    query = f"SELECT {', '.join(numbers)} FROM ({query})"  # noqa: S608
    codes = ["u", *(f"{part.code} AS c{i}" for i, part in enumerate(parts))]
    joins = "".join(
        f" LEFT JOIN {part.levels} AS l{i} ON n{i} = l{i}.level"
        for i, part in enumerate(parts)
        if part.levels is not None
    )
    present = "" if program.unit is None else " WHERE u IS NOT NULL"
    return f"SELECT {', '.join(codes)} FROM ({query}){joins}{present}"  # noqa: S608


def _unit(column: str, kind: Type) -> str:
    """Whole numbers as they are, text as bytes (collations must not merge people)."""
    field = f"{_ALIAS}.{name(column)}"
    match kind:
        case "text":
            return f"encode(nullif(CAST({field} AS VARCHAR), ''))"
        case "float":
            fine = f"{field} = floor({field}) AND abs({field}) <= {2**53}"
            return f"CASE WHEN {fine} THEN TRY_CAST({field} AS BIGINT) END"
        case _:
            return f"CAST({field} AS BIGINT)"


def _evaluate(program: Program, query: str) -> tuple[str, str | None, str, list[str]]:
    """Add one column for each node of the expressions, innermost first."""
    places = {field: f"c{i}" for i, (field, _) in enumerate(program.columns)}
    names: dict[Code, str] = {}
    layers: list[list[str]] = []

    def visit(code: Code) -> tuple[str, int]:
        """The SQL name or literal of a node, and the layer after which it exists."""
        match code:
            case Ref(column):
                return places[column], 0
            case Const(value):
                return whole(value), 0
        inner = (code.left, code.right) if isinstance(code, Binary | Divide) else (code.inner,)
        seen = [visit(part) for part in inner]
        depth = 1 + max(layer for _, layer in seen)
        if code not in names:
            names[code] = f"e{len(names)}"
            layers.extend([] for _ in range(depth - len(layers)))
            sql = _node(code, [text for text, _ in seen])
            layers[depth - 1].append(f"{sql} AS {names[code]}")
        return names[code], depth

    where = None if program.where is None else visit(program.where)[0]
    index = visit(program.index)[0]
    values = [visit(value)[0] for value in program.values]
    for layer in layers:
        query = f"SELECT *, {', '.join(layer)} FROM ({query})"  # noqa: S608
    return query, where, index, values


def _node(code: Binary | Clip | Bin | Pick | Divide, inner: list[str]) -> str:
    x = inner[0]
    match code:
        case Binary("and"):
            return f"least({x}, {inner[1]})"
        case Binary("or"):
            return f"greatest({x}, {inner[1]})"
        case Binary("+" | "-" | "*" as operator):
            return f"{x} {operator} {inner[1]}"
        case Binary(operator):
            return f"CAST({x} {operator} {inner[1]} AS BIGINT)"
        case Divide(_, _, zero):
            y = inner[1]  # // cuts towards zero: one less where signs differ and a rest is left
            less = f"CASE WHEN {x} % {y} <> 0 AND ({x} < 0) <> ({y} < 0) THEN 1 ELSE 0 END"
            return f"CASE WHEN {y} = 0 THEN {whole(zero)} ELSE {x} // {y} - {less} END"
        case Clip(_, lower, upper):
            return f"least(greatest({x}, {whole(lower)}), {whole(upper)})"
        case Bin(_, edges):
            arms = (f"WHEN {x} < {whole(edge)} THEN {i}" for i, edge in enumerate(edges))
            return f"CAST(CASE {' '.join(arms)} ELSE {len(edges)} END AS BIGINT)"
        case Pick(_, first, table):
            picks = f"CAST({listed(map(str, table))} AS BIGINT[])"
            return f"list_extract({picks}, {x} - {whole(first)} + 1)"
        case _:
            assert_never(code)


def _group(
    program: Program, query: str, *, where: str | None, index: str, values: list[str]
) -> str:
    """Rows that pass the filter and have a public key: unit, group, values."""
    kept = "".join(f", {value} AS v{i}" for i, value in enumerate(values))
    condition = "" if where is None else f" WHERE {where} = 1"
    query = f"SELECT u, {index} AS g{kept} FROM ({query}){condition}"  # noqa: S608
    if program.cells is None:
        return query
    kept = "".join(f", v{i}" for i in range(len(values)))
    cells = listed(map(str, program.cells))
    keys = f"(SELECT unnest(CAST({cells} AS BIGINT[])) AS cell, unnest(range({program.size})) AS k)"
    return f"SELECT u, k AS g{kept} FROM ({query}) JOIN {keys} ON g = cell"  # noqa: S608


def _aggregate(program: Program, query: str) -> str:
    sums = []
    for i, total in enumerate(program.sums):
        product = " * ".join(
            f"v{place}" if total.weight <= INT64 else f"CAST(v{place} AS HUGEINT)"
            for place in total.factors
        )
        sums.append(f"sum({product}) AS s{i}")
    if not program.count_units or program.unit is None:
        parts = ["g", "count(*) AS n", "count(*) AS u", *sums]
        return f"SELECT {', '.join(parts)} FROM ({query}) GROUP BY g"  # noqa: S608
    # First each unit in each group, then the groups: distinct units come as a plain count.
    inner = f"SELECT {', '.join(['g', 'count(*) AS n', *sums])} FROM ({query}) GROUP BY u, g"  # noqa: S608
    outer = ["g", "sum(n)", "count(*)", *(f"sum(s{i})" for i in range(len(sums)))]
    return f"SELECT {', '.join(outer)} FROM ({inner}) GROUP BY g"  # noqa: S608
