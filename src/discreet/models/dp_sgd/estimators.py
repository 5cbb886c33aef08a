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
from discreet.models._labels import (
    Classes,
    check_label_type,
    class_places,
    classes_of,
    declared_classes,
    likeliest,
    probabilities,
)
from discreet.models._model_inputs import Floats, bounds_of, doubles, target_table, target_values
from discreet.models.dp_sgd._estimator_base import GradientDescentEstimator
from discreet.models.dp_sgd.budget import TrainingPlan
from discreet.models.dp_sgd.losses import Huber, Logistic, Loss, Softmax, Squared
from discreet.models.dp_sgd.train import FeatureMap, usual_norm

# ── Classifier ───────────────────────────────────────────────────────────────────────────────────


# Margins of a fitted classifier usually spread this much.
_SPREAD = 2.5
# Of the reserve of two that steps have, so much may be used by rows that are all very long.
_RESERVE = 1.8


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(ClassifierMixin, GradientDescentEstimator):
    """Private logistic regression by gradient descent (DP-SGD).

    With more than two classes it uses softmax. For few features and standard errors of coefficients
    use `PrivateLogit`. After `fit`, `coef_`, `intercept_`, `classes_`,
    `plan_`, `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`. Every step uses all rows.
        mu: Privacy loss in Gaussian DP, instead of `epsilon`. Every step uses all rows.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        public_rows: Public number of rows, approximate. By default rows are counted with noise for
            about 1% of the budget under add/remove.
        max_rows_per_unit: Largest number of rows of one privacy unit. It is not checked.
        row_norm: Length of a scaled row up to which it counts in full. Longer rows weigh less. By
            default chosen from the number of features.
        clip: Largest length of a record's gradient. Rows whose gradient could be longer weigh
            less. By default such that this follows from `row_norm`.
        rate: Probability that a row takes part in a step. By default chosen from public numbers.
        steps: Number of steps. By default chosen from public numbers.
        learning_rate: Learning rate. By default chosen from public numbers.
        momentum: Momentum of the descent, from 0 up to but not including 1.
        average: Share of the steps, counted from the end, whose parameters are averaged.
        l2: Strength of the L2 penalty, in scaled units.
        fit_intercept: Whether to fit an intercept.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        classes: Labels that can occur, or `"public"` if the labels in `y` are not secret.

    Privacy:
        A fit satisfies the budget for one privacy unit with at most `max_rows_per_unit` rows. The
        account is charged before the values are read.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLogisticRegression
        >>> X = numpy.linspace(-1, 1, 500)[:, None]
        >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
        >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
        >>> model.predict([[-0.9], [0.9]]).shape
        (2,)

    See Also:
        [DP-SGD](../how-to/sgd.md), [theory](../theory/sgd.md).
    """

    classes: Classes = None

    def decision_function(self, X: object) -> Floats:
        """Compute the margins of rows.

        Args:
            X: Features, one row per record.

        Returns:
            The margin of the second class against the first, or one column per class.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.decision_function([[0.9]]).shape
            (1,)
        """
        return self._margins(X)

    def predict_proba(self, X: object) -> Floats:
        """Predict the probability of each class.

        Args:
            X: Features, one row per record.

        Returns:
            Probabilities, records x classes.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.predict_proba([[0.9]]).sum().round(6).item()
            1.0
        """
        return probabilities(self._margins(X))

    def predict(self, X: object) -> NDArray[Any]:
        """Predict the most likely class.

        Args:
            X: Features, one row per record.

        Returns:
            One label per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.predict([[0.9]]).shape
            (1,)
        """
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
        given = self._one_column(target_values(y))
        self.classes_ = classes_of(self.classes, given)
        check_label_type(given, self.classes_)
        return given

    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        return class_places(y, self.classes_)

    def _usual(self, columns: int) -> float:
        return usual_norm(columns, intercept=bool(self.fit_intercept))

    def _row_norm(self, columns: int) -> float:
        # Rows are not shrunk: that would bend coefficients. Long ones weigh less.
        return math.sqrt(columns + bool(self.fit_intercept))

    def _clip(self, columns: int) -> float:
        full = min(self._declared("row_norm") or self._usual(columns), self._row_norm(columns))
        return self._declared("clip") or self._objective().slope_bound() * full

    def _smooth_norm(self, columns: int) -> float:
        # A row of length r weighs at most `full / r`, so that its curvature is at most `full r`.
        # Steps are half as long as is stable; rows that are all that long use up that reserve.
        full = self._clip(columns) / self._objective().slope_bound()
        longest = self._row_norm(columns)
        return math.sqrt(min(full, longest) * max(full, longest / _RESERVE))

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
        """Predict targets.

        Args:
            X: Features, one row per record.

        Returns:
            One prediction per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateRidge
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateRidge(rho=1, bounds=(-1, 1), target_bounds=(-1, 1), steps=10)
            >>> model.fit(X, X[:, 0]).predict(X[:3]).shape
            (3,)
        """
        margins = self._margins(X)
        return self.target_center_ + self.target_half_ * margins

    @abstractmethod
    def _full(self) -> float:
        """The residual (scaled) from which on a gradient is clipped, for a row of usual length."""

    def _target_array(self, y: object) -> NDArray[Any]:
        table, flat = target_table(y)
        given = self._one_column(table[:, 0] if flat else table)
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
        away = doubles(y) - self.target_center_
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
    """Private robust regression with the Huber loss, by gradient descent (DP-SGD).

    After `fit`, `coef_`, `intercept_`, `plan_`, `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`. Every step uses all rows.
        mu: Privacy loss in Gaussian DP, instead of `epsilon`. Every step uses all rows.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        public_rows: Public number of rows, approximate. By default rows are counted with noise for
            about 1% of the budget under add/remove.
        max_rows_per_unit: Largest number of rows of one privacy unit. It is not checked.
        row_norm: Largest length of a scaled row. By default chosen from the number of features.
        clip: Largest length of a record's gradient. Rows whose gradient could be longer weigh
            less. By default chosen from the loss and the number of features.
        rate: Probability that a row takes part in a step. By default chosen from public numbers.
        steps: Number of steps. By default chosen from public numbers.
        learning_rate: Learning rate. By default chosen from public numbers.
        momentum: Momentum of the descent, from 0 up to but not including 1.
        average: Share of the steps, counted from the end, whose parameters are averaged.
        l2: Strength of the L2 penalty, in scaled units.
        fit_intercept: Whether to fit an intercept.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        target_bounds: Public bounds of the target. Targets are clipped.
        huber_threshold: Residual from which the loss is linear, in the unit of the target. By
            default an eighth of the width of `target_bounds`.

    Privacy:
        A fit satisfies the budget for one privacy unit with at most `max_rows_per_unit` rows. The
        account is charged before the values are read.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateHuberRegressor
        >>> X = numpy.linspace(-1, 1, 500)[:, None]
        >>> model = PrivateHuberRegressor(rho=1, bounds=(-1, 1), target_bounds=(-1, 1), steps=10)
        >>> model.fit(X, X[:, 0]).coef_.shape
        (1,)

    See Also:
        [DP-SGD](../how-to/sgd.md).
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
    """Private ridge regression by gradient descent (DP-SGD).

    For few features, `PrivateLinearRegression` is more accurate and has standard errors. After
    `fit`, `coef_`, `intercept_`, `plan_`, `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`. Every step uses all rows.
        mu: Privacy loss in Gaussian DP, instead of `epsilon`. Every step uses all rows.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        public_rows: Public number of rows, approximate. By default rows are counted with noise for
            about 1% of the budget under add/remove.
        max_rows_per_unit: Largest number of rows of one privacy unit. It is not checked.
        row_norm: Largest length of a scaled row. By default chosen from the number of features.
        clip: Largest length of a record's gradient. By default chosen from the loss and the number
            of features.
        rate: Probability that a row takes part in a step. By default chosen from public numbers.
        steps: Number of steps. By default chosen from public numbers.
        learning_rate: Learning rate. By default chosen from public numbers.
        momentum: Momentum of the descent, from 0 up to but not including 1.
        average: Share of the steps, counted from the end, whose parameters are averaged.
        l2: Strength of the L2 penalty, in scaled units.
        fit_intercept: Whether to fit an intercept.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        target_bounds: Public bounds of the target. Targets are clipped.

    Privacy:
        A fit satisfies the budget for one privacy unit with at most `max_rows_per_unit` rows. The
        account is charged before the values are read.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateRidge
        >>> X = numpy.linspace(-1, 1, 500)[:, None]
        >>> model = PrivateRidge(rho=1, bounds=(-1, 1), target_bounds=(-1, 1), steps=10)
        >>> model.fit(X, X[:, 0]).coef_.shape
        (1,)

    See Also:
        [DP-SGD](../how-to/sgd.md).
    """

    def _full(self) -> float:
        return _HUBER_THRESHOLD

    def _objective(self) -> Loss:
        return Squared(l2=self._penalty(), intercept=bool(self.fit_intercept))
