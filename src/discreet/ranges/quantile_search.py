"""Quantiles on huge domains: counts along the way down, never of all cells (F39).

Level by level the blocks that hold the quantiles are cut into a few children. What is counted on a
level is one histogram of the whole domain, fine where the quantiles are and coarse elsewhere: of
``2**62`` values a few dozen cells are looked at on each of some ten levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.data._integer_ops import OPEN, BoundedCode
from discreet.data.expression import Expression, cells_between
from discreet.data.program import ContributionLimits, Program
from discreet.data.schema import INT64, Label
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource
from discreet.query._measure import TableSpec
from discreet.query.budget import Noise, QueryBudget
from discreet.query.builders import Value, as_expression, plainly, quantiles
from discreet.ranges import _noise_tails as tails
from discreet.ranges._strategy_design import noise_distribution
from discreet.ranges.strategies.base import Contribution, group_move
from discreet.ranges.table_query import contribution_of, count_cells, with_limits

FANS = (4, 8, 16, 32, 64)
Block = tuple[int, int]
"""Codes from the first to before the last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HierarchicalSearchQuery:
    """Quantiles of a column whose values are too many to be counted; made by `descent`."""

    value: Expression
    q: tuple[Fraction, ...]
    where: Expression | None
    limits: ContributionLimits

    @property
    def text(self) -> str:
        """The question in words; it holds nothing but what the analyst wrote."""
        where = "" if self.where is None else f" where {plainly(self.where)}"
        which = ", ".join(map(number, self.q))
        return f"quantiles {which} of {plainly(self.value)}{where}"


