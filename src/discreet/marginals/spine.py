"""A spine: levels of a public hierarchy, such as county within state, in many tables at once.

Each level is a column of the tables, and a table has at most one of them. Measured are, for every
level and every place of the other columns, the contrasts of *each node*. Nodes of a level share no
row, so a level costs what one table costs, however many nodes it has. For each place of the other
columns the levels are then put together by least squares on the tree: they agree from top to
bottom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.marginals import _noise_widths as widths
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import (
    EACH,
    MarginalDesign,
    Place,
    TableKey,
    subsets,
    support,
    variance_of,
)
from discreet.noise.distribution import Distribution, Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

_ONE_BY_ONE = 64
"""Nodes of a level up to which each gets the exact law of its Laplace noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spine:
    """The levels of a hierarchy: columns from the top, and to which node above each node belongs.

    The level above all of them is the total: level 0 here, so that level k is ``columns[k - 1]``.
    """

    columns: tuple[int, ...]
    parents: tuple[Ints, ...]
    """For each level, the position of each node's parent in the level above; zeros in the first."""

    def __post_init__(self) -> None:
        above = 1
        for parents in self.parents:
            if len(parents) < 1 or parents.min() < 0 or parents.max() >= above:
                raise InvalidArgument("a spine must name for each node one of the level above.")
            above = len(parents)
        if len(self.parents) != len(self.columns) or not self.columns:
            raise InvalidArgument("a spine must have parents for each of its levels.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has, from the total."""
        return (1, *[len(parents) for parents in self.parents])

    def content(self) -> dict[str, Any]:
        """As JSON."""
        parents = [one.tolist() for one in self.parents]
        return {"columns": list(self.columns), "parents": parents}

    def split(self, table: TableKey) -> tuple[int, TableKey]:
        """The level of a table, and its other columns."""
        levels = [k for k, i in enumerate(self.columns, 1) if i in table]
        if len(levels) > 1:
            raise InvalidArgument("a table must have one level of the spine: it says those above.")
        rest = tuple([i for i in table if i not in self.columns])
        return (levels[0] if levels else 0), rest

    def joined(self, level: int, rest: TableKey) -> TableKey:
        """The table of a level and other columns."""
        return tuple(sorted((*rest, *self._own(level))))

    def place(self, level: int, place: Place) -> Place:
        """The place of a level and levels of other columns."""
        return tuple(sorted((*place, *[(i, EACH) for i in self._own(level)])))

    def _own(self, level: int) -> tuple[int, ...]:
        return (self.columns[level - 1],) if level else ()

    def closure(self, tables: Sequence[TableKey]) -> tuple[TableKey, ...]:
        """All tables that some tables answer: subsets, at their level and at all above."""
        found = set()
        for table in tables:
            level, rest = self.split(table)
            found |= {
                self.joined(above, part) for above in range(level + 1) for part in subsets(rest)
            }
        return tuple(sorted(found, key=lambda one: (len(one), one)))

    def above(self, nodes: Ints, level: int) -> Ints:
        """The nodes one level up to which nodes of a level belong."""
        return self.parents[level - 1][nodes]

    def summed(self, values: Floats, level: int) -> Floats:
        """Values of the nodes of a level, the first axis, added up to those of the level above."""
        found = np.zeros((self.sizes[level - 1], *values.shape[1:]))
        np.add.at(found, self.parents[level - 1], values)
        return found

    # ── Least squares ────────────────────────────────────────────────────────────────────────

    def from_below(self, precisions: Sequence[float]) -> list[Floats]:
        """The variance of each node from what is measured at it and below it, level by level."""
        found = [np.array([])] * len(precisions)
        for level in range(len(precisions) - 1, -1, -1):
            if level == len(precisions) - 1:
                found[level] = np.full(self.sizes[level], 1 / precisions[level])
            else:
                below = self.summed(found[level + 1], level + 1)
                found[level] = below / (1 + precisions[level] * below)
        return found

    def variances(self, precisions: Sequence[float]) -> list[Floats]:
        """The variance of the best estimate of each node, level by level."""
        # Theorem: with each node of level l measured with variance `1 / p_l`, the estimates of
        #   `estimates` are the generalized least-squares ones, and these are their variances.
        # Proof: going up, a node's own number and the sum of its children's, which are
        #   independent, are weighed by precision: `z = k s + (1 - k) y`, `k = 1 / (1 + p U)`, U the
        #   variance of s, leaves `U k`. Going down, what is known of a parent beyond the sum s of
        #   its children is independent of how they differ, and moves child c by `u_c / U` of it:
        #   the part of c's error that is independent of s has variance `u_c - u_c^2 / U`, the
        #   other is `u_c / U` times the parent's error. A node without children is an empty sum.
        # Source: docs/theory/marginals.md; Hay, Rastogi, Miklau, Suciu 2010.
        # Needs: every node of the last level is measured.
        up = self.from_below(precisions)
        found = [up[0]]
        for level in range(1, len(precisions)):
            parents = self.parents[level - 1]
            share = self._share(up[level], level)
            found.append(up[level] * (1 - share) + share * share * found[-1][parents])
        return found

    def estimates(self, values: Sequence[Floats], precisions: Sequence[float]) -> list[Floats]:
        """The best estimate of each node, the first axis, from noisy ones of each level."""
        # Proof: `variances`.
        up = self.from_below(precisions)
        own = [np.asarray(one, dtype=np.float64) for one in values]
        for level in range(len(own) - 2, -1, -1):
            below = self.summed(up[level + 1], level + 1)
            keep = _along(1 / (1 + precisions[level] * below), own[level])
            sums = self.summed(own[level + 1], level + 1)
            own[level] = keep * sums + (1 - keep) * own[level]
        for level in range(1, len(own)):
            off = own[level - 1] - self.summed(own[level], level)
            share = _along(self._share(up[level], level), own[level])
            own[level] = own[level] + share * off[self.parents[level - 1]]
        return own

    def _share(self, up: Floats, level: int) -> Floats:
        """Of each node, how much of its parent's children's variance is its own."""
        whole = self.summed(up, level)[self.parents[level - 1]]
        return np.divide(up, whole, out=np.zeros_like(up), where=whole > 0)

    def answer_variance(self, precisions: Sequence[float], level: int, weights: Floats) -> float:
        """The variance of a weighted sum of the best estimates of one level."""
        # Proof: with covariance C of independent subtrees, a measurement of their sum with
        #   precision p takes `p C 1 1' C / (1 + p 1' C 1)` off C (Sherman and Morrison). Kept are
        #   `w' C w`, `w' C 1` and `1' C 1` of each node, which add up over children.
        up = self.from_below(precisions)[level]
        square, cross, ones = weights * weights * up, weights * up, up
        for above in range(level, 0, -1):
            square, cross, ones = (self.summed(one, above) for one in (square, cross, ones))
            p = precisions[above - 1]
            square = square - p * cross * cross / (1 + p * ones)
            cross, ones = cross / (1 + p * ones), ones / (1 + p * ones)
        return max(float(square.sum()), 0.0)


def _along(weights: Floats, values: Floats) -> Floats:
    return weights.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class SpineDesign(MarginalDesign):
    """Tables of the levels of a spine and of other columns."""

    # Theorem: tables of all levels agree, are the generalized least-squares estimates of all
    #   measurements, and have the stated variances.
    # Proof: contrasts of different places of the other columns are orthogonal, at whatever nodes,
    #   so the information about each place is by itself. It is `sum_l p_l S_l' S_l` along the
    #   spine, with S_l the sums of the nodes of level l (`Spine.variances`). Plain tables of a
    #   level tell each part what they tell without a spine, at each of its nodes.
    # Source: docs/theory/marginals.md.

    spine: Spine

    @cached_property
    def every(self) -> tuple[TableKey, ...]:
        """All tables that are answered, by order and then by columns."""
        return self.spine.closure(self.tables)

    @cached_property
    def parts_by_level(self) -> Mapping[Place, int]:
        """The places of other columns, and the lowest level at which each is told."""
        found: dict[Place, int] = {}
        for table in self.every:
            level, rest = self.spine.split(table)
            for place in super().within(rest):
                found[place] = max(found.get(place, 0), level)
        return found

    @cached_property
    def bases(self) -> tuple[Place, ...]:
        """The places of the parts of all answers."""
        found = [
            self.spine.place(level, place)
            for place, lowest in self.parts_by_level.items()
            for level in range(lowest + 1)
        ]
        return tuple(sorted(found, key=lambda one: (len(one), one)))

    @cached_property
    def precisions(self) -> Mapping[Place, list[float]]:
        """For each place of other columns, what each level of its own tells of it."""
        found = {part: [0.0] * (lowest + 1) for part, lowest in self.parts_by_level.items()}
        for place, law in zip(self.places, self.laws, strict=True):
            level, rest = self.spine.split(support(place))
            own = tuple([pair for pair in place if pair[0] not in self.spine.columns])
            if not self.plain:
                found[own][level] += self._square(own) / variance_of(law)
                continue
            for part in subsets(rest):
                key = tuple([(i, 1) for i in part])
                if level < len(found.get(key, ())):
                    found[key][level] += 1 / self._summed(rest, part) / variance_of(law)
        return found

    @cached_property
    def node_variances(self) -> Mapping[Place, list[Floats]]:
        """For each place of other columns, the variance of its part at the nodes of each level."""
        return {part: self.spine.variances(known) for part, known in self.precisions.items()}

    def follows(self, table: TableKey, larger: TableKey) -> bool:
        """Whether a table is made of sums of another one."""
        (level, rest), (lowest, others) = map(self.spine.split, (table, larger))
        return level <= lowest and set(rest) <= set(others)

    def summed(self, cells: Floats, larger: TableKey, table: TableKey) -> Floats:
        """The cells of a table from those of one that it follows from."""
        (level, rest), (lowest, _) = map(self.spine.split, (table, larger))
        found = super().summed(cells, larger, self.spine.joined(lowest, rest))
        found = self._nodes_first(found, self.spine.place(lowest, _values(rest)), lowest)
        for each in range(lowest, level, -1):
            found = self.spine.summed(found, each)
        return self._nodes_back(found, self.spine.place(level, _values(rest)), level)

    def coded(self, codes: Ints) -> Ints:
        """The codes of rows, with each level as the one below it says."""
        found = codes.copy()
        for level in range(len(self.spine.columns) - 1, 0, -1):
            below, own = self.spine.columns[level], self.spine.columns[level - 1]
            found[own] = self.spine.above(found[below], level + 1)
        return found

    def complete(self) -> bool:
        """Whether the measurements are those of all tables."""
        gaussian = all(isinstance(law, DiscreteGaussian) for law in self.laws)
        if not self.plain:
            return gaussian and sorted(self.places) == sorted(self.bases)
        levels = {level for place in self.places for _, level in place}
        flat = all(column.chain == (1, column.size) for column in self.columns)
        return flat and levels <= {EACH} and all(one[-1] > 0 for one in self.precisions.values())

    def _summed(self, table: TableKey, part: TableKey) -> int:
        return math.prod([self.columns[i].size for i in table if i not in part])

    def within(self, table: TableKey) -> list[Place]:
        """The places of the parts of a table."""
        level, rest = self.spine.split(table)
        return [self.spine.place(level, place) for place in super().within(rest)]

    # ── Errors ───────────────────────────────────────────────────────────────────────────────

    def cell_variance(self, table: TableKey, *, unit: bool = False) -> Floats:
        """The variance of each cell of a table; axes of columns whose values are alike have one."""
        # Proof for `unit`: the sum of the squares of the weights of all noise is at most the
        #   variance of the answer over that of the smallest noise.
        level, rest = self.spine.split(table)
        total = np.zeros((1,) * len(table))
        for place in super().within(rest):
            levels = dict(place)
            each = [
                self.node_variances[place][level]
                if i in self.spine.columns
                else self.columns[i].cell_energies[levels.get(i, 0)]
                for i in table
            ]
            if not level:
                each.append(self.node_variances[place][0])
            shaped = [
                held.reshape([-1 if axis == k else 1 for k in range(len(table))])
                for axis, held in enumerate(each)
            ]
            total = total + reduce(np.multiply, shaped, np.ones((1,) * len(table)))
        return total / self._smallest if unit else total

    def answer_variance(self, weights: Mapping[int, Floats], *, unit: bool = False) -> float:
        """The variance of a product of weighted sums, one for each of some columns."""
        level, rest = self.spine.split(tuple(sorted(weights)))
        along = weights[self.spine.columns[level - 1]] if level else np.ones(1)
        total = 0.0
        for place in super().within(rest):
            levels = dict(place)
            reached = [self.columns[i].energy(weights[i], levels.get(i, 0)) for i in rest]
            known = self.spine.answer_variance(self.precisions[place], level, along)
            total += known * math.prod(reached)
        return total / self._smallest if unit else total

    @cached_property
    def _smallest(self) -> float:
        return min(variance_of(law) for law in self.laws)

    def _cell_widths(self, table: TableKey, tail: float) -> Floats:
        variance = self.cell_variance(table)
        if not self.plain:
            unit = variance / self._smallest
            return widths.gaussian(self._gaussians, variance, unit, tail)
        level, rest = self.spine.split(table)
        if self.spine.sizes[level] > _ONE_BY_ONE:
            return self._quick(variance, tail)
        cell = {i: np.eye(1, self.columns[i].size).ravel() for i in rest}
        own = self.spine.columns[level - 1]
        nodes = np.eye(self.spine.sizes[level])
        each = [{**cell, own: node} if level else cell for node in nodes]
        found = np.array([self._plain_width(one, tail) for one in each])
        return found.reshape(variance.shape)

    def _quick(self, variance: Floats, tail: float) -> Floats:
        # Proof: an answer's variance is at least what one noise adds to it, so no noise weighs more
        #   than the root of the variance over its own.
        most = math.sqrt(float(variance.max(initial=0.0)))
        largest = np.array([most / math.sqrt(variance_of(law)) for law in self.laws])
        return widths.quick(self.laws, largest, variance, tail)

    def _terms(
        self, place: Place, law: Distribution, weights: Mapping[int, Floats]
    ) -> tuple[Floats, Floats]:
        """The different weights of the noise of a plain table, and how many numbers have each."""
        # Proof: as without a spine, with the covariance of the node's own part and of the answer
        #   along the spine in place of the variance of a part. With data of the lowest level that
        #   are the answer's weights there, divided by the precision, the estimates are these
        #   covariances: least squares gives `C S' p y`.
        level, table = self.spine.split(support(place))
        asked, rest = self.spine.split(tuple(sorted(weights)))
        along = weights[self.spine.columns[asked - 1]] if asked else np.ones(1)
        others = {i: weights[i] for i in rest}
        total: Floats = np.zeros(())
        many: Floats = np.ones(())
        for part in subsets(table):
            key = tuple([(i, 1) for i in part])
            if level >= len(self.precisions.get(key, ())) or any(i not in others for i in part):
                continue
            factor, many = self._factor(table, part, others)
            reached = self._covariances(key, asked, along)[level] / variance_of(law)
            total = total + np.multiply.outer(reached, factor)
        every = np.multiply.outer(np.ones(self.spine.sizes[level]), many)
        return np.ravel(np.broadcast_to(total, every.shape)), np.ravel(every)

    def _covariances(self, part: Place, level: int, along: Floats) -> list[Floats]:
        """Of each node's part with a weighted sum of those of one level."""
        known = self.precisions[part]
        for below in self.spine.parents[level : len(known) - 1]:
            along = along[below]
        data = [np.zeros(size) for size in self.spine.sizes[: len(known)]]
        data[-1] = along / known[-1]
        return self.spine.estimates(data, known)

    # ── Estimates ────────────────────────────────────────────────────────────────────────────

    def parts(self, noisy: Sequence[Ints]) -> dict[Place, Floats]:
        """The best linear unbiased estimate of each part, from the noisy measurements."""
        told: dict[Place, list[Floats | float]] = {
            part: [0.0] * (lowest + 1) for part, lowest in self.parts_by_level.items()
        }
        for place, law, values in zip(self.places, self.laws, noisy, strict=True):
            level, rest = self.spine.split(support(place))
            own = tuple([pair for pair in place if pair[0] not in self.spine.columns])
            data = self._nodes_first(values.astype(np.float64), place, level)
            if not self.plain:
                for axis, (i, step) in enumerate(own, 1):
                    data = self.columns[i].centered(data, axis, step)
                told[own][level] = data / math.sqrt(self._square(own))
                continue
            for part in subsets(rest):
                key = tuple([(i, 1) for i in part])
                known = self.precisions.get(key, ())
                if level < len(known):
                    weight = 1 / self._summed(rest, part) / variance_of(law) / known[level]
                    told[key][level] = told[key][level] + weight * _part(data, rest, part)
        found = {}
        for base, by_level in told.items():
            known = self.precisions[base]
            shape = [self._length(i, step) for i, step in base]
            each = [
                np.broadcast_to(one, (size, *shape))
                for one, size in zip(by_level, self.spine.sizes, strict=False)
            ]
            for level, estimate in enumerate(self.spine.estimates(each, known)):
                place = self.spine.place(level, base)
                found[place] = self._nodes_back(estimate, place, level)
        return found

    def _length(self, column: int, step: int) -> int:
        one = self.columns[column]
        return one.size if self.plain else one.positions // one.chain[step - 1]

    def _axis(self, place: Place, level: int) -> int:
        return [i for i, _ in place].index(self.spine.columns[level - 1])

    def _nodes_first(self, values: Floats, place: Place, level: int) -> Floats:
        return np.moveaxis(values, self._axis(place, level), 0) if level else values[None]

    def _nodes_back(self, values: Floats, place: Place, level: int) -> Floats:
        return np.moveaxis(values, 0, self._axis(place, level)) if level else values[0]

    def _spread(self, part: Floats, axis: int, column: int, level: int) -> Floats:
        if column in self.spine.columns:
            return part
        return super()._spread(part, axis, column, level)


def _values(table: TableKey) -> Place:
    return tuple([(i, EACH) for i in table])


def _part(data: Floats, table: TableKey, part: TableKey) -> Floats:
    """The part of some columns of a table, the nodes first: summed over others, centered."""
    rest = tuple([axis for axis, i in enumerate(table, 1) if i not in part])
    found: Floats = data.sum(axis=rest)
    for axis in range(1, len(part) + 1):
        found = found - found.mean(axis=axis, keepdims=True)
    return found


def read_spine(content: Mapping[str, Any], columns: Sequence[MarginalColumn]) -> Spine:
    """The inverse of `content`."""
    found = Spine(
        columns=tuple(content["columns"]),
        parents=tuple([np.array(one, dtype=np.int64) for one in content["parents"]]),
    )
    whole = all(type(i) is int and 0 <= i < len(columns) for i in found.columns)
    if not whole or len(set(found.columns)) != len(found.columns):
        raise InvalidArgument("text must name columns by their numbers.")
    if [columns[i].size for i in found.columns] != list(found.sizes[1:]):
        raise InvalidArgument("text must have a parent for each value of the spine.")
    return found


def design_of(
    *,
    columns: tuple[MarginalColumn, ...],
    tables: tuple[TableKey, ...],
    plain: bool,
    places: tuple[Place, ...],
    laws: tuple[DiscreteGaussian | DiscreteLaplace, ...],
    spine: Spine | None,
) -> MarginalDesign:
    """A design with a spine or without one."""
    if spine is None:
        return MarginalDesign(columns=columns, tables=tables, plain=plain, places=places, laws=laws)
    return SpineDesign(
        columns=columns, tables=tables, plain=plain, places=places, laws=laws, spine=spine
    )
