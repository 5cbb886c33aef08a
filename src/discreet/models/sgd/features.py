"""Features on a public grid: every row becomes whole numbers, by constants that are declared.

A row is clipped to its bounds, scaled, led by a constant 1 for the intercept, rounded to steps of
``2**-FEATURE_BITS`` and, if it is longer than ``row_norm``, shrunk to that length.

Everything is a function of one row alone, bit by bit: elementwise operations of IEEE 754, and sums
of whole numbers below 2**53, which are exact in every order. So what a record contributes later
cannot depend on where it stands, nor on its neighbours in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument
from discreet.models.inputs import Bounds, Floats, bounds_of

FEATURE_BITS = 13
"""Steps in one unit of a scaled feature: 2**13, so that 16 bits hold it."""
Steps: TypeAlias = NDArray[np.int16]
"""Mapped rows, in steps."""
_CHUNK = 1 << 13
_NARROWEST = 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMap:
    """How a row is clipped, scaled, rounded and shrunk; the same for fitting and predicting."""

    lower: Floats
    upper: Floats
    centre: Floats
    scale: Floats
    intercept: bool
    row_norm: float

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        *,
        columns: int,
        names: Sequence[str] | None,
        intercept: bool,
        row_norm: float,
    ) -> FeatureMap:
        """The map of declared bounds.

        Columns whose bounds hold zero keep it (so 0/1 columns stay 0/1) and are divided by the
        larger bound; others are moved to -1 ... 1.
        """
        if bounds is None:
            raise InvalidArgument(
                "bounds must be declared: (lower, upper) for all columns, or for each. They are "
                "never taken from the data."
            )
        lower, upper = bounds_of("bounds", bounds, columns=columns, names=names)
        kept = (lower <= 0) & (upper >= 0)
        scale = np.where(kept, np.maximum(-lower, upper), upper / 2 - lower / 2)
        if not (scale >= _NARROWEST * np.maximum(np.abs(lower), np.abs(upper))).all():
            raise InvalidArgument("bounds must be further apart: doubles hardly tell them apart.")
        return cls(
            lower=lower,
            upper=upper,
            centre=np.where(kept, 0.0, lower / 2 + upper / 2),
            scale=scale,
            intercept=intercept,
            row_norm=float(positive("row_norm", row_norm)),
        )

    @property
    def width(self) -> int:
        """Columns of the mapped rows."""
        return len(self.lower) + self.intercept

    def steps(self, x: Floats) -> Steps:
        """Mapped rows as whole numbers of ``2**-FEATURE_BITS``, each at most that many in size.

        Needs: finite values. The array is made chunk by chunk.
        """
        out = np.empty((len(x), self.width), dtype=np.int16)
        for start in range(0, len(x), _CHUNK):
            scaled = np.clip(x[start : start + _CHUNK], self.lower, self.upper)
            rows = np.full((len(scaled), self.width), 2.0**FEATURE_BITS)
            scaled -= self.centre
            scaled /= self.scale
            scaled *= 2.0**FEATURE_BITS
            np.rint(scaled, out=rows[:, self.intercept :])
            self._shrink(rows)
            out[start : start + _CHUNK] = rows
        return out

    def rows(self, x: Floats) -> Floats:
        """Mapped rows in units."""
        return np.multiply(self.steps(x), 2.0**-FEATURE_BITS, dtype=np.float64)

    def _shrink(self, rows: Floats) -> None:
        limit = self.row_norm * 2.0**FEATURE_BITS
        squares = squared_norms(rows)
        long = np.flatnonzero(squares > limit * limit)
        if long.size:
            factor = limit / np.sqrt(squares[long])
            rows[long] = np.trunc(rows[long] * factor[:, None])

    def in_units(self, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts for features in their own units, one row a margin.

        ``X @ coefficients.T + intercepts`` are the margins of rows inside of all bounds.
        """
        blocks = theta.reshape(-1, self.width)
        slopes = blocks[:, self.intercept :] / self.scale
        starts = blocks[:, 0] if self.intercept else np.zeros(len(blocks))
        return slopes, starts - slopes @ self.centre


def squared_norms(rows: Floats) -> Floats:
    """Squared length of each row of whole numbers, exactly (below 2**53 for 2**27 columns)."""
    result: Floats = np.einsum("ij,ij->i", rows, rows)
    return result


def usual_norm(columns: int, *, intercept: bool) -> float:
    """A length that few rows pass: ``sqrt(1 + columns/8)``, from the number of columns alone.

    Rows of 0/1 columns, most of them 0, and of numbers whose bounds are a few deviations away are
    shorter. Rows that are longer keep their direction, which is all that a linear classifier sees.
    """
    return math.sqrt(intercept + columns / 8) if intercept else math.sqrt(max(1.0, columns / 8))
