"""What is measured to answer queries: scans of the data, vectors of integers, and shares.

Queries about the same rows and groups share a scan, and vectors that they have in common are
measured once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import log
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.data import program as data
from discreet.data.expression import BoundedCode, Expression, cells_of_width
from discreet.data.program import AggregateSpec, ContributionLimits, Program, compile_program
from discreet.data.schema import INT64, Schema
from discreet.data.unit import Unit
from discreet.query._quantile_tree import QuantileTree, best_shape, spread
from discreet.query.budget import BudgetChange, QueryBudget
from discreet.query.builders import Method, Query

# ── Scans of the data ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What is declared about a table: columns, whose a row is, limits, who is protected."""

    schema: Schema
    privacy_unit: Unit | None = None
    limits: ContributionLimits = field(default_factory=ContributionLimits)
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE


class DataScan:
    """A scan for queries about the same rows and groups; equal aggregates are computed once."""

    def __init__(self, place: int, setting: TableSpec, query: Query) -> None:
        self.place = place
        self.setting = setting
        self._query = query
        self._names: dict[object, str] = {}
        self._aggregates: dict[str, AggregateSpec] = {}

    def name(self, aggregate: AggregateSpec) -> str:
        """The name under which the engine will return this aggregate."""
        codes = tuple([one.bind(self.setting.schema).code for one in aggregate.factors])
        key = (aggregate.kind, codes)
        name = self._names.setdefault(key, f"{aggregate.kind} {len(self._names)}")
        self._aggregates.setdefault(name, aggregate)
        return name

    def compiled(self) -> Program:
        """What the engine is asked, once all its aggregates are known."""
        return compile_query(self._query, self._aggregates, setting=self.setting)


def compile_query(
    query: Query, aggregates: Mapping[str, AggregateSpec], *, setting: TableSpec
) -> Program:
    """What the engine is asked about the rows and groups of a query."""
    return compile_program(
        schema=setting.schema,
        aggregates=aggregates,
        unit=setting.privacy_unit,
        where=query.where,
        by=query.by or None,
        keys=query.keys,
        limits=query.limits.over(setting.limits),
        bins=in_bins(query, setting.schema),
        other=query.include_other,
        complete=_complete(query),
    )


def _complete(query: Query) -> tuple[Expression, ...]:
    """The values of which a query takes the rows where they are known."""
    return tuple([one for one in (query.value, query.second_value) if one is not None])


def data_scans(queries: Sequence[Query], setting: TableSpec) -> list[DataScan]:
    """The scan of each query; queries about the same rows, groups and bins have the same one.

    Two columns with unknown values are known in different rows, unless both are required.
    """
    schema = setting.schema
    scans: dict[object, DataScan] = {}
    implied = {None, *[one.known for one in data.required_columns(schema)]}
    found = []
    for query in queries:
        bins = in_bins(query, schema)
        rows = (
            None if query.where is None else query.where.bind(schema).code,
            tuple([(name, one.bind(schema)) for name, one in query.by.items()]),
            query.keys,
            query.include_other,
            None if bins is None else bins.bind(schema),
            query.limits.over(setting.limits),
            frozenset([one.bind(schema).known for one in _complete(query)]) - implied,
        )
        found.append(scans.setdefault(rows, DataScan(len(scans), setting, query)))
    return found


# ── Measured vectors and their sensitivity ───────────────────────────────────────────────────────
# Every part is a whole combination of sums over the same rows: the number of rows, the sum of the
# codes, and the sum of their squares. Means and variances are measured around the middle of the
# declared bounds, which halves their sensitivity.


_LARGEST_MOVE = 1 << 30
"""Sums that move further are divided by a public power of two first: noise needs no finer grid."""
_LARGEST_VALUE = 1 << 61  # what a mechanism takes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredVector:
    """A measured vector: ``sum of factor * aggregate``, to which a row adds ``lower .. upper``."""

    place: int
    """The number of the scan that collects it."""
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


def measured_vectors(query: Query, collected: DataScan) -> tuple[MeasuredVector, ...]:
    """What must be measured, in the order in which the estimator reads it."""
    schema = collected.setting.schema
    match query.kind:
        case "count":
            return (_rows(collected),)
        case "units":
            units = collected.name(data.units())
            terms = ((1, units),)
            return (
                MeasuredVector(place=collected.place, name="units", terms=terms, lower=0, upper=1),
            )
        case "sum":
            value = bounds(query, schema)
            total = collected.name(data.total(_value(query)))
            return (
                MeasuredVector(
                    place=collected.place,
                    name="sum",
                    terms=((1, total),),
                    lower=value.lower,
                    upper=value.upper,
                ),
            )
        case "mean":
            return _rows(collected), _centered(query, collected)
        case "variance":
            return _rows(collected), _centered(query, collected), _squares(query, collected)
        case "covariance":
            other = _second(query)
            product = _products(query, other, collected)
            return (
                _rows(collected),
                _centered(query, collected),
                _centered(other, collected),
                product,
            )
        case _:
            raise Unsupported(f"{query.kind} has vectors of its own.")


