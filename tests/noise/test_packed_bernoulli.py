"""Packed coins: the table and its remainder are exactly the product law, for every short word."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.core.errors import InvalidArgument
from discreet.noise import _packed_bernoulli as coins
from discreet.noise._packed_bernoulli import Patterns, dyadic, packed_bernoulli
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from tests.choice_tree import enumerate_sampler
from tests.distributions import frequency

OUE = Fraction(1155091047, 1 << 32)


def mass(pattern, p, size):
    ones = pattern.bit_count()
    return p**ones * (1 - p) ** (size - ones)


@pytest.mark.parametrize("p", [0, Fraction(1, 1 << 32), OUE, Fraction(1, 2), Fraction(3, 4), 1])
def test_the_table_and_its_remainder_are_the_law(p):
    """In rationals, for all 256 patterns: what production draws from."""
    p = Fraction(p)
    law = Patterns.of(p, 8, 16)
    settled = np.bincount(law.table[: law.settled], minlength=256)
    left = (1 << 16) - law.settled
    widths = np.diff([Fraction(0), *law.ends])
    remainder = dict(zip(law.rest.tolist(), widths, strict=True))
    for pattern in range(256):
        found = Fraction(int(settled[pattern])) + left * remainder.get(pattern, Fraction(0))
        assert found / (1 << 16) == mass(pattern, p, 8)
    assert not law.ends or law.ends[-1] == 1
    assert left <= 256


@pytest.mark.parametrize("p", [Fraction(m, 32) for m in (1, 5, 11, 16, 23, 31)])
@pytest.mark.parametrize("width", [3, 4])
def test_draws_by_enumeration(p, width):
    """Every string of short words: cut words are refined until they are clear."""
    law = Patterns.of(p, 3, 4)

    def sampler(rng):
        out = np.empty(1, dtype=np.uint8)
        law.draw(out, rng)
        return int(out[0])

    found = enumerate_sampler(sampler, width=width, depth=5)
    for pattern in range(8):
        low = found.masses.get(pattern, Fraction(0))
        assert low <= mass(pattern, p, 3) <= low + found.unresolved
    assert found.unresolved < Fraction(1, 100)


def test_enumeration_sees_a_remainder_that_is_rounded(monkeypatch):
    """A remainder that gives cut words to the lower side is not the law."""
    law = Patterns.of(Fraction(5, 32), 3, 4)
    monkeypatch.setattr(Patterns, "_decide", lambda _self, _uniform, first: first)

    def sampler(rng):
        out = np.empty(1, dtype=np.uint8)
        law.draw(out, rng)
        return int(out[0])

    found = enumerate_sampler(sampler, width=3, depth=5)
    assert any(found.masses.get(x, 0) != mass(x, Fraction(5, 32), 3) for x in range(8))


def test_rows_have_the_stated_frequency_in_every_column():
    rows, columns = 40_000, 13
    packed = packed_bernoulli(OUE, rows=rows, columns=columns, rng=seeded_rng(1))
    assert packed.shape == (rows, 2)
    ones = np.unpackbits(packed, axis=1, bitorder="little")
    assert not ones[:, columns:].any()  # padding
    for column in range(columns):
        assert frequency(ones[:, column].sum(), rows, OUE)
        both = (ones[:, column] & ones[:, (column + 1) % columns]).sum()
        assert frequency(both, rows, OUE**2)
    assert frequency((ones[1:, 0] & ones[:-1, 0])[::2].sum(), rows // 2, OUE**2)
    assert not frequency(ones.sum(), rows * columns, float(OUE) * 1.02)
    assert not frequency(ones.sum(), rows * columns, float(OUE) * 0.98)


def test_chunks_are_all_filled(monkeypatch):
    monkeypatch.setattr(coins, "_CHUNK", 16)
    packed = packed_bernoulli(1, rows=11, columns=20, rng=seeded_rng(2))
    assert packed.tolist() == [[255, 255, 15]] * 11
    for shape in ((0, 20), (5, 0)):
        assert packed_bernoulli(1, rows=shape[0], columns=shape[1], rng=seeded_rng(2)).size == 0


def test_short_words_give_the_same_law():
    packed = packed_bernoulli(OUE, rows=20_000, columns=8, rng=SeededRandomSource(3, width=5))
    assert frequency(np.bitwise_count(packed).sum(), 160_000, OUE)


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 1 << 65), 1.5, -1])
def test_only_dyadic_probabilities(p):
    with pytest.raises(InvalidArgument, match="p must"):
        packed_bernoulli(p, rows=1, columns=1, rng=seeded_rng(4))


@pytest.mark.parametrize("exponent", [Fraction(1, 10), Fraction(1), Fraction(20), Fraction(100)])
def test_dyadic_rounds_outward(exponent):
    with localcontext() as context:
        context.prec = 80
        exact = (-Decimal(exponent.numerator) / exponent.denominator).exp() * (1 << 32)
        down, up = (dyadic(partial(exp_minus, exponent), up=way) for way in (False, True))
        assert down < exact < up
        assert up == down + 1
