"""Where rows are summed: in arrays, or where they are (files, DuckDB, data frames, Spark; K40).

A source adds up what a function makes of each piece of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import OutOfDomain
from discreet.data._float_columns import add_up
from discreet.data.source import Source
from discreet.models._model_inputs import Floats, doubles
from discreet.models.regression._row_lattice import CHUNK, Ints

Piece: TypeAlias = Callable[[Floats, Floats], Ints]
"""From the features and targets of some rows to an array of integers that adds up."""

# Below it doubles tell whole numbers apart.
_EXACT = 2.0**53


class RowSource(Protocol):
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
    units: NDArray[Any] | None = field(default=None, repr=False)
    max_rows_per_unit: int = 1

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
        kept = None if self.units is None else first_rows(self.units, self.max_rows_per_unit)
        for first in range(0, len(self.x), CHUNK):
            chunk = slice(first, first + CHUNK)
            x, y = doubles("X", self.x[chunk]), doubles("y", self.y[chunk])
            if kept is not None:
                x, y = x[kept[chunk]], y[kept[chunk]]
            total += piece(x, y)
        return total

    def used(self) -> ArrayRows:
        """The rows that count, if they are read as a whole: none beyond those of their unit."""
        if self.units is None:
            return self
        kept = first_rows(self.units, self.max_rows_per_unit)
        return ArrayRows(self.x[kept], self.y[kept])


def first_rows(units: NDArray[Any], most: int) -> NDArray[np.bool_]:
    """Which rows are among the first ``most`` of their unit.

    Theorem: whether a row is kept depends on the rows of its own unit alone.
    """
    codes = _numbered(units)
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=-1))
    lengths = np.diff(np.append(starts, len(ranked)))
    places = np.arange(len(ranked)) - np.repeat(starts, lengths)
    kept = np.zeros(len(units), dtype=bool)
    kept[order] = places < most
    return kept


def _numbered(units: NDArray[Any]) -> Ints:
    """A number for each unit. Missing names would make one unit of many people: refused."""
    with suppress(TypeError):  # whose message would quote what they are
        missing = units != units  # noqa: PLR0124 - only what is missing differs from itself
        if units.dtype.kind == "O":
            missing = missing | np.array([one is None for one in units])
        # A fraction among large whole numbers makes all of them doubles, and some of them equal.
        rounded = units.dtype.kind == "f" and bool((np.abs(units) >= _EXACT).any())
        if not (np.any(missing) or rounded):
            return np.asarray(np.unique(units, return_inverse=True)[1], dtype=np.int64)
    raise OutOfDomain(
        "units must be all numbers or all text, and none may be missing; doubles below 2**53."
    )


def empty(size: int) -> Ints:
    """Zeros to start from."""
    return np.zeros(size, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceRows:
    """Named columns of a source; the sums are made piece by piece, or by Spark's workers."""

    source: Source = field(repr=False)
    names: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def features(self) -> int:
        """Columns of features."""
        return len(self.names)

    @property
    def outputs(self) -> int:
        """Columns of targets."""
        return len(self.targets)

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces."""
        split = partial(_split, piece, len(self.names))
        return add_up(self.source, [*self.names, *self.targets], split, start=start)


def _split(piece: Piece, features: int, values: Floats) -> Ints:
    return piece(values[:, :features], values[:, features:])
