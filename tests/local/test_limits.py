"""The last parameters that are allowed and the first that are not, and what is left out."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.local._window_channel import bytes_of, window
from discreet.local.distributed_noise import distributed_laplace
from discreet.local.distribution import DistributionEstimate, square_wave
from discreet.local.longitudinal import longitudinal_olh, losses, rappor
from discreet.local.means.base import MeanEstimate, bounds
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.local_laplace import local_laplace
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import LocalHashing, olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, threshold_histogram_encoding
from discreet.noise.random_source import seeded_rng

HALF = (1 << 20) // 2


@pytest.mark.parametrize(
    ("make", "last", "beyond"),
    [
        (lambda k: grr(categories=k, epsilon=1), 1 << 31, (1 << 31) + 1),
        (lambda k: grr(categories=k, epsilon=1), 2, 1),
        (lambda k: olh(categories=k, epsilon=1, hashes=2), 1 << 24, (1 << 24) + 1),
        (lambda k: olh(categories=k, epsilon=1), 2, 1),
        (lambda g: olh(categories=1 << 10, epsilon=1, hashes=g), 256, 512),
        (lambda g: olh(categories=5, epsilon=1, hashes=g), 8, 16),
        (lambda g: olh(categories=5, epsilon=1, hashes=g), 2, 1),
        (lambda g: olh(categories=5, epsilon=1, hashes=g), 4, 6),
        (lambda t: olh(categories=99, epsilon=1, hashes=4, kept=t), 3, 4),
        (lambda t: olh(categories=99, epsilon=1, hashes=16, kept=t), 15, 16),
        (lambda t: olh(categories=99, epsilon=1, hashes=32, kept=t), 3, 4),  # 4960 and 35960 sets
        (lambda t: olh(categories=99, epsilon=1, hashes=32, kept=t), 1, 31),  # of 155 digits
        (lambda k: subset_selection(categories=k, epsilon=1, chosen=1), 1 << 24, (1 << 24) + 1),
        (lambda k: subset_selection(categories=k, epsilon=1), 2, 1),
        (lambda t: subset_selection(categories=9, epsilon=1, chosen=t), 8, 9),
        (lambda t: subset_selection(categories=9, epsilon=1, chosen=t), 1, 0),
        (lambda k: summation_histogram_encoding(categories=k, epsilon=1), 2, 1),
        # One step and 48 scales of 2 / epsilon beyond it fit 32767.
        (
            lambda e: summation_histogram_encoding(categories=2, epsilon=e),
            Fraction(96, 32766),
            Fraction(96, 32767),
        ),
        (lambda n: summation_histogram_encoding(categories=2, epsilon=96, steps=n), 4096, 4097),
        (
            lambda n: summation_histogram_encoding(categories=2, epsilon=1, steps=n),
            32767 // 97,
            32767 // 97 + 1,
        ),
        (lambda k: oue(categories=k, epsilon=1), 2, 1),
        (
            lambda t: threshold_histogram_encoding(categories=2, epsilon=1, threshold=t),
            1,
            Fraction(1025, 1024),
        ),
        (
            lambda t: threshold_histogram_encoding(categories=2, epsilon=1, threshold=t),
            "1/2",
            "511/1024",
        ),
        (lambda k: rappor(categories=k, epsilon=1, permanent_epsilon=2), 2, 1),
        (lambda k: longitudinal_olh(categories=k, epsilon=1, permanent_epsilon=2), 2, 1),
        (lambda k: longitudinal_olh(categories=k, epsilon=1, permanent_epsilon=2), 3, "3"),
        (lambda g: longitudinal_olh(categories=9, epsilon=1, permanent_epsilon=2, hashes=g), 2, 0),
        (lambda e: losses(e, 1), Fraction(999, 1000), 1),
        (lambda w: window(inputs=HALF, width=w, epsilon=Fraction(1)), HALF + 1, HALF + 2),
        (lambda w: piecewise_mean(epsilon=1, lower=0, upper=1, window=w), 255, 256),
        (lambda w: piecewise_mean(epsilon=1, lower=0, upper=1, window=w), 1, 0),
        (lambda s: piecewise_mean(epsilon=1, lower=0, upper=1, steps=s), 1, 0),
        (
            lambda s: hybrid_mean(epsilon=1, lower=0, upper=1, window=3, share=s),
            1 << 16,
            (1 << 16) + 1,
        ),
        (lambda s: hybrid_mean(epsilon=1, lower=0, upper=1, window=3, share=s), 0, -1),
        (lambda w: hybrid_mean(epsilon=1, lower=0, upper=1, window=w, share=0), 253, 254),
        # One step, and as many symbols beyond either bound.
        (
            lambda n: local_laplace(epsilon=Fraction(32, n), lower=0, upper=1, steps=1),
            HALF - 1,
            HALF,
        ),
        (lambda s: local_laplace(epsilon=1, lower=0, upper=1, steps=s), 1, 0),
        (lambda k: square_wave(cells=k, epsilon=1), 2, 1),
        (lambda w: square_wave(cells=4, epsilon=1, window=w), 1, 0),
        (
            lambda e: distributed_laplace(
                sensitivity=1, epsilon=Fraction(1, e), min_honest_reports=1
            ),
            65536,
            65537,
        ),
        (
            lambda m: distributed_laplace(
                sensitivity=1, epsilon=1, min_honest_reports=1, modulus=m
            ),
            2,
            1,
        ),
        (
            lambda m: distributed_laplace(
                sensitivity=1, epsilon=1, min_honest_reports=1, modulus=m
            ),
            1 << 62,
            (1 << 62) + 1,
        ),
        (lambda n: distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=n), 1, 0),
        (
            lambda n: multidimensional_mean(
                columns={"a": (0, 1), "b": (0, 1)}, epsilon=1, sampled=n
            ),
            2,
            3,
        ),
        (
            lambda n: multidimensional_mean(
                columns={"a": (0, 1), "b": (0, 1)}, epsilon=1, sampled=n
            ),
            1,
            0,
        ),
        (
            lambda n: multidimensional_mean(
                columns={str(i): (0, 1) for i in range(n)}, epsilon=1, sampled=1
            ),
            255,
            256,
        ),
        (lambda n: multidimensional_mean(columns={"a": (0, 1, 2)[:n]}, epsilon=1, sampled=1), 2, 3),
        (lambda x: bounds(-x, 0), 10**300, 10**300 + 1),
        (lambda x: bounds(0, x), 10**300, 10**300 + 1),
        (lambda x: bounds(-(10**300) // 2, x), 10**300 // 2, 10**300),
        (lambda x: bounds(0, x), 1.0000000000000001e-300, 0.9999999999999999e-300),
    ],
)
def test_the_last_that_is_allowed(make, last, beyond):
    assert make(last) is not None
    with pytest.raises(InvalidArgument):
        make(beyond)


def test_a_share_of_a_sum_lies_within_half_of_the_modulus():
    made = distributed_laplace(sensitivity=1, epsilon=40, min_honest_reports=1, modulus=9)
    assert made.decode(made.randomize([3, -3, 0], rng=seeded_rng(1)), clients=1).tolist() == [
        3,
        -3,
        0,
    ]
    for wrong in (4, -4):
        with pytest.raises(OutOfDomain):
            made.randomize([wrong])
    assert made.randomize(np.empty(0, dtype=np.int64), rng=seeded_rng(1)).size == 0
    assert made.decode([4, 5], clients=1).tolist() == [4, -4]
    assert made.std(4) == pytest.approx(2 * made.std(1))


def test_what_is_left_out():
    shares = distributed_laplace(sensitivity=2, epsilon=1, min_honest_reports=3)
    assert (shares.modulus, shares.relation) == (1 << 32, NeighboringRelation.REPLACE_ONE)
    assert olh(categories=9, epsilon=1, hashes=4).kept == 1
    wave = square_wave(cells=7, epsilon=1)
    assert (wave.lower, wave.upper) == (0, 7)
    start = wave.estimate(np.arange(wave.size), int(np.arange(wave.size).sum()))
    again = wave.estimate(np.arange(wave.size), start.reports, smooth=True)
    assert start.shares.tolist() == again.shares.tolist()
    made = wave.bootstrap(start, rng=seeded_rng(3))
    assert len(made.replicates) == 100
    same = wave.bootstrap(start, smooth=True, replicates=100, rng=seeded_rng(3))
    for one, other in zip(made.replicates, same.replicates, strict=True):
        assert np.array_equal(one.shares, other.shares)


def test_levels_are_nineteen_in_twenty_unless_told():
    made = duchi(epsilon=1, lower=0, upper=1).estimate(np.array([50_000, 50_000]), 100_000)
    assert made.interval() == made.interval(0.95) != made.interval(0.9)
    assert made.guaranteed() == made.guaranteed(0.95) != made.guaranteed(0.9)
    oracle = oue(categories=3, epsilon=1)
    found = oracle.estimate(np.array([40, 50, 60]), 100)
    for given in ({}, {"guaranteed": True}):
        first, second = found.interval(**given), found.interval(0.95, **given)
        assert np.array_equal(first, second)
    assert not np.array_equal(found.interval(), found.interval(guaranteed=True))
    assert inspect.signature(Frequencies.base_cut).parameters["miss"].default == 0.05


@pytest.mark.parametrize(
    ("alphabet", "width"),
    [(1, 1), (2, 1), (255, 1), (256, 1), (257, 2), (65536, 2), (65537, 3), (1 << 20, 3)],
)
def test_bytes_of_a_symbol(alphabet, width):
    assert bytes_of(alphabet) == width == max(1, math.ceil(math.log2(alphabet) / 8))


def test_ranges_end_where_the_categories_do():
    oracle = grr(categories=4, epsilon=1)
    found = oracle.estimate(np.array([10, 20, 30, 40]), 100)
    for low, high in ((0, 0), (3, 3), (0, 3), (1, 2)):
        told = found.range(low, high)
        assert told.category == (low, high)
        assert told.share == pytest.approx(sum(found.shares[low : high + 1]))
        held = min(max(told.share, 0), 1)
        law = float(oracle.range_variance(high - low + 1, held)) / 100
        assert told.std == pytest.approx(math.sqrt(law))
    for low, high in ((-1, 0), (2, 1), (0, 4), (4, 4)):
        with pytest.raises(InvalidArgument):
            found.range(low, high)


@pytest.mark.parametrize("make", [grr, oue])
def test_each_share_has_the_variance_of_its_estimate(make):
    oracle = make(categories=3, epsilon=2)
    found = oracle.estimate(np.array([0, 40, 60]), 50)
    p, q = oracle.keep, oracle.other
    for count, share, variance in zip((0, 40, 60), found.shares, found.variance, strict=True):
        assert share == pytest.approx((count - 50 * q) / (50 * (p - q)))
        held = min(max(share, 0), 1)
        coins = held * p * (1 - p) + (1 - held) * q * (1 - q)
        assert variance == pytest.approx(coins / (p - q) ** 2 / 50)
    assert found.std == pytest.approx(np.sqrt(found.variance))
    assert found.counts == pytest.approx(found.shares * 50)


@pytest.mark.parametrize("make", [grr, oue, olh, subset_selection])
@pytest.mark.parametrize("reports", [1, 10, 10**6])
def test_the_guaranteed_error_is_the_smaller_of_two(make, reports):
    oracle = make(categories=8, epsilon=5)
    span = 1 / (oracle.keep - oracle.other)
    worst = max(float(oracle.variance(0)), float(oracle.variance(1)))
    assert oracle.std == pytest.approx(math.sqrt(worst))
    tail = math.log(2 / 0.01)
    hoeffding = span * math.sqrt(tail / (2 * reports))
    bernstein = math.sqrt(2 * worst * tail / reports) + span * tail / (3 * reports)
    assert oracle.error_bound(reports, 0.01) == pytest.approx(min(hoeffding, bernstein))
    assert oracle.error_bound(0, 0.01) == math.inf


@pytest.mark.parametrize("bias", [0.0, 0.25])
@pytest.mark.parametrize("reports", [3, 10**5])
def test_both_intervals_of_a_mean(reports, bias):
    std, span = 2.0, 30.0
    found = MeanEstimate(
        value=1.0, reports=reports, std=0.5, bounds=(-90, 90), one=(std, span), bias=bias
    )
    half = stats.norm.ppf(0.95) * 0.5 + bias
    assert found.interval(0.9) == pytest.approx((1 - half, 1 + half))
    tail = math.log(2 / (1 - 0.9))
    hoeffding = span * math.sqrt(tail / (2 * reports))
    # The t at which 2 exp(-n t^2 / (2 (v + s t / 3))) is what may be missed.
    bernstein = max(np.roots([reports, -2 * tail * span / 3, -2 * tail * std**2]).real)
    half = min(hoeffding, bernstein) + bias
    low, high = found.guaranteed(0.9)
    assert (low, high) == pytest.approx((max(1 - half, -90), min(1 + half, 90)))


def test_quantiles_of_a_distribution_at_its_ends():
    found = DistributionEstimate(
        shares=np.array([0.0, 0.25, 0.0, 0.75]),
        bounds=(2.0, 10.0),
        reports=4,
        iterations=1,
        converged=True,
    )
    places = [0, 0.125, 0.25, 0.25 + 0.375, 1]
    assert [found.quantile(p) for p in places] == pytest.approx([2, 5, 6, 9, 10])
    assert found.edges.tolist() == [2, 4, 6, 8, 10]
    assert found.density.tolist() == [0, 0.125, 0, 0.375]
    assert found.mean == pytest.approx(0.25 * 5 + 0.75 * 9)
    assert found.cdf([1, 2, 5, 8, 10, 11]) == pytest.approx([0, 0, 0.125, 0.25, 1, 1])
    assert found.range(5, 5) == 0
    assert found.range(5, 9) == pytest.approx(0.125 + 0.375)
    with pytest.raises(OutOfDomain):
        found.range(6, 5)


def test_hashing_takes_the_smallest_report_that_is_nearly_best():
    shapes = [
        (1, 1),
        (2, 1),
        (3, 1),
        (3, 3),
        (4, 1),
        (4, 3),
        (5, 1),
        (5, 3),
        (6, 1),
        (7, 1),
        (8, 1),
    ]
    for categories in (2, 5, 40, 1000, 1 << 24):
        for epsilon in (0.1, 1, 2, 3, 4, 5, 9):
            made = olh(categories=categories, epsilon=epsilon)
            most = min(math.ceil(math.log2(categories)), 8)
            every = [
                LocalHashing(
                    categories=categories, epsilon=made.epsilon, hash_digits=digits, kept=kept
                )
                for digits, kept in shapes
                if digits <= most
            ]
            least = min(one.contrast_variance() for one in every)
            enough = [one for one in every if one.contrast_variance() <= 1.02 * least]
            assert made == enough[0]
            assert made.width == min(one.width for one in enough)


def test_memoized_hashing_takes_the_best_number_of_hashes():
    for categories in (2, 3, 4, 5, 100, 128, 129, 1000):
        for epsilon in (0.1, 1, 2, 4, 5, 5.5, 9):
            made = longitudinal_olh(
                categories=categories, epsilon=epsilon, permanent_epsilon=2 * epsilon
            )
            powers = [2, 4, 8, 16, 32, 64, 128, 256]
            every = {
                g: olh(categories=categories, epsilon=epsilon, hashes=g).contrast_variance()
                for g in powers
                if g < 2 * categories
            }
            assert made.hashes == min(every, key=every.__getitem__)
    assert longitudinal_olh(categories=10**6, epsilon=9, permanent_epsilon=10).hashes == 256
