"""Logistic regression by noise at the end, by noisy descent or by Laplace steps, in scikit-learn.

For guarantees that mini-batches with Gaussian noise cannot give (pure epsilon), and for full
batches of which only the end is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.conversion import gaussian_sigma
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.mechanisms.mechanism import Certificate
from discreet.models._model_inputs import Bounds, Floats, doubles, shaped
from discreet.models.dp_sgd._estimator_base import (
    Classes,
    MappedEstimator,
    class_places,
    classes_of,
    declared_classes,
    likeliest,
    probabilities,
)
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd._output_perturbation import OutputPerturbation, output_perturbation
from discreet.models.dp_sgd.laplace_gradient_descent import LaplaceGradientDescent, laplace_descent
from discreet.models.dp_sgd.losses import Logistic, Loss, Softmax
from discreet.models.dp_sgd.noisy_gradient_descent import NoisyGradientDescent, noisy_descent
from discreet.models.dp_sgd.train import usual_norm
from discreet.noise.random_source import RandomSource

Method: TypeAlias = Literal["output", "last iterate", "laplace steps"]
Release: TypeAlias = OutputPerturbation | NoisyGradientDescent | LaplaceGradientDescent
# Margins of a fitted classifier usually spread this much.
_SPREAD = 2.5


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationLogisticRegression(ClassifierMixin, MappedEstimator):
    """Logistic regression whose privacy rests on strong convexity, or on Laplace noise.

    ``method``: "laplace steps" is full-batch descent under pure ``epsilon``; "output" adds noise
    to the minimizer (Laplace for a pure ``epsilon``, Gaussian with a ``delta``); "last iterate" is
    full-batch descent with Gaussian noise of which only the end is published (a ``delta`` and
    replace-one needed). ``bounds`` and ``classes`` are declared; ``classes="public"`` says that the
    labels found in y are no secret. ``public_rows`` is a public number: under replace-one
    that of X, under add/remove roughly that. ``l2`` penalizes the intercept, too; None chooses it
    from public numbers.
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
        """Fit, privately. What can be refused without reading a value is refused before paying.

        Theorem: the fitted parameters cost ``guarantee_``; everything else that is set is public.
        Proof: `output_perturbation`, `noisy_descent` or `laplace_descent`, on rows that are mapped
            one by one by public numbers.
        Needs: one row for each unit of privacy; declared bounds and classes.
        """
        table, given, mapped = self._start(X, y)
        mechanism = self.plan(features=table.shape[1], public_rows=self._rows(len(table)))
        source, label = self._source, self.label or f"fit {type(self).__name__}"
        with reserve_if_charged(self.account, mechanism.guarantee, label=label, rng=source) as held:
            read = mapped.rows(doubles("X", table))
            theta = mechanism.release(read, class_places(given, self.classes_), rng=source)
        self.theta_, self.feature_map_, self.mechanism_ = theta, mapped, mechanism
        self.guarantee_ = mechanism.guarantee
        self.coef_, self.intercept_ = mapped.in_units(theta)
        self.receipt_ = None if held is None else held.receipt
        return self

    def plan(self, *, features: int, public_rows: int) -> Release:
        """The mechanism of a fit on that many features and rows: noise and guarantee; free."""
        width = count("features", features) + bool(self.fit_intercept)
        size = self._row_norm(features)
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
        """Margins: of the second class against the first, or one for each of several classes."""
        check_is_fitted(self, "theta_")
        return self._margins_of(self.mechanism_.objective, X)

    def predict_proba(self, X: object) -> Floats:
        """Probabilities of the classes, one row for each of X."""
        return probabilities(self.decision_function(X))

    def predict(self, X: object) -> NDArray[Any]:
        """The likeliest class of each row."""
        return likeliest(self.decision_function(X), self.classes_)

    def certify(self) -> Certificate:
        """Recompute the fit's guarantee from the exact laws of its noise."""
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
        return laplace_descent(
            objective,
            features=width,
            public_rows=rows,
            # The L1 norm of rows of 0 and 1 is their squared length; others are shrunk.
            row_norm=min(max(size, size**2), size * math.sqrt(width)),
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
        dimension, size = loss.dimension(width), self._row_norm(columns)
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
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        given = shaped("y", y)
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if given.ndim != 1:
            raise InvalidArgument(f"y should be a 1d array of labels, got {given.ndim} dimensions.")
        self.classes_ = classes_of(self.classes, given)
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
        if self.row_norm is not None:
            return float(positive("row_norm", self.row_norm))
        return usual_norm(columns, intercept=bool(self.fit_intercept))
