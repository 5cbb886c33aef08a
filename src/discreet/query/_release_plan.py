"""From questions and a budget to plans, sensitivities and noise, before a row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data.program import Key, TableScan
from discreet.data.schema import Schema
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.noise.distribution import Distribution
from discreet.noise.random_source import RandomSource
from discreet.query._estimate import CovarianceEstimator
from discreet.query._measure import (
    BudgetClaim,
    DataScans,
    MeasuredVector,
    Ranks,
    SumEstimator,
    TableSpec,
    alternative_vectors,
    bins_of,
    bounds,
    coarsen_sensitivity,
    entries_of,
    in_bins,
    measure,
    measured_vectors,
    rank_parts_of,
    sensitivity_of,
    settle_quantiles,
    share_budget,
)
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query._reading import Reading
from discreet.query.budget import BudgetChange, Noise, QueryBudget
from discreet.query.builders import Query

__all__ = ["Measurement", "PlannedQuery", "ReleasePlan", "TableSpec", "join_plans", "plan_release"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """A part with its sensitivity and its noise; ``place`` is the pass that collects it.

    It is drawn once: questions that hold the same measurement read the same noisy integers.
    """

    place: int
    part: MeasuredVector
    move: BudgetChange
    shift: int
    mechanism: Noise

    @property
    def law(self) -> Distribution:
        """The exact law of the noise."""
        additive = self.mechanism if isinstance(self.mechanism, AdditiveMechanism) else None
        noise = None if additive is None or additive.integers is None else additive.integers.noise
        if not isinstance(noise, Distribution):
            raise Unsupported("Sums are released with integer noise of a known law only.")
        return noise

    def noisy(self, sums: Mapping[str, NDArray[Any]], *, rng: RandomSource) -> NoisyIntegers:
        """Exact private integers in, noisy public ones out: the one place where noise is added."""
        exact = measure(self.part, sums, shift=self.shift)
        if isinstance(self.mechanism, ExponentialMechanism):
            chosen = tuple(self.mechanism.release(scores, rng=rng) for scores in exact)
            return NoisyIntegers(name=self.part.name, values=chosen, noise=None)
        noisy = self.mechanism.release(exact, rng=rng)
        return NoisyIntegers(name=self.part.name, values=tuple(noisy.tolist()), noise=self.law)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedQuery:
    """A query with everything that its answer needs."""

    query: Query
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    scale: Reading
    measurements: tuple[Measurement, ...]
    independent: bool
    """Whether a unit gives at most one row to a group."""

    @property
    def guarantee(self) -> Guarantee:
        """What this answer costs; what it shares with others is paid once for all of them."""
        return _together(self.measurements)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasePlan:
    """Questions that are released together: passes over the data, noise, and the whole cost."""

    passes: tuple[TableScan, ...]
    questions: tuple[PlannedQuery, ...]

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All that is measured, each once."""
        return tuple(dict.fromkeys(m for q in self.questions for m in q.measurements))

    @property
    def guarantee(self) -> Guarantee:
        """What all answers cost together."""
        return _together(self.measurements)

    def noisy(
        self, tables: Sequence[Mapping[str, NDArray[Any]]], *, rng: RandomSource
    ) -> list[tuple[NoisyIntegers, ...]]:
        """The noisy parts of each question, from the exact integers of each pass."""
        drawn = {one: one.noisy(tables[one.place], rng=rng) for one in self.measurements}
        return [tuple(drawn[one] for one in q.measurements) for q in self.questions]

    def words(self, question: PlannedQuery) -> str:
        """The mechanisms behind an answer, and with which other answers they are shared."""
        told = []
        for one in question.measurements:
            others = [
                q.query.title for q in self.questions if q is not question and one in q.measurements
            ]
            also = f" (shared with {', '.join(map(repr, others))})" if others else ""
            told.append(f"{one.part.name}: {one.mechanism!r}{also}")
        return "; ".join(told)


def check_query(query: Query) -> Query:
    """One question, where a list of them cannot be answered."""
    if not isinstance(query, Query):
        raise InvalidArgument(
            "query must be one question, such as query.count(by='sex'), got "
            f"{type(query).__name__}."
        )
    return query


def plan_release(
    queries: Sequence[Query],
    *,
    setting: TableSpec,
    budget: QueryBudget,
    weights: Sequence[Number] | None = None,
) -> ReleasePlan:
    """Plan questions that share one budget, by ``weights`` (equal ones by default).

    Questions about the same rows and groups are collected in one pass, and what several of them
    need is measured once; no question gets more noise than its portion would buy it alone. Within
    a mean the count and the sum get half of its share each, within a variance the three sums a
    third each.
    """
    queries = check.as_tuple("queries", queries)
    if not queries or not all(isinstance(query, Query) for query in queries):
        raise InvalidArgument("queries must be a list of questions, such as query.count(by='sex').")
    queries = [settle_quantiles(query, setting=setting, budget=budget) for query in queries]
    passes = DataScans(setting)
    places = [passes.place(query, bins=in_bins(query, setting.schema)) for query in queries]
    layout, shares = _layout(queries, places, passes, _portions(weights, len(queries)))
    plans = passes.plans()
    needed = list(shares)
    drafts = [_draft(part, place, plans[place], setting.relation) for place, part in needed]
    mechanisms = budget.mechanisms(
        [draft.move for draft in drafts],
        shares=[shares[one] for one in needed],
        relation=setting.relation,
    )
    made = {
        one: Measurement(
            place=draft.place, part=draft.part, move=draft.move, shift=draft.shift, mechanism=noise
        )
        for one, draft, noise in zip(needed, drafts, mechanisms, strict=True)
    }
    questions = tuple(
        _question(query, plans[place], tuple(made[place, part] for part in parts), setting)
        for query, place, parts in zip(queries, places, layout, strict=True)
    )
    return ReleasePlan(passes=plans, questions=questions)


