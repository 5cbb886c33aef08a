"""Private tables: declare the columns, query them, and every release is charged.

The order is fixed. The cost follows from public facts, the budget is reserved durably, then the
rows are read, noise is added, and the release is returned. A release that fails after the
reservation stays charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from discreet.accounting.guarantee import Guarantee, pure_dp
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.data.schema import ColumnSpec, Plain, TextColumn
from discreet.data.unit import GivenUnit, checked_unit
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.marginals._plan_shares import Objective
from discreet.marginals.plan import MarginalPlan
from discreet.marginals.table_query import Columns, Tables, Weights, plan_marginals
from discreet.mechanisms.partition_selection import Method as SelectionMethod
from discreet.noise.random_source import system_rng
from discreet.query._release_plan import ReleasePlan, TableSpec, plan_release
from discreet.query.budget import NoiseName, QueryBudget, budget
from discreet.query.builders import By, Query, Value
from discreet.ranges.grid.table_query import (
    GridQuery,
)
from discreet.ranges.quantile_search import (
    HierarchicalSearch,
    plan_quantile_search,
    quantile_search,
)
from discreet.ranges.table_query import RangeQuery
from discreet.tables._execute import execute
from discreet.tables._large_domain_quantiles import (
    LargeDomainQuantiles,
    release_large_domain_quantiles,
)
from discreet.tables._open_table import OpenTable
from discreet.tables._query_methods import QueryMethods
from discreet.tables.discover_keys import plan_key_discovery, release_keys
from discreet.tables.joins import join_by_unit, join_public_table
from discreet.tables.marginals import ChargedMarginalRelease, release_marginals
from discreet.tables.personalized_table import PersonalizedTable, open_personalized_table
from discreet.tables.quality import quality_queries
from discreet.tables.range_release import (
    AnyRangeRelease,
)
from discreet.tables.release import Release
from discreet.tables.suggest import (
    SuggestedBounds,
    SuggestedLimits,
    suggest_bounds,
    suggest_contribution_limits,
)

if TYPE_CHECKING:
    from discreet.tables.check import Check

# ── The table ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(QueryMethods, OpenTable):
    """Query a private table. Each release is charged to the table's account.

    Make a table with `discreet.table`. Its methods that release results take the budget as
    `epsilon`, as `epsilon` and `delta`, or as `rho`. The examples of the methods use the table
    `people` that is opened here.

    Attributes:
        spec: Declared columns, privacy unit, contribution limits and neighboring relation.
        account: Account that pays for releases; None if the table can only forecast.

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
        >>> release = people.count(where=col("age") >= 65, epsilon=1)
        >>> low, high = release.interval(0.999999)
        >>> low <= 100 <= high
        True

    Privacy:
        Each release has the stated privacy loss for one privacy unit under the table's neighboring
        relation. The account is charged before a row is read.
    """

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
        """Release several queries with one budget, in few passes over the data.

        Queries that measure the same numbers, such as a count and a mean, share them.

        Args:
            queries: Queries, made for example by `discreet.query.mean`.
            epsilon: Privacy loss of the release, as epsilon, for all queries together.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error; with
                `epsilon` alone it is Laplace noise.
            weights: Relative share of the budget for each query. If None, all have the same share.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            One release for each query, in order.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            All releases together have the stated privacy loss for one privacy unit under the
            table's neighboring relation. The account is charged for all of them before a row is
            read.

        Examples:
            >>> from discreet import query
            >>> number, mean = people.release([query.count(), query.mean("age")], epsilon=1)
            >>> mean.query_text
            'mean of age'
        """
        # Theorem: all answers together are within the budget under the table's relation, and the
        #   account is charged for them before a row is read.
        # Proof: `Budget.mechanisms` for the noise, `sensitivity_of` for the sensitivities; answers
        #   are post-processing of the noisy integers.
        # Source: docs/theory/queries.md.
        # Needs: an account; columns of the source as declared.
        amount = budget(epsilon=epsilon, delta=delta, rho=rho, noise=noise)
        plan = plan_release(queries, setting=self.spec, budget=amount, weights=weights)
        return execute(self, plan, label=label, rng=system_rng())[0]

    def quality(
        self,
        columns: Sequence[str] | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        label: str | None = None,
    ) -> tuple[Release, ...]:
        """Estimate how many values of columns are known, clipped or unknown.

        Use it before you trust a mean: it says how much is missing, and how much is clipped.

        Args:
            columns: Names of declared columns. If None, all declared ones except open text.
            epsilon: Privacy loss of this release, as epsilon. It is for all columns together.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            label: Text for the ledger entry. If None, a description of the columns.

        Returns:
            One release for each column: the share of values that are "inside" the bounds, "below"
            or "above" them, and "unknown" (missing, unreadable, or a date outside the bounds). Of a
            category the shares are "listed", "not listed" and "unknown".

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, or the budget is not stated in one way.

        Privacy:
            All releases together have the stated privacy loss for one privacy unit under the
            table's neighboring relation. The account is charged before a row is read.

        Examples:
            >>> (ages,) = people.quality(["age"], epsilon=1)
            >>> ages.keys
            (('unknown',), ('below',), ('above',), ('inside',))

        See Also:
            [Missing data](../how-to/missing-data.md).
        """
        spec, queries = quality_queries(self.spec, columns)
        amount = budget(epsilon=epsilon, delta=delta, rho=rho)
        plan = plan_release(queries, setting=spec, budget=amount)
        return execute(replace(self, spec=spec), plan, label=label, rng=system_rng())[0]

    def check(self, *, private: bool = False) -> Check:
        """Count exactly what becomes of each value: for the owner of the data alone.

        It is free, and no release. It shows typing errors, undeclared categories, values beyond
        the bounds and rows that contribution limits leave out. Bounds or categories that are chosen
        by it are a function of the data, for which no release pays; use what you know about the
        subject, or `suggest_bounds`.

        Args:
            private: Must be True: whoever asks owns the data and shows the result to nobody.

        Returns:
            A check. Its `show()` prints it; it cannot be written, pickled or sent.

        Raises:
            InvalidArgument: `private` is not True.
            Unsupported: The rows are on a cluster, or in two joined tables.

        Privacy:
            None. This is not a release, no account is charged, and the numbers are exact.

        Examples:
            >>> people.check(private=True)
            Check(private)

        See Also:
            [Check a file](../how-to/check.md), `Table.quality`.
        """
        from discreet.tables.check import REFUSED, check_rows  # noqa: PLC0415 - engines are slow

        if private is not True:
            raise InvalidArgument(REFUSED)
        return check_rows(self._source, self.spec)

    def _release_ranges(
        self, query: RangeQuery | GridQuery, amount: QueryBudget, *, label: str | None
    ) -> AnyRangeRelease:
        plan = ReleasePlan(ranges=(self._planned_ranges(query, amount),))
        return execute(self, plan, label=label, rng=system_rng())[1][0]

    def large_domain_quantiles(
        self,
        value: Value,
        q: Iterable[Number],
        *,
        where: Expression | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> LargeDomainQuantiles:
        """Find quantiles of numbers or dates with up to 2**63 values, to the last digit.

        Unlike `quantiles` there are no bins: the data are read a few times, each time closer to the
        quantiles. All answers share one budget, and their ranks one bound that is known before.

        Args:
            value: Column or expression with at most 2**63 declared values.
            q: Levels between 0 and 1, such as `[0.25, 0.5, 0.75]`.
            where: Condition that a row must meet to be used. If None, all rows are used.
            max_rows_per_unit: Contribution limit for this query, in place of the table's.
            max_groups_per_unit: Number of cells to which one privacy unit contributes.
            max_rows_per_unit_per_group: Rows of one privacy unit that are used per cell.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            The quantiles, with the bound of their ranks.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> found = people.large_domain_quantiles("age", [0.5], epsilon=1)
            >>> 0 <= found.at(0.5) <= 120
            True
        """
        found = self.plan_large_domain_quantiles(
            value,
            q,
            where=where,
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
        )
        return release_large_domain_quantiles(self, found, rng=system_rng())

    def plan_large_domain_quantiles(
        self,
        value: Value,
        q: Iterable[Number],
        *,
        where: Expression | None = None,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_unit_per_group: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> HierarchicalSearch:
        """Forecast `large_domain_quantiles`: nothing is read or spent.

        Args:
            value: Column or expression with at most 2**63 declared values.
            q: Levels between 0 and 1, such as `[0.25, 0.5, 0.75]`.
            where: Condition that a row must meet to be used. If None, all rows are used.
            max_rows_per_unit: Contribution limit for this query, in place of the table's.
            max_groups_per_unit: Number of cells to which one privacy unit contributes.
            max_rows_per_unit_per_group: Rows of one privacy unit that are used per cell.
            epsilon: Privacy loss to plan for, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            The search, with `rank_width`: how many rows the rank of an answer may be off.

        Examples:
            >>> search = people.plan_large_domain_quantiles("age", [0.5], epsilon=1)
            >>> search.rank_width() < 100
            True
        """
        own = ContributionLimits(
            max_rows_per_unit=max_rows_per_unit,
            max_groups_per_unit=max_groups_per_unit,
            max_rows_per_unit_per_group=max_rows_per_unit_per_group,
        )
        amount = budget(epsilon=epsilon, delta=delta, rho=rho)
        query = quantile_search(value, q, where=where, limits=own)
        return plan_quantile_search(query, setting=self.spec, budget=amount)

    def discover_keys(
        self,
        by: By,
        *,
        max_groups_per_unit: int | None = None,
        where: Expression | None = None,
        minimum: int = 1,
        method: SelectionMethod | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Release:
        """Find the group keys that enough privacy units have (partition selection).

        For groups that are not known beforehand: columns declared as `text`, or with too many
        values. Use the result as `keys` of other queries.

        Args:
            by: Column, expression, or several of them, whose values are looked for.
            max_groups_per_unit: Number of keys of one privacy unit that count.
            where: Condition that a row must meet to be used. If None, all rows are used.
            minimum: Least number of units that a key must have to be of interest.
            method: "laplace" or "gaussian" noise. If None, Laplace for `epsilon`, Gaussian for
                `rho`; with many groups per unit Gaussian needs less noise.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability with which a key of one unit alone is shown. Required; keep it far
                below one over the number of people.
            rho: Privacy loss as rho of zCDP, instead of `epsilon`.

        Returns:
            A release with the keys that were found and a noisy count of units for each.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> found = people.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-6)
            >>> found.key_columns
            ('city',)
        """
        mechanism = plan_key_discovery(
            self,
            max_groups_per_unit=max_groups_per_unit,
            minimum=minimum,
            method=method,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
        )
        return release_keys(self, by=by, mechanism=mechanism, where=where, rng=system_rng())

    def plan_marginals(
        self,
        by: Tables,
        *,
        columns: Columns = None,
        where: Expression | None = None,
        objective: Objective = "orders",
        weights: Weights | None = None,
        ranges: Mapping[str, str] | None = None,
        spine: Iterable[str] | None = None,
        max_rows_per_unit: int | None = None,
        expected_rows: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> MarginalPlan:
        """Plan many tables of counts that share one budget and agree with each other.

        The error of every table follows from public facts. Nothing is read and nothing is charged.

        Args:
            by: How many columns tables have at most, for all tables of that size, such as 2; or the
                columns of each table, such as `[["age", "sex"], ["site"]]`. All subsets of these
                columns are answered, too.
            columns: Columns or expressions to make tables of; a mapping gives expressions a name.
                If None, those that `by` names, or all declared ones except open text.
            where: Condition that a row must meet to be used. If None, all rows are used.
            objective: What the noise is best for: "orders" (the mean over the cells of tables with
                the same number of columns, each number as important), "tables" (each table),
                "cells" (each cell), or "max_error" (the largest standard deviation).
            weights: Importance of single tables, such as `{("age", "sex"): 5}`. If None, each has
                the weight 1.
            ranges: Ordered columns of which every range matters, such as `{"age": "all"}`.
            spine: Levels of a hierarchy, from the top, such as `["state", "county"]`: columns of
                which each follows from the next, by `map` for example. A table has at most one of
                them, and answers those above it.
            max_rows_per_unit: Contribution limit of this release, in place of the table's.
            expected_rows: Guess of the number of rows, to show errors as a share of a mean cell.
            epsilon: Privacy loss to plan for, as epsilon. Without `delta`, the noise is Laplace
                noise.
            delta: Probability parameter of (epsilon, delta)-DP. With it, the noise is Gaussian
                noise, or Laplace noise where that is better.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            A plan with the error of each table. Pass it to `marginals`.

        Raises:
            InvalidArgument: A column is not declared or has too many values, a table is too large,
                or the budget is not stated in one way.

        Examples:
            >>> ages = {"age group": col("age").cut([30, 50]), "smokes": "smokes"}
            >>> plan = people.plan_marginals(2, columns=ages, epsilon=1, delta=1e-9)
            >>> plan.std(["smokes"]) > 0
            True

        See Also:
            `Table.marginals`.
        """
        return plan_marginals(
            by,
            setting=self.spec,
            budget=budget(epsilon=epsilon, delta=delta, rho=rho),
            chosen=columns,
            where=where,
            objective=objective,
            weights=weights,
            ranges=ranges,
            spine=spine,
            max_rows_per_unit=max_rows_per_unit,
            expected_rows=expected_rows,
        )

    def marginals(
        self,
        by: Tables | MarginalPlan,
        *,
        columns: Columns = None,
        where: Expression | None = None,
        objective: Objective = "orders",
        weights: Weights | None = None,
        ranges: Mapping[str, str] | None = None,
        spine: Iterable[str] | None = None,
        max_rows_per_unit: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        label: str | None = None,
    ) -> ChargedMarginalRelease:
        """Release many tables of counts at once, for one budget: all of them agree.

        The rows are read once. One limit on the rows of each privacy unit holds for all tables.

        Args:
            by: A plan of `plan_marginals`, which then says everything else; or what that takes.
            columns: Columns or expressions to make tables of. If None, those that `by` names, or
                all declared ones except open text.
            where: Condition that a row must meet to be used. If None, all rows are used.
            objective: What the noise is best for, as in `plan_marginals`.
            weights: Importance of single tables, such as `{("age", "sex"): 5}`.
            ranges: Ordered columns of which every range matters, such as `{"age": "all"}`.
            spine: Levels of a hierarchy, from the top, such as `["state", "county"]`: columns of
                which each follows from the next, by `map` for example. A table has at most one of
                them, and answers those above it.
            max_rows_per_unit: Contribution limit of this release, in place of the table's.
            epsilon: Privacy loss of this release, as epsilon. It is for all tables together.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            label: Text for the ledger entry. If None, a description of the tables.

        Returns:
            A release that answers every table, subset, cell and range with its standard deviation
            and interval.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column is not declared, a table is too large, a budget is given
                beside a plan, or it is not stated in one way.

        Privacy:
            All tables together have the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> ages = {"age group": col("age").cut([30, 50]), "smokes": "smokes"}
            >>> release = people.marginals(2, columns=ages, epsilon=1, delta=1e-9)
            >>> cells = release.table(["age group", "smokes"]).cells
            >>> bool(abs(cells.sum() - release.total) < 1e-6)
            True

        See Also:
            `Table.plan_marginals`.
        """
        if isinstance(by, MarginalPlan):
            given = (columns, where, weights, ranges, spine, max_rows_per_unit, epsilon, delta, rho)
            if any(one is not None for one in given) or objective != "orders":
                raise InvalidArgument(
                    "by is a plan, which says columns, tables and budget: give nothing but label."
                )
            plan = by
        else:
            plan = self.plan_marginals(
                by,
                columns=columns,
                where=where,
                objective=objective,
                weights=weights,
                ranges=ranges,
                spine=spine,
                max_rows_per_unit=max_rows_per_unit,
                epsilon=epsilon,
                delta=delta,
                rho=rho,
            )
        return release_marginals(self, plan, label=label, rng=system_rng())

    def join(
        self, public: object, *, on: str | Mapping[str, str], columns: Mapping[str, Plain]
    ) -> Self:
        """Add columns of a public table, matched by the value of a column.

        No row is multiplied or dropped. A row without a match gets the missing value of each
        declaration.

        Args:
            public: Public frame or file, in which each value of `on` occurs once.
            on: Column that both tables have, or a mapping from this table's column to the public
                one.
            columns: Declaration of each public column to add, as in `table`.

        Returns:
            A table with the additional columns. This one is unchanged.

        Raises:
            InvalidArgument: A column is missing or declared twice, or a value of `on` is repeated
                in the public table.

        Privacy:
            A row gets values that depend on that row alone, so noise and cost of queries do not
            change. The public table must not be private.

        Examples:
            >>> towns = pd.DataFrame({"town": [1, 2], "coastal": [True, False]})
            >>> homes = pd.DataFrame({"town": [1, 1, 2]})
            >>> homes = discreet.table(homes, columns={"town": discreet.integer(0, 9)})
            >>> joined = homes.join(towns, on="town", columns={"coastal": discreet.boolean()})
            >>> sorted(joined.spec.schema)
            ['coastal', 'town']

        See Also:
            `Table.join_by_unit`.
        """
        return join_public_table(self, public, on=on, columns=columns)

    def join_by_unit(self, other: OpenTable, *, columns: Iterable[str]) -> Self:
        """Add columns of each privacy unit's row in another private table.

        If a privacy unit has several rows in the other table, one of them is used. If it has none,
        the missing values of the declarations are used.

        Args:
            other: Private table with the same privacy unit, neighboring relation and account.
            columns: Names of columns that are declared in the other table.

        Returns:
            A table with the additional columns. This one is unchanged.

        Raises:
            InvalidArgument: The tables have different privacy units or accounts, or a column is not
                declared there.
            RelationMismatch: The tables have different neighboring relations.

        Privacy:
            The guarantee then covers all rows of a privacy unit in both tables together.

        Examples:
            >>> shared = {"privacy_unit": "person", "max_rows_per_unit": 1}
            >>> jobs = pd.DataFrame({"person": ["a", "b"], "hours": [20, 40]})
            >>> columns = {"hours": discreet.integer(0, 80)}
            >>> work = discreet.table(jobs, columns=columns, account=people.account, **shared)
            >>> sorted(people.join_by_unit(work, columns=["hours"]).spec.schema)
            ['age', 'city', 'hours', 'smokes', 'visits']

        See Also:
            `Table.join`.
        """
        return join_by_unit(self, other, columns=columns)

    def with_personal_budgets(
        self,
        *,
        privacy_levels: Mapping[Any, Number | Guarantee],
        budget: str | None = None,
        personal_budgets: PersonalBudgets | None = None,
    ) -> PersonalizedTable:
        """Answer queries with a privacy budget that each person chose.

        Give either `budget` or `personal_budgets`. People whose privacy level is not listed are
        excluded.

        Args:
            privacy_levels: Privacy loss of one query for the people of each level: a mapping from
                levels to epsilons, or to guarantees of one kind such as `zcdp(0.1)`.
            budget: Name of the column, declared as a category, that holds each person's level. The
                account of the table pays for the level with the largest loss.
            personal_budgets: Personal budgets of the ledger, which know the level of each member. A
                query charges the members who have enough budget left and excludes the others.

        Returns:
            A table with `count`, `sum`, `mean`, `histogram`, `release` and `by_level`.

        Raises:
            InvalidArgument: A level is not declared, or both or neither of the two sources are
                given.

        Privacy:
            Each person is protected with the privacy loss of their own level, toward all data that
            differ in this person alone. A person's level must be their own choice.

        Examples:
            >>> rows = pd.DataFrame({"level": ["strict", "open"]})
            >>> columns = {"level": discreet.category(["strict", "open"])}
            >>> members = discreet.table(rows, columns=columns)
            >>> levels = {"strict": 0.1, "open": 1}
            >>> personal = members.with_personal_budgets(privacy_levels=levels, budget="level")
            >>> personal.column
            'level'

        See Also:
            `Ledger.personal_budgets`.
        """
        return open_personalized_table(
            self, privacy_levels, budget=budget, personal_budgets=personal_budgets
        )

    def suggest_bounds(
        self,
        column: str,
        *,
        coverage: float = 0.99,
        outermost: tuple[Number, Number] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> SuggestedBounds:
        """Suggest bounds for a column from the data, for a charge.

        The column need not be declared.

        Args:
            column: Name of a numeric column of the source.
            coverage: Share of the privacy units that the bounds should hold.
            outermost: Public range that surely holds all values.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            The suggested bounds.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> bounds = people.suggest_bounds("age", outermost=(0, 200), epsilon=1)
            >>> 0 <= bounds.lower <= bounds.upper <= 256
            True
        """
        return suggest_bounds(
            self,
            column,
            coverage=coverage,
            outermost=outermost,
            budget=budget(epsilon=epsilon, delta=delta, rho=rho),
            rng=system_rng(),
        )

    def suggest_contribution_limits(
        self,
        *,
        by: By = None,
        planned_epsilon: Number = 1,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> SuggestedLimits:
        """Suggest contribution limits from the data, for a charge.

        Balances what a limit leaves out with the noise of a count at `planned_epsilon`.

        Args:
            by: Columns or expressions whose groups later queries use. If None, only rows are
                limited.
            planned_epsilon: Epsilon of the later queries.
            epsilon: Privacy loss of this release, as epsilon.
            delta: Probability parameter of (epsilon, delta)-DP. With it, Gaussian noise is used.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.

        Returns:
            The suggested limits.

        Privacy:
            The release has the stated privacy loss for one privacy unit under the table's
            neighboring relation. The account is charged before a row is read.

        Examples:
            >>> people.suggest_contribution_limits(epsilon=1).max_rows_per_unit >= 1
            True
        """
        amounts = budget(epsilon=epsilon, delta=delta, rho=rho)
        return suggest_contribution_limits(
            self, by=by, planned_epsilon=planned_epsilon, budget=amounts, rng=system_rng()
        )

    def __copy__(self) -> Self:
        """Itself: nothing of it can change."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[object, ...]]:
        """A pickle names files and ledger, and holds no row; see `discreet.table`."""
        address = None if self.account is None else self.account._address
        return _reopened, (self._source, self.spec, address)

    def __repr__(self) -> str:
        unit = "each row" if self.spec.privacy_unit is None else repr(self.spec.privacy_unit)
        return (
            f"Table(columns={sorted(self.spec.schema)}, privacy_unit={unit}, "
            f"relation={self.spec.relation!r}, account={self.account!r})"
        )


