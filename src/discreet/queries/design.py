"""From questions and a budget to plans, sensitivities and noise, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.data.plan import Aggregate, Key, Limits, Plan
from discreet.data.schema import Schema
from discreet.mechanisms.additive import Additive
from discreet.noise.bits import Bits
from discreet.noise.law import Law
from discreet.queries.ask import Query
from discreet.queries.budget import Budget, Move
from discreet.queries.estimate import Noisy, half_width
from discreet.queries.parts import (
    Part,
    Scale,
    aggregates,
    bounds,
    coarsened,
    measured,
    move_of,
    parts_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is declared about a table: columns, whose a row is, limits, who is protected."""

    schema: Schema
    unit: str | None = None
    limits: Limits = field(default_factory=Limits)
    relation: Relation = Relation.ADD_REMOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A part with its sensitivity and its noise."""

    part: Part
    move: Move
    mechanism: Additive

    @property
    def law(self) -> Law:
        """The exact law of the noise."""
        noise = None if self.mechanism.integers is None else self.mechanism.integers.noise
        if not isinstance(noise, Law):
            raise Unsupported("Tables are released with integer noise of a known law only.")
        return noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A query with everything that its answer needs; ``place`` is the pass that collects it."""

    query: Query
    place: int
    prefix: str
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    scale: Scale
    measurements: tuple[Measurement, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What this answer costs."""
        first, *others = (one.mechanism.guarantee for one in self.measurements)
        return sum(others, start=first)

    def noisy(self, sums: Mapping[str, NDArray[Any]], *, bits: Bits) -> tuple[Noisy, ...]:
        """Exact private integers in, noisy public ones out: the one place where noise is added."""
        found = []
        for one, shift in zip(self.measurements, self.scale.shifts, strict=True):
            exact = measured(one.part, sums, prefix=self.prefix, shift=shift)
            noisy = one.mechanism.release(exact, bits=bits)
            found.append(Noisy(name=one.part.name, values=tuple(noisy.tolist()), law=one.law))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Questions that are released together: passes over the data, noise, and the whole cost."""

    passes: tuple[Plan, ...]
    questions: tuple[Question, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What all answers cost together."""
        first, *others = (question.guarantee for question in self.questions)
        return sum(others, start=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The error of an answer before it is asked: from public numbers only.

    ``std`` and ``width`` are for one group. The error stays within ``width`` with probability at
    least ``level``. For means and variances both are upper bounds at ``rows`` rows in the group
    (``std`` to first order); without ``rows`` they are unknown.
    """

    title: str
    groups: int
    std: float | None
    width: float | None
    level: float
    rows: int | None
    guarantee: Guarantee

    def __str__(self) -> str:
        if self.width is None or self.std is None:
            return f"{self.title}: state the number of rows to know the error."
        n = "" if self.rows is None else f" with {self.rows} rows"
        return (
            f"{self.title}: std {self.std:.4g}, within ±{self.width:.4g} of the truth "
            f"{100 * self.level:g} times of 100{n}"
        )


def design(
    queries: Sequence[Query],
    *,
    setting: Setting,
    budget: Budget,
    weights: Sequence[Number] | None = None,
) -> Design:
    """Plan questions that share one budget, by ``weights`` (equal ones by default).

    Questions about the same rows and groups are collected in one pass. Within a mean the count and
    the sum get half of its share each, within a variance the three sums a third each.
    """
    if not queries or not all(isinstance(query, Query) for query in queries):
        raise InvalidArgument("queries must be a list of questions, such as ask.count(by='sex').")
    portions = _portions(weights, len(queries))
    passes = _Passes(setting)
    drafts = [passes.add(query) for query in queries]
    plans = passes.plans()
    measured_parts: list[tuple[int, Part, Move, int]] = []
    shares: list[Fraction] = []
    for number, (draft, portion) in enumerate(zip(drafts, portions, strict=True)):
        parts = parts_of(queries[number], setting.schema)
        plan = plans[draft.place]
        for part in parts:
            exact = move_of(part, plan, prefix=draft.prefix, relation=setting.relation)
            entries = _entries(part, plan, draft.prefix, setting.relation)
            move, shift = coarsened(exact, entries=entries)
            measured_parts.append((number, part, move, shift))
            shares.append(portion / len(parts))
    mechanisms = budget.mechanisms(
        [move for _, _, move, _ in measured_parts], shares=shares, relation=setting.relation
    )
    found: list[list[Measurement]] = [[] for _ in queries]
    shifts: list[list[int]] = [[] for _ in queries]
    for (number, part, move, shift), mechanism in zip(measured_parts, mechanisms, strict=True):
        found[number].append(Measurement(part=part, move=move, mechanism=mechanism))
        shifts[number].append(shift)
    questions = tuple(
        _question(query, draft, plans[draft.place], tuple(ones), tuple(lost), setting.schema)
        for query, draft, ones, lost in zip(queries, drafts, found, shifts, strict=True)
    )
    return Design(passes=plans, questions=questions)


def join(designs: Sequence[Design]) -> Design:
    """Designs with budgets of their own as one: reserved together, or not at all."""
    passes: list[Plan] = []
    questions: list[Question] = []
    for one in designs:
        questions += [replace(q, place=q.place + len(passes)) for q in one.questions]
        passes += one.passes
    if not questions:
        raise InvalidArgument("designs must hold at least one question.")
    return Design(passes=tuple(passes), questions=tuple(questions))


def forecast(question: Question, *, rows: int | None = None, level: float = 0.95) -> Forecast:
    """The error of an answer, at a stated number of rows in its group where that matters.

    Proof: with probability ``level`` all k parts are within their half-widths w (union bound). Then
        ``|s'/n' - s/n| = |(s' - s) - (n' - n) s/n| / n' <= (w_s + h w_n) / (n - w_n)`` with h the
        bound of |s/n|, and a variance moves by half of the error of its first term and 2 h times
        that of the mean.
    """
    inside = float(check.probability("level", level, zero=False, one=False))
    n = None if rows is None else check.count("rows", rows)
    scale, many = question.scale, len(question.measurements)
    laws = [one.law for one in question.measurements]
    factors = [2.0**shift for shift in scale.shifts]
    stds = [law.std * factor for law, factor in zip(laws, factors, strict=True)]
    widths = [
        (half_width(law, 1 - (1 - inside) / many) + (shift > 0)) * factor
        for law, factor, shift in zip(laws, factors, scale.shifts, strict=True)
    ]
    std: float | None
    width: float | None
    if many == 1:
        std, width = (math.ldexp(x, scale.exponent) for x in (stds[0], widths[0]))
        n = None
    elif n is None:
        std = width = None
    else:
        std, width = _ratio_error(scale, stds, widths, n)
    return Forecast(
        title=question.query.title,
        groups=len(question.keys),
        std=std,
        width=width,
        level=inside,
        rows=n,
        guarantee=question.guarantee,
    )


def _ratio_error(
    scale: Scale, stds: Sequence[float], widths: Sequence[float], n: int
) -> tuple[float, float]:
    """First-order deviation and certain width of a mean or a variance, at worst."""
    h = float(scale.width)
    left = n - widths[0]
    b = min((widths[1] + h * widths[0]) / left, 2 * h) if left > 0 else 2 * h
    if scale.kind == "mean":
        std = min(math.hypot(stds[1], h * stds[0]) / n, h)
        return math.ldexp(std, scale.exponent - 1), math.ldexp(b, scale.exponent - 1)
    a = (widths[2] + h**2 * widths[0]) / left if left > 0 else 2 * h**2
    std = min(math.hypot(stds[2] / 2, 2 * h * stds[1], 1.5 * h**2 * stds[0]) / n, h**2)
    width = min(a / 2 + 2 * h * b, h**2)
    return math.ldexp(std, 2 * scale.exponent - 2), math.ldexp(width, 2 * scale.exponent - 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    place: int
    prefix: str


class _Passes:
    """Questions about the same rows and groups share a plan."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._places: dict[object, int] = {}
        self._queries: list[list[tuple[str, Query]]] = []

    def add(self, query: Query) -> _Draft:
        schema = self._setting.schema
        where = None if query.where is None else query.where.bind(schema).code
        by = tuple((name, one.bind(schema)) for name, one in query.by.items())
        place = self._places.setdefault((where, by, query.keys), len(self._queries))
        if place == len(self._queries):
            self._queries.append([])
        prefix = f"{len(self._queries[place])}:"
        self._queries[place].append((prefix, query))
        return _Draft(place=place, prefix=prefix)

    def plans(self) -> tuple[Plan, ...]:
        return tuple(self._plan(asked) for asked in self._queries)

    def _plan(self, asked: Sequence[tuple[str, Query]]) -> Plan:
        wanted: dict[str, Aggregate] = {}
        for prefix, query in asked:
            wanted.update(aggregates(query, prefix=prefix))
        query = asked[0][1]
        return Plan(
            schema=self._setting.schema,
            aggregates=wanted,
            unit=self._setting.unit,
            where=query.where,
            by=query.by or None,
            keys=query.keys,
            limits=self._setting.limits,
        )


def _entries(part: Part, plan: Plan, prefix: str, relation: Relation) -> int:
    """How many entries one step of the relation can change."""
    groups = plan.reach(f"{prefix}{part.terms[0][1]}").groups
    return groups if relation is Relation.ADD_REMOVE else 2 * groups


def _question(
    query: Query,
    draft: _Draft,
    plan: Plan,
    measurements: tuple[Measurement, ...],
    shifts: tuple[int, ...],
    schema: Schema,
) -> Question:
    scale = Scale(kind=query.kind, lower=0, upper=1, exponent=0, shifts=shifts)
    if query.value is not None:
        value = bounds(query, schema)
        scale = replace(scale, lower=value.lower, upper=value.upper, exponent=value.exponent)
    return Question(
        query=query,
        place=draft.place,
        prefix=draft.prefix,
        names=tuple(query.by),
        keys=tuple(plan.labels()),
        scale=scale,
        measurements=measurements,
    )


def _portions(weights: Sequence[Number] | None, many: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, many)] * many
    exact = [check.positive("weights", weight) for weight in weights]
    if len(exact) != many:
        raise InvalidArgument(f"weights must be {many} numbers, one for each question.")
    return [weight / sum(exact) for weight in exact]
