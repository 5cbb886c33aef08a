"""Enclosures stay outward whatever they are made of.

The parts of an enclosure are so narrow that a bound taken from the wrong side would hardly ever
show. Here the parts are made wide: any choice of values within them must lie in the result.
"""

import random
from fractions import Fraction

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.noise import bounded_laplace as bounded
from discreet.noise import gaussian as blocks
from discreet.noise import gaussian as magnitude
from discreet.noise import laplace, uniform
from discreet.noise import piecewise_constant as staircase
from discreet.noise import piecewise_constant as stepped
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import GaussianMagnitude
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant, Staircase
from discreet.noise.random_source import seeded_rng

PRECISION = 30
TRIES = 300


class Wide:
    """Exponentials known to a sixtieth; a value within them for each try."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.found = {}

    def __call__(self, exponent, precision):
        low, high = exp_minus(exponent, precision)
        if exponent == 0:
            return low, high
        low, high = low - (low >> 6) - 1, min(high + (high >> 6) + 1, 1 << precision)
        part = self._random.choice((0, 1, self._random.random()))
        self.found.setdefault(exponent, (low + (high - low) * Fraction(part)) / (1 << precision))
        return low, high


def enclosed(monkeypatch, module, enclosure, value):
    """Whether many choices all lie inside, and some near either end."""
    nearest = [Fraction(1), Fraction(1)]
    for seed in range(TRIES):
        wide = Wide(seed)
        monkeypatch.setattr(module, "exp_minus", wide)
        low, high = enclosure(PRECISION)
        true = value(wide.found) * (1 << PRECISION)
        assert low <= true <= high
        nearest = [min(nearest[0], true - low), min(nearest[1], high - true)]
    return max(nearest) < 1


@pytest.mark.parametrize(("k", "times"), [(1, 1), (3, 1), (2, 2)])
def test_laplace(monkeypatch, k, times):
    law = DiscreteLaplace(Fraction(7, 3))

    def value(found):
        r = found[Fraction(3, 7)]
        return times * (r if k == 1 else found[Fraction(3 * k, 7)]) / (1 + r)

    tight = enclosed(monkeypatch, laplace, lambda p: law._tail(k, times, p), value)
    assert tight or k == 1  # for k = 1 the same number is above and below


@pytest.mark.parametrize("k", [2, 4])
def test_bounded(monkeypatch, k):
    law = BoundedDiscreteLaplace(4, lower=-6, upper=9)

    def value(found):
        power, last, one, first = (found[Fraction(n, 4)] for n in (k, 10, 1, 7))
        return (power - last) / (1 + one - first - last)

    enclosed(monkeypatch, bounded, lambda p: law._tail(k, p), value)


@pytest.mark.parametrize(
    ("k", "tread", "shift"),
    [(1, 3, 7), (4, 3, 7), (8, 3, 7), (12, 7, 7), (20, 1, 7), (8, 3, 4), (20, 1, 4)],
)
def test_staircase(monkeypatch, k, tread, shift):
    epsilon = Fraction(1, 3) if shift == 7 else Fraction(8, 5)
    law = Staircase(epsilon, shift=shift, tread=tread)

    def value(found):
        flights, place = divmod(k, shift)
        b = found[epsilon]
        power = found[epsilon * flights] if flights else Fraction(1)
        weights = [Fraction(1) if u < tread else b for u in range(shift)]
        flight = sum(weights)
        return power * (sum(weights[place:]) + b * flight / (1 - b)) / (2 * flight / (1 - b) - 1)

    enclosed(monkeypatch, staircase, lambda p: law.at_least(k, p), value)


@pytest.mark.parametrize("index", [0, 1, 3])
def test_borders(monkeypatch, index):
    gaps = np.array([2, 5, 0, 1, 9])
    borders = uniform._Borders(gaps, Fraction(1, 3))

    def value(found):
        weights = [found[Fraction(int(gap), 3)] if gap else Fraction(1) for gap in gaps]
        return sum(weights[: index + 1]) / sum(weights)

    tight = enclosed(monkeypatch, uniform, lambda p: borders.end(index, p), value)
    assert tight or index != 0


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_magnitudes(monkeypatch, k, folded):
    """Sums of weights that are known to a tenth, and a rest of at most 40."""
    lows, highs, rest = [900, 500, 300, 90], [900, 580, 310, 120], 40
    cumulated = [sum(lows[: i + 1]) for i in range(4)], [sum(highs[: i + 1]) for i in range(4)]
    monkeypatch.setattr(magnitude, "_cumulated", lambda *_: (*cumulated, rest))
    low, high = GaussianMagnitude(Fraction(9), folded=folded).at_least(k, PRECISION)

    def mass(weights):
        doubled = [w * (2 if folded and i else 1) for i, w in enumerate(weights)]
        return Fraction(sum(doubled[k:]), sum(doubled)) * (1 << PRECISION)

    least = mass([*highs[:k], *lows[k:], 0])
    most = mass([*lows[:k], *highs[k:], rest])
    assert (low, high) == (least.__floor__(), most.__ceil__())


def test_weights_of_magnitudes_hold_their_exponentials():
    """At few bits the recurrence rounds at every step; the sums must hold the true ones."""
    low, high, rest = magnitude._cumulated(Fraction(30), 4)
    work = 4 + (2 * 4 * 30).bit_length() + 32
    assert low[0] == high[0] == 1 << work
    least = most = 0
    for k in range(len(low)):
        one = exp_minus(Fraction(k * k, 60), work + 60)
        least, most = least + one[0], most + one[1]
        assert low[k] << 60 <= most
        assert high[k] << 60 >= least
        if k:
            assert high[k] - low[k] > high[k - 1] - low[k - 1]
    after = sum(
        exp_minus(Fraction(k * k, 60), work + 60)[1] for k in range(len(low), len(low) + 400)
    )
    assert rest << 60 >= after
    assert rest < 1 << 9


def test_divergences(monkeypatch):
    """With e^epsilon known to a sixtieth the claim is at least that of the smallest value."""
    law = PiecewiseConstant([TOTAL // 2, TOTAL // 8, TOTAL // 16, TOTAL // 16])
    every = (*law.weights[:0:-1], *law.weights)
    epsilon = Fraction(1, 2)
    low = exp_minus(epsilon, 192)[1]
    widest = low + (low >> 6) + 1
    monkeypatch.setattr(stepped, "exp_minus", Wide(1))
    factor = Fraction(1 << 192, widest)
    moved = (0, *every)
    least = sum(
        max(Fraction(0), own - factor * other) for own, other in zip(every, moved, strict=False)
    )
    assert 0 <= law.delta(1, epsilon) - least / TOTAL < Fraction(1, 1 << 60)


class Same:
    """The same word for ever."""

    width = 20
    private = False

    def __init__(self, word):
        self._word = word

    def words(self, count):
        return np.full(count, self._word, dtype=np.uint64)


@pytest.mark.parametrize(("word", "accepted"), [(0, True), ((1 << 20) - 1, False)])
def test_acceptance_in_blocks(monkeypatch, word, accepted):
    """The coin's first bits hold the border; its other bits decide, however wide the bounds."""

    def wide(exponent, precision):
        low, high = exp_minus(exponent, precision)
        return low - 200, high + 200

    monkeypatch.setattr(blocks, "exp_minus", wide)
    law = blocks.BlockGaussian(Fraction(4096**2))
    for place in range(1, 16):
        power = Fraction(place * (2 * 1600 + place), 2 * 4096**2)
        draw = blocks._Draw.of(law, 1, seeded_rng(1), place_bits=4)
        draw.rng = Same(word)
        draw.blocks, draw.places = np.array([100]), np.array([place])
        draw.coins, draw.coin_bits = np.array([exp_minus(power, 20)[0]]), 20
        assert draw._flip(0, exact_place=True) == accepted
