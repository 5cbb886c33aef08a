"""Low bits and work tell nothing about the input, for every mechanism that returns numbers."""

import numpy as np
import pytest

import discreet
from discreet.audit.side_channels import precision_attack
from discreet.noise.random_source import seeded_rng
from tests.counting_source import CountedBits

NUMERIC = {
    "laplace": lambda s: discreet.laplace(sensitivity=s, epsilon=1, domain="reals"),
    "gaussian": lambda s: discreet.gaussian(sensitivity=s, epsilon=1, delta=1e-6, domain="reals"),
    "gaussian, zCDP": lambda s: discreet.gaussian(sensitivity=s, rho=0.5, domain="reals"),
    "gaussian, GDP": lambda s: discreet.gaussian(sensitivity=s, mu=1, domain="reals"),
}


@pytest.mark.parametrize("scale", [1e-6, 0.1, 1.0, 7.3, 1e6])
@pytest.mark.parametrize("name", NUMERIC)
def test_low_bits_of_reals_separate_nothing(name, scale):
    mechanism = NUMERIC[name](scale)
    seeds = iter(range(100))

    def run(value, n):
        return mechanism.release(np.full(n, value), rng=seeded_rng(next(seeds)))

    for left, right in (
        (0.0, scale),
        (scale / 3, scale / 3 + scale),
        (1e3 * scale, 1e3 * scale + scale),
    ):
        assert not precision_attack(run, left, right, epsilon=2.0, samples=20_000).separates


@pytest.mark.parametrize("scale", [0.1, 7.3])
def test_truncated_reals_lie_on_one_grid_whatever_the_input(scale):
    mechanism = discreet.truncated_laplace(sensitivity=scale, epsilon=1, delta=1e-6)
    bits = seeded_rng(50)
    for value in (0.0, scale / 3, 1e3 * scale / 7):
        released = np.array([mechanism.release(value, rng=bits) for _ in range(200)])
        steps = released / mechanism.scale.step
        assert np.array_equal(steps, np.floor(steps))
        # Both parities occur: the input's own low bits are gone.
        assert 0.2 < (steps % 2).mean() < 0.8


def test_work_is_the_same_whatever_the_noise():
    """One word a draw and no more for scalar releases, but for a refinement in a million."""
    for mechanism in (
        discreet.laplace(sensitivity=1, epsilon=0.01),
        discreet.laplace(sensitivity=1.5, epsilon=0.01),
        discreet.gaussian(sensitivity=1, epsilon=0.1, delta=1e-6, domain="integers"),
        discreet.truncated_laplace(sensitivity=1, epsilon=0.01, delta=1e-3),
    ):
        used = set()
        for seed in range(300):
            bits = CountedBits(seed)
            mechanism.release(5, rng=bits)
            used.add(bits.drawn)
        assert used == {1}


def test_work_of_choices_does_not_depend_on_the_choice():
    scores = np.array([0, 5, 9, 100])
    for build in (
        discreet.exponential_mechanism,
        discreet.permute_and_flip,
        discreet.report_noisy_max,
    ):
        mechanism = build(sensitivity=1, epsilon=0.1)
        used = set()
        for seed in range(300):
            bits = CountedBits(seed)
            mechanism.release(scores, rng=bits)
            used.add(bits.drawn)
        # A rejected uniform integer (three heads do not divide 2**64) is one in 10**19.
        assert len(used) == 1


def test_work_of_above_threshold_does_not_tell_where_it_stopped():
    mechanism = discreet.above_threshold(sensitivity=1, epsilon=1)
    used = set()
    for first in range(10):
        bits = CountedBits(first)
        values = np.zeros(10, dtype=int)
        values[first] = 1000
        mechanism.release(values, threshold=500, rng=bits)
        used.add(bits.drawn)
    assert used == {11}
