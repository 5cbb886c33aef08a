"""What mechanisms take: sensitivities in a named norm, private values, scores of candidates."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.boundary.values import as_number, as_whole, doubles, listed, numeric_array, steps
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


def default_domain(sensitivity: Number, moved: Fraction, granularity: Number | None) -> Domain:
    """Where outputs lie if nobody says it: integers for a sensitivity that is a whole number.

    A real number that moves by at most a whole ``s`` moves by at most ``s`` after it is rounded,
    halves up: floor(x + s + 1/2) = floor(x + 1/2) + s, and floor is monotone. ``moved`` is the
    sensitivity in the mechanism's norm.
    """
    given = whole(exact_sensitivity(sensitivity)) is not None and whole(moved) is not None
    return "integers" if given and granularity is None else "reals"


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
_LARGEST_REAL = float(np.finfo(np.float64).max)

Released: TypeAlias = Any
"""A Python number for a scalar input, an array of the same shape for an array."""


def check_column(values: object) -> None:
    """Refuse a container that is not one value for each row, by its own shape alone."""
    shape = getattr(values, "shape", None)
    flat = len(shape) == 1 if isinstance(shape, tuple) else not isinstance(values, str | bytes)
    if not flat or not hasattr(values, "__len__"):
        raise OutOfDomain("values must be a sequence of numbers, one for each row.")


def read_column(values: object) -> Floats:
    """One double for each row of a private column, each read by itself; NaN for a misfit."""
    check_column(values)
    return doubles(values)


# Numbers that no sensitivity speaks of. One text for all of them: it tells no more than that.
NO_NUMBER = (
    "value must be a number or a rectangular array of numbers; NaN, missing values and texts are "
    "none: replace them by a declared value first."
)
_ROUNDED_VECTOR = (
    "This mechanism releases integers, because its sensitivity is whole, and got a vector of "
    "reals: rounding each coordinate can add to a sensitivity. Give domain='reals' to keep "
    "fractions, or domain='integers' to round, with the sensitivity of the rounded vector."
)


def read_numbers(value: object) -> NDArray[Any]:
    """Private numbers as they are: an array of a numeric type, or exact Python numbers.

    An array, a series or a NumPy scalar keeps its type. Everything else is read value by value.
    """
    array = numeric_array(value)
    if array is not None and (array.dtype.kind != "f" or array.dtype.itemsize <= 8):
        return array
    if array is not None and array.ndim:
        raise OutOfDomain(f"value must hold integers or doubles, got dtype {array.dtype}.")
    if isinstance(value, list | tuple):
        if set(map(type, value)) == {int}:  # counts
            with suppress(OverflowError):
                return np.fromiter(value, np.int64, len(value))
        values = _objects(value)
    elif callable(getattr(value, "to_list", None)) or callable(getattr(value, "to_pylist", None)):
        values = _objects(listed(value))
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O":
        values = value
    else:
        return _object_array([_exact_number(value)], ())
    flat = values.reshape(-1).tolist()
    kinds = set(map(type, flat))
    if kinds == {float} or (kinds and kinds <= {int, bool}):
        array = np.array(flat)
        if array.dtype.kind in "biu" or kinds == {float}:  # else an integer beyond 64 bits
            return array.reshape(values.shape)
    return _object_array([_exact_number(one) for one in flat], values.shape)


def _objects(values: object) -> NDArray[Any]:
    """Nested lists as an array of what they hold: no common type is looked for."""
    try:
        return np.asarray(values, dtype=object)
    except Exception:  # noqa: BLE001 - ragged, or code of its own: the text could quote values
        raise OutOfDomain(NO_NUMBER) from None


def _object_array(values: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _exact_number(value: object) -> int | float | Fraction:
    number = as_number(value)
    if number is None:
        raise OutOfDomain(NO_NUMBER)
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())  # more digits than a double has
    return number


def read_integers(
    value: object, *, exponent: int = 0, rounds: bool = True
) -> tuple[Ints, tuple[int, ...]]:
    """Private numbers in steps of ``2**exponent``, flat, and the shape they came in.

    Each is rounded to the nearest step, halves up, and clamped to the largest: all by itself.
    Without ``rounds`` a vector must be of an integer type.
    """
    if type(value) is int and exponent == 0 and -LARGEST_INPUT <= value <= LARGEST_INPUT:
        return np.array([value], dtype=np.int64), ()  # by far the commonest input
    array = read_numbers(value)
    if not rounds and array.ndim and array.size and not _is_whole_type(array):
        raise OutOfDomain(_ROUNDED_VECTOR)
    if exponent == 0 and array.dtype.kind in "iu" and _fits(array, LARGEST_INPUT):
        return np.ascontiguousarray(array, dtype=np.int64).reshape(-1), array.shape
    _refuse_nan(array)
    found = steps(
        array.reshape(-1),
        exponent=exponent,
        lower=-LARGEST_INPUT,
        upper=LARGEST_INPUT,
        misfit=0,
    )
    return found, array.shape


def read_whole(value: object) -> tuple[Ints, tuple[int, ...]]:
    """Whole numbers as they are, flat, and the shape they came in; what is none is refused."""
    array = read_numbers(value)
    if array.dtype.kind in "biu" and _fits(array, LARGEST_INPUT):
        return array.astype(np.int64).reshape(-1), array.shape
    found = [as_whole(one) for one in array.reshape(-1).tolist()]
    if any(one is None or abs(one) > LARGEST_INPUT for one in found):
        raise OutOfDomain("value must hold whole numbers within -2**61 and 2**61.")
    return np.array(found, dtype=np.int64), array.shape


def read_reals(value: object, *, exponent: int) -> tuple[Floats | NDArray[Any], tuple[int, ...]]:
    """Private numbers for a grid of ``2**exponent``, flat and not rounded, and their shape.

    Doubles, or exact Python numbers where a double would round one of them: that could move two
    numbers further apart. What lies beyond the grid is clamped to its ends.
    """
    limit = largest_real(exponent)
    if type(value) is float and -limit <= value <= limit:
        return np.array([value]), ()
    array = read_numbers(value)
    flat = array.reshape(-1)
    if flat.dtype.kind in "iu" and not _fits(flat, _LARGEST_DOUBLE):
        flat = flat.astype(object)
    if flat.dtype.kind == "O":
        ends = Fraction(-limit), Fraction(limit)
        return _object_array([_between(one, *ends) for one in flat], flat.shape), array.shape
    with np.errstate(all="ignore"):
        reals = np.ascontiguousarray(flat, dtype=np.float64)
        if reals.size and not np.abs(reals).max() <= limit:
            _refuse_nan(reals)
            reals = np.clip(reals, -limit, limit)
    return reals, array.shape


def largest_real(exponent: int) -> float:
    """The largest number that a release on a grid of ``2**exponent`` is about."""
    reach = exponent + LARGEST_INPUT.bit_length() - 1
    return math.ldexp(1.0, reach) if reach < 1024 else _LARGEST_REAL


def _between(number: float | Fraction, low: Fraction, high: Fraction) -> Fraction:
    """A number clamped, exactly; infinities are the ends."""
    return low if number <= low else high if number >= high else Fraction(number)


def _is_whole_type(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "O":
        return all(isinstance(one, int) for one in array.reshape(-1))
    return array.dtype.kind != "f"


def _fits(array: NDArray[Any], most: int) -> bool:
    """Whether integers lie within ``most`` of zero."""
    return array.size == 0 or (int(array.max()) <= most and int(array.min()) >= -most)


def _refuse_nan(array: NDArray[Any]) -> None:
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise OutOfDomain(NO_NUMBER)


def restore(flat: NDArray[np.int64] | NDArray[np.float64], shape: tuple[int, ...]) -> Released:
    """The released numbers in the shape of the input."""
    return flat.reshape(shape) if shape else flat.item()


def add_clamped(values: Ints, noise: Ints) -> Ints:
    """``values + noise`` clamped to the range of a release; ``noise`` is overwritten."""
    noise += values
    return clamp_steps(noise)


def clamp_steps(steps: Ints, *, exponent: int = 0) -> Ints:
    """Steps within the range of a release, in place: and of doubles, where that is smaller."""
    most = LARGEST_OUTPUT
    if exponent + most.bit_length() > 1024:
        most = math.floor(Fraction(_LARGEST_REAL) / (1 << exponent))
    np.minimum(steps, most, out=steps)
    return np.maximum(steps, -most, out=steps)


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

        ``domain="reals"`` asks for the grid in any case, ``domain="integers"`` for whole scores.
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
        """Private scores in steps: each is rounded and clamped by itself."""
        found, shape = read_integers(scores, exponent=self.exponent)
        if len(shape) != 1 or found.size == 0:
            raise OutOfDomain(f"{name} must be a non-empty sequence of numbers.")
        return found

    def read_one(self, value: object, *, name: str = "value") -> Ints:
        """One private number in steps."""
        found, shape = read_integers(value, exponent=self.exponent)
        if shape:
            raise OutOfDomain(f"{name} must be one number: this noise is made for a scalar.")
        return found