def join_plans(designs: Sequence[ReleasePlan]) -> ReleasePlan:
    """Designs with budgets of their own as one: reserved together, or not at all."""
    passes: list[TableScan] = []
    questions: list[PlannedQuery] = []
    for one in designs:
        moved = {m: replace(m, place=m.place + len(passes)) for m in one.measurements}
        questions += [
            replace(q, measurements=tuple(moved[m] for m in q.measurements)) for q in one.questions
        ]
        passes += one.passes
    if not questions:
        raise InvalidArgument("designs must hold at least one question.")
    return ReleasePlan(passes=tuple(passes), questions=tuple(questions))


def _layout(
    queries: Sequence[Query], places: Sequence[int], passes: DataScans, portions: Sequence[Fraction]
) -> tuple[list[tuple[MeasuredVector, ...]], dict[tuple[int, MeasuredVector], Fraction]]:
    """The parts of each question, and the share of the budget of each part."""
    layout = [
        rank_parts_of(query, passes[place]) if query.q else measured_vectors(query, passes[place])
        for query, place in zip(queries, places, strict=True)
    ]
    claims = [
        _claim(parts, place, portion, portion / len(parts))
        for parts, place, portion in zip(layout, places, portions, strict=True)
    ]
    for i, (query, place) in enumerate(zip(queries, places, strict=True)):
        other = alternative_vectors(query, passes[place])
        if other is None:
            continue
        changed = _claim(other, place, portions[i], portions[i])
        others = {part for j, claim in enumerate(claims) if j != i for part in claim.parts}
        trial = [*claims[:i], changed, *claims[i + 1 :]]
        if others.issuperset(changed.parts) and share_budget(trial) is not None:
            layout[i], claims = other, trial
    shares = share_budget(claims)
    if shares is None:
        raise Unsupported("The claims of these questions exceed their budget.")
    return layout, shares


def _claim(
    parts: Sequence[MeasuredVector], place: int, portion: Fraction, least: Fraction
) -> BudgetClaim[tuple[int, MeasuredVector]]:
    return BudgetClaim(parts=tuple((place, part) for part in parts), portion=portion, least=least)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A part before its noise is known."""

    place: int
    part: MeasuredVector
    move: BudgetChange
    shift: int


def _draft(
    part: MeasuredVector, place: int, plan: TableScan, relation: NeighboringRelation
) -> _Draft:
    exact = sensitivity_of(part, plan, relation=relation)
    if isinstance(part, Ranks):
        return _Draft(place=place, part=part, move=replace(exact, choice=True), shift=0)
    move, shift = coarsen_sensitivity(exact, entries=entries_of(part, plan, relation=relation))
    return _Draft(place=place, part=part, move=move, shift=shift)


def _question(
    query: Query, plan: TableScan, measurements: tuple[Measurement, ...], setting: TableSpec
) -> PlannedQuery:
    names, keys = tuple(query.by), tuple(plan.labels())
    if query.kind == "quantiles":
        names = (*names, "quantile")
        keys = tuple((*key, float(level)) for key in keys for level in query.q)
    shifts = tuple(one.shift for one in measurements)
    return PlannedQuery(
        query=query,
        names=names,
        keys=keys,
        scale=_reading(query, shifts, setting.schema),
        measurements=measurements,
        independent=plan.reach(measurements[0].part.terms[0][1]).rows_per_group == 1,
    )


def _reading(query: Query, shifts: tuple[int, ...], schema: Schema) -> Reading:
    if query.q:
        bins = bins_of(query, schema)
        return QuantileEstimator(
            q=query.q,
            method=query.method or "tree",
            lower=bins.lower,
            upper=bins.upper,
            exponent=bins.exponent,
            width=bins.width,
            branching=query.branching or 2,
        )
    if query.value is None:
        return SumEstimator(kind=query.kind, lower=0, upper=1, exponent=0, shifts=shifts)
    value = bounds(query, schema)
    if query.second_value is not None:
        other = bounds(replace(query, value=query.second_value), schema)
        return CovarianceEstimator(
            width=value.upper - value.lower,
            other=other.upper - other.lower,
            exponent=value.exponent + other.exponent,
            shifts=shifts,
        )
    return SumEstimator(
        kind=query.kind,
        lower=value.lower,
        upper=value.upper,
        exponent=value.exponent,
        shifts=shifts,
    )


def _together(measurements: Sequence[Measurement]) -> Guarantee:
    first, *others = (one.mechanism.guarantee for one in measurements)
    return sum(others, start=first)


def _portions(weights: Sequence[Number] | None, many: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, many)] * many
    exact = [check.positive("weights", weight) for weight in check.as_tuple("weights", weights)]
    if len(exact) != many:
        raise InvalidArgument(f"weights must be {many} numbers, one for each question.")
    return [weight / sum(exact) for weight in exact]
