"""The queries of a table, local or on a server: one definition of each for both.

A class that says how it releases queries and ranges gets all of these methods. What is public
(forecasts, plans, budgets) follows from the declaration of the table and reads nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypedDict, cast, overload

from discreet.core._rational import Number, rational
from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits, Key
from discreet.data.schema import Label, Schema
from discreet.query import builders
from discreet.query._release_plan import ReleasePlan, TableSpec, check_query, plan_release
from discreet.query._sql import translate
from discreet.query.budget import NoiseName, QueryBudget, budget
from discreet.query.builders import By, Edges, Keys, Query, Value, Values
from discreet.query.builders import Method as QuantileMethod
from discreet.query.error_forecast import ErrorForecast, Measure, budget_for, forecast
from discreet.ranges._range_answers import DEFAULT_CONFIDENCE
from discreet.ranges.grid.plan import GridPlan
from discreet.ranges.grid.table_query import (
    GridQuery,
    GridWorkloadLike,
    plan_grid_query,
    rectangles,
)
from discreet.ranges.plan import RangePlan
from discreet.ranges.table_query import RangeQuery, WorkloadLike, range_budget_for, ranges
from discreet.ranges.table_query import plan_query as planned_ranges
from discreet.tables.range_release import (
    AnyPlannedRanges,
    AnyRangeRelease,
    ChargedGridRelease,
    ChargedRangeRelease,
)
from discreet.tables.release import Release
from discreet.tables.sql import SqlAnswer, SqlPlan

_LEVEL = 0.95

# ── Arguments that several methods share ─────────────────────────────────────────────────────────


class BudgetArgs(TypedDict, total=False):
    """What an answer may cost: epsilon, or epsilon and delta, or rho."""

    epsilon: Number
    delta: Number
    rho: Number


def budget_args(found: QueryBudget) -> BudgetArgs:
    """A budget as it is asked for: doubles wherever they are read back as what they stand for."""
    parts = {"epsilon": found.epsilon, "delta": found.delta, "rho": found.rho}
    stated = {name: x for name, x in parts.items() if x is not None}
    return cast(
        "BudgetArgs",
        {name: float(x) if rational(float(x)) == x else x for name, x in stated.items()},
    )


def range_query(
    value: Value | Values,
    *,
    workload: Any,
    bins: int | Mapping[str, int] | None,
    edges: Iterable[Number] | None,
    where: Expression | None,
    limits: ContributionLimits,
) -> RangeQuery | GridQuery:
    """The ranges of one column, or the rectangles of a list of columns."""
    if isinstance(value, str | Expression) or not isinstance(value, Sequence):
        if isinstance(bins, Mapping):
            raise InvalidArgument("bins must be a number for one column, not a mapping.")
        return ranges(
            value,
            workload=workload,
            bins=bins,
            edges=edges,
            where=where,
            limits=limits,
        )
    if edges is not None:
        raise InvalidArgument("edges cut one column: for several, use bins={column: number}.")
    if bins is not None and not isinstance(bins, Mapping):
        raise InvalidArgument("bins must map columns to numbers if there are several columns.")
    return rectangles(value, workload=workload, bins=bins, where=where, limits=limits)


# ── Methods of every table ───────────────────────────────────────────────────────────────────────


class QueryMethods(ABC):
    """Query a table with declared columns.

    Each release is charged before a row is read.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> from discreet import col
        >>> rows = pd.DataFrame(
        ...     {
        ...         "person": [f"p{i}" for i in range(400)],
        ...         "age": [23, 35, 41, 67] * 100,
        ...         "visits": [0, 1, 2, 5] * 100,
        ...         "smokes": [True, False] * 200,
        ...         "city": ["Bern", "Bern", "Rome", "Oslo"] * 100,
        ...     }
        ... )
        >>> limit = discreet.approx_dp(50, 0.01)
        >>> account = discreet.Ledger("memory://").account("demo", limit=limit)
        >>> people = discreet.table(
        ...     rows,
        ...     privacy_unit="person",
        ...     max_rows_per_unit=1,
        ...     account=account,
        ...     columns={
        ...         "age": discreet.integer(0, 120),
        ...         "visits": discreet.integer(0, 7),
        ...         "smokes": discreet.boolean(),
        ...         "city": discreet.text(),
        ...     },
        ... )
        >>> people.columns
        ('age', 'visits', 'smokes', 'city')
    """

    __slots__ = ()

    spec: TableSpec

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the declared columns, in the order of the declaration.

        Returns:
            The names that queries may use. The column of the privacy unit is among them only if it
            is declared.
        """
        return tuple(self.spec.schema)

    @property
    def schema(self) -> Schema:
        """Declaration of each column: type, bounds and what a missing value counts as.

        It is public and says nothing about the rows.
        """
        return MappingProxyType(dict(self.spec.schema))

    @abstractmethod
    def release(
        self,
        queries: Sequence[Query],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        weights: Sequence[Number] | None = None,
        label: str | None = None,
    ) -> tuple[Release, ...]:
        """Answer several queries with one budget, split by `weights`."""

    def sql(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        parameters: Mapping[str, object] | None = None,
        name: str | None = None,
        label: str | None = None,
    ) -> SqlAnswer:
        """Answer a SELECT of aggregates.

        The text is parsed and translated to the same queries as in Python. It never reaches a
        database. The aggregates share the budget in equal parts.

        Args:
            text: One SELECT, for example `"SELECT city, COUNT(*), AVG(age) FROM t GROUP BY city"`.
            epsilon: Privacy loss of the whole answer.
            delta: Probability parameter that goes with epsilon. With it, the noise is Gaussian.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            parameters: Values of parameters such as `:low` in the text.
            name: Name of the table in the text. If None, any name is accepted.
            label: Text for the ledger entry. If None, a description of the queries.

        Returns:
            The answer: rows in the order of the SELECT, and the releases with their errors.

        Raises:
            InvalidArgument: The text is not in the subset. The error names the place and a way
                that works, and nothing is charged.
            BudgetExceeded: The account has not enough budget left. Nothing is charged.

        Privacy:
            The same as `release` of the same queries.

        Examples:
            >>> answer = people.sql("SELECT COUNT(*) AS n FROM people WHERE age >= 65", epsilon=1)
            >>> list(answer.rows()[0])
            ['n', 'n low', 'n high']

        See Also:
            [SQL](../how-to/sql.md).
        """
        plan = self.plan_sql(text, parameters=parameters, name=name)
        releases = self.release(plan.queries, epsilon=epsilon, delta=delta, rho=rho, label=label)
        return SqlAnswer(releases=releases, text=text, _question=plan._question)

    def plan_sql(
        self,
        text: str,
        *,
        parameters: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> SqlPlan:
        """Translate a SELECT of aggregates, without reading or charging anything.

        Args:
            text: One SELECT.
            parameters: Values of parameters such as `:low` in the text.
            name: Name of the table in the text. If None, any name is accepted.

        Returns:
            The queries, for `release` and `forecast`.

        Raises:
            InvalidArgument: The text is not in the subset.

        Examples:
            >>> people.plan_sql("SELECT AVG(age) FROM people").queries
            (Query('mean of age'),)
        """
        found = translate(text, spec=self.spec, name=name, parameters=parameters)
        return SqlPlan(queries=found.queries, text=text, _question=found)

    @abstractmethod
    def _release_ranges(
        self, query: RangeQuery | GridQuery, amount: QueryBudget, *, label: str | None
    ) -> AnyRangeRelease:
        """Answer the ranges of a query with a budget of their own."""

    def count(
        self,
        *,
        of: Value | None = None,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Count the rows.

        Args:
            of: Column or expression whose known values are counted. If None, rows are counted.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.count(by="smokes", epsilon=1)
            >>> release.keys
            ((False,), (True,))
        """
        query = builders.count(of=of, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def count_units(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Count the privacy units, for example people, that have rows.

        Args:
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.count_units(where=col("smokes"), epsilon=1)
            >>> low, high = release.interval(0.999999)
            >>> low <= 200 <= high
            True
        """
        query = builders.count_units(where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def sum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Sum a column or an expression.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.sum("age", epsilon=1)
            >>> low, high = release.interval()
            >>> low <= release.value <= high
            True
        """
        query = builders.sum(value, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def mean(
        self,
        value: Value,
        *,
        sampling: bool = False,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the mean of a numeric column, optionally by group.

        Half of the budget measures the number of rows and half measures the sum. The mean is their
        quotient, clipped to the declared bounds of `value`. The noise is proportional to the
        distance between these bounds, so wide bounds give inaccurate means.

        Args:
            value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`.
                The mean of a boolean column is a share.
            sampling: Whether intervals for the population are wanted:
                `release.interval(sampling=True)`. Then the spread of the values is measured as
                well, with a fifth of the budget, and these intervals are several times shorter.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.mean("age", where=col("smokes"), epsilon=1)
            >>> low, high = release.interval()
            >>> 0 <= low <= release.value <= high <= 120
            True

        See Also:
            `Table.forecast`: the error before you spend budget.
        """
        query = builders.mean(value, sampling=sampling, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def variance(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Compute the variance of a column or an expression over rows.

        A third of the budget goes to each of number, sum and sum of squares. The divisor is the
        number of rows.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> people.variance("age", epsilon=1).value >= 0
            True
        """
        query = builders.variance(value, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def covariance(
        self,
        value: Value,
        other: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Compute the covariance of two columns or expressions over rows.

        A quarter of the budget goes to each of four sums. The divisor is the number of rows.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            other: The second numeric column or expression.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.covariance("age", "smokes", epsilon=1)
            >>> release.query_text
            'covariance of age and smokes'
        """
        query = builders.covariance(value, other, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def median(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: QuantileMethod | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Find the value that half of the rows do not exceed.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            bins: Number of parts into which the declared range is cut. If None, chosen from the
                number of groups.
            method: "tree" (noisy counts of nested bins; has intervals) or "exponential" (chosen by
                rank; has none). If None, the one with the smaller forecast error.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> 0 <= people.median("age", epsilon=1).value <= 120
            True

        See Also:
            `Table.quantiles`.
        """
        query = builders.median(value, where=where, by=by, keys=keys, bins=bins, method=method)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def quantiles(
        self,
        value: Value,
        q: Iterable[Number],
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: QuantileMethod | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release quantiles: the value that a share q of the rows does not exceed.

        Args:
            value: Name of a numeric or boolean column, or an expression such as `col("pay") / 12`.
                Its declared bounds decide the noise.
            q: Levels between 0 and 1, increasing, such as `[0.25, 0.5, 0.75]`.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column or expression to group by, a list of them, or a mapping from names to
                expressions. If None, there is one group.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of
                `Table.discover_keys`. If None, all declared values of `by` are groups, also those
                without rows.
            bins: Number of cells of equal width into which the declared range is cut, at least 2.
                If None, it follows from the range and the method.
            method: "tree" (noisy counts in a tree of cells; all quantiles at one cost, with
                intervals) or "exponential" (chooses each cell by its rank; no interval). If None,
                the one with the smaller rank error.
            epsilon: Privacy loss of the release, as epsilon. Without `delta`, the noise is Laplace
                noise.
            delta: Probability parameter of (epsilon, delta)-DP. With it, the noise is Gaussian
                noise.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number for each level, and for each group if there are groups.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.quantiles("age", [0.25, 0.75], epsilon=1)
            >>> [key[0] for key in release.keys]
            [0.25, 0.75]

        See Also:
            `Table.large_domain_quantiles`: exact to the last digit of the declared values.
        """
        query = builders.quantiles(
            value, q, where=where, by=by, keys=keys, bins=bins, method=method
        )
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def histogram(
        self,
        value: Value,
        *,
        edges: Edges = None,
        where: Expression | None = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Count the rows in each category, or between each two edges.

        Args:
            value: Categorical column, or a numeric one together with `edges`.
            edges: Ascending cut points of a numeric column. If None, each declared value is a bin.
            where: Condition that a row must meet to be used. If None, all rows are used.
            keys: Public keys to count, if not all declared ones.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with one count for each bin.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> people.histogram("age", edges=[18, 45, 65], epsilon=1).keys
            (('< 18',), ('[18, 45)',), ('[45, 65)',), ('>= 65',))
        """
        query = builders.histogram(value, edges=edges, where=where, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def std(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the standard deviation of a numeric column.

        It is the root of the variance with the number of rows as divisor, from the same three noisy
        sums.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.std("age", epsilon=1)
            >>> 10 < release.value < 25
            True
        """
        query = builders.std(value, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def correlation(
        self,
        value: Value,
        other: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the correlation of two numeric columns.

        Pearson's coefficient, from six noisy sums.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            other: Second column or expression, like `value`.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.correlation("age", "visits", epsilon=10)
            >>> 0.9 < release.value <= 1
            True
        """
        query = builders.correlation(value, other, where=where, by=by, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def ratio(
        self,
        value: Value,
        other: Value,
        *,
        expected_ratio: Number | None = None,
        sampling: bool = False,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the sum of a column divided by the sum of another one.

        An example is pay per hour: all pay over all hours.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            other: Column or expression whose sum is the denominator.
            expected_ratio: Public guess of the ratio, by which the budget is split. If None, the
                ratio of the middles of the declared bounds.
            sampling: Whether intervals for the population are wanted:
                `release.interval(sampling=True)`. Then the spread is measured as well.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.ratio("visits", "age", epsilon=1)
            >>> 0.03 < release.value < 0.08
            True
        """
        query = builders.ratio(
            value,
            other,
            expected_ratio=expected_ratio,
            sampling=sampling,
            where=where,
            by=by,
            keys=keys,
        )
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def weighted_mean(
        self,
        value: Value,
        weight: Value,
        *,
        sampling: bool = False,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the mean of a numeric column over rows that count by weights.

        The largest declared weight decides the noise: trim it, for example with
        `col("weight").clip(lower=0, upper=5)`.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            weight: Column or expression of the weights, declared from zero on.
            sampling: Whether intervals for the population are wanted:
                `release.interval(sampling=True)`. Then the spread is measured as well.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.weighted_mean("age", "visits", epsilon=1)
            >>> 30 < release.value < 70
            True
        """
        query = builders.weighted_mean(
            value, weight, sampling=sampling, where=where, by=by, keys=keys
        )
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def share(
        self,
        *,
        by: By,
        value: Value | None = None,
        where: Expression | None = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the share of each group in the total of all groups.

        One histogram is measured, so the number of groups costs nothing.

        Args:
            by: Column, expression, or several of them, whose values make the groups.
            value: Column or expression whose sum is shared out, with bounds from zero on. If None,
                rows are counted.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with a share for each group; they add up to one.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.share(by="smokes", epsilon=1)
            >>> abs(sum(release.value) - 1) < 1e-9
            True
        """
        query = builders.share(by=by, value=value, where=where, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def compare(
        self,
        value: Value,
        *,
        by: By,
        to: Label | Key,
        sampling: bool = False,
        where: Expression | None = None,
        keys: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release how the means of groups differ from the mean of one of them.

        The intervals hold for all differences at once.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            by: Column, expression, or several of them, whose values make the groups.
            to: Group that the others are compared with: a value of `by`, or a tuple of values.
            sampling: Whether intervals for the population are wanted:
                `release.interval(sampling=True)`. Then the spread is measured as well.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with a difference for each group but the one of `to`.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, `to` is no group, or the budget is not stated
                in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.compare("age", by="smokes", to=False, epsilon=1)
            >>> release.keys, -25 < release.value[0] < -15
            (((True,),), True)
        """
        query = builders.compare(value, by=by, to=to, sampling=sampling, where=where, keys=keys)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def count_distinct(
        self,
        value: Value,
        *,
        at_least: int,
        where: Expression | None = None,
        by: By = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release the number of declared values that at least so many privacy units have.

        A value of one unit cannot be told from one of nobody, so a threshold is needed.

        Args:
            value: Column or expression with declared categories, or with few whole numbers.
            at_least: Number of privacy units from which a value counts.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> people.count_distinct("visits", at_least=20, epsilon=1).value
            4
        """
        query = builders.count_distinct(value, at_least=at_least, where=where, by=by)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def minimum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: QuantileMethod = "tree",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release about the smallest value: the 0.001 quantile.

        The true minimum is the value of one person, and no release that protects each person can
        tell it.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            bins: Number of cells of equal width into which the declared range is cut. If None, it
                follows from the range.
            method: "tree" (noisy counts, with an interval) or "exponential" (chosen by rank, often
                nearer, but without an interval).
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.minimum("age", epsilon=10)
            >>> 0 <= release.value <= 30
            True

        See Also:
            `quantiles`.
        """
        query = builders.minimum(value, where=where, by=by, keys=keys, bins=bins, method=method)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def maximum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: QuantileMethod = "tree",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        label: str | None = None,
    ) -> Release:
        """Release about the largest value: the 0.999 quantile.

        The true maximum is the value of one person, and no release that protects each person can
        tell it.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups: a list, a `KeySet`, or a release of `discover_keys`. If
                None, all declared values of `by` are groups, also those without rows.
            bins: Number of cells of equal width into which the declared range is cut. If None, it
                follows from the range.
            method: "tree" (noisy counts, with an interval) or "exponential" (chosen by rank, often
                nearer, but without an interval).
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release: one number, or one for each group, with noise standard deviation, interval,
            guarantee and receipt.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> release = people.maximum("age", epsilon=10)
            >>> 60 <= release.value <= 120
            True

        See Also:
            `quantiles`.
        """
        query = builders.maximum(value, where=where, by=by, keys=keys, bins=bins, method=method)
        return self._one(query, epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label)

    def forecast(
        self,
        query: Query,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        expected_rows: int | None = None,
        confidence: float = _LEVEL,
    ) -> ErrorForecast:
        """Forecast the error of a query before budget is spent.

        The forecast follows from public facts alone. Nothing is read and nothing is charged.

        Args:
            query: Query, made for example by `discreet.query.mean`.
            epsilon: Privacy loss to plan for, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error.
            expected_rows: Expected number of rows in a group: public, or your guess. Means,
                variances, covariances and quantiles need it.
            confidence: Probability with which the error stays within the margin, between 0 and 1.

        Returns:
            The forecast, with `std` and `width` (the margin of error) for one group, and the noise
            that a release would add.

        Raises:
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Examples:
            >>> mean_age = discreet.query.mean("age")
            >>> forecast = people.forecast(mean_age, epsilon=1, expected_rows=10_000)
            >>> round(forecast.width, 2)
            0.09

        See Also:
            `Table.budget_for`: the smallest budget for an error.
        """
        planned = self._design(
            [check_query(query)], None, epsilon=epsilon, delta=delta, rho=rho, noise=noise
        )
        return forecast(planned.questions[0], expected_rows=expected_rows, confidence=confidence)

    def budget_for(
        self,
        query: Query,
        *,
        within: Number,
        expected_rows: int | None = None,
        confidence: float = _LEVEL,
        measure: Measure = "epsilon",
        delta: Number | None = None,
    ) -> BudgetArgs:
        """Find the smallest budget with which the error stays within a margin.

        The result follows from public facts alone. Nothing is read and nothing is charged.

        Args:
            query: Query, made for example by `discreet.query.mean`.
            within: Largest margin of error (half of the width of the interval), in the unit of the
                number. For quantiles, an error of rank as a share of the rows.
            expected_rows: Expected number of rows in a group: public, or your guess. Means,
                variances, covariances and quantiles need it.
            confidence: Probability with which the error stays within the margin, between 0 and 1.
            measure: "epsilon" or "rho", the measure of the budget.
            delta: Probability parameter that goes with epsilon.

        Returns:
            The budget as keyword arguments, for example `{"epsilon": 0.25}`: pass it on with
            `table.release([query], **budget)`.

        Raises:
            InvalidArgument: No reasonable budget meets the target, or `expected_rows` is missing.

        Examples:
            >>> people.budget_for(discreet.query.count(), within=20)
            {'epsilon': 0.1462}

        See Also:
            `Table.forecast`.
        """
        found = budget_for(
            query,
            setting=self.spec,
            within=within,
            expected_rows=expected_rows,
            confidence=confidence,
            measure=measure,
            delta=delta,
        )
        return budget_args(found)

    @overload
    def ranges(
        self,
        value: Value,
        *,
        workload: WorkloadLike = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        label: str | None = None,
    ) -> ChargedRangeRelease: ...

    @overload
    def ranges(
        self,
        value: Values,
        *,
        workload: GridWorkloadLike = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        label: str | None = None,
    ) -> ChargedGridRelease: ...

    def ranges(
        self,
        value: Value | Values,
        *,
        workload: Any = "all",
        bins: int | Mapping[str, int] | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        label: str | None = None,
    ) -> AnyRangeRelease:
        """Answer every range of a column, or every rectangle of a list of columns.

        One release answers all ranges, each with its exact error, for one privacy loss.
        `plan_ranges` shows which strategy is chosen, and why.

        Args:
            value: Column or expression, or a list of columns for every rectangle of them. Whole
                numbers, days and categories are counted value by value.
            workload: Which ranges matter: "all", "points", "short", "long", "prefixes", or pairs of
                labels; for a list of columns "all", "points" or "marginals".
            bins: Number of cells into which a real column is cut; for a list of columns, a mapping
                from columns to numbers.
            edges: Cut points of a real column, instead of `bins`.
            where: Condition that a row must meet to be used. If None, all rows are used.
            max_rows_per_unit: Contribution limit for this query, in place of the table's.
            max_groups_per_unit: Number of cells to which one privacy unit contributes.
            max_rows_per_unit_per_group: Rows of one privacy unit that are used per cell.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release whose `answer` and `interval` take the ends of a range.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> visits = people.ranges("visits", epsilon=1)
            >>> low, high = visits.answer_interval(2, 5)
            >>> low <= visits.answer(2, 5) <= high
            True
        """
        own = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        amount = budget(epsilon=epsilon, delta=delta, rho=rho)
        query = range_query(
            value, workload=workload, bins=bins, edges=edges, where=where, limits=own
        )
        return self._release_ranges(query, amount, label=label)

    @overload
    def plan_ranges(
        self,
        value: Value,
        *,
        workload: WorkloadLike = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        expected_rows: int | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> RangePlan: ...

    @overload
    def plan_ranges(
        self,
        value: Values,
        *,
        workload: GridWorkloadLike = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        expected_rows: int | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> GridPlan: ...

    def plan_ranges(
        self,
        value: Value | Values,
        *,
        workload: Any = "all",
        bins: int | Mapping[str, int] | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        expected_rows: int | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> RangePlan | GridPlan:
        """Compare the strategies for `ranges` by their exact error, best first.

        Nothing is read or spent.

        Args:
            value: Column or expression, or a list of columns for every rectangle of them. Whole
                numbers, days and categories are counted value by value.
            workload: Which ranges matter: "all", "points", "short", "long", "prefixes", or pairs of
                labels; for a list of columns "all", "points" or "marginals".
            bins: Number of cells into which a real column is cut; for a list of columns, a mapping
                from columns to numbers.
            edges: Cut points of a real column, instead of `bins`.
            where: Condition that a row must meet to be used. If None, all rows are used.
            expected_rows: Guess of the number of rows, to show errors as a share of it.
            max_rows_per_unit: Contribution limit for this query, in place of the table's.
            max_groups_per_unit: Number of cells to which one privacy unit contributes.
            max_rows_per_unit_per_group: Rows of one privacy unit that are used per cell.
            epsilon: Privacy loss to plan for, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            A plan: every strategy with its error.

        Examples:
            >>> plan = people.plan_ranges("visits", epsilon=1)
            >>> len(plan.candidates) > 1
            True
        """
        own = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        amount = budget(epsilon=epsilon, delta=delta, rho=rho)
        query = range_query(
            value, workload=workload, bins=bins, edges=edges, where=where, limits=own
        )
        return self._planned_ranges(query, amount, expected_rows=expected_rows).ranked

    def budget_for_ranges(
        self,
        value: Value,
        *,
        within: Number,
        workload: WorkloadLike = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        measure: Measure = "epsilon",
        delta: Number | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
    ) -> BudgetArgs:
        """Find the smallest budget at which all ranges of a workload meet an error.

        The result follows from public facts alone. Nothing is read and nothing is charged.

        Args:
            value: Column or expression whose ranges are wanted.
            within: Margin of error that each range may have, in rows.
            workload: Which ranges matter: "all", "points", "short", "long", "prefixes", or pairs of
                labels.
            bins: Number of cells into which a real column is cut.
            edges: Cut points of a real column, instead of `bins`.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            confidence: Probability with which the error stays within the margin, between 0 and 1.
            measure: "epsilon" or "rho", the measure of the budget.
            delta: Probability parameter that goes with epsilon. With it, the noise is Gaussian
                noise.
            max_rows_per_unit: Contribution limit for this query, in place of the table's.
            max_groups_per_unit: Number of cells to which one privacy unit contributes.
            max_rows_per_unit_per_group: Rows of one privacy unit that are used per cell.

        Returns:
            The budget as keyword arguments: pass it on with `table.ranges(value, **budget)`, and
            the same workload.

        Raises:
            InvalidArgument: A column is not declared, or no reasonable budget meets the target.

        Examples:
            >>> list(people.budget_for_ranges("visits", within=100))
            ['epsilon']
        """
        limits = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where, limits=limits)
        found = range_budget_for(
            query,
            setting=self.spec,
            within=within,
            confidence=confidence,
            measure=measure,
            delta=delta,
        )
        return budget_args(found)

    def _one(
        self,
        query: Query,
        *,
        epsilon: Number | None,
        delta: Number | None,
        rho: Number | None,
        noise: NoiseName | None,
        label: str | None,
    ) -> Release:
        return self.release(
            [query], epsilon=epsilon, delta=delta, rho=rho, noise=noise, label=label
        )[0]

    def _design(
        self,
        queries: Sequence[Query],
        weights: Sequence[Number] | None,
        *,
        noise: NoiseName | None = None,
        **amount: Number | None,
    ) -> ReleasePlan:
        return plan_release(
            queries, setting=self.spec, budget=budget(**amount, noise=noise), weights=weights
        )

    def _planned_ranges(
        self, query: RangeQuery | GridQuery, amount: QueryBudget, expected_rows: int | None = None
    ) -> AnyPlannedRanges:
        if isinstance(query, GridQuery):
            return plan_grid_query(
                query, setting=self.spec, budget=amount, expected_rows=expected_rows
            )
        return planned_ranges(query, setting=self.spec, budget=amount, expected_rows=expected_rows)
