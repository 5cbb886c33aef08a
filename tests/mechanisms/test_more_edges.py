"""Pieces of two points, the largest inputs and epsilons, losses rounded up: each at its edge."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.mechanisms.local.unary import oue, sue
from discreet.mechanisms.quantile_pieces import _place
from discreet.mechanisms.smooth_noise import cauchy_multiplier
from discreet.mechanisms.values import read
from discreet.noise.bits import seeded
from tests.laws import frequency

DRAWS = 4_000


@pytest.mark.parametrize("points", [1, 2, 3])
def test_a_short_piece_is_drawn_with_its_weights(points):
    rate, gap = Fraction(3, 2), 3
    bits = seeded(points)
    seen = [_place(points, gap, rate, bits) for _ in range(DRAWS)]
    weights = [math.exp(-rate * j / gap) for j in range(points)]
    assert set(seen) == set(range(points))
    for j, weight in enumerate(weights):
        assert frequency(seen.count(j), DRAWS, weight / math.fsum(weights)) or points == 1


@pytest.mark.parametrize("make", [sue, oue])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1, 0.2, 1, 3])
def test_the_loss_of_coins_is_rounded_up_and_hardly(make, epsilon):
    made = make(categories=5, epsilon=epsilon)
    with mp.workdps(60):
        exact = mp.log(mpf(made.ratio.numerator) / mpf(made.ratio.denominator))
        assert mpf(made.realised) >= exact
        assert mpf(made.realised) <= exact * (1 + mpf(2) ** -48) + mpf(2) ** -51


def test_the_largest_whole_input_is_taken_and_the_next_refused():
    for value in (1 << 61, -(1 << 61)):
        assert read(value).whole.tolist() == [value]
        assert read([value]).whole.tolist() == [value]
        beyond = value + (1 if value > 0 else -1)
        for given in (beyond, [beyond]):
            with pytest.raises(OutOfDomain, match=r"within -2\*\*61 and 2\*\*61"):
                read(given)
    with pytest.raises(OutOfDomain, match=r"within -2\*\*61 and 2\*\*61"):
        read(np.array([1 << 62], dtype=np.uint64))


def test_the_largest_epsilon_of_smooth_sensitivity():
    column = {"lower": 0, "upper": 1, "rows": 5}
    discreet.smooth(**column, epsilon=100)
    with pytest.raises(InvalidArgument, match="epsilon must be at most 100, got 100.5"):
        discreet.smooth(**column, epsilon=100.5)


def test_no_multiplier_of_cauchy_noise_where_there_is_no_room():
    assert cauchy_multiplier(1.0, 20.0) == math.inf
    assert cauchy_multiplier(0.0, 0.0) == math.inf
    assert cauchy_multiplier(1.0, 0.0) == pytest.approx(1 / (2 * math.sinh(0.5)), rel=1e-15)
