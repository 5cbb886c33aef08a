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
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.core.tabular import Record, Tabular
from discreet.ledger.account import Account, reserve_if_charged
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    bounds_of,
    declared_columns,
    matrix,
    names_of,
    same_rows,
    target_table,
)
from discreet.models._preparation import refuse_learned_preparation
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
# Below this signal a matrix of several features is not worth what it costs.
_MATRIX = 63.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MethodChoice(Tabular):
    """The chosen regression method, and the expected error of each method.

    Attributes:
        method: Name of the chosen method.
        errors: Expected mean squared error of each method, as a multiple of that of least squares
            without privacy.
        signal: Number of rows times mu, divided by the root of the number of columns.

    Examples:
        >>> from discreet.models import regression
        >>> choice = regression.choose_method(expected_rows=100_000, features=8, rho=0.5)
        >>> choice.method
        'boosted'
    """

    method: str
    errors: Mapping[str, float] = field(default_factory=dict)
    signal: float

    def rows(self) -> list[Record]:
        """List each method with its expected error, best first.

        Returns:
            One dict for each method: method, error and chosen.

        Examples:
            >>> from discreet.models.regression import choose_method
            >>> choice = choose_method(expected_rows=1000, features=8, epsilon=1, delta=1e-6)
            >>> choice.rows()[0]["method"] == choice.method
            True
        """
        return [
            {"method": name, "error": error, "chosen": name == self.method}
            for name, error in self.errors.items()
        ]

    def __str__(self) -> str:
        lines = [
            f"{'*' if name == self.method else ' '} {name:<10} {short(error):>8}"
            for name, error in self.errors.items()
        ]
        return "\n".join(["error to expect, 1 is least squares without privacy:", *lines])

    __repr__ = __str__


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
    """Choose a regression method from public facts.

    A method with slopes is chosen only if its expected error is clearly smaller than that of a
    constant prediction.

    Args:
        expected_rows: Expected number of rows. A factor of two does not matter.
        bounds: Declared bounds, one pair per feature. Give `bounds` or `features`.
        features: Number of features.
        epsilon: Privacy loss. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        width: Guess of how many standard deviations fit into half the declared range of a column: 3
            is tight, 40 very wide.

    Returns:
        The choice, with the expected error of each method.

    Raises:
        InvalidArgument: The budget is missing, not exactly one of `bounds` and `features` is given,
            or `expected_rows` is not positive.

    Privacy:
        The choice depends on public numbers only and costs no budget.

    Examples:
        >>> from discreet.models import regression
        >>> regression.choose_method(expected_rows=10**5, features=8, epsilon=1, delta=1e-6).method
        'boosted'
        >>> regression.choose_method(expected_rows=300, features=8, epsilon=0.1, delta=1e-6).method
        'level'

    See Also:
        [Choose a regression method](../how-to/choose-regression.md).
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
    if signal < _MATRIX and many > 1 and "gradient" in tried:
        tried.pop("boosted", None)
    chosen = min(tried, key=lambda name: tried[name]) if tried else "level"
    return MethodChoice(method=chosen, errors=errors, signal=signal)


# ── Estimator ────────────────────────────────────────────────────────────────────────────────────


# Squares and ratios of such widths are still numbers.
_WIDEST = 1e100

Name: TypeAlias = Literal["auto", "level", "gradient", "boosted", "theil_sen"]


class AutoLinearRegression(LinearEstimator):
    """Private linear regression that chooses its method from public facts.

    After `fit`, the attributes `coef_`, `intercept_`, `method_`, `guarantee_`, `released_` and
    `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        bounds: Public bounds of the features: one pair, or one pair per feature. They may be wide,
            because centers and scales are found privately.
        target_bounds: Public bounds of the target.
        expected_rows: Expected number of rows, a public number. A factor of two does not matter.
        method: `"auto"` (see `choose_method`), `"boosted"`, `"gradient"`, `"level"`, `"theil_sen"`
            (one feature only), or a method object.
        width: Guess of how many standard deviations fit into half the declared range of a column.
        relation: Neighboring relation of the guarantee.
        max_rows_per_unit: Largest number of rows of one privacy unit in the data.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    Privacy:
        A fit satisfies the budget for one privacy unit. The account is charged before the rows are
        read.

    Examples:
        >>> import numpy
        >>> from discreet.models import AutoLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = AutoLinearRegression(
        ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), expected_rows=500
        ... )
        >>> model.fit(X, X @ [1, -0.5]).method_
        'boosted'

    See Also:
        [Choose a regression method](../how-to/choose-regression.md).

    References:
        Tang et al. (2023). Alabi et al. (2022).
        [Proof](../theory/theorems.md#models.regression.auto.AutoLinearRegression).
    """

    # Theorem: a fit keeps `guarantee_` under `relation`; everything published is post-processing
    #   of the releases that `released_` lists.
    # Proof: docs/theory/regression-methods.md; the choice depends on declared numbers only.
    # Source: Tang et al. 2023; Alabi et al. 2022; Abadi et al. 2016; McSherry, Talwar 2007.

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
        """Check what is declared.

        Args:
            features: Number of features.
            names: Names of the features, for messages.

        Returns:
            The declared task, as methods receive it.

        Raises:
            InvalidArgument: Bounds, budget or `expected_rows` are missing or not valid.

        Examples:
            >>> from discreet.models import AutoLinearRegression
            >>> model = AutoLinearRegression(
            ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), expected_rows=500
            ... )
            >>> model.task(features=2).rows
            500.0
        """
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
        """Return the method and its noise, before a row is read.

        Args:
            features: Number of features.

        Returns:
            The method, and its noise with the guarantee.

        Raises:
            InvalidArgument: Bounds, budget or `expected_rows` are missing or not valid.

        Examples:
            >>> from discreet.models import AutoLinearRegression
            >>> model = AutoLinearRegression(
            ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), expected_rows=500
            ... )
            >>> method, noises = model.plan(features=2)
            >>> method.name
            'boosted'
        """
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
        """Fit the model to private rows.

        Rows with missing or unreadable values are dropped.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Target of each record.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No row was read.
            InvalidArgument: Bounds, budget or `expected_rows` are missing or not valid, or `X` and
                `y` do not fit together.

        Privacy:
            The fit satisfies the budget for one privacy unit. The account is charged before the
            rows are read.

        Examples:
            >>> import numpy
            >>> from discreet.models import AutoLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = AutoLinearRegression(
            ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), expected_rows=500
            ... )
            >>> model.fit(X, X @ [1, -0.5]).coef_.shape
            (2,)
        """
        refuse_learned_preparation()
        x = matrix("X", X, columns=declared_columns(self.bounds))
        table, _ = target_table(y, columns=declared_columns(self.target_bounds))
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
            rows = ArrayRows(x, table).used()
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
        """Predict targets.

        Args:
            X: Features, one row per record. They are clipped as in the fit.

        Returns:
            One prediction per record, within the declared bounds.

        Examples:
            >>> import numpy
            >>> from discreet.models import AutoLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = AutoLinearRegression(
            ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), expected_rows=500
            ... )
            >>> model.fit(X, X @ [1, -0.5]).predict(X[:3]).shape
            (3,)
        """
        x = self._new(X)
        design = self.fit_.map.design(x)
        found = self.fit_.map.predictions(design, self.fit_.theta[:, None])[:, 0]
        return np.asarray(np.clip(found, *self._target))