def table(
    source: object,
    *,
    columns: Mapping[str, ColumnSpec],
    privacy_unit: GivenUnit | None = None,
    max_rows_per_unit: int | None = None,
    max_groups_per_unit: int | None = None,
    max_rows_per_unit_per_group: int | None = None,
    account: Account | None = None,
    budget: Guarantee | Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    delimiter: str = ",",
    records: Literal["lines", "quoted"] = "lines",
    engine: Literal["spark"] | None = None,
    spark: str | None = None,
) -> Table:
    """Open a private table that answers queries with differential privacy.

    Opening a table checks the source and charges nothing. A file that could fail later, for example
    a damaged one, is refused here. Queries read rows after the account has been charged. If a file
    changes, open it again.

    A table over files can be pickled, for example for another process. The pickle names the files
    and the file of the ledger, and holds no row. Other tables refuse.

    Args:
        source: Path of a CSV, Parquet or Arrow file, or of a folder of such files; a pandas,
            Polars, PyArrow or Ibis table; a DuckDB relation; a Spark data frame; or a PostgreSQL
            address such as `postgresql://host/db#schema.table`.
        columns: Declaration of each column that queries may use, made with `integer`, `real`,
            `category`, `date`, `boolean` or `text`. Nothing is inferred from the data.
        privacy_unit: Name of the column that identifies the privacy unit, for example a person. All
            rows with the same value are protected together. A list such as
            `["person", col("day")]` protects each person on each day: all rows that agree in all
            parts. Parts are names of columns, and expressions that are dates, categories or truth
            values. If None, each row is its own privacy unit.
        max_rows_per_unit: Contribution limit: number of rows of one privacy unit that are used. A
            fresh random key decides which rows are dropped. Required with `privacy_unit`, unless
            other limits bound the rows.
        max_groups_per_unit: Contribution limit: number of groups to which one privacy unit
            contributes. If None, all groups of the rows that are used.
        max_rows_per_unit_per_group: Contribution limit: number of rows of one privacy unit that are
            used in each group.
        account: Account of a ledger that pays for queries. A table without an account or a budget
            can forecast errors, but not release results.
        budget: Privacy budget for a first look, instead of `account`: a guarantee such as
            `approx_dp(1, 1e-6)`, or a number, which is an epsilon. It opens an account in the
            memory of this process, which forgets what was spent when the process ends. Use
            `account` for data that you query again.
        relation: Neighboring relation of the guarantee. `ADD_REMOVE` hides whether a privacy unit
            is in the data. `REPLACE_ONE` hides its values and treats the number of privacy units as
            public.
        delimiter: Field separator of CSV files, one character.
        records: How CSV files are read. With "lines" each line is a record, and a malformed line is
            a record without values that belongs to no privacy unit. With "quoted" fields may hold
            line breaks, and a file that does not follow RFC 4180 is refused.
        engine: "spark" to read files with Spark. If None, DuckDB reads them.
        spark: Address of the Spark master, if there is no active session. Only with
            `engine="spark"`.

    Returns:
        A table. Its methods, such as `Table.count` and `Table.mean`, each return a `Release`.

    Raises:
        InvalidArgument: The source cannot be read, or a declaration, limit or budget is not valid.
        RelationMismatch: The account or budget has another neighboring relation.

    Privacy:
        Opening a table releases nothing and charges nothing.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"person": ["a", "a", "b"], "age": [23, 23, 67]})
        >>> people = discreet.table(
        ...     rows,
        ...     privacy_unit="person",
        ...     max_rows_per_unit=2,
        ...     columns={"age": discreet.integer(0, 120)},
        ...     budget=1,
        ... )
        >>> people.forecast(discreet.query.count_units(), epsilon=0.5).width
        6.0
        >>> people.count_units(epsilon=0.5).receipt.durable
        False

    See Also:
        `Ledger`, `integer`, `category`, `col`.
    """
    from discreet.data.source import (  # noqa: PLC0415 - engines are slow to import
        check_names,
        open_source,
    )

    limits = ContributionLimits(
        max_rows_per_unit=max_rows_per_unit,
        max_groups_per_unit=max_groups_per_unit,
        max_rows_per_unit_per_group=max_rows_per_unit_per_group,
    )
    central_relation(relation)
    if budget is not None:
        account = _account_in_memory(budget, account=account, relation=relation)
    _check_account(account, relation)
    _check_columns(columns)
    unit = checked_unit(privacy_unit, columns)
    if unit is None and limits != ContributionLimits():
        raise InvalidArgument(
            "privacy_unit must name the column that says whose a row is: limits per unit were "
            "given."
        )
    setting = TableSpec(schema=dict(columns), privacy_unit=unit, limits=limits, relation=relation)
    opened = open_source(source, delimiter=delimiter, records=records, engine=engine, spark=spark)
    check_names(setting.schema, unit, opened)
    return Table(_source=opened, spec=setting, account=account)


