"""Runs as the thesis counts them: one-sided costs that depend on votes, stopped by rule A.

Diagnoses all, of public data: what is counted here is no guarantee (`faults`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee, approx_dp
from discreet.models.pate.aggregators import (
    ConfidentGNMax,
    gaussian_cost,
    gaussian_log_error,
    with_share,
)
from discreet.models.pate.label_plan import copies, scale_aggregator
from discreet.models.pate.teacher_assignment import (
    UNITS,
    TeacherAssignment,
    TeacherSchedule,
    assign_weighting,
    count_votes,
    vanishing_schedule,
)
from discreet.noise.distribution import Floats
from discreet_studies.personalized_pate.stopping import Conversion, StoppingPoint, stop
from discreet_studies.personalized_pate.votes import (
    DELTA,
    TEACHERS,
    Votes,
    World,
    plain,
    plain_assignment,
    upsampled,
)
from discreet_studies.study import StudySetting

ORDERS: Floats = np.arange(2.0, 51.0)
"""Of the thesis."""
ENSEMBLES, SHUFFLES = 2, 8
"""Ensembles, and orders of the items with noise of their own for each."""
VANISHING_RUNS = 4
"""Orders of the items with vanishing, whose costs take longer."""
_ENDLESS = 1e9
_SHORT = 700


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """Votes under an assignment, and what an answer of each item costs each level."""

    counts: NDArray[np.int64] = field(repr=False)
    truth: NDArray[np.int64] = field(repr=False)
    rule: ConfidentGNMax
    ask: Mapping[str, Floats] = field(repr=False)
    tell: Mapping[str, Floats] = field(repr=False)

    def drawn(self, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """An order of the items, and which of them are answered."""
        order = rng.permutation(len(self.counts))
        noise = rng.normal(0, float(self.rule.sigma_threshold), len(order))
        largest = self.counts[order].max(axis=1) / UNITS
        return order, np.asarray(largest + noise >= float(self.rule.threshold))

    def costs(self, order: NDArray[np.intp], answered: NDArray[np.bool_]) -> dict[str, Floats]:
        """What each query costs each level, at each order."""
        return {
            name: self.ask[name] + answered[:, None] * tell[order]
            for name, tell in self.tell.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One run until a budget is spent."""

    asked: NDArray[np.intp] = field(repr=False)
    """Items, in order."""
    told: NDArray[np.bool_] = field(repr=False)
    """Which of them were answered."""
    counts: Floats = field(repr=False)
    """Votes for each class on each of them."""
    sigma: float
    used: Mapping[str, float]
    """The part of each level's budget that was used at the end."""

    @property
    def labels(self) -> int:
        """How many items were answered."""
        return int(self.told.sum())

    @property
    def queries(self) -> int:
        """How many items were asked."""
        return len(self.asked)

    def voted(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Labels of the items that were answered."""
        votes = self.counts[self.told]
        return np.asarray((votes + rng.normal(0, self.sigma, votes.shape)).argmax(axis=1))


def menu(high: float) -> dict[str, Guarantee]:
    """Two levels: epsilon 1, and a generous one."""
    return {"high": approx_dp(high, DELTA), "low": approx_dp(1, DELTA)}


def panel(votes: Votes, assignment: TeacherAssignment, rule: ConfidentGNMax) -> Panel:
    """Costs of the thesis for every item; shares as in the assignment."""
    counts = count_votes(votes.said, assignment, classes=votes.classes)
    ask, tell = {}, {}
    errors = gaussian_log_error(counts / UNITS, sigma=float(rule.sigma_votes))
    for name, units in assignment.shares.items():
        ask[name], tell[name] = prices(errors, rule, units / UNITS)
    return Panel(counts=counts, truth=votes.truth, rule=rule, ask=ask, tell=tell)


def prices(errors: Floats, rule: ConfidentGNMax, share: float) -> tuple[Floats, Floats]:
    """The cost of a question, and of an answer to each, for owners who move ``share`` votes."""
    ask = share**2 * ORDERS / (2 * float(rule.sigma_threshold) ** 2)
    sigma = with_share(float(rule.sigma_votes), share)
    return ask, gaussian_cost(errors, sigma=sigma, orders=ORDERS)


def until(
    found: Panel,
    limits: Mapping[str, Guarantee],
    rng: np.random.Generator,
    *,
    conversion: Conversion = "classic",
) -> Run:
    """Rule A on one order of the items."""
    order, answered = found.drawn(rng)
    counts = found.counts[order] / UNITS
    most = min(_SHORT, len(order))
    while True:  # most runs are short: costs of the rest are not needed
        costs = found.costs(order[:most], answered[:most])
        end = stop(costs, costs, limits, orders=ORDERS, rule="discard", conversion=conversion)
        if end.queries < most or most == len(order):
            return _run(order, answered, counts, found.rule, end, limits)
        most = min(2 * most, len(order))


def course(found: Panel, rng: np.random.Generator) -> tuple[StoppingPoint, NDArray[np.bool_]]:
    """Epsilon and best order of each level after each query, without an end."""
    order, answered = found.drawn(rng)
    costs = found.costs(order, answered)
    endless = {name: approx_dp(_ENDLESS, DELTA) for name in costs}
    return stop(
        costs, costs, endless, orders=ORDERS, rule="discard", conversion="classic"
    ), answered


def _run(
    order: NDArray[np.intp],
    answered: NDArray[np.bool_],
    counts: Floats,
    rule: ConfidentGNMax,
    end: StoppingPoint,
    limits: Mapping[str, Guarantee],
) -> Run:
    used = {
        name: float(end.epsilons[name][-1]) / limits[name].epsilon(DELTA) if end.queries else 0.0
        for name in limits
    }
    return Run(
        asked=order[: end.queries],
        told=answered[: end.queries],
        counts=counts[: end.queries].copy(),
        sigma=float(rule.sigma_votes),
        used=used,
    )


# ── the three ways ────────────────────────────────────────────────────────────────────────────


def weights(share: float, ratio: float) -> TeacherAssignment:
    """Weighting as in the thesis: weights in the ratio of the epsilons."""
    return assign_weighting(
        TEACHERS,
        people={"high": share, "low": 1 - share},
        sensitivities={"high": ratio, "low": 1.0},
    )


def baseline(setting: StudySetting, world: World, run: int) -> Panel:
    """The plain ensemble."""
    return panel(plain(setting, world, run=run), plain_assignment(), world.rule)


def weighted(setting: StudySetting, world: World, run: int, cell: tuple[float, float]) -> Panel:
    """A cell of the tables, by weighting. Groups are random, so any teachers may be generous."""
    high, share = cell
    return panel(plain(setting, world, run=run), weights(share, high), world.rule)


@cache
def copied(setting: StudySetting, world: World, cell: tuple[float, float], items: int) -> Panel:
    """A cell by upsampling: teachers of their own, noise and threshold in proportion (M20, M25)."""
    high, share = cell
    times = copies({"high": high, "low": 1.0})
    more = share * times["high"] + (1 - share) * times["low"]
    votes, made = upsampled(
        setting, world, times=times, share=share, teachers=round(more * TEACHERS), items=items
    )
    return panel(votes, made, scale_aggregator(world.rule, more))


def vanished(
    setting: StudySetting,
    world: World,
    run: int,
    cell: tuple[float, float],
    rng: np.random.Generator,
) -> Run:
    """A run of a cell by vanishing: strict teachers take one turn in twice the squared ratio."""
    high, share = cell
    votes = plain(setting, world, run=run)
    twice = round(4 * high**2)  # for epsilon 1.5 the cycle has 9 slots, of which 2 are theirs
    turns = {"high": twice // 2, "low": 1} if twice % 4 == 0 else {"high": twice, "low": 2}
    people = {"high": share, "low": 1 - share}
    schedule = vanishing_schedule(TEACHERS, people=people, turns=turns)
    return _in_turns(votes, schedule, world.rule, menu(high), rng)


def _in_turns(
    votes: Votes,
    schedule: TeacherSchedule,
    rule: ConfidentGNMax,
    limits: Mapping[str, Guarantee],
    rng: np.random.Generator,
) -> Run:
    """Rule A when teachers sit out: a level's cost is that of its busiest teacher (M21)."""
    order = rng.permutation(len(votes.said))
    noise = rng.normal(0, float(rule.sigma_threshold), len(order))
    present = np.stack([made.weights > 0 for made in schedule.slots])
    first = schedule.slots[0]
    # Teachers with the same turns pay the same.
    turns = {
        f"{name} {i}": (name, kind)
        for name, block in zip(first.names, first.blocks, strict=True)
        for i, kind in enumerate(np.unique(present[:, slice(*block)], axis=1).T)
    }
    each = {key: limits[name] for key, (name, _) in turns.items()}
    most = min(_SHORT, len(order))
    while True:
        counts, ask, tell = _slots(votes, schedule, rule, order[:most])
        answered = counts.max(axis=1) + noise[:most] >= float(rule.threshold)
        paid = ask + answered[:, None] * tell
        slot = np.arange(most) % len(schedule.slots)
        costs = {key: paid * kind[slot][:, None] for key, (_, kind) in turns.items()}
        end = stop(costs, costs, each, orders=ORDERS, rule="discard", conversion="classic")
        if end.queries < most or most == len(order):
            return _run(order, answered, counts, rule, end, each)
        most = min(2 * most, len(order))


def _slots(
    votes: Votes, schedule: TeacherSchedule, rule: ConfidentGNMax, order: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    """Votes on items in this order, and the costs of questions and answers to who takes part."""
    counts = np.empty((len(order), votes.classes))
    ask, tell = np.empty((2, len(order), len(ORDERS)))
    for slot, made in enumerate(schedule.slots):
        rows = np.arange(slot, len(order), len(schedule.slots))
        counts[rows] = count_votes(votes.said[order[rows]], made, classes=votes.classes) / UNITS
        errors = gaussian_log_error(counts[rows], sigma=float(rule.sigma_votes))
        ask[rows], tell[rows] = prices(errors, rule, int(made.weights.max()) / UNITS)
    return counts, ask, tell