def alternative_vectors(query: Query, collected: DataScan) -> tuple[MeasuredVector, ...] | None:
    """Other parts that would do, if they are measured anyway: a sum follows from those of a mean.

    Both parts then need at least the share that the sum would have had by itself: with a row
    adding at most w, and d in -h .. h around m / 2, ``h**2 + m**2 <= 4 w**2``, so
    ``(centered + m * rows) / 2`` has no more noise than the sum measured directly.
    """
    if query.kind != "sum":
        return None
    return _rows(collected), _centered(query, collected)


def _rows(collected: DataScan) -> MeasuredVector:
    terms = ((1, collected.name(data.count())),)
    return MeasuredVector(place=collected.place, name="rows", terms=terms, lower=0, upper=1)


# The names of vectors are part of release files and keep the spelling of version 0.1.


def _centered(query: Query, collected: DataScan) -> MeasuredVector:
    """The sum of d = 2 c - middle, which lies in -width .. width, whatever the parity."""
    value = bounds(query, collected.setting.schema)
    middle, width = value.lower + value.upper, value.upper - value.lower
    rows, total = collected.name(data.count()), collected.name(data.total(_value(query)))
    terms = (2, total), (-middle, rows)
    return MeasuredVector(
        place=collected.place, name="centred sum", terms=terms, lower=-width, upper=width
    )


def _squares(query: Query, collected: DataScan) -> MeasuredVector:
    """The sum of 2 d**2 - width**2, which lies in -width**2 .. width**2."""
    value, one = bounds(query, collected.setting.schema), _value(query)
    middle, width = value.lower + value.upper, value.upper - value.lower
    rows, total = collected.name(data.count()), collected.name(data.total(one))
    squares = collected.name(data.total(one, one))
    terms = (8, squares), (-8 * middle, total), (2 * middle**2 - width**2, rows)
    return MeasuredVector(
        place=collected.place,
        name="centred squares",
        terms=terms,
        lower=-(width**2),
        upper=width**2,
    )


def _products(query: Query, other: Query, collected: DataScan) -> MeasuredVector:
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
    return MeasuredVector(
        place=collected.place, name="centred products", terms=terms, lower=-h * k, upper=h * k
    )


def _second(query: Query) -> Query:
    """The same question about the other value."""
    return replace(query, value=query.second_value)


def _value(query: Query) -> Expression:
    if query.value is None:
        raise InvalidArgument("value must name the column to be summed.")
    return query.value


def bounds(query: Query, schema: Schema) -> BoundedCode:
    """The range of the value that is summed."""
    value = _value(query).bind(schema)
    if value.kind not in ("number", "flag"):
        raise InvalidArgument(f"{query.kind} takes a number or a boolean, {query.value!r} is none.")
    return value


def sensitivity_of(
    part: MeasuredVector, plan: Program, *, relation: NeighboringRelation
) -> BudgetChange:
    """How far one step of the relation moves a part, over all groups together."""
    # Theorem: `l1` and `l2_squared` bound the distance of the part on any two neighbors.
    # Proof: adding or removing a unit changes at most `rows` kept rows, `rows_per_group` in a
    #   group, each by at most the weight (`ContributionBound`). To replace is to remove a vector a
    #   and add a
    #   vector b of that kind: `|b - a|_1 <= |a|_1 + |b|_1`; if no entry is negative (or none is
    #   positive), `|b - a|^2 <= |a|^2 + |b|^2`, else at most twice that. And each of the entries
    #   lies, before and after, between the extremes of one unit in one group.
    # Source: docs/theory/queries.md.
    # Needs: ADD_REMOVE or REPLACE_ONE; the plan's limits are enforced by the engine.
    reach, weight = plan.reach(part.terms[0][1]), part.weight
    full, rest = divmod(reach.rows, reach.rows_per_group)
    squares = full * reach.rows_per_group**2 + rest**2
    if central_relation(relation) is NeighboringRelation.ADD_REMOVE:
        return _positive(reach.rows * weight, squares * weight**2)
    one_sign = part.lower >= 0 or part.upper <= 0
    size = plan.size * part.per_group
    entry = reach.rows_per_group * (max(part.upper, 0) - min(part.lower, 0))
    return _positive(
        min(2 * reach.rows * weight, size * entry),
        min((2 if one_sign else 4) * squares * weight**2, size * entry**2),
    )


