"""The Laplace and the Gaussian mechanism, on whole numbers and on reals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.calibrate import calibrate, smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number, root_down
from discreet.core._validate import granularity_exponent, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._inputs import (
    Domain,
    Norm,
    Released,
    add_clamped,
    check_domain,
    check_range,
    clamp_steps,
    l1,
    l2_squared,
    read,
    whole,
    whole_square,
)
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Additive noise ───────────────────────────────────────────────────────────────────────────────
# Laplace and Gaussian noise on whole numbers and on reals.
#
# Whole numbers get integer noise and stay whole. Reals get the ideal continuous noise, and the
# exact sum is rounded to a public grid, a power of two far below the noise: post-processing, so
# nothing is added to the sensitivity and no low-order bit of the input survives.


# Reals are released in pieces, so that a large release needs little memory beyond its result.
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerMechanism:
    """Integer noise for whole numbers."""

    noise: DiscreteLaplace | DiscreteGaussian | RoundedGaussian
    event: events.DiscreteLaplaceEvent | events.DiscreteGaussianEvent | events.GaussianEvent
    step: ClassVar[float] = 1.0

    @property
    def label(self) -> str:
        """Where the outputs lie, and the noise scale there."""
        if isinstance(self.noise, DiscreteLaplace):
            return f"integers with scale {float(self.noise.scale):.9g}"
        return f"integers with sigma {math.sqrt(self.noise.square):.9g}"

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        if isinstance(self.noise, RoundedGaussian):
            return math.sqrt(self.noise.square + Fraction(1, 12))
        return self.noise.std

    def add(self, whole: Ints, rng: RandomSource) -> Ints:
        """The noisy values."""
        if isinstance(self.noise, RoundedGaussian):
            return add_clamped(whole, self.noise.add(np.zeros(len(whole)), rng))
        return add_clamped(whole, self.noise.sample(len(whole), rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMechanism:
    """Continuous noise, rounded to multiples of a power of two."""

    noise: RoundedLaplace | RoundedGaussian
    event: events.LaplaceEvent | events.GaussianEvent

    @property
    def step(self) -> float:
        """Distance of neighboring outputs."""
        return math.ldexp(1.0, self.noise.exponent)

    @property
    def label(self) -> str:
        """Where the outputs lie, and the noise scale there."""
        name = "scale" if isinstance(self.noise, RoundedLaplace) else "sigma"
        return f"reals in steps of {self.step:.3g} with {name} {self.scale:.9g}"

    @property
    def scale(self) -> float:
        """Laplace scale, or Gaussian sigma."""
        if isinstance(self.noise, RoundedLaplace):
            return float(self.noise.scale) * self.step
        return math.sqrt(self.noise.square) * self.step

    @property
    def std(self) -> float:
        """Standard deviation of the noise (rounding adds less than a 10**-12 part)."""
        return self.scale * (math.sqrt(2) if isinstance(self.noise, RoundedLaplace) else 1.0)

    def add(self, reals: Floats, rng: RandomSource) -> Floats:
        """The noisy values."""
        check_range(reals, self.step)
        out = np.empty(len(reals))
        for start in range(0, len(reals), _PIECE):
            piece = slice(start, start + _PIECE)
            steps = clamp_steps(self.noise.add(reals[piece], rng))
            np.ldexp(steps.astype(np.float64), self.noise.exponent, out=out[piece])
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveMechanism(Mechanism):
    """Independent noise on each coordinate. Made by `laplace` and `gaussian`."""

    name: str
    relation: NeighboringRelation
    integers: IntegerMechanism | None
    """None when the sensitivity is not whole: then whole numbers are released as reals."""
    reals: RealMechanism | None
    """None for a mechanism that is restricted to whole numbers."""
    target: tuple[Fraction, Fraction] | None = None
    """The (epsilon, delta) it was calibrated for, if any."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs, on whichever lattice the input asks for."""
        branches = tuple(part.event for part in self._parts)
        event = branches[0] if len(branches) == 1 else events.EitherEvent(branches)
        return Guarantee(event, self.relation)

    @property
    def _parts(self) -> tuple[IntegerMechanism | RealMechanism, ...]:
        return tuple(part for part in (self.integers, self.reals) if part is not None)

    @property
    def std(self) -> float:
        """Standard deviation of the noise (the larger one, where whole numbers differ)."""
        return max(part.std for part in self._parts)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``confidence``, symmetric.

        ``released - high <= truth <= released - low`` then holds with that probability.
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = max(divergence.half_width(part.noise, inside) * part.step for part in self._parts)
        return -high, high

    def release(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Released:
        """Add noise: integers in, integers out; reals come back as multiples of the grid.

        ``rng`` is for tests and simulations; the default is the operating system's randomness.
        """
        values = read(value)
        source = resolve_rng(rng)
        if values.whole is not None and self.integers is not None:
            return values.restore(self.integers.add(values.whole, source))
        if self.reals is None:
            raise OutOfDomain(
                f"This {self.name} mechanism takes integers; use on='reals' for real values."
            )
        return values.restore(self.reals.add(values.doubles, source))

    def certify(self) -> Certificate:
        """Recompute the divergence of neighboring outputs from the exact law of the noise.

        On integers by summing the mass function over the lattice (or, for very large noise, from
        exact tails), on the grid by integrating the density; both against the accountant's claim.
        """
        checks = [self._check(part, *point) for part in self._parts for point in self._points()]
        certificate = Certificate(
            mechanism=self.name, guarantee=self.guarantee, checks=tuple(checks)
        )
        return certificate.demand()

    def _check(
        self, part: IntegerMechanism | RealMechanism, epsilon: float, delta: float | None
    ) -> CertificateCheck:
        exact, route = divergence.exact_delta(part.event, epsilon)
        return CertificateCheck(
            part=part.label,
            epsilon=epsilon,
            claimed=Guarantee(part.event, self.relation).delta(epsilon) if delta is None else delta,
            exact=exact,
            route=route,
        )

    def _points(self) -> list[tuple[float, float | None]]:
        """Where to compare: at the target if there is one, and along the curve."""
        if self.target is None:
            worth = self.guarantee.epsilon(1e-6)
            return [(worth * share, None) for share in (0.0, 0.5, 1.0)]
        epsilon, delta = map(float, self.target)
        return [(0.0, None), (epsilon / 2, None), (epsilon, delta)]

    def __repr__(self) -> str:
        on = ", or ".join(part.label for part in self._parts)
        return f"{self.name}({self._worth()}; std {self.std:.4g}; on {on})"

    def _worth(self) -> str:
        if self.target is None:
            return f"rho {float(rho_of(self.guarantee.event)):.4g}, {self.relation.value}"
        epsilon, delta = self.target
        also = f", delta {float(delta):g}" if delta else ""
        return f"epsilon {float(epsilon):g}{also}, {self.relation.value}"


def needs_integers(
    integers: IntegerMechanism | None, domain: Domain | None
) -> IntegerMechanism | None:
    """Refuse a mechanism for integers whose sensitivity is not whole."""
    if domain == "integers" and integers is None:
        raise InvalidArgument(
            "domain='integers' needs a whole sensitivity (squared, for Gaussian)."
        )
    return integers


# ── The Gaussian mechanism ───────────────────────────────────────────────────────────────────────
# The Gaussian mechanism.


# 16 deviations before the range of a release is left, and 24 before 64 bits are.
LARGEST_SQUARE = 1 << 116


def gaussian(  # noqa: PLR0913 - four ways to say how much, each named
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    sigma: Number | None = None,
    norm: Norm = "l2",
    dimension: int | None = None,
    domain: Domain | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AdditiveMechanism:
    """Gaussian noise on a number or a vector of bounded L2 sensitivity.

    Give one of: ``epsilon`` and ``delta`` (exact calibration, no classical formula), ``rho``
    (zCDP), ``mu`` (Gaussian DP), or ``sigma`` itself. Reals get the analytic sigma and are rounded
    to ``granularity``. Whole numbers get the discrete Gaussian with the smallest sigma that its
    own exact
    law certifies: it is not exactly Gaussian DP, so the analytic sigma would be a claim, not a
    fact. For ``mu`` they get rounded continuous noise, which is exactly Gaussian DP.
    ``domain`` restricts the mechanism to "integers" or "reals".

    Theorem: (epsilon, delta)-DP, rho-zCDP or mu-GDP under ``relation``, as asked.
    Proof: reals by the exact curve of Balle and Wang, rounding being post-processing; integers by
        the divergence of the lattice law; zCDP by Canonne et al., Theorem 4. See theory/mechanisms.
    Source: Balle, Wang 2018; Canonne, Kamath, Steinke 2020; Dong, Roth, Su 2022. B18, C17, K8, K36.
    Needs: all numbers positive and finite, 0 < delta < 1.

    >>> m = gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    >>> m.guarantee.delta(1.0) <= 1e-6
    True
    """
    check_domain(domain)
    square = l2_squared(sensitivity, norm=norm, dimension=dimension)
    moved = None if domain == "reals" else whole_square(square)
    target = _approx_target(epsilon, delta)
    if sum(given is not None for given in (target, rho, mu, sigma)) != 1:
        raise InvalidArgument("gaussian takes epsilon with delta, or rho, or mu, or sigma.")
    integers: IntegerMechanism | None = None
    if target is not None:
        relative = Fraction(gaussian_sigma(float(target[0]), delta=float(target[1]))) ** 2
        variance = square * relative
        if moved is not None:
            integers = _certified(moved, variance, target)
    elif mu is not None:
        variance = square / positive("mu", mu) ** 2
        if moved is not None:
            event = events.GaussianEvent(1 / positive("mu", mu))
            integers = IntegerMechanism(noise=_rounded(variance, 0), event=event)
    else:
        variance = _variance(square, rho=rho, sigma=sigma)
        if moved is not None:
            integers = _discrete(variance, moved)
    return AdditiveMechanism(
        name="gaussian",
        relation=relation,
        integers=needs_integers(integers, domain),
        reals=None if domain == "integers" else _real_gaussian(variance, square, granularity),
        target=target,
    )


def _approx_target(
    epsilon: Number | None, delta: Number | None
) -> tuple[Fraction, Fraction] | None:
    if epsilon is None and delta is None:
        return None
    if epsilon is None or delta is None:
        raise InvalidArgument("gaussian takes epsilon together with delta.")
    return positive("epsilon", epsilon), probability("delta", delta, zero=False, one=False)


def _variance(square: Fraction, *, rho: Number | None, sigma: Number | None) -> Fraction:
    if rho is not None:
        return square / (2 * positive("rho", rho))
    return positive("sigma", sigma) ** 2


def _real_gaussian(
    variance: Fraction, square: Fraction, granularity: Number | None
) -> RealMechanism:
    exponent = granularity_exponent(granularity, root_down(variance))
    return RealMechanism(
        noise=_rounded(variance / Fraction(4) ** exponent, exponent),
        event=events.GaussianEvent(root_down(variance / square)),
    )


def _rounded(square: Fraction, exponent: int) -> RoundedGaussian:
    if square > LARGEST_SQUARE:
        raise InvalidArgument("sigma must be at most 2**58 steps: use a coarser grid.")
    return RoundedGaussian(square, exponent)


def _discrete(variance: Fraction, moved: int) -> IntegerMechanism:
    # At most `moved` coordinates of an integer vector can change: the dimension is bounded by it.
    event = events.DiscreteGaussianEvent(variance, Fraction(moved), moved)
    return IntegerMechanism(noise=DiscreteGaussian(square=variance), event=event)


def _certified(
    moved: int, analytic: Fraction, target: tuple[Fraction, Fraction]
) -> IntegerMechanism:
    """The discrete Gaussian with the smallest sigma whose own law keeps (epsilon, delta)."""
    sigma = smallest_scale(
        lambda sigma: _discrete(sigma**2, moved).event,
        target=(float(target[0]), float(target[1])),
        start=root_down(analytic),
    )
    return _discrete(sigma**2, moved)


# ── The Laplace mechanism ────────────────────────────────────────────────────────────────────────


def laplace(  # noqa: PLR0913 - each has a default and a name
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number = 0,
    scale: Number | None = None,
    norm: Norm = "l1",
    dimension: int | None = None,
    domain: Domain | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> AdditiveMechanism:
    """Laplace noise on a number or a vector of bounded L1 sensitivity.

    Give ``epsilon``, or the noise ``scale`` itself. A ``delta`` buys a little less noise. A
    sensitivity in another norm takes the ``dimension`` of the vector. Whole numbers get discrete
    Laplace noise if the sensitivity is whole; reals are rounded to ``granularity``, a power of two
    (by default far below the noise). ``domain`` restricts the mechanism to "integers" or "reals".

    Theorem: the release is epsilon-DP under ``relation`` with epsilon = sensitivity / scale; with a
        delta, (epsilon, delta)-DP by the exact profile, whose worst case is one coordinate.
    Proof: the density (or mass) at y is proportional to exp(-|y - x|_1 / scale), and the triangle
        inequality bounds the ratio by exp(|x - x'|_1 / scale). The noise is sampled exactly and
        rounding the exact sum to the grid is post-processing. See theory/mechanisms.
    Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. B16, A2.
    Needs: sensitivity, epsilon and scale positive and finite; scale at most 2**50 grid steps.

    >>> laplace(sensitivity=1, epsilon=0.5).guarantee.epsilon()
    0.5
    """
    check_domain(domain)
    moved = l1(sensitivity, norm=norm, dimension=dimension)
    shift = None if domain == "reals" else whole(moved)
    if (epsilon is None) == (scale is None):
        raise InvalidArgument("laplace takes either epsilon or scale.")
    allowed = probability("delta", delta, one=False)
    if scale is not None:
        width = integer_width = positive("scale", scale)
        target = (moved / width, Fraction(0))
    else:
        target = (positive("epsilon", epsilon), allowed)
        width = _width("laplace", moved, target)
        integer_width = width if shift is None else _width("discrete laplace", moved, target)
    integers = None
    if shift is not None:
        event = events.DiscreteLaplaceEvent(integer_width, shift)
        integers = IntegerMechanism(noise=DiscreteLaplace(integer_width), event=event)
    return AdditiveMechanism(
        name="laplace",
        relation=relation,
        integers=needs_integers(integers, domain),
        reals=None if domain == "integers" else _real_laplace(width, moved, granularity),
        target=target,
    )


def _width(
    family: Literal["laplace", "discrete laplace"],
    moved: Fraction,
    target: tuple[Fraction, Fraction],
) -> Fraction:
    """The smallest certified scale: sensitivity / epsilon, or less if a delta is allowed."""
    epsilon, delta = target
    if delta == 0:
        return moved / epsilon
    return calibrate(family, sensitivity=moved, target=(float(epsilon), float(delta)))


def _real_laplace(width: Fraction, moved: Fraction, granularity: Number | None) -> RealMechanism:
    exponent = granularity_exponent(granularity, width)
    noise = RoundedLaplace(width / Fraction(2) ** exponent, exponent)
    return RealMechanism(noise=noise, event=events.LaplaceEvent(width / moved))
