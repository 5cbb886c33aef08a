"""Sums that cannot wrap: 64 bits where their bound allows it, Python integers beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.values import Ints

_INT64 = 2**63 - 1
_LOW = 2**32 - 1


def largest(values: Ints) -> int:
    """Return the largest absolute value, exactly (that of -2**63 has no place in 64 bits)."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def exact_sum(values: Ints) -> int:
    """Return the sum of 64-bit integers as a Python integer."""
    if largest(values) * values.size <= _INT64:
        return int(values.sum())
    # Halves of 32 bits: their sums stay within 64 bits for up to 2**31 values.
    return (int((values >> 32).sum()) << 32) + int((values & _LOW).sum())


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 64 bits where they fit, else as Python integers."""
    return values.astype(np.int64) if largest(values) <= _INT64 else values


def exact_dot(left: Ints, right: Ints) -> int:
    """Return the sum of products as a Python integer."""
    if largest(left) * largest(right) * max(left.size, 1) <= _INT64:
        return int(np.dot(left, right))
    return sum(a * b for a, b in zip(left.tolist(), right.tolist(), strict=True))


def prefix_sums(values: Ints) -> NDArray[Any]:
    """Return all sums of the first 0, 1, ... values: in 64 bits, or as Python integers."""
    kind = np.int64 if largest(values) * values.size <= _INT64 else object
    found = np.zeros(values.size + 1, dtype=kind)
    np.cumsum(values.astype(kind), out=found[1:])
    return found
