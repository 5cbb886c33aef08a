"""The public grid of real-valued releases: a power of two, chosen from public numbers only."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.core.check import itself, positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number

# Steps in one unit of noise scale: rounding adds less than a 10**-12 part to the variance.
_RESOLUTION = 20
_FEWEST_STEPS = 16


def exponent_below(scale: Fraction, *, resolution: int = _RESOLUTION) -> int:
    """The exponent of the largest power of two not above ``scale / 2**resolution``."""
    # The bit lengths bound log2(scale) within one; the comparison settles it.
    guess = scale.numerator.bit_length() - scale.denominator.bit_length()
    exponent = guess if Fraction(2) ** guess <= scale else guess - 1
    return exponent - resolution


def power_of_two(grid: Number) -> int:
    """The exponent of a declared grid."""
    positive("grid", grid)
    step = itself("grid", grid)  # a power of two is exactly its double
    exponent = exponent_below(step, resolution=0)
    if Fraction(2) ** exponent != step:
        raise InvalidArgument(f"grid must be a power of two, for example {2.0**exponent:g}.")
    return exponent


def grid_exponent(grid: Number | None, scale: Fraction) -> int:
    """The exponent of the grid of a mechanism: declared, or fine enough for its noise."""
    if grid is None:
        return exponent_below(scale)
    exponent = power_of_two(grid)
    if Fraction(2) ** exponent * _FEWEST_STEPS > scale:
        finest = math.ldexp(1.0, exponent_below(scale / _FEWEST_STEPS, resolution=0))
        raise InvalidArgument(
            f"grid must be at most a sixteenth of the noise scale: {finest:g} or below."
        )
    return exponent
