"""Laplace and Gaussian noise on whole numbers and on reals.

Whole numbers get integer noise and stay whole. Reals get the ideal continuous noise, and the exact
sum is rounded to a public grid, a power of two far below the noise: post-processing, so nothing is
added to the sensitivity and no low-order bit of the input survives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import Relation
from discreet.mechanisms import divergence
from discreet.mechanisms.mechanism import Certificate, Check, Mechanism
from discreet.mechanisms.sensitivity import Lattice
from discreet.mechanisms.values import Released, check_range, clamped, clamped_sum, read
from discreet.noise.bits import Bits, source_of
from discreet.noise.gaussian import DiscreteGaussian, RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace
from discreet.noise.law import Floats, Ints

# Reals are released in pieces, so that a large release needs little memory beyond its result.
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OnIntegers:
    """Integer noise for whole numbers."""

    noise: DiscreteLaplace | DiscreteGaussian | RoundedGaussian
    event: events.DiscreteLaplace | events.DiscreteGaussian | events.GaussianNoise
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

    def add(self, whole: Ints, bits: Bits) -> Ints:
        """The noisy values."""
        if isinstance(self.noise, RoundedGaussian):
            return clamped_sum(whole, self.noise.add(np.zeros(len(whole)), bits))
        return clamped_sum(whole, self.noise.sample(len(whole), bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGrid:
    """Continuous noise, rounded to multiples of a power of two."""

    noise: RoundedLaplace | RoundedGaussian
    event: events.LaplaceNoise | events.GaussianNoise

    @property
    def step(self) -> float:
        """Distance of neighbouring outputs."""
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

    def add(self, reals: Floats, bits: Bits) -> Floats:
        """The noisy values."""
        check_range(reals, self.step)
        out = np.empty(len(reals))
        for start in range(0, len(reals), _PIECE):
            piece = slice(start, start + _PIECE)
            steps = clamped(self.noise.add(reals[piece], bits))
            np.ldexp(steps.astype(np.float64), self.noise.exponent, out=out[piece])
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive(Mechanism):
    """Independent noise on each coordinate. Made by `laplace` and `gaussian`."""

    name: str
    relation: Relation
    integers: OnIntegers | None
    """None when the sensitivity is not whole: then whole numbers are released as reals."""
    grid: OnGrid | None
    """None for a mechanism that is restricted to whole numbers."""
    target: tuple[Fraction, Fraction] | None = None
    """The (epsilon, delta) it was calibrated for, if any."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs, on whichever lattice the input asks for."""
        branches = tuple(part.event for part in self._parts)
        event = branches[0] if len(branches) == 1 else events.Either(branches)
        return Guarantee(event, self.relation)

    @property
    def _parts(self) -> tuple[OnIntegers | OnGrid, ...]:
        return tuple(part for part in (self.integers, self.grid) if part is not None)

    @property
    def std(self) -> float:
        """Standard deviation of the noise (the larger one, where whole numbers differ)."""
        return max(part.std for part in self._parts)

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``level``, symmetric.

        ``released - high <= truth <= released - low`` then holds with that probability.
        """
        inside = float(probability("level", level, zero=False, one=False))
        high = max(divergence.half_width(part.noise, inside) * part.step for part in self._parts)
        return -high, high

    def release(self, value: ArrayLike, *, bits: Bits | None = None) -> Released:
        """Add noise: integers in, integers out; reals come back as multiples of the grid.

        ``bits`` is for tests and simulations; the default is the operating system's randomness.
        """
        values = read(value)
        source = source_of(bits)
        if values.whole is not None and self.integers is not None:
            return values.restore(self.integers.add(values.whole, source))
        if self.grid is None:
            raise OutOfDomain(
                f"This {self.name} mechanism takes integers; use on='reals' for real values."
            )
        return values.restore(self.grid.add(values.doubles, source))

    def certify(self) -> Certificate:
        """Recompute the divergence of neighbouring outputs from the exact law of the noise.

        On integers by summing the mass function over the lattice (or, for very large noise, from
        exact tails), on the grid by integrating the density; both against the accountant's claim.
        """
        checks = [self._check(part, *point) for part in self._parts for point in self._points()]
        certificate = Certificate(
            mechanism=self.name, guarantee=self.guarantee, checks=tuple(checks)
        )
        return certificate.demand()

    def _check(self, part: OnIntegers | OnGrid, epsilon: float, delta: float | None) -> Check:
        exact, route = divergence.exact_delta(part.event, epsilon)
        return Check(
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


def needs_integers(integers: OnIntegers | None, on: Lattice | None) -> OnIntegers | None:
    """Refuse a mechanism for integers whose sensitivity is not whole."""
    if on == "integers" and integers is None:
        raise InvalidArgument("on='integers' needs a whole sensitivity (squared, for Gaussian).")
    return integers