def _reopened(source: Any, spec: TableSpec, address: tuple[Any, Any] | None) -> Table:
    return Table(_source=source, spec=spec, account=None if address is None else Account(*address))


def _account_in_memory(
    budget: Guarantee | Number, *, account: Account | None, relation: NeighboringRelation
) -> Account:
    """An account for one table and one process; its repr and its receipts say so."""
    if account is not None:
        raise InvalidArgument(
            "Give account, which pays from a ledger, or budget, for an account in memory; not both."
        )
    limit = (
        budget
        if isinstance(budget, Guarantee)
        else pure_dp(check.positive("budget", budget), relation=relation)
    )
    return Ledger().account("one table", limit=limit)


def _check_account(account: Account | None, relation: NeighboringRelation) -> None:
    if account is None:
        return
    if not isinstance(account, Account):
        raise InvalidArgument(
            "account must come from a ledger: discreet.Ledger(...).account(name, limit=...); got "
            f"{type(account).__name__}."
        )
    if account.relation is not relation:
        raise RelationMismatch(
            f"The table is under {relation!r}, its account under {account.relation!r}."
        )


def _check_columns(columns: Mapping[str, ColumnSpec]) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidArgument(
            "columns must map names to declarations, such as {'age': discreet.integer(lower=0, "
            f"upper=120)}}; got {type(columns).__name__}."
        )
    for name, column in columns.items():
        if not isinstance(name, str):
            raise InvalidArgument(f"columns must have names of text, got {type(name).__name__}.")
        if not isinstance(column, Plain | TextColumn):
            raise InvalidArgument(
                f"columns[{name!r}] must be declared by integer, real, category, date, boolean or "
                f"text, got {type(column).__name__}."
            )
