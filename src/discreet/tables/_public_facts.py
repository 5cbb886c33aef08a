"""What a release keeps of its plan for its card: declared columns, limits, events and noise.

All of it was public before a row was read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from discreet.core import events
from discreet.core.errors import Unsupported
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.data.schema import (
    EPOCH,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    Label,
    LookupColumn,
    NumericColumn,
    Schema,
    is_nullable,
    spelling_of,
)
from discreet.data.unit import unit_content, unit_period
from discreet.query._measure import TableSpec
from discreet.query._noisy_integers import distribution_content
from discreet.query._release_plan import Measurement, PlannedQuery, ReleasePlan
from discreet.query.builders import plainly

Facts = dict[str, Any]
_MOST_LEVELS = 100
"""Of more, a card tells the number."""


class LazyFacts(Mapping[str, Any]):
    """Facts that are written down when they are first asked for; most releases get no card.

    A declaration and a plan do not change: the facts are the same whenever that is. A pickle holds
    the facts themselves.
    """

    __slots__ = ("_found", "_write")

    def __init__(self, write: Callable[[], Facts]) -> None:
        self._write = write
        self._found: Facts | None = None

    def _facts(self) -> Facts:
        if self._found is None:
            self._found = self._write()
        return self._found

    def __getitem__(self, name: str) -> Any:
        return self._facts()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts())

    def __len__(self) -> int:
        return len(self._facts())

    def __repr__(self) -> str:
        return repr(self._facts())

    def __reduce__(self) -> tuple[type[Facts], tuple[Facts]]:
        return dict, (self._facts(),)


def table_facts(
    spec: TableSpec, *, columns: set[str] | None = None, limits: ContributionLimits | None = None
) -> Facts:
    """Unit, limits and columns as JSON; of ``columns`` only those, if they are known.

    ``limits`` are those of a query, if it has its own.
    """
    schema = spec.schema
    period = unit_period(spec.privacy_unit, schema)
    return {
        "unit": unit_content(spec.privacy_unit),
        **({"period": period} if period is not None else {}),
        "limits": limits_facts(limits or spec.limits),
        "columns": [
            column_facts(name, schema) for name in schema if columns is None or name in columns
        ],
    }


def limits_facts(limits: ContributionLimits) -> Facts:
    """The three limits; null where there is none."""
    return {
        "max_rows_per_unit": limits.max_rows_per_unit,
        "max_groups_per_unit": limits.max_groups_per_unit,
        "max_rows_per_unit_per_group": limits.max_rows_per_unit_per_group,
    }


def column_facts(name: str, schema: Schema) -> Facts:
    """One declared column."""
    column = schema[name]
    spelling = spelling_of(column)
    spelled: Facts = {} if spelling is None else {"spelling": spelling.content()}
    facts: Facts = {"name": name, "origin": "declared", **spelled}
    if isinstance(column, LookupColumn):
        inner = column_facts(name, {name: column.inner})
        return {**inner, "kind": "lookup", "origin": "public table", "source": column.source}
    match column:
        case NumericColumn(exponent=0):
            ends = {"lower": column.lower, "upper": column.upper}
            return {**facts, "kind": "integer", **ends, **_missing(column, 1)}
        case NumericColumn():
            step = 2.0**column.exponent
            facts |= {"lower": column.lower * step, "upper": column.upper * step}
            return {**facts, "kind": "real", "granularity": step, **_missing(column, step)}
        case CategoryColumn():
            many = len(column.categories)
            levels = {"levels": list(column.categories)} if many <= _MOST_LEVELS else {}
            return {
                **facts,
                "kind": "category",
                **levels,
                "level_count": many,
                "include_other": column.include_other,
                "missing": _label(column, column.missing),
                "unlisted": _label(column, column.unknown),
                **_required(column),
            }
        case DateColumn():
            first, last = (_date(code, column.step) for code in (column.lower, column.upper))
            day: Facts = {"kind": "date", "lower": first, "upper": last, "every": column.step}
            if not is_nullable(column):
                day["missing"] = _date(column.missing, column.step)
            return {**facts, **day, **_required(column)}
        case BooleanColumn():
            yes = {} if is_nullable(column) else {"missing": bool(column.missing)}
            return {**facts, "kind": "boolean", **yes, **_required(column)}
        case _:
            return {**facts, "kind": "text"}


def _missing(column: NumericColumn, step: float) -> Facts:
    """What stands for an unknown value, and whether such rows are left out of every query."""
    stands = {} if is_nullable(column) else {"missing": column.missing * step}
    return {**stands, "required": column.required}


def _required(column: Column) -> Facts:
    """Whether rows without a value are left out of every query; that they are not is not said."""
    return {"required": True} if column.required else {}


def _label(column: CategoryColumn, code: int) -> Label | None:
    """The category that such values are in; None if in none."""
    return column.labels[code] if code <= column.upper else None


def _date(code: int, step: str) -> str:
    start = dt.datetime(EPOCH.year, EPOCH.month, EPOCH.day)  # noqa: DTZ001 - declared in UTC
    moment = start + code * dt.timedelta(**{f"{step}s": 1})
    return moment.date().isoformat() if step == "day" else moment.isoformat()


def question_facts(spec: TableSpec, plan: ReleasePlan, question: PlannedQuery) -> Facts:
    """What the card of one answer needs."""
    query = question.query
    known = _all_columns([query.value, query.second_value, query.where, *query.by.values()])
    filtered: Facts = {} if query.where is None else {"where": plainly(query.where)}
    if query.keys is not None:
        filtered["other_keys"] = "one group" if query.include_other else "left out"
    return {
        "kind": query.kind,
        "values": [_words(one) for one in (query.value, query.second_value) if one is not None],
        "by": list(query.by),
        **filtered,
        **table_facts(spec, columns=known, limits=query.limits.over(spec.limits)),
        "measurements": [
            {"id": plan.measurements.index(one), **_measurement(one)}
            for one in question.measurements
        ],
    }


def cells_facts(
    spec: TableSpec, values: Mapping[str, Expression], *, where: Expression | None
) -> Facts:
    """What the sentences about the cells of columns need; the limits are those of ``spec``."""
    filtered: Facts = {} if where is None else {"where": plainly(where)}
    known = _all_columns([*values.values(), where])
    return {
        "kind": "cells",
        "values": list(values),
        **filtered,
        **table_facts(spec, columns=known),
    }


def _measurement(one: Measurement) -> Facts:
    try:
        noise: Facts = distribution_content(one.law)
    except Unsupported:
        noise = {"law": "choice by rank"}
    return {
        "part": one.part.name,
        "event": events.event_content(one.guarantee.event),
        "noise": noise,
        "divided_by": 2**one.shift,
        "sensitivity": {"l1": one.move.l1, "l2_squared": one.move.l2_squared},
    }


def _words(expression: Expression) -> str:
    """The name of a column, or a value in words."""
    tree = expression.tree
    return str(tree[1]) if tree is not None and tree[0] == "col" else plainly(expression)


def _all_columns(expressions: Iterable[Expression | None]) -> set[str] | None:
    """The columns of all of these; None where one does not tell."""
    known: set[str] = set()
    for one in expressions:
        used = set() if one is None else _columns(one)
        if used is None:
            return None
        known |= used
    return known


def _columns(expression: Expression) -> set[str] | None:
    """The columns of an expression; None where it does not tell."""
    tree = expression.tree
    if tree is None:
        return None
    if tree[0] == "col":
        return {str(tree[1])}
    found: set[str] = set()
    for part in tree[1:]:
        for one in part if isinstance(part, tuple | list) else (part,):
            if isinstance(one, Expression):
                inner = _columns(one)
                if inner is None:
                    return None
                found |= inner
    return found
