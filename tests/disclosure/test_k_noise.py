"""k-noise: expected crowds, the smallest delta, the published experiment, and why it fails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.disclosure import (
    adaptive_jitter,
    anonymity_set_size,
    anonymity_sets,
    expected_anonymity_set_size,
    guaranteed_anonymity_set_size,
    histogram,
    k_noise,
    k_noise_half_width,
    k_pram,
    ks_distance,
    probable_anonymity_set_size,
    utility,
    wasserstein,
    width_after_releases,
)
from discreet.disclosure._k_noise import symmetric
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA, mean_of

numbers = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=1, max_size=12)
widths = st.sampled_from([0.25, 0.5, 1.0, 2.5])


def crowd_by_hand(values, point, a, r):
    """Overlaps as fractions."""
    total = Fraction(0)
    for value in values:
        d = Fraction(value) - Fraction(point)
        low, high = max(-Fraction(r) - d, -Fraction(a)), min(Fraction(r) - d, Fraction(a))
        total += max(Fraction(0), high - low) / (2 * Fraction(a))
    return total


@given(numbers, numbers, widths, widths)
def test_the_expected_crowd_is_exact(values, points, a, r):
    found = expected_anonymity_set_size(values, at=points, half_width=a, window=r)
    wanted = [float(crowd_by_hand(values, point, a, r)) for point in points]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_the_theorem_holds_on_many_data_sets():
    # B12: at least half of what lies within 2 delta, on 10,000 random data sets.
    rng = np.random.default_rng(1)
    for _ in range(10_000):
        x = rng.exponential(5, rng.integers(1, 20)).round(1)
        delta = float(rng.choice([0.3, 1.0, 4.0]))
        points = rng.uniform(x.min() - 3, x.max() + 3, 5)
        expected = expected_anonymity_set_size(x, at=points, half_width=delta, window=2 * delta)
        inside = (np.abs(x[:, None] - points) < 2 * delta).sum(axis=0)
        assert (expected >= inside / 2 - 1e-9).all()


def test_the_factor_one_half_is_tight():
    x = np.full(1000, 2 - 1e-7)
    (found,) = expected_anonymity_set_size(x, at=[0], half_width=1, window=2)
    assert found / 1000 == pytest.approx(0.5, abs=1e-6)
    assert found > 500


def test_crowds_of_a_simulation_are_the_expected_ones():
    x = np.random.default_rng(2).normal(0, 3, 60)
    points, bits = np.array([-4.0, 0.0, 2.5]), seeded_rng(3)
    runs = 4000
    found = np.array(
        [
            anonymity_set_size(x + 1.5 * symmetric(60, bits), at=points, window=2)
            for _ in range(runs)
        ]
    )
    expected = expected_anonymity_set_size(x, at=points, half_width=1.5, window=2)
    for column, mean in zip(found.T, expected, strict=True):
        assert mean_of(column, mean, mean)  # the variance of a sum of coins is below its mean
        assert not mean_of(column + 0.12 * mean + 0.5, mean, mean)


@settings(max_examples=200)
@given(numbers, st.integers(1, 12))
def test_the_required_delta_is_enough_and_the_smallest(values, k):
    if k > len(values):
        with pytest.raises(OutOfDomain, match="at most the number"):
            k_noise_half_width(values, k=k)
        return
    delta = k_noise_half_width(values, k=k)
    # All places where the count can change, and between them.
    marks = sorted({Fraction(a) / 2 + Fraction(b) / 2 for a in values for b in values})
    points = [p for p in marks if min(values) <= p <= max(values)]

    def enough(reach):
        return all(sum(abs(Fraction(v) - p) < reach for v in values) >= k for p in points)

    assert enough(2 * Fraction(delta))
    assert not enough(2 * Fraction(delta) * (1 - Fraction(1, 10**12)) - Fraction(1, 10**300))


def test_whatever_the_noise_the_wider_window_is_full():
    x = np.random.default_rng(4).gamma(2, 10, 300)
    delta = k_noise_half_width(x, k=7)
    points = np.linspace(x.min(), x.max(), 50)
    for draw in (np.ones(300), -np.ones(300), symmetric(300, seeded_rng(5))):
        released = x + delta * draw
        sure = guaranteed_anonymity_set_size(x, at=points, delta=delta, half_width=delta)
        assert sure.min() >= 7
        assert (anonymity_set_size(released, at=points, window=3 * delta + 1e-9) >= sure).all()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_likely_crowd_is_exceeded_with_its_probability(p):
    for n in (5, 50, 500):
        (low,) = probable_anonymity_set_size([n * p], confidence=0.95)
        # Coins of one kind have the widest spread of their mean: a binomial.
        assert low == 0 or stats.binom.cdf(math.floor(low), n, p) <= 0.05


def test_repeated_releases_narrow_a_record_down():
    # M10: mean widths 5, 0.92, 0.099, 0.010.
    assert width_after_releases(1, half_width=2.5) == 5
    bits, runs = seeded_rng(6), 3000
    noise = 2.5 * symmetric(runs * 10, bits).reshape(runs, 10)
    widths_seen = 5 - np.ptp(noise, axis=1)
    # 1 - range/5 is Beta(2, 9), of mean 2/11 and variance 18/(121 * 12).
    assert mean_of(widths_seen, width_after_releases(10, half_width=2.5), 25 * 18 / (121 * 12))
    assert not mean_of(
        widths_seen * 1.1, width_after_releases(10, half_width=2.5), 25 * 18 / (121 * 12)
    )


COUNTS = [32, 100, 121, 81, 62, 79, 84, 57, 31, 9, 2, 1]
EDGES = np.arange(19, 80, 5)


@pytest.fixture(scope="module")
def ages():
    """E1's stand-in: uniform in the published bins, the first from 22, the last up to 78."""
    rng = np.random.default_rng(0)
    low = [22, *EDGES[1:-1]]
    high = [*EDGES[1:-1], 78]
    return np.concatenate([rng.uniform(a, b, n) for a, b, n in zip(low, high, COUNTS, strict=True)])


