"""The door of the room: a plan and a source go in, exact integers come out."""

from __future__ import annotations

from typing import assert_never

from discreet.data.duckdb_engine import DuckDBEngine
from discreet.data.engine import Engine, Table, tabulate
from discreet.data.joined_engine import JoinedEngine
from discreet.data.narwhals_engine import NarwhalsEngine
from discreet.data.plan import Plan
from discreet.data.source import (
    Files,
    Frame,
    Joined,
    Relation,
    Source,
    SparkFrame,
    Stream,
    check_source,
)


def engine_of(source: Source) -> Engine:
    """DuckDB for files, relations and streams; frames are computed where they are."""
    match source:
        case Files() | Relation() | Stream():
            return DuckDBEngine(source)
        case SparkFrame():
            from discreet.data.spark_engine import SparkEngine  # noqa: PLC0415 - optional

            return SparkEngine(source)
        case Frame():
            return NarwhalsEngine(source)
        case Joined():
            return JoinedEngine(
                source=source, engine=engine_of(source.source), other=engine_of(source.other)
            )
        case _:
            assert_never(source)


def collect(plan: Plan, *, source: Source, key: int) -> Table:
    """The exact integers that a plan asks for.

    ``key`` decides which rows of a unit above its limit are kept: draw it afresh for each run.
    """
    check_source(plan.program(), source)
    return tabulate(plan, engine=engine_of(source), key=key)
