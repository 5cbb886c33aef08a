"""One person's row of a panel, whatever stands in it, is read by itself and moves what it may."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.audit import series
from discreet.audit.series import _private_full_fit as full
from discreet.audit.series._private_fit import grid_of, plan_fit, private_panel
from discreet.noise.random_source import seeded_rng

BOUNDS = (-4, 4)
HONEST = np.random.default_rng(0).normal(size=(40, 6))
STRANGE = [
    None, float("nan"), float("inf"), -float("inf"), 1e308, 10**400, "x", "1", True, b"1", 1j,
    np.datetime64("2020-01-01"), [1, 2], object(), 2**62,
]  # fmt: skip


def _panel(value):
    found = HONEST.astype(object)
    found[7, 2] = value
    return found


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_a_strange_value_moves_no_more_than_a_replaced_row(place):
    plan = plan_fit(people=40, times=6, bounds=BOUNDS, epsilon=1)
    column = grid_of(BOUNDS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = private_panel(_panel(STRANGE[place]), column=column)
        odd, fine = plan.statistics(held), plan.statistics(HONEST)
        assert np.abs(odd[0] - fine[0]).sum() <= plan.totals.guarantee.event.shift
        assert np.abs(odd[1] - fine[1]).sum() <= plan.products.guarantee.event.shift
        both = (full.statistics(one, column=column, order=1) for one in (held, HONEST))
        move = full.moves(people=40, order=1, half=column.span)
        assert np.abs(np.subtract(*both)).sum() <= move.l1
        series.private_fit(
            _panel(STRANGE[place]), bounds=BOUNDS, epsilon=10**4, spread=1, rng=seeded_rng(1)
        )


def test_what_is_no_number_is_the_middle_in_every_kind_of_table():
    column = grid_of(BOUNDS)
    missing = HONEST.copy()
    missing[7, 2] = np.nan
    names = [f"t{i}" for i in range(6)]
    frame = pd.DataFrame(missing, columns=names)
    expected = np.where(np.isnan(missing), 0.0, missing)
    for one in (missing, _panel("x"), frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert np.array_equal(private_panel(one, column=column), expected)


def test_published_means_take_any_value():
    releases = series.releases(times=range(6), width=8, people=40, covariance=np.eye(6))
    for strange in STRANGE:
        found, honest = (
            series.publish(one, releases=releases, bounds=BOUNDS, rng=seeded_rng(1))
            for one in (_panel(strange), HONEST)
        )
        # One of forty values, between bounds that are eight apart.
        moved = np.abs(found.values - honest.values)  # noqa: PD011 - not of pandas
        assert moved.max() <= 8 / 40 + 1e-6
