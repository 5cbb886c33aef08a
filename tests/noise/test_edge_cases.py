"""What the samplers and laws refuse, and what they do at the ends of their ranges."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.noise import random_source as bits_module
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import SeededRandomSource, seeded_rng, system_rng
from discreet.noise.uniform import (
    LazyUniform,
    exponential_choice,
    permutation,
    subset,
    uniform_integers,
)
from tests.distributions import follows


def test_sources_are_named():
    assert repr(system_rng()) == "system_rng()"
    assert repr(seeded_rng(7)) == "seeded_rng(7)"


@pytest.mark.parametrize(
    "law",
    [Geometric(2), DiscreteLaplace(2), DiscreteGaussian(2), Staircase(1, shift=3, tread=2)],
    ids=repr,
)
def test_moments_have_orders_one_to_four(law):
    for order in (0, 5, 1.0):
        with pytest.raises(InvalidArgument, match="order"):
            law.moment(order)


def test_parameters_end_where_they_say():
    smallest = Fraction(1, 1 << 10)
    assert DiscreteGaussian(smallest).square == smallest**2
    assert DiscreteGaussian(1 << 48).square == 1 << 96
    with pytest.raises(InvalidArgument, match="at least 2"):
        DiscreteGaussian(smallest - Fraction(1, 1 << 90))
    with pytest.raises(InvalidArgument, match="at most 2"):
        DiscreteGaussian((1 << 48) + 1)
    for kind in (Geometric, DiscreteLaplace):
        assert kind(1 << 55).scale == 1 << 55
        assert kind(Fraction(1, 1 << 20)).scale == Fraction(1, 1 << 20)
        with pytest.raises(InvalidArgument, match="at most 2"):
            kind((1 << 55) + 1)
        with pytest.raises(InvalidArgument, match="at least 2"):
            kind(Fraction(1, (1 << 20) + 1))
    assert BoundedDiscreteLaplace(1 << 33, lower=0, upper=1).scale == 1 << 33
    with pytest.raises(InvalidArgument, match="at most 2"):
        BoundedDiscreteLaplace((1 << 33) + 1, lower=0, upper=1)


def test_a_staircase_ends_where_it_says():
    assert Staircase(1, shift=4, tread=4).tread == 4
    with pytest.raises(InvalidArgument, match="tread must be at most shift=4"):
        Staircase(1, shift=4, tread=5)
    assert Staircase(100, shift=1 << 61, tread=1).shift == 1 << 61
    with pytest.raises(InvalidArgument, match="shift must be at most"):
        Staircase(100, shift=(1 << 61) + 1, tread=1)
    assert Staircase(Fraction(1, 1 << 50), shift=32, tread=1).shift == 32
    with pytest.raises(InvalidArgument, match="shift must be at most"):
        Staircase(Fraction(1, 1 << 50), shift=33, tread=1)


@pytest.mark.parametrize(
    "weights",
    [[], [TOTAL - 1], [TOTAL - 2, 1, 1], [TOTAL // 2, TOTAL // 4 - 3, 1, 2], [TOTAL + 2, -1]],
    ids=["none", "too little", "too much", "rising", "negative"],
)
def test_weights_must_fall_and_sum(weights):
    assert PiecewiseConstant([TOTAL - 2, 1]).weights == (TOTAL - 2, 1)
    with pytest.raises(InvalidArgument, match="weights must never rise"):
        PiecewiseConstant(weights)


def test_cells_have_a_middle_and_stay_in_reach():
    with pytest.raises(InvalidArgument, match="width must be odd"):
        PiecewiseConstant([TOTAL], width=2)
    assert PiecewiseConstant([TOTAL], width=(1 << 62) - 1).support[1] == (1 << 61) - 1
    with pytest.raises(InvalidArgument, match=r"within 2\*\*61"):
        PiecewiseConstant([TOTAL - 2, 1], width=(1 << 61) - 1)


def test_beyond_the_support_there_is_nothing():
    law = PiecewiseConstant([TOTAL // 2, TOTAL // 4], width=3)
    assert law.support == (-4, 4)
    assert law.at_least(5, 40) == (0, 0)
    assert law.at_least(4, 40) == ((1 << 40) // 12, (1 << 40) // 12 + 1)
    assert law.at_least(-4, 40) == (1 << 40, 1 << 40)
    bounded = BoundedDiscreteLaplace(3, lower=-2, upper=4)
    assert bounded.at_least(5, 40) == (0, 0)
    assert bounded.at_least(-2, 40) == (1 << 40, 1 << 40)
    assert bounded.at_least(4, 40)[0] > 0


def test_one_place_needs_no_decision():
    law = BoundedDiscreteLaplace(5, lower=0, upper=0)
    assert law.sample(50, SeededRandomSource(3, width=2)).tolist() == [0] * 50


def test_large_gaussians_have_a_law_but_no_exact_tails():
    law = DiscreteGaussian(5000)
    k = np.arange(-60_000, 60_001)
    assert math.fsum(law.pmf(k)) == pytest.approx(1, abs=1e-12)
    assert law.cdf(k) == pytest.approx(np.cumsum(law.pmf(k)), abs=1e-11)
    for order in (2, 4):
        assert law.moment(order) == pytest.approx(math.fsum(k.astype(float) ** order * law.pmf(k)))
    with pytest.raises(InvalidArgument, match="sigma up to 2048"):
        law.at_least(1, 64)
    low, high = DiscreteGaussian(2048).at_least(1, 64)
    assert low <= high < 1 << 63


@pytest.mark.parametrize("scale", [Fraction(1, 599), Fraction(1, 601), Fraction(1, 2000)])
def test_variances_of_almost_no_noise(scale):
    mpmath.mp.dps = 30
    half = mpmath.mpf(scale.denominator) / 2
    true = 1 / (2 * mpmath.sinh(half) ** 2)
    law = DiscreteLaplace(scale)
    assert law.moment(2) == pytest.approx(float(true), rel=1e-12, abs=0)
    assert law.moment(4) == pytest.approx(float(true * (6 * true + 1)), rel=1e-12, abs=0)


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 25])
def test_mean_sizes_equal_their_sums(scale):
    law = DiscreteLaplace(scale)
    k = np.arange(0, 2000)
    assert law.mean_absolute == pytest.approx(2 * math.fsum(k * law.pmf(k)), rel=1e-12)


def test_large_geometric_samples_follow_the_law():
    law = Geometric(1 << 40)
    assert follows(law.sample(50_000, seeded_rng(61)), law.cdf)
    assert not follows(law.sample(50_000, seeded_rng(61)) >> 1, law.cdf)


def test_upper_ends_are_found_where_one_minus_the_tail_is_no_double():
    """The bracket ends where 1 - sf rounds to 1 - tail although sf is above the tail."""
    level, law = 1 - 3 * 2.0**-53, Geometric(Fraction(292, 10))
    tail = (1 - level) / 2
    end = round(law.mean) + 1023
    assert law.cdf(end) >= 1 - tail
    assert law.sf(end) > tail
    high = law.interval(level)[1]
    assert law.sf(high) <= tail < law.sf(high - 1)


def test_an_unread_number_is_read_before_it_is_compared():
    class Ones:
        width = 8
        private = False

        def words(self, count):
            return np.full(count, 255, dtype=np.uint64)

    uniform = LazyUniform(Ones())
    assert not uniform.below(lambda precision: (1 << precision - 1, 1 << precision - 1))
    assert (uniform.value, uniform.bits) == (255, 8)


def test_uniform_numbers_have_a_largest_bound():
    narrow = SeededRandomSource(1, width=4)
    assert set(uniform_integers(16, 400, narrow).tolist()) == set(range(16))
    with pytest.raises(InvalidArgument, match=r"bound must be at most 2\*\*4"):
        uniform_integers(17, 1, narrow)
    assert uniform_integers(1 << 63, 100, seeded_rng(2)).min() >= 0
    with pytest.raises(InvalidArgument, match=r"bound must be at most 2\*\*63"):
        uniform_integers((1 << 63) + 1, 1, seeded_rng(2))


def test_subsets_and_orders_end_where_they_say():
    assert subset(5, 0, seeded_rng(1)).tolist() == []
    assert subset(5, 5, seeded_rng(1)).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InvalidArgument, match="chosen must be at most size=5"):
        subset(5, 6, seeded_rng(1))
    assert sorted(permutation(4, SeededRandomSource(1, width=2)).tolist()) == [0, 1, 2, 3]
    with pytest.raises(InvalidArgument, match=r"size must be at most 2\*\*2"):
        permutation(5, SeededRandomSource(1, width=2))


def test_a_choice_needs_candidates():
    with pytest.raises(OutOfDomain, match="at least one candidate"):
        exponential_choice(np.empty(0, dtype=np.int64), 1, seeded_rng(1))
    assert exponential_choice(np.array([3]), 1, seeded_rng(1)) == 0


def test_long_requests_are_mixed_with_fresh_bits(monkeypatch):
    """No more entropy is claimed than there is; a short request asks the system alone."""
    mixed = []
    monkeypatch.setattr(bits_module.ssl, "RAND_add", lambda *given: mixed.append(given))
    assert len(system_rng().words(1023)) == 1023
    assert mixed == []
    for count in (1024, 70_000):
        words = system_rng().words(count)
        assert len(np.unique(words)) == count
    assert [(len(fresh), entropy) for fresh, entropy in mixed] == [(32, 32.0)] * 2
    assert mixed[0][0] != mixed[1][0]
