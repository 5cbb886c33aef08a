"""Plans of many tables at once: the error of each table, before any budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting import composition
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.boundary import rows as boundary_rows
from discreet.core import _validate as check
from discreet.core import events
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.core.tabular import Record, Tabular
from discreet.marginals import _noise_shares as shares_of
from discreet.marginals._plan_certificate import certify_plan
from discreet.marginals._plan_shares import Objective, PlanQuestion, squared
from discreet.marginals.columns import MarginalColumn, cells
from discreet.marginals.counting import count_tables
from discreet.marginals.design import (
    EACH,
    MOST_ALL_CELLS,
    MOST_CELLS,
    MarginalDesign,
    Place,
    TableKey,
    closure,
    measured,
    measured_shape,
    moved_plain,
    moved_squared,
    support,
    table_key,
)
from discreet.marginals.release import MarginalRelease
from discreet.marginals.spine import Spine, design_of
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import QueryBudget

OBJECTIVES: tuple[Objective, ...] = ("orders", "cells", "tables", "max_error")
"""What the noise is best for."""
_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MarginalPlan(Tabular):
    """The error of many tables that share one budget, before it is spent.

    Made by `Table.plan_marginals`, and released by `Table.marginals`. Nothing was read.

    Attributes:
        columns: Columns of the tables, with their values.
        tables: Tables that were asked for. All their subsets are answered, too.
        budget: Privacy budget of the release.
        relation: Neighboring relation of the guarantee.
        max_rows_per_unit: Most rows of one privacy unit that are used.
        objective: What the noise is best for.
        mechanisms: Noise of each group of measurements.
        expected_rows: Guess of the number of rows, to show errors as a share of a mean cell.
        gap: For `objective="max_error"`, how far the largest standard deviation is at most above
            the smallest possible one, as a share.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> from discreet import col
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67] * 100, "smokes": [True, False] * 200}),
        ...     columns={"age": discreet.integer(0, 120), "smokes": discreet.boolean()},
        ...     budget=discreet.approx_dp(100, 1e-6),
        ... )
        >>> groups = {"age group": col("age").cut([30, 50]), "smokes": "smokes"}
        >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
        >>> release = people.marginals(plan)
        >>> release.table(["smokes"]).keys
        ((False,), (True,))
    """

    columns: tuple[MarginalColumn, ...]
    tables: tuple[tuple[str, ...], ...]
    budget: QueryBudget
    relation: NeighboringRelation
    max_rows_per_unit: int
    objective: Objective
    mechanisms: tuple[AdditiveMechanism, ...]
    expected_rows: int | None = None
    gap: float = 0.0
    _query: Any = None
    """What an engine will be asked, if the plan was made for a table."""
    _design: MarginalDesign

    @cached_property
    def guarantee(self) -> Guarantee:
        """What a release costs."""
        # Theorem: the release of all measurements has this guarantee under `relation`, and so does
        #   everything that is made of it.
        # Proof: each group is a vector of integers whose distance on neighbors is bounded
        #   (`moved_squared`, `moved_plain`), released by a mechanism for that distance with noise
        #   of its own; groups compose. What follows is post-processing.
        # Source: docs/theory/marginals.md.
        # Needs: all tables are counted from the same kept rows, at most `max_rows_per_unit` of each
        #   unit.
        return Guarantee(
            events.compose([one.guarantee.event for one in self.mechanisms]), self.relation
        )

    @property
    def title(self) -> str:
        """What is asked, in words."""
        if self._query is not None:
            return str(self._query.text)
        many = len(self.tables)
        return f"{many:,} table{'s' * (many > 1)} at once"

    @property
    def noise(self) -> str:
        """The kind of noise: "gaussian" or "laplace"."""
        return "laplace" if self._design.plain else "gaussian"

    def std(self, by: Iterable[str] = ()) -> float:
        """Forecast the standard deviation of a cell of a table.

        Args:
            by: Names of the columns of the table; none for the number of all rows.

        Returns:
            The standard deviation of the noise of a cell; the mean over cells, if they differ.

        Raises:
            InvalidArgument: The plan does not answer this table.

        Examples:
            >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
            >>> 0 < plan.std(["smokes"]) < 100
            True
        """
        return math.sqrt(float(self._design.cell_variance(self._key(by)).mean()))

    def width(
        self, by: Iterable[str] = (), *, confidence: float = _LEVEL, simultaneous: bool = False
    ) -> float:
        """Forecast the margin of error of a cell of a table.

        Args:
            by: Names of the columns of the table; none for the number of all rows.
            confidence: Probability with which the error stays within the margin.
            simultaneous: Whether it holds for all cells of the table at once.

        Returns:
            Half of the width of the interval; the largest over cells, if they differ.

        Raises:
            InvalidArgument: The plan does not answer this table, or the confidence is not between
                0 and 1.

        Examples:
            >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
            >>> plan.width(["smokes"]) < plan.width(["smokes"], simultaneous=True)
            True
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        key = self._key(by)
        many = cells([self.columns[i] for i in key]) if simultaneous else 1
        return float(self._design.cell_widths(key, (1 - inside) / many).max())

    def rows(self) -> list[Record]:
        """List each answered table with its errors.

        Returns:
            One record for each table: its columns, number of cells, standard deviation of a cell,
            margin of error of a cell and of all its cells at once (95%), and the standard
            deviation as a share of a mean cell if `expected_rows` is known.

        Examples:
            >>> [row["table"] for row in plan.rows()]
            ['all rows', 'age group', 'smokes', 'age group, smokes']
        """
        found = []
        for key in self._design.every:
            names = [self.columns[i].name for i in key]
            many = cells([self.columns[i] for i in key])
            std = self.std(names)
            mean = None if self.expected_rows is None else std * many / self.expected_rows
            found.append(
                {
                    "table": ", ".join(names) or "all rows",
                    "cells": many,
                    "asked": key in self._design.tables,
                    "std": std,
                    "width": self.width(names),
                    "width of all": self.width(names, simultaneous=True),
                    "share of a mean cell": mean,
                }
            )
        return found

    def certify(self) -> Certificate:
        """Recompute the guarantee from what is measured and from what is really drawn.

        The contrasts are measured on made-up neighbors, and what moves is compared with what the
        noise was made for; releases of made-up counts are compared with the law of the noise.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: What is measured moves further than claimed, or the noise is not what was
                claimed.

        Examples:
            >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
            >>> plan.certify().holds
            True
        """
        return certify_plan(
            self._design,
            measure=self._exact,
            release=lambda tables, rng: self._noisy(tables, rng)[0],
            guarantee=self.guarantee,
            rows=self.max_rows_per_unit,
        )

    def release(self, codes: object, *, rng: RandomSource | None = None) -> MarginalRelease:
        """Measure rows with noise, without a table: for simulations and studies.

        `Table.marginals` reads the rows of a table, keeps contribution limits and charges.

        Args:
            codes: One row for each row of the data, one whole number for each column of the plan:
                the position of its value, from zero. Numbers outside are moved to the nearest
                position; what is no number counts as the first. Private.
            rng: Random source. By default the operating system's; pass another one in tests only.

        Returns:
            A release that answers all tables.

        Raises:
            OutOfDomain: `codes` does not have one column for each column of the plan.

        Privacy:
            The release has the `guarantee` of this plan if no privacy unit has more than
            `max_rows_per_unit` rows. Nothing is charged.

        Examples:
            >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
            >>> made = plan.release([[0, 1], [2, 0], [2, 1]], rng=discreet.seeded_rng(1))
            >>> made.table(["smokes"]).keys
            ((False,), (True,))
        """
        sizes = [column.size for column in self.columns]
        shape = getattr(codes, "shape", (0, len(sizes)))
        if len(shape) != 2 or shape[1] != len(sizes):
            raise OutOfDomain(f"codes must have {len(sizes)} columns, one for each of the plan.")
        found = boundary_rows.matrix(codes, columns=len(sizes))
        if found.shape[1] != len(sizes):
            raise OutOfDomain(f"codes must have {len(sizes)} columns, one for each of the plan.")
        whole = np.clip(np.nan_to_num(found), 0, np.array(sizes) - 1).astype(np.int64)
        codes_of = self._design.coded(whole.T)
        counted = count_tables([codes_of], sizes, [support(place) for place in self._design.places])
        return self.release_tables(counted, rng=resolve_rng(rng))

    def release_tables(
        self, counted: Mapping[TableKey, Ints], *, rng: RandomSource
    ) -> MarginalRelease:
        """Add noise to exact tables: private counts in, a public release out.

        Args:
            counted: Exact counts of each table that the plan measures.
            rng: Random source.

        Returns:
            The release.

        Privacy:
            The release satisfies `guarantee`. No account is charged.

        Examples:
            >>> import numpy as np
            >>> plan = people.plan_marginals([["age group", "smokes"]], columns=groups, rho=0.1)
            >>> exact = {
            ...     (): np.array(200),
            ...     (0,): np.array([100, 50, 50]),
            ...     (1,): np.array([100, 100]),
            ...     (0, 1): np.array([[50, 50], [0, 50], [50, 0]]),
            ... }
            >>> made = plan.release_tables(exact, rng=discreet.seeded_rng(1))
            >>> made.table(["smokes"]).keys
            ((False,), (True,))
        """
        noisy, private = self._noisy(counted, rng)
        return MarginalRelease(
            design=self._design,
            measured=noisy,
            guarantee=self.guarantee,
            max_rows_per_unit=self.max_rows_per_unit,
            private=private,
        )

    def _exact(self, counted: Mapping[TableKey, Ints]) -> tuple[Ints, ...]:
        design = self._design
        return tuple(
            [
                measured(place, counted[support(place)], self.columns, plain=design.plain)
                for place in design.places
            ]
        )

    def _noisy(
        self, counted: Mapping[TableKey, Ints], rng: RandomSource
    ) -> tuple[tuple[Ints, ...], bool]:
        exact = self._exact(counted)
        noisy = [
            np.asarray(mechanism.release(values, rng=rng), dtype=np.int64).reshape(values.shape)
            for mechanism, values in zip(self.mechanisms, exact, strict=True)
        ]
        return tuple(noisy), rng.private

    def _key(self, by: Iterable[str]) -> TableKey:
        return table_key(by, self.columns, self._design.answered)

    def __str__(self) -> str:
        kept = f"at most {self.max_rows_per_unit:,} row{'s' * (self.max_rows_per_unit > 1)} of each"
        asked = len(self._design.tables)
        lines = [
            f"{asked:,} table{'s' * (asked > 1)} at once, {self.budget}, {self.relation.value}, "
            f"{kept} privacy unit, {self.noise} noise, best for {self.objective}"
            + (f" (within {percent(self.gap)} of the least)" if self.gap else ""),
        ]
        head = ["table", "cells", "std", "95% within", "all its cells within"]
        if self.expected_rows is not None:
            head.append("std / mean cell")
        body = []
        for row in self.rows()[:_SHOWN]:
            line = [
                str(row["table"]),
                f"{row['cells']:,}",
                short(row["std"]),
                short(row["width"]),
                short(row["width of all"]),
            ]
            if self.expected_rows is not None:
                line.append(percent(row["share of a mean cell"]))
            body.append(line)
        widths = [max(len(line[k]) for line in [head, *body]) for k in range(len(head))]
        for line in [head, *body]:
            first, *rest = [
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  ".join([first, *rest]))
        left = len(self._design.answered) - len(body)
        if left:
            lines.append(f"... and {left:,} more tables: plan.rows()")
        for order, share in self._shares_by_order():
            lines.append(f"budget for tables of {order} columns: {percent(share)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _shares_by_order(self) -> list[tuple[int, float]]:
        costs: dict[int, float] = {}
        for place, mechanism in zip(self._design.places, self.mechanisms, strict=True):
            costs[len(place)] = costs.get(len(place), 0.0) + _cost(mechanism)
        whole = sum(costs.values())
        return [(order, cost / whole) for order, cost in sorted(costs.items())]


_SHOWN = 40


def _cost(mechanism: AdditiveMechanism) -> float:
    event = mechanism.guarantee.event
    if isinstance(event, events.DiscreteGaussianEvent):
        return float(event.shift_squared / event.variance)
    return float(mechanism.guarantee.epsilon())


# ── The planner ──────────────────────────────────────────────────────────────────────────────────


def plan_tables(  # noqa: PLR0913 - each has a name
    columns: Sequence[MarginalColumn],
    tables: Sequence[TableKey],
    *,
    budget: QueryBudget,
    relation: NeighboringRelation,
    rows: int,
    objective: Objective = "orders",
    weights: Mapping[TableKey, float] | None = None,
    ordered: frozenset[int] = frozenset(),
    spine: Spine | None = None,
    expected_rows: int | None = None,
    query: Any = None,
) -> MarginalPlan:
    """The best noise for these tables: contrasts with Gaussian noise, or plain Laplace tables."""
    central_relation(relation)
    if objective not in OBJECTIVES:
        raise InvalidArgument(
            f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}."
        )
    check_sizes(columns, tables, spine)
    if spine is not None:
        _check_spine(spine, objective, ordered)
    asked = tuple(dict.fromkeys(tables))
    question = PlanQuestion(
        columns=tuple(columns),
        tables=asked,
        relation=relation,
        rows=rows,
        objective=objective,
        weights=dict(weights or {}),
        ordered=ordered,
        spine=spine,
    )
    maker = _Maker(asked=question, budget=budget)
    made: list[MarginalPlan] = []
    if budget.rho is not None or budget.delta is not None:
        made.append(maker.contrasts())
    if budget.epsilon is not None and (budget.delta is None or _may_be_plain(question.every)):
        made.append(maker.plain())
    best = min(made, key=lambda one: question.error(one._design))  # noqa: SLF001 - same package
    return replace(best, expected_rows=expected_rows, _query=query)


def _may_be_plain(tables: Sequence[TableKey]) -> bool:
    """Whether Laplace noise can be better although a delta was given: for few, small orders."""
    return len(tables) <= 128


def _check_spine(spine: Spine, objective: Objective, ordered: frozenset[int]) -> None:
    if objective == "max_error":
        raise InvalidArgument(
            "objective must be 'orders', 'tables' or 'cells' with a spine: the errors of its nodes "
            "differ."
        )
    if ordered & set(spine.columns):
        raise InvalidArgument("ranges must be of columns that are no level of the spine.")


def check_sizes(
    columns: Sequence[MarginalColumn], tables: Sequence[TableKey], spine: Spine | None = None
) -> None:
    """Refuse tables that are too large, by name."""
    if not tables:
        raise InvalidArgument("by must name one table or more.")
    for table in tables:
        many = cells([columns[i] for i in table])
        if many > MOST_CELLS:
            widest = max((columns[i] for i in table), key=lambda one: one.size)
            raise InvalidArgument(
                f"the table of {', '.join(columns[i].name for i in table)} has {many:,} cells, "
                f"more than {MOST_CELLS:,}: make {widest.name!r} coarser, which has "
                f"{widest.size:,} values."
            )
    every = closure(tables) if spine is None else spine.closure(tables)
    whole = sum(cells([columns[i] for i in table]) for table in every)
    if whole > MOST_ALL_CELLS:
        raise InvalidArgument(
            f"the tables have {whole:,} cells in all, more than {MOST_ALL_CELLS:,}: ask for fewer."
        )


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """Plans of either kind for the same question."""

    asked: PlanQuestion
    budget: QueryBudget

    def contrasts(self) -> MarginalPlan:
        """Gaussian noise on contrasts, with the certified composition of what is drawn."""
        columns, rows = self.asked.columns, self.asked.rows
        places, found, gap = self.asked.contrasts()
        moved = [
            moved_squared(place, columns, rows=rows, relation=self.asked.relation)
            for place in places
        ]
        # In steps of the integers that are measured, for a cost of one; exact from here on.
        ideal = [
            Fraction(float(value)) * squared(place, columns) * rows**2
            for value, place in zip(found, places, strict=True)
        ]
        noise = shares_of.short_squares(self._scaled(ideal, moved))
        return self._plan(columns, places, self._gaussians(noise, moved), plain=False, gap=gap)

    def _scaled(self, ideal: Sequence[Fraction], moved: Sequence[int]) -> list[Fraction]:
        """The ideal variances times the smallest factor that keeps the budget."""
        # Theorem: the composition of the noise at the rounded variances is within the budget.
        # Proof: for rho, `sum moved / (2 s^2)` in rationals, at variances that are only rounded up.
        #   For (epsilon, delta), the composed event at the rounded variances is certified.
        if self.budget.rho is not None:
            pairs = zip(moved, ideal, strict=True)
            cost = sum([Fraction(move) / square for move, square in pairs], start=Fraction(0)) / 2
            return [square * (cost / self.budget.rho) for square in ideal]
        epsilon, delta = float(self.budget.epsilon or 0), float(self.budget.delta or 0)

        def meets(factor: Fraction) -> bool:
            squares = shares_of.short_squares([square * factor for square in ideal])
            event = events.compose(
                [_event(square, move) for square, move in zip(squares, moved, strict=True)]
            )
            if composition.delta(event, epsilon=epsilon).value > delta:
                return False
            return composition.epsilon(event, delta=delta).value <= epsilon  # as users read it

        start = Fraction(gaussian_sigma(epsilon, delta=delta)) ** 2
        pairs = zip(moved, ideal, strict=True)
        cost = sum([Fraction(move) / square for move, square in pairs], start=Fraction(0))
        factor = shares_of.smallest_factor(meets, start=(start * cost).limit_denominator(10**12))
        return [square * factor for square in ideal]

    def _gaussians(
        self, squares: Sequence[Fraction], moved: Sequence[int]
    ) -> list[AdditiveMechanism]:
        # A squared distance N is that of N coordinates which move by one: no root is rounded.
        return [
            gaussian(
                sensitivity=1,
                norm="linf",
                dimension=move,
                rho=Fraction(move) / square / 2,
                domain="integers",
                relation=self.asked.relation,
            )
            for square, move in zip(squares, moved, strict=True)
        ]

    def plain(self) -> MarginalPlan:
        """Laplace noise on plain tables, put together by least squares."""
        flat = self.asked.flat()
        tables, shares = flat.plain()
        exact = _rational_shares(shares)
        epsilon = Fraction(self.budget.epsilon or 0)
        used = [k for k, share in enumerate(exact) if share]
        places = tuple([tuple([(i, EACH) for i in tables[k]]) for k in used])
        mechanisms = [
            laplace(
                sensitivity=moved_plain(place, rows=flat.rows, relation=flat.relation),
                epsilon=epsilon * exact[k],
                domain="integers",
                relation=flat.relation,
            )
            for k, place in zip(used, places, strict=True)
        ]
        return self._plan(flat.columns, places, mechanisms, plain=True, gap=0.0)

    def _plan(
        self,
        columns: tuple[MarginalColumn, ...],
        places: tuple[Place, ...],
        mechanisms: Sequence[AdditiveMechanism],
        *,
        plain: bool,
        gap: float,
    ) -> MarginalPlan:
        asked = self.asked
        return MarginalPlan(
            columns=columns,
            tables=tuple([tuple([columns[i].name for i in table]) for table in asked.tables]),
            budget=self.budget,
            relation=asked.relation,
            max_rows_per_unit=asked.rows,
            objective=asked.objective,
            mechanisms=tuple(mechanisms),
            gap=gap,
            _design=design_of(
                columns=columns,
                tables=asked.tables,
                plain=plain,
                places=places,
                laws=tuple([_law(one) for one in mechanisms]),
                spine=asked.spine,
            ),
        )


def _event(square: Fraction, moved: int) -> events.Event:
    return events.DiscreteGaussianEvent(square, Fraction(moved), moved)


def _law(mechanism: AdditiveMechanism) -> DiscreteGaussian | DiscreteLaplace:
    noise = None if mechanism.integers is None else mechanism.integers.noise
    if isinstance(noise, DiscreteGaussian | DiscreteLaplace):
        return noise
    raise AssertionError  # both are made on integers above


def _rational_shares(shares: Floats) -> list[Fraction]:
    """Shares as rationals, rounded down: their sum is at most one."""
    unit = 1 << 30
    whole = [Fraction(math.floor(share * unit), unit) for share in shares.tolist()]
    extra = 1 - sum(whole)
    top = max(range(len(whole)), key=whole.__getitem__)
    whole[top] += extra
    return whole


def measured_sizes(design: MarginalDesign) -> list[tuple[int, ...]]:
    """The shapes of all measurements."""
    return [measured_shape(place, design.columns, plain=design.plain) for place in design.places]
