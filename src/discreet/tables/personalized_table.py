"""Releases in which each person has their own budget, from a column or from the ledger.

The cost follows from public facts and is charged before a row is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import Admitted
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.data.expression import Expression, col
from discreet.data.program import Program
from discreet.data.schema import CategoryColumn, ColumnSpec, LookupColumn, category
from discreet.data.unit import CompositeUnit
from discreet.ledger.account import Receipt
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.noise.random_source import RandomSource, system_rng
from discreet.query import builders
from discreet.query._release_plan import ReleasePlan, check_query, plan_release
from discreet.query.builders import By, Edges, Keys, Query, Value
from discreet.query.personalized_queries import (
    Level,
    PrivacySpecification,
    Sums,
    WeightedPlan,
    WeightingTradeoff,
    plan_level_scans,
    plan_weighted,
    privacy_specification,
    restrict_query,
    split_levels,
    weighting_tradeoff,
)
from discreet.query.result import Result
from discreet.tables._execute import build_releases
from discreet.tables._open_table import OpenTable
from discreet.tables.release import Release, fresh_key, reserve_budget

# ── One privacy level for every unit ─────────────────────────────────────────────────────────────


def attach_levels(
    table: OpenTable,
    column: str,
    *,
    personal_budgets: PersonalBudgets | None,
    levels: PrivacySpecification,
) -> OpenTable:
    """The table in which every unit has one level, the same in all of its rows."""
    from discreet.data.source import (  # noqa: PLC0415 - engines are slow to import
        ArrowStreamSource,
        JoinedSource,
        SparkSource,
    )

    setting = table.spec
    unit, schema = _owner_column(table), setting.schema
    kind = None if unit is None else table._source.columns.get(unit)
    textual = kind in ("text", "object")
    if personal_budgets is not None:
        if isinstance(table._source, SparkSource):
            raise Unsupported("Spark would keep who was admitted in its logs; use another engine.")
        plain = category([str(x) for x in levels.levels])
        looked = LookupColumn(source=str(unit), inner=plain, textual=textual, keys=(), codes=())
        changed = {**schema, column: looked}
        return replace(table, spec=replace(setting, schema=changed))
    held = schema[column]
    if unit is None or (isinstance(held, LookupColumn) and held.source == unit):
        return table
    if isinstance(table._source, ArrowStreamSource | SparkSource) or isinstance(held, LookupColumn):
        raise Unsupported(
            "A unit may have several rows here, and must have one level: put the levels into a "
            "table of people and attach them, table.join_by_unit(people, columns=[...])."
        )
    if not isinstance(held, CategoryColumn):
        raise InvalidArgument(f"{column!r} must be a category.")
    source = JoinedSource(
        source=table._source, other=table._source, unit=unit, attached={column: held}
    )
    looked = LookupColumn(source=unit, inner=held, textual=textual, keys=(), codes=())
    changed = {**schema, column: looked}
    return replace(table, _source=source, spec=replace(setting, schema=changed))


def _owner_column(table: OpenTable) -> str | None:
    """The column that names people; refused where a unit is only a part of one's rows."""
    unit = table.spec.privacy_unit
    if isinstance(unit, CompositeUnit):
        raise Unsupported(
            "Privacy levels belong to people: open the table with one column as privacy_unit."
        )
    return unit


def restrict_to_members(
    opened: OpenTable, column: str, *, personal_budgets: PersonalBudgets, taking: Admitted
) -> OpenTable:
    """The table in which only the admitted members of a crowd have a level; private."""
    held = opened.spec.schema[column]
    if not isinstance(held, LookupColumn) or not isinstance(held.inner, CategoryColumn):
        raise InvalidArgument(
            "The privacy level of a member must be looked up by the privacy unit."
        )
    places = {str(level): place for place, level in enumerate(held.inner.categories)}
    members = [
        name for name, here in zip(personal_budgets.members, taking.tolist(), strict=True) if here
    ]
    found = replace(
        held,
        keys=_keys(members, textual=held.textual),
        codes=tuple(places.get(x, held.missing) for x in personal_budgets.levels[taking].tolist()),
    )
    schema = {**opened.spec.schema, column: found}
    return replace(opened, spec=replace(opened.spec, schema=schema))


