"""Searches: where they begin, what they ask, and that they end at the smallest that will do."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import Unsupported
from discreet.mechanisms.bounded import _divergence as bounded_pair
from discreet.mechanisms.bounded._divergence import BoundedOutputs
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.scalar import grafted
from discreet.mechanisms.scalar._base import LOSSES
from discreet.noise.piecewise_constant import TOTAL

# -- scales of bounded noise --------------------------------------------------------------------


def test_a_scale_is_halved_down_to_its_last_bits():
    """Doubled or halved until the answer lies between, then halved 48 times."""
    step = Fraction(1, 2**48)
    assert bounded_pair._smallest(lambda scale: scale > 1, Fraction(1)) == 1 + step
    assert bounded_pair._smallest(lambda scale: scale > 4, Fraction(1)) == 4 + 4 * step
    assert bounded_pair._smallest(lambda scale: scale > 0.5, Fraction(1)) == (1 + step) / 2
    assert bounded_pair._smallest(lambda scale: scale > 0.125, Fraction(1)) == (1 + step) / 8
    assert bounded_pair._smallest(lambda scale: scale >= 1, Fraction(1)) == 1


def test_scales_have_a_largest_one():
    largest = 2**33
    found = bounded_pair._smallest(lambda scale: scale >= largest, Fraction(largest, 2))
    assert found == largest
    with pytest.raises(Unsupported):
        bounded_pair._smallest(lambda scale: scale > largest, Fraction(largest, 2))


def loss_of_the_worst_pair(outputs, scale):
    """Of centers 0 and shift, at output 0, with a hundred digits."""
    every = range(outputs.span + 1)
    near, far = (
        sum((-Decimal(abs(k - q)) / scale).exp() for k in every) for q in (0, outputs.shift)
    )
    return outputs.shift / scale + (far / near).ln()


@pytest.mark.parametrize(
    "outputs", [BoundedOutputs(span=5, shift=2), BoundedOutputs(span=30, shift=7)]
)
@pytest.mark.parametrize("scale", [Fraction(1, 37), Fraction(1, 2), Fraction(9), Fraction(2000)])
def test_pure_losses_are_told_apart_to_many_digits(outputs, scale):
    with localcontext(prec=150):
        exact = loss_of_the_worst_pair(outputs, Decimal(scale.numerator) / scale.denominator)
        loss = Fraction(exact)
    assert outputs.keeps_pure(scale, loss * (1 + Fraction(1, 10**40)))
    assert not outputs.keeps_pure(scale, loss * (1 - Fraction(1, 10**40)))


def test_a_large_epsilon_needs_no_more_than_its_scale():
    outputs = BoundedOutputs(span=10, shift=1)
    scale = outputs.calibrate(Fraction(256), Fraction(0))
    with localcontext(prec=200):
        exact = loss_of_the_worst_pair(outputs, Decimal(scale.numerator) / scale.denominator)
    assert 256 * (1 - 1e-12) < exact <= 256


def test_a_sensitivity_of_the_whole_span():
    outputs = BoundedOutputs(span=8, shift=8)
    assert outputs.calibrate(Fraction(1, 2), Fraction(0)) == 16
    assert outputs.calibrate(Fraction(1, 2), Fraction(1, 100)) < 16
    shorter = BoundedOutputs(span=8, shift=7)
    assert shorter.calibrate(Fraction(1, 2), Fraction(0)) > 14


@pytest.fixture
def bounds(monkeypatch):
    """Made-up bounds and divergences of centers, and how many were asked for at a time."""
    sizes = []

    def given(*, bound, divergence):
        def asked(self, low, high, *_):
            sizes.append(len(low))
            return bound(low, high)

        monkeypatch.setattr(BoundedOutputs, "bound", asked)
        monkeypatch.setattr(BoundedOutputs, "divergence", lambda self, q, *_: divergence(q))
        return sizes

    return given


def test_too_many_open_intervals_are_given_up(bounds):
    sizes = bounds(bound=lambda low, _: np.ones(len(low)), divergence=lambda q: np.zeros(len(q)))
    outputs = BoundedOutputs(span=2**30, shift=1)
    assert not outputs.keeps(Fraction(1), Fraction(1), Fraction(1, 2))
    assert sizes == [2**k for k in range(17)]  # more than 2**15 are too many


def test_one_center_is_enough_to_refuse(bounds):
    sizes = bounds(bound=lambda low, _: np.ones(len(low)), divergence=lambda q: 1.0 * (q == 8))
    assert not BoundedOutputs(span=11, shift=1).keeps(Fraction(1), Fraction(1), Fraction(1, 2))
    assert sizes == [1, 2]  # the middles of 0..10 are 5, then 2 and 8


def test_a_divergence_may_be_as_large_as_delta(bounds):
    target = 0.5 - bounded_pair._margin(1.0)
    sizes = bounds(
        bound=lambda low, high: np.where(low == high, target, 1.0),
        divergence=lambda q: np.full(len(q), target),
    )
    assert BoundedOutputs(span=5, shift=1).keeps(Fraction(1), Fraction(1), Fraction(1, 2))
    assert sizes == [1, 2, 4, 2]


@pytest.mark.parametrize(("span", "shift"), [(60_000, 300), (60_000, 20_000), (5000, 4999)])
@pytest.mark.parametrize("scale", [40.0, 900.0, 20_000.0])
@pytest.mark.parametrize("epsilon", [0.001, 0.3, 2.0])
def test_the_worst_of_many_centers_is_found(span, shift, scale, epsilon):
    outputs = BoundedOutputs(span=span, shift=shift)
    every = outputs.divergence(np.arange(span - shift + 1), scale, epsilon)
    found, center = outputs.worst(scale, epsilon)
    assert found == pytest.approx(every.max(), rel=1e-9, abs=1e-13)
    assert found == every[center]


# -- the slope of grafted noise -----------------------------------------------------------------


@pytest.fixture
def priced(monkeypatch):
    """Grafted noise whose cost is any function of its slope: what is found, and what was tried."""

    def made(price):
        tried = []
        monkeypatch.setattr(grafted, "_fit", lambda slope, *_: tried.append(slope) or slope)
        monkeypatch.setattr(grafted, "_distribution", lambda slope, *_: slope)
        monkeypatch.setattr(grafted, "_certified", lambda slope, *_: slope)
        monkeypatch.setitem(LOSSES, "mse", price)
        found = grafted.grafted(sensitivity=1, epsilon=2, delta=1e-3).noise
        return found / 2, [slope / 2 for slope in tried]

    return made


FACTORS = [0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 2.0]


@pytest.mark.parametrize("best", FACTORS)
@pytest.mark.parametrize("off", [0.9, 1.0, 1.03])
def test_slopes_are_searched_around_epsilon(best, off, priced):
    at = best * off
    found, tried = priced(lambda slope: 100 + math.log(slope / 2 / at) ** 2)
    assert sorted(tried[:7]) == FACTORS
    nearest = min(FACTORS, key=lambda factor: abs(math.log(factor / at)))
    assert found == pytest.approx(at, rel=2e-3)
    # The last is what was found.
    assert all(0.85 * nearest < factor < 1.15 * nearest for factor in tried[8:])


def test_the_ends_of_the_search_are_reached(priced):
    for price, end in ((lambda slope: 1 + slope, 0.85), (lambda slope: 9 - slope, 1.15)):
        found, tried = priced(lambda s, price=price: 50.0 if s in (1.8, 2.2) else price(s))
        nearest = {0.85: 0.5, 1.15: 2.0}[end]
        assert found == pytest.approx(end * nearest, rel=2e-3)
        assert len(tried) < 60


def test_slopes_that_are_all_alike_leave_epsilon(priced):
    found, tried = priced(lambda _: 3.0)
    assert found == 1.0
    assert tried[0] == 1.0


class Refused:
    """A law that keeps no promise, or only from its n-th version on."""

    def __init__(self, price):
        self.price = price

    def delta(self, shift, epsilon):
        assert (shift, epsilon) == (7, 3)
        return self.price


@pytest.fixture
def grown(monkeypatch):
    def made(keeps_at):
        shapes = []

        def law(shape, cells, width):
            assert (cells, width) == (4, 5)
            shapes.append((shape.slope, shape.core))
            return Refused(Fraction(1, 2) if len(shapes) - 1 == keeps_at else Fraction(2, 3))

        monkeypatch.setattr(grafted, "_distribution", law)
        target = (Fraction(3), Fraction(1, 2))
        try:
            found = grafted._certified(grafted._Shape(2.0, 8.0), 4, 5, 7, target)
        except Unsupported:
            found = None
        return found, shapes

    return made


def test_cores_grow_by_as_little_as_is_needed(grown):
    """By a billionth first, then by twice as much each time, below a tenth."""
    expected = [0.0, *(1e-9 * 2**k for k in range(27))]
    assert expected[-1] < 0.1 <= 2 * expected[-1]
    found, shapes = grown(None)
    assert found is None
    assert np.array(shapes) == pytest.approx(
        np.array([(2 * (1 - growth / 10), 8 * (1 + growth)) for growth in expected]), rel=1e-14
    )
    for at in (0, 1, 5, 27):
        found, shapes = grown(at)
        assert found.price == Fraction(1, 2)
        assert len(shapes) == at + 1


@pytest.mark.parametrize(("slope", "core", "cells"), [(1.0, 0.5, 3), (0.3, 4.0, 1), (40.0, 2.0, 1)])
def test_weights_of_grafted_noise_are_whole(slope, core, cells):
    shape = grafted._Shape(slope, core)
    half = shape.weights(cells)
    total = half[0] + 2 * math.fsum(half[1:])
    law = grafted._distribution(shape, cells, 3)
    assert law.width == 3
    assert law.weights[-1] > 0
    assert 2 * sum(law.weights) - law.weights[0] == TOTAL
    for weight, given in itertools.zip_longest(half, law.weights, fillvalue=0):
        assert given / TOTAL == pytest.approx(weight / total, rel=1e-9, abs=2.0**-60)


def test_a_steep_shape_is_all_center():
    law = grafted._distribution(grafted._Shape(100.0, 1.0), 1, 1)
    assert law.weights == (TOTAL,)


# -- rates of people ----------------------------------------------------------------------------


@pytest.mark.parametrize("price", [Fraction(1, 3), 2, 30])
@pytest.mark.parametrize("limit", [Fraction(1, 100), Fraction(1, 4)])
def test_rates_are_the_largest_multiples_that_keep_the_limit(price, limit):
    ((_, rate),) = personalized_sampling(
        discreet.pure_dp(price), {"a": discreet.pure_dp(limit)}
    ).rates
    with localcontext(prec=60):
        wanted, base = (Decimal(x.numerator) / x.denominator for x in (limit, Fraction(price)))
        steps = Fraction((wanted.exp() - 1) / (base.exp() - 1)) * 2**32
    assert (rate * 2**32).denominator == 1
    assert steps - 2 < rate * 2**32 <= steps * (1 + Fraction(1, 10**9))
