"""Smooth bounds against all small data sets, multipliers against integrals, draws against laws."""

import dataclasses
import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent._smooth_noise import (
    Lomax,
    SmoothLaplace,
    cauchy_multiplier,
    gaussian_delta,
    gaussian_worst,
    laplace_delta,
    laplace_multiplier,
    turns_beyond,
)
from discreet.mechanisms.data_dependent._smooth_statistics import (
    SmoothVariance,
    TrimmedMean,
    pad_with_bounds,
)
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    divergence,
    smooth_sensitivity,
    trimmed_statistic,
    worst_divergence,
)
from discreet.noise.random_source import seeded_rng
from tests.distributions import follows

SMALL = [(1, 4), (2, 4), (3, 3), (4, 2)]
TRIMMED = [
    (TrimmedMean(public_rows=rows, below=below, above=above), span)
    for rows, span in SMALL
    for below in range(rows)
    for above in range(rows - below)
]
VARIANCES = [(SmoothVariance(public_rows=rows), span) for rows, span in SMALL[1:]]
KINDS = [
    {"epsilon": 1},
    {"epsilon": 0.05, "order": 8},
    {"epsilon": 5, "order": 2},
    {"epsilon": 1, "delta": 1e-6},
    {"epsilon": 0.1, "delta": 1e-9, "noise": "laplace"},
    {"epsilon": 1, "delta": 1e-6, "noise": "laplace", "smoothness": 0.02},
    {"epsilon": 8, "delta": 1e-4, "noise": "gaussian"},
    {"epsilon": 50, "delta": 1e-6, "noise": "laplace"},
    {"epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"},
    {"epsilon": 1, "noise": "cauchy"},
    {"epsilon": 2, "noise": "cauchy", "smoothness": 0.3},
]


def median(**options):
    return smooth_sensitivity("median", lower=0, upper=100, public_rows=99, **options)


@lru_cache(maxsize=64)
def everything(statistic, span):
    """All data sets with their local sensitivities."""
    data = list(itertools.product(range(span + 1), repeat=statistic.public_rows))
    value = {d: statistic.value(np.sort(np.array(d))) for d in data}
    places = list(itertools.product(range(statistic.public_rows), range(span + 1)))
    local = {
        d: max(abs(value[d] - value[(*d[:i], v, *d[i + 1 :])]) for i, v in places) for d in data
    }
    return data, local


@pytest.mark.parametrize(("statistic", "span"), TRIMMED, ids=repr)
def test_smooth_sensitivity_is_that_of_all_data(statistic, span):
    data, local = everything(statistic, span)
    rows, sizes = np.array(data), np.array([float(local[d]) for d in data])
    for d in sorted({tuple(sorted(d)) for d in data}):
        values = np.array(d)
        assert (
            Fraction(statistic.reach(pad_with_bounds(values, span), 0), statistic.kept) == local[d]
        )
        for beta in (0.05, 0.7):
            exact = (sizes * np.exp(-beta * (rows != values).sum(axis=1))).max()
            found = statistic.smooth_bound(values, span, beta=beta, least=1e-9)
            assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("statistic", "span"), TRIMMED, ids=repr)
def test_the_distance_to_a_larger_sensitivity_is_that_of_all_data(statistic, span):
    data, local = everything(statistic, span)
    rows = np.array(data)
    for bound in (Fraction(0), Fraction(1), Fraction(span, statistic.kept) - Fraction(1, 10)):
        passing = rows[[local[d] > bound for d in data]]
        for d in sorted({tuple(sorted(d)) for d in data}):
            if len(passing):
                exact = (passing != np.array(d)).sum(axis=1).min()
                assert statistic.distance(np.array(d), span, bound=bound) == exact


@pytest.mark.parametrize(("statistic", "span"), VARIANCES, ids=repr)
def test_the_bound_of_a_variance_is_smooth_and_a_bound(statistic, span):
    data, local = everything(statistic, span)
    beta = 0.3
    bound = {
        d: statistic.smooth_bound(np.sort(np.array(d)), span, beta=beta, least=1e-9) for d in data
    }
    for d in data:
        assert bound[d] >= float(local[d]) * (1 - 1e-12)
        assert bound[d] <= float(statistic.largest(span)) * (1 + 1e-12)
        for i, v in itertools.product(range(statistic.public_rows), range(span + 1)):
            assert bound[d] <= math.exp(beta) * bound[(*d[:i], v, *d[i + 1 :])] * (1 + 1e-12)


def test_a_variance_of_large_numbers_is_exact():
    values = np.sort(np.random.default_rng(1).integers(0, 1 << 40, 1000))
    whole = [int(v) for v in values]
    exact = Fraction(1000 * sum(v * v for v in whole) - sum(whole) ** 2, 1000 * 999)
    assert SmoothVariance(public_rows=1000).value(values) == exact