def check_members(table: OpenTable, personal_budgets: PersonalBudgets) -> None:
    """Refuse members that are not one unit each, before anybody pays: no row is read."""
    kind = table._source.columns.get(_owner_column(table) or "")
    _keys(personal_budgets.members, textual=kind in ("text", "object"))


def _keys(members: Sequence[str], *, textual: bool) -> tuple[str, ...] | tuple[int, ...]:
    if textual:
        if any(not member or "\0" in member for member in members):
            raise InvalidArgument(
                "Members of personal budgets must not be empty or contain NUL here."
            )
        return tuple(members)
    try:
        keys = tuple(int(member) for member in members)
    except ValueError:
        keys = ()
    # "7" and "07" are two members, with a budget each, but one number.
    if any(str(key) != member for key, member in zip_longest(keys, members)):
        raise InvalidArgument(
            "The privacy unit is a whole number in the table: all members must be whole "
            "numbers, without leading zeros or spaces."
        )
    if any(abs(key) >= 1 << 63 for key in keys):
        raise InvalidArgument(
            "Members of personal budgets must be numbers of at most 64 bits here."
        )
    return keys


# ── Personalized tables and releases ─────────────────────────────────────────────────────────────


VERSION = 1
_LEVEL = 0.95
_MEMBER = "level of the crowd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizedRelease(Result):
    """Hold a release in which each person has the privacy loss of their own level.

    The value and its interval are those of the weighted number. They do not describe the people who
    count for less.

    Attributes:
        release: The release; its guarantee is that of the people with the largest loss.
        guarantee: Privacy guarantee of each level.
        weights: Weight of a person of each level.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(
        ...     pd.DataFrame({"level": ["strict", "open"] * 200}),
        ...     columns={"level": discreet.category(["strict", "open"])},
        ...     budget=100,
        ... )
        >>> personal = people.with_personal_budgets(
        ...     privacy_levels={"strict": 0.1, "open": 1}, budget="level"
        ... )
        >>> personal.count().guarantee["open"].epsilon()
        0.1
    """

    release: Release
    guarantee: PersonalizedGuarantee
    weights: Mapping[Level, float]

    @property
    def value(self) -> Any:
        """The value of the release."""
        return self.release.value

    def interval(self, confidence: float = _LEVEL) -> tuple[Any, Any]:
        """Return bounds that hold the weighted number without noise.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> release = personal.count()
            >>> low, high = release.interval(0.99)
            >>> low <= release.value <= high
            True
        """
        return self.release.interval(confidence)

    @property
    def std(self) -> Any:
        """Standard deviation of the noise, in the shape of the value."""
        return self.release.std

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each group, of the weighted number.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Dictionaries with the keys, and `value`, `std`, `low` and `high`.

        Examples:
            >>> list(personal.count().rows()[0])
            ['value', 'std', 'low', 'high']
        """
        return self.release.rows(confidence)

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        Returns:
            Text with the release, the guarantee of each level, and the weights.

        Examples:
            >>> type(personal.count().to_json()).__name__
            'str'
        """
        content = {
            "discreet_personal_release": VERSION,
            "release": json.loads(self.release.to_json()),
            "guarantee": json.loads(self.guarantee.to_json()),
            "weights": list(map(list, self.weights.items())),
        }
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> PersonalizedRelease:
        """Read a release back from the text of `to_json`.

        Args:
            text: What `to_json` has written.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no such release, or states numbers that do not follow from
                its noisy sums.

        Examples:
            >>> release = personal.count()
            >>> type(release).from_json(release.to_json()).value == release.value
            True
        """
        with canonical.reading("a personal release"):
            content = json.loads(text)
            if content["discreet_personal_release"] != VERSION:
                raise InvalidArgument("text is a personal release of another version.")
            release, guarantee = json.dumps(content["release"]), json.dumps(content["guarantee"])
            weights = {level: float(weight) for level, weight in content["weights"]}
        return cls(
            release=Release.from_json(release),
            guarantee=PersonalizedGuarantee.from_json(guarantee),
            weights=weights,
        )

    def __str__(self) -> str:
        paid = ", ".join(f"{name} {short(g.epsilon())}" for name, g in _pure(self.guarantee))
        counts = ", ".join(
            f"{name} {short(weight, digits=3)}" for name, weight in self.weights.items()
        )
        told = [f"  people count by level: {counts}"]
        return "\n".join([str(self.release), *told, *([f"  epsilon: {paid}"] if paid else [])])

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PersonalizedTable:
    """Query a table in which each person has a privacy level of their own.

    Made by `Table.with_personal_budgets`.

    Attributes:
        table: The private table.
        levels: Privacy loss of one query for the people of each level.
        column: Name of the column that holds the level.
        personal_budgets: Personal budgets of the ledger that pay; None if the table's account pays.

    Examples:
        >>> levels = ["strict"] * 300 + ["open"] * 100
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67] * 100, "level": levels}),
        ...     columns={
        ...         "age": discreet.integer(0, 120),
        ...         "level": discreet.category(["strict", "open"]),
        ...     },
        ...     account=discreet.Ledger().account("demo", limit=discreet.pure_dp(100)),
        ... )
        >>> personal = people.with_personal_budgets(
        ...     privacy_levels={"strict": 0.1, "open": 1}, budget="level"
        ... )
        >>> personal.levels.levels
        ('strict', 'open')
    """

    # Theorem: an answer has the guarantee of each person's level toward all data that differ in
    #   this person alone: in whether the person is there at all, under add/remove; in what the
    #   data say of the person, whose level stays, under replace-one.
    # Proof: the rows of one person are in the sums of one level: `OpenTable` tables without a unit
    #   have one row of each, and else the level is attached to the unit. The rest is `Weighted`.
    # Source: docs/theory/personalized.md.
    # Needs: a level is the person's own choice. Under add/remove it is protected with the person:
    #   who changes a level pays both. Under replace-one the numbers of people at the levels are
    #   taken as public. Who has rows of several levels has one of them, and is protected as
    #   the most open of them.

    table: OpenTable
    levels: PrivacySpecification
    column: str
    personal_budgets: PersonalBudgets | None = field(default=None, repr=False)

    def count(
        self,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        max_privacy_level: Level | None = None,
        expected_rows: Mapping[Any, int] | None = None,
        max_difference: Number | None = None,
        label: str | None = None,
    ) -> PersonalizedRelease:
        """Count the rows.

        Args:
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups. If None, all declared values of `by` are groups.
            max_privacy_level: Level above which nobody spends; people of stricter levels count for
                less. If None, the level with the smallest error at `expected_rows`, or the
                strictest one.
            expected_rows: Number of rows of each level, stated or guessed, to choose
                `max_privacy_level`.
            max_difference: Largest distance between the means of two levels, in units of the value.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with what it costs the people of each level, and how much they count.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column or a level is not declared.

        Privacy:
            Each person has the guarantee of their own privacy level. The cost is charged before a
            row is read.

        Examples:
            >>> release = personal.count(expected_rows={"strict": 300, "open": 100})
            >>> low, high = release.interval()
            >>> low <= release.value <= high
            True
        """
        query = builders.count(where=where, by=by, keys=keys)
        return self.release(
            query,
            max_privacy_level=max_privacy_level,
            expected_rows=expected_rows,
            max_difference=max_difference,
            label=label,
        )

    def sum(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        max_privacy_level: Level | None = None,
        expected_rows: Mapping[Any, int] | None = None,
        max_difference: Number | None = None,
        label: str | None = None,
    ) -> PersonalizedRelease:
        """Sum a column or an expression.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups. If None, all declared values of `by` are groups.
            max_privacy_level: Level above which nobody spends; people of stricter levels count for
                less. If None, the level with the smallest error at `expected_rows`, or the
                strictest one.
            expected_rows: Number of rows of each level, stated or guessed, to choose
                `max_privacy_level`.
            max_difference: Largest distance between the means of two levels, in units of the value.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with what it costs the people of each level, and how much they count.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column or a level is not declared.

        Privacy:
            Each person has the guarantee of their own privacy level. The cost is charged before a
            row is read.

        Examples:
            >>> personal.sum("age", max_privacy_level="open").weights["open"]
            1.0
        """
        query = builders.sum(value, where=where, by=by, keys=keys)
        return self.release(
            query,
            max_privacy_level=max_privacy_level,
            expected_rows=expected_rows,
            max_difference=max_difference,
            label=label,
        )

    def mean(
        self,
        value: Value,
        *,
        where: Expression | None = None,
        by: By = None,
        keys: Keys = None,
        max_privacy_level: Level | None = None,
        expected_rows: Mapping[Any, int] | None = None,
        max_difference: Number | None = None,
        label: str | None = None,
    ) -> PersonalizedRelease:
        """Average a column or an expression over rows; of a boolean, a share.

        Args:
            value: Numeric column, or an expression of columns. Its bounds decide the noise.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            by: Column, expression, or several of them, whose values make the groups. If None,
                there is one number.
            keys: Public keys of the groups. If None, all declared values of `by` are groups.
            max_privacy_level: Level above which nobody spends; people of stricter levels count for
                less. If None, the level with the smallest error at `expected_rows`, or the
                strictest one.
            expected_rows: Number of rows of each level, stated or guessed, to choose
                `max_privacy_level`.
            max_difference: Largest distance between the means of two levels, in units of the value.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with what it costs the people of each level, and how much they count.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column or a level is not declared.

        Privacy:
            Each person has the guarantee of their own privacy level. The cost is charged before a
            row is read.

        Examples:
            >>> 0 <= personal.mean("age", max_privacy_level="open").value <= 120
            True
        """
        query = builders.mean(value, where=where, by=by, keys=keys)
        return self.release(
            query,
            max_privacy_level=max_privacy_level,
            expected_rows=expected_rows,
            max_difference=max_difference,
            label=label,
        )

    def histogram(
        self,
        value: Value,
        *,
        edges: Edges = None,
        where: Expression | None = None,
        keys: Keys = None,
        max_privacy_level: Level | None = None,
        expected_rows: Mapping[Any, int] | None = None,
        max_difference: Number | None = None,
        label: str | None = None,
    ) -> PersonalizedRelease:
        """Count the rows in each category, or between each two edges.

        Args:
            value: Categorical column, or a numeric one together with `edges`.
            edges: Ascending cut points of a numeric column. If None, each declared value is a bin.
            where: Condition that a row must meet to be used, such as `col("age") >= 65`. If None,
                all rows are used.
            keys: Public keys to count, if not all declared ones.
            max_privacy_level: Level above which nobody spends; people of stricter levels count for
                less. If None, the level with the smallest error at `expected_rows`, or the
                strictest one.
            expected_rows: Number of rows of each level, stated or guessed, to choose
                `max_privacy_level`.
            max_difference: Largest distance between the means of two levels, in units of the value.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release with what it costs the people of each level, and how much they count.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            InvalidArgument: A column or a level is not declared.

        Privacy:
            Each person has the guarantee of their own privacy level. The cost is charged before a
            row is read.

        Examples:
            >>> personal.histogram("age", edges=[0, 40, 121]).release.key_columns
            ('age',)
        """
        query = builders.histogram(value, edges=edges, where=where, keys=keys)
        return self.release(
            query,
            max_privacy_level=max_privacy_level,
            expected_rows=expected_rows,
            max_difference=max_difference,
            label=label,
        )

    def trades(
        self,
        query: Query,
        *,
        expected_rows: Mapping[Any, int],
        max_difference: Number | None = None,
        confidence: float = _LEVEL,
    ) -> tuple[WeightingTradeoff, ...]:
        """Compare the largest privacy levels that a query could use, best first.

        The comparison follows from public numbers alone. Nothing is read and nothing is charged.

        Args:
            query: Query, made for example by `discreet.query.mean`.
            expected_rows: Expected number of rows of each level, in a group: public, or your guess.
            max_difference: Largest difference between the means of two levels, in the unit of the
                value. If None, the width of the declared bounds.
            confidence: Probability with which the interval holds the exact number, between 0 and 1.

        Returns:
            One trade-off for each level, with its error and its bias.

        Examples:
            >>> rows_of = {"strict": 300, "open": 100}
            >>> best, *others = personal.trades(discreet.query.mean("age"), expected_rows=rows_of)
            >>> best.max_privacy_level in ("strict", "open"), len(others)
            (True, 1)
        """
        found = [
            weighting_tradeoff(
                self._planned([query], cap),
                expected_rows=expected_rows,
                max_difference=max_difference,
                confidence=confidence,
            )
            for cap in _caps(self.levels, query)
        ]
        # Of equal errors the one without bias.
        return tuple(sorted(found, key=lambda one: (one.error, one.bias)))

    def release(
        self,
        query: Query,
        *,
        max_privacy_level: Level | None = None,
        expected_rows: Mapping[Any, int] | None = None,
        max_difference: Number | None = None,
        label: str | None = None,
    ) -> PersonalizedRelease:
        """Release a query in which each person has the privacy loss of their own level.

        Args:
            query: Query, made for example by `discreet.query.mean`.
            max_privacy_level: Level above which nobody spends more; people of stricter levels count
                for less. With the strictest level all people count, and pay, the same. If None, the
                one with the smallest error at `expected_rows`, or else the strictest.
            expected_rows: Expected number of rows of each level: public, or your guess.
            max_difference: Largest difference between the means of two levels, in the unit of the
                value.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            A release, with the weight of each level.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.

        Privacy:
            Each person is protected with the privacy loss of their own level.

        Examples:
            >>> release = personal.release(discreet.query.mean("age"), max_privacy_level="open")
            >>> sorted(release.weights)
            ['open', 'strict']
        """
        if max_privacy_level is None:
            max_privacy_level = self.levels.levels[0]
            if expected_rows is not None:
                max_privacy_level = self.trades(
                    query, expected_rows=expected_rows, max_difference=max_difference
                )[0].max_privacy_level
        return self._run(self._planned([query], max_privacy_level), label=label, rng=system_rng())

    def by_level(self, query: Query, *, label: str | None = None) -> dict[Level, Release]:
        """Release a query for the people of each level separately.

        Each release uses the whole budget of its level.

        Args:
            query: Query, made for example by `discreet.query.mean`.
            label: Text for the ledger entry. If None, a description of the query.

        Returns:
            One release for each level.

        Privacy:
            Each person is protected with the privacy loss of their own level.

        Examples:
            >>> found = personal.by_level(discreet.query.count())
            >>> sorted(found)
            ['open', 'strict']
        """
        return self._apart(check_query(query), label=label, rng=system_rng())

    def _planned(self, queries: Sequence[Query], max_privacy_level: Level) -> WeightedPlan:
        setting = self._opened.spec
        return plan_weighted(
            queries, setting=setting, levels=self.levels, max_privacy_level=max_privacy_level
        )

    def _run(
        self, made: WeightedPlan, *, label: str | None, rng: RandomSource
    ) -> PersonalizedRelease:
        levels = self.levels.levels
        passes = plan_level_scans(
            made.design, setting=self._opened.spec, column=self.column, levels=levels
        )
        words = label or "; ".join(q.query.title for q in made.design.questions)
        programs = [program for one in passes for program in one.programs]
        sums, receipt = self._read(programs, made.guarantee, label=words, rng=rng)
        noisy = made.design.noisy(made.combined(split_levels(passes, sums, levels)), rng=rng)
        del sums
        (one,) = build_releases(self.table, made.design, noisy, receipt)
        return PersonalizedRelease(
            release=self._told(one, made.weights),
            guarantee=made.guarantee,
            weights=made.weights,
        )

    def _apart(self, query: Query, *, label: str | None, rng: RandomSource) -> dict[Level, Release]:
        """Answer for each level from its own rows."""
        # Theorem: each level has the guarantee of its own answer; no row is in two of them.
        setting = self._opened.spec
        designs = {
            level: plan_release(
                [restrict_query(query, col(self.column) == level)],
                setting=setting,
                budget=self.levels.budget(level),
            )
            for level in self.levels.levels
        }
        programs = [program for made in designs.values() for program in made.passes]
        cost = personalized({str(level): made.guarantee for level, made in designs.items()})
        words = label or f"{query.title} by level"
        sums, receipt = self._read(programs, cost, label=words, rng=rng)
        left = iter(sums)
        return {
            level: self._answer(made, [next(left) for _ in made.passes], receipt, rng=rng)
            for level, made in designs.items()
        }

    def _answer(
        self, made: ReleasePlan, tables: Sequence[Sums], receipt: Receipt, *, rng: RandomSource
    ) -> Release:
        (one,) = build_releases(self.table, made, made.noisy(tables, rng=rng), receipt)
        return self._told(one, {})

    def _read(
        self,
        programs: Sequence[Program],
        cost: PersonalizedGuarantee,
        *,
        label: str,
        rng: RandomSource,
    ) -> tuple[list[Sums], Receipt]:
        """Charge everyone who pays, then read the exact sums of each program: private."""
        from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import
        from discreet.data.source import check_source  # noqa: PLC0415

        opened = self._opened
        for program in programs:
            check_source(program, opened._source)
        with ExitStack() as stack:
            receipt = None
            if self.personal_budgets is None or self.table.account is not None:
                held = reserve_budget(self.table.account, cost.worst, label=label, rng=rng)
                receipt = stack.enter_context(held).receipt
            if self.personal_budgets is not None:
                opened, admitted = self._admitted(opened, cost, label=label, rng=rng)
                receipt = receipt or admitted
            # One key for all: it also decides which row says what level a unit has.
            key = fresh_key(rng)
            paying = opened.spec.schema[self.column]
            tables = [
                collect(_with_column(one, self.column, paying), source=opened._source, key=key)
                for one in programs
            ]
        if receipt is None:
            raise InvalidArgument("account or personal_budgets must be given to release.")
        return [one.columns for one in tables], receipt

    def _admitted(
        self, opened: OpenTable, cost: PersonalizedGuarantee, *, label: str, rng: RandomSource
    ) -> tuple[OpenTable, Receipt]:
        """The table in which only those have a level who can pay; they are charged now."""
        crowd = self.personal_budgets
        if crowd is None or not rng.private:
            raise NotCertified(
                "A release from seeded bits is not private and cannot be charged; use system_rng()."
            )
        nothing = Guarantee(events.NOTHING, cost.relation)
        prices = personalized({x: cost[x] if x in cost.names else nothing for x in crowd.limits})
        admission = crowd.charge_eligible(prices, label=label)
        receipt = Receipt(
            account=f"crowd {crowd.name}",
            sequence=admission.sequence,
            hash=admission.hash,
            guarantee=cost.worst,
            label=admission.label,
            time=admission.time,
            request_id=None,
        )
        return restrict_to_members(
            opened, self.column, personal_budgets=crowd, taking=admission.included
        ), receipt

    @property
    def _opened(self) -> OpenTable:
        return attach_levels(
            self.table, self.column, personal_budgets=self.personal_budgets, levels=self.levels
        )

    def _told(self, release: Release, weights: Mapping[Level, float]) -> Release:
        """The release with words that say whose answer it is, also when it stands alone."""
        whose = (
            f"column {self.column}"
            if self.personal_budgets is None
            else f"crowd {self.personal_budgets.name!r}"
        )
        also = "" if self.personal_budgets is None else ", of members who can pay"
        title = release.title + also
        if set(weights.values()) > {1.0}:
            listed = ", ".join(
                f"{level} {short(weight, digits=3)}" for level, weight in weights.items()
            )
            title, also = f"{title}, weighted by level", f"{also}, weighted by level ({listed})"
        return replace(
            release,
            title=title,
            query_text=release.query_text + also,
            privacy_statement=(
                f"{release.privacy_statement}; each with the budget of the own level ({whose})"
            ),
        )


