"""Division, choice and parts of dates: exact, total, and the same on every engine."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument
from discreet.data.execute import collect
from discreet.data.expression import col, when
from discreet.data.program import compile_program, count, total
from discreet.data.schema import boolean, category, date, integer, real
from discreet.data.source import open_source
from tests.data import reference, sources

SCHEMA = {
    "a": real(lower=-3, upper=5, granularity=0.5),
    "b": real(lower=-1, upper=1, granularity=2**-4),
    "n": integer(lower=-4, upper=7),
    "k": category(["x", "y"]),
    "d": date(lower=dt.date(1899, 12, 1), upper=dt.date(1904, 3, 1)),
    "h": date(lower=dt.date(1969, 12, 30), upper=dt.date(1970, 1, 3), step="hour"),
    "f": boolean(),
}
CODES = st.fixed_dictionaries({n: st.integers(c.lower, c.upper) for n, c in SCHEMA.items()})
STEPS = {"a": Fraction(1, 2), "b": Fraction(1, 16), "n": Fraction(1)}
DIVISORS = [2, 3, -3, 12, 7.5, 0.1, Fraction(1, 3), Fraction(-22, 7), 0.25, 1000]


def nearest(value, grid):
    return math.floor(value / grid + Fraction(1, 2)) * grid


def number(expression, row):
    bound = expression.bind(SCHEMA)
    code = reference.evaluate(bound.code, row)
    assert bound.lower <= code <= bound.upper
    return code * Fraction(2) ** bound.exponent


@given(row=CODES, name=st.sampled_from("abn"), divisor=st.sampled_from(DIVISORS))
def test_division_by_a_constant(row, name, divisor):
    value = row[name] * STEPS[name]
    exact = Fraction(str(divisor)) if isinstance(divisor, float) else Fraction(divisor)
    got = number(col(name) / divisor, row)
    grid = Fraction(2) ** (col(name) / divisor).bind(SCHEMA).exponent
    assert got == nearest(value / exact, grid)
    if exact.numerator in (1, 2, -1):
        assert got == value / exact


@pytest.mark.parametrize("divisor", DIVISORS)
def test_no_two_values_meet_after_division(divisor):
    codes = range(SCHEMA["a"].lower, SCHEMA["a"].upper + 1)
    assert len({number(col("a") / divisor, {"a": code}) for code in codes}) == len(codes)


@given(row=CODES, names=st.tuples(st.sampled_from("abn"), st.sampled_from("abn")))
def test_division_of_columns(row, names):
    a, b = (row[name] * STEPS[name] for name in names)
    expression = col(names[0]).divide(col(names[1]), lower=-2, upper=9, granularity=0.25, zero=1.1)
    wanted = 1 if b == 0 else min(max(nearest(a / b, Fraction(1, 4)), -2), 9)
    assert number(expression, row) == wanted
    coarse = col(names[0]).divide(col(names[1]), lower=0, upper=64, granularity=8)
    known = coarse.bind(SCHEMA).known
    assert reference.evaluate(known, row) == (b != 0)
    if b:
        assert number(coarse, row) == min(max(nearest(a / b, 8), 0), 64)


@given(row=CODES, name=st.sampled_from("abn"), divisor=st.sampled_from([3, 1, 0.75, 2.5, 100]))
def test_whole_division_and_remainder(row, name, divisor):
    value, by = row[name] * STEPS[name], Fraction(divisor)
    assert number(col(name) // divisor, row) == value // by
    assert number(col(name) // -divisor, row) == value // -by
    assert number(col(name) % divisor, row) == value % by


@given(row=CODES)
def test_sign_and_choice(row):
    a, n = row["a"] * STEPS["a"], row["n"]
    assert number(-col("a"), row) == -a
    assert number(abs(col("a")), row) == abs(a)
    assert number(abs(col("n").clip(lower=2, upper=5)), row) == min(max(n, 2), 5)
    assert number(when(col("f")).then(col("a")).otherwise(col("n")), row) == (a if row["f"] else n)
    assert number(when(col("n") > 3).then(0.25).otherwise(-1), row) == (
        Fraction(1, 4) if n > 3 else -1
    )
    assert number(when(col("f")).then(True).otherwise(col("n") > 0), row) == (
        row["f"] == 1 or n > 0
    )


@given(row=CODES)
def test_choice_of_labels_and_dates(row):
    label = when(col("f")).then(col("k")).otherwise("none").bind(SCHEMA)
    assert label.labels == ("x", "y", "(other)", "none")
    got = label.labels[reference.evaluate(label.code, row)]
    assert got == (("x", "y", "(other)")[row["k"]] if row["f"] else "none")
    day = dt.date(2000, 1, 1)
    chosen = when(col("f")).then(col("d")).otherwise(day).bind(SCHEMA)
    code = reference.evaluate(chosen.code, row)
    assert chosen.label(code) == (col("d").bind(SCHEMA).label(row["d"]) if row["f"] else day)


@given(row=CODES)
def test_the_days_between_two_dates(row):
    day = dt.date(2000, 1, 1)
    other = when(col("f")).then(col("d")).otherwise(day)
    between = 0 if row["f"] else (col("d").bind(SCHEMA).label(row["d"]) - day).days
    assert number(col("d") - other, row) == between
    with pytest.raises(InvalidArgument, match="one step"):
        (col("d") - col("h")).bind(SCHEMA)


def period(day, name, row):
    found = day.truncate(name).bind(SCHEMA)
    return found.labels[reference.evaluate(found.code, row)]


def test_every_period_within_the_bounds_is_a_group_once_and_in_order():
    schema = {"d": date(dt.date(2019, 12, 28), dt.date(2021, 1, 5))}
    found = {one: col("d").truncate(one).bind(schema).labels for one in ("week", "quarter", "year")}
    assert found["week"][:3] == ("2019-W52", "2020-W01", "2020-W02")
    assert found["week"][-2:] == ("2020-W53", "2021-W01")
    assert len(found["week"]) == 55
    assert found["quarter"] == ("2019-Q4", *(f"2020-Q{n}" for n in range(1, 5)), "2021-Q1")
    assert found["year"] == ("2019", "2020", "2021")
    with pytest.raises(InvalidArgument, match="period"):
        col("d").truncate("day")
    with pytest.raises(InvalidArgument, match="truncate|date"):
        col("x").truncate("week").bind({"x": integer(0, 9)})


@given(row=CODES)
def test_parts_of_dates(row):
    for name in "dh":
        moment = col(name).bind(SCHEMA).label(row[name])
        assert number(col(name).year(), row) == moment.year
        assert number(col(name).month(), row) == moment.month
        assert number(col(name).day(), row) == moment.day
        assert number(col(name).weekday(), row) == moment.isoweekday()
        assert number(col(name).week(), row) == moment.isocalendar().week
        assert number(col(name).quarter(), row) == (moment.month + 2) // 3
        year, number_of_week = moment.isocalendar()[:2]
        week = f"{year}-W{number_of_week:02}"
        quarter = f"{moment.year}-Q{(moment.month + 2) // 3}"
        assert period(col(name), "week", row) == week
        assert period(col(name), "quarter", row) == quarter
        assert period(col(name), "month", row) == f"{moment:%Y-%m}"
        assert period(col(name), "year", row) == f"{moment:%Y}"
    assert number(col("h").hour(), row) == col("h").bind(SCHEMA).label(row["h"]).hour


@pytest.mark.parametrize(
    "make",
    [
        lambda: col("a") / 0,
        lambda: col("a") / col("n"),
        lambda: 1 / col("n"),
        lambda: col("a") // 0,
        lambda: col("a") % 0,
        lambda: col("a") % -2,
        lambda: col("a") // 0.1,
        lambda: col("k") / 2,
        lambda: col("a") // col("n"),
        lambda: abs(col("k")),
        lambda: -col("d"),
        lambda: col("a").divide(col("n"), lower=0, upper=1, granularity=0.3),
        lambda: col("a").divide(col("n"), lower=2, upper=1, granularity=1),
        lambda: col("a").divide(col("n"), lower=0, upper=1, granularity=1, zero=2),
        lambda: col("a").divide(col("k"), lower=0, upper=1, granularity=1),
        lambda: col("d").hour(),
        lambda: col("a").month(),
        lambda: when(col("a")).then(1).otherwise(2),
        lambda: when(col("f")).then("x").otherwise(2),
        lambda: when(col("f")).then(col("d")).otherwise(col("h")),
        lambda: when(True).then(1).otherwise(2),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(InvalidArgument):
        make().bind(SCHEMA)


def test_overflow_is_impossible():
    wide = {
        "w": integer(lower=-(2**63), upper=2**63 - 1, missing=-(2**63)),
        "z": integer(lower=0, upper=0),
    }
    for make in (
        lambda w: -w,
        abs,
        lambda w: w // -1,
        lambda w: w / 3,
        lambda w: w / Fraction(1, 3),
        lambda w: w.divide(w, lower=0, upper=1, granularity=1),
        lambda w: w.clip(lower=0, upper=2**62).divide(w, lower=0, upper=1, granularity=2**-20),
    ):
        with pytest.raises(InvalidArgument, match="pass 2\\*\\*63"):
            make(col("w")).bind(wide)
    with pytest.raises(InvalidArgument):
        (col("z") / Fraction(3, 2**70)).bind(wide)
    assert (col("w").clip(lower=-1, upper=2**63 - 1) / 2).bind(wide).exponent == -1


# ── every engine ──────────────────────────────────────────────────────────────────────────────

TYPES = {
    "a": pa.float64(),
    "b": pa.float64(),
    "n": pa.int64(),
    "k": pa.string(),
    "d": pa.date32(),
    "h": pa.timestamp("us"),
    "f": pa.bool_(),
}
ROW = st.fixed_dictionaries(
    {
        "a": st.one_of(st.none(), st.floats(), st.floats(-4, 6)),
        "b": st.one_of(st.none(), st.floats(-2, 2), st.just(0.0)),
        "n": st.one_of(st.none(), st.integers(-8, 8)),
        "k": st.sampled_from([None, "x", "y", "z"]),
        "d": st.one_of(st.none(), st.dates(dt.date(1899, 1, 1), dt.date(1905, 1, 1))),
        "h": st.one_of(
            st.none(),
            st.datetimes(dt.datetime(1969, 12, 29), dt.datetime(1970, 1, 4)),  # noqa: DTZ001
        ),
        "f": st.sampled_from([None, True, False]),
    }
)
PLANS = [
    compile_program(
        schema=SCHEMA,
        aggregates={
            "rows": count(),
            "third": total(col("a") / 3),
            "minus": total(col("a") / Fraction(-22, 7)),
            "ratio": total(col("n").divide(col("b"), lower=-9, upper=9, granularity=0.125, zero=4)),
            "whole": total((col("a") - col("n")) // -2.5, col("a") % 0.75),
            "days": total(col("d") - when(col("f")).then(col("d")).otherwise(dt.date(2000, 1, 1))),
            "far": total(abs(when(col("f")).then(col("a")).otherwise(col("n")))),
        },
        by={"when": by},
    )
    for by in (
        col("d").month(),
        col("d").weekday(),
        col("d").week(),
        col("d").quarter(),
        col("d").truncate("week"),
        col("d").year().clip(lower=1900, upper=1902),
        col("h").hour(),
        col("h").day(),
        when(col("a") > 0).then(col("k")).otherwise("none"),
    )
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.mark.parametrize(
    "make", [sources.polars, sources.pandas, sources.csv_file, sources.parquet]
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROW, max_size=12), plan=st.sampled_from(PLANS))
def test_every_engine_gives_the_integers_of_the_reference(make, folder, rows, plan):
    source = open_source(make(sources.arrow(rows, TYPES), folder))
    table = collect(plan, source=source, key=7)
    got = {name: [int(v) for v in column] for name, column in table.columns.items()}
    assert got == reference.collect(plan, rows, key=7)
