"""What the DP-SGD estimators share: mapped rows, parameters and the fit."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account
from discreet.mechanisms.additive import gaussian
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.models._charging import ChargingEstimator, reserve_fit
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    all_finite,
    declared_columns,
    doubles,
    fitting,
    matrix,
    names_of,
    same_rows,
)
from discreet.models._preparation import refuse_learned_preparation
from discreet.models.dp_sgd.budget import TrainingBudget, TrainingOptions, TrainingPlan, make_plan
from discreet.models.dp_sgd.losses import Loss
from discreet.models.dp_sgd.train import FeatureMap, Steps, descend, record_looks
from discreet.noise.random_source import RandomSource

# ── Linear estimators on mapped rows ─────────────────────────────────────────────────────────────


class MappedEstimator(ChargingEstimator):
    """A linear model of rows that are scaled by declared ``bounds`` and shrunk to a length."""

    bounds: Bounds
    fit_intercept: bool
    theta_: Floats
    feature_map_: FeatureMap
    n_features_in_: int

    @abstractmethod
    def _target_array(self, y: object) -> NDArray[Any]:
        """Targets as they are given, of the right shape; no value is read for an error."""

    @abstractmethod
    def _row_norm(self, columns: int) -> float:
        """The greatest length of a mapped row."""

    def _start(self, X: object, y: object) -> tuple[NDArray[Any], NDArray[Any], FeatureMap]:
        """Rows and targets before a value is read, and the map of the rows; the old fit is gone."""
        refuse_learned_preparation()
        self.__dict__.pop("theta_", None)  # a fit that fails leaves none, not half of an old one
        table = self._table(X, reset=True)
        targets = self._target_array(y)
        same_rows(table, targets)
        mapped = FeatureMap.of(
            self.bounds,
            columns=table.shape[1],
            names=names_of(X),
            intercept=bool(self.fit_intercept),
            row_norm=self._row_norm(table.shape[1]),
        )
        return table, targets, mapped

    def _table(self, X: object, *, reset: bool) -> NDArray[Any]:
        known = declared_columns(self.bounds) if reset else self.n_features_in_
        table = matrix("X", X, columns=known)
        # Of a list scikit-learn would look at the first row.
        named = X if names_of(X) is not None else table
        validate_data(self, named, reset=reset, skip_check_array=True)
        return table

    def _steps(self, table: NDArray[Any], targets: Floats, mapped: FeatureMap) -> Steps:
        """Mapped rows; those that do not fit are zero, and so are all their gradients."""
        # Theorem: a row of zeros contributes nothing, whatever the parameters.
        # Proof: a gradient is a slope times the row, here with its leading constant.
        x = doubles(table)
        read = mapped.steps(x)
        read[~fitting(x, targets)] = 0
        return read

    def _margins_of(self, objective: Loss, X: object) -> Floats:
        table = self._table(X, reset=False)
        if not len(table):
            raise InvalidArgument("X has 0 sample(s) while a minimum of 1 is required.")
        x = doubles(table)
        all_finite("X", x)
        return objective.margins(self.theta_, self.feature_map_.rows(x))


# ── Estimators by gradient descent ───────────────────────────────────────────────────────────────


@dataclass(kw_only=True, eq=False, repr=False)
class GradientDescentEstimator(MappedEstimator):
    """Linear models by private gradient descent. Use one of the estimators made of it.

    ``epsilon`` with ``delta`` (or ``rho``, or ``mu``) is what a fit may cost. ``bounds`` are the
    declared bounds of the features: one pair for all, one for each, or by column name.
    ``public_rows`` is the number of rows, roughly, if it is public knowledge; otherwise a fit under
    ``ADD_REMOVE`` counts them with noise, for one per cent of the budget. Nobody may have
    more than ``max_rows_per_unit`` rows. ``rng`` is for tests and simulations.
    """

    epsilon: float | Fraction | None = None
    delta: float | Fraction | None = None
    rho: float | Fraction | None = None
    mu: float | Fraction | None = None
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    bounds: Bounds = None
    public_rows: int | None = None
    max_rows_per_unit: int = 1
    row_norm: float | None = None
    clip: float | None = None
    rate: float | Fraction | None = None
    steps: int | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    average: float = 0.5
    l2: float = 0.0
    fit_intercept: bool = True
    account: Account | None = None
    label: str = "private gradient descent"
    rng: RandomSource | None = None

    def fit(self, X: object, y: object) -> Self:
        """Fit the model to private rows.

        Rows with missing or unreadable values, of another length or with an undeclared label count
        as rows, but do not affect any gradient.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Label or target of each record.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No value was read.
            InvalidArgument: Budget, bounds or classes are missing or not valid, or `X` and `y` do
                not fit together.

        Privacy:
            The fit satisfies the budget for one privacy unit with at most `max_rows_per_unit` rows.
            The account is charged before the values are read. `score` on private rows is not
            private.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.coef_.shape
            (1, 1)
        """
        # Theorem: the fitted parameters cost `guarantee_`; everything else that is set is public.
        # Proof: `train.descend`, and the noisy count if `rows` is not known (composition).
        # Needs: at most `max_rows_per_unit` rows of each unit of privacy, which is not checked
        #   here; declared bounds. A row with a missing or unreadable value, of another length, or
        #   with a label that is not declared counts as a row, and adds nothing to any gradient.
        table, targets, mapped = self._start(X, y)
        plan = self.plan(features=table.shape[1], public_rows=self._public_rows(len(table)))
        source = self._source
        remedy = "charge an account with a limit approx_dp(epsilon, delta)"
        remedy += ", or fit with rho and charge one with zcdp(rho)"
        with reserve_fit(
            self.account,
            plan.guarantee,
            epsilon=self.epsilon,
            delta=self.delta,
            label=self.label,
            rng=source,
            remedy=remedy,
        ) as held:
            rows = self._rows(plan, len(table), source)
            places = self._whole_targets(targets)
            read = self._steps(table, places, mapped)
            theta = descend(read, np.nan_to_num(places), run=plan.run(rows), rng=source)
        self._keep(theta, mapped, plan, rows)
        self.receipt_ = None if held is None else held.receipt
        return self

    def plan(self, *, features: int, public_rows: int | None = None) -> TrainingPlan:
        """Plan the noise of a fit, before a row is read.

        Args:
            features: Number of features.
            public_rows: Public number of rows, if there is one. By default that of the model.

        Returns:
            The plan with steps, sampling rate, noise, `guarantee` and `predicted_excess(rows)`.

        Raises:
            InvalidArgument: The budget or another argument is not valid.

        Examples:
            >>> from discreet.models import PrivateLogisticRegression
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model.plan(features=3, public_rows=1_000).steps
            10
        """
        columns = count("features", features)
        width = columns + bool(self.fit_intercept)
        budget = TrainingBudget.of(
            relation=self.relation,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            mu=self.mu,
            max_rows_per_unit=self.max_rows_per_unit,
        )
        objective = self._objective()
        options = TrainingOptions(
            rate=self.rate,
            steps=self.steps,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            average=self.average,
        )
        return make_plan(
            objective,
            budget=budget,
            options=options,
            dimension=objective.dimension(width),
            clip=self._clip(columns),
            smoothness=objective.smoothness(self._smooth_norm(columns)),
            radius=self._spread() * math.sqrt(objective.dimension(width)) / self._usual(columns),
            public_rows=self.public_rows if public_rows is None else public_rows,
        )

    def certify(self) -> Certificate:
        """Recompute the guarantee of the fit from exact distributions.

        Returns:
            A certificate for the noise of a step and for the whole run.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> model = PrivateLogisticRegression(rho=1, bounds=(-1, 1), classes=(0, 1), steps=10)
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.certify().holds
            True
        """
        check_is_fitted(self, "theta_")
        training = self.plan_.run(max(self.rows_, 1.0))
        step = training.mechanism.certify()
        spent = self.guarantee_
        delta = 1e-6 if self.delta is None else float(self.delta)
        worth = spent.epsilon(delta) if self.epsilon is None else float(self.epsilon)
        run = CertificateCheck(
            part=f"{self.plan_.steps} steps at rate {short(float(self.plan_.rate), digits=6)}",
            epsilon=worth,
            claimed=delta,
            exact=spent.delta(worth),
            route=(
                "composed loss distributions; no less than "
                f"{short(spent.bounds(delta)[0], digits=6)} epsilon"
            ),
        )
        looks = (*step.drawn, *record_looks(training, features=self.n_features_in_))
        return Certificate(
            mechanism=type(self).__name__, guarantee=spent, checks=(*step.checks, run), drawn=looks
        ).demand()

    @abstractmethod
    def _objective(self) -> Loss:
        """The loss, penalty included."""

    @abstractmethod
    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        """Targets as the objective wants them; NaN for what is none."""

    @abstractmethod
    def _usual(self, columns: int) -> float:
        """The usual length of a mapped row."""

    @abstractmethod
    def _clip(self, columns: int) -> float:
        """The greatest length of a record's gradient."""

    def _smooth_norm(self, columns: int) -> float:
        """A length of rows with which the curvature of a row's loss is bounded."""
        return self._row_norm(columns)

    @abstractmethod
    def _spread(self) -> float:
        """The usual standard deviation of margins: how far away the best parameters may be."""

    def _keep(self, theta: Floats, mapped: FeatureMap, plan: TrainingPlan, rows: float) -> None:
        self.theta_, self.feature_map_ = theta, mapped
        self.plan_, self.guarantee_, self.rows_ = plan, plan.guarantee, rows
        self.n_iter_ = plan.steps

    def _margins(self, X: object) -> Floats:
        check_is_fitted(self, "theta_")
        return self._margins_of(self.plan_.objective, X)

    def _public_rows(self, present: int) -> int | None:
        if self.public_rows is not None:
            return count("public_rows", self.public_rows)
        # With several rows a unit, a replacement can change their number.
        public = self.relation is NeighboringRelation.REPLACE_ONE and self.max_rows_per_unit == 1
        return present if public else None

    def _rows(self, plan: TrainingPlan, present: int, rng: RandomSource) -> float:
        """The number to divide by: public, or counted with noise and then at least one sigma."""
        if plan.counting is None:
            return float(max(self._public_rows(present) or 1, 1))
        counter = gaussian(sensitivity=1, mu=1 / plan.counting, domain="integers")
        return max(float(counter.release(present, rng=rng)), float(plan.counting))

    def _one_column(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets as a flat array; a table of one column is taken with a warning."""
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected.",
                DataConversionWarning,
                stacklevel=5,
            )
            return y[:, 0]
        if y.ndim != 1:
            raise InvalidArgument(
                f"y should be a 1d array, got {y.ndim} dimensions: fit one model for each column."
            )
        return y

    def _penalty(self) -> float:
        return float(non_negative("l2", self.l2))

    def _declared(self, name: str) -> float | None:
        given = getattr(self, name)
        return None if given is None else float(positive(name, given))
