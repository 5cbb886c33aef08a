"""Rows as whole numbers, with weights that depend on the row alone, and exact sums over them.

A row is clipped to its declared bounds, centered, scaled, led by a constant 1 and rounded to a
public grid. A row farther than ``radius`` from the origin is not moved there: all that it adds is
multiplied by ``(radius / length)**2``, a factor of its features alone, which leaves the solution of
``E[weight (y - mean) row] = 0`` where it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from discreet.models._model_inputs import Floats
from discreet.models.glm.families import Family

GRID_BITS = 11
"""Steps in one unit of a scaled feature: 2**11."""
LONGEST = 1 << 36
"""The longest contribution of a row to a vector of sums, in its units."""
MOST_FEATURES = 256
NARROWEST = 1 / 1000
"""The smallest scale, in half widths of the declared bounds."""

# Sums of products of this many rows are exact as doubles.
_CHUNK = 1 << 12
# What rounding to whole numbers may add, in parts of the longest.
_ROUNDING = 2.0**-10
# Less than all that rounding can do to a computed length.
_SAFE = 1 - 2.0**-40

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedRows:
    """How a row gets whole numbers and a weight. All of it is public, or was paid for."""

    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    center: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    radius: float

    @classmethod
    def of(cls, lower: Floats, upper: Floats, *, radius: float) -> WeightedRows:
        """Rows centered and scaled by their declared bounds."""
        return cls(
            lower=lower,
            upper=upper,
            center=lower / 2 + upper / 2,
            scale=upper / 2 - lower / 2,
            radius=radius,
        )

    @property
    def columns(self) -> int:
        """Columns of a row, the constant among them."""
        return len(self.lower) + 1

    def scaled(self, center: Floats, scale: Floats) -> WeightedRows:
        """The same bounds with other centers and scales, within what they allow."""
        half = self.upper / 2 - self.lower / 2
        return replace(
            self,
            center=np.clip(center, self.lower, self.upper),
            scale=np.clip(scale, half * NARROWEST, half),
        )

    def whole(self, x: Floats) -> Floats:
        """Rows as whole numbers, each by itself."""
        rows = np.full((len(x), self.columns), 2.0**GRID_BITS)
        scaled = np.clip(x, self.lower, self.upper)
        scaled -= self.center
        scaled /= self.scale
        scaled *= 2.0**GRID_BITS
        np.rint(scaled, out=rows[:, 1:])
        return rows

    def weights(self, squares: Floats) -> Floats:
        """The weight of a row of this squared length, in grid steps."""
        limit = (self.radius * 2.0**GRID_BITS) ** 2
        return np.minimum(1.0, limit / squares)

    def reaches(self, most: float) -> Floats:
        """How far each column, the constant first, is from its center, at most ``most``."""
        reach = np.maximum(self.upper - self.center, self.center - self.lower) / self.scale
        return np.minimum(np.concatenate(([1.0], reach)), most)

    def in_units(self) -> Floats:
        """The matrix from coefficients of scaled features to slopes and, last, the intercept."""
        found = np.zeros((self.columns, self.columns))
        found[:-1, 1:] = np.diag(1 / self.scale)
        found[-1, 0] = 1.0
        found[-1, 1:] = -self.center / self.scale
        return found


def squared_lengths(rows: Floats) -> Floats:
    """Squared length of each row of whole numbers: exact, below 2**53."""
    found: Floats = np.einsum("ij,ij->i", rows, rows)
    return found


# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """How real coefficients of a row's vector and matrices become whole ones."""

    vector: float
    matrices: tuple[float, ...]

    @classmethod
    def of(cls, *, radius: float, length: float, matrices: Sequence[float]) -> Units:
        """Units in which a row is at most `LONGEST` long.

        ``length`` bounds the root of the sum of squares of the vector's coefficient and of
        ``matrices`` times the matrices' coefficients, all for rows of length ``radius``.
        """
        unit = LONGEST * (1 - _ROUNDING) / (radius * length)
        return cls(
            vector=unit * 2.0**-GRID_BITS,
            matrices=tuple(unit * one / radius * 2.0 ** (-2 * GRID_BITS) for one in matrices),
        )

    def read(self, total: Floats, columns: int) -> tuple[Floats, list[Floats]]:
        """The vector and the matrices, in real units, of a noisy total."""
        vector = total[:columns] / (self.vector * 2.0**GRID_BITS)
        found = []
        for place, unit in enumerate(self.matrices):
            start = columns + place * columns**2
            matrix = total[start : start + columns**2].reshape(columns, columns)
            found.append((matrix + matrix.T) / (2 * unit * 2.0 ** (2 * GRID_BITS)))
        return vector, found

    def vector_noise(self, std: float) -> float:
        """Standard deviation of the noise of an entry of the vector."""
        return std / (self.vector * 2.0**GRID_BITS)

    def matrix_noise(self, std: float, place: int) -> float:
        """The same for the diagonal of a matrix; off it, it is smaller by a factor of √2."""
        return std / (self.matrices[place] * 2.0 ** (2 * GRID_BITS))


