"""Divergences and intervals from the exact laws, by routes the accountant does not use."""

from __future__ import annotations

import math
import warnings
from functools import singledispatch

import numpy as np
import scipy
from scipy import special

from discreet.core import events
from discreet.core.errors import Unsupported
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.distribution import Distribution, Floats
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace

# Lattices up to this size are summed point by point.
_LARGEST_SUM = 1 << 20
_LARGEST_SIGMA = 4096.0
# Squared shifts up to this have few enough splits into squares to try all.
_LARGEST_SPLIT = 12
_APART = 1 << 20


def half_width(noise: object, confidence: float) -> float:
    """The smallest w with P(|noise| <= w) >= level, in steps."""
    if isinstance(noise, RoundedLaplace):
        return -float(noise.scale) * math.log1p(-confidence) + 0.5
    if isinstance(noise, RoundedGaussian):
        return float(special.ndtri((1 + confidence) / 2)) * math.sqrt(noise.square) + 0.5
    if isinstance(noise, Distribution):
        return float(max(map(abs, noise.interval(confidence))))
    raise Unsupported(f"No interval is known for {type(noise).__name__}.")


@singledispatch
def exact_delta(event: events.Event, epsilon: float) -> tuple[float, str]:
    """The hockey-stick divergence of neighboring outputs at ``epsilon``, and how it was found."""
    raise Unsupported(
        f"No exact law is known for {type(event).__name__.removesuffix('Event')} "
        f"(epsilon={epsilon:g})."
    )


@exact_delta.register
def _(event: events.DiscreteLaplaceEvent, epsilon: float) -> tuple[float, str]:
    law = DiscreteLaplace(event.scale)
    reach = 60 * math.ceil(event.scale) + event.shift
    if reach <= _LARGEST_SUM:
        return lattice_delta(law, event.shift, epsilon, reach)
    crossing = (event.shift - epsilon * float(event.scale)) / 2
    return half_line_delta(law, event.shift, epsilon, [crossing])


@exact_delta.register
def _(event: events.DiscreteGaussianEvent, epsilon: float) -> tuple[float, str]:
    law = DiscreteGaussian(square=event.variance)
    total = math.floor(event.shift_squared)
    splits: list[tuple[int, ...]]
    if event.dimension == 1:
        splits = [(math.isqrt(total),)]
    elif total <= _LARGEST_SPLIT:
        splits = partitions(total)
    else:
        # Too many to try: the coarsest and the finest lattice of losses.
        splits = [(math.isqrt(total),), (1,) * min(total, 64)]
    if law.sigma <= _LARGEST_SIGMA:
        worst = max(_shifted_gaussian(law, shifts, epsilon) for shifts in splits)
        return worst, f"sum over the lattice, {len(splits)} split(s) of the shift"
    shift = math.isqrt(total)
    crossing = shift / 2 - epsilon * float(law.square) / shift
    return half_line_delta(law, shift, epsilon, [crossing])


@exact_delta.register
def _(event: events.TruncatedLaplaceEvent, epsilon: float) -> tuple[float, str]:
    law = BoundedDiscreteLaplace(event.scale, lower=-event.bound, upper=event.bound)
    reach = event.bound + event.shift
    if reach <= _LARGEST_SUM:
        return lattice_delta(law, event.shift, epsilon, reach)
    edge = float(event.shift - event.bound - 1)  # the last output that the neighbor cannot have
    crossing = (event.shift - epsilon * float(event.scale)) / 2
    return half_line_delta(law, event.shift, epsilon, [edge, crossing])


@exact_delta.register
def _(event: events.LaplaceEvent, epsilon: float) -> tuple[float, str]:
    rate = 1 / float(event.scale)

    def excess(x: float) -> float:
        gap = min(0.0, epsilon - rate * (abs(x - 1) - abs(x)))
        return -math.expm1(gap) * math.exp(-rate * abs(x)) * rate / 2

    # From where the neighbor's density is the larger one by e^epsilon there is no excess.
    end = (1 - epsilon / rate) / 2
    pieces = ((-60 / rate, 0.0), (0.0, min(end, 60 / rate)))
    with warnings.catch_warnings():
        # It warns where more digits are asked for than doubles have.
        warnings.simplefilter("ignore", scipy.integrate.IntegrationWarning)
        total = sum(
            scipy.integrate.quad(excess, a, b, limit=400, epsabs=1e-17, epsrel=1e-12)[0]
            for a, b in pieces
            if end > 0
        )
    return total, "integral of the density"


