"""Passes over the data: questions about the same rows and groups are collected together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.core.relation import Relation
from discreet.data.expression import Expression
from discreet.data.plan import Aggregate, Key, Limits, Plan
from discreet.data.schema import Schema
from discreet.queries.ask import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is declared about a table: columns, whose a row is, limits, who is protected."""

    schema: Schema
    unit: str | None = None
    limits: Limits = field(default_factory=Limits)
    relation: Relation = Relation.ADD_REMOVE


class Pass:
    """Aggregates over the same rows and groups; equal ones are computed once."""

    def __init__(self, setting: Setting, query: Query, *, bins: Expression | None) -> None:
        self.setting = setting
        self._bins = bins
        self._where: Expression | None = query.where
        self._by: Mapping[str, Expression] = query.by
        self._keys: tuple[Key, ...] | None = query.keys
        self._rest = query.rest
        self._limits = query.limits.over(setting.limits)
        self._names: dict[object, str] = {}
        self._aggregates: dict[str, Aggregate] = {}

    def name(self, aggregate: Aggregate) -> str:
        """The name under which the engine will return this aggregate."""
        codes = tuple(one.bind(self.setting.schema).code for one in aggregate.factors)
        name = self._names.setdefault(
            (aggregate.kind, codes), f"{aggregate.kind} {len(self._names)}"
        )
        self._aggregates.setdefault(name, aggregate)
        return name

    def plan(self) -> Plan:
        """What the engine is asked."""
        return Plan(
            schema=self.setting.schema,
            aggregates=self._aggregates,
            unit=self.setting.unit,
            where=self._where,
            by=self._by or None,
            keys=self._keys,
            limits=self._limits,
            bins=self._bins,
            other=self._rest,
        )


class Passes:
    """The passes of a design, in the order in which they are first needed."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._places: dict[object, int] = {}
        self._passes: list[Pass] = []

    def place(self, query: Query, *, bins: Expression | None = None) -> int:
        """The number of the pass that collects a question, in bins of each group or not."""
        schema = self._setting.schema
        cut = None if bins is None else bins.bind(schema)
        where = None if query.where is None else query.where.bind(schema).code
        by = tuple((name, one.bind(schema)) for name, one in query.by.items())
        rows = (where, by, query.keys, query.rest, cut, query.limits.over(self._setting.limits))
        place = self._places.setdefault(rows, len(self._passes))
        if place == len(self._passes):
            self._passes.append(Pass(self._setting, query, bins=bins))
        return place

    def __getitem__(self, place: int) -> Pass:
        return self._passes[place]

    def plans(self) -> tuple[Plan, ...]:
        """All of them, frozen."""
        return tuple(one.plan() for one in self._passes)
