"""Where rows are summed: a table adds up what a function makes of each piece of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.models.inputs import Floats, doubles
from discreet.models.regression.rows import CHUNK, Ints

Piece: TypeAlias = Callable[[Floats, Floats], Ints]
"""From the features and targets of some rows to an array of integers that adds up."""


class Rows(Protocol):
    """A private table of features and targets. Nothing is read before `add_up`."""

    @property
    def features(self) -> int:
        """Columns of features."""

    @property
    def outputs(self) -> int:
        """Columns of targets."""

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces of the table, exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """Rows in memory."""

    x: NDArray[Any] = field(repr=False)
    y: NDArray[Any] = field(repr=False)

    @property
    def features(self) -> int:
        """Columns of features."""
        return int(self.x.shape[1])

    @property
    def outputs(self) -> int:
        """Columns of targets."""
        return int(self.y.shape[1])

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over chunks of rows."""
        total = start.copy()
        for first in range(0, len(self.x), CHUNK):
            chunk = slice(first, first + CHUNK)
            total += piece(doubles("X", self.x[chunk]), doubles("y", self.y[chunk]))
        return total


def empty(size: int) -> Ints:
    """Zeros to start from."""
    return np.zeros(size, dtype=np.int64)
