"""How much double precision is trusted: draws within the proven margin are decided exactly.

Every fast path has a bound on its error. A draw beside a border is compared exactly if it lies
within that bound, and not if it lies beyond: too narrow a margin gives wrong draws, too wide a one
is slow.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.noise import gaussian as blocks
from discreet.noise import gaussian as magnitude
from discreet.noise import laplace as exponential
from discreet.noise import uniform
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import GaussianMagnitude
from discreet.noise.laplace import DiscreteLaplace, Geometric, RoundedLaplace
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from discreet.noise.uniform import LazyUniform, invert
from tests.noise.test_boundaries import Given

WITHIN, BEYOND = 0.96, 1.04


@pytest.fixture
def compared(monkeypatch):
    """A list that grows with every exact comparison."""
    seen = []
    plain = LazyUniform.below

    def below(self, threshold):
        seen.append(self.bits)
        return plain(self, threshold)

    monkeypatch.setattr(LazyUniform, "below", below)
    return seen


@pytest.mark.parametrize(
    ("scale", "width", "split"),
    [
        (1.0, 64, 40),
        (0.01, 64, 40),
        (8.0, 64, 40),
        (9.0, 64, 39),
        (1000.0, 64, 33),
        (1024.0, 64, 33),
        (1025.0, 64, 32),
        (2.0**33, 64, 17),
        (2.0**26, 64, 17),
        (2.0**25, 64, 18),
        (0.3, 50, 29),
        (1.0, 12, 3),
        (1.0, 6, 1),
        (1.0, 3, 0),
        (2.0**40, 50, 16),
    ],
)
def test_what_doubles_can_tell_of_a_logarithm(scale, width, split):
    """Numbers of at least 2**-split are placed within 0.51 units of their last bit."""
    made = exponential._precision(scale, width)
    assert made.half == 2.0 ** (63 - width)
    assert made.longest == pytest.approx(split * math.log(2) * 0.999, rel=1e-12)
    double = Fraction(1, 1 << 44)
    placed = Fraction(51, 100) / Fraction(2) ** (width - 1 - split)
    bound = Fraction(scale) * (placed + double) + double
    assert made.error == pytest.approx(float(bound), rel=1e-12, abs=0)


def test_coins_beside_their_border(compared):
    """Two doubles of 2**-46 and half a word."""
    border = exp_minus(Fraction(1), 64)[0]
    one = np.ones(1, dtype=np.int64)
    for side in (-1, 1):
        for share, exact in ((WITHIN, 1), (BEYOND, 0)):
            word = border + side * round(share * 2**18)
            coin = uniform.bernoulli_exp(one, Fraction(1), Given([word]))
            assert len(compared) == exact
            assert coin.tolist() == [side < 0]
            compared.clear()


def test_short_coins_beside_their_border(monkeypatch):
    decided = []

    class Noted(LazyUniform):
        def __init__(self, source, *, value, bits):
            decided.append(value)
            super().__init__(source, value=value, bits=bits)

    class Every:
        width = 12

        def words(self, count):
            return np.arange(count, dtype=np.uint64)

    monkeypatch.setattr(uniform, "LazyUniform", Noted)
    uniform.bernoulli_exp(np.ones(4096, dtype=np.int64), Fraction(1), Every())
    assert decided == [w for w in range(4096) if abs((w + 0.5) / 4096 - math.exp(-1)) <= 2**-12]


@pytest.mark.parametrize("candidates", [5, 200])
def test_choices_beside_their_borders(compared, candidates):
    scores = np.arange(candidates) % 5
    gaps = scores.max() - scores
    border = uniform._Borders(gaps, Fraction(1, 3)).end(3, 64)[0]
    margin = (candidates + 16) * 2**13 + 1
    for side in (-1, 1):
        for share, exact in ((WITHIN, True), (BEYOND, False)):
            word = border + side * round(share * margin)
            choice = uniform.exponential_choice(scores, Fraction(1, 3), Given([word]))
            assert bool(compared) == exact
            assert choice == (3 if side < 0 else 4)
            compared.clear()


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(1 << 20)])
@pytest.mark.parametrize("right", [True, False])
def test_bounded_draws_beside_their_borders(compared, scale, right):
    """The place of a draw is known to scale * (2**-47 + 2**-44) + 2**-44 steps."""
    unit = math.ceil(scale)
    law = BoundedDiscreteLaplace(scale, lower=-60 * unit, upper=60 * unit)
    k = unit if right else -unit
    border = law.at_least(k, 64)[0]
    r, t = math.exp(-1 / scale), float(scale)
    steps = t * (2.0**-47 + 2.0**-44) + 2.0**-44
    words = steps * (r**k if right else r ** (1 - k)) / (t * (1 + r)) * 2**64
    for side in (-1, 1):
        for share, exact in ((WITHIN, True), (BEYOND, False)):
            word = border + side * round(share * words)
            draw = law.sample(1, Given([word]))[0]
            assert bool(compared) == exact
            assert (draw >= k) == (side < 0)
            compared.clear()


@pytest.mark.parametrize("right", [True, False])
def test_bounded_draws_far_out_are_decided_exactly_from_a_good_guess(compared, right):
    """Below 2**-17 the first bits of a number place it too coarsely for its logarithm."""
    law = BoundedDiscreteLaplace(10, lower=-(10**6), upper=10**6)
    total = 1 + math.exp(-0.1)
    for share, exact in ((0.999, 2), (1.001, 0), (0.01, 2)):
        word = round(share * 2**47 / total)
        draw = law.sample(1, Given([word if right else (1 << 64) - word]))[0]
        assert len(compared) == exact
        size = draw if right else -draw
        assert size == pytest.approx(-10 * math.log(share * 2**-17), abs=1)
        compared.clear()


@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize("folded", [True, False])
def test_tables_beside_their_ends(monkeypatch, k, folded):
    asked = []
    monkeypatch.setattr(magnitude, "invert", lambda *given: asked.append(1) or invert(*given))
    table = GaussianMagnitude(Fraction(9), folded=folded)
    end = int(table.ends[k])
    margin = 1 << 18
    for u, exact in (
        (end - margin, True),
        (end - margin - 1, False),
        (end + margin, True),
        (end + margin + 1, False),
        (0, False),
    ):
        drawn = table.draw(np.array([u], dtype=np.uint64), seeded_rng(1))
        assert bool(asked) == exact
        assert drawn.tolist() == [0 if u == 0 else k + (u >= end)]
        asked.clear()


def test_short_words_beside_the_ends_of_a_table(monkeypatch):
    """A word of twelve bits stands for everything within 2**51 units of its middle."""
    asked = []

    def noted(number, *rest):
        asked.append((1 << 11) - 1 - number.value)
        return invert(number, *rest)

    monkeypatch.setattr(magnitude, "invert", noted)
    table = GaussianMagnitude(Fraction(9), folded=True)
    words = np.arange(1 << 11, dtype=np.uint64) << np.uint64(52)
    table.draw(words, SeededRandomSource(5, width=12))
    ends = [int(end) for end in table.ends]
    near = (1 << 51) + (1 << 18)
    middles = [(w << 52) + (1 << 51) for w in range(1 << 11)]
    assert asked == [w for w, u in enumerate(middles) if any(abs(u - e) <= near for e in ends)]


def test_guides_find_what_a_search_finds(monkeypatch):
    """Also exactly at an end; and almost never by searching."""
    table = GaussianMagnitude(Fraction(900), folded=True)
    ends = table.ends[:-1]
    u = np.concatenate(
        [ends, ends - 1, (seeded_rng(4).words(20_000) >> np.uint64(1)).view(np.int64)]
    )
    u = np.unique(np.minimum(u, ends[-1]))
    expected = np.minimum(np.searchsorted(table.ends, u, side="right"), len(ends))
    searched = []
    plain = GaussianMagnitude._searched
    monkeypatch.setattr(
        GaussianMagnitude,
        "_searched",
        lambda self, some: searched.append(len(some)) or plain(self, some),
    )
    assert np.array_equal(table._guided(u), expected)
    assert np.array_equal(plain(table, u), expected)
    assert sum(searched) < 300


def proposal(law, monkeypatch, *, exact_place, **given):
    """Which of some proposals are decided exactly."""
    flipped = []
    monkeypatch.setattr(
        blocks._Draw, "_flip", lambda _self, i, exact_place: bool(flipped.append(i)) or exact_place
    )
    draw = blocks._Draw(
        law=law,
        rng=seeded_rng(1),
        negative=np.zeros(len(given["blocks"]), dtype=bool),
        lazy={},
        **given,
    )
    draw.accepted(exact_place=exact_place)
    return flipped


def test_whole_places_beside_the_border_of_acceptance(monkeypatch):
    law = blocks.BlockGaussian(Fraction(4096**2))
    assert law.block == 16
    p = math.exp(-7 * (2 * 1600 + 7) / (2 * 4096**2))
    shares = np.array([-BEYOND, -WITHIN, WITHIN, BEYOND])
    coins = np.floor((p + shares * 2.0**-44) * 2.0**50).astype(np.int64)
    same = np.full(4, 100), np.full(4, 7)
    found = proposal(
        law,
        monkeypatch,
        exact_place=True,
        blocks=same[0],
        places=same[1],
        coins=(coins << 10) + 512,
        place_bits=4,
        coin_bits=60,
    )
    assert found == [1, 2]
    every = np.arange(4096)
    found = proposal(
        law,
        monkeypatch,
        exact_place=True,
        blocks=np.full(4096, 100),
        places=np.full(4096, 7),
        coins=every,
        place_bits=4,
        coin_bits=12,
    )
    assert found == np.flatnonzero(np.abs((every + 0.5) / 4096 - p) <= 2**-12).tolist()


def test_real_places_beside_the_border_of_acceptance(monkeypatch):
    """A place that is known to a 1024th of a block: what the exponent changes over that."""
    law = blocks.BlockGaussian(Fraction(4096**2))
    place = 300.5 * 16 / 1024
    p = math.exp(-place * (2 * 1600 + place) / (2 * 4096**2))
    furthest = (700 + 1) * 16
    error = furthest * 16 / 4096**2 / 1024
    shares = np.array([-BEYOND, -WITHIN, WITHIN, BEYOND])
    coins = np.append(np.floor((p + shares * error) * 2.0**54), 0).astype(np.int64)
    found = proposal(
        law,
        monkeypatch,
        exact_place=False,
        blocks=np.array([100, 100, 100, 100, 700]),
        places=np.full(5, 300),
        coins=coins,
        place_bits=10,
        coin_bits=54,
    )
    assert found == [1, 2]


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize(("longest", "exact"), [(8190.5, True), (8189.5, False)])
def test_sums_beside_a_whole_number(monkeypatch, longest, exact, negative):
    """One unit of a place and 2**-50 of the longest of all draws plus two."""
    asked = []
    monkeypatch.setattr(blocks._Draw, "_floor", lambda _self, i, _center: asked.append(i) or 0)
    law = blocks.BlockGaussian(Fraction(4096**2))
    unit = 2.0**-36
    first = 1600 + 3.5 + 1.5 * unit  # with the half that rounds: a unit and a half past a border
    magnitudes = np.array([first, longest + unit / 2])
    draw = blocks._Draw(
        law=law,
        rng=seeded_rng(1),
        blocks=(magnitudes // 16).astype(np.int64),
        negative=np.full(2, negative),
        places=np.floor(magnitudes % 16 / unit).astype(np.int64),
        coins=np.zeros(2, dtype=np.int64),
        place_bits=40,
        coin_bits=24,
        lazy={},
    )
    values = np.array([0.0, 0.25])
    floors = draw.floor_of_sum(values, 0, np.ones(2, dtype=bool))
    assert asked == ([0] if exact else [])
    if not exact:
        assert floors[0] == (-1604 if negative else 1604)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(1000), Fraction(10**6)])
def test_a_good_guess_makes_it_two_comparisons(compared, scale, sign):
    words = seeded_rng(77).words(100) >> np.uint64(1)
    values = np.array([0.4])
    rounded = RoundedLaplace(scale, 0)
    ways = (
        Geometric(scale)._decide,
        DiscreteLaplace(scale)._decide,
        lambda *given: rounded._decide(values, np.floor(values), *given),
    )
    for way in ways:
        for word in words:
            way(0, sign, LazyUniform(seeded_rng(int(word) % 1000), value=int(word), bits=63))
        assert len(compared) == 2 * len(words)
        compared.clear()


def test_a_bad_guess_is_left_in_doubling_steps(compared):
    law = Geometric(10**9)
    for guess in (-(10**6), 10**12):
        lazy = LazyUniform(seeded_rng(3), value=1 << 62, bits=63)
        found = invert(lazy, lambda k: lambda precision: law.at_least(k, precision), guess)
        assert found == math.floor(10**9 * math.log(2))
        assert len(compared) < 100
        compared.clear()


def test_thresholds_are_first_asked_for_eight_bits_more(compared):
    asked = []

    def threshold(precision):
        asked.append(precision)
        return (1 << precision) // 3, (1 << precision) // 3 + 1

    LazyUniform(SeededRandomSource(2, width=4), value=5, bits=4).below(threshold)
    assert asked[:2] == [12, 16]
    assert compared == [4]