def entries_of(part: MeasuredVector, plan: Program, *, relation: NeighboringRelation) -> int:
    """How many entries of a part one step of the relation can change: in a group several blocks."""
    reach = plan.reach(part.terms[0][1])
    entries = min(reach.rows, reach.groups * part.per_group)
    return entries if relation is NeighboringRelation.ADD_REMOVE else 2 * entries


def coarsen_sensitivity(move: BudgetChange, *, entries: int) -> tuple[BudgetChange, int]:
    """The move after dividing by a power of two and rounding down, and the exponent of it."""
    # Proof: an entry that moves by x moves by at most `x / q + 1` after the division by q; at most
    #   `entries` entries move. So `l1 / q + entries` and, by Minkowski,
    #   `l2 / q + sqrt(entries)`.
    shift = max(0, move.l1.bit_length() - _LARGEST_MOVE.bit_length() + 1)
    if not shift:
        return move, 0
    l1 = (move.l1 >> shift) + 1 + entries
    l2 = math.isqrt(move.l2_squared) + 1
    root = (l2 >> shift) + 1 + math.isqrt(entries) + 1
    return BudgetChange(l1=l1, l2_squared=min(root**2, l1**2)), shift


def measure(
    part: MeasuredVector, sums: Mapping[str, NDArray[Any]], *, shift: int
) -> NDArray[np.int64]:
    """The private integers of a part, clamped to what a mechanism takes.

    Clamping each entry cannot make two vectors differ more, so it needs no check of the data.
    """
    total = part.exact(sums)
    whole = total >> shift if shift else total
    clamped: NDArray[np.int64] = np.clip(whole, -_LARGEST_VALUE, _LARGEST_VALUE).astype(np.int64)
    return clamped


def _positive(l1: int, l2_squared: int) -> BudgetChange:
    """A value that cannot move at all is treated as one that moves by one."""
    return BudgetChange(l1=max(l1, 1), l2_squared=max(l2_squared, 1))


# ── Bins for quantiles ───────────────────────────────────────────────────────────────────────────
# An engine counts rows in each bin of each group. A tree of such counts answers all quantiles; a
# choice of one bin by its rank answers one.


_MOST_BINS = 1 << 16
_FINE, _ENTRIES = 1024, 1 << 20
_TAIL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBins:
    """The codes ``lower .. upper`` in ``many`` bins of ``width``; the last may be shorter."""

    lower: int
    upper: int
    exponent: int
    width: int

    @property
    def many(self) -> int:
        """How many bins there are."""
        return (self.upper - self.lower) // self.width + 1


