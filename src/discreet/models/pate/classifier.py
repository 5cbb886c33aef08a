"""PATE: teachers on parts of the private data, the labels they publish, and the student."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.semi_supervised import SelfTrainingClassifier

from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core import events
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.ledger.account import Account
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.models.pate.aggregators import UNANSWERED
from discreet.models.pate.binary_labels import BinaryLabelPlan
from discreet.models.pate.label_plan import LabelPlan
from discreet.models.pate.teacher_assignment import TeacherAssignment, count_votes, owner_names
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Teachers ─────────────────────────────────────────────────────────────────────────────────────


class LabelPlanProtocol(Protocol):
    """A plan that publishes from votes by itself: `StagedPlan`, `TurnPlan`."""

    @property
    def assignment(self) -> TeacherAssignment: ...

    @property
    def classes(self) -> int: ...

    @property
    def guarantee(self) -> PersonalizedGuarantee: ...

    def publish(self, votes: ArrayLike, *, rng: RandomSource) -> LabelRelease: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRelease:
    """What an ensemble published about public items."""

    labels: NDArray[np.int64] = field(repr=False)
    """A class for each item that was asked, or -1 without an answer."""
    guarantee: PersonalizedGuarantee
    """What each level pays: fixed before the first vote, whatever the votes were."""

    @property
    def query_count(self) -> int:
        """Items that were asked before the plan was at its end."""
        return len(self.labels)

    @property
    def answered(self) -> NDArray[np.intp]:
        """The items that have a label."""
        return np.flatnonzero(self.labels != UNANSWERED)


class PATEClassifier:
    """Teachers from any classifier in the style of scikit-learn.

    ``classes`` are declared: the number of labels, which are 0 .. classes - 1. The teachers are
    trained side by side with joblib, so its backends (processes, Spark, Dask, Ray) apply.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        assignment: TeacherAssignment,
        classes: int,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.assignment = assignment
        self.classes = count("classes", classes, minimum=2)
        self.n_jobs = n_jobs
        self._teachers: list[Any] | None = None
        self._owners: frozenset[tuple[str, str]] = frozenset()

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, owners: ArrayLike, privacy_levels: ArrayLike
    ) -> Self:
        """Train every teacher on its own records; nothing is published, nothing is paid.

        Needs: every scaling inside ``estimator`` by declared constants or by its own records.
        """
        features, targets = np.asarray(X), np.asarray(y)
        if targets.ndim != 1 or len(features) != len(targets):
            raise InvalidArgument("X and y must have one row and one label for each record.")
        if (
            not np.issubdtype(targets.dtype, np.integer)
            or not np.isin(targets, np.arange(self.classes)).all()
        ):
            raise InvalidArgument(f"y must be whole numbers 0..{self.classes - 1}, as declared.")
        if np.shape(owners) != (len(features),):
            raise InvalidArgument("owners and privacy_levels must have an entry for every record.")
        parts = self.assignment.rows(owners, privacy_levels)
        self._teachers = Parallel(n_jobs=self.n_jobs)(
            delayed(_teacher)(self.estimator, features[rows], targets[rows]) for rows in parts
        )
        who, chosen = owner_names(owners), np.asarray(privacy_levels).astype(str)
        self._owners = frozenset(zip(who.tolist(), chosen.tolist(), strict=True))
        return self

    def votes(self, X: ArrayLike) -> NDArray[np.int64]:
        """What every teacher says of every item: private, for `label` and for tests."""
        items, teachers = np.asarray(X), self._taught()
        said = Parallel(n_jobs=self.n_jobs)(delayed(_said)(teacher, items) for teacher in teachers)
        return np.stack(said, axis=1)

    def label(
        self,
        X: ArrayLike,
        *,
        plan: LabelPlan | BinaryLabelPlan | LabelPlanProtocol,
        personal_budgets: PersonalBudgets | None = None,
        account: Account | None = None,
        rng: RandomSource | None = None,
    ) -> LabelRelease:
        """Publish labels of public items, in their order, until the plan is at its end.

        ``personal_budgets`` are charged for the whole plan before the first vote is counted, each
        member by its own level; every owner must be a member, at the same level. An ``account`` is
        charged for the level that pays the most. Personal budgets count rho: a plan whose costs
        have a delta of their own, such as `BinaryLabelPlan`, takes an account.
        """
        source = resolve_rng(rng)
        if plan.assignment is not self.assignment or plan.classes != self.classes:
            raise InvalidArgument("plan must be made for this ensemble's assignment and classes.")
        self._taught()
        if personal_budgets is not None:
            if not source.private:
                raise NotCertified("Labels from a seeded source are not private: not charged.")
            _check_rho(plan.guarantee)
            if not self._owners <= set(
                zip(personal_budgets.members, personal_budgets.levels.tolist(), strict=True)
            ):
                raise InvalidArgument(
                    "Every owner must be a member of personal_budgets, at the same level: others "
                    "would not be charged."
                )
        with ExitStack() as stack:
            if account is not None:
                cost = plan.guarantee.worst
                stack.enter_context(account.reserve(cost, label="labels", private=source.private))
            if personal_budgets is not None:
                personal_budgets.charge_all(plan.guarantee, label="labels")
            said = self.votes(X)
            if not isinstance(plan, LabelPlan | BinaryLabelPlan):
                return plan.publish(said, rng=source)
            counts = count_votes(said, self.assignment, classes=self.classes)
            return publish_labels(counts, plan, rng=source)

    def _taught(self) -> list[Any]:
        if self._teachers is None:
            raise InvalidArgument("The ensemble has no teachers yet; call fit first.")
        return self._teachers

    def __repr__(self) -> str:
        return f"PATEClassifier({self.assignment.teachers} teachers, {self.classes} classes)"


