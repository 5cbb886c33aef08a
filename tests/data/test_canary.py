"""A secret in the data appears in no message, repr, log or output, whatever goes wrong."""

from __future__ import annotations

import logging
import os
import traceback
from dataclasses import replace

import duckdb
import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.data import schema
from discreet.data._duckdb import engine as duckdb_engine
from discreet.data._numpy import engine as narwhals_engine
from discreet.data.execute import KeyPlan, collect, collect_keys, engine_of
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import LookupColumn, boolean, category, integer
from discreet.data.source import EngineFailure, JoinedSource, open_source

SECRET = "CANARY-7316"
NUMBER = 731_655_901
PLAN = compile_program(
    schema={
        "x": integer(lower=0, upper=10, missing=0),
        "k": category(["a"]),
        "b": boolean(missing=False),
    },
    unit="who",
    by={"k": col("k")},
    where=~col("b"),
    aggregates={"n": count(), "u": units(), "x": total(col("x"))},
    limits=ContributionLimits(max_rows_per_unit=1),
)
ROWS = {"who": [SECRET, SECRET, "b"], "x": [NUMBER, NUMBER, 2], "k": [SECRET, "a", None]}
ROWS["b"] = [SECRET, "yes", "no"]


def everything(error):
    """All that an exception carries, with its causes and contexts."""
    seen, text = [], ""
    while error is not None and error not in seen:
        seen.append(error)
        text += "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
        error = error.__cause__ or error.__context__
    return text


@pytest.fixture(autouse=True)
def nothing_is_said(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    yield
    said = caplog.text + "".join(capfd.readouterr())
    assert SECRET not in said
    assert str(NUMBER) not in said


def refuses(action, error=PrivacyError):
    with pytest.raises(error) as caught:
        action()
    text = everything(caught.value)
    assert SECRET not in text
    assert str(NUMBER) not in text
    return caught.value


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_the_check_itself_can_fail():
    """`from None` only hides the original; it is still attached."""

    def careless():
        try:
            int(SECRET)
        except ValueError:
            raise EngineFailure("withheld") from None

    with pytest.raises(EngineFailure) as caught:
        careless()
    assert SECRET in everything(caught.value)


FRAMES = [
    pd.DataFrame,
    pl.DataFrame,
    pl.LazyFrame,
    pa.table,
    lambda rows: duckdb.connect().from_arrow(pa.table(rows)),
]


@pytest.mark.parametrize("make", FRAMES)
def test_reprs_show_no_data(make):
    source = open_source(make(ROWS))
    table = collect(PLAN, source=source, key=1)
    for thing in (source, table, PLAN):
        for text in (repr(thing), str(thing), f"{thing}"):
            assert SECRET not in text
            assert str(NUMBER) not in text
    assert "n" in repr(table)


@pytest.mark.parametrize("make", FRAMES)
def test_a_missing_column(make):
    plan = compile_program(
        schema={"y": integer(lower=0, upper=1)}, aggregates={"y": total(col("y"))}
    )
    error = refuses(lambda: collect(plan, source=open_source(make(ROWS)), key=1), InvalidArgument)
    assert "'y'" in str(error)


def test_a_csv_without_a_header(tmp_path):
    path = write(tmp_path / "a.csv", f"{SECRET},{NUMBER},a,no\n{SECRET},1,b,no\n")
    source = open_source(path)
    assert SECRET not in repr(source)
    refuses(lambda: collect(PLAN, source=source, key=1), InvalidArgument)


@pytest.mark.parametrize(
    "line",
    [
        f"{SECRET},{NUMBER},a,no,too,many",
        f"{SECRET}",
        f'"{SECRET},{NUMBER},a,no',
        f'{SECRET},"{NUMBER}"x,a,no',
    ],
)
def test_a_broken_line_of_a_csv(tmp_path, line):
    path = write(tmp_path / "a.csv", f"who,x,k,b\nb,1,a,no\n{line}\n")
    collect(PLAN, source=open_source(path), key=1)
    source = open_source(path)
    assert SECRET not in repr(source)
    refuses(lambda: open_source(path, records="quoted"), InvalidArgument)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"who,x,k,b\n" + SECRET.encode() + b"\xff\xfe,1,a,no\n")
    collect(PLAN, source=open_source(path), key=1)
    refuses(lambda: open_source(path, records="quoted"), InvalidArgument)
    path.write_bytes(SECRET.encode() + b"\xff\n")
    refuses(lambda: open_source(path), InvalidArgument)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_that_are_something_else(tmp_path, suffix):
    path = write(tmp_path / f"a.{suffix}", SECRET * 100)
    refuses(lambda: open_source(path), EngineFailure)


