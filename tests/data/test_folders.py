"""Folders whose files differ, and folders whose names are values."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import MISSING, category, integer, real
from discreet.data.source import check_names, open_source

YEARS = category([2023, 2024], missing=MISSING)
REGIONS = category(["n", "o'x/y", "ü"], missing=MISSING)
SCHEMA = {"year": YEARS, "region": REGIONS, "x": integer(0, 10)}


def write(path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if path.suffix == ".csv":
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
        path.write_text("\n".join([",".join(table.column_names), *lines, ""]), encoding="utf-8")
    elif path.suffix == ".arrow":
        pa.feather.write_feather(table, path)
    else:
        pq.write_table(table, path)


def hive(folder, ending):
    many = 3
    for year in ("2023", "2024", "abc", "__HIVE_DEFAULT_PARTITION__"):
        for region in ("n", "o'x%2Fy", "ü"):
            write(
                folder / f"year={year}" / f"region={region}" / f"p.{ending}",
                {"who": list(range(many)), "x": [1] * many},
            )
            many += 1
    return folder


def answers(source, **asked):
    plan = compile_program(aggregates={"n": count(), "x": total(col("x"))}, **asked)
    found = collect(plan, source=source, key=1)
    return {name: [int(v) for v in values] for name, values in found.columns.items()}


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_names_of_folders_are_columns(tmp_path, ending):
    source = open_source(hive(tmp_path / "t", ending))
    for opened in (source, pickle.loads(pickle.dumps(source))):
        got = answers(
            opened, schema=SCHEMA, unit="who", by={"y": col("year"), "r": col("region")},
            limits=ContributionLimits(max_rows_per_unit=100),
        )  # fmt: skip
        # 2023, 2024, other, missing by the three regions, other and missing
        assert got["n"] == [3, 4, 5, 0, 0, 6, 7, 8, 0, 0, 9, 10, 11, 0, 0, 12, 13, 14, 0, 0]
        assert got["x"] == got["n"]
    assert source.columns["year"] == "text"


def test_malformed_lines_and_line_breaks_in_folders(tmp_path):
    for year, text in (("2023", 'x\n1\n"\n2\n'), ("2024", "x\n3\n")):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "p.csv").write_text(text)
    by = {"y": col("year")}
    assert answers(open_source(tmp_path), schema=SCHEMA, by=by) == {
        "n": [2, 1, 0, 0],
        "x": [3, 3, 0, 0],
    }
    (tmp_path / "year=2023" / "p.csv").write_text('x,t\n1,"a\nb"\n2,c\n')
    (tmp_path / "year=2024" / "p.csv").write_text("x,t\n3,c\n")
    source = open_source(tmp_path, records="quoted")
    assert answers(source, schema=SCHEMA, by=by) == {"n": [2, 1, 0, 0], "x": [3, 3, 0, 0]}


def test_a_column_of_the_file_itself_is_the_one(tmp_path):
    write(tmp_path / "year=2023" / "p.parquet", {"year": ["2024"], "x": [1]})
    assert answers(open_source(tmp_path), schema=SCHEMA, by={"y": col("year")})["n"] == [0, 1, 0, 0]


def test_other_folders_are_no_columns(tmp_path):
    write(tmp_path / "year=2023" / "p.parquet", {"x": [1]})
    write(tmp_path / "b" / "p.parquet", {"x": [1]})
    assert set(open_source(tmp_path).columns) == {"x"}


def test_people_in_folders_are_refused(tmp_path):
    write(tmp_path / "who=7" / "p.parquet", {"x": [1]})
    with pytest.raises(InvalidArgument, match="names of folders") as error:
        discreet.table(tmp_path, columns={"x": integer(0, 9)}, privacy_unit="who",
                       max_rows_per_unit=1)  # fmt: skip
    assert "7" not in str(error.value)


DRIFT = {"x": real(0, 300, granularity=0.5), "w": integer(-5, 2**40), "t": category(["a", "b"])}


def drift(folder, ending):
    write(
        folder / f"0.{ending}", {"who": [1, 2], "x": pa.array([1, 2], pa.int8()), "t": ["a", "b"]}
    )
    write(folder / f"1.{ending}", {"t": ["a", "c"], "x": [2.5, None], "who": [1, 3], "u": [1, 2]})
    write(folder / f"2.{ending}", {"w": [2**33], "who": pa.array([4], pa.int16()), "x": [250]})
    write(
        folder / f"3.{ending}", {"w": pa.array([2, None], pa.int16()), "who": [5, 6], "z": [1, 2]}
    )
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_files_are_read_by_name(tmp_path, ending):
    source = open_source(drift(tmp_path / "t", ending))
    plan = compile_program(
        schema=DRIFT, unit="who", by={"t": col("t")},
        aggregates={"n": count(), "u": units(), "x": total(col("x"))},
        limits=ContributionLimits(max_rows_per_unit=9),
    )  # fmt: skip
    for opened in (source, pickle.loads(pickle.dumps(source))):
        found = {
            k: [int(v) for v in c] for k, c in collect(plan, source=opened, key=1).columns.items()
        }
        assert found == {"n": [2, 1, 1], "u": [1, 1, 1], "x": [7, 4, 500]}
    whole = compile_program(schema=DRIFT, aggregates={"w": total(col("w"))})
    assert int(collect(whole, source=source, key=1).columns["w"][0]) == 2**33 + 2


def test_decimals_of_any_width_are_exact(tmp_path):
    from decimal import Decimal

    for place, kind in enumerate((pa.decimal128(5, 2), pa.decimal128(38, 0), pa.int32())):
        write(tmp_path / f"{place}.parquet", {"x": pa.array([Decimal(7)], kind)})
    source = open_source(tmp_path)
    assert source.columns == {"x": "exact"}
    plan = compile_program(schema={"x": integer(0, 9)}, aggregates={"x": total(col("x"))})
    assert int(collect(plan, source=source, key=1).columns["x"][0]) == 21


@pytest.mark.parametrize(
    "other", [pa.array(["5"]), pa.array([True]), pa.array([5], pa.timestamp("us"))]
)
def test_types_that_are_not_alike_are_refused_if_declared(tmp_path, other):
    write(tmp_path / "0.parquet", {"x": [1], "y": [1]})
    write(tmp_path / "1.parquet", {"x": other, "y": [2]})
    with pytest.raises(InvalidArgument, match="not read alike"):
        discreet.table(tmp_path, columns={"x": integer(0, 9)})
    plan = compile_program(schema={"y": integer(0, 9)}, aggregates={"y": total(col("y"))})
    assert int(collect(plan, source=open_source(tmp_path), key=1).columns["y"][0]) == 3


def test_a_unit_that_some_files_lack_is_refused(tmp_path):
    source = open_source(drift(tmp_path / "t", "parquet"))
    check_names(DRIFT, "who", source)
    write(tmp_path / "t" / "4.parquet", {"x": [1]})
    with pytest.raises(InvalidArgument, match="not in all files"):
        check_names(DRIFT, "who", open_source(tmp_path / "t"))


def test_texts_that_are_not_utf8_among_files_that_differ(tmp_path):
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    write(tmp_path / "year=2023" / "0.parquet", {"t": bad, "x": pa.array([1], pa.int8())})
    write(tmp_path / "year=2024" / "1.parquet", {"t": ["a"], "x": [5]})
    source = open_source(tmp_path)
    schema = SCHEMA | {"t": category(["a"], missing=MISSING)}
    got = answers(source, schema=schema, by={"y": col("year"), "t": col("t")})["n"]
    assert got == [0, 0, 1, 1, 0, 0, *[0] * 6]


def test_spark_refuses_files_that_differ(tmp_path):
    with pytest.raises(Unsupported, match="leave engine out"):
        open_source(drift(tmp_path / "d", "csv"), engine="spark")
