"""Logit and Poisson regression with standard errors, by noisy Fisher scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.ledger.account import Account
from discreet.mechanisms.mechanism import Certificate
from discreet.models._charging import ChargingEstimator, reserve_fit
from discreet.models._declared_columns import DeclaredColumns
from discreet.models._inference_table import InferenceTable
from discreet.models._labels import (
    Classes,
    check_label_type,
    class_places,
    classes_of,
    declared_classes,
    likeliest,
    probabilities,
)
from discreet.models._model_inputs import (
    Bounds,
    Floats,
    all_finite,
    bounds_of,
    declared_columns,
    doubles,
    matrix,
    names_of,
    same_rows,
    target_table,
    target_values,
)
from discreet.models._preparation import refuse_learned_preparation
from discreet.models.glm.families import Family, LogitFamily, PoissonFamily
from discreet.models.glm.fisher_scoring import ScoringFit, ScoringPlan, plan_scoring
from discreet.models.regression._row_sources import ArrayRows, RowSource, check_units, named_rows
from discreet.noise.random_source import RandomSource


@dataclass(kw_only=True, eq=False, repr=False)
class ScoringEstimator(ChargingEstimator):
    """A generalized linear model by noisy Fisher scoring. Use one of the estimators made of it."""

    epsilon: float | Fraction | None = None
    delta: float | Fraction | None = None
    rho: float | Fraction | None = None
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    bounds: Bounds = None
    columns: DeclaredColumns | None = None
    max_rows_per_unit: int = 1
    radius: float | None = None
    account: Account | None = None
    label: str = "generalized linear model"
    rng: RandomSource | None = None

    def fit(self, X: object, y: object, units: object = None) -> Self:
        """Fit the model to private rows.

        Rows with missing or unreadable values, of another length, with an undeclared label or
        without a unit are dropped.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Label or target of each record.
            units: Privacy unit of each row. Of each unit the first `max_rows_per_unit` rows are
                used. If None, no unit may have more rows than that.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No value was read.
            InvalidArgument: Budget, bounds or labels are missing or not valid, or the arguments do
                not fit together.

        Privacy:
            The fit satisfies the budget for one privacy unit. The account is charged before the
            values are read.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
            >>> model.fit(X, (X[:, 0] > 0.2).astype(int)).coef_.shape
            (1, 1)
        """
        refuse_learned_preparation()
        self.__dict__.pop("fit_", None)  # a fit that fails leaves none
        table = self._table(X, reset=True)
        targets = self._targets(y)
        same_rows(table, targets)
        if units is not None:
            check_units(units, len(table))
        names = names_of(X) if self.columns is None else self.columns.names
        self._fit_rows(table.shape[1], names, lambda: self._rows(table, targets, units))
        return self

    def fit_source(
        self,
        source: object,
        *,
        features: Sequence[str] = (),
        target: str,
        privacy_unit: str | None = None,
    ) -> Self:
        """Fit the model to columns of a file, a database relation or a data frame.

        The rows are read in batches, several times. From Spark only sums arrive.

        Args:
            source: Path of a file, DuckDB relation, data frame or Spark data frame, as in
                `discreet.table`.
            features: Names of the feature columns. With declared columns they are known.
            target: Name of the target column. It must hold numbers; labels must be 0 and 1.
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
            >>> import pandas
            >>> from discreet.models import PrivatePoisson
            >>> frame = pandas.DataFrame({"age": [30.0, 60.0] * 500, "visits": [1.0, 4.0] * 500})
            >>> model = PrivatePoisson(
            ...     epsilon=1, delta=1e-6, bounds=[(18, 90)], target_bounds=(0, 10)
            ... )
            >>> model.fit_source(frame, features=["age"], target="visits").coef_.shape
            (1,)
        """
        self.__dict__.pop("fit_", None)
        rows = named_rows(
            source,
            names=features,
            targets=(target,),
            columns=self.columns,
            privacy_unit=privacy_unit,
            most=self.max_rows_per_unit,
        )
        self._check_source()
        names = tuple(features) if self.columns is None else self.columns.names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self._fit_rows(rows.features, names, lambda: rows)
        return self

    def plan(self, *, features: int) -> ScoringPlan:
        """Plan the noise of a fit, before a row is read.

        Args:
            features: Number of features; of declared columns, the number of their `terms`.

        Returns:
            The plan with its noise and `guarantee`.

        Raises:
            InvalidArgument: The budget or another argument is not valid.
            Unsupported: There are too many features.

        Examples:
            >>> from discreet.models import PrivateLogit
            >>> plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=3)
            >>> plan.guarantee.epsilon(1e-6) <= 1
            True
        """
        if self.relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
            raise RelationMismatch(
                "relation must be ADD_REMOVE or REPLACE_ONE: sums are made by someone who sees the "
                "rows."
            )
        return plan_scoring(
            self._family(),
            features=features,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            relation=self.relation,
            max_rows_per_unit=self.max_rows_per_unit,
            radius=self.radius,
        )

    def certify(self) -> Certificate:
        """Recompute the guarantee of the fit from exact distributions.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
            >>> model.fit(X, (X[:, 0] > 0.2).astype(int)).certify().holds
            True
        """
        check_is_fitted(self, "fit_")
        return self.plan_.certify()

    def summary(self) -> InferenceTable:
        """List the coefficients with standard errors, tests and intervals.

        Returns:
            A result that prints as a table and has `to_html`, `to_pandas` and `as_text`.

        Privacy:
            Post-processing of the release. It costs no budget.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
            >>> model.fit(X, (X[:, 0] > 0.2).astype(int)).summary().terms
            (('x0',), ('intercept',))
        """
        check_is_fitted(self, "fit_")
        found = self.fit_
        known = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(self.n_features_in_)] if known is None else list(known)
        if self.columns is not None:
            names = list(self.columns.terms)
        notes = [
            "Standard errors: sandwich, with the noise of the release.",
            f"Rows farther than {short(found.rows.radius)} scales from the center weigh less.",
        ]
        if not found.determined:
            notes.append(
                "Some coefficients are not determined: the noise hides what the rows say about "
                "them. A larger budget, more rows or narrower bounds may help."
            )
        return InferenceTable(
            model=self._title(),
            terms=tuple((str(name),) for name in (*names, "intercept")),
            coefficients=found.coefficients,
            standard_errors=found.standard_errors,
            estimand=self._estimand(),
            facts=(("Relation", self.relation.name.lower().replace("_", " or ")),),
            notes=tuple(notes),
            guarantee=self.guarantee_,
        )

    def intervals(self, *, confidence: float = 0.95) -> list[Record]:
        """Compute confidence intervals of the coefficients.

        They cover the noise and the sampling error of the rows.

        Args:
            confidence: Confidence level, between 0 and 1.

        Returns:
            One record for each coefficient: term, value, std, low and high.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Privacy:
            Post-processing of the release. It costs no budget.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> [row["term"] for row in model.intervals(confidence=0.9)]
            ['x0', 'intercept']
        """
        return self.summary().rows(confidence)

    @abstractmethod
    def _family(self) -> Family:
        """The distribution of the targets."""

    @abstractmethod
    def _targets(self, y: object) -> NDArray[Any]:
        """Targets as they are given, one-dimensional; no value is read for an error."""

    @abstractmethod
    def _numbers(self, y: NDArray[Any]) -> Floats:
        """Targets as the family wants them; NaN for what is none."""

    @abstractmethod
    def _title(self) -> str:
        """The name of the model in a summary."""

    @abstractmethod
    def _estimand(self) -> str:
        """What is estimated, in words."""

    @abstractmethod
    def _publish(self) -> None:
        """Set the attributes that depend on the family."""

    def _check_source(self) -> None:
        """Refuse what columns of numbers cannot give."""

    def _rows(self, table: NDArray[Any], targets: NDArray[Any], units: object) -> RowSource:
        return ArrayRows(table, self._numbers(targets)[:, None], units, self.max_rows_per_unit)

    def _fit_rows(self, features: int, names: tuple[str, ...] | None, rows: Any) -> None:
        plan = self.plan(features=features)
        lower, upper = self._ends(features, names)
        source = self._source
        with reserve_fit(
            self.account,
            plan.guarantee,
            epsilon=self.epsilon,
            delta=self.delta,
            label=self.label,
            rng=source,
            remedy="charge an account with a limit approx_dp(epsilon, delta) or zcdp(rho)",
        ) as held:
            found = plan.release(rows(), lower=lower, upper=upper, rng=source)
        self.fit_: ScoringFit = found
        self.plan_, self.guarantee_ = plan, plan.guarantee
        self.receipt_ = None if held is None else held.receipt
        self._publish()

    def _ends(self, features: int, names: tuple[str, ...] | None) -> tuple[Floats, Floats]:
        """Declared bounds of the features."""
        if self.columns is not None:
            if self.bounds is not None:
                raise InvalidArgument("Give bounds or columns, which have bounds, not both.")
            return bounds_of("columns", self.columns.bounds, columns=features)
        if self.bounds is None:
            raise InvalidArgument(
                "bounds must be declared: (lower, upper) for all columns, or for each. They are "
                "never taken from the data."
            )
        return bounds_of("bounds", self.bounds, columns=features, names=names)

    def _table(self, X: object, *, reset: bool) -> NDArray[Any]:
        if self.columns is not None:
            if reset:
                self.n_features_in_ = len(self.columns.names)
                self.feature_names_in_ = np.array(self.columns.names, dtype=object)
            return self.columns.encode(X)
        known = declared_columns(self.bounds) if reset else self.n_features_in_
        table = matrix("X", X, columns=known)
        # Of a list scikit-learn would look at the first row.
        named = X if names_of(X) is not None else table
        validate_data(self, named, reset=reset, skip_check_array=True)
        return table

    def _margins(self, X: object) -> Floats:
        check_is_fitted(self, "fit_")
        table = self._table(X, reset=False)
        if not len(table):
            raise InvalidArgument("X has 0 sample(s) while a minimum of 1 is required.")
        x = doubles(table)
        all_finite("X", x)
        rows = self.fit_.rows
        clipped = np.clip(x, rows.lower, rows.upper)
        margins: Floats = clipped @ self.fit_.coefficients[:-1] + self.fit_.coefficients[-1]
        return margins

    def _flat(self, y: NDArray[Any]) -> NDArray[Any]:
        if y.ndim == 2 and y.shape[1] == 1:
            return y[:, 0]
        if y.ndim != 1:
            raise InvalidArgument(
                f"y should be a 1d array, got {y.ndim} dimensions: fit one model for each column."
            )
        return y


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogit(ClassifierMixin, ScoringEstimator):
    """Private logistic regression with standard errors, for two classes.

    Coefficients are found by noisy Fisher scoring, for up to a few dozen features. For many
    features or classes use `PrivateLogisticRegression`. After `fit`, `coef_`, `intercept_`,
    `classes_`, `plan_`, `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        columns: Declared columns, with bounds or levels, instead of `bounds`.
        max_rows_per_unit: Largest number of rows that are used per privacy unit.
        radius: Length of a scaled row beyond which the row weighs less. By default chosen from the
            number of features.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        classes: The two labels, or `"public"` if the labels in `y` are not secret. The model is of
            the probability of the second.

    Privacy:
        A fit satisfies the budget for one privacy unit. The account is charged before the values
        are read. All attributes are post-processing of what was released.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLogit
        >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
        >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
        >>> model.fit(X, (X[:, 0] > 0.2).astype(int)).predict([[-0.9], [0.9]]).shape
        (2,)

    See Also:
        [Logit and Poisson regression](../how-to/glm.md), [theory](../theory/regression.md).

    References:
        Avella-Medina, Bradshaw and Loh (2023).
    """

    label: str = "logit regression"
    classes: Classes = (0, 1)

    def decision_function(self, X: object) -> Floats:
        """Compute the log-odds of the second class.

        Args:
            X: Features, one row per record.

        Returns:
            One number per record.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
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
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
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
            >>> from discreet.models import PrivateLogit
            >>> X = numpy.linspace(-1, 1, 5_000)[:, None]
            >>> model = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1))
            >>> model = model.fit(X, (X[:, 0] > 0.2).astype(int))
            >>> model.predict([[0.9]]).shape
            (1,)
        """
        return likeliest(self._margins(X), self.classes_)

    def _family(self) -> Family:
        return LogitFamily()

    def _targets(self, y: object) -> NDArray[Any]:
        given = self._flat(target_values(y))
        found = classes_of(self.classes, given)
        if len(found) != 2:
            raise InvalidArgument(
                f"classes must name two labels, got {len(found)}: for more classes use "
                "PrivateLogisticRegression."
            )
        check_label_type(given, found)
        self.classes_ = found
        return given

    def _numbers(self, y: NDArray[Any]) -> Floats:
        return class_places(y, self.classes_)

    def _check_source(self) -> None:
        found = declared_classes(self.classes)
        if found.tolist() != [0, 1]:
            raise InvalidArgument("fit_source needs labels 0 and 1: recode the column, or use fit.")
        self.classes_ = found

    def _title(self) -> str:
        return "Private logit regression"

    def _estimand(self) -> str:
        return (
            f"log-odds of {self.classes_[1]!s}, by weighted maximum likelihood on features clipped "
            "to their bounds"
        )

    def _publish(self) -> None:
        self.coef_ = self.fit_.coefficients[None, :-1]
        self.intercept_ = self.fit_.coefficients[-1:]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivatePoisson(RegressorMixin, ScoringEstimator):
    """Private Poisson regression of counts with standard errors.

    Coefficients are found by noisy Fisher scoring. The variance of the counts may differ from
    their mean: standard errors do not assume it. After `fit`, `coef_`, `intercept_`, `plan_`,
    `guarantee_` and `receipt_` are set.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`, because the noise is Gaussian.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        columns: Declared columns, with bounds or levels, instead of `bounds`.
        max_rows_per_unit: Largest number of rows that are used per privacy unit.
        radius: Length of a scaled row beyond which the row weighs less. By default chosen from the
            number of features.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        target_bounds: Public bounds of the counts, `(0, largest)`. Counts are clipped: if many are
            above the largest, coefficients are of the clipped counts. The noise grows with it.

    Privacy:
        A fit satisfies the budget for one privacy unit. The account is charged before the values
        are read. All attributes are post-processing of what was released.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivatePoisson
        >>> X = numpy.linspace(0, 1, 5_000)[:, None]
        >>> y = numpy.round(numpy.exp(1 + X[:, 0]))
        >>> model = PrivatePoisson(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 10))
        >>> model.fit(X, y).predict([[0.5]]).shape
        (1,)

    See Also:
        [Logit and Poisson regression](../how-to/glm.md), [theory](../theory/regression.md).

    References:
        Avella-Medina, Bradshaw and Loh (2023).
    """

    label: str = "Poisson regression"
    target_bounds: tuple[float, float] | None = None

    def predict(self, X: object) -> Floats:
        """Predict the mean count.

        Args:
            X: Features, one row per record.

        Returns:
            One number per record, at most the largest count.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivatePoisson
            >>> X = numpy.linspace(0, 1, 5_000)[:, None]
            >>> y = numpy.round(numpy.exp(1 + X[:, 0]))
            >>> model = PrivatePoisson(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 10))
            >>> model.fit(X, y).predict([[0.5]]).shape
            (1,)
        """
        largest = self._family().most
        with np.errstate(over="ignore"):
            found: Floats = np.minimum(np.exp(self._margins(X)), largest)
        return found

    def _family(self) -> Family:
        if self.target_bounds is None:
            raise InvalidArgument(
                "target_bounds must be declared: (0, largest count). They are never taken from "
                "the data."
            )
        low, high = bounds_of("target_bounds", self.target_bounds, columns=1)
        if low[0] != 0:
            raise InvalidArgument("target_bounds must start at 0: counts do.")
        return PoissonFamily(largest=float(high[0]))

    def _targets(self, y: object) -> NDArray[Any]:
        table, flat = target_table(y)
        self._family()
        return self._flat(table[:, 0] if flat else table)

    def _numbers(self, y: NDArray[Any]) -> Floats:
        return doubles(y)

    def _title(self) -> str:
        return "Private Poisson regression"

    def _estimand(self) -> str:
        return (
            f"log of the mean count, counts clipped to {short(self._family().most)}, by weighted "
            "maximum likelihood on features clipped to their bounds"
        )

    def _publish(self) -> None:
        self.coef_ = self.fit_.coefficients[:-1]
        self.intercept_ = float(self.fit_.coefficients[-1])