def sums_size(columns: int, matrices: int) -> int:
    """Numbers in a vector of sums."""
    return columns + matrices * columns**2


def moment_sums(rows: WeightedRows, units: Units, most: float, x: Floats, y: Floats) -> Ints:
    """Weighted sums of products of columns, and of columns with targets of up to ``most``."""
    total = np.zeros(sums_size(rows.columns, 1), dtype=np.int64)
    for whole, squares, targets in _chunks(rows, x, y):
        weight = rows.weights(squares)
        share = np.clip(targets, 0.0, most) / most
        total += _sums(whole, squares, weight * share, (weight,), units)
    return total


def score_sums(
    rows: WeightedRows,
    units: Units,
    family: Family,
    theta: Floats,
    exponent: int,
    x: Floats,
    y: Floats,
) -> Ints:
    """Weighted sums of scores, of their derivatives and, if asked, of their squares.

    ``theta`` in whole steps of ``2**-exponent``.
    """
    total = np.zeros(sums_size(rows.columns, len(units.matrices)), dtype=np.int64)
    for whole, squares, targets in _chunks(rows, x, y):
        # Whole numbers below 2**53: exact, however the products are added up.
        margins = np.ldexp(whole @ theta, -GRID_BITS - exponent)
        weight = rows.weights(squares)
        means = family.means(margins)
        slopes = weight * (np.clip(targets, 0.0, family.most) - means)
        last = len(units.matrices) > 1
        curvature = weight * (family.slopes(means) if last else family.variances(means))
        matrices = (curvature, slopes * slopes) if last else (curvature,)
        total += _sums(whole, squares, slopes, matrices, units)
    return total


def _chunks(rows: WeightedRows, x: Floats, y: Floats) -> list[tuple[Floats, Floats, Floats]]:
    found = []
    for start in range(0, len(x), _CHUNK):
        whole = rows.whole(x[start : start + _CHUNK])
        found.append((whole, squared_lengths(whole), y[start : start + _CHUNK, 0]))
    return found


def _sums(
    whole: Floats,
    squares: Floats,
    vector: Floats,
    matrices: Sequence[Floats],
    units: Units,
) -> Ints:
    """Sums of ``vector row`` and ``matrix row row'``, whole numbers, none of a row too long."""
    # Theorem: a row adds a vector of whole numbers of length at most `LONGEST`, a function of this
    #   row and of public numbers.
    # Proof: its squared length is `vector**2 |row|**2 + sum(matrix**2) |row|**4`. That is computed
    #   from whole coefficients with a relative error below 2**-40, and a row that exceeds the limit
    #   adds zero. All operations on a row are elementwise, or sums of whole numbers below 2**53.
    limit = float(LONGEST) ** 2 * _SAFE
    real = [vector * units.vector]
    real += [one * unit for one, unit in zip(matrices, units.matrices, strict=True)]
    rounded = [np.rint(one) for one in real]
    # Where rounding makes a row too long, toward zero; where that is not enough, nothing.
    long = _length(rounded, squares) > limit
    if long.any():
        rounded = [
            np.where(long, np.trunc(exact), one) for exact, one in zip(real, rounded, strict=True)
        ]
        kept = _length(rounded, squares) <= limit
        rounded = [np.where(kept, one, 0.0) for one in rounded]
    first, *others = rounded
    parts = [first @ whole, *(((whole * one[:, None]).T @ whole).ravel() for one in others)]
    return np.concatenate(parts).astype(np.int64)


def _length(coefficients: Sequence[Floats], squares: Floats) -> Floats:
    first, *others = coefficients
    found = first * first * squares
    for one in others:
        found = found + one * one * squares * squares
    return found


def whole_parameters(theta: Floats, rows: WeightedRows) -> tuple[Floats, int]:
    """Parameters in whole steps of ``2**-exponent`` with which margins are exact."""
    # Rows are rounded: an entry is at most half a step farther.
    longest = rows.reaches(math.inf) + 1
    largest = max(float(np.abs(theta) @ longest), 2.0**-8)
    exponent = min(30, 50 - GRID_BITS - math.frexp(largest)[1])
    # Rounding a parameter adds at most half a step of each column: below 2**51 in all.
    exponent = min(exponent, 50 - GRID_BITS - math.frexp(float(longest.sum()))[1])
    return np.rint(np.ldexp(theta, exponent)), exponent
