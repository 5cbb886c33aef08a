"""Exact audits: from two output distributions to the guarantee that holds.

Nothing is sampled. The distributions on two neighboring inputs are listed, and delta at an epsilon
(or epsilon at a delta) is a sum over outcomes. Every result is a lower and an upper bound.
`gaussian_lower_bound` tests Gaussian claims from samples.
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
    """A number with a lower and an upper bound.

    Attributes:
        lower: Lower bound.
        upper: Upper bound.

    Examples:
        >>> from discreet.audit import exact
        >>> exact.Enclosure(0.9, 1.1).upper
        1.1
    """

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputPair:
    """The output distributions on two neighboring inputs, over one list of outcomes.

    Args:
        outcomes: Outcomes.
        left: Probabilities on the first input.
        right: Probabilities on the second input.
        missing: Upper bound of the probability, under each distribution, of outcomes that are not
            listed.
        error: Upper bound of the total absolute error of the listed probabilities.

    Raises:
        InvalidArgument: The lists have different lengths, or probabilities do not sum to 1 up to
            `missing` and `error`.

    Examples:
        >>> import numpy
        >>> from discreet.audit import exact
        >>> laws = exact.OutputPair(
        ...     outcomes=["yes", "no"],
        ...     left=numpy.array([0.75, 0.25]),
        ...     right=numpy.array([0.25, 0.75]),
        ... )
        >>> round(exact.epsilon(laws).upper, 4)
        1.0986
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
        """Relative error of a probability or of a sum of probabilities."""
        return ROUNDING + self.left.size * 2.0**-52

    def swapped(self) -> OutputPair:
        """Exchange the two distributions.

        Returns:
            The same pair, read in the other direction.

        Examples:
            >>> from discreet.audit import exact
            >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.5, "no": 0.5})
            >>> laws.swapped().left.tolist()
            [0.5, 0.5]
        """
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
    """Combine two distributions over one list of outcomes.

    Args:
        left: Distribution on the first input: a dict from outcomes to probabilities, or a
            `LatticeDistribution`.
        right: Distribution on the second input, of the same kind.
        error: Upper bound of the total absolute error of the probabilities.

    Returns:
        The pair of distributions.

    Raises:
        InvalidArgument: The distributions are of different kinds, or do not sum to 1.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> round(exact.epsilon(laws).upper, 4)
        1.0986
    """
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
    """Pair integer noise around 0 with the same noise around 1.

    This is a count that one row changes by 1. Outcomes below 0 and above 1 are merged, which loses
    nothing if the ratio of probabilities is constant there, as for discrete Laplace noise.

    Args:
        noise: Distribution of the noise.

    Returns:
        The pair of distributions.

    Examples:
        >>> from discreet.audit import exact, lattice_distribution
        >>> laws = exact.one_apart(lattice_distribution.discrete_laplace(2))
        >>> round(exact.epsilon(laws, 1e-9).upper, 4)
        0.5
    """
    return pair(noise.clamp(0, 1), noise.shift(1).clamp(0, 1))


def product(first: OutputPair, second: OutputPair) -> OutputPair:
    """Combine two independent outputs into one.

    Args:
        first: Distributions of the first output.
        second: Distributions of the second output.

    Returns:
        The distributions of both outputs together. An outcome is a pair of positions in the two
        lists.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> round(exact.epsilon(exact.product(laws, laws)).upper, 4)
        2.1972
    """
    return OutputPair(
        outcomes=tuple(itertools.product(range(len(first.outcomes)), range(len(second.outcomes)))),
        left=np.outer(first.left, second.left).ravel(),
        right=np.outer(first.right, second.right).ravel(),
        missing=first.missing + second.missing,
        error=first.error + second.error,
    )


