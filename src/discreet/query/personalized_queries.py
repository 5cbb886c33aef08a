"""Queries on people whose budgets differ: weights, noise and error by privacy level.

All of it is public: levels and their budgets, weights, noise, and the error before release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import limit_rho
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.data.expression import Expression, col
from discreet.data.program import Key, Program
from discreet.mechanisms.additive import gaussian, laplace
from discreet.query._estimate import SumEstimator
from discreet.query._measure import (
    coarsen_sensitivity,
    compile_query,
    entries_of,
    sensitivity_of,
)
from discreet.query._release_plan import (
    Measurement,
    PlannedQuery,
    ReleasePlan,
    TableSpec,
    plan_release,
)
from discreet.query.budget import BudgetChange, Noise, QueryBudget
from discreet.query.builders import Query
from discreet.query.error_forecast import forecast

# ── Privacy levels ───────────────────────────────────────────────────────────────────────────────
# Everything here is public: levels and their budgets, weights, noise, and the error before
# release.


Level: TypeAlias = str | int
Sums: TypeAlias = Mapping[str, NDArray[Any]]

WEIGHT_BITS = 20
"""Weights are multiples of 2**-20, rounded down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySpecification:
    """The budget of each level: epsilon for all of them, or rho for all of them."""

    amounts: tuple[tuple[Level, Fraction], ...]
    measure: Literal["epsilon", "rho"]

    @property
    def levels(self) -> tuple[Level, ...]:
        """From the strictest to the most open."""
        return tuple(level for level, _ in self.amounts)

    def budget(self, level: Level) -> QueryBudget:
        """All that a level may spend."""
        amount = self[level]
        if self.measure == "epsilon":
            return QueryBudget(epsilon=amount)
        return QueryBudget(rho=amount, noise="gaussian")  # weights follow the root of rho

    def share(self, level: Level, max_privacy_level: Level) -> Fraction:
        """What a level may spend, relative to ``max_privacy_level``; at most 1."""
        return min(self[level] / self[max_privacy_level], Fraction(1))

    def factors(self, max_privacy_level: Level) -> dict[Level, int]:
        """How much of each level's data counts, in whole steps; as many for all if all count.

        Laplace noise is as private as the shift is short: weights follow epsilon. For Gaussian
        noise the square of the shift counts: weights follow the root of rho.
        """
        shares = {level: self.share(level, max_privacy_level) for level in self.levels}
        if set(shares.values()) == {Fraction(1)}:
            return dict.fromkeys(self.levels, 1)
        whole = 1 << WEIGHT_BITS
        return {
            level: math.floor((share if self.measure == "epsilon" else root_down(share)) * whole)
            for level, share in shares.items()
        }

    def __getitem__(self, level: Level) -> Fraction:
        for name, amount in self.amounts:
            if name == level:
                return amount
        listed = ", ".join(map(str, self.levels))
        raise InvalidArgument(f"There is no level {level!r}; there are: {listed}.")


def privacy_specification(
    privacy_levels: Mapping[Any, Number | Guarantee], *, relation: NeighboringRelation
) -> PrivacySpecification:
    """A checked menu. A number is an epsilon; a limit with a delta becomes the rho it allows."""
    given: object = privacy_levels
    if not isinstance(given, Mapping) or not privacy_levels:
        raise InvalidArgument(
            "privacy_levels must map values of the budget column to what their people may "
            "spend, for "
            'example {"strict": 0.1, "open": 1}.'
        )
    found = {level: _amount(level, value, relation) for level, value in privacy_levels.items()}
    currencies = {currency for currency, _ in found.values()}
    if len(currencies) > 1:
        raise InvalidArgument(
            "privacy_levels must all be epsilons, or all be rhos (or approx limits)."
        )
    if len(set(map(str, found))) < len(found):
        raise InvalidArgument("privacy_levels must have different names.")
    ordered = sorted(found, key=lambda level: found[level][1])
    amounts = tuple((level, found[level][1]) for level in ordered)
    return PrivacySpecification(amounts=amounts, measure=currencies.pop())


def _amount(
    level: Level, value: Number | Guarantee, relation: NeighboringRelation
) -> tuple[Literal["epsilon", "rho"], Fraction]:
    if not isinstance(value, Guarantee):
        return "epsilon", check.positive(f"levels[{level!r}]", value)
    if value.relation is not relation:
        raise RelationMismatch(
            f"levels[{level!r}] is under {value.relation!r}, the table under {relation!r}."
        )
    match value.event:
        case events.PureEvent(epsilon):
            return "epsilon", check.positive(f"levels[{level!r}]", epsilon)
        case events.ZcdpEvent(rho, xi) if xi == 0:
            return "rho", check.positive(f"levels[{level!r}]", rho)
        case events.ApproxEvent():
            # The conversion is the same under every relation.
            return "rho", limit_rho(Guarantee(value.event))
        case _:
            raise InvalidArgument(f"levels[{level!r}] must be pure, zcdp or approx.")


