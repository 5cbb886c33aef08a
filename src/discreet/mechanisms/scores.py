"""Scores of candidates on a common integer scale, with the sensitivity that this leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.core.grid import exponent_below
from discreet.mechanisms.sensitivity import Lattice, declared, lattice, whole
from discreet.mechanisms.values import check_range, read
from discreet.noise.law import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scores as multiples of ``2**exponent``; one unit moves a score by at most ``shift`` steps.

    Rounding half upwards moves two numbers that are ``d`` steps apart to integers at most
    ``ceil(d)`` apart, so ``shift = ceil(sensitivity / step)`` holds for each score by itself.
    """

    exponent: int
    shift: int

    @classmethod
    def of(cls, sensitivity: Number, *, on: Lattice | None = None) -> Scale:
        """Whole scores for a whole sensitivity, else a grid of about a millionth of it.

        ``on="reals"`` asks for the grid in any case, ``on="integers"`` for whole scores.
        """
        moved = declared(sensitivity)
        lattice(on)
        if whole(moved) is not None and on != "reals":
            return cls(exponent=0, shift=moved.numerator)
        if on == "integers":
            raise InvalidArgument(f"on='integers' needs a whole sensitivity, got {sensitivity}.")
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
