"""An expression that was sent as JSON is the one that was written."""

import datetime as dt
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet import boolean, category, col, date, integer, real, when
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.data.expression_json import (
    DEEPEST,
    read_expression,
    read_label,
    write_expression,
    write_label,
)

SCHEMA = {
    "age": integer(lower=0, upper=120),
    "pay": real(lower=0, upper=1024, granularity=0.25),
    "place": category(["a", "b", "c"]),
    "day": date(lower=dt.date(2020, 1, 1), upper=dt.date(2026, 12, 31)),
    "hour": date(
        lower=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        upper=dt.datetime(2026, 2, 1, tzinfo=dt.UTC),
        step="hour",
    ),
    "well": boolean(),
}
AGE, PAY, PLACE, DAY = col("age"), col("pay"), col("place"), col("day")
EXPRESSIONS = [
    AGE,
    AGE >= 65,
    Fraction(1, 3) < AGE,
    Decimal("0.1") < AGE,
    (AGE < 18) | ~(PLACE == "a") & col("well"),
    PLACE != "b",
    dt.date(2026, 1, 31) >= DAY,
    col("hour") < dt.datetime(2026, 1, 5, 7, tzinfo=dt.UTC),
    2 * AGE - 3 + PAY,
    1 - AGE,
    -AGE,
    abs(AGE - 60),
    PAY / 4,
    AGE // 5,
    AGE % np.int64(7),
    PAY.divide(AGE, lower=0, upper=100, granularity=0.5, zero=1),
    PAY.divide(2, lower=0, upper=100, granularity=0.5),
    AGE.clip(lower=10, upper=Fraction(201, 2)),
    AGE.cut([18, 65]),
    DAY.cut([dt.date(2021, 1, 1)]),
    PLACE.isin(["a", "b"]),
    PLACE.map({"a": "town", "b": "town"}, default="land"),
    when(AGE >= 18).then(PAY).otherwise(0),
    when(col("well")).then("yes").otherwise("no"),
    *(DAY.year() == y for y in (2020, 2021)),
    DAY.month(),
    DAY.day(),
    DAY.weekday(),
    DAY.week(),
    DAY.quarter(),
    DAY.truncate("week"),
    col("hour").hour(),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=repr)
def test_the_same_code_comes_back(expression):
    back = read_expression(json.loads(json.dumps(write_expression(expression))))
    assert back.bind(SCHEMA) == expression.bind(SCHEMA)


def nested(depth):
    found = ["col", "age"]
    for _ in range(depth):
        found = ["abs", found]
    return found


@pytest.mark.parametrize(
    "content",
    [
        5,
        "age",
        None,
        [],
        {},
        ["col"],
        ["col", 5],
        ["col", "age", "pay"],
        ["nothing", ["col", "age"]],
        ["__class__", ["col", "age"]],
        ["bind", ["col", "age"]],
        ["*", "a", 10**9],
        ["%", "%s%s", ["col", "age"]],
        ["+", 1, 2],
        ["<", 1, 2],
        ["and", True, ["col", "well"]],
        ["and", ["col", "well"], True],
        ["isin", ["col", "age"], [["col", "pay"]]],
        ["isin", ["col", "age"], 5],
        ["map", ["col", "place"], [["a"]], "x"],
        ["clip", ["col", "age"], 1],
        ["<", ["col", "age"], {"number": "1e999999999"}],
        ["<", ["col", "age"], {"number": "1/0"}],
        ["<", ["col", "age"], {"date": "yesterday"}],
        ["<", ["col", "age"], {"date": "2026-01-01", "time": "2026-01-01"}],
        ["<", ["col", "age"], {"file": "/etc/passwd"}],
        ["divide", ["col", "age"], 2, 0, 1, "x", None],
        nested(DEEPEST),
        pytest.param(nested(5_000), id="far too deep"),
    ],
)
def test_what_is_no_expression_is_refused(content):
    with pytest.raises(InvalidArgument):
        read_expression(content)


@pytest.mark.parametrize("content", [["<", ["col", "age"], None], ["+", "a", ["col", "age"]]])
def test_what_no_column_fits_is_refused_when_it_is_bound(content):
    with pytest.raises(PrivacyError):
        read_expression(content).bind(SCHEMA)


def test_the_deepest_is_read():
    assert read_expression(nested(DEEPEST - 1)).bind(SCHEMA).upper == 120


@pytest.mark.parametrize("label", ["a", 3, 0.5, True, dt.date(2026, 1, 1), Fraction(1, 3)])
def test_labels(label):
    back = read_label(json.loads(json.dumps(write_label(label))))
    assert back == label
    assert type(back) is type(label)


def test_what_cannot_be_sent():
    with pytest.raises(InvalidArgument, match="cannot be sent"):
        write_expression(object() == AGE)
