"""Convex losses of linear models, with the constants that privacy and convergence need (C32, C34).

A record is a row ``x`` of features and a target ``y``. Its loss depends on the parameters only
through the margins ``z = x . theta`` (one a record; for several classes one a class), so the
gradient of a record is its *slope*, the derivative in the margins, times its row. All constants
follow from a bound on the slope, a bound on the curvature and a bound on the norm of a row.

Everything is vectorized over records. Parameters are one flat vector; for several classes it holds
one block of ``features`` numbers a class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]
Norm: TypeAlias = Literal["l1", "l2"]


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """Loss of a record plus ``l2/2 ||theta||^2``; with ``intercept`` column 0 goes unpenalized."""

    l2: float = 0.0
    intercept: bool = False

    def __post_init__(self) -> None:
        non_negative("l2", self.l2)

    @property
    def outputs(self) -> int:
        """Margins of a record."""
        return 1

    @property
    def convex(self) -> bool:
        """Whether the loss of every record is convex."""
        return True

    @property
    @abstractmethod
    def curvature(self) -> float:
        """A bound on the second derivative in the margins (spectral norm)."""

    @abstractmethod
    def slope_bound(self, norm: Norm = "l2") -> float:
        """A bound on the norm of the slope of one record; infinity where there is none."""

    @abstractmethod
    def losses(self, margins: Floats, targets: Floats) -> Floats:
        """Loss of each record without the penalty."""

    @abstractmethod
    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Derivative of each record's loss in its margins, of the shape of ``margins``."""

    def dimension(self, features: int) -> int:
        """Length of the parameters."""
        return self.outputs * features

    def margins(self, theta: Floats, x: Floats) -> Floats:
        """``x . theta``: float[n], or float[n, outputs] with several."""
        if self.outputs == 1:
            return x @ theta
        return x @ theta.reshape(self.outputs, -1).T

    def penalty(self, theta: Floats) -> float:
        """``l2/2 ||theta||^2`` over what is penalized."""
        return self.l2 / 2 * float(np.sum(self._penalized(theta) ** 2))

    def penalty_gradient(self, theta: Floats) -> Floats:
        """The gradient of the penalty; it involves no record."""
        return self.l2 * self._penalized(theta)

    def loss(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Loss of each record, penalty included: float[n]."""
        return self.losses(self.margins(theta, x), y) + self.penalty(theta)

    def gradient(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Gradient of each record, penalty included: float[n, p]."""
        slopes = self.slopes(self.margins(theta, x), y).reshape(len(x), self.outputs)
        data = (slopes[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return data + self.penalty_gradient(theta)

    def mean_loss(self, theta: Floats, x: Floats, y: Floats) -> float:
        """The objective: the mean over all records. Not private."""
        return float(self.losses(self.margins(theta, x), y).mean()) + self.penalty(theta)

    def mean_gradient(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Its gradient, without forming one for each record. Not private."""
        slopes = self.slopes(self.margins(theta, x), y).reshape(len(x), self.outputs)
        return (slopes.T @ x).ravel() / len(x) + self.penalty_gradient(theta)

    def smoothness(self, row_norm: float) -> float:
        """L: every record's gradient is L-Lipschitz in theta, if ``||x||_2 <= row_norm``.

        Proof: the Hessian of a record is the second derivative in the margins, times x x'.
        """
        return self.curvature * float(positive("row_norm", row_norm)) ** 2 + self.l2

    def strong_convexity(self) -> float:
        """m: the penalty's, zero if it leaves the intercept free (a bound, not the data's)."""
        return 0.0 if self.intercept else self.l2

    def lipschitz(self, row_norm: float, *, norm: Norm = "l2") -> float:
        """G: a bound on the norm of a record's gradient at every theta, *without* the penalty.

        The penalty's gradient is the same for all records, so that the sensitivity of a gradient
        to one record is G (added or removed) or 2 G (replaced). ``row_norm`` bounds x in ``norm``.
        Proof: the gradient is an outer product; both norms are multiplicative on those.
        """
        return self.slope_bound(norm) * float(positive("row_norm", row_norm))

    def _penalized(self, theta: Floats) -> Floats:
        if not self.intercept:
            return theta
        kept = theta.copy()
        kept.reshape(self.outputs, -1)[:, 0] = 0.0
        return kept


@dataclass(frozen=True, kw_only=True)
class Logistic(Loss):
    """``log(1 + e^(-z))`` for target 1 and ``log(1 + e^z)`` for target 0."""

    @property
    def curvature(self) -> float:
        return 0.25

    def slope_bound(self, norm: Norm = "l2") -> float:  # noqa: ARG002
        return 1.0

    def losses(self, margins: Floats, targets: Floats) -> Floats:
        result: Floats = np.logaddexp(0.0, margins) - targets * margins
        return result

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        result: Floats = expit(margins) - targets
        return result


@dataclass(frozen=True, kw_only=True)
class Softmax(Loss):
    """``log sum_k e^(z_k) - z_y`` for targets y = 0, ..., classes - 1."""

    classes: int

    def __post_init__(self) -> None:
        Loss.__post_init__(self)
        count("classes", self.classes, minimum=2)

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def curvature(self) -> float:
        # diag(p) - p p' has spectral norm at most max_i 2 p_i (1 - p_i) <= 1/2 (Gershgorin).
        return 0.5

    def slope_bound(self, norm: Norm = "l2") -> float:
        # p - e_y: the entry of y is -(1 - p_y), the others sum to 1 - p_y.
        return 2.0 if norm == "l1" else math.sqrt(2)

    def losses(self, margins: Floats, targets: Floats) -> Floats:
        own = margins[np.arange(len(margins)), targets.astype(np.intp)]
        result: Floats = logsumexp(margins, axis=1) - own
        return result

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        result: Floats = softmax(margins, axis=1)
        result[np.arange(len(margins)), targets.astype(np.intp)] -= 1.0
        return result


@dataclass(frozen=True, kw_only=True)
class Huber(Loss):
    """``r^2/2`` up to ``huber_threshold``, linear beyond: least squares with clipped residuals."""

    huber_threshold: float = 1.0

    def __post_init__(self) -> None:
        Loss.__post_init__(self)
        positive("huber_threshold", self.huber_threshold)

    @property
    def curvature(self) -> float:
        return 1.0

    def slope_bound(self, norm: Norm = "l2") -> float:  # noqa: ARG002
        return self.huber_threshold

    def losses(self, margins: Floats, targets: Floats) -> Floats:
        size = np.abs(margins - targets)
        inside = np.minimum(size, self.huber_threshold)
        return inside**2 / 2 + self.huber_threshold * (size - inside)

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        return np.clip(margins - targets, -self.huber_threshold, self.huber_threshold)


@dataclass(frozen=True, kw_only=True)
class Squared(Loss):
    """``weight r^2 / 2``: ridge regression. Its gradient has no bound: clip it, or take Huber.

    The mean of y is the minimizer for x = 1; with ``weight=2`` the loss is ``(y - theta)^2``.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        Loss.__post_init__(self)
        positive("weight", self.weight)

    @property
    def curvature(self) -> float:
        return self.weight

    def slope_bound(self, norm: Norm = "l2") -> float:  # noqa: ARG002
        return math.inf

    def losses(self, margins: Floats, targets: Floats) -> Floats:
        return self.weight / 2 * (margins - targets) ** 2

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        return self.weight * (margins - targets)

    def minimizer(self, x: Floats, y: Floats) -> Floats:
        """The closed form (C34). Not private."""
        gram = self.weight * (x.T @ x) / len(x)
        free = self.l2 * np.ones(x.shape[1])
        if self.intercept:
            free[0] = 0.0
        moment = self.weight * (x.T @ y) / len(x)
        return np.asarray(np.linalg.solve(gram + np.diag(free), moment), dtype=np.float64)


def check_objective(
    objective: Loss, *, x: Floats, y: Floats, points: Floats, tolerance: float = 1e-9
) -> tuple[str, ...]:
    """Which properties that the objective claims fail between the given points, record by record.

    ``points`` are parameters, float[m, p]; every ordered pair of them is tried. Nothing found is
    no proof; something found is a counterexample. Checked: the gradient is the derivative (by a
    central difference), convexity, L-smoothness, co-coercivity, and the Lipschitz bound (C32).
    """
    if points.ndim != 2 or points.shape[1] != objective.dimension(x.shape[1]):
        raise InvalidArgument(
            f"points must have {objective.dimension(x.shape[1])} columns, got {points.shape}."
        )
    largest = float(np.linalg.norm(x, axis=1).max())
    smooth = objective.smoothness(largest)
    losses = [objective.loss(point, x, y) for point in points]
    slopes = [objective.gradient(point, x, y) for point in points]
    found = dict.fromkeys(_data_faults(objective, x, y, points, slopes, largest, tolerance))
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            if i == j:
                continue
            move, turn = b - a, slopes[j] - slopes[i]
            room = tolerance * (1 + float(move @ move))
            size = np.linalg.norm(turn, axis=1)
            if objective.convex and (losses[j] - losses[i] - slopes[i] @ move < -room).any():
                found["convex"] = None
            if (size > smooth * np.linalg.norm(move) + room).any():
                found["smooth"] = None
            if objective.convex and (size**2 / smooth - turn @ move > room).any():
                found["co-coercive"] = None
    return tuple(found)


def _data_faults(
    objective: Loss,
    x: Floats,
    y: Floats,
    points: Floats,
    slopes: list[Floats],
    largest: float,
    tolerance: float,
) -> list[str]:
    found = []
    step = 1e-6
    bound = objective.lipschitz(largest) * (1 + tolerance) + tolerance
    for point, slope in zip(points, slopes, strict=True):
        data = slope - objective.penalty_gradient(point)
        if (np.linalg.norm(data, axis=1) > bound).any():
            found.append("Lipschitz")
        for k in range(len(point)):
            ahead, behind = point.copy(), point.copy()
            ahead[k] += step
            behind[k] -= step
            rise = objective.loss(ahead, x, y) - objective.loss(behind, x, y)
            # The error of a central difference: rounding over the step, curvature times the step.
            near = 1e-6 * (1 + np.abs(slope[:, k])) + step * objective.smoothness(largest)
            if (np.abs(rise / (2 * step) - slope[:, k]) > near).any():
                found.append("derivative")
    return found