def test_the_published_comparison_of_k_pram_and_k_noise(ages):
    bits = seeded_rng(7)
    noisy = [k_noise(ages, delta=2.5, rng=bits) for _ in range(200)]
    redrawn = [k_pram(ages, edges=EDGES, k=1, rng=bits) for _ in range(200)]
    noise_mse = np.array([one.utility.mse for one in noisy])
    redrawn_mse = np.array([one.utility.mse for one in redrawn])
    # a^2/3 = 2.083; the square of a uniform has variance 4 a^4/45.
    assert mean_of(noise_mse, 6.25 / 3, 4 * 2.5**4 / 45 / len(ages))
    assert not mean_of(noise_mse * 1.02, 6.25 / 3, 4 * 2.5**4 / 45 / len(ages))
    assert abs(redrawn_mse.mean() - 4.1) < 0.6
    assert abs(redrawn_mse.mean() / noise_mse.mean() - 2) < 0.3
    # The published runs, 2.060666 and 4.398563, lie where these do.
    assert noise_mse.min() < 2.060666 < noise_mse.max()
    assert redrawn_mse.min() < 4.398563 < redrawn_mse.max()
    assert all(abs(one.utility.bias) < 5 * one.utility.bias_error for one in noisy)
    assert noisy[0].utility.bias_error == pytest.approx(0.055, abs=0.004)
    assert redrawn[0].utility.bias_error == pytest.approx(0.078, abs=0.006)
    # M9: the achieved k is 1.
    assert redrawn[0].k == 1


def test_the_published_crowds(ages):
    near = expected_anonymity_set_size(ages, at=ages, half_width=2.5, window=2.5)
    assert abs(near.mean() - 81.1) < 2
    ratio = expected_anonymity_set_size(
        ages, at=ages, half_width=2.5, window=5
    ) / anonymity_set_size(ages, at=ages, window=5)
    assert ratio.min() >= 0.5
    assert ratio.mean() == pytest.approx(1.03, abs=0.03)
    assert ratio.max() < 2.2
    # The stronger reading, that the crowd reaches the record's own bin, holds for few.
    own = np.repeat(COUNTS, COUNTS)
    assert (near >= own).mean() == pytest.approx(0.4, abs=0.08)


def test_an_anonymity_set_can_be_one(ages):
    # M10: the theorem is about crowds around fixed points, not about what a value tells.
    found = k_noise(ages, delta=2.5, rng=seeded_rng(8))
    assert found.anonymity.min() == 1
    wanted = [(np.abs(ages - value) <= 2.5).sum() for value in found.values]
    assert found.anonymity.tolist() == wanted
    assert (
        found.anonymity.tolist()
        == anonymity_sets(ages, released=found.values, half_width=2.5).tolist()
    )
    assert "have one only" in repr(found)


