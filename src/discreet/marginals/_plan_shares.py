"""How a plan divides its budget: what is to be small, and the noise of each group for that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from discreet.core.relation import NeighboringRelation
from discreet.marginals import _noise_shares as shares_of
from discreet.marginals._noise_shares import Goal
from discreet.marginals.columns import MarginalColumn, cells
from discreet.marginals.design import (
    EACH,
    MarginalDesign,
    Place,
    TableKey,
    closure,
    moved_plain,
    moved_squared,
    places_of,
    subsets,
    support,
)
from discreet.marginals.spine import Spine, SpineDesign
from discreet.noise.distribution import Floats

Objective: TypeAlias = Literal["orders", "cells", "tables", "max_error"]
_UNASKED = 1e-3
"""What tables of a level weigh that were not asked for themselves."""


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """Which tables are asked for, and what is to be small."""

    columns: tuple[MarginalColumn, ...]
    tables: tuple[TableKey, ...]
    relation: NeighboringRelation
    rows: int
    objective: Objective
    weights: Mapping[TableKey, float]
    ordered: frozenset[int]
    spine: Spine | None

    @property
    def every(self) -> tuple[TableKey, ...]:
        """All tables that are answered."""
        return closure(self.tables) if self.spine is None else self.spine.closure(self.tables)

    def flat(self) -> PlanQuestion:
        """The same, for plain tables: no column has levels."""
        columns = tuple([replace(one, chain=(1, one.size)) for one in self.columns])
        return replace(self, columns=columns)

    def contrasts(self) -> tuple[tuple[Place, ...], Floats, float]:
        """Places, their normalized variances at a cost of one, and how far that is from best."""
        if self.spine is None:
            return self._contrasts(self.tables, self._goal())
        places: list[Place] = []
        variances: list[Floats] = []
        values = []
        for level, goal, tables in self._levels(self.spine):
            found, each, _ = self._contrasts(tables, goal, level)
            places += found
            variances.append(each)
            values.append(goal.value(each))
        # Proof: errors are `value / c` at shares c of the cost, so roots of the values are best
        #   (Cauchy-Schwarz). Least squares then joins the levels, and no error grows.
        roots = np.sqrt(values)
        shares = roots / roots.sum()
        scaled = [one / share for one, share in zip(variances, shares, strict=True)]
        return tuple(places), np.concatenate(scaled), 0.0

    def plain(self) -> tuple[list[TableKey], Floats]:
        """Plain tables, and the share of the budget of each."""
        if self.spine is None:
            measured, shares, _ = self._plain(self.tables, self._goal())
            return list(measured), shares
        found: list[TableKey] = []
        within: list[Floats] = []
        values = []
        for level, goal, tables in self._levels(self.spine):
            measured, shares, value = self._plain(tables, goal, level)
            found += [self.spine.joined(level, one) for one in measured]
            within.append(shares)
            values.append(value)
        # Proof: an error is `value / share^2`; Lagrange's condition.
        roots = np.cbrt(values)
        each = [one * root for one, root in zip(within, roots / roots.sum(), strict=True)]
        return found, np.concatenate(each)

    def error(self, design: MarginalDesign) -> float:
        """What is to be small, of a design."""
        if not isinstance(design, SpineDesign):
            goal = replace(self, columns=design.columns)._goal()  # noqa: SLF001 - same class
            return goal.value(np.array([design.variances[place] for place in design.bases]))
        total = 0.0
        for level, goal, tables in self._levels(design.spine):
            for weight, rest in zip(goal.weights, tables, strict=True):
                variance = design.cell_variance(design.spine.joined(level, rest))
                total += float(weight) * float(variance.mean())
        return total

    def _levels(self, spine: Spine) -> Iterator[tuple[int, Goal, tuple[TableKey, ...]]]:
        """For each level what is to be small there, and the tables of the other columns."""
        by_level: dict[int, list[TableKey]] = {}
        for table in self.every:
            level, rest = spine.split(table)
            by_level.setdefault(level, []).append(rest)
        for level, rests in sorted(by_level.items()):
            yield level, self._goal(tuple(rests), level), tuple(rests)

    def _goal(self, tables: Sequence[TableKey] | None = None, level: int | None = None) -> Goal:
        """The objective as weights of the mean variances of tables, of one level of a spine."""
        wide = self.objective == "orders"
        if tables is None:
            tables = closure(self.tables) if wide else self.tables
        names = [table if level is None else self._joined(level, table) for table in tables]
        sizes = np.array([cells([self.columns[i] for i in name]) for name in names], float)
        own = np.array([self.weights.get(name, 1.0) for name in names])
        if wide:
            orders = [len(table) for table in tables]
            whole = {
                k: sum(n for n, o in zip(sizes, orders, strict=True) if o == k) for k in orders
            }
            own = own * sizes / np.array([whole[order] for order in orders])
        else:
            own = own * np.array([1.0 if name in self.tables else _UNASKED for name in names])
            own = own * sizes if self.objective == "cells" else own
        energies = self._blank(tables).mean_energies(tables, self.ordered)
        return Goal(energies=energies, weights=own, largest=self.objective == "max_error")

    def _joined(self, level: int, rest: TableKey) -> TableKey:
        return rest if self.spine is None else self.spine.joined(level, rest)

    def _blank(self, tables: Sequence[TableKey]) -> MarginalDesign:
        return MarginalDesign(
            columns=self.columns, tables=tuple(tables), plain=False, places=(), laws=()
        )

    def _contrasts(
        self, tables: Sequence[TableKey], goal: Goal, level: int = 0
    ) -> tuple[tuple[Place, ...], Floats, float]:
        own = places_of(tables, self.columns)
        places = tuple([one if self.spine is None else self.spine.place(level, one) for one in own])
        costs = [
            moved_squared(place, self.columns, rows=1, relation=self.relation)
            / squared(place, self.columns)
            for place in places
        ]
        found, gap = shares_of.optimal_contrasts(goal, np.array(costs))
        return places, found, gap

    def _plain(
        self, asked_tables: Sequence[TableKey], goal: Goal, level: int = 0
    ) -> tuple[tuple[TableKey, ...], Floats, float]:
        """Tables, their shares of a budget of one, and the goal there."""
        bases = self._blank(asked_tables).bases
        tables = closure(asked_tables)
        numbers = {support(place): k for k, place in enumerate(bases)}
        held, row, col = [], [], []
        for k, table in enumerate(tables):
            place = tuple([(i, EACH) for i in self._joined(level, table)])
            moved = moved_plain(place, rows=self.rows, relation=self.relation)
            for part in subsets(table):
                rest = math.prod([self.columns[i].size for i in table if i not in part])
                held.append(1 / rest / (2 * moved**2))
                row.append(numbers[part])
                col.append(k)
        information = sparse.csr_array((held, (row, col)), shape=(len(bases), len(tables)))
        sizes = np.array([cells([self.columns[i] for i in table]) for table in tables])
        asked = np.array([float(table in asked_tables) for table in tables])
        starts = [
            np.maximum(asked, 1e-3) / np.maximum(asked, 1e-3).sum(),
            np.full(len(sizes), 1 / len(sizes)),
            np.cbrt(sizes) / np.cbrt(sizes).sum(),
        ]
        shares, value = shares_of.optimal_plain(goal, information, starts)
        return tables, shares, value


def squared(place: Place, columns: Sequence[MarginalColumn]) -> int:
    """The square of what contrasts of a place multiply: of the numbers of their children."""
    return math.prod([columns[i].branching(level) for i, level in place]) ** 2
