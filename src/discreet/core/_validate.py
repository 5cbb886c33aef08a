"""Checks of public parameters, and the granularity of real-valued releases: done once."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from discreet.core._rational import Number, rational
from discreet.core.errors import InvalidArgument

# ── Public parameters ────────────────────────────────────────────────────────────────────────────
# Validation of public parameters, once, on entry; inner code trusts the types.


Word = TypeVar("Word")

_MOST_DIGITS = 4000
"""A few letters of a decimal could ask for a number that no memory holds."""

_LARGEST = Fraction(10) ** 300
_SMALLEST = Fraction(1, 10**307)
"""Beyond them no double holds a number, or not all of its digits; forecasts are doubles."""

_MODERATE = Fraction(10) ** 70

_T = TypeVar("_T")
_K = TypeVar("_K")


def finite(name: str, value: object) -> Fraction:
    """A finite rational, or an error that names the argument."""
    if type(value) is Fraction:  # as nearly all of our own numbers are
        exact = value
    elif type(value) is int:
        exact = Fraction(value)
    else:
        number = _number(name, value)
        endless = isinstance(number, float) and not math.isfinite(number)
        if endless or (isinstance(number, Decimal) and not number.is_finite()):
            raise InvalidArgument(f"{name} must be finite, got {number}.")
        if isinstance(number, Decimal) and abs(number.adjusted()) > _MOST_DIGITS:
            raise InvalidArgument(
                f"{name} must have at most {_MOST_DIGITS:,} digits, got {number}."
            )
        exact = rational(number)
    if abs(exact) > _LARGEST:
        raise InvalidArgument(f"{name} must be at most 1e300 in size.")
    return exact


def exact_value(name: str, value: object) -> Fraction:
    """A finite number as it is: a double is not read as the digits it prints with."""
    exact = finite(name, value)
    return exact if type(value) is Fraction else Fraction(_number(name, value))


def positive(name: str, value: object) -> Fraction:
    """A finite rational above zero."""
    number = finite(name, value)
    if number <= 0:
        raise InvalidArgument(f"{name} must be positive, got {value}.")
    if number < _SMALLEST:
        raise InvalidArgument(f"{name} must be at least 1e-307, got {value}.")
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


def bounds(lower: object, upper: object) -> tuple[Fraction, Fraction]:
    """Two finite rationals, the first below the second."""
    low, high = finite("lower", lower), finite("upper", upper)
    if low >= high:
        raise InvalidArgument(f"lower must be below upper, got {lower} and {upper}.")
    return low, high


def moderate(name: str, number: Fraction) -> Fraction:
    """A number whose fourth power, or its inverse, is still a double; or zero."""
    if number and not 1 <= abs(number) * _MODERATE <= _MODERATE**2:
        raise InvalidArgument(f"{name} must lie between 1e-70 and 1e70 in size: change the unit.")
    return number


def one_of(name: str, value: Word, allowed: Iterable[str]) -> Word:
    """One of two or more words."""
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        raise InvalidArgument(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")
    return value


def count(name: str, value: object, *, minimum: int = 1) -> int:
    """A whole number, ``minimum`` or above (booleans and floats are refused)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidArgument(f"{name} must be a whole number, got {type(value).__name__}.")
    number = int(value)
    if number < minimum:
        raise InvalidArgument(f"{name} must be at least {minimum}, got {number}.")
    if number > _LARGEST:
        raise InvalidArgument(f"{name} must be at most 1e300.")
    return number


def flag(name: str, value: object) -> bool:
    """True or False themselves: "no" and "False" are true to Python."""
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy has its own
        raise InvalidArgument(f"{name} must be True or False, got {type(value).__name__}.")
    return bool(value)


def as_tuple(name: str, values: Iterable[_T]) -> tuple[_T, ...]:
    """The values of a list; one number or one text, which people write for a list of one, is none.

    A text would be taken apart into letters.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{name} must be a list, got {type(values).__name__}.")
    try:
        return tuple(values)
    except TypeError as error:  # an array without axes says that it can be iterated
        raise InvalidArgument(f"{name} must be a list, got one value.") from error


def as_mapping(name: str, values: Mapping[_K, _T]) -> Mapping[_K, _T]:
    """A map, such as from names to declarations."""
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{name} must be a dict, got {type(values).__name__}.")
    return values


def two_level(parts: object) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
    """Weights, shares and differences of a two-level randomizer, equal parts merged, in order."""
    merged: dict[tuple[Fraction, Fraction], Fraction] = {}
    for part in parts if isinstance(parts, tuple) else ():
        if not isinstance(part, tuple) or len(part) != 3:
            raise InvalidArgument("Each of parts must be (weight, share, differ).")
        share = probability("share", part[1], zero=False, one=False)
        differ = non_negative("differ", part[2])
        if differ > min(share, 1 - share):
            raise InvalidArgument(
                f"differ must not exceed share={share} nor 1 - share, got {part[2]}."
            )
        weight = probability("weight", part[0], zero=False)
        merged[share, differ] = merged.get((share, differ), Fraction(0)) + weight
    if sum(merged.values()) != 1:
        raise InvalidArgument("The weights of parts must sum to exactly 1.")
    return tuple(sorted((weight, *key) for key, weight in merged.items()))


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


# ── Granularity ──────────────────────────────────────────────────────────────────────────────────


# Steps in one unit of noise scale: rounding adds less than a 10**-12 part to the variance.
_RESOLUTION = 20
_FEWEST_STEPS = 16


def exponent_below(scale: Fraction, *, resolution: int = _RESOLUTION) -> int:
    """The exponent of the largest power of two not above ``scale / 2**resolution``."""
    # The bit lengths bound log2(scale) within one; the comparison settles it.
    guess = scale.numerator.bit_length() - scale.denominator.bit_length()
    exponent = guess if Fraction(2) ** guess <= scale else guess - 1
    return exponent - resolution


def power_of_two(granularity: Number) -> int:
    """The exponent of a declared grid."""
    positive("granularity", granularity)
    step = exact_value("granularity", granularity)  # a power of two is exactly its double
    exponent = exponent_below(step, resolution=0)
    if Fraction(2) ** exponent != step:
        raise InvalidArgument(f"granularity must be a power of two, for example {2.0**exponent:g}.")
    return exponent


def granularity_exponent(granularity: Number | None, scale: Fraction) -> int:
    """The exponent of the grid of a mechanism: declared, or fine enough for its noise."""
    if granularity is None:
        return exponent_below(scale)
    exponent = power_of_two(granularity)
    if Fraction(2) ** exponent * _FEWEST_STEPS > scale:
        finest = math.ldexp(1.0, exponent_below(scale / _FEWEST_STEPS, resolution=0))
        raise InvalidArgument(
            f"granularity must be at most a sixteenth of the noise scale: {finest:g} or below."
        )
    return exponent
