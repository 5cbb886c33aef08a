"""How many values of each column are known, outside of the bounds or unknown: noisy, and paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression, col, when
from discreet.data.schema import (
    INT64,
    MISSING,
    OTHER,
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    LookupColumn,
    NumericColumn,
    Plain,
    TextColumn,
    boolean,
    category,
)
from discreet.query import builders
from discreet.query._release_plan import TableSpec
from discreet.query.builders import Query

INSIDE, BELOW, ABOVE, UNKNOWN = "inside", "below", "above", "unknown"
LISTED, NOT_LISTED = "listed", "not listed"


def quality_queries(
    spec: TableSpec, columns: Sequence[str] | None
) -> tuple[TableSpec, tuple[Query, ...]]:
    """The share of each class of values, column by column, and the table that they are asked of."""
    # Theorem: the shares are within the budget under the table's relation.
    # Proof: each is a query of its own, of rows in disjoint groups: the class of a row is a
    #   function of that row. `plan_release` prices them with the table's limits.
    # Source: docs/theory/queries.md.
    # Needs: nothing of the data.
    plain = {
        name: one.inner if isinstance(one, LookupColumn) else one
        for name, one in spec.schema.items()
        if not isinstance(one, TextColumn)
    }
    chosen = list(plain) if columns is None else list(check.as_tuple("columns", columns))
    unknown = [name for name in chosen if name not in plain]
    if not chosen or unknown:
        raise InvalidArgument(
            f"columns must be declared columns, and none of open text: {sorted(plain)}; got "
            f"{unknown}."
        )
    schema = dict(spec.schema)
    queries = []
    for name in dict.fromkeys(chosen):
        wide, classes = _classes(name, plain[name])
        held = schema[name]
        schema[name] = replace(held, inner=wide) if isinstance(held, LookupColumn) else wide
        queries.append(builders.share(by={name: classes}, name=f"quality of {name}"))
    kept = {name: schema[name] for name in dict.fromkeys(chosen)}
    return replace(spec, schema=kept), tuple(queries)


def widened(column: Plain) -> Plain:
    """A declaration by which a value beyond the bounds, or in no list, can be told."""
    match column:
        case CategoryColumn():
            return replace(category(column.categories, missing=MISSING), spelling=column.spelling)
        case BooleanColumn():
            return replace(boolean(), spelling=column.spelling)
        case DateColumn():
            return replace(column, missing=column.upper + 1, required=False)
        case NumericColumn():
            low, high = max(column.lower - 1, -INT64), min(column.upper + 1, INT64 - 1)
            return replace(column, lower=low, upper=high, missing=high + 1, required=False)


def _classes(name: str, column: Plain) -> tuple[Plain, Expression]:
    """Its wider declaration, and the class of a value."""
    value, wide = col(name), widened(column)
    match column:
        case CategoryColumn():
            return wide, value.map({OTHER: NOT_LISTED, MISSING: UNKNOWN}, default=LISTED)
        case BooleanColumn() | DateColumn():
            return wide, _known(value, INSIDE)
        case NumericColumn():
            step = Fraction(2) ** column.exponent
            inside = when(value < column.lower * step).then(BELOW)
            beyond = when(value > column.upper * step).then(ABOVE).otherwise(INSIDE)
            return wide, _known(value, inside.otherwise(beyond))


def _known(value: Expression, known: str | Expression) -> Expression:
    return when(value.is_missing()).then(UNKNOWN).otherwise(known)
