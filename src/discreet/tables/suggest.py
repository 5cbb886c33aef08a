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
from discreet.core.number_format import number, percent, short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, unit_schema, units
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
from discreet.query.result import FixedResult, check_confidence, records
from discreet.tables._open_table import OpenTable
from discreet.tables.release import fresh_key, reserve_budget

_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedBounds(FixedResult):
    """Hold suggested bounds of a column. Made by `Table.suggest_bounds`.

    The bounds are powers of two, or zero.

    Attributes:
        column: Name of the column.
        lower: Suggested lower bound.
        upper: Suggested upper bound.
        granularity: Suggested granularity.
        outside: Share of the privacy units that lie outside at most, with 95% confidence.
        whole: Whether the column is declared as whole numbers.
        guarantee: Privacy guarantee of the release.
        receipt: Entry of the ledger that paid for it.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> ages = pd.DataFrame({"person": range(400), "age": [23, 35, 41, 67] * 100})
        >>> people = discreet.table(
        ...     ages, privacy_unit="person", max_rows_per_unit=1, columns={}, budget=5
        ... )
        >>> found = people.suggest_bounds("age", epsilon=1)
        >>> found.column, found.lower < found.upper
        ('age', True)
    """

    column: str
    lower: float
    upper: float
    granularity: float
    outside: float
    whole: bool
    guarantee: Guarantee
    receipt: Receipt

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the two bounds.

        Args:
            confidence: That with which at most the share `outside` lies beyond, if it is given.

        Returns:
            One record for each: bound, value, std, low and high, the last three None.

        Examples:
            >>> [row["bound"] for row in found.rows()]
            ['lower', 'upper']
        """
        check_confidence(confidence, _LEVEL)
        return records(("bound",), (("lower",), ("upper",)), value=(self.lower, self.upper))

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
            f"{self.column}: from {number(self.lower)} to {number(self.upper)} in steps of "
            f"{number(self.granularity)}; with "
            f"{percent(_LEVEL)} confidence at most {percent(self.outside)} of the units (one row "
            "of each) lie outside and would be clipped"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedLimits(FixedResult):
    """Suggested limits, each with what the alternatives would cost.

    Made by `Table.suggest_contribution_limits`.

    Attributes:
        row_choices: Limits on the rows of a unit, each with its error.
        group_choices: Limits on the groups of a unit, each with its error; empty without groups.
        guarantee: Privacy guarantee of the release.
        receipt: Entry of the ledger that paid for it.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"person": list(range(200)) * 2})
        >>> people = discreet.table(
        ...     visits, privacy_unit="person", max_rows_per_unit=1, columns={}, budget=5
        ... )
        >>> limits = people.suggest_contribution_limits(planned_epsilon=1, epsilon=1)
        >>> [choice.limit for choice in limits.row_choices[:3]]
        [1, 2, 4]
    """

    row_choices: tuple[LimitChoice, ...]
    group_choices: tuple[LimitChoice, ...]
    guarantee: Guarantee
    receipt: Receipt

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List each limit with the error to expect of it.

        Args:
            confidence: Of the counts that the errors follow from, if it is given.

        Returns:
            One record for each: of, limit, value (the error), std, low and high, the last three
            None.

        Examples:
            >>> limits.rows()[0]["of"]
            'rows'
        """
        check_confidence(confidence, _LEVEL)
        both = (("rows", self.row_choices), ("groups", self.group_choices))
        found = [(of, one) for of, choices in both for one in choices]
        keys = ((of, one.limit) for of, one in found)
        return records(("of", "limit"), keys, value=[one.error for _, one in found])

    @property
    def max_rows_per_unit(self) -> int:
        """Limit on rows with the smallest predicted error."""
        return min(self.row_choices, key=lambda one: one.error).limit

    @property
    def max_groups_per_unit(self) -> int | None:
        """Limit on groups with the smallest predicted error; None without groups."""
        return (
            min(self.group_choices, key=lambda one: one.error).limit if self.group_choices else None
        )

    @property
    def toml(self) -> str:
        """Lines for the table of a release file."""
        lines = [f"max_rows_per_unit = {self.max_rows_per_unit}"]
        if self.max_groups_per_unit is not None:
            lines.append(f"max_groups_per_unit = {self.max_groups_per_unit}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [self.toml.replace("\n", ", ")]
        for what, found in (("row", self.row_choices), ("group", self.group_choices)):
            best = min((one.error for one in found), default=math.inf)
            lines += [
                f"  {one.limit} {what}{'' if one.limit == 1 else 's'}: "
                f"{short(one.lost)} would be left out, noise {short(one.noise)}"
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
    """Bounds that hold the values of most units, from a noisy histogram over powers of two."""
    # Theorem: the histogram, and so the suggestion, is within the budget under the table's
    #   relation.
    # Proof: one row of each unit is counted, in one bin: a unit moves one count by one (a
    #   replacement two). Bins and outermost range are public; rows without a value are left out.
    # Source: docs/theory/keys.md.
    # Needs: an account.
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
    program = compile_program(
        schema={
            **unit_schema(table.spec.privacy_unit, table.spec.schema),
            column: real(lower=lower, upper=upper, granularity=grid),
        },
        aggregates={"units": count()},
        unit=table.spec.privacy_unit,
        by={column: col(column).cut(marks)},
        limits=ContributionLimits()
        if table.spec.privacy_unit is None
        else ContributionLimits(max_rows_per_unit=1),
    )
    check_source(program, table._source)
    mechanism = _noise(budget, table.spec.relation, parts=1)[0]
    label = f"bounds of {column}"
    with reserve_budget(table.account, mechanism.guarantee, label=label, rng=rng) as held:
        exact = collect(program, source=table._source, key=fresh_key(rng)).columns["units"]
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
    """How much of one unit to use: from noisy histograms of rows and groups per unit."""
    # Theorem: both histograms are within the budget under the table's relation.
    # Proof: each unit is in exactly one class of each histogram, by its own rows; a unit moves one
    #   count of each by one (a replacement two).
    # Source: docs/theory/keys.md.
    # Needs: an account, and a table with a unit.
    from discreet.data.execute import engine_of  # noqa: PLC0415 - engines are slow to import
    from discreet.data.source import check_source  # noqa: PLC0415

    setting = table.spec
    if setting.privacy_unit is None:
        raise InvalidArgument("unit must be declared: without one each row is another unit.")
    epsilon = check.positive("planned_epsilon", planned_epsilon)
    groups = builders.count_units(by=by).by
    program = compile_program(
        schema=setting.schema,
        aggregates={"units": units()},
        unit=setting.privacy_unit,
        by=groups or None,
    )
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
        row_choices=found[0],
        group_choices=found[1] if groups else (),
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
