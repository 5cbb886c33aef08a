"""Counts, means and choices of the local model, each computed a second time by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import BudgetExceeded, OutOfDomain
from discreet.local.collection.client import MemoizedClient
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import l_osue, rappor
from discreet.local.means import balanced_piecewise as balanced_module
from discreet.local.means.balanced_piecewise import balanced_piecewise, levels
from discreet.local.oracles import histogram_encoding as histogram_module
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.randomized_response import grr
from discreet.local.randomizer import codes
from discreet.noise.random_source import seeded_rng


def test_codes_lie_among_the_categories():
    assert codes(3, 4).tolist() == [3]
    assert codes([2, 2], 4).tolist() == [2, 2]
    assert codes([0, 3], 4).tolist() == [0, 3]
    assert codes([], 4).tolist() == []
    for wrong in (4, -1, [0, 4], [0.5], None, [1, "1"], math.nan):
        with pytest.raises(OutOfDomain, match="from 0 to 3"):
            codes(wrong, 4)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_sums_of_histograms_are_those_of_the_entries(monkeypatch, chunk):
    made = summation_histogram_encoding(categories=3, epsilon=1)
    reports = made.randomize(np.arange(11) % 3, rng=seeded_rng(4))
    monkeypatch.setattr(histogram_module, "_CHUNK", chunk)
    entries = reports.view("<i2").astype(int)
    found = made.tally(reports)
    assert found.counts.tolist() == entries.sum(axis=0).tolist()
    assert (found.accepted, found.refused) == (11, 0)
    assert made.supports(found.counts) == pytest.approx(entries.sum(axis=0) / made.steps)
    broken = reports.copy()
    broken.view("<i2")[4, 1] = -(1 << 15)
    found = made.tally(broken)
    assert found.counts.tolist() == np.delete(entries, 4, axis=0).sum(axis=0).tolist()
    assert (found.accepted, found.refused) == (10, 1)
    again = made.randomize(np.arange(11) % 3, rng=seeded_rng(4))
    assert again.shape == (11, 6)
    own = np.abs(entries[np.arange(11), np.arange(11) % 3] - made.steps)
    assert own.max() < 40 * float(made.noise.scale)


def test_the_error_of_a_histogram():
    made = summation_histogram_encoding(categories=3, epsilon=2)
    scale = 2 / 2
    assert float(made.noise.scale) / made.steps == pytest.approx(scale)
    room = math.log(2 / 0.01) / 50
    assert made.error_bound(50, 0.01) == pytest.approx(scale * (2 * math.sqrt(room) + room))
    assert made.error_bound(0, 0.01) == math.inf
    assert made.range_variance(3, 0.2) == pytest.approx(3 * 2 * scale**2, rel=1e-6)
    assert summation_histogram_encoding(categories=3, epsilon=Fraction(1, 340)).steps == 1


@pytest.mark.parametrize("make", [rappor, l_osue])
def test_what_reports_of_one_memory_cost(make):
    plan = make(categories=5, epsilon=0.5, permanent_epsilon=1.5)
    assert plan.after().epsilon() == 1.5
    assert plan.after(1) == plan.guarantee
    costs = [plan.after(n).epsilon() for n in (1, 2, 5, 1000)]
    assert costs == sorted(costs)
    assert 0.5 < costs[1] <= 1.0 + 1e-9
    assert costs[-1] <= 1.5


def test_periods_cost_in_full():
    client = MemoizedClient(rappor(categories=4, epsilon=0.5, permanent_epsilon=1.5), budget=3.2)
    for spent in (1.5, 3.0):
        client.memoize(1, rng=seeded_rng(1))
        assert client.guarantee.epsilon() == spent
    with pytest.raises(BudgetExceeded, match="2 periods"):
        client.memoize(1, rng=seeded_rng(1))
    assert client.periods == 2


def test_what_noise_would_seldom_reach_stays():
    oracle = grr(categories=4, epsilon=2)
    line = stats.norm.ppf(1 - 0.05 / 8) * math.sqrt(float(oracle.range_variance(1, 0)) / 100)
    shares = np.array([line * (1 + 1e-9), line * (1 - 1e-9), -line * 2, 0.9])
    found = Frequencies(shares=shares, reports=100, variance=0 * shares, oracle=oracle)
    assert found.base_cut().shares.tolist() == [shares[0], 0, 0, 0.9]
    assert found.base_cut(miss=0.5).shares[1] == shares[1]
    assert found.base_cut().adjusted == "base_cut"


@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_balanced_takes_the_window_of_least_variance_at_worst(epsilon):
    """Each window that is tried, its variance computed from its law and its levels."""
    made = balanced_piecewise(epsilon=epsilon, lower=0, upper=1)

    def worst(window):
        found = balanced_module._levels(window)
        law = np.array([window.back(row) for row in np.eye(window.symbols)]).T
        assert law.sum(axis=1) == pytest.approx(np.ones(window.inputs))
        means = law @ found
        places = np.arange(window.inputs) / (window.inputs - 1) - 0.5
        assert means == pytest.approx(places, abs=1e-9)
        return float((law @ found**2 - means**2).max())

    tried = balanced_module._tried(Fraction(epsilon), None)
    assert len(tried) > 1
    least = min(map(worst, tried))
    assert worst(made.window) == pytest.approx(least, rel=1e-12)
    even = levels(made.window, np.full(made.window.inputs, 1 / made.window.inputs))
    assert even == pytest.approx(-even[::-1], abs=1e-9)


def test_the_mean_of_a_wave_and_its_error():
    made = square_wave(cells=8, epsilon=1, lower=-2, upper=6)
    counts = made.tally(made.randomize(np.full(50, 3.5), rng=seeded_rng(2))).counts
    found = made.mean(counts, 50)
    gain, middle = made.window.gain, (made.size - 1) / 2
    shift = sum(c * (s - middle) / gain for s, c in enumerate(counts.tolist())) / 50
    assert found.value == pytest.approx(2 + shift)
    assert found.std == pytest.approx(made.std / math.sqrt(50))
    assert found.one == (made.std, pytest.approx((made.size - 1) / gain))
    assert found.bounds == (-2, 6)
    assert found.bias == 0.5
    nobody = made.mean(0 * counts, 0)
    assert (nobody.value, nobody.std) == (2, math.inf)


def test_a_bootstrap_turns_its_quantiles_about_the_estimate():
    made = square_wave(cells=8, epsilon=2)
    counts = made.tally(made.randomize(np.arange(400) % 8, rng=seeded_rng(2))).counts
    found = made.bootstrap(made.estimate(counts, 400), replicates=20, rng=seeded_rng(3))
    every = [one.shares[0] for one in found.replicates]
    center = found.estimate.shares[0]
    low, high = found.interval_of(lambda one: one.shares[0])
    assert low == pytest.approx(2 * center - np.quantile(every, 0.975))
    assert high == pytest.approx(2 * center - np.quantile(every, 0.025))
