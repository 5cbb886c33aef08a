"""Unary encodings: exact laws from their integer coins, the real path, hostile reports."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles import unary_encoding as unary
from discreet.local.oracles.unary_encoding import (
    ONE,
    OptimizedUnary,
    best_threshold,
    ones_by_position,
    oue,
    sue,
    threshold_histogram_encoding,
)
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA, mean_of
from tests.oracle_distributions import CountedBits, every_row, moments, ranges

ALL = [sue, oue, threshold_histogram_encoding]
SHARES = (0.4, 0.3, 0.2, 0.1)


def law(oracle):
    """Exact probabilities of all reports, from the integers of the coins."""
    p, q = (Fraction(coin, ONE) for coin in oracle.coins)

    def of(value):
        table = {}
        for report in product((0, 1), repeat=oracle.categories):
            mass = Fraction(1)
            for place, bit in enumerate(report):
                one = p if place == value else q
                mass *= one if bit else 1 - one
            table[report] = mass
        return table

    return of


@pytest.mark.parametrize("build", ALL)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 3, 12])
def test_epsilon_by_enumeration(build, epsilon):
    """The largest ratio over all reports and pairs of values, in rationals, against e^epsilon."""
    oracle = build(categories=4, epsilon=epsilon)
    tables = [law(oracle)(value) for value in range(4)]
    assert all(sum(table.values()) == 1 for table in tables)
    worst = max(one[s] / two[s] for one in tables for two in tables for s in one)
    assert worst == oracle.ratio
    _, high = exp_minus(Fraction(epsilon), 200)
    assert worst * high <= 1 << 200  # worst <= e^epsilon
    assert oracle.realized <= epsilon
    if build is not threshold_histogram_encoding:  # what rounding to 32 bits costs
        assert oracle.realized == pytest.approx(float(epsilon), rel=1e-4)
    assert oracle.certify().holds


@pytest.mark.parametrize("build", ALL)
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_mean_and_variance_by_enumeration(build, epsilon):
    oracle = build(categories=4, epsilon=epsilon)
    for low, high, weights in ranges(4):
        share, length = sum(SHARES[low : high + 1]), high - low + 1
        mean, variance = moments(oracle, law(oracle), weights, SHARES)
        assert mean == pytest.approx(share, abs=1e-12)
        assert float(oracle.range_variance(length, share)) == pytest.approx(variance, rel=1e-12)
        _, pinned = moments(oracle, law(oracle), weights - length / 4, SHARES)
        stated = float(oracle.pinned_variance(length, share))
        assert stated == pytest.approx(pinned, rel=1e-12, abs=1e-12)
    contrast = np.array([3, -1, -1, -1]) / math.sqrt(12)
    _, variance = moments(oracle, law(oracle), contrast, [0.25] * 4)
    assert oracle.contrast_variance() == pytest.approx(variance, rel=1e-12)


def test_published_numbers():
    """Variances at D=32, r=8; thresholds and their variances; true epsilons; contrasts."""
    for epsilon, optimized, symmetric in (
        (0.5, 125.6163, 127.3354),
        (1, 29.7116, 31.3416),
        (2, 6.0425, 7.3654),
    ):
        for build, variance in ((oue, optimized), (sue, symmetric)):
            oracle = build(categories=32, epsilon=epsilon)
            assert float(oracle.range_variance(8, 0.25)) == pytest.approx(variance, abs=6e-5)
    for epsilon, cut, variance in (
        (0.5, 0.5616, 17.828),
        (1, 0.6186, 4.8072),
        (2, 0.7096, 1.2836),
        (4, 0.8157, 0.28517),
    ):
        assert best_threshold(epsilon) == pytest.approx(cut, abs=6e-5)
        oracle = threshold_histogram_encoding(categories=4, epsilon=epsilon)
        assert float(oracle.variance(0)) == pytest.approx(variance, rel=3e-5)
    for epsilon, true in ((1, 0.896), (2, 1.636), (4, 2.859)):
        assert threshold_histogram_encoding(
            categories=4, epsilon=epsilon
        ).realized == pytest.approx(true, abs=6e-4)
    for d, variance in ((2, 4.183), (4, 3.933), (16, 3.745), (64, 3.698)):
        assert oue(categories=d, epsilon=1).contrast_variance() == pytest.approx(variance, rel=2e-4)


def test_what_is_spent_is_never_understated():
    """Against sixty digits; a ratio near one is a double only to half of its last place."""
    with localcontext(prec=60):
        for step in range(1, 200):
            oracle = oue(categories=4, epsilon=Fraction(step, 10_000))
            ratio = oracle.ratio
            spent = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert spent <= Decimal(oracle.realized) <= Decimal(float(oracle.epsilon))


def test_rounding_to_the_other_side_is_not_certified():
    class Loose(OptimizedUnary):
        @property
        def coins(self):
            keep, other = super().coins
            return keep, other - 1

    with pytest.raises(NotCertified):
        Loose(categories=4, epsilon=Fraction(1)).certify()


def test_a_report_is_coins_with_the_own_bit_thrown_anew(monkeypatch):
    """All patterns of other coins, both own coins, all values: the composition, exactly."""
    oracle = oue(categories=10, epsilon=1)
    patterns = every_row(2)[: 1 << 10]
    for coin in (False, True):
        monkeypatch.setattr(unary, "packed_bernoulli", lambda *_, **__: patterns.copy())
        monkeypatch.setattr(unary, "bernoulli", lambda _p, n, _b, c=coin: np.full(n, c))
        for value in range(10):
            rows = oracle.randomize(np.full(len(patterns), value), rng=seeded_rng(1))
            sent = np.unpackbits(rows, axis=1, bitorder="little")
            expected = np.unpackbits(patterns, axis=1, bitorder="little")
            expected[:, value] = coin
            assert np.array_equal(sent, expected)


class Swapped(OptimizedUnary):
    """Throws the coins for each other."""

    def randomize(self, value, *, rng=None):
        return ~super().randomize(value, rng=rng) & np.array([255, 15], dtype=np.uint8)


def consistent(oracle, n=40_000):
    """From values to counts: T ~ Bin(x, keep) + Bin(n - x, other) in each category."""
    truth = np.repeat(np.arange(12), np.r_[n // 2, np.full(10, n // 25), n // 10])
    counted = Aggregator(oracle).add(oracle.randomize(truth, rng=seeded_rng(71)))
    assert counted.reports == n
    x, p, q = np.bincount(truth), oracle.keep, oracle.other
    variance = x * p * (1 - p) + (n - x) * q * (1 - q)
    # Bernstein, so that no normal tail has to be trusted.
    room = math.log(2 * 12 / ALPHA)
    limit = np.sqrt(2 * variance * room) + room / 3
    error = np.abs(counted.counts - (x * p + (n - x) * q))
    return bool((error <= limit).all())


@pytest.mark.parametrize("build", ALL)
def test_reports_follow_the_law(build):
    assert consistent(build(categories=12, epsilon=1))


@pytest.mark.parametrize("build", ALL)
def test_variance_of_ranges_over_replicates(build):
    """3,000 collections of 20 clients: the variance of three ranges against the law of sums."""
    oracle = build(categories=9, epsilon=1)
    truth = np.tile(np.repeat(np.arange(9), [6, 5, 4, 3, 2, 0, 0, 0, 0]), 3000)
    rows = oracle.randomize(truth, rng=seeded_rng(74))
    ones = np.unpackbits(rows, axis=1, bitorder="little", count=9).reshape(3000, 20, 9)
    shares = (ones.mean(axis=1) - oracle.other) / (oracle.keep - oracle.other)
    for high, share in ((0, 0.3), (3, 0.9), (8, 1.0)):
        found = shares[:, : high + 1].sum(axis=1)
        variance = float(oracle.range_variance(high + 1, share)) / 20
        assert mean_of(found, share, variance)
        # A variance of 3,000 nearly normal numbers spreads by sqrt(2 / 3000), here six times.
        assert found.var() == pytest.approx(variance, rel=0.155)
        assert found.var() != pytest.approx(variance * 1.35, rel=0.155)


def test_a_wrong_encoding_does_not_follow_the_law():
    assert not consistent(Swapped(categories=12, epsilon=Fraction(1)))


@pytest.mark.parametrize("categories", [5, 8, 9, 16])
def test_every_byte_string_is_a_report_or_refused(categories):
    """What is accepted has a positive probability for every client: it moves what a client can."""
    oracle = oue(categories=categories, epsilon=1)
    rows = every_row(oracle.width)
    tally = oracle.tally(rows)
    assert tally.accepted == 1 << categories
    assert tally.accepted + tally.refused == len(rows)
    assert tally.counts.tolist() == [1 << categories - 1] * categories
    for row in rows[:: len(rows) // 128]:
        one = oracle.tally(row[None])
        assert one.counts.max(initial=0) <= 1
        assert one.accepted + one.refused == 1


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 65])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 65, 4100])
def test_ones_by_position(width, rows):
    data = np.random.default_rng(72).integers(0, 256, (rows, width), dtype=np.uint8)
    expected = np.unpackbits(data, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    assert np.array_equal(ones_by_position(data), expected)
    assert np.array_equal(ones_by_position(np.asfortranarray(data)), expected)


def test_lanes_do_not_overflow():
    assert set(ones_by_position(np.full((64 * 8 * 300 + 5, 1), 255, dtype=np.uint8))) == {153605}


def test_clients_draw_as_many_words_whatever_they_have():
    oracle = oue(categories=20, epsilon=1)
    drawn = []
    for value in (0, 7, 19):
        bits = CountedBits(seeded_rng(73))
        oracle.randomize(np.full(500, value), rng=bits)
        drawn.append(bits.drawn)
    assert drawn == [drawn[0]] * 3


@pytest.mark.parametrize("build", ALL)
def test_the_ends_of_epsilon(build):
    assert build(categories=4, epsilon=10**9).coins[1] == 1
    large = build(categories=4, epsilon=200)
    assert large.coins[1] == 1
    assert large.realized < 200
    assert large.certify().holds
    with pytest.raises(InvalidArgument, match="too small"):
        build(categories=4, epsilon=Fraction(1, 1 << 40))
    for bad in ({"categories": 1}, {"epsilon": 0}, {"epsilon": -1}):
        with pytest.raises(InvalidArgument):
            build(**{"categories": 4, "epsilon": 1, **bad})
    with pytest.raises(OutOfDomain, match="0 to 3"):
        large.randomize(4)


@pytest.mark.parametrize("threshold", [0.4, 1.1, "x", "1/0"])
def test_bad_thresholds(threshold):
    with pytest.raises(InvalidArgument, match="threshold"):
        threshold_histogram_encoding(categories=4, epsilon=1, threshold=threshold)


def test_thresholds_at_the_ends():
    assert threshold_histogram_encoding(categories=4, epsilon=1, threshold=1).coins[0] == ONE // 2
    assert threshold_histogram_encoding(categories=4, epsilon=10**9, threshold=0.5).coins == (
        ONE - 1,
        1,
    )
    # The smallest exponents that are taken as 64 give the same coins.
    assert unary._passing(Fraction(300), Fraction(1, 2)) == (ONE - 1, 1)
    assert unary._odds(Fraction(63)) == unary._odds(Fraction(65)) == 1
