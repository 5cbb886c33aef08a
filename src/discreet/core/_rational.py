"""Exact and outward-rounded numbers.

Privacy parameters are rationals; what is irrational is kept as an integer enclosure
``low <= value * 2**precision <= high`` that can be made as narrow as needed. Nothing here rounds
to nearest: a claim derived from these numbers can only be too cautious.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Number: TypeAlias = int | float | Fraction | Decimal
Enclosure: TypeAlias = tuple[int, int]
"""Integers ``(low, high)`` with ``low <= x * 2**precision <= high`` for a precision in context."""
Real: TypeAlias = Callable[[int], Enclosure]
"""A real number, given by its enclosure at any requested precision."""


def rational(value: Number) -> Fraction:
    """The rational number a person means: ``0.1`` is read as 1/10, not as its nearest double.

    Budgets and privacy parameters are read this way, so that ten times 0.1 is exactly 1.
    """
    if isinstance(value, float):
        return Fraction(repr(float(value)))
    return Fraction(value)


def round_up(value: Fraction) -> float:
    """The smallest double that is not below ``value`` (infinity beyond the largest double)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if math.isinf(nearest) or Fraction(nearest) >= value:
        return nearest
    return math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """The largest double that is not above ``value``."""
    return -round_up(-value)


def root_down(value: Fraction) -> Fraction:
    """The square root, rounded down by less than a relative 2**-64 (exact for squares)."""
    # Scale so that the integer root has at least 65 bits.
    shift = max(0, 66 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = (value.numerator << 2 * shift) // value.denominator
    root = Fraction(math.isqrt(scaled), 1 << shift)
    exact = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return exact if exact * exact == value else root


def in_steps(value: float | Fraction, exponent: int) -> Fraction:
    """``value / 2**exponent`` without rounding."""
    exact = value if isinstance(value, Fraction) else Fraction(float(value))
    return exact / Fraction(2) ** exponent


def ceil_div(numerator: int, denominator: int) -> int:
    """``ceil(numerator / denominator)`` for a positive denominator."""
    return -(-numerator // denominator)


@lru_cache(maxsize=4096)
def exp_minus(exponent: Fraction, precision: int) -> Enclosure:
    """Enclose ``exp(-exponent) * 2**precision`` for a rational ``exponent >= 0``."""
    # Proof: with `x = exponent / 2**halvings <= 1/2` the series of `exp(x)` has positive terms;
    #   flooring them gives a lower bound, rounding them up and adding the last term once more (the
    #   remainder is below it, because the terms at least halve) an upper bound. The reciprocal
    #   swaps the two, and squaring `halvings` times keeps the order of non-negative bounds.
    if exponent < 0:
        raise ValueError("exp_minus takes a non-negative exponent")
    if exponent == 0:
        return 1 << precision, 1 << precision
    halvings = max(0, (exponent.numerator // exponent.denominator).bit_length() + 1)
    # Each squaring at most doubles the absolute error: guard bits for all of them.
    work = precision + halvings + 16
    one = 1 << work
    numerator = exponent.numerator
    denominator = exponent.denominator << halvings
    low = term_low = one
    high = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = term_low * numerator // (denominator * n)
        term_high = ceil_div(term_high * numerator, denominator * n)
        low += term_low
        high += term_high
    high += term_high
    low, high = (one << work) // high, ceil_div(one << work, low)
    for _ in range(halvings):
        low, high = low * low >> work, ceil_div(high * high, one)
    shift = work - precision
    return low >> shift, min(ceil_div(high, 1 << shift), 1 << precision)


def light_share(exponent: Fraction, precision: int, *, light: int, heavy: int) -> Enclosure:
    """Enclose ``light r / (heavy + light r) * 2**precision`` with ``r = exp(-exponent)``.

    The share of the light ones if ``heavy`` others weigh ``exp(exponent)`` times as much each.
    """
    work = precision + (light + heavy).bit_length() + 8
    one = heavy << work
    low, high = (light * end for end in exp_minus(exponent, work))
    return (low << precision) // (one + low), ceil_div(high << precision, one + high)
