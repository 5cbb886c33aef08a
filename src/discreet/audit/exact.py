"""The exact audit: from two output distributions to the guarantee that holds.

Nothing is sampled and no theorem is trusted: the two distributions are listed, and delta at an
epsilon (or epsilon at a delta) is a sum over outcomes. Every result is a lower and an upper bound;
what the lists leave out widens them. `gaussian_lower_bound` tests Gaussian claims from samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy import integrate
from scipy.special import ndtri

from discreet.audit._attack import Floats as Floats_linear
from discreet.audit._attack import lower_bound, upper_bound
from discreet.audit.lattice_distribution import Floats, LatticeDistribution
from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument

FiniteLaw: TypeAlias = Mapping[Any, float] | Mapping[Any, Fraction]
ROUNDING = 1e-13
"""Relative error allowed to each listed mass; a sum of n masses gets n roundings more."""


class Enclosure(NamedTuple):
    """A number that lies between ``lower`` and ``upper``."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputPair:
    """The laws of the outputs on two neighboring inputs, over one list of outcomes.

    ``missing`` bounds the mass of each law on outcomes that are not listed; ``error`` bounds the
    total absolute error of the listed masses (a truncated inner sum, for example).
    """

    outcomes: Sequence[Hashable]
    left: Floats
    right: Floats
    missing: float = 0.0
    error: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.outcomes) == self.left.size == self.right.size:
            raise InvalidArgument("outcomes, left and right must have one length.")
        if not (self.missing >= 0 and self.error >= 0):
            raise InvalidArgument("missing and error must not be negative or NaN.")
        least = 1 - self.missing - self.error - 1e-9
        for name, mass in (("left", self.left), ("right", self.right)):
            if not np.all(mass >= 0) or not least <= float(mass.sum()) <= 1 + 1e-9:
                raise InvalidArgument(
                    f"{name} must be masses that sum to 1, up to missing and error."
                )

    @property
    def rounding(self) -> float:
        """Relative error of a mass or of a sum of masses."""
        return ROUNDING + self.left.size * 2.0**-52

    def swapped(self) -> OutputPair:
        """The same pair, read in the other direction."""
        return OutputPair(
            outcomes=self.outcomes,
            left=self.right,
            right=self.left,
            missing=self.missing,
            error=self.error,
        )


def pair(
    left: FiniteLaw | LatticeDistribution,
    right: FiniteLaw | LatticeDistribution,
    *,
    error: float = 0.0,
) -> OutputPair:
    """Bring two laws to one list of outcomes; a finite law must list all of its own."""
    if isinstance(left, LatticeDistribution) and isinstance(right, LatticeDistribution):
        start, stop = min(left.start, right.start), max(left.stop, right.stop)
        k = np.arange(start, stop, dtype=np.int64)
        missing = max(left.missing, right.missing)
        # Where only one law is listed the other is not zero: it may have all its missing mass.
        error += max(left.error, right.error) + missing
        return OutputPair(
            outcomes=range(start, stop),
            left=left.pmf(k),
            right=right.pmf(k),
            missing=missing,
            error=error,
        )
    if isinstance(left, LatticeDistribution) or isinstance(right, LatticeDistribution):
        raise InvalidArgument("left and right must be two lattices or two finite laws.")
    outcomes = tuple(dict.fromkeys((*left, *right)))
    return OutputPair(
        outcomes=outcomes,
        left=np.array([float(left.get(o, 0)) for o in outcomes]),
        right=np.array([float(right.get(o, 0)) for o in outcomes]),
        error=error,
    )


def one_apart(noise: LatticeDistribution) -> OutputPair:
    """Noise around 0 and around 1: a count that one record moves.

    Clamping beyond both centers loses nothing where the ratio is constant there.
    """
    return pair(noise.clamp(0, 1), noise.shift(1).clamp(0, 1))


def product(first: OutputPair, second: OutputPair) -> OutputPair:
    """Two independent outputs seen together: coordinates of a vector, or two releases.

    Outcomes become pairs of positions in the lists of the two.
    """
    return OutputPair(
        outcomes=tuple(itertools.product(range(len(first.outcomes)), range(len(second.outcomes)))),
        left=np.outer(first.left, second.left).ravel(),
        right=np.outer(first.right, second.right).ravel(),
        missing=first.missing + second.missing,
        error=first.error + second.error,
    )


