"""One person's value, however strange, is read by itself: no error, no warning, no other type."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.intervals._coverage import leave_one_out
from discreet.mechanisms.partition_selection import partition_selection

HONEST = [1, 2] * 9 + [3]
STRANGE = {
    "nothing": None, "nan": float("nan"), "inf": float("inf"), "-inf": -float("inf"), "text": "x",
    "digits": "7", "huge": 1e308, "2^62": 2**62, "long": 10**5000, "decimal": Decimal("1e999999"),
    "decimal nan": Decimal("NaN"), "fraction": Fraction(1, 3), "true": True, "list": [1, 2],
    "complex": 1j, "date": np.datetime64("2020-01-01"), "long double": np.longdouble("1e400"),
    "bytes": b"7", "object": object(), "tiny": 5e-324,
}  # fmt: skip
COLUMN = {"lower": 0, "upper": 10, "public_rows": 20, "epsilon": 10}
PLANS = {
    "mean": discreet.intervals.mean(**COLUMN, std=2),
    "variance": discreet.intervals.variance(**COLUMN, std=2),
    "quantile": discreet.intervals.quantile(**COLUMN),
    "proportion": discreet.intervals.proportion(public_rows=20, epsilon=10),
}
MISFITS = ("nothing", "nan", "text", "digits", "decimal nan", "list", "complex", "date", "bytes")


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("strange", STRANGE)
def test_an_interval_takes_any_value(name, strange):
    plan = PLANS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = plan.release([*HONEST, STRANGE[strange]], rng=discreet.seeded_rng(1))
    if strange in MISFITS:
        counted = 0 if name == "proportion" else 5
        assert found == plan.release([*HONEST, counted], rng=discreet.seeded_rng(1))


@pytest.mark.parametrize("strange", STRANGE)
def test_a_difference_takes_any_value(strange):
    plan = discreet.intervals.difference(lower=0, upper=10, public_rows=(20, 3), epsilon=10, std=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.release([*HONEST, STRANGE[strange]], [1, 2, 3], rng=discreet.seeded_rng(1))
        plan.release([*HONEST, 1], [1, STRANGE[strange], 3], rng=discreet.seeded_rng(1))


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("public_rows", [None, 20])
def test_a_mean_without_bounds_takes_any_value(strange, public_rows):
    relation = discreet.NeighboringRelation.REPLACE_ONE
    known = {} if public_rows is None else {"public_rows": public_rows, "relation": relation}
    made = discreet.mean_without_bounds(unit=Fraction(1, 2**900), epsilon=1, **known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = made.release([*HONEST, STRANGE[strange]], rng=discreet.seeded_rng(1))
    if strange in MISFITS:
        instead = HONEST if public_rows is None else [*HONEST, 0]
        assert found == made.release(instead, rng=discreet.seeded_rng(1))


@pytest.mark.parametrize("strange", STRANGE)
def test_a_count_of_a_key_that_is_no_number_counts_nobody(strange):
    made = partition_selection(groups=1, epsilon=50, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        places, _ = made.release([100, 100, STRANGE[strange], 100], rng=discreet.seeded_rng(1))
    assert {0, 1, 3} <= set(places.tolist())
    if strange in MISFITS:
        assert 2 not in places


def test_the_number_of_rows_is_public_and_checked():
    with pytest.raises(discreet.OutOfDomain, match="20 numbers"):
        PLANS["mean"].release(HONEST)
    with pytest.raises(discreet.OutOfDomain, match="one for each row"):
        PLANS["mean"].release(np.zeros((20, 1)))


def test_how_much_a_row_matters_is_told_of_rows_that_are_numbers():
    odd = leave_one_out([*HONEST, None, float("inf"), "x"], statistic="mean")
    assert odd.value == leave_one_out(HONEST, statistic="mean").value
