"""The one door: question + noise + ledger + data → a release.

The order is fixed. Everything public is planned and priced, the budget is reserved durably, then
the rows are read, noise is added, and the answer leaves. What fails after the reservation stays
spent.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, Unpack

from discreet.core import check
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.exact import Number
from discreet.core.relation import Relation, trusted
from discreet.data.expression import Expression
from discreet.data.plan import Limits
from discreet.data.schema import Declared, Plain, Text
from discreet.ledger.account import Account
from discreet.noise.bits import Bits, system
from discreet.queries import ask
from discreet.queries.ask import By, Keys, Method, Query, Value
from discreet.queries.budget import budget
from discreet.queries.design import Design, Setting, design, single
from discreet.queries.forecast import Forecast, forecast
from discreet.queries.targets import Currency, amount_for
from discreet.tables.opened import Amount, amount_of
from discreet.tables.ranged import Ranged
from discreet.tables.release import Release
from discreet.tables.work import Work, carry_out

_LEVEL = 0.95
Edges: TypeAlias = Iterable[Number | dt.date] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Ranged):
    """A private table with declared columns: ask it, and every answer is charged. See `table`."""

    def count(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """How many rows there are."""
        return self._one(ask.count(where=where, by=by, keys=keys), amount)

    def units(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """How many different units there are."""
        return self._one(ask.units(where=where, by=by, keys=keys), amount)

    def sum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The sum of a column or an expression."""
        return self._one(ask.sum(value, where=where, by=by, keys=keys), amount)

    def mean(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The mean over rows; half of the budget goes to their number, half to the sum."""
        return self._one(ask.mean(value, where=where, by=by, keys=keys), amount)

    def variance(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The variance over rows; a third of the budget for each of number, sum and squares."""
        return self._one(ask.variance(value, where=where, by=by, keys=keys), amount)

    def covariance(
        self,
        value: Value,
        other: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The covariance of two values over rows; a quarter of the budget for each of four sums."""
        return self._one(ask.covariance(value, other, where=where, by=by, keys=keys), amount)

    def median(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: Method | None = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The value that half of the rows do not exceed; see `quantiles`."""
        query = ask.median(value, where=where, by=by, keys=keys, bins=bins, method=method)
        return self._one(query, amount)

    def quantiles(
        self,
        value: Value,
        levels: Iterable[Number],
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        bins: int | None = None,
        method: Method | None = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """For each level q, the value that a share q of the rows does not exceed.

        ``method="tree"`` has intervals, ``"exponential"`` has not; see `ask.quantiles`.
        """
        query = ask.quantiles(
            value, levels, where=where, by=by, keys=keys, bins=bins, method=method
        )
        return self._one(query, amount)

    def histogram(
        self,
        value: Value,
        *,
        edges: Edges = None,
        where: Expression | None = None,
        keys: Keys = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The number of rows in each category, or between each two ``edges``."""
        query = ask.histogram(value, edges=edges, where=where, keys=keys)
        return self._one(query, amount)

    def forecast(
        self,
        query: Query,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        rows: int | None = None,
        level: float = _LEVEL,
    ) -> Forecast:
        """The error of an answer from public numbers alone; nothing is read or spent.

        Means and variances need ``rows``, a stated or guessed number of rows in a group.
        """
        planned = self._design([single(query)], None, epsilon=epsilon, delta=delta, rho=rho)
        return forecast(planned.questions[0], rows=rows, level=level)

    def amount_for(
        self,
        query: Query,
        *,
        within: Number,
        rows: int | None = None,
        level: float = _LEVEL,
        currency: Currency = "epsilon",
        delta: Number | None = None,
    ) -> Amount:
        """The smallest amount at which the error of an answer stays within a half-width.

        It goes where an amount is asked: ``table.release([query], **amount)``. Nothing is read or
        spent. For quantiles ``within`` is an error of rank, as a share of the rows.
        """
        found = amount_for(
            query,
            setting=self.setting,
            within=within,
            rows=rows,
            level=level,
            currency=currency,
            delta=delta,
        )
        return amount_of(found)

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
        Proof: `Budget.mechanisms` for the noise, `move_of` for the sensitivities; answers are
            post-processing of the noisy integers.
        Source: docs/theory/queries.md.
        Needs: an account; columns of the source as declared.
        """
        planned = self._design(queries, weights, epsilon=epsilon, delta=delta, rho=rho)
        return self.run(planned, label=label)

    def run(
        self,
        planned: Design,
        *,
        label: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[Release, ...]:
        """Carry out a design: reserve the cost of all of it, then read, add noise and answer."""
        return self._run(planned, label=label, bits=system(), progress=progress)

    def __repr__(self) -> str:
        unit = "each row" if self.setting.unit is None else repr(self.setting.unit)
        return (
            f"Table(columns={sorted(self.setting.schema)}, unit={unit}, "
            f"relation={self.setting.relation!r}, account={self.account!r})"
        )

    def _one(self, query: Query, amount: Amount) -> Release:
        check.known(amount, (*Amount.__annotations__, "label"))
        return self.release([query], **amount)[0]

    def _design(
        self,
        queries: Sequence[Query],
        weights: Sequence[Number] | None,
        **amount: Number | None,
    ) -> Design:
        return design(queries, setting=self.setting, budget=budget(**amount), weights=weights)

    def _run(
        self,
        planned: Design,
        *,
        label: str | None,
        bits: Bits,
        progress: Callable[[str], None] = lambda _: None,
    ) -> tuple[Release, ...]:
        """The answers to a design, with randomness that is not always the system's."""
        work = Work(design=planned)
        return carry_out(self, work, label=label, bits=bits, progress=progress)[0]


def table(  # noqa: PLR0913 - each has a name, most a default
    source: object,
    *,
    columns: Mapping[str, Declared],
    unit: str | None = None,
    rows_per_unit: int | None = None,
    groups_per_unit: int | None = None,
    rows_per_unit_and_group: int | None = None,
    account: Account | None = None,
    relation: Relation = Relation.ADD_REMOVE,
    delimiter: str = ",",
    engine: Literal["spark"] | None = None,
    spark: str | None = None,
) -> Table:
    """Open a private table: a file or folder, a PostgreSQL table, a DuckDB relation, or a frame.

    ``columns`` declares what may be asked about (`integer`, `real`, `category`, `date`,
    `boolean`); nothing is inferred from the rows. ``unit`` names the column that says whose a row
    is, and the limits say how much of one unit is used; without it each row is another unit.

    Files are CSV, Parquet or Arrow; with ``engine="spark"`` Spark reads them, in the active session
    or one on the master ``spark``. A PostgreSQL table is ``postgresql://host/db#schema.table``.
    """
    from discreet.data.source import open_source  # noqa: PLC0415 - engines are slow to import

    limits = Limits(
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        rows_per_unit_and_group=rows_per_unit_and_group,
    )
    trusted(relation)
    _check_account(account, relation)
    _check_columns(columns)
    if unit is not None and not isinstance(unit, str):
        raise InvalidArgument(f"unit must be one column's name, got {type(unit).__name__}.")
    if unit is None and limits != Limits():
        raise InvalidArgument(
            "unit must name the column that says whose a row is: limits per unit were given."
        )
    setting = Setting(schema=dict(columns), unit=unit, limits=limits, relation=relation)
    opened = open_source(source, delimiter=delimiter, engine=engine, spark=spark)
    return Table(source=opened, setting=setting, account=account)


def _check_account(account: Account | None, relation: Relation) -> None:
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


def _check_columns(columns: Mapping[str, Declared]) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidArgument(
            "columns must map names to declarations, such as {'age': discreet.integer(lower=0, "
            f"upper=120)}}; got {type(columns).__name__}."
        )
    for name, column in columns.items():
        if not isinstance(name, str):
            raise InvalidArgument(f"columns must have names of text, got {type(name).__name__}.")
        if not isinstance(column, Plain | Text):
            raise InvalidArgument(
                f"columns[{name!r}] must be declared by integer, real, category, date, boolean or "
                f"text, got {type(column).__name__}."
            )
