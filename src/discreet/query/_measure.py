"""What must be measured to answer a question: vectors of exact integers, and how far they move.

Every part is a whole combination of sums over the same rows: the number of rows, the sum of the
codes, and the sum of their squares. Means and variances are measured around the middle of the
declared bounds, which halves their sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import Relation, trusted
from discreet.data import plan as data
from discreet.data.expression import Bounded, Expression
from discreet.data.plan import Plan
from discreet.data.schema import Schema
from discreet.queries.ask import Kind, Query
from discreet.queries.budget import Move
from discreet.queries.passes import Pass

_LARGEST_MOVE = 1 << 30
"""Sums that move further are divided by a public power of two first: noise needs no finer grid."""
_LARGEST_VALUE = 1 << 61  # what a mechanism takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A measured vector: ``sum of factor * aggregate``, to which a row adds ``lower .. upper``."""

    name: str
    terms: tuple[tuple[int, str], ...]
    lower: int
    upper: int

    @property
    def weight(self) -> int:
        """The most that one row adds, in absolute value."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def per_group(self) -> int:
        """How many entries a group has; a row adds to one of them."""
        return 1

    def exact(self, sums: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """The private integers, from the aggregates of an engine."""
        total: Any = 0
        for factor, name in self.terms:
            column = sums[name]
            # Python integers where 64 bits might not do; which it is follows from public bounds.
            small = factor == 1 and column.dtype != object
            total = total + (column if small else column.astype(object) * factor)
        return np.asarray(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How the integers are read: public bounds (codes), grid, and powers of two taken out."""

    kind: Kind
    lower: int
    upper: int
    exponent: int
    shifts: tuple[int, ...]

    @property
    def width(self) -> int:
        """The distance of the bounds, in steps of the grid."""
        return self.upper - self.lower


def parts_of(query: Query, collected: Pass) -> tuple[Part, ...]:
    """What must be measured, in the order that `estimate` reads it."""
    schema = collected.setting.schema
    match query.kind:
        case "count":
            return (_rows(collected),)
        case "units":
            units = collected.name(data.units())
            return (Part(name="units", terms=((1, units),), lower=0, upper=1),)
        case "sum":
            value = bounds(query, schema)
            total = collected.name(data.total(_value(query)))
            return (Part(name="sum", terms=((1, total),), lower=value.lower, upper=value.upper),)
        case "mean":
            return _rows(collected), _centred(query, collected)
        case "variance":
            return _rows(collected), _centred(query, collected), _squares(query, collected)
        case "covariance":
            other = _second(query)
            product = _products(query, other, collected)
            return _rows(collected), _centred(query, collected), _centred(other, collected), product
        case "median" | "quantiles":
            raise Unsupported(f"{query.kind} is measured on bins.")


def other_parts_of(query: Query, collected: Pass) -> tuple[Part, ...] | None:
    """Other parts that would do, if they are measured anyway: a sum follows from those of a mean.

    Both parts then need at least the share that the sum would have had by itself: with a row
    adding at most w, and d in -h .. h around m / 2, ``h**2 + m**2 <= 4 w**2``, so
    ``(centred + m * rows) / 2`` has no more noise than the sum measured directly.
    """
    if query.kind != "sum":
        return None
    return _rows(collected), _centred(query, collected)


def _rows(collected: Pass) -> Part:
    return Part(name="rows", terms=((1, collected.name(data.count())),), lower=0, upper=1)


def _centred(query: Query, collected: Pass) -> Part:
    """The sum of d = 2 c - middle, which lies in -width .. width, whatever the parity."""
    value = bounds(query, collected.setting.schema)
    middle, width = value.lower + value.upper, value.upper - value.lower
    rows, total = collected.name(data.count()), collected.name(data.total(_value(query)))
    terms = (2, total), (-middle, rows)
    return Part(name="centred sum", terms=terms, lower=-width, upper=width)


def _squares(query: Query, collected: Pass) -> Part:
    """The sum of 2 d**2 - width**2, which lies in -width**2 .. width**2."""
    value, one = bounds(query, collected.setting.schema), _value(query)
    middle, width = value.lower + value.upper, value.upper - value.lower
    rows, total = collected.name(data.count()), collected.name(data.total(one))
    squares = collected.name(data.total(one, one))
    terms = (8, squares), (-8 * middle, total), (2 * middle**2 - width**2, rows)
    return Part(name="centred squares", terms=terms, lower=-(width**2), upper=width**2)


