"""Exact laws of the choices on neighbors, and rounds attacked at a worst row."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from discreet.accounting.conversion import gaussian_sigma
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.selection import exponential_mechanism
from discreet.models.regression._residual_rounds import descend, encode_rows, gradient_square
from discreet.models.regression._row_mapping import (
    CELLS,
    RADII,
    median,
    median_sensitivity,
    radius,
    radius_sensitivity,
)
from discreet.models.regression._row_sources import ArrayRows
from discreet.models.regression._task import FitStage, RegressionTask, spend
from discreet.models.regression.auto import AutoLinearRegression
from discreet.models.regression.clipped_gradient import INTERCEPT, box_map
from discreet.models.regression.theil_sen import match_pairs
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def task(relation=ADD):
    return RegressionTask(
        lower=np.array([-1.0]),
        upper=np.array([1.0]),
        target=(-1.0, 1.0),
        rows=40.0,
        mu=0.2,
        relation=relation,
    )


class Law:
    """Takes the place of a mechanism, and keeps the exact law of its choice."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.rate = mechanism.rate
        self.law = None

    def choose(self, scores, _):
        self.law = self.mechanism.probabilities(scores)
        return 0


def law_of_median(counts, mechanism, prior):
    kept = Law(mechanism)
    median(counts, 0.0, 1.0, mechanism=kept, rng=seeded_rng(0), prior=prior)
    return kept.law


def law_of_radius(counts, mechanism, _):
    kept = Law(mechanism)
    radius(counts, 1.0, mechanism=kept, rng=seeded_rng(0))
    return kept.law


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(
    ("law", "cells", "move", "prior"),
    [
        (law_of_median, CELLS, median_sensitivity, None),
        (law_of_median, CELLS, median_sensitivity, 0.5),
        (law_of_radius, RADII, radius_sensitivity, None),
    ],
)
def test_the_exact_laws_of_neighbors_stay_within_epsilon(relation, law, cells, move, prior):
    epsilon = 1.0
    mechanism = exponential_mechanism(
        sensitivity=move(task(relation)).l1, epsilon=epsilon, relation=relation
    )
    weak = exponential_mechanism(sensitivity=1, epsilon=4 * epsilon, relation=relation)
    rng = np.random.default_rng(1)
    worst, careless = 0.0, 0.0
    for _ in range(30):
        counts = np.bincount(rng.integers(0, cells, rng.integers(0, 9)), minlength=cells)
        one = counts + np.eye(cells, dtype=int)[rng.integers(cells)]
        other = counts if relation is ADD else counts + np.eye(cells, dtype=int)[0]
        gaps = [
            np.abs(np.log(law(one, m, prior)) - np.log(law(other, m, prior))).max()
            for m in (mechanism, weak)
        ]
        worst, careless = max(worst, gaps[0]), max(careless, gaps[1])
    assert worst <= epsilon * (1 + 1e-9)
    assert careless > epsilon


def attacked(claimed, trials=800):
    """The mu of two rounds along the worst row, if the clip ``claimed`` is accounted for."""
    known, clip = task(), 4000
    mapped = box_map(known, center=0.0, half=1.0)
    grid = mapped.lattice
    move = known.vector(gradient_square(grid, claimed))
    parts = tuple(FitStage(name="round", sensitivity=move, share=Fraction(1, 2)) for _ in range(2))
    noises = spend(parts, budget(epsilon=10, delta=1e-6), relation=ADD).additive("round")
    found = []
    for many in (0, 1):
        rows = encode_rows(ArrayRows(np.ones((many, 1)), np.ones((many, 1))), mapped)
        bits = seeded_rng(many)
        fits = [
            descend(rows, grid, noises=noises, clip=clip, step=1e-9 * np.eye(2), rng=bits)
            for _ in range(trials)
        ]
        found.append(np.array(fits) @ [INTERCEPT, 1.0])
    without, present = found
    return (present.mean() - without.mean()) / math.sqrt((present.var() + without.var()) / 2)


def test_the_worst_row_attains_the_claim_and_no_more():
    mu = 1 / gaussian_sigma(10.0, delta=1e-6)
    error = math.sqrt(2 / 800 + mu**2 / 1600)  # of a difference of means over a deviation
    assert attacked(4000) == pytest.approx(mu, abs=5 * error)
    # Half the clip accounted for is twice the mu: the attack tells.
    assert attacked(2000) > mu + 10 * error


def test_a_clone_keeps_account_and_bits():
    account, bits = object(), seeded_rng(1)
    one = AutoLinearRegression(epsilon=1, delta=1e-6, account=account, rng=bits, expected_rows=10)
    other = clone(one)
    assert other.account is account
    assert other.rng is bits
    assert other.get_params() == one.get_params()


@pytest.mark.parametrize("method", ["level", "theil_sen"])
def test_a_choice_costs_no_more_than_its_epsilon(method):
    """An account composes choices by their epsilon: one that has just that left must do."""
    model = AutoLinearRegression(
        epsilon=1,
        delta=1e-6,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        expected_rows=100,
        method=method,
    )
    _, noises = model.plan(features=1)
    assert noises.guarantee.epsilon(0) == 1


def test_rows_beyond_those_of_a_unit_are_never_used():
    x, y = np.arange(6.0)[:, None], np.arange(6.0)[:, None]
    rows = ArrayRows(x, y, np.array([1, 1, 2, 2, 2, 3]), 1)
    assert rows.used().x[:, 0].tolist() == [0, 2, 5]
    assert len(encode_rows(rows, box_map(task(), center=0.0, half=1.0)).codes) == 3
    assert len(match_pairs(rows, 1, seeded_rng(1))) == 1  # of three rows one pair
