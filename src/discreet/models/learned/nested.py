"""Numbers in tuples in tuples: one for all, one for each attribute, one for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.core.check import finite


def fits_into(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether one shape stretches to another, without stretching the other."""
    try:
        return np.broadcast_shapes(small, large) == large
    except ValueError:
        return False


def nested(name: str, value: Any) -> Any:
    """Numbers in tuples in tuples, as doubles; lists and arrays are welcome."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(nested(name, part) for part in value)
    return float(finite(name, value))


def depth_of(cuts: tuple[Any, ...]) -> int:
    """0: thresholds for all; 1: for each attribute; 2: for each attribute of each position."""
    depth = 0
    while cuts and isinstance(cuts[0], tuple):
        depth, cuts = depth + 1, cuts[0]
    return depth


def leaves_in(cuts: tuple[Any, ...]) -> list[tuple[float, ...]]:
    """The innermost tuples."""
    if depth_of(cuts) == 0:
        return [cuts]
    return [leaf for part in cuts for leaf in leaves_in(part)]
