"""Noisy votes: Confident-GNMax, LNMax, and their published costs.

Counts are whole and noise is discrete. What an aggregator charges is fixed by public numbers, so
that an empty budget reveals no more than the guarantee allows. Costs that depend on the votes are
smaller, and as private as the votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import finite, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.models.pate.teacher_assignment import UNITS, TeacherAssignment
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Confident-GNMax ──────────────────────────────────────────────────────────────────────────────


UNANSWERED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentGNMax:
    """Confident-GNMax: an aggregator that answers if enough teachers agree.

    Both the test and the winner use Gaussian noise. Items that do not pass the test get no label.

    Args:
        threshold: Votes that the largest noisy count must reach.
        sigma_threshold: Standard deviation of the noise of this test, in votes.
        sigma_votes: Standard deviation of the noise of the counts, in votes.

    Raises:
        InvalidArgument: A standard deviation is not positive, or `threshold` is not finite.

    Examples:
        >>> from discreet.models import pate
        >>> pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10).sigma_votes
        10

    See Also:
        `tune_aggregator`: choose the three numbers.

    References:
        Papernot et al. (2018). Boenisch et al. (2023).
        [Proof](../theory/theorems.md#models.pate.aggregators.ConfidentGNMax).
    """

    # Theorem: a question costs an owner whose data move `share` units `share**2 / (2 s1**2)` in
    #   zCDP, and an answer `share**2 / s2**2` more, s1 and s2 being the noises in units. Under
    #   add or remove, and under replacement too.
    # Proof: the largest count moves by at most `share`; whether it passes is a post-processing of
    #   its noisy value. The counts move by at most `share` down in all and `share` up in all,
    #   so by at most `2 share**2` in squared length; the winner is a post-processing of the
    #   noisy counts. Discrete Gaussian noise of parameter s is `length**2 / (2 s**2)`-zCDP.
    #   Whether there is an answer is published, so its cost may depend on it (adaptive
    #   composition).
    # Source: Papernot et al. 2018; Canonne, Kamath, Steinke 2020; Muehl 2021 (M14, M19, M44).

    threshold: Number
    sigma_threshold: Number
    sigma_votes: Number

    def __post_init__(self) -> None:
        finite("threshold", self.threshold)
        positive("sigma_threshold", self.sigma_threshold)
        positive("sigma_votes", self.sigma_votes)

    def query_cost(self, assignment: TeacherAssignment) -> PersonalizedGuarantee:
        """Compute the cost of one query, whether it is answered or not.

        Args:
            assignment: Assignment of people to teachers.

        Returns:
            The guarantee of each privacy level.

        Examples:
            >>> from discreet.models import pate
            >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10)
            >>> teachers = pate.assign_upsampling(100, copies={"low": 1, "high": 2})
            >>> aggregator.query_cost(teachers)["high"]
            Guarantee(discrete Gaussian noise of sigma 20000 at sensitivity 2000)
        """
        return self._cost(assignment, self.sigma_threshold, squares=1, dimension=1)

    def answer_cost(self, assignment: TeacherAssignment, *, classes: int) -> PersonalizedGuarantee:
        """Compute the cost of one answer, in addition to the query.

        Args:
            assignment: Assignment of people to teachers.
            classes: Number of classes.

        Returns:
            The guarantee of each privacy level.

        Examples:
            >>> from discreet.models import pate
            >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10)
            >>> teachers = pate.assign_upsampling(100, copies={"low": 1, "high": 2})
            >>> aggregator.answer_cost(teachers, classes=4)["low"].epsilon(1e-5) < 1
            True
        """
        return self._cost(assignment, self.sigma_votes, squares=2, dimension=classes)

    def passes_threshold(
        self, counts: ArrayLike, *, rng: RandomSource | None = None
    ) -> NDArray[np.bool_]:
        """Test with noise which items are answered.

        Args:
            counts: Vote counts in units, as `count_votes` returns them, one row per item.
            rng: Random source. By default the operating system's.

        Returns:
            One boolean per item.

        Raises:
            OutOfDomain: `counts` is not a table of integers.

        Privacy:
            Each row costs `query_cost`. This method charges no account; `PATEClassifier.label`
            does.

        Examples:
            >>> from discreet.models import pate
            >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=2, sigma_votes=1)
            >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
            >>> counts = pate.count_votes([[0] * 95 + [1] * 5], teachers, classes=2)
            >>> aggregator.passes_threshold(counts).tolist()
            [True]
        """
        found = as_counts(counts)
        noise = self._noise(self.sigma_threshold, len(found), rng)
        # Whole units: the noisy count is compared in exact numbers.
        limit = math.ceil(finite("threshold", self.threshold) * UNITS)
        return np.asarray(found.max(axis=1) + noise >= limit)

    def answers(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> NDArray[np.int64]:
        """Choose the winner of each item with noise.

        Args:
            counts: Vote counts in units, as `count_votes` returns them, one row per item.
            rng: Random source. By default the operating system's.

        Returns:
            One class per item.

        Raises:
            OutOfDomain: `counts` is not a table of integers.

        Privacy:
            Each row costs `answer_cost`. This method charges no account; `PATEClassifier.label`
            does.

        Examples:
            >>> from discreet.models import pate
            >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=2, sigma_votes=1)
            >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
            >>> counts = pate.count_votes([[0] * 95 + [1] * 5], teachers, classes=2)
            >>> aggregator.answers(counts).tolist()
            [0]
        """
        found = as_counts(counts)
        noise = self._noise(self.sigma_votes, found.size, rng).reshape(found.shape)
        return np.asarray((found + noise).argmax(axis=1), dtype=np.int64)

    def _noise(self, sigma: Number, size: int, rng: RandomSource | None) -> NDArray[np.int64]:
        variance = (positive("sigma", sigma) * UNITS) ** 2
        return DiscreteGaussian(square=variance).sample(size, resolve_rng(rng))

    def _cost(
        self, assignment: TeacherAssignment, sigma: Number, *, squares: int, dimension: int
    ) -> PersonalizedGuarantee:
        variance = (positive("sigma", sigma) * UNITS) ** 2
        return personalized(
            {
                name: Guarantee(
                    events.DiscreteGaussianEvent(variance, Fraction(squares * share**2), dimension),
                    NeighboringRelation.ADD_REMOVE,
                )
                for name, share in assignment.shares.items()
            }
        )


def as_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Check counts: whole units, a row for each item."""
    found = np.asarray(counts)
    if found.ndim != 2 or not np.issubdtype(found.dtype, np.integer):
        raise OutOfDomain("counts must be whole units of votes, one row for each item.")
    return found.astype(np.int64)


