"""What a person pays over many periods: published numbers, closed forms, and a brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import events
from discreet.core.errors import InvalidArgument

ADD = discreet.NeighboringRelation.ADD_REMOVE


def epsilons(guarantee, **more):
    return [row["epsilon"] for row in guarantee.over_periods(**more).rows()]


def test_a_published_deployment_of_rho_015_a_day():
    gaussian = discreet.gdp(math.sqrt(2 * 0.015))
    assert epsilons(gaussian, delta=1e-9) == pytest.approx([0.950, 2.651, 5.826, 24.753], abs=2e-3)
    assert epsilons(discreet.zcdp(0.015), delta=1e-9) == pytest.approx(
        [1.001, 2.787, 6.110, 25.801], abs=2e-3
    )


def test_laplace_noise_of_epsilon_1_68_a_day():
    noise = discreet.Guarantee(events.LaplaceEvent(Fraction(100, 168)), ADD)
    found = epsilons(noise, delta=1e-9)
    assert found == pytest.approx([1.68, 11.76, 50.138, 438.713], abs=2e-3)
    assert epsilons(noise, delta=0)[-1] == pytest.approx(613.2)


def test_one_release_of_all_periods_is_seen_by_a_group():
    found = epsilons(discreet.gdp(0.1), counts=[9], delta=1e-6, released="together")
    assert found[1] == pytest.approx(discreet.gdp(0.9).epsilon(1e-6))
    apart = epsilons(discreet.gdp(0.1), counts=[9], delta=1e-6)
    assert apart[1] == pytest.approx(discreet.gdp(0.3).epsilon(1e-6))


def test_neighbors_by_brute_force():
    """A person with k days moves k noisy counts by one each: the exact profile of them all."""
    scale, many, reach = 3, 3, 60
    noise = discreet.Guarantee(events.DiscreteLaplaceEvent(Fraction(scale), 1), ADD)
    mass = np.exp(-abs(np.arange(-reach, reach + 1)) / scale)
    mass /= mass.sum()
    delta = 1e-3
    (_, bound) = epsilons(noise, counts=[many], delta=delta)
    # Losses of one day are +-1/scale or between; of three, their sums.
    near, far = mass[:-1], mass[1:]
    losses = dict.fromkeys(sorted(set(np.round(np.log(near / far), 9))), 0.0)
    for p, q in zip(near, far, strict=True):
        losses[round(math.log(p / q), 9)] += p
    exact = 0.0
    for picked in itertools.product(losses.items(), repeat=many):
        loss, p = sum(x for x, _ in picked), math.prod(p for _, p in picked)
        exact += p * max(0.0, 1 - math.exp(bound - loss))
    assert exact <= delta
    assert exact >= delta * 0.9  # what is stated is what is attained


def test_what_is_no_count_or_word_is_refused():
    for more in ({"counts": [0]}, {"counts": [1.5]}, {"released": "daily"}, {"delta": 1}):
        with pytest.raises(InvalidArgument):
            discreet.gdp(0.1).over_periods(**more)
