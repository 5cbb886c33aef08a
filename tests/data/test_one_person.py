"""One person's row, however strange, changes the answer by that person's contribution at most.

Data come from outside: files written by other libraries and plain frames, not through discreet.
"""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import discreet
from discreet.core.errors import InvalidArgument
from discreet.data.source import EngineFailure, run_sealed

HUGE = 10**6  # noise far below one


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "b.db"
    return discreet.Ledger(f"sqlite:////{path}").account("a", limit=discreet.pure_dp(10**9))


def _incomes(extra):
    draw = random.Random(0)
    known = [draw.uniform(20_000, 50_000) for _ in range(700)]
    return [*known, *[float("nan")] * 300, *extra]


def _write(path, rows, writer):
    if writer == "pyarrow":
        pq.write_table(pa.table({"x": pa.array(rows, pa.float64())}), path)
    elif writer == "polars":
        pl.DataFrame({"x": rows}).write_parquet(path)
    elif writer == "pandas":
        pd.DataFrame({"x": rows}).to_parquet(path)
    else:
        frame = pa.table({"x": pa.array(rows, pa.float64())})  # noqa: F841  # DuckDB reads it by name
        duckdb.sql(f"COPY (SELECT x FROM frame) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize("through", ["file", "relation"])
def test_nan_in_parquet_stays_missing_whatever_another_person_has(
    tmp_path, account, writer, through
):
    # DuckDB takes isnan for false where a file's statistics, which leave NaN out, are finite.
    found = []
    for place, extra in enumerate(([], [250_000.0])):
        path = _write(tmp_path / f"{place}.parquet", _incomes(extra), writer)
        source = str(path) if through == "file" else duckdb.connect().read_parquet(str(path))
        table = discreet.table(
            source,
            columns={"x": discreet.real(lower=0, upper=100_000, granularity=1)},
            account=account,
        )
        above = table.count(where=discreet.col("x") > 60_000, epsilon=HUGE).value
        found.append((table.sum("x", epsilon=HUGE).value, above))
    assert abs(found[1][0] - found[0][0]) <= 100_000 + 1
    assert abs(found[1][1] - found[0][1]) <= 1


def test_a_group_of_missing_values_alone_is_answered(tmp_path, account):
    table = pa.table({"g": ["a"] * 50 + ["b"] * 50, "x": [float("nan")] * 50 + [2.0] * 50})
    pq.write_table(table, tmp_path / "g.parquet")
    opened = discreet.table(
        str(tmp_path / "g.parquet"),
        columns={
            "g": discreet.category(["a", "b"]),
            "x": discreet.real(lower=0, upper=10, granularity=0.5),
        },
        account=account,
    )
    release = opened.sum("x", by="g", epsilon=HUGE)
    assert len(release.keys) >= 2


def test_a_name_with_every_character_does_not_empty_a_join(account):
    # Names of units were once split at a character that no name has.
    every = "".join(chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000)
    names = [f"p{i}" for i in range(200)]
    for extra in ([], [every]):
        people = pl.DataFrame({"who": names + extra, "g": ["x"] * (200 + len(extra))})
        visits = pl.DataFrame({"who": names, "x": [1] * 200})
        connection = duckdb.connect()
        first = connection.from_arrow(visits.to_arrow())
        other = connection.from_arrow(people.to_arrow())
        opened = discreet.table(
            first,
            columns={"x": discreet.integer(lower=0, upper=5)},
            privacy_unit="who",
            max_rows_per_unit=1,
            account=account,
        )
        held = discreet.table(
            other,
            columns={"g": discreet.category(["x", "y"])},
            privacy_unit="who",
            max_rows_per_unit=1,
            account=account,
        )
        joined = opened.join_by_unit(held, columns=["g"])
        found = joined.count(where=discreet.col("g") == "x", epsilon=HUGE).value
        assert abs(found - 200) <= 1


def test_pandas_units_that_became_doubles_are_refused_by_their_type(account):
    ids = [2**61 + 7 * i for i in range(100)]
    columns = {"x": discreet.integer(lower=0, upper=10)}

    def opened(frame):
        return discreet.table(
            frame, columns=columns, privacy_unit="who", max_rows_per_unit=1, account=account
        )

    assert abs(opened(pd.DataFrame({"who": ids, "x": 3})).count(epsilon=HUGE).value - 100) <= 1
    before = account.spent.epsilon()
    for column in ([*ids, None], [i + 0.5 for i in range(101)]):
        with pytest.raises(InvalidArgument, match="Int64"):
            opened(pd.DataFrame({"who": column, "x": 3})).count(epsilon=HUGE)
    assert account.spent.epsilon() == before
    nullable = pd.DataFrame({"who": pd.array([*ids, None], dtype="Int64"), "x": 3})
    assert abs(opened(nullable).count(epsilon=HUGE).value - 100) <= 1


class _Raises:
    def __str__(self) -> str:
        raise ZeroDivisionError


STRANGE = [
    None, True, 1, 1.0, 0.5, "True", "x", "", "\ud800", "a\0", 10**5000, -(10**5000),
    Decimal("1.00"),
    Decimal("NaN"), Fraction(1, 2), np.int8(1), np.float32(1), np.bool_(True), float("nan"),
    float("inf"), pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), _Raises(), (1, 2), {"a": 1}, b"a",
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_a_value_of_an_object_column_leaves_all_others_as_they_are(account, place):
    honest = [True, False] * 50
    frame = pd.DataFrame({"x": pd.Series([*honest, STRANGE[place]], dtype=object)})
    declared = {
        "number": discreet.integer(lower=0, upper=1),
        "boolean": discreet.boolean(),
        "category": discreet.category([0, 1]),
    }
    for column in declared.values():
        table = discreet.table(frame, columns={"x": column}, account=account)
        if column is declared["number"]:
            found = table.sum("x", epsilon=HUGE).value
        else:
            wanted = discreet.col("x") if column is declared["boolean"] else discreet.col("x") == 1
            found = table.count(where=wanted, epsilon=HUGE).value
        assert 49 <= found <= 52


def test_failures_of_an_engine_tell_neither_class_nor_text():
    class Panic(BaseException):
        """Rust's panics are no Exception."""

    def fail():
        raise Panic("HIV positive")

    with pytest.raises(EngineFailure) as caught:
        run_sealed("the query", fail)
    assert "HIV" not in str(caught.value)
    assert "Panic" not in str(caught.value)
    assert caught.value.__context__ is None


def test_bytes_that_are_not_utf8_do_not_fail_at_opening(tmp_path, account):
    rows = [b"9,3,Z\xfcrich", *(b"%d,3,z" % i for i in range(100))]
    path = tmp_path / "d.csv"
    path.write_bytes(b"who,x,t\n" + b"\n".join(rows) + b"\n")
    discreet.table(str(path), columns={"x": discreet.integer(lower=0, upper=10)}, account=account)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "table"])
