"""Coins as whole numbers, each the last that keeps its promise; and what decides a choice."""

import itertools
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from discreet.core._rational import exp_minus
from discreet.core.errors import InvalidArgument
from discreet.local.distributed_noise import Polya
from discreet.local.distribution import DistributionBootstrap, DistributionEstimate, half_width
from discreet.local.longitudinal import l_osue, rappor
from discreet.local.means import multidimensional as best_module
from discreet.local.means.base import MeanEstimate
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import (
    ONE,
    best_threshold,
    oue,
    sue,
    threshold_histogram_encoding,
)
from discreet.noise.random_source import seeded_rng


def whole(number, rounding):
    return int((number * ONE).to_integral_value(rounding=rounding))


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "3", "20"])
def test_coins_of_unary_encodings(epsilon):
    with localcontext(prec=60):
        e = Decimal(epsilon)
        flip = whole(1 / ((e / 2).exp() + 1), ROUND_CEILING)
        other = whole(1 / (e.exp() + 1), ROUND_CEILING)
    assert sue(categories=3, epsilon=Fraction(epsilon)).coins == (ONE - flip, flip)
    assert oue(categories=3, epsilon=Fraction(epsilon)).coins == (ONE // 2, other)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3", "20"])
@pytest.mark.parametrize("cut", ["0.5", "0.625", "0.75", "0.999"])
def test_coins_of_thresholds(epsilon, cut):
    made = threshold_histogram_encoding(
        categories=3, epsilon=Fraction(epsilon), threshold=Fraction(cut)
    )
    with localcontext(prec=60):
        e, t = Decimal(epsilon), Decimal(cut)
        keep = whole(1 - (e * (t - 1) / 2).exp() / 2, ROUND_FLOOR)
        other = whole((-e * t / 2).exp() / 2, ROUND_CEILING)
    assert made.coins == (keep, other)
    noise = stats.laplace(scale=2 / float(epsilon))
    assert made.keep == pytest.approx(noise.sf(float(cut) - 1), abs=1e-9)
    assert made.other == pytest.approx(noise.sf(float(cut)), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 8])
def test_the_best_threshold_has_the_least_variance(epsilon):
    noise = stats.laplace(scale=2 / epsilon)

    def variance(cut):
        p, q = noise.sf(cut - 1), noise.sf(cut)
        return q * (1 - q) / (p - q) ** 2

    grid = np.linspace(0.5, 1, 4001)
    least = grid[np.argmin(variance(grid))]
    assert best_threshold(epsilon) == pytest.approx(least, abs=2e-4)
    made = threshold_histogram_encoding(categories=3, epsilon=epsilon)
    assert made.threshold.denominator <= 1024
    assert float(made.threshold) == pytest.approx(least, abs=1 / 2048 + 2e-4)
    assert variance(best_threshold(epsilon)) <= variance(grid).min() * (1 + 1e-9)


@pytest.mark.parametrize("make", [rappor, l_osue])
@pytest.mark.parametrize(
    ("epsilon", "permanent"),
    [(0.01, 2), (0.5, 0.75), (1, 2), (1, 9), (8, 9), (20, 21), (21, 60), (43, 44), (99, 200)],
)
def test_a_flip_is_the_least_that_keeps_epsilon(make, epsilon, permanent):
    plan = make(categories=3, epsilon=epsilon, permanent_epsilon=permanent)
    low, high = (Fraction(end, 1 << 300) for end in exp_minus(Fraction(epsilon), 300))

    def ratio(flip):
        p, q = (
            Fraction(coin, ONE) * (1 - flip) + (1 - Fraction(coin, ONE)) * flip
            for coin in plan.response.coins
        )
        return p * (1 - q) / (q * (1 - p))

    assert ratio(plan.flip) == plan.ratio_after(1)
    assert ratio(plan.flip) * high <= 1
    if plan.flip:
        assert ratio(plan.flip - Fraction(1, ONE)) * low > 1
    else:
        assert epsilon > 40  # coins of 32 bits keep that by themselves


