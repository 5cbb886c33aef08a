"""Two-level randomizers, described for amplification by shuffling.

A report is drawn from a public law U, except that the outputs in a set T(x) are more likely by one
factor, at most e^epsilon. Two numbers are all that matters (S3, docs/theory/shuffle.md): ``share``,
the U-mass of T(x), the same for every value x; and ``differ``, the largest U-mass of T(x) without
T(x') over two values. A randomizer may first draw a public part (a level of a tree, say), each
with its own pair of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from discreet.accounting import _binomial as binomial
from discreet.accounting.conversion import UP, Floats
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, Unsupported

# ── Amplification by shuffling ───────────────────────────────────────────────────────────────────
# Amplification by shuffling: what n local reports are worth once nobody knows whose is whose.
#
# Each other report is, with some probability, a *clone*: drawn from a law that does not depend on
# its client, and in which the changed report hides. All that is seen, given the rest, is how many
# reports (changed one and clones) lie in the part that speaks for the first value (N+), in the
# part that speaks for the second (N-), and in the part that says nothing (G). The profile of these
# counts is a sum over binomial laws; every simplification raises it. Proofs:
# docs/theory/shuffle.md.


Ints = NDArray[np.int64]
Parts = tuple[tuple[Fraction, Fraction, Fraction], ...]
"""Weight, share and differ of each part of a two-level randomizer."""

# Reports of a larger epsilon say it all: nothing is amplified.
LARGEST = 300.0
# More reports than these are not counted: fewer are on the safe side.
MOST_REPORTS = 10**10
# What windows leave out on each side; it is added to delta.
TAIL = 1e-100
# Relative error of a binomial mass or tail and of the parameters that enter it, generously.
_ERROR = 1e-9
# Width of a block of K relative to its mean, and the most blocks: alone, and with a law of G each.
# Blocks are wider this many standard deviations away, where they only matter to tiny deltas.
_WIDTH = {False: 3e-5, True: 1e-3}
_BLOCKS = {False: 4000, True: 200}
_CENTER = 8.0
_MOST_TERMS = 1 << 15
# Standard deviations from its mean at which the law of G is put.
_NODES = np.array(
    [-22.0, -17.0, -14.0, -11.0, -9.0, -7.5, -6.5, -5.5, -4.5, -3.5, -2.5, -1.5, -0.5, 0.5, 2.0]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneParameters:
    """How a report hides: parameters of S1 in docs/theory/shuffle.md.

    The changed report lies in ``+`` and ``-`` with probabilities ``ratio * a`` and ``a`` or the
    reverse, a clone with probability ``rate`` in each; ``weight = a/rate``. A clone lies in the
    part that says nothing with probability ``same``, and the changed one at least
    ``same_weight`` times as often.
    """

    ratio: float
    rate: float
    weight: float
    same: float = 0.0
    same_weight: float = 0.0


def _ratio(epsilon: float) -> float:
    """e^epsilon, rounded up: of a tiny epsilon nothing is lost beside the one."""
    return math.exp(epsilon) * (1 + 2.0**-50)


def clones(epsilon: float) -> CloneParameters:
    """How any epsilon-LDP report hides."""
    # Theorem: with probability e^-eps another report is a fair mixture of the two extreme laws of
    #   which the changed one is a randomized response.
    # Proof: S2 of docs/theory/shuffle.md.
    # Source: Feldman, McMillan, Talwar 2021, Theorem 3.1 (F56).
    ratio = _ratio(epsilon)
    rate = 1 / ratio / 2
    return CloneParameters(ratio=ratio, rate=rate, weight=1 / ((ratio + 1) * rate))


def two_level(epsilon: float, parts: Parts) -> tuple[CloneParameters, ...]:
    """How a two-level report hides, in up to three ways: none is always the best."""
    # Theorem: every report holds `u`, the smallest law times its mass gamma; the two parts that
    #   tell two values apart have mass alpha each under it. Where these say little, the bound of a
    #   single binary answer holds for all two-level randomizers.
    # Proof: S3, S6 and S7 of docs/theory/shuffle.md.
    # Source: the blanket of Balle, Bell, Gascón, Nissim 2019, for randomizers with two levels.
    ratio = _ratio(epsilon)
    gamma = alpha = 0.0
    for weight, share, differ in parts:
        floor = float(weight) / (1 + (ratio - 1) * float(share))
        gamma += floor
        alpha += floor * float(differ)
    if alpha == 0:
        return ()
    binary = CloneParameters(ratio=ratio, rate=1 / (ratio + 1), weight=1.0)
    same = max(0.0, gamma - 2 * alpha)
    silent = max(0.0, 1 - (ratio + 1) * alpha)
    if min(same, silent) < 1e-12:  # nothing, but for rounding
        return (binary,)
    thin = CloneParameters(ratio=ratio, rate=alpha, weight=1.0, same=same, same_weight=1.0)
    thick = CloneParameters(
        ratio=ratio, rate=alpha, weight=1.0, same=silent / ratio, same_weight=ratio
    )
    return binary, thin, thick


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Terms:
    """The mixture over K and G: trials of the fair coins, drift, mass; and the mass left out."""

    trials: Floats
    drift: Floats
    mass: Floats
    lost: float


@lru_cache(maxsize=64)
def _terms(law: CloneParameters, reports: int, tail: float) -> _Terms:
    """Blocks of K = N+ + N- (S4), and within each the law of G put on a few points (S5)."""
    chance = min(2 * law.rate, 1 - 1e-12)  # fewer clones are on the safe side
    span = binomial.window(reports, chance=chance, tail=tail)
    # One further on each side, because the changed report is not a clone; K = 0 adds nothing.
    first, last = max(span.first - 1, 1), min(span.last + 1, reports)
    lost = tail * ((first > 1) + (last < reports)) * UP
    silent = law.same > 0
    starts = _starts(first, last, reports * chance, math.sqrt(reports * chance), silent=silent)
    ends = np.append(starts[1:] - 1, last)
    mass = _masses(starts, ends, reports, chance)
    high, low = ends.astype(np.float64), starts.astype(np.float64)
    drift = law.weight * (law.ratio + 1) / 2 * low
    if not silent:
        return _Terms(trials=high, drift=drift, mass=mass, lost=lost)
    points, chances = _silent(float(reports) - high, min(1.0, law.same / (1 - chance)))
    mass = mass[:, None] * chances
    # A term adds at most this many times its mass; what all the smallest add is counted as lost.
    most = law.weight * law.ratio**2 * high[:, None] / reports
    kept = mass * most > tail / (10 * mass.size)
    return _Terms(
        trials=np.broadcast_to(high[:, None], mass.shape)[kept],
        drift=(drift[:, None] + law.same_weight * points)[kept],
        mass=mass[kept],
        lost=lost + tail,
    )


def _starts(first: int, last: int, mean: float, sd: float, *, silent: bool) -> Ints:
    """Where the blocks of K start."""
    left = min(max(first, math.floor(mean - _CENTER * sd)), last)
    right = max(left, min(last, math.ceil(mean + _CENTER * sd)))
    most = math.ceil((right - left + 1) / _BLOCKS[silent])
    width = max(1, math.floor(_WIDTH[silent] * mean), most)
    wide = max(width, math.floor(sd / 4))
    pieces = [np.arange(first, left, wide), np.arange(left, right + 1, width)]
    return np.concatenate([*pieces, np.arange(right + 1, last + 1, wide)])


def _masses(starts: Ints, ends: Ints, trials: int, chance: float) -> Floats:
    """The mass of each block: term by term, or by its tails if there are many terms."""
    if ends[-1] - starts[0] < _MOST_TERMS:
        every = np.arange(starts[0], ends[-1] + 1, dtype=np.float64)
        terms = np.exp(binomial.log_mass(every, trials=float(trials), chance=chance))
        return np.add.reduceat(terms, starts - starts[0])
    edges = np.append(starts, ends[-1] + 1).astype(np.float64)
    above = binomial.at_least(edges, trials=float(trials), chance=chance)
    below = _below(edges, np.full(edges.size, float(trials)), chance)
    # From the side where the tail is small, with its error added.
    right = above[:-1] < below[1:]
    value = np.where(right, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.maximum(value, 0.0) + _ERROR * np.where(right, above[:-1], below[1:])


def _silent(trials: Floats, chance: float) -> tuple[Floats, Floats]:
    """Points and chances of a law above that of G in convex decreasing order, for each K.

    The mass between two points goes to both so that its mean stays; what lies above the last
    point goes to it (S5).
    """
    mean, sd = trials * chance, np.sqrt(trials * chance * (1 - chance))
    points = np.floor(mean[:, None] + np.maximum(sd, 1.0)[:, None] * _NODES)
    points = np.concatenate([np.zeros((trials.size, 1)), points], axis=1)
    points = np.maximum.accumulate(np.clip(points, 0.0, trials[:, None]), axis=1)
    n = np.broadcast_to(trials[:, None], points.shape)
    less = np.maximum(n - 1, 0.0)
    # From below where that tail is small: P(G < x) and E[G; G < x] = mean P(G' < x - 1).
    below = _below(points, n, chance)
    part = mean[:, None] * _below(points - 1, less, chance)
    inside = np.diff(below, axis=1)
    moment = np.diff(part, axis=1) - points[:, :-1] * inside
    gap = np.diff(points, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slip = _ERROR * points[:, 1:] * inside
        up = np.where(gap > 0, np.clip((moment - slip) / gap, 0.0, inside), 0.0)
    chances = np.zeros_like(points)
    chances[:, :-1] += inside - up
    chances[:, 1:] += up
    chances[:, -1] += 1 - below[:, -1]
    return points, chances


def _below(x: Floats, trials: Floats, chance: float) -> Floats:
    """P(X < x) for a binomial X, precise when it is small."""
    if chance >= 1:
        return np.where(x > trials, 1.0, 0.0)
    # Successes below x are failures of at least trials - x + 1.
    return binomial.at_least(trials - x + 1, trials=trials, chance=1 - chance)


def profile(law: CloneParameters, epsilon: Floats, *, reports: int, tail: float = TAIL) -> Floats:
    """The hockey-stick divergence at each epsilon >= 0, rounded up; the same in both directions."""
    # Theorem: with K ~ Bin(n, 2 rate), N+ ~ Bin(K, 1/2) and G ~ Bin(n - K, same/(1 - 2 rate)),
    #   `delta = E[c (N+ - K/2) - (e^eps - 1)(w (ratio+1) K/2 + v G)]_+ / n` with
    #   `c = w (ratio-1)(1 + e^eps)`, w and v the weights.
    # Proof: S1; the mean over N+ is a binomial mass minus a tail. Swapping + and - swaps the
    #   directions. What the windows leave out adds its probability.
    n = min(reports, MOST_REPORTS)
    found = _terms(law, n, tail)
    values = [_at(law, found, float(e)) for e in np.ravel(epsilon)]
    total = np.asarray(values) / n * UP + found.lost
    return np.minimum(total, 1.0).reshape(np.shape(epsilon))


def _at(law: CloneParameters, found: _Terms, epsilon: float) -> float:
    slope = law.weight * (law.ratio - 1) * (1 + math.exp(epsilon))
    drift = math.expm1(epsilon) * found.drift
    first = np.floor(found.trials / 2 + drift / slope) + 1
    used = first <= found.trials
    k, n, fall = first[used], found.trials[used], drift[used]
    gain = slope * k / 2 * np.exp(binomial.log_mass(k, trials=n, chance=0.5))
    loss = fall * binomial.at_least(k, trials=n, chance=0.5)
    excess = np.maximum(gain - loss, 0.0) + _ERROR * (gain + loss)
    return float(found.mass[used] @ excess) * (1 + _ERROR)


def shuffled_delta(
    epsilon: Floats, *, local: float, reports: int, parts: Parts = (), tail: float = TAIL
) -> Floats:
    """The smallest proved delta at each epsilon >= 0 of shuffled reports."""
    # Theorem: every bound holds, hence their minimum; from `local` on delta is zero, because the
    #   report alone is local-LDP and shuffling is post-processing.
    # Needs: `parts` describes the two-level randomizer; without it any randomizer is covered.
    if local > LARGEST:
        return np.where(epsilon >= local, 0.0, 1.0)
    laws = two_level(local, parts) if parts else (clones(local),)
    if not laws:  # no two values are told apart
        return np.zeros(np.shape(epsilon))
    best = np.ones(np.shape(epsilon))
    if np.size(epsilon) > 8 and len(laws) > 1:
        # Many points of one curve: the law that is best in its middle.
        middle = np.asarray(np.median(epsilon))
        laws = (min(laws, key=lambda law: float(profile(law, middle, reports=reports))),)
    for law in laws:
        best = np.minimum(best, profile(law, epsilon, reports=reports, tail=tail))
    return np.where(epsilon >= local, 0.0, best)


Describe = Callable[[float], Parts]


def local_epsilon(
    epsilon: float, *, delta: float, reports: int, parts: Parts | Describe = ()
) -> float:
    """The largest epsilon of a report whose shuffle is (epsilon, delta)-DP, rounded down.

    ``parts`` describes a two-level randomizer, or is a function that does for each local epsilon.
    """
    # Theorem: the value returned is certified; one larger by 1e-6 relative was not, where the bound
    #   grows with the local epsilon.
    # Proof: the bound at the value is evaluated; a report of `epsilon` needs no shuffle.
    # Needs: `epsilon > 0` and `0 < delta < 1`.
    target = float(check.positive("epsilon", epsilon))
    wanted = float(check.probability("delta", delta, zero=False, one=False))
    n = check.count("reports", reports)

    def excess(local: float) -> float:
        described = parts(local) if callable(parts) else parts
        # A little below the target, so that the guarantee, which rounds up, still meets it.
        at = np.asarray([target / UP**3])
        found = shuffled_delta(at, local=local, reports=n, parts=described)
        return math.log(max(float(found[0]), 1e-300)) - math.log(wanted)

    if target >= LARGEST:
        raise Unsupported(f"epsilon must be below {LARGEST:g} to be shared by a shuffle.")
    # A normal law would have this local epsilon, about; look around it.
    low = high = max(target, math.log1p(n * target**2 / (4 * math.log(1 / wanted))))
    while low > target and excess(low) > 0:
        low, high = max(target, low - 0.7), low
    while high < LARGEST and excess(high) <= 0:
        low, high = high, high + 0.7
    if high >= LARGEST:
        raise Unsupported(f"A report of any epsilon below {LARGEST:g} meets the target.")
    if low == target and excess(target * (1 + 1e-9)) > 0:
        return target
    low = max(low, target * (1 + 1e-9))
    root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-9, maxiter=60))
    for step in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2):
        if root * (1 - step) > target and excess(root * (1 - step)) <= 0:
            return root * (1 - step)
    return target


def closed_form(local: float, *, delta: float, reports: int) -> float:
    """Epsilon at ``delta`` by the closed form; looser than the numbers, for hand calculation."""
    # Theorem: `eps <= log(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^e0 ln(4/delta)/n) + 8 e^e0/n))` where
    #   `e0 <= log(n/(16 ln(2/delta)))`; elsewhere nothing better than e0.
    # Source: Feldman, McMillan, Talwar 2021, Theorem 3.1 (F56).
    # Needs: `0 < delta < 1`.
    e0 = float(check.non_negative("local", local))
    d = float(check.probability("delta", delta, zero=False, one=False))
    n = check.count("reports", reports)
    if e0 > math.log(n / (16 * math.log(2 / d))):
        return e0
    p = math.exp(e0)
    inner = 8 * math.sqrt(p * math.log(4 / d) / n) + 8 * p / n
    return min(e0, math.log1p((p - 1) / (p + 1) * inner) * UP)


# ── Two-level randomizers ────────────────────────────────────────────────────────────────────────


def block_design_parts(*, points: int, chosen: int = 1) -> Parts:
    """Reports that are blocks of a 2-design: sets of ``chosen`` of ``points`` points."""
    # Theorem: share = k/v and differ = k (v - k)/(v (v - 1)).
    # Proof: U is uniform on the blocks; a point lies in k/v of them, two points in
    #   k (k - 1)/(v (v - 1)).
    # Needs: 1 <= chosen < points. Randomized response has chosen = 1 (two points: Warner's),
    #   subset selection all sets, hashing to g = v/k values by linear forms the flats.
    v = check.count("points", points, minimum=2)
    k = check.count("chosen", chosen)
    if k >= v:
        raise InvalidArgument(f"chosen must be below points={v}, got {k}.")
    return ((Fraction(1), Fraction(k, v), Fraction(k * (v - k), v * (v - 1))),)


def unary_parts(other: Number) -> Parts:
    """Unary encodings whose bits other than the own are one with probability ``other``."""
    # Theorem: share = q and differ = q (1 - q).
    # Proof: U is independent coins of bias q; T(x) are the rows with a one at x.
    # Needs: 0 < other < 1, the coin as it is thrown.
    q = check.probability("other", other, zero=False, one=False)
    return ((Fraction(1), q, q * (1 - q)),)


def window_parts(*, inputs: int, width: int) -> Parts:
    """A symbol of a line, likelier within a window of ``width`` that starts at the input."""
    # Theorem: with m + w - 1 symbols, share = w/(m + w - 1) and differ = min(w, m - 1)/(m + w - 1).
    # Proof: U is uniform on the symbols; windows that start d apart differ in min(w, d) each way.
    # Needs: inputs >= 2, width >= 1. Rounding a number to an input at random beforehand is covered.
    m = check.count("inputs", inputs, minimum=2)
    w = check.count("width", width)
    symbols = m + w - 1
    return ((Fraction(1), Fraction(w, symbols), Fraction(min(w, m - 1), symbols)),)


def mixture_parts(parts: Iterable[tuple[Number, Parts]]) -> Parts:
    """A randomizer that draws one of several with the given probability and says which."""
    # Theorem: the parts of all, their weights multiplied.
    # Needs: the probabilities sum to one and do not depend on the client: who is *assigned* to a
    #   level in public is shuffled among those of the level only.
    return check.two_level(
        tuple(
            (check.probability("weight", weight) * inner, share, differ)
            for weight, described in parts
            for inner, share, differ in described
        )
    )
