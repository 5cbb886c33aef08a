"""The square root of the prefix matrix as a static strategy for Gaussian noise (F32).

The strategy measures ``C (d x)``: C the Toeplitz square root, rounded to integers, and d a whole
factor for each cell. Plain, d is one; normalized, it makes all columns about equally long, which
lowers the error of every range. All norms are those of the integers that are measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy
from scipy import fft

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.budget import BudgetChange
from discreet.ranges.strategies.base import LARGEST_COUNT, Contribution, Terms, matrix_move
from discreet.ranges.workload import LengthWorkload, ListedWorkload, Workload, length, mean_squares

# ── Toeplitz matrices ────────────────────────────────────────────────────────────────────────────
# The matrix of prefix sums M (ones on and below the diagonal) is R R with R lower triangular and
# Toeplitz: its first column is c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k), the series of (1 -
# z)^(-1/2). Released is R x with noise; what is wanted is M x. A released product is made of
# integers: the coefficients are rounded to a public grid first, and all norms are those of the
# rounded ones.


_FFT_BITS = 44
"""Two pieces of b bits and n entries each are convolved if 2 b + log2 n is at most this."""
_LARGEST = 1 << 62


def coefficients(size: int) -> Floats:
    """c_0, ..., c_(size-1), the first column of the square root (F32)."""
    k = np.arange(1, check.count("size", size)).astype(np.float64)
    ratios: Floats = np.ones(size)
    ratios[1:] = (2 * k - 1) / (2 * k)
    column: Floats = np.multiply.accumulate(ratios)
    return column


def inverse_coefficients(size: int) -> Floats:
    """The first column of the inverse of the square root: the series of (1 - z)^(1/2)."""
    k = np.arange(1, check.count("size", size)).astype(np.float64)
    ratios: Floats = np.ones(size)
    ratios[1:] = (2 * k - 3) / (2 * k)
    column: Floats = np.multiply.accumulate(ratios)
    return column


def on_grid(numbers: Floats, *, bits: int) -> Ints:
    """Coefficients in steps of 2**-bits, rounded: from here on these are the matrix."""
    if check.count("bits", bits, minimum=0) > 50:
        raise InvalidArgument(f"bits must be at most 50, got {bits}.")
    return np.rint(np.ldexp(numbers, bits)).astype(np.int64)


def norm_squared(column: Ints) -> int:
    """The squared L2 norm of the first column, the longest of the matrix: exact."""
    return sum(int(entry) ** 2 for entry in column)


def column_norms(column: Floats) -> Floats:
    """The L2 norm of each column: they shorten to the right."""
    norms: Floats = np.sqrt(np.cumsum(np.square(column)))[::-1]
    return norms


def multiply(column: Floats, x: Floats) -> Floats:
    """The lower triangular Toeplitz matrix times each column of ``x``, in double precision."""
    size = len(x)
    width = fft.next_fast_len(2 * size, real=True)
    left = fft.rfft(column[:size], width)
    right = fft.rfft(x, width, axis=0)
    shaped = left.reshape(-1, *(1,) * (x.ndim - 1))
    product: Floats = fft.irfft(shaped * right, width, axis=0)[:size]
    return product


def exact(column: Ints, x: Ints) -> Ints:
    """The matrix of integers times a vector of integers, exactly."""
    # Proof: both are cut into balanced pieces of b bits, so that the norms of two pieces multiply
    #   to at most 2**42. The error of a convolution by double-precision FFT of length N = 2**n is
    #   below `||a|| ||b|| 2**-53 (13 n + 3)` up to terms in 2**-106 (Brent, Percival, Zimmermann
    #   2007, Theorem 5.1), so below 1/4 for n <= 36, and rounding to the nearest integer undoes it.
    #   The pieces are put together modulo 2**64, which loses nothing: the result fits.
    size = len(x)
    column = np.ascontiguousarray(column[:size], dtype=np.int64)
    x = np.ascontiguousarray(x, dtype=np.int64)
    most = sum(abs(int(entry)) for entry in column) * max(map(int, (x.max(), -x.min())), default=0)
    if most >= _LARGEST:
        raise OutOfDomain("The product leaves 62 bits: use fewer bits for the grid, or fewer rows.")
    bits = max(1, (_FFT_BITS - math.ceil(math.log2(size + 1))) // 2)
    width = fft.next_fast_len(2 * size, real=True)
    left, right = (
        [fft.rfft(piece, width) for piece in _pieces(vector, bits)] for vector in (column, x)
    )
    total = np.zeros(size, dtype=np.uint64)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            part = np.rint(fft.irfft(a * b, width)[:size]).astype(np.int64).astype(np.uint64)
            if bits * (i + j) < 64:
                total += part << np.uint64(bits * (i + j))
    return total.view(np.int64)


def _pieces(vector: Ints, bits: int) -> list[Floats]:
    """Balanced digits in base 2**bits, lowest first."""
    half = 1 << (bits - 1)
    pieces = []
    while True:
        digit = ((vector + half) & ((1 << bits) - 1)) - half
        pieces.append(digit.astype(np.float64))
        vector = (vector - digit) >> bits
        if not vector.any():
            return pieces


def reciprocal(column: Floats) -> Floats:
    """The first column of the inverse matrix, by Newton's iteration on power series."""
    size = len(column)
    if column[0] == 0:
        raise InvalidArgument("column must start with a number other than zero.")
    inverse = np.array([1.0 / column[0]])
    while len(inverse) < size:
        length = min(2 * len(inverse), size)
        wide = np.concatenate((inverse, np.zeros(length - len(inverse))))
        correction = -multiply(column[:length], wide)
        correction[0] += 2.0
        inverse = multiply(wide, correction)
    return inverse


