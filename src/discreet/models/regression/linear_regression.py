"""Private linear regression from noisy sufficient statistics, in the style of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import non_negative, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.models._charging import ChargingEstimator
from discreet.models._declared_columns import DeclaredColumns
from discreet.models._inference_table import InferenceTable
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    all_finite,
    declared_columns,
    doubles,
    matrix,
    names_of,
    same_rows,
    target_table,
)
from discreet.models._preparation import refuse_learned_preparation
from discreet.models.regression._row_lattice import (
    Mapping,
    MomentSums,
    RowLattice,
    flat_sums,
    read_sums,
)
from discreet.models.regression._row_mapping import (
    ColumnScaling,
    HowScaled,
    declare,
    histogram_sensitivities,
    row_map,
)
from discreet.models.regression._row_sources import (
    ArrayRows,
    RowSource,
    check_units,
    exact_sums,
    named_rows,
)
from discreet.models.regression.ssp_and_adassp import (
    Coefficients,
    Constants,
    adassp,
    plan_published,
    project_psd,
    ridge,
    ssp,
    toward_level,
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
        table = matrix("X", x, columns=self.n_features_in_)
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
        found = np.ascontiguousarray(doubles(table))
        all_finite("X", found)
        return found


# ── Estimator ────────────────────────────────────────────────────────────────────────────────────


_ESTIMAND = {
    "weighted": "least squares in the population of rows, clipped to their declared bounds and "
    "weighted by their features",
    "box": "least squares in the population of rows, clipped to their declared bounds",
}
_WEIGHTS = {"weighted": ", as a sum of squared weights", "box": ""}
Method: TypeAlias = Literal["psd", "ssp", "adassp", "ridge"]
Solver: TypeAlias = Callable[[NoisySufficientStatistics], Coefficients]


class PrivateLinearRegression(LinearEstimator):
    """Private linear regression: least squares from noisy moments.

    After `fit`, the attributes `coef_`, `intercept_`, `moments_`, `solution_`, `guarantee_`,
    `released_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        bounds: Public bounds of the features: one pair, or one pair per feature. Rows are clipped.
        columns: Declared columns, with bounds or levels, instead of `bounds`.
        target_bounds: Public bounds of the target, or of each target.
        method: `"psd"` (smallest safe penalty; where one is needed, slopes are shrunk by what noise
            explains of them, to none if that is all), `"adassp"`, `"ssp"` (no penalty), `"ridge"`
            (with `alpha`), or a function from moments to `Coefficients`.
        alpha: Penalty of `"ridge"`.
        constants: `"exact"`, or the published noise constants `"wang"`, `"wang-code"` or
            `"thesis"`, whose true cost is charged.
        scaling: `"private"` finds centers and scales with `scaling_share` of the budget. `"bounds"`
            scales by half the declared range. A `ColumnScaling` declares them.
        mapping: How rows get into the unit ball: `"weighted"` weights rows beyond the radius down,
            together with their targets, so that coefficients keep their meaning. `"box"` uses a
            radius that holds all bounds. `"ball"` projects rows and `"row"` uses directions only:
            these two are for prediction, and have no intervals.
        radius: Radius in roots of the number of features. By default 1.25 (`"weighted"`) or 0.75
            (`"ball"`), or 2 scales for a `"box"` with another scaling than that of the bounds.
        fit_intercept: Whether to fit an intercept.
        intercept_scale: Size of the intercept column relative to the radius, from 0 to 4.
        relation: Neighboring relation of the guarantee.
        max_rows_per_unit: Largest number of rows that are used per privacy unit.
        scaling_share: Share of the budget for private scaling.
        squares_share: Share of the budget for sums of squares of the target and of residuals, which
            intervals need. 0 leaves them out.
        clip_predictions: Whether predictions are clipped to the range of the target.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    With `mapping="weighted"` or `"box"`, `coef_`, `intercept_`, `intervals` and `summary` speak of
    the same number: the coefficients of least squares in the population of rows, each clipped to
    its declared bounds and, if it is far out, weighted down. Weights depend on the features alone,
    so that a line stays that line. Targets beyond `target_range_` are clipped. `coef_` is shrunk if
    a penalty was needed (`penalty_` is not 0); the estimates of `summary` never are.

    Privacy:
        A fit satisfies the budget for one privacy unit. The account is charged before the rows are
        read. All attributes are post-processing of the released moments.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(
        ...     epsilon=1, delta=1e-6, bounds=(0, 10), target_bounds=(-10, 20)
        ... )
        >>> model.fit(X, X @ [1, -0.5]).coef_.shape
        (2,)

    See Also:
        [Fit a private linear regression](../how-to/regression.md),
        [theory](../theory/regression.md).

    References:
        Wang (2018).
        [Proof](../theory/theorems.md#models.regression.linear_regression.PrivateLinearRegression).
    """

    # Theorem: a fit keeps `guarantee_` under `relation`; all attributes are post-processing of
    #   `moments_` (and of the private scaling).
    # Source: Wang 2018; Kalaja 2020 (K9-K26, K31-K36). docs/theory/regression.md.

    def __init__(  # noqa: PLR0913 - scikit-learn: every choice is a named parameter
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        bounds: Bounds = None,
        columns: DeclaredColumns | None = None,
        target_bounds: Bounds = None,
        method: Method | Solver = "psd",
        alpha: float = 1.0,
        constants: Literal["exact"] | Constants = "exact",
        scaling: HowScaled = "private",
        mapping: Mapping = "weighted",
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
        self.columns = columns
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
        """Fit the model to private rows.

        Rows with missing or unreadable values, of another length or without a unit are dropped.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Target of each record, or one column per target.
            units: Privacy unit of each row. Of each unit the first `max_rows_per_unit` rows are
                used. If None, no unit may have more rows than that.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No row was read.
            InvalidArgument: Bounds or budget are missing or not valid, or the arguments do not fit
                together.

        Privacy:
            The fit satisfies the budget for one privacy unit. The account is charged before the
            rows are read.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.n_features_in_
            2
        """
        refuse_learned_preparation()
        x = self._matrix(X)
        table, flat = target_table(y, columns=declared_columns(self.target_bounds))
        same_rows(x, table)
        if units is not None:
            check_units(units, len(x))
        rows = ArrayRows(x, table, units, self.max_rows_per_unit)
        self._flat = flat
        self._fit_rows(rows, names=names_of(X) if self.columns is None else self.columns.names)
        return self

    def _matrix(self, x: Any) -> NDArray[Any]:
        """Features of rows, encoded if columns are declared."""
        if self.columns is None:
            return matrix("X", x, columns=self._columns())
        return self.columns.encode(x)

    def _new(self, x: object) -> Floats:
        """Rows to predict for, checked."""
        if self.columns is None:
            return super()._new(x)
        self._fitted()
        found = self.columns.encode(x)
        all_finite("X", found)
        return found

    def _columns(self) -> int | None:
        """How many columns are declared; None where one pair of bounds is for all."""
        if isinstance(self.scaling, ColumnScaling) and self.bounds is None:
            given = max(np.size(self.scaling.center), np.size(self.scaling.scale))
            return int(given) if given > 1 else None
        return declared_columns(self.bounds)

    def fit_source(
        self,
        source: object,
        *,
        features: Sequence[str] = (),
        target: str | Sequence[str],
        privacy_unit: str | None = None,
    ) -> Self:
        """Fit the model to columns of a file, a database relation or a data frame.

        The rows are read in batches. From Spark only sums arrive.

        Args:
            source: Path of a file, DuckDB relation, data frame or Spark data frame, as in
                `discreet.table`.
            features: Names of the feature columns. With declared columns they are known.
            target: Name of the target column, or names of several.
            privacy_unit: Name of the column that says whose a row is. Of each unit
                `max_rows_per_unit` rows are used, and all rows are read into memory. Without it, no
                unit may have more rows than that, and levels must be numbers in the source.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No row was read.
            InvalidArgument: A column does not exist, or bounds or budget are missing or not valid.

        Privacy:
            The fit satisfies the budget for one privacy unit with at most `max_rows_per_unit` rows.
            The account is charged before the rows are read.

        Examples:
            >>> import polars
            >>> from discreet.models import PrivateLinearRegression
            >>> frame = polars.DataFrame({"size": [1.0, 2.0] * 100, "cost": [2.0, 4.0] * 100})
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(0, 10))
            >>> model.fit_source(frame, features=["size"], target="cost").coef_.shape
            (1,)
        """
        rows = named_rows(
            source,
            names=features,
            targets=(target,) if isinstance(target, str) else target,
            columns=self.columns,
            privacy_unit=privacy_unit,
            most=self.max_rows_per_unit,
        )
        self._flat = isinstance(target, str)
        self._fit_rows(rows, names=tuple(features) if self.columns is None else self.columns.names)
        return self

    def plan(self, *, features: int, outputs: int = 1) -> SufficientStatisticsPlan:
        """Plan the noise of a fit, before a row is read.

        Args:
            features: Number of features.
            outputs: Number of targets.

        Returns:
            The plan with its guarantee and noise.

        Raises:
            InvalidArgument: The budget or another argument is not valid.

        Examples:
            >>> from discreet.models import PrivateLinearRegression
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> round(model.plan(features=2).guarantee.rdp(2), 3)
            2.0
        """
        lattice = RowLattice.of(
            features=features,
            outputs=outputs,
            intercept=self.intercept_scale if self.fit_intercept else 0.0,
        )
        private = isinstance(self.scaling, str) and self.scaling == "private"
        if self.constants != "exact":
            return self._published(lattice, private=private)
        squares = probability("squares_share", self.squares_share, one=False)
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
            squares_share=squares / 2 if self._readable else squares,
            residuals_share=squares / 2 if self._readable else 0,
            smallest_share=0 if self.method != "adassp" else (1 - squares) / 3,
            scaling=wanted if private else (),
            scaling_share=self.scaling_share,
        )

    @property
    def _readable(self) -> bool:
        """Whether coefficients are those of the rows, because no row is moved."""
        private = isinstance(self.scaling, str) and self.scaling == "private"
        return self.mapping == "weighted" or (self.mapping == "box" and not private)

    def _published(self, lattice: RowLattice, *, private: bool) -> SufficientStatisticsPlan:
        """Noise as published, if it keeps the nominal claim."""
        if (
            private
            or self.epsilon is None
            or self.delta is None
            or not isinstance(self.method, str)
        ):
            raise InvalidArgument(
                "Published constants take epsilon and delta, a named method and a declared "
                "scaling: scaling='bounds' or a ColumnScaling."
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
            raise InvalidArgument(
                "mapping='weighted' needs fit_intercept=True: use mapping='box' or 'ball'."
            )
        if self.columns is not None and self.bounds is not None:
            raise InvalidArgument("Give bounds or columns, which have bounds, not both.")
        declared = declare(
            bounds=self.bounds if self.columns is None else self.columns.bounds,
            target_bounds=self.target_bounds,
            scaling=self.scaling,
            mapping=self.mapping,
            radius=self.radius,
            features=rows.features,
            outputs=rows.outputs,
            names=names,
        )
        if self.columns is not None:
            declared = replace(declared, dimensions=self.columns.dimensions)
        source = self._source
        with reserve_if_charged(self.account, plan.guarantee, label=self.label, rng=source) as held:
            mapped = row_map(rows, plan, declared=declared, rng=source)
            size = (plan.lattice.columns + plan.lattice.outputs) ** 2 + 1
            flat = exact_sums(rows, partial(flat_sums, mapped), size=size)
            sums = read_sums(plan.lattice, flat)
            if plan.rows_public:
                # A number that misfits lowered would tell of them.
                sums = MomentSums(sums.total, rows.count_all())
            moments = plan.release(sums, rows=mapped, rng=source)
            del flat, sums
            if plan.residuals is not None:
                theta = project_psd(moments).theta
                moments = plan.release_residuals(moments, rows, theta=theta, rng=source)
        self.receipt_ = None if held is None else held.receipt
        self.moments_ = moments
        self.guarantee_: Guarantee = moments.guarantee
        self.released_ = moments.released
        # Inference is about the estimate before it is shrunk.
        self.solution_ = self._unshrunk = solver(moments)
        if self.method == "psd":
            self.solution_ = toward_level(moments, self.solution_)
        if not self.solution_.stable:
            warnings.warn(
                "The noisy matrix is not positive definite: the coefficients are noise. "
                "Use method='psd'.",
                stacklevel=3,
            )
        self._fitted_to(rows.features if self.columns is None else len(self.columns.names), names)
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
        """Predict targets.

        Args:
            X: Features, one row per record. They are clipped and projected as in the fit.

        Returns:
            One prediction per record, or one row of predictions with several targets.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.predict(X[:3]).shape
            (3,)
        """
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
        """Compute confidence intervals of the coefficients.

        They cover the noise and the sampling error of the rows.

        Args:
            confidence: Confidence level, between 0 and 1.
            bound: Public bound of the norm of the coefficients in mapped units, if you know one. It
                makes the intervals shorter.

        Returns:
            Lower and upper ends and standard errors of slopes and intercepts.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.
            Unsupported: The fit released no sums of squares, or `mapping` moved rows: `"ball"`,
                `"row"`, or `"box"` with a private scaling. Their coefficients are not those of the
                rows.

        Privacy:
            Post-processing of released moments. It costs no budget.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> intervals = model.intervals()
            >>> bool((intervals.low <= intervals.high).all())
            True
        """
        return coefficient_intervals(self._readable_inference(), confidence=confidence, bound=bound)

    def summary(self) -> InferenceTable:
        """Return the table of coefficients, as statsmodels prints it.

        Returns:
            Estimate, standard error, test, p-value and interval of each coefficient. `print` shows
            it as text, notebooks as HTML; `rows`, `to_pandas` and others take `confidence`.

        Raises:
            Unsupported: The fit released no sums of squares, or `mapping` moved rows, as in
                `intervals`.

        Privacy:
            Post-processing of released moments. It costs no budget.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> [row["term"] for row in model.summary().rows()]
            ['intercept', 'x0', 'x1']
        """
        inference = self._readable_inference()
        found = coefficient_intervals(inference)
        moments, outputs = self.moments_, len(found.slope)
        names = getattr(self, "feature_names_in_", None)
        terms = [f"x{place}" for place in range(found.slope.shape[1])] if names is None else names
        if self.columns is not None:
            terms = self.columns.terms
        level = int(bool(moments.intercept))
        shown = ["intercept"] * level + [str(term) for term in terms]
        estimates, errors = (
            np.column_stack([at] * level + [slopes]) if level else slopes
            for at, slopes in (
                (found.intercept, found.slope),
                (found.intercept_std, found.slope_std),
            )
        )
        outer = range(outputs)
        low, high = (end.tolist() for end in self.target_range_)
        notes = [
            "Standard errors cover the sample and the noise, also where residuals spread "
            "unequally. Targets beyond "
            + ", ".join(f"[{short(a)}, {short(b)}]" for a, b in zip(low, high, strict=True))
            + " were clipped."
        ]
        if not found.identified:
            notes.append(
                "Not determined: the noise is larger than what the rows say about this "
                "coefficient. More rows, more budget or fewer columns would help."
            )
        elif self.penalty_ > 0:
            notes.append("`coef_` is shrunk by a penalty, the estimates here are not.")
        return InferenceTable(
            model="Private linear regression",
            key_columns=("term",) if self._flat else ("output", "term"),
            terms=tuple(
                (name,) if self._flat else (str(output), name) for output in outer for name in shown
            ),
            coefficients=estimates.ravel(),
            standard_errors=errors.ravel(),
            degrees_of_freedom=max(moments.rows - moments.columns, 1.0),
            estimand=_ESTIMAND[self.mapping],
            facts=(
                ("Rows", f"about {short(round(max(moments.rows, 0.0)))}" + _WEIGHTS[self.mapping]),
                ("Method", f"{self.solution_.method}, mapping {self.mapping!r}"),
            ),
            notes=tuple(notes),
            guarantee=moments.guarantee,
        )

    def predict_interval(self, X: Any, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Compute intervals for new targets.

        Args:
            X: Features, one row per record.
            confidence: Probability with which a new target lies in its interval, between 0 and 1.

        Returns:
            Lower and upper ends, one per record.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.
            Unsupported: The fit released no sums of squares.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> low, high = model.predict_interval(X[:3])
            >>> bool((low <= high).all())
            True
        """
        _, low, high = prediction_intervals(self._inference(), self._new(X), confidence=confidence)
        return (low[:, 0], high[:, 0]) if self._flat else (low, high)

    def _readable_inference(self) -> Inference:
        """The law of coefficients that are those of the rows; others are refused."""
        self._fitted()
        if not self._readable:
            scaled = " with scaling='private'" if self.mapping == "box" else ""
            raise Unsupported(
                f"mapping={self.mapping!r}{scaled} moves rows but not their targets: it is for "
                "prediction, and its coefficients are not those of the rows. Fit with "
                "mapping='weighted' (or 'box' with scaling='bounds') for intervals and a summary."
            )
        return self._inference()

    def _inference(self) -> Inference:
        self._fitted()
        return infer(self.moments_, self._unshrunk)
