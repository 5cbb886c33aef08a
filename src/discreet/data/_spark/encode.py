"""Spark columns that turn raw values into codes: the same functions of a value as in `encode_sql`.

Built from column objects, never from SQL text: how Spark reads a text depends on the settings of
the session. For the same reason nothing here can overflow or fail a cast, which a session may
answer with an error or with a wrong number, and texts are compared as bytes, without collations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from pyspark.sql import Column as Value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, TimestampNTZType

from discreet.core._rational import round_down, round_up
from discreet.data._text_parsing import FALSE, MOMENT, NUMBER, SPACES, TRUE, WHOLE
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    TextColumn,
)
from discreet.data.source import Type

_HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEncoding:
    """The three columns of one field; ``levels`` are to be joined on the number."""

    raw: Value
    number: Value
    code: Value
    levels: tuple[str | int, ...] | None = None
    places: tuple[int, ...] | None = None


def whole(value: int) -> Value:
    """A 64-bit literal."""
    return f.lit(value).cast("bigint")


def matches(plain: Value, pattern: str) -> Value:
    """Whether the whole text fits the pattern; ``$`` would forgive a line break."""
    return plain.rlike(rf"\A(?:{pattern})\z")


def text(source: Value) -> Value:
    """The text itself, free of any collation."""
    return source.cast("binary").cast("string")


def floor(value: Value) -> Value:
    """A double rounded down, as 64 bits; null where these do not suffice, or there is no number."""
    return f.floor(f.when(f.abs(value) < 2.0**63, value))


def divided(value: Value, by: int) -> Value:
    """The quotient of whole numbers, rounded down."""
    cut = f.call_function("div", value, whole(by))
    return cut - f.when(value % whole(by) < 0, 1).otherwise(0)


def numbered(
    session: SparkSession,
    values: Iterable[str | int],
    *,
    names: tuple[str, str],
    places: Iterable[int] | None = None,
) -> DataFrame:
    """A small table: each value with its place. It travels inside the plan, as one text."""
    values = list(values)
    kind = "string" if values and isinstance(values[0], str) else "bigint"
    array = f.from_json(f.lit(json.dumps(values)), f"array<{kind}>")
    table = session.range(0, 1, 1, 1).select(f.posexplode(array).alias("place", "value"))
    if places is not None:
        listed = f.from_json(f.lit(json.dumps(list(places))), "array<bigint>")
        table = table.select(f.get(listed, f.col("place")).alias("place"), "value")
    value = f.col("value").cast("binary") if kind == "string" else f.col("value")
    return f.broadcast(table.select(value.alias(names[0]), whole_of("place").alias(names[1])))


def whole_of(name: str) -> Value:
    """A column as 64 bits."""
    return f.col(name).cast("bigint")


def steps(
    column: ColumnSpec, *, kind: Type, source: Value, stored: DataType, i: int
) -> SparkEncoding:
    """How the i-th field is encoded; ``stored`` is Spark's own name for its type."""
    raw = _raw(kind, source, stored)
    r, n = f.col(f"r{i}"), f.col(f"n{i}")
    match column:
        case NumericColumn():
            return _number(column, kind, raw, i)
        case CategoryColumn():
            textual = isinstance(column.categories[0], str)
            found = _found(kind, raw, i, textual=textual, codes=(column.missing, column.unknown))
            return replace(found, levels=column.categories)
        case LookupColumn():
            codes = column.missing, column.missing
            found = _found(kind, raw, i, textual=column.textual, codes=codes)
            # An empty table has no type: nobody has this name.
            levels = column.keys or (("\0",) if column.textual else (0,))
            places = column.codes or (column.missing,)
            return replace(found, levels=levels, places=places)
        case TextColumn():
            absent = (r == "") | f.contains(r, f.lit("\0"))
            return SparkEncoding(raw=raw, number=r, code=f.when(~absent, n.cast("binary")))
        case DateColumn():
            code = n if column.step == "hour" else divided(n, 24)
            inside = code.between(whole(column.lower), whole(column.upper))
            code = f.when(inside, code).otherwise(whole(column.missing))
            return SparkEncoding(raw=raw, number=_hours(r) if kind == "text" else r, code=code)
        case BooleanColumn():
            if kind == "text":
                word = f.lower(_trimmed(r))
                said = f.when(matches(_trimmed(r), NUMBER), _unsigned(r).try_cast("double"))
                yes, no = word.isin(*TRUE) | (said == 1), word.isin(*FALSE) | (said == 0)
            else:
                yes, no = r == 1, r == 0
            number = f.when(yes, whole(1)).when(no, whole(0))
            return SparkEncoding(raw=raw, number=number, code=f.coalesce(n, whole(column.missing)))