def _products(query: Query, other: Query, collected: Pass) -> Part:
    """The sum of d e, the product of both values around their middles, in -h k .. h k."""
    schema = collected.setting.schema
    a, b = bounds(query, schema), bounds(other, schema)
    h, k, m1, m2 = a.upper - a.lower, b.upper - b.lower, a.lower + a.upper, b.lower + b.upper
    x, y = _value(query), _value(other)
    rows, first, second = (
        collected.name(one) for one in (data.count(), data.total(x), data.total(y))
    )
    both = collected.name(data.total(x, y))
    terms = (4, both), (-2 * m2, first), (-2 * m1, second), (m1 * m2, rows)
    return Part(name="centred products", terms=terms, lower=-h * k, upper=h * k)


def _second(query: Query) -> Query:
    """The same question about the other value."""
    return replace(query, value=query.other)


def _value(query: Query) -> Expression:
    if query.value is None:
        raise InvalidArgument("value must name the column to be summed.")
    return query.value


def bounds(query: Query, schema: Schema) -> Bounded:
    """The range of the value that is summed."""
    value = _value(query).bind(schema)
    if value.kind not in ("number", "flag"):
        raise InvalidArgument(f"{query.kind} takes a number or a boolean, {query.value!r} is none.")
    return value


def move_of(part: Part, plan: Plan, *, relation: Relation) -> Move:
    """How far one step of the relation moves a part, over all groups together.

    Theorem: ``l1`` and ``l2_squared`` bound the distance of the part on any two neighbours.
    Proof: adding or removing a unit changes at most ``rows`` kept rows, ``rows_per_group`` in a
        group, each by at most the weight (`Reach`). To replace is to remove a vector a and add a
        vector b of that kind: ``|b - a|_1 <= |a|_1 + |b|_1``; if no entry is negative (or none is
        positive), ``|b - a|^2 <= |a|^2 + |b|^2``, else at most twice that. And each of the entries
        lies, before and after, between the extremes of one unit in one group.
    Source: docs/theory/queries.md.
    Needs: ADD_REMOVE or REPLACE_ONE; the plan's limits are enforced by the engine.
    """
    reach = plan.reach(part.terms[0][1])
    full, rest = divmod(reach.rows, reach.rows_per_group)
    squares = full * reach.rows_per_group**2 + rest**2
    if trusted(relation) is Relation.ADD_REMOVE:
        return _positive(reach.rows * part.weight, squares * part.weight**2)
    one_sign = part.lower >= 0 or part.upper <= 0
    size = plan.program().size * part.per_group
    entry = reach.rows_per_group * (max(part.upper, 0) - min(part.lower, 0))
    return _positive(
        min(2 * reach.rows * part.weight, size * entry),
        min((2 if one_sign else 4) * squares * part.weight**2, size * entry**2),
    )


def entries_of(part: Part, plan: Plan, *, relation: Relation) -> int:
    """How many entries of a part one step of the relation can change: in a group several blocks."""
    reach = plan.reach(part.terms[0][1])
    entries = min(reach.rows, reach.groups * part.per_group)
    return entries if relation is Relation.ADD_REMOVE else 2 * entries


def coarsened(move: Move, *, entries: int) -> tuple[Move, int]:
    """The move after dividing by a power of two and rounding down, and the exponent of it.

    Proof: an entry that moves by x moves by at most ``x / q + 1`` after the division by q; at most
        ``entries`` entries move. So ``l1 / q + entries`` and, by Minkowski,
        ``l2 / q + sqrt(entries)``.
    """
    shift = max(0, move.l1.bit_length() - _LARGEST_MOVE.bit_length() + 1)
    if not shift:
        return move, 0
    l1 = (move.l1 >> shift) + 1 + entries
    l2 = math.isqrt(move.l2_squared) + 1
    root = (l2 >> shift) + 1 + math.isqrt(entries) + 1
    return Move(l1=l1, l2_squared=min(root**2, l1**2)), shift


def measured(part: Part, sums: Mapping[str, NDArray[Any]], *, shift: int) -> NDArray[np.int64]:
    """The private integers of a part, clamped to what a mechanism takes.

    Clamping each entry cannot make two vectors differ more, so it needs no check of the data.
    """
    total = part.exact(sums)
    whole = total >> shift if shift else total
    clamped: NDArray[np.int64] = np.clip(whole, -_LARGEST_VALUE, _LARGEST_VALUE).astype(np.int64)
    return clamped


def _positive(l1: int, l2_squared: int) -> Move:
    """A value that cannot move at all is treated as one that moves by one."""
    return Move(l1=max(l1, 1), l2_squared=max(l2_squared, 1))
