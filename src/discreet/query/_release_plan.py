"""From questions and a budget to plans, sensitivities and noise, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import compose
from discreet.core.relation import NeighboringRelation
from discreet.data.program import Key, Program
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.random_source import RandomSource
from discreet.query._estimate import Estimator, PredictedError
from discreet.query._estimate import Noise as NoiseLaw
from discreet.query._measure import (
    Claim,
    DataScan,
    MeasuredVector,
    Ranks,
    TableSpec,
    alternative_vectors,
    coarsen_sensitivity,
    data_scans,
    entries_of,
    measure,
    sensitivity_of,
    share_budget,
)
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._statistics import (
    answer_keys,
    estimator_of,
    part_shares,
    settle_together,
    vectors_of,
)
from discreet.query.budget import BudgetChange, Noise, NoiseName, QueryBudget
from discreet.query.builders import Query

__all__ = ["Measurement", "PlannedQuery", "ReleasePlan", "TableSpec", "join_plans", "plan_release"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """A vector with its sensitivity and its noise.

    It is drawn once: questions that hold the same measurement read the same noisy integers.
    """

    part: MeasuredVector
    move: BudgetChange
    shift: int
    mechanism: Noise
    guarantee: Guarantee = field(init=False)
    """What it costs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", self.mechanism.guarantee)

    @property
    def place(self) -> int:
        """The number of the scan that collects it."""
        return self.part.place

    @property
    def law(self) -> Distribution:
        """The exact law of the noise."""
        found = law_of(self.mechanism)
        if not isinstance(found, Distribution):
            raise Unsupported("Sums are released with integer noise of a known law only.")
        return found

    @property
    def noise(self) -> NoiseLaw:
        """The exact law of the noise, or the rate of a choice."""
        return law_of(self.mechanism)

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
    estimator: Estimator
    measurements: tuple[Measurement, ...]
    independent: bool
    """Whether a unit gives at most one row to a group."""
    others: Mapping[NoiseName, PlannedQuery] = field(default_factory=dict)
    """The same with the noise that was not chosen, where there was a choice."""
    guarantee: Guarantee = field(init=False)
    """What this answer costs; what it shares with others is paid once for all of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", _together(self.measurements))

    @property
    def noise_name(self) -> str:
        """What adds the noise: "laplace", "gaussian", or "exponential" for a choice by rank."""
        return name_noise([one.noise for one in self.measurements])

    def error(self, rows: int | None, confidence: float) -> PredictedError:
        """The error before a release."""
        return self.estimator.forecast([one.noise for one in self.measurements], rows, confidence)


class PlannedScan(Protocol):
    """Ranges of columns as they are planned in `discreet.ranges`."""

    @property
    def query(self) -> Any:
        """What is asked, with its ``title``."""

    @property
    def counted(self) -> Program:
        """What engines are asked."""

    @property
    def ranked(self) -> Any:
        """The strategies, best first."""

    @property
    def guarantee(self) -> Guarantee:
        """What it costs."""

    @property
    def relation(self) -> NeighboringRelation:
        """Under which relation."""


class PlannedTables(Protocol):
    """Many tables at once, as they are planned in `discreet.marginals`."""

    @property
    def guarantee(self) -> Guarantee:
        """What they cost."""

    @property
    def relation(self) -> NeighboringRelation:
        """Under which relation."""

    @property
    def title(self) -> str:
        """What is asked, in words."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasePlan:
    """All that one reservation pays for: scans of the data, noise, and the whole cost."""

    passes: tuple[Program, ...] = ()
    """The scans that the queries need."""
    questions: tuple[PlannedQuery, ...] = ()
    ranges: tuple[PlannedScan, ...] = ()
    """Ranges of columns, each with a scan and noise of its own."""
    marginals: tuple[PlannedTables, ...] = ()
    """Many tables at once, each with a reading and noise of its own."""
    scans: tuple[Program, ...] = field(init=False)
    """What engines are asked: for the queries, then for each of the ranges."""
    measurements: tuple[Measurement, ...] = field(init=False)
    """All that is measured, each once."""
    guarantee: Guarantee = field(init=False)
    """What all answers cost together."""

    def __post_init__(self) -> None:
        measured: dict[Measurement, None] = {}
        for question in self.questions:
            measured.update(dict.fromkeys(question.measurements))
        costs = []
        if len(self.questions) == 1:  # known already
            costs.append(self.questions[0].guarantee)
        elif self.questions:
            costs.append(_together(tuple(measured)))
        scans = list(self.passes)
        for ranges in self.ranges:
            costs.append(ranges.guarantee)
            scans.append(ranges.counted)
        if self.marginals:
            costs += [one.guarantee for one in self.marginals]
        if not costs:
            raise InvalidArgument("There must be at least one question.")
        object.__setattr__(self, "scans", tuple(scans))
        object.__setattr__(self, "measurements", tuple(measured))
        object.__setattr__(self, "guarantee", sum(costs[1:], start=costs[0]))

    @property
    def titles(self) -> tuple[str, ...]:
        """What is asked, in words."""
        asked = [one.query.title for one in self.questions]
        if self.ranges:
            asked += [one.query.title for one in self.ranges]
        if self.marginals:
            asked += [one.title for one in self.marginals]
        return tuple(asked)

    def noisy(
        self, tables: Sequence[Mapping[str, NDArray[Any]]], *, rng: RandomSource
    ) -> list[tuple[NoisyIntegers, ...]]:
        """The noisy parts of each question, from the exact integers of each pass."""
        drawn = {one: one.noisy(tables[one.place], rng=rng) for one in self.measurements}
        return [tuple([drawn[one] for one in q.measurements]) for q in self.questions]

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
    need is measured once; no question gets more noise than its portion would buy it alone. The
    noise is that with the smaller margin of error, unless the budget fixes it. Within a mean the
    count and the sum get half of its share each, within a variance the three sums a third each.
    """
    queries = check.as_tuple("queries", queries)
    if not queries or {isinstance(query, Query) for query in queries} != {True}:
        raise InvalidArgument("queries must be a list of questions, such as query.count(by='sex').")
    portions = _portions(weights, len(queries))
    plans: dict[NoiseName, ReleasePlan] = {}
    noises = budget.noises
    # What is measured for quantiles and ratios depends on the noise.
    if len(noises) > 1 and any(query.q or query.kind == "ratio" for query in queries):
        for noise in noises:
            plans |= _plans(queries, setting, budget, portions, noises=(noise,))
    else:
        plans = _plans(queries, setting, budget, portions, noises=noises)
    best = plans.pop(_least_error(plans))
    if not plans:
        return best
    return replace(
        best,
        questions=tuple(
            [
                replace(one, others={name: other.questions[place] for name, other in plans.items()})
                for place, one in enumerate(best.questions)
            ]
        ),
    )


def join_plans(designs: Sequence[ReleasePlan]) -> ReleasePlan:
    """Designs with budgets of their own as one: reserved together, or not at all."""
    passes: list[Program] = []
    questions: list[PlannedQuery] = []
    for one in designs:
        moved = {
            m: replace(m, part=replace(m.part, place=m.place + len(passes)))
            for m in one.measurements
        }
        questions += [
            replace(q, measurements=tuple(moved[m] for m in q.measurements)) for q in one.questions
        ]
        passes += one.passes
    if not questions:
        raise InvalidArgument("designs must hold at least one question.")
    return ReleasePlan(passes=tuple(passes), questions=tuple(questions))


_MANY_ROWS = 1 << 40
"""Where margins depend on the rows, they are compared where noise is small beside them."""
_CONFIDENCE = 0.95


def _plans(
    queries: Sequence[Query],
    setting: TableSpec,
    budget: QueryBudget,
    portions: Sequence[Fraction],
    *,
    noises: Sequence[NoiseName],
) -> dict[NoiseName, ReleasePlan]:
    """The plan with each noise; what is measured is that for the first of them."""
    first = replace(budget, noise=noises[0])
    queries = settle_together(queries, setting=setting, budget=first)
    scans = data_scans(queries, setting)
    vectors, layout, shares = _layout(queries, scans, portions, gaussian=first.gaussian)
    passes = tuple([scan.compiled() for scan in dict.fromkeys(scans)])
    labels = [tuple(one.labels()) for one in passes]
    changes = {
        number: _change(vectors[number], passes[vectors[number].place], setting)
        for number in shares
    }
    read = []
    for query, scan, numbers in zip(queries, scans, layout, strict=True):
        keys = labels[scan.place]
        shifts = tuple([changes[number][1] for number in numbers])
        estimator = estimator_of(query, shifts, setting.schema, keys)
        read.append((query, passes[scan.place], numbers, estimator, *answer_keys(query, keys)))
    plans: dict[NoiseName, ReleasePlan] = {}
    for noise in noises:
        stated = budget if budget.noise == noise else replace(budget, noise=noise)
        mechanisms = stated.mechanisms(
            [change for change, _ in changes.values()],
            shares=list(shares.values()),
            relation=setting.relation,
        )
        made = {
            number: Measurement(part=vectors[number], move=change, shift=shift, mechanism=mechanism)
            for (number, (change, shift)), mechanism in zip(
                changes.items(), mechanisms, strict=True
            )
        }
        questions = []
        for query, program, numbers, estimator, names, keys in read:
            measurements = tuple([made[number] for number in numbers])
            reach = program.reach(measurements[0].part.terms[0][1])
            questions.append(
                PlannedQuery(
                    query=query,
                    names=names,
                    keys=keys,
                    estimator=estimator,
                    measurements=measurements,
                    independent=reach.rows_per_group == 1,
                )
            )
        plans[noise] = ReleasePlan(passes=passes, questions=tuple(questions))
    return plans


def _least_error(plans: Mapping[NoiseName, ReleasePlan]) -> NoiseName:
    """The noise with the smaller margin of error; of several queries, on geometric average.

    Public facts alone decide, before a row is read. Ties go to the first.
    """
    names = list(plans)
    if len(names) == 1:
        return names[0]
    first, second = (
        [one.error(_MANY_ROWS, _CONFIDENCE) for one in plans[name].questions] for name in names
    )
    excess = 0.0
    for one, other in zip(first, second, strict=True):
        a, b = one.width, other.width
        if not a or not b:  # without a margin, or none at all: by the deviation
            if a == b == 0:
                continue
            a, b = one.std, other.std
        if a and b:
            excess += math.log(a / b)
    return names[1] if excess > 1e-12 else names[0]


EXPONENTIAL = "exponential"
_NOISE_WORDS = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    EXPONENTIAL: "the exponential mechanism",
}


def name_noise(laws: Sequence[NoiseLaw | None]) -> str:
    """The name of the noise; choices by rank have the rate of a choice, or no law at all."""
    if not all(isinstance(law, Distribution) for law in laws):
        return EXPONENTIAL
    return "gaussian" if any(isinstance(law, DiscreteGaussian) for law in laws) else "laplace"


def noise_words(name: str) -> str:
    """The noise, for people."""
    return _NOISE_WORDS[name]


def law_of(mechanism: Noise) -> NoiseLaw:
    """The exact law of the noise, or the rate of a choice."""
    if isinstance(mechanism, ExponentialMechanism):
        return float(mechanism.rate)
    noise = None if mechanism.integers is None else mechanism.integers.noise
    if not isinstance(noise, Distribution):
        raise Unsupported("Sums are released with integer noise of a known law only.")
    return noise


def _layout(
    queries: Sequence[Query],
    scans: Sequence[DataScan],
    portions: Sequence[Fraction],
    *,
    gaussian: bool,
) -> tuple[list[MeasuredVector], list[tuple[int, ...]], dict[int, Fraction]]:
    """All vectors, those of each query by their number, and the share of the budget of each."""
    numbers: dict[MeasuredVector, int] = {}

    def numbered(parts: Sequence[MeasuredVector]) -> tuple[int, ...]:
        return tuple([numbers.setdefault(part, len(numbers)) for part in parts])

    layout = [numbered(vectors_of(query, scan)) for query, scan in zip(queries, scans, strict=True)]
    claims: list[Claim[int]] = []
    for query, scan, parts, portion in zip(queries, scans, layout, portions, strict=True):
        shares = part_shares(query, scan, gaussian=gaussian) or (Fraction(1, len(parts)),) * len(
            parts
        )
        leasts = [portion * share for share in shares]
        claims.append((portion, dict(zip(parts, leasts, strict=True))))
    for i, (query, scan) in enumerate(zip(queries, scans, strict=True)):
        other = alternative_vectors(query, scan)
        if other is None:
            continue
        parts = numbered(other)
        changed = portions[i], dict.fromkeys(parts, portions[i])
        others = {part for j, (_, leasts) in enumerate(claims) if j != i for part in leasts}
        trial = [*claims[:i], changed, *claims[i + 1 :]]
        if others.issuperset(parts) and share_budget(trial) is not None:
            layout[i], claims = parts, trial
    found = share_budget(claims)
    if found is None:
        raise Unsupported("The claims of these questions exceed their budget.")
    return list(numbers), layout, found


def _change(part: MeasuredVector, plan: Program, setting: TableSpec) -> tuple[BudgetChange, int]:
    """How far a vector moves, and the power of two by which it is divided first."""
    relation = setting.relation
    exact = sensitivity_of(part, plan, relation=relation)
    if isinstance(part, Ranks):
        return replace(exact, choice=True), 0
    return coarsen_sensitivity(exact, entries=entries_of(part, plan, relation=relation))


def _together(measurements: Sequence[Measurement]) -> Guarantee:
    found = [one.guarantee for one in measurements]
    if len(found) == 1:
        return found[0]
    return Guarantee(compose([one.event for one in found]), found[0].relation)


def _portions(weights: Sequence[Number] | None, many: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, many)] * many
    exact = [check.positive("weights", weight) for weight in check.as_tuple("weights", weights)]
    if len(exact) != many:
        raise InvalidArgument(f"weights must be {many} numbers, one for each question.")
    return [weight / sum(exact) for weight in exact]
