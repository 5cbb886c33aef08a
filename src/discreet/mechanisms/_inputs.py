"""What mechanisms take: sensitivities in a named norm, private values, scores of candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Number
from discreet.core._validate import count, exact_value, exponent_below, one_of, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise.distribution import Floats, Ints

# ── Sensitivities ────────────────────────────────────────────────────────────────────────────────
# Sensitivities: positive, in a named norm, converted between norms explicitly.


Norm: TypeAlias = Literal["l1", "l2", "linf"]
Domain: TypeAlias = Literal["integers", "reals"]
"""Where a mechanism's outputs lie."""
# A root rounded to a double may fall short of the true one by a relative 2**-53.
_ROOT_ROUNDING = Fraction(1, 1 << 50)


def exact_sensitivity(sensitivity: Number) -> Fraction:
    """A sensitivity as given: a double stands for itself, it was computed, not typed."""
    positive("sensitivity", sensitivity)
    return exact_value("sensitivity", sensitivity)


def check_domain(domain: Domain | None) -> None:
    """Refuse any other word for where outputs lie."""
    if domain is not None:
        one_of("domain", domain, get_args(Domain))


def l1(sensitivity: Number, *, norm: Norm, dimension: int | None) -> Fraction:
    """A bound on the L1 sensitivity: times sqrt(d) from L2, times d from the maximum norm."""
    number = exact_sensitivity(sensitivity)
    match one_of("norm", norm, get_args(Norm)):
        case "l1":
            return number
        case "l2":
            return number * _root_up(_dimension(norm, dimension))
        case "linf":
            return number * _dimension(norm, dimension)


def l2_squared(sensitivity: Number, *, norm: Norm, dimension: int | None) -> Fraction:
    """A bound on the squared L2 sensitivity: L1 bounds it, times d from the maximum norm."""
    square = exact_sensitivity(sensitivity) ** 2
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


# ── Private values ───────────────────────────────────────────────────────────────────────────────
# Private inputs: whole or real numbers, finite, in range; the shape is remembered.


# Inputs up to here plus saturated noise fit 64 bits, and the sum is clamped to LARGEST_OUTPUT:
# whatever the input, saturated noise leaves the range, so the release is exactly the clamped sum.
LARGEST_INPUT = 1 << 61
LARGEST_OUTPUT = 1 << 62
_LARGEST_DOUBLE = 1 << 53

Released: TypeAlias = Any
"""A Python number for a scalar input, an array of the same shape for an array."""


@dataclass(frozen=True, slots=True)
class InputValues:
    """A private input as a flat array: `whole` or `real`, never both."""

    whole: Ints | None
    real: Floats | None
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def doubles(self) -> Floats:
        """The numbers as doubles, none rounded: rounding could move two further apart."""
        if self.whole is None:
            assert self.real is not None  # noqa: S101 - Values holds one or the other
            return self.real
        if self.whole.size and int(np.abs(self.whole).max()) > _LARGEST_DOUBLE:
            raise OutOfDomain(
                "value must lie within -2**53 and 2**53 if it is whole and the sensitivity is "
                "not, or on='reals': use a coarser unit."
            )
        return self.whole.astype(np.float64)

    def restore(self, flat: NDArray[np.int64] | NDArray[np.float64]) -> Released:
        """The released numbers in the shape of the input."""
        return flat.reshape(self.shape) if self.shape else flat.item()


def read(value: ArrayLike) -> InputValues:
    """Check a private input. Nothing of it appears in an error."""
    given: object = value
    if type(given) is int and abs(given) <= LARGEST_INPUT:  # by far the commonest input
        return InputValues(np.array([given], dtype=np.int64), None, ())
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise OutOfDomain("value must be a number or a rectangular array of numbers.") from None
    if array.size == 0:
        empty = np.empty(0, dtype=np.float64)
        if array.dtype.kind in "iu":
            return InputValues(empty.astype(np.int64), None, array.shape)
        return InputValues(None, empty, array.shape)
    if array.dtype.kind in "iu":
        limit = LARGEST_INPUT
        if array.max() > limit or (array.dtype.kind == "i" and array.min() < -limit):
            raise OutOfDomain("value must lie within -2**61 and 2**61: clip it to declared bounds.")
        return InputValues(np.ascontiguousarray(array, dtype=np.int64).ravel(), None, array.shape)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        if not np.isfinite(array).all():
            raise OutOfDomain("value must be finite: replace NaN and infinity by a declared value.")
        return InputValues(None, np.ascontiguousarray(array, dtype=np.float64).ravel(), array.shape)
    raise OutOfDomain(f"value must hold integers or doubles, got dtype {array.dtype}.")


def check_column(values: object) -> None:
    """Refuse a container that is not one value for each row, by its own shape alone."""
    shape = getattr(values, "shape", None)
    flat = len(shape) == 1 if isinstance(shape, tuple) else not isinstance(values, str | bytes)
    if not flat or not hasattr(values, "__len__"):
        raise OutOfDomain("values must be a sequence of numbers, one for each row.")


def check_range(reals: Floats, step: float) -> None:
    """Refuse real values that a grid of ``step`` cannot hold."""
    if reals.size and not np.abs(reals).max() <= LARGEST_INPUT * step:
        raise OutOfDomain(
            f"value must lie within {LARGEST_INPUT * step:g} of zero on a grid of {step:g}: "
            "clip it to declared bounds or give a coarser grid."
        )


def add_clamped(values: Ints, noise: Ints) -> Ints:
    """``values + noise`` clamped to the range of a release; ``noise`` is overwritten."""
    noise += values
    return clamp_steps(noise)


def clamp_steps(steps: Ints) -> Ints:
    """Steps within the range of a release, in place."""
    np.minimum(steps, LARGEST_OUTPUT, out=steps)
    return np.maximum(steps, -LARGEST_OUTPUT, out=steps)


# ── Scores of candidates ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """Scores as multiples of ``2**exponent``; one unit moves a score by at most ``shift`` steps.

    Rounding half upwards moves two numbers that are ``d`` steps apart to integers at most
    ``ceil(d)`` apart, so ``shift = ceil(sensitivity / step)`` holds for each score by itself.
    """

    exponent: int
    shift: int

    @classmethod
    def of(cls, sensitivity: Number, *, domain: Domain | None = None) -> ScoreScale:
        """Whole scores for a whole sensitivity, else a grid of about a millionth of it.

        ``on="reals"`` asks for the grid in any case, ``on="integers"`` for whole scores.
        """
        moved = exact_sensitivity(sensitivity)
        check_domain(domain)
        if whole(moved) is not None and domain != "reals":
            return cls(exponent=0, shift=moved.numerator)
        if domain == "integers":
            raise InvalidArgument(
                f"domain='integers' needs a whole sensitivity, got {sensitivity}."
            )
        exponent = exponent_below(moved)
        return cls(exponent=exponent, shift=math.ceil(moved / Fraction(2) ** exponent))

    @property
    def step(self) -> float:
        """Size of a step."""
        return 2.0**self.exponent

    def read(self, scores: ArrayLike, *, name: str = "scores") -> Ints:
        """Private scores in steps."""
        values = read(scores)
        if len(values.shape) != 1 or values.size == 0:
            raise OutOfDomain(f"{name} must be a non-empty sequence of numbers.")
        if values.whole is not None and self.exponent == 0:
            return values.whole
        reals = values.doubles
        check_range(reals, self.step)
        # floor(x + 1/2) without the rounding of that sum: floor((floor(2x) + 1) / 2).
        doubled = np.floor(np.ldexp(reals, 1 - self.exponent)).astype(np.int64)
        return (doubled + 1) >> 1
