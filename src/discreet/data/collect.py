"""The door of the room: a plan and a source go in, exact integers come out."""

from __future__ import annotations

from typing import assert_never

from discreet.data.duckdb_engine import DuckDBEngine
from discreet.data.engine import Engine, Table, tabulate
from discreet.data.narwhals_engine import NarwhalsEngine
from discreet.data.plan import Plan
from discreet.data.source import Files, Frame, Relation, Source, check_source


def engine_of(source: Source) -> Engine:
    """DuckDB for files and relations; frames are computed where they are, in memory."""
    match source:
        case Files() | Relation():
            return DuckDBEngine(source)
        case Frame():
            return NarwhalsEngine(source)
        case _:
            assert_never(source)


def collect(plan: Plan, *, source: Source, key: int) -> Table:
    """The exact integers that a plan asks for.

    ``key`` decides which rows of a unit above its limit are kept: draw it afresh for each run.
    """
    check_source(plan.program(), source)
    return tabulate(plan, engine=engine_of(source), key=key)
