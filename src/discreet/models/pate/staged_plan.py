"""Plans that go on without the levels that have spent their budgets, and plans with turns.

Both are fixed before the first vote: how many queries and answers of which kind there
are at most is public, and so is what each level pays for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import positive, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax
from discreet.models.pate.classifier import LabelRelease, publish_labels
from discreet.models.pate.label_plan import SPARE, LabelPlan, plan_labels, scale_aggregator, target
from discreet.models.pate.teacher_assignment import (
    UNITS,
    TeacherAssignment,
    TeacherSchedule,
    count_votes,
    drop_levels,
)
from discreet.noise.random_source import RandomSource

_MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPlan:
    """Stages that follow each other; from each on, levels that have spent theirs weigh nothing."""

    # Theorem: a run keeps `guarantee`, whatever the votes, and so do its length and the ends of
    #   its stages.
    # Proof: the largest numbers of questions and answers of each stage are fixed beforehand, and a
    #   stage is a `LabelPlan`: it ends by what was published. Stages are composed one after the
    #   other. Owners of a level that is left out move no vote of a stage.
    # Source: Muehl 2021 (M26, rule B), with costs that do not depend on votes.

    stages: tuple[LabelPlan, ...]

    def __post_init__(self) -> None:
        if not self.stages or not all(
            stage.classes == self.classes and stage.assignment.same_teachers(self.assignment)
            for stage in self.stages
        ):
            raise InvalidArgument("stages must have the same teachers and classes, at least one.")

    @property
    def assignment(self) -> TeacherAssignment:
        """Of the first stage: who learns from whom never changes."""
        return self.stages[0].assignment

    @property
    def classes(self) -> int:
        """How many there are."""
        return self.stages[0].classes

    @property
    def answers(self) -> int:
        """Labels at most, over all stages."""
        return sum(stage.answers for stage in self.stages)

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays for the whole run, fixed before the first vote."""
        return _total(self.stages)

    def publish(self, votes: ArrayLike, *, rng: RandomSource) -> LabelRelease:
        """Labels of public items in their order, from what each teacher says of each of them."""
        said = np.asarray(votes)
        found, asked = [], 0
        for stage in self.stages:
            counts = count_votes(said[asked:], stage.assignment, classes=self.classes)
            one = publish_labels(counts, stage, rng=rng)
            found.append(one.labels)
            asked += one.query_count
        return LabelRelease(labels=np.concatenate(found), guarantee=self.guarantee)


def plan_stages(
    assignment: TeacherAssignment,
    aggregator: ConfidentGNMax,
    limits: Mapping[str, Guarantee],
    *,
    classes: int,
    answered_share: float,
    items: int | None = None,
    least: float = 0.1,
) -> StagedPlan:
    """Plan a run that continues without the levels that have spent their budgets.

    The aggregator is scaled to the weight of the remaining teachers.

    Args:
        assignment: Assignment of people to teachers.
        aggregator: Aggregator of the votes of all teachers.
        limits: Limit of each level, made with `discreet.approx_dp`.
        classes: Number of classes, at least 2.
        answered_share: Expected share of items that are answered, guessed from public data.
        items: Number of public items. By default it does not limit the run.
        least: Share of the weight below which the run ends.

    Returns:
        The plan, for `PATEClassifier.label`.

    Raises:
        BudgetExceeded: A limit does not pay for a single label.
        InvalidArgument: `limits` names other levels, or an argument is outside its range.

    Privacy:
        The plan depends on public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> from discreet.models import pate
        >>> teachers = pate.assign_weighting(
        ...     100, people={"low": 50, "high": 50}, sensitivities={"low": 1, "high": 1}
        ... )
        >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=10, sigma_votes=10)
        >>> limits = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(2, 1e-5)}
        >>> plan = pate.plan_stages(teachers, aggregator, limits, classes=2, answered_share=0.8)
        >>> len(plan.stages)
        2
    """
    numbers = _Numbers(classes=classes, answered_share=answered_share)
    first = plan_labels(
        assignment, aggregator, limits, classes=classes, answered_share=answered_share, items=items
    )
    stages, gone = [first], set[str]()
    whole = int(assignment.weights.sum())
    while _anybody(assignment, gone):
        left = None if items is None else items - sum(stage.queries for stage in stages)
        rest = drop_levels(assignment, gone) if gone else assignment
        part = Fraction(int(rest.weights.sum()), whole)
        if part < least or left == 0:
            break
        smaller = scale_aggregator(aggregator, part)
        short = set(_passed([*stages, numbers.stage(1, rest, smaller, left)], limits))
        if short:  # who cannot pay for one more label takes no further part
            gone |= short
        else:
            stages.append(numbers.longest(stages, rest, smaller, limits, items=left))
    return StagedPlan(stages=tuple(stages))


