"""The fast path decides as the exact path does, and long samples follow the law."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.noise import gaussian as magnitude
from discreet.noise import laplace as exponential
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import BlockGaussian, DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import SeededRandomSource, seeded_rng, system_rng
from discreet.noise.uniform import bernoulli_exp, uniform_integers
from tests.distributions import distance, follows, frequency

N = 200_000

_HALF = [int(2.0**62 * 0.5**k / 3) for k in range(1, 12)]
STEPPED = PiecewiseConstant([TOTAL - 2 * sum(_HALF), *_HALF])
WIDE = PiecewiseConstant([TOTAL - 2 * sum(_HALF), *_HALF], width=5)
LAWS = [
    Geometric(3),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(1),
    DiscreteLaplace(1000),
    DiscreteLaplace(10**6),
    DiscreteLaplace(1 << 40),
    DiscreteGaussian(Fraction(1, 2)),
    DiscreteGaussian(10),
    DiscreteGaussian(1000),
    DiscreteGaussian(10**6),
    BoundedDiscreteLaplace(5, lower=-7, upper=20),
    BoundedDiscreteLaplace(10**6, lower=-(10**6), upper=3 * 10**6),
    Staircase(Fraction(1, 3), shift=7, tread=3),
    Staircase(2, shift=4, tread=4),
    STEPPED,
    WIDE,
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_samples_follow_the_law(law):
    assert follows(law.sample(N, seeded_rng(20)), law.cdf)


@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
@pytest.mark.parametrize("kind", [Geometric, DiscreteLaplace, DiscreteGaussian])
def test_the_check_rejects_another_scale(kind, factor):
    sample = kind(50 * factor).sample(N, seeded_rng(21))
    assert not follows(sample, kind(50).cdf)


def test_the_check_rejects_one_sided_noise():
    law = DiscreteLaplace(50)
    assert not follows(np.abs(law.sample(N, seeded_rng(22))), law.cdf)


@pytest.mark.parametrize("width", [8, 12, 20])
@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(3), DiscreteGaussian(4), BoundedDiscreteLaplace(3, lower=-4, upper=9)],
    ids=repr,
)
def test_narrow_words_follow_the_same_law(law, width):
    """Short words force the refinement path on a large part of the draws."""
    assert follows(law.sample(20_000, SeededRandomSource(23, width=width)), law.cdf)


def test_system_bits_follow_the_law_too():
    law = DiscreteLaplace(7)
    assert distance(law.sample(N, system_rng()), law.cdf) < 0.01


class TwoStreams:
    """The words of the draws come from one stream, the words of refinements from another."""

    width = 64
    private = False

    def __init__(self, seed):
        self._draws = seeded_rng(seed)
        self._more = seeded_rng(seed + 1)

    def words(self, count):
        return self._more.words(1) if count == 1 else self._draws.words(count)


def test_fast_and_exact_laplace_agree_draw_by_draw(monkeypatch):
    for scale in (Fraction(1, 2), 7, 1000, 1 << 30):
        law = DiscreteLaplace(scale)
        rounded = RoundedLaplace(Fraction(scale), 0)
        values = np.linspace(-3, 3, 500)
        fast = law.sample(500, TwoStreams(5)), rounded.add(values, TwoStreams(5))
        with monkeypatch.context() as patched:
            half = exponential._precision(1.0, 64).half
            everything = exponential._Precision(half, 0.0, 1.0)  # nothing is certain
            patched.setattr(exponential, "_precision", lambda *_, doubt=everything: doubt)
            exact = law.sample(500, TwoStreams(5)), rounded.add(values, TwoStreams(5))
        assert np.array_equal(fast[0], exact[0])
        assert np.array_equal(fast[1], exact[1])


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(1000)])
def test_single_draws_agree_with_arrays(scale):
    """One draw at a time uses plain numbers: the same words give the same draws."""
    for k, law in enumerate((DiscreteLaplace(scale), Geometric(scale))):
        bits, again = seeded_rng(900 + k), seeded_rng(900 + k)
        together = law.sample(300, bits)
        assert together.tolist() == [int(law.sample(1, again)[0]) for _ in range(300)]
    bits, again = seeded_rng(910), seeded_rng(910)
    noise = RoundedLaplace(scale, 0)
    together = noise.add(np.full(300, 0.3), bits)
    assert together.tolist() == [int(noise.add(np.array([0.3]), again)[0]) for _ in range(300)]


def test_fast_and_exact_gaussian_agree_draw_by_draw(monkeypatch):
    law = DiscreteGaussian(30)
    fast = law.sample(300, TwoStreams(6))
    monkeypatch.setattr(magnitude, "_TABLE_ERROR", (1 << 63) - 1)
    assert np.array_equal(fast, law.sample(300, TwoStreams(6)))


def test_large_scales_are_split_correctly(monkeypatch):
    monkeypatch.setattr("discreet.noise.laplace.LARGEST_SCALE", 2)
    for scale in (6, 40):
        assert follows(DiscreteLaplace(scale).sample(N, seeded_rng(24)), DiscreteLaplace(scale).cdf)


@pytest.mark.parametrize("value", [0.0, 0.49, -0.3])
def test_rounded_noise_follows_the_rounded_law(value):
    from scipy import stats

    for noise, law in (
        (RoundedLaplace(Fraction(40), 0), stats.laplace(value, 40)),
        (RoundedGaussian(Fraction(1600), 0), stats.norm(value, 40)),
    ):
        sample = noise.add(np.full(N, value), seeded_rng(25))
        assert follows(sample, lambda k, law=law: law.cdf(k + 0.5))
        assert not follows(sample, lambda k, law=law: law.cdf((k + 0.5) * 1.1))


def test_blocks_follow_the_law():
    class Sixteen(BlockGaussian):
        @property
        def block(self):
            return 16

    law = DiscreteGaussian(300)
    assert follows(Sixteen(Fraction(90000)).integers(N, seeded_rng(26)), law.cdf)


def test_coins_and_integers_have_their_frequencies():
    assert frequency(
        bernoulli_exp(np.full(N, 3), Fraction(1, 4), seeded_rng(27)).sum(), N, np.exp(-0.75)
    )
    assert not frequency(bernoulli_exp(np.full(N, 3), Fraction(1, 4), seeded_rng(27)).sum(), N, 0.5)
    assert frequency((uniform_integers(10, N, seeded_rng(28)) == 3).sum(), N, 0.1)


def test_the_assumed_accuracy_of_log_and_exp_holds():
    """The fast paths take log and exp to be good to 4 units in the last place."""
    mpmath.mp.prec = 120
    words = seeded_rng(29).words(4000)
    u = np.concatenate(
        [words * 2.0**-64, 1 - np.arange(1, 200) * 2.0**-53, 2.0 ** -np.arange(1, 64.0)]
    )
    for function, true, x in ((np.log, mpmath.log, u), (np.exp, mpmath.exp, -40 * u)):
        got = function(x)
        worst = max(
            abs((mpmath.mpf(float(g)) - true(mpmath.mpf(float(v)))) / np.spacing(abs(g)))
            for g, v in zip(got, x, strict=True)
        )
        assert worst <= 4


def test_ten_million_draws_need_little_memory():
    """Peak of traced memory: the result and a few cache-sized buffers."""
    import tracemalloc

    tracemalloc.start()
    DiscreteLaplace(1000).sample(10**7, seeded_rng(30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
