"""Columns of a unit's row in another private table, attached to all rows of that unit.

First one row of each unit is chosen in the other source; then its codes are looked up by the name
of the unit, which any engine can do. Units without a row there get the missing codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.core.errors import Unsupported
from discreet.data.code import Const, Ref
from discreet.data.engine import Engine, Row
from discreet.data.plan import Limits, Program
from discreet.data.schema import Lookup
from discreet.data.source import Joined, Source, SparkFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedEngine:
    """An engine for the rows, and one for the source whose columns are attached."""

    source: Joined
    engine: Engine
    other: Engine

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        return self.engine.collect(self._attached(program, key), key=key)

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self.engine.keys(self._attached(program, key), key=key)

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self.engine.rows(self._attached(program, key), key=key)

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        return self.engine.spread(self._attached(program, 0))

    def _attached(self, program: Program, key: int) -> Program:
        """The program with the codes of the other source filled in."""
        names = [name for name, _ in program.columns if name in self.source.attached]
        if not names:
            return program
        if _on_cluster(self.source):
            raise Unsupported(
                "Spark would keep private codes in its plan and its logs: attach them beforehand."
            )
        rows = self.other.rows(one_row_each(self.source, names), key=key)
        units = tuple(row[0] for row in rows)
        filled = {
            name: tuple(int(row[1 + place]) for row in rows) for place, name in enumerate(names)
        }
        columns = tuple(
            (name, replace(column, keys=units, codes=filled[name]))
            if isinstance(column, Lookup) and name in filled
            else (name, column)
            for name, column in program.columns
        )
        return replace(program, columns=columns)


def _on_cluster(source: Source) -> bool:
    """Whether the rows that get the codes are on a cluster, under however many joins."""
    return (
        _on_cluster(source.source) if isinstance(source, Joined) else isinstance(source, SparkFrame)
    )


def one_row_each(source: Joined, names: Sequence[str]) -> Program:
    """One row of each unit of the other source, chosen by the unit's own rows."""
    return Program(
        columns=tuple((name, source.attached[name]) for name in names),
        unit=source.unit,
        where=None,
        index=Const(0),
        cells=None,
        size=1,
        values=tuple(Ref(name) for name in names),
        sums=(),
        count_units=False,
        limits=Limits(rows_per_unit=1),
    )
