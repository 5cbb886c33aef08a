"""Noise before and after a query: exact moments, matching, and the interval from reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.intervals._coverage import coverage, fractional_ages, leave_one_out, per_column
from discreet.intervals.central_vs_local import compare_by_rows, compare_central_local
from discreet.local.report_intervals import (
    mean_from_reports,
    reports_variance,
    variance_from_reports,
)
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.quantiles import private_quantile
from discreet.noise.random_source import seeded_rng
from tests import distributions as laws

UNIT = {"lower": 0, "upper": 1}
STD = 12**-0.5
REPLACED = NeighboringRelation.REPLACE_ONE


@pytest.mark.parametrize(("rows", "matched"), [(100, 7.43), (1000, 18.7), (10**4, 57.8)])
def test_the_epsilon_that_makes_noisy_rows_as_good(rows, matched):
    mean, variance, _ = compare_central_local(**UNIT, public_rows=rows, epsilon=1, std=STD)
    assert mean.matched == math.sqrt(rows)
    assert variance.matched == pytest.approx(matched, rel=0.05)
    for row, k in ((mean, 0), (variance, 1)):
        local = compare_central_local(**UNIT, public_rows=rows, epsilon=row.matched, std=STD)[
            k
        ].local
        assert local == pytest.approx(row.central, rel=1e-9)


def test_errors_of_a_variance_as_published():
    (_, found, _) = compare_central_local(**UNIT, public_rows=659, epsilon=1, std=STD)
    assert found.local**2 == pytest.approx(0.0314, abs=1e-4)
    assert found.uncorrected**2 == pytest.approx(4.031, abs=1e-3)
    (_, constant) = compare_central_local(lower=-3, upper=3, public_rows=10, epsilon=2, std=0)
    assert constant.central == pytest.approx(math.sqrt(2) * 36 / 20)


@pytest.mark.parametrize("rows", [2, 5, 50])
def test_moments_of_the_variance_of_noisy_rows(rows):
    made_up = np.random.default_rng(rows)
    column = made_up.random(rows)
    s2 = column.var(ddof=1)
    noisy = column + made_up.laplace(0, 1, (200_000, rows))
    found = noisy.var(axis=1, ddof=1) - 2
    (_, said, _) = compare_central_local(**UNIT, public_rows=rows, epsilon=1, std=math.sqrt(s2))
    assert laws.mean_of(found, s2, said.local**2)
    squares = (found - s2) ** 2
    assert laws.mean_of(squares, said.local**2, squares.var())
    assert not laws.mean_of(squares, said.local**2 * 1.3, squares.var())
    assert reports_variance(noisy[0], scale=1) == pytest.approx(found[0])


@pytest.mark.parametrize("scale", [1, 5])
def test_reports_cover(scale):
    def interval(column, _bits):
        found = mean_from_reports(column, confidence=0.95)
        return found.low, found.high

    def reports(made_up, size):
        return made_up.random(size) + made_up.laplace(0, scale, size)

    found = coverage(
        per_column(interval), draw=reports, truth=0.5, rows=659, confidence=0.95, trials=4000
    )
    assert laws.frequency(found.held, found.trials, 0.95)
    assert not laws.frequency(found.held, found.trials, 0.92)


def test_wrong_arguments():
    with pytest.raises(InvalidArgument, match="two numbers or more"):
        mean_from_reports([1.0])
    with pytest.raises(InvalidArgument, match="two numbers or more"):
        reports_variance([[1.0, 2.0]], scale=1)
    with pytest.raises(InvalidArgument, match="scale must be positive"):
        reports_variance([1.0, 2.0], scale=0)
    with pytest.raises(InvalidArgument, match="lower must be below upper"):
        compare_central_local(lower=1, upper=0, public_rows=5, epsilon=1, std=1)
    with pytest.raises(InvalidArgument, match="public_rows must be at least 2"):
        compare_central_local(**UNIT, public_rows=1, epsilon=1, std=1)


def test_the_median_against_the_right_central_way():
    """The published stand-in: 659 ages on [0, 110] (C6)."""
    *_, median = compare_central_local(lower=0, upper=110, public_rows=659, epsilon=1, std=11.8)
    assert 25 <= median.output / median.local <= 45
    assert median.central < 0.5
    assert not median.exact


@pytest.mark.parametrize("epsilon", [1, 20])
def test_the_deviation_of_a_median_of_noisy_rows(epsilon):
    *_, said = compare_central_local(lower=0, upper=110, public_rows=659, epsilon=epsilon, std=11.8)
    made_up = np.random.default_rng(epsilon)
    noisy = made_up.normal(40, 11.8, (1500, 659)) + made_up.laplace(0, 110 / epsilon, (1500, 659))
    whole = math.hypot(said.local, said.sampling)
    assert np.median(noisy, axis=1).std() == pytest.approx(whole, rel=0.08)
    assert said.width(0.95, local=True) == pytest.approx(2 * 1.96 * whole, rel=1e-3)
    matched = compare_central_local(
        lower=0, upper=110, public_rows=659, epsilon=said.matched, std=11.8
    )[2]
    assert matched.local == pytest.approx(said.central, rel=1e-5)


def test_widths_before_anything_is_sent():
    """Of intervals from reports, against those that come out."""
    setting = {"lower": 0, "upper": 1, "public_rows": 2000, "epsilon": 2, "std": 0.1}
    mean, variance, _ = compare_central_local(**setting)
    made_up = np.random.default_rng(1)
    sent = made_up.normal(0.5, 0.1, 2000) + made_up.laplace(0, 0.5, 2000)
    assert mean_from_reports(sent).width == pytest.approx(mean.width(local=True), rel=0.1)
    found = variance_from_reports(sent, scale=0.5)
    assert 2 * (found.high - found.value) == pytest.approx(variance.width(local=True), rel=0.2)
    assert mean.width(local=False) < mean.width(local=True)


def test_the_deviation_of_a_median_by_rank():
    plan = private_quantile(lower=0, upper=110, epsilon=1, method="exponential", relation=REPLACED)
    made_up = np.random.default_rng(2)
    off = []
    for seed in range(200):
        rows = np.sort(made_up.normal(40, 11.8, 659))
        off.append(plan.release(rows, rng=seeded_rng(seed)) - np.median(rows))
    *_, said = compare_central_local(lower=0, upper=110, public_rows=659, epsilon=1, std=11.8)
    assert np.std(off) == pytest.approx(said.central, rel=0.35)


def test_rows_to_print_or_draw():
    found = compare_by_rows(lower=0, upper=1, rows=[1000, 10], epsilon=1, std=0.2)
    assert [row.public_rows for row in found.of("median")] == [10, 1000]
    assert len(str(found).splitlines()) == 8
    assert len(compare_by_rows(lower=0, upper=1, rows=[10], epsilon=1, std=0).comparisons) == 2
    with pytest.raises(InvalidArgument, match="one number of rows or more"):
        compare_by_rows(lower=0, upper=1, rows=[], epsilon=1, std=1)


@pytest.mark.parametrize("rows", [3, 4, 7, 100])
@pytest.mark.parametrize(
    ("name", "function"),
    [("mean", np.mean), ("median", np.median), ("variance", lambda v: v.var(ddof=1))],
)
def test_leaving_one_out_is_what_brute_force_finds(name, function, rows):
    column = np.random.default_rng(rows).random(rows)
    found = leave_one_out(column, statistic=name)
    slow = max(abs(function(column) - function(np.delete(column, i))) for i in range(rows))
    assert found.value == pytest.approx(slow, abs=1e-12)
    assert found.not_private is True
    assert "value" not in repr(found)


def test_a_diagnostic_is_no_sensitivity():
    found = leave_one_out([1.0, 2.0, 9.0], statistic="median")
    with pytest.raises(InvalidArgument, match="must be a number"):
        laplace(sensitivity=found, epsilon=1)
    with pytest.raises(InvalidArgument, match="protects nobody"):
        float(found)
    with pytest.raises(InvalidArgument, match="statistic must be 'mean', 'median' or 'variance'"):
        leave_one_out([1.0, 2.0], statistic="mode")
    with pytest.raises(OutOfDomain, match="3 numbers or more"):
        leave_one_out([1.0, 2.0], statistic="variance")


def test_fractional_ages_are_uniform_over_the_days():
    ages = np.full(40_000, 30)
    days = (fractional_ages(ages, rng=seeded_rng(1)) - 30) * 365
    assert np.abs(days - np.rint(days)).max() < 1e-9
    assert laws.follows(np.rint(days), lambda k: np.clip(k, 0, 365) / 365)
    assert not laws.follows(np.rint(days) - 20, lambda k: np.clip(k, 0, 365) / 365)
    with pytest.raises(OutOfDomain, match="whole numbers"):
        fractional_ages([30.5])