def test_the_pair_that_local_sensitivity_gives_away():
    """B28: both medians are 0, one local sensitivity is 0, the other all of the range."""
    one, two = np.array([0, 0, 0, 9, 9]), np.array([0, 0, 0, 0, 9])
    statistic = TrimmedMean.quantile(5, 0.5)
    assert statistic.smooth_bound(one, 9, beta=0.1, least=1e-9) == pytest.approx(9)
    assert statistic.smooth_bound(two, 9, beta=0.1, least=1e-9) == pytest.approx(9 * math.exp(-0.1))


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_every_noise_is_certified_and_less_of_it_is_not(kind):
    good = median(**kind)
    assert good.certify().holds
    assert worst_divergence(good.family) <= float(good.family.delta)
    less = dataclasses.replace(good.family, multiplier=good.family.multiplier * Fraction(97, 100))
    with pytest.raises(NotCertified):
        dataclasses.replace(good, family=less).certify()


@pytest.mark.parametrize(
    ("epsilon", "delta", "beta", "c"),
    [
        (0.5, 1e-4, 0.0252, 1.24),
        (0.5, 1e-6, 0.0172, 1.39),
        (1, 1e-4, 0.0505, 1.31),
        (1, 1e-6, 0.0345, 1.44),
        (1, 1e-6, 0.02, 1.1988),
        (2, 1e-6, 0.0689, 1.51),
    ],
)
def test_multipliers_of_laplace_noise(epsilon, delta, beta, c):
    found = laplace_multiplier(epsilon, delta, beta)
    assert found == pytest.approx(c, abs=5e-3 if c != 1.1988 else 1e-4)
    assert laplace_delta(epsilon, beta, found) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1])
def test_a_large_delta_is_kept(epsilon):
    """Where the closed form does not reach, more noise than needed is added."""
    assert median(epsilon=epsilon, delta=0.3, noise="laplace").certify().holds


def test_the_closed_form_is_the_integral():
    beta = 1 / (2 * math.log(2 / 1e-4))
    assert laplace_delta(1, beta, 2) == pytest.approx(5.949e-7, rel=5e-3)
    family = median(epsilon=1, delta=1e-6).family
    shift = 0.5  # scale 2 S
    found = divergence(family.log_density, (0.0, math.exp(beta)), (shift, 1.0), 1.0)
    assert found == pytest.approx(laplace_delta(1, beta, 2), rel=1e-7)


def test_what_was_published_for_gaussian_noise_fails_at_large_epsilon():
    """B33: with beta = epsilon / (2 log(2 / delta)) the release at epsilon 8 is not private."""
    epsilon, delta = 8.0, 1e-4
    multiplier = 5 * math.sqrt(2 * math.log(2 / delta)) / epsilon
    published = epsilon / (2 * math.log(2 / delta))
    at_the_end = gaussian_delta(epsilon, math.exp(published), 1 / multiplier)
    assert at_the_end == pytest.approx(3.3e-4, rel=0.03)
    assert gaussian_worst(epsilon, published, multiplier, cells=64) > delta
    literature = epsilon / (4 * (1 + math.log(2 / delta)))
    assert gaussian_worst(epsilon, literature, multiplier, cells=64) < delta


def test_bounds_between_the_points_of_a_scan_hold():
    """The bound over cells is at least the divergence at any ratio of scales in them."""
    epsilon, beta, multiplier = 1.0, 0.1, 5.0
    bound = gaussian_worst(epsilon, beta, multiplier, cells=16)
    for log_ratio in np.linspace(0, beta, 301):
        ratio = math.exp(log_ratio)
        assert gaussian_delta(epsilon, ratio, 1 / multiplier) <= bound
        assert gaussian_delta(epsilon, 1 / ratio, 1 / (multiplier * ratio)) <= bound
    assert gaussian_delta(epsilon, math.exp(beta), 1 / multiplier) > bound / 1.2


@pytest.mark.parametrize("ratio", [0.8, 0.97, 1.03, 1.3])
@pytest.mark.parametrize("shift", [0.0, 0.2, 1.5])
def test_gaussian_pairs_by_integrals(ratio, shift):
    log_density = median(epsilon=1, delta=1e-4, noise="gaussian").family.log_density
    for epsilon in (0.1, 1.0):
        exact = divergence(log_density, (0.0, ratio), (shift, 1.0), epsilon)
        assert gaussian_delta(epsilon, ratio, shift) == pytest.approx(exact, rel=1e-6, abs=1e-15)


LAWS = {
    "laplace": stats.laplace(),
    "gaussian": stats.norm(),
    "cauchy": stats.cauchy(),
}


