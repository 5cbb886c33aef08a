"""What an attacker looks at: outputs of any shape as named columns of numbers.

A column is computed when it is asked for and kept: learning asks for all of them, the final test
only for the few that the chosen events need.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]
COORDINATES = 16
"""Coordinates that get columns of their own; longer outputs are also seen as whole rows."""
NO_BIT = 2000.0
"""Stands for the lowest bit of zero: above the exponent of every double."""


@dataclass(frozen=True, slots=True)
class Key:
    """The name of a column: what is computed, of which coordinates."""

    kind: str
    i: int = -1
    j: int = -1

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(k) for k in (self.i, self.j) if k >= 0)])


class Columns:
    """The columns of one batch of outputs.

    Each entry depends on its own output and on nothing else of the batch: an event on a column
    is an event on the output. Coordinates that an output does not have count as zero.
    """

    def __init__(self, outputs: object) -> None:
        self.matrix, self.length = _spread(outputs)
        self._kept: dict[Key, Floats] = {}

    def __len__(self) -> int:
        return len(self.matrix)

    def rows(self, first: int, last: int) -> Columns:
        """The outputs from first up to last."""
        part = object.__new__(Columns)
        part.matrix, part.length = self.matrix[first:last], self.length[first:last]
        part._kept = {}
        return part

    @property
    def keys(self) -> tuple[Key, ...]:
        """The columns worth looking at."""
        width = self.matrix.shape[1]
        kept = range(min(width, COORDINATES))
        whole = bool(np.all(np.isfinite(self.matrix)) and np.all(self.matrix % 1 == 0))
        one = ("value",) if whole else ("value", "lowest bit", "fraction")
        two = ("difference",) if whole else ("difference", "ratio")
        pairs = itertools.combinations(kept, 2) if width <= 4 else itertools.pairwise(kept)
        return (
            Key("length"),
            Key("not finite"),
            *(Key(kind, j) for j in kept for kind in one),
            *((Key("sum"), Key("largest"), Key("row")) if width > 1 else ()),
            *(Key(kind, i, j) for i, j in pairs for kind in two),
        )

    def __getitem__(self, key: Key) -> Floats:
        if key not in self._kept:
            with np.errstate(divide="ignore", invalid="ignore"):
                column = self._column(key)
            self._kept[key] = np.nan_to_num(column, nan=0.0, posinf=1e308, neginf=-1e308)
        return self._kept[key]

    def _column(self, key: Key) -> Floats:
        match key.kind:
            case "length":
                return self.length
            case "not finite":
                return np.asarray(np.sum(~np.isfinite(self.matrix), axis=1), dtype=np.float64)
            case "sum":
                return self._sum(np.ones(self.matrix.shape[1]))
            case "largest":
                inside = np.arange(self.matrix.shape[1]) < self.length[:, None]
                masked = np.where(inside, self.matrix, -np.inf)
                return np.asarray(np.argmax(masked, axis=1), dtype=np.float64)
            case "row":
                # Almost surely one number per distinct row: an irrational direction.
                return self._sum(np.sqrt(np.arange(2.0, self.matrix.shape[1] + 2)) % 1)
            case "lowest bit":
                return lowest_bit(self._value(key.i))
            case "fraction":
                return np.asarray(self._value(key.i) % 1, dtype=np.float64)
            case "difference":
                return self._value(key.i) - self._value(key.j)
            case "ratio":
                return np.asarray(self._value(key.i) / self._value(key.j), dtype=np.float64)
        return self._value(key.i)

    def _value(self, j: int) -> Floats:
        if j >= self.matrix.shape[1]:
            return np.zeros(len(self))
        return np.asarray(self.matrix[:, j], dtype=np.float64)

    def _sum(self, weights: Floats) -> Floats:
        """Coordinate by coordinate: NumPy's own sums may round differently with the width."""
        total = np.zeros(len(self))
        for j, weight in enumerate(weights.tolist()):
            total += np.nan_to_num(self._value(j), nan=-0.5) * weight
        return total


def _spread(outputs: object) -> tuple[Floats, Floats]:
    """One row per output, and its length: numbers stay, symbols are hashed, rows are padded."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        if outputs.ndim == 0:
            raise InvalidArgument("run must return one output per draw, got a single value.")
        if outputs.dtype.kind in "iu" and outputs.size:
            _exact(max(int(outputs.max()), -int(outputs.min())))
        width = math.prod(outputs.shape[1:])
        matrix = np.zeros((len(outputs), max(1, width)))
        matrix[:, :width] = outputs.reshape(len(outputs), width)
        return matrix, np.full(len(matrix), float(width))
    if not isinstance(outputs, (Sequence, np.ndarray)):
        kind = type(outputs).__name__
        raise InvalidArgument(f"run must return an array or a list of outputs, got {kind}.")
    rows = [
        [_number(v) for v in o] if isinstance(o, (tuple, list, np.ndarray)) else [_number(o)]
        for o in outputs
    ]
    padded = np.zeros((len(rows), max([1, *map(len, rows)])))
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded, np.array([float(len(row)) for row in rows])


def lowest_bit(values: Floats) -> Floats:
    """The exponent of the last non-zero bit of each double: 3 has 0, 1/4 has -2, 0 has NO_BIT."""
    finite = np.where(np.isfinite(values), values, 0.0)
    mantissa, exponent = np.frexp(finite)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = whole & -whole
    _, trailing = np.frexp(last.astype(np.float64))
    return np.where(whole == 0, NO_BIT, (exponent - 54 + trailing).astype(np.float64))


def _exact(largest: int) -> None:
    """Whole outputs are looked at as doubles: refuse those whose last bits would be lost."""
    if largest > 2**53:
        raise InvalidArgument(
            "run returned integers beyond 2**53; return them as two columns, high and low part."
        )


def _number(value: object) -> float:
    if isinstance(value, (int, np.integer)):
        _exact(abs(int(value)))
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)):
        return float(value)
    return float(zlib.crc32(repr(value).encode()))
