"""Private logistic regression, ridge regression and Huber regression by gradient descent.

For linear regression with standard errors take ``discreet.models.regression``: noise on the sums
of squares is better there for few columns. Gradient descent is for many columns and for robust
losses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from discreet.core.errors import InvalidArgument
from discreet.models._model_inputs import Floats, bounds_of, doubles, shaped
from discreet.models.dp_sgd._estimator_base import (
    Classes,
    GradientDescentEstimator,
    class_places,
    classes_of,
    declared_classes,
    likeliest,
    probabilities,
)
from discreet.models.dp_sgd.budget import TrainingPlan
from discreet.models.dp_sgd.losses import Huber, Logistic, Loss, Softmax, Squared
from discreet.models.dp_sgd.train import FeatureMap, usual_norm

# ── Classifier ───────────────────────────────────────────────────────────────────────────────────


# Margins of a fitted classifier usually spread this much.
_SPREAD = 2.5


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(ClassifierMixin, GradientDescentEstimator):
    """Logistic regression by private gradient descent: two classes, or several by softmax.

    ``classes`` are the labels that can occur, declared; ``"public"`` says that the labels found in
    y are no secret. A declared class need not occur. Rows longer than ``row_norm`` (after scaling)
    are shrunk to it, which keeps the predicted class; a record's gradient is clipped to ``clip``,
    by default the longest one at the start: later only records on the wrong side are clipped.

    >>> import numpy as np
    >>> from discreet.noise.random_source import seeded_rng
    >>> x = np.linspace(-1, 1, 2000)[:, None]
    >>> model = PrivateLogisticRegression(
    ...     epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1), rng=seeded_rng(1)
    ... ).fit(x, (x[:, 0] > 0.2).astype(int))
    >>> bool(model.score(x, (x[:, 0] > 0.2).astype(int)) > 0.9)
    True
    """

    classes: Classes = None

    def decision_function(self, X: object) -> Floats:
        """Margins: of the second class against the first, or one for each of several classes."""
        return self._margins(X)

    def predict_proba(self, X: object) -> Floats:
        """Probabilities of the classes, one row for each of X."""
        return probabilities(self._margins(X))

    def predict(self, X: object) -> NDArray[Any]:
        """The likeliest class of each row."""
        return likeliest(self._margins(X), self.classes_)

    def _objective(self) -> Loss:
        number = len(self._labels())
        penalty, intercept = self._penalty(), bool(self.fit_intercept)
        if number == 2:
            return Logistic(l2=penalty, intercept=intercept)
        return Softmax(classes=number, l2=penalty, intercept=intercept)

    def _labels(self) -> NDArray[Any]:
        return declared_classes(self.classes, found=getattr(self, "classes_", None))

    def _target_array(self, y: object) -> NDArray[Any]:
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        given = self._one_column(shaped("y", y))
        self.classes_ = classes_of(self.classes, given)
        return given

    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        return class_places(y, self.classes_)

    def _usual(self, columns: int) -> float:
        return usual_norm(columns, intercept=bool(self.fit_intercept))

    def _row_norm(self, columns: int) -> float:
        return self._declared("row_norm") or self._usual(columns)

    def _clip(self, columns: int) -> float:
        outputs = len(self._labels())
        start = 0.5 if outputs == 2 else math.sqrt(1 - 1 / outputs)
        return self._declared("clip") or start * self._row_norm(columns)

    def _spread(self) -> float:
        return _SPREAD

    def _keep(self, theta: Floats, mapped: FeatureMap, plan: TrainingPlan, rows: float) -> None:
        super()._keep(theta, mapped, plan, rows)
        self.coef_, self.intercept_ = mapped.in_units(theta)


# ── Regressors ───────────────────────────────────────────────────────────────────────────────────


# Targets are scaled to -1 ... 1. There predictions usually spread this much ...
_TARGET_SPREAD = 0.4
# ... and residuals up to here count in full by default.
_HUBER_THRESHOLD = 0.25


@dataclass(kw_only=True, eq=False, repr=False)
class _Regressor(RegressorMixin, GradientDescentEstimator):
    """Regression of targets with declared bounds."""

    target_bounds: tuple[float, float] | None = None

    def predict(self, X: object) -> Floats:
        """The predicted target of each row."""
        margins = self._margins(X)
        return self.target_center_ + self.target_half_ * margins

    @abstractmethod
    def _full(self) -> float:
        """The residual (scaled) from which on a gradient is clipped, for a row of usual length."""

    def _target_array(self, y: object) -> NDArray[Any]:
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        given = self._one_column(shaped("y", y))
        self.target_center_, self.target_half_ = self._target_scale()
        return given

    def _target_scale(self) -> tuple[float, float]:
        """Center and half width of the declared bounds."""
        if self.target_bounds is None:
            raise InvalidArgument(
                "target_bounds must be declared: (lower, upper) of y. They are never taken from "
                "the data."
            )
        low, high = bounds_of("target_bounds", self.target_bounds, columns=1)
        return float(low[0] / 2 + high[0] / 2), float(high[0] / 2 - low[0] / 2)

    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        # Clipped before it is divided: a warning of an overflow would tell that a target is huge.
        away = doubles("y", y) - self.target_center_
        scaled: Floats = np.clip(away, -self.target_half_, self.target_half_) / self.target_half_
        return scaled

    def _usual(self, columns: int) -> float:
        return usual_norm(columns, intercept=bool(self.fit_intercept))

    def _row_norm(self, columns: int) -> float:
        # Rows are not shrunk: a regression needs their length.
        longest = math.sqrt(columns + bool(self.fit_intercept))
        return self._declared("row_norm") or longest

    def _clip(self, columns: int) -> float:
        return self._declared("clip") or self._full() * self._usual(columns)

    def _spread(self) -> float:
        return _TARGET_SPREAD

    def _keep(self, theta: Floats, mapped: FeatureMap, plan: TrainingPlan, rows: float) -> None:
        super()._keep(theta, mapped, plan, rows)
        slopes, starts = mapped.in_units(theta * self.target_half_)
        self.coef_ = slopes[0]
        self.intercept_ = float(starts[0]) + self.target_center_


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHuberRegressor(_Regressor):
    """Robust regression by Huber's loss.

    Residuals beyond ``huber_threshold`` (in units of y) pull with a constant force. By default
    ``huber_threshold`` is an eighth of the width of ``target_bounds``.
    """

    huber_threshold: float | None = None

    def _full(self) -> float:
        knee = self._declared("huber_threshold")
        return _HUBER_THRESHOLD if knee is None else knee / self._target_scale()[1]

    def _objective(self) -> Loss:
        return Huber(
            huber_threshold=self._full(), l2=self._penalty(), intercept=bool(self.fit_intercept)
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(_Regressor):
    """Least squares with penalty ``l2/2 |coefficients|^2`` (scaled units), gradients clipped."""

    def _full(self) -> float:
        return _HUBER_THRESHOLD

    def _objective(self) -> Loss:
        return Squared(l2=self._penalty(), intercept=bool(self.fit_intercept))
