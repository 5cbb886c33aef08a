"""Columns as sources type them: what is exact stays exact, on every engine."""

# ruff: noqa: DTZ001  # moments without a zone are what is tested
from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.core.errors import InvalidArgument
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import (
    CategoryColumn,
    DateColumn,
    boolean,
    category,
    date,
    date_label,
    integer,
    real,
)
from discreet.data.source import open_source
from tests.data import reference, sources

FIRST = dt.date(1960, 1, 1)
HOURS = date(lower=FIRST, upper=dt.date(2030, 1, 1), step="hour", missing=FIRST)
MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), None]
TIED = [dt.datetime(2000, 1, 1, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=5))), None]
BIG = [2**64 - 1, 2**63, 2**63 - 1, 0, None]
MONEY = [Decimal("1.005"), Decimal("-0.125"), Decimal("12345678901234567890.125"), None]
CASES = [
    (pa.timestamp("us"), MOMENTS, HOURS),
    (pa.timestamp("ns"), MOMENTS, HOURS),
    (pa.timestamp("ms"), [dt.datetime(1969, 12, 31, 23), None], HOURS),
    (pa.timestamp("s"), [dt.datetime(1969, 12, 31, 23), None], HOURS),
    (pa.timestamp("us", "UTC"), TIED, HOURS),
    (pa.timestamp("us", "Europe/Berlin"), TIED, HOURS),
    (pa.date32(), [dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)], HOURS),
    (pa.uint64(), BIG, integer(lower=-(2**63), upper=2**63 - 1, missing=-(2**63))),
    (pa.uint64(), BIG, real(lower=0, upper=2**62, granularity=2**20)),
    (pa.uint8(), [0, 255, None], integer(lower=1, upper=200, missing=7)),
    (pa.int8(), [-128, 127, None], real(lower=-100, upper=100, granularity=0.5)),
    (
        pa.int64(),
        [2**53 + 1, 2**62 + 2**9, -(2**63)],
        real(lower=-(2**62), upper=2**62, granularity=1024),
    ),
    (pa.float64(), [2.0**60, -(2.0**60)], integer(lower=-(2**60) - 1, upper=2**60 + 1)),
    (pa.float64(), [2.0**60, 3.0], integer(lower=0, upper=2**60 + 1)),
    (pa.float64(), [-(2.0**60), 3.0], integer(lower=-(2**60) - 1, upper=9)),
    (
        pa.float32(),
        [0.1, 1e38, -0.0, float("nan"), None],
        real(lower=0, upper=1, granularity=2**-40),
    ),
    (pa.decimal128(30, 3), MONEY, real(lower=-10, upper=2**50, granularity=0.25)),
    (pa.decimal128(30, 3), MONEY, real(lower=-10, upper=2**62, granularity=2**12)),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "ü", "", None], category(["ü", "a"])),
    (pa.bool_(), [True, False, None], integer(lower=0, upper=1, missing=1)),
    (pa.float64(), [0.0, 1.0, 0.5, float("nan")], boolean(missing=True)),
    (pa.string(), ["TRUE", " no ", "maybe", "1", "0", "Y", None], boolean(missing=True)),
]


TEXTUAL = (sources.csv_file, sources.pandas_objects)


def cases(make):
    """Text is read as what is declared: 'True' is no number and '0.5' no truth value."""
    for i, (kind, values, column) in enumerate(CASES):
        as_text = make in TEXTUAL and (pa.types.is_boolean(kind), type(column).__name__)
        if as_text in ((True, "NumericColumn"), (False, "BooleanColumn")):
            continue
        if make is sources.pandas and kind == pa.uint64():  # no unsigned null
            continue
        if make is sources.pandas and kind == pa.float64() and wide(column):
            continue  # refused: doubles may be what pandas made of integers beside a missing one
        yield f"v{i}", kind, values, column


def wide(column):
    """Whether whole numbers are declared that doubles do not tell apart."""
    if type(column).__name__ != "NumericColumn" or column.exponent < 0:
        return False
    return max(-column.lower, column.upper) * 2**column.exponent > 2**53


def numbers(name, column, codes):
    """Sums that tell the codes of a column."""
    if isinstance(column, CategoryColumn):
        return {f"{name} {label}": total(col(name) == label) for label in column.labels}
    if isinstance(column, DateColumn):
        labels = {code: date_label(code, step=column.step) for code in codes}
        return {f"{name} {code}": total(col(name) <= label) for code, label in labels.items()}
    return {name: total(col(name)), f"{name} low": total(col(name) <= 0)}


@pytest.mark.parametrize("make", sources.EVERY)
def test_every_type(make, tmp_path):
    length = max(len(values) for _, values, _ in CASES)
    data, schema, types, aggregates = {}, {}, {}, {}
    for name, kind, values, column in cases(make):
        full = [*values, *[values[0]] * (length - len(values))]
        plain = [pa.scalar(v, kind).as_py() if isinstance(v, float) else v for v in full]
        data[name], schema[name], types[name] = plain, column, kind
        codes = sorted({reference.encode(v, column) for v in plain})
        aggregates |= numbers(name, column, codes)
    rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    plan = compile_program(schema=schema, aggregates=aggregates)
    source = open_source(make(sources.arrow(rows, types), tmp_path))
    table = collect(plan, source=source, key=1)
    got = {name: [int(x) for x in values] for name, values in table.columns.items()}
    assert got == reference.collect(plan, rows, key=1)


