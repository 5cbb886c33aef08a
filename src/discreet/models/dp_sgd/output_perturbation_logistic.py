"""Logistic regression by noise at the end, by noisy descent or by Laplace steps, in scikit-learn.

For guarantees that mini-batches with Gaussian noise cannot give (pure epsilon), and for full
batches of which only the end is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.conversion import gaussian_sigma
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.mechanisms.mechanism import Certificate
from discreet.models._labels import (
    Classes,
    check_label_type,
    class_places,
    classes_of,
    declared_classes,
    likeliest,
    probabilities,
)
from discreet.models._model_inputs import Bounds, Floats, target_values
from discreet.models.dp_sgd._estimator_base import MappedEstimator
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd._output_perturbation import OutputPerturbation, output_perturbation
from discreet.models.dp_sgd.laplace_gradient_descent import (
    MOST_TIMES,
    LaplaceGradientDescent,
    laplace_descent,
)
from discreet.models.dp_sgd.losses import Logistic, Loss, Softmax
from discreet.models.dp_sgd.noisy_gradient_descent import NoisyGradientDescent, noisy_descent
from discreet.models.dp_sgd.train import in_units, usual_norm
from discreet.noise.random_source import RandomSource

Method: TypeAlias = Literal["output", "last iterate", "laplace steps"]
Release: TypeAlias = OutputPerturbation | NoisyGradientDescent | LaplaceGradientDescent
# Margins of a fitted classifier usually spread this much.
_SPREAD = 2.5


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationLogisticRegression(ClassifierMixin, MappedEstimator):
    """Private logistic regression by output perturbation or full-batch descent.

    Use it for pure DP, which mini-batches with Gaussian noise cannot give. After `fit`, `coef_`,
    `intercept_`, `classes_`, `mechanism_`, `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit.
        delta: Probability parameter of (epsilon, delta)-DP. Required above 0 for `"last iterate"`,
            0 for `"laplace steps"`.
        method: `"laplace steps"` (full-batch descent with Laplace noise), `"output"` (noise on the
            minimizer) or `"last iterate"` (full-batch descent with Gaussian noise; replace-one
            only).
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
        classes: Labels that can occur, or `"public"` if the labels in `y` are not secret.
        public_rows: Public number of rows, approximate. Required under add/remove.
        row_norm: Length to which scaled rows are shrunk; for `"laplace steps"` the length up to
            which they count in full, longer ones weigh less. By default chosen from the number of
            features.
        l2: Strength of the penalty, also on the intercept. By default chosen from public numbers.
        steps: Number of steps of descent. By default chosen from public numbers.
        learning_rate: Learning rate of descent. By default chosen from public numbers.
        fit_intercept: Whether to fit an intercept.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    Coefficients predict, they are not estimates to be read. `"laplace steps"` stops after few steps
    from zero. `"output"` and `"last iterate"` have a penalty, which makes coefficients smaller, and
    shrink rows that are longer than `row_norm`, which makes them larger. For coefficients with
    standard errors use `PrivateLogit`.

    Privacy:
        A fit satisfies the budget for one row; each privacy unit may have one row only. The account
        is charged before the values are read.

    Examples:
        >>> import numpy
        >>> from discreet.models import OutputPerturbationLogisticRegression
        >>> X = numpy.linspace(-1, 1, 500)[:, None]
        >>> model = OutputPerturbationLogisticRegression(
        ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
        ... )
        >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
        >>> model.coef_.shape
        (1, 1)

    See Also:
        [DP-SGD](../how-to/sgd.md), [schedules](../how-to/sgd-schedules.md).
    """

    epsilon: float | Fraction = 1.0
    delta: float | Fraction = 0.0
    method: Method = "laplace steps"
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    bounds: Bounds = None
    classes: Classes = None
    public_rows: int | None = None
    row_norm: float | None = None
    l2: float | None = None
    steps: int | None = None
    learning_rate: float | None = None
    fit_intercept: bool = True
    account: Account | None = None
    label: str | None = None
    rng: RandomSource | None = None

    def fit(self, X: object, y: object) -> Self:
        """Fit the model to private rows.

        Rows that do not fit the declarations count as rows, but do not affect any gradient.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Label of each record.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No value was read.
            InvalidArgument: Budget, bounds or classes are missing or not valid, or `X` and `y` do
                not fit together.

        Privacy:
            The fit satisfies the budget for one row. The account is charged before the values are
            read.

        Examples:
            >>> import numpy
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
            ... )
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.guarantee_.epsilon()
            1.0
        """
        # Theorem: the fitted parameters cost `guarantee_`; everything else that is set is public.
        # Proof: `output_perturbation`, `noisy_descent` or `laplace_descent`, on rows that are
        #   mapped one by one by public numbers.
        # Needs: one row for each unit of privacy; declared bounds and classes. A row that does not
        #   fit counts as a row, and adds nothing to any gradient.
        table, given, mapped = self._start(X, y)
        mechanism = self.plan(features=table.shape[1], public_rows=self._rows(len(table)))
        source, label = self._source, self.label or f"fit {type(self).__name__}"
        with reserve_if_charged(self.account, mechanism.guarantee, label=label, rng=source) as held:
            places = class_places(given, self.classes_)
            read = in_units(self._steps(table, places, mapped))
            theta = mechanism.release(read, np.nan_to_num(places), rng=source)
        self.theta_, self.feature_map_, self.mechanism_ = theta, mapped, mechanism
        self.guarantee_ = mechanism.guarantee
        self.coef_, self.intercept_ = mapped.in_units(theta)
        self.receipt_ = None if held is None else held.receipt
        return self

    def plan(self, *, features: int, public_rows: int) -> Release:
        """Create the mechanism of a fit, before a row is read.

        Args:
            features: Number of features.
            public_rows: Public number of rows.

        Returns:
            The mechanism with its noise and guarantee.

        Raises:
            InvalidArgument: An argument is outside its range, or `method` is unknown.
            RelationMismatch: `method` does not support the relation.

        Examples:
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output"
            ... )
            >>> model.plan(features=1, public_rows=500).guarantee.epsilon()
            1.0
        """
        width = count("features", features) + bool(self.fit_intercept)
        size = self._full_norm(features)
        match self.method:
            case "output":
                return output_perturbation(
                    self._objective(features, public_rows),
                    features=width,
                    public_rows=public_rows,
                    row_norm=size,
                    epsilon=self.epsilon,
                    delta=self.delta,
                    relation=self.relation,
                )
            case "last iterate":
                if self.relation is not NeighboringRelation.REPLACE_ONE:
                    raise RelationMismatch("'last iterate' holds for REPLACE_ONE only.")
                return noisy_descent(
                    self._objective(features, public_rows),
                    features=width,
                    public_rows=public_rows,
                    row_norm=size,
                    epsilon=self.epsilon,
                    delta=self.delta,
                    steps=self.steps,
                    rate=self.learning_rate,
                )
            case "laplace steps":
                if self.delta:
                    raise InvalidArgument("delta must be 0 for 'laplace steps': it is pure.")
                return self._laplace_steps(width, public_rows, size)
            case _:
                raise InvalidArgument(
                    "method must be 'output', 'last iterate' or 'laplace steps', got "
                    f"{self.method!r}."
                )

    def decision_function(self, X: object) -> Floats:
        """Compute the margins of rows.

        Args:
            X: Features, one row per record.

        Returns:
            The margin of the second class against the first, or one column per class.

        Examples:
            >>> import numpy
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
            ... )
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.decision_function([[0.9]]).shape
            (1,)
        """
        check_is_fitted(self, "theta_")
        return self._margins_of(self.mechanism_.objective, X)

    def predict_proba(self, X: object) -> Floats:
        """Predict the probability of each class.

        Args:
            X: Features, one row per record.

        Returns:
            Probabilities, records x classes.

        Examples:
            >>> import numpy
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
            ... )
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.predict_proba([[0.9]]).sum().round(6).item()
            1.0
        """
        return probabilities(self.decision_function(X))

    def predict(self, X: object) -> NDArray[Any]:
        """Predict the most likely class.

        Args:
            X: Features, one row per record.

        Returns:
            One label per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
            ... )
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.predict([[0.9]]).shape
            (1,)
        """
        return likeliest(self.decision_function(X), self.classes_)

    def certify(self) -> Certificate:
        """Recompute the guarantee of the fit from the exact distributions of its noise.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import numpy
            >>> from discreet.models import OutputPerturbationLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = OutputPerturbationLogisticRegression(
            ...     epsilon=1, bounds=(-1, 1), classes=(0, 1), method="output", public_rows=500
            ... )
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.certify().holds
            True
        """
        check_is_fitted(self, "theta_")
        return self.mechanism_.certify()

    def _laplace_steps(self, width: int, rows: int, size: float) -> LaplaceGradientDescent:
        objective = self._loss(0.0 if self.l2 is None else float(self.l2))
        # Four times the rate that is safe whatever the rows: most are shorter, and differ.
        usual_rate = 8 / objective.smoothness(size)
        rate = usual_rate if self.learning_rate is None else self.learning_rate
        # Noise grows with the steps that share epsilon; so few if there is much of it anyway.
        records = 2 if self.relation is NeighboringRelation.REPLACE_ONE else 1
        signal = rows * float(positive("epsilon", self.epsilon)) / records
        usual = round(min(max(math.sqrt(signal / objective.dimension(width)), 4), 100))
        # The L1 norm of rows of 0 and 1 is their squared length; longer rows weigh less.
        full = min(max(size, size**2), size * math.sqrt(width))
        return laplace_descent(
            objective,
            features=width,
            public_rows=rows,
            row_norm=full,
            longest_row=max(full, min(width, MOST_TIMES * full)),
            epsilon=self.epsilon,
            steps=usual if self.steps is None else self.steps,
            schedule=PowerSchedule(start=float(positive("learning_rate", rate))),
            relation=self.relation,
        )

    def _objective(self, columns: int, rows: int) -> Loss:
        if self.l2 is not None:
            return self._loss(float(positive("l2", self.l2)))
        return self._loss(self._usual_l2(columns, rows))

    def _usual_l2(self, columns: int, rows: int) -> float:
        """Where penalty and noise are expected to cost the same, from public numbers alone.

        The penalty costs ``l2/2`` times the squared length of the best parameters. Noise at the end
        costs half of the curvature times its variance, which falls with ``l2^2``; noise of a
        descent costs half of its variance in units of the curvature, which falls with ``l2``.
        """
        loss, width = self._loss(0.0), columns + bool(self.fit_intercept)
        dimension, size = loss.dimension(width), self._full_norm(columns)
        length = _SPREAD * math.sqrt(dimension) / usual_norm(columns, intercept=True)
        records = 2 if self.relation is NeighboringRelation.REPLACE_ONE else 1
        moved = records * loss.lipschitz(size) / rows
        if self.method == "last iterate":
            noise = (moved * self._gaussian()) ** 2 * dimension / 2
            return float(min(1.0, math.sqrt(2 * noise) / length))
        pure = math.sqrt(2 * dimension) / float(self.epsilon)
        noise = (moved * (self._gaussian() if self.delta else pure)) ** 2
        noise *= loss.curvature * size**2 / 2
        return float(min(1.0, (4 * noise / length**2) ** (1 / 3)))

    def _gaussian(self) -> float:
        """The sigma of Gaussian noise for a sensitivity of one."""
        if not self.delta:
            raise InvalidArgument("delta must be positive for the method 'last iterate'.")
        return float(gaussian_sigma(float(self.epsilon), delta=float(self.delta)))

    def _loss(self, l2: float) -> Loss:
        number = len(self._labels())
        return Logistic(l2=l2) if number == 2 else Softmax(classes=number, l2=l2)

    def _labels(self) -> NDArray[Any]:
        return declared_classes(self.classes, found=getattr(self, "classes_", None))

    def _target_array(self, y: object) -> NDArray[Any]:
        """Labels as they are given; their values are looked at only where they are public."""
        given = target_values(y)
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if given.ndim != 1:
            raise InvalidArgument(f"y should be a 1d array of labels, got {given.ndim} dimensions.")
        self.classes_ = classes_of(self.classes, given)
        check_label_type(given, self.classes_)
        return given

    def _rows(self, present: int) -> int:
        if self.relation is NeighboringRelation.REPLACE_ONE:
            if self.public_rows not in (None, present):
                raise InvalidArgument(
                    f"public_rows must be the number of rows of X under {self.relation!r}, or None."
                )
            return count("rows", present)
        if self.public_rows is None:
            raise InvalidArgument(
                "public_rows must be declared under ADD_REMOVE: roughly the number of rows, from "
                "public knowledge."
            )
        return count("public_rows", self.public_rows)

    def _row_norm(self, columns: int) -> float:
        if self.method == "laplace steps":
            # Rows are not shrunk: that would bend coefficients. Long ones weigh less.
            return math.sqrt(columns + bool(self.fit_intercept))
        return self._full_norm(columns)

    def _full_norm(self, columns: int) -> float:
        """The length of a mapped row up to which it counts in full."""
        if self.row_norm is not None:
            return float(positive("row_norm", self.row_norm))
        return usual_norm(columns, intercept=bool(self.fit_intercept))
