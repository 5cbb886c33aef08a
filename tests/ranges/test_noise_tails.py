"""Bounds of weighted sums of noise against their exact law, by convolution."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from discreet.core.errors import Unsupported
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.ranges import _noise_tails as tails

CASES = [
    # laws, weights in whole steps of a common unit, how often each
    ([DiscreteLaplace(1)], [[4]], [[1]]),
    ([DiscreteLaplace(1)], [[1]], [[20]]),
    ([DiscreteLaplace(3), DiscreteLaplace(2)], [[1, 2], [3]], [[4, 2], [1]]),
    ([DiscreteGaussian(1)], [[1]], [[1]]),
    ([DiscreteGaussian(0.4), DiscreteGaussian(2)], [[3, 1], [2]], [[2, 1], [3]]),
    ([DiscreteLaplace(0.3)], [[1]], [[1]]),
    # So much noise that most of its characteristic function cannot be told from zero.
    ([DiscreteLaplace(30), DiscreteGaussian(40)], [[1, 2], [1]], [[30, 5], [3]]),
]


def exact(laws, weights, counts):
    """The mass function of the sum, on 0, 1, ... steps from its center."""
    reach = 4096
    mass = np.zeros(2 * reach + 1)
    mass[reach] = 1.0
    for law, sizes, times in zip(laws, weights, counts, strict=True):
        k = np.arange(-reach, reach + 1)
        for size, number in zip(sizes, times, strict=True):
            one = np.zeros_like(mass)
            inside = np.abs(k * size) <= reach
            one[reach + k[inside] * size] = law.pmf(k[inside])
            for _ in range(number):
                mass = np.convolve(mass, one, mode="same")
    return np.arange(-reach, reach + 1), mass


@pytest.mark.parametrize("tail", [0.5, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_bounds_hold_and_the_close_one_is_close(case, tail):
    laws, weights, counts = CASES[case]
    k, mass = exact(laws, weights, counts)
    variance = float(np.square(k) @ mass)
    terms = tuple(
        (np.array(w, dtype=float), np.array(c, dtype=float))
        for w, c in zip(weights, counts, strict=True)
    )
    largest = np.array([float(max(w)) for w in weights])
    close = tails.close(laws, terms, variance, tail)
    quick = float(tails.quick(laws, largest, np.array([variance]), tail)[0])
    for width in (close, quick):
        assert mass[np.abs(k) > width].sum() <= tail
    # The narrowest interval of the lattice, and what the two bounds add to it.
    beyond = np.array([mass[np.abs(k) > width].sum() for width in range(2000)])
    narrowest = int(np.argmax(beyond <= tail))
    step = math.gcd(*(int(size) for sizes in weights for size in sizes))
    assert close <= narrowest + step + 0.5 * math.sqrt(variance)
    assert quick < math.inf


@pytest.mark.parametrize("tail", [1e-5, 1e-6, 1e-8])
@pytest.mark.parametrize("epsilon", [11.588, 11.687, 13.073])
def test_rare_noise_far_out_is_not_taken_for_noise_near_zero(epsilon, tail):
    # One step is some 240 deviations, the period of the sum that the close bound is made of.
    law = DiscreteLaplace(1 / epsilon)
    width = tails.close([law], ((np.ones(1), np.ones(1)),), law.variance, tail)
    assert width == math.inf or 2 * float(law.sf(math.floor(width))) <= tail
    # Where so rare noise does not matter, the bound is as close as before.
    width = tails.close([law], ((np.ones(1), np.ones(1)),), law.variance, 0.05)
    assert width < math.sqrt(law.variance)


def test_many_widths_at_once_are_looked_up_on_the_safe_side():
    laws, largest = [DiscreteLaplace(2), DiscreteLaplace(5)], np.array([1.0, 0.5])
    variance = np.append(np.random.default_rng(1).uniform(0.5, 5000, 9999), 0.0)
    many = tails.quick(laws, largest, variance, 1e-3)
    for i in (0, 17, 9998, int(np.argmin(variance[:-1])), int(np.argmax(variance))):
        one = float(tails.quick(laws, largest, variance[i : i + 1], 1e-3)[0])
        assert one <= many[i] <= one * 1.01
    assert many[-1] == 0
    assert not tails.quick(laws, largest, np.zeros(9999), 1e-3).any()


def test_fine_gaussian_noise_is_normal():
    laws = [DiscreteGaussian(2000.5)]
    assert tails.fine(laws)
    width = tails.normal(laws, np.array([2000.5]), 0.05)[0]
    true = float(2 * laws[0].sf(math.floor(width)))
    assert 0.045 < true <= 0.05
    assert width <= 1.04 * norm.isf(0.025) * 2000.5
    assert tails.close(laws, ((np.ones(1), np.ones(1)),), 2000.5**2, 0.05) == pytest.approx(width)
    with pytest.raises(Unsupported, match="fine"):
        tails.normal([DiscreteGaussian(3)], np.ones(1), 0.05)


def test_nothing_is_promised_where_the_numbers_end():
    law = DiscreteLaplace(1)
    terms = ((np.ones(1), np.ones(1)),)
    assert tails.close([law], terms, law.variance, 1e-12) == math.inf
    assert tails.close([law], terms, 0.0, 0.05) == 0
    # The bound from the variance is still there.
    width = float(tails.quick([law], np.ones(1), np.array([law.variance]), 1e-12)[0])
    assert 2 * float(law.sf(math.floor(width))) <= 1e-12
