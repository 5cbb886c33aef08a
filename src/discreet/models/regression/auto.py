"""Linear regression by the method that suits the rows, the columns and the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    bounds_of,
    doubles,
    matrix_shape,
    names_of,
    same_rows,
    shaped,
    target_table,
)
from discreet.models.regression._row_sources import ArrayRows
from discreet.models.regression._task import (
    NoiseScales,
    RegressionMethod,
    RegressionTask,
    gaussian_mu,
)
from discreet.models.regression.boosted_adassp import BoostedAdaSSP
from discreet.models.regression.clipped_gradient import ClippedGradient, MedianBaseline
from discreet.models.regression.expected_error import forecast
from discreet.models.regression.linear_regression import LinearEstimator
from discreet.models.regression.sufficient_statistics import gaussian_budget
from discreet.models.regression.theil_sen import TheilSen
from discreet.noise.random_source import RandomSource

# ── Choice of the method ─────────────────────────────────────────────────────────────────────────


METHODS: Mapping[str, RegressionMethod] = {
    "level": MedianBaseline(),
    "gradient": ClippedGradient(),
    "boosted": BoostedAdaSSP(),
    "theil_sen": TheilSen(),
}
WIDTH = 10.0
# Forecasts are guesses. Whatever has slopes must forecast clearly less than the level; among those,
# descent suffers more than boosting where columns differ more than in the forecast, and Theil-Sen
# where the target is explained worse: their forecasts are weighed.
_WEIGHTS = {"gradient": 1.3, "boosted": 1.0, "theil_sen": 1.3}
_CLEARLY = 0.95
# Below this signal nothing but the level is tried.
_LEAST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodChoice:
    """The chosen method, and the error to expect of each, best first.

    Errors are mean squares, in multiples of what least squares without privacy would have.
    """

    method: str
    errors: Mapping[str, float] = field(default_factory=dict)
    signal: float
    """Rows times mu over the root of the columns."""

    def __str__(self) -> str:
        lines = [
            f"{'*' if name == self.method else ' '} {name:<10} {error:8.3f}"
            for name, error in self.errors.items()
        ]
        return "\n".join(["error to expect, 1 is least squares without privacy:", *lines])


def choose_method(
    *,
    expected_rows: float,
    bounds: Bounds = None,
    features: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    width: float = WIDTH,
) -> MethodChoice:
    """Rank the methods by the error to expect of them; nothing private is looked at.

    ``expected_rows``: about how many there are; a factor of two does not matter. Give
    ``features``, or the ``bounds`` that are declared of each. ``width``: how many deviations of a
    column fit into half its declared range, at a guess: 3 is tight, 40 very wide.

    A method with slopes must forecast clearly less error than the level; what suffers more where
    data differ from the forecast is weighed.

    >>> choose_method(expected_rows=100_000, features=8, epsilon=1, delta=1e-6).method
    'boosted'
    >>> choose_method(expected_rows=300, features=8, epsilon=0.1, delta=1e-6).method
    'level'
    """
    if (bounds is None) == (features is None):
        raise InvalidArgument("Give bounds, one pair for each feature, or features, their number.")
    many = count("features", len(bounds) if features is None else features)
    if not 0 < float(expected_rows) < float("inf"):
        raise InvalidArgument(f"expected_rows must be a positive number, got {expected_rows}.")
    mu = gaussian_mu(gaussian_budget(epsilon=epsilon, delta=delta, rho=rho))
    errors = forecast(expected_rows=float(expected_rows), features=many, mu=mu, width=width)
    signal = float(expected_rows) * mu / math.sqrt(many + 1)
    tried = {
        name: error * _WEIGHTS[name]
        for name, error in errors.items()
        if signal >= _LEAST and error < _CLEARLY * errors["level"]
    }
    chosen = min(tried, key=lambda name: tried[name]) if tried else "level"
    return MethodChoice(method=chosen, errors=errors, signal=signal)


# ── Estimator ────────────────────────────────────────────────────────────────────────────────────


# Squares and ratios of such widths are still numbers.
_WIDEST = 1e100

Name: TypeAlias = Literal["auto", "level", "gradient", "boosted", "theil_sen"]


class AutoLinearRegression(LinearEstimator):
    """Private linear regression that chooses its method from public facts.

    ``epsilon`` with ``delta``, or ``rho``: what a fit costs under ``relation``. ``bounds`` and
    ``target_bounds`` are declared; a code book's are good enough, because centers and scales are
    found privately. ``expected_rows`` is about how many rows there are: a public number, used to
    choose and to set the pace, never for the guarantee. ``method``: "auto" (see `choose_method`),
    "boosted", "gradient", "level", "theil_sen" (one feature), or a `RegressionMethod`.

    Theorem: a fit keeps ``guarantee_`` under ``relation``; everything published is post-processing
        of the releases that ``released_`` lists.
    Proof: docs/theory/regression-methods.md; the choice depends on declared numbers only.
    Source: Tang et al. 2023; Alabi et al. 2022; Abadi et al. 2016; McSherry, Talwar 2007.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every choice is a named parameter
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        bounds: Bounds = None,
        target_bounds: Bounds = None,
        expected_rows: float | None = None,
        method: Name | RegressionMethod = "auto",
        width: float = WIDTH,
        relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
        max_rows_per_unit: int = 1,
        account: Account | None = None,
        label: str = "linear regression",
        rng: RandomSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.expected_rows = expected_rows
        self.method = method
        self.width = width
        self.relation = relation
        self.max_rows_per_unit = max_rows_per_unit
        self.account = account
        self.label = label
        self.rng = rng

    def task(self, *, features: int, names: tuple[str, ...] | None = None) -> RegressionTask:
        """What is declared, checked."""
        if self.bounds is None or self.target_bounds is None:
            raise InvalidArgument("bounds and target_bounds must be declared: (lower, upper).")
        if self.expected_rows is None:
            raise InvalidArgument(
                "expected_rows must be declared: about how many rows there are, a public number. "
                "A factor of two does not matter."
            )
        if not 0 < float(self.expected_rows) < float("inf"):
            raise InvalidArgument(f"expected_rows must be positive, got {self.expected_rows}.")
        lower, upper = bounds_of("bounds", self.bounds, columns=features, names=names)
        least, most = bounds_of("target_bounds", self.target_bounds, columns=1)
        with np.errstate(over="ignore"):
            widths = np.append(upper - lower, most - least)
        if not (widths < _WIDEST).all():
            raise InvalidArgument(f"bounds must be less than {_WIDEST:g} apart.")
        return RegressionTask(
            lower=lower,
            upper=upper,
            target=(float(least[0]), float(most[0])),
            rows=float(self.expected_rows),
            mu=gaussian_mu(gaussian_budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)),
            relation=central_relation(self.relation),
            max_rows_per_unit=count("max_rows_per_unit", self.max_rows_per_unit),
        )

    def plan(self, *, features: int) -> tuple[RegressionMethod, NoiseScales]:
        """The method and its noise, with the guarantee, before a row is read."""
        return self._plan(self.task(features=features))

    def _plan(self, task: RegressionTask) -> tuple[RegressionMethod, NoiseScales]:
        method = self._method(task)
        amount = gaussian_budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        return method, method.plan(task, amount)

    def _method(self, task: RegressionTask) -> RegressionMethod:
        if not isinstance(self.method, str):
            return self.method
        if self.method != "auto":
            if self.method not in METHODS:
                raise InvalidArgument(
                    f"method must be 'auto' or one of {', '.join(METHODS)}, got {self.method!r}."
                )
            return METHODS[self.method]
        chosen = choose_method(
            expected_rows=task.rows / task.max_rows_per_unit,
            features=task.features,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            width=self.width,
        )
        return METHODS[chosen.method]

    def fit(self, X: Any, y: Any) -> Self:
        """Choose, reserve, read, fit."""
        x, table = shaped("X", X), target_table(y)
        matrix_shape(x)
        same_rows(x, table)
        if table.shape[1] != 1:
            raise InvalidArgument("y must be one target: fit each by itself, or use moments.")
        names = names_of(X)
        task = self.task(features=x.shape[1], names=names)
        method, noises = self._plan(task)
        source = self._source
        with reserve_if_charged(
            self.account, noises.guarantee, label=self.label, rng=source
        ) as held:
            rows = ArrayRows(doubles("X", x), doubles("y", table))
            found = method.fit(rows, task, noises=noises, rng=source)
        self.receipt_ = None if held is None else held.receipt
        self.guarantee_: Guarantee = noises.guarantee
        self.released_ = noises.released
        self.method_ = method.name
        self.fit_ = found
        slopes, level = found.map.coefficients(found.theta[:, None])
        self.coef_, self.intercept_ = slopes[0], float(level[0])
        self._target = task.target
        self._fitted_to(x.shape[1], names)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted targets, within the declared bounds; rows are clipped as in the fit."""
        x = self._new(X)
        design = self.fit_.map.design(x)
        found = self.fit_.map.predictions(design, self.fit_.theta[:, None])[:, 0]
        return np.asarray(np.clip(found, *self._target))
