"""Private tables: declare the columns, query them, and every release is charged.

The order is fixed. The cost follows from public facts, the budget is reserved durably, then the
rows are read, noise is added, and the release is returned. A release that fails after the
reservation stays charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypedDict, Unpack, cast, overload

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number, rational
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.data.schema import ColumnSpec, Plain, TextColumn
from discreet.ledger.account import Account
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.mechanisms.partition_selection import Method as SelectionMethod
from discreet.noise.random_source import RandomSource, system_rng
from discreet.query import builders
from discreet.query._release_plan import ReleasePlan, TableSpec, check_query, plan_release
from discreet.query.budget import QueryBudget, budget
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
from discreet.ranges.quantile_search import (
    HierarchicalSearch,
    plan_quantile_search,
    quantile_search,
)
from discreet.ranges.table_query import RangeQuery, WorkloadLike, range_budget_for, ranges
from discreet.ranges.table_query import plan_query as planned_ranges
from discreet.tables._execute import ReleaseBatch, execute_batch
from discreet.tables._large_domain_quantiles import (
    LargeDomainQuantiles,
    release_large_domain_quantiles,
)
from discreet.tables._open_table import OpenTable
from discreet.tables.discover_keys import plan_key_discovery, release_keys
from discreet.tables.joins import join_by_unit, join_public_table
from discreet.tables.personalized_table import PersonalizedTable, open_personalized_table
from discreet.tables.range_release import (
    AnyPlannedRanges,
    AnyRangeRelease,
    ChargedGridRelease,
    ChargedRangeRelease,
)
from discreet.tables.release import Release
from discreet.tables.suggest import (
    SuggestedBounds,
    SuggestedLimits,
    suggest_bounds,
    suggest_contribution_limits,
)

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


class QueryLimits(TypedDict, total=False):
    """Limits for one question, in place of the table's."""

    max_rows_per_unit: int
    max_groups_per_unit: int
    max_rows_per_unit_per_group: int


class RangeBudget(BudgetArgs, QueryLimits, total=False):
    """What ranges may cost, and limits of their own."""


def split_range_args(given: RangeBudget) -> tuple[ContributionLimits, QueryBudget]:
    """The limits, and the amount."""
    check.check_names(given, RangeBudget.__annotations__)
    rest: dict[str, Any] = dict(given)
    own = {name: rest.pop(name) for name in QueryLimits.__annotations__ if name in rest}
    return ContributionLimits(**own), budget(**rest)


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


# ── The table ────────────────────────────────────────────────────────────────────────────────────

