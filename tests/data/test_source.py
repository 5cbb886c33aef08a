"""Opening a source: names and types only, and clear errors."""

from __future__ import annotations

import csv

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data import source as module
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total
from discreet.data.schema import category, integer
from discreet.data.source import DuckDBSource, FileSource, FrameSource, open_source

PLAN = compile_program(
    schema={"x": integer(lower=0, upper=9)}, aggregates={"n": count(), "x": total(col("x"))}
)


def numbers(source):
    return {
        n: v.tolist() for n, v in collect(PLAN, source=open_source(source), key=1).columns.items()
    }


def test_kinds(tmp_path):
    table = pa.table({"x": [1, 2]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    assert isinstance(open_source(tmp_path / "a.parquet"), FileSource)
    assert isinstance(open_source(str(tmp_path)), FileSource)
    assert isinstance(open_source(duckdb.from_arrow(table)), DuckDBSource)
    assert isinstance(open_source(pl.from_arrow(table).lazy()), FrameSource)


@pytest.mark.parametrize("thing", [3, None, [1, 2], {"x": [1]}])
def test_what_is_no_source(thing):
    with pytest.raises(InvalidArgument, match="source must be a path"):
        open_source(thing)


def test_paths(tmp_path):
    (tmp_path / "a.txt").write_text("x\n1\n")
    (tmp_path / "x[1].csv").write_text("x\n1\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgument, match="does not exist"):
        open_source(tmp_path / "b.csv")
    with pytest.raises(InvalidArgument, match="must be a CSV, Parquet or Arrow file"):
        open_source(tmp_path / "a.txt")
    with pytest.raises(InvalidArgument, match="must be a CSV, Parquet or Arrow file"):
        open_source(tmp_path / "empty")
    with pytest.raises(InvalidArgument, match="patterns"):
        open_source(tmp_path / "x[1].csv")
    assert numbers(open_source_as_csv(tmp_path / "a.txt")) == {"n": [1], "x": [1]}


def open_source_as_csv(path):
    target = path.with_suffix(".csv")
    path.rename(target)
    return target


def test_folders_hold_one_kind(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("z,x\n1,2\n")
    (tmp_path / "_SUCCESS").write_text("")
    assert list(open_source(tmp_path).columns) == ["x", "y", "z"]
    (tmp_path / "b.csv").write_text("X,z\n1,2\n")
    with pytest.raises(InvalidArgument, match="upper and lower case"):
        open_source(tmp_path)
    (tmp_path / "c.parquet").write_text("")
    with pytest.raises(InvalidArgument, match="folder of one kind"):
        open_source(tmp_path)


@pytest.mark.parametrize("header", ["x,x", "x,X", "x,", ""])
def test_headers_need_different_names(tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(InvalidArgument, match="different column names"):
        open_source(tmp_path / "a.csv")


def test_names_that_differ_in_case_only_are_refused(tmp_path):
    """DuckDB would read the one for the other: rows of one person would count as of many."""
    table = pa.table({"row": [1, 2, 3], "ROW": [7, 7, 7], "SECRET": [1, 1, 1]})
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidArgument, match="upper and lower case") as caught:
        open_source(path)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="upper and lower case"):
        module.arrow_columns(table.schema)
    limits = ContributionLimits(max_rows_per_unit=1)
    plan = compile_program(schema={}, unit="ROW", aggregates={"n": count()}, limits=limits)
    assert collect(plan, source=open_source(pl.from_arrow(table)), key=1).columns["n"] == [1]


def test_opening_reads_no_rows(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "garbage,,,\n" * 3)
    assert dict(open_source(path).columns) == {"x": "text"}
    lazy = pl.LazyFrame({"x": [1]}).map_batches(lambda _: 1 / 0, schema={"x": pl.Int64})
    assert dict(open_source(lazy).columns) == {"x": "integer"}
    relation = duckdb.connect().sql("SELECT error('read') AS x")
    open_source(relation)


def test_dialect_is_declared_not_detected(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffx;y\n1;2\n3;'4\n5;#6\n")
    source = open_source(tmp_path / "a.csv", delimiter=";")
    assert dict(source.columns) == {"x": "text", "y": "text"}
    assert collect(PLAN, source=source, key=1).columns["x"].tolist() == [9]
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(InvalidArgument, match="delimiter"):
            open_source(tmp_path / "a.csv", delimiter=wrong)


def test_quoted_fields_may_hold_anything(tmp_path):
    levels = ['say "hi"', "a,b", "line\nbreak", "'; DROP TABLE x; --"]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["k"], *([level] for level in levels)])
    plan = compile_program(
        schema={"k": category(levels)}, by={"k": col("k")}, aggregates={"n": count()}
    )
    table = collect(plan, source=open_source(tmp_path / "a.csv", records="quoted"), key=1)
    assert table.columns["n"].tolist() == [1, 1, 1, 1, 0]
    # Line by line, "line and break" are two malformed records.
    table = collect(plan, source=open_source(tmp_path / "a.csv"), key=1)
    assert table.columns["n"].tolist() == [1, 1, 0, 1, 2]


def test_late_rows_do_not_change_how_early_ones_are_read(tmp_path):
    """Sampling would find numbers and fail at the text, which is no known value."""
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 50_000 + "many\n" + "2\n")
    assert numbers(tmp_path / "a.csv") == {"n": [50_001], "x": [50_002]}


def test_a_path_is_not_hive_partitioned(tmp_path):
    folder = tmp_path / "x=5"
    folder.mkdir()
    pa.parquet.write_table(pa.table({"x": [1, 2]}), folder / "a.parquet")
    assert numbers(tmp_path) == {"n": [2], "x": [3]}


def test_arrow_files_say_what_they_need(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    (tmp_path / "a.arrow").write_text("")
    monkeypatch.setattr(module.importlib, "import_module", absent)
    with pytest.raises(Unsupported, match="pip install pyarrow"):
        open_source(tmp_path / "a.arrow")


def test_names_cannot_inject():
    name = '"; DROP TABLE people; --'
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 4 AS x")
    relation = connection.sql(f"SELECT 4 AS {duckdb_name(name)} FROM people")
    plan = compile_program(
        schema={name: integer(lower=0, upper=9)}, aggregates={"x": total(col(name))}
    )
    assert collect(plan, source=open_source(relation), key=1).columns["x"].tolist() == [4]
    assert connection.sql("FROM people").fetchall() == [(4,)]


def duckdb_name(name):
    return '"' + name.replace('"', '""') + '"'