# ── Noise for weighted sums ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedPlan:
    """A design for sums in which each level counts by its own weight; made by `weighted`."""

    # Theorem: if the noisy parts of `design` are drawn from `combined` sums, the release has
    #   `guarantee`, level by level, and each level's is within the level's budget.
    # Proof: the rows of a person of level l are in the sums of level l alone, and there move a part
    #   by at most its move d (`sensitivity_of`). The weighted part, a whole combination with factor
    #   p of these sums, moves by p d, and by no more than `coarsen_sensitivity` says when it is
    #   rounded. The
    #   noise is the smallest with which every level's move costs at most the level's share of the
    #   part; shares add up.
    # Source: Alaggan, Gambs, Kermarrec 2016, for sums; for Gaussian noise the same with squares.
    # Needs: every person has one level, which no other person's data move. Under replace-one the
    #   level stays.

    design: ReleasePlan
    max_privacy_level: Level
    factors: Mapping[Level, int]
    guarantee: PersonalizedGuarantee

    @property
    def weights(self) -> dict[Level, float]:
        """How much a person of each level counts; 1 for those at the cap and above."""
        most = max(self.factors.values())
        return {level: factor / most for level, factor in self.factors.items()}

    def combined(self, tables: Mapping[Level, Sequence[Sums]]) -> list[Sums]:
        """The weighted sums of each pass, from those of each level; exact."""
        found: list[Sums] = []
        for place in range(len(self.design.passes)):
            total: dict[str, Any] = {}
            for level, factor in self.factors.items():
                for name, column in tables[level][place].items():
                    added = column if factor == 1 else column.astype(object) * factor
                    total[name] = added if name not in total else total[name] + added
            found.append({name: np.asarray(column) for name, column in total.items()})
        return found