# ── Published costs ──────────────────────────────────────────────────────────────────────────────
# The cost of noisy votes as Papernot et al. (2017, 2018) and Muehl (2021) account for it. These
# are functions of the votes themselves, so their values are as private as the votes: a diagnosis,
# never a guarantee. The published bounds are one-sided, and hold for continuous noise;
# `_data_dependent_cost` has the two-sided ones for the noise that is really drawn.


def gaussian_log_error(votes: ArrayLike, *, sigma: float) -> Floats:
    """The logarithm of a bound on the chance that GNMax does not name the plurality.

    ``votes``: one histogram, or one in each row.
    """
    gaps = _gaps(votes) / (math.sqrt(2) * sigma)
    return _capped(sp.logsumexp(sp.log_ndtr(-gaps), axis=-1), gaps.shape[-1] + 1)


def laplace_log_error(votes: ArrayLike, *, gamma: float) -> Floats:
    """The logarithm of a bound on the chance that LNMax does not name the plurality."""
    gaps = _gaps(votes) * gamma
    return _capped(sp.logsumexp(np.log((2 + gaps) / 4) - gaps, axis=-1), gaps.shape[-1] + 1)


def gaussian_cost(log_error: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of GNMax at each order, one row for each query."""
    # Theorem: for the actual data D and any neighbor D', D_a(M(D) || M(D')) is at most this. Not so
    #   in the other direction: that one is governed by the errors on D' (trap T3).
    # Source: Papernot et al. 2018, Theorem 6 with the orders of Proposition 10.
    lnq, a = np.asarray(log_error, dtype=np.float64)[..., None], np.asarray(orders, dtype=float)
    loose = a / sigma**2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        second = sigma * np.sqrt(-lnq)
        tight = _theorem_six(lnq, a, first=second + 1, second=second, per_order=1 / sigma**2)
    tight = np.where(lnq == -np.inf, 0.0, tight)
    return np.asarray(np.fmin(tight, loose))  # fmin: where a condition fails, the loose bound


def laplace_cost(log_error: ArrayLike, *, gamma: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of LNMax at each order, one row for each query."""
    lnq, a = np.asarray(log_error, dtype=np.float64)[..., None], np.asarray(orders, dtype=float)
    step = 2 * gamma
    loose = np.minimum(step, 2 * gamma**2 * a)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stay = np.log1p(-np.exp(lnq))
        inside = a * stay - (a - 1) * np.log1p(-np.exp(step + lnq))
        tight = np.logaddexp(inside, lnq + step * (a - 1)) / (a - 1)
        tight = np.where(lnq < -np.log1p(np.exp(step)), tight, np.nan)
    tight = np.where(lnq == -np.inf, 0.0, tight)
    return np.asarray(np.fmin(tight, loose))


def threshold_cost(
    largest: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """The data-dependent cost of asking whether the largest count passes a threshold."""
    reach = (np.asarray(largest, dtype=np.float64) - threshold) / sigma
    lnq = np.minimum(sp.log_ndtr(reach), sp.log_ndtr(-reach))
    return gaussian_cost(lnq, sigma=math.sqrt(2) * sigma, orders=orders)


def with_share(sigma: float, share: float) -> float:
    """The noise as owners see it whose data move ``share`` votes: costs depend on the ratio.

    The error probability stays that of the votes and the noise as they are.
    """
    if not share > 0:
        raise InvalidArgument(f"share must be positive, got {share}; owners without votes pay 0.")
    return sigma / share


def classic_epsilon(costs: ArrayLike, *, orders: ArrayLike, delta: float) -> tuple[float, float]:
    """Epsilon by the conversion of Mironov 2017 that the thesis uses, and its order."""
    a = np.asarray(orders, dtype=np.float64)
    found = np.asarray(costs, dtype=np.float64) + math.log(1 / delta) / (a - 1)
    best = int(np.argmin(found))
    return float(found[best]), float(a[best])


def _theorem_six(
    lnq: Floats, a: Floats, *, first: Floats, second: Floats, per_order: float
) -> Floats:
    """The bound of Theorem 6 in logarithms; not a number where a condition fails."""
    eps1, eps2 = first * per_order, second * per_order
    limit = (second - 1) * eps2 - second * (
        np.log(first / (first - 1)) + np.log(second / (second - 1))
    )
    stay = _log1mexp(lnq)
    la = (a - 1) * (stay - _log1mexp((lnq + eps2) * (1 - 1 / second)))
    lb = (a - 1) * (eps1 - lnq / (first - 1))
    bound = np.logaddexp(stay + la, lnq + lb) / (a - 1)
    valid = (second > 1) & (lnq + eps2 < 0) & (lnq <= limit) & (a <= first)
    return np.where(valid, bound, np.nan)


def _log1mexp(x: Floats) -> Floats:
    """ln(1 - e^x) for x < 0."""
    return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _gaps(votes: ArrayLike) -> Floats:
    """How far each class but the plurality lies below it."""
    counts = np.asarray(votes, dtype=np.float64)
    if counts.ndim < 1 or counts.shape[-1] < 2:
        raise InvalidArgument("votes must have a count for each of at least two classes.")
    ordered = np.sort(counts, axis=-1)
    return np.asarray(ordered[..., -1:] - ordered[..., :-1])


def _capped(log_error: Floats, classes: int) -> Floats:
    return np.minimum(log_error, math.log1p(-1 / classes))


# ── LNMax ────────────────────────────────────────────────────────────────────────────────────────
# The first aggregator of this kind (M9). It has pure differential privacy; where many answers are
# composed, Gaussian noise is cheaper.


@dataclass(frozen=True, slots=True, kw_only=True)
class LNMax:
    """The plurality after Laplace noise of ``scale`` votes on every count."""

    # Theorem: an answer is `2 share / scale`-DP for an owner whose data move `share`.
    # Proof: the counts move by at most `2 share` in L1; the winner is a post-processing.
    # Source: Papernot et al. 2017; Muehl 2021 (M9), with discrete noise (M44).

    scale: Number

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    def answer_cost(self, assignment: TeacherAssignment) -> PersonalizedGuarantee:
        """What every owner pays for an answer."""
        scale = positive("scale", self.scale) * UNITS
        return personalized(
            {
                name: Guarantee(
                    events.DiscreteLaplaceEvent(scale, 2 * share), NeighboringRelation.ADD_REMOVE
                )
                for name, share in assignment.shares.items()
            }
        )

    def answers(self, counts: ArrayLike, *, rng: RandomSource | None = None) -> NDArray[np.int64]:
        """The winner of each row; of equal noisy counts the first."""
        found = as_counts(counts)
        law = DiscreteLaplace(positive("scale", self.scale) * UNITS)
        noise = law.sample(found.size, resolve_rng(rng)).reshape(found.shape)
        return np.asarray((found + noise).argmax(axis=1), dtype=np.int64)


def log_error(counts: ArrayLike, *, scale: Number) -> Floats:
    """The logarithm of a bound on the chance that the plurality does not win."""
    # Theorem: at most the sum over the other classes of P(X - Y >= gap) = r^g (g (1 - r) +
    #   (1 + r^2) / (1 + r) + r) / (1 + r)^2, with r = e^(-1/scale) in units. Ties count as lost.
    # Proof: P(X - Y = d) = ((1 - r) / (1 + r))^2 r^d (d + 1 + 2 r^2 / (1 - r^2)); sum over d >= g.
    rate = 1 / (float(positive("scale", scale)) * UNITS)
    r = math.exp(-rate)
    ordered = np.sort(as_counts(counts), axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    inside = gaps * -math.expm1(-rate) + (1 + r * r) / (1 + r) + r
    found = sp.logsumexp(np.log(inside) - gaps * rate - 2 * math.log1p(r), axis=1)
    return np.asarray(found + 1e-12)


def answer_cost(log_error: ArrayLike, *, scale: float, share: float, orders: ArrayLike) -> Floats:
    """The data-dependent Rényi cost of an answer, in both directions: a diagnosis.

    Theorem and proof: the published bound at the votes, and at a neighbor with the same class,
    whose errors there are at most ``e^(2 share / scale)`` times as likely (pure privacy).
    """
    if share == 0:
        return np.zeros((*np.shape(log_error), np.size(orders)))
    gamma = share / scale
    here = np.minimum(np.asarray(log_error, dtype=np.float64), 0.0)
    there = np.minimum(here + 2 * gamma, 0.0)
    found = [laplace_cost(each, gamma=gamma, orders=orders) for each in (here, there)]
    return np.asarray(np.maximum(*found))
