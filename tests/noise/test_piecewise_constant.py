"""How much is asked of the source of bits at a time, and what is assumed when nothing is said."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.noise import gaussian as blocks
from discreet.noise import laplace
from discreet.noise import laplace as exponential
from discreet.noise import random_source as bits_module
from discreet.noise._packed_bernoulli import Patterns, dyadic, packed_bernoulli
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import BlockGaussian, DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant
from discreet.noise.random_source import SeededRandomSource, seeded_rng, system_rng
from discreet.noise.uniform import LazyUniform
from tests.choice_tree import enumerate_sampler


class Asked:
    """Seeded words, and how many were asked for each time."""

    width = 64
    private = False

    def __init__(self):
        self._source = seeded_rng(5)
        self.counts = []

    def words(self, count):
        self.counts.append(count)
        return self._source.words(count)


@pytest.mark.parametrize(
    "sampler",
    [
        DiscreteLaplace(7).sample,
        Geometric(7).sample,
        Geometric(1 << 33).sample,
        DiscreteLaplace(1 << 33).sample,
        DiscreteGaussian(30).sample,
        DiscreteGaussian(2048).sample,
        BoundedDiscreteLaplace(7, lower=-9, upper=9).sample,
        lambda n, bits: RoundedLaplace(Fraction(7), 0).add(np.zeros(n), bits),
    ],
)
def test_noise_is_drawn_in_pieces_of_8192_one_word_a_draw(sampler):
    bits = Asked()
    assert len(sampler(8193, bits)) == 8193
    assert bits.counts[:1] == [8192]
    assert bits.counts[-1] == 1
    assert sum(bits.counts) < 8193 + 20  # hardly ever is a draw refined


@pytest.mark.parametrize("sigma", [2049, 5000])
def test_blocks_are_drawn_in_pieces_of_8192_two_words_a_draw(sigma):
    bits = Asked()
    DiscreteGaussian(sigma).sample(8193, bits)
    assert bits.counts[:2] == [8192, 8192]
    assert max(bits.counts[2:]) < 1000
    bits = Asked()
    BlockGaussian(Fraction(sigma**2)).rounded(np.zeros(8193), 0, bits)
    assert bits.counts[:2] == [8192, 8192]
    assert max(bits.counts[2:]) < 1000


def test_five_eighths_of_a_word_are_a_place_and_the_rest_is_a_coin(monkeypatch):
    shares = {}
    plain = blocks._Draw.of

    def of(*given, place_bits):
        draw = plain(*given, place_bits=place_bits)
        shares[given[2].width] = draw.place_bits, draw.coin_bits
        return draw

    monkeypatch.setattr(blocks._Draw, "of", of)
    for width in (64, 16, 9, 6, 2):
        BlockGaussian(Fraction(900)).rounded(np.zeros(1), 0, SeededRandomSource(1, width=width))
    assert shares == {64: (40, 24), 16: (10, 6), 9: (5, 4), 6: (3, 3), 2: (1, 1)}


def test_coins_are_made_2_to_the_18_bytes_at_a_time():
    bits = Asked()
    packed_bernoulli(Fraction(1, 2), rows=(1 << 18) + 1, columns=8, rng=bits)
    assert bits.counts == [1 << 16, 1]


def test_long_requests_are_fetched_in_pieces(monkeypatch):
    asked = []
    plain = bits_module.ssl.RAND_bytes
    monkeypatch.setattr(
        bits_module.ssl, "RAND_bytes", lambda size: asked.append(size) or plain(size)
    )
    assert len(np.unique(system_rng().words(70_000))) == 70_000
    assert asked == [8 << 15, 8 << 15, 8 * (70_000 - (2 << 15))]


def test_sources_have_64_bits():
    assert system_rng().width == seeded_rng(1).width == SeededRandomSource(1).width == 64


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_as_many_draws_as_asked_for(size):
    for law in (DiscreteLaplace(3), Geometric(3), DiscreteGaussian(3), DiscreteGaussian(3000)):
        assert len(law.sample(size, seeded_rng(1))) == size
    assert len(RoundedLaplace(Fraction(3), 0).add(np.zeros(size), seeded_rng(1))) == size


def test_noise_out_of_range_is_cut_where_it_says():
    """Three quarters of the 64-bit integers: what is added to it is noticed as out of range."""
    most = 3 * 2**61 - 1
    for far, expected in ((most, most), (most + 1, most), (most - 1, most - 1), (1 << 80, most)):
        for sign in (1, -1):
            decide = lambda _index, _sign, _uniform, v=sign * far: v  # noqa: E731
            assert exponential._decided(5, 0, seeded_rng(1), decide) == sign * expected


def test_unread_numbers_start_at_nothing():
    lazy = LazyUniform(SeededRandomSource(3, width=8))
    assert (lazy.value, lazy.bits) == (0, 0)
    lazy.extend()
    assert (lazy.value, lazy.bits) == (int(SeededRandomSource(3, width=8).words(1)[0]), 8)


def test_single_places_take_one_word_a_draw():
    bits = Asked()
    PiecewiseConstant([TOTAL - 2, 1]).sample(300, bits)
    assert sum(bits.counts) == 300


def test_walks_are_not_private():
    assert enumerate_sampler(lambda bits: bits.private).masses == {False: 1}


def test_places_in_a_block_are_all_accepted_by_the_same_rate(monkeypatch):
    asked = []

    def coins(steps, rate, _bits):
        asked.append((len(steps), rate))
        return np.arange(len(steps)) % 2 == len(asked) % 2

    monkeypatch.setattr(laplace, "bernoulli_exp", coins)
    Geometric(1 << 40).sample(8, seeded_rng(2))
    assert [count for count, _ in asked][:2] == [8, 4]
    assert {rate for _, rate in asked} == {Fraction(1, 1 << 40)}


def test_cells_have_one_place_unless_told():
    assert PiecewiseConstant([TOTAL]).width == 1
    assert PiecewiseConstant([TOTAL - 2, 1]).support == (-1, 1)


def test_walks_go_three_words_of_eight_bits_deep_unless_told():
    assert enumerate_sampler(lambda bits: bits.width).masses == {8: 1}
    for deep, unresolved in ((3, 0), (4, 1)):
        walked = enumerate_sampler(lambda bits, deep=deep: int(bits.words(deep)[0]), width=1)
        assert walked.unresolved == unresolved


def test_the_first_scale_that_is_split():
    """Just above 2**33 a draw is a block of two and a place in it."""
    for kind in (Geometric, DiscreteLaplace):
        law = kind((1 << 33) + 1)
        bits = Asked()
        draws = law.sample(2000, bits)
        assert sum(bits.counts) >= 3 * 2000
        assert len(set((draws % 2).tolist())) == 2


def test_patterns_of_few_bits_are_drawn_from_long_words():
    law = Patterns.of(Fraction(1, 4), 3, 6)
    out = np.empty(4000, dtype=np.uint8)
    law.draw(out, seeded_rng(9))
    found = np.bincount(out, minlength=8) / 4000
    exact = [0.25 ** k.bit_count() * 0.75 ** (3 - k.bit_count()) for k in range(8)]
    assert found == pytest.approx(exact, abs=0.05)


def test_dyadic_numbers_have_32_places_unless_told():
    third = partial(exp_minus, Fraction(11, 10))
    assert dyadic(third, up=False) == third(32)[0]
    assert dyadic(third, up=True) == third(32)[0] + 1
    assert dyadic(third, up=False, places=5) == third(5)[0]


def test_dyadic_numbers_are_asked_for_until_they_are_clear():
    asked = []

    def near_half(precision):  # 1/2 + 2**-100, which is irrational as far as anyone can see
        asked.append(precision)
        low = (1 << precision - 1) + ((1 << precision) >> 100)
        return (low, low) if precision > 100 else (low - 1, low + 1)

    assert dyadic(near_half, up=False, places=4) == 8
    assert asked == [36, 72, 144]
