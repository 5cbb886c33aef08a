"""SQL that turns raw columns into codes: the same functions of a value as in `text` and `encode`.

Every piece of SQL is made here and in `duckdb_engine` from integers, quoted names and quoted texts.
A code is built in three steps, so that no expression is written twice: the raw value, made plain
(`raw`); its number (`number`); its code (`code`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.core.exact import round_down, round_up
from discreet.data.schema import Boolean, Category, Column, Date, Number
from discreet.data.source import Type
from discreet.data.text import FALSE, MOMENT, NUMBER, TRUE, WHOLE

_TICKS: Mapping[Type, int] = {
    "date": 24,
    "text": 1440,
    "time": 86_400_000_000,
    "time_ns": 86_400_000_000_000,
}
"""How a moment is counted, by type: ticks in a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The three expressions of one column; ``levels`` is a table to join on the number."""

    raw: str
    number: str
    code: str
    levels: str | None = None


def name(identifier: str) -> str:
    """A quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    """A quoted text."""
    return "'" + value.replace("'", "''") + "'"


def whole(value: int) -> str:
    """A 64-bit literal."""
    return f"CAST({value} AS BIGINT)"


def double(value: float) -> str:
    """A double literal."""
    return f"CAST('{value!r}' AS DOUBLE)"


def listed(values: Iterable[str]) -> str:
    """A list literal."""
    return "[" + ", ".join(values) + "]"


def steps(column: Column, *, kind: Type, source: str, i: int) -> Steps:
    """How the i-th column is encoded; ``source`` is its quoted name."""
    raw = _raw(kind, source)
    r, n = f"r{i}", f"n{i}"
    match column:
        case Number():
            return _number(column, kind, raw, i)
        case Category():
            return _category(column, kind, raw, i)
        case Date():
            per = _TICKS[kind] // (1 if column.step == "day" else 24)
            down = f"({n} // {per} - CASE WHEN {n} % {per} < 0 THEN 1 ELSE 0 END)"
            inside = f"{down} BETWEEN {whole(column.lower)} AND {whole(column.upper)}"
            code = f"CASE WHEN {inside} THEN {down} ELSE {whole(column.missing)} END"
            return Steps(raw=raw, number=_ticks(kind, r), code=code)
        case Boolean():
            if kind == "text":
                yes, no = (", ".join(map(text, words)) for words in (TRUE, FALSE))
                word = f"lower(trim({r}))"
                number = f"CASE WHEN {word} IN ({yes}) THEN 1 WHEN {word} IN ({no}) THEN 0 END"
            else:
                number = f"CASE WHEN {r} = 1 THEN 1 WHEN {r} = 0 THEN 0 END"
            code = f"CAST(coalesce({n}, {column.missing}) AS BIGINT)"
            return Steps(raw=raw, number=number, code=code)


def _raw(kind: Type, source: str) -> str:
    match kind:
        case "text" | "exact":
            return f"coalesce(CAST({source} AS VARCHAR), '')"
        case "float":
            return f"CAST({source} AS DOUBLE)"
        case "boolean" | "integer":
            return f"CAST({source} AS BIGINT)"
        case _:
            return source


def _number(column: Number, kind: Type, raw: str, i: int) -> Steps:
    r, n, low, high = f"r{i}", f"n{i}", whole(column.lower), whole(column.upper)
    missing = whole(column.missing)
    scale = double(2.0**-column.exponent)
    clip = f"CASE WHEN {{0}} <= {low} THEN {low} WHEN {{0}} >= {high} THEN {high} "
    if kind in ("integer", "boolean") and column.exponent == 0:
        code = f"CASE WHEN {n} IS NULL THEN {missing} ELSE {clip.format(n)} ELSE {n} END END"
        return Steps(raw=raw, number=r, code=code)
    up = double(round_up(Fraction(column.upper)))
    down = double(round_down(Fraction(column.lower)))
    half = f"CASE WHEN {n} - floor({n}) >= {double(0.5)} THEN 1 ELSE 0 END"
    code = (
        f"CASE WHEN {n} IS NULL OR isnan({n}) THEN {missing} WHEN {n} >= {up} THEN {high} "
        f"WHEN {n} <= {down} THEN {low} ELSE TRY_CAST(floor({n}) AS BIGINT) + {half} END"
    )
    if kind not in ("text", "exact"):
        return Steps(raw=raw, number=f"CAST({r} AS DOUBLE) * {scale}", code=code)
    plain = f"trim({r})"
    number = f"CASE WHEN regexp_full_match({plain}, {text(NUMBER)}) "
    number += f"THEN TRY_CAST({plain} AS DOUBLE) END * {scale}"
    if column.exponent == 0:  # long whole numbers, exactly
        big = f"TRY_CAST({plain} AS HUGEINT)"
        code = (
            f"CASE WHEN regexp_full_match({plain}, {text(WHOLE)}) THEN "
            f"{clip.format(big)} ELSE CAST({big} AS BIGINT) END ELSE {code} END"
        )
    return Steps(raw=raw, number=number, code=code)


