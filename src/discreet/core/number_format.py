"""Numbers as people read them: rounded to their noise, with separators.

Texts, tables, pages and pictures take their numbers from here alone. What programs read (JSON, CSV,
data frames) holds the exact numbers.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction

INFINITE = "∞"
UNKNOWN = "–"
_DIGITS = 6
_MOST_PLACES = 17
"""More than these a double does not have."""
_WHOLE = 1e15
"""Larger ones have no digit after the point, and too many before it."""


def number(value: object, *, error: object = None) -> str:
    """Return a value for people, rounded to two significant digits of its error.

    Args:
        value: A number, such as an estimate, a budget or a bound, or what stands in its place, such
            as a date; None is empty.
        error: Standard error of the value. Without one the text has six significant digits, and
            whole numbers have all of theirs.

    Returns:
        The text, with a comma between thousands.

    Examples:
        >>> number(41.23456, error=1.3)
        '41.2'
        >>> number(123456, error=1400)
        '123,500'
        >>> number(123456)
        '123,456'
        >>> number(Fraction(1, 10**6))
        '1e-06'
    """
    if value is None:
        return ""
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(error, int | float) and 0 < error < math.inf and math.isfinite(value):
        places = 1 - math.floor(math.log10(float(f"{error:.1e}")))
        return _to_place(value, min(places, 0) if value == int(value) else places)
    return f"{value:,}" if isinstance(value, int) else short(value, digits=_DIGITS)


def short(value: float, *, digits: int = 4) -> str:
    """Return a number to so many significant digits; those before the point are all shown.

    Args:
        value: The number.
        digits: Significant digits.

    Returns:
        The text, with a comma between thousands.

    Examples:
        >>> short(0.123456), short(123456.7), short(2.0)
        ('0.1235', '123,457', '2')
    """
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else "-" * (value < 0) + INFINITE
    if 10**digits <= abs(value) < _WHOLE:
        return f"{value:,.0f}"
    text = f"{value:,.{digits}g}"
    # 9999.7 has four digits, and 10000 of them has five.
    return f"{float(value):,.0f}" if "e+" in text and abs(value) < _WHOLE else text


def at_most(value: float, *, digits: int = 4) -> str:
    """Return a number to so many significant digits, rounded up, so that "at most" stays true.

    Args:
        value: The number.
        digits: Significant digits.

    Returns:
        The text, with a comma between thousands.

    Examples:
        >>> at_most(0.123451), at_most(0.1), at_most(12345.6)
        ('0.1235', '0.1', '12,350')
    """
    if not math.isfinite(value):
        return short(value)
    # The decimal that reads back as the double: 0.1 is no more than 0.1.
    decimal = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return short(float(decimal), digits=digits)


def percent(share: float, *, digits: int = 3) -> str:
    """Return a share of one in percent, to so many significant digits.

    Args:
        share: The share, 1 for all.
        digits: Significant digits.

    Returns:
        The text with its sign.

    Examples:
        >>> percent(0.12345), percent(0.95)
        ('12.3%', '95%')
    """
    return f"{short(100 * share, digits=digits)}%"


def _to_place(value: float, places: int) -> str:
    """Round to so many places after the point, or before it if there are fewer than none."""
    rounded = round(value, places)
    if places <= 0:
        return f"{int(rounded):,}"
    if abs(rounded) >= 1e-4 or not rounded:
        return f"{rounded:,.{places}f}" if places < _MOST_PLACES else f"{value:,.17g}"
    return f"{rounded:.{max(0, places + math.floor(math.log10(abs(rounded))))}e}"
