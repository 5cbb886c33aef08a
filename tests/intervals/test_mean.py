"""Intervals for a mean: exact sums, sensitivities by brute force, laws, and coverage that holds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.core._rational import ceil_div
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.intervals import interval as law
from discreet.intervals._coverage import CoverageEstimate, coverage, per_column
from discreet.intervals._mean import mean_interval
from discreet.intervals.statistics import sums, variance_sensitivity, variance_shift
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng
from tests import distributions as laws

UNIT = {"lower": 0, "upper": 1}


def uniform(made_up, size):
    return made_up.random(size)


def simulated(plan, *, draw=uniform, truth=0.5, trials=20_000, seed=1):
    return coverage(
        plan.simulate,
        draw=draw,
        truth=truth,
        rows=plan.public_rows,
        confidence=plan.confidence,
        trials=trials,
        seed=seed,
    )


def split(rows, mean, variance, **options):
    """An interval with these two budgets, as the published one has them."""
    total = Fraction(str(mean)) + Fraction(str(variance))
    share = Fraction(str(variance)) / total
    return mean_interval(**UNIT, public_rows=rows, epsilon=total, share=share, **options)


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_one_row_moves_sum_and_variance_by_the_stated_sensitivity(rows):
    column = SortedColumn.of(0, 4, 1)
    points = list(itertools.product((0.0, 1.0, 2.0, 4.0), repeat=rows))
    totals, pairs = sums(column.places(np.array(points)))
    where = {point: i for i, point in enumerate(points)}
    moved_sum = moved_pairs = 0
    for point, other in itertools.product(points, (0.0, 1.0, 2.0, 4.0)):
        a, b = where[point], where[(other, *point[1:])]  # symmetric: any row is the first
        moved_sum = max(moved_sum, abs(int(totals[a] - totals[b])))
        moved_pairs = max(moved_pairs, abs(pairs[a] - pairs[b]))
    assert moved_sum == 4
    assert moved_pairs == 16 * (rows - 1)


def test_floors_of_the_variance_move_by_the_sensitivity_of_the_noise():
    span, rows = 1 << 27, 1000
    shift = variance_shift(span, rows)
    moved = ceil_div(span * span * (rows - 1), 1 << shift)
    assert shift > 0
    assert variance_sensitivity(span, rows) == moved
    largest = rows * rows * span * span // 4
    assert largest >> shift < 1 << 53


def test_sums_are_exact_on_the_finest_grid():
    column = SortedColumn.of(-1, 1, None)
    table = np.random.default_rng(1).uniform(-1.5, 1.5, (3, 200))
    totals, pairs = sums(column.places(table))
    for row, total, pair in zip(table, totals, pairs, strict=True):
        codes = [int(code) for code in column.sorted(row)]
        assert total == sum(codes)
        assert pair == 200 * sum(c * c for c in codes) - sum(codes) ** 2


@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.3, 1.0, 20.0, 1e6])
@pytest.mark.parametrize("tail", [0.2, 0.025, 1e-6])
def test_quantiles_of_normal_plus_laplace(sigma, tail):
    (found,) = law.normal_laplace(np.array([sigma]), 2.0, tail=tail)

    def exceeds(x):
        if sigma == 0:
            return math.exp(-x / 2) / 2
        if sigma > 1e5:
            return stats.norm.sf(x / math.hypot(sigma, math.sqrt(8)))
        ends = [x - 12 * sigma, x, x + 12 * sigma]
        near = integrate.quad(
            lambda y: stats.norm.cdf((y - x) / sigma) * math.exp(-abs(y) / 2) / 4,
            ends[0],
            ends[2],
            points=sorted({min(max(0.0, ends[0]), ends[2]), x}),
            limit=400,
            epsabs=1e-13,
        )[0]
        return near + stats.laplace.sf(ends[2], scale=2)

    assert exceeds(found) == pytest.approx(tail, rel=2e-4)


def test_the_published_quantile_of_normal_plus_laplace():
    (found,) = law.normal_laplace(np.array([1.0]), 2.0, tail=0.025)
    assert found == pytest.approx(6.241, abs=0.02)


@pytest.mark.parametrize(
    ("rows", "laplace", "gauss"),
    [(30, 0.2803, 0.5294), (100, 0.1263, 0.1849), (1000, 0.0362, 0.0387), (10000, 0.0113, 0.0114)],
)
def test_widths_with_a_known_variance(rows, laplace, gauss):
    known = {**UNIT, "public_rows": rows, "epsilon": 1, "variance": Fraction(1, 12)}
    std = 12**-0.5
    assert mean_interval(**known).forecast(std).width == pytest.approx(laplace, abs=6e-5)
    wider = mean_interval(**known, delta=1e-5)
    assert wider.forecast(std).width == pytest.approx(gauss, abs=6e-5)


@pytest.mark.parametrize("delta", [0, 1e-5])
@pytest.mark.parametrize("rows", [30, 200])
def test_a_known_variance_covers_exactly(rows, delta):
    plan = mean_interval(**UNIT, public_rows=rows, epsilon=1, delta=delta, variance=Fraction(1, 12))
    found = simulated(plan, trials=5000)
    assert laws.frequency(found.held, found.trials, 0.95)
    assert found.width == pytest.approx(plan.forecast(12**-0.5).width)


PUBLISHED = [  # rows, both epsilons, coverage as published and safe, width if safe
    (1000, 5, 0.01, 0.754, 0.997, 0.0635),
    (1000, 5, 0.02, 0.842, 0.998, 0.0635),
    (1000, 5, 0.1, 0.944, 0.986, 0.0457),
    (1000, 0.9, 0.5, 0.952, 0.964, 0.042),
    (100, 5, 0.2, 0.874, 0.997, 0.205),
]


@pytest.mark.parametrize(("rows", "mean", "variance", "plug_in", "safe", "width"), PUBLISHED)
def test_published_intervals_fall_short_where_safe_ones_hold(
    rows, mean, variance, plug_in, safe, width
):
    short = simulated(split(rows, mean, variance, delta=1e-5, method="published"), trials=2500)
    held = simulated(split(rows, mean, variance, delta=1e-5), trials=2500)
    assert laws.frequency(short.held, short.trials, plug_in)
    assert laws.frequency(held.held, held.trials, safe)
    assert 0.95 * width <= held.width <= 1.02 * width  # shorter where the mean says so
    assert short.holds() is False
    assert held.bounds()[1] > 0.96


LAWS = {
    "uniform": (uniform, 0.5),
    "beta 2 5": (lambda g, size: g.beta(2, 5, size), 2 / 7),
    "beta 2 50": (lambda g, size: g.beta(2, 50, size), 1 / 26),
    "yes or no": (lambda g, size: (g.random(size) < 0.3) * 1.0, 0.3),
    "normal": (lambda g, size: 0.5 + 0.1 * np.clip(g.standard_normal(size), -5, 5), 0.5),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 5])
def test_the_default_is_not_refuted(name, epsilon):
    draw, truth = LAWS[name]
    found = simulated(
        mean_interval(**UNIT, public_rows=100, epsilon=epsilon), draw=draw, truth=truth, trials=4000
    )
    assert found.bounds(1 - laws.ALPHA)[1] >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 5])
@pytest.mark.parametrize("rows", [100, 400])
def test_the_default_holds_its_level(name, epsilon, rows):
    draw, truth = LAWS[name]
    plan = mean_interval(**UNIT, public_rows=rows, epsilon=epsilon)
    assert simulated(plan, draw=draw, truth=truth, trials=40_000).holds(0.999)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 5])
@pytest.mark.parametrize("rows", [100, 400])
def test_the_calibrated_holds_its_level(name, epsilon, rows):
    draw, truth = LAWS[name]
    plan = mean_interval(**UNIT, public_rows=rows, epsilon=epsilon, method="calibrated")
    assert simulated(plan, draw=draw, truth=truth, trials=100_000).holds(0.999)


@pytest.mark.parametrize("delta", [0, 1e-5])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_worst_miss_is_computed_right(share, delta):
    """Against a simulation of the model: a normal mean of known variance, for many variances."""
    for method in ("safe", "calibrated", "published"):
        options = {
            "public_rows": 50,
            "epsilon": 2,
            "share": share,
            "delta": delta,
            "method": method,
        }
        plan = mean_interval(**UNIT, **options)
        said = plan.worst_miss()
        made_up = np.random.default_rng(7)
        missed = []
        for variance in 0.25 * np.array([0.002, 0.01, 0.05, 0.2, 0.5, 1.0]):
            noise = plan.center.release(np.zeros(20_000), rng=seeded_rng(1)) * plan._unit
            wider = 1 if method == "published" else law.student(49, tail=plan.tail)
            error = made_up.normal(0, wider * math.sqrt(variance / 50), 20_000) + noise
            noisy = variance / 50 + made_up.laplace(0, plan._error_noise, 20_000)
            half = plan._half(plan._used(noisy, 1))
            if method != "published":
                half = np.minimum(half, plan._widest(np.full(1, variance / 50)))
            missed.append((np.abs(error) > half).mean())
        slack = 6 * math.sqrt(said / 20_000)
        assert max(missed) <= said + slack
        assert max(missed) >= 0.9 * said - slack


def test_a_calibrated_interval_is_shorter_and_misses_no_more_than_allowed():
    setting = {**UNIT, "public_rows": 300, "epsilon": 1, "std": 0.1}
    safe, short = mean_interval(**setting), mean_interval(**setting, method="calibrated")
    assert short.forecast(0.1).width < 0.75 * safe.forecast(0.1).width
    assert short.worst_miss() <= 0.045
    assert safe.worst_miss() <= 0.05
    published = split(1000, 5, 0.01, method="published", delta=1e-5)
    assert published.worst_miss() > 0.25
    found = simulated(short, draw=LAWS["normal"][0], trials=6000)
    assert found.holds()
    assert short.guarantee.epsilon() == 1


def test_the_variance_is_exceeded_as_seldom_as_said():
    plan = split(1000, 5, 0.1)
    table = np.random.default_rng(3).random((2000, 1000))
    _, noisy = plan.noisy(*plan.statistic.numbers(table), seeded_rng(3))
    below = int((plan._used(noisy, 1) < table.var(axis=1, ddof=1) / 1000).sum())
    assert laws.frequency(below, 2000, plan.gamma)
    assert plan.gamma == pytest.approx(0.005)


def test_nothing_assumed_holds_for_rare_events():
    options = {**UNIT, "public_rows": 100, "epsilon": 40, "share": 0.5}
    rare = {"draw": lambda g, size: (g.random(size) < 0.02) * 1.0, "truth": 0.02}
    assert simulated(mean_interval(**options), **rare, trials=4000).rate < 0.92
    sure = mean_interval(**options, assume="nothing")
    assert simulated(sure, **rare, trials=4000).holds()
    assert sure.guaranteed == 0.95
    assert mean_interval(**options).guaranteed is None


@pytest.mark.parametrize("known", [{"share": 0}, {"variance": Fraction(1, 12)}, {"share": 0.2}])
def test_nothing_assumed_holds_without_a_variance_too(known):
    plan = mean_interval(**UNIT, public_rows=50, epsilon=2, assume="nothing", **known)
    assert simulated(plan, trials=4000).holds()


def test_the_whole_is_charged_by_composition():
    plan = split(1000, 1, 1, delta=1e-5)
    assert plan.guarantee.relation is NeighboringRelation.REPLACE_ONE
    assert plan.guarantee.epsilon(1e-5) == pytest.approx(1.955, abs=0.01)
    assert split(1000, 0.4, 0.6).guarantee.epsilon() == 1
    assert mean_interval(**UNIT, public_rows=9, epsilon=1, variance=1).guarantee.epsilon() == 1
    assert plan.certify().holds


def test_a_forecast_is_the_width():
    for options in ({"share": 0.3}, {"share": 0}, {"share": 0.3, "delta": 1e-6}):
        plan = mean_interval(**UNIT, public_rows=400, epsilon=1, **options)
        low, high = plan.simulate(np.random.default_rng(2).random((2000, 400)), seeded_rng(2))
        said = plan.forecast(12**-0.5)
        assert (high - low).mean() == pytest.approx(said.width, rel=0.02)
        assert (high - low).max() <= said.largest * (1 + 1e-9)


def test_the_split_is_the_best_of_many():
    best = mean_interval(**UNIT, public_rows=1000, epsilon=1, std=0.1).forecast(0.1).width
    for share in (0, 0.02, 0.05, 0.1, 0.3, 0.5, 0.8):
        other = mean_interval(**UNIT, public_rows=1000, epsilon=1, share=share).forecast(0.1).width
        assert best <= other * 1.01


def test_a_release_lies_within_the_bounds_and_hides_its_values():
    plan = mean_interval(lower=-5, upper=5, public_rows=3, epsilon=0.1)
    found = plan.release([4.9, 7, -80], rng=seeded_rng(1))
    assert -5 <= found.low <= found.high <= 5
    assert found.width == found.high - found.low
    assert found.value not in (4.9, 7, -80)
    with pytest.raises(OutOfDomain, match="declared number of rows"):
        plan.release([1.0, 2.0])


def test_release_and_simulation_are_the_same():
    plan = split(50, 1, 1)
    column = np.random.default_rng(4).random(50)
    one = plan.release(column, rng=seeded_rng(9))
    low, high = plan.simulate(column[None, :], seeded_rng(9))
    assert (one.low, one.high) == (low[0], high[0])
    whole = mean_interval(lower=0, upper=90, public_rows=2, epsilon=1).release(
        [3, 5], rng=seeded_rng(1)
    )
    assert whole.low <= whole.high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"public_rows": 1}, "public_rows must be at least 2"),
        ({"upper": 0}, "lower must be below upper"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"confidence": 1}, "confidence must lie"),
        ({"variance": 0.1, "share": 0.5}, "share must be 0"),
        ({"method": "best"}, "method must be 'safe', 'calibrated' or 'published'"),
        ({"assume": "all"}, "assume must be 'normal' or 'nothing'"),
        ({"method": "published", "assume": "nothing"}, "assume must be 'normal'"),
        ({"method": "calibrated", "assume": "nothing"}, "assume must be 'normal'"),
        ({"granularity": 2.0**-30}, "coarser"),
        ({"std": 0}, "std must be positive"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(InvalidArgument, match=message):
        mean_interval(**{**UNIT, "public_rows": 10, "epsilon": 1, **change})


def test_wilson_bounds():
    found = CoverageEstimate(held=90, trials=100, nominal=0.8, width=1, quartiles=(1, 1), plain=1)
    same = stats.binomtest(90, 100).proportion_ci(0.998, method="wilson")
    assert found.bounds(0.999) == pytest.approx((same.low, same.high))
    assert found.holds(0.99)
    assert not found.holds(0.99999)


def test_any_estimator_can_be_put_through():
    quantile = float(stats.t.isf(0.05, 7))

    def t_interval(column, _bits):
        half = quantile * column.std(ddof=1) / math.sqrt(8)
        return column.mean() - half, column.mean() + half

    normal = {
        "draw": lambda g, size: g.standard_normal(size),
        "truth": 0,
        "rows": 8,
        "confidence": 0.9,
    }
    found = coverage(per_column(t_interval), **normal, trials=3000)
    assert laws.frequency(found.held, found.trials, 0.9)
    again = coverage(per_column(t_interval), **normal, trials=3000)
    assert found == again
    with pytest.raises(OutOfDomain, match="one interval"):
        coverage(lambda t, _: (t[:, 0], t[:, 0] * np.nan), **normal, trials=10)
    with pytest.raises(InvalidArgument, match="size that it is asked for"):
        coverage(per_column(t_interval), **{**normal, "draw": lambda g, _: g.random(3)}, trials=10)


def test_a_wrong_interval_is_found_out():
    plan = mean_interval(**UNIT, public_rows=100, epsilon=0.5, variance=Fraction(1, 12))

    def without_noise(table, rng):
        low, high = plan.simulate(table, rng)
        half = 1.96 * math.sqrt(1 / 1200)
        return (low + high) / 2 - half, (low + high) / 2 + half

    found = coverage(without_noise, draw=uniform, truth=0.5, rows=100, confidence=0.95, trials=4000)
    assert found.bounds()[1] < 0.95