def test_levels_lie_between_zero_and_one():
    shares = np.array([0.5, 0.5])
    whole_one = DistributionEstimate(
        shares=shares, bounds=(0, 1), reports=1, iterations=1, converged=True
    )
    oracle = grr(categories=2, epsilon=1)
    frequencies = Frequencies(shares=shares, reports=9, variance=shares, oracle=oracle)
    mean = MeanEstimate(value=0.5, reports=9, std=1, bounds=(0, 1), one=(1, 1))
    bootstrap = DistributionBootstrap(estimate=whole_one, replicates=(whole_one, whole_one))
    for wrong in (0, 1, -0.5, 1.5):
        for ask in (
            mean.interval,
            mean.guaranteed,
            frequencies.interval,
            lambda level: frequencies.interval(level, guaranteed=True),
            lambda level: frequencies.base_cut(miss=level),
            lambda level: bootstrap.interval_of(lambda one: one.mean, level),
        ):
            with pytest.raises(InvalidArgument):
                ask(wrong)
    assert (whole_one.quantile(0), whole_one.quantile(1)) == (0, 1)


def test_a_bootstrap_of_three():
    def one(share):
        shares = np.array([share, 1 - share])
        return DistributionEstimate(
            shares=shares, bounds=(0, 2), reports=1, iterations=1, converged=True
        )

    found = DistributionBootstrap(estimate=one(0.5), replicates=tuple(map(one, (0.2, 0.4, 0.6))))
    # Quantiles of three numbers lie between them, in proportion.
    low, high = found.interval_of(lambda some: some.shares[0])
    assert (low, high) == pytest.approx((1 - (0.6 - 0.05 * 0.2), 1 - (0.2 + 0.05 * 0.2)))
    low, high = found.interval_of(lambda some: some.shares[0], 0.5)
    assert (low, high) == pytest.approx((0.5, 0.7))


@pytest.mark.parametrize(
    ("bit", "wide", "chosen"),
    [
        (1.0, 1.0, "bit"),
        (1.004, 1.0, "bit"),
        (1.006, 1.0, "wide"),
        (1.0, 2.0, "bit"),
        (9, 2, "wide"),
    ],
)
def test_a_bit_is_sent_unless_more_symbols_are_worth_it(bit, wide, chosen, monkeypatch):
    given = {"epsilon": 1, "lower": 0, "upper": 1}
    made = {"bit": SimpleNamespace(std=bit), "wide": SimpleNamespace(std=wide)}
    for name, kind in (("duchi", "bit"), ("balanced_piecewise", "wide")):
        monkeypatch.setattr(
            best_module, name, lambda kind=kind, **told: made[kind] if told == given else None
        )
    assert best_module.best_mean_randomizer(**given) is made[chosen]


@pytest.mark.parametrize(
    "epsilon", ["1e-6", "0.000999", "0.001", "0.5", "0.999", "1.001", "7", "300"]
)
def test_half_the_width_of_a_window(epsilon):
    with localcontext(prec=80):
        e = Decimal(epsilon)
        power = e.exp()
        exact = (e * power - power + 1) / (2 * power * (power - 1 - e))
    assert half_width(float(epsilon)) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize("shares", [1, 2, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_the_law_of_a_share(shares, scale):
    made = Polya(scale=scale, shares=shares)
    law = stats.nbinom(1 / shares, 1 - math.exp(-1 / scale))
    every = np.arange(200)
    assert made.pmf(every) == pytest.approx(law.pmf(every), rel=1e-9, abs=1e-300)
    assert made.pmf([-1, -5]).tolist() == [0, 0]
    assert made.variance == pytest.approx(law.var())


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_reports_of_randomized_response(categories):
    made = grr(categories=categories, epsilon=1.5)
    p = math.exp(1.5) / (math.exp(1.5) + categories - 1)
    q = (1 - p) / (categories - 1)
    assert (made.keep, made.other) == pytest.approx((p, q))
    for length, inside in itertools.product(range(1, categories + 1), (0, 1)):
        # One client inside or outside of a range: whether it reports in it is a coin.
        if length == categories and not inside:
            continue
        hit = p + (length - 1) * q if inside else length * q
        law = hit * (1 - hit) / (p - q) ** 2
        assert float(made.range_variance(length, inside)) == pytest.approx(law, abs=1e-12)
        assert float(made.pinned_variance(length, inside)) == pytest.approx(law, abs=1e-12)
    assert float(made.range_variance(categories, 0.3)) == 0
    covariance = (np.eye(categories) * 0.0).tolist()
    for own in range(categories):
        law = [p if i == own else q for i in range(categories)]
        for i, j in itertools.product(range(categories), repeat=2):
            covariance[i][j] += (law[i] * (i == j) - law[i] * law[j]) / categories
    contrast = covariance[0][0] - covariance[0][1]
    assert made.contrast_variance() == pytest.approx(contrast / (p - q) ** 2)
    assert made.release([0, 1, 1], rng=seeded_rng(1)).shape == (3,)
