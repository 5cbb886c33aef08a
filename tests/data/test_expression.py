"""Expressions are exact, total, and know their bounds."""

from __future__ import annotations

import copy
import datetime as dt
import math
import operator
import pickle
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.core.errors import InvalidArgument
from discreet.data._integer_ops import columns, in_order
from discreet.data.expression import col, when
from discreet.data.expression_json import read_expression, write_expression
from discreet.data.schema import OTHER, boolean, category, date, integer, real
from tests.data.reference import evaluate

SCHEMA = {
    "a": real(lower=-3, upper=5, granularity=0.5),
    "b": real(lower=0, upper=1, granularity=2**-4),
    "n": integer(lower=-4, upper=7),
    "k": category(["x", "y"]),
    "z": category([10, 20], include_other=False),
    "d": date(lower=dt.date(2000, 1, 1), upper=dt.date(2000, 3, 1)),
    "h": date(lower=dt.date(2000, 1, 1), upper=dt.date(2000, 1, 3), step="hour"),
    "f": boolean(),
}
CODES = st.fixed_dictionaries({n: st.integers(c.lower, c.upper) for n, c in SCHEMA.items()})
STEPS = {"a": Fraction(1, 2), "b": Fraction(1, 16), "n": Fraction(1)}
LITERALS = st.one_of(
    st.integers(-20, 20),
    st.fractions(-6, 6, max_denominator=50),
    st.sampled_from([0.1, 0.25, 1e300, -1e300, 1e-300]),
)


def exact(value):
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def number(expression, row):
    bound = expression.bind(SCHEMA)
    code = evaluate(bound.code, row)
    assert bound.lower <= code <= bound.upper
    return code * Fraction(2) ** bound.exponent


@given(row=CODES, names=st.tuples(st.sampled_from("abn"), st.sampled_from("abn")))
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul])
def test_arithmetic(op, row, names):
    left, right = names
    values = [row[name] * STEPS[name] for name in names]
    assert number(op(col(left), col(right)), row) == op(*values)
    assert number(op(col(left), 0.75), row) == op(values[0], Fraction(3, 4))
    assert number(op(3, col(left)), row) == op(3, values[0])


@given(row=CODES, name=st.sampled_from("abn"), other=st.sampled_from("abn"), literal=LITERALS)
@pytest.mark.parametrize(
    "op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_comparisons(op, row, name, other, literal):
    value = row[name] * STEPS[name]
    assert number(op(col(name), literal), row) == op(value, exact(literal))
    assert number(op(literal, col(name)), row) == op(exact(literal), value)
    assert number(op(col(name), col(other)), row) == op(value, row[other] * STEPS[other])


@given(row=CODES, edges=st.lists(st.fractions(-6, 6, max_denominator=9), min_size=1, unique=True))
def test_cut(row, edges):
    edges = sorted(edges)
    value = row["a"] * STEPS["a"]
    assert number(col("a").cut(edges), row) == sum(edge <= value for edge in edges)


@given(row=CODES)
def test_clip_isin_map_and_connectives(row):
    a = row["a"] * STEPS["a"]
    assert number(col("a").clip(lower=-1.1, upper=2.9), row) == min(max(a, -1), Fraction(5, 2))
    assert number(col("n").isin([1, -4]), row) == (row["n"] in (1, -4))
    assert number(col("k").isin(["y", OTHER]), row) == (row["k"] in (1, 2))
    assert number(col("z") == 20, row) == (row["z"] == 1)
    assert number(col("n").map({0: "none", 1: "one"}, default="many"), row) == (
        {0: 0, 1: 1}.get(row["n"], 2)
    )
    assert number(col("f") & (col("a") > 1), row) == (row["f"] == 1 and a > 1)
    assert number(col("f") | ~(col("k") == "x"), row) == (row["f"] == 1 or row["k"] != 0)
    assert number(col("f") * 3 + col("f"), row) == 4 * row["f"]


@given(row=CODES)
def test_dates(row):
    day = dt.date(1970, 1, 1) + dt.timedelta(days=row["d"])
    hour = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=row["h"])
    noon = dt.datetime(2000, 1, 2, 12, tzinfo=dt.UTC)
    assert number(col("d") >= dt.date(2000, 2, 1), row) == (day >= dt.date(2000, 2, 1))
    assert number(col("h") < noon, row) == (hour < noon)
    assert number(col("d").cut([dt.date(2000, 2, 1)]), row) == (day >= dt.date(2000, 2, 1))
    bound = col("d").bind(SCHEMA)
    assert bound.label(row["d"]) == day
    assert bound.locate(day) == row["d"]


