"""Sizes of noise, limits and shares, each against what they are said to be."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _piecewise_exponential as quantile_pieces
from discreet.mechanisms import mean_without_bounds as unbounded
from discreet.mechanisms._piecewise_exponential import PiecewiseExponential
from discreet.mechanisms.bin_statistics import BinnedColumn, EqualWidthBins, bin_statistics
from discreet.mechanisms.bounded._divergence import BoundedOutputs
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.quantiles import SortedColumn, private_quantile
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.noise.random_source import seeded_rng

REPLACE = {"relation": NeighboringRelation.REPLACE_ONE}

# -- bounds and their noise ---------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 5, 100])
def test_variances_pay_for_the_rounding_of_doubles(rows):
    allowance = Fraction(1, 2**50)
    square = Fraction(8) ** 2
    made = private_variance(
        lower=-3, upper=5, public_rows=rows, epsilon=Fraction(1, 2), granularity=1
    )
    noise = made.inner.inner.reals.noise
    scale = noise.scale * Fraction(2) ** noise.exponent
    assert scale == square * (Fraction(1, rows) + allowance) * 2
    made = private_std(
        lower=-3, upper=5, public_rows=rows, epsilon=Fraction(1, 2), granularity=1, direct=True
    )
    noise = made.inner.inner.reals.noise
    scale = noise.scale * Fraction(2) ** noise.exponent
    root = math.sqrt(1 / rows)
    assert float(scale) == pytest.approx(16 * root, rel=1e-13)
    assert (scale / 16 - allowance) ** 2 <= Fraction(1, rows) < (scale / 16) ** 2


@pytest.mark.parametrize(("span", "shift"), [(6, 1), (6, 3), (40, 7)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_a_delta_within_the_rounding_of_doubles_is_not_kept(span, shift, epsilon):
    scale = Fraction(shift, 2) / epsilon
    every = range(span + 1)
    laws = np.array([[math.exp(-abs(k - q) / float(scale)) for k in every] for q in every])
    laws /= laws.sum(axis=1, keepdims=True)
    moved = laws[: span + 1 - shift], laws[shift:]
    exact = np.maximum(moved[0] - math.exp(epsilon) * moved[1], 0).sum(axis=1).max()
    outputs = BoundedOutputs(span=span, shift=shift)
    margin = (16 + float(epsilon)) * 2.0**-46
    assert exact > 1e-3
    assert not outputs.keeps(scale, epsilon, Fraction(exact))
    assert not outputs.keeps(scale, epsilon, Fraction(exact + margin / 2))
    assert outputs.keeps(scale, epsilon, Fraction(exact + 2 * margin))


def test_candidates_are_compared_with_the_best():
    made = best_additive_noise(sensitivity=4, epsilon=1, delta=1e-6)
    losses = (4.0, 5.0, 4.0, 8.0)
    some = tuple(
        dataclasses.replace(one, loss=loss)
        for one, loss in zip(made.candidates, losses, strict=False)
    )
    lines = dataclasses.replace(made, candidates=some).explain().splitlines()
    assert [line.split()[-1] for line in lines[1:5]] == ["+0.00%", "+25.00%", "+0.00%", "+100.00%"]
    # Where nothing is lost there is nothing to compare with.
    none = tuple(dataclasses.replace(one, loss=0.0) for one in some)
    lines = dataclasses.replace(made, candidates=none).explain().splitlines()
    assert all(line.split()[-1] == "0" for line in lines[1:5])


# -- bins ---------------------------------------------------------------------------------------


def test_bins_are_limited():
    assert EqualWidthBins.of(0, 2**21, 2**20, 1).many == 2**20
    assert EqualWidthBins.of(0, 7, 7, 1).many == 7
    with pytest.raises(InvalidArgument):
        EqualWidthBins.of(0, 2**21, 2**20 + 1, 1)
    with pytest.raises(InvalidArgument):
        EqualWidthBins.of(0, 7, 8, 1)


@pytest.mark.parametrize(("upper", "many"), [(9, 1), (9, 3), (9, 4), (10, 10), (11, 5)])
def test_bins_hold_every_step_once(upper, many):
    bins = EqualWidthBins.of(-2, upper - 2, many, 1)
    starts = bins.starts.tolist()
    assert (starts[0], starts[-1], len(starts)) == (0, upper + 1, many + 1)
    sizes = np.diff(starts).tolist()
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert bins.reach == max(sizes) - 1
    assert bins.edges.tolist() == [*(start - 2 for start in starts[:-1]), upper - 2]


@pytest.mark.parametrize("statistic", ["median", "mean", "lower_median", "largest"])
@pytest.mark.parametrize("empty", ["middle", "lower"])
def test_statistics_of_bins_in_half_steps(statistic, empty):
    made = bin_statistics(
        lower=0, upper=11, bins=3, epsilon=1, granularity=1, statistic=statistic, empty=empty
    )
    for data in [[], [0], [3, 4], [0, 1, 1, 3, 5, 6, 8, 11, 11], [8, 9, 9, 10]]:
        expected = []
        for low in (0, 4, 8):
            held = [value for value in data if low <= value < low + 4]
            middle = {"middle": 2 * low + 3, "lower": 2 * low}[empty]
            half = len(held) // 2
            expected.append(
                middle
                if not held
                else {
                    "median": held[(len(held) - 1) // 2] + held[half],
                    "mean": math.floor(Fraction(2 * sum(held), len(held))),
                    "lower_median": 2 * held[(len(held) - 1) // 2],
                    "largest": 2 * held[-1],
                }[statistic]
            )
        assert made.exact(np.array(data, dtype=np.int64)).tolist() == expected


def test_questions_to_counts():
    found = BinnedColumn(edges=(0.0, 2.0, 6.0, 8.0), counts=(4, 8, 4))
    assert found.total == 16
    levels = [0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0]
    assert [found.quantile(level) for level in levels] == [0, 1, 2, 4, 6, 7, 8]
    assert found.quantile() == 4
    assert found.mean() == (4 * 1 + 8 * 4 + 4 * 7) / 16
    # A negative count: the curve 0, 6, 4, 10 is made to rise as 0, 5, 5, 10.
    rough = BinnedColumn(edges=(0.0, 2.0, 6.0, 8.0), counts=(6, -2, 6))
    assert rough.quantile(0.25) == 1
    assert rough.quantile(0.75) == 7
    for counts in ((1, -1), (0, 0), (-3, 1)):
        nothing = BinnedColumn(edges=(1.0, 2.0, 9.0), counts=counts)
        assert nothing.quantile(0.1) == nothing.mean() == 5
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(10, -9)).mean() == 0
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(-9, 10)).mean() == 6
    assert BinnedColumn(edges=(0.0, 2.0, 6.0), counts=(0, 1)).mean() == 4


# -- means without bounds -----------------------------------------------------------------------


def test_shares_of_an_unbounded_mean():
    """Quartiles a sixteenth each, fine quantiles an eighth, secret rows a sixteenth, the rest."""
    eps = Fraction(4)
    for options, rest in (
        ({}, Fraction(9, 16)),
        ({"public_rows": 50, **REPLACE}, Fraction(10, 16)),
    ):
        made = mean_without_bounds(unit=1, epsilon=eps, **options)
        parts = [
            events.BoundedRangeEvent(eps / 16),
            events.BoundedRangeEvent(eps / 8),
            events.BoundedRangeEvent(eps / 16),
            events.BoundedRangeEvent(eps / 8),
            events.LaplaceEvent(1 / (eps * rest)),
        ]
        if not options:
            parts.append(events.LaplaceEvent(16 / eps))
        assert made.guarantee.event == events.compose(parts)


def test_shares_that_are_clipped():
    made = mean_without_bounds(unit=1, epsilon=2)
    for rows, share in (
        (1, Fraction(1, 4)),
        (576, Fraction(1, 4)),
        (1440, Fraction(1, 10)),
        (144_000, Fraction(1, 1000)),
        (10**7, Fraction(1, 1000)),
    ):
        assert made._tail(rows) == share
    assert mean_without_bounds(unit=1, epsilon=2, tail=Fraction(1, 3))._tail(5) == Fraction(1, 3)


def test_rungs_are_powers():
    made = mean_without_bounds(unit=3, epsilon=1)
    for rung in (0, 1, 7, 100, 1024):
        height = 3 * ((17 / 16) ** rung - 1)
        assert made._height(rung) == pytest.approx(height, rel=1e-9)
        assert made._height(-rung) == pytest.approx(-height, rel=1e-9)
        assert made._rungs(np.array([height, -height])).tolist() == [rung, -rung]
    assert made._height(1500) == made._height(1024)
    assert made._rungs(np.array([1e300, -1e300])).tolist() == [1024, -1024]
    ladder = made._ladder()
    assert (ladder.first, ladder.span, ladder.exponent) == (-1024, 2048, 0)


@pytest.mark.parametrize("options", [{}, {"public_rows": 4, **REPLACE}])
@pytest.mark.parametrize("noise", [0, 3, -5, 10**6, -(10**6)])
def test_means_from_a_noisy_sum(options, noise, monkeypatch):
    scales = []
    monkeypatch.setattr(unbounded, "laplace_draw", lambda scale, _: scales.append(scale) or noise)
    made = mean_without_bounds(unit=1, epsilon=1, **options)
    column = SortedColumn(first=10, span=7, exponent=-1)
    codes = np.array([0, 2, 3, 7])
    found = made._mean(column, codes, 4, seeded_rng(1))
    # From the middle, 3: -3 - 1 + 0 + 4; one row is worth 4 steps, a replaced one 7.
    assert scales == [7 / Fraction(10, 16) if options else 4 / Fraction(9, 16)]
    mean = min(max(3 + Fraction(noise, 4), 0), 7)
    assert found.value == float((10 + mean) / 2)
    assert (found.lower, found.upper) == (5.0, 8.5)
    assert found.std == pytest.approx(math.sqrt(2) * float(scales[0]) / 2 / 4, rel=1e-12)


def test_the_fine_quantiles_are_looked_for_beyond_the_quartiles(monkeypatch):
    asked = []

    def found(pair, values, _):
        asked.append((pair, values))
        return (3.0, 5.0) if len(asked) == 1 else (0.25, 0.25)

    monkeypatch.setattr(unbounded, "_in_order", found)
    made = mean_without_bounds(unit=2, epsilon=1, public_rows=3, tail=Fraction(1, 10), **REPLACE)
    result = made.release([0.1, 0.2, 0.3], rng=seeded_rng(1))
    (coarse, rungs), (fine, values) = asked
    assert [one.quantile for one in coarse] == [Fraction(1, 4), Fraction(3, 4)]
    assert [one.quantile for one in fine] == [Fraction(1, 10), Fraction(9, 10)]
    assert rungs.tolist() == [round(math.log1p(x / 2) / math.log(17 / 16)) for x in (0.1, 0.2, 0.3)]
    assert values.tolist() == [0.1, 0.2, 0.3]
    # One rung beyond each quartile, and eight times their distance beyond that.
    first, last = (2 * ((17 / 16) ** rung - 1) for rung in (2, 6))
    room = 8 * (last - first)
    column = fine[0].column
    assert column.number(0) == pytest.approx(first - room, abs=2 * column.step)
    assert column.number(column.span) == pytest.approx(last + room, abs=2 * column.step)
    # Bounds that meet are a step of the search apart.
    assert result.lower == 0.25
    assert result.upper == pytest.approx(0.25 + column.step, rel=1e-12)


def test_quantiles_of_a_mean_are_certified(monkeypatch):
    seen = []
    certify = unbounded.PrivateQuantile.certify
    monkeypatch.setattr(
        unbounded.PrivateQuantile, "certify", lambda self: seen.append(self) or certify(self)
    )
    assert mean_without_bounds(unit=1, epsilon=2).certify().holds
    fine = Fraction(144, 1000)  # of a thousand rows
    levels = [Fraction(1, 4), Fraction(3, 4), fine, 1 - fine]
    assert [one.quantile for one in seen] == levels
    assert [one.epsilon for one in seen] == [Fraction(1, 8)] * 2 + [Fraction(1, 4)] * 2


# -- choices ------------------------------------------------------------------------------------


def weights_of(values, span, level, rate, *, climbing):
    """Point by point, from the definition of the rank curve."""
    n = len(values)
    knots = [0, *values, span] if climbing else list(values)
    target = level * (n + 1 if climbing else n)
    weights = []
    for point in range(span + 1):
        at = [i for i, knot in enumerate(knots) if knot == point]
        if at:
            low, high = (at[0], at[-1]) if climbing else (at[0], at[-1] + 1)
        elif climbing:
            i = max(i for i, knot in enumerate(knots) if knot < point)
            low = high = i + Fraction(point - knots[i], knots[i + 1] - knots[i])
        else:
            low = high = sum(value < point for value in values)
        score = max(low - target, target - high, 0)
        weights.append(math.exp(-rate * score))
    return np.array(weights)


COLUMNS = [[], [4], [0, 0, 3], [2, 5, 5, 5, 9], [1, 4, 11, 12], [12] * 3]


@pytest.mark.parametrize("values", COLUMNS)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 5), Fraction(9, 10)])
@pytest.mark.parametrize("climbing", [False, True])
def test_shares_of_pieces_are_enclosed(values, level, climbing):
    rate, span = Fraction(2, 3), 12
    choice = PiecewiseExponential(
        values=np.array(values, dtype=np.int64),
        span=span,
        level=level,
        climbing=climbing,
        rate=rate,
    )
    weights = weights_of(values, span, level, float(rate), climbing=climbing)
    found = choice.pieces()
    places = [
        [int(start + way * j) for j in range(points)]
        for start, way, points in zip(found.start, found.way, found.points, strict=True)
    ]
    assert sorted(point for held in places for point in held) == list(range(span + 1))
    masses = np.array([weights[held].sum() for held in places])
    assert found.masses(rate) == pytest.approx(masses / weights.max(), rel=1e-12)
    ends = np.cumsum(masses) / masses.sum()
    for index, exact in enumerate(ends):
        low, high = quantile_pieces._end(found, rate, index, 80)
        assert 0 <= high - low <= 2**20
        assert low / 2**80 == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("exponent", [Fraction(3, 2), Fraction(0), Fraction(-3, 2), Fraction(-9)])
def test_weights_of_either_sign_are_enclosed(exponent):
    low, high = quantile_pieces._weight(exponent, 100)
    assert low <= high <= low + 2**40
    assert low / 2**100 == pytest.approx(math.exp(-exponent), rel=1e-14)


@pytest.mark.parametrize(("points", "gap"), [(50, 49), (1000, 30), (7, 400)])
def test_a_place_in_a_piece_is_guessed_at_once(points, gap, monkeypatch):
    pairs = []
    invert = quantile_pieces.invert

    def spied(uniform, at_least, first):
        found = invert(uniform, at_least, first)
        pairs.append((first, found))
        return found

    monkeypatch.setattr(quantile_pieces, "invert", spied)
    bits = seeded_rng(5)
    places = [quantile_pieces._place(points, gap, Fraction(7, 2), bits) for _ in range(40)]
    assert [first for first, _ in pairs] == [found for _, found in pairs] == places
    assert len(set(places)) > 4


@pytest.mark.parametrize("values", COLUMNS)
@pytest.mark.parametrize("method", ["interpolated", "exponential"])
@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_the_law_of_a_chosen_quantile(values, method, relation):
    level = Fraction(1, 5)
    made = private_quantile(
        level, lower=0, upper=12, granularity=1, epsilon=2, method=method, relation=relation
    )
    rate = 1 if relation is NeighboringRelation.REPLACE_ONE else 1 / 0.8
    weights = weights_of(values, 12, level, rate, climbing=method == "interpolated")
    found = made.probabilities(np.array(values, dtype=np.int64))
    assert found == pytest.approx(weights / weights.sum(), rel=1e-12)
    kind = events.BoundedRangeEvent(Fraction(2))
    assert made.guarantee.event == kind
    flips = dataclasses.replace(made, method="permute_and_flip")
    assert flips.guarantee.event == events.PureEvent(Fraction(2))


def test_a_scale_is_raised_until_it_is_shown_to_keep_its_promise(monkeypatch):
    """By a four-millionth first, then by twice as much each time, and to 2048 times at most."""
    tried = []
    monkeypatch.setattr(
        BoundedOutputs, "keeps", lambda self, scale, *_: tried.append(scale) or False
    )
    outputs = BoundedOutputs(span=20, shift=3)
    with pytest.raises(Unsupported):
        outputs.calibrate(Fraction(1), Fraction(1, 1000))
    more = [tried[i] / tried[22] - 1 for i in range(22)]
    assert more == [Fraction(1, 2**k) for k in range(22, 0, -1)]
    assert [scale / tried[22] for scale in tried[22:]] == [2**k for k in range(12)]
    exact = outputs.worst(float(tried[22]), 1.0)[0]
    assert exact == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize(
    ("points", "gap", "rate"),
    [
        (1000, 2**20, Fraction(1, 2**40)),
        (2, 2**30, Fraction(1, 3)),
        (500, 3, Fraction(1, 2**60)),
        (2**20 - 1, 2**20, Fraction(5)),
        (1000, 3, Fraction(2**20)),
    ],
)
def test_runs_and_tails_are_known_to_the_last_digit(points, gap, rate):
    """However flat or steep a piece is, its sum is enclosed by numbers next to each other."""
    low, high = quantile_pieces._run(points, gap, rate, 90)
    assert 0 <= high - low <= 2
    slope = float(rate) / gap
    assert low / 2**90 == pytest.approx(math.expm1(-slope * points) / math.expm1(-slope), rel=1e-12)
    for j in (1, points // 2, points - 1):
        low, high = quantile_pieces._tail(points, rate / gap, j, 90)
        assert 0 <= high - low <= 3
