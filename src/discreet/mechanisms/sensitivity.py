"""Sensitivities at the door: positive, in a named norm, converted between norms explicitly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from discreet.core.check import count, itself, one_of, positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number

Norm: TypeAlias = Literal["l1", "l2", "linf"]
Lattice: TypeAlias = Literal["integers", "reals"]
"""Where a mechanism's outputs lie."""
# A root rounded to a double may fall short of the true one by a relative 2**-53.
_ROOT_ROUNDING = Fraction(1, 1 << 50)


def declared(sensitivity: Number) -> Fraction:
    """A sensitivity as given: a double stands for itself, it was computed, not typed."""
    positive("sensitivity", sensitivity)
    return itself("sensitivity", sensitivity)


def lattice(on: Lattice | None) -> None:
    """Refuse any other word for where outputs lie."""
    if on is not None:
        one_of("on", on, get_args(Lattice))


def l1(sensitivity: Number, *, norm: Norm, dimension: int | None) -> Fraction:
    """A bound on the L1 sensitivity: times sqrt(d) from L2, times d from the maximum norm."""
    number = declared(sensitivity)
    match one_of("norm", norm, get_args(Norm)):
        case "l1":
            return number
        case "l2":
            return number * _root_up(_dimension(norm, dimension))
        case "linf":
            return number * _dimension(norm, dimension)


def l2_squared(sensitivity: Number, *, norm: Norm, dimension: int | None) -> Fraction:
    """A bound on the squared L2 sensitivity: L1 bounds it, times d from the maximum norm."""
    square = declared(sensitivity) ** 2
    match one_of("norm", norm, get_args(Norm)):
        case "l1" | "l2":
            return square
        case "linf":
            return square * _dimension(norm, dimension)


def whole(number: Fraction) -> int | None:
    """The integer it is, or None."""
    return number.numerator if number.denominator == 1 else None


def whole_square(square: Fraction) -> int | None:
    """The integer that a squared sensitivity is, allowing for the rounding of a square root.

    Whole numbers move by a whole squared distance, so rounding to the integer above is safe.
    """
    nearest = round(square)
    if nearest >= 1 and abs(square - nearest) <= nearest * _ROOT_ROUNDING:
        return nearest
    return None


def _dimension(norm: str, dimension: int | None) -> int:
    if dimension is None:
        raise InvalidArgument(f"dimension is needed to convert a sensitivity in norm {norm!r}.")
    return count("dimension", dimension)


def _root_up(number: int) -> Fraction:
    """The root, exact for squares, else rounded up."""
    root = math.isqrt(number)
    if root * root == number:
        return Fraction(root)
    return Fraction(math.isqrt(number << 128) + 1, 1 << 64)