def delta_one_way(laws: OutputPair, epsilon: float) -> Enclosure:
    """The supremum over sets A of P(A) - e^epsilon Q(A), P the left law and Q the right.

    Theorem: the supremum is the sum of the positive parts of p - e^epsilon q (B7, B17).
    Proof: a set gains by containing exactly the outcomes whose term is positive. Unlisted outcomes
        add between 0 and P's missing mass; each listed term is off by at most rounding * (p +
        e^epsilon q) and all of them together by error * (1 + e^epsilon).
    Source: Dwork and Roth 2014, section 3.5; Barthe and Olmedo 2013 (hockey-stick divergence).
    """
    if math.isnan(epsilon):
        raise InvalidArgument("epsilon must be a number, got NaN.")
    if epsilon > 700:  # exp overflows: only outcomes that the right law excludes remain
        total = float(laws.left[laws.right == 0].sum())
        return Enclosure(max(0.0, total - laws.error), 1.0)
    factor = math.exp(epsilon)
    terms = laws.left - factor * laws.right
    total = math.fsum(terms[terms > 0])
    uncertain = np.abs(terms) <= laws.rounding * (laws.left + factor * laws.right)
    involved = (terms > 0) | uncertain
    size = float(laws.left[involved].sum() + factor * laws.right[involved].sum())
    slack = laws.rounding * size + laws.error * (1 + factor)
    return Enclosure(max(0.0, total - slack), min(1.0, total + slack + laws.missing))


def epsilon_one_way(laws: OutputPair, delta: float = 0.0) -> Enclosure:
    """The smallest epsilon >= 0 with P(A) <= e^epsilon Q(A) + delta for all A.

    Theorem: it is the maximum of log((P(A) - delta) / Q(A)) over the sets A that contain the
        outcomes of largest ratio p/q (B7: the delta-approximate max divergence).
    Proof: P(A) - e^epsilon Q(A) is largest on {p > e^epsilon q}, which is such a set.
    Source: Dwork and Roth 2014, section 3.5.
    """
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"delta must lie in [0, 1], got {delta}.")
    p, q = _sorted_sums(laws)
    err = laws.error
    low_p = p * (1 - laws.rounding) - err - delta
    low = _log_ratio(low_p, q * (1 + laws.rounding) + err)
    # Unlisted outcomes may never occur on the right: their mass is taken out of delta.
    high_p = p * (1 + laws.rounding) + err - (delta - laws.missing)
    high = _log_ratio(high_p, np.maximum(q * (1 - laws.rounding) - err, 0.0))
    if laws.missing > delta:
        high = math.inf
    return Enclosure(max(0.0, low), max(0.0, high))


def delta(laws: OutputPair, epsilon: float) -> Enclosure:
    """Exact delta at epsilon, the worse of the two directions."""
    return _worse(delta_one_way(laws, epsilon), delta_one_way(laws.swapped(), epsilon))


def epsilon(laws: OutputPair, delta: float = 0.0) -> Enclosure:
    """Exact epsilon at delta, the worse of the two directions."""
    return _worse(epsilon_one_way(laws, delta), epsilon_one_way(laws.swapped(), delta))


def witness(laws: OutputPair, epsilon: float) -> tuple[Hashable, ...]:
    """The set of outcomes that tells left from right best at this epsilon (left to right)."""
    chosen = np.flatnonzero(laws.left > math.exp(min(epsilon, 700.0)) * laws.right)
    return tuple(laws.outcomes[int(i)] for i in chosen)


def additive_delta(
    cdf: Callable[[int], object], *, shift: int, epsilon: float, lower: int, upper: int
) -> float:
    """A lower bound on delta for integer noise on two values ``shift`` apart, any grid size.

    Theorem: no half-line between lower and upper tells more; for log-concave noise whose optimal
        threshold lies between them this is delta itself.
    Proof: each half-line is an event. For log-concave noise p(k)/p(k - shift) falls with k, so
        {p > e^epsilon q} is a half-line, and F(k) - e^epsilon F(k - shift) rises and then falls:
        it is maximal where the difference to its right neighbor changes sign (bisection).
    Source: Balle and Wang 2018 (the continuous case).
    """
    factor = math.exp(epsilon)

    def gain(k: int) -> float:
        return float(np.asarray(cdf(k))) - factor * float(np.asarray(cdf(k - shift)))

    low, high = lower, upper
    while high - low > 3:
        third = (high - low) // 3
        left, right = low + third, high - third
        # Equal values only occur where both tails vanish or the gain has left its maximum.
        if gain(left) < gain(right):
            low = left
        else:
            high = right
    return max(0.0, *(gain(k) for k in range(low, high + 1)))


