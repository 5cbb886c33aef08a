"""pandas makes doubles of ids where one is missing: refused by the type, whoever it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.models.pate.teacher_assignment import assign_upsampling

IDS = [2**61 + 7 * place for place in range(1000)]


def _stream(owners):
    account = discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(10))
    with discreet.stream(account=account, epsilon=1, horizon=4, enforce_limits=True) as stream:
        stream.events([1] * len(owners), end=1, units=owners)


def _sample_and_aggregate(owners):
    made = discreet.sample_and_aggregate(len, lower=0, upper=10, groups=2, epsilon=1)
    made.release([0.0] * len(owners), owners=owners)


def _teachers(owners):
    assign_upsampling(20, copies={"all": 1}).rows(owners, ["all"] * len(owners))


def _regression(owners):
    model = discreet.models.PrivateLinearRegression(
        epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1), max_rows_per_unit=1
    )
    model.fit(np.zeros((len(owners), 1)), np.zeros(len(owners)), units=owners)


DOORS = [_stream, _sample_and_aggregate, _teachers, _regression]
DOUBLES = {
    "array": lambda ids: np.array([*ids, float("nan")]),
    "pandas": lambda ids: pd.Series([*ids, None]),
    "nullable": lambda ids: pd.Series([*ids, None], dtype="Float64"),
    "Polars": lambda ids: pl.Series([float(one) for one in ids]),
    "Arrow": lambda ids: pa.array([float(one) for one in ids]),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", DOUBLES)
def test_owners_that_became_doubles_are_refused(door, kind):
    with pytest.raises((discreet.InvalidArgument, discreet.OutOfDomain), match="whole numbers"):
        door(DOUBLES[kind](IDS))


@pytest.mark.parametrize("door", DOORS)
def test_ids_with_a_missing_one_are_taken_in_types_that_can_hold_them(door):
    door(pd.Series([*IDS, None], dtype="Int64"))
    door([*IDS, None])
