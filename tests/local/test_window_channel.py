"""Windows that are compared, and their errors by the law of their symbols."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.local._window_channel import window
from discreet.local.means import balanced_piecewise as balanced_module
from discreet.local.means import hybrid as hybrid_module
from discreet.local.means import piecewise as piecewise_module
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.piecewise import PiecewiseMean, best, piecewise_mean, windows

SHAPES = [(2, 1), (3, 2), (5, 3), (6, 1), (4, 9)]


def law(made):
    """Rows are grid points, columns are symbols."""
    return np.array([made.weights(i) for i in range(made.inputs)]) / made.total


@pytest.mark.parametrize(("inputs", "width"), SHAPES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_errors_that_are_compared(inputs, width, epsilon):
    made = window(inputs=inputs, width=width, epsilon=epsilon)
    chances, places = law(made), np.arange(inputs) / (inputs - 1) - 0.5
    middle = (made.symbols - 1) / 2
    even = (np.arange(made.symbols) - middle) / (made.gain * (inputs - 1))
    assert chances @ even == pytest.approx(places)
    variances = chances @ even**2 - places**2
    assert piecewise_module._end(made) == pytest.approx(variances[-1])
    found = balanced_module._levels(made)
    assert chances @ found == pytest.approx(places, abs=1e-12)
    variances = chances @ found**2 - places**2
    assert balanced_module._worst(made) == pytest.approx(variances.max())
    assert variances.max() <= (chances @ even**2 - places**2).max() * (1 + 1e-9)
    shape = {"epsilon": epsilon, "lower": Fraction(0), "upper": Fraction(1), "window": made}
    for kind, levels in ((PiecewiseMean, even), (balanced_module.BalancedPiecewise, found)):
        one = kind(**shape)
        assert one.levels == pytest.approx(0.5 + levels)
        assert one.squares == pytest.approx(chances @ levels**2)
        assert one.size == made.symbols
        assert one.steps == inputs - 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(8)])
@pytest.mark.parametrize("steps", [1, 2, 5, 40])
def test_windows_that_balanced_tries_on_a_grid(epsilon, steps):
    tried = balanced_module._tried(epsilon, steps)
    widths = [one.width for one in tried]
    assert widths == sorted(set(widths))
    assert all(1 <= width <= steps for width in widths)
    assert all(one.inputs == steps + 1 for one in tried)
    often = round(steps / best(epsilon, steps, None).width)
    assert {steps // often, max(1, steps // often - 1)} <= set(widths)
    if steps == 2:
        assert widths[0] == 1
        assert widths[-1] == 2 or often > 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(8)])
def test_windows_that_fill_a_byte(epsilon):
    tried = balanced_module._tried(epsilon, None)
    assert all(one.symbols == 256 for one in tried)
    assert all(1 <= one.width <= 128 for one in tried)
    every = windows(epsilon, None, None, alphabet=256)
    assert [one.width for one in every] == list(range(1, 129))
    assert all(one.symbols == 256 for one in every)
    least = min(every, key=piecewise_module._end)
    assert best(epsilon, None, None) == least
    assert piecewise_mean(epsilon=epsilon, lower=0, upper=1).window == least
    given = windows(epsilon, 9, None, alphabet=256)
    assert [(one.inputs, one.width) for one in given] == [(10, w) for w in range(1, 10)]
    (only,) = windows(epsilon, None, 255, alphabet=256)
    assert (only.inputs, only.width) == (2, 255)
    (both,) = windows(epsilon, 3, 7, alphabet=256)
    assert (both.inputs, both.width) == (4, 7)


def test_coins_between_a_window_and_a_bit():
    assert hybrid_module._sides(0.25) == (0, 1 << 14, 1 << 16)
    assert hybrid_module._sides(2.0) == (0, 1 << 16)
    assert hybrid_module._sides(1e-9) == (0, 1 << 16)
    made = hybrid_mean(epsilon=1, lower=0, upper=1, steps=3, window=2, share=1 << 14)
    wide, bit = law(made.wide.window), law(made.bit.window)
    assert made.size == made.wide.size + 2
    for i, place in enumerate(np.arange(4) / 3):
        chances = np.concatenate((wide[i] / 4, (bit[0] * (1 - place) + bit[1] * place) * 3 / 4))
        assert chances.sum() == pytest.approx(1)
        assert chances @ made.levels == pytest.approx(place)
        assert chances @ (made.levels - 0.5) ** 2 == pytest.approx(made.squares[i])
    every = [
        hybrid_mean(epsilon=1, lower=0, upper=1, steps=3, window=w, share=s).std
        for w in (1, 2, 3)
        for s in range(0, (1 << 16) + 1, 1 << 12)
    ]
    assert hybrid_mean(epsilon=1, lower=0, upper=1, steps=3).std <= min(every) * (1 + 1e-9)


class Given:
    """Words that are given first, then zeros."""

    width = 64
    private = False

    def __init__(self, words):
        self.left = list(words)

    def words(self, count):
        out = [self.left.pop(0) if self.left else 0 for _ in range(count)]
        return np.array(out, dtype=np.uint64)


@pytest.mark.parametrize(("word", "wide"), [(0, True), (99, True), (100, False), (65535, False)])
def test_the_side_of_a_coin(word, wide):
    made = hybrid_mean(epsilon=1, lower=0, upper=1, steps=3, window=2, share=100)
    symbol = int(made.draw(np.array([0.0]), Given([word << 48]))[0])
    assert (symbol < made.wide.size) == wide
    # With zeros for all else, the first symbol of its side.
    assert symbol == (0 if wide else made.wide.size)


@pytest.mark.parametrize(("inputs", "width"), [(5, 3), (9, 2), (12, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4)])
def test_more_rounds_never_make_levels_worse(inputs, width, epsilon, monkeypatch):
    made = window(inputs=inputs, width=width, epsilon=epsilon)
    chances, places = law(made), np.arange(inputs) / (inputs - 1) - 0.5
    worst = []
    for rounds in range(60):
        monkeypatch.setattr(balanced_module, "_ROUNDS", rounds)
        found = balanced_module._levels.__wrapped__(made)
        worst.append((chances @ found**2 - places**2).max())
    assert worst == sorted(worst, reverse=True)
    assert worst[-1] < worst[0]