def quantile_search(
    value: Value,
    q: Iterable[Number],
    *,
    where: Expression | None = None,
    limits: ContributionLimits | None = None,
) -> HierarchicalSearchQuery:
    """For each level q the value that a share q of the rows does not exceed, to the last digit."""
    checked = quantiles(value, q, where=where)
    return HierarchicalSearchQuery(
        value=as_expression("value", value),
        q=checked.q,
        where=where,
        limits=ContributionLimits() if limits is None else limits,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class HierarchicalSearch:
    """What will be measured on the way down, for which guarantee, and how far ranks may be off."""

    query: HierarchicalSearchQuery
    setting: TableSpec
    budget: QueryBudget
    bound: BoundedCode
    contribution: Contribution
    fan: int

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The codes in a block after each level."""
        return _widths(self.bound.upper - self.bound.lower + 1, self.fan)

    @property
    def cells(self) -> int:
        """No level counts more cells."""
        return _most_cells(self.fan, len(self.query.q))

    @cached_property
    def mechanisms(self) -> tuple[Noise, ...]:
        """One for each level; together they cost the budget."""
        height = len(self.widths)
        relation = self.setting.relation
        move = group_move(self.contribution, relation, entries=self.cells, cells=1)
        shares = (Fraction(1, height),) * height
        return self.budget.mechanisms((move,) * height, shares=shares, relation=relation)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole way down costs."""
        # Theorem: the noisy counts of all levels have this guarantee under the setting's relation,
        #   although what is counted on a level depends on the noisy counts above it.
        # Proof: whatever the edges are, the cells of a level are disjoint and every row is in one,
        #   so that a unit moves their counts by no more than `group_move` says (at most `cells` of
        #   them). The noise of each level is fixed beforehand, and its mechanism answers a question
        #   that is a function of earlier outputs: adaptive composition. Edges and quantiles are
        #   post-processing.
        # Source: Dwork, Rothblum, Vadhan 2010 (adaptive composition); F39; docs/theory/ranges.md.
        # Needs: units keep to the contribution on every level.
        each = [mechanism.guarantee.event for mechanism in self.mechanisms]
        return Guarantee(events.compose(each), self.setting.relation)

    def rank_width(self, *, confidence: float = 0.95) -> float:
        """How many rows the answers may be off in rank, all of them at once."""
        # Theorem: with probability at least `confidence`, every answer x of a level q has at most
        #   `q n + width` rows below it, and at least `q n - width` rows up to it.
        # Proof: `Z(e)`, the rows below an edge e less `q n`, is measured with noise that is a sum
        #   over the cells of a level with weights `1 - q` and `-q`. By the union bound over
        #   edges, levels and quantiles no such noise passes the width (`tails.quick`). Of a chosen
        #   block `Z` at the first edge is at most the width and at the last at least minus the
        #   width: either the noisy value says so, or it is an edge of the block above, and the
        #   domain itself has `-q n` and `n - q n`. The last block is one value.
        # Source: docs/theory/ranges.md.
        # Needs: no unit exceeds the limits; of those that do, each level keeps rows anew.
        failure = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        tail = failure / (len(self.widths) * (self.cells - 1) * len(self.query.q))
        laws = tuple(noise_distribution(mechanism) for mechanism in self.mechanisms)
        heavy = max(float(max(q, 1 - q)) for q in self.query.q)
        if not any(law.variance for law in laws):  # less noise than doubles can tell
            return 0.0
        most = float(tails.variances(laws).max()) * self.cells * heavy**2
        found = tails.quick(laws, np.full(len(laws), heavy), np.array([most]), tail)
        return float(found[0])

    def edges(self, blocks: Sequence[Block], width: int) -> tuple[int, ...]:
        """Where a level is cut: at the children of the blocks, of at most ``width`` codes each."""
        marks = {mark for first, last in blocks for mark in (*range(first, last, width), last)}
        return tuple(sorted(marks - {self.bound.lower, self.bound.upper + 1}))

    def counted(self, edges: Sequence[int]) -> Program:
        """What an engine is asked on a level: rows in each cell of the whole domain."""
        plan = _counting(self.query, self.setting, edges)
        reach = contribution_of(plan)
        more = reach.rows > self.contribution.rows or reach.within(1) > self.contribution.within(1)
        if more or len(edges) >= self.cells:
            raise AssertionError  # the price was made for at most so many cells and rows
        return plan

    def walk(
        self, counts: Callable[[tuple[int, ...]], ArrayLike], *, rng: RandomSource
    ) -> tuple[Label, ...]:
        """Down to single values; ``counts`` are the exact rows between edges, which stay here."""
        blocks = ((self.bound.lower, self.bound.upper + 1),) * len(self.query.q)
        for width, mechanism in zip(self.widths, self.mechanisms, strict=True):
            edges = self.edges(blocks, width)
            noisy = mechanism.release(counts(edges), rng=rng)
            blocks = self.chosen(blocks, edges, np.asarray(noisy, dtype=np.int64))
        return tuple(self.bound.label(first) for first, _ in blocks)

    def chosen(
        self, blocks: Sequence[Block], edges: Sequence[int], noisy: Ints
    ) -> tuple[Block, ...]:
        """The child that holds each quantile, by noisy counts of the cells between the edges."""
        marks = np.array([self.bound.lower, *edges, self.bound.upper + 1], dtype=object)
        below = [0, *np.cumsum(noisy).tolist()]
        rank = {int(mark): count for mark, count in zip(marks, below, strict=True)}
        return tuple(
            _child(block, rank, float(q) * below[-1])
            for block, q in zip(blocks, self.query.q, strict=True)
        )


def plan_quantile_search(
    query: HierarchicalSearchQuery, *, setting: TableSpec, budget: QueryBudget
) -> HierarchicalSearch:
    """The way down, with the number of children for which ranks are closest."""
    bound = query.value.bind(setting.schema)
    if bound.kind == "text":
        raise InvalidArgument(OPEN)
    if bound.kind not in ("number", "date"):
        raise InvalidArgument(f"quantiles are of numbers and dates; this is a {bound.kind}.")
    span = bound.upper - bound.lower + 1
    if span > INT64:
        raise InvalidArgument("the value has more than 2**63 steps: clip it first.")
    if span == 1:
        raise InvalidArgument("the value is public: its bounds leave a single one.")
    gaussian = budget.epsilon is None or budget.delta is not None
    many = len(query.q)
    fan = min(FANS, key=lambda one: _roughly(span, one, many, gaussian=gaussian))
    # As many cells as there may be: with fewer, a unit cannot have more.
    most = min(span, _most_cells(fan, many))
    counted = _counting(query, setting, range(bound.lower + 1, bound.lower + most))
    return HierarchicalSearch(
        query=query,
        setting=setting,
        budget=budget,
        bound=bound,
        contribution=contribution_of(counted),
        fan=fan,
    )


def _counting(query: HierarchicalSearchQuery, setting: TableSpec, edges: Sequence[int]) -> Program:
    cell = cells_between(query.value, edges)
    own = with_limits(setting, query.limits)
    return count_cells({plainly(query.value): cell}, where=query.where, setting=own)


def _roughly(span: int, fan: int, many: int, *, gaussian: bool) -> float:
    """The variance of a rank, up to a factor: levels share the budget, and cells add up."""
    return len(_widths(span, fan)) ** (1 if gaussian else 2) * _most_cells(fan, many)


def _widths(span: int, fan: int) -> tuple[int, ...]:
    found = []
    while span > 1:
        span = -(-span // fan)
        found.append(span)
    return tuple(found)


def _most_cells(fan: int, many: int) -> int:
    """Children of so many blocks, and what lies before, between and after them."""
    return many * (fan + 1) + 1


def _child(block: Block, rank: Mapping[int, int], wanted: float) -> Block:
    """The first child up to whose end there are as many rows as wanted, or the last."""
    inside = sorted(mark for mark in rank if block[0] <= mark <= block[1])
    children = list(pairwise(inside))
    return next((child for child in children if rank[child[1]] >= wanted), children[-1])