def delta_one_way(laws: OutputPair, epsilon: float) -> Enclosure:
    """Compute delta at an epsilon, from the left to the right distribution.

    It is the largest value of P(A) - e^epsilon Q(A) over all sets A, where P is the left
    distribution and Q the right one.

    Args:
        laws: Pair of distributions.
        epsilon: Privacy loss.

    Returns:
        Lower and upper bound of delta.

    Raises:
        InvalidArgument: `epsilon` is not a number.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> round(exact.delta_one_way(laws, 0).upper, 4)
        0.5

    References:
        Dwork and Roth (2014). Barthe and Olmedo (2013).
        [Proof](../theory/theorems.md#audit.exact.delta_one_way).
    """
    # Theorem: the supremum is the sum of the positive parts of p - e^epsilon q (B7, B17).
    # Proof: a set gains by containing exactly the outcomes whose term is positive. Unlisted
    #   outcomes add between 0 and P's missing mass; each listed term is off by at most rounding *
    #   (p + e^epsilon q) and all of them together by error * (1 + e^epsilon).
    # Source: Dwork and Roth 2014, section 3.5; Barthe and Olmedo 2013 (hockey-stick divergence).
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
    """Compute epsilon at a delta, from the left to the right distribution.

    Args:
        laws: Pair of distributions.
        delta: Probability parameter, between 0 and 1.

    Returns:
        Lower and upper bound of the smallest epsilon that holds.

    Raises:
        InvalidArgument: `delta` is not between 0 and 1.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.5, "no": 0.5})
        >>> round(exact.epsilon_one_way(laws).upper, 4)
        0.4055

    References:
        Dwork and Roth (2014), section 3.5.
        [Proof](../theory/theorems.md#audit.exact.epsilon_one_way).
    """
    # Theorem: it is the maximum of log((P(A) - delta) / Q(A)) over the sets A that contain the
    #   outcomes of largest ratio p/q (B7: the delta-approximate max divergence).
    # Proof: P(A) - e^epsilon Q(A) is largest on {p > e^epsilon q}, which is such a set.
    # Source: Dwork and Roth 2014, section 3.5.
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
    """Compute delta at an epsilon, for the worse of the two directions.

    Args:
        laws: Pair of distributions.
        epsilon: Privacy loss.

    Returns:
        Lower and upper bound of delta.

    Raises:
        InvalidArgument: `epsilon` is not a number.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.5, "no": 0.5})
        >>> round(exact.delta(laws, 0.5).upper, 4)
        0.0878
    """
    return _worse(delta_one_way(laws, epsilon), delta_one_way(laws.swapped(), epsilon))


def epsilon(laws: OutputPair, delta: float = 0.0) -> Enclosure:
    """Compute epsilon at a delta, for the worse of the two directions.

    Args:
        laws: Pair of distributions.
        delta: Probability parameter, between 0 and 1.

    Returns:
        Lower and upper bound of the smallest epsilon that holds.

    Raises:
        InvalidArgument: `delta` is not between 0 and 1.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.5, "no": 0.5})
        >>> round(exact.epsilon(laws).upper, 4)
        0.6931
    """
    return _worse(epsilon_one_way(laws, delta), epsilon_one_way(laws.swapped(), delta))


def witness(laws: OutputPair, epsilon: float) -> tuple[Hashable, ...]:
    """Find the set of outcomes that distinguishes the distributions best.

    Args:
        laws: Pair of distributions.
        epsilon: Privacy loss.

    Returns:
        The outcomes that are more than e^epsilon times as likely on the left as on the right.

    Examples:
        >>> from discreet.audit import exact
        >>> laws = exact.pair({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> exact.witness(laws, 0.5)
        ('yes',)
    """
    chosen = np.flatnonzero(laws.left > math.exp(min(epsilon, 700.0)) * laws.right)
    return tuple(laws.outcomes[int(i)] for i in chosen)


