"""Ranks of values: public bins of a declared range, and what is measured on their counts.

An engine counts rows in each bin of each group. A tree of such counts answers all quantiles; a
choice of one bin by its rank answers one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import Relation
from discreet.data import plan as data
from discreet.data.code import Binary, Const, Divide
from discreet.data.expression import Bounded, Expression
from discreet.data.plan import Plan
from discreet.data.schema import INT64, Schema
from discreet.queries.ask import Method, Query
from discreet.queries.budget import Budget
from discreet.queries.parts import Part
from discreet.queries.passes import Pass, Setting
from discreet.queries.tree import Shape, best_shape, spread

_MOST_BINS = 1 << 16
_FINE, _ENTRIES = 1024, 1 << 20
_TAIL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """The codes ``lower .. upper`` in ``many`` bins of ``width``; the last may be shorter."""

    lower: int
    upper: int
    exponent: int
    width: int

    @property
    def many(self) -> int:
        """How many bins there are."""
        return (self.upper - self.lower) // self.width + 1


def settled(query: Query, *, setting: Setting, budget: Budget) -> Query:
    """The question with its bins, its method and its tree, all from public facts.

    By default there are 1024 bins, fewer with many groups (but at least 64). The tree's branching
    has the least variance; the method is the one with the smaller bound on the rank error.
    """
    if not query.levels:
        return query
    plain = Plan(
        schema=setting.schema,
        aggregates={"rows": data.count()},
        unit=setting.unit,
        where=query.where,
        by=query.by or None,
        keys=query.keys,
        limits=query.limits.over(setting.limits),
    )
    groups = plain.program().size
    bins = query.bins or max(64, min(_FINE, 1 << (_ENTRIES // groups).bit_length() - 1))
    query = replace(query, bins=bins)
    many = bins_of(query, setting.schema).many
    if many > _MOST_BINS:
        raise InvalidArgument(f"bins must be at most 2**16, got {bins}.")
    gaussian = budget.epsilon is None or budget.delta is not None
    shape = best_shape(many, gaussian=gaussian)
    by_tree, by_choice = _rank_errors(query, shape, plain, setting.relation, gaussian=gaussian)
    method: Method = query.method or ("tree" if by_tree <= by_choice else "exponential")
    return replace(query, method=method, branching=shape.branching)


def _rank_errors(
    query: Query, shape: Shape, plan: Plan, relation: Relation, *, gaussian: bool
) -> tuple[float, float]:
    """Bounds of the rank error by tree and by choice at epsilon 1 (or rho 1/2), for comparison."""
    reach, size = plan.reach("rows"), plan.program().size
    worst = float(max(max(q, 1 - q) for q in query.levels))
    twice = 1 if relation is Relation.ADD_REMOVE else 2
    moved = min(twice * worst * reach.rows, size * reach.rows_per_group)
    many, height = len(query.levels), shape.height
    noise = height * twice * reach.l2_squared if gaussian else 2 * (height * twice * reach.l1) ** 2
    errors = spread(shape, [float(noise)] * height, target=0.5).variance.max()
    price = 0.5 * many**0.5 if gaussian else float(many)
    by_choice = 2 * moved * price * log(shape.leaves / _TAIL)
    return float((2 * errors * log(2 * shape.leaves / _TAIL)) ** 0.5), by_choice


def bins_of(query: Query, schema: Schema) -> Bins:
    """The bins of a question whose number of bins is settled (see `settled`)."""
    if query.value is None or query.bins is None:
        raise InvalidArgument("value must name the column whose quantiles are asked.")
    value = query.value.bind(schema)
    if value.kind != "number":
        raise InvalidArgument(f"{query.kind} takes a number, {query.value!r} is none.")
    span = value.upper - value.lower + 1
    if span > INT64:
        raise Unsupported(f"{query.kind} of a range beyond 2**63 steps: clip, or use a wider grid.")
    width = -(-span // query.bins)
    return Bins(lower=value.lower, upper=value.upper, exponent=value.exponent, width=width)


def in_bins(query: Query, schema: Schema) -> Expression | None:
    """The bin of a row, for questions that need one."""
    if not query.levels or query.value is None:
        return None
    bins, inner = bins_of(query, schema), query.value

    def bind(known: Schema) -> Bounded:
        shifted = Binary("-", inner.bind(known).code, Const(bins.lower))
        code = Divide(shifted, Const(bins.width), 0)
        return Bounded(code=code, lower=0, upper=bins.many - 1, kind="number")

    return Expression(bind, text=f"bin of {inner!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(Part):
    """Counts of blocks of ``block`` bins, out of ``bins`` in each group."""

    bins: int
    block: int

    @property
    def per_group(self) -> int:
        """Entries in each group."""
        return -(-self.bins // self.block)

    def exact(self, sums: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """The private counts, group by group."""
        counts = sums[self.terms[0][1]].reshape(-1, self.bins)
        return np.add.reduceat(counts, np.arange(0, self.bins, self.block), axis=1).ravel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Part):
    """How well each of ``bins`` bins holds the ``level`` quantile of its group: a score.

    With level a / d the score of bin k is ``-max(0, d C_{k-1} - a n + 1, a n - d C_k)``: zero for
    the one bin that holds the quantile, else minus d times the distance in rank. A row adds
    ``d - a`` or ``-a`` to each ``d C_k - a n``, so a score moves by no more than these do.
    """

    bins: int
    level: Fraction

    def exact(self, sums: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Private scores: one row for each group."""
        a, d = self.level.numerator, self.level.denominator
        counts = np.cumsum(sums[self.terms[0][1]].reshape(-1, self.bins), axis=1)
        above = d * counts - a * counts[:, -1:]
        # Nothing lies below the first bin.
        before = np.concatenate([-a * counts[:, -1:], above[:, :-1]], axis=1)
        return np.asarray(-np.maximum(0, np.maximum(before + 1, -above)))


def rank_parts_of(query: Query, collected: Pass) -> tuple[Part, ...]:
    """What must be measured for quantiles, in the order that `Quantiles` reads it."""
    bins = bins_of(query, collected.setting.schema)
    terms = ((1, collected.name(data.count())),)
    if query.method == "exponential":
        return tuple(
            Ranks(
                name=f"rank of the {float(q):g} quantile",
                terms=terms,
                lower=-q.numerator,
                upper=q.denominator - q.numerator,
                bins=bins.many,
                level=q,
            )
            for q in query.levels
        )
    shape = Shape(leaves=bins.many, branching=query.branching or 2)
    return tuple(
        Blocks(
            name=f"rows in blocks of {shape.block(level)} bins",
            terms=terms,
            lower=0,
            upper=1,
            bins=bins.many,
            block=shape.block(level),
        )
        for level in range(shape.height)
    )
