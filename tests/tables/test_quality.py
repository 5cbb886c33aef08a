"""What share of a column is known, clipped or unknown: against counts of the raw values."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

import discreet

SURE = 10**6
ROWS = pl.DataFrame(
    {
        "who": [f"p{i}" for i in range(200)],
        "pay": ["10", "900", "", "-3", "abc"] * 40,
        "score": [0.5, None, float("nan"), 7.0, 1.0] * 40,
        "day": [dt.date(2020, 1, 5), None, dt.date(1900, 1, 1), dt.date(2020, 2, 1)] * 50,
        "well": [True, None, False, False] * 50,
        "ward": ["a", "b", None, "x"] * 50,
        "name": ["n"] * 200,
    }
)
COLUMNS = {
    "pay": discreet.integer(0, 100, missing=7),
    "score": discreet.real(0, 1, granularity=0.25, required=True),
    "day": discreet.date(dt.date(2020, 1, 1), dt.date(2020, 12, 31)),
    "well": discreet.boolean(),
    "ward": discreet.category(["a", "b"], include_other=False),
    "name": discreet.text(),
}
EXPECTED = {
    "pay": {"inside": 0.2, "above": 0.2, "below": 0.2, "unknown": 0.4},
    "score": {"inside": 0.4, "above": 0.2, "below": 0, "unknown": 0.4},
    "day": {"inside": 0.5, "unknown": 0.5},
    "well": {"inside": 0.75, "unknown": 0.25},
    "ward": {"listed": 0.5, "not listed": 0.25, "unknown": 0.25},
}


def opened(**more):
    account = discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(10**9))
    return discreet.table(ROWS, columns=COLUMNS, account=account, **more)


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "who", "max_rows_per_unit": 1}])
def test_shares_are_those_of_the_raw_values(unit):
    found = opened(**unit).quality(epsilon=SURE)
    assert [one.title for one in found] == [f"quality of {name}" for name in EXPECTED]
    for one, expected in zip(found, EXPECTED.values(), strict=True):
        told = {key: value for (key,), value in zip(one.keys, one.value, strict=True)}
        assert told == pytest.approx(expected, abs=1e-3)


def test_intervals_hold_and_all_columns_are_charged_together():
    table = opened()
    before = table.account.remaining
    (pay, _) = table.quality(["pay", "ward"], epsilon=2)
    assert before - table.account.remaining == 2
    low, high = pay.interval(1 - 1e-9)
    exact = [EXPECTED["pay"][key] for (key,) in pay.keys]
    assert np.all(np.array(low) <= exact)
    assert np.all(np.array(high) >= exact)


def test_bounds_of_all_whole_numbers():
    top = 2**63 - 2
    frame = pl.DataFrame({"x": [top, 0, None, -top]})
    account = discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(10**9))
    table = discreet.table(frame, columns={"x": discreet.integer(-top, top)}, account=account)
    (found,) = table.quality(epsilon=SURE)
    told = {key: value for (key,), value in zip(found.keys, found.value, strict=True)}
    assert told["inside"] == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize("columns", [["none"], [], ["name"]])
def test_what_is_refused(columns):
    table = opened()
    before = table.account.remaining
    with pytest.raises(discreet.InvalidArgument, match="columns"):
        table.quality(columns, epsilon=1)
    assert table.account.remaining == before
