"""From an event to its leaves: the few kinds of noise that are accounted directly.

Groups are pushed inwards (a group of k moves an additive query k times as far), compositions are
flattened, Gaussian parts become one Gaussian and concentrated parts one zCDP, so that what is left
for numerical composition is as little as possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting import conversion
from discreet.accounting.dominating_pairs import (
    AtomPair,
    BoundedRangePair,
    DominatingPair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
)
from discreet.core._rational import round_up
from discreet.core.errors import Unsupported
from discreet.core.events import (
    ApproxEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EitherEvent,
    Event,
    GaussianEvent,
    GdpEvent,
    GroupEvent,
    LaplaceEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ShuffledEvent,
    ShuffledTwoLevelEvent,
    TruncatedLaplaceEvent,
    ZcdpEvent,
)

Side: TypeAlias = Literal["upper", "lower"]

# Above this sigma a discrete Gaussian is composed as a Gaussian (T2, T3): the loss is 1e-4 there.
_LATTICE_VARIANCE = 100**2
# The largest sigma whose lattice is summed term by term for a single release.
_LARGEST_LATTICE = 2000**2
_EULER = 0.5772156649015329


def leaves(event: Event, *, size: int = 1) -> Iterator[tuple[Event, int]]:
    """The leaves of an event with their counts, seen by a group of ``size``."""
    # Theorem: a group of k is an additive query moved k times as far; (eps, delta) grows by B24,
    #   rho by k^2, xi by k (1 + 1/2 + ... + 1/k), mu by k, and a range of losses by k.
    # Source: B24; Bun, Steinke 2016, Proposition 27; Dong, Roth, Su 2022, Theorem 2.14.
    match event:
        case ComposedEvent(parts):
            for part, count in parts:
                for leaf, times in leaves(part, size=size):
                    yield leaf, times * count
        case GroupEvent(more, inner):
            yield from leaves(inner, size=size * more)
        case SampledEvent() | SampledWithoutReplacementEvent():
            yield from _sampled(event, size)
        case EitherEvent(events):
            branches = events if size == 1 else tuple(GroupEvent(size, branch) for branch in events)
            if len(branches) == 1:
                yield from leaves(branches[0])
            else:
                yield EitherEvent(branches), 1
        case DiscreteGaussianEvent():
            yield from _lattice_gaussian(event, size)
        case _:
            grown = _grown(event, size)
            if grown is not None:
                yield grown, 1


def _grown(event: Event, size: int) -> Event | None:
    match event:
        case PureEvent(epsilon):
            return PureEvent(epsilon * size) if epsilon else None
        case ApproxEvent(epsilon, delta):
            if delta == 0:
                return PureEvent(epsilon * size) if epsilon else None
            return event if size == 1 else GroupEvent(size, event)
        case ZcdpEvent(rho, xi):
            grown = xi * size * _harmonic(size) if xi else xi
            return ZcdpEvent(rho * size**2, grown) if rho or xi else None
        case GdpEvent(mu):
            return GdpEvent(mu * size) if mu else None
        case GaussianEvent(sigma):
            return GdpEvent(size / sigma)
        case LaplaceEvent(scale):
            return LaplaceEvent(scale / size)
        case DiscreteLaplaceEvent(scale, shift):
            return DiscreteLaplaceEvent(scale, shift * size) if shift else None
        case TruncatedLaplaceEvent(scale, shift, bound):
            return TruncatedLaplaceEvent(scale, shift * size, bound) if shift else None
        case BoundedRangeEvent(epsilon):
            return BoundedRangeEvent(epsilon * size) if epsilon else None
        case ShuffledEvent(epsilon) | ShuffledTwoLevelEvent(epsilon):
            grouped = event if size == 1 else GroupEvent(size, event)
            return grouped if epsilon else None
        case _:
            raise Unsupported(
                f"{type(event).__name__.removesuffix('Event')} is not known to the accountants."
            )


def _harmonic(size: int) -> Fraction:
    """1 + 1/2 + ... + 1/size, of many terms rounded up: the next term is -1/(12 size^2)."""
    if size <= 100:
        return sum((Fraction(1, i) for i in range(1, size + 1)), Fraction(0))
    return Fraction((math.log(size) + _EULER + 0.5 / size) * conversion.UP)


def _sampled(
    event: SampledEvent | SampledWithoutReplacementEvent, size: int
) -> Iterator[tuple[Event, int]]:
    rate = sampling_rate(event)
    inner = list(leaves(event.inner))
    if rate == 0 or not inner:
        return
    if round_up(rate) == 1:  # also what doubles cannot tell from it
        yield from leaves(event.inner, size=size)
        return
    leaf: Event = event
    if isinstance(event, SampledEvent) and len(inner) == 1 and inner[0][1] == 1:
        # A Poisson sample of a Poisson sample is one of the product of the rates.
        core = inner[0][0]
        leaf = (
            SampledEvent(rate * core.rate, core.inner)
            if isinstance(core, SampledEvent)
            else SampledEvent(rate, core)
        )
    yield (leaf if size == 1 else GroupEvent(size, leaf)), 1


def sampling_rate(event: SampledEvent | SampledWithoutReplacementEvent) -> Fraction:
    """The chance that a unit takes part."""
    if isinstance(event, SampledEvent):
        return event.rate
    return Fraction(event.sample, event.population)


def _lattice_gaussian(event: DiscreteGaussianEvent, size: int) -> Iterator[tuple[Event, int]]:
    """Integers move by integers: a squared shift below 4 moves that many coordinates by one.

    The full shift dominates shorter ones, because a projection is post-processing.
    """
    moved = math.floor(event.shift_squared * size**2)
    if moved == 0:
        return
    if event.dimension == 1:
        yield DiscreteGaussianEvent(event.variance, Fraction(math.isqrt(moved) ** 2), 1), 1
    elif moved < 4:
        yield DiscreteGaussianEvent(event.variance, Fraction(1), 1), min(moved, event.dimension)
    else:
        yield DiscreteGaussianEvent(event.variance, Fraction(moved), event.dimension), 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedEvents:
    """An event after all closed-form composition, for one side of the bracket.

    The laws differ from those stated by a factor within ``e^{+-slack}`` in each probability.
    """

    parts: tuple[tuple[Event, int], ...] = ()
    mu_squared: float = 0.0
    rho: Fraction = Fraction(0)
    xi: Fraction = Fraction(0)
    slack: float = 0.0


@lru_cache(maxsize=512)
def reduce_event(event: Event, side: Side) -> ReducedEvents:
    """Gather the leaves; for the lower side, parts without an exact pair are left out."""
    # Theorem: Gaussian parts compose to `mu^2 = sum mu_i^2`, zCDP parts add; leaving a part out
    #   gives a lower bound (post-processing).
    # Source: Dong, Roth, Su 2022, Corollary 3.3; Bun, Steinke 2016, Lemma 7 (C15, K31).
    counts: dict[Event, int] = {}
    for leaf, count in leaves(event):
        counts[leaf] = counts.get(leaf, 0) + count
    parts: list[tuple[Event, int]] = []
    mu_squared, slack = Fraction(0), 0.0
    rho = xi = Fraction(0)
    for leaf, count in counts.items():
        match leaf:
            case GdpEvent(mu):
                mu_squared += count * mu**2
            case ZcdpEvent():
                rho, xi = rho + count * leaf.rho, xi + count * leaf.xi
            case DiscreteGaussianEvent():
                smooth = _as_gaussian(leaf, count, side)
                if smooth is not None:
                    mu_squared += count * smooth[0]
                    slack += count * smooth[1]
                elif leaf.dimension == 1:
                    parts.append((leaf, count))
                elif side == "lower":
                    shorter = Fraction(math.isqrt(int(leaf.shift_squared)) ** 2)
                    parts.append((DiscreteGaussianEvent(leaf.variance, shorter, 1), count))
                else:
                    # CKS20 Theorem 14: every order has divergence order * shift^2 / (2 sigma^2).
                    rho += count * leaf.shift_squared / (2 * leaf.variance)
            case _:
                parts.append((leaf, count))
    outward = 1 + 1e-14 if side == "upper" else 1 - 1e-14
    return ReducedEvents(
        parts=tuple(parts), mu_squared=float(mu_squared) * outward, rho=rho, xi=xi, slack=slack
    )


def _as_gaussian(
    leaf: DiscreteGaussianEvent, count: int, side: Side
) -> tuple[Fraction, float] | None:
    """The mu^2 of a Gaussian that a discrete Gaussian nearly is, and the slack of one use."""
    # Theorem: up to `e^{+-slack}` the discrete Gaussian of variance v is a function of a
    #   continuous one of variance v - t (T2), and one of variance v + t is a function of it (T3).
    # Proof: docs/theory/accounting.md; Poisson summation of the normalizers.
    if leaf.dimension == 1 and leaf.variance <= _LATTICE_VARIANCE:
        return None
    moved = leaf.dimension if side == "upper" else min(leaf.dimension, 4)
    # The smoothing t is the smallest whose total slack is below 1e-8.
    smoothing = Fraction(math.ceil(100 * math.log(4e8 * moved * count) / (2 * math.pi**2)), 100)
    if leaf.variance < 2 * smoothing:
        return None
    if side == "upper":
        return leaf.shift_squared / (leaf.variance - smoothing), moved * _slack(float(smoothing))
    attained = leaf.shift_squared
    if leaf.dimension < 4:  # every natural number is a sum of four squares, not of fewer
        attained = Fraction(math.isqrt(int(attained)) ** 2)
    width = float(leaf.variance * smoothing / (leaf.variance + smoothing))
    return attained / (leaf.variance + smoothing), moved * _slack(width)


def _slack(variance: float) -> float:
    """log((1+eta)/(1-eta)), eta = 2 sum_j exp(-2 pi^2 variance j^2), rounded up."""
    eta = 2 * math.exp(-2 * math.pi**2 * variance)
    eta = eta / -math.expm1(-2 * math.pi**2 * variance)  # geometric bound of the later terms
    return (math.log1p(eta) - math.log1p(-eta)) * conversion.UP


@lru_cache(maxsize=4096)
def simple_pair(leaf: Event) -> DominatingPair | None:
    """The symmetric dominating pair of an additive or declared leaf; None if there is none."""
    match leaf:
        case PureEvent(epsilon):
            return _response(round_up(epsilon) * conversion.UP, 0.0)
        case ApproxEvent(epsilon, delta):
            return _response(round_up(epsilon) * conversion.UP, round_up(delta) * conversion.UP)
        case GroupEvent(size, ApproxEvent(epsilon, delta)):
            grown = conversion.group(float(epsilon), delta=float(delta), size=size)
            return _response(grown[0] * conversion.UP, grown[1])
        case GdpEvent(mu):
            return GaussianPair(float(mu) * conversion.UP)
        case LaplaceEvent(scale):
            return LaplacePair(round_up(1 / scale) * conversion.UP)
        case DiscreteLaplaceEvent(scale, shift):
            return LatticeLaplacePair(round_up(1 / scale) * conversion.UP, shift)
        case TruncatedLaplaceEvent(scale, shift, bound):
            return LatticeLaplacePair(float(1 / scale), shift, bound)
        case BoundedRangeEvent(epsilon):
            return BoundedRangePair(round_up(epsilon) * conversion.UP)
        case DiscreteGaussianEvent(variance, shift_squared, 1) if variance <= _LARGEST_LATTICE:
            return lattice_gaussian(float(variance), math.isqrt(int(shift_squared)))
        case _:
            return None


def _response(epsilon: float, delta: float) -> AtomPair:
    """Randomized response with an obvious failure: the worst (epsilon, delta)-DP mechanism."""
    # Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3; Murtagh, Vadhan 2018.
    stay = 1 - delta
    high = stay / (1 + math.exp(-epsilon))
    low = stay * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    if epsilon == 0:
        return AtomPair(np.array([0.0]), np.array([stay]), delta)
    return AtomPair(np.array([-epsilon, epsilon]), np.array([low, high]), delta)


def lattice_gaussian(variance: float, shift: int) -> AtomPair:
    """The discrete Gaussian against itself moved by ``shift``, term by term."""
    # Theorem: output y has loss (s^2 - 2 s y)/(2 variance); the noise is log-concave, so smaller
    #   shifts give smaller profiles. Terms beyond 38 sigma are below 1e-313 and are counted as
    #   an infinite loss.
    # Source: Canonne, Kamath, Steinke 2020, Theorem 7 (K36).
    reach = math.ceil(38 * math.sqrt(variance))
    y = np.arange(reach, -reach - 1, -1, dtype=np.float64)
    weight = np.exp(-y * y / (2 * variance))
    loss = shift * (shift - 2 * y) / (2 * variance)
    return AtomPair(loss, weight / weight.sum(), conversion.UNDERFLOW)
