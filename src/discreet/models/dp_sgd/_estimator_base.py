"""What the DP-SGD estimators share: labels, mapped rows, parameters and the fit."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.mechanisms.additive import gaussian
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.models._charging import ChargingEstimator
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    doubles,
    matrix_shape,
    names_of,
    same_rows,
    shaped,
)
from discreet.models.dp_sgd.budget import TrainingBudget, TrainingOptions, TrainingPlan, make_plan
from discreet.models.dp_sgd.losses import Loss
from discreet.models.dp_sgd.train import FeatureMap, descend
from discreet.noise.random_source import RandomSource

# ── Labels ───────────────────────────────────────────────────────────────────────────────────────
# Declared or public labels, as places in the list of classes, and back.


Classes: TypeAlias = Sequence[Any] | NDArray[Any] | str | None
"""The labels that can occur, or ``"public"``: those found in y are no secret."""


def declared_classes(classes: Classes, *, found: NDArray[Any] | None = None) -> NDArray[Any]:
    """The labels that can occur; ``found`` are those of an earlier look at public labels."""
    if isinstance(classes, str) or classes is None:
        if classes == "public" and found is not None:
            return found
        raise InvalidArgument(
            "classes must be declared: the labels that can occur, or 'public' if the labels "
            "found in y are no secret."
        )
    try:
        named: NDArray[Any] = np.unique(np.asarray(classes))
    except (TypeError, ValueError):
        raise InvalidArgument("classes must be all numbers or all text.") from None
    if len(named) < 2:
        raise InvalidArgument(
            f"classes must name at least two labels, got {len(named)} class: with a single "
            "class there is nothing to learn."
        )
    return named


def classes_of(classes: Classes, y: NDArray[Any]) -> NDArray[Any]:
    """The labels that can occur; y is looked at only where they are public."""
    if not isinstance(classes, str) or classes != "public":
        return declared_classes(classes)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise OutOfDomain("y contains NaN or infinity: drop or replace missing labels.")
    if type_of_target(y) not in ("binary", "multiclass"):
        raise OutOfDomain("Unknown label type: y must hold labels, all numbers or all text.")
    found: NDArray[Any] = np.unique(y)
    if len(found) < 2:
        raise InvalidArgument("y holds one class only: there is nothing to learn.")
    return found


def class_places(y: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """The place of each label among the classes."""
    found = np.full(len(y), -1.0)
    for place, label in enumerate(classes):
        found[y == label] = place
    if (found < 0).any():
        raise OutOfDomain(
            "y holds labels that are not among the declared classes: declare them, or map "
            "them to one that is."
        )
    return found


def probabilities(margins: Floats) -> Floats:
    """Of the classes, one row for each item; margins of one number belong to two classes."""
    if margins.ndim == 1:
        ones: Floats = expit(margins)
        return np.column_stack([1 - ones, ones])
    return np.asarray(softmax(margins, axis=1), dtype=np.float64)


def likeliest(margins: Floats, classes: NDArray[Any]) -> NDArray[Any]:
    """The label with the largest margin."""
    chosen = margins > 0 if margins.ndim == 1 else margins.argmax(axis=1)
    labels: NDArray[Any] = classes[chosen.astype(np.intp)]
    return labels


# ── Linear estimators on mapped rows ─────────────────────────────────────────────────────────────


class MappedEstimator(ChargingEstimator):
    """A linear model of rows that are scaled by declared ``bounds`` and shrunk to a length."""

    bounds: Bounds
    fit_intercept: bool
    theta_: Floats
    feature_map_: FeatureMap

    @abstractmethod
    def _target_array(self, y: object) -> NDArray[Any]:
        """Targets as they are given, of the right shape; no value is read for an error."""

    @abstractmethod
    def _row_norm(self, columns: int) -> float:
        """The greatest length of a mapped row."""

    def _start(self, X: object, y: object) -> tuple[NDArray[Any], NDArray[Any], FeatureMap]:
        """Rows and targets before a value is read, and the map of the rows; the old fit is gone."""
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
        table = shaped("X", X)
        matrix_shape(table)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return table

    def _margins_of(self, objective: Loss, X: object) -> Floats:
        table = self._table(X, reset=False)
        if not len(table):
            raise InvalidArgument("X has 0 sample(s) while a minimum of 1 is required.")
        return objective.margins(self.theta_, self.feature_map_.rows(doubles("X", table)))


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
        """Fit, privately. What can be refused without reading a value is refused before paying.

        Theorem: the fitted parameters cost ``guarantee_``; everything else that is set is public.
        Proof: `train.descend`, and the noisy count if ``rows`` is not known (composition).
        Needs: at most ``max_rows_per_unit`` rows of each unit of privacy, which is not checked
            here; declared bounds; targets as declared.
        """
        table, targets, mapped = self._start(X, y)
        plan = self.plan(features=table.shape[1], public_rows=self._public_rows(len(table)))
        source = self._source
        with reserve_if_charged(self.account, plan.guarantee, label=self.label, rng=source) as held:
            rows = self._rows(plan, len(table), source)
            read = mapped.steps(doubles("X", table))
            theta = descend(read, self._whole_targets(targets), run=plan.run(rows), rng=source)
        self._keep(theta, mapped, plan, rows)
        self.receipt_ = None if held is None else held.receipt
        return self

    def plan(self, *, features: int, public_rows: int | None = None) -> TrainingPlan:
        """Noise, guarantee and predicted excess of a fit, before a row is read.

        ``public_rows``: their number if it is public knowledge.
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
            smoothness=objective.smoothness(self._row_norm(columns)),
            radius=self._spread() * math.sqrt(objective.dimension(width)) / self._usual(columns),
            public_rows=self.public_rows if public_rows is None else public_rows,
        )

    def certify(self) -> Certificate:
        """Recompute the fit's guarantee: the noise of a step from its exact law, then the run."""
        check_is_fitted(self, "theta_")
        step = self.plan_.run(max(self.rows_, 1.0)).mechanism.certify()
        spent = self.guarantee_
        delta = 1e-6 if self.delta is None else float(self.delta)
        worth = spent.epsilon(delta) if self.epsilon is None else float(self.epsilon)
        run = CertificateCheck(
            part=f"{self.plan_.steps} steps at rate {float(self.plan_.rate):.6g}",
            epsilon=worth,
            claimed=delta,
            exact=spent.delta(worth),
            route=f"composed loss distributions; no less than {spent.bounds(delta)[0]:.6g} epsilon",
        )
        checks = (*step.checks, run)
        return Certificate(mechanism=type(self).__name__, guarantee=spent, checks=checks).demand()

    @abstractmethod
    def _objective(self) -> Loss:
        """The loss, penalty included."""

    @abstractmethod
    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        """Targets as the objective wants them."""

    @abstractmethod
    def _usual(self, columns: int) -> float:
        """The usual length of a mapped row."""

    @abstractmethod
    def _clip(self, columns: int) -> float:
        """The greatest length of a record's gradient."""

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
