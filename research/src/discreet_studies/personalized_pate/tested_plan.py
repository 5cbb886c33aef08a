"""A promise with costs that depend on votes: propose them, test, and only then publish (M43)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.conversion import renyi_epsilon
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._rational import Number, rational, round_down
from discreet.core._validate import non_negative, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.models.pate._data_dependent_cost import log_error
from discreet.models.pate.aggregators import UNANSWERED, ConfidentGNMax, as_counts
from discreet.models.pate.classifier import LabelRelease
from discreet.models.pate.teacher_assignment import UNITS, TeacherAssignment, count_votes
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet_studies.personalized_pate.smooth_cost import (
    CostRelease,
    place,
    votes_bound,
    votes_curve,
)

_UP = Fraction(1 + 10**9, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestReleasePlan:
    """All questions, then a test whether the answers are cheap enough, then all or none."""

    # Theorem: for an owner of level g the whole is (epsilon, delta + failure)-DP, where epsilon
    #   converts, at the level's order a, the cost of all questions, of the tests of all levels and
    #   `allowed[g]`; failure is that of g's test. All of it is fixed beforehand.
    # Proof: take neighbors D, D' of an owner of level g, and whether items are answered as given.
    #   If the two-sided cost of the answers is at most `allowed[g]` at D or at D', the answers
    #   have at most that divergence, in both directions. If at neither, call it bad; the test
    #   passes at D with probability at most failure, for it passes only if a number is below
    #   `allowed[g]` that is above the cost but for that probability. Let M' be the run that
    #   publishes a constant instead of answers when it is bad and the test passes. At order a its
    #   divergence is at most the sum. Away from "bad and passed", M and M' have equal
    #   probabilities; at D that event has at most probability failure.
    # Source: Redberg, Zhu, Wang 2023, with the conditions of M43.
    # Needs: public items fixed beforehand (no student who asks); no second try for the same price.

    __test__ = False  # not a test for pytest

    assignment: TeacherAssignment = field(repr=False)
    rule: ConfidentGNMax
    classes: int
    questions: int
    allowed: Mapping[str, float]
    """For each level the Rényi cost of the answers that is proposed, at the level's order."""
    releases: Mapping[str, CostRelease]
    """How each level's cost is tested, and at which order."""
    delta: Number

    def __post_init__(self) -> None:
        names = list(self.assignment.names)
        if sorted(self.allowed) != names or sorted(self.releases) != names:
            raise InvalidArgument(f"allowed and releases must name the levels {', '.join(names)}.")
        for name in names:
            non_negative(f"allowed[{name!r}]", self.allowed[name])

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays, whether the test passes or not."""
        found = {}
        for name, units in self.assignment.shares.items():
            order = self.releases[name].order
            share = units / UNITS
            asked = share**2 * order / (2 * float(self.rule.sigma_threshold) ** 2)
            tests = sum(each.cost(order) for each in self.releases.values())
            total = self.questions * asked + tests + self.allowed[name]
            delta = probability("delta", self.delta, zero=False, one=False)
            epsilon = renyi_epsilon(total, order=order, delta=round_down(delta))
            if not np.isfinite(epsilon):
                raise NotCertified("The test costs infinitely much at this order; b is too large.")
            # Read as people mean them: 1e-6 + 1e-6 is 2e-6, as a limit would have it.
            failure = delta + rational(self.releases[name].failure)
            event = events.ApproxEvent(Fraction(epsilon) * _UP, failure)
            found[name] = Guarantee(event, NeighboringRelation.ADD_REMOVE)
        return personalized(found)

    def run(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> LabelRelease:
        """Labels of the items if the test passes; otherwise none of them is answered.

        ``counts``: units of votes, a row for each public item, in order. Items after the first
        ``questions`` are not asked; fewer cost less than was planned.
        """
        source = resolve_rng(rng)
        found = as_counts(counts)
        if found.shape[1] != self.classes:
            raise InvalidArgument(f"counts must have a column for each of {self.classes} classes.")
        found = found[: self.questions]
        guarantee = self.guarantee
        told = np.flatnonzero(self.rule.passes_threshold(found, rng=source))
        labels = np.full(len(found), UNANSWERED, dtype=np.int64)
        # Every level's test is made, whatever the others say: all of them are paid.
        passed = [self._passes(name, found[told], source) for name in self.assignment.names]
        if all(passed):
            # Only now are labels drawn; the test must not depend on any.
            labels[told] = self.rule.answers(found[told], rng=source)
        return LabelRelease(labels=labels, guarantee=guarantee)

    def publish(self, votes: ArrayLike, *, rng: RandomSource) -> LabelRelease:
        """As `run`, from what each teacher says of each item."""
        return self.run(count_votes(votes, self.assignment, classes=self.classes), rng=rng)

    def _passes(self, name: str, counts: NDArray[np.int64], rng: RandomSource) -> bool:
        release = self.releases[name]
        shares = self.assignment.shares
        sigma = float(self.rule.sigma_votes)
        curve = votes_curve(
            classes=self.classes, sigma=sigma, share=shares[name] / UNITS, order=release.order
        )
        smooth = votes_bound(
            curve,
            classes=self.classes,
            sigma=sigma,
            most=max(shares.values()) / UNITS,
            total=float(self.assignment.weights.sum()) / UNITS,
            b=release.b,
        )
        errors = log_error(counts, sigma=self.rule.sigma_votes)
        value = float(curve(errors).sum())
        bound = float(smooth.at(place(errors, classes=self.classes)).sum())
        return release.draw(value, bound, rng) <= self.allowed[name]
