"""SQL that turns raw columns into codes: the same functions of a value as in `text` and `encode`.

Every piece of SQL is made here and in `duckdb_engine` from integers, quoted names and quoted texts.
A code is built in three steps, so that no expression is written twice: the raw value, made plain
(`raw`); its number (`number`); its code (`code`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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
from discreet.data.source import Type, quoted_text

_TICKS: Mapping[Type, int] = {
    "date": 24,
    "text": 1440,
    "time": 86_400_000_000,
    "time_s": 86_400_000_000,
    "time_ns": 86_400_000_000_000,
}
"""How a moment is counted, by type: ticks in a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlEncoding:
    """The three expressions of one column; ``levels`` is a table to join on the number."""

    raw: str
    number: str
    code: str
    levels: str | None = None
    known: str | None = None
    """Whether the value is known, in fewer words than by its code."""


def name(identifier: str) -> str:
    """A quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


text = quoted_text


def whole(value: int) -> str:
    """A 64-bit literal."""
    return f"CAST({value} AS BIGINT)"


def double(value: float) -> str:
    """A double literal."""
    return f"CAST('{value!r}' AS DOUBLE)"


def listed(values: Iterable[str]) -> str:
    """A list literal."""
    return "[" + ", ".join(values) + "]"


def numbers(values: Iterable[int]) -> str:
    """A list of 64-bit numbers: one text is read a hundred times faster than many literals."""
    joined = ",".join(map(str, values))
    return f"CAST(string_split('{joined}', ',') AS BIGINT[])" if joined else "CAST([] AS BIGINT[])"


def steps(column: ColumnSpec, *, kind: Type, source: str, i: int) -> SqlEncoding:
    """How the i-th column is encoded; ``source`` is its quoted name."""
    raw = _raw(kind, source)
    spelling = spelling_of(column)
    if spelling is not None and kind == "text":
        raw = _respelled(column, spelling, raw)
    r, n = f"r{i}", f"n{i}"
    match column:
        case NumericColumn():
            return _number(column, kind, raw, i)
        case CategoryColumn():
            textual = isinstance(column.categories[0], str)
            places = f"range({len(column.categories)})"
            table = _table(column.categories, places, textual=textual)
            codes = column.missing, column.unknown
            gaps = missing_numbers(column)
            return _found(table, kind, raw, i, textual=textual, codes=codes, gaps=gaps)
        case LookupColumn():
            table = _table(column.keys, numbers(column.codes), textual=column.textual)
            codes = column.missing, column.missing
            return _found(table, kind, raw, i, textual=column.textual, codes=codes)
        case TextColumn():
            # Not a number but bytes: only for grouping by what occurs.
            code = f"CASE WHEN {n} <> '' AND NOT contains({n}, chr(0)) THEN encode({n}) END"
            return SqlEncoding(raw=raw, number=r, code=code)
        case DateColumn():
            return _moment(column, kind, raw, i)
        case BooleanColumn():
            return _truth(column, kind, raw, i)


def _moment(column: DateColumn, kind: Type, raw: str, i: int) -> SqlEncoding:
    r, n, spelling = f"r{i}", f"n{i}", column.spelling
    per = _TICKS[kind] // (1 if column.step == "day" else 24)
    down = _floored(n, per)
    if spelling is not None and spelling.local is not None and kind != "date":
        utc = _in_utc(kind, r, _floored(n, _TICKS[kind] // 1440), spelling.local)
        down = _once(utc, _floored("m", 1440 if column.step == "day" else 60))
    inside = f"{down} BETWEEN {whole(column.lower)} AND {whole(column.upper)}"
    if spelling is not None and spelling.codes:
        inside += f" AND {down} NOT IN ({', '.join(map(whole, spelling.codes))})"
    code = f"CASE WHEN {inside} THEN {down} ELSE {whole(column.missing)} END"
    return SqlEncoding(raw=raw, number=_ticks(kind, r), code=code)


def _truth(column: BooleanColumn, kind: Type, raw: str, i: int) -> SqlEncoding:
    r, n, spelling = f"r{i}", f"n{i}", column.spelling
    if kind == "text":
        yes, no = (", ".join(map(text, words)) for words in (TRUE, FALSE))
        word = f"lower({_trimmed(r)})"
        said = f"CASE WHEN {_says(r, NUMBER)} THEN TRY_CAST({_unsigned(r)} AS DOUBLE) END"
        number = (
            f"CASE WHEN {word} IN ({yes}) THEN 1 WHEN {word} IN ({no}) THEN 0 "
            f"ELSE CASE {said} WHEN 1 THEN 1 WHEN 0 THEN 0 END END"
        )
    elif spelling is not None and kind != "boolean":
        ones, zeros = spelling.true.numbers, spelling.false.numbers
        lists = [spelling.missing.numbers, *([ones, zeros] if spelling.true else [(1.0,), (0.0,)])]
        arms = (
            f" WHEN {_is_one_of(r, one, kind)} THEN {value}"
            for one, value in zip(lists, ("NULL", "1", "0"), strict=True)
        )
        number = f"CASE{''.join(arms)} END"
    else:
        number = f"CASE WHEN {r} = 1 THEN 1 WHEN {r} = 0 THEN 0 END"
    code = f"CAST(coalesce({n}, {column.missing}) AS BIGINT)"
    return SqlEncoding(raw=raw, number=number, code=code, known=f"{n} IS NOT NULL")


def _respelled(column: ColumnSpec, spelling: Spelling, r: str) -> str:
    """The usual text of a declared one: the same function as `respeller` of `_text_parsing`."""
    plain = _trimmed(r)
    match column:
        case NumericColumn():
            missing, others = _is_word(plain, spelling.missing), plain
            if spelling.number is not None:
                usual = f"replace({plain}, {text(spelling.thousands or '')}, '')"
                usual = f"replace({usual}, {text(spelling.decimal)}, '.')"
                others = f"CASE WHEN {_says(r, spelling.number)} THEN {usual} "
                others += f"WHEN {plain} = '' THEN '' ELSE '{MISFIT}' END"
        case DateColumn():
            missing, others = _is_word(plain, spelling.missing), plain
            if spelling.moment is not None:
                iso = text(spelling.as_iso("\\"))
                usual = f"regexp_replace({plain}, {text(spelling.moment)}, {iso})"
                usual = f"regexp_replace({usual}, {text(SINGLE_DIGIT)}, '0\\1', 'g')"
                others = f"CASE WHEN {_says(r, spelling.moment)} THEN {usual} "
                others += f"WHEN {plain} = '' THEN '' ELSE '{MISFIT}' END"
        case BooleanColumn():
            missing, others = f"({_has(r, spelling.missing)} OR {plain} = '')", r
            if spelling.true:
                others = f"CASE WHEN {_has(r, spelling.true)} THEN '1' "
                others += f"WHEN {_has(r, spelling.false)} THEN '0' ELSE '{MISFIT}' END"
        case CategoryColumn(categories=(int(), *_)):
            missing, others = _is_word(plain, spelling.missing), plain
        case _:
            others = plain if spelling.strip else r
            missing = _is_one_text(others, spelling.missing.texts)
    return f"CASE WHEN {missing} THEN '' ELSE {others} END"


def _has(r: str, words: Words) -> str:
    """Whether a text is one of some words, or says one of some numbers."""
    plain = _trimmed(r)
    said = f"CASE WHEN {_says(r, NUMBER)} THEN TRY_CAST({_unsigned(r)} AS DOUBLE) END"
    number = _is_one_of(said, words.numbers, "float") if words.numbers else "false"
    return f"({_is_word(plain, words)} OR coalesce({number}, false))"


def _is_word(plain: str, words: Words) -> str:
    return _is_one_text(f"translate({plain}, '{UPPER_CASE}', '{LOWER_CASE}')", words.texts)


def _is_one_text(value: str, texts: Sequence[str]) -> str:
    """By bytes, as levels are compared; no character of a text is part of the SQL."""
    listed = ", ".join(f"unhex('{one.encode().hex()}')" for one in texts)
    return f"encode({value}) IN ({listed})" if texts else "false"


def _is_one_of(value: str, numbers: Iterable[float], kind: Type) -> str:
    """Whether a number is one of some public ones."""
    if kind in ("integer", "boolean"):  # the public ones are below 2**53, or no integer has them
        listed = [whole(int(one)) for one in numbers if one.is_integer()]
    else:
        listed = [double(one) for one in numbers]
    return f"{value} IN ({', '.join(listed)})" if listed else "false"


def _floored(n: str, per: int) -> str:
    """A quotient of whole numbers, rounded down."""
    return f"({n} // {per} - CASE WHEN {n} % {per} < 0 THEN 1 ELSE 0 END)"


def _in_utc(kind: Type, r: str, minutes: str, local: LocalTime) -> str:
    """Minutes since 1970 in UTC; a value that names its own offset is there already."""
    if kind == "text":
        plain = _trimmed(r)
        named = f"regexp_matches({plain}, '(Z|[+-][0-9][0-9]:[0-9][0-9])$')"
        is_local = f"length({plain}) > 10 AND NOT {named}"
    else:
        is_local = f"typeof({r}) NOT LIKE '%TIME ZONE'"
    arms = [
        f"WHEN m < {whole(start)} THEN {offset}"
        for start, offset in zip(local.starts, local.offsets, strict=False)
    ]
    ahead = str(local.offsets[-1])
    if arms:
        ahead = f"CASE {' '.join(arms)} ELSE {ahead} END"
    return _once(minutes, f"m - CASE WHEN {is_local} THEN {ahead} ELSE 0 END")


def _once(m: str, then: str) -> str:
    """An expression of ``m``, which is written, and computed, once."""
    return f"list_extract(list_transform([{m}], lambda m: {then}), 1)"


def _raw(kind: Type, source: str) -> str:
    match kind:
        case "text" | "exact":
            return f"coalesce(CAST({source} AS VARCHAR), '')"
        case "float":
            # Through a union: the statistics of a Parquet file leave NaN out, and from them the
            # optimizer would conclude that isnan is false for everybody.
            return f"union_extract(union_value(a := CAST({source} AS DOUBLE)), 'a')"
        case "boolean" | "integer":
            return f"CAST({source} AS BIGINT)"
        case "time_s":  # no such moment where microseconds do not reach
            return f"TRY_CAST({source} AS TIMESTAMP)"
        case _:
            return source


def _number(column: NumericColumn, kind: Type, raw: str, i: int) -> SqlEncoding:
    r, n, low, high = f"r{i}", f"n{i}", whole(column.lower), whole(column.upper)
    missing = whole(column.missing)
    scale = double(2.0**-column.exponent)
    gaps = missing_numbers(column)
    clip = f"CASE WHEN {{0}} <= {low} THEN {low} WHEN {{0}} >= {high} THEN {high} "
    if kind in ("integer", "boolean") and column.exponent == 0:
        # The common case first: with a file's own statistics the rest is not even evaluated.
        code = (
            f"CASE WHEN {n} BETWEEN {low} AND {high} THEN {n} "
            f"WHEN {n} > {high} THEN {high} WHEN {n} < {low} THEN {low} ELSE {missing} END"
        )
        if gaps:
            number = f"CASE WHEN NOT {_is_one_of(r, gaps, kind)} THEN {r} END"
            code = f"CASE WHEN {n} IS NULL THEN {missing} ELSE {code} END"
            return SqlEncoding(raw=raw, number=number, code=code, known=f"{n} IS NOT NULL")
        return SqlEncoding(raw=raw, number=r, code=code, known=f"{n} IS NOT NULL")
    up = double(round_up(Fraction(column.upper)))
    down = double(round_down(Fraction(column.lower)))
    half = f"CASE WHEN {n} - floor({n}) >= {double(0.5)} THEN 1 ELSE 0 END"
    code = (
        f"CASE WHEN {n} IS NULL OR isnan({n}) THEN {missing} WHEN {n} >= {up} THEN {high} "
        f"WHEN {n} <= {down} THEN {low} ELSE TRY_CAST(floor({n}) AS BIGINT) + {half} END"
    )
    if kind not in ("text", "exact"):
        plain = f"CASE WHEN NOT {_is_one_of(r, gaps, kind)} THEN {r} END" if gaps else r
        return SqlEncoding(
            raw=raw,
            number=f"CAST({plain} AS DOUBLE) * {scale}",
            code=code,
            known=f"({n} IS NOT NULL AND NOT isnan({n}))",
        )
    plain = _unsigned(r)
    number = f"CASE WHEN {_says(r, NUMBER)} "
    number += f"THEN TRY_CAST({plain} AS DOUBLE) END * {scale}"
    if gaps:
        said = _is_one_of(f"TRY_CAST({plain} AS DOUBLE)", gaps, "float")
        number = f"CASE WHEN NOT coalesce({said}, false) THEN {number} END"
    if column.exponent == 0:  # long whole numbers, exactly
        big = f"TRY_CAST({plain} AS HUGEINT)"
        code = (
            f"CASE WHEN {_says(r, WHOLE)} THEN "
            f"{clip.format(big)} ELSE CAST({big} AS BIGINT) END ELSE {code} END"
        )
        if gaps:
            code = f"CASE WHEN {n} IS NULL THEN {missing} ELSE {code} END"
    return SqlEncoding(raw=raw, number=number, code=code, known=f"{n} IS NOT NULL")


def _table(keys: Sequence[str | int], places: str, *, textual: bool) -> str:
    """A public list as a table of ``level`` and ``place``."""
    if not textual:
        values, level = numbers(int(key) for key in keys), "CAST(level AS HUGEINT)"
    else:
        # Bytes: a connection's collation must not make two levels equal.
        values, level = _texts([str(key) for key in keys]), "unhex(level)"
    listed = f"SELECT unnest({values}) AS level, unnest({places}) AS place"
    return f"(SELECT {level} AS level, place FROM ({listed}))"  # noqa: S608


def _texts(values: Sequence[str]) -> str:
    """A list of the texts' bytes in hexadecimal digits, as one literal.

    No character of a text is part of the SQL: a name that has them all must not empty the list. A
    lone surrogate becomes bytes that no text of the database has.
    """
    if not values:
        return "CAST([] AS VARCHAR[])"
    digits = ",".join(value.encode(errors="surrogatepass").hex() for value in values)
    return f"string_split('{digits}', ',')"


def _found(
    table: str,
    kind: Type,
    raw: str,
    i: int,
    *,
    textual: bool,
    codes: tuple[int, int],
    gaps: tuple[float, ...] = (),
) -> SqlEncoding:
    """The place of a value in a table, else the codes of what is missing and what is unknown."""
    r, (missing, unknown) = f"r{i}", codes
    if textual:
        number, absent = f"encode({r})", f"{r} = ''"
    else:
        number, absent = _whole_or_null(kind, r), _absent(kind, r)
    if gaps:
        said = r
        if kind in ("text", "exact"):
            said = f"CASE WHEN {_says(r, NUMBER)} THEN TRY_CAST({_unsigned(r)} AS DOUBLE) END"
        absent = f"({absent} OR coalesce({_is_one_of(said, gaps, kind)}, false))"
    code = f"CASE WHEN {absent} THEN {whole(missing)} "
    code += f"ELSE CAST(coalesce(l{i}.place, {whole(unknown)}) AS BIGINT) END"
    return SqlEncoding(raw=raw, number=number, code=code, levels=table)


def _absent(kind: Type, r: str) -> str:
    match kind:
        case "text" | "exact":
            return f"{_trimmed(r)} = ''"
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
            plain = _unsigned(r)
            return (
                f"CASE WHEN {_says(r, WHOLE)} "
                f"THEN TRY_CAST({plain} AS HUGEINT) "
                f"WHEN {_says(r, NUMBER)} "
                f"THEN {of_double(f'TRY_CAST({plain} AS DOUBLE)')} END"
            )
        case "float":
            return of_double(r)
        case _:
            return f"CAST({r} AS HUGEINT)"


def _ticks(kind: Type, r: str) -> str:
    """Hours, minutes, micro- or nanoseconds since 1970; null where there is no such moment."""
    if kind == "text":
        plain = _trimmed(r)
        days = f"CAST(TRY_CAST(substr({plain}, 1, 10) AS DATE) - DATE '1970-01-01' AS BIGINT)"
        hour, minute = (_digits(plain, place) for place in (12, 15))
        ahead = f"60 * {_digits(plain, -5)} + {_digits(plain, -2)}"
        sign = f"CASE substr({plain}, -6, 1) WHEN '+' THEN 1 WHEN '-' THEN -1 ELSE 0 END"
        zone = f"CASE WHEN length({plain}) > 16 THEN {sign} * ({ahead}) ELSE 0 END"
        minutes = f"{days} * 1440 + {hour} * 60 + {minute} - {zone}"
        return f"CASE WHEN {_says(r, MOMENT)} THEN {minutes} END"
    if kind == "date":
        ticks = f"CAST({r} - DATE '1970-01-01' AS BIGINT) * 24"
    else:
        ticks = f"epoch_ns({r})" if kind == "time_ns" else f"epoch_us({r})"
    return f"CASE WHEN isfinite({r}) THEN {ticks} END"


def _says(r: str, pattern: str) -> str:
    """Whether a text is of a pattern, with spaces and tabs around it."""
    around = "[ \\t]*"
    return f"regexp_full_match({r}, {text(f'{around}(?:{pattern}){around}')})"


def _trimmed(r: str) -> str:
    return f"trim({r}, {text(SPACES)})"


def _unsigned(r: str) -> str:
    """A number's text without what casts do not take."""
    return f"ltrim({_trimmed(r)}, '+')"


def _digits(plain: str, place: int) -> str:
    return f"coalesce(TRY_CAST(substr({plain}, {place}, 2) AS BIGINT), 0)"
