"""A column of private numbers between declared bounds, as sorted whole steps of a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.check import bounds
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.core.grid import exponent_below, power_of_two
from discreet.mechanisms.values import read
from discreet.noise.law import Ints

# Steps between the bounds: by default, and at most (sums of squares then fit).
_RESOLUTION = 26
_FAR = 38
_LARGEST_SPAN = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Values are clipped to the bounds and rounded to multiples of ``2**exponent``.

    Both act on each value by itself, so neighbours stay neighbours, and no digit below the grid
    survives. Steps are counted from the lower bound.
    """

    first: int
    """The lower bound, in steps from zero."""
    span: int
    """Steps between the bounds."""
    exponent: int

    @classmethod
    def of(cls, lower: Number, upper: Number, grid: Number | None) -> Column:
        """The bounds, moved outward to the grid: ``grid``, or fine enough for most purposes."""
        low, high = bounds(lower, upper)
        if grid is None:
            # Not finer than a double is: numbers far from zero have fewer digits behind the point.
            far = exponent_below(max(abs(low), abs(high)), resolution=_FAR)
            exponent = max(far, exponent_below(high - low, resolution=_RESOLUTION))
        else:
            exponent = power_of_two(grid)
        step = Fraction(2) ** exponent
        first = math.floor(low / step)
        span = math.ceil(high / step) - first
        if max(span, abs(first)) > _LARGEST_SPAN:
            raise InvalidArgument(
                "The bounds must lie within 2**40 steps of zero and of each other: "
                "use a coarser grid."
            )
        return cls(first=first, span=span, exponent=exponent)

    def refined(self) -> tuple[Column, int]:
        """The same bounds on a grid of the default fineness, and how many of its steps are one."""
        stride = 1 << max(0, _RESOLUTION - self.span.bit_length())
        while max(abs(self.first), self.span) * stride > _LARGEST_SPAN:
            stride //= 2
        exponent = self.exponent - stride.bit_length() + 1
        return Column(first=self.first * stride, span=self.span * stride, exponent=exponent), stride

    @property
    def step(self) -> float:
        """Size of a step."""
        return 2.0**self.exponent

    def sorted(self, values: ArrayLike, *, rows: int | None = None) -> Ints:
        """Private values as sorted steps from the lower bound."""
        given = read(values)
        if len(given.shape) != 1:
            raise OutOfDomain("values must be a sequence of numbers, one for each row.")
        if rows is not None and given.size != rows:
            raise OutOfDomain(f"values must have the declared number of rows, {rows}.")
        reals = given.real if given.whole is None else given.whole.astype(np.float64)
        assert reals is not None  # noqa: S101 - Values holds one or the other
        codes = self.places(reals)
        codes.sort()
        return codes

    def places(self, values: NDArray[np.float64]) -> Ints:
        """Private numbers, not nan, as steps from the lower bound, each by itself."""
        with np.errstate(all="ignore"):  # a warning would tell that a value is huge, or tiny
            steps = np.floor(np.ldexp(values, -self.exponent) + 0.5)
        codes: Ints = np.clip(steps, self.first, self.first + self.span).astype(np.int64)
        codes -= self.first
        return codes

    def number(self, steps: int) -> float:
        """The real number so many steps above the lower bound."""
        return (self.first + steps) * self.step
