"""Rows that stay where they are: files, DuckDB, frames, Spark (K40)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from discreet.data.doubles import add_up
from discreet.data.source import Source
from discreet.models.inputs import Floats
from discreet.models.regression.rows import Ints
from discreet.models.regression.tables import Piece


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