def _with_column(program: Program, name: str, column: ColumnSpec) -> Program:
    """The program with the levels of those who can pay: the same codes, of fewer members."""
    columns = [(one, column if one == name else spec) for one, spec in program.columns]
    return replace(program, columns=tuple(columns))


def open_personalized_table(
    table: OpenTable,
    privacy_levels: Mapping[Any, Number | Guarantee],
    *,
    budget: str | None,
    personal_budgets: PersonalBudgets | None,
) -> PersonalizedTable:
    """Checks of public facts; nothing is read."""
    setting = table.spec
    if (budget is None) == (personal_budgets is None):
        raise InvalidArgument(
            "Give budget, the column that names levels, or personal_budgets; one of them."
        )
    _owner_column(table)
    made = privacy_specification(privacy_levels, relation=setting.relation)
    if personal_budgets is not None:
        unknown = [str(x) for x in made.levels if str(x) not in personal_budgets.limits.names]
        if unknown or not all(isinstance(x, str) for x in made.levels):
            raise InvalidArgument(
                f"privacy_levels must be levels of personal_budgets, got {unknown}."
            )
        if setting.privacy_unit is None or setting.relation is not NeighboringRelation.ADD_REMOVE:
            raise InvalidArgument(
                "personal_budgets needs a table with privacy_unit, the column of its members, "
                "under NeighboringRelation.ADD_REMOVE."
            )
        check_members(table, personal_budgets)
        found = PersonalizedTable(
            table=table, levels=made, column=_MEMBER, personal_budgets=personal_budgets
        )
    else:
        column = setting.schema.get(budget or "")
        plain = column.inner if isinstance(column, LookupColumn) else column
        if not isinstance(plain, CategoryColumn):
            raise InvalidArgument(f"budget={budget!r} must be a column declared as a category.")
        unknown = [str(level) for level in made.levels if level not in plain.labels]
        if unknown:
            raise InvalidArgument(f"privacy_levels must be levels of {budget!r}, got {unknown}.")
        if {*plain.labels[plain.missing :][:1], *plain.labels[plain.unknown :][:1]} & set(
            made.levels
        ):
            raise InvalidArgument(
                f"Whoever has no level in {budget!r} would have one of these: declare it by "
                "category(levels), without missing, and they are left out."
            )
        found = PersonalizedTable(table=table, levels=made, column=str(budget))
    found._opened  # noqa: B018 - the checks
    return found


def _caps(levels: PrivacySpecification, query: Query) -> Iterable[Level]:
    """One level of each budget; quantiles have no weights."""
    different = {levels[level]: level for level in reversed(levels.levels)}
    return list(reversed(different.values()))[: 1 if query.q else None]


def _pure(guarantee: PersonalizedGuarantee) -> list[tuple[str, Guarantee]]:
    return [(name, g) for name, g in guarantee.privacy_levels if g.epsilon() < float("inf")]
