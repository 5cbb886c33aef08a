"""Pieces of a grid: which are made, how they are enclosed, and where a search in them begins."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _piecewise_exponential as quantile_pieces
from discreet.mechanisms import quantiles as quantile_tree
from discreet.mechanisms._piecewise_exponential import PiecewiseExponential, RankPieces, pieces
from discreet.mechanisms.data_dependent import _smooth_noise as rational_angle
from discreet.mechanisms.data_dependent import _smooth_noise as smooth_noise
from discreet.mechanisms.quantiles import private_quantiles
from discreet.noise.random_source import SeededRandomSource, seeded_rng

LEVELS = [Fraction(1, 2), Fraction(1, 7), Fraction(9, 10)]


class Told(SeededRandomSource):
    """Words that are told, then random ones."""

    def __init__(self, *words, width=64):
        super().__init__(1, width=width)
        self.left = list(words)

    def words(self, count):
        told = [
            self.left.pop(0) if self.left else super(Told, self).words(1)[0] for _ in range(count)
        ]
        return np.array(told, dtype=np.uint64)


def listed(found):
    """Each piece as its points and exact scores, in their order."""
    ways = zip(found.start, found.way, found.points, found.gap, strict=True)
    return [
        tuple(
            (int(start + way * j), found.exact(i) + (Fraction(j, int(gap)) if gap else 0))
            for j in range(points)
        )
        for i, (start, way, points, gap) in enumerate(ways)
    ]


# -- which pieces -------------------------------------------------------------------------------


@pytest.mark.parametrize("climbing", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_within_reach_is_left_out(climbing, level):
    rng = np.random.default_rng(6)
    for rows in (1, 2, 3, 12):
        for values in (
            np.sort(rng.choice(90, rows, replace=False)),
            np.sort(rng.integers(0, rows, rows)) * 7,
        ):
            whole = listed(pieces(values, 90, level=level, climbing=climbing))
            assert all(whole)  # no piece without a point
            distinct = len(np.unique(values)) == rows
            for reach in (1, 2, 5, rows, rows + 1, 3 * rows):
                near = listed(pieces(values, 90, level=level, climbing=climbing, reach=reach))
                assert near == [piece for piece in whole if piece in near]
                missing = [piece for piece in whole if piece not in near]
                assert all(score > reach - 1 for piece in missing for _, score in piece)
                if distinct:
                    assert all(piece[0][1] <= reach + 2 for piece in near)


def test_gaps_are_in_order_but_for_the_one_that_holds_the_target():
    """Knots first, then the gaps from left to right; a target at a knot is in no gap."""
    values = np.array([10, 20, 30])
    found = pieces(values, 40, level=Fraction(1, 2), climbing=True)
    starts = [0, 10, 20, 30, 40, 9, 19, 21, 31]
    assert found.start.tolist() == starts
    found = pieces(values, 40, level=Fraction(3, 8), climbing=True)  # target 3/2
    assert found.start.tolist() == [0, 10, 20, 30, 40, 9, 21, 31, 15, 16]
    assert found.way.tolist()[5:] == [-1, 1, 1, -1, 1]


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 3), Fraction(5), Fraction(1, 1000)])
def test_a_draw_looks_as_far_as_is_needed(rate, monkeypatch):
    """2**41 points that are two ranks nearer than the reach weigh at most 2**-60."""
    asked = []
    made = PiecewiseExponential.pieces

    def spied(self, reach=None):
        asked.append(reach)
        return made(self, reach)

    monkeypatch.setattr(PiecewiseExponential, "pieces", spied)
    choice = PiecewiseExponential(
        values=np.arange(50), span=60, level=Fraction(1, 2), climbing=True, rate=rate
    )
    choice.draw(seeded_rng(1))
    far = 101 * math.log(2) / float(rate)
    assert asked[0] - 4 < far <= asked[0] - 3


def test_a_draw_is_settled_exactly_from_so_near_on(monkeypatch):
    """Five pieces and 64 roundings, each 2**-51 of the total."""
    asked = []
    end = quantile_pieces._end
    monkeypatch.setattr(quantile_pieces, "_end", lambda *given: asked.append(given) or end(*given))
    choice = PiecewiseExponential(
        values=np.array([3, 7]), span=12, level=Fraction(1, 2), climbing=False, rate=Fraction(1)
    )
    masses = choice.pieces().masses(Fraction(1))
    assert len(masses) == 5
    border = int(Fraction(math.fsum(masses[:2]) / math.fsum(masses)) * 2**64)
    for units, exactly in ((68.3, True), (69.5, False), (-68.3, True), (-69.5, False)):
        asked.clear()
        choice.draw(Told(border + int(units * 2**13)))
        assert bool(asked) is exactly


# -- enclosures ---------------------------------------------------------------------------------


def two_pieces(ranks, points):
    one = np.ones(2, dtype=np.int64)
    return RankPieces(
        start=one,
        way=one,
        points=np.array(points),
        ranks=np.array(ranks),
        rest=0 * one,
        gap=0 * one,
        unit=1,
    )


@pytest.mark.parametrize("precision", [8, 40, 72])
def test_what_is_too_far_to_be_summed_is_still_counted(precision):
    """A share next to 0 or 1 is neither."""
    far = 10**6
    for ranks, enclosed in (((0, far), (2**precision - 1, 2**precision)), ((far, 0), (0, 1))):
        found = quantile_pieces._end(two_pieces(ranks, (1, 2**40)), Fraction(1), 0, precision)
        assert found == enclosed
    # Many points together may weigh something though each weighs nothing.
    with decimal.localcontext() as context:
        context.prec = 80
        rate = Fraction(7, 10)
        ranks = math.ceil((precision + 20) * math.log(2) / 0.7)
        weight = 2**40 * (-decimal.Decimal(7) * ranks / 10).exp()
        exact = int(2**precision / (1 + weight))
    found = quantile_pieces._end(two_pieces((0, ranks), (1, 2**40)), rate, 0, precision)
    assert found == (exact, exact + 1)


def test_places_outside_a_piece():
    for j, exact in ((-3, 1), (0, 1), (10, 0), (14, 0)):
        low, high = quantile_pieces._at_least(10, Fraction(1, 3), j)(60)
        assert low <= exact << 60 <= high
        assert high - low <= 3


def test_series_of_small_angles():
    assert rational_angle._series(Fraction(0), 100) == (-1, 1)
    assert rational_angle._series(Fraction(1, 2**200), 100) == (-1, 1)
    low, high = rational_angle._series(Fraction(1, 2**60), 100)
    assert (low, high) == (2**40 - 1, 2**40 + 1)
    low, high = rational_angle._series(Fraction(3, 2**101), 100)
    assert low <= 1
    assert 2 <= high <= 3
    for x in (Fraction(1, 2), Fraction(1, 3), Fraction(3, 7)):
        low, high = rational_angle._series(x, 50)
        assert low < math.atan(x) * 2**50 < high
        assert high - low < 60


# -- where searches begin -----------------------------------------------------------------------


@pytest.fixture
def guesses(monkeypatch):
    """First places of searches in pieces and in noise."""
    found = []
    for module in (quantile_pieces, smooth_noise):
        invert = module.invert

        def spied(uniform, at_least, first, invert=invert):
            found.append(first)
            return invert(uniform, at_least, first)

        monkeypatch.setattr(module, "invert", spied)
    return found


@pytest.mark.parametrize("word", [0, 1, 7, 14, 15])
def test_searches_begin_in_the_middle_of_what_is_known(word, guesses):
    """After four bits a number lies between sixteenths."""
    u = (word + 0.5) / 16
    place = quantile_pieces._place(1000, 400, Fraction(7, 2), Told(word, width=4))
    slope = 3.5 / 400
    first = -math.log(u + (1 - u) * math.exp(-slope * 1000)) / slope
    assert guesses == [math.floor(first)]
    assert 0 <= place < 1000
    guesses.clear()
    smooth_noise.laplace_draw(Fraction(1000), Told(0, word, width=4))
    assert guesses == [math.floor(-math.log(u) * 1000 + 0.5)]


def test_the_steepest_pieces_have_a_first_place(guesses):
    """A word of zeros is the farthest place, of which doubles know nothing."""
    place = quantile_pieces._place(10**6, 1, Fraction(1), Told(0, 1 << 63))
    assert guesses == [math.floor(53 * math.log(2))]
    assert place == math.floor(65 * math.log(2))


def test_the_sign_of_noise_is_the_last_bit_of_its_first_word():
    middle = 1 << 62
    for word, sign in ((0, 1), (1, -1), (2, 1), (3, -1)):
        found = smooth_noise.laplace_draw(Fraction(1000), Told(word, middle))
        assert found == sign * round(1000 * math.log(4))


# -- many quantiles -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_levels_are_chosen_from_the_middle_on(relation, monkeypatch):
    asked = []
    answers = [6, 2, 0, 3, 2]  # of all, below 6 (and below 2), from 6 on (and below 9)

    def draw(self, rng):
        asked.append((self.values.tolist(), self.span, self.level, self.rate, self.climbing))
        return answers[len(asked) - 1]

    monkeypatch.setattr(PiecewiseExponential, "draw", draw)
    levels = [Fraction(k, 10) for k in (1, 2, 5, 8, 9)]
    options = {"lower": -1, "upper": 9, "granularity": 1, "epsilon": 3, "relation": relation}
    made = private_quantiles(levels, **options)
    found = made.release([-1, 0, 3, 4, 5, 5, 6, 9], rng=seeded_rng(1))
    step = Fraction(1) if relation is NeighboringRelation.ADD_REMOVE else Fraction(1, 2)
    assert made.step == step
    # In steps from -1: 0 1 4 5 6 6 7 10. The middle is 6; from there on it is 6 6 7 10.
    assert asked == [
        ([0, 1, 4, 5, 6, 6, 7, 10], 10, Fraction(1, 2), step, True),
        ([0, 1, 4, 5], 6, Fraction(2, 5), step / Fraction(6, 5), True),
        ([0, 1], 2, Fraction(1, 2), step, True),
        ([0, 0, 1, 4], 4, Fraction(4, 5), step / Fraction(8, 5), True),
        ([0, 0, 1], 3, Fraction(3, 4), step / Fraction(3, 2), True),
    ]
    assert found == [-1, 1, 5, 7, 8]
    asked.clear()
    answers[:] = [0, 10, 10]  # nothing is left below the first
    found = made.release([3, 4], rng=seeded_rng(1))
    assert found == [-1, -1, -1, 9, 9]


def test_levels_have_no_long_denominators(monkeypatch):
    asked = []
    monkeypatch.setattr(
        PiecewiseExponential, "draw", lambda self, bits: asked.append(self.level) or 5
    )
    levels = [Fraction(1, 3), Fraction(524_287, 2**20)]
    ratio = levels[0] / levels[1]
    assert ratio.denominator > 2**20
    assert ratio.limit_denominator(2**21).denominator > 2**20
    private_quantiles(levels, lower=0, upper=9, granularity=1, epsilon=1).release(
        [3], rng=seeded_rng(1)
    )
    assert asked[0] == levels[1]
    assert asked[1] == ratio.limit_denominator(2**20)
    assert quantile_tree._LARGEST_DENOMINATOR == 2**20


def test_one_level_out_of_order_is_enough():
    for levels in ([0.25, 0.75, 0.5], [0.5, 0.25, 0.75], [0.25, 0.5, 0.5, 0.75]):
        with pytest.raises(InvalidArgument, match="increasing"):
            private_quantiles(levels, lower=0, upper=1, epsilon=1)