def _anybody(assignment: TeacherAssignment, gone: set[str]) -> bool:
    """Whether a teacher is left that no level which is gone has taught."""
    taken = np.zeros(assignment.teachers, dtype=np.bool_)
    for name, block in zip(assignment.names, assignment.blocks, strict=True):
        if name in gone:
            taken[slice(*block)] = True
    return not taken.all()


def _passed(stages: Sequence[LabelPlan], limits: Mapping[str, Guarantee]) -> list[str]:
    """The levels whose limits these stages would pass."""
    spent = _total(stages)
    return [name for name in spent if _over(spent[name], limits[name])]


def _over(spent: Guarantee, limit: Guarantee) -> bool:
    epsilon, delta = target(limit)
    return spent.epsilon(delta) > epsilon


def _total(stages: Sequence[LabelPlan]) -> PersonalizedGuarantee:
    first, *others = (stage.guarantee for stage in stages)
    return sum(others, start=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """How many questions go with how many answers."""

    classes: int
    answered_share: float

    def stage(
        self, answers: int, rest: TeacherAssignment, aggregator: ConfidentGNMax, items: int | None
    ) -> LabelPlan:
        questions = queries_for(answers, self.answered_share)
        questions = questions if items is None else min(questions, items)
        return LabelPlan(
            assignment=rest,
            aggregator=aggregator,
            classes=self.classes,
            queries=questions,
            answers=answers,
        )

    def longest(
        self,
        before: Sequence[LabelPlan],
        rest: TeacherAssignment,
        aggregator: ConfidentGNMax,
        limits: Mapping[str, Guarantee],
        *,
        items: int | None,
    ) -> LabelPlan:
        """The longest stage that keeps every limit; one label does."""
        most = _MOST if items is None else items
        low, high = 1, 2
        while high <= most and not _passed(
            [*before, self.stage(high, rest, aggregator, items)], limits
        ):
            low, high = high, 2 * high
        high = min(high, most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            over = _passed([*before, self.stage(middle, rest, aggregator, items)], limits)
            low, high = (low, middle) if over else (middle, high)
        return self.stage(low, rest, aggregator, items)


def queries_for(answers: int, answered_share: float) -> int:
    """Questions that go with so many answers, if this share of them is answered."""
    return math.ceil(answers / answered_share * (SPARE if answered_share < 1 else 1))


# ── Turns ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """Item t is voted on by those whose turn it is in slot t of the cycle."""

    # Theorem: a run keeps `guarantee`, and so does its length.
    # Proof: each slot has at most `slot_queries` questions and `slot_answers` answers, fixed
    #   beforehand; after its last answer a slot asks nothing more, which follows from what was
    #   published. A teacher pays for the slots in which it has a turn, by its weight there. The
    #   weights of any teacher of a level, in falling order, are at most those that are charged.
    # Source: Muehl 2021, section 5.2, with costs that do not depend on votes.

    schedule: TeacherSchedule
    aggregator: ConfidentGNMax
    classes: int
    slot_queries: int
    slot_answers: int

    @property
    def queries(self) -> int:
        """Number of questions of the whole run, at most."""
        return self.slot_queries * len(self.schedule.slots)

    @property
    def answers(self) -> int:
        """Number of answers of the whole run, at most."""
        return self.slot_answers * len(self.schedule.slots)

    @property
    def assignment(self) -> TeacherAssignment:
        """Of the first slot: who learns from whom is the same in all."""
        return self.schedule.slots[0]

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays for the whole run, fixed before the first vote."""
        return personalized({name: self._paid(name) for name in self.assignment.names})

    def publish(self, votes: ArrayLike, *, rng: RandomSource) -> LabelRelease:
        """Labels of public items; -1 also where a slot asks no more."""
        said = np.asarray(votes)
        length = len(self.schedule.slots)
        labels = np.full(min(len(said), self.queries), UNANSWERED, dtype=np.int64)
        for place, slot in enumerate(self.schedule.slots):
            plan = LabelPlan(
                assignment=slot,
                aggregator=self.aggregator,
                classes=self.classes,
                queries=self.slot_queries,
                answers=self.slot_answers,
            )
            items = np.arange(place, len(labels), length)
            one = publish_labels(
                count_votes(said[items], slot, classes=self.classes), plan, rng=rng
            )
            labels[items[: one.query_count]] = one.labels
        return LabelRelease(labels=labels, guarantee=self.guarantee)

    def _paid(self, name: str) -> Guarantee:
        # Falling order for each teacher, then the largest at each place: more than anyone pays.
        worst = np.sort(self.schedule.moves(name), axis=0)[::-1].max(axis=1)
        total = Guarantee(events.NOTHING, NeighboringRelation.ADD_REMOVE)
        for weight, slots in zip(*np.unique(worst[worst > 0], return_counts=True), strict=True):
            share = Fraction(int(weight)) ** 2
            ask = self._event(self.aggregator.sigma_threshold, share, 1)
            tell = self._event(self.aggregator.sigma_votes, 2 * share, self.classes)
            times = int(slots)
            total = total + ask * (self.slot_queries * times) + tell * (self.slot_answers * times)
        return total

    def _event(self, sigma: Number, square: Fraction, dimension: int) -> Guarantee:
        variance = (positive("sigma", sigma) * UNITS) ** 2
        event = events.DiscreteGaussianEvent(variance, square, dimension)
        return Guarantee(event, NeighboringRelation.ADD_REMOVE)


def plan_turns(
    schedule: TeacherSchedule,
    aggregator: ConfidentGNMax,
    limits: Mapping[str, Guarantee],
    *,
    classes: int,
    answered_share: float,
) -> TurnPlan:
    """Plan a run in which teachers vote in turns.

    Args:
        schedule: Cycle of assignments, one for each item in turn.
        aggregator: Aggregator of the votes.
        limits: Limit of each level, made with `discreet.approx_dp`.
        classes: Number of classes, at least 2.
        answered_share: Expected share of items that are answered, guessed from public data.

    Returns:
        The longest plan that satisfies every limit, for `PATEClassifier.label`.

    Raises:
        BudgetExceeded: A limit does not pay for one label in each slot of the cycle.
        InvalidArgument: `limits` names other levels, or an argument is outside its range.

    Privacy:
        The plan depends on public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> from discreet.models import pate
        >>> from discreet.models.pate.teacher_assignment import vanishing_schedule
        >>> people, turns = {"low": 50, "high": 50}, {"low": 1, "high": 2}
        >>> schedule = vanishing_schedule(100, people=people, turns=turns)
        >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=10, sigma_votes=10)
        >>> limits = {"low": discreet.approx_dp(1, 1e-5), "high": discreet.approx_dp(2, 1e-5)}
        >>> plan = pate.plan_turns(schedule, aggregator, limits, classes=2, answered_share=0.8)
        >>> plan.answers >= 1
        True
    """
    probability("answered_share", answered_share, zero=False)
    names = schedule.slots[0].names
    if sorted(limits) != list(names):
        raise InvalidArgument(f"limits must name the levels {', '.join(names)}.")

    def plan(answers: int) -> TurnPlan:
        return TurnPlan(
            schedule=schedule,
            aggregator=aggregator,
            classes=classes,
            slot_queries=queries_for(answers, answered_share),
            slot_answers=answers,
        )

    def fits(answers: int) -> bool:
        spent = plan(answers).guarantee
        return not any(_over(spent[name], limits[name]) for name in names)

    if not fits(1):
        raise BudgetExceeded("A level's limit does not pay for one label in each slot.")
    low, high = 1, 2
    while high < _MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return plan(low)
