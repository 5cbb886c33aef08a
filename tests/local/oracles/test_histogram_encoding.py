"""Summed histogram encoding: discrete Laplace noise on a one-hot vector."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.histogram_encoding import (
    SummationHistogramEncoding,
    summation_histogram_encoding,
)
from discreet.noise.random_source import seeded_rng
from tests.distributions import follows, mean_of
from tests.oracle_distributions import CountedBits

LIMIT = 32767


def entry(oracle, own):
    """Log-probabilities of the numbers -32767 .. 32767 of one entry, clamping included."""
    noise, shift = oracle.noise, oracle.steps * own
    logs = noise.log_pmf(np.arange(-LIMIT, LIMIT + 1) - shift)
    logs[0] = math.log(noise.cdf(-LIMIT - shift))
    logs[-1] = math.log(noise.sf(LIMIT - 1 - shift))
    return logs


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 4])
def test_epsilon_by_the_law_of_an_entry(epsilon):
    """Two entries change; each has a largest log-ratio of epsilon / 2, clamped ends included."""
    oracle = summation_histogram_encoding(categories=3, epsilon=epsilon)
    empty, own = entry(oracle, 0), entry(oracle, 1)
    assert np.exp(empty).sum() == pytest.approx(1, abs=1e-9)
    gap = np.abs(own - empty).max()
    assert 2 * gap == pytest.approx(float(epsilon), rel=1e-7)
    assert oracle.certify().holds


def test_less_noise_is_not_certified():
    class Quiet(SummationHistogramEncoding):
        @property
        def noise(self):
            return type(super().noise)(super().noise.scale * Fraction(9, 10))

    with pytest.raises(NotCertified):
        Quiet(categories=3, epsilon=Fraction(1), steps=256).certify()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 4, 50])
def test_mean_and_variance_of_the_law(epsilon):
    """Sums over all 65,535 numbers: unbiased with the clamp, and the closed form's variance."""
    oracle = summation_histogram_encoding(categories=3, epsilon=epsilon)
    places = np.arange(-LIMIT, LIMIT + 1) / oracle.steps
    for own in (0, 1):
        p = np.exp(entry(oracle, own))
        mean = (p * places).sum()
        assert mean == pytest.approx(own, abs=1e-9 * (1 + oracle.std))
        variance = (p * (places - mean) ** 2).sum()
        assert float(oracle.variance(0.3)) == pytest.approx(variance, rel=1e-7)
    if epsilon <= 4:
        assert float(oracle.variance(0)) * epsilon**2 == pytest.approx(8, rel=1e-5)  # F45
    assert float(oracle.range_variance(3, 0.5)) == pytest.approx(3 * float(oracle.variance(0)))
    assert float(oracle.pinned_variance(3, 1)) == 0
    contrast = float(oracle.range_variance(1, 1 / 3)) * 2 / 3  # of squared length 1 (1 - 1/3)
    assert float(oracle.pinned_variance(1, 0.2)) == pytest.approx(contrast, rel=1e-12)


def test_reports_follow_the_law():
    oracle = summation_histogram_encoding(categories=5, epsilon=1)
    truth = np.repeat(np.arange(5), [8000, 4000, 2000, 1000, 1000])
    rows = oracle.randomize(truth, rng=seeded_rng(80))
    assert rows.shape == (16_000, 10)
    entries = rows.view("<i2")
    assert follows(entries[:8000, 0] - oracle.steps, oracle.noise.cdf)
    assert follows(entries[8000:, 0], oracle.noise.cdf)
    assert not follows(entries[:8000, 0], oracle.noise.cdf)
    estimated = Aggregator(oracle).add(rows).estimate()
    for category, share in enumerate(np.bincount(truth) / 16_000):
        assert mean_of(estimated.shares[[category]], share, float(oracle.variance(share)) / 16_000)
    low, high = estimated.interval(1 - 1e-9, guaranteed=True)
    assert np.all((low <= np.bincount(truth) / 16_000) & (high >= np.bincount(truth) / 16_000))


def test_what_no_client_sends_is_refused():
    oracle = summation_histogram_encoding(categories=2, epsilon=1)
    rows = np.array([[-32768, 0], [32767, -32767], [5, 7]], dtype="<i2").view(np.uint8)
    tally = oracle.tally(rows)
    assert (tally.accepted, tally.refused) == (2, 1)
    assert tally.counts.tolist() == [32772, -32760]


def test_entries_are_clamped_by_the_client():
    class Loud(SummationHistogramEncoding):
        @property
        def noise(self):
            return type(super().noise)(super().noise.scale * 1000)

    rows = Loud(categories=3, epsilon=Fraction(1), steps=256).randomize(
        [0] * 50, rng=seeded_rng(81)
    )
    entries = rows.view("<i2")
    assert entries.min() == -LIMIT
    assert entries.max() == LIMIT


def test_the_guaranteed_bound_holds_where_a_fifth_of_it_fails():
    """The exact law of a mean of n, by convolution: the bound misses at most as often as said."""
    oracle = summation_histogram_encoding(categories=2, epsilon=50, steps=32)
    p = np.exp(oracle.noise.log_pmf(np.arange(-60, 61)))
    for n in (1, 4):
        total = np.ones(1)
        for _ in range(n):
            total = np.convolve(total, p)
        place = np.abs(np.arange(-60 * n, 60 * n + 1)) / (oracle.steps * n)
        for miss in (0.2, 0.01):
            bound = oracle.error_bound(n, miss)
            assert total[place > bound].sum() <= miss
            assert total[place > bound / 5].sum() > miss
    assert oracle.error_bound(0, 0.1) == math.inf


def test_clients_draw_as_many_words_whatever_they_have():
    oracle = summation_histogram_encoding(categories=6, epsilon=1)
    drawn = []
    for value in (0, 5):
        bits = CountedBits(seeded_rng(82))
        oracle.randomize(np.full(300, value), rng=bits)
        drawn.append(bits.drawn)
    assert drawn[0] == drawn[1]


def test_bad_parameters():
    with pytest.raises(InvalidArgument, match="use oue"):
        summation_histogram_encoding(categories=4, epsilon=0.001)
    with pytest.raises(InvalidArgument, match="steps"):
        summation_histogram_encoding(categories=4, epsilon=1, steps=1000)
    with pytest.raises(InvalidArgument, match="categories"):
        summation_histogram_encoding(categories=1, epsilon=1)
    assert summation_histogram_encoding(categories=2, epsilon=1).randomize([]).shape == (0, 4)
    assert (
        summation_histogram_encoding(categories=2, epsilon=1)
        .tally(np.empty((0, 4), dtype=np.uint8))
        .accepted
        == 0
    )