def test_a_file_that_breaks_after_it_was_opened(tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table(ROWS), path)
    source = open_source(path)
    write(path, SECRET * 1000)
    refuses(lambda: collect(PLAN, source=source, key=1), InvalidArgument)
    os.truncate(path, source.stamps[0].size)  # nobody notices that it changed
    os.utime(path, ns=(source.stamps[0].modified, source.stamps[0].modified))
    refuses(lambda: collect(PLAN, source=source, key=1), EngineFailure)


def test_a_relation_whose_view_fails():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT ? AS who, ? AS x", [SECRET, NUMBER])
    relation = connection.sql("SELECT who, CAST(who AS INTEGER) AS x, 'a' AS k, true AS b FROM t")
    refuses(lambda: collect(PLAN, source=open_source(relation), key=1), EngineFailure)


class Talkative:
    """A value that quotes itself when something touches it."""

    def __str__(self):
        raise ValueError(SECRET)

    __repr__ = __str__


def test_a_python_object_that_fails_is_missing():
    frame = pd.DataFrame(ROWS | {"x": pd.Series([Talkative(), 1, 2], dtype=object)})
    collect(PLAN, source=open_source(frame), key=1)


def test_a_lazy_frame_that_fails():
    frame = pl.LazyFrame(ROWS).with_columns(x=pl.col("who").cast(pl.Int64))
    refuses(lambda: collect(PLAN, source=open_source(frame), key=1), EngineFailure)


@pytest.mark.parametrize(
    "error", [ValueError, OverflowError, MemoryError, duckdb.ConversionException]
)
def test_whatever_an_engine_raises(monkeypatch, tmp_path, error):
    def fail(*args, **kwargs):
        raise error(f"could not convert {SECRET} and {NUMBER}")

    monkeypatch.setattr(narwhals_engine, "encode", fail)
    monkeypatch.setattr(duckdb_engine, "_fetch", fail)
    for make in FRAMES:
        source = open_source(make(ROWS))
        caught = refuses(lambda source=source: collect(PLAN, source=source, key=1))
        assert caught.__context__ is None
        assert caught.__cause__ is None


@pytest.mark.parametrize("form", ["frame", "relation"])
def test_keys_and_rows_of_units(monkeypatch, form):
    """What the engines also return: keys that occur, and one row of each unit."""
    frame = pa.table({**ROWS, "x": [1, 2, 3]})
    source = open_source(frame if form == "frame" else duckdb.connect().from_arrow(frame))
    plan = KeyPlan(
        schema={"k": schema.text()}, by={"k": col("k")}, max_groups_per_unit=1, unit="who"
    )
    found = collect_keys(plan, source=source, key=1)
    assert (SECRET,) in found.keys
    assert SECRET not in repr(found) + repr(plan) + repr(plan.program())
    people = JoinedSource(source=source, other=source, unit="who", attached={"x": PLAN.schema["x"]})
    lookup = LookupColumn(source="who", inner=PLAN.schema["x"], textual=True, keys=(), codes=())
    used = [(name, lookup if name == "x" else one) for name, one in PLAN.columns]
    joined = replace(PLAN, columns=tuple(used))
    assert collect(joined, source=people, key=1).columns["n"].sum() == 2
    filled = replace(lookup, keys=(SECRET,), codes=(NUMBER,))
    assert SECRET not in repr(filled) + repr(people)
    assert str(NUMBER) not in repr(filled)

    def fail(*_, **__):
        raise ValueError(f"{SECRET} {NUMBER}")

    monkeypatch.setattr(duckdb_engine, "_fetch", fail)
    monkeypatch.setattr(narwhals_engine, "_limited", fail)
    engine = engine_of(source)
    for action in (
        lambda: collect_keys(plan, source=source, key=1),
        lambda: engine.rows(PLAN, key=1),
        lambda: engine.spread(PLAN),
        lambda: collect(joined, source=people, key=1),
    ):
        refuses(action, EngineFailure)
    monkeypatch.setattr(KeyPlan, "key", fail)
    monkeypatch.setattr(type(engine), "keys", lambda *_, **__: [(0, 1, SECRET)])
    refuses(lambda: collect_keys(plan, source=source, key=1), EngineFailure)


def test_names_twice():
    frame = pd.DataFrame([[SECRET, NUMBER]], columns=[SECRET, SECRET])
    refuses(lambda: open_source(frame))


def test_frames_from_narwhals_are_taken_as_they_are():
    table = collect(PLAN, source=open_source(nw.from_native(pl.DataFrame(ROWS))), key=1)
    assert SECRET not in repr(table)