def _category(column: Category, kind: Type, raw: str, i: int) -> Steps:
    r = f"r{i}"
    if isinstance(column.levels[0], str):
        # Bytes: a connection's collation must not make two levels equal.
        number, absent = f"encode({r})", f"{r} = ''"
        values = listed(f"encode({text(str(level))})" for level in column.levels)
    else:
        number, absent = _whole_or_null(kind, r), _absent(kind, r)
        values = listed(f"CAST({level} AS HUGEINT)" for level in column.levels)
    code = f"CASE WHEN {absent} THEN {whole(column.missing)} "
    code += f"ELSE CAST(coalesce(l{i}.place, {column.unknown}) AS BIGINT) END"
    levels = f"(SELECT unnest({values}) AS level, unnest(range({len(column.levels)})) AS place)"
    return Steps(raw=raw, number=number, code=code, levels=levels)


def _absent(kind: Type, r: str) -> str:
    match kind:
        case "text" | "exact":
            return f"trim({r}) = ''"
        case "float":
            return f"({r} IS NULL OR isnan({r}))"
        case _:
            return f"{r} IS NULL"


def _whole_or_null(kind: Type, r: str) -> str:
    """The whole number that a value is, else null."""

    def of_double(x: str) -> str:
        return f"CASE WHEN {x} = floor({x}) AND isfinite({x}) THEN TRY_CAST({x} AS HUGEINT) END"

    match kind:
        case "text" | "exact":
            plain = f"trim({r})"
            return (
                f"CASE WHEN regexp_full_match({plain}, {text(WHOLE)}) "
                f"THEN TRY_CAST({plain} AS HUGEINT) "
                f"WHEN regexp_full_match({plain}, {text(NUMBER)}) "
                f"THEN {of_double(f'TRY_CAST({plain} AS DOUBLE)')} END"
            )
        case "float":
            return of_double(r)
        case _:
            return f"CAST({r} AS HUGEINT)"


def _ticks(kind: Type, r: str) -> str:
    """Hours, minutes, micro- or nanoseconds since 1970; null where there is no such moment."""
    if kind == "text":
        plain = f"trim({r})"
        days = f"CAST(TRY_CAST(substr({plain}, 1, 10) AS DATE) - DATE '1970-01-01' AS BIGINT)"
        hour, minute = (_digits(plain, place) for place in (12, 15))
        ahead = f"60 * {_digits(plain, -5)} + {_digits(plain, -2)}"
        sign = f"CASE substr({plain}, -6, 1) WHEN '+' THEN 1 WHEN '-' THEN -1 ELSE 0 END"
        zone = f"CASE WHEN length({plain}) > 16 THEN {sign} * ({ahead}) ELSE 0 END"
        minutes = f"{days} * 1440 + {hour} * 60 + {minute} - {zone}"
        return f"CASE WHEN regexp_full_match({plain}, {text(MOMENT)}) THEN {minutes} END"
    if kind == "date":
        ticks = f"CAST({r} - DATE '1970-01-01' AS BIGINT) * 24"
    else:
        ticks = f"epoch_ns({r})" if kind == "time_ns" else f"epoch_us({r})"
    return f"CASE WHEN isfinite({r}) THEN {ticks} END"


def _digits(plain: str, place: int) -> str:
    return f"coalesce(TRY_CAST(substr({plain}, {place}, 2) AS BIGINT), 0)"
