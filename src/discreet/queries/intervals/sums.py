"""Whole numbers of columns: sums and variances, exact, and how far one row moves them."""

from __future__ import annotations

import numpy as np

from discreet.core.exact import ceil_div
from discreet.noise.law import Floats, Ints

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


def shifted(numbers: list[int], shift: int) -> Floats:
    """Whole numbers, rounded down to a multiple of a power of two, as many times of it."""
    return np.array([number >> shift for number in numbers], dtype=np.float64)


def variance_shift(span: int, rows: int) -> int:
    """How many bits of n (n - 1) times the variance are dropped, so that the rest is a double."""
    return max(0, (rows * rows * span * span // 4).bit_length() - EXACT_BITS)


def variance_moved(span: int, rows: int) -> int:
    """By how much a replaced row moves n (n - 1) times the sample variance, rounded down.

    Proof: the sample variance of numbers in a range of length w moves by at most w^2 / n (C1), so
        its n (n - 1)-fold, a whole number, by at most (n - 1) w^2; and floors of a / 2^k and
        b / 2^k differ by at most ceil(|a - b| / 2^k).
    """
    return ceil_div(span * span * (rows - 1), 1 << variance_shift(span, rows))