_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(OpenTable):
    """A private table with declared columns: every release is charged. See `table`."""

    def count(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """How many rows there are."""
        return self._one(builders.count(where=where, by=by, keys=keys), amount)

    def count_units(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """How many different units there are."""
        return self._one(builders.count_units(where=where, by=by, keys=keys), amount)

    def sum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The sum of a column or an expression."""
        return self._one(builders.sum(value, where=where, by=by, keys=keys), amount)

    def mean(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The mean over rows; half of the budget goes to their number, half to the sum."""
        return self._one(builders.mean(value, where=where, by=by, keys=keys), amount)

    def variance(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The variance over rows; a third of the budget for each of number, sum and squares."""
        return self._one(builders.variance(value, where=where, by=by, keys=keys), amount)

    def covariance(
        self,
        value: Value,
        other: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The covariance of two values over rows; a quarter of the budget for each of four sums."""
        return self._one(builders.covariance(value, other, where=where, by=by, keys=keys), amount)

    def median(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: QuantileMethod | None = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The value that half of the rows do not exceed; see `quantiles`."""
        query = builders.median(value, where=where, by=by, keys=keys, bins=bins, method=method)
        return self._one(query, amount)

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
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """For each level q, the value that a share q of the rows does not exceed.

        ``method="tree"`` has intervals, ``"exponential"`` has not; see `query.quantiles`.
        """
        query = builders.quantiles(
            value, q, where=where, by=by, keys=keys, bins=bins, method=method
        )
        return self._one(query, amount)

    def histogram(
        self,
        value: Value,
        *,
        edges: Edges = None,
        where: Expression | None = None,
        keys: Keys = None,
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The number of rows in each category, or between each two ``edges``."""
        query = builders.histogram(value, edges=edges, where=where, keys=keys)
        return self._one(query, amount)

    def forecast(
        self,
        query: Query,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        expected_rows: int | None = None,
        confidence: float = _LEVEL,
    ) -> ErrorForecast:
        """The error of an answer from public numbers alone; nothing is read or spent.

        Means and variances need ``expected_rows``, a stated or guessed number of rows in a group.
        """
        planned = self._design([check_query(query)], None, epsilon=epsilon, delta=delta, rho=rho)
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
        """The smallest amount at which the error of an answer stays within a half-width.

        It goes where an amount is asked: ``table.release([query], **amount)``. Nothing is read or
        spent. For quantiles ``within`` is an error of rank, as a share of the rows.
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

    def release(
        self,
        queries: Sequence[Query],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Sequence[Number] | None = None,
        label: str | None = None,
    ) -> tuple[Release, ...]:
        """Answer several questions with one budget, split by ``weights``, in few passes.

        Theorem: all answers together are within the budget under the table's relation, and the
            account is charged for them before a row is read.
        Proof: `Budget.mechanisms` for the noise, `sensitivity_of` for the sensitivities; answers
            are post-processing of the noisy integers.
        Source: docs/theory/queries.md.
        Needs: an account; columns of the source as declared.
        """
        planned = self._design(queries, weights, epsilon=epsilon, delta=delta, rho=rho)
        return self._release_planned(planned, label=label)

    @overload
    def ranges(
        self,
        value: Value,
        *,
        workload: WorkloadLike = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> ChargedRangeRelease: ...

    @overload
    def ranges(
        self,
        value: Values,
        *,
        workload: GridWorkloadLike = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> ChargedGridRelease: ...

    def ranges(
        self,
        value: Value | Values,
        *,
        workload: Any = "all",
        bins: int | Mapping[str, int] | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> AnyRangeRelease:
        """Answers to every range of a column, or to every rectangle of a list of columns.

        Each answer has its exact error, and all of them together have one cost. Whole numbers,
        days and categories are counted value by value; real numbers are cut into ``bins`` or at
        ``edges``. ``workload`` says which ranges matter: "all", "points", "short", "long",
        "prefixes", or pairs of labels. `plan_ranges` shows what is chosen, and why.

        For a list of columns, ``bins`` maps columns to numbers, and ``workload`` is "all", "points"
        or "marginals".

        ``max_rows_per_unit``, ``max_groups_per_unit`` (a cell is a group) and
        ``max_rows_per_unit_per_group`` are limits for this query alone, in place of the table's.
        """
        own, amount = split_range_args(more)
        query = range_query(
            value, workload=workload, bins=bins, edges=edges, where=where, limits=own
        )
        planned = self._planned_ranges(query, amount)
        return self._run_all(ReleaseBatch(ranges=(planned,)))[1][0]

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
        **more: Unpack[RangeBudget],
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
        **more: Unpack[RangeBudget],
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
        **more: Unpack[RangeBudget],
    ) -> RangePlan | GridPlan:
        """Every strategy for `ranges` with its exact error, best first; nothing is read or spent.

        ``expected_rows`` is a guess of how many there are, to show errors as a share of them.
        """
        own, amount = split_range_args(more)
        query = range_query(
            value, workload=workload, bins=bins, edges=edges, where=where, limits=own
        )
        return self._planned_ranges(query, amount, expected_rows=expected_rows).ranked

    def budget_for_ranges(  # noqa: PLR0913 - each has a name, most a default
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
        **own: Unpack[QueryLimits],
    ) -> BudgetArgs:
        """The smallest amount at which every range of the workload is within a half-width.

        It goes where an amount is asked: ``table.ranges(value, **amount)``, with the same workload.
        Nothing is read or spent.
        """
        limits = ContributionLimits(**own)
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

    def large_domain_quantiles(
        self,
        value: Value,
        q: Iterable[Number],
        *,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> LargeDomainQuantiles:
        """Quantiles of numbers or dates with up to 2**63 values, exact to the last of them.

        Unlike `quantiles` there are no bins: the data are read a few times, each time closer to the
        quantiles. All answers share one budget, and their ranks one bound that is known before.
        """
        found = self.plan_large_domain_quantiles(value, q, where=where, **more)
        return release_large_domain_quantiles(self, found, rng=system_rng())

    def plan_large_domain_quantiles(
        self,
        value: Value,
        q: Iterable[Number],
        *,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> HierarchicalSearch:
        """What `large_domain_quantiles` gives: ``rank_width`` in rows; nothing is read or spent."""
        own, amount = split_range_args(more)
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
        **amount: Unpack[BudgetArgs],
    ) -> Release:
        """The values of columns that enough units have, with noisy counts of units.

        For groups that nobody knows beforehand: columns declared as `text`, or with too many
        values. Of one unit ``max_groups_per_unit`` keys count; a key that one unit alone has is
        shown with probability at most ``delta``. Use the result as ``keys`` of other questions.

        ``epsilon`` buys Laplace noise; for many groups per unit ``method="gaussian"``, or ``rho``,
        needs less of it.
        """
        check.check_names(amount, BudgetArgs.__annotations__)
        mechanism = plan_key_discovery(
            self,
            max_groups_per_unit=max_groups_per_unit,
            minimum=minimum,
            method=method,
            amount=amount,
        )
        return release_keys(self, by=by, mechanism=mechanism, where=where, rng=system_rng())

    def join(
        self, public: object, *, on: str | Mapping[str, str], columns: Mapping[str, Plain]
    ) -> Self:
        """This table with declared columns of a public one, found by the value of ``on``.

        ``public`` is a frame or a file whose ``on`` is different in each row. No row is multiplied
        or dropped: what has no match gets the missing value of the declaration.
        """
        return join_public_table(self, public, on=on, columns=columns)

    def join_by_unit(self, other: OpenTable, *, columns: Iterable[str]) -> Self:
        """This table with columns of each unit's row in another private table.

        If a unit has several rows there, one is used; if it has none, the missing values are. Both
        tables must have the same unit, relation and account.
        """
        return join_by_unit(self, other, columns=columns)

    def with_personal_budgets(
        self,
        *,
        privacy_levels: Mapping[Any, Number | Guarantee],
        budget: str | None = None,
        personal_budgets: PersonalBudgets | None = None,
    ) -> PersonalizedTable:
        """Questions in which each person has the budget of the own level.

        ``privacy_levels`` maps levels to epsilons (or to ``zcdp`` or ``approx`` limits, all
        alike): what
        one answer may cost their people. ``budget`` names the column, a declared category, that
        holds each person's level; the account pays for the most open. Instead of it, a
        ``personal_budgets``
        of the ledger knows the level of each member, pays for each, and leaves out who cannot.
        People of levels that are not listed are left out.
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
        **amount: Unpack[BudgetArgs],
    ) -> SuggestedBounds:
        """Bounds for a column that hold about ``coverage`` of the units: charged, like any answer.

        The column need not be declared. ``outermost`` is a public range that surely holds all.
        """
        check.check_names(amount, BudgetArgs.__annotations__)
        return suggest_bounds(
            self,
            column,
            coverage=coverage,
            outermost=outermost,
            budget=budget(**amount),
            rng=system_rng(),
        )

    def suggest_contribution_limits(
        self, *, by: By = None, planned_epsilon: Number = 1, **amount: Unpack[BudgetArgs]
    ) -> SuggestedLimits:
        """How many rows (and groups of ``by``) of a unit to use: charged, like any answer.

        Balances what a limit leaves out with the noise of a count at ``planned_epsilon``.
        """
        check.check_names(amount, BudgetArgs.__annotations__)
        amounts = budget(**amount)
        return suggest_contribution_limits(
            self, by=by, planned_epsilon=planned_epsilon, budget=amounts, rng=system_rng()
        )

    def _release_planned(
        self,
        planned: ReleasePlan,
        *,
        label: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[Release, ...]:
        """Carry out a design: reserve the cost of all of it, then read, add noise and answer."""
        return self._run(planned, label=label, rng=system_rng(), progress=progress)

    def __repr__(self) -> str:
        unit = "each row" if self.spec.privacy_unit is None else repr(self.spec.privacy_unit)
        return (
            f"Table(columns={sorted(self.spec.schema)}, unit={unit}, "
            f"relation={self.spec.relation!r}, account={self.account!r})"
        )

    def _one(self, query: Query, amount: BudgetArgs) -> Release:
        check.check_names(amount, (*BudgetArgs.__annotations__, "label"))
        return self.release([query], **amount)[0]

    def _design(
        self,
        queries: Sequence[Query],
        weights: Sequence[Number] | None,
        **amount: Number | None,
    ) -> ReleasePlan:
        return plan_release(queries, setting=self.spec, budget=budget(**amount), weights=weights)

    def _run(
        self,
        planned: ReleasePlan,
        *,
        label: str | None,
        rng: RandomSource,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[Release, ...]:
        """The answers to a design, with randomness that is not always the system's."""
        work = ReleaseBatch(design=planned)
        return execute_batch(self, work, label=label, rng=rng, progress=progress)[0]

    def _planned_ranges(
        self, query: RangeQuery | GridQuery, amount: QueryBudget, expected_rows: int | None = None
    ) -> AnyPlannedRanges:
        if isinstance(query, GridQuery):
            return plan_grid_query(
                query, setting=self.spec, budget=amount, expected_rows=expected_rows
            )
        return planned_ranges(query, setting=self.spec, budget=amount, expected_rows=expected_rows)

    def _run_all(
        self,
        work: ReleaseBatch,
        *,
        label: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...]]:
        """Carry out questions and ranges that are planned: reserved together, or not at all."""
        return execute_batch(self, work, label=label, rng=system_rng(), progress=progress)


def table(  # noqa: PLR0913 - each has a name, most a default
    source: object,
    *,
    columns: Mapping[str, ColumnSpec],
    privacy_unit: str | None = None,
    max_rows_per_unit: int | None = None,
    max_groups_per_unit: int | None = None,
    max_rows_per_unit_per_group: int | None = None,
    account: Account | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    delimiter: str = ",",
    engine: Literal["spark"] | None = None,
    spark: str | None = None,
) -> Table:
    """Open a private table: a file or folder, a PostgreSQL table, a DuckDB relation, or a frame.

    ``columns`` declares what may be asked about (`integer`, `real`, `category`, `date`,
    `boolean`); nothing is inferred from the rows. ``privacy_unit`` names the column that says
    whose a row
    is, and the limits say how much of one unit is used; without it each row is another unit.

    Files are CSV, Parquet or Arrow; with ``engine="spark"`` Spark reads them, in the active session
    or one on the master ``spark``. A PostgreSQL table is ``postgresql://host/db#schema.table``.
    """
    from discreet.data.source import open_source  # noqa: PLC0415 - engines are slow to import

    limits = ContributionLimits(
        max_rows_per_unit=max_rows_per_unit,
        max_groups_per_unit=max_groups_per_unit,
        max_rows_per_unit_per_group=max_rows_per_unit_per_group,
    )
    central_relation(relation)
    _check_account(account, relation)
    _check_columns(columns)
    if privacy_unit is not None and not isinstance(privacy_unit, str):
        raise InvalidArgument(
            f"privacy_unit must be one column's name, got {type(privacy_unit).__name__}."
        )
    if privacy_unit is None and limits != ContributionLimits():
        raise InvalidArgument(
            "privacy_unit must name the column that says whose a row is: limits per unit were "
            "given."
        )
    setting = TableSpec(
        schema=dict(columns), privacy_unit=privacy_unit, limits=limits, relation=relation
    )
    opened = open_source(source, delimiter=delimiter, engine=engine, spark=spark)
    return Table(_source=opened, spec=setting, account=account)


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
