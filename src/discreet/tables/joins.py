"""Joins that multiply and drop no row: to a public table, and to a private one of the same unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.data.schema import LookupColumn, Plain, TextColumn
from discreet.ledger.account import Account
from discreet.tables._open_table import OpenTable

T = TypeVar("T", bound=OpenTable)


def join_public_table(
    table: T, public: object, *, on: str | Mapping[str, str], columns: Mapping[str, Plain]
) -> T:
    """The table with more columns, each a function of a row's own value of ``on``."""
    # Theorem: every sensitivity stays as it is.
    # Proof: the public table is fixed and its keys are different, so a row has at most one match;
    #   it is neither multiplied nor dropped, and what it gets depends on that row alone.
    # Needs: the public table is public.
    from discreet.data.public_tables import lookups  # noqa: PLC0415 - engines are slow to import

    pairs: object = {on: on} if isinstance(on, str) else on
    if not isinstance(pairs, Mapping) or len(pairs) != 1:
        raise InvalidArgument("on must be one column, or {column of the table: public column}.")
    ((source, key),) = pairs.items()
    if source not in table._source.columns:
        raise InvalidArgument(f"on={source!r} is no column of the source.")
    declared = check.as_mapping("columns", columns).values()
    if not columns or not all(isinstance(column, Plain) for column in declared):
        raise InvalidArgument(
            "columns must be declared by integer, real, category, date or boolean."
        )
    return _with(table, lookups(public, on=key, source=source, columns=columns))


def join_by_unit(table: T, other: OpenTable, *, columns: Iterable[str]) -> T:
    """The table with columns of each unit's row in another private table."""
    # Theorem: sensitivities are those of the table itself, when a neighbor differs in all that one
    #   unit has in both tables.
    # Proof: the row that is used of a unit is chosen by that unit's own rows and the key of the
    #   run, and it is attached to rows of that unit only. So another unit's rows are the same on
    #   both neighbors; those of the unit itself are limited as before, because limits come after.
    # Source: docs/theory/keys.md.
    # Needs: both tables name the same units in the same way, under one relation and one account.
    from discreet.data.execute import one_row_per_unit  # noqa: PLC0415 - engines are slow
    from discreet.data.source import JoinedSource, check_source  # noqa: PLC0415

    if not isinstance(other, type(table)):
        raise InvalidArgument(f"other must be a private table, got {type(other).__name__}.")
    unit, theirs = table.spec.privacy_unit, other.spec.privacy_unit
    if not isinstance(unit, str) or not isinstance(theirs, str):
        raise InvalidArgument(
            "join_by_unit needs two tables that both name their unit, each by one column."
        )
    if other.spec.relation is not table.spec.relation:
        raise RelationMismatch(
            f"The tables are under {table.spec.relation!r} and {other.spec.relation!r}."
        )
    if not _same(table.account, other.account):
        raise InvalidArgument("Both tables must have the same account: it pays for both.")
    names = check.as_tuple("columns", columns)
    attached = {}
    for name in names:
        column = other.spec.schema.get(name)
        if column is None or isinstance(column, TextColumn):
            raise InvalidArgument(f"column {name!r} must be declared in the other table, not open.")
        attached[name] = column
    if not names:
        raise InvalidArgument("columns must name at least one.")
    kinds = [_textual(one._source.columns.get(u)) for one, u in ((table, unit), (other, theirs))]
    if kinds[0] is not kinds[1]:
        raise InvalidArgument("The unit must be text in both sources, or whole numbers in both.")
    source = JoinedSource(source=table._source, other=other._source, unit=theirs, attached=attached)
    check_source(one_row_per_unit(source, names), other._source)
    found = {
        name: LookupColumn(
            source=unit,
            inner=column.inner if isinstance(column, LookupColumn) else column,
            textual=kinds[0],
            keys=(),
            codes=(),
        )
        for name, column in attached.items()
    }
    return replace(_with(table, found), _source=source)


def _with(table: T, found: Mapping[str, LookupColumn]) -> T:
    twice = sorted(set(found) & set(table.spec.schema))
    if twice:
        raise InvalidArgument(f"columns {twice} are declared already: give them other names.")
    schema = {**table.spec.schema, **found}
    return replace(table, spec=replace(table.spec, schema=schema))


def _same(a: Account | None, b: Account | None) -> bool:
    """Whether two accounts are one: the same chain of entries."""
    if a is None or b is None:
        return a is b
    return a is b or (a.name == b.name and a.head == b.head)


def _textual(kind: str | None) -> bool:
    return kind in ("text", "object")
