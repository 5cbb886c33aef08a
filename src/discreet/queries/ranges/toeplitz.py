"""The square root of the prefix matrix: coefficients, exact products, norms and variances.

The matrix of prefix sums M (ones on and below the diagonal) is R R with R lower triangular and
Toeplitz: its first column is c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k), the series of (1 - z)^(-1/2).
Released is R x with noise; what is wanted is M x. A released product is made of integers: the
coefficients are rounded to a public grid first, and all norms are those of the rounded ones.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from discreet.core import check
from discreet.core.errors import InvalidArgument, OutOfDomain

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
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
    """The matrix of integers times a vector of integers, exactly.

    Proof: both are cut into balanced pieces of b bits, so that the norms of two pieces multiply to
        at most 2**42. The error of a convolution by double-precision FFT of length N = 2**n is
        below ``||a|| ||b|| 2**-53 (13 n + 3)`` up to terms in 2**-106 (Brent, Percival, Zimmermann
        2007, Theorem 5.1), so below 1/4 for n <= 36, and rounding to the nearest integer undoes
        it. The pieces are put together modulo 2**64, which loses nothing: the result fits.
    """
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


def normalised_prefix_variances(size: int) -> Floats:
    """The same for the square root with its columns scaled to norm 1 (F32).

    Source: Henzinger, Kalinin, Upadhyay 2025.
    """
    norms = column_norms(coefficients(size))
    inverse = inverse_coefficients(size)
    variances = np.zeros(size)
    for s in range(size):  # entry (t, s) of M D R^(-1) is the sum over i = s .. t of n_i d_(i-s)
        variances[s:] += np.square(np.cumsum(norms[s:] * inverse[: size - s]))
    return variances