def plan_weighted(
    queries: Sequence[Query],
    *,
    setting: TableSpec,
    levels: PrivacySpecification,
    max_privacy_level: Level,
) -> WeightedPlan:
    """Plan queries at ``max_privacy_level`` at most; strict levels count for less."""
    base = plan_release(queries, setting=setting, budget=levels.budget(max_privacy_level))
    factors = levels.factors(max_privacy_level)
    if max(factors.values()) == 1:  # the strictest: everybody counts, and pays, the same
        same = personalized({str(level): base.guarantee for level in levels.levels})
        return WeightedPlan(
            design=base, max_privacy_level=max_privacy_level, factors=factors, guarantee=same
        )
    for q in base.questions:  # refused before noise is looked for
        q.estimator.with_shifts(())
    made = {
        one: _stretched(
            one, base, levels, max_privacy_level=max_privacy_level, factors=factors, setting=setting
        )
        for one in base.measurements
    }
    costs = {
        str(level): _sum([one.costs[level] for one in made.values()]) for level in levels.levels
    }
    questions = tuple(_question(q, made) for q in base.questions)
    return WeightedPlan(
        design=replace(base, questions=questions),
        max_privacy_level=max_privacy_level,
        factors=factors,
        guarantee=personalized(costs),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _StretchedQuery:
    measurement: Measurement
    net: int
    """The power of two by which noisy integers are read."""
    costs: Mapping[Level, Guarantee]


def _stretched(
    one: Measurement,
    base: ReleasePlan,
    levels: PrivacySpecification,
    *,
    max_privacy_level: Level,
    factors: Mapping[Level, int],
    setting: TableSpec,
) -> _StretchedQuery:
    plan = base.passes[one.place]
    exact = sensitivity_of(one.part, plan, relation=setting.relation)
    entries = entries_of(one.part, plan, relation=setting.relation)
    most = max(factors.values())
    shift = coarsen_sensitivity(_times(exact, most), entries=entries)[1]
    if shift and 1 << shift == most:
        shift += 1  # a net shift of zero would be read as "not rounded"
    moves = {
        level: _rounded(_times(exact, factor), shift=shift, entries=entries)
        for level, factor in factors.items()
    }
    noise, costs = _noise(
        one.mechanism, moves, levels, max_privacy_level=max_privacy_level, relation=setting.relation
    )
    made = replace(one, move=moves[max_privacy_level], shift=shift, mechanism=noise)
    return _StretchedQuery(measurement=made, net=shift - (most.bit_length() - 1), costs=costs)


def _times(move: BudgetChange, factor: int) -> BudgetChange:
    return BudgetChange(l1=factor * move.l1, l2_squared=factor**2 * move.l2_squared)


def _rounded(move: BudgetChange, *, shift: int, entries: int) -> BudgetChange:
    """As `coarsen_sensitivity`, by a given power of two."""
    if not shift:
        return move
    l1 = (move.l1 >> shift) + 1 + entries
    root = ((math.isqrt(move.l2_squared) + 1) >> shift) + 1 + math.isqrt(entries) + 1
    return BudgetChange(l1=l1, l2_squared=min(root**2, l1**2))


def _noise(
    mechanism: Noise,
    moves: Mapping[Level, BudgetChange],
    levels: PrivacySpecification,
    *,
    max_privacy_level: Level,
    relation: NeighboringRelation,
) -> tuple[Noise, dict[Level, Guarantee]]:
    """The smallest noise that keeps every level's share, and what each level then pays."""
    shares = {level: levels.share(level, max_privacy_level) for level in levels.levels}
    made: Noise
    match mechanism.guarantee.event:
        case events.DiscreteLaplaceEvent(scale, shift):
            epsilon = shift / scale  # of this part, for the cap
            wide = max(moves[x].l1 / (epsilon * shares[x]) for x in shares)
            made = laplace(
                sensitivity=moves[max_privacy_level].l1,
                scale=wide,
                domain="integers",
                relation=relation,
            )
            costs = {x: events.DiscreteLaplaceEvent(wide, moves[x].l1) for x in shares}
            return made, {x: Guarantee(event, relation) for x, event in costs.items()}
        case events.DiscreteGaussianEvent(variance, shift_squared):
            rho = shift_squared / (2 * variance)
            wide = max(moves[x].l2_squared / (2 * rho * shares[x]) for x in shares)
            squares = {x: moves[x].l2_squared for x in shares}
            made = gaussian(
                sensitivity=1,
                norm="linf",
                dimension=squares[max_privacy_level],
                rho=squares[max_privacy_level] / (2 * wide),
                domain="integers",
                relation=relation,
            )
            paid = {
                x: events.DiscreteGaussianEvent(wide, Fraction(square), max(square, 1))
                for x, square in squares.items()
            }
            return made, {x: Guarantee(event, relation) for x, event in paid.items()}
        case _:
            raise Unsupported("Sums of levels are released with integer noise only.")


def _question(q: PlannedQuery, made: Mapping[Measurement, _StretchedQuery]) -> PlannedQuery:
    """The same question, read on the scale of the weights."""
    return replace(
        q,
        estimator=q.estimator.with_shifts(tuple(made[one].net for one in q.measurements)),
        measurements=tuple(made[one].measurement for one in q.measurements),
        independent=False,  # weighted rows are no sample of the population
    )


def _sum(costs: Sequence[Guarantee]) -> Guarantee:
    first, *others = costs
    return sum(others, start=first)


# ── The error before release ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightingTradeoff(Tabular):
    """What a cap gives: less noise for more weight on the open levels.

    The answer differs from that of all people, equally weighted, by at most ``error``, with
    probability at least ``confidence``: by ``noise``, and by ``bias``, which the weights may cause.
    """

    max_privacy_level: Level
    weights: Mapping[Level, float]
    noise: float
    bias: float
    confidence: float

    def rows(self) -> list[Record]:
        """List the weight of each level, with the error of the whole."""
        return [
            {"level": level, "weight": weight, "noise": self.noise, "bias": self.bias}
            for level, weight in self.weights.items()
        ]

    @property
    def error(self) -> float:
        """Noise and bias together."""
        return self.noise + self.bias

    def __str__(self) -> str:
        weights = ", ".join(f"{level} {short(one)}" for level, one in self.weights.items())
        return (
            f"weights {weights}: within ±{short(self.error)} of the mean of all people "
            f"(noise {short(self.noise)}, bias {short(self.bias)}; {percent(self.confidence)})"
        )

    __repr__ = __str__


def weighting_tradeoff(
    made: WeightedPlan,
    *,
    expected_rows: Mapping[Any, int],
    max_difference: Number | None,
    confidence: float,
) -> WeightingTradeoff:
    """The error of the one question of a design, at stated numbers of rows of each level.

    ``max_difference`` bounds how far the means of any two levels are apart; the declared range
    always does.
    """
    # Proof: a weighted mean is a mean of the levels' means with other shares. Two such mixtures
    #   differ by at most the distance of the shares (half of the sum of differences) times the
    #   distance of the means. A sum lacks `1 - weight` of each row.
    (question,) = made.design.questions
    weights = made.weights
    if set(expected_rows) != set(weights):
        listed = ", ".join(map(str, weights))
        raise InvalidArgument(
            f"expected_rows must state the number of rows of each level: {listed}."
        )
    many = {x: check.count(f"rows[{x!r}]", expected_rows[x], minimum=0) for x in weights}
    effective = sum(weights[x] * many[x] for x in weights)
    told = forecast(question, expected_rows=max(1, math.floor(effective)), confidence=confidence)
    return WeightingTradeoff(
        max_privacy_level=made.max_privacy_level,
        weights=weights,
        noise=math.inf if told.width is None else told.width,
        bias=_bias(question, weights, many, max_difference),
        confidence=told.confidence,
    )


def _bias(
    question: PlannedQuery,
    weights: Mapping[Level, float],
    expected_rows: Mapping[Any, int],
    max_difference: Number | None,
) -> float:
    scale = question.estimator
    if set(weights.values()) == {1.0}:
        return 0.0
    if not isinstance(scale, SumEstimator) or scale.kind == "variance":
        return math.inf  # no bound from means alone
    step = 2.0**scale.exponent
    if scale.kind == "mean":
        range_ = scale.width * step
        apart = (
            range_
            if max_difference is None
            else float(check.non_negative("max_difference", max_difference))
        )
        total, effective = (
            sum(expected_rows.values()),
            sum(weights[x] * expected_rows[x] for x in weights),
        )
        if not effective:
            return min(apart, range_)
        shares = (
            abs(weights[x] * expected_rows[x] / effective - expected_rows[x] / total)
            for x in weights
        )
        return min(apart, range_) * sum(shares) / 2
    most = step * max(abs(scale.lower), abs(scale.upper))
    return most * sum((1 - weights[x]) * expected_rows[x] for x in weights)


# ── Scans by privacy level ───────────────────────────────────────────────────────────────────────


_LABEL = "level of the person"
_MOST = 1_000_000
"""Groups beyond which levels are read one by one."""


def restrict_query(query: Query, condition: Expression) -> Query:
    """The same question about the rows that also meet a condition."""
    where = condition if query.where is None else query.where & condition
    return replace(query, where=where)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelScan:
    """A pass of a design, split by level: one program with more groups, or one a level."""

    programs: tuple[Program, ...]
    levels: tuple[Level, ...]
    """In the order of the sums."""
    together: bool

    def split(self, found: Sequence[Sums]) -> dict[Level, Sums]:
        """The sums of each level, from those of the programs."""
        if not self.together:
            return dict(zip(self.levels, found, strict=True))
        (sums,) = found
        return {
            level: {
                name: column.reshape(len(self.levels), -1)[place] for name, column in sums.items()
            }
            for place, level in enumerate(self.levels)
        }


def plan_level_scans(
    plan: ReleasePlan, *, setting: TableSpec, column: str, levels: Sequence[Level]
) -> list[LevelScan]:
    """How to read the sums of each level of a column, which is the same in all rows of a unit."""
    asked: dict[int, Query] = {}
    for one in plan.questions:  # those of one pass are about the same rows and groups
        asked.setdefault(one.measurements[0].place, one.query)
    return [
        _level_scan(asked[place], program, setting=setting, column=column, levels=levels)
        for place, program in enumerate(plan.passes)
    ]


def _level_scan(
    query: Query, program: Program, *, setting: TableSpec, column: str, levels: Sequence[Level]
) -> LevelScan:
    # Theorem: the sums of a level are those that the program would give on its people's rows alone.
    # Proof: all rows of a unit are in groups of one level, so the limits of a unit meet the same
    #   rows, in the same order, as without the level. Rows of no listed level are in no group.
    if program.rest or program.size * len(levels) > _MOST:
        narrow = tuple(
            compile_query(
                restrict_query(query, col(column) == level), program.aggregates, setting=setting
            )
            for level in levels
        )
        return LevelScan(programs=narrow, levels=tuple(levels), together=False)
    # Keys come out in the order of the declared levels.
    bound = col(column).bind(setting.schema)
    locate = bound.locator()
    ordered = tuple(sorted(levels, key=locate))
    inner: Sequence[Key] = tuple(program.labels()) if query.by else ((),)
    whole = replace(
        query,
        by={_LABEL: col(column), **query.by},
        keys=tuple((level, *key) for level in ordered for key in inner),
    )
    made = compile_query(whole, program.aggregates, setting=setting)
    return LevelScan(programs=(made,), levels=ordered, together=True)


def split_levels(
    passes: Sequence[LevelScan], found: Sequence[Sums], levels: Sequence[Level]
) -> Mapping[Level, list[Sums]]:
    """The sums of all passes, by level."""
    tables: dict[Level, list[Sums]] = {level: [] for level in levels}
    start = 0
    for one in passes:
        parts = one.split(found[start : start + len(one.programs)])
        start += len(one.programs)
        for level in levels:
            tables[level].append(parts[level])
    return tables
