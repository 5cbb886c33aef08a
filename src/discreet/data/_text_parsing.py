"""The one grammar of texts: what a CSV field, or any text column, is read as.

Both engines follow it: the patterns are used as they are by DuckDB, and value by value here.
Spaces and tabs around a number, a date or a boolean are ignored; an empty text is missing
everywhere. A number may begin with a plus, and a number that is 0 or 1 is a boolean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from discreet.boundary.values import as_text
from discreet.data._spelling import (
    NUMBER,
    SPACES,
    WHOLE,
    minutes_of,
    respelled_moment,
    respelled_number,
    respelled_text,
    respelled_truth,
)
from discreet.data.schema import (
    BooleanColumn,
    CategoryColumn,
    Column,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    spelling_of,
)

UNIT = r"0|-?[1-9][0-9]{0,18}"
"""A unit's name that is a plain decimal number; within 64 bits it is treated like one."""
TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")

# ASCII: a dotless i in "inf" is none, here as in the other engines.
_number, _whole = (re.compile(one, re.ASCII) for one in (NUMBER, WHOLE))


def respeller(column: ColumnSpec) -> Callable[[str], str] | None:
    """From a text as the column declares it to the usual one; None where nothing is declared."""
    spelling = spelling_of(column)
    if spelling is None:
        return None
    match column:
        case NumericColumn():
            return respelled_number(spelling)
        case DateColumn():
            return respelled_moment(spelling)
        case BooleanColumn():
            return respelled_truth(spelling)
        case CategoryColumn(categories=(int(), *_)):
            return respelled_number(spelling)
        case _:
            return respelled_text(spelling)


def object_text(column: ColumnSpec) -> Callable[[object], str]:
    """The usual text of any Python value: what is declared of texts is not said of numbers."""
    respelled = respeller(column)
    if respelled is None:
        return as_text

    def text(value: object) -> str:
        is_text = isinstance(value, str)
        if isinstance(column, NumericColumn | DateColumn) and not is_text:
            return as_text(value)
        is_truth = isinstance(column, BooleanColumn) and type(value).__name__ in ("bool", "bool_")
        return as_text(value) if is_truth else respelled(as_text(value))

    return text


def missing_numbers(column: ColumnSpec) -> tuple[float, ...]:
    """Numbers that are declared missing."""
    spelling = spelling_of(column)
    return () if spelling is None else spelling.missing.numbers


def decoder(column: Column) -> Callable[[str], int]:
    """The code of any usual text (empty: missing), for one column."""
    match column:
        case LookupColumn():
            codes = dict(zip(column.keys, column.codes, strict=True))
            return _finder(codes, textual=column.textual, missing=column.missing)
        case CategoryColumn():
            places = {level: place for place, level in enumerate(column.categories)}
            textual = isinstance(column.categories[0], str)
            return _finder(
                places,
                textual=textual,
                missing=column.missing,
                other=column.unknown,
                gaps=missing_numbers(column),
            )
        case NumericColumn():
            return lambda text: _decode_number(text.strip(SPACES), column)
        case DateColumn():
            return lambda text: _decode_date(text.strip(SPACES), column)
        case BooleanColumn():
            return lambda text: _decode_boolean(text.strip(SPACES).lower(), column)
        case _:
            assert_never(column)


_WORDS = {**dict.fromkeys(TRUE, 1), **dict.fromkeys(FALSE, 0)}


def _decode_boolean(text: str, column: BooleanColumn) -> int:
    if text in _WORDS:
        return _WORDS[text]
    number = float(text) if _number.fullmatch(text) else math.nan
    return int(number) if number in (0, 1) else column.missing


def _finder(
    codes: Mapping[Any, int],
    *,
    textual: bool,
    missing: int,
    other: int | None = None,
    gaps: tuple[float, ...] = (),
) -> Callable[[str], int]:
    """Texts as they are, or the whole numbers that they say."""
    unknown = missing if other is None else other
    if textual:
        return lambda text: codes.get(text, unknown) if text else missing

    def find(text: str) -> int:
        plain = text.strip(SPACES)
        if not _number.fullmatch(plain):
            return unknown if plain else missing
        value = int(plain) if _whole.fullmatch(plain) else float(plain)
        if gaps and float(plain) in gaps:
            return missing
        whole = math.isfinite(value) and value == int(value)
        return codes.get(int(value), unknown) if whole else unknown

    return find


def decode_double(value: float, column: NumericColumn) -> int:
    """The code of a double that is not NaN: ``floor(x / 2**exponent + 1/2)``, clipped."""
    scaled = _scale(value, -column.exponent)
    if scaled >= column.upper:
        return column.upper
    if scaled <= column.lower:
        return column.lower
    # scaled is a double between two int64, so floor is exact and so is the fraction's test
    whole = math.floor(scaled)
    return whole + (scaled - whole >= 0.5)


def _scale(value: float, exponent: int) -> float:
    return value * 2.0**exponent


def _decode_number(text: str, column: NumericColumn) -> int:
    if not _number.fullmatch(text):
        return column.missing
    gaps = missing_numbers(column)
    if gaps and float(text) in gaps:
        return column.missing
    if column.exponent == 0 and _whole.fullmatch(text):
        return min(max(int(text), column.lower), column.upper)
    return decode_double(float(text), column)


def _decode_date(text: str, column: DateColumn) -> int:
    found = minutes_of(text)
    if found is None:
        return column.missing
    minutes, is_local = found
    spelling = column.spelling
    if is_local and spelling is not None and spelling.local is not None:
        minutes = spelling.local.utc(minutes)
    code = minutes // (1440 if column.step == "day" else 60)
    gaps = () if spelling is None else spelling.codes
    return code if column.lower <= code <= column.upper and code not in gaps else column.missing
