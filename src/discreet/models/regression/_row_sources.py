"""Where rows are summed: in arrays, or where they are (files, DuckDB, data frames, Spark).

A source adds up what a function makes of each piece of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.owners import NOBODY, check_owner_type, number_owners
from discreet.boundary.sums import narrow
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.data._float_columns import add_up, check_columns, read_frame
from discreet.data.source import Source, check_unit_type, open_source, run_sealed
from discreet.models._declared_columns import DeclaredColumns
from discreet.models._model_inputs import Floats, doubles, fitting, frame_columns, matrix
from discreet.models.regression._row_lattice import CHUNK, Ints

Piece: TypeAlias = Callable[[Floats, Floats], Ints]
"""From the features and targets of some rows to an array of integers that adds up."""


class RowSource(Protocol):
    """A private table of features and targets. Nothing is read before `add_up`."""

    @property
    def features(self) -> int:
        """Columns of features."""

    @property
    def outputs(self) -> int:
        """Columns of targets."""

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces of the table, misfits left out."""

    def count_all(self) -> int:
        """How many rows there are, misfits among them: for where their number is public."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """Rows in memory."""

    x: NDArray[Any] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    units: object = field(default=None, repr=False)
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
            x, y = doubles(self.x[chunk]), doubles(self.y[chunk])
            used = fitting(x, y)
            if kept is not None:
                used &= kept[chunk]
            if not used.all():
                x, y = x[used], y[used]
            total += piece(x, y)
        return total

    def count_all(self) -> int:
        """How many rows count, misfits among them: of a unit no more than are used."""
        if self.units is None:
            return len(self.x)
        return int(first_rows(self.units, self.max_rows_per_unit).sum())

    def used(self) -> ArrayRows:
        """The rows that count, for methods that read them as a whole."""
        x, y = doubles(self.x), doubles(self.y)
        kept = fitting(x, y)
        if self.units is not None:
            kept &= first_rows(self.units, self.max_rows_per_unit)
        return ArrayRows(x, y) if kept.all() else ArrayRows(x[kept], y[kept])


def first_rows(units: object, most: int) -> NDArray[np.bool_]:
    """Which rows are among the first ``most`` of their unit; rows without a unit are not."""
    # Theorem: whether a row is kept depends on the rows of its own unit alone.
    codes, _ = number_owners(units)
    order = np.argsort(codes, kind="stable")
    kept = np.zeros(len(codes), dtype=bool)
    kept[order] = first_of_each(codes[order], most)
    return kept


def first_of_each(ranked: Ints, most: int) -> NDArray[np.bool_]:
    """Which of some units' rows, sorted by unit, are among its first; nobody's rows are not."""
    starts = np.flatnonzero(np.diff(ranked, prepend=NOBODY - 1))
    lengths = np.diff(np.append(starts, len(ranked)))
    places = np.arange(len(ranked)) - np.repeat(starts, lengths)
    return np.asarray((places < most) & (ranked != NOBODY))


def check_units(units: object, rows: int) -> None:
    """Refuse units by their type and length, before one of them is read."""
    shape = None if frame_columns(units) is not None else _length(units)
    if shape != (rows,):
        raise InvalidArgument("units must be one value for each row.")
    check_owner_type("units", units)


def _length(values: Any) -> tuple[int, ...] | None:
    """The shape of a list, an array or a series; None if it has no length."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        return None
    return tuple(getattr(values, "shape", (len(values),)))


def empty(size: int) -> Ints:
    """Zeros to start from: for counts, which have room in 64 bits whatever is counted."""
    return np.zeros(size, dtype=np.int64)


