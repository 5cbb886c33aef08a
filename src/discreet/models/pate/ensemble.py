"""Teachers on disjoint or weighted parts of private data, and the labels that they may publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee, zcdp
from discreet.accounting.people import limit_rho
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core.check import count
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified
from discreet.ledger.crowd import Crowd
from discreet.models.pate.aggregate import UNANSWERED, Confident
from discreet.models.pate.assignment import Assignment, counted
from discreet.noise.bits import Bits, system


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What an ensemble published about public items."""

    labels: NDArray[np.int64] = field(repr=False)
    """A class for each item that was asked, or -1 without an answer."""
    guarantee: PersonalGuarantee
    """What each level was promised before the first vote: fixed, whatever the votes were."""
    spent: dict[str, float]
    """The zCDP that the published answers and refusals add up to; a function of what is here."""

    @property
    def asked(self) -> int:
        """Items that were asked before a budget could have been passed."""
        return len(self.labels)

    @property
    def answered(self) -> NDArray[np.intp]:
        """The items that have a label."""
        return np.flatnonzero(self.labels != UNANSWERED)


class PrivateEnsemble:
    """Teachers from any classifier in the style of scikit-learn.

    ``classes`` are declared: the number of labels, which are 0 .. classes - 1. The teachers are
    trained side by side with joblib, so its backends (processes, Spark, Dask, Ray) apply.
    """

    def __init__(
        self, estimator: Any, *, assignment: Assignment, classes: int, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.assignment = assignment
        self.classes = count("classes", classes, minimum=2)
        self.n_jobs = n_jobs
        self._teachers: list[Any] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, *, owners: ArrayLike, levels: ArrayLike) -> Self:
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
        parts = self.assignment.rows(owners, levels)
        if sum(map(len, parts)) and max(map(max, filter(len, parts))) >= len(features):
            raise InvalidArgument("owners and levels must name one of each for every record.")
        self._teachers = Parallel(n_jobs=self.n_jobs)(
            delayed(_teacher)(self.estimator, features[rows], targets[rows]) for rows in parts
        )
        return self

    def votes(self, X: ArrayLike) -> NDArray[np.int64]:
        """What every teacher says of every item: private, for `label` and for tests."""
        if self._teachers is None:
            raise InvalidArgument("The ensemble has no teachers yet; call fit first.")
        items = np.asarray(X)
        said = Parallel(n_jobs=self.n_jobs)(
            delayed(_said)(teacher, items) for teacher in self._teachers
        )
        return np.stack(said, axis=1)

    def label(
        self,
        X: ArrayLike,
        *,
        rule: Confident,
        limits: Mapping[str, Guarantee],
        crowd: Crowd | None = None,
        bits: Bits | None = None,
    ) -> Labels:
        """Publish labels of public items, in their order, until a level could pass its limit.

        A ``crowd`` is charged the limits before the first vote is counted.
        """
        source = system() if bits is None else bits
        menu = personal(limits)
        prices = _prices(self.assignment, rule, menu, classes=self.classes)
        if crowd is not None:
            if not source.private:
                raise NotCertified("Labels from seeded bits are not private; nothing was charged.")
            whole = {name: zcdp(price.limit) for name, price in prices.items()}
            crowd.charge(personal(whole), label="labels")
        counts = counted(self.votes(X), self.assignment, classes=self.classes)
        return published(counts, self.assignment, rule=rule, limits=menu, bits=source)

    def __repr__(self) -> str:
        return f"PrivateEnsemble({self.assignment.teachers} teachers, {self.classes} classes)"


def published(
    counts: NDArray[np.int64],
    assignment: Assignment,
    *,
    rule: Confident,
    limits: PersonalGuarantee,
    bits: Bits,
) -> Labels:
    """Labels from counts of votes, in units, one row for each public item.

    Theorem: the labels and refusals keep ``limits``, level by level, and so does their number.
    Proof: an item is asked only if every level can pay for the question and for an answer; what it
        costs is published with it (`Confident`). So the sums never pass the limits in zCDP, for
        whatever outputs: a filter with costs that depend on outputs only (Feldman, Zrnic 2021;
        rule D of M26). When it ends is a function of what was published.
    """
    prices = _prices(assignment, rule, limits, classes=counts.shape[1])
    answered = rule.ask(counts, bits=bits)
    before = np.concatenate(([0], np.cumsum(answered)))
    asked = min(price.affordable(before) for price in prices.values())
    labels = np.full(asked, UNANSWERED, dtype=np.int64)
    chosen = np.flatnonzero(answered[:asked])
    labels[chosen] = rule.answers(counts[chosen], bits=bits)
    spent = {
        name: float(asked * price.question + len(chosen) * price.answer)
        for name, price in prices.items()
    }
    return Labels(labels=labels, guarantee=limits, spent=spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Price:
    """What a level has and pays, in zCDP."""

    limit: Fraction
    question: Fraction
    answer: Fraction

    def affordable(self, before: NDArray[np.int64]) -> int:
        """Items that can be asked: the k-th if k questions, all answers so far and one more fit."""
        low, high = 0, len(before) - 1
        while low < high:
            middle = (low + high + 1) // 2
            cost = middle * self.question + (int(before[middle - 1]) + 1) * self.answer
            low, high = (middle, high) if cost <= self.limit else (low, middle - 1)
        return low


def _prices(
    assignment: Assignment, rule: Confident, limits: PersonalGuarantee, *, classes: int
) -> dict[str, _Price]:
    """Prices of every level; refused if one cannot pay for a single label."""
    if limits.names != assignment.names:
        raise InvalidArgument(f"limits must name the levels {', '.join(assignment.names)}.")
    ask, tell = rule.question(assignment), rule.answer(assignment, classes=classes)
    found = {
        name: _Price(
            limit=limit_rho(limits[name]),
            question=rho_of(ask[name].event),
            answer=rho_of(tell[name].event),
        )
        for name in limits
    }
    poor = [name for name, price in found.items() if not price.affordable(np.zeros(2, dtype=int))]
    if poor:
        raise BudgetExceeded(
            f"The limit of {', '.join(poor)} does not pay for a single label; more noise, more "
            "teachers, less weight for that level or a larger limit would help."
        )
    return found


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
