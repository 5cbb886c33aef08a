"""Bounds that hold for every law: against exact tails, and what the bounds of a column say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.intervals import interval as chernoff
from discreet.intervals._coverage import coverage
from discreet.intervals._mean import mean_interval
from discreet.intervals.statistics import MeanStatistic, VarianceStatistic, bernoulli_mgf
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng

UNIT = {"lower": 0, "upper": 1}


def exceeded(rows, share, scale, reach):
    """P(share of yes + Laplace noise - its expectation > reach), by summing over all counts."""
    k = np.arange(rows + 1)
    law = stats.binom.pmf(k, rows, share)
    return float(law @ stats.laplace.sf(reach - (k / rows - share), scale=scale))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
@pytest.mark.parametrize("epsilon", [0.1, 1, 20])
def test_yes_or_no_exceeds_the_bound_as_seldom_as_said(share, epsilon):
    plan = mean_interval(**UNIT, public_rows=60, epsilon=epsilon, share=0)
    scale = plan.center.reals.scale * plan.statistic.units[0]

    def sampling(rates):
        return plan.statistic.log_mgf(rates, np.full((1, 1), share))

    (found,) = chernoff.reach(
        sampling, plan.center, plan.statistic.units[0], tail=0.01, std=math.hypot(0.05, plan.std)
    )
    tail = exceeded(60, share, scale, found)
    assert 1e-5 < tail <= 0.01
    assert exceeded(60, share, scale, found * 0.7) > 0.01  # one that is too small is seen


def test_bernoulli_is_the_extreme_of_all_laws():
    made_up = np.random.default_rng(1)
    for _ in range(50):
        points, weights = made_up.random(5), made_up.dirichlet(np.ones(5))
        mean = points @ weights
        for rate in (-30.0, -2.0, 5.0, 60.0):
            exact = 10 * (math.log(weights @ np.exp(rate / 10 * points)) - rate / 10 * mean)
            said = float(bernoulli_mgf(np.asarray(rate), np.asarray(mean), 1.0, 10))
            assert exact <= said + 1e-12


def test_bennetts_bound_is_above_all_laws_of_its_variance():
    made_up = np.random.default_rng(2)
    for _ in range(50):
        points, weights = made_up.random(4), made_up.dirichlet(np.ones(4))
        mean = points @ weights
        variance = weights @ (points - mean) ** 2
        for rate in (0.5, 8.0, 40.0):
            exact = 10 * math.log(weights @ np.exp(rate / 10 * (points - mean)))
            said = chernoff.bennett(np.asarray(rate), np.asarray(variance), 1.0, 10)
            assert exact <= float(said) + 1e-12


def test_the_variance_of_a_law_is_seldom_above_what_is_read():
    plan = mean_interval(**UNIT, public_rows=50, epsilon=4, share=0.5)
    statistic = VarianceStatistic(column=plan.statistic.column, size=50)
    shown, upper = chernoff.upper_variance(
        statistic, plan.spread, plan.statistic.units[1] * 50, tail=0.05
    )
    assert (np.diff(shown) >= 0).all()
    table = (np.random.default_rng(3).random((4000, 50)) < 0.1) * 1.0
    _, error = plan.noisy(*plan.statistic.numbers(table), seeded_rng(1))
    place = np.clip(np.searchsorted(shown, error * 50, "right") - 1, 0, None)
    below = int((upper[place] < 0.09).sum())
    assert 0 < below <= 0.05 * 4000


@pytest.mark.parametrize("rows", [2, 20, 100])
@pytest.mark.parametrize("share", [0, 0.3])
def test_nothing_assumed_holds_for_hard_laws(rows, share):
    hard = {
        0.02: lambda g, size: (g.random(size) < 0.02) * 1.0,
        0.98: lambda g, size: (g.random(size) < 0.98) * 1.0,
        0.505: lambda g, size: 0.5 + 0.5 * (g.random(size) < 0.01),
    }
    plan = mean_interval(**UNIT, public_rows=rows, epsilon=10, share=share, assume="nothing")
    for truth, draw in hard.items():
        found = coverage(
            plan.simulate, draw=draw, truth=truth, rows=rows, confidence=0.95, trials=6000, seed=1
        )
        assert found.holds()


def test_few_yes_make_it_short_without_a_noisy_variance():
    """The bounds say how much variance a small mean leaves: nothing need be spent on it."""
    plan = mean_interval(**UNIT, public_rows=1000, epsilon=1, share=0, assume="nothing")
    rare, half = (
        plan.release((np.arange(1000) < k) * 1.0, rng=seeded_rng(1)).width for k in (10, 500)
    )
    assert rare < 0.4 * half
    hoeffding = 2 * math.sqrt(math.log(40) / 2000)
    assert half < 1.1 * hoeffding  # though it holds the noise, too


def test_a_guess_of_the_mean_saves_the_variance():
    free = mean_interval(**UNIT, public_rows=1000, epsilon=1, std=0.14, mean=0.02)
    assert free.spread is None
    assert free.forecast(0.14, 0.02).width < 0.5 * free.forecast(0.14).width
    paid = mean_interval(**UNIT, public_rows=1000, epsilon=1, std=0.02, mean=0.5)
    assert paid.spread is not None


def test_largest_errors_are_those_of_the_bounds():
    statistic = MeanStatistic(column=SortedColumn.of(-2, 2, None), size=10)
    assert statistic.largest(np.array([-2.0, 0.0, 2.0, 3.0])) == pytest.approx([0, 0.4, 0, 0])


def test_constant_columns_and_two_rows():
    for options in ({}, {"assume": "nothing"}, {"method": "calibrated", "std": 0.1}):
        for rows in (2, 500):
            plan = mean_interval(**UNIT, public_rows=rows, epsilon=2, **options)
            for value in (0.0, 0.4, 1.0):
                found = plan.release(np.full(rows, value), rng=seeded_rng(rows))
                assert 0 <= found.low <= found.high <= 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_bound_is_zero_where_every_row_is_at_a_bound(share):
    rates = np.array([-1e6, -1e3, -1.0, 0.0, 1.0, 1e3, 1e6])
    with np.errstate(all="raise"):
        assert (bernoulli_mgf(rates, np.full(7, share), 1.0, 2) == 0).all()


@pytest.mark.parametrize("rows", [2, 20])
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 100, 1e5])
def test_few_rows_at_a_bound_are_held(rows, delta, epsilon):
    """Where noise is small, rates are large: the ends must be numbers even so."""
    plan = mean_interval(
        **UNIT, public_rows=rows, epsilon=epsilon, delta=delta, share=0, assume="nothing"
    )
    for value in (0.0, 1.0):
        low, high = plan.simulate(np.full((1000, rows), value), seeded_rng(3))
        assert (low <= high).all()
        missed = ((low > value) | (high < value)).mean()
        assert missed <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 1000)
