"""A program as one SQL query for DuckDB: raw columns to codes, expressions, groups, sums.

The query knows the source by one alias and builds on nothing but integers after its first steps.
"""

from __future__ import annotations

from typing import assert_never

from discreet.data._duckdb.contribution_limits import limited, limited_keys
from discreet.data._duckdb.encode import name, numbers, steps, whole
from discreet.data._integer_ops import CodeBin, CodeBinary, CodeClip, CodeDivide, CodePick
from discreet.data.program import Program, fields, has_text_unit, layered
from discreet.data.schema import INT64, TextColumn
from discreet.data.source import Type

ALIAS = "discreet_source"


def compile_query(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The whole program as one SELECT: group, rows, units, sums."""
    query = _limited(program, types=types, key=key)
    if program.bins is not None:
        place, many = program.bins
        query = f"SELECT * REPLACE (g * {many} + v{place} AS g) FROM ({query})"  # noqa: S608
    return _aggregate(program, query)


def compile_counted(program: Program, *, types: dict[str, Type]) -> str:
    """The rows that count, before any limit: unit, group, values."""
    query = _encode(program, types)
    query, where, index, values = _evaluate(program, query)
    return _group(program, query, where=where, index=index, values=values)


def _limited(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The rows that count: unit, group, values."""
    query = compile_counted(program, types=types)
    if program.unit is not None:
        query = limited(program, query, textual=has_text_unit(program, types), key=key)
    return query


def compile_keys(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The different units of each key that occurs: index, units, then the texts of the key."""
    query = _encode(program, types)
    query, where, index, _ = _evaluate(program, query)
    places = [name for name, _ in program.columns]
    texts = [f"c{places.index(one)}" for one in program.texts]
    kept = [f"{column} IS NOT NULL" for column in texts]
    kept += [] if where is None else [f"{where} = 1"]
    raw = "".join(f", {column} AS k{i}" for i, column in enumerate(texts))
    query = f"SELECT u, {index} AS g{raw} FROM ({query})"  # noqa: S608
    query += f" WHERE {' AND '.join(kept)}" if kept else ""
    names = [f"k{i}" for i in range(len(texts))]
    group = ", ".join([*names, "g"])
    if program.unit is not None:
        query = f"SELECT DISTINCT u, {group} FROM ({query})"  # noqa: S608
        limit = program.limits.max_groups_per_unit
        if limit is not None:
            textual = has_text_unit(program, types)
            order = [*names, "g"]
            query = limited_keys(query, order=order, limit=limit, textual=textual, key=key)
    parts = ["g", "count(*)", *(f"decode({one})" for one in names)]
    return f"SELECT {', '.join(parts)} FROM ({query}) GROUP BY {group}"  # noqa: S608


def compile_rows(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The rows that the limits leave: unit, then the values."""
    query = _limited(program, types=types, key=key)
    unit = "decode(u)" if has_text_unit(program, types) else "u"
    values = [f"v{i}" for i in range(len(program.values))]
    return f"SELECT {', '.join([unit, *values])} FROM ({query})"  # noqa: S608


def compile_values(program: Program, *, types: dict[str, Type], key: int) -> str:
    """The values of the rows that the limits leave."""
    query = _limited(program, types=types, key=key)
    values = [f"v{i}" for i in range(len(program.values))]
    return f"SELECT {', '.join(values)} FROM ({query})"  # noqa: S608


def compile_spread(program: Program, *, types: dict[str, Type]) -> tuple[str, str]:
    """How many units have how many rows, and how many have how many groups."""
    query = _limited(program, types=types, key=0)
    found = []
    for many in ("count(*)", "count(DISTINCT g)"):
        each = f"SELECT {many} AS many FROM ({query}) GROUP BY u"  # noqa: S608
        found.append(f"SELECT many, count(*) FROM ({each}) GROUP BY many")  # noqa: S608
    return found[0], found[1]


def _encode(program: Program, types: dict[str, Type]) -> str:
    parts = [
        steps(column, kind=types[field], source=f"{ALIAS}.{name(field)}", i=i)
        for i, (field, column) in enumerate(fields(program))
    ]
    unit = _unit(program, types)
    raws = [f"{unit} AS u", *(f"{part.raw} AS r{i}" for i, part in enumerate(parts))]
    query = f"SELECT {', '.join(raws)} FROM {ALIAS}"  # noqa: S608
    numbers = ["*", *(f"{part.number} AS n{i}" for i, part in enumerate(parts))]
    query = f"SELECT {', '.join(numbers)} FROM ({query})"  # noqa: S608
    codes = ["u", *(f"{part.code} AS c{i}" for i, part in enumerate(parts))]
    joins = "".join(
        f" LEFT JOIN {part.levels} AS l{i} ON n{i} = l{i}.level"
        for i, part in enumerate(parts)
        if part.levels is not None
    )
    kept = [] if program.unit is None else ["u IS NOT NULL"]
    kept += [
        part.known or f"{part.code} BETWEEN {whole(column.lower)} AND {whole(column.upper)}"
        for (name_, column), part in zip(program.columns, parts, strict=True)
        if name_ in program.known and not isinstance(column, TextColumn)
    ]
    present = f" WHERE {' AND '.join(kept)}" if kept else ""
    return f"SELECT {', '.join(codes)} FROM ({query}){joins}{present}"  # noqa: S608


def _unit(program: Program, types: dict[str, Type]) -> str:
    """Whose a row is, as `discreet.data.program.has_text_unit` says; NULL if nobody's."""
    if program.unit is None:
        return "NULL"
    if isinstance(program.unit, str):
        return _owner(program.unit, types[program.unit])
    parts = []
    for column in program.unit.columns:
        part = _owner(column, types[column])
        if types[column] != "text":
            part = f"encode(CAST({part} AS VARCHAR))"
        # After its length no part can look like the beginning of the next one.
        parts.append(f"encode(CAST(octet_length({part}) AS VARCHAR) || ':') || {part}")
    return " || ".join(["encode('')", *parts])


def _owner(column: str, kind: Type) -> str:
    """Whole numbers as they are, text as bytes (collations must not merge people)."""
    field = f"{ALIAS}.{name(column)}"
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
    found = layered(program, column=str, constant=whole, node=_node)
    for layer in found.layers:
        added = ", ".join(f"{sql} AS {name}" for name, sql in layer)
        query = f"SELECT *, {added} FROM ({query})"  # noqa: S608
    if found.unit_value is not None:
        whole_unit = f"u || encode(CAST({found.unit_value} AS VARCHAR)) AS u"
        query = f"SELECT * REPLACE ({whole_unit}) FROM ({query})"  # noqa: S608
    return query, found.where, found.index, found.values


def _node(code: CodeBinary | CodeClip | CodeBin | CodePick | CodeDivide, inner: list[str]) -> str:
    x = inner[0]
    match code:
        case CodeBinary("and"):
            return f"least({x}, {inner[1]})"
        case CodeBinary("or"):
            return f"greatest({x}, {inner[1]})"
        case CodeBinary("+" | "-" | "*" as operator):
            return f"{x} {operator} {inner[1]}"
        case CodeBinary(operator):
            return f"CAST({x} {operator} {inner[1]} AS BIGINT)"
        case CodeDivide(_, _, zero):
            y = inner[1]  # // cuts toward zero: one less where signs differ and a rest is left
            less = f"CASE WHEN {x} % {y} <> 0 AND ({x} < 0) <> ({y} < 0) THEN 1 ELSE 0 END"
            return f"CASE WHEN {y} = 0 THEN {whole(zero)} ELSE {x} // {y} - {less} END"
        case CodeClip(_, lower, upper):
            return f"least(greatest({x}, {whole(lower)}), {whole(upper)})"
        case CodeBin(_, edges):
            arms = (f"WHEN {x} < {whole(edge)} THEN {i}" for i, edge in enumerate(edges))
            return f"CAST(CASE {' '.join(arms)} ELSE {len(edges)} END AS BIGINT)"
        case CodePick(_, first, table):
            return f"list_extract({numbers(table)}, {x} - {whole(first)} + 1)"
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
    many = len(program.cells)
    keys = f"(SELECT unnest({numbers(program.cells)}) AS cell, unnest(range({many})) AS k)"
    if program.rest:
        place = f"CAST(coalesce(k, {many}) AS BIGINT) AS g"
        return f"SELECT u, {place}{kept} FROM ({query}) LEFT JOIN {keys} ON g = cell"  # noqa: S608
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
