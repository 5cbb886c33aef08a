"""The one grammar of texts: what a CSV field, or any text column, is read as.

Both engines follow it: the patterns are used as they are by DuckDB, and value by value here.
Spaces and tabs around a number, a date or a boolean are ignored; an empty text is missing
everywhere. A number may begin with a plus, and a number that is 0 or 1 is a boolean.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from discreet.data.schema import (
    EPOCH,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    LookupColumn,
    NumericColumn,
)

SPACES = " \t"
"""What is ignored around a number, a date or a boolean."""
NUMBER = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|(?i:inf|infinity))"
WHOLE = r"[+-]?[0-9]{1,38}"
UNIT = r"0|-?[1-9][0-9]{0,18}"
"""A unit's name that is a plain decimal number; within 64 bits it is treated like one."""
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
ZONE = r"Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]"
MOMENT = rf"{DAY}([T ]{TIME}({ZONE})?)?"
TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")

# ASCII: a dotless i in "inf" is none, here as in the other engines.
_number, _whole, _moment = (re.compile(one, re.ASCII) for one in (NUMBER, WHOLE, MOMENT))


def decode(text: str, column: Column) -> int:
    """The code of one text (empty: missing)."""
    return decoder(column)(text)


def decoder(column: Column) -> Callable[[str], int]:
    """The code of any text (empty: missing), for one column."""
    match column:
        case LookupColumn():
            codes = dict(zip(column.keys, column.codes, strict=True))
            return _finder(codes, textual=column.textual, missing=column.missing)
        case CategoryColumn():
            places = {level: place for place, level in enumerate(column.categories)}
            textual = isinstance(column.categories[0], str)
            return _finder(places, textual=textual, missing=column.missing, other=column.unknown)
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
    codes: Mapping[Any, int], *, textual: bool, missing: int, other: int | None = None
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
    if column.exponent == 0 and _whole.fullmatch(text):
        return min(max(int(text), column.lower), column.upper)
    return decode_double(float(text), column)


def _decode_date(text: str, column: DateColumn) -> int:
    if not _moment.fullmatch(text):
        return column.missing
    try:
        days = (dt.date.fromisoformat(text[:10]) - EPOCH).days
    except ValueError:
        return column.missing
    minutes = 1440 * days + 60 * int(text[11:13] or 0) + int(text[14:16] or 0)
    if len(text) > 16 and text[-6] in "+-":  # 10:00+02:00 is 08:00 UTC
        ahead = 60 * int(text[-5:-3]) + int(text[-2:])
        minutes -= ahead if text[-6] == "+" else -ahead
    code = minutes // (1440 if column.step == "day" else 60)
    return code if column.lower <= code <= column.upper else column.missing
