"""Intervals from reports: coverage, the step that undoes Laplace noise, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.core.errors import InvalidArgument
from discreet.intervals._coverage import coverage, per_column
from discreet.local import report_intervals as reports
from discreet_studies.intervals.coverage_cases import entries
from tests import distributions as laws

ENTRIES = entries()


@pytest.mark.parametrize("name", [name for name in ENTRIES if name.startswith("reports")])
def test_reports_cover(name):
    found = ENTRIES[name].run(trials=150 if "median" in name else 1500, seed=5)
    assert found.bounds(1 - laws.ALPHA)[1] >= 0.95
    assert found.rate > 0.93


def test_shares_from_randomized_responses_are_covered_at_every_share():
    """The exact coverage, summed over all counts."""
    rows, lie = 60, 1 / (1 + math.exp(0.8))
    ends = [
        reports.proportion_from_reports([1.0] * k + [0.0] * (rows - k), epsilon=0.8, confidence=0.9)
        for k in range(rows + 1)
    ]
    for share in np.linspace(0, 1, 31):
        law = stats.binom.pmf(np.arange(rows + 1), rows, lie + share * (1 - 2 * lie))
        held = [one.low <= share <= one.high for one in ends]
        assert law[held].sum() >= 0.9


@pytest.mark.parametrize("x", [-0.4, 0.1, 0.33, 0.7, 1.4])
def test_a_step_less_its_bend_undoes_the_noise(x):
    """E[S(x + Z) - b^2 S''(x + Z)] = S(x), by quadrature of the very function in use."""
    scale, h, at = 0.6, 0.8, 0.2

    def seen(y):
        mean, _ = reports._steps(np.array([y, y]), np.array([at]), scale, h, tail=0.1, sure=False)
        return float(mean[0]) * math.exp(-abs(y - x) / scale) / (2 * scale)

    breaks = sorted({-30.0, at, at + h / 2, at + h, x, 30.0})
    found = sum(integrate.quad(seen, a, b, epsabs=1e-10)[0] for a, b in itertools.pairwise(breaks))
    u = (x - at) / h
    step = 1.0 if u <= 0 else 1 - 2 * u**2 if u < 0.5 else 2 * (1 - u) ** 2 if u < 1 else 0.0
    assert found == pytest.approx(step, abs=1e-7)


def test_the_quantile_of_skewed_reports_would_miss():
    """The median of noisy rows is not that of the rows (C6); the interval is for the rows."""
    made_up = np.random.default_rng(1)
    rows = made_up.exponential(0.1, 40_000).clip(0, 1)
    sent = rows + made_up.laplace(0, 0.5, 40_000)
    truth = 0.1 * math.log(2)
    found = reports.quantile_from_reports(sent, lower=0, upper=1, scale=0.5, assume="normal")
    assert found.low <= truth <= found.high
    assert found.guaranteed is None
    order = np.sort(sent)
    half = 2 * math.sqrt(10_000)
    assert order[int(20_000 - half)] > truth  # the ordinary interval of the reports


def test_a_wrong_interval_is_found_out():
    def ignores_noise(column, _bits):
        half = 1.96 * math.sqrt(1 / 12 / len(column))
        return column.mean() - half, column.mean() + half

    found = coverage(
        per_column(ignores_noise),
        draw=ENTRIES["reports, mean"].draw,
        truth=0.5,
        rows=500,
        confidence=0.95,
        trials=1000,
    )
    assert found.bounds()[1] < 0.95


def test_constant_reports():
    found = reports.mean_from_reports([2.0, 2.0, 2.0])
    assert found.low == found.high == 2
    assert reports.difference_from_reports([1.0, 1.0], [0.0, 0.0]).width == 0
    variance = reports.variance_from_reports([1.0] * 5, scale=1)
    assert variance.value == -2
    assert variance.low == variance.high == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: reports.mean_from_reports([]), "two numbers or more"),
        (lambda: reports.difference_from_reports([1.0], [1.0, 2.0]), "first must be a sequence"),
        (lambda: reports.variance_from_reports([1.0] * 3, scale=1), "four numbers or more"),
        (lambda: reports.proportion_from_reports([0.5], epsilon=1), "0 or 1"),
        (lambda: reports.proportion_from_reports([], epsilon=1), "one number or more"),
        (
            lambda: reports.quantile_from_reports([1.0, 2.0], lower=1, upper=0, scale=1),
            "lower must be",
        ),
        (
            lambda: reports.quantile_from_reports([1.0, 2.0], lower=0, upper=1, scale=0),
            "scale must be",
        ),
        (
            lambda: reports.quantile_from_reports(
                [1.0, 2], lower=0, upper=1, scale=1, assume="all"
            ),
            "assume must be 'normal' or 'nothing'",
        ),
    ],
)
def test_wrong_arguments(build, message):
    with pytest.raises(InvalidArgument, match=message):
        build()


def test_a_report_that_nobody_can_have_sent_is_left_out():
    for damaged in (math.nan, math.inf, None, "x"):
        assert reports.mean_from_reports([1.0, damaged, 3.0]) == reports.mean_from_reports([1, 3])
    told = reports.proportion_from_reports([0, 1, 1, 0.5, None], epsilon=1)
    assert told == reports.proportion_from_reports([0, 1, 1], epsilon=1)


def test_reports_with_next_to_no_budget_say_nothing():
    found = reports.proportion_from_reports([0, 1, 1], epsilon=1e-17)
    assert (found.low, found.high) == (0.0, 1.0)
    with pytest.raises(InvalidArgument, match="epsilon"):
        reports.proportion_from_reports([0, 1, 1], epsilon=5e-324)
