"""Attacks on the printed claims about private descent: refuted; the corrected ones stand.

Outputs are read on a grid, so that the claims are attacked and not the low bits of doubles.
"""

import itertools
import math

import numpy as np
import pytest

from discreet.audit._attack import attack
from discreet.models.dp_sgd._laplace_rates import GradientBound, marginal_epsilons, noise_scales
from discreet_studies.private_inference.trajectory_cost import trajectory

pytestmark = pytest.mark.slow
SEEDS = itertools.count(1)


def paths(record, size, *, steps, slope=0.0, rate=0.5, epsilon=1.0, diameter=1.0, dimension=1):
    """Iterates of ``size`` runs on one record with gradients ``slope * theta - record``."""
    rng = np.random.default_rng(next(SEEDS))
    rates = np.full(steps, rate)
    scales = noise_scales(rates, diameter=diameter, epsilon=epsilon)
    theta = np.zeros((size, dimension))
    seen = [theta]
    for scale in scales:
        noise = scale * rng.laplace(size=(size, dimension))
        theta = theta - rate * (slope * theta - record + noise)
        seen.append(theta)
    return np.stack(seen, axis=1)


def on_grid(values):
    return np.rint(values * 64) / 64


def last(record, size, **run):
    return paths(record, size, **run)[:, -1, 0]


def average(record, size, **run):
    return paths(record, size, **run)[:, :-1, 0].mean(axis=1)


def increments(record, size, **run):
    return np.diff(paths(record, size, **run)[:, :, 0], axis=1)


def refuted(draw, claimed, *, samples=400_000, **run):
    return attack(
        lambda record, size: on_grid(draw(record, size, **run)),
        0.0,
        1.0,
        claimed=(claimed, 0.0),
        samples=samples,
        failure_probability=1e-9,
    ).broken


def test_expansive_steps_are_caught():
    run = {"steps": 2, "slope": -1.0, "epsilon": 2.0}
    assert refuted(last, 2.0, **run)
    assert not refuted(last, 2.5, **run)


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_a_single_iterate_of_a_convex_loss_stands(slope):
    assert not refuted(last, 1.0, steps=3, slope=slope)


def test_the_average_is_caught():
    run = {"steps": 10, "epsilon": 2.0}
    assert refuted(average, 2.0, **run)
    assert not refuted(average, 3.6, **run)


def test_the_sequence_is_caught_and_stands_at_what_it_costs():
    run = {"steps": 2, "epsilon": 2.0}
    assert refuted(increments, 2.0, **run)
    scales = noise_scales(np.full(2, 0.5), diameter=1.0, epsilon=2.0)
    whole = trajectory(scales, sensitivity=1.0).epsilon()
    assert whole == pytest.approx(3)
    assert not refuted(increments, whole, **run)


def test_a_sensitivity_in_the_wrong_norm_is_caught():
    # Five coordinates, all of which move by 1: 5 in L1, sqrt(5) in L2.
    def ends(record, size, **run):
        return paths(record, size, dimension=5, **run)[:, -1].sum(axis=1)

    # The sum of five equal Laplace variables tells less than all of them, and tells enough.
    assert refuted(ends, 1.5, steps=1, epsilon=1.5, diameter=1.0)
    assert not refuted(ends, 1.5, steps=1, epsilon=1.5, diameter=5.0)
    bound = GradientBound(dimension=5, same_theta=math.sqrt(5), convex=True, smoothness=1)
    scales = noise_scales(np.full(1, 0.5), diameter=5.0, epsilon=1.5)
    assert marginal_epsilons([0.5], scales=scales, bound=bound)[0] == pytest.approx(1.5)