def density_delta(
    left: Callable[[float], float],
    right: Callable[[float], float],
    *,
    epsilon: float,
    breaks: Sequence[float],
) -> float:
    """Delta of two densities by quadrature, between the first and the last of ``breaks``.

    Heuristic: quadrature has an error estimate and no proof; used for continuous demonstrations
    only, never to certify. Give the kinks of the densities and the crossings as breaks.
    """
    factor = math.exp(epsilon)

    def gain(x: float) -> float:
        return max(0.0, left(x) - factor * right(x))

    parts = [
        integrate.quad(gain, a, b, epsabs=1e-13, epsrel=1e-11, limit=400)[0]
        for a, b in itertools.pairwise(breaks)
    ]
    return math.fsum(parts)


class ContinuousPair(Protocol):
    """A distribution of scipy.stats."""

    def cdf(self, x: Any) -> Any: ...
    def ppf(self, q: Any) -> Any: ...
    def isf(self, q: Any) -> Any: ...


def binned(left: ContinuousPair, right: ContinuousPair, *, bins: int = 20_000) -> OutputPair:
    """Two continuous laws read on a grid: reading is post-processing, so a lower bound holds."""
    tiny = 1e-15
    low = min(left.ppf(tiny), right.ppf(tiny))
    high = max(left.isf(tiny), right.isf(tiny))
    edges = np.concatenate(([-np.inf], np.linspace(low, high, bins), [np.inf]))
    masses = [np.maximum(np.diff(law.cdf(edges)), 0.0) for law in (left, right)]
    # Each difference of cumulative probabilities is off by a rounding of numbers up to 1.
    return OutputPair(outcomes=range(bins + 1), left=masses[0], right=masses[1], error=1e-11)


def laplace_pair(
    left: float, right: float, *, scale: float, edges: Floats | None = None
) -> OutputPair:
    """Laplace noise of one scale around two reals, read between ``edges`` (1000 by default).

    Beyond both centers the ratio is constant: if the edges reach that far, two outer cells that
    go to infinity lose nothing.
    """
    inner = np.linspace(left, right, 1001) if edges is None else edges
    ends: Floats = np.concatenate(([-np.inf], np.sort(inner), [np.inf]))
    masses = [_laplace_cells((ends - center) / scale) for center in (left, right)]
    return OutputPair(outcomes=range(len(ends) - 1), left=masses[0], right=masses[1])


def _laplace_cells(edges: Floats) -> Floats:
    """Masses of a standard Laplace law between edges, without cancellation."""
    low, high = edges[:-1], edges[1:]
    width = np.expm1(-(high - low))
    right, left = (-np.exp(-np.maximum(x, 0)) * width / 2 for x in (low, -high))
    with np.errstate(over="ignore"):
        across = -(np.expm1(np.minimum(low, 0)) + np.expm1(-np.maximum(high, 0))) / 2
    return np.where(low >= 0, right, np.where(high <= 0, left, across))


def _sorted_sums(laws: OutputPair) -> tuple[Floats, Floats]:
    """Sums of both laws over the outcomes of largest ratio left/right, one more at a time."""
    used = (laws.left > 0) | (laws.right > 0)
    p, q = laws.left[used], laws.right[used]
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    order = np.argsort(-loss, kind="stable")
    return np.cumsum(p[order]), np.cumsum(q[order])


def _log_ratio(p: Floats, q: Floats) -> float:
    possible = p > 0
    if not np.any(possible):
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(p[possible]) - np.log(q[possible])))


def _worse(a: Enclosure, b: Enclosure) -> Enclosure:
    return Enclosure(max(a.lower, b.lower), max(a.upper, b.upper))


# ── Gaussian claims
# ──────────────────────────────────────────────────────────────────────────────── At a small delta
# samples prove next to nothing about epsilon. They prove much about mu: an event near the middle,
# which happens often, bounds the whole curve of a claim that is Gaussian.


def gaussian_lower_bound(
    with_row: Floats_linear,
    without: Floats_linear,
    *,
    threshold: float,
    failure_probability: float = 1e-6,
) -> float:
    """A lower bound on mu from independent scores on two inputs.

    Theorem: a mechanism that is mu-GDP passes this bound with probability at most failure.
    Proof: mu-GDP means that ``P(A) <= Phi(Phi^-1(Q(A)) + mu)`` for every event A; take the scores
        above the threshold, and a Clopper-Pearson bound on either side.
    Source: Dong, Roth and Su 2022; Nasr et al. 2023.
    Needs: a threshold and a score that were chosen without these scores.
    """
    alpha = float(probability("failure_probability", failure_probability, zero=False, one=False))
    if min(with_row.size, without.size) == 0:
        raise InvalidArgument("with_row and without must hold scores.")
    hits = [int(np.count_nonzero(scores > threshold)) for scores in (with_row, without)]
    low = lower_bound(hits[0], with_row.size, alpha / 2)
    high = upper_bound(hits[1], without.size, alpha / 2)
    return float(ndtri(low) - ndtri(high))
