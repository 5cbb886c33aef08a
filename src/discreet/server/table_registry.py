"""The tables of a service: declared, priced, and opened once in each process."""

from __future__ import annotations

import threading
from typing import Any, Literal, cast

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.relation import NeighboringRelation
from discreet.data import schema
from discreet.data.schema import ColumnSpec
from discreet.data.source import is_changed
from discreet.data.unit import unit_content
from discreet.ledger._limit_words import limit_measure, limit_words
from discreet.ledger.account import Account
from discreet.server.config import TableConfig
from discreet.server.schemas import BudgetInfo, ColumnInfo, TableInfo
from discreet.spec.budget_arithmetic import limit_amount
from discreet.spec.table import column_granularity, column_value
from discreet.tables.release import describe_protection
from discreet.tables.table import Table, table


class TableOpener:
    """Opens the source of each table once, and again when its file changed; threads share it."""

    def __init__(self) -> None:
        self._sources: dict[str, Any] = {}
        self._turn = threading.Lock()

    def open(self, config: TableConfig, account: Account) -> Table:
        """The table, charged to an account. Its rows are not read."""
        with self._turn:
            source = self._sources.get(config.name)
            if source is None or is_changed(source):
                made = _opened(config, account)
                self._sources[config.name] = made._source  # noqa: SLF001 - kept for the next account
                return made
        return Table(_source=source, spec=config.setting, account=account)


def _opened(config: TableConfig, account: Account) -> Table:
    setting = config.setting
    return table(
        config.source,
        columns=setting.schema,
        privacy_unit=setting.privacy_unit,
        max_rows_per_unit=setting.limits.max_rows_per_unit,
        max_groups_per_unit=setting.limits.max_groups_per_unit,
        max_rows_per_unit_per_group=setting.limits.max_rows_per_unit_per_group,
        account=account,
        relation=setting.relation,
        delimiter=config.delimiter,
        records=config.records,
        engine=config.engine,
        spark=config.spark,
    )


def table_info(config: TableConfig, *, own: BudgetInfo | None, whole: BudgetInfo) -> TableInfo:
    """What is declared about a table, and what is left."""
    limits = config.setting.limits
    names = {
        NeighboringRelation.ADD_REMOVE: "add_remove",
        NeighboringRelation.REPLACE_ONE: "replace_one",
    }
    return TableInfo(
        name=config.name,
        title=config.title,
        description=config.description,
        unit=unit_content(config.setting.privacy_unit),
        relation=cast("Literal['add_remove', 'replace_one']", names[config.setting.relation]),
        protects=describe_protection(config.setting),
        rows_per_unit=limits.max_rows_per_unit,
        groups_per_unit=limits.max_groups_per_unit,
        rows_per_unit_and_group=limits.max_rows_per_unit_per_group,
        rows=config.expected_rows,
        columns=tuple(_column(name, one) for name, one in config.setting.schema.items()),
        budget=own,
        table_budget=whole,
    )


def budget_info(name: str, limit: Guarantee, remaining: float) -> BudgetInfo:
    """A limit and what is left of it."""
    delta = None
    match limit.event:
        case events.ApproxEvent(_, failure) if failure:
            delta = float(failure)
    return BudgetInfo(
        account=name,
        currency=limit_measure(limit),
        limit=limit_amount(limit),
        remaining=remaining,
        delta=delta,
        limit_words=limit_words(limit),
    )


def _column(name: str, column: ColumnSpec) -> ColumnInfo:
    unknown = not isinstance(column, schema.TextColumn) and schema.is_nullable(column)
    match column:
        case schema.NumericColumn():
            step = column_granularity(column)
            return ColumnInfo(
                name=name,
                kind="integer" if step is None else "real",
                lower=column_value(column, column.lower),
                upper=column_value(column, column.upper),
                missing=None if unknown else column_value(column, column.missing),
                required=column.required,
                step=step,
            )
        case schema.CategoryColumn():
            return ColumnInfo(
                name=name,
                kind="category",
                levels=cast("tuple[str | int, ...]", column.labels),
                missing=cast("str | int", [*column.labels, schema.EXCLUDE][column.missing]),
                required=column.required,
            )
        case schema.DateColumn(lower=low, upper=high, missing=gap, step=step):
            first, last, none = (str(schema.date_label(x, step=step)) for x in (low, high, gap))
            return ColumnInfo(
                name=name,
                kind="date",
                lower=first,
                upper=last,
                missing=None if unknown else none,
                required=column.required,
                step=step,
            )
        case schema.BooleanColumn(missing=gap):
            return ColumnInfo(
                name=name,
                kind="boolean",
                missing=None if unknown else bool(gap),
                required=column.required,
            )
        case schema.TextColumn():
            return ColumnInfo(name=name, kind="text")
        case schema.LookupColumn(inner=inner):
            return _column(name, inner)
