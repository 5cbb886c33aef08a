"""How narrow the exact enclosures are, and how good the doubles beside them."""

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.core.errors import InvalidArgument
from discreet.noise import bounded_laplace as bounded
from discreet.noise import gaussian as blocks
from discreet.noise import gaussian as magnitude
from discreet.noise import laplace as exponential
from discreet.noise import uniform
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace, _power_sum
from discreet.noise.gaussian import (
    _TABLE_ERROR,
    BlockGaussian,
    DiscreteGaussian,
    GaussianMagnitude,
    RoundedGaussian,
)
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase, power_sums
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from discreet.noise.uniform import LazyUniform, invert
from tests.choice_tree import enumerate_sampler
from tests.noise.test_distributions import LAWS, lattice


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_enclosures_are_narrow_and_agree_at_every_precision(law):
    for k in (-9, -4, -1, 0, 1, 2, 5, 13):
        fine = law.at_least(k, 300)
        for precision in (1, 8, 40, 64, 200):
            low, high = law.at_least(k, precision)
            assert 0 <= low <= high <= 1 << precision
            assert high - low <= 2
            more = 300 - precision
            assert low << more <= fine[1]
            assert high << more >= fine[0]


@pytest.mark.parametrize(
    "law",
    [*LAWS, Geometric(Fraction(7, 2)), BoundedDiscreteLaplace(2, lower=-1, upper=40)],
    ids=repr,
)
def test_means_and_variances_equal_their_sums(law):
    k = lattice(law).astype(float)
    mean = math.fsum(k * law.pmf(k))
    variance = math.fsum((k - mean) ** 2 * law.pmf(k))
    assert law.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert law.variance == pytest.approx(variance, rel=1e-9)
    assert law.std == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_outside_and_between_the_integers(law):
    low, high = law.support
    if math.isfinite(high):
        assert law.sf(high) == 0
        assert law.cdf(high) == 1
        assert law.pmf(high + 1) == 0
        assert law.pmf(high) > 0
    if math.isfinite(low):
        assert law.cdf(low - 1) == 0
        assert law.sf(low - 1) == 1
        assert law.pmf(low - 1) == 0
        assert law.pmf(low) > 0
    assert law.sf(0.5) == law.sf(0)
    assert law.sf(-0.5) == law.sf(-1)


