"""What is missing, or has no meaning, is no value: in expressions, conditions, sums and groups."""

from __future__ import annotations

import datetime as dt
import math
import random

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from discreet.core.errors import InvalidArgument
from discreet.data.execute import KeyPlan, collect, collect_keys
from discreet.data.expression import col, when
from discreet.data.program import ContributionLimits, compile_program, count, total
from discreet.data.schema import boolean, category, date, integer, is_nullable, real, text
from discreet.data.source import open_source
from tests.data import sources

NUMBER = integer(lower=0, upper=100)
TYPES = {"unit": pa.int64(), "x": pa.float64(), "t": pa.string(), "yes": pa.bool_()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


def sums(schema, aggregates, rows, make=sources.polars, folder=None, **more):
    source = open_source(make(sources.arrow(rows, TYPES), folder))
    plan = compile_program(schema=schema, aggregates=aggregates, **more)
    return {n: [int(v) for v in c] for n, c in collect(plan, source=source, key=1).columns.items()}


# ── Sums over known values ───────────────────────────────────────────────────────────────────────


ROWS = [
    {"unit": 1, "x": 10.0, "t": "10", "yes": True},
    {"unit": 2, "x": None, "t": None, "yes": None},
    {"unit": 3, "x": 30.0, "t": " 30", "yes": False},
    {"unit": 4, "x": math.nan, "t": "", "yes": True},
    {"unit": 5, "x": 900.0, "t": "abc", "yes": None},
]


@pytest.mark.parametrize("make", sources.EVERY)
@pytest.mark.parametrize("unit", [None, "unit"])
def test_an_unknown_value_is_in_no_sum(make, folder, unit):
    limits = ContributionLimits() if unit is None else ContributionLimits(max_rows_per_unit=1)
    asked = {"n": count(), "s": total(col("x")), "ss": total(col("x"), col("x"))}
    for column in (NUMBER, real(lower=0, upper=100, granularity=1)):
        found = sums({"x": column}, asked, ROWS, make, folder, unit=unit, limits=limits)
        assert found == {"n": [3], "s": [140], "ss": [11_000]}
    found = sums(
        {"t": NUMBER},
        {**asked, "s": total(col("t"))} | {"ss": total(col("t"))},
        ROWS,
        make,
        folder,
        unit=unit,
        limits=limits,
    )
    assert found == {"n": [2], "s": [40], "ss": [40]}
    found = sums(
        {"yes": boolean()},
        {"n": count(), "s": total(col("yes"))},
        ROWS,
        make,
        folder,
        unit=unit,
        limits=limits,
    )
    assert found == {"n": [3], "s": [2]}
    # Without a value that must be known, all rows count.
    assert sums({"x": NUMBER}, {"n": count()}, ROWS, make, folder, unit=unit, limits=limits) == {
        "n": [5]
    }


@pytest.mark.parametrize("make", sources.EVERY)
def test_an_unknown_value_is_in_no_group(make, folder):
    by = {"yes": col("yes")}
    assert sums({"yes": boolean()}, {"n": count()}, ROWS, make, folder, by=by) == {"n": [1, 2]}
    by = {"x": col("x").cut([20])}
    assert sums({"x": NUMBER}, {"n": count()}, ROWS, make, folder, by=by) == {"n": [1, 2]}
    groups = {
        "default": (category(["10"]), [1, 4]),
        "groups": (category(["10"], missing="(missing)"), [1, 2, 2]),
        "no other": (category(["10"], include_other=False), [1]),
        "missing only": (category(["10"], include_other=False, missing="(missing)"), [1, 2]),
        "other only": (category(["10"], missing="exclude"), [1, 2]),
        "imputed": (category(["10"], missing="10"), [3, 2]),
        "as one": (category(["10"], include_other=False, missing="10"), [5]),
    }
    for name, (column, expected) in groups.items():
        found = sums({"t": column}, {"n": count()}, ROWS, make, folder, by={"t": col("t")})
        assert found == {"n": expected}, name


@pytest.mark.parametrize("make", sources.EVERY)
def test_rows_without_a_required_value_are_left_out_of_everything(make, folder):
    schema = {"x": integer(lower=0, upper=100, required=True), "yes": boolean()}
    assert sums(schema, {"n": count()}, ROWS, make, folder) == {"n": [3]}
    assert sums(schema, {"s": total(col("yes"))}, ROWS, make, folder) == {"s": [1]}


def test_a_declared_value_stands_for_what_is_unknown():
    column = integer(lower=0, upper=100, missing=7)
    assert not is_nullable(column)
    asked = {"n": count(), "s": total(col("x"))}
    assert sums({"x": column}, asked, ROWS) == {"n": [5], "s": [154]}
    filled = {"n": count(), "s": total(col("x").fill_missing(7))}
    assert sums({"x": NUMBER}, filled, ROWS) == {"n": [5], "s": [154]}


def test_unknown_rows_are_dropped_before_limits():
    """Of the rows that a unit may have, none is spent on what is unknown."""
    rows = [{"unit": 1, "x": x, "t": None, "yes": None} for x in (None, None, None, 5.0, 5.0)]
    found = sums(
        {"x": NUMBER},
        {"s": total(col("x"))},
        rows,
        unit="unit",
        limits=ContributionLimits(max_rows_per_unit=2),
    )
    assert found == {"s": [10]}


def test_keys_of_unknown_values_are_not_found():
    rows = [
        {"unit": i, "x": x, "t": "a", "yes": y}
        for i, (x, y) in enumerate([(1.0, True), (None, True), (2.0, None), (math.nan, False)])
    ]
    plan = KeyPlan(
        schema={"t": text(), "yes": boolean()},
        by={"t": col("t"), "yes": col("yes")},
        max_groups_per_unit=1,
    )
    found = collect_keys(plan, source=open_source(sources.arrow(rows, TYPES)), key=1)
    assert found.keys == (("a", False), ("a", True))
    assert found.units.tolist() == [1, 2]


def test_bounds_must_leave_a_code_for_what_is_unknown():
    low, high = -(2**63), 2**63 - 1
    with pytest.raises(InvalidArgument, match="room for missing values"):
        integer(low, high)
    assert is_nullable(integer(0, high))
    assert is_nullable(integer(low, 0))
    schema = {"x": integer(0, high)}
    rows = [{"unit": 1, "x": x, "t": None, "yes": None} for x in (None, 3.0, 1e30, math.nan)]
    assert sums(schema, {"s": total(col("x"))}, rows) == {"s": [3 + high]}


# ── Conditions ───────────────────────────────────────────────────────────────────────────────────


TRUTH = [True, False, None]


def kept(condition, schema, rows, make=sources.polars, folder=None):
    return sums(schema, {"n": count()}, rows, make, folder, where=condition)["n"][0]


@pytest.mark.parametrize("make", sources.EVERY)
def test_conditions_follow_kleene(make, folder):
    """All pairs, each in so many rows as its place says: equal to SQL in DuckDB."""
    types = {"a": pa.bool_(), "b": pa.bool_(), "i": pa.int64()}
    rows = [
        {"a": a, "b": b, "i": 3 * i + j} for i, a in enumerate(TRUTH) for j, b in enumerate(TRUTH)
    ]
    table = sources.arrow([row for row in rows for _ in range(2 ** row["i"])], types)
    source = open_source(make(table, folder))
    schema = {"a": boolean(), "b": boolean()}
    a, b = col("a"), col("b")
    forms = {
        "a AND b": a & b,
        "a OR b": a | b,
        "NOT a": ~a,
        "NOT (a AND b)": ~(a & b),
        "NOT (a OR b)": ~(a | b),
        "a = b": a == b,
        "a <> b": a != b,
        "(a AND NOT b) OR (NOT a AND b)": (a & ~b) | (~a & b),
        "a IS NULL": a.is_missing(),
        "(a AND b) IS NULL": (a & b).is_missing(),
        "(a OR b) IS NOT NULL": (a | b).is_known(),
        "coalesce(a OR b, true)": (a | b).fill_missing(True),
        "CASE WHEN a THEN b ELSE NOT b END": when(a).then(b).otherwise(~b),
        "(CASE WHEN a THEN b ELSE NOT b END) IS NULL": when(a).then(b).otherwise(~b).is_missing(),
        "a IN (true)": a.isin([True]),
        "NOT a IN (true)": ~a.isin([True]),
    }
    for sql, condition in forms.items():
        with duckdb.connect() as connection:
            connection.register("rows", table)
            expected = connection.sql(f"SELECT count(*) FROM rows WHERE {sql}").fetchall()[0][0]
        plan = compile_program(schema=schema, aggregates={"n": count()}, where=condition)
        found = collect(plan, source=source, key=1).columns["n"]
        assert int(found[0]) == expected, sql


def test_random_conditions_follow_polars():
    """Trees of comparisons and connectives over columns with nulls."""
    rng = random.Random(11)
    rows = [
        {
            "unit": 1,
            "x": rng.choice([None, *map(float, range(5))]),
            "t": rng.choice([None, "a", "b"]),
            "yes": rng.choice(TRUTH),
        }
        for _ in range(300)
    ]
    frame = pl.from_arrow(sources.arrow(rows, TYPES))
    schema = {
        "x": integer(0, 9),
        "t": category(["a", "b"], include_other=False),
        "yes": boolean(),
    }
    source = open_source(frame)

    def some(depth):
        """The same condition twice."""
        kind = rng.randrange(8 if depth else 5)
        edge = rng.randrange(5)
        match kind:
            case 0:
                return col("x") > edge, pl.col("x") > edge
            case 1:
                return col("x") * 2 == edge, pl.col("x") * 2 == edge
            case 2:
                return col("yes"), pl.col("yes")
            case 3:
                return col("t") == "a", pl.col("t") == "a"
            case 4:
                return col("x").isin([1, edge]), pl.col("x").is_in([1.0, float(edge)])
            case 5:
                inner = some(depth - 1)
                return ~inner[0], ~inner[1]
        (a, p), (b, q) = some(depth - 1), some(depth - 1)
        return (a & b, p & q) if kind == 6 else (a | b, p | q)

    for _ in range(150):
        condition, expected = some(4)
        plan = compile_program(schema=schema, aggregates={"n": count()}, where=condition)
        found = int(collect(plan, source=source, key=1).columns["n"][0])
        assert found == frame.filter(expected).height, condition
        unknown = compile_program(
            schema=schema, aggregates={"n": count()}, where=condition.is_missing()
        )
        found = int(collect(unknown, source=source, key=1).columns["n"][0])
        assert found == frame.filter(expected.is_null()).height, condition


def test_nan_is_missing():
    """In SQL NaN is above all numbers; here it is missing, and kept by neither."""
    rows = [{"unit": 1, "x": x, "t": None, "yes": None} for x in (1.0, None, math.nan, 5.0)]
    schema = {"x": integer(0, 9)}
    assert kept(col("x") > 3, schema, rows) == 1
    assert kept(~(col("x") > 3), schema, rows) == 1
    assert kept((col("x") > 3) | col("x").is_missing(), schema, rows) == 3


def test_what_is_computed_from_an_unknown_value_is_unknown():
    day = date(dt.date(2020, 1, 1), dt.date(2021, 12, 31))
    schema = {"x": integer(0, 9), "d": day, "yes": boolean()}
    unknown = [
        col("x") + 1,
        -col("x"),
        abs(col("x")),
        col("x") / 3,
        col("x") // 2,
        col("x") % 2,
        col("x").clip(lower=0, upper=2),
        col("x").cut([3]),
        col("x").map({1: "one"}),
        col("x").isin([1]),
        col("x").divide(2, lower=0, upper=9, granularity=1),
        col("d").month(),
        col("d").weekday(),
        col("x") < 3,
        col("x") > 3,
        col("x") == col("x"),
        when(col("yes")).then(col("x")).otherwise(1),
    ]
    for one in unknown:
        assert one.bind(schema).known is not None, one
    # A quotient by zero is unknown, unless a value is declared for it.
    whole = {"x": integer(0, 9, missing=0), "y": integer(0, 9, missing=0)}
    ends = {"lower": 0, "upper": 9, "granularity": 1}
    assert col("x").divide(col("y"), **ends).bind(whole).known is not None
    assert col("x").divide(col("y"), zero=3, **ends).bind(whole).known is None
    assert col("x").divide(col("y") + 1, **ends).bind(whole).known is None


def test_a_quotient_by_zero_is_in_no_mean():
    rows = [{"unit": i, "x": x, "t": None, "yes": None} for i, x in enumerate([0.0, 2.0, 4.0])]
    quotient = (0 * col("x") + 8).divide(col("x"), lower=0, upper=8, granularity=1)
    asked = {"n": count(), "s": total(quotient)}
    assert sums({"x": integer(0, 9)}, asked, rows) == {"n": [2], "s": [6]}