def additive_delta(
    cdf: Callable[[int], object], *, shift: int, epsilon: float, lower: int, upper: int
) -> float:
    """Compute a lower bound of delta for integer noise on two values.

    It compares half-lines only, so it works for noise of any size. For log-concave noise it is
    delta itself if the best threshold lies between `lower` and `upper`.

    Args:
        cdf: Distribution function of the noise.
        shift: Distance of the two values.
        epsilon: Privacy loss.
        lower: Smallest threshold to try.
        upper: Largest threshold to try.

    Returns:
        The lower bound.

    Examples:
        >>> from discreet.audit import exact, lattice_distribution
        >>> noise = lattice_distribution.discrete_gaussian(2)
        >>> delta = exact.additive_delta(noise.cdf, shift=1, epsilon=0.5, lower=-20, upper=20)
        >>> 0 < delta < 1
        True

    References:
        Balle and Wang (2018). [Proof](../theory/theorems.md#audit.exact.additive_delta).
    """
    # Theorem: no half-line between lower and upper tells more; for log-concave noise whose optimal
    #   threshold lies between them this is delta itself.
    # Proof: each half-line is an event. For log-concave noise p(k)/p(k - shift) falls with k, so
    #   {p > e^epsilon q} is a half-line, and F(k) - e^epsilon F(k - shift) rises and then falls:
    #   it is maximal where the difference to its right neighbor changes sign (bisection).
    # Source: Balle and Wang 2018 (the continuous case).
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
    """Compute delta of two densities by numerical integration.

    Numerical integration has an error estimate, but no proof. Use it for demonstrations only.

    Args:
        left: Density on the first input.
        right: Density on the second input.
        epsilon: Privacy loss.
        breaks: Increasing points between which to integrate. Include kinks of the densities and
            points where their ratio crosses e^epsilon.

    Returns:
        An estimate of delta, from the left to the right density.

    Examples:
        >>> import math
        >>> from discreet.audit import exact
        >>> delta = exact.density_delta(
        ...     lambda x: math.exp(-abs(x)) / 2,
        ...     lambda x: math.exp(-abs(x - 1)) / 2,
        ...     epsilon=0,
        ...     breaks=[-40, 0, 0.5, 1, 40],
        ... )
        >>> round(delta, 4)
        0.3935
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
    """A continuous distribution, such as those of `scipy.stats`.

    Examples:
        >>> from scipy import stats
        >>> from discreet.audit import exact
        >>> laws = exact.binned(stats.norm(), stats.norm(loc=1), bins=100)
        >>> exact.delta(laws, 1).lower > 0.1
        True
    """

    def cdf(self, x: Any) -> Any:
        """Return the probability at or below a number.

        Args:
            x: One or more numbers.

        Returns:
            The probabilities.

        Examples:
            >>> from scipy import stats
            >>> stats.norm().cdf(0.0).item()
            0.5
        """
        ...

    def ppf(self, q: Any) -> Any:
        """Return a quantile.

        Args:
            q: One or more probabilities.

        Returns:
            The quantiles.

        Examples:
            >>> from scipy import stats
            >>> stats.norm().ppf(0.5).item()
            0.0
        """
        ...

    def isf(self, q: Any) -> Any:
        """Return a quantile, counted from above.

        Args:
            q: One or more probabilities.

        Returns:
            The numbers that are exceeded with these probabilities.

        Examples:
            >>> from scipy import stats
            >>> stats.norm().isf(0.5).item()
            0.0
        """
        ...


def binned(left: ContinuousPair, right: ContinuousPair, *, bins: int = 20_000) -> OutputPair:
    """Read two continuous distributions on a grid.

    Reading on a grid is post-processing, so lower bounds of delta and epsilon hold for the
    continuous distributions.

    Args:
        left: Distribution on the first input, for example one of `scipy.stats`.
        right: Distribution on the second input.
        bins: Number of points of the grid.

    Returns:
        The pair of discretized distributions.

    Examples:
        >>> from scipy import stats
        >>> from discreet.audit import exact
        >>> laws = exact.binned(stats.norm(), stats.norm(loc=1), bins=100)
        >>> len(laws.outcomes)
        101
    """
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
    """Pair Laplace noise around two numbers, read between edges.

    Args:
        left: First number.
        right: Second number.
        scale: Scale of the Laplace distribution.
        edges: Edges of the cells. By default 1001 points between the two numbers. If the edges
            reach both numbers, nothing is lost.

    Returns:
        The pair of discretized distributions.

    Examples:
        >>> from discreet.audit import exact
        >>> round(exact.epsilon(exact.laplace_pair(0, 1, scale=2)).lower, 3)
        0.5
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
    """Compute a lower bound of mu (Gaussian DP) from scores on two inputs.

    Args:
        with_row: Independent scores of outputs on the input with the row.
        without: Independent scores of outputs on the input without the row.
        threshold: Threshold for the scores. Choose it without looking at these scores.
        failure_probability: Largest probability that the bound exceeds the true mu.

    Returns:
        The lower bound.

    Raises:
        InvalidArgument: There are no scores, or the failure probability is not between 0 and 1.

    Examples:
        >>> import numpy
        >>> from discreet import audit
        >>> scores = numpy.random.default_rng(1).normal(size=10_000)
        >>> 0.5 < audit.gaussian_lower_bound(scores + 1, scores, threshold=0.5) < 1
        True

    References:
        Dong, Roth and Su (2022). Nasr et al. (2023).
        [Proof](../theory/theorems.md#audit.exact.gaussian_lower_bound).
    """
    # Theorem: a mechanism that is mu-GDP passes this bound with probability at most failure.
    # Proof: mu-GDP means that `P(A) <= Phi(Phi^-1(Q(A)) + mu)` for every event A; take the scores
    #   above the threshold, and a Clopper-Pearson bound on either side.
    # Source: Dong, Roth and Su 2022; Nasr et al. 2023.
    # Needs: a threshold and a score that were chosen without these scores.
    alpha = float(probability("failure_probability", failure_probability, zero=False, one=False))
    if min(with_row.size, without.size) == 0:
        raise InvalidArgument("with_row and without must hold scores.")
    hits = [int(np.count_nonzero(scores > threshold)) for scores in (with_row, without)]
    low = lower_bound(hits[0], with_row.size, alpha / 2)
    high = upper_bound(hits[1], without.size, alpha / 2)
    return float(ndtri(low) - ndtri(high))
