"""Ibis: DuckDB's tables as relations, those of other backends as batches."""

from __future__ import annotations

import ibis
import polars as pl
import pytest

from discreet.core.errors import PrivacyError
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import compile_program, total
from discreet.data.schema import integer
from discreet.data.source import ArrowStreamSource, DuckDBSource, EngineFailure, open_source
from tests.data import sources
from tests.data.test_contract import Contract, folder

__all__ = ["folder"]
SECRET = "CANARY-7316"
PLAN = compile_program(schema={"x": integer(lower=0, upper=9)}, aggregates={"x": total(col("x"))})


@pytest.mark.parametrize("make", sources.IBIS)
class TestContract(Contract):
    step = 9


def connected():
    return ibis.polars.connect({"t": pl.DataFrame({"x": [1, 20, None], "y": [SECRET] * 3})})


def test_expressions_are_computed_by_their_backend():
    duck = ibis.duckdb.connect()
    duck.raw_sql("CREATE TABLE t AS SELECT unnest([1, 20, NULL]) AS x")
    for backend, kind in ((duck, DuckDBSource), (connected(), ArrowStreamSource)):
        table = backend.table("t")
        source = open_source(table.filter(table.x > 1).mutate(x=table.x - 12))
        assert isinstance(source, kind)
        assert collect(PLAN, source=source, key=1).columns["x"].tolist() == [8]


def test_failures_quote_nothing():
    table = connected().table("t")
    source = open_source(table.mutate(x=table.y.cast("int64")))
    with pytest.raises(EngineFailure) as caught:
        collect(PLAN, source=source, key=1)
    assert SECRET not in str(caught.value) + repr(source)
    assert caught.value.__context__ is None


def test_a_table_without_a_backend():
    with pytest.raises(PrivacyError):
        open_source(ibis.table({"x": "int64"}, name="nowhere"))
