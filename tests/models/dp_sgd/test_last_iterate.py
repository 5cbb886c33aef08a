"""The last iterate of noisy gradient descent: what it costs, and its release (C44)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd.losses import Huber, Logistic, Squared
from discreet.models.dp_sgd.noisy_gradient_descent import (
    composed_mu,
    factor,
    last_iterate_mu,
    noisy_descent,
    quadratic_mu,
)
from discreet.models.dp_sgd.train import (
    clipped_rows,
    data_gradient,
    exact_margins,
    gradient_error,
    piece_error,
    representable,
    widened,
)
from discreet.noise.random_source import seeded_rng
from tests import distributions as laws


@pytest.mark.parametrize("shrink", [0.0, 0.3, 0.9, 0.999, 1 - 1e-6, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 7, 300])
def test_the_formula_is_exact_for_quadratics(shrink, steps):
    asked = {"sensitivity": 0.3, "sigma": 2.0, "steps": steps}
    claimed = last_iterate_mu(contraction=shrink, **asked)
    exact = quadratic_mu(contraction=shrink, **asked)
    assert claimed == pytest.approx(exact, rel=1e-11)
    assert exact <= claimed
    assert claimed <= composed_mu(**asked) * (1 + 1e-11)


def test_the_cost_stays_bounded():
    limit = math.sqrt(1.9 / 0.1)
    assert factor(contraction=0.9, steps=10**9) == pytest.approx(limit)
    assert factor(contraction=0.9, steps=50) < limit < math.sqrt(50)
    with pytest.raises(InvalidArgument):
        factor(contraction=1.01, steps=3)


# ── rounding ──────────────────────────────────────────────────────────────────────────────────


def test_rows_are_short_and_on_a_grid():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 7)) * 10.0 ** rng.integers(-300, 300, (200, 1))
    x[0] = 0.0
    rows = clipped_rows(x, 1.5)
    square = [sum(Fraction(entry) ** 2 for entry in row.tolist()) for row in rows]
    assert max(square) <= Fraction(widened(1.5, 7)) ** 2
    assert np.array_equal(rows, np.rint(rows * 2**19) / 2**19)
    short = np.abs(x).sum(axis=1) < 1
    assert np.allclose(rows[short], x[short], atol=2**-18)
    # What is short and on the grid stays as it is.
    assert np.array_equal(clipped_rows(rows, 1.6), rows)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_row_is_the_same_wherever_it_stands(norm):
    x = np.random.default_rng(6).normal(size=(1500, 37))
    rows = clipped_rows(x, 1.5, norm=norm)
    alone = np.concatenate([clipped_rows(row[None], 1.5, norm=norm) for row in x])
    assert np.array_equal(rows, alone)
    assert np.array_equal(clipped_rows(np.asfortranarray(x[1:]), 1.5, norm=norm), rows[1:])
    lengths = np.linalg.norm(rows, ord=1 if norm == "l1" else 2, axis=1)
    assert 1.499 < lengths.max() <= widened(1.5, 37)


def test_gradients_are_within_their_bound():
    # Huber in integers: the true gradient is a rational number.
    rng = np.random.default_rng(2)
    objective = Huber(l2=0.1)
    x = clipped_rows(rng.normal(size=(3000, 5)), 1.0)
    y = rng.normal(size=3000) * 3
    theta = representable(rng.normal(size=5) * 100, 5)
    found = data_gradient(objective, theta, x, y) / 3000
    total = [Fraction(0)] * 5
    for row, target in zip(x.tolist(), y.tolist(), strict=True):
        margin = sum(Fraction(a) * Fraction(b) for a, b in zip(row, theta.tolist(), strict=True))
        slope = min(max(margin - Fraction(target), Fraction(-1)), Fraction(1))
        total = [old + slope * Fraction(entry) for old, entry in zip(total, row, strict=True)]
    error = math.sqrt(
        sum(float(Fraction(a) - b / 3000) ** 2 for a, b in zip(found, total, strict=True))
    )
    allowed = gradient_error(objective, row_norm=1.0, radius=300, share=1.0)
    assert error <= allowed < 1e-11


def test_parameters_in_two_pieces_hardly_move():
    theta = np.random.default_rng(3).normal(size=50)
    for features in (1, 50, 5000, 1 << 16):
        moved = np.abs(representable(theta, features) - theta).max()
        assert moved <= piece_error(features) * np.abs(theta).max()
    assert piece_error(50) < 2**-50
    assert moved > 0
    assert not representable(np.zeros(3), 3).any()
    with pytest.raises(InvalidArgument):
        representable(theta, (1 << 17) + 1)


def test_margins_are_exact_but_for_one_addition():
    rng = np.random.default_rng(4)
    objective = Huber()
    x = clipped_rows(rng.normal(size=(50, 300)), 1.0)
    theta = representable(rng.normal(size=300) * 100, 300)
    for row, found in zip(x, exact_margins(objective, theta, x), strict=True):
        pairs = zip(row.tolist(), theta.tolist(), strict=True)
        true = sum(Fraction(a) * Fraction(b) for a, b in pairs)
        assert abs(Fraction(found) - true) <= Fraction(2) ** -52 * 200
    # The same wherever a row stands.
    order = rng.permutation(50)
    assert np.array_equal(
        exact_margins(objective, theta, x)[order], exact_margins(objective, theta, x[order])
    )


# ── the mechanism ─────────────────────────────────────────────────────────────────────────────


def descent(objective=None, **changes):
    asked = {"features": 1, "public_rows": 4, "row_norm": 1.0, "mu": 1.0, "steps": 5, **changes}
    return noisy_descent(objective or Huber(l2=0.5), **asked)


@pytest.mark.parametrize(
    "budget", [{"mu": 0.4}, {"mu": None, "rho": 0.2}, {"mu": None, "epsilon": 1, "delta": 1e-6}]
)
def test_the_guarantee_is_what_was_asked(budget):
    mechanism = descent(**budget)
    assert mechanism.guarantee.relation is NeighboringRelation.REPLACE_ONE
    if "rho" in budget:
        assert mechanism.mu == pytest.approx(math.sqrt(0.4), rel=1e-6)
    elif "epsilon" in budget:
        assert 1 - 1e-6 < mechanism.guarantee.epsilon(1e-6) <= 1
    else:
        assert 0.4 * (1 - 1e-6) < mechanism.mu <= 0.4
    assert mechanism.certify().holds
    # Rounding costs next to nothing.
    assert mechanism.moved == pytest.approx(mechanism.rate * 2 / 4, rel=1e-6)


def test_the_release_has_the_law_of_a_quadratic():
    # Beyond the knee gradients are constant: the last iterate is Gaussian, and its law is known.
    mechanism = descent()
    up, down = (np.full(4, 1e6), np.array([1e6, 1e6, 1e6, -1e6]))
    x = np.ones((4, 1))
    mean, variance, keep = [0.0, 0.0], 0.0, 1 - mechanism.rate * 0.5
    for _ in range(5):
        mean = [keep * mean[0] + mechanism.rate, keep * mean[1] + mechanism.rate / 2]
        variance = keep**2 * variance + mechanism.noise.std**2
    # Two records' gradients differ by 2: a replaced one is the worst case, and the bound is tight.
    assert abs(mean[0] - mean[1]) / math.sqrt(variance) == pytest.approx(mechanism.mu, rel=1e-6)
    assert mechanism.std == pytest.approx(math.sqrt(variance))
    for targets, center in ((up, mean[0]), (down, mean[1])):
        drawn = np.array([mechanism.release(x, targets, rng=seeded_rng(i))[0] for i in range(300)])
        assert laws.mean_of(drawn, center, variance)
        assert not laws.mean_of(drawn, center + 0.5 * math.sqrt(variance), variance)
        squares = (drawn - center) ** 2 / variance
        assert laws.mean_of(squares, 1.0, 2.0)
        # Half of the noise would be seen.
        assert not laws.mean_of(squares / 4, 1.0, 2.0)


def test_it_beats_noise_at_the_end_where_the_loss_is_curved():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    y = (rng.random(400) < expit(x @ [4.0, -2.0, 1.0])).astype(float)
    mechanism = noisy_descent(
        Logistic(l2=0.01),
        features=3,
        public_rows=400,
        row_norm=1.0,
        epsilon=2,
        delta=1e-5,
        steps=100,
    )
    drawn = np.array([mechanism.release(x, y, rng=seeded_rng(i)) for i in range(40)])
    # The noise of output perturbation is `mechanism.std` in every direction.
    assert drawn.std(axis=0).max() < 0.7 * mechanism.std


@pytest.mark.parametrize(
    ("objective", "changes", "error"),
    [
        (Squared(l2=0.1), {}, InvalidArgument),
        (Logistic(), {}, InvalidArgument),
        (None, {"rate": 3.0}, Unsupported),
        (None, {"epsilon": 1}, InvalidArgument),
        (None, {"mu": None, "epsilon": 1}, InvalidArgument),
        (None, {"rho": 1}, InvalidArgument),
        (None, {"steps": 0}, InvalidArgument),
    ],
)
def test_contradictions_are_refused(objective, changes, error):
    with pytest.raises(error):
        descent(objective, **changes)


def test_the_number_of_rows_is_public_and_checked():
    with pytest.raises(OutOfDomain):
        descent().release(np.ones((5, 1)), np.zeros(5), rng=seeded_rng(1))


def test_steps_are_chosen_from_public_numbers():
    few, many = descent(steps=None), descent(steps=None, public_rows=10_000)
    assert 1 < few.steps < many.steps <= 2000
