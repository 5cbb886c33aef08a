"""Pieces of two points, the largest inputs and epsilons, losses rounded up: each at its edge."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.unary_encoding import oue, sue
from discreet.mechanisms._piecewise_exponential import _place
from discreet.mechanisms.data_dependent._smooth_noise import cauchy_multiplier
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from tests.distributions import frequency

DRAWS = 4_000


@pytest.mark.parametrize("points", [1, 2, 3])
def test_a_short_piece_is_drawn_with_its_weights(points):
    rate, gap = Fraction(3, 2), 3
    bits = seeded_rng(points)
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
        assert mpf(made.realized) >= exact
        assert mpf(made.realized) <= exact * (1 + mpf(2) ** -48) + mpf(2) ** -51


def test_the_largest_epsilon_of_smooth_sensitivity():
    column = {"lower": 0, "upper": 1, "public_rows": 5}
    discreet.smooth_sensitivity(**column, epsilon=100)
    with pytest.raises(InvalidArgument, match="epsilon must be at most 100, got 100.5"):
        discreet.smooth_sensitivity(**column, epsilon=100.5)


def test_no_multiplier_of_cauchy_noise_where_there_is_no_room():
    assert cauchy_multiplier(1.0, 20.0) == math.inf
    assert cauchy_multiplier(0.0, 0.0) == math.inf
    assert cauchy_multiplier(1.0, 0.0) == pytest.approx(1 / (2 * math.sinh(0.5)), rel=1e-15)


COLUMN = {"lower": 0, "upper": 6, "granularity": 1, "epsilon": 2}
VALUES = [1, 1, 2, 5]


@pytest.mark.parametrize("width", [3, 64])
@pytest.mark.parametrize("method", ["exponential", "interpolated"])
def test_a_quantile_is_drawn_with_the_law_of_its_method(method, width):
    made = discreet.private_quantile(**COLUMN, method=method)
    law = made.probabilities(VALUES)
    bits = SeededRandomSource(17, width=width)
    seen = np.bincount([int(made.release(VALUES, rng=bits)) for _ in range(DRAWS)], minlength=7)
    assert all(frequency(n, DRAWS, p) for n, p in zip(seen, law, strict=True))


def test_the_methods_differ_enough_to_be_told_apart():
    one, other = (
        discreet.private_quantile(**COLUMN, method=method).probabilities(VALUES)
        for method in ("exponential", "interpolated")
    )
    assert not all(frequency(p * DRAWS, DRAWS, q) for p, q in zip(one, other, strict=True))


def test_a_weighted_answer_says_its_delta():
    made = discreet.weighted_sensitivity(lower=0, upper=1, public_rows=5, epsilon=1, delta=0.05)
    assert made.guarantee.event == events.ApproxEvent(Fraction(1), Fraction(1, 20))


def test_an_interval_of_bounded_noise_allows_for_the_grid():
    """Errors at a bound and in the middle, in closed form, and a step for a truth between two."""
    made = discreet.bounded_laplace(lower=0, upper=1, sensitivity=0.5, epsilon=20)
    span, step = made.column.span, made.column.step
    with mp.workdps(50):
        r = mp.exp(-mpf(made.scale.denominator) / made.scale.numerator)
        lost = 1 - mpf(9) / 10 * (1 - r ** (span + 1))
        edge = mp.ceil(mp.log(lost) / mp.log(r)) - 1
        whole = (1 + 2 * r * (1 - r ** mpf(span / 2)) / (1 - r)) * mpf(9) / 10
        middle = mp.ceil(mp.log(1 - (whole - 1) * (1 - r) / (2 * r)) / mp.log(r))
    assert made.interval(0.9)[1] / step == max(int(edge), int(middle)) + 1
    assert made.interval(0.9)[0] == -made.interval(0.9)[1]
