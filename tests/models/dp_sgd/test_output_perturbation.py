"""Models without noise inside: how far a record moves them, and noise on the result (C42)."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd._output_perturbation import (
    constant_rate_limit,
    contraction,
    falling_rates,
    minimizer_sensitivity,
    output_perturbation,
    pass_sensitivity,
    with_replacement_sensitivity,
)
from discreet.models.dp_sgd.convergence import record_gradients
from discreet.models.dp_sgd.losses import Huber, Logistic, Softmax, Squared
from discreet.noise.random_source import seeded_rng
from discreet_studies.private_inference.published_sgd import pass_sensitivity_as_published
from tests import distributions as laws

BOTH = (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE)


def last_iterate(objective, x, y, rates):
    """Noiseless passes in the order of the records."""
    theta = np.zeros((1, x.shape[1]))
    for t, rate in enumerate(rates):
        theta = theta - rate * record_gradients(objective, theta, x, y, [t % len(x)])
    return theta[0]


def furthest(objective, rates, n, records, rng, tries=20):
    """The largest move of the last iterate by one replaced record, whichever it is."""
    most = 0.0
    for _ in range(tries):
        chosen = rng.integers(len(records), size=n)
        x, y = (np.array([records[i][part] for i in chosen]) for part in (0, 1))
        here = last_iterate(objective, x, y, rates)
        for place, (row, target) in itertools.product(range(n), records):
            other_x, other_y = x.copy(), y.copy()
            other_x[place], other_y[place] = row, target
            there = last_iterate(objective, other_x, other_y, rates)
            most = max(most, float(np.linalg.norm(here - there)))
    return most


# Residuals stay beyond the knee: gradients are constant, so that bounds are attained.
LINEAR = [([1.0, 0.0], 30.0), ([-1.0, 0.0], 30.0), ([0.6, 0.8], -30.0), ([0.0, 0.0], 0.0)]
LABELED = [([1.0, 0.0], 1.0), ([-1.0, 0.0], 1.0), ([0.6, 0.8], 0.0), ([0.0, -1.0], 0.0)]


@pytest.mark.parametrize("passes", [1, 3])
def test_a_convex_loss_moves_by_twice_the_rate_a_pass(passes):
    found = pass_sensitivity(
        np.full(5 * passes, 0.3), rows=5, passes=passes, lipschitz=1, smoothness=1
    )
    assert found == pytest.approx(2 * passes * 0.3)
    moved = furthest(
        Huber(), np.full(5 * passes, 0.3), 5, LINEAR, np.random.default_rng(1), tries=3
    )
    assert moved == pytest.approx(found, rel=1e-6)
    moved = furthest(Logistic(), np.full(5 * passes, 0.3), 5, LABELED, np.random.default_rng(1))
    assert 0.4 * found < moved < found


def test_a_strongly_convex_loss_at_a_constant_rate():
    m, rate, n = 0.5, 0.6, 4
    objective = Huber(l2=m)
    limit = constant_rate_limit(rate=rate, rows=n, lipschitz=1, strong_convexity=m)
    assert limit == pytest.approx(2 * rate / (1 - (1 - rate * m) ** n))
    for passes in (1, 2, 8):
        rates = np.full(n * passes, rate)
        bound = pass_sensitivity(
            rates, rows=n, passes=passes, lipschitz=1, smoothness=1 + m, strong_convexity=m
        )
        moved = furthest(objective, rates, n, LINEAR, np.random.default_rng(2), tries=2)
        assert moved == pytest.approx(bound, rel=1e-6)
        assert bound <= limit * (1 + 1e-12)
    assert bound == pytest.approx(limit, rel=1e-4)
    printed = pass_sensitivity_as_published(lipschitz=1, strong_convexity=m, rows=n)
    assert moved > 1.5 * printed


def test_the_printed_bound_is_fifty_times_too_small():
    printed = pass_sensitivity_as_published(lipschitz=1, strong_convexity=0.1, rows=1000)
    rates = np.full(1000, 0.5)
    bound = pass_sensitivity(
        rates, rows=1000, passes=1, lipschitz=1, smoothness=1.1, strong_convexity=0.1
    )
    assert bound / printed == pytest.approx(50, rel=1e-9)


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_falling_rates_keep_the_bound_of_the_minimizer(passes):
    m, n, top = 0.5, 6, 1.5
    rates = falling_rates(rows=n, passes=passes, smoothness=top, strong_convexity=m)
    bound = pass_sensitivity(
        rates, rows=n, passes=passes, lipschitz=1, smoothness=top, strong_convexity=m
    )
    assert bound <= 2 / (m * n) * (1 + 1e-9)
    moved = furthest(Huber(l2=m), rates, n, LINEAR, np.random.default_rng(3), tries=2)
    assert moved <= bound
    assert moved == pytest.approx(bound, rel=1e-6)


def test_draws_with_replacement_are_refused_by_pass_formulas():
    with pytest.raises(Unsupported, match="replacement"):
        pass_sensitivity(
            np.ones(4), rows=4, passes=1, lipschitz=1, smoothness=1, order="with replacement"
        )
    # A record that is drawn in every step moves the model by all rates together.
    rates = np.full(4, 0.3)
    here = last_iterate(Huber(), np.ones((1, 1)), np.array([1e6]), rates)
    there = last_iterate(Huber(), -np.ones((1, 1)), np.array([1e6]), rates)
    assert abs(here - there)[0] == pytest.approx(with_replacement_sensitivity(rates, lipschitz=1))


def test_rates_beyond_two_over_l_are_refused():
    with pytest.raises(Unsupported):
        contraction(2.1, smoothness=1)
    assert contraction(2.0, smoothness=1)[0] == 1
    assert contraction(0.5, smoothness=1, strong_convexity=0.5)[0] == 0.75
    with pytest.raises(InvalidArgument):
        contraction(0.5, smoothness=1, strong_convexity=2)
    with pytest.raises(InvalidArgument):
        pass_sensitivity(np.ones(3), rows=4, passes=1, lipschitz=1, smoothness=1)
    with pytest.raises(InvalidArgument):
        constant_rate_limit(rate=2, rows=3, lipschitz=1, strong_convexity=0.5)


# ── the minimizer ─────────────────────────────────────────────────────────────────────────────


def brute_minimizer(objective, x, y, rows):
    def slope(theta):
        slopes = objective.slopes(objective.margins(theta, x), y).reshape(len(x), objective.outputs)
        return (slopes.T @ x).ravel() / rows + objective.penalty_gradient(theta)

    found = optimize.minimize(
        lambda theta: (
            objective.losses(objective.margins(theta, x), y).sum() / rows + objective.penalty(theta)
        ),
        np.zeros(objective.dimension(x.shape[1])),
        jac=slope,
        method="BFGS",
        options={"gtol": 1e-10},
    )
    assert np.abs(slope(found.x)).max() < 1e-6
    return found.x


def moves(objective, records, size, rows, relation):
    """Distances of minimizers of all neighboring data sets of up to ``size`` records."""
    known = {}

    def best(chosen):
        if chosen not in known:
            x, y = (np.array([records[i][part] for i in chosen]) for part in (0, 1))
            known[chosen] = brute_minimizer(objective, x.reshape(-1, 2), y, rows)
        return known[chosen]

    for chosen in itertools.combinations_with_replacement(range(len(records)), size):
        for extra in range(len(records)):
            more = tuple(sorted((*chosen, extra)))
            if relation is NeighboringRelation.ADD_REMOVE:
                yield float(np.linalg.norm(best(chosen) - best(more)))
                continue
            for other in range(extra):
                yield float(np.linalg.norm(best(tuple(sorted((*chosen, other)))) - best(more)))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(
    ("objective", "records"),
    [(Huber(l2=0.5), LINEAR), (Logistic(l2=0.2), LABELED), (Softmax(classes=2, l2=0.3), LABELED)],
)
def test_no_neighbor_moves_the_minimizer_further(objective, records, relation):
    m, g = objective.strong_convexity(), objective.lipschitz(1.0)
    bound = minimizer_sensitivity(lipschitz=g, strong_convexity=m, rows=3, relation=relation)
    found = max(moves(objective, records, 2, 3, relation))
    assert found <= bound * (1 + 1e-6)
    if isinstance(objective, Huber):
        assert found == pytest.approx(bound, rel=1e-4)


def test_what_a_solver_leaves_is_paid_for():
    exact = minimizer_sensitivity(lipschitz=1, strong_convexity=0.5, rows=10)
    sloppy = minimizer_sensitivity(lipschitz=1, strong_convexity=0.5, rows=10, tolerance=0.01)
    assert sloppy == pytest.approx(exact + 2 * 0.01 / 0.5)
    with pytest.raises(InvalidArgument):
        minimizer_sensitivity(
            lipschitz=1, strong_convexity=1, rows=1, relation=NeighboringRelation.LOCAL
        )


# ── the mechanism ─────────────────────────────────────────────────────────────────────────────


def perturbed(objective=None, **changes):
    asked = {"features": 2, "public_rows": 50, "row_norm": 1.0, "epsilon": 1, **changes}
    return output_perturbation(objective or Logistic(l2=0.1), **asked)


def sample(n=50, seed=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    return x, (x[:, 0] + rng.normal(0, 0.3, n) > 0).astype(float)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("budget", [{}, {"delta": 1e-6}])
def test_the_sensitivity_is_that_of_the_minimizer_and_a_little(relation, budget):
    mechanism = perturbed(relation=relation, **budget)
    bound = minimizer_sensitivity(lipschitz=1, strong_convexity=0.1, rows=50, relation=relation)
    assert bound < mechanism.sensitivity < 1.01 * bound
    assert mechanism.guarantee.relation is relation
    assert mechanism.guarantee.epsilon(budget.get("delta", 0)) <= 1 + 1e-12
    assert mechanism.certify().holds
    norm = math.sqrt(2) if not budget else 1.0
    assert mechanism.std > bound * norm


def test_released_parameters_are_the_minimizer_with_noise():
    x, y = sample()
    mechanism = perturbed(epsilon=20)
    best = brute_minimizer(Logistic(l2=0.1), x, y, 50)
    drawn = np.array([mechanism.release(x, y, rng=seeded_rng(i)) for i in range(400)])
    # Scale b: variance 2 b^2, and the solver stops within a hundredth of the noise.
    for column, middle in zip(drawn.T, best, strict=True):
        room = 0.01 * mechanism.std
        assert laws.mean_of(
            column - np.clip(column.mean() - middle, -room, room), middle, mechanism.std**2
        )
        assert not laws.mean_of(column, middle + mechanism.std, mechanism.std**2)
    step = mechanism.noise.reals.step
    assert np.array_equal(drawn, np.rint(drawn / step) * step)


def test_far_more_records_than_declared_are_solved_within_the_ball():
    # The slow solver: the minimizer lies outside of the ball, and the best point on it is known.
    x, y = np.tile([[1.0, 0.0]], (4000, 1)), np.full(4000, 1e6)
    mechanism = perturbed(Huber(l2=0.1), public_rows=50, epsilon=1000)
    released = mechanism.release(x, y, rng=seeded_rng(1))
    assert released == pytest.approx([mechanism.radius, 0], abs=20 * mechanism.std)


def test_rows_are_shrunk_and_the_order_is_forgotten():
    x, y = sample()
    mechanism = perturbed(epsilon=1000)
    short = mechanism.release(x, y, rng=seeded_rng(1))
    order = np.random.default_rng(1).permutation(50)
    assert mechanism.release(x[order], y[order], rng=seeded_rng(1)) == pytest.approx(
        short, abs=1e-3 * mechanism.std + 2 * mechanism.noise.reals.step
    )
    long = np.where(np.linalg.norm(x, axis=1, keepdims=True) > 0.999, 1e200 * x, x)
    assert mechanism.release(long, y, rng=seeded_rng(1)) == pytest.approx(short, abs=1e-2)


@pytest.mark.parametrize(
    "objective",
    [Squared(l2=0.1), Logistic(l2=0.0), Logistic(l2=0.1, intercept=True)],
)
def test_losses_without_a_bound_are_refused(objective):
    with pytest.raises(InvalidArgument):
        perturbed(objective)


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        (np.zeros((50, 3)), np.zeros(50), InvalidArgument),
        (np.zeros((50, 2)), np.zeros(49), InvalidArgument),
        (np.zeros((50, 2)), np.zeros((50, 1)), InvalidArgument),
    ],
)
def test_bad_records_are_refused_without_a_word_of_them(x, y, error):
    with pytest.raises(error):
        perturbed().release(x, y, rng=seeded_rng(1))


def test_records_that_do_not_fit_say_nothing():
    x, y = np.full((50, 2), 0.3), np.zeros(50)
    none = perturbed().release(np.empty((0, 2)), np.empty(0), rng=seeded_rng(1))
    for table, targets in ((np.full((50, 2), np.nan), y), (x, np.full(50, 2.0)), (x, [None] * 50)):
        assert (perturbed().release(table, targets, rng=seeded_rng(1)) == none).all()
    assert not (perturbed().release(x, y, rng=seeded_rng(1)) == none).all()


def test_no_records_are_fine_where_their_number_is_secret():
    assert perturbed().release(np.empty((0, 2)), np.empty(0), rng=seeded_rng(1)).shape == (2,)
    with pytest.raises(OutOfDomain):
        perturbed(relation=NeighboringRelation.REPLACE_ONE).release(
            np.empty((0, 2)), np.empty(0), rng=seeded_rng(1)
        )
