"""Run a plan on a source: exact integers, and the keys that occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._duckdb.engine import DuckDBEngine
from discreet.data._integer_ops import BoundedCode, CodeConst, CodeRef, columns
from discreet.data._numpy.engine import NarwhalsEngine
from discreet.data.expression import Expression
from discreet.data.program import (
    ContributionLimits,
    Engine,
    ExactResult,
    Key,
    Program,
    Row,
    radix,
    rows_used,
    tabulate,
    unit_parts,
    unit_value,
)
from discreet.data.schema import LookupColumn, Schema
from discreet.data.source import (
    ArrowStreamSource,
    DuckDBSource,
    FileSource,
    FrameSource,
    JoinedSource,
    Source,
    SparkSource,
    check_source,
    run_sealed,
)
from discreet.data.unit import Unit

# ── Columns attached by unit ─────────────────────────────────────────────────────────────────────
# First one row of each unit is chosen in the other source; then its codes are looked up by the
# name of the unit, which any engine can do. Units without a row there get the missing codes.


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedEngine:
    """An engine for the rows, and one for the source whose columns are attached."""

    source: JoinedSource
    engine: Engine
    other: Engine

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        return self.engine.collect(self._attached(program, key), key=key)

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self.engine.keys(self._attached(program, key), key=key)

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return self.engine.rows(self._attached(program, key), key=key)

    def values(self, program: Program, *, key: int) -> tuple[NDArray[np.int64], ...]:
        return self.engine.values(self._attached(program, key), key=key)

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
        rows = self.other.rows(one_row_per_unit(self.source, names), key=key)
        units = tuple(row[0] for row in rows)
        filled = {
            name: tuple(int(row[1 + place]) for row in rows) for place, name in enumerate(names)
        }
        columns = tuple(
            (name, replace(column, keys=units, codes=filled[name]))
            if isinstance(column, LookupColumn) and name in filled
            else (name, column)
            for name, column in program.columns
        )
        return replace(program, columns=columns)


def _on_cluster(source: Source) -> bool:
    """Whether the rows that get the codes are on a cluster, under however many joins."""
    return (
        _on_cluster(source.source)
        if isinstance(source, JoinedSource)
        else isinstance(source, SparkSource)
    )


def one_row_per_unit(source: JoinedSource, names: Sequence[str]) -> Program:
    """One row of each unit of the other source, chosen by the unit's own rows."""
    return Program(
        columns=tuple((name, source.attached[name]) for name in names),
        unit=source.unit,
        where=None,
        index=CodeConst(0),
        cells=None,
        size=1,
        values=tuple(CodeRef(name) for name in names),
        sums=(),
        count_units=False,
        limits=ContributionLimits(max_rows_per_unit=1),
    )


# ── Exact integers ───────────────────────────────────────────────────────────────────────────────


def engine_of(source: Source) -> Engine:
    """DuckDB for files, relations and streams; frames are computed where they are."""
    match source:
        case FileSource() | DuckDBSource() | ArrowStreamSource():
            return DuckDBEngine(source)
        case SparkSource():
            from discreet.data._spark.engine import SparkEngine  # noqa: PLC0415 - optional

            return SparkEngine(source)
        case FrameSource():
            return NarwhalsEngine(source)
        case JoinedSource():
            return JoinedEngine(
                source=source, engine=engine_of(source.source), other=engine_of(source.other)
            )
        case _:
            assert_never(source)


def collect(program: Program, *, source: Source, key: int) -> ExactResult:
    """The exact integers that a program asks for.

    ``key`` decides which rows of a unit above its limit are kept: draw it afresh for each run.
    """
    check_source(program, source)
    return tabulate(program, engine=engine_of(source), key=key)


def collect_values(program: Program, *, source: Source, key: int) -> tuple[NDArray[np.int64], ...]:
    """The private values of the rows that a program's limits leave, without whose they are."""
    check_source(program, source)
    return engine_of(source).values(program, key=check.count("key", key, minimum=0))


# ── Observed keys ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyPlan:
    """Which keys are looked for: values of open text and of declared expressions.

    Rows without a unit, and rows in which a key is unknown, are left out. Of each unit at most
    ``max_groups_per_unit`` keys count, chosen by its own keys (in the order of their bytes) only.
    """

    schema: Schema
    by: Mapping[str, Expression]
    max_groups_per_unit: int
    unit: Unit | None = None
    where: Expression | None = None

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidArgument("by must name the columns whose values are looked for.")
        groups = check.count("max_groups_per_unit", self.max_groups_per_unit)
        if self.unit is None and groups != 1:
            raise InvalidArgument("max_groups_per_unit is 1 when each row is another unit.")
        self.program()

    def program(self) -> Program:
        """What the engine is asked."""
        parts = unit_parts(self.unit, self.schema)
        rows = rows_used(self.where, self.schema, known=[*self._coded(), *parts])
        index, size = radix(self._coded())
        whose = unit_value(parts, rows)
        codes = [index, *[code for code in (rows.where, whose) if code is not None]]
        used = sorted(set().union(rows.known, *map(columns, codes)) | set(self._texts()))
        return Program(
            columns=tuple((name, self.schema[name]) for name in used),
            unit=self.unit,
            where=rows.where,
            index=index,
            cells=None,
            size=size,
            values=(),
            sums=(),
            count_units=True,
            limits=ContributionLimits(max_groups_per_unit=self.max_groups_per_unit)
            if self.unit
            else ContributionLimits(),
            texts=self._texts(),
            known=rows.known,
            unit_value=whose,
        )

    def key(self, index: int, texts: tuple[str, ...]) -> Key:
        """The values that a group stands for, in the order of ``by``."""
        coded: list[Any] = []
        for one in reversed(self._coded()):
            index, place = divmod(index, one.upper - one.lower + 1)
            coded.append(one.label(place + one.lower))
        rest, coded = iter(texts), coded[::-1]
        return tuple(next(rest) if d.kind == "text" else coded.pop(0) for d in self._dimensions())

    def _dimensions(self) -> tuple[BoundedCode, ...]:
        return tuple(one.bind(self.schema) for one in self.by.values())

    def _coded(self) -> tuple[BoundedCode, ...]:
        return tuple(one for one in self._dimensions() if one.kind != "text")

    def _texts(self) -> tuple[str, ...]:
        texts = [d.code for d in self._dimensions() if d.kind == "text"]
        return tuple(code.column for code in texts if isinstance(code, CodeRef))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ObservedKeys:
    """Private: the keys that occur, in the order of their values, and how many units have each."""

    keys: tuple[Key, ...]
    units: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Found(private)"


def collect_keys(plan: KeyPlan, *, source: Source, key: int) -> ObservedKeys:
    """The keys that occur; ``key`` decides which keys of a unit above its limit are kept."""
    rows = engine_of(source).keys(plan.program(), key=check.count("key", key, minimum=0))
    return run_sealed("sorting the keys", lambda: _found(plan, rows))


def _found(plan: KeyPlan, rows: Sequence[Sequence[Any]]) -> ObservedKeys:
    # Not the engine's order: by texts as bytes, then by declared values.
    ordered = sorted(rows, key=lambda row: (*(str(t).encode() for t in row[2:]), int(row[0])))
    return ObservedKeys(
        keys=tuple(plan.key(int(row[0]), tuple(row[2:])) for row in ordered),
        units=np.array([int(row[1]) for row in ordered], dtype=np.int64),
    )
