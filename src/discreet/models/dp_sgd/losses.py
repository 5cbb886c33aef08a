"""Convex losses of linear models, with the constants that privacy and convergence need.

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
    """A convex loss of a linear model, with an L2 penalty.

    The loss of a record depends on the parameters only through its margins, the products of
    features and parameters. The penalty is `l2 / 2 * ||theta||²`.

    Args:
        l2: Strength of the penalty, zero or above.
        intercept: Whether column 0 is an intercept that is not penalized.

    Raises:
        InvalidArgument: `l2` is negative.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> isinstance(dp_sgd.Logistic(l2=0.1), dp_sgd.Loss)
        True
    """

    l2: float = 0.0
    intercept: bool = False

    def __post_init__(self) -> None:
        non_negative("l2", self.l2)

    @property
    def outputs(self) -> int:
        """Number of margins of a record."""
        return 1

    @property
    def convex(self) -> bool:
        """Whether the loss of every record is convex."""
        return True

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Upper bound of the second derivative in the margins (spectral norm)."""

    @abstractmethod
    def slope_bound(self, norm: Norm = "l2") -> float:
        """Bound the slope, the derivative of a record's loss in its margins.

        Args:
            norm: Norm of the slope, `"l1"` or `"l2"`.

        Returns:
            The bound, infinity if there is none.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic().slope_bound()
            1.0
        """

    @abstractmethod
    def losses(self, margins: Floats, targets: Floats) -> Floats:
        """Compute the loss of each record, without the penalty.

        Args:
            margins: Margins, one per record or one row per record.
            targets: Target of each record.

        Returns:
            One loss per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Squared().losses(numpy.array([1.0, 3.0]), numpy.array([1.0, 1.0])).tolist()
            [0.0, 2.0]
        """

    @abstractmethod
    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Compute the slope of each record: the derivative of its loss in the margins.

        Args:
            margins: Margins, one per record or one row per record.
            targets: Target of each record.

        Returns:
            An array of the shape of `margins`.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Squared().slopes(numpy.array([1.0, 3.0]), numpy.array([1.0, 1.0])).tolist()
            [0.0, 2.0]
        """

    def dimension(self, features: int) -> int:
        """Return the number of parameters.

        Args:
            features: Number of features.

        Returns:
            The length of the parameter vector.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Softmax(classes=3).dimension(2)
            6
        """
        return self.outputs * features

    def margins(self, theta: Floats, x: Floats) -> Floats:
        """Compute the margins of records.

        Args:
            theta: Parameters.
            x: Features, one row per record.

        Returns:
            One margin per record, or one row of margins per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic().margins(numpy.array([1.0, 2.0]), numpy.eye(2)).tolist()
            [1.0, 2.0]
        """
        if self.outputs == 1:
            return x @ theta
        return x @ theta.reshape(self.outputs, -1).T

    def penalty(self, theta: Floats) -> float:
        """Compute the penalty.

        Args:
            theta: Parameters.

        Returns:
            `l2 / 2` times the squared norm of the penalized parameters.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic(l2=0.5).penalty(numpy.array([2.0]))
            1.0
        """
        return self.l2 / 2 * float(np.sum(self._penalized(theta) ** 2))

    def penalty_gradient(self, theta: Floats) -> Floats:
        """Compute the gradient of the penalty. It involves no record.

        Args:
            theta: Parameters.

        Returns:
            The gradient.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic(l2=0.5).penalty_gradient(numpy.array([2.0])).tolist()
            [1.0]
        """
        return self.l2 * self._penalized(theta)

    def loss(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Compute the loss of each record, including the penalty.

        Args:
            theta: Parameters.
            x: Features, one row per record.
            y: Target of each record.

        Returns:
            One loss per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> x, y = numpy.array([[1.0]]), numpy.array([3.0])
            >>> dp_sgd.Squared().loss(numpy.array([1.0]), x, y).tolist()
            [2.0]
        """
        return self.losses(self.margins(theta, x), y) + self.penalty(theta)

    def gradient(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Compute the gradient of each record, including the penalty.

        Args:
            theta: Parameters.
            x: Features, one row per record.
            y: Target of each record.

        Returns:
            Gradients, records x parameters.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> x, y = numpy.array([[1.0]]), numpy.array([3.0])
            >>> dp_sgd.Squared().gradient(numpy.array([1.0]), x, y).tolist()
            [[-2.0]]
        """
        slopes = self.slopes(self.margins(theta, x), y).reshape(len(x), self.outputs)
        data = (slopes[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return data + self.penalty_gradient(theta)

    def mean_loss(self, theta: Floats, x: Floats, y: Floats) -> float:
        """Compute the objective: the mean loss with the penalty.

        Args:
            theta: Parameters.
            x: Features, one row per record.
            y: Target of each record.

        Returns:
            The objective. It is not private.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> x, y = numpy.array([[1.0]]), numpy.array([3.0])
            >>> dp_sgd.Squared().mean_loss(numpy.array([1.0]), x, y)
            2.0
        """
        return float(self.losses(self.margins(theta, x), y).mean()) + self.penalty(theta)

    def mean_gradient(self, theta: Floats, x: Floats, y: Floats) -> Floats:
        """Compute the gradient of the objective.

        Args:
            theta: Parameters.
            x: Features, one row per record.
            y: Target of each record.

        Returns:
            The gradient. It is not private.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> x, y = numpy.array([[1.0]]), numpy.array([3.0])
            >>> dp_sgd.Squared().mean_gradient(numpy.array([1.0]), x, y).tolist()
            [-2.0]
        """
        slopes = self.slopes(self.margins(theta, x), y).reshape(len(x), self.outputs)
        return (slopes.T @ x).ravel() / len(x) + self.penalty_gradient(theta)

    def smoothness(self, row_norm: float) -> float:
        """Bound how fast the gradient of a record changes with the parameters.

        Args:
            row_norm: Upper bound of the L2 norm of a row.

        Returns:
            The Lipschitz constant L of the gradient.

        Raises:
            InvalidArgument: `row_norm` is not positive.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic(l2=0.5).smoothness(2.0)
            1.5
        """
        # Proof: the Hessian of a record is the second derivative in the margins, times x x'.
        return self.curvature * float(positive("row_norm", row_norm)) ** 2 + self.l2

    def strong_convexity(self) -> float:
        """Return the constant of strong convexity that the penalty gives.

        Returns:
            `l2`, or zero if an intercept is not penalized.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic(l2=0.5).strong_convexity()
            0.5
        """
        return 0.0 if self.intercept else self.l2

    def lipschitz(self, row_norm: float, *, norm: Norm = "l2") -> float:
        """Bound the gradient of a record, without the penalty.

        The sensitivity of a sum of gradients is this bound if a record is added or removed, and
        twice this bound if a record is replaced.

        Args:
            row_norm: Upper bound of the norm of a row, in `norm`.
            norm: Norm of the gradient, `"l1"` or `"l2"`.

        Returns:
            The bound, infinity if there is none.

        Raises:
            InvalidArgument: `row_norm` is not positive.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.Logistic().lipschitz(2.0)
            2.0
        """
        # Proof: the gradient is an outer product; both norms are multiplicative on those.
        return self.slope_bound(norm) * float(positive("row_norm", row_norm))

    def _penalized(self, theta: Floats) -> Floats:
        if not self.intercept:
            return theta
        kept = theta.copy()
        kept.reshape(self.outputs, -1)[:, 0] = 0.0
        return kept


@dataclass(frozen=True, kw_only=True)
class Logistic(Loss):
    """The logistic loss, for targets 0 and 1.

    Args:
        l2: Strength of the penalty, zero or above.
        intercept: Whether column 0 is an intercept that is not penalized.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> dp_sgd.Logistic(l2=0.1).curvature
        0.25
    """

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
    """The softmax loss, for targets 0 to `classes - 1`.

    Args:
        l2: Strength of the penalty, zero or above.
        intercept: Whether column 0 is an intercept that is not penalized.
        classes: Number of classes, at least 2.

    Raises:
        InvalidArgument: `classes` is below 2, or `l2` is negative.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> dp_sgd.Softmax(classes=3).outputs
        3
    """

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
    """The Huber loss: squared for small residuals, linear for large ones.

    Args:
        l2: Strength of the penalty, zero or above.
        intercept: Whether column 0 is an intercept that is not penalized.
        huber_threshold: Residual from which the loss is linear, above zero.

    Raises:
        InvalidArgument: `huber_threshold` is not positive, or `l2` is negative.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> dp_sgd.Huber(huber_threshold=0.5).slope_bound()
        0.5
    """

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
    """The squared loss, `weight / 2` times the squared residual.

    Its gradient has no bound, so it must be clipped.

    Args:
        l2: Strength of the penalty, zero or above.
        intercept: Whether column 0 is an intercept that is not penalized.
        weight: Factor of the loss, above zero.

    Raises:
        InvalidArgument: `weight` is not positive, or `l2` is negative.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> dp_sgd.Squared().slope_bound()
        inf
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
        """Compute the minimizer in closed form.

        Args:
            x: Features, one row per record.
            y: Target of each record.

        Returns:
            The parameters. They are not private.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> x, y = numpy.array([[1.0], [1.0]]), numpy.array([1.0, 3.0])
            >>> dp_sgd.Squared().minimizer(x, y).tolist()
            [2.0]
        """
        gram = self.weight * (x.T @ x) / len(x)
        free = self.l2 * np.ones(x.shape[1])
        if self.intercept:
            free[0] = 0.0
        moment = self.weight * (x.T @ y) / len(x)
        return np.asarray(np.linalg.solve(gram + np.diag(free), moment), dtype=np.float64)


def check_objective(
    objective: Loss, *, x: Floats, y: Floats, points: Floats, tolerance: float = 1e-9
) -> tuple[str, ...]:
    """Check the properties that a loss claims, at given points.

    It checks the gradient, convexity, smoothness, co-coercivity and the Lipschitz bound of every
    record, for every pair of points. Passing this check is not a proof.

    Args:
        objective: Loss to check.
        x: Features, one row per record.
        y: Target of each record.
        points: Parameters, one row per point.
        tolerance: Relative tolerance for rounding errors.

    Returns:
        Names of the properties that fail.

    Raises:
        InvalidArgument: `points` has the wrong number of columns.

    Examples:
        >>> import numpy
        >>> from discreet.models import dp_sgd
        >>> x, y = numpy.array([[1.0]]), numpy.array([1.0])
        >>> points = numpy.array([[0.0], [1.0]])
        >>> dp_sgd.check_objective(dp_sgd.Logistic(), x=x, y=y, points=points)
        ()
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
