"""Private inputs at the door: whole or real numbers, finite, in range; the shape is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.errors import OutOfDomain
from discreet.noise.law import Floats, Ints

# Inputs up to here plus saturated noise fit 64 bits, and the sum is clamped to LARGEST_OUTPUT:
# whatever the input, saturated noise leaves the range, so the release is exactly the clamped sum.
LARGEST_INPUT = 1 << 61
LARGEST_OUTPUT = 1 << 62
_LARGEST_DOUBLE = 1 << 53

Released: TypeAlias = Any
"""A Python number for a scalar input, an array of the same shape for an array."""


@dataclass(frozen=True, slots=True)
class Values:
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


def read(value: ArrayLike) -> Values:
    """Check a private input. Nothing of it appears in an error."""
    given: object = value
    if type(given) is int and abs(given) <= LARGEST_INPUT:  # by far the commonest input
        return Values(np.array([given], dtype=np.int64), None, ())
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise OutOfDomain("value must be a number or a rectangular array of numbers.") from None
    if array.size == 0:
        empty = np.empty(0, dtype=np.float64)
        if array.dtype.kind in "iu":
            return Values(empty.astype(np.int64), None, array.shape)
        return Values(None, empty, array.shape)
    if array.dtype.kind in "iu":
        limit = LARGEST_INPUT
        if array.max() > limit or (array.dtype.kind == "i" and array.min() < -limit):
            raise OutOfDomain("value must lie within -2**61 and 2**61: clip it to declared bounds.")
        return Values(np.ascontiguousarray(array, dtype=np.int64).ravel(), None, array.shape)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        if not np.isfinite(array).all():
            raise OutOfDomain("value must be finite: replace NaN and infinity by a declared value.")
        return Values(None, np.ascontiguousarray(array, dtype=np.float64).ravel(), array.shape)
    raise OutOfDomain(f"value must hold integers or doubles, got dtype {array.dtype}.")


def check_range(reals: Floats, step: float) -> None:
    """Refuse real values that a grid of ``step`` cannot hold."""
    if reals.size and not np.abs(reals).max() <= LARGEST_INPUT * step:
        raise OutOfDomain(
            f"value must lie within {LARGEST_INPUT * step:g} of zero on a grid of {step:g}: "
            "clip it to declared bounds or give a coarser grid."
        )


def clamped_sum(values: Ints, noise: Ints) -> Ints:
    """``values + noise`` clamped to the range of a release; ``noise`` is overwritten."""
    noise += values
    return clamped(noise)


def clamped(steps: Ints) -> Ints:
    """Steps within the range of a release, in place."""
    np.minimum(steps, LARGEST_OUTPUT, out=steps)
    return np.maximum(steps, -LARGEST_OUTPUT, out=steps)
