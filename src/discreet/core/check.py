"""Validation of public parameters, once, at the door; inner code trusts the types."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number, rational


def finite(name: str, value: object) -> Fraction:
    """A finite rational, or an error that names the argument."""
    number = _number(name, value)
    if isinstance(number, (float, Decimal)) and not math.isfinite(number):
        raise InvalidArgument(f"{name} must be finite, got {number}.")
    return rational(number)


def positive(name: str, value: object) -> Fraction:
    """A finite rational above zero."""
    number = finite(name, value)
    if number <= 0:
        raise InvalidArgument(f"{name} must be positive, got {value}.")
    return number


def non_negative(name: str, value: object) -> Fraction:
    """A finite rational, zero or above."""
    number = finite(name, value)
    if number < 0:
        raise InvalidArgument(f"{name} must not be negative, got {value}.")
    return number


def probability(name: str, value: object, *, zero: bool = True, one: bool = True) -> Fraction:
    """A rational in [0, 1]; ``zero=False`` or ``one=False`` opens that end."""
    number = finite(name, value)
    above = number > 0 or (zero and number == 0)
    below = number < 1 or (one and number == 1)
    if not (above and below):
        left, right = "[" if zero else "(", "]" if one else ")"
        raise InvalidArgument(f"{name} must lie in {left}0, 1{right}, got {value}.")
    return number


def count(name: str, value: object, *, minimum: int = 1) -> int:
    """A whole number, ``minimum`` or above (booleans and floats are refused)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidArgument(f"{name} must be a whole number, got {type(value).__name__}.")
    number = int(value)
    if number < minimum:
        raise InvalidArgument(f"{name} must be at least {minimum}, got {number}.")
    return number


def _number(name: str, value: object) -> Number:
    if isinstance(value, bool):
        raise InvalidArgument(f"{name} must be a number, got a boolean.")
    if isinstance(value, (int, float, Fraction, Decimal)):
        return value
    if isinstance(value, numbers.Integral):  # NumPy integers
        return int(value)
    if isinstance(value, numbers.Real):  # NumPy floats
        return float(value)
    raise InvalidArgument(f"{name} must be a number, got {type(value).__name__}.")
