"""Intervals for a variance and a difference: brute-force sensitivities, moments, coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.intervals._coverage import coverage
from discreet.intervals._mean import difference_interval, variance_interval
from discreet.intervals.statistics import DifferenceStatistic, MeanStatistic, VarianceStatistic
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng
from discreet_studies.intervals.mean_comparison import DISTRIBUTIONS
from tests import distributions as laws

UNIT = {"lower": 0, "upper": 1}
SMALL = SortedColumn.of(0, 4, 1)
STATISTICS = [
    MeanStatistic(column=SMALL, size=4),
    VarianceStatistic(column=SMALL, size=4),
    VarianceStatistic(column=SMALL, size=5),
    DifferenceStatistic(column=SMALL, sizes=(2, 2)),
    DifferenceStatistic(column=SMALL, sizes=(3, 2)),
    DifferenceStatistic(column=SMALL, sizes=(2, 3)),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_a_replaced_row_moves_both_numbers_by_the_stated_sensitivity(statistic):
    points = list(itertools.product((0.0, 1.0, 2.0, 4.0), repeat=statistic.rows))
    center, error = statistic.numbers(np.array(points))
    where = {point: i for i, point in enumerate(points)}
    moved = [0.0, 0.0]
    for point in points:
        for row, other in itertools.product(range(statistic.rows), (0.0, 1.0, 2.0, 4.0)):
            near = where[(*point[:row], other, *point[row + 1 :])]
            here = where[point]
            moved[0] = max(moved[0], abs(center[here] - center[near]))
            moved[1] = max(moved[1], abs(error[here] - error[near]))
    assert tuple(moved) == statistic.moved  # attained, too


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_numbers_are_the_statistics(statistic):
    table = np.random.default_rng(2).integers(0, 5, (50, statistic.rows)) * 1.0
    center, error = statistic.numbers(table)
    units = statistic.units
    if isinstance(statistic, MeanStatistic):
        said, shown = table.mean(axis=1), table.var(axis=1, ddof=1) / statistic.rows
    elif isinstance(statistic, DifferenceStatistic):
        one, two = table[:, : statistic.sizes[0]], table[:, statistic.sizes[0] :]
        said = one.mean(axis=1) - two.mean(axis=1)
        shown = one.var(axis=1, ddof=1) / one.shape[1] + two.var(axis=1, ddof=1) / two.shape[1]
    else:
        said = table.var(axis=1, ddof=1)
        pairs = (table[:, 0:4:2] - table[:, 1:4:2]) ** 2 / 2
        shown = 2 * pairs.var(axis=1, ddof=1) / statistic.rows
    assert center * units[0] + statistic.offset == pytest.approx(said)
    assert error * units[1] == pytest.approx(shown)
    assert (error * units[1] <= statistic.most * (1 + 1e-12)).all()


def test_fine_grids_fit_doubles():
    for statistic in (
        VarianceStatistic(column=SortedColumn.of(0, 1, 2.0**-27), size=1 << 20),
        DifferenceStatistic(column=SortedColumn.of(0, 1, 2.0**-27), sizes=(1 << 20, 3)),
    ):
        table = np.zeros((1, statistic.rows))
        table[0, ::3] = 1
        for number in statistic.numbers(table):
            assert abs(number[0]) <= 2**53
    fine = VarianceStatistic(column=SortedColumn.of(0, 1, 2.0**-27), size=1000)
    table = np.random.default_rng(1).random((3, 1000))
    center, error = fine.numbers(table)
    assert center * fine.units[0] == pytest.approx(table.var(axis=1, ddof=1), rel=1e-6)
    pairs = (table[:, 0::2] - table[:, 1::2]) ** 2 / 2
    assert error * fine.units[1] == pytest.approx(2 * pairs.var(axis=1, ddof=1) / 1000, rel=1e-5)


def test_moments_of_a_sample_variance_are_read_off_pairs():
    """Var(s^2) = shown - correction, for a law that is far from normal."""
    size, made_up = 12, np.random.default_rng(5)
    table = made_up.beta(0.5, 1.5, (200_000, size))
    statistic = VarianceStatistic(column=SortedColumn.of(0, 1, None), size=size)
    variance = 0.5 * 1.5 / (4 * 3)
    found = table.var(axis=1, ddof=1)
    _, shown = statistic.numbers(table[:20_000])
    less = float(statistic.correction(np.asarray(variance)))
    said = float((shown * statistic.units[1]).mean()) - less
    assert found.var() == pytest.approx(said, rel=0.03)
    assert found.var() != pytest.approx(said + less, rel=0.2)
    assert found.var() <= statistic.largest(np.asarray(variance))


@pytest.mark.parametrize("statistic", STATISTICS[:4], ids=repr)
def test_no_law_on_the_bounds_has_a_larger_error(statistic):
    """Against all laws on three points, by enumeration of their moments."""
    for weights in itertools.product(np.linspace(0, 1, 6), repeat=2):
        if sum(weights) > 1:
            continue
        law = np.array([*weights, 1 - sum(weights)])
        for middle in (1.0, 2.0):
            points = np.array([0.0, middle, 4.0])
            mean = law @ points
            variance, fourth = law @ (points - mean) ** 2, law @ (points - mean) ** 4
            n = statistic.rows
            if isinstance(statistic, MeanStatistic):
                at, error = mean, variance / n
            elif isinstance(statistic, VarianceStatistic):
                at, error = variance, (fourth - variance**2 * (n - 3) / (n - 1)) / n
            else:
                at, error = 0.0, variance * (1 / 2 + 1 / 2)
            assert error <= float(statistic.largest(np.asarray(at))) + 1e-12


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_moment_bounds_hold_for_simple_laws(statistic):
    made_up = np.random.default_rng(3)
    table = (made_up.random((40_000, statistic.rows)) < 0.3) * 4.0
    center, _ = statistic.numbers(table)
    value = center * statistic.units[0]
    truth = {MeanStatistic: 1.2, VarianceStatistic: 16 * 0.21}.get(type(statistic), 0.0)
    for rate in (-0.5, 0.3):
        seen = np.exp(rate * (value - truth))
        said = float(np.exp(statistic.log_mgf(np.asarray(rate), np.asarray(truth))))
        assert seen.mean() <= said + 6 * seen.std() / math.sqrt(len(seen))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("epsilon", [0.5, 5])
def test_variances_are_covered(name, epsilon):
    draw, _, std = DISTRIBUTIONS[name]
    plan = variance_interval(**UNIT, public_rows=200, epsilon=epsilon, std=std)
    found = coverage(
        plan.simulate,
        draw=draw,
        truth=std**2,
        rows=200,
        confidence=0.95,
        trials=1500,
        seed=2,
    )
    assert found.bounds(1 - laws.ALPHA)[1] >= 0.95
    assert found.rate > 0.94


def test_a_variance_is_covered_for_rare_events_if_nothing_is_assumed():
    rare = {"draw": lambda g, size: (g.random(size) < 0.01) * 1.0, "truth": 0.0099}
    plan = variance_interval(**UNIT, public_rows=100, epsilon=50, assume="nothing")
    assert coverage(plan.simulate, **rare, rows=100, confidence=0.95, trials=3000).holds()
    usual = variance_interval(**UNIT, public_rows=100, epsilon=50, share=0.5)
    assert coverage(usual.simulate, **rare, rows=100, confidence=0.95, trials=3000).rate < 0.95
    assert (plan.guaranteed, usual.guaranteed) == (0.95, None)
    assert plan.guarantee.epsilon() == 50


@pytest.mark.parametrize("method", ["safe", "calibrated"])
def test_differences_are_covered(method):
    plan = difference_interval(**UNIT, public_rows=(150, 50), epsilon=1, std=0.2, method=method)

    def groups(made_up, size):
        table = made_up.random(size)
        table[:, 150:] = made_up.beta(2, 5, (size[0], 50))
        return table

    found = coverage(
        plan.simulate,
        draw=groups,
        truth=0.5 - 2 / 7,
        rows=200,
        confidence=0.95,
        trials=4000,
    )
    assert found.bounds(1 - laws.ALPHA)[1] >= 0.95
    assert found.rate > 0.945
    assert found.width < 0.4


def test_a_difference_costs_one_noise_for_the_smaller_group():
    plan = difference_interval(**UNIT, public_rows=(1000, 100), epsilon=2, share=0)
    assert plan.std == pytest.approx(math.sqrt(2) / 200, rel=1e-9)
    assert plan.guarantee.epsilon() == 2
    assert plan.guarantee.relation is NeighboringRelation.REPLACE_ONE
    assert plan.certify().holds
    sure = difference_interval(**UNIT, public_rows=(1000, 100), epsilon=2, assume="nothing")
    assert sure.guaranteed == 0.95
    assert sure.forecast(0.2).width > plan.forecast(0.2).plain


def test_a_difference_of_far_groups_stays_in_range():
    plan = difference_interval(**UNIT, public_rows=(30, 40), epsilon=10)
    found = plan.release(np.ones(30), np.zeros(40), rng=seeded_rng(1))
    assert found.low > 0.5
    assert found.high == 1
    assert found.spread is None or found.spread >= 0


def test_zero_variance_and_few_rows():
    plan = variance_interval(lower=0, upper=10, public_rows=4, epsilon=1)
    found = plan.release([3.0, 3.0, 3.0, 3.0], rng=seeded_rng(2))
    assert 0 <= found.low <= found.high <= 25
    constant = variance_interval(lower=0, upper=10, public_rows=1000, epsilon=20).release(
        np.full(1000, 3.0), rng=seeded_rng(2)
    )
    assert constant.low == 0
    assert constant.high < 1


def test_a_forecast_is_the_width():
    plan = variance_interval(**UNIT, public_rows=500, epsilon=3, std=0.1)
    table = np.random.default_rng(1).normal(0.5, 0.1, (500, 500))
    low, high = plan.simulate(table, seeded_rng(1))
    said = plan.forecast(0.1)
    assert (high - low).mean() == pytest.approx(said.width, rel=0.05)
    assert (high - low).max() <= said.largest * (1 + 1e-9)


@pytest.mark.parametrize(
    ("build", "change", "message"),
    [
        (variance_interval, {"public_rows": 3}, "public_rows must be at least 4"),
        (variance_interval, {"upper": 0, "public_rows": 9}, "lower must be below upper"),
        (difference_interval, {"public_rows": (5, 1)}, "public_rows must be at least 2"),
        (difference_interval, {"public_rows": (0, 5)}, "public_rows must be at least 2"),
        (difference_interval, {"public_rows": (5, 5, 5)}, "public_rows must be two numbers"),
        (difference_interval, {"public_rows": (5, 5), "method": "best"}, "method must be '"),
    ],
)
def test_wrong_arguments(build, change, message):
    with pytest.raises(InvalidArgument, match=message):
        build(**{**UNIT, "epsilon": 1, **change})


def test_wrong_values():
    plan = difference_interval(**UNIT, public_rows=(2, 2), epsilon=1)
    with pytest.raises(OutOfDomain, match="2 and 2 numbers"):
        plan.release([0.1, 0.2], [])
