"""Words beside the exact border of two outcomes: no double can tell them apart, the draws must.

A word is the first bits of a uniform number, and an outcome is at least k exactly if that number
is below P(X >= k). The words next to it are certain for every continuation.
"""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.noise import gaussian as blocks
from discreet.noise import laplace as exponential
from discreet.noise import uniform
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian, GaussianMagnitude
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.random_source import seeded_rng

NEAR = (1, 2, 3, 10, 100, 1000)


class Given:
    """These words first, then any."""

    width = 64
    private = False

    def __init__(self, words):
        self._first = [np.array(words, dtype=np.uint64)]
        self._rest = seeded_rng(91)

    def words(self, count):
        return self._first.pop() if self._first else self._rest.words(count)


def beside(border, precision):
    """Words that are below the border for certain, and words that are above."""
    low, high = border(precision)
    assert high - low <= 2
    under = [low - near for near in NEAR if low >= near]
    above = [high - 1 + near for near in NEAR if high + near <= 1 << precision]
    return under, above


def decided(draw, border, precision, turned=lambda word: word):
    """Whether the draws are at least k for all words below the border, and for none above."""
    under, above = beside(border, precision)
    reached = draw(Given([turned(word) for word in (*under, *above)]), len(under) + len(above))
    return reached.tolist() == [True] * len(under) + [False] * len(above)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(37, 3), Fraction(10**6)])
def test_geometric(scale, k):
    law = Geometric(scale)
    k *= -(-scale.numerator // scale.denominator)
    assert decided(lambda bits, n: law.sample(n, bits) >= k, partial(law.at_least, k), 63)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(37, 3), Fraction(10**6)])
@pytest.mark.parametrize("sign", [0, 1 << 63])
def test_laplace(scale, k, sign):
    law = DiscreteLaplace(scale)
    k *= -(-scale.numerator // scale.denominator)

    def border(precision):  # the size is twice as likely as one side
        return law.at_least(k, precision + 1)

    assert decided(
        lambda bits, n: np.abs(law.sample(n, bits)) >= k, border, 63, lambda word: word | sign
    )


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 6])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5), Fraction(10**6)])
def test_bounded(scale, k):
    unit = -(-scale.numerator // scale.denominator)
    law = BoundedDiscreteLaplace(scale, lower=-4 * unit, upper=7 * unit)
    border = partial(law.at_least, k * unit)
    assert decided(lambda bits, n: law.sample(n, bits) >= k * unit, border, 64)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(700)])
def test_gaussian(sigma, k):
    law = DiscreteGaussian(sigma)
    k *= -(-sigma.numerator // sigma.denominator)
    border = partial(GaussianMagnitude(law.square, folded=True).at_least, k)
    last = (1 << 63) - 1  # the table counts from below
    assert decided(
        lambda bits, n: np.abs(law.sample(n, bits)) >= k, border, 63, lambda word: last - word
    )


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(1), Fraction(22, 7), Fraction(30)])
def test_coins(exponent):
    border = partial(exp_minus, exponent)
    assert decided(
        lambda bits, n: uniform.bernoulli_exp(np.ones(n, dtype=np.int64), exponent, bits),
        border,
        64,
    )
    assert decided(lambda bits, n: uniform.bernoulli_real(border, n, bits), border, 64)


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_choices(index):
    scores, rate = np.array([3, 0, 5, 5, -4]), Fraction(1, 3)
    borders = uniform._Borders(scores.max() - scores, rate)
    for below, words in zip((True, False), beside(partial(borders.end, index), 64), strict=True):
        chosen = [uniform.exponential_choice(scores, rate, Given([word])) for word in words]
        assert chosen
        assert all((choice <= index) == below for choice in chosen)


def test_a_margin_that_is_too_small_is_seen(monkeypatch):
    """With no allowance for double precision some of these words fall on the wrong side."""
    cases = [Fraction(n, 7) for n in range(1, 12)]

    def all_decided():
        return all(
            decided(
                lambda bits, n, e=e: uniform.bernoulli_exp(np.ones(n, dtype=np.int64), e, bits),
                partial(exp_minus, e),
                64,
            )
            for e in cases
        )

    assert all_decided()
    monkeypatch.setattr(uniform, "_EXP_ERROR", 0.0)
    assert not all_decided()


def test_a_laplace_margin_that_is_too_small_is_seen(monkeypatch):
    law = DiscreteLaplace(Fraction(37, 3))

    def all_decided():
        return all(
            decided(
                lambda bits, n, k=k: np.abs(law.sample(n, bits)) >= k,
                lambda precision, k=k: law.at_least(k, precision + 1),
                63,
            )
            for k in range(1, 60)
        )

    assert all_decided()
    made = exponential._precision(37 / 3, 64)
    trusting = exponential._Precision(made.half, made.longest, 0.0)
    monkeypatch.setattr(exponential, "_precision", lambda *_: trusting)
    assert not all_decided()


@pytest.mark.parametrize("square", [Fraction(n * n, 9) for n in range(1, 40, 2)], ids=str)
def test_tables_never_fall(square):
    for folded in (False, True):
        ends = GaussianMagnitude(square, folded=folded).ends
        assert ends[0] > 0
        assert np.all(np.diff(ends) >= 0)


@pytest.mark.parametrize("exact_place", [True, False])
@pytest.mark.parametrize("sigma", [5000, 10**6])
def test_acceptance_in_blocks(sigma, exact_place):
    """The coin against exp(-(place (2 edge + place)) / (2 sigma^2)), place by place."""
    law = blocks.BlockGaussian(Fraction(sigma**2))
    place_bits = law.block.bit_length() - 1 if exact_place else 40
    draw = blocks._Draw.of(law, 400, seeded_rng(92), place_bits=place_bits)
    scale = 1 if exact_place else Fraction(law.block, 1 << place_bits)
    coins, expected = [], []
    for i, (block, place) in enumerate(zip(draw.blocks, draw.places, strict=True)):
        edge = int(block) * law.block
        ends = [scale * (int(place) + more) for more in (0, 0 if exact_place else 1)]
        powers = [end * (2 * edge + end) / (2 * law.square) for end in ends]
        most, least = (exp_minus(Fraction(power), draw.coin_bits) for power in powers)
        below = i % 2 == 0
        near = 1 + i // 2 % 50
        coin = least[0] - near if below else most[1] - 1 + near
        certain = 0 <= coin < 1 << draw.coin_bits
        coins.append(coin if certain else 0)
        expected.append(below or not certain)
    draw.coins = np.array(coins, dtype=np.int64)
    assert draw.accepted(exact_place=exact_place).tolist() == expected
