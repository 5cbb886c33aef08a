"""Two independent routes to every cumulative probability and moment, and the quantiles."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import seeded_rng

_HALF = [int(2.0**62 * 0.5**k / 3) for k in range(1, 12)]
STEPPED = PiecewiseConstant([TOTAL - 2 * sum(_HALF), *_HALF])
WIDE = PiecewiseConstant([TOTAL - 2 * sum(_HALF), *_HALF], width=5)
LAWS = [
    Geometric(Fraction(1, 5)),
    Geometric(40),
    DiscreteLaplace(Fraction(1, 5)),
    DiscreteLaplace(1),
    DiscreteLaplace(Fraction(100, 3)),
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(1),
    DiscreteGaussian(Fraction(77, 3)),
    BoundedDiscreteLaplace(3, lower=-5, upper=12),
    BoundedDiscreteLaplace(50, lower=0, upper=9),
    BoundedDiscreteLaplace(Fraction(1, 4), lower=-2, upper=0),
    Staircase(1, shift=1, tread=1),
    Staircase(Fraction(1, 3), shift=7, tread=3),
    Staircase(3, shift=5, tread=1),
    STEPPED,
    WIDE,
]


def lattice(law):
    low, high = law.support
    reach = math.ceil(60 * max(1.0, law.std))
    return np.arange(max(low, -reach), min(high, reach) + 1)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_masses_sum_to_the_distribution_function(law):
    k = lattice(law)
    masses = law.pmf(k)
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    assert law.cdf(k) == pytest.approx(np.cumsum(masses), abs=1e-12)
    assert law.sf(k) == pytest.approx(1 - np.cumsum(masses), abs=1e-12)
    assert law.cdf(k + 0.5) == pytest.approx(law.cdf(k), abs=0)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_moments_equal_their_sums(law):
    k = lattice(law).astype(float)
    for order in (1, 2, 3, 4):
        scale = math.fsum(np.abs(k) ** order * law.pmf(k))
        assert law.moment(order) == pytest.approx(
            math.fsum(k**order * law.pmf(k)), abs=1e-9 * scale + 1e-15
        )


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_enclosures_hold_the_closed_form(law):
    for k in (-4, -1, 0, 1, 2, 7):
        low, high = law.at_least(k, 200)
        assert 0 <= high - low <= 1 << 40  # at most 2**-160 wide
        assert low / 2**200 == pytest.approx(float(law.sf(k - 1)), abs=1e-15, rel=1e-12)


def test_laplace_enclosures_hold_the_true_value():
    """Against arbitrary precision: 60 digits, far beyond what a double could confirm."""
    mpmath.mp.dps = 80
    r = mpmath.exp(-mpmath.mpf(3) / 7)
    low, high = DiscreteLaplace(Fraction(7, 3)).at_least(5, 220)
    true = r**5 / (1 + r) * mpmath.mpf(2) ** 220
    assert low <= true <= high


def test_gaussian_enclosures_hold_the_true_value():
    mpmath.mp.dps = 80
    weight = [mpmath.exp(-mpmath.mpf(k * k) / 18) for k in range(200)]
    total = 2 * mpmath.fsum(weight[1:]) + 1
    for k in (1, 4, 10):
        low, high = DiscreteGaussian(3).at_least(k, 200)
        assert low <= mpmath.fsum(weight[k:]) / total * mpmath.mpf(2) ** 200 <= high


def test_large_gaussians_agree_with_the_summed_ones():
    """The smooth tail continues the summed one where the table ends."""
    law = DiscreteGaussian(2000)
    k = np.arange(0, 16000, 371)
    assert law._smooth_tail(k + 1.0) == pytest.approx(law.sf(k), rel=1e-10)


@given(st.sampled_from(LAWS), st.floats(1e-12, 1 - 1e-12))
def test_quantiles_invert(law, p):
    k = law.quantile(p)
    assert law.cdf(k) >= p
    assert law.cdf(k - 1) < p or k == law.support[0]


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9])
def test_intervals_cover(law, level):
    low, high = law.interval(level)
    covered = 1 - float(law.cdf(low - 1)) - float(law.sf(high))
    assert covered >= level - 1e-15
    tail = (1 - level) / 2
    assert law.sf(high - 1) > tail or high == low  # no shorter one has equal tails


@pytest.mark.parametrize("kind", [Geometric, DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, "1", None, True, 2**200])
def test_bad_scales_are_refused(kind, bad):
    with pytest.raises(InvalidArgument):
        kind(bad)


def test_bad_sizes_are_refused_and_zero_draws_nothing():
    class Forbidden:
        width = 64

        def words(self, count):
            assert count == 0
            return np.empty(0, dtype=np.uint64)

    for law in LAWS:
        assert len(law.sample(0, Forbidden())) == 0
        for bad in (-1, 1.5, True):
            with pytest.raises(InvalidArgument, match="size"):
                law.sample(bad, seeded_rng(1))