def test_moments_at_infinity_are_out_of_range():
    relation = duckdb.connect().sql(
        "SELECT unnest(['infinity', '-infinity', '1970-01-01 07:00']::TIMESTAMP[]) AS t"
    )
    dates = duckdb.connect().sql("SELECT unnest(['infinity', '-infinity']::DATE[]) AS t")
    plan = compile_program(schema={"t": HOURS}, by={"t": col("t")}, aggregates={"n": count()})
    got = collect(plan, source=open_source(relation), key=1).columns["n"]
    assert {i + HOURS.lower: int(n) for i, n in enumerate(got) if n} == {HOURS.lower: 2, 7: 1}
    assert collect(plan, source=open_source(dates), key=1).columns["n"][0] == 2


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize(
    "make",
    [
        duckdb.from_arrow,
        lambda table: table,
        lambda table: table.to_pandas(),
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    ],
)
def test_moments_that_microseconds_do_not_reach_are_out_of_range(make, unit):
    ticks = 3600 if unit == "s" else 3_600_000
    far = [2**63 - 1, -(2**63) + 1, 2**58, 10**13 * ticks // 3600]
    table = pa.table({"t": pa.array([*far, 7 * ticks, -1, None], pa.timestamp(unit))})
    plan = compile_program(schema={"t": HOURS}, by={"t": col("t")}, aggregates={"n": count()})
    got = collect(plan, source=open_source(make(table)), key=1).columns["n"]
    hours = {i + HOURS.lower: int(n) for i, n in enumerate(got) if n}
    assert hours == {HOURS.lower: 5, 7: 1, -1: 1}


def test_wide_integers_and_enums_of_duckdb():
    relation = duckdb.connect().sql(
        "SELECT unnest([170141183460469231731687303715884105727, -5, NULL]::HUGEINT[]) AS h, "
        "unnest(['x', 'y', 'x']::ENUM('x', 'y')[]) AS e, uuid() AS u"
    )
    schema = {"h": integer(lower=-9, upper=2**63 - 1, missing=0), "e": category(["x"])}
    plan = compile_program(
        schema=schema,
        unit="u",
        by={"e": col("e")},
        aggregates={"n": count(), "p": units(), "s": total(col("h"))},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    columns = collect(plan, source=open_source(relation), key=1).columns
    assert {name: list(map(int, v)) for name, v in columns.items()} == {
        "n": [2, 1],
        "p": [2, 1],
        "s": [2**63 - 1, -5],
    }


def test_float_units_are_whole_or_none():
    values = [1.0, 1.0, -0.0, 0.0, 1.5, float("nan"), float("inf"), 2.0**53, 2.0**60, None]
    plan = compile_program(
        schema={},
        unit="u",
        aggregates={"u": units()},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    table = sources.arrow([{"u": v} for v in values], {"u": pa.float64()})
    for frame in (table, pl.from_arrow(table), duckdb.from_arrow(table)):
        assert collect(plan, source=open_source(frame), key=1).columns["u"].tolist() == [3]
    with pytest.raises(InvalidArgument, match="Int64"):  # one missing id makes pandas use doubles
        collect(plan, source=open_source(table.to_pandas()), key=1)


def test_a_collation_neither_merges_levels_nor_people():
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    relation = connection.sql("SELECT unnest(['a', 'A', 'A']) AS u, unnest(['x', 'X', 'x']) AS k")
    plan = compile_program(
        schema={"k": category(["x", "X"])},
        unit="u",
        by={"k": col("k")},
        aggregates={"n": count(), "u": units()},
        limits=ContributionLimits(max_rows_per_unit=3),
    )
    columns = collect(plan, source=open_source(relation), key=1).columns
    assert columns["n"].tolist() == [2, 1, 0]
    assert columns["u"].tolist() == [2, 1, 0]


def test_settings_of_a_connection_do_not_change_the_answer():
    table = pa.table({"u": [1, 1, 1, 1, 2], "x": [5, 3, 9, 1, 4]})
    connection = duckdb.connect()
    connection.execute("SET default_order = 'DESC'")
    plan = compile_program(
        schema={"x": integer(lower=0, upper=9)},
        unit="u",
        aggregates={"x": total(col("x"))},
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    for key in range(8):
        relation = open_source(connection.from_arrow(table))
        got = collect(plan, source=relation, key=key).columns["x"].tolist()
        assert got == collect(plan, source=open_source(table), key=key).columns["x"].tolist()


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([b"x"], category(["x"])),
        ([1], category(["1"])),
        ([1], date(lower=dt.date(2000, 1, 1), upper=dt.date(2001, 1, 1))),
        ([dt.date(2000, 1, 1)], integer(lower=0, upper=1)),
        ([[1]], integer(lower=0, upper=1)),
    ],
)
def test_types_that_do_not_fit_are_refused(values, column):
    source = open_source(pa.table({"v": values}))
    with pytest.raises(InvalidArgument, match="column 'v' is"):
        collect(
            compile_program(
                schema={"v": column}, by={}, aggregates={"n": count()}, where=(col("v") == col("v"))
            ),
            source=source,
            key=1,
        )


def test_python_objects_are_read_as_their_text():
    frame = pd.DataFrame(
        {"v": pd.Series([1, "2", None, 3.5, Decimal(4), pd.NA, "x"], dtype=object)}
    )
    plan = compile_program(
        schema={"v": integer(lower=0, upper=9)}, aggregates={"s": total(col("v"))}
    )
    assert collect(plan, source=open_source(frame), key=1).columns["s"].tolist() == [1 + 2 + 4 + 4]