def test_a_missing_id_in_what_pandas_made(tmp_path, kind):
    """Found by the hostile person: all ids of the file became doubles, which name nobody."""
    ids = [2**61 + 7 * i for i in range(1000)]

    def opened(frame):
        table = pa.Table.from_pandas(frame)
        source = tmp_path / f"ids.{kind}" if kind != "table" else table
        if kind == "parquet":
            frame.to_parquet(source)
        elif kind == "arrow":
            feather.write_feather(table, source)
        return discreet.table(
            source,
            columns={"x": discreet.integer(0, 10)},
            privacy_unit="who",
            max_rows_per_unit=1,
            budget=100,
        )

    whole = pd.DataFrame({"who": [*ids, 5], "x": 3})
    assert abs(opened(whole).count(epsilon=50).value - 1001) <= 3
    gap = opened(pd.DataFrame({"who": [*ids, None], "x": 3}))
    with pytest.raises(InvalidArgument, match="Int64"):
        gap.count(epsilon=50)
    assert gap.account.spent.epsilon() == 0
    nullable = pd.DataFrame({"who": pd.array([*ids, None], dtype="Int64"), "x": 3})
    assert abs(opened(nullable).count(epsilon=50).value - 1000) <= 3


@pytest.mark.parametrize("written", [False, True], ids=["frame", "file"])
@pytest.mark.parametrize("last", [None, 0.5])
def test_large_numbers_that_pandas_made_doubles_are_refused_by_their_type(
    account, tmp_path, last, written
):
    """Found by the hostile person: a missing value merged everybody's two categories into one."""
    codes = [2**60, 2**60 + 1]
    regions = pl.DataFrame({"code": codes, "r": ["n", "s"]})
    declared = {
        "category": discreet.category(codes),
        "integer": discreet.integer(0, 2**61),
        "real": discreet.real(0, 2**61, granularity=256),
    }

    def opened(rows, column):
        source = pd.DataFrame({"k": rows})
        if written:
            source.to_parquet(tmp_path / f"{len(rows)}.parquet")
            source = tmp_path / f"{len(rows)}.parquet"
        return discreet.table(source, columns={"k": column}, account=account)

    def asked(table, name):
        if name == "category":
            return table.count(by="k", epsilon=HUGE).value[:2]
        if name == "real":
            return [table.sum("k", epsilon=HUGE).value]
        joined = table.join(regions, on={"k": "code"}, columns={"r": discreet.category(["n", "s"])})
        both = joined.count(by="r", epsilon=HUGE).value[:2]
        return [*both, table.count(where=discreet.col("k") == codes[1], epsilon=HUGE).value]

    for name, column in declared.items():
        before = asked(opened(codes * 50, column), name)
        assert name == "real" or set(before) == {50}
        spent = account.spent.epsilon()
        with pytest.raises(InvalidArgument, match="Int64"):
            asked(opened([*codes * 50, last], column), name)
        assert account.spent.epsilon() == spent
    # Where doubles are exact, nothing is refused.
    fine = opened([1, 2**53 - 1, last], discreet.integer(0, 2**53))
    assert abs(fine.count(epsilon=HUGE).value - 3) <= 1
    typed = pd.DataFrame({"k": pd.array([*codes * 50, None], dtype="Int64")})
    table = discreet.table(typed, columns={"k": declared["category"]}, account=account)
    assert table.count(by="k", epsilon=HUGE).value[:2] == (50, 50)


def test_doubles_that_no_pandas_chose_are_ids(tmp_path):
    """R has no other number: there a column of doubles tells nothing of its rows."""
    table = pa.table({"who": [1.0, 2.0, 2.0, 3.0], "x": [1, 1, 1, 1]})
    pq.write_table(table, tmp_path / "ids.parquet")
    opened = discreet.table(
        tmp_path / "ids.parquet",
        columns={"x": discreet.integer(0, 10)},
        privacy_unit="who",
        max_rows_per_unit=1,
        budget=100,
    )
    assert abs(opened.count_units(epsilon=50).value - 3) <= 1
