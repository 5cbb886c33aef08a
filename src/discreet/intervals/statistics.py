"""Statistics of columns on a grid, as whole numbers with their sensitivities.

Each comes with a second one, its squared standard error, also a whole number of a public unit; and
with what is known of its sampling error for every law of the rows. One row is replaced between
neighbors, and numbers of rows are public.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from discreet.core._rational import ceil_div
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints

# ── Exact sums and variances ─────────────────────────────────────────────────────────────────────


LARGEST_SPAN = 1 << 27
LARGEST_SUM = 1 << 53
EXACT_BITS = 53
_LOW_BITS = 14


def sums(codes: Ints) -> tuple[Ints, list[int]]:
    """For each row of ``codes`` its sum, and n times the sum of squares less the sum's square.

    Exact: a code has at most 28 bits and is squared in two halves, which fit 64 bits when added.
    """
    total = codes.sum(axis=1)
    top, low = codes >> _LOW_BITS, codes & ((1 << _LOW_BITS) - 1)
    parts = [np.einsum("ij,ij->i", a, b).tolist() for a, b in ((top, top), (top, low), (low, low))]
    squares = [
        (a << 2 * _LOW_BITS) + (b << _LOW_BITS + 1) + c for a, b, c in zip(*parts, strict=True)
    ]
    rows = codes.shape[1]
    return total, [rows * q - s * s for q, s in zip(squares, total.tolist(), strict=True)]


def shift_down(numbers: list[int], shift: int) -> Floats:
    """Whole numbers, rounded down to a multiple of a power of two, as many times of it."""
    return np.array([number >> shift for number in numbers], dtype=np.float64)


def variance_shift(span: int, rows: int) -> int:
    """How many bits of n (n - 1) times the variance are dropped, so that the rest is a double."""
    return max(0, (rows * rows * span * span // 4).bit_length() - EXACT_BITS)


def variance_sensitivity(span: int, rows: int) -> int:
    """By how much a replaced row moves n (n - 1) times the sample variance, rounded down."""
    # Proof: the sample variance of numbers in a range of length w moves by at most w^2 / n (C1), so
    #   its n (n - 1)-fold, a whole number, by at most (n - 1) w^2; and floors of a / 2^k and
    #   b / 2^k differ by at most ceil(|a - b| / 2^k).
    return ceil_div(span * span * (rows - 1), 1 << variance_shift(span, rows))


# ── Statistics ───────────────────────────────────────────────────────────────────────────────────


class IntervalStatistic(ABC):
    """An estimate of a parameter, and its squared standard error."""

    column: SortedColumn

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many numbers a column has."""

    @property
    @abstractmethod
    def moved(self) -> tuple[int, int]:
        """By how much a replaced row moves either whole number."""

    @property
    @abstractmethod
    def units(self) -> tuple[float, float]:
        """What one is worth, of the estimate and of its squared standard error."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Of the parameter."""

    @property
    @abstractmethod
    def freedom(self) -> int:
        """Degrees of freedom of the squared standard error, if the rows are normal."""

    @property
    @abstractmethod
    def most(self) -> float:
        """The largest squared standard error that a column can show."""

    @property
    def offset(self) -> float:
        """The estimate whose whole number is 0."""
        return 0.0

    @property
    def slack(self) -> float:
        """By how much the grid may have moved the parameter."""
        return self.column.step / 2

    @property
    @abstractmethod
    def lattice(self) -> float:
        """Distance of neighboring estimates, if every row is at a bound."""

    @abstractmethod
    def numbers(self, tables: Floats) -> tuple[Floats, Floats]:
        """Both whole numbers, as doubles that hold them exactly, for each row of ``tables``."""

    @abstractmethod
    def largest(self, parameter: Floats) -> Floats:
        """The largest squared standard error of any law with this parameter."""

    @abstractmethod
    def log_mgf(self, rate: Floats, parameter: Floats) -> Floats:
        """At least ``log E exp(rate * (estimate - parameter))``, for any law of the rows."""

    @abstractmethod
    def guess(self, std: float) -> tuple[float, float, float]:
        """Parameter, squared standard error, and what is shown of it, for rows like this."""

    def correction(self, parameter: Floats) -> Floats:
        """How much less the squared standard error is than what is shown, at this parameter."""
        return 0 * parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStatistic(IntervalStatistic):
    """The mean of a column."""

    column: SortedColumn
    size: int

    @property
    def rows(self) -> int:
        return self.size

    @property
    def moved(self) -> tuple[int, int]:
        """A sum moves by the range; the sample variance as `variance_sensitivity` says."""
        return self.column.span, variance_sensitivity(self.column.span, self.size)

    @property
    def units(self) -> tuple[float, float]:
        pairs = self.size * self.size * (self.size - 1)
        shift = variance_shift(self.column.span, self.size) + 2 * self.column.exponent
        return self.column.step / self.size, math.ldexp(1 / pairs, shift)

    @property
    def offset(self) -> float:
        return self.column.first * self.column.step

    @property
    def bounds(self) -> tuple[float, float]:
        return self.column.number(0), self.column.number(self.column.span)

    @property
    def lattice(self) -> float:
        return _width(self.column) / self.size

    @property
    def freedom(self) -> int:
        return self.size - 1

    @property
    def most(self) -> float:
        """Popoviciu: half of the rows at either bound."""
        return _width(self.column) ** 2 / (4 * (self.size - 1))

    def numbers(self, tables: Floats) -> tuple[Floats, Floats]:
        total, pairs = sums(self.column.places(tables))
        return total.astype(np.float64), shift_down(
            pairs, variance_shift(self.column.span, self.size)
        )

    def largest(self, parameter: Floats) -> Floats:
        """Bhatia, Davis 2000: the variance is at most (mean - lower) (upper - mean)."""
        low, high = self.bounds
        return np.maximum((parameter - low) * (high - parameter), 0.0) / self.size

    def log_mgf(self, rate: Floats, parameter: Floats) -> Floats:
        low, high = self.bounds
        return bernoulli_mgf(rate, (parameter - low) / (high - low), high - low, self.size)

    def guess(self, std: float) -> tuple[float, float, float]:
        low, high = self.bounds
        return (low + high) / 2, std**2 / self.size, std**2 / self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceStatistic(IntervalStatistic):
    """The mean of the first rows of a column less the mean of the others."""

    column: SortedColumn
    sizes: tuple[int, int]

    @property
    def rows(self) -> int:
        return sum(self.sizes)

    @property
    def moved(self) -> tuple[int, int]:
        """A replaced row moves one mean, by w / n, and one squared error, by w^2 / n^2."""
        first, second = self.sizes
        a, b = self._weights
        span = self.column.span
        most = max(a * (first - 1), b * (second - 1)) * span * span
        return (
            ceil_div(max(self.sizes) * span, 1 << self._shifts[0]),
            ceil_div(most, 1 << self._shifts[1]),
        )

    @property
    def units(self) -> tuple[float, float]:
        first, second = self.sizes
        whole = self._weights[0] * first * first * (first - 1)  # the same for the second
        return (
            math.ldexp(1 / (first * second), self._shifts[0] + self.column.exponent),
            math.ldexp(1 / whole, self._shifts[1] + 2 * self.column.exponent),
        )

    @property
    def bounds(self) -> tuple[float, float]:
        width = _width(self.column)
        return -width, width

    @property
    def slack(self) -> float:
        return self.column.step + self.units[0]

    @property
    def lattice(self) -> float:
        return _width(self.column) / max(self.sizes)

    @property
    def freedom(self) -> int:
        """Welch's is never less."""
        return min(self.sizes) - 1

    @property
    def most(self) -> float:
        first, second = self.sizes
        return _width(self.column) ** 2 / 4 * (1 / (first - 1) + 1 / (second - 1))

    @property
    def _weights(self) -> tuple[int, int]:
        """Of n (n - 1) times either variance, in the sum of both squared errors."""
        first, second = self.sizes
        return second * second * (second - 1), first * first * (first - 1)

    @property
    def _shifts(self) -> tuple[int, int]:
        first, second = self.sizes
        a, b = self._weights
        span = self.column.span
        most = (a * first * first + b * second * second) * span * span // 4
        return (
            max(0, (first * second * span).bit_length() - EXACT_BITS),
            max(0, most.bit_length() - EXACT_BITS),
        )

    def numbers(self, tables: Floats) -> tuple[Floats, Floats]:
        first, second = self.sizes
        codes = self.column.places(tables)
        one, pairs_one = sums(codes[:, :first])
        two, pairs_two = sums(codes[:, first:])
        ahead = [second * p - first * q for p, q in zip(one.tolist(), two.tolist(), strict=True)]
        a, b = self._weights
        errors = [a * p + b * q for p, q in zip(pairs_one, pairs_two, strict=True)]
        return shift_down(ahead, self._shifts[0]), shift_down(errors, self._shifts[1])

    def largest(self, parameter: Floats) -> Floats:
        """The sum of both bounds of Bhatia and Davis is a parabola in the second mean."""
        first, second = self.sizes
        width = _width(self.column)
        ahead = parameter / width
        best = ((1 - 2 * ahead) / first + 1 / second) / (2 / first + 2 / second)
        mean = np.clip(best, np.maximum(0.0, -ahead), np.minimum(1.0, 1 - ahead))
        other = mean + ahead
        found = other * (1 - other) / first + mean * (1 - mean) / second
        return np.maximum(found, 0.0) * width**2

    def log_mgf(self, rate: Floats, parameter: Floats) -> Floats:
        """Hoeffding's lemma, for both means."""
        first, second = self.sizes
        return rate**2 * _width(self.column) ** 2 / 8 * (1 / first + 1 / second) + 0 * parameter

    def guess(self, std: float) -> tuple[float, float, float]:
        first, second = self.sizes
        error = std**2 * (1 / first + 1 / second)
        return 0.0, error, error


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceStatistic(IntervalStatistic):
    """The sample variance of a column.

    Its squared standard error is read off pairs: of d = (x - x')^2 / 2, for disjoint pairs of rows,
    the mean is the variance v, and Var(d) = (m + v^2) / 2 with the fourth central moment m. So
    Var(s^2) = (m - v^2 (n - 3) / (n - 1)) / n = 2 Var(d) / n - 2 v^2 (n - 2) / (n (n - 1)).
    """

    column: SortedColumn
    size: int

    @property
    def rows(self) -> int:
        return self.size

    @property
    def moved(self) -> tuple[int, int]:
        """A replaced row moves one pair, within the range of d."""
        return (
            variance_sensitivity(self.column.span, self.size),
            variance_sensitivity(self._kernel, self._pairs),
        )

    @property
    def units(self) -> tuple[float, float]:
        return self._variance_unit, self._kernel_unit

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, _width(self.column) ** 2 / 4

    @property
    def lattice(self) -> float:
        """Near half and half, where no other law has this variance, it moves by the most."""
        return _width(self.column) ** 2 / self.size

    @property
    def freedom(self) -> int:
        return self._pairs - 1

    @property
    def slack(self) -> float:
        """A grid moves a standard deviation by at most half a step."""
        return self.column.step * (_width(self.column) + self.column.step) + self._variance_unit

    @property
    def most(self) -> float:
        top = self._kernel * self._kernel_step
        return 2 / self.size * top**2 / 4 * self._pairs / (self._pairs - 1)

    @property
    def _pairs(self) -> int:
        return self.size // 2

    @property
    def _drop(self) -> int:
        """Bits of a squared difference that are dropped, so that its square can be added up."""
        return max(0, (self.column.span**2).bit_length() - LARGEST_SPAN.bit_length() + 1)

    @property
    def _kernel(self) -> int:
        return self.column.span**2 >> self._drop

    @property
    def _kernel_step(self) -> float:
        """A step of d."""
        return math.ldexp(0.5, self._drop + 2 * self.column.exponent)

    @property
    def _kernel_unit(self) -> float:
        pairs = self._pairs * (self._pairs - 1) * self.size
        shift = variance_shift(self._kernel, self._pairs)
        return math.ldexp(2 / pairs, shift) * self._kernel_step**2

    @property
    def _variance_unit(self) -> float:
        shift = variance_shift(self.column.span, self.size) + 2 * self.column.exponent
        return math.ldexp(1 / (self.size * (self.size - 1)), shift)

    def numbers(self, tables: Floats) -> tuple[Floats, Floats]:
        codes = self.column.places(tables)
        _, pairs = sums(codes)
        ahead = codes[:, 0 : 2 * self._pairs : 2] - codes[:, 1 : 2 * self._pairs : 2]
        _, errors = sums((ahead * ahead) >> self._drop)
        return (
            shift_down(pairs, variance_shift(self.column.span, self.size)),
            shift_down(errors, variance_shift(self._kernel, self._pairs)),
        )

    def largest(self, parameter: Floats) -> Floats:
        """(x - mean)^2 lies between 0 and M^2, has mean v, so its variance is at most v (M^2 - v).

        M is the larger distance of the mean to a bound; their product is at least v.
        """
        width = _width(self.column)
        share = np.clip(parameter / width**2, 0.0, 0.25)
        far = (1 + np.sqrt(1 - 4 * share)) / 2
        found = share * (far**2 - share) / self.size
        found = found + 2 * share**2 / (self.size * (self.size - 1))
        return np.maximum(found, 0.0) * width**4

    def correction(self, parameter: Floats) -> Floats:
        size = self.size
        return 2 * np.maximum(parameter, 0.0) ** 2 * (size - 2) / (size * (size - 1))

    def log_mgf(self, rate: Floats, parameter: Floats) -> Floats:
        """A U-statistic is an average of averages of n // 2 independent d (Hoeffding 1963)."""
        half = _width(self.column) ** 2 / 2
        return bernoulli_mgf(rate, parameter / half, half, self._pairs)

    def guess(self, std: float) -> tuple[float, float, float]:
        """As for normal rows: m = 3 v^2, as far as the bounds allow."""
        value = min(std**2, self.bounds[1])
        error = min(2 * value**2 / (self.size - 1), float(self.largest(np.asarray(value))))
        return value, error, error + float(self.correction(np.asarray(value)))


def bernoulli_mgf(rate: Floats, share: Floats, width: float, rows: int) -> Floats:
    """At least `log E exp(rate * (mean of rows - expectation))` for rows in a range of `width`."""
    # Theorem: among all laws with this expectation, yes or no has the largest (Hoeffding 1963): the
    #   exponential lies below its chord. At a bound there is no other law than a point: zero.
    part = rate * width / rows
    with np.errstate(all="ignore"):  # at a bound 0 times infinity; elsewhere infinite is a bound
        found = rows * (np.log1p(share * np.expm1(part)) - share * part)
    return np.where((share <= 0) | (share >= 1), 0.0, np.maximum(found, 0.0))


def _width(column: SortedColumn) -> float:
    return column.span * column.step