def test_labels():
    assert col("a").cut([0, 2.5]).bind(SCHEMA).labels == ("< 0", "[0, 2.5)", ">= 2.5")
    assert col("k").bind(SCHEMA).labels == ("x", "y", OTHER)
    assert col("f").bind(SCHEMA).label(1) is True
    assert col("a").bind(SCHEMA).label(3) == 1.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: col("missing") + 1,
        lambda: col("k") + 1,
        lambda: col("k") < "y",
        lambda: col("k") == "w",
        lambda: col("d") == 3,
        lambda: col("d") < col("h"),
        lambda: col("a") == col("k"),
        lambda: col("a") + 0.1,
        lambda: col("a") & col("f"),
        lambda: ~col("a"),
        lambda: col("a").cut([]),
        lambda: col("a").cut([2, 1]),
        lambda: col("k").cut([1]),
        lambda: col("a").isin([0.3]),
        lambda: col("n").isin([8]),
        lambda: col("n").isin(8),
        lambda: col("k").isin("y"),
        lambda: col("n").map([0]),
        lambda: col("a").clip(lower=0.1, upper=0.2),
        lambda: col("n") * 2**62,
        lambda: col("f") == 1,
        lambda: col("n") < math.nan,  # noqa: PLW0177
        lambda: col("n") + True,
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(InvalidArgument):
        make().bind(SCHEMA)


def test_an_expression_follows_the_columns_it_is_bound_to():
    n, schema = col("n"), dict(SCHEMA)
    double = n * 2
    assert (n.bind(schema).upper, double.bind(schema).upper) == (7, 14)
    assert double.bind({"n": integer(0, 100)}).upper == 200
    schema["n"] = integer(0, 50)  # the same mapping, changed since
    assert (n.bind(schema).upper, double.bind(schema).upper) == (50, 100)
    del schema["n"]
    with pytest.raises(InvalidArgument, match="'n' is not declared"):
        double.bind(schema)
    assert pickle.loads(pickle.dumps(n)).bind(SCHEMA) == n.bind(SCHEMA)


def test_an_expression_is_no_truth_value():
    with pytest.raises(InvalidArgument, match="no truth value"):
        bool(col("a") == 1)
    with pytest.raises(InvalidArgument, match="parentheses"):
        col("f") & 3


def test_overflow_is_impossible():
    wide = {"w": integer(lower=-(2**63), upper=2**63 - 1, missing=-(2**63))}
    for make in (lambda w: w + 1, lambda w: w - w, lambda w: w * w, lambda w: w * 0.5 + w):
        with pytest.raises(InvalidArgument, match="pass 2\\*\\*63"):
            make(col("w")).bind(wide)
    assert (col("w").clip(lower=-5, upper=5) * 2).bind(wide).upper == 10


def test_shared_parts_cost_what_they_are_not_how_often_they_stand():
    # 2**48 paths lead through each of these. A walk along paths would not end.
    known = col("n").fill_missing(1)
    for step in (
        abs,
        lambda x: (x + x) % 7,
        lambda x: when(x > 0).then(x).otherwise(-x),
        lambda x: when((x > 0) & ((x > 0) | (x > 1))).then(x).otherwise(1),
    ):
        made = known
        for _ in range(48):
            made = step(made)
        bound = made.bind(SCHEMA)
        assert len(in_order([bound.code])) < 2000
        assert columns(bound.code) == {"n"}
        assert bound == made.bind(dict(SCHEMA))
        assert pickle.loads(pickle.dumps(bound.code)) is copy.deepcopy(bound.code) is bound.code
        assert len(repr(made)) < 5000


def test_a_deep_expression_is_planned_sent_and_released(tmp_path):
    rows = {"u": list(range(200)), "n": [place % 8 - 4 for place in range(200)]}
    pl.DataFrame(rows).write_csv(tmp_path / "rows.csv")
    sent = ["col", "n"]
    for _ in range(48):
        sent = ["abs", sent]
    deep = read_expression(sent)
    assert write_expression(deep) == sent
    for source in (pl.DataFrame(rows), tmp_path / "rows.csv"):
        table = discreet.table(
            source, privacy_unit="u", columns={"n": integer(-4, 7)}, max_rows_per_unit=1, budget=1e6
        )
        found = table.sum(deep, where=deep < 4, by=deep, keys=[0, 1, 2, 3], epsilon=1e5)
        assert found.values == (0, 50, 100, 150)


def test_an_expression_is_not_written_out_without_end():
    doubled = col("n")
    for _ in range(40):
        doubled = doubled + doubled
    with pytest.raises(InvalidArgument, match="at most 10,000 operations"):
        write_expression(doubled)