def _check_rho(cost: PersonalizedGuarantee) -> None:
    """Personal budgets add up rho, which a cost of epsilon with a delta does not have."""
    if any(
        isinstance(each.event, events.ApproxEvent) and each.event.delta
        for _, each in cost.privacy_levels
    ):
        raise Unsupported(
            "The costs of this plan have a delta, and personal budgets count rho: charge an "
            "account (account=...), whose limit is an epsilon with a delta, or take a LabelPlan."
        )


def publish_labels(
    counts: NDArray[np.int64], plan: LabelPlan | BinaryLabelPlan, *, rng: RandomSource
) -> LabelRelease:
    """Labels from counts of votes, in units, one row for each public item, in order."""
    if counts.ndim != 2 or counts.shape[1] != plan.classes:
        raise InvalidArgument(f"counts must have a column for each of the {plan.classes} classes.")
    held = counts[: plan.queries]
    answered = np.flatnonzero(plan.aggregator.passes_threshold(held, rng=rng))[: plan.answers]
    # After the last answer nothing more is asked.
    asked = int(answered[-1]) + 1 if len(answered) == plan.answers else len(held)
    labels = np.full(asked, UNANSWERED, dtype=np.int64)
    labels[answered] = plan.aggregator.answers(held[answered], rng=rng)
    return LabelRelease(labels=labels, guarantee=plan.guarantee)


def _teacher(estimator: Any, features: NDArray[Any], targets: NDArray[Any]) -> Any:
    """A trained teacher; one that saw a single class, or nothing, says the same of everything."""
    kinds = np.unique(targets)
    if len(kinds) < 2:
        return int(kinds[0]) if len(kinds) else 0
    return clone(estimator).fit(features, targets)


def _said(teacher: Any, items: NDArray[Any]) -> NDArray[np.int64]:
    if isinstance(teacher, int):
        return np.full(len(items), teacher, dtype=np.int64)
    return np.asarray(teacher.predict(items), dtype=np.int64)


# ── Student ──────────────────────────────────────────────────────────────────────────────────────
# The student learns from the labels alone, so it costs nothing more.


def train_student(
    estimator: Any,
    X: ArrayLike,
    labels: LabelRelease,
    *,
    semi_supervised: bool = False,
    threshold: float = 0.9,
) -> Any:
    """A classifier trained on the public items that have a label.

    Theorem: the student has the guarantee of the labels. Proof: post-processing.

    ``semi_supervised``: the student also labels the items without an answer of which it is at
    least ``threshold`` sure, and goes on from there (self-training; the estimator needs
    ``predict_proba``). ``X`` holds all public items, in the order in which they were asked; those
    after the end of the run count as unanswered.
    """
    items = np.asarray(X)
    if len(items) < labels.query_count:
        raise InvalidArgument(f"X must hold the {labels.query_count} items that were asked.")
    target = np.full(len(items), UNANSWERED, dtype=np.int64)
    target[: labels.query_count] = labels.labels
    told = np.flatnonzero(target != UNANSWERED)
    if not len(told):
        raise InvalidArgument("No item has a label; the student has nothing to learn from.")
    if not semi_supervised:
        return clone(estimator).fit(items[told], target[told])
    if not hasattr(estimator, "predict_proba"):
        raise InvalidArgument("semi_supervised needs an estimator with predict_proba.")
    probability("threshold", threshold, zero=False, one=False)
    learner = SelfTrainingClassifier(clone(estimator), threshold=threshold)
    return learner.fit(items, target)
