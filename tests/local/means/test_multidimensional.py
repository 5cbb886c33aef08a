"""Several numbers of each client: exact law of a small report, then the whole way."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.means.multidimensional import (
    MultidimensionalMean,
    _chosen,
    multidimensional_mean,
)
from discreet.local.means.piecewise import duchi
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from tests.distributions import frequency, mean_of

COLUMNS = {"age": (0, 120), "income": (-10, 90.5), "weight": (2, 4)}


def two_bits(sampled):
    """Three columns of one bit each."""
    part = duchi(epsilon=Fraction(1, sampled), lower=0, upper=1)
    columns = tuple((name, Fraction(0), Fraction(1)) for name in "abc")
    return MultidimensionalMean(epsilon=Fraction(1), columns=columns, sampled=sampled, part=part)


def law(randomizer, client):
    """Exact probability of every report of a client whose numbers are all at a bound."""
    total = randomizer.part.window.total
    found = {}
    orders = list(itertools.permutations(range(3), randomizer.sampled))
    for chosen in orders:
        for symbols in itertools.product(range(2), repeat=randomizer.sampled):
            p = Fraction(1, len(orders))
            for column, symbol in zip(chosen, symbols, strict=True):
                p *= Fraction(int(randomizer.part.window.weights(client[column])[symbol]), total)
            found[bytes(itertools.chain(*zip(chosen, symbols, strict=True)))] = p
    return found


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_a_report_tells_no_more_than_epsilon_and_means_are_unbiased(sampled):
    randomizer = two_bits(sampled)
    clients = list(itertools.product(range(2), repeat=3))
    laws = [law(randomizer, client) for client in clients]
    assert all(sum(one.values()) == 1 for one in laws)
    worst = max(max(one[y] for one in laws) / min(one[y] for one in laws) for y in laws[0])
    mp.dps = 60
    kept = mp.log(mpf(worst.numerator) / worst.denominator)
    assert 1 - mpf(10) ** -12 <= kept <= 1
    for client, one in zip(clients, laws, strict=True):
        sums, told = np.zeros(3), np.zeros(3)
        for report, p in one.items():
            tally = randomizer.tally(np.frombuffer(report, dtype=np.uint8)[None])
            assert tally.accepted == 1
            by_column = tally.counts.reshape(3, 2)
            sums += float(p) * (by_column @ randomizer.part.levels)
            told += float(p) * by_column.sum(axis=1)
        assert told == pytest.approx([sampled / 3] * 3)
        assert sums / told == pytest.approx(client, abs=1e-12)


def test_columns_are_drawn_uniformly():
    drawn = _chosen(60_000, 4, 2, seeded_rng(1))
    for pair in itertools.permutations(range(4), 2):
        assert frequency((drawn == pair).all(axis=1).sum(), 60_000, Fraction(1, 12))


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_estimates_follow_their_law(sampled):
    randomizer = multidimensional_mean(columns=COLUMNS, epsilon=4, sampled=sampled)
    rng = np.random.default_rng(2)
    n = 30_000
    data = {
        "age": rng.normal(40, 30, n),
        "income": rng.exponential(20, n),
        "weight": rng.choice([2, 4], n),
    }
    values = {name: [] for name in COLUMNS}
    spread = {}
    for seed in range(6):
        reports = randomizer.randomize(data, rng=seeded_rng(seed))
        assert reports.shape == (n, sampled * 2)
        aggregate = Aggregator(randomizer).add(reports)
        assert (aggregate.reports, aggregate.refused) == (n, 0)
        for name, mean in aggregate.estimate().items():
            values[name].append(mean.value)
            spread[name] = mean.std
    for name, (low, high) in COLUMNS.items():
        inside = np.clip(data[name], low, high)
        assert mean_of(np.array(values[name]), inside.mean(), spread[name] ** 2 * 1.02)
        length = high - low
        noise = randomizer.part.variance((inside - low) / length).mean() * length**2
        told = n * sampled / 3
        exact = noise / told + inside.var() * (1 - told / n) / told
        assert spread[name] >= math.sqrt(exact) * 0.98
    # All at a bound is the worst case: there the stated error is the exact one.
    assert spread["weight"] == pytest.approx(math.sqrt(exact), rel=0.05)


def test_a_matrix_is_read_in_the_order_of_the_names():
    randomizer = multidimensional_mean(columns=COLUMNS, epsilon=2)
    table = {name: np.linspace(low, high, 100) for name, (low, high) in COLUMNS.items()}
    matrix = np.stack([table[name] for name in randomizer.names], axis=1)
    one, other = (randomizer.randomize(x, rng=seeded_rng(3)) for x in (table, matrix))
    assert (one == other).all()


@pytest.mark.parametrize("sampled", [1, 2])
def test_every_string_of_bytes_is_counted_or_refused(sampled):
    randomizer = two_bits(sampled)
    low = np.array(list(itertools.product(range(5), repeat=2 * sampled)), dtype=np.uint8)
    good = set(law(randomizer, (0, 0, 0)))
    for row in [*low, np.full(2 * sampled, 255, dtype=np.uint8)]:
        tally = randomizer.tally(row[None])
        assert tally.accepted == (row.tobytes() in good)
        assert tally.refused == 1 - tally.accepted
        assert tally.counts.sum() == sampled * tally.accepted
        assert tally.counts.max() <= 1


def test_more_columns_are_told_only_if_epsilon_is_large():
    few, many = (multidimensional_mean(columns=COLUMNS, epsilon=e) for e in (1, 15))
    assert few.sampled == 1
    assert many.sampled == 3
    assert many.part.epsilon == 5
    for epsilon in (1, 6):
        best = multidimensional_mean(columns=COLUMNS, epsilon=epsilon)
        others = [
            multidimensional_mean(columns=COLUMNS, epsilon=epsilon, sampled=k) for k in (1, 2, 3)
        ]
        assert best.std == min(other.std for other in others)
        best.certify()
    two = multidimensional_mean(columns={"x": (0, 1), "y": (0, 1)}, epsilon=1)
    assert two.std**2 >= 2 * two.part.std**2


def test_a_description_rebuilds_it():
    made = multidimensional_mean(columns=COLUMNS, epsilon=2, sampled=2)
    assert randomizer_from_json(json.dumps(made.describe())) == made
    turned = dict(reversed(COLUMNS.items()))
    assert multidimensional_mean(columns=turned, epsilon=2, sampled=2) == made


def test_nothing_reported_is_unknown():
    made = multidimensional_mean(columns=COLUMNS, epsilon=1)
    told = made.estimate(np.zeros(made.size, dtype=np.int64), 0)
    assert told["age"].interval() == told["age"].guaranteed() == (0, 120)


def test_what_does_not_fit_is_refused():
    made = multidimensional_mean(columns=COLUMNS, epsilon=1)
    for bad in (
        {"age": [1]},
        {"age": [1], "income": [1, 2], "weight": [3]},
        {"age": [1], "income": [math.nan], "weight": [3]},
        np.zeros((5, 2)),
        np.zeros(3),
    ):
        with pytest.raises(OutOfDomain):
            made.randomize(bad)
    for columns in ({}, {"a": (1, 1)}, {"a": (1,)}, {str(i): (0, 1) for i in range(256)}):
        with pytest.raises(InvalidArgument):
            multidimensional_mean(columns=columns, epsilon=1)
    with pytest.raises(InvalidArgument, match="at most 3"):
        multidimensional_mean(columns=COLUMNS, epsilon=1, sampled=4)
