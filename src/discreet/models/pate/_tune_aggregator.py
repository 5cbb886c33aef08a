"""The aggregator with most labels of a wanted quality, found on public or simulated votes.

Never on the private votes: parameters that fit them would reveal something about them, and nothing
here is charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.pate.aggregators import ConfidentGNMax, as_counts
from discreet.models.pate.label_plan import SPARE, LabelPlan, plan_labels, vote_weights
from discreet.models.pate.teacher_assignment import UNITS, TeacherAssignment
from discreet.noise.distribution import Floats

# ── Search ───────────────────────────────────────────────────────────────────────────────────────


# In parts of all votes.
_SIGMAS = np.geomspace(0.04, 0.8, 25)
_TESTS = np.geomspace(0.05, 2.0, 16)
_THRESHOLDS = np.linspace(0.2, 1.6, 22)
_NO_TEST = 1e4
_NODES = np.linspace(-8, 8, 65)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorChoice:
    """A rule, and what it would do on the votes that it was chosen with."""

    plan: LabelPlan
    answered_share: float
    """The share of items that are answered."""
    accuracy: float
    """The share of answers that are right."""


def expected_label_quality(
    counts: ArrayLike, truth: ArrayLike, aggregator: ConfidentGNMax
) -> tuple[float, float]:
    """Compute how many items an aggregator answers, and how many answers are right.

    Args:
        counts: Vote counts in units, of public or simulated items.
        truth: True class of each item.
        aggregator: Aggregator of the votes.

    Returns:
        Expected share of items that are answered, and expected share of answers that are right.

    Examples:
        >>> from discreet.models import pate
        >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
        >>> simulated = pate.simulate_votes(50, teachers=100, classes=3, accuracy=0.9)
        >>> counts = pate.count_votes(simulated.votes, teachers, classes=3)
        >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=10, sigma_votes=10)
        >>> answered, right = pate.expected_label_quality(counts, simulated.truth, aggregator)
        >>> 0 < answered <= 1 and 0 < right <= 1
        True
    """
    found, right = _known(counts, truth)
    asked = _passing(found, float(aggregator.threshold), float(aggregator.sigma_threshold))
    correct = _winning(found, right, float(aggregator.sigma_votes))
    return float(asked.mean()), float((asked * correct).sum() / asked.sum())


def tune_aggregator(
    counts: ArrayLike,
    truth: ArrayLike,
    *,
    assignment: TeacherAssignment,
    limits: Mapping[str, Guarantee],
    accuracy: float,
    items: int,
) -> AggregatorChoice:
    """Choose the aggregator and plan with the most answers of a given accuracy.

    Args:
        counts: Vote counts in units, of public or simulated items. Never use private votes.
        truth: True class of each item.
        assignment: Assignment of people to teachers.
        limits: Limit of each level, made with `discreet.approx_dp`.
        accuracy: Expected share of answers that are right, between 0 and 1.
        items: Number of public items that can be asked.

    Returns:
        The choice with `plan`, `answered_share` and `accuracy`.

    Raises:
        NotCertified: No aggregator gives a label of this accuracy within the limits.
        InvalidArgument: An argument is outside its range.

    Privacy:
        The choice depends on public or simulated votes only and costs no budget.

    Examples:
        >>> import discreet
        >>> from discreet.models import pate
        >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
        >>> simulated = pate.simulate_votes(50, teachers=100, classes=3, accuracy=0.9)
        >>> choice = pate.tune_aggregator(
        ...     pate.count_votes(simulated.votes, teachers, classes=3),
        ...     simulated.truth,
        ...     assignment=teachers,
        ...     limits={"all": discreet.approx_dp(2, 1e-5)},
        ...     accuracy=0.9,
        ...     items=500,
        ... )
        >>> choice.accuracy >= 0.9
        True
    """
    probability("accuracy", accuracy, zero=False, one=False)
    pool = count("items", items)
    found, right = _known(counts, truth)
    total = float(assignment.weights.sum()) / UNITS
    tests = [(t * total, s * total) for t in _THRESHOLDS for s in _TESTS]
    tests.append((-_NO_TEST * total, _NO_TEST / 10 * total))  # always passes, costs next to nothing
    passing = np.stack([_passing(found, t, s) for t, s in tests])
    sigmas = _largest_noise(found, right, passing, total=total, accuracy=accuracy)
    share = passing.mean(axis=1)
    each = np.where(share < 1, SPARE, 1.0) / np.maximum(share, 1e-9)  # questions for an answer
    noise = np.array([s for _, s in tests])
    with np.errstate(divide="ignore"):
        price = 2 / sigmas**2 + each / noise**2
    labels = np.minimum(_afforded(assignment, limits) / price, pool / each)
    best = int(labels.argmax())
    if labels[best] < 1:
        raise NotCertified(
            "No rule gives a label of that accuracy within these limits; more teachers, larger "
            "limits or a lower accuracy would help."
        )
    rule = ConfidentGNMax(
        threshold=_short(tests[best][0]),
        sigma_threshold=_short(tests[best][1]),
        sigma_votes=_short(float(sigmas[best])),
    )
    answered, correct = expected_label_quality(found, right, rule)
    plan = plan_labels(
        assignment, rule, limits, classes=found.shape[1], answered_share=answered, items=pool
    )
    return AggregatorChoice(plan=plan, answered_share=answered, accuracy=correct)


def _largest_noise(
    counts: NDArray[np.int64],
    truth: NDArray[np.int64],
    passing: Floats,
    *,
    total: float,
    accuracy: float,
) -> Floats:
    """For each test the noise at which the answers are just accurate enough; 0 where none is."""
    winning = np.stack([_winning(counts, truth, s * total) for s in _SIGMAS])
    quality = passing @ winning.T / np.maximum(passing.sum(axis=1), 1e-300)[:, None]
    # Quality falls with the noise but for a little: up to the first place where it is too low.
    low = quality < accuracy
    first = np.where(low.any(axis=1), low.argmax(axis=1), len(_SIGMAS))
    rows = np.arange(len(quality))
    left, right = np.maximum(first - 1, 0), np.minimum(first, len(_SIGMAS) - 1)
    fall = quality[rows, left] - quality[rows, right]
    part = np.where(fall > 0, (quality[rows, left] - accuracy) / np.where(fall > 0, fall, 1), 0)
    logs = np.log(_SIGMAS * total)
    found = np.exp(logs[left] + part * (logs[right] - logs[left]))
    return np.where(first > 0, found, 0.0)


def _afforded(assignment: TeacherAssignment, limits: Mapping[str, Guarantee]) -> float:
    """Square votes over square noise that the poorest level can pay."""
    return min(
        (mu / (assignment.shares[name] / UNITS)) ** 2
        for name, mu in vote_weights(limits).items()
        if assignment.shares[name]
    )


def _passing(counts: NDArray[np.int64], threshold: float, sigma: float) -> Floats:
    return np.asarray(sp.ndtr((counts.max(axis=1) / UNITS - threshold) / sigma))


def _winning(counts: NDArray[np.int64], truth: NDArray[np.int64], sigma: float) -> Floats:
    """The chance that the true class wins: an integral over its noise, by equal steps."""
    votes = counts / UNITS / sigma
    own = np.take_along_axis(votes, truth[:, None], axis=1)
    below = np.ones((len(votes), len(_NODES)))
    for j in range(votes.shape[1]):
        part = sp.ndtr(_NODES + own - votes[:, j : j + 1])
        below *= np.where((truth == j)[:, None], 1.0, part)
    weights = np.exp(-(_NODES**2) / 2) / math.sqrt(2 * math.pi) * (_NODES[1] - _NODES[0])
    return np.asarray(below @ weights)


def _known(counts: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found, right = as_counts(counts), np.asarray(truth, dtype=np.int64)
    if right.shape != found.shape[:1] or not len(found):
        raise InvalidArgument("truth must name the class of each row of counts.")
    if not 0 <= right.min() <= right.max() < found.shape[1]:
        raise InvalidArgument(f"truth must be classes 0..{found.shape[1] - 1}.")
    return found, right


def _short(value: float) -> float:
    """Three digits: an aggregator is public, and more are not needed."""
    return float(f"{value:.3g}")


# ── Simulated votes ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedVotes:
    """Imagined items: what teachers say of each, and what is true."""

    votes: NDArray[np.int64] = field(repr=False)
    truth: NDArray[np.int64] = field(repr=False)


def simulate_votes(
    items: int,
    *,
    teachers: int,
    classes: int,
    accuracy: float,
    spread: float = 2.0,
    seed: int = 0,
) -> SimulatedVotes:
    """Simulate the votes of teachers, to tune an aggregator.

    The probability that teachers are right differs from item to item and has a beta distribution.

    Args:
        items: Number of items.
        teachers: Number of teachers.
        classes: Number of classes, at least 2.
        accuracy: Mean probability that a teacher is right, between 0 and 1.
        spread: Concentration of the beta distribution. Smaller values make more items clear to all
            teachers or to few.
        seed: Seed of the simulation. It may be published.

    Returns:
        The votes, items x teachers, and the true classes.

    Raises:
        InvalidArgument: An argument is outside its range.

    Examples:
        >>> from discreet.models import pate
        >>> pate.simulate_votes(50, teachers=100, classes=3, accuracy=0.9).votes.shape
        (50, 100)
    """
    if not 0 < accuracy < 1 or not 0 < spread < np.inf:
        raise InvalidArgument("accuracy must lie in (0, 1) and spread must be positive.")
    number = count("classes", classes, minimum=2)
    shape = (count("items", items), count("teachers", teachers))
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, number, shape[0])
    alike = (truth + rng.integers(1, number, shape[0])) % number
    clear = rng.beta(accuracy * spread, (1 - accuracy) * spread, shape[0])
    wrong = np.where(rng.random(shape) < 0.8, alike[:, None], rng.integers(0, number, shape))
    votes = np.where(rng.random(shape) < clear[:, None], truth[:, None], wrong)
    return SimulatedVotes(votes=votes, truth=truth)
