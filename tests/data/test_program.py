"""Plans and schemas refuse what cannot be answered soundly, before any row is read."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import OTHER, boolean, category, date, integer, nearest, real
from discreet.data.source import open_source, public_keys

SCHEMA = {
    "x": real(lower=-1, upper=4, granularity=0.5),
    "k": category(["a", "b"]),
    "zip": integer(lower=0, upper=10**9),
    "wide": integer(lower=-(2**63), upper=2**63 - 1, missing=-(2**63)),
}
DAYS = {"lower": dt.date(2000, 1, 1), "upper": dt.date(2001, 1, 1)}


def plan(**arguments):
    return compile_program(**({"schema": SCHEMA, "aggregates": {"n": count()}} | arguments))


@pytest.mark.parametrize(
    "make",
    [
        lambda: integer(lower=1, upper=0),
        lambda: integer(lower=0.5, upper=2),
        lambda: integer(lower=0, upper=2**63),
        lambda: integer(lower=0, upper=1, missing=2),
        lambda: integer(lower=0, upper=1, missing=True),
        lambda: real(lower=0, upper=1, granularity=0.1),
        lambda: real(lower=0, upper=1, granularity=0),
        lambda: real(lower=0, upper=float("inf"), granularity=1),
        lambda: real(lower=float("nan"), upper=1, granularity=1),
        lambda: real(lower=1, upper=0, granularity=1),
        lambda: real(lower=0, upper=2**30, granularity=2**-30),
        lambda: real(lower=0, upper=1, granularity=0.5, missing=2),
        lambda: category([]),
        lambda: category(["a", "a"]),
        lambda: category(["a", 1]),
        lambda: category([True, False]),
        lambda: category([1.5]),
        lambda: category([""]),
        lambda: category(["a\0b"]),
        lambda: category([2**63]),
        lambda: category([OTHER]),
        lambda: category(["a"], missing="b"),
        lambda: date(lower=dt.date(2001, 1, 1), upper=dt.date(2000, 1, 1)),
        lambda: date(lower="2000-01-01", upper=dt.date(2000, 1, 1)),
        lambda: date(**DAYS, step="week"),
        lambda: date(**DAYS, missing=dt.date(1999, 1, 1)),
        lambda: boolean(missing=1),
        lambda: ContributionLimits(max_rows_per_unit=0),
        lambda: ContributionLimits(max_groups_per_unit=2**21),
        lambda: total(),
        lambda: total(col("x"), col("x"), col("x")),
        lambda: plan(aggregates={}),
        lambda: plan(unit="u"),
        lambda: plan(unit="u", limits=ContributionLimits(max_groups_per_unit=1)),
        lambda: plan(limits=ContributionLimits(max_rows_per_unit=2)),
        lambda: plan(keys=(("a",),)),
        lambda: plan(where=col("x")),
        lambda: plan(by={"zip": col("zip")}),
        lambda: plan(by={"z": col("wide")}, keys=((1,),)),
        lambda: plan(by={"k": col("k")}, keys=()),
        lambda: plan(by={"k": col("k")}, keys=(("c",),)),
        lambda: plan(by={"k": col("k")}, keys=(("a",), ("a",))),
        lambda: plan(by={"k": col("k")}, keys=("a",)),
        lambda: plan(aggregates={"k": total(col("k"))}),
        lambda: public_keys([1], columns=["k"]),
        lambda: public_keys(pl.DataFrame({"z": [1]}), columns=["k"]),
    ],
)
def test_what_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_sums_that_could_pass_128_bits_are_refused():
    with pytest.raises(Unsupported, match="128 bits"):
        plan(aggregates={"ww": total(col("wide"), col("wide"))})
    plan(aggregates={"w": total(col("wide"))})


@pytest.mark.parametrize(
    ("limits", "name", "expected"),
    [
        # groups, linf, l1, l2 squared; there are three groups and |x| is at most 8 steps of 1/2
        (ContributionLimits(max_rows_per_unit=1), "n", (1, 1, 1, 1)),
        (ContributionLimits(max_rows_per_unit=5), "n", (3, 5, 5, 25)),
        (ContributionLimits(max_rows_per_unit=5), "u", (3, 1, 3, 3)),
        (ContributionLimits(max_rows_per_unit=2), "u", (2, 1, 2, 2)),
        (ContributionLimits(max_groups_per_unit=2), "u", (2, 1, 2, 2)),
        (ContributionLimits(max_rows_per_unit_per_group=2), "n", (3, 2, 6, 12)),
        (
            ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=2),
            "x",
            (2, 16, 32, 512),
        ),
        (ContributionLimits(max_rows_per_unit=5, max_rows_per_unit_per_group=2), "n", (3, 2, 5, 9)),
        (
            ContributionLimits(max_rows_per_unit=5, max_groups_per_unit=1),
            "xx",
            (1, 320, 320, 320**2),
        ),
    ],
)
def test_reach(limits, name, expected):
    every = {"n": count(), "u": units(), "x": total(col("x")), "xx": total(col("x"), col("x"))}
    wanted = {name: every[name]}
    reach = plan(unit="u", by={"k": col("k")}, limits=limits, aggregates=wanted).reach(name)
    assert (reach.groups, reach.linf, reach.l1, reach.l2_squared) == expected


def test_rows_as_units_reach_one_group():
    reach = plan(by={"k": col("k")}, aggregates={"x": total(col("x"))}).reach("x")
    assert (reach.groups, reach.linf, reach.l1, reach.l2_squared) == (1, 8, 8, 64)


def test_keys_come_with_their_labels_and_empty_groups():
    frame = pl.DataFrame({"k": ["a", "c", "a"], "x": [0.0, 4.0, 1.2]})
    everything = plan(by={"k": col("k"), "big": col("x").cut([2])})
    table = collect(everything, source=open_source(frame), key=0)
    assert table.names == ("k", "big")
    assert dict(zip(table.keys, table.columns["n"].tolist(), strict=True)) == {
        ("a", "< 2"): 2,
        ("a", ">= 2"): 0,
        ("b", "< 2"): 0,
        ("b", ">= 2"): 0,
        (OTHER, "< 2"): 0,
        (OTHER, ">= 2"): 1,
    }


def test_keys_are_named_as_the_column_names_them():
    """Noon is a key of its day: the label must say what was counted, and be one that JSON knows."""
    noon = dt.datetime(2000, 1, 2, 12, tzinfo=dt.UTC)
    schema = {"day": date(**DAYS), "zip": integer(lower=0, upper=9)}
    by = {"day": col("day"), "zip": col("zip")}
    made = plan(schema=schema, by=by, keys=((noon, Fraction(3)), (DAYS["lower"], np.int64(2))))
    keys = list(made.labels())
    assert keys == [(DAYS["lower"], 2), (dt.date(2000, 1, 2), 3)]
    assert {type(label) for key in keys for label in key} == {dt.date, int}


def test_keys_from_a_public_table():
    wanted = public_keys(pl.DataFrame({"zip": [7, 3, None, 7, 10**9]}), columns=["zip"])
    assert wanted == ((7,), (3,), (10**9,))
    frame = pl.DataFrame({"zip": [3, 3, 4, 10**10, None]})
    table = collect(plan(by={"zip": col("zip")}, keys=wanted), source=open_source(frame), key=0)
    assert dict(zip(table.keys, table.columns["n"].tolist(), strict=True)) == {
        (3,): 2,
        (7,): 0,
        (10**9,): 1,
    }


def test_the_type_of_the_numbers_is_public():
    """It follows from the bounds, so it tells nothing about the rows."""
    aggregates = {"n": count(), "x": total(col("x")), "w": total(col("wide"))}
    for frame in (
        pl.DataFrame({"x": [1.0], "wide": [1]}),
        pl.DataFrame({"x": [0.0], "wide": [2**62]}),
    ):
        columns = collect(plan(aggregates=aggregates), source=open_source(frame), key=0).columns
        assert [str(column.dtype) for column in columns.values()] == ["int64", "int64", "object"]
        assert not columns["n"].flags.writeable


def test_rounding_is_exact():
    assert nearest(Fraction("0.49999999999999994"), 0) == 0
    column = real(lower=-4, upper=4, granularity=1)
    frame = pl.DataFrame(
        {"x": [0.49999999999999994, -0.5, 0.5, -0.50000000000000011, -1e-20, 1e-320]}
    )
    wanted = plan(schema={"x": column}, by={"x": col("x")})
    numbers = collect(wanted, source=open_source(frame), key=0).columns["n"].tolist()
    assert numbers == [0, 0, 0, 1, 4, 1, 0, 0, 0]


def test_the_key_decides_and_is_checked():
    frame = pl.DataFrame({"u": [1] * 50, "x": [i / 10 for i in range(50)]})
    wanted = plan(
        unit="u", aggregates={"x": total(col("x"))}, limits=ContributionLimits(max_rows_per_unit=1)
    )
    source = open_source(frame)
    seen = {int(collect(wanted, source=source, key=key).columns["x"][0]) for key in range(40)}
    assert len(seen) > 3
    with pytest.raises(InvalidArgument, match="key"):
        collect(wanted, source=source, key=-1)
