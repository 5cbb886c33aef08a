"""One strange value in a frame: no other row is read differently, and nothing fails.

Frames are built from plain values, at both ends of more rows than narwhals looks at.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import disclosure
from discreet.core.errors import InvalidArgument
from discreet.data.execute import KeyPlan, collect, collect_keys
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import boolean, category, date, integer, real, text
from discreet.data.source import check_source, open_source


class _NoText:
    def __str__(self) -> str:
        raise ZeroDivisionError


class _NoHash:
    __hash__ = None  # type: ignore[assignment]


class _NoEquality:
    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    def __hash__(self) -> int:
        return 1


class _NoTruth:
    def __bool__(self) -> bool:
        raise ZeroDivisionError


STRANGE = [
    None, True, 1, 1.0, 0.5, "True", "", "\ud800", "a\0", 10**5000, -(2**63), Decimal("1.00"),
    Decimal("sNaN"), np.float32(1), np.bool_(True), float("nan"), float("inf"), pd.NaT, pd.NA,
    np.datetime64("NaT"), pd.Timestamp("2020-01-01"), _NoText(), _NoHash(), _NoEquality(),
    _NoTruth(), (1, 2), {"a": 1}, [1], b"a", np.array([1, 2]), pd.Period("2020"), 1 + 1j, object,
]  # fmt: skip
HONEST = {
    "texts": ["a", "b"] * 75,
    "digits": ["1", "2"] * 75,
    "whole": [1, 2] * 75,
    "truth": [True, False] * 75,
    "days": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)] * 75,
}
COLUMNS = {
    "integer": integer(lower=0, upper=9, missing=0),
    "real": real(lower=0, upper=9, granularity=0.25, missing=0),
    "texts": category(["a", "b", "1"]),
    "whole": category([1, 2]),
    "boolean": boolean(missing=False),
    "date": date(
        lower=dt.date(2019, 12, 31), upper=dt.date(2021, 1, 2), missing=dt.date(2019, 12, 31)
    ),
    "open": text(),
}


def _answer(frame, column):
    """What the rows count for, exactly; one row changes it by its own weight."""
    source = open_source(frame)
    if column is COLUMNS["open"]:
        plan = KeyPlan(schema={"x": column}, by={"x": col("x")}, max_groups_per_unit=1)
        check_source(plan.program(), source)
        found = collect_keys(plan, source=source, key=1)
        return dict(zip(found.keys, found.units.tolist(), strict=True))
    if column in (COLUMNS["integer"], COLUMNS["real"], COLUMNS["boolean"]):
        asked = {"n": count(), "s": total(col("x"))}
        plan = compile_program(schema={"x": column}, aggregates=asked)
    else:
        plan = compile_program(schema={"x": column}, by={"x": col("x")}, aggregates={"n": count()})
    found = collect(plan, source=source, key=1)
    return {(n, i): int(v) for n, c in found.columns.items() for i, v in enumerate(c)}


def _units(frame):
    plan = compile_program(
        schema={"y": integer(lower=0, upper=9)},
        aggregates={"n": count(), "u": units(), "s": total(col("y"))},
        unit="x",
        limits=ContributionLimits(max_rows_per_unit=1),
    )
    found = collect(plan, source=open_source(frame), key=1)
    return [int(v) for column in found.columns.values() for v in column]


def _moved(before, after):
    return max(abs(before.get(k, 0) - after.get(k, 0)) for k in {*before, *after})


def _objects(values):
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return pd.DataFrame({"x": pd.Series(held, dtype=object), "y": 1})


def _polars_objects(values):
    return pl.DataFrame({"x": pl.Series("x", values, dtype=pl.Object), "y": [1] * len(values)})


@pytest.mark.parametrize("make", [_objects, _polars_objects])
@pytest.mark.parametrize("honest", HONEST)
def test_objects_are_read_one_by_one_wherever_they_stand(make, honest):
    rows = HONEST[honest]
    before = {name: _answer(make(rows), column) for name, column in COLUMNS.items()}
    people = _units(make(rows))
    for value in STRANGE:
        for strange in ([value, *rows], [*rows, value]):
            frame = make(strange)
            for name, column in COLUMNS.items():
                assert _moved(before[name], _answer(frame, column)) <= 36, name
            assert max(abs(a - b) for a, b in zip(people, _units(frame), strict=True)) <= 1


@pytest.mark.parametrize("honest", ["texts", "digits", "whole", "truth"])
def test_categories_of_pandas_are_read_as_their_values(honest):
    rows = HONEST[honest]
    before = {n: _answer(pd.DataFrame({"x": pd.Categorical(rows)}), c) for n, c in COLUMNS.items()}
    for value in STRANGE:
        try:
            frame = pd.DataFrame({"x": pd.Categorical([*rows, value])})
        except Exception:  # noqa: BLE001 - pandas itself holds no such category
            continue
        for name, column in COLUMNS.items():
            try:
                after = _answer(frame, column)
            except InvalidArgument:  # pandas made doubles of all categories: refused by its type
                assert frame["x"].cat.categories.dtype.kind in "fc"
                continue
            assert _moved(before[name], after) <= 36, name


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(types_mapper=pd.ArrowDtype)])
def test_arrow_texts_that_are_no_utf8_are_missing(make, kind):
    def table(rows):
        stored = pa.array(rows, pa.binary() if kind == pa.string() else pa.large_binary())
        unchecked = pa.Array.from_buffers(kind, len(rows), stored.buffers())
        return make(pa.table({"x": unchecked, "y": [1] * len(rows)}))

    rows = [b"a", b"b"] * 10
    for name in ("texts", "integer", "open"):
        column = COLUMNS[name]
        before, after = _answer(table(rows), column), _answer(table([*rows, b"\xff\xfe"]), column)
        assert _moved(before, after) <= 1
    assert _units(table([*rows, b"\xff\xfe"])) == _units(table(rows)) == [2, 2, 2]


def test_texts_of_pandas_with_lone_surrogates_are_missing():
    def frame(rows):
        return pd.DataFrame({"x": pd.array(rows, dtype=pd.StringDtype("python")), "y": 1})

    rows = ["a", "b"] * 10
    assert _units(frame([*rows, "\ud800"])) == _units(frame(rows)) == [2, 2, 2]
    for name in ("texts", "open"):
        column = COLUMNS[name]
        assert _moved(_answer(frame(rows), column), _answer(frame([*rows, "\ud800"]), column)) <= 1


def test_labels_of_pandas_objects_with_lone_surrogates_are_missing():
    step = disclosure.hierarchy_level(disclosure.category_hierarchy(), 0)
    bridge = disclosure.safe_k_anonymity(columns={"x": step}, rate=1 / 2, k=2, epsilon=1)
    frame = pd.DataFrame({"x": pd.Series(["a"] * 40 + ["\ud800"], dtype=object)})
    assert set(bridge.release(frame)["x"]) == {"a"}


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(types_mapper=pd.ArrowDtype)])
def test_a_dictionary_of_arrow_is_what_its_values_are(make):
    def table(values, kind):
        return make(pa.table({"x": pa.array(values, kind).dictionary_encode()}))

    assert _answer(table([1, 2, None], pa.int64()), COLUMNS["integer"]) == {
        ("n", 0): 3,
        ("s", 0): 3,
    }
    days = _answer(table([dt.date(2020, 1, 1), None], pa.date32()), COLUMNS["date"])
    assert [place for (_, place), n in days.items() if n] == [0, 1]
    with pytest.raises(InvalidArgument, match="other"):
        _answer(table([b"a"], pa.binary()), COLUMNS["texts"])
    with pytest.raises(InvalidArgument, match="float"):
        _answer(table([1.5], pa.float64()), COLUMNS["texts"])