@pytest.mark.parametrize("square", [Fraction(1, 4), Fraction(100), Fraction(2048**2)], ids=str)
@pytest.mark.parametrize("folded", [False, True])
def test_tables_are_as_good_as_they_say(square, folded):
    table = GaussianMagnitude(square, folded=folded)
    ends = table.ends
    assert ends[-1] == (1 << 63) - 1
    assert table.at_least(0, 63) == (1 << 63, 1 << 63)
    for k in sorted({0, 1, 2, len(ends) // 3, len(ends) // 2}):
        low, high = table.at_least(k + 1, 80)
        assert high - low <= 2
        above = (1 << 63) - int(ends[k])
        assert abs((above << 17) - low) <= _TABLE_ERROR << 13  # a sixteenth of the margin


def test_folded_tables_double_all_but_zero():
    mpmath.mp.dps = 60
    weights = [mpmath.exp(-mpmath.mpf(k * k) / 8) for k in range(120)]
    for folded in (False, True):
        doubled = [w * (2 if folded and k else 1) for k, w in enumerate(weights)]
        for k in (1, 3, 9):
            low, high = GaussianMagnitude(Fraction(4), folded=folded).at_least(k, 150)
            true = mpmath.fsum(doubled[k:]) / mpmath.fsum(doubled) * mpmath.mpf(2) ** 150
            assert low <= true <= high


def test_blocks_are_the_largest_powers_of_two_that_fit():
    sizes = {1: 1, 255: 1, 256: 1, 511: 1, 512: 2, 1023: 2, 1024: 4, 5000: 16, 1 << 48: 1 << 40}
    assert {sigma: BlockGaussian(Fraction(sigma**2)).block for sigma in sizes} == sizes


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [2e4, 3e5])
@pytest.mark.parametrize("upper", [1 << 18, (1 << 18) + 1, 900_000])
def test_long_sums_equal_the_terms_added_up(order, scale, upper):
    k = np.arange(1, upper + 1, dtype=float)
    added = math.fsum(k**order * np.exp(-k / scale))
    assert _power_sum(order, upper, 1 / scale) == pytest.approx(added, rel=1e-12)


def test_sums_without_an_end_equal_their_limits():
    for order in (1, 2, 3, 4):
        limit = math.factorial(order) * 1e5 ** (order + 1)
        assert _power_sum(order, 10**9, 1e-5) == pytest.approx(limit, rel=1e-4)
    assert _power_sum(1, 10**6, 2.0) == pytest.approx(math.exp(-2) / math.expm1(-2) ** 2, rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_power_sums_are_sums_of_powers(n):
    assert power_sums(n) == tuple(sum(u**i for u in range(n)) for i in range(5))


@pytest.mark.parametrize(
    "law", [Staircase(1, shift=7, tread=3), BoundedDiscreteLaplace(4, lower=-9, upper=20)], ids=repr
)
def test_sizes_of_noise_equal_their_sums(law):
    k = lattice(law).astype(float)
    for order in (1, 2, 3, 4):
        summed = math.fsum(np.abs(k) ** order * law.pmf(k))
        assert law.absolute_moment(order) == pytest.approx(summed, rel=1e-9)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize(
    "epsilon", [Fraction(0), Fraction(1, 2), Fraction(3), Fraction(45)], ids=str
)
def test_divergences_of_steps_are_those_of_the_masses(width, epsilon):
    mpmath.mp.dps = 60
    law = PiecewiseConstant([TOTAL // 2, TOTAL // 8, TOTAL // 16, TOTAL // 16], width=width)
    reach = int(law.support[1])
    mass = {
        k: mpmath.mpf(law.weights[(abs(k) + width // 2) // width]) / TOTAL / width
        for k in range(-reach, reach + 1)
    }
    assert mpmath.almosteq(mpmath.fsum(mass.values()), 1)
    factor = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    for shift in (0, 1, 2, 4, 30):
        true = mpmath.fsum(
            max(mpmath.mpf(0), own - factor * mass.get(k - shift, 0)) for k, own in mass.items()
        )
        claimed = law.delta(shift, epsilon)
        ratio = mpmath.mpf(claimed.numerator) / claimed.denominator
        assert -(mpmath.mpf(10) ** -50) <= ratio - true < mpmath.mpf(2) ** -60


@pytest.mark.parametrize("guess", [-40, -3, 0, 1, 2, 7, 90])
def test_every_guess_is_led_to_the_same_number(guess):
    law = Geometric(3)
    for word in range(0, 256, 5):
        lazy = LazyUniform(seeded_rng(word), value=word, bits=8)
        found = invert(lazy, lambda k: partial(law.at_least, k), guess)
        low, high = (Fraction(end, 1 << lazy.bits) for end in (lazy.value, lazy.value + 1))
        least, most = (law.at_least(k, 400) for k in (found, found + 1))
        assert high <= Fraction(least[1], 1 << 400)
        assert low >= Fraction(most[0], 1 << 400)


def test_comparisons_stop_as_soon_as_they_are_certain():
    half = Fraction(1, 2)
    for value, below in itertools.product(range(4), (half, Fraction(1, 4), Fraction(3, 4))):
        lazy = LazyUniform(seeded_rng(1), value=value, bits=2)

        def threshold(precision, below=below):
            exact = below * (1 << precision)
            assert exact.denominator == 1
            return int(exact), int(exact)

        assert lazy.below(threshold) == (Fraction(value, 4) < below)
        assert lazy.bits == 2  # the number is certain from its first two bits


def test_walks_are_complete():
    walked = enumerate_sampler(lambda bits: int(bits.words(2).sum()), width=2, depth=2)
    assert walked.unresolved == 0
    assert walked.masses == {s: Fraction(min(s + 1, 7 - s), 16) for s in range(7)}
    cut = enumerate_sampler(
        lambda bits: int(bits.words(1)[0]) or int(bits.words(1)[0]), width=1, depth=1
    )
    assert cut.masses == {1: Fraction(1, 2)}
    assert cut.unresolved == Fraction(1, 2)


def test_narrow_words_are_the_first_bits_of_wide_ones():
    wide = seeded_rng(0).words(50)
    for width in (2, 7, 63):
        assert np.array_equal(
            SeededRandomSource(0, width=width).words(50), wide >> np.uint64(64 - width)
        )
    assert np.array_equal(SeededRandomSource(0, width=64).words(50), wide)
    for bad in ({"seed": -1}, {"seed": 0, "width": 1}):
        with pytest.raises(InvalidArgument, match=f"{list(bad)[-1]} must be at least"):
            SeededRandomSource(**bad)


@pytest.mark.parametrize(
    "sampler",
    [
        lambda n, bits: Geometric(50).sample(n, bits),
        lambda n, bits: DiscreteLaplace(Fraction(1, 3)).sample(n, bits),
        lambda n, bits: DiscreteLaplace(1000).sample(n, bits),
        lambda n, bits: [DiscreteLaplace(1000).sample(1, bits) for _ in range(n // 10)],
        lambda n, bits: DiscreteGaussian(1000).sample(n, bits),
        lambda n, bits: DiscreteGaussian(10**6).sample(n, bits),
        lambda n, bits: BoundedDiscreteLaplace(1000, lower=-500, upper=3000).sample(n, bits),
        lambda n, bits: RoundedLaplace(Fraction(1000), -3).add(np.linspace(0, 9, n), bits),
        lambda n, bits: RoundedGaussian(Fraction(10**12), -3).add(np.linspace(0, 9, n), bits),
        lambda n, bits: RoundedGaussian(Fraction(4), 1).add(np.linspace(0, 9, n), bits),
        lambda n, bits: uniform.bernoulli_exp(np.arange(n), Fraction(1, 500), bits),
        lambda n, bits: uniform.bernoulli_real(partial(exp_minus, Fraction(1, 2)), n, bits),
    ],
)
def test_few_draws_need_the_exact_path(monkeypatch, sampler):
    """Wide words settle all but one draw in many thousands: this is what makes it fast."""
    asked = []

    class Noted(LazyUniform):
        def __init__(self, *arguments, **options):
            asked.append(1)
            super().__init__(*arguments, **options)

    for module in (blocks, bounded, exponential, magnitude, uniform):
        monkeypatch.setattr(module, "LazyUniform", Noted)
    sampler(20_000, seeded_rng(81))
    assert len(asked) <= 1
    asked.clear()
    sampler(4000, SeededRandomSource(81, width=12))
    assert asked  # narrow words do not


def test_coins_that_are_almost_certain():
    almost = partial(exp_minus, Fraction(1, 10**30))
    assert almost(64)[1] == 1 << 64  # no word is that large
    assert uniform.bernoulli_real(almost, 500, seeded_rng(82)).all()
    assert uniform.bernoulli_real(almost, 500, SeededRandomSource(82, width=6)).all()
    never = partial(exp_minus, Fraction(10**3))
    assert not uniform.bernoulli_real(never, 500, SeededRandomSource(82, width=6)).any()
    assert uniform.bernoulli(1, 50, seeded_rng(83)).all()
    assert not uniform.bernoulli(0, 50, seeded_rng(83)).any()


def test_guesses_are_good():
    """A guess is never trusted, but a bad one makes the search long."""
    for width, value in itertools.product((2, 64), (0, 1, 100, 255)):
        lazy = LazyUniform(SeededRandomSource(84, width=width), value=value, bits=8)
        guessed = exponential.guess(lazy, Fraction(50))
        middle = (lazy.value + 0.5) / 2.0 ** (8 + width)
        assert guessed == pytest.approx(-50 * math.log(middle), rel=1e-12)