def settle_quantiles(query: Query, *, setting: TableSpec, budget: QueryBudget) -> Query:
    """The question with its bins, its method and its tree, all from public facts.

    By default there are 1024 bins, fewer with many groups (but at least 64). The tree's branching
    has the least variance; the method is the one with the smaller bound on the rank error.
    """
    if not query.q:
        return query
    plain = compile_program(
        schema=setting.schema,
        aggregates={"rows": data.count()},
        unit=setting.privacy_unit,
        where=query.where,
        by=query.by or None,
        keys=query.keys,
        limits=query.limits.over(setting.limits),
    )
    groups = plain.size
    bins = query.bins or max(64, min(_FINE, 1 << (_ENTRIES // groups).bit_length() - 1))
    query = replace(query, bins=bins)
    many = bins_of(query, setting.schema).many
    if many > _MOST_BINS:
        raise InvalidArgument(f"bins must be at most 2**16, got {bins}.")
    shape = best_shape(many, gaussian=budget.gaussian)
    by_tree, by_choice = _rank_errors(
        query, shape, plain, setting.relation, gaussian=budget.gaussian
    )
    method: Method = query.method or ("tree" if by_tree <= by_choice else "exponential")
    return replace(query, method=method, branching=shape.branching)


def _rank_errors(
    query: Query,
    shape: QuantileTree,
    plan: Program,
    relation: NeighboringRelation,
    *,
    gaussian: bool,
) -> tuple[float, float]:
    """Bounds of the rank error by tree and by choice at epsilon 1 (or rho 1/2), for comparison."""
    reach, size = plan.reach("rows"), plan.size
    worst = float(max(max(q, 1 - q) for q in query.q))
    twice = 1 if relation is NeighboringRelation.ADD_REMOVE else 2
    moved = min(twice * worst * reach.rows, size * reach.rows_per_group)
    many, height = len(query.q), shape.height
    noise = height * twice * reach.l2_squared if gaussian else 2 * (height * twice * reach.l1) ** 2
    errors = spread(shape, [float(noise)] * height, target=0.5).variance.max()
    price = 0.5 * many**0.5 if gaussian else float(many)
    by_choice = 2 * moved * price * log(shape.leaves / _TAIL)
    return float((2 * errors * log(2 * shape.leaves / _TAIL)) ** 0.5), by_choice


def bins_of(query: Query, schema: Schema) -> CodeBins:
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
    return CodeBins(lower=value.lower, upper=value.upper, exponent=value.exponent, width=width)


def in_bins(query: Query, schema: Schema) -> Expression | None:
    """The bin of a row, for questions that need one."""
    if not query.q or query.value is None:
        return None
    bins = bins_of(query, schema)
    return cells_of_width(query.value, lower=bins.lower, width=bins.width, many=bins.many)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCounts(MeasuredVector):
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
class Ranks(MeasuredVector):
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


def rank_parts_of(query: Query, collected: DataScan) -> tuple[MeasuredVector, ...]:
    """What must be measured for quantiles, in the order that `Quantiles` reads it."""
    bins = bins_of(query, collected.setting.schema)
    terms = ((1, collected.name(data.count())),)
    if query.method == "exponential":
        return tuple(
            Ranks(
                place=collected.place,
                name=f"rank of the {number(q)} quantile",
                terms=terms,
                lower=-q.numerator,
                upper=q.denominator - q.numerator,
                bins=bins.many,
                level=q,
            )
            for q in query.q
        )
    shape = QuantileTree(leaves=bins.many, branching=query.branching or 2)
    return tuple(
        BlockCounts(
            place=collected.place,
            name=f"rows in blocks of {shape.block(level)} bins",
            terms=terms,
            lower=0,
            upper=1,
            bins=bins.many,
            block=shape.block(level),
        )
        for level in range(shape.height)
    )


# ── Shares of the budget ─────────────────────────────────────────────────────────────────────────


P = TypeVar("P", bound=Hashable)


Claim: TypeAlias = tuple[Fraction, Mapping[P, Fraction]]
"""A question's portion of the budget, and the least that each of its parts must get."""


def share_budget(claims: Sequence[Claim[P]]) -> dict[P, Fraction] | None:
    """The share of each part, or None if the claims cannot all be met."""
    # Theorem: the shares sum to the portions; each part gets at least what any of its questions
    #   claims for it. If each claims `portion / number of its parts` this is always possible, and
    #   then no question gets more noise than it would alone.
    # Proof: in a component of questions that share parts, shares are `max(least, factor * largest
    #   portion)` with the factor for which they sum to the component's portions; it exists iff the
    #   least claims sum to no more than that. The largest claim for each part is a claim of one
    #   question, and the claims of a question sum to its portion.
    # Source: docs/theory/queries.md.
    # Needs: positive portions.
    found: dict[P, Fraction] = {}
    for component in _components(claims):
        whole = Fraction(0)
        wanted: dict[P, Fraction] = {}
        least: dict[P, Fraction] = {}
        for portion, leasts in component:
            whole += portion
            for part, own in leasts.items():
                wanted[part] = max(wanted.get(part, portion), portion)
                least[part] = max(least.get(part, own), own)
        if sum(least.values()) > whole:
            return None
        found.update(_filled(whole, wanted, least))
    return found


def _filled(
    whole: Fraction, wanted: dict[P, Fraction], least: dict[P, Fraction]
) -> dict[P, Fraction]:
    """Shares in proportion to ``wanted``, raised to ``least`` where they would fall below."""
    raised: dict[P, Fraction] = {}
    while True:
        free = {part: want for part, want in wanted.items() if part not in raised}
        left = whole - sum(raised.values(), start=Fraction(0))
        factor = left / sum(free.values(), start=Fraction(0)) if free else Fraction(0)
        short = [part for part, want in free.items() if factor * want < least[part]]
        if not short:
            return raised | {part: factor * want for part, want in free.items()}
        raised |= {part: least[part] for part in short}


def _components(claims: Sequence[Claim[P]]) -> list[list[Claim[P]]]:
    """Claims that are linked by common parts, directly or through others."""
    if len(claims) == 1:  # as most often
        return [list(claims)]
    groups: list[tuple[set[P], list[Claim[P]]]] = []
    for claim in claims:
        parts = set(claim[1])
        linked = [group for group in groups if group[0] & parts]
        groups = [group for group in groups if not group[0] & parts]
        members = [member for group in linked for member in group[1]]
        groups.append((parts.union(*(group[0] for group in linked)), [*members, claim]))
    return [members for _, members in groups]
