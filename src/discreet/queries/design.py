"""From questions and a budget to plans, sensitivities and noise, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.data.plan import Key, Plan
from discreet.mechanisms.additive import Additive
from discreet.noise.bits import Bits
from discreet.noise.law import Law
from discreet.queries.ask import Query
from discreet.queries.budget import Budget, Move
from discreet.queries.estimate import Noisy, half_width
from discreet.queries.parts import (
    Part,
    Scale,
    bounds,
    coarsened,
    measured,
    move_of,
    other_parts_of,
    parts_of,
)
from discreet.queries.passes import Passes, Setting
from discreet.queries.sharing import Claim, share_out

__all__ = ["Design", "Forecast", "Measurement", "Question", "Setting", "design", "forecast", "join"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """A part with its sensitivity and its noise; ``place`` is the pass that collects it.

    It is drawn once: questions that hold the same measurement read the same noisy integers.
    """

    place: int
    part: Part
    move: Move
    shift: int
    mechanism: Additive

    @property
    def law(self) -> Law:
        """The exact law of the noise."""
        noise = None if self.mechanism.integers is None else self.mechanism.integers.noise
        if not isinstance(noise, Law):
            raise Unsupported("Tables are released with integer noise of a known law only.")
        return noise

    def noisy(self, sums: Mapping[str, NDArray[Any]], *, bits: Bits) -> Noisy:
        """Exact private integers in, noisy public ones out: the one place where noise is added."""
        noisy = self.mechanism.release(measured(self.part, sums, shift=self.shift), bits=bits)
        return Noisy(name=self.part.name, values=tuple(noisy.tolist()), law=self.law)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A query with everything that its answer needs."""

    query: Query
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    scale: Scale
    measurements: tuple[Measurement, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What this answer costs; what it shares with others is paid once for all of them."""
        return _together(self.measurements)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Questions that are released together: passes over the data, noise, and the whole cost."""

    passes: tuple[Plan, ...]
    questions: tuple[Question, ...]

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All that is measured, each once."""
        return tuple(dict.fromkeys(m for q in self.questions for m in q.measurements))

    @property
    def guarantee(self) -> Guarantee:
        """What all answers cost together."""
        return _together(self.measurements)

    def noisy(
        self, tables: Sequence[Mapping[str, NDArray[Any]]], *, bits: Bits
    ) -> list[tuple[Noisy, ...]]:
        """The noisy parts of each question, from the exact integers of each pass."""
        drawn = {one: one.noisy(tables[one.place], bits=bits) for one in self.measurements}
        return [tuple(drawn[one] for one in q.measurements) for q in self.questions]

    def words(self, question: Question) -> str:
        """The mechanisms behind an answer, and with which other answers they are shared."""
        told = []
        for one in question.measurements:
            others = [
                q.query.title for q in self.questions if q is not question and one in q.measurements
            ]
            also = f" (shared with {', '.join(map(repr, others))})" if others else ""
            told.append(f"{one.part.name}: {one.mechanism!r}{also}")
        return "; ".join(told)


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

    Questions about the same rows and groups are collected in one pass, and what several of them
    need is measured once; no question gets more noise than its portion would buy it alone. Within
    a mean the count and the sum get half of its share each, within a variance the three sums a
    third each.
    """
    if not queries or not all(isinstance(query, Query) for query in queries):
        raise InvalidArgument("queries must be a list of questions, such as ask.count(by='sex').")
    passes = Passes(setting)
    places = [passes.place(query) for query in queries]
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
    return Design(passes=plans, questions=questions)


def join(designs: Sequence[Design]) -> Design:
    """Designs with budgets of their own as one: reserved together, or not at all."""
    passes: list[Plan] = []
    questions: list[Question] = []
    for one in designs:
        moved = {m: replace(m, place=m.place + len(passes)) for m in one.measurements}
        questions += [
            replace(q, measurements=tuple(moved[m] for m in q.measurements)) for q in one.questions
        ]
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
    elif scale.kind == "sum":
        middle = abs(scale.lower + scale.upper)
        std = math.ldexp(math.hypot(stds[1], middle * stds[0]), scale.exponent - 1)
        width = math.ldexp(widths[1] + middle * widths[0], scale.exponent - 1)
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


def _layout(
    queries: Sequence[Query], places: Sequence[int], passes: Passes, portions: Sequence[Fraction]
) -> tuple[list[tuple[Part, ...]], dict[tuple[int, Part], Fraction]]:
    """The parts of each question, and the share of the budget of each part."""
    layout = [parts_of(query, passes[place]) for query, place in zip(queries, places, strict=True)]
    claims = [
        _claim(parts, place, portion, portion / len(parts))
        for parts, place, portion in zip(layout, places, portions, strict=True)
    ]
    for i, (query, place) in enumerate(zip(queries, places, strict=True)):
        other = other_parts_of(query, passes[place])
        if other is None:
            continue
        changed = _claim(other, place, portions[i], portions[i])
        others = {part for j, claim in enumerate(claims) if j != i for part in claim.parts}
        trial = [*claims[:i], changed, *claims[i + 1 :]]
        if others.issuperset(changed.parts) and share_out(trial) is not None:
            layout[i], claims = other, trial
    shares = share_out(claims)
    if shares is None:
        raise Unsupported("The claims of these questions exceed their budget.")
    return layout, shares


def _claim(
    parts: Sequence[Part], place: int, portion: Fraction, least: Fraction
) -> Claim[tuple[int, Part]]:
    return Claim(parts=tuple((place, part) for part in parts), portion=portion, least=least)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A part before its noise is known."""

    place: int
    part: Part
    move: Move
    shift: int


def _draft(part: Part, place: int, plan: Plan, relation: Relation) -> _Draft:
    exact = move_of(part, plan, relation=relation)
    # How many entries one step of the relation can change.
    groups = plan.reach(part.terms[0][1]).groups
    entries = groups if relation is Relation.ADD_REMOVE else 2 * groups
    move, shift = coarsened(exact, entries=entries)
    return _Draft(place=place, part=part, move=move, shift=shift)


def _question(
    query: Query, plan: Plan, measurements: tuple[Measurement, ...], setting: Setting
) -> Question:
    shifts = tuple(one.shift for one in measurements)
    scale = Scale(kind=query.kind, lower=0, upper=1, exponent=0, shifts=shifts)
    if query.value is not None:
        value = bounds(query, setting.schema)
        scale = replace(scale, lower=value.lower, upper=value.upper, exponent=value.exponent)
    return Question(
        query=query,
        names=tuple(query.by),
        keys=tuple(plan.labels()),
        scale=scale,
        measurements=measurements,
    )


def _together(measurements: Sequence[Measurement]) -> Guarantee:
    first, *others = (one.mechanism.guarantee for one in measurements)
    return sum(others, start=first)


def _portions(weights: Sequence[Number] | None, many: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, many)] * many
    exact = [check.positive("weights", weight) for weight in weights]
    if len(exact) != many:
        raise InvalidArgument(f"weights must be {many} numbers, one for each question.")
    return [weight / sum(exact) for weight in exact]