def test_noise_on_every_record_with_a_guarantee(ages):
    """B11: additive noise on microdata, in the local model: each record pays for its own range."""
    mechanism = discreet.laplace(
        sensitivity=60, epsilon=2, relation=NeighboringRelation.LOCAL, domain="reals"
    )
    drawn = mechanism.release(np.clip(ages, 20, 80), rng=seeded_rng(12))
    assert mean_of(drawn - ages, 0, mechanism.std**2)
    assert not mean_of(drawn - ages + 12, 0, mechanism.std**2)
    assert mechanism.guarantee.epsilon() == 2


def test_k_noise_finds_its_own_delta(ages):
    found = k_noise(ages, k=5, rng=seeded_rng(9))
    assert found.half_width == k_noise_half_width(ages, k=5)
    assert np.abs(found.values - ages).max() <= found.half_width
    for wrong in ({}, {"k": 5, "delta": 1}):
        with pytest.raises(InvalidArgument, match="either k or delta"):
            k_noise(ages, **wrong)


def test_adaptive_jitter_is_capped_and_says_what_it_is(ages):
    found = adaptive_jitter(ages, half_width=2.5, window=2.5, cap=5, rng=seeded_rng(10))
    assert found.experimental
    assert (np.abs(found.values - ages) <= found.widths).all()
    assert found.widths.max() == 5
    near = expected_anonymity_set_size(ages, at=ages, half_width=2.5, window=2.5)
    assert found.widths == pytest.approx(np.minimum(5, near.mean() / near))
    # B13: without a cap the lonely are moved out of all reason.
    assert (near.mean() / near).max() > 60
    assert "experimental" in repr(found)


samples = st.lists(st.integers(-20, 20), min_size=1, max_size=15)


@given(samples, samples)
def test_distances_are_those_of_scipy(x, y):
    assert wasserstein(x, other=y) == pytest.approx(stats.wasserstein_distance(x, y))
    both = np.union1d(x, y)
    gap = max(abs(np.mean(np.array(x) <= v) - np.mean(np.array(y) <= v)) for v in both)
    assert ks_distance(x, other=y) == pytest.approx(gap)
    assert wasserstein(x, other=x, order=2) == 0
    assert ks_distance(x, other=x) == 0


@given(samples, samples)
def test_the_second_wasserstein_distance(x, y):
    long_x, long_y = np.repeat(np.sort(x), len(y)), np.repeat(np.sort(y), len(x))
    wanted = math.sqrt(((long_x - long_y) ** 2).mean())
    assert wasserstein(x, other=y, order=2) == pytest.approx(wanted)


def test_metrics_by_hand():
    found = utility([1, 2, 3, 4], released=[2, 2, 3, 2], edges=[0, 2.5, 5])
    assert (found.bias, found.mse) == (0.25, 1.25)
    assert found.rmse == pytest.approx(math.sqrt(1.25))
    assert found.changed == 0.25
    assert found.before.tolist() == [2, 2]
    assert found.after.tolist() == [3, 1]
    assert "25% of records change their bin" in str(found)
    assert histogram([1, 2], edges=[0, 2.5, 5]).tolist() == [2, 0]


def test_noise_is_uniform():
    drawn = symmetric(200_000, seeded_rng(11))
    gap = stats.kstest(drawn, stats.uniform(-1, 2).cdf).statistic
    limit = math.sqrt(math.log(2 / ALPHA) / (2 * 200_000))
    assert gap <= limit
    assert stats.kstest(drawn * 1.03, stats.uniform(-1, 2).cdf).statistic > limit


@pytest.mark.parametrize("values", [[], [[1]], [math.nan], [math.inf], ["a"], None])
def test_values_that_are_none_are_refused_without_a_word_about_them(values):
    for call in (
        lambda: k_noise_half_width(values, k=1),
        lambda: k_noise(values, delta=1),
        lambda: anonymity_set_size(values, at=[1], window=1),
        lambda: utility(values, released=[1]),
    ):
        with pytest.raises(OutOfDomain, match="list of"):
            call()
