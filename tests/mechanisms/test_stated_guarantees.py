"""Guarantees, errors and refusals that are stated, where no two numbers in them are alike."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.partition import privacy_aware, utility_based
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum

MENU = {"a": discreet.pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)}


def test_the_event_of_normal_noise_is_relative_to_the_sensitivity():
    asked = {"sensitivity": 3, "mu": Fraction(1, 4)}
    for on in ("integers", "reals"):
        made = discreet.gaussian(**asked, domain=on)
        assert made.guarantee.event == events.GaussianEvent(Fraction(4))
    assert made.std == pytest.approx(12, rel=1e-9)
    made = discreet.gaussian(sensitivity=3, sigma=6, domain="reals")
    assert made.guarantee.event == events.GaussianEvent(Fraction(2))
    made = discreet.gaussian(sensitivity=3, sigma=6, domain="integers")
    assert made.guarantee.event == events.DiscreteGaussianEvent(Fraction(36), Fraction(9), 9)
    made = discreet.gaussian(sensitivity=3, rho=Fraction(1, 8), domain="integers")
    assert made.guarantee.event == events.DiscreteGaussianEvent(Fraction(36), Fraction(9), 9)


def test_a_scale_is_worth_its_epsilon():
    made = discreet.laplace(sensitivity=3, scale=2)
    assert made.target == (Fraction(3, 2), 0)
    assert made.guarantee.epsilon() == 1.5
    assert made.integers.noise.scale == 2
    assert discreet.laplace(sensitivity=3, scale=2, domain="reals").reals.scale == 2
    for delta in (1, -0.5):
        with pytest.raises(InvalidArgument, match="delta"):
            discreet.laplace(sensitivity=3, scale=2, delta=delta)


def test_the_width_of_bounded_noise_is_in_the_unit_of_the_data():
    made = bounded_laplace(lower=0, upper=1, sensitivity=1, epsilon=Fraction(1, 2), domain="reals")
    assert made.width == pytest.approx(2, rel=1e-9)  # as wide as the bounds: the usual scale
    made = bounded_laplace(lower=0, upper=8, sensitivity=8, epsilon=Fraction(1, 2))
    assert made.width == 16


def test_intervals_of_spreads():
    options = {"lower": 0, "upper": 1, "public_rows": 50, "epsilon": 1}
    variance = private_variance(**options)
    low, high = variance.interval(0.9)
    assert (low, high) == variance.inner.interval(0.9)
    assert private_std(**options).interval(0.9) == (-math.sqrt(high), math.sqrt(high))
    direct = private_std(**options, direct=True)
    assert direct.interval(0.9) == direct.inner.interval(0.9)


def test_what_a_sample_costs_each_level():
    limits = {
        "all": discreet.pure_dp(3),
        "some": discreet.pure_dp(0.5),
        "none": discreet.pure_dp(0),
    }
    sample = personalized_sampling(discreet.pure_dp(2), limits)
    rates = dict(sample.rates)
    assert rates["all"] == 1
    assert rates["none"] == 0
    found = sample.guarantee.epsilons()
    assert found["all"] == 2
    assert found["none"] == 0
    assert 0.5 * (1 - 1e-6) < found["some"] <= 0.5
    taking = sample.draw(["none", "all", "all", "none"])
    assert taking.tolist() == [False, True, True, False]


@pytest.mark.parametrize("values", [1, [[1, 0]], [[1], [0]]])
def test_people_stand_in_one_line(values):
    levels = ["a"] * np.size(values)
    for do in (
        personalized_count(MENU).release,
        personalized_quantile(MENU, lower=0, upper=3).release,
        stretched_quantile(MENU, lower=0, upper=3).release,
        stretched_sum(MENU, lower=0, upper=3).release,
    ):
        with pytest.raises(OutOfDomain):
            do(values, levels)


@pytest.mark.parametrize("values", [[0, 2], [1, -1], [0.5, 1]])
def test_a_property_is_held_or_not(values):
    with pytest.raises(OutOfDomain, match="0 or 1"):
        personalized_count(MENU).release(values, ["a", "a"])
    assert len(personalized_count(MENU).distances([False, True], ["a", "a"])) == 3


@pytest.mark.parametrize("values", [[], [0.5, 1.0]])
def test_quantiles_are_of_whole_numbers_of_somebody(values):
    levels = ["a"] * len(values)
    for make in (personalized_quantile, stretched_quantile):
        with pytest.raises(OutOfDomain, match="whole"):
            make(MENU, lower=0, upper=3).release(np.array(values, dtype=type(sum(values))), levels)


@pytest.mark.parametrize(
    "budgets", [[], [[1.0, 2.0]], 1.0, [1.0, 0.0], [-1.0, 2.0], [1.0, math.nan], [math.inf, 1.0]]
)
def test_budgets_are_positive_and_finite(budgets):
    with pytest.raises(InvalidArgument, match="budgets"):
        privacy_aware(budgets, runs=1)
    with pytest.raises(InvalidArgument, match="budgets"):
        utility_based(budgets, loss=lambda size, low: size / low, runs=1)
    assert privacy_aware([1e-9, 1e9], runs=2).epsilons == (1e-9, 1e9)


def test_as_many_runs_as_asked_for():
    budgets = [1.0, 2.0, 3.0, 4.0, 5.0]
    for runs in range(1, 8):
        assert len(privacy_aware(budgets, runs=runs).ends) == min(runs, 5)
    assert privacy_aware(budgets, runs=5, smallest=5).ends == (5,)
    assert utility_based(budgets, loss=lambda size, _: size**2, runs=4).ends[-1] == 5
    assert utility_based(budgets, loss=lambda size, _: size**2, runs=5).cost == 5