def prefix_variances(column: Floats) -> Floats:
    """Var of each prefix for noise of variance 1 on C x: row norms of M C^(-1), squared."""
    variances: Floats = np.cumsum(np.square(np.cumsum(reciprocal(column))))
    return variances


def normalized_prefix_variances(size: int) -> Floats:
    """The same for the square root with its columns scaled to norm 1 (F32)."""
    # Source: Henzinger, Kalinin, Upadhyay 2025.
    norms = column_norms(coefficients(size))
    inverse = inverse_coefficients(size)
    variances = np.zeros(size)
    for s in range(size):  # entry (t, s) of M D R^(-1) is the sum over i = s .. t of n_i d_(i-s)
        variances[s:] += np.square(np.cumsum(norms[s:] * inverse[: size - s]))
    return variances


# ── Strategies ───────────────────────────────────────────────────────────────────────────────────


_BITS = 17
_FACTOR_BITS = 12
_ALL_COLUMNS = 1024
"""Up to here every column is summed; above, the columns are interpolated by a smooth curve."""
_IN_THE_MIDDLE = 32
_BATCH = 1 << 21
_MOST_WORK = 1 << 30
_MOST_LISTED = 1 << 24


@dataclass(frozen=True, kw_only=True)
class SquareRootStrategy:
    """A Toeplitz square root on integers, its columns scaled if ``normalized``."""

    size: int
    normalized: bool = True

    def __post_init__(self) -> None:
        check.count("size", self.size)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """There is one group."""
        return (Fraction(1),)

    @cached_property
    def column(self) -> Ints:
        """The first column of C, in steps of 2**-17."""
        return on_grid(coefficients(self.size), bits=_BITS)

    @cached_property
    def factors(self) -> Ints:
        """d: whole factors of the cells."""
        if not self.normalized:
            return np.ones(self.size, dtype=np.int64)
        return np.maximum(np.floor(self._ideal), 1).astype(np.int64)

    @property
    def largest_count(self) -> int:
        """A cell counts no further: so the product stays within 61 bits whatever the data."""
        row = int(self.column.sum()) * int(self.factors.max())
        return min(LARGEST_COUNT, (1 << 61) // row)

    def moves(
        self, contribution: Contribution, relation: NeighboringRelation
    ) -> tuple[BudgetChange, ...]:
        """How far ``C (d x)`` moves."""
        # Theorem: one row moves it by the longest column in L2, one row replaced by at most sqrt(2)
        #   times that.
        # Proof: all entries are positive, so the product of two columns is, too, and
        #   `|a - b|^2 <= |a|^2 + |b|^2`. The norms are sums of squares of the integers.
        # Source: F32.
        squares = np.cumsum(np.square(self.column))[::-1]
        ones = np.cumsum(self.column)[::-1]
        # Factors have 12 bits and a norm's growth, squares 35 bits and its logarithm: within 63.
        longest = int((np.square(self.factors) * squares).max())
        tallest = int((self.factors * ones).max())
        times = 2 if central_relation(relation) is NeighboringRelation.REPLACE_ONE else 1
        rows = contribution.rows
        # x and y of `rows` rows each have positive images: the squares add up, not the lengths.
        move = matrix_move(contribution, l1=times * tallest, l2_squared=longest)
        return (BudgetChange(l1=move.l1, l2_squared=times * rows**2 * longest),)

    def measure(self, counts: Ints) -> tuple[Ints, ...]:
        kept = np.minimum(counts, self.largest_count)
        return (exact(self.column, self.factors * kept),)

    def estimate(self, noisy: Sequence[Ints], noise: Floats) -> Floats:  # noqa: ARG002 - square
        solved = multiply(self._inverse, noisy[0].astype(np.float64))
        return solved / self.factors

    def variance(self, a: Ints, b: Ints, noise: Floats) -> Floats:
        """Exact, in O(size log size) for each range; ask for few on a large domain."""
        starts, stops = np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b))
        if starts.size * self.size > _MOST_WORK:
            raise Unsupported(
                f"{starts.size} variances of ranges of {self.size} cells take too long with a "
                "square-root strategy: ask for fewer, or choose blocks."
            )
        found = np.empty(starts.size)
        batch = max(1, _BATCH // self.size)
        flat_a, flat_b = starts.ravel(), stops.ravel()
        cells = np.arange(self.size)[:, None]
        for k in range(0, starts.size, batch):
            low, high = flat_a[k : k + batch], flat_b[k : k + batch]
            inside = ((cells >= low) & (cells <= high)) / self.factors[:, None]
            # Weights of the noise: the inverse, transposed; a transposed Toeplitz matrix is the
            # same matrix on the reversed vector.
            weights = multiply(self._inverse, inside[::-1])
            found[k : k + batch] = np.square(weights).sum(axis=0)
        return floats((found * noise[0]).reshape(np.shape(a)))

    def can_mean(self, workload: Workload) -> bool:
        """Whether a mean over the workload is a matter of seconds."""
        if self.size <= _ALL_COLUMNS or not isinstance(workload, ListedWorkload):
            return True
        return len(workload.starts) * self.size <= _MOST_LISTED

    def mean_variance(self, workload: Workload, noise: Floats) -> float:
        if isinstance(workload, ListedWorkload) and self.size > _ALL_COLUMNS:
            a, b, weights = workload.arrays(self.size)  # nothing is smooth here: one by one
            return float(weights @ self.variance(a, b, noise))
        return float(self._means([workload])[0] * noise[0])

    def by_length(self, lengths: Ints, noise: Floats) -> Floats:
        return floats(self._means([length(int(r)) for r in lengths]) * noise[0])

    def terms(self, a: int, b: int, noise: Floats) -> Terms:  # noqa: ARG002 - a square matrix
        inside = np.zeros(self.size)
        inside[a : b + 1] = 1 / self.factors[a : b + 1]
        weights = multiply(self._inverse, inside[::-1])[::-1]
        return ((weights, np.ones(self.size)),)

    def largest_weights(self, noise: Floats) -> Floats:  # noqa: ARG002 - a square matrix
        """Sums of the inverse over a range, of alternating size: bounded by its absolute sum."""
        return np.array([np.abs(self._inverse).sum() / float(self.factors.min())])

    def precision(self, x: Floats, noise: Floats) -> Floats:
        column = self.column.astype(np.float64)
        forth = multiply(column, self.factors * x)
        back = multiply(column, forth[::-1])[::-1]
        return floats(self.factors * back / noise[0])

    def content(self) -> dict[str, Any]:
        return {"kind": "roots", "size": self.size, "normalised": self.normalized}

    def describe(self) -> str:
        return "normalized square root" if self.normalized else "square root"

    @cached_property
    def _ideal(self) -> Floats:
        """The factors before rounding: a smooth curve."""
        if not self.normalized:
            return np.ones(self.size)
        norms = np.sqrt(np.cumsum(np.square(self.column.astype(np.float64)))[::-1])
        return floats((1 << _FACTOR_BITS) * norms[-1] / norms)

    @property
    def _inverse(self) -> Floats:
        return _reciprocal(self.size)

    def _means(self, workloads: Sequence[Workload]) -> Floats:
        """Mean variances for noise of variance one.

        The noise of coordinate j moves the prefix sums by column j of ``M diag(1/d) C^-1``; a
        workload's mean is a sum over columns. For large domains the summand is a smooth curve in j
        and is interpolated between columns that lie densely at both ends; with the rounding of
        the factors left out, the result is right to a few parts in a thousand.
        """
        columns = self._nodes(kinks=any(_kinked(workload, self.size) for workload in workloads))
        factors = self.factors if len(columns) == self.size else self._ideal
        inverse = self._inverse
        plain = None if self.normalized else np.cumsum(inverse)
        sums = np.zeros((len(workloads), len(columns)))
        moved = np.zeros(self.size + 1)
        for place, j in enumerate(columns):
            moved[: j + 1] = 0
            if plain is None:
                np.cumsum(inverse[: self.size - j] / factors[j:], out=moved[j + 1 :])
            else:
                moved[j + 1 :] = plain[: self.size - j]
            for row, workload in enumerate(workloads):
                sums[row, place] = mean_squares(workload, self.size, moved)
        if len(columns) == self.size:
            return floats(sums.sum(axis=1))
        curve = scipy.interpolate.CubicSpline(self._place(columns), sums, axis=1)
        return floats(np.sum(curve(self._place(np.arange(self.size))), axis=1))

    def _place(self, columns: Ints) -> Floats:
        """A coordinate in which the ends of the domain are as wide as its middle."""
        return np.log((columns + 1.0) / (self.size - columns))

    def _nodes(self, *, kinks: bool) -> Ints:
        """Columns between which the curve is smooth; with kinks, more of them in the middle."""
        if self.size <= _ALL_COLUMNS:
            return np.arange(self.size)
        near = 2 ** np.arange((self.size // 2).bit_length())
        far = np.linspace(self.size // 32, self.size // 2, _IN_THE_MIDDLE if kinks else 3)
        ends = np.unique(np.concatenate([[0], near, far.astype(np.int64)]))
        return np.unique(np.concatenate([ends, self.size - 1 - ends]))


def _kinked(workload: Workload, size: int) -> bool:
    """Whether ranges of some lengths only are asked: then the curve has corners."""
    return isinstance(workload, LengthWorkload) and workload.bounds(size) != (1, size)


@lru_cache(maxsize=2)
def _reciprocal(size: int) -> Floats:
    """The first column of the inverse, which plain and normalized roots share."""
    column = on_grid(coefficients(size), bits=_BITS)
    inverse = reciprocal(column.astype(np.float64))
    inverse.setflags(write=False)
    return inverse
