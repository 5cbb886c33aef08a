"""Randomized response as an oracle: its laws by enumeration, its wire, hostile reports."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.randomized_response import RandomizedResponse, grr, randomized_response
from discreet.noise.random_source import seeded_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers
from tests.distributions import frequency, mean_of
from tests.oracle_distributions import CountedBits, every_row, moments, ranges

SHARES = (0.4, 0.3, 0.2, 0.1)


def law(oracle):
    """The reports of a client, as supports of each category."""

    def of(value):
        size = oracle.categories
        return {
            tuple(int(i == sent) for i in range(size)): oracle.keep
            if sent == value
            else oracle.other
            for sent in range(size)
        }

    return of


@pytest.mark.parametrize("categories", [2, 4, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 3])
def test_the_law_has_ratio_e_to_the_epsilon(categories, epsilon):
    oracle = grr(categories=categories, epsilon=epsilon)
    tables = [law(oracle)(value) for value in range(categories)]
    for table in tables:
        assert sum(table.values()) == pytest.approx(1, abs=1e-14)
    ratios = [one[s] / two[s] for one in tables for two in tables for s in one]
    assert max(ratios) == pytest.approx(math.exp(epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_range_and_contrast_laws_by_enumeration(epsilon):
    oracle = grr(categories=4, epsilon=epsilon)
    for low, high, weights in ranges(4):
        share = sum(SHARES[low : high + 1])
        mean, variance = moments(oracle, law(oracle), weights, SHARES)
        assert mean == pytest.approx(share, abs=1e-12)
        stated = float(oracle.range_variance(high - low + 1, share))
        assert stated == pytest.approx(variance, abs=1e-12)
        assert float(oracle.pinned_variance(high - low + 1, share)) == stated
    contrast = np.array([3, -1, -1, -1]) / math.sqrt(12)
    _, variance = moments(oracle, law(oracle), contrast, [0.25] * 4)
    assert oracle.contrast_variance() == pytest.approx(variance, rel=1e-12)


def test_published_numbers():
    """F48's vectors at D=32, r=8; F49's contrasts at epsilon 1; the half ellipse of F15."""
    for epsilon, variance in ((0.5, 474.7291), (1, 72.0135), (2, 6.5818)):
        oracle = grr(categories=32, epsilon=epsilon)
        assert float(oracle.range_variance(8, 0.25)) == pytest.approx(variance, abs=5e-5)
    for d, variance in ((2, 1.841), (4, 2.519), (16, 6.583), (64, 22.84)):
        assert grr(categories=d, epsilon=1).contrast_variance() == pytest.approx(variance, rel=3e-4)
    curve = grr(categories=100, epsilon=1).range_variance(
        np.arange(1, 101), np.arange(1, 101) / 100
    )
    assert curve.argmax() + 1 == 50
    assert curve[-1] == 0


class FromAll(RandomizedResponse):
    """The mistake of the thesis's oracle (M3): a lie is drawn from all values, truth included."""

    def _answers(self, own, rng):
        lies = bernoulli_real(self._lie, own.size, rng)
        return np.where(lies, uniform_integers(self.categories, own.size, rng), own)


def consistent(oracle, n=60_000):
    """The real path from value to estimate, against the stated law."""
    truth = np.repeat(np.arange(4), [n // 2, n // 4, n // 8, n // 8])
    counted = Aggregator(oracle).add(oracle.randomize(truth, rng=seeded_rng(60)))
    assert (counted.reports, counted.refused) == (n, 0)
    assert counted.counts.sum() == n
    own = np.bincount(truth)
    return all(
        abs(seen - (x * oracle.keep + (n - x) * oracle.other))
        <= 6.2 * math.sqrt(x * oracle.keep * (1 - oracle.keep) + (n - x) * oracle.other)
        for seen, x in zip(counted.counts, own, strict=True)
    )


def test_reports_follow_the_law_and_a_wrong_oracle_does_not():
    assert consistent(grr(categories=4, epsilon=1))
    assert not consistent(FromAll(categories=4, epsilon=Fraction(1)))


def test_drawing_from_all_values_is_not_epsilon():
    """M3: the ratio is 1 + g e^eps / (g - 1), and never below 2."""
    for g in (2, 4, 64):
        p = math.e / (math.e + g - 1)
        ratio = (p + (1 - p) / g) / ((1 - p) / g)
        assert ratio == pytest.approx(1 + g * math.e / (g - 1), rel=1e-12)
        assert ratio > math.e


@pytest.mark.parametrize(("categories", "width"), [(2, 1), (256, 1), (257, 2), (65_537, 3)])
def test_the_wire_is_the_code_lowest_byte_first(categories, width):
    oracle = grr(categories=categories, epsilon=60)
    last = categories - 1
    rows = oracle.randomize([last, 0], rng=seeded_rng(61))
    assert rows.shape == (2, width)
    assert rows[0].tobytes() == last.to_bytes(width, "little")
    tally = oracle.tally(rows)
    assert tally.counts[last] == tally.counts[0] == 1
    assert tally.counts.sum() == tally.accepted == 2


@pytest.mark.parametrize(("categories", "width"), [(5, 1), (256, 1), (300, 2)])
def test_every_byte_string_is_a_code_or_refused(categories, width):
    oracle = grr(categories=categories, epsilon=1)
    tally = oracle.tally(every_row(width))
    assert tally.counts.tolist() == [1] * categories
    assert (tally.accepted, tally.refused) == (categories, 256**width - categories)


def test_clients_draw_as_many_words_whatever_they_have():
    oracle = randomized_response(categories=7, epsilon=1)
    drawn = []
    for value in range(7):
        bits = CountedBits(seeded_rng(62))
        oracle.randomize(np.full(100, value), rng=bits)
        drawn.append(bits.drawn)
    assert drawn == [drawn[0]] * 7


def test_the_estimate_is_unbiased_over_replicates():
    oracle = grr(categories=3, epsilon=1)
    truth = np.repeat([0, 1, 2], [30, 15, 5])
    bits = seeded_rng(63)
    means = []
    for _ in range(4000):
        tally = oracle.tally(oracle.randomize(truth, rng=bits))
        means.append(oracle.estimate(tally.counts, 50).shares)
    for category, share in enumerate((0.6, 0.3, 0.1)):
        variance = float(oracle.variance(share)) / 50
        values = np.array(means)[:, category]
        assert mean_of(values, share, variance)
        assert not mean_of(values, share + 0.05, variance)
        # 4000 variances of a nearly normal number: a relative spread of sqrt(2 / 4000), six times.
        assert values.var() == pytest.approx(variance, rel=0.14)


def test_bad_parameters_and_values():
    for bad in ({"categories": 1}, {"categories": (1 << 31) + 1}, {"epsilon": 0}):
        with pytest.raises(InvalidArgument):
            grr(**{"categories": 4, "epsilon": 1, **bad})
    for value in (4, -1, 0.5, [[1], [9]]):
        with pytest.raises(OutOfDomain, match="0 to 3"):
            grr(categories=4, epsilon=1).randomize(value)
    assert grr(categories=4, epsilon=1).randomize([]).shape == (0, 1)
    assert grr(categories=4, epsilon=1).randomize(2).shape == (1, 1)
    huge = grr(categories=4, epsilon=5000)
    assert huge.certify().holds
    assert frequency(huge.randomize(np.full(1000, 2), rng=seeded_rng(64)).sum(), 2000, 1)
