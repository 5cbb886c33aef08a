"""Laws and sums at the ends of what they promise: far tails, large scales, the last allowed value.

Far out a probability is as small as a double can be, so no absolute tolerance is granted here.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.noise import bounded_laplace as bounded
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian, GaussianMagnitude
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import SeededRandomSource, seeded_rng, system_rng
from discreet.noise.uniform import _Borders, bernoulli_real, subset, uniform_integers
from tests.choice_tree import enumerate_sampler


@pytest.mark.parametrize(("sigma", "good"), [(4, 5e-7), (8, 8e-9), (16, 1.25e-10)])
def test_smooth_tails_are_good_to_the_sixth_power(sigma, good):
    """The relative error falls by 64 when sigma doubles: every term of the expansion is there."""
    law = DiscreteGaussian(sigma)
    k = np.arange(0, 3 * sigma)
    assert law._smooth_tail(k + 1.0) == pytest.approx(law.sf(k), rel=good, abs=0)


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(3), Fraction(10)])
def test_gaussian_tails_hold_until_no_double_is_left(sigma):
    law = DiscreteGaussian(sigma)
    mpmath.mp.dps = 40
    square = mpmath.mpf(law.square.numerator) / law.square.denominator
    weights = [mpmath.exp(-(k * k) / (2 * square)) for k in range(1000)]
    total = 2 * mpmath.fsum(weights) - 1
    last = math.floor(37 * sigma)  # here a tail is still a normal double
    for k in {1, last // 2 + 1, last}:
        assert law.sf(k - 1) == pytest.approx(
            float(mpmath.fsum(weights[k:]) / total), rel=1e-11, abs=0
        )
        assert law.cdf(-k) == law.sf(k - 1)
    assert law.sf(40 * math.ceil(sigma)) == 0
    assert law.sf(1e12) == 0


def test_exact_gaussian_tails_end_at_2048():
    assert DiscreteGaussian(2048).at_least(0, 30)[0] > 1 << 29
    with pytest.raises(InvalidArgument, match="sigma up to 2048"):
        DiscreteGaussian(square=Fraction(2048**2) + Fraction(1, 10**9)).at_least(0, 30)


@pytest.mark.parametrize("sigma", [Fraction(1, 1024), Fraction(1, 4), Fraction(5), Fraction(2048)])
@pytest.mark.parametrize("folded", [True, False])
def test_nothing_that_counts_is_out_of_reach_of_a_table(sigma, folded):
    table = GaussianMagnitude(sigma**2, folded=folded)
    assert table.at_least(len(table.ends), 80)[1] < 1 << 17  # 2**-63
    assert len(table.ends) <= 1 << 15


NARROW = [
    Staircase(Fraction(1, 1 << 10), shift=1 << 40, tread=1 << 20),
    Staircase(50, shift=1 << 60, tread=1),
    BoundedDiscreteLaplace(1 << 33, lower=-(1 << 30), upper=1 << 40),
    BoundedDiscreteLaplace(1 << 33, lower=0, upper=1),
    DiscreteLaplace(1 << 55),
    DiscreteLaplace(Fraction(1, 1 << 10)),
    DiscreteGaussian(2048),
    DiscreteGaussian(Fraction(1, 1024)),
]


@pytest.mark.parametrize("law", NARROW, ids=repr)
def test_enclosures_stay_narrow_at_the_ends_of_the_parameters(law):
    for k in (0, 1, 5, 1 << 20):
        fine = law.at_least(k, 150)
        assert fine[1] - fine[0] <= 2
        for precision in (1, 8, 64):
            low, high = law.at_least(k, precision)
            assert 0 <= low <= high <= 1 << precision
            assert high - low <= 2
            assert low << (150 - precision) <= fine[1]
            assert high << (150 - precision) >= fine[0]


def test_borders_of_many_candidates_are_narrow():
    borders = _Borders(np.arange(3000) % 7, Fraction(1, 50))
    for precision in (8, 64):
        for index in (0, 1500, 2998):
            low, high = borders.end(index, precision)
            assert high - low <= 2
    assert borders.end(2999, 64) == (1 << 64, 1 << 64)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("upper", [60, 400, 5000])
def test_long_sums_of_short_steps(monkeypatch, order, upper):
    """The integral and its correction, where the next term is of the order of rate**4."""
    rate = 0.02
    k = np.arange(1, upper + 1, dtype=float)
    added = math.fsum(k**order * np.exp(-k * rate))
    monkeypatch.setattr(bounded, "_LONGEST_SUM", 10)
    assert bounded._power_sum(order, upper, rate) == pytest.approx(added, rel=3e-7, abs=0)


@pytest.mark.parametrize("rate", [300, 700])
def test_moments_of_almost_no_bounded_noise(rate):
    law = BoundedDiscreteLaplace(Fraction(1, rate), lower=-2, upper=5)
    assert law.absolute_moment(1) == pytest.approx(2 * math.exp(-rate), rel=1e-12, abs=0)


@pytest.mark.parametrize("width", [1, 3, 7, 21])
def test_stepped_noise_is_the_sum_of_its_places(width):
    law = PiecewiseConstant([TOTAL // 2, TOTAL // 8, TOTAL // 16, TOTAL // 16], width=width)
    reach = int(law.support[1])
    weights = {
        k: Fraction(law.weights[(abs(k) + width // 2) // width], TOTAL * width)
        for k in range(-reach, reach + 1)
    }
    assert sum(weights.values()) == 1
    for order in (1, 2, 3, 4):
        exact = sum(abs(k) ** order * mass for k, mass in weights.items())
        assert law.absolute_moment(order) == pytest.approx(float(exact), rel=1e-13)
    tail = Fraction(1)
    for k in range(-reach, reach + 2):
        assert law.at_least(k, 40) == (math.floor(tail * 2**40), math.ceil(tail * 2**40))
        assert law.sf(k - 1) == pytest.approx(float(tail), abs=1e-15)
        assert law.cdf(k - 1) == pytest.approx(float(1 - tail), abs=1e-15)
        tail -= weights.get(k, 0)
        assert law.pmf(k) == pytest.approx(float(weights.get(k, 0)), rel=1e-13)


def test_stepped_noise_reaches_two_to_the_61():
    width = ((1 << 62) + 1) // 5
    weights = [TOTAL - 4, 1, 1]
    assert PiecewiseConstant(weights, width=width).support == (-(1 << 61), 1 << 61)
    with pytest.raises(InvalidArgument, match=r"within 2\*\*61"):
        PiecewiseConstant(weights, width=width + 2)


@pytest.mark.parametrize("epsilon", [Fraction(30), Fraction(42), Fraction(43), Fraction(400)])
def test_divergences_at_large_epsilons(epsilon):
    """One unit of weight against all but two: the ratio is just below 2**62, which is e^42.98."""
    law = PiecewiseConstant([TOTAL - 2, 1])
    mpmath.mp.dps = 60
    factor = mpmath.exp(mpmath.mpf(epsilon.numerator))
    for shift, others in ((1, (0, 1, TOTAL - 2)), (2, (0, 0, 1))):
        owns = (1, TOTAL - 2, 1)
        true = sum(max(0, own - factor * other) for own, other in zip(owns, others, strict=True))
        claimed = law.delta(shift, epsilon)
        excess = mpmath.mpf(claimed.numerator) / claimed.denominator - true / TOTAL
        assert 0 <= excess + mpmath.mpf(10) ** -50 < mpmath.mpf(2) ** -60


@pytest.mark.parametrize(("size", "chosen"), [(5, 4), (1000, 1), (1000, 300), (1000, 999)])
def test_sets_are_those_of_the_smallest_keys(size, chosen):
    for seed in range(20):
        keys = seeded_rng(seed).words(size)
        smallest = np.sort(np.argsort(keys)[:chosen])
        assert np.array_equal(subset(size, chosen, seeded_rng(seed)), smallest)


def test_numbers_are_drawn_again_from_any_source():
    """A quarter of the words goes back; what the system hands out cannot be written to."""
    bound = (1 << 62) + 1
    for count in (500, 2000):
        drawn = uniform_integers(bound, count, system_rng())
        assert 0 <= drawn.min() <= drawn.max() < bound


def test_the_last_word_of_an_almost_certain_coin_is_not_lost():
    def almost(precision):
        whole = 1 << precision
        return max(0, whole - max(1, whole >> 40)), whole - (whole >> 40)

    found = enumerate_sampler(
        lambda bits: bool(bernoulli_real(almost, 1, bits)[0]), width=2, depth=4
    )
    assert set(found.masses) == {True}
    assert found.masses[True] == 1 - Fraction(1, 4**4)


@pytest.mark.parametrize("law", [Geometric(1 << 55), DiscreteLaplace(1 << 55)], ids=repr)
def test_quantiles_of_large_noise_take_few_steps(monkeypatch, law):
    seen = []
    for name in ("cdf", "sf"):
        plain = getattr(type(law), name)
        monkeypatch.setattr(
            type(law), name, lambda self, k, plain=plain: seen.append(k) or plain(self, k)
        )
    high = Distribution.quantile(law, 0.999)
    assert law.scale * 6 < high < law.scale * 7
    assert Distribution.interval(law, 0.998)[1] == pytest.approx(high, rel=0.2)
    assert len(seen) < 1000


def ties():
    """A law whose cumulated probabilities are doubles."""
    return PiecewiseConstant([TOTAL // 4, TOTAL // 4, TOTAL // 16, TOTAL // 32, TOTAL // 32])


def test_quantiles_of_exactly_a_cumulated_probability():
    for law in (ties(), Geometric(5), DiscreteLaplace(3), DiscreteGaussian(4)):
        for k in range(-13, 14):
            p = float(law.cdf(k))
            if 0 < p < 1:
                assert law.quantile(p) == k


def test_intervals_of_exactly_a_tail():
    law = ties()
    for k in range(4):
        tail = float(law.sf(k))
        assert law.interval(1 - 2 * tail) == (-k - 1, k)


def test_upper_ends_are_looked_for_beyond_zero():
    """Here one minus the tail above zero rounds to one minus the tail that is asked for."""
    law, tail = DiscreteLaplace(Fraction(100, 3655)), 2.0**-53
    assert law.sf(0) > tail
    assert law.cdf(0) >= 1 - tail
    assert law.interval(1 - 2 * tail) == (-1, 1)


@pytest.mark.parametrize("bad", [0, 1, 0.0, 1.0])
def test_no_quantile_or_interval_is_certain(bad):
    with pytest.raises(InvalidArgument, match="p must"):
        DiscreteLaplace(3).quantile(bad)
    with pytest.raises(InvalidArgument, match="confidence must"):
        DiscreteLaplace(3).interval(bad)


def test_far_outside_the_support_nothing_is_left():
    for law in (BoundedDiscreteLaplace(3, lower=-5, upper=12), ties(), PiecewiseConstant([TOTAL])):
        low, high = law.support
        for far in (1, 2, 3, 10, 1e6):
            assert law.sf(high + far) == law.pmf(high + far) == 0
            assert law.cdf(low - far) == law.pmf(low - far) == 0
            assert law.sf(low - far) == law.cdf(high + far) == 1


def test_the_last_weights_may_be_zero():
    assert PiecewiseConstant([TOTAL - 2, 1, 0]).support == (-2, 2)


def test_intervals_of_no_level_hold_one_number():
    for law in (DiscreteLaplace(3), Geometric(5), DiscreteGaussian(4)):
        low, high = law.interval(1e-30)
        assert low == high == law.quantile(0.5)


def test_coins_of_the_finest_probability():
    fine = Fraction(1, 1 << 64)
    assert not packed_bernoulli(fine, rows=50, columns=9, rng=SeededRandomSource(1, width=16)).any()
    with pytest.raises(InvalidArgument, match=r"multiple of 2\*\*-64"):
        packed_bernoulli(fine / 2, rows=1, columns=1, rng=seeded_rng(1))
