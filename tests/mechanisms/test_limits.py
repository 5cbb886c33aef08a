"""The last value that passes and the first that does not, and the smallest that will do."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import partition_selection as partition
from discreet.mechanisms._inputs import ScoreScale, l1, whole_square
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.bounded import mechanism as bounded
from discreet.mechanisms.data_dependent import _smooth_noise as smooth_noise
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.scalar import truncated_laplace as truncated
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "cauchy", "lomax"])
def test_the_largest_noise_is_drawn_and_no_larger(noise, monkeypatch):
    delta = 1e-6 if noise in ("laplace", "gaussian") else 0
    options = {"lower": 0, "upper": 8, "public_rows": 9, "epsilon": 1, "granularity": 1}

    def make():
        return smooth_sensitivity(**options, delta=delta, noise=noise)

    made = make()
    kind = type(made.family)
    monkeypatch.setitem(smooth_noise.LARGEST_STEPS, kind, made.largest_steps)
    assert make() == made
    monkeypatch.setitem(smooth_noise.LARGEST_STEPS, kind, made.largest_steps - Fraction(1, 1000))
    with pytest.raises(InvalidArgument, match="too many steps"):
        make()


@pytest.mark.parametrize(("shift", "bound"), [(1, 5), (3, 3), (3, 20)])
def test_a_delta_that_is_met_exactly_is_kept(shift, bound):
    width = Fraction(shift * 2)
    law = BoundedDiscreteLaplace(width, lower=-bound, upper=bound)
    lost = Fraction(law.at_least(bound - shift + 1, 128)[1], 1 << 128)
    weights = {k: math.exp(-abs(k) / float(width)) for k in range(-bound, bound + 1)}
    beyond = sum(weight for k, weight in weights.items() if k + shift > bound)
    assert float(lost) == pytest.approx(beyond / sum(weights.values()), rel=1e-12)
    assert truncated._keeps(width, shift, bound, Fraction(1, 2), lost)
    less = lost - Fraction(1, 1 << 128)
    assert not truncated._keeps(width, shift, bound, Fraction(1, 2), less)


@pytest.mark.parametrize("dimension", [2, 3, 5, 10**6 + 1])
def test_roots_are_rounded_up_by_a_little(dimension):
    root = l1(1, norm="l2", dimension=dimension)
    assert root**2 > dimension
    assert (root - Fraction(1, 2**64)) ** 2 <= dimension
    assert l1(Fraction(3, 2), norm="l2", dimension=16) == 6
    assert l1(Fraction(3, 2), norm="linf", dimension=16) == 24


def test_squares_are_whole_up_to_the_rounding_of_a_root():
    for whole in (1, 2, 10**6):
        slack = Fraction(whole, 1 << 50)
        for square in (Fraction(whole), whole + slack, whole - slack):
            assert whole_square(square) == whole
        for square in (whole + slack * Fraction(9, 8), whole - slack * Fraction(9, 8)):
            assert whole_square(square) is None
    assert whole_square(Fraction(1, 2**60)) is None
    assert whole_square(Fraction(5, 2)) is None


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
@pytest.mark.parametrize("part", [0.01, 0.04])
def test_multipliers_of_normal_noise_are_the_smallest(epsilon, delta, part):
    beta = part * epsilon
    found = smooth_noise._gaussian_multiplier(epsilon, delta, beta, cells=8)
    if math.isinf(found):
        assert smooth_noise.gaussian_worst(epsilon, beta, 1e12, cells=8) > delta
        return
    assert smooth_noise.gaussian_worst(epsilon, beta, found, cells=8) <= delta
    less = found / (1 + 1e-6)
    assert smooth_noise.gaussian_worst(epsilon, beta, less, cells=8) > delta


def test_normal_noise_of_any_smoothness():
    assert math.isinf(smooth_noise._gaussian_multiplier(1.0, 1e-6, 1.0, cells=1))
    # More cells never ask for more noise, and no bound is below the divergence at the corners.
    few, many = (smooth_noise.gaussian_worst(1.0, 0.1, 2.0, cells=n) for n in (1, 64))
    wide = smooth_noise.gaussian_delta(1.0, math.exp(0.1), 0.5)
    narrow = smooth_noise.gaussian_delta(1.0, math.exp(-0.1), 0.5 * math.exp(-0.1))
    assert few > many >= max(wide, narrow, smooth_noise.gaussian_delta(1.0, 1.0, 0.5)) > 0
    assert many == pytest.approx(max(wide, narrow), rel=0.02)


@pytest.mark.parametrize("span", [2, 8, 20])
@pytest.mark.parametrize("scale", [0.5, 3.0, 50.0])
def test_masses_within_a_distance_of_the_truth(span, scale):
    def mass(truth, w):
        weights = np.exp(-np.abs(np.arange(span + 1) - truth) / scale)
        inside = np.abs(np.arange(span + 1) - truth) <= w
        return weights[inside].sum() / weights.sum()

    for w in range(span + 1):
        assert bounded._edge(w, span, 1 / scale) == pytest.approx(mass(0, w), rel=1e-12)
        assert bounded._edge(w, span, 1 / scale) == pytest.approx(mass(span, w), rel=1e-12)
        center = bounded._center(w, span, 1 / scale)
        assert center == pytest.approx(mass(span // 2, w), rel=1e-12)


@pytest.mark.parametrize("span", [3, 8, 17])
@pytest.mark.parametrize("epsilon", [0.3, 2])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.999])
def test_intervals_of_bounded_noise_hold_and_are_short(span, epsilon, level):
    made = bounded.bounded_laplace(lower=0, upper=span, sensitivity=1, epsilon=epsilon)
    low, high = made.interval(level)
    assert low == -high
    every = np.arange(span + 1)
    rate = 1 / float(made.scale)

    def least(w):
        laws = [np.exp(-rate * np.abs(every - truth)) for truth in every]
        return min(
            law[np.abs(every - truth) <= w].sum() / law.sum()
            for truth, law in zip(every, laws, strict=True)
        )

    assert least(high) >= level * (1 - 1e-12)
    if span % 2 == 0:  # else the middle lies between two points, and the bound is not attained
        assert least(high - 1) < level


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(7, 2)), DiscreteGaussian(square=9)])
def test_a_key_is_shown_with_at_most_its_chance(noise):
    """The smallest threshold, also where the chance is met exactly."""
    for threshold in (1, 2, 5, 8, 12):
        chance = partition._at_least(noise, threshold)
        k = np.arange(threshold, 400)
        assert float(chance) == pytest.approx(noise.pmf(k).sum(), rel=1e-9)
        assert partition._threshold(noise, chance) == threshold
        assert partition._threshold(noise, chance - Fraction(1, 2**250)) == threshold + 1
    assert partition._threshold(noise, Fraction(1)) == 1


def test_multipliers_of_normal_noise_are_rounded_up():
    for epsilon, delta, beta in ((1, 1e-6, 0.02), (3, 1e-3, 0.2)):
        family = smooth_noise.SmoothGaussian.calibrated(Fraction(epsilon), Fraction(delta), beta)
        exact = smooth_noise._gaussian_multiplier(float(epsilon), delta, beta, cells=64)
        assert 1e-9 < float(family.multiplier / Fraction(exact)) - 1 < 1e-8


@pytest.mark.parametrize("sensitivity", [Fraction(1, 3), Fraction(10, 7), Fraction(3, 4), 0.1])
def test_shifts_are_rounded_up(sensitivity):
    scale = ScoreScale.of(sensitivity)
    step = Fraction(2) ** scale.exponent
    assert (scale.shift - 1) * step < sensitivity <= scale.shift * step
    assert 2**20 <= scale.shift <= 2**21


def test_a_test_is_passed_by_noise_with_at_most_delta():
    made = propose_test_release(
        bound=1,
        lower=0,
        upper=9,
        public_rows=9,
        epsilon=1,
        delta=1e-2,
        granularity=1,
        test=Fraction(1, 3),
    )
    for threshold in (1, 2, 9, 20):
        chance = Fraction(made.test_noise.at_least(threshold + 1, 128)[1], 1 << 128)
        k = np.arange(threshold + 1, 400)
        assert float(chance) == pytest.approx(made.test_noise.pmf(k).sum(), rel=1e-9)
        assert replace(made, delta=chance).threshold == threshold
        less = chance - Fraction(1, 2**120)
        assert replace(made, delta=less).threshold == threshold + 1


@pytest.mark.parametrize(("lower", "upper"), [(-3, 10), (4, 5), (-9, -2)])
def test_errors_between_bounds_are_no_larger_than_the_bounds_allow(lower, upper):
    wide, narrow = (laplace(sensitivity=1, epsilon=epsilon) for epsilon in (0.01, 50))
    for within in (bounded.clamp_output, bounded.reflect_output):
        made = within(wide, lower=lower, upper=upper)
        assert made.interval(0.95) == (lower - upper, upper - lower)
        assert made.std == upper - lower
        made = within(narrow, lower=lower, upper=upper)
        assert made.interval(0.95) == narrow.interval(0.95)
        assert made.std == narrow.std


@pytest.mark.parametrize("cells", [1, 4])
def test_normal_laws_of_every_cell_are_compared_both_ways(cells, monkeypatch):
    """The wide law from the narrow one at a cell's far end, the other order at its near end."""
    asked = []
    monkeypatch.setattr(smooth_noise, "gaussian_delta", lambda *given: asked.append(given) or 0.5)
    beta, epsilon, multiplier = 0.4, 1.0, 3.0
    width = beta / cells
    worst = smooth_noise.gaussian_worst(epsilon, beta, multiplier, cells=cells)
    assert worst == pytest.approx(0.5 * math.exp(width), rel=1e-12)
    expected = []
    for cell in range(cells):
        near = math.exp(-cell * width)  # scales 1 and 1 / near, both divided by the larger
        expected.append((epsilon - width, math.exp((cell + 1) * width), 1 / multiplier))
        expected.append((epsilon - width, near, near / multiplier))
    assert np.array(asked) == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_replaced_unit_moves_twice_as_many_counts(groups):
    for relation, moved in (
        (NeighboringRelation.ADD_REMOVE, groups),
        (NeighboringRelation.REPLACE_ONE, 2 * groups),
    ):
        options = {"groups": groups, "delta": 1e-3, "relation": relation}
        made = partition.partition_selection(epsilon=Fraction(1, 2), method="laplace", **options)
        assert made.noise.scale == 2 * moved
        made = partition.partition_selection(rho=Fraction(1, 8), **options)
        assert made.noise.square == 4 * moved
