"""Two classes: every output is a bit, and bits cost about a third less than the noise suggests.

The noisy numbers themselves are never seen, only on which side of a limit they lie. With more than
two classes no such bound is known (`docs/theory/pate.md`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.conversion import renyi_epsilon
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._rational import Number, round_down
from discreet.core._validate import count, finite, positive, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.models.pate._data_dependent_cost import ORDERS, bit_cost
from discreet.models.pate.aggregators import ConfidentGNMax, as_counts
from discreet.models.pate.label_plan import SPARE, exact_target
from discreet.models.pate.teacher_assignment import UNITS, TeacherAssignment
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.random_source import RandomSource, resolve_rng

_UP = Fraction(1 + 10**9, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryLabels:
    """A Confident rule for two classes, with continuous noise that is rounded to units."""

    aggregator: ConfidentGNMax

    def passes_threshold(
        self, counts: ArrayLike, *, rng: RandomSource | None = None
    ) -> NDArray[np.bool_]:
        """Whether each item is answered; ``counts`` in units, one row for each item."""
        found = _two(counts)
        limit = math.ceil(finite("threshold", self.aggregator.threshold) * UNITS)
        noisy = _noisy(
            found.max(axis=1), positive("sigma", self.aggregator.sigma_threshold) ** 2, rng
        )
        return np.asarray(noisy >= limit)

    def answers(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> NDArray[np.int64]:
        """The winner of each row: the sign of the noisy difference."""
        found = _two(counts)
        square = 2 * positive("sigma", self.aggregator.sigma_votes) ** 2
        return np.asarray(_noisy(found[:, 0] - found[:, 1], square, rng) < 0, dtype=np.int64)

    def costs(self, share: int) -> tuple[Floats, Floats]:
        """Rényi costs of a question and of an answer at `costs.ORDERS`, for a share in units."""
        # Theorem: sup over x of D_a(Ber(Phi(x)) || Ber(Phi(x +- step))), where step is share /
        #   sigma_threshold for a question and sqrt(2) share / sigma_votes for an answer.
        # Proof: the largest count moves by at most `share`, the difference of the two by twice
        #   that, its noise being sqrt(2) sigma_votes. Rounding to units and comparing with a limit
        #   is comparing the unrounded number with the limit less half a unit: a bit with
        #   probability Phi. A smaller step gives probabilities that are nearer.
        if share == 0:
            return np.zeros(len(ORDERS)), np.zeros(len(ORDERS))
        votes = share / UNITS
        return (
            bit_cost(votes / float(self.aggregator.sigma_threshold), orders=ORDERS),
            bit_cost(math.sqrt(2) * votes / float(self.aggregator.sigma_votes), orders=ORDERS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryLabelPlan:
    """At most so many queries and answers about two classes, and what they cost each level."""

    # Theorem: `guarantee` holds for a run of whatever length within the plan, and for its length.
    # Proof: at every order the costs of the steps that are taken add up to at most those of all
    #   steps of the plan, a number fixed beforehand; so the adaptive run has at most that
    #   divergence. It is converted at the best order, which is fixed beforehand too, and at the
    #   largest double that is not above the delta.

    assignment: TeacherAssignment = field(repr=False)
    aggregator: BinaryLabels
    queries: int
    answers: int
    deltas: Mapping[str, Number]
    """Of each level's limit, read as people mean them: 1e-5 is 1/100000, not its nearest double."""

    def __post_init__(self) -> None:
        count("queries", self.queries, minimum=0)
        count("answers", self.answers)

    @property
    def classes(self) -> int:
        """Two."""
        return 2

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays for the whole run, fixed before the first vote."""
        found = {}
        for name, share in self.assignment.shares.items():
            ask, tell = self.aggregator.costs(share)
            delta = probability("deltas", self.deltas[name], zero=False, one=False)
            epsilon = _epsilon(self.queries * ask + self.answers * tell, delta)
            event = events.ApproxEvent(Fraction(epsilon) * _UP, delta)
            found[name] = Guarantee(event, NeighboringRelation.ADD_REMOVE)
        return personalized(found)


def plan_binary_labels(
    assignment: TeacherAssignment,
    aggregator: ConfidentGNMax,
    limits: Mapping[str, Guarantee],
    *,
    answered_share: float,
    items: int | None = None,
) -> BinaryLabelPlan:
    """The longest run about two classes that keeps every level's limit; as `plan.plan_labels`."""
    probability("answered_share", answered_share, zero=False)
    if sorted(limits) != list(assignment.names):
        raise InvalidArgument(f"limits must name the levels {', '.join(assignment.names)}.")
    most = 1 << 24 if items is None else count("items", items)
    each = (SPARE if answered_share < 1 else 1) / answered_share
    bits = BinaryLabels(aggregator=aggregator)
    goals = {name: exact_target(limit) for name, limit in limits.items()}
    prices = {name: bits.costs(share) for name, share in assignment.shares.items()}

    def questions(answers: int) -> int:
        needed = math.ceil(answers * each)
        return needed if items is None else min(needed, items)

    def kept(answers: int) -> bool:
        return all(
            _epsilon(questions(answers) * ask + answers * tell, goals[name][1]) * float(_UP**2)
            <= goals[name][0]
            for name, (ask, tell) in prices.items()
        )

    if not kept(1):
        raise BudgetExceeded("A level's limit does not pay for a single label.")
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    deltas = {name: goal[1] for name, goal in goals.items()}
    return BinaryLabelPlan(
        assignment=assignment, aggregator=bits, queries=questions(low), answers=low, deltas=deltas
    )


def _epsilon(curve: Floats, delta: Fraction) -> float:
    below = round_down(delta)
    return min(
        renyi_epsilon(float(cost), order=float(order), delta=below)
        for cost, order in zip(curve, ORDERS, strict=True)
    )


def _two(counts: ArrayLike) -> NDArray[np.int64]:
    found = as_counts(counts)
    if found.shape[1] != 2:
        raise OutOfDomain("counts must have two columns: this rule is for two classes.")
    return found


def _noisy(
    values: NDArray[np.int64], square: Number, rng: RandomSource | None
) -> NDArray[np.int64]:
    law = RoundedGaussian(positive("square", square) * UNITS**2, 0)
    return law.add(values.astype(np.float64), resolve_rng(rng))
