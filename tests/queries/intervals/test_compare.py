"""Noise before and after a query: exact moments, matching, and the interval from reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.queries.intervals.compare import central_and_local
from discreet.queries.intervals.coverage import coverage, each
from discreet.queries.intervals.reports import reports_interval, reports_variance
from tests import laws

UNIT = {"lower": 0, "upper": 1}
STD = 12**-0.5


@pytest.mark.parametrize(("rows", "matched"), [(100, 7.43), (1000, 18.7), (10**4, 57.8)])
def test_the_epsilon_that_makes_noisy_rows_as_good(rows, matched):
    mean, variance, _ = central_and_local(**UNIT, rows=rows, epsilon=1, std=STD)
    assert mean.matched == math.sqrt(rows)
    assert variance.matched == pytest.approx(matched, rel=0.05)
    for row, k in ((mean, 0), (variance, 1)):
        local = central_and_local(**UNIT, rows=rows, epsilon=row.matched, std=STD)[k].local
        assert local == pytest.approx(row.central, rel=1e-9)


def test_errors_of_a_variance_as_published():
    (_, found, _) = central_and_local(**UNIT, rows=659, epsilon=1, std=STD)
    assert found.local**2 == pytest.approx(0.0314, abs=1e-4)
    assert found.uncorrected**2 == pytest.approx(4.031, abs=1e-3)
    (_, constant) = central_and_local(lower=-3, upper=3, rows=10, epsilon=2, std=0)
    assert constant.central == pytest.approx(math.sqrt(2) * 36 / 20)


@pytest.mark.parametrize("rows", [2, 5, 50])
def test_moments_of_the_variance_of_noisy_rows(rows):
    made_up = np.random.default_rng(rows)
    column = made_up.random(rows)
    s2 = column.var(ddof=1)
    noisy = column + made_up.laplace(0, 1, (200_000, rows))
    found = noisy.var(axis=1, ddof=1) - 2
    (_, said, _) = central_and_local(**UNIT, rows=rows, epsilon=1, std=math.sqrt(s2))
    assert laws.mean_of(found, s2, said.local**2)
    squares = (found - s2) ** 2
    assert laws.mean_of(squares, said.local**2, squares.var())
    assert not laws.mean_of(squares, said.local**2 * 1.3, squares.var())
    assert reports_variance(noisy[0], scale=1) == pytest.approx(found[0])


@pytest.mark.parametrize("scale", [1, 5])
def test_reports_cover(scale):
    def interval(column, _bits):
        found = reports_interval(column, level=0.95)
        return found.low, found.high

    def reports(made_up, size):
        return made_up.random(size) + made_up.laplace(0, scale, size)

    found = coverage(each(interval), draw=reports, truth=0.5, rows=659, level=0.95, trials=4000)
    assert laws.frequency(found.held, found.trials, 0.95)
    assert not laws.frequency(found.held, found.trials, 0.92)


def test_wrong_arguments():
    with pytest.raises(InvalidArgument, match="two numbers or more"):
        reports_interval([1.0])
    with pytest.raises(InvalidArgument, match="two numbers or more"):
        reports_variance([[1.0, 2.0]], scale=1)
    with pytest.raises(InvalidArgument, match="scale must be positive"):
        reports_variance([1.0, 2.0], scale=0)
    with pytest.raises(InvalidArgument, match="lower must be below upper"):
        central_and_local(lower=1, upper=0, rows=5, epsilon=1, std=1)
    with pytest.raises(InvalidArgument, match="rows must be at least 2"):
        central_and_local(**UNIT, rows=1, epsilon=1, std=1)