class Addable(Protocol):
    """Rows in one form or another, which are added up piece by piece."""

    def add_up(self, piece: Any, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces of the table."""


def exact_sums(rows: Addable, piece: Callable[..., Ints], *, size: int) -> NDArray[Any]:
    """The sum of ``piece`` over all rows: in 64 bits, or as Python integers.

    How many rows there are decides about no error: noise takes what is beyond its range for the end
    of the range, which brings the sums of neighbors no further apart.
    """
    return narrow(rows.add_up(piece, start=np.zeros(size, dtype=object)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceRows:
    """Named columns of a source; the sums are made piece by piece, or by Spark's workers."""

    source: Source = field(repr=False)
    names: tuple[str, ...]
    targets: tuple[str, ...]
    columns: DeclaredColumns | None = None

    @property
    def features(self) -> int:
        """Columns of features."""
        return len(self.names) if self.columns is None else len(self.columns.terms)

    @property
    def outputs(self) -> int:
        """Columns of targets."""
        return len(self.targets)

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over all pieces."""
        split = partial(_split, piece, len(self.names), self.columns)
        return add_up(self.source, [*self.names, *self.targets], split, start=start)

    def count_all(self) -> int:
        """How many rows there are, misfits among them."""
        return int(add_up(self.source, self.names[:1], _many, start=empty(1))[0])


class UnitRows:
    """Named columns of a source, read as a whole: of each unit a few rows, in their own order."""

    # Theorem: which rows of a unit are kept depends on the rows of that unit alone.
    # Proof: its rows are ordered by what they hold; equal ones are exchangeable.

    def __init__(
        self,
        *,
        source: Source,
        names: tuple[str, ...],
        targets: tuple[str, ...],
        columns: DeclaredColumns | None,
        unit: str,
        most: int,
    ) -> None:
        self._source, self._names, self._targets = source, names, targets
        self._columns, self._unit, self._most = columns, unit, most
        self._read: ArrayRows | None = None

    @property
    def features(self) -> int:
        """Columns of features."""
        return len(self._names if self._columns is None else self._columns.terms)

    @property
    def outputs(self) -> int:
        """Columns of targets."""
        return len(self._targets)

    def add_up(self, piece: Piece, *, start: Ints) -> Ints:
        """``start`` plus the sum of ``piece`` over chunks of rows."""
        return self._rows().add_up(piece, start=start)

    def count_all(self) -> int:
        """How many rows there are, misfits among them."""
        return self._rows().count_all()

    def _rows(self) -> ArrayRows:
        """Read once, and only after the account was charged."""
        if self._read is None:
            self._read = run_sealed("reading the rows", self._arrays)
        return self._read

    def _arrays(self) -> ArrayRows:
        levels = () if self._columns is None else self._columns.categories
        numbers = [name for name in (*self._names, *self._targets) if name not in levels]
        frame = read_frame(self._source, numbers=numbers, others=[*levels, self._unit])
        native = frame.select(list(self._names)).to_native()
        x = matrix("X", native) if self._columns is None else self._columns.encode(native)
        y = matrix("y", frame.select(list(self._targets)).to_native())
        units, _ = number_owners(frame[self._unit].to_native())
        order = np.lexsort([*doubles(y).T, *doubles(x).T, units])
        kept = first_of_each(units[order], self._most)
        return ArrayRows(x[order][kept], y[order][kept])


def named_rows(
    source: object,
    *,
    names: Sequence[str],
    targets: Sequence[str],
    columns: DeclaredColumns | None = None,
    privacy_unit: str | None = None,
    most: int = 1,
) -> SourceRows | UnitRows:
    """Named columns of a source, checked before a row is read; with a unit, ``most`` rows of each.

    With declared ``columns`` the names are theirs, and may be left out.
    """
    features, outputs = tuple(names), tuple(targets)
    if columns is not None:
        if features not in ((), columns.names):
            raise InvalidArgument("features are those of columns: leave them out.")
        features = columns.names
    opened = open_source(source)
    if not features or not outputs:
        raise InvalidArgument("features and target must name columns.")
    if privacy_unit is None:
        check_columns(opened, [*features, *outputs])
        return SourceRows(source=opened, names=features, targets=outputs, columns=columns)
    levels = () if columns is None else columns.categories
    check_columns(opened, [name for name in (*features, *outputs) if name not in levels])
    absent = [name for name in (*levels, privacy_unit) if name not in opened.columns]
    if absent:
        raise InvalidArgument(f"columns {absent} are not in the source.")
    check_unit_type(privacy_unit, opened)
    return UnitRows(
        source=opened,
        names=features,
        targets=outputs,
        columns=columns,
        unit=privacy_unit,
        most=count("max_rows_per_unit", most),
    )


def _split(piece: Piece, features: int, columns: DeclaredColumns | None, values: Floats) -> Ints:
    x, y = values[:, :features], values[:, features:]
    if columns is not None:
        x = columns.encode(x)
    kept = fitting(x, y)
    return piece(x, y) if kept.all() else piece(x[kept], y[kept])


def _many(values: Floats) -> Ints:
    return np.array([len(values)], dtype=np.int64)
