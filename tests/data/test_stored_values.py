"""What Parquet and Arrow files can hold and DuckDB cannot: such a value is its row's alone."""

from __future__ import annotations

import datetime as dt
import decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import discreet

HUGE = 10**6  # noise far below one
BROKEN = pa.array([b"a"] * 10 + [b"\xff\xfe"] * 2, pa.binary()).view(pa.string())
EARLY = dt.date(1970, 1, 1)
YEARS = discreet.date(EARLY, dt.date(2030, 1, 1), missing=EARLY)
OLD = discreet.col("x") < dt.date(2000, 1, 1)
ZERO_TO_TEN = discreet.integer(0, 10, missing=0)
FAR = [2**62, -(2**62), 2**63 - 1, -(2**63)]


@pytest.fixture
def account():
    return discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(10**9))


def _source(kind, table, folder):
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        feather.write_feather(table, path)
    elif kind == "relation":
        return duckdb.connect().from_arrow(table)
    else:
        return pl.from_arrow(table) if kind == "polars" else table
    return str(path)


KINDS = ["parquet", "arrow", "relation", "polars", "pyarrow"]
READ_AS = {
    "category": (discreet.category(["a", "b"]), discreet.col("x") == "a", 10),
    "boolean": (discreet.boolean(), discreet.col("x"), 0),
    "integer": (ZERO_TO_TEN, discreet.col("x") < 5, 12),
    "date": (YEARS, OLD, 12),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READ_AS)
def test_a_text_that_is_not_utf8_is_missing(tmp_path, account, kind, name):
    column, where, expected = READ_AS[name]
    source = _source(kind, pa.table({"x": BROKEN}), tmp_path)
    table = discreet.table(source, columns={"x": column}, account=account)
    assert table.count(where=where, epsilon=HUGE).value == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_that_is_not_utf8_is_nobody(tmp_path, account, kind):
    data = pa.table({"who": BROKEN, "x": [1] * 12})
    people = pl.DataFrame({"who": ["a", "b"], "y": [2, 3]})
    one, other = (
        discreet.table(
            source,
            columns={name: ZERO_TO_TEN},
            privacy_unit="who",
            max_rows_per_unit=1,
            account=account,
        )
        for source, name in ((_source(kind, data, tmp_path), "x"), (people, "y"))
    )
    assert one.count(epsilon=HUGE).value == 1
    # Both ways: what is looked up, and where it is looked up.
    assert one.join_by_unit(other, columns=["y"]).sum("y", epsilon=HUGE).value == 2
    assert other.join_by_unit(one, columns=["x"]).sum("x", epsilon=HUGE).value == 1


@pytest.mark.parametrize("kind", ["parquet", "arrow", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("unit", "zone"), [("ms", None), ("ms", "UTC"), ("us", "UTC"), ("ns", None)]
)
def test_moments_that_microseconds_do_not_hold_are_missing(tmp_path, account, kind, unit, zone):
    data = pa.table({"x": pa.array([10] * 10 + FAR, pa.timestamp(unit, zone))})
    table = discreet.table(_source(kind, data, tmp_path), columns={"x": YEARS}, account=account)
    # Missing is the first day.
    assert 10 <= table.count(where=OLD, epsilon=HUGE).value <= 10 + len(FAR)


FOLDERS = {
    "integers": (pa.int8(), pa.int64(), 300),
    "doubles": (pa.float32(), pa.float64(), 1e300),
    "decimals": (pa.decimal128(5, 2), pa.decimal128(20, 2), decimal.Decimal(10**15)),
}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_of_a_folder_are_read_in_the_widest_type(tmp_path, name, kind):
    # A value beyond the first file's type made the query fail, and stayed charged.
    first, second, value = FOLDERS[name]
    for place, (stored, last) in enumerate(((first, 1), (second, value))):
        values = [decimal.Decimal(x) if name == "decimals" else x for x in (1, last)]
        data = pa.table({"x": pa.array(values, stored)})
        path = tmp_path / f"{place}.{kind}"
        _ = pq.write_table(data, path) if kind == "parquet" else feather.write_feather(data, path)
    table = discreet.table(str(tmp_path), columns={"x": ZERO_TO_TEN}, budget=HUGE)
    assert round(table.sum("x", epsilon=HUGE / 2).value) == 1 + 1 + 1 + 10