@exact_delta.register
def _(event: events.GaussianEvent, epsilon: float) -> tuple[float, str]:
    sigma = float(event.sigma)
    # The density ratio exceeds e^epsilon exactly below this point.
    end = 0.5 - epsilon * sigma**2

    def excess(x: float) -> float:
        ratio = epsilon + (2 * x - 1) / (2 * sigma**2)
        return -math.expm1(ratio) * math.exp(-((x / sigma) ** 2) / 2)

    total, _ = scipy.integrate.quad(
        excess, end - 12 * sigma, end, limit=400, epsabs=0, epsrel=1e-10
    )
    return total / (sigma * math.sqrt(2 * math.pi)), "integral of the density"


def lattice_delta(law: Distribution, shift: int, epsilon: float, reach: int) -> tuple[float, str]:
    """Sum ``max(0, p(k) - e^epsilon p(k - shift))`` over the lattice; tails count in full."""
    k = np.arange(-reach, reach + 1)
    with np.errstate(over="ignore"):  # what a neighbor hides completely has no excess
        excess = law.pmf(k) - np.exp(epsilon + law.log_pmf(k - shift))
    tails = float(law.cdf(-reach - 1) + law.sf(reach))
    return math.fsum(excess[excess > 0]) + tails, "sum over the lattice"


def half_line_delta(
    law: Distribution, shift: int, epsilon: float, crossings: list[float]
) -> tuple[float, str]:
    """The divergence of a log-concave law: the worst set is a half-line, near a crossing."""
    ends = np.concatenate([math.floor(c) + np.arange(-8.0, 9.0) for c in crossings])
    hidden = np.exp(np.minimum(epsilon + _log_cdf(law, ends - shift), 0.0))
    gap = law.cdf(ends) - hidden
    # An exponent is a double to 2**-52: what that moves is rounding.
    gap[gap <= law.cdf(ends) * (1 + abs(epsilon)) * 2.0**-50] = 0.0
    return max(0.0, float(gap.max())), "tails of the lattice"


def _log_cdf(law: Distribution, k: Floats) -> Floats:
    """The logarithm of the tail below, also where the tail itself is no double any more."""
    with np.errstate(divide="ignore"):
        found: Floats = np.log(law.cdf(k))
    far = ~np.isfinite(found) & np.isfinite(law.log_pmf(k - _APART))
    if not far.any():
        return found
    if isinstance(law, DiscreteGaussian):
        found[far] = special.log_ndtr((k[far] + 0.5) / law.sigma)
        return found
    # Beyond both, masses fall by one factor a step: read over many steps, it is exact enough.
    mass = law.log_pmf(k[far])
    falls = (law.log_pmf(k[far] - _APART) - mass) / _APART
    found[far] = mass - np.log(-np.expm1(falls))
    return found


def partitions(total: int, largest: int | None = None) -> list[tuple[int, ...]]:
    """All ways to write ``total`` as a sum of positive squares, as the roots."""
    if total == 0:
        return [()]
    top = math.isqrt(total) if largest is None else min(largest, math.isqrt(total))
    return [(a, *rest) for a in range(top, 0, -1) for rest in partitions(total - a * a, a)]


def _shifted_gaussian(law: DiscreteGaussian, shifts: tuple[int, ...], epsilon: float) -> float:
    """The divergence for one integer shift vector: the loss depends on <shift, noise> only."""
    reach = math.ceil(12 * law.sigma) + 2
    base = law.pmf(np.arange(-reach, reach + 1))
    masses, unit = np.ones(1), 1
    if len(shifts) == 1:
        masses, unit = base, shifts[0]  # the places between have no mass
    for a in shifts if len(shifts) > 1 else ():
        spread = np.zeros(2 * reach * a + 1)
        spread[::a] = base
        masses = (
            np.maximum(scipy.signal.fftconvolve(masses, spread), 0) if len(masses) > 1 else spread
        )
    places = (np.arange(len(masses)) - (len(masses) - 1) // 2) * float(unit)
    square = sum(a * a for a in shifts)
    # Loss of output y under shift s: (|y - s|^2 - |y|^2) / (2 sigma^2) = (s^2 - 2<s, y>) / (...).
    loss = (square - 2.0 * places) / (2 * float(law.square))
    worse = loss > epsilon
    excess = masses[worse] * -np.expm1(epsilon - loss[worse])
    return math.fsum(excess) + len(shifts) * 2 * float(law.sf(reach))
