"""Chosen quantiles: scores against their definition, laws against all neighbors, exact draws."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _piecewise_exponential as quantile_pieces
from discreet.mechanisms._piecewise_exponential import PiecewiseExponential, pieces
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from tests.distributions import ALPHA, frequency

RELATIONS = [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
METHODS = ["interpolated", "exponential", "permute_and_flip"]
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)]


def score(data, span, t, level, *, climbing):
    """The distance of the target to the ranks of a point, from the definition."""
    n = len(data)
    if not climbing:
        target = level * n
        low, high = sum(x < t for x in data), sum(x <= t for x in data)
    else:
        target = level * (n + 1)
        knots = [0, *sorted(data), span]
        held = [i for i, x in enumerate(knots) if x == t]
        if held:
            low, high = held[0], held[-1]
        else:
            i = max(i for i, x in enumerate(knots) if x < t)
            low = high = i + Fraction(t - knots[i], knots[i + 1] - knots[i])
    return max(low - target, target - high, 0)


@pytest.mark.parametrize("climbing", [True, False])
@pytest.mark.parametrize("level", LEVELS)
def test_pieces_are_all_points_with_their_scores(climbing, level):
    rng = np.random.default_rng(2)
    for rows, span in itertools.product(range(6), (1, 2, 7, 30)):
        data = np.sort(rng.integers(0, span + 1, rows))
        found = pieces(data, span, level=level, climbing=climbing)
        seen = {}
        for i in range(len(found.start)):
            gap = int(found.gap[i])
            for j in range(int(found.points[i])):
                t = int(found.start[i] + found.way[i] * j)
                assert t not in seen
                seen[t] = found.exact(i) + (Fraction(j, gap) if gap else 0)
        expected = {
            t: score(data.tolist(), span, t, level, climbing=climbing) for t in range(span + 1)
        }
        assert seen == expected


@pytest.mark.parametrize("climbing", [True, False])
def test_what_is_out_of_reach_is_far(climbing):
    rng = np.random.default_rng(4)
    data = np.sort(rng.integers(0, 1000, 300))
    every = pieces(data, 1000, level=Fraction(1, 3), climbing=climbing)
    near = pieces(data, 1000, level=Fraction(1, 3), climbing=climbing, reach=20)

    def listed(found):
        return list(
            zip(*(getattr(found, f.name) for f in dataclasses.fields(found)[:-1]), strict=True)
        )

    kept = listed(near)
    assert len(kept) < len(every.start) / 3
    whole = listed(every)
    assert kept == [piece for piece in whole if piece in set(kept)]  # in the same order
    missing = [i for i, piece in enumerate(whole) if piece not in set(kept)]
    assert every.scores()[missing].min() > 18


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", METHODS)
def test_every_choice_is_certified(relation, level, method):
    made = private_quantile(
        level, lower=0, upper=5, granularity=1, epsilon=1, relation=relation, method=method
    )
    assert made.certify().holds
    assert made.guarantee.epsilon() == 1.0
    assert made.guarantee.relation is relation


class TooSharp(type(private_quantile(lower=0, upper=1, epsilon=1))):
    """Pays for a rank a third of what it costs."""

    __slots__ = ()

    @property
    def rate(self):
        return 3 * self.epsilon / 2


def test_a_rate_too_large_is_not_certified():
    good = private_quantile(
        lower=0, upper=5, granularity=1, epsilon=1, relation=NeighboringRelation.REPLACE_ONE
    )
    names = [field.name for field in dataclasses.fields(good)]
    wrong = TooSharp(**{name: getattr(good, name) for name in names})
    with pytest.raises(NotCertified):
        wrong.certify()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_neighbors_far_apart_keep_epsilon(relation, level):
    """B48: the largest log-ratio over random neighbors of more rows on a longer grid."""
    rng = np.random.default_rng(8)
    made = private_quantile(level, lower=0, upper=60, granularity=1, epsilon=1, relation=relation)
    worst = 0.0
    for _ in range(400):
        data = rng.choice([rng.integers(0, 61, 9), np.repeat(rng.integers(0, 61, 3), 3)])
        other = data.copy()
        other[0] = rng.integers(0, 61)
        if relation is NeighboringRelation.ADD_REMOVE:
            other = data[1:]
        p, q = made.probabilities(data), made.probabilities(other)
        worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert 0.4 < worst <= 1 + 1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [64, 6])
def test_draws_follow_the_exact_law(method, width):
    """Words of six bits leave most draws to the integers."""
    made = private_quantile(
        Fraction(1, 3), lower=0, upper=24, granularity=1, epsilon=2, method=method
    )
    data = [3, 3, 9, 15, 15, 15, 22]
    law = made.probabilities(data)
    bits = SeededRandomSource(3, width=width)
    size = 2000
    found = np.array([made.release(data, rng=bits) for _ in range(size)], dtype=np.int64)
    counts = np.bincount(found, minlength=25)
    assert all(frequency(counts[t], size, law[t]) for t in range(25))
    assert not frequency(counts[3] + counts[9], size, (law[3] + law[9]) * 1.8)


def test_enclosed_borders_are_those_of_doubles():
    data = np.sort(np.random.default_rng(1).integers(0, 1 << 20, 50))
    for climbing in (True, False):
        found = pieces(data, 1 << 20, level=Fraction(1, 2), climbing=climbing)
        rate = Fraction(1, 3)
        masses = found.masses(rate)
        ends = np.cumsum(masses) / masses.sum()
        for index in (0, 20, 60, len(ends) - 2):
            low, high = quantile_pieces._end(found, rate, index, 100)
            assert high - low <= 1 << 12
            assert low / 2**100 == pytest.approx(ends[index], rel=1e-12)


def test_a_doubtful_draw_is_settled_in_integers():
    """A first word of zeros lies at the very edge: the next ones must decide."""

    class Edge(SeededRandomSource):
        def __init__(self):
            super().__init__(1)
            self.first = True

        def words(self, count):
            if self.first:
                self.first = False
                return np.zeros(count, dtype=np.uint64)
            return super().words(count)

    data = np.sort(np.random.default_rng(3).integers(0, 1000, 400))
    choice = PiecewiseExponential(
        values=data, span=1000, level=Fraction(1, 2), climbing=True, rate=Fraction(1, 2)
    )
    # The smallest values come first, and weigh exp(-distance / 2): about 2**-64 of the total.
    assert 60 <= 200 - np.searchsorted(data, choice.draw(Edge())) <= 140


@pytest.mark.parametrize("method", METHODS)
def test_errors_are_a_few_ranks(method):
    rng = np.random.default_rng(6)
    grid = 2**-8 if method == "permute_and_flip" else None
    made = private_quantile(lower=0, upper=100, epsilon=1, method=method, granularity=grid)
    values = rng.normal(40, 5, 10_001)
    ranks = [
        np.searchsorted(np.sort(values), made.release(values, rng=seeded_rng(i))) for i in range(50)
    ]
    if method == "permute_and_flip":
        with pytest.raises(Unsupported):
            made.interval(0.9)
    else:
        low, high = made.interval(1 - ALPHA / 50)
        assert low == -high
        assert np.abs(np.array(ranks) - 5000).max() <= high
    assert np.abs(np.array(ranks) - 5000).mean() < 4


def test_flipped_points_are_ranked_among_unrounded_values():
    made = private_quantile(lower=0, upper=8, granularity=1, epsilon=50, method="permute_and_flip")
    values = [2.4, 2.45, 2.5, 2.55, 2.6, 3.4, 3.6, 3.7, 3.8, 3.9]  # half of them are below 3
    assert {made.release(values, rng=seeded_rng(i)) for i in range(20)} == {3.0}
    assert made.probabilities(values).shape == (9,)


def test_a_value_with_many_ties_is_found():
    values = np.concatenate((np.full(400, 7.0), np.arange(300.0)))
    made = private_quantile(lower=0, upper=1000, epsilon=0.5)
    assert {made.release(values, rng=seeded_rng(i)) for i in range(20)} == {7.0}


def test_mean_squared_errors_on_uniform_data():
    """B48 on the data of E8: the sampling error of the median, 2.5, is most of it."""
    rng = np.random.default_rng(9)
    made = private_quantile(lower=0, upper=100, epsilon=1, relation=NeighboringRelation.REPLACE_ONE)
    errors = [made.release(rng.uniform(0, 100, 1000), rng=seeded_rng(i)) - 50 for i in range(1000)]
    assert np.mean(np.square(errors)) == pytest.approx(2.5, abs=0.6)


def test_a_million_values_and_an_empty_column():
    made = private_quantile(lower=-1, upper=1, epsilon=1)
    values = np.random.default_rng(0).standard_normal(10**6)
    assert abs(made.release(values, rng=seeded_rng(1)) - np.median(values)) < 1e-4
    assert -1 <= made.release([], rng=seeded_rng(1)) <= 1


def tree_law(made, data, span):
    """The exact joint law of two released quantiles, from those of single choices."""
    laws = {}
    top, rest = made.q[1], made.q[0] / made.q[1]

    def single(values, ends, level):
        if ends[0] == ends[1]:
            return {ends[0]: 1.0}
        found = pieces(
            np.array([v - ends[0] for v in values], dtype=np.int64),
            ends[1] - ends[0],
            level=level,
            climbing=True,
        )
        rate = float(made.step / (2 * max(level, 1 - level)))
        weights = {}
        for i in range(len(found.start)):
            for j in range(int(found.points[i])):
                climbed = Fraction(j, int(found.gap[i])) if found.gap[i] else 0
                place = int(found.start[i] + found.way[i] * j) + ends[0]
                weights[place] = math.exp(-rate * float(found.exact(i) + climbed))
        total = sum(weights.values())
        return {place: weight / total for place, weight in weights.items()}

    for high, p in single(sorted(data), (0, span), top).items():
        left = [v for v in sorted(data) if v < high]
        for low, q in single(left, (0, high), rest).items():
            laws[low, high] = p * q
    return laws


@pytest.mark.parametrize("relation", RELATIONS)
def test_many_quantiles_of_all_small_neighbors_keep_epsilon(relation):
    made = private_quantiles(
        [0.4, 0.8], lower=0, upper=4, granularity=1, epsilon=1, relation=relation
    )
    laws = {
        data: tree_law(made, data, 4)
        for rows in range(4)
        for data in itertools.combinations_with_replacement(range(5), rows)
    }
    worst = 0.0
    for data, law in laws.items():
        for i in range(len(data)):
            others = [data[:i] + data[i + 1 :]]
            if relation is NeighboringRelation.REPLACE_ONE:
                others = [tuple(sorted((*others[0], v))) for v in range(5)]
            for other in others:
                worst = max(worst, *(abs(math.log(law[o] / laws[other][o])) for o in law))
    assert 0.3 < worst <= 1 + 1e-12
    assert made.guarantee.epsilon() == pytest.approx(1.0)
    assert made.certify().holds


def test_many_quantiles_follow_their_law():
    made = private_quantiles([0.4, 0.8], lower=0, upper=4, granularity=1, epsilon=4)
    law = tree_law(made, (1, 1, 3), 4)
    bits = seeded_rng(5)
    found = [tuple(made.release([1, 1, 3], rng=bits)) for _ in range(3000)]
    for outcome, p in law.items():
        assert frequency(found.count(outcome), 3000, p)
    likely = max(law, key=law.get)
    assert not frequency(found.count(likely), 3000, law[likely] * 1.5)


def test_nine_deciles_are_in_order_and_near():
    values = np.random.default_rng(4).normal(50, 10, 20_000)
    made = private_quantiles([i / 10 for i in range(1, 10)], lower=0, upper=100, epsilon=1)
    assert made.depth == 4
    found = made.release(values, rng=seeded_rng(1))
    assert found == sorted(found)
    assert np.abs(found - np.quantile(values, np.arange(1, 10) / 10)).max() < 0.2
    with pytest.raises(InvalidArgument, match="increasing"):
        private_quantiles([0.5, 0.5], lower=0, upper=1, epsilon=1)
    with pytest.raises(InvalidArgument, match="increasing"):
        private_quantiles([], lower=0, upper=1, epsilon=1)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="quantile"):
        private_quantile(0, lower=0, upper=1, epsilon=1)
    with pytest.raises(InvalidArgument, match="denominator"):
        private_quantile(math.pi / 4, lower=0, upper=1, epsilon=1)
    with pytest.raises(InvalidArgument, match="method"):
        private_quantile(lower=0, upper=1, epsilon=1, method="tree")
    with pytest.raises(InvalidArgument, match="coarse grid"):
        private_quantile(lower=0, upper=1, epsilon=1, method="permute_and_flip")
    with pytest.raises(InvalidArgument, match="relation"):
        private_quantile(lower=0, upper=1, epsilon=1, relation=NeighboringRelation.LOCAL)
    private_quantile(lower=0, upper=1, epsilon=1).release([0.5, math.inf])  # clipped
    with pytest.raises(Unsupported):
        _ = private_quantile(lower=0, upper=1, epsilon=1).std
