"""Private suggestions, charged like any release: bounds of a column, limits of contributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number as Numeric
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, TableScan, count, units
from discreet.data.schema import NumericColumn, kind_of, real
from discreet.ledger.account import Receipt
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.noise.distribution import Distribution
from discreet.noise.random_source import RandomSource
from discreet.query import builders
from discreet.query._bound_suggestions import (
    LARGEST,
    LimitChoice,
    count_classes,
    covering_range,
    granularity_of,
    limit_choices,
    power_of_two_edges,
)
from discreet.query.budget import BudgetChange, QueryBudget
from discreet.query.builders import By
from discreet.tables._open_table import OpenTable
from discreet.tables.release import fresh_key, reserve_budget

_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedBounds:
    """Suggested bounds of a column, in powers of two, and how sure they are."""

    column: str
    lower: float
    upper: float
    granularity: float
    outside: float
    whole: bool
    guarantee: Guarantee
    receipt: Receipt

    @property
    def toml(self) -> str:
        """A line for the columns of a release file."""
        if self.whole:
            ends = f"lower = {math.floor(self.lower)}, upper = {math.ceil(self.upper)}"
            return f'{_bare(self.column)} = {{ kind = "integer", {ends} }}'
        settings = (
            f"lower = {self.lower:.17g}, upper = {self.upper:.17g}, granularity = "
            f"{self.granularity:.17g}"
        )
        return f'{_bare(self.column)} = {{ kind = "real", {settings} }}'

    def __str__(self) -> str:
        return (
            f"{self.column}: from {self.lower:g} to {self.upper:g} in steps of "
            f"{self.granularity:g}; with "
            f"{100 * _LEVEL:g}% confidence at most {100 * self.outside:.3g}% of the units (one row "
            "of each) lie outside and would be clipped"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedLimits:
    """Suggested limits, each with what the alternatives would cost."""

    rows: tuple[LimitChoice, ...]
    groups: tuple[LimitChoice, ...]
    guarantee: Guarantee
    receipt: Receipt

    @property
    def max_rows_per_unit(self) -> int:
        """The limit on rows with the smallest predicted error."""
        return min(self.rows, key=lambda one: one.error).limit

    @property
    def max_groups_per_unit(self) -> int | None:
        """The limit on groups with the smallest predicted error, if groups were asked about."""
        return min(self.groups, key=lambda one: one.error).limit if self.groups else None

    @property
    def toml(self) -> str:
        """Lines for the table of a release file."""
        lines = [f"max_rows_per_unit = {self.max_rows_per_unit}"]
        if self.max_groups_per_unit is not None:
            lines.append(f"max_groups_per_unit = {self.max_groups_per_unit}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [self.toml.replace("\n", ", ")]
        for what, found in (("rows", self.rows), ("groups", self.groups)):
            best = min((one.error for one in found), default=math.inf)
            lines += [
                f"  {one.limit} {what}: {one.lost:.4g} would be left out, noise {one.noise:.4g}"
                for one in found
                if one.error <= 8 * best
            ]
        return "\n".join(lines)

    __repr__ = __str__


def suggest_bounds(
    table: OpenTable,
    column: str,
    *,
    coverage: float,
    outermost: tuple[Numeric, Numeric] | None,
    budget: QueryBudget,
    rng: RandomSource,
) -> SuggestedBounds:
    """Bounds that hold the values of most units, from a noisy histogram over powers of two.

    Theorem: the histogram, and so the suggestion, is within the budget under the table's relation.
    Proof: one row of each unit is counted, in one bin: a unit moves one count by one (a
        replacement two). Bins and outermost range are public; missing values count as 0.
    Source: docs/theory/keys.md.
    Needs: an account.
    """
    from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import
    from discreet.data.source import check_source  # noqa: PLC0415

    declared = table.spec.schema.get(column)
    if not isinstance(declared, NumericColumn | None):
        kind = kind_of(declared)
        raise InvalidArgument(f"column must hold numbers; {column!r} is declared as {kind}.")
    inside = float(check.probability("coverage", coverage, zero=False, one=False))
    ends = check.as_tuple("outermost", outermost or (-(2**LARGEST), 2**LARGEST))
    if len(ends) != 2:
        raise InvalidArgument(f"outermost must be a pair of numbers, got {len(ends)} of them.")
    lower, upper = (check.finite("outermost", end) for end in ends)
    marks, grid = power_of_two_edges(lower, upper)
    missing = min(max(Fraction(0), lower), upper)
    plan = TableScan(
        schema={column: real(lower=lower, upper=upper, granularity=grid, missing=missing)},
        aggregates={"units": count()},
        unit=table.spec.privacy_unit,
        by={column: col(column).cut(marks)},
        limits=ContributionLimits()
        if table.spec.privacy_unit is None
        else ContributionLimits(max_rows_per_unit=1),
    )
    check_source(plan.program(), table._source)
    mechanism = _noise(budget, table.spec.relation, parts=1)[0]
    label = f"bounds of {column}"
    with reserve_budget(table.account, mechanism.guarantee, label=label, rng=rng) as held:
        exact = collect(plan, source=table._source, key=fresh_key(rng)).columns["units"]
        noisy = mechanism.release(exact, rng=rng).tolist()
        del exact
    limits = [lower, *marks, upper]
    found = covering_range(
        noisy, _law(mechanism), coverage=inside, limits=limits, confidence=_LEVEL
    )
    low, high = limits[found.first], limits[found.last]
    declared = table.spec.schema.get(column)
    return SuggestedBounds(
        column=column,
        lower=float(low),
        upper=float(high),
        granularity=float(granularity_of(low, high)),
        outside=found.outside,
        whole=isinstance(declared, NumericColumn) and declared.exponent == 0,
        guarantee=mechanism.guarantee,
        receipt=held.receipt,
    )


def suggest_contribution_limits(
    table: OpenTable, *, by: By, planned_epsilon: Numeric, budget: QueryBudget, rng: RandomSource
) -> SuggestedLimits:
    """How much of one unit to use: from noisy histograms of rows and groups per unit.

    Theorem: both histograms are within the budget under the table's relation.
    Proof: each unit is in exactly one class of each histogram, by its own rows; a unit moves one
        count of each by one (a replacement two).
    Source: docs/theory/keys.md.
    Needs: an account, and a table with a unit.
    """
    from discreet.data.execute import engine_of  # noqa: PLC0415 - engines are slow to import
    from discreet.data.source import check_source  # noqa: PLC0415

    setting = table.spec
    if setting.privacy_unit is None:
        raise InvalidArgument("unit must be declared: without one each row is another unit.")
    epsilon = check.positive("planned_epsilon", planned_epsilon)
    groups = builders.count_units(by=by).by
    plan = TableScan(
        schema=setting.schema,
        aggregates={"units": units()},
        unit=setting.privacy_unit,
        by=groups or None,
    )
    program = plan.program()
    check_source(program, table._source)
    mechanisms = _noise(budget, setting.relation, parts=2 if groups else 1)
    guarantee = sum((one.guarantee for one in mechanisms[1:]), start=mechanisms[0].guarantee)
    with reserve_budget(table.account, guarantee, label="contribution limits", rng=rng) as held:
        spread = engine_of(table._source).spread(program)
        noisy = [
            one.release(count_classes(pairs), rng=rng).tolist()
            for one, pairs in zip(mechanisms, spread, strict=False)
        ]
        del spread
    found = [_choices(counts, one, epsilon) for counts, one in zip(noisy, mechanisms, strict=True)]
    return SuggestedLimits(
        rows=found[0],
        groups=found[1] if groups else (),
        guarantee=guarantee,
        receipt=held.receipt,
    )


def _choices(
    counts: Sequence[int], mechanism: AdditiveMechanism, epsilon: Fraction
) -> tuple[LimitChoice, ...]:
    noise = math.sqrt(2) / float(epsilon)
    return tuple(limit_choices(counts, _law(mechanism), noise=noise, confidence=_LEVEL))


def _noise(
    budget: QueryBudget, relation: NeighboringRelation, *, parts: int
) -> tuple[AdditiveMechanism, ...]:
    """One unit is in one bin: it moves one count, a replacement moves two."""
    moved = 1 if relation is NeighboringRelation.ADD_REMOVE else 2
    move = BudgetChange(l1=moved, l2_squared=moved)
    made = budget.mechanisms([move] * parts, shares=[Fraction(1, parts)] * parts, relation=relation)
    return tuple(one for one in made if isinstance(one, AdditiveMechanism))


def _law(mechanism: AdditiveMechanism) -> Distribution:
    noise: Any = None if mechanism.integers is None else mechanism.integers.noise
    if not isinstance(noise, Distribution):
        raise InvalidArgument("The budget must buy integer noise.")
    return noise


def _bare(name: str) -> str:
    """A key of TOML."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