def _raw(kind: Type, source: Value, stored: DataType) -> Value:
    """Texts as texts, moments as hours since 1970, numbers as 64 bits."""
    match kind:
        case "text":
            return f.coalesce(text(source), f.lit(""))
        case "exact":
            return f.coalesce(source.cast("string"), f.lit(""))
        case "float":
            return source.cast("double")
        case "date":
            return f.unix_date(source).cast("bigint") * 24
        case "time" if isinstance(stored, TimestampNTZType):
            # A moment without a zone is UTC here; a cast would take the session's zone.
            return f.unix_date(source.cast("date")).cast("bigint") * 24 + f.hour(source)
        case "time":
            return divided(f.unix_micros(source), _HOUR)
        case _:
            return source.cast("bigint")


def _number(column: NumericColumn, kind: Type, raw: Value, i: int) -> SparkEncoding:
    r, n = f.col(f"r{i}"), f.col(f"n{i}")
    low, high, missing = whole(column.lower), whole(column.upper), whole(column.missing)
    if kind in ("integer", "boolean") and column.exponent == 0:
        clipped = f.least(f.greatest(n, low), high)
        return SparkEncoding(raw=raw, number=r, code=f.when(n.isNull(), missing).otherwise(clipped))
    down = floor(n)
    half = f.when(n - down.cast("double") >= 0.5, 1).otherwise(0)
    code = (
        f.when(n.isNull() | f.isnan(n), missing)
        .when(n >= round_up(Fraction(column.upper)), high)
        .when(n <= round_down(Fraction(column.lower)), low)
        .otherwise(down + half)
    )
    scale = f.lit(2.0**-column.exponent)
    if kind not in ("text", "exact"):
        return SparkEncoding(raw=raw, number=r.cast("double") * scale, code=code)
    plain = _trimmed(r)
    number = f.when(matches(plain, NUMBER), _unsigned(r).try_cast("double")) * scale
    if column.exponent == 0:  # long whole numbers, exactly
        big = "decimal(38,0)"
        clipped = f.least(f.greatest(_unsigned(r).try_cast(big), low.cast(big)), high.cast(big))
        code = f.when(matches(plain, WHOLE), clipped.cast("bigint")).otherwise(code)
    return SparkEncoding(raw=raw, number=number, code=code)


def _found(
    kind: Type, raw: Value, i: int, *, textual: bool, codes: tuple[int, int]
) -> SparkEncoding:
    """The place of a value in a table, else the codes of what is missing and what is unknown."""
    r, (missing, unknown) = f.col(f"r{i}"), codes
    if textual:
        number, absent = r.cast("binary"), r == ""
    else:
        number, absent = _whole_or_null(kind, r), _absent(kind, r)
    place = f.coalesce(f.col(f"place{i}"), whole(unknown))
    return SparkEncoding(
        raw=raw, number=number, code=f.when(absent, whole(missing)).otherwise(place)
    )


def _absent(kind: Type, r: Value) -> Value:
    match kind:
        case "text" | "exact":
            return _trimmed(r) == ""
        case "float":
            return r.isNull() | f.isnan(r)
        case _:
            return r.isNull()


def _whole_or_null(kind: Type, r: Value) -> Value:
    """The 64-bit whole number that a value is, else null."""

    def of_double(x: Value) -> Value:
        return f.when(x == floor(x).cast("double"), floor(x))

    match kind:
        case "text" | "exact":
            plain, number = _trimmed(r), _unsigned(r)
            return f.when(
                matches(plain, WHOLE), number.try_cast("decimal(38,0)").try_cast("bigint")
            ).when(matches(plain, NUMBER), of_double(number.try_cast("double")))
        case "float":
            return of_double(r)
        case _:
            return r


def _hours(r: Value) -> Value:
    """Hours since 1970 of a text; null where there is no such moment."""
    plain = _trimmed(r)
    # Python's calendar begins with the year 1.
    day = f.when(~plain.startswith("0000"), f.substring(plain, 1, 10).try_cast("date"))
    ahead = _digits(plain, -5) * 60 + _digits(plain, -2)
    sign = f.substring(plain, -6, 1)
    zone = f.when(f.length(plain) > 16, f.when(sign == "+", ahead).when(sign == "-", -ahead))
    minutes = f.unix_date(day).cast("bigint") * 1440 + _digits(plain, 12) * 60
    minutes += _digits(plain, 15) - f.coalesce(zone, whole(0))
    return f.when(matches(plain, MOMENT), divided(minutes, 60))


def _trimmed(r: Value) -> Value:
    return f.trim(r, f.lit(SPACES))


def _unsigned(r: Value) -> Value:
    """A number's text without what casts may not take."""
    return f.ltrim(_trimmed(r), f.lit("+"))


def _digits(plain: Value, place: int) -> Value:
    return f.coalesce(f.substring(plain, place, 2).try_cast("bigint"), whole(0))
