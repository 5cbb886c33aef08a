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
from discreet.data._spelling import (
    LOWER_CASE,
    MISFIT,
    MOMENT,
    NUMBER,
    SINGLE_DIGIT,
    SPACES,
    UPPER_CASE,
    WHOLE,
    LocalTime,
    Spelling,
    Words,
)
from discreet.data._text_parsing import FALSE, TRUE, missing_numbers
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    TextColumn,
    spelling_of,
)
from discreet.data.source import Type

_HOUR = 3_600_000_000  # microseconds
_MINUTE = 60_000_000


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
    spelling = spelling_of(column)
    if spelling is not None and kind == "text":
        raw = _respelled(column, spelling, raw)
    r, n = f.col(f"r{i}"), f.col(f"n{i}")
    match column:
        case NumericColumn():
            return _number(column, kind, raw, i)
        case CategoryColumn():
            textual = isinstance(column.categories[0], str)
            codes = column.missing, column.unknown
            gaps = missing_numbers(column)
            found = _found(kind, raw, i, textual=textual, codes=codes, gaps=gaps)
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
            return _moment(column, kind, raw, i, source=source, stored=stored)
        case BooleanColumn():
            return _truth(column, kind, raw, i)


def _moment(
    column: DateColumn, kind: Type, raw: Value, i: int, *, source: Value, stored: DataType
) -> SparkEncoding:
    r, n, spelling = f.col(f"r{i}"), f.col(f"n{i}"), column.spelling
    number = divided(_minutes(r), 60) if kind == "text" else r
    code = n if column.step == "hour" else divided(n, 24)
    if spelling is not None and spelling.local is not None and kind != "date":
        raw = raw if kind == "text" else _raw_minutes(source, stored)
        number = _minutes(r) if kind == "text" else r
        is_local = _is_local(r) if kind == "text" else f.lit(_has_no_zone(stored))
        utc = n - f.when(is_local, _ahead(n, spelling.local)).otherwise(whole(0))
        code = divided(utc, 60 if column.step == "hour" else 1440)
    inside = code.between(whole(column.lower), whole(column.upper))
    if spelling is not None and spelling.codes:
        inside &= ~code.isin(*spelling.codes)
    code = f.when(inside, code).otherwise(whole(column.missing))
    return SparkEncoding(raw=raw, number=number, code=code)


def _truth(column: BooleanColumn, kind: Type, raw: Value, i: int) -> SparkEncoding:
    r, n, spelling = f.col(f"r{i}"), f.col(f"n{i}"), column.spelling
    if kind == "text":
        word = f.lower(_trimmed(r))
        said = f.when(matches(_trimmed(r), NUMBER), _unsigned(r).try_cast("double"))
        yes, no = word.isin(*TRUE) | (said == 1), word.isin(*FALSE) | (said == 0)
    else:
        yes, no = r == 1, r == 0
    if spelling is not None and kind in ("integer", "float"):
        if spelling.true:
            yes, no = (_is_one_of(r, x.numbers) for x in (spelling.true, spelling.false))
        yes, no = (one & ~_is_one_of(r, spelling.missing.numbers) for one in (yes, no))
    number = f.when(yes, whole(1)).when(no, whole(0))
    return SparkEncoding(raw=raw, number=number, code=f.coalesce(n, whole(column.missing)))


def _respelled(column: ColumnSpec, spelling: Spelling, r: Value) -> Value:
    """The usual text of a declared one: the same function as `respeller` of `_text_parsing`."""
    plain, misfit = _trimmed(r), f.lit(MISFIT)
    match column:
        case NumericColumn():
            missing, others = _is_word(plain, spelling.missing), plain
            if spelling.number is not None:
                usual = plain
                if spelling.thousands is not None:
                    usual = f.replace(usual, f.lit(spelling.thousands), f.lit(""))
                usual = f.replace(usual, f.lit(spelling.decimal), f.lit("."))
                others = f.when(matches(plain, spelling.number), usual).otherwise(misfit)
            missing |= plain == ""
        case DateColumn():
            missing, others = _is_word(plain, spelling.missing) | (plain == ""), plain
            if spelling.moment is not None:
                usual = f.regexp_replace(plain, spelling.moment, spelling.as_iso("$"))
                usual = f.regexp_replace(usual, SINGLE_DIGIT, "0$1")
                others = f.when(matches(plain, spelling.moment), usual).otherwise(misfit)
        case BooleanColumn():
            missing, others = _has(r, spelling.missing) | (plain == ""), r
            if spelling.true:
                others = f.when(_has(r, spelling.true), f.lit("1"))
                others = others.when(_has(r, spelling.false), f.lit("0")).otherwise(misfit)
        case CategoryColumn(categories=(int(), *_)):
            missing, others = _is_word(plain, spelling.missing), plain
        case _:
            others = plain if spelling.strip else r
            missing = _is_one_text(others, spelling.missing.texts)
    return f.when(missing, f.lit("")).otherwise(others)


