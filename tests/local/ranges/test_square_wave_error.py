"""What is expected of ranges from a square wave, against enumeration and real reports."""

import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.local.collection.aggregator import Aggregator
from discreet.local.distribution import square_wave
from discreet.local.ranges.square_wave_error import simulate_square_wave_error, unbiased_variance
from discreet.noise.random_source import seeded_rng

RANGES = np.array([(a, b) for a, b in itertools.combinations_with_replacement(range(4), 2)])


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_the_unbiased_variance_is_that_of_the_best_linear_estimate(epsilon):
    made = square_wave(cells=4, epsilon=epsilon)
    channel = np.array([made.window.weights(i) for i in range(4)]).T / made.window.total
    weight = np.diag(1 / channel.mean(axis=1))
    best = np.linalg.solve(channel.T @ weight @ channel, channel.T @ weight)
    assert best @ channel == pytest.approx(np.eye(4), abs=1e-10)
    stated = unbiased_variance(made, RANGES[:, 0], RANGES[:, 1])
    for (a, b), variance in zip(RANGES, stated, strict=True):
        levels = best[a : b + 1].sum(axis=0)  # the estimate from one report, by its symbol
        by_client = [p @ levels**2 - (p @ levels) ** 2 for p in channel.T]
        assert variance == pytest.approx(np.mean(by_client), rel=1e-9, abs=1e-9)
    assert stated[3] == pytest.approx(0, abs=1e-9)  # the whole range is known


def test_the_simulation_agrees_with_real_reports():
    made = square_wave(cells=24, epsilon=1.5)
    shares = np.linspace(1, 3, 24) / 48
    for smooth in (True, False):
        expected = simulate_square_wave_error(
            made, reports=4000, shares=shares, smooth=smooth, runs=20, rng=seeded_rng(1)
        )
        rng, errors = np.random.default_rng(2), []
        for run in range(20):
            clients = rng.choice(24, size=4000, p=shares)
            reports = made.randomize(clients, rng=seeded_rng(100 + run))
            told = made.estimate(Aggregator(made).add(reports).counts, 4000, smooth=smooth).shares
            gap = np.concatenate(([0], np.cumsum(told - np.bincount(clients, minlength=24) / 4000)))
            errors.append(np.mean([(y - x) ** 2 for x, y in itertools.combinations(gap, 2)]))
        spread = np.hypot(expected.std, np.std(errors) / len(errors) ** 0.5)
        assert expected.error == pytest.approx(np.mean(errors), abs=5 * spread)


def test_estimates_beat_what_is_unbiased_by_far():
    """So the Cramer-Rao bound must not be used to predict them."""
    made = square_wave(cells=64, epsilon=1)
    a, b = np.triu_indices(64)
    bound = unbiased_variance(made, a, b).mean() / 20_000
    for smooth in (True, False):
        seen = simulate_square_wave_error(
            made, reports=20_000, smooth=smooth, runs=5, rng=seeded_rng(3)
        )
        assert seen.error < bound / 3


def test_what_cannot_be_simulated_is_refused():
    made = square_wave(cells=4, epsilon=1)
    for bad in ([1, 2, 3], [1, 1, 1, -1], [0, 0, 0, 0], [np.nan] * 4):
        with pytest.raises(InvalidArgument, match="shares must be"):
            simulate_square_wave_error(made, reports=10, shares=bad)
    with pytest.raises(InvalidArgument, match="at most 4096 cells"):
        unbiased_variance(square_wave(cells=5000, epsilon=1), np.array([0]), np.array([1]))
