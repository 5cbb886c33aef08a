"""Arcus tangens of rational numbers, enclosed in integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.core.exact import Enclosure, ceil_div


def turns_beyond(z: Fraction, precision: int) -> Enclosure:
    """Enclose ``(2 / pi) atan(1 / z) * 2**precision``, P(|Z| > z) for standard Cauchy Z, z > 0."""
    work = precision + 16
    low, high = _angle(1 / z, work)
    quarter_low, quarter_high = _quarter(work)
    return (low << precision) // (2 * quarter_high), ceil_div(high << precision, 2 * quarter_low)


def _angle(x: Fraction, precision: int) -> Enclosure:
    """Enclose ``atan(x) * 2**precision`` for x > 0.

    Reduced to at most 1/2 by ``atan x = pi/2 - atan(1/x)`` and ``atan x = pi/4 + atan((x - 1) /
    (x + 1))``.
    """
    if x <= Fraction(1, 2):
        return _series(x, precision)
    quarter_low, quarter_high = _quarter(precision)
    if x >= 2:
        low, high = _series(1 / x, precision)
        return 2 * quarter_low - high, 2 * quarter_high - low
    turned = (x - 1) / (x + 1)
    low, high = _series(abs(turned), precision)
    if turned < 0:
        low, high = -high, -low
    return quarter_low + low, quarter_high + high


@lru_cache(maxsize=64)
def _quarter(precision: int) -> Enclosure:
    """Enclose ``pi / 4 * 2**precision``, by 4 atan(1/5) - atan(1/239)."""
    low, high = _series(Fraction(1, 5), precision)
    less_low, less_high = _series(Fraction(1, 239), precision)
    return 4 * low - less_high, 4 * high - less_low


def _series(x: Fraction, precision: int) -> Enclosure:
    """Enclose ``atan(x) * 2**precision`` for 0 <= x <= 1/2, by ``sum (-1)^i x^(2i+1) / (2i+1)``.

    Powers are kept as floors and ceilings, so each term is enclosed; the terms fall and their signs
    alternate, so what is left out is at most its first term, which is at most one.
    """
    square = x * x
    low = (x.numerator << precision) // x.denominator
    high = ceil_div(x.numerator << precision, x.denominator)
    sum_low = sum_high = 0
    i = 0
    while high > 1:
        term_low, term_high = low // (2 * i + 1), ceil_div(high, 2 * i + 1)
        if i % 2:
            sum_low, sum_high = sum_low - term_high, sum_high - term_low
        else:
            sum_low, sum_high = sum_low + term_low, sum_high + term_high
        low = low * square.numerator // square.denominator
        high = ceil_div(high * square.numerator, square.denominator)
        i += 1
    return sum_low - 1, sum_high + 1
