"""Mechanisms over rows: one strange row changes no other row, no type, and raises nothing."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal

import numpy as np
import pytest

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng

STRANGE = [
    math.nan, math.inf, -math.inf, None, "n/a", b"x", 2**62, 10**5000, -(10**400), 1e305, 5e-324,
    Decimal("3.5"), np.float32(2), np.datetime64("2020-01-01"), object(), True, [1, 2], "\ud800",
]  # fmt: skip
HONEST = [float(i % 100) for i in range(400)]


def _mechanisms():
    yield discreet.private_quantile(lower=0, upper=100, epsilon=1)
    yield discreet.private_quantiles([0.25, 0.5, 0.75], lower=0, upper=100, epsilon=1)
    yield discreet.private_bin_counts(lower=0, upper=100, bins=10, epsilon=1)
    yield discreet.smooth_sensitivity(
        "median", lower=0, upper=100, public_rows=401, epsilon=1, delta=1e-6
    )
    yield discreet.sample_and_aggregate(np.mean, lower=0, upper=100, groups=20, epsilon=1)


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_one_strange_row_raises_nothing_and_keeps_the_type(place):
    for mechanism in _mechanisms():
        usual = mechanism.release([*HONEST, 50.0], rng=seeded_rng(1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            strange = mechanism.release([*HONEST, STRANGE[place]], rng=seeded_rng(1))
        assert type(strange) is type(usual)
        assert np.shape(strange) == np.shape(usual)


@pytest.mark.parametrize("strange", [math.nan, "n/a", 3.5, None])
def test_one_owner_leaves_the_groups_of_all_others(strange):
    # One NaN made doubles of 64-bit ids, and one person of two thousand.
    ids = [2**61 + i for i in range(2000)]
    rows = [90.0] * 2000  # an empty group counts as 50
    mechanism = discreet.sample_and_aggregate(
        np.mean, lower=0, upper=100, groups=50, epsilon=1000, summary="mean"
    )
    usual = mechanism.release(rows, owners=ids, rng=seeded_rng(3))
    found = mechanism.release([*rows, 0.0], owners=[*ids, strange], rng=seeded_rng(3))
    assert abs(found - usual) <= 100 / 50 + 1


@pytest.mark.parametrize("strange", ["n/a", 3.5, None])
def test_one_row_leaves_the_types_of_other_groups(strange):
    kinds = []

    def estimator(part):
        kinds.append(part.dtype)
        return float(part[0])

    mechanism = discreet.sample_and_aggregate(
        estimator,
        lower=0,
        upper=100,
        groups=10,
        epsilon=1,
        relation=NeighboringRelation.REPLACE_ONE,
    )
    mechanism.release([*range(99), strange], rng=seeded_rng(3))
    assert sum(kind != np.int64 for kind in kinds) <= 1


def test_sums_of_many_wide_rows_do_not_wrap():
    rows, upper = 2**23, 2**40
    mechanism = discreet.smooth_sensitivity(
        "mean", lower=0, upper=upper, public_rows=rows, granularity=1, epsilon=1, delta=1e-6
    )
    values = np.full(rows, upper, dtype=np.int64)
    found = mechanism.release(values, rng=seeded_rng(5))
    values[0] = 0
    other = mechanism.release(values, rng=seeded_rng(5))
    assert abs(found - upper) < upper / 100
    assert abs(other - upper) < upper / 100
