"""Convex losses: their derivatives, their constants, and checkers that catch a loss that lies."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd.losses import (
    Floats,
    Huber,
    Logistic,
    Loss,
    Norm,
    Softmax,
    Squared,
    check_objective,
)

RNG = np.random.default_rng(7)
X = np.column_stack([np.ones(40), RNG.uniform(-1, 1, (40, 3))])
Y = RNG.uniform(-2, 2, 40)
LABELS = RNG.integers(0, 2, 40).astype(float)
CLASSES = RNG.integers(0, 3, 40).astype(float)
OBJECTIVES = [
    (Logistic(l2=0.01), LABELS),
    (Logistic(l2=0.3, intercept=True), LABELS),
    (Huber(l2=0.1, huber_threshold=0.7), Y),
    (Squared(l2=0.1, intercept=True), Y),
    (Squared(weight=2.0), Y),
    (Softmax(classes=3, l2=0.05, intercept=True), CLASSES),
]


def points(objective: Loss) -> Floats:
    return 2 * np.random.default_rng(1).standard_normal((8, objective.dimension(X.shape[1])))


@pytest.mark.parametrize(("objective", "y"), OBJECTIVES)
def test_claims_hold(objective: Loss, y: Floats) -> None:
    assert check_objective(objective, x=X, y=y, points=points(objective)) == ()


@dataclass(frozen=True, kw_only=True)
class Wavy(Loss):
    """Not convex, though it says so."""

    @property
    def curvature(self) -> float:
        return 1.0

    def slope_bound(self, norm: Norm = "l2") -> float:
        return 1.0

    def losses(self, margins: Floats, targets: Floats) -> Floats:
        return np.cos(margins - targets)

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        return -np.sin(margins - targets)


@dataclass(frozen=True, kw_only=True)
class Flattered(Logistic):
    """Claims less curvature and a smaller slope than it has."""

    @property
    def curvature(self) -> float:
        return 0.1

    def slope_bound(self, norm: Norm = "l2") -> float:
        return 0.5


@dataclass(frozen=True, kw_only=True)
class Miscoded(Logistic):
    """The gradient of another loss."""

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        return super().slopes(margins, 1 - targets)


def test_a_planted_loss_that_is_not_convex_is_found() -> None:
    found = check_objective(Wavy(), x=X, y=Y, points=points(Wavy()))
    assert found == ("convex", "co-coercive")


def test_false_constants_and_derivatives_are_found() -> None:
    near = 0.3 * points(Logistic())
    assert set(check_objective(Flattered(), x=X, y=LABELS, points=near)) >= {"smooth", "Lipschitz"}
    assert "derivative" in check_objective(Miscoded(), x=X, y=LABELS, points=near)


@pytest.mark.parametrize(("objective", "y"), OBJECTIVES)
def test_mean_gradient_is_the_mean_of_gradients(objective: Loss, y: Floats) -> None:
    theta = points(objective)[0]
    mean = objective.gradient(theta, X, y).mean(axis=0)
    assert np.allclose(objective.mean_gradient(theta, X, y), mean, atol=1e-14)
    assert math.isclose(objective.mean_loss(theta, X, y), objective.loss(theta, X, y).mean())


def test_ridge_has_its_closed_form() -> None:
    """C34: th1 = cov/(var + l2) with 1/n moments, th0 = mean - th1 mean; gradient below 1e-12."""
    objective = Squared(l2=0.3, intercept=True)
    x = X[:, :2]
    theta = objective.minimizer(x, Y)
    v = x[:, 1]
    slope = np.mean((v - v.mean()) * (Y - Y.mean())) / (v.var() + 0.3)
    assert np.allclose(theta, [Y.mean() - slope * v.mean(), slope], atol=1e-12)
    assert np.abs(objective.mean_gradient(theta, x, Y)).max() < 1e-12
    mean = Squared(weight=2.0)
    assert math.isclose(mean.minimizer(np.ones((40, 1)), Y)[0], Y.mean())
    assert mean.smoothness(1.0) == 2.0


def test_softmax_of_two_classes_is_logistic() -> None:
    theta = RNG.standard_normal(4)
    pair = np.concatenate([np.zeros(4), theta])
    one, two = Logistic(), Softmax(classes=2)
    assert np.allclose(one.loss(theta, X, LABELS), two.loss(pair, X, LABELS), atol=1e-14)
    own = two.gradient(pair, X, LABELS)
    assert np.allclose(own[:, 4:], one.gradient(theta, X, LABELS), atol=1e-14)
    assert np.allclose(own[:, :4], -own[:, 4:], atol=1e-14)


def test_constants_of_bounded_gradients() -> None:
    """C34: rows with an L1 norm of at most 1 give logistic gradients of L1 norm at most 1."""
    assert Logistic().lipschitz(1.0, norm="l1") == 1.0
    assert Logistic().smoothness(1.0) == 0.25
    assert Softmax(classes=4).lipschitz(1.0) == math.sqrt(2)
    assert Softmax(classes=4).lipschitz(1.0, norm="l1") == 2.0
    assert Squared().lipschitz(1.0) == math.inf
    assert Logistic(l2=0.2).strong_convexity() == 0.2
    assert Logistic(l2=0.2, intercept=True).strong_convexity() == 0.0


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="l2"):
        Logistic(l2=-1.0)
    with pytest.raises(InvalidArgument, match="huber_threshold"):
        Huber(huber_threshold=0.0)
    with pytest.raises(InvalidArgument, match="classes"):
        Softmax(classes=1)
    with pytest.raises(InvalidArgument, match="points"):
        check_objective(Logistic(), x=X, y=LABELS, points=np.zeros((2, 7)))
