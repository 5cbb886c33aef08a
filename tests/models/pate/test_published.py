"""The published accounting of noisy votes: every printed vector, and where it fails."""

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.pate import aggregators as old

ORDERS = [2, 5, 10, 20, 50]
VOTES = {
    "A": [250] + [0] * 9,
    "B": [230, 10, 5, 2, 1, 1, 1, 0, 0, 0],
    "C": [150, 60, 20, 10, 5, 2, 1, 1, 1, 0],
    "D": [90, 80, 30, 20, 10, 10, 5, 3, 1, 1],
    "E": [225, 25],
}
LOOSE = [order / 1600 for order in ORDERS]


@pytest.mark.parametrize(
    ("name", "log_error", "costs"),
    [
        ("A", -10.019228, [1.527357e-05, 1.749153e-05, 2.333178e-05, 5.321318e-05, 2.083274e-03]),
        ("B", -8.246514, [8.095863e-05, 9.142748e-05, 1.177670e-04, 2.396516e-04, 5.493687e-03]),
        ("C", -2.307184, LOOSE),
        ("D", -0.105361, LOOSE),
        ("E", -8.499962, [6.386371e-05, 7.227196e-05, 9.357134e-05, 1.936237e-04, 4.826030e-03]),
    ],
)
def test_gaussian_votes(name, log_error, costs):
    found = old.gaussian_log_error(VOTES[name], sigma=40)
    assert found == pytest.approx(log_error, abs=1e-6)
    assert old.gaussian_cost(found, sigma=40, orders=ORDERS) == pytest.approx(costs, rel=1e-6)


@pytest.mark.parametrize(
    ("votes", "gamma", "error", "costs"),
    [
        (
            VOTES["A"],
            0.05,
            1.215821e-4,
            [2.557363e-5, 2.773503e-5, 3.250091e-5, 4.914993e-5, 3.406594e-4],
        ),
        (
            VOTES["B"],
            0.05,
            3.448658e-4,
            [7.253840e-5, 7.866416e-5, 9.216790e-5, 1.393022e-4, 9.518596e-4],
        ),
        ([100, 90], 0.1, 0.2759096, [0.04, 0.1, 0.1316356, 0.1465720, 0.1739426]),
    ],
)
def test_laplace_votes(votes, gamma, error, costs):
    found = old.laplace_log_error(votes, gamma=gamma)
    assert math.exp(found) == pytest.approx(error, rel=1e-6)
    assert old.laplace_cost(found, gamma=gamma, orders=ORDERS) == pytest.approx(costs, rel=1e-6)


@pytest.mark.parametrize(
    ("share", "costs"),
    [
        (0.5, [3.902726e-05, 4.132455e-05, 4.599448e-05, 5.978107e-05, 1.949450e-04]),
        (2 / 3, [5.267134e-05, 5.693474e-05, 6.622465e-05, 9.787717e-05, 6.025682e-04]),
        (4 / 3, [1.106324e-04, 1.309842e-04, 1.904938e-04, 5.735187e-04, 2.969803e-02]),
        (2, [1.744153e-04, 2.295075e-04, 4.512853e-04, 3.352372e-03, 1.214247e-01]),
        (2.5, [2.264235e-04, 3.258530e-04, 8.427123e-04, 1.218750e-02, 1.953125e-01]),
    ],
)
def test_owners_with_several_votes_or_a_part_of_one(share, costs):
    error = old.gaussian_log_error(VOTES["B"], sigma=40)
    seen = old.with_share(40, share)
    assert old.gaussian_cost(error, sigma=seen, orders=ORDERS) == pytest.approx(costs, rel=1e-6)


def test_thresholds():
    found = old.threshold_cost(0, threshold=100, sigma=20, orders=ORDERS)
    costs = [1.810566e-7, 2.342882e-7, 4.390456e-7, 2.916721e-6, 3.908542e-3]
    assert found == pytest.approx(costs, rel=1e-6)
    near = old.threshold_cost(230, threshold=200, sigma=150, orders=ORDERS)
    assert near == pytest.approx([order / 45000 for order in ORDERS])


@pytest.mark.parametrize(
    ("asked", "answered", "share", "epsilon", "order"),
    [
        (100, 60, 0.5, 0.274432, 50),
        (100, 60, 1, 0.479377, 36),
        (100, 60, 4 / 3, 0.640712, 27),
        (100, 60, 2.5, 1.213004, 15),
        (381, 221, 1, 0.772031, 26),
        (381, 221, 4 / 3, 1.033728, 20),
    ],
)
def test_whole_runs(asked, answered, share, epsilon, order):
    orders = np.arange(2, 51)
    error = old.gaussian_log_error(VOTES["B"], sigma=40)
    vote = old.gaussian_cost(error, sigma=old.with_share(40, share), orders=orders)
    total = asked * share**2 * orders / (2 * 150**2) + answered * vote
    assert old.classic_epsilon(total, orders=orders, delta=1e-5) == (
        pytest.approx(epsilon, abs=1e-6),
        order,
    )


def exact(votes, sigma):
    """The law of the winner of two classes."""
    win = 0.5 * math.erfc(-(votes[0] - votes[1]) / (2 * sigma))
    return np.array([win, 1 - win])


def divergence(p, q, order):
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def test_the_bound_holds_in_one_direction_only():
    """Trap T3: 20 votes to 0 against 19 to 1, noise 4, order 5."""
    here, there = exact((20, 0), 4), exact((19, 1), 4)
    error = old.gaussian_log_error([20, 0], sigma=4)
    (bound,) = old.gaussian_cost(error, sigma=4, orders=[5])
    assert bound == pytest.approx(0.0218378, abs=1e-7)
    assert divergence(here, there, 5) == pytest.approx(0.000478, abs=1e-6)
    assert divergence(there, here, 5) == pytest.approx(0.0281595, abs=1e-6)
    assert divergence(there, here, 5) > bound


def test_many_queries_at_once_are_the_single_ones():
    votes = np.array([VOTES[name] for name in "ABCD"])
    whole = old.gaussian_cost(old.gaussian_log_error(votes, sigma=40), sigma=40, orders=ORDERS)
    for row, name in zip(whole, "ABCD", strict=True):
        one = old.gaussian_log_error(VOTES[name], sigma=40)
        assert row == pytest.approx(old.gaussian_cost(one, sigma=40, orders=ORDERS))


def test_unanimity_without_end_costs_nothing():
    assert old.gaussian_cost(-np.inf, sigma=40, orders=ORDERS).tolist() == [0] * 5
    assert old.laplace_cost(-np.inf, gamma=0.1, orders=ORDERS).tolist() == [0] * 5


def test_bad_input():
    with pytest.raises(InvalidArgument, match="two classes"):
        old.gaussian_log_error([3], sigma=1)
    with pytest.raises(InvalidArgument, match="share"):
        old.with_share(40, 0)