@pytest.mark.parametrize("scale", [Fraction(200, 7), Fraction(3, 2)])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3], KINDS[8], KINDS[9]], ids=repr)
def test_draws_follow_their_laws(kind, scale):
    family = median(**kind).family
    bits = seeded_rng(11)
    sample = np.array([family.draw(scale, bits) for _ in range(2000)], dtype=np.float64)

    def cdf(k, stretch=1.0):
        z = (np.asarray(k) + 0.5) / float(scale) / stretch
        if "noise" in kind or "delta" in kind:
            return LAWS[kind.get("noise", "laplace")].cdf(z)
        tail = (1 + np.abs(z)) ** -family.order / 2
        return np.where(z > 0, 1 - tail, tail)

    assert follows(sample, cdf)
    assert not follows(sample, lambda k: cdf(k, 2.0))
    assert not follows(sample, lambda k: cdf(k, 0.5))


def released(mechanism, codes):
    """The exact law of a release: cells of the grid, the outer ones with all beyond them."""
    low, high = mechanism.statistic.domain(mechanism.column.span)
    scale = float(mechanism.bound(codes) * mechanism.family.multiplier)
    center = math.floor(mechanism.statistic.value(codes))
    z = (np.arange(low, high) + 0.5 - center) / scale
    if isinstance(mechanism.family, Lomax):
        tail = (1 + np.abs(z)) ** -mechanism.family.order / 2
        below = np.where(z > 0, 1 - tail, tail)
    else:
        below = LAWS[type(mechanism.family).__name__.removeprefix("Smooth").lower()].cdf(z)
    return np.diff(np.concatenate(([0.0], below, [1.0])))


@pytest.mark.parametrize("name", ["median", "mean", "variance"])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[9], KINDS[3], KINDS[8]], ids=repr)
def test_releases_of_neighbors_keep_the_guarantee(name, kind):
    """From end to end: snapped values, bound, multiplier, rounding and clipping, exactly."""
    grid, points = (4, (0, 5, 6, 9, 15)) if name == "variance" else (2**-4, (0, 300, 333, 960))
    mechanism = smooth_sensitivity(name, lower=0, upper=60, granularity=grid, public_rows=3, **kind)
    laws = {
        data: released(mechanism, np.array(data))
        for data in itertools.combinations_with_replacement(points, 3)
    }
    epsilon, delta = float(mechanism.family.epsilon), float(mechanism.family.delta)
    worst = loss = 0.0
    for data, p in laws.items():
        for i, v in itertools.product(range(3), points):
            q = laws[tuple(sorted((*data[:i], v, *data[i + 1 :])))]
            worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
            loss = max(loss, float(np.abs(np.log(p / q)).max()) if delta == 0 else 0.0)
    assert worst <= delta + 1e-15
    assert delta > 0 or 0.9 * epsilon < loss <= epsilon * (1 + 1e-9)


def test_angles_are_enclosed():
    for z in (Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(10**9)):
        low, high = turns_beyond(z, 200)
        assert low <= high <= low + 64
        middle = Fraction(low + high, 2 << 200)
        assert float(middle) == pytest.approx(2 / math.pi * math.atan(1 / float(z)), rel=1e-14)
        coarse_low, coarse_high = turns_beyond(z, 40)
        assert coarse_low << 160 <= high
        assert coarse_high << 160 >= low


@pytest.mark.parametrize("name", ["median", "quantile", "trimmed_mean", "mean", "variance"])
def test_releases_are_near_the_truth_and_on_the_grid(name):
    values = np.random.default_rng(5).normal(40, 8, 2000).clip(0, 100)
    options = {"quantile": {"quantile": 0.9}, "trimmed_mean": {"trim": 100}}.get(name, {})
    mechanism = smooth_sensitivity(name, lower=0, upper=100, public_rows=2000, epsilon=2, **options)
    truth = {
        "median": np.median(values),
        "quantile": np.quantile(values, 0.9),
        "trimmed_mean": stats.trim_mean(values, 0.05),
        "mean": values.mean(),
        "variance": values.var(ddof=1),
    }[name]
    found = [mechanism.release(values, rng=seeded_rng(i)) for i in range(40)]
    assert np.median(found) == pytest.approx(truth, abs=mechanism.forecast(values) + 0.1)
    unit = mechanism.column.step**mechanism.statistic.power
    assert all((one / unit).is_integer() for one in found)
    assert mechanism.forecast(values) <= mechanism.std


def test_a_quiet_median_gets_little_noise():
    """M24: on uniform data the smooth sensitivity is far below the global one, 100."""
    values = np.random.default_rng(1).uniform(0, 100, 999)
    mechanism = smooth_sensitivity(
        lower=0,
        upper=100,
        public_rows=999,
        epsilon=1,
        delta=1e-6,
        smoothness=1 / (2 * math.log(2e6)),
    )
    codes = mechanism.column.sorted(values)
    assert 0.7 < float(mechanism.bound(codes)) * mechanism.column.step < 2.5


