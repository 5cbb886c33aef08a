"""The default engine: one generated query, run by DuckDB inside the process, out of core.

The query knows the source by one alias and builds on nothing but integers after its first steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import duckdb

from discreet.data.code import Bin, Binary, Clip, Code, Const, Pick, Ref
from discreet.data.encode_sql import listed, name, steps, text, whole
from discreet.data.engine import LIMB, PRIME, Row, mixer
from discreet.data.plan import Program
from discreet.data.schema import INT64
from discreet.data.source import (
    EngineFailure,
    Files,
    Relation,
    Type,
    arrow_dataset,
    private_connection,
    sealed,
)
from discreet.data.text import UNIT

_ALIAS = "discreet_source"
_HASHED = (
    f"coalesce(CASE WHEN regexp_full_match(decode(u), {text(UNIT)}) "
    "THEN TRY_CAST(decode(u) AS BIGINT) END, CAST(md5_number_lower(u) >> 1 AS BIGINT))"
)


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Files in a private connection, a relation in its own."""

    source: Files | Relation

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        query = compile_query(program, types=dict(self.source.columns), key=key)
        return sealed("the query", lambda: self._run(query))

    def _run(self, query: str) -> Sequence[Row]:
        match self.source:
            case Relation(relation=relation):
                return _fetch(relation, query)
            case Files() as files:
                # What does not fit into memory is spilled where only this user can read it.
                with tempfile.TemporaryDirectory() as spill, private_connection() as connection:
                    connection.execute(f"SET temp_directory = {text(spill)}")
                    connection.execute("SET preserve_insertion_order = false")
                    return _fetch(_open(files, connection), query)


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
    limits = program.limits
    content = ("g", *(f"v{i}" for i in range(len(values))))
    textual = program.unit is not None and types[program.unit] == "text"
    chooser = _Chooser(key=key, number=_HASHED if textual else "u", kept=content)
    if limits.groups_per_unit is not None and limits.groups_per_unit < program.size:
        query = chooser.groups(query, limit=limits.groups_per_unit)
    if limits.rows_per_unit_and_group is not None:
        query = chooser.rows_in_group(query, limit=limits.rows_per_unit_and_group)
    if limits.rows_per_unit is not None:
        query = chooser.rows(query, limit=limits.rows_per_unit)
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
        inner = (code.left, code.right) if isinstance(code, Binary) else (code.inner,)
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


def _node(code: Binary | Clip | Bin | Pick, inner: list[str]) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chooser:
    """Keeps evenly spaced places of each unit, from a start that key and unit decide."""

    key: int
    number: str
    kept: tuple[str, ...]

    def groups(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` groups of each unit."""
        ranks = "dense_rank() OVER (PARTITION BY u ORDER BY g ASC) - 1 AS place"
        query = f"SELECT *, {ranks} FROM ({query})"  # noqa: S608
        query = f"SELECT *, 1 + max(place) OVER (PARTITION BY u) AS many FROM ({query})"  # noqa: S608
        return self._choose(query, limit=limit, purpose="groups")

    def rows_in_group(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` rows of each unit in each group."""
        return self._rows(query, part="u, g", limit=limit, purpose="rows in group")

    def rows(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` rows of each unit."""
        return self._rows(query, part="u", limit=limit, purpose="rows")

    def _rows(self, query: str, *, part: str, limit: int, purpose: str) -> str:
        # ASC is said because a connection may have another default.
        order = ", ".join(f"{column} ASC" for column in self.kept)
        place = f"row_number() OVER (PARTITION BY {part} ORDER BY {order}) - 1 AS place"
        many = f"count(*) OVER (PARTITION BY {part}) AS many"
        query = f"SELECT *, {place}, {many} FROM ({query})"  # noqa: S608
        return self._choose(query, limit=limit, purpose=purpose)

    def _choose(self, query: str, *, limit: int, purpose: str) -> str:
        mix = mixer(self.key, purpose=purpose)
        limbs = [*zip(_limbs("w"), mix.unit, strict=True)]
        if purpose == "rows in group":
            limbs += zip(_limbs("g"), mix.group, strict=True)
        total = " + ".join(f"({limb} * {factor} % {PRIME})" for limb, factor in limbs)
        # Units within the limit need no start: their text is not even hashed.
        start = f"CASE WHEN many > {limit} THEN {self.number} ELSE 0 END AS w"
        query = f"SELECT *, {start} FROM ({query})"  # noqa: S608
        query = f"SELECT *, ({total}) % {PRIME} AS h0 FROM ({query})"  # noqa: S608
        for i, constant in enumerate(mix.rounds):
            query = f"SELECT *, (h{i} + {constant}) % {PRIME} AS x{i} FROM ({query})"  # noqa: S608
            query = f"SELECT *, x{i} * x{i} % {PRIME} AS y{i} FROM ({query})"  # noqa: S608
            fifth = f"(y{i} * y{i} % {PRIME}) * x{i} % {PRIME}"
            query = f"SELECT *, {fifth} AS h{i + 1} FROM ({query})"  # noqa: S608
        h = f"h{len(mix.rounds)}"
        chosen = f"many <= {limit} OR (place * {limit} + {h} % many) % many < {limit}"
        return f"SELECT u, {', '.join(self.kept)} FROM ({query}) WHERE {chosen}"  # noqa: S608


def _limbs(value: str) -> tuple[str, str, str]:
    return f"({value} & {LIMB})", f"(({value} >> 31) & {LIMB})", f"(({value} >> 62) & 3)"


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
