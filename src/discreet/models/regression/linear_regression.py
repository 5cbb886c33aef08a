"""Private linear regression from noisy sufficient statistics, in the style of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import non_negative
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data._float_columns import check_columns
from discreet.data.source import open_source
from discreet.ledger.account import Account, reserve_if_charged
from discreet.models._charging import ChargingEstimator
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    doubles,
    matrix_shape,
    names_of,
    same_rows,
    shaped,
    target_table,
)
from discreet.models.regression._row_lattice import Mapping, RowLattice, flat_sums, read_sums
from discreet.models.regression._row_mapping import (
    HowScaled,
    declare,
    histogram_sensitivities,
    row_map,
)
from discreet.models.regression._row_sources import ArrayRows, RowSource, SourceRows, empty
from discreet.models.regression.ssp_and_adassp import (
    Coefficients,
    Constants,
    adassp,
    plan_published,
    project_psd,
    ridge,
    ssp,
)
from discreet.models.regression.sufficient_statistics import (
    SCALING_SHARE,
    SQUARES_SHARE,
    NoisySufficientStatistics,
    SufficientStatisticsPlan,
    plan_sufficient_statistics,
)
from discreet.models.regression.uncertainty import (
    CoefficientIntervals,
    Inference,
    coefficient_intervals,
    infer,
    prediction_intervals,
)
from discreet.noise.random_source import RandomSource

# ── Shared by both linear regressions ────────────────────────────────────────────────────────────


class LinearEstimator(RegressorMixin, ChargingEstimator):
    """A linear regression that knows which columns it was fitted to."""

    n_features_in_: int

    def _fitted_to(self, columns: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit.")

    def _new(self, x: object) -> Floats:
        """Rows to predict for, checked."""
        self._fitted()
        table = shaped("X", x)
        matrix_shape(table)
        if table.shape[1] != self.n_features_in_:
            raise InvalidArgument(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        names = names_of(x)
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != tuple(known):
            # In the words of scikit-learn.
            raise InvalidArgument(
                "The feature names should match those that were passed during fit, in the same "
                "order: select X[model.feature_names_in_]."
            )
        return doubles("X", table)


# ── Estimator ────────────────────────────────────────────────────────────────────────────────────


Method: TypeAlias = Literal["psd", "ssp", "adassp", "ridge"]
Solver: TypeAlias = Callable[[NoisySufficientStatistics], Coefficients]


class PrivateLinearRegression(LinearEstimator):
    """Least squares from noisy moments. Bounds are declared, and everything released is counted.

    ``epsilon`` with ``delta``, or ``rho``: what a fit costs under ``relation``. ``bounds`` of the
    features and ``target_bounds`` are public; rows are clipped to them. ``scaling`` is "bounds"
    (scale by half the declared range), a declared `ColumnScaling`, or "private" (centers and
    scales are found with ``scaling_share`` of the budget). ``mapping`` brings rows into the unit
    ball: "ball" projects those beyond ``radius`` (in roots of the number of features), "weighted"
    weighs them down instead, so that coefficients keep their meaning, "box" makes the ball hold
    the whole box, "row" uses directions only. ``method``: "psd" (default), "adassp", "ssp",
    "ridge" with ``alpha``, or a function from released moments to `Coefficients`; ``constants`` may
    be the published ones of Wang or of Kalaja's thesis, at their true cost.

    Theorem: a fit keeps ``guarantee_`` under ``relation``; all attributes are post-processing of
        ``moments_`` (and of the private scaling).
    Source: Wang 2018; Kalaja 2020 (K9-K26, K31-K36). docs/theory/regression.md.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn: every choice is a named parameter
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        bounds: Bounds = None,
        target_bounds: Bounds = None,
        method: Method | Solver = "psd",
        alpha: float = 1.0,
        constants: Literal["exact"] | Constants = "exact",
        scaling: HowScaled = "bounds",
        mapping: Mapping = "ball",
        radius: float | None = None,
        fit_intercept: bool = True,
        intercept_scale: float = 0.35,
        relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
        max_rows_per_unit: int = 1,
        scaling_share: Number = SCALING_SHARE,
        squares_share: Number = SQUARES_SHARE,
        clip_predictions: bool = True,
        account: Account | None = None,
        label: str = "linear regression",
        rng: RandomSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.method = method
        self.alpha = alpha
        self.constants = constants
        self.scaling = scaling
        self.mapping = mapping
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.intercept_scale = intercept_scale
        self.relation = relation
        self.max_rows_per_unit = max_rows_per_unit
        self.scaling_share = scaling_share
        self.squares_share = squares_share
        self.clip_predictions = clip_predictions
        self.account = account
        self.label = label
        self.rng = rng

    def __sklearn_tags__(self) -> Tags:
        """Noise: two fits differ, and a small table scores badly."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.multi_output = True
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, units: Any = None) -> Self:
        """Release moments of these rows and fit.

        ``units`` says whose each row is; of each unit the first ``max_rows_per_unit`` rows are
        used. Without it every row must be of another unit, or ``max_rows_per_unit`` be true of the
        data.
        """
        x, table = shaped("X", X), target_table(y)
        matrix_shape(x)
        same_rows(x, table)
        owners = None if units is None else shaped("units", units)
        if owners is not None and owners.shape != (len(x),):
            raise InvalidArgument("units must be one value for each row.")
        rows = ArrayRows(x, table, owners, self.max_rows_per_unit)
        self._flat = shaped("y", y).ndim == 1
        self._fit_rows(rows, names=names_of(X))
        return self

    def fit_source(
        self, source: object, *, features: Sequence[str], target: str | Sequence[str]
    ) -> Self:
        """Fit from columns of a file, a DuckDB relation, a frame or a Spark frame.

        The rows never come together in memory; from Spark only sums arrive.
        """
        targets = (target,) if isinstance(target, str) else tuple(target)
        rows = SourceRows(source=open_source(source), names=tuple(features), targets=targets)
        if not rows.names or not rows.targets:
            raise InvalidArgument("features and target must name columns.")
        check_columns(rows.source, [*rows.names, *rows.targets])
        self._flat = isinstance(target, str)
        self._fit_rows(rows, names=rows.names)
        return self

    def plan(self, *, features: int, outputs: int = 1) -> SufficientStatisticsPlan:
        """Noise and guarantee of a fit, before a row is read."""
        lattice = RowLattice.of(
            features=features,
            outputs=outputs,
            intercept=self.intercept_scale if self.fit_intercept else 0.0,
        )
        private = isinstance(self.scaling, str) and self.scaling == "private"
        if self.constants != "exact":
            return self._published(lattice, private=private)
        wanted = histogram_sensitivities(
            features, outputs, relation=self.relation, max_rows_per_unit=self.max_rows_per_unit
        )
        return plan_sufficient_statistics(
            lattice,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            relation=self.relation,
            max_rows_per_unit=self.max_rows_per_unit,
            squares_share=self.squares_share,
            smallest_share=0 if self.method != "adassp" else (1 - self.squares_share) / 3,
            scaling=wanted if private else (),
            scaling_share=self.scaling_share,
        )

    def _published(self, lattice: RowLattice, *, private: bool) -> SufficientStatisticsPlan:
        """Noise as published, if it keeps the nominal claim."""
        if (
            private
            or self.epsilon is None
            or self.delta is None
            or not isinstance(self.method, str)
        ):
            raise InvalidArgument(
                "Published constants take epsilon and delta, a named method and a declared scaling."
            )
        return plan_published(
            lattice,
            method=str(self.method),
            constants=cast("Constants", self.constants),
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    def _fit_rows(self, rows: RowSource, *, names: tuple[str, ...] | None) -> None:
        plan = self.plan(features=rows.features, outputs=rows.outputs)
        solver = self._solver()
        if self.mapping == "weighted" and not plan.lattice.intercept:
            raise InvalidArgument("mapping='weighted' needs fit_intercept=True: use 'box'.")
        declared = declare(
            bounds=self.bounds,
            target_bounds=self.target_bounds,
            scaling=self.scaling,
            mapping=self.mapping,
            radius=self.radius,
            features=rows.features,
            outputs=rows.outputs,
            names=names,
        )
        source = self._source
        with reserve_if_charged(self.account, plan.guarantee, label=self.label, rng=source) as held:
            mapped = row_map(rows, plan, declared=declared, rng=source)
            size = (plan.lattice.columns + plan.lattice.outputs) ** 2 + 1
            flat = rows.add_up(partial(flat_sums, mapped), start=empty(size))
            moments = plan.release(read_sums(plan.lattice, flat), rows=mapped, rng=source)
            del flat
        self.receipt_ = None if held is None else held.receipt
        self.moments_ = moments
        self.guarantee_: Guarantee = moments.guarantee
        self.released_ = moments.released
        self.solution_ = solver(moments)
        if not self.solution_.stable:
            warnings.warn(
                "The noisy matrix is not positive definite: the coefficients are noise. "
                "Use method='psd'.",
                stacklevel=3,
            )
        self._fitted_to(rows.features, names)
        self._publish()

    def _solver(self) -> Solver:
        if callable(self.method):
            return self.method
        if self.method == "ridge":
            non_negative("alpha", self.alpha)
            return self._ridge
        found = {"psd": project_psd, "ssp": ssp, "adassp": adassp}.get(self.method)
        if found is None:
            raise InvalidArgument(
                "method must be 'psd', 'ssp', 'adassp', 'ridge' or a function, "
                f"got {self.method!r}."
            )
        return found

    def _ridge(self, moments: NoisySufficientStatistics) -> Coefficients:
        """``alpha`` is in the units of scaled features, as in scikit-learn."""
        return ridge(moments, self.alpha / moments.map.radius**2)

    def _publish(self) -> None:
        """Coefficients in original units, where the map is linear."""
        self.penalty_ = self.solution_.penalty
        self.target_range_ = self._target_range()
        if not self.moments_.map.linear:
            return
        slopes, level = self.moments_.coefficients(self.solution_.theta)
        self.coef_ = slopes[0] if self._flat else slopes
        self.intercept_ = float(level[0]) if self._flat else level

    def _target_range(self) -> tuple[Floats, Floats]:
        rows = self.moments_.map
        return rows.target_center - rows.target_half, rows.target_center + rows.target_half

    def predict(self, X: Any) -> Floats:
        """Predicted targets; rows are clipped and projected as in the fit."""
        x = self._new(X)
        rows = self.moments_.map
        theta = self.moments_.full(self.solution_.theta)
        found = rows.predictions(rows.design(x), theta)
        if self.clip_predictions:
            found = np.clip(found, *self.target_range_)
        return found[:, 0] if self._flat else found

    def intervals(
        self, *, confidence: float = 0.95, bound: float | None = None
    ) -> CoefficientIntervals:
        """Intervals of slopes and intercepts that cover the noise: post-processing, at no cost.

        ``bound``, if declared, bounds the norm of the coefficients in mapped units (how many half
        ranges of the target a prediction moves from the center to the edge of the ball).
        """
        return coefficient_intervals(self._inference(), confidence=confidence, bound=bound)

    def predict_interval(self, X: Any, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends between which a new target lies."""
        _, low, high = prediction_intervals(self._inference(), self._new(X), confidence=confidence)
        return (low[:, 0], high[:, 0]) if self._flat else (low, high)

    def _inference(self) -> Inference:
        self._fitted()
        return infer(self.moments_, self.solution_)