def test_a_million_values_take_few_widths():
    rng = np.random.default_rng(3)
    mechanism = smooth_sensitivity(lower=0, upper=100, public_rows=10**6, epsilon=1)
    codes = mechanism.column.sorted(rng.normal(50, 10, 10**6))
    assert float(mechanism.bound(codes)) * mechanism.column.step < 1e-3
    same = np.full(10**6, 7)
    assert mechanism.bound(same) == pytest.approx(float(mechanism._least), rel=1e-9)


def test_the_same_noise_in_every_unit():
    meters = smooth_sensitivity(lower=0, upper=128, public_rows=9, epsilon=1, granularity=2**-10)
    steps = smooth_sensitivity(lower=0, upper=2**17, public_rows=9, epsilon=1, granularity=1)
    values = np.linspace(5, 90, 9)
    for seed in range(5):
        left = meters.release(values, rng=seeded_rng(seed))
        assert left * 2**10 == steps.release(values * 2**10, rng=seeded_rng(seed))


@pytest.mark.parametrize(("epsilon", "spread"), [(0.1, 1.68), (0.5, 1.63), (1, 1.57), (2, 1.53)])
def test_deviations_of_lomax_noise(epsilon, spread):
    """B47 at beta = epsilon / 20."""
    family = median(epsilon=epsilon, order=20).family
    assert family.std * float(family.multiplier) * epsilon == pytest.approx(spread, abs=5e-3)


def test_cauchy_noise_as_it_was_prescribed_is_worth_less():
    """B32: scale 6 S and beta = 1/6 were claimed for epsilon 1."""
    assert cauchy_multiplier(0.226, 1 / 6) > 6 > cauchy_multiplier(0.2265, 1 / 6)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="public number of rows"):
        median(epsilon=1, relation=NeighboringRelation.ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="quantile"):
        smooth_sensitivity("quantile", lower=0, upper=1, public_rows=3, epsilon=1)
    with pytest.raises(InvalidArgument, match="trim"):
        smooth_sensitivity("median", lower=0, upper=1, public_rows=3, epsilon=1, trim=1)
    with pytest.raises(InvalidArgument, match="one of 3 rows"):
        smooth_sensitivity("trimmed_mean", lower=0, upper=1, public_rows=3, epsilon=1, trim=2)
    with pytest.raises(InvalidArgument, match="delta"):
        median(epsilon=1, noise="laplace")
    with pytest.raises(InvalidArgument, match="no delta"):
        median(epsilon=1, delta=1e-6, noise="lomax")
    with pytest.raises(InvalidArgument, match="smoothness"):
        median(epsilon=1, delta=1e-6, smoothness=0.9)
    with pytest.raises(InvalidArgument, match="coarser grid"):
        smooth_sensitivity(
            "variance", lower=0, upper=1, public_rows=5, epsilon=1, delta=1e-6, noise="gaussian"
        )
    with pytest.raises(InvalidArgument, match="no privacy"):
        median(epsilon=1000)
    with pytest.raises(InvalidArgument, match="'mode'"):
        smooth_sensitivity("mode", lower=0, upper=1, public_rows=3, epsilon=1)
    with pytest.raises(InvalidArgument, match="power of two"):
        median(epsilon=1, granularity=0.1)
    with pytest.raises(OutOfDomain, match="rows"):
        median(epsilon=1).release([1.0, 2.0])
    median(epsilon=1).release([math.nan] * 99)  # not refused: an error would tell of a row


def test_a_statistic_of_ones_own():
    own = TrimmedMean(public_rows=99, below=40, above=30)
    mechanism = smooth_sensitivity(own, lower=0, upper=100, public_rows=99, epsilon=1)
    assert "trimmed" in repr(mechanism)
    with pytest.raises(InvalidArgument, match="99"):
        smooth_sensitivity(own, lower=0, upper=100, public_rows=98, epsilon=1)


def test_a_family_names_its_limits():
    with pytest.raises(InvalidArgument, match="smoothness"):
        SmoothLaplace.calibrated(Fraction(1), Fraction(1, 10**6), 0.8)


@pytest.mark.parametrize("wrong", [None, 3, ["median"], object])
def test_a_statistic_that_is_none_is_named(wrong):
    with pytest.raises(InvalidArgument, match="statistic must be 'median'"):
        smooth_sensitivity(wrong, lower=0, upper=100, public_rows=99, epsilon=1)
    with pytest.raises(InvalidArgument, match="statistic must be 'median'"):
        trimmed_statistic(wrong, 9, None, None)