def _has(r: Value, words: Words) -> Value:
    """Whether a text is one of some words, or says one of some numbers."""
    plain = _trimmed(r)
    found = _is_word(plain, words)
    if not words.numbers:
        return found
    said = f.when(matches(plain, NUMBER), _unsigned(r).try_cast("double"))
    return found | _is_one_of(said, words.numbers)


def _is_word(plain: Value, words: Words) -> Value:
    return _is_one_text(f.translate(plain, UPPER_CASE, LOWER_CASE), words.texts)


def _is_one_text(value: Value, texts: Iterable[str]) -> Value:
    """By bytes, as levels are compared."""
    found, stored = f.lit(0) == 1, value.cast("binary")
    for one in texts:
        found |= stored == f.lit(one).cast("binary")
    return found


def _is_one_of(value: Value, numbers: Iterable[float]) -> Value:
    """Whether a number is one of some public ones; whole ones are below 2**53."""
    found = f.lit(0) == 1
    for one in numbers:
        found |= f.coalesce(value == (int(one) if one.is_integer() else one), f.lit(0) == 1)
    return found


def _raw_minutes(source: Value, stored: DataType) -> Value:
    """Minutes since 1970 of a moment, in UTC or, without a zone, as the clock shows them."""
    if _has_no_zone(stored):
        days = f.unix_date(source.cast("date")).cast("bigint")
        return days * 1440 + f.hour(source) * 60 + f.minute(source)
    return divided(f.unix_micros(source), _MINUTE)


def _has_no_zone(stored: DataType) -> bool:
    return isinstance(stored, TimestampNTZType)


def _is_local(r: Value) -> Value:
    """Whether an ISO text has a time and names no offset."""
    plain = _trimmed(r)
    return (f.length(plain) > 10) & ~plain.rlike(r"(Z|[+-][0-9][0-9]:[0-9][0-9])\z")


def _ahead(minutes: Value, local: LocalTime) -> Value:
    """Minutes from UTC by local time."""
    ahead = whole(local.offsets[-1])
    for start, offset in zip(reversed(local.starts), reversed(local.offsets[:-1]), strict=True):
        ahead = f.when(minutes < start, whole(offset)).otherwise(ahead)
    return ahead


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
    gaps = missing_numbers(column)
    given = f.when(~_is_one_of(r, gaps), r) if gaps else r
    if kind in ("integer", "boolean") and column.exponent == 0:
        clipped = f.least(f.greatest(n, low), high)
        code = f.when(n.isNull(), missing).otherwise(clipped)
        return SparkEncoding(raw=raw, number=given, code=code)
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
        return SparkEncoding(raw=raw, number=given.cast("double") * scale, code=code)
    plain = _trimmed(r)
    number = f.when(matches(plain, NUMBER), _unsigned(r).try_cast("double"))
    number = f.when(~_is_one_of(number, gaps), number) * scale if gaps else number * scale
    if column.exponent == 0:  # long whole numbers, exactly
        big = "decimal(38,0)"
        clipped = f.least(f.greatest(_unsigned(r).try_cast(big), low.cast(big)), high.cast(big))
        code = f.when(matches(plain, WHOLE), clipped.cast("bigint")).otherwise(code)
        code = f.when(n.isNull(), missing).otherwise(code) if gaps else code
    return SparkEncoding(raw=raw, number=number, code=code)


def _found(
    kind: Type,
    raw: Value,
    i: int,
    *,
    textual: bool,
    codes: tuple[int, int],
    gaps: tuple[float, ...] = (),
) -> SparkEncoding:
    """The place of a value in a table, else the codes of what is missing and what is unknown."""
    r, (missing, unknown) = f.col(f"r{i}"), codes
    if textual:
        number, absent = r.cast("binary"), r == ""
    else:
        number, absent = _whole_or_null(kind, r), _absent(kind, r)
    if gaps:
        said = r
        if kind in ("text", "exact"):
            said = f.when(matches(_trimmed(r), NUMBER), _unsigned(r).try_cast("double"))
        absent |= _is_one_of(said, gaps)
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


def _minutes(r: Value) -> Value:
    """Minutes since 1970 of a text; null where there is no such moment."""
    plain = _trimmed(r)
    # Python's calendar begins with the year 1.
    day = f.when(~plain.startswith("0000"), f.substring(plain, 1, 10).try_cast("date"))
    ahead = _digits(plain, -5) * 60 + _digits(plain, -2)
    sign = f.substring(plain, -6, 1)
    zone = f.when(f.length(plain) > 16, f.when(sign == "+", ahead).when(sign == "-", -ahead))
    minutes = f.unix_date(day).cast("bigint") * 1440 + _digits(plain, 12) * 60
    minutes += _digits(plain, 15) - f.coalesce(zone, whole(0))
    return f.when(matches(plain, MOMENT), minutes)


def _trimmed(r: Value) -> Value:
    return f.trim(r, f.lit(SPACES))


def _unsigned(r: Value) -> Value:
    """A number's text without what casts may not take."""
    return f.ltrim(_trimmed(r), f.lit("+"))


def _digits(plain: Value, place: int) -> Value:
    return f.coalesce(f.substring(plain, place, 2).try_cast("bigint"), whole(0))
