"""Laws on the integers as arrays, and what a mechanism may do to them.

A `Lattice` lists the masses of consecutive integers; the mass that is not listed is bounded, so
that everything derived from it can be bounded too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Distribution

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

UNSEEN = 1e-18
"""Mass that may stay unlisted when a tail is cut: far below every claim that is audited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeDistribution:
    """Masses of the integers ``start, start + 1, ...``; at most ``missing`` lies elsewhere.

    ``error`` bounds the total absolute error of the listed masses.
    """

    start: int
    mass: Floats
    missing: float = 0.0
    error: float = 0.0

    def __post_init__(self) -> None:
        mass = np.array(self.mass, dtype=np.float64)
        if mass.ndim != 1 or mass.size == 0:
            raise InvalidArgument(f"mass must be a non-empty vector, got shape {mass.shape}.")
        if not np.all(mass >= 0) or not (self.missing >= 0 and self.error >= 0):
            raise InvalidArgument("mass, missing and error must not be negative or NaN.")
        total = float(mass.sum())
        if not 1 - self.missing - self.error - 1e-9 <= total <= 1 + 1e-9:
            raise InvalidArgument(f"mass must sum to 1 up to missing, got {total}.")
        mass.setflags(write=False)
        object.__setattr__(self, "mass", mass)

    @property
    def stop(self) -> int:
        """One past the last listed integer."""
        return self.start + self.mass.size

    @property
    def support(self) -> Ints:
        """The listed integers."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def pmf(self, k: Ints | int) -> Floats:
        """Mass at each integer (zero where nothing is listed)."""
        index = np.asarray(k, dtype=np.int64) - self.start
        inside = (index >= 0) & (index < self.mass.size)
        return np.where(inside, self.mass[np.clip(index, 0, self.mass.size - 1)], 0.0)

    def cdf(self, k: Ints | int) -> Floats:
        """Listed mass at or below each integer."""
        sums = np.concatenate(([0.0], np.cumsum(self.mass)))
        index = np.asarray(k, dtype=np.int64) - self.start + 1
        return np.asarray(sums[np.clip(index, 0, self.mass.size)], dtype=np.float64)

    def sf(self, k: Ints | int) -> Floats:
        """Listed mass above each integer, summed from the far end (no cancellation)."""
        sums = np.concatenate((np.cumsum(self.mass[::-1])[::-1], [0.0]))
        index = np.asarray(k, dtype=np.int64) - self.start + 1
        return np.asarray(sums[np.clip(index, 0, self.mass.size)], dtype=np.float64)

    def shift(self, by: int) -> LatticeDistribution:
        """The law of X + by."""
        return replace(self, start=self.start + by)

    def clamp(self, lower: int, upper: int) -> LatticeDistribution:
        """The law of X moved to the nearest point of [lower, upper].

        Every outcome is listed afterwards; the mass that was missing is an error of the masses.
        """
        k = np.clip(self.support, lower, upper) - lower
        mass = np.zeros(upper - lower + 1)
        np.add.at(mass, k, self.mass)
        return LatticeDistribution(start=lower, mass=mass, error=self.missing + self.error)

    def condition(self, lower: int, upper: int) -> LatticeDistribution:
        """The law of X given lower <= X <= upper (noise redrawn until it falls inside)."""
        k = np.arange(lower, upper + 1, dtype=np.int64)
        mass = self.pmf(k)
        total = float(mass.sum())
        if total <= 0:
            raise InvalidArgument("the condition has no listed mass: widen lower..upper.")
        # Relative to the total: what is missed inside the range, once per mass and once per total.
        inside = self.error + (0 if lower >= self.start and upper < self.stop else self.missing)
        return LatticeDistribution(
            start=lower, mass=mass / total, error=min(1.0, 2 * inside / total)
        )

    def plus(self, other: LatticeDistribution) -> LatticeDistribution:
        """The law of the sum of two independent variables."""
        return LatticeDistribution(
            start=self.start + other.start,
            mass=np.convolve(self.mass, other.mass),
            missing=self.missing + other.missing,
            error=self.error + other.error,
        )


def point(value: int) -> LatticeDistribution:
    """All mass on one integer."""
    return LatticeDistribution(start=value, mass=np.ones(1))


def discrete_laplace(scale: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """P(k) = tanh(1/(2 scale)) exp(-|k|/scale), cut where both tails together are below unseen.

    Proof: P(|X| > B) = 2 r^(B+1) / (1 + r) <= 2 exp(-(B+1)/scale), r = exp(-1/scale).
    """
    _positive("scale", scale)
    radius = math.ceil(scale * math.log(2 / unseen))
    k = np.abs(np.arange(-radius, radius + 1))
    mass = math.tanh(0.5 / scale) * np.exp(-k / scale)
    return LatticeDistribution(start=-radius, mass=mass, missing=unseen)


def geometric(scale: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """P(k) = (1 - r) r^k on k >= 0, r = exp(-1/scale): the lattice form of exponential noise."""
    _positive("scale", scale)
    radius = math.ceil(scale * math.log(1 / unseen))
    mass = -math.expm1(-1 / scale) * np.exp(-np.arange(radius + 1) / scale)
    return LatticeDistribution(start=0, mass=mass, missing=unseen)


def discrete_gaussian(sigma: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """P(k) proportional to exp(-k^2 / (2 sigma^2)), cut where the tails are below unseen.

    Proof: P(|X| >= B) <= 2 exp(-B^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020, Cor. 26).
    """
    _positive("sigma", sigma)
    radius = math.ceil(sigma * math.sqrt(2 * math.log(2 / unseen))) + 1
    mass = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return LatticeDistribution(start=-radius, mass=mass / mass.sum(), missing=unseen)


def listed(law: Distribution, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """List a law of `discreet.noise` between two integers outside which less than unseen lies."""
    first, last = law.support
    low = high = 1
    while -low > first and float(law.cdf(-low - 1)) > unseen / 2:
        low *= 2
    while high < last and float(law.sf(high)) > unseen / 2:
        high *= 2
    k = np.arange(int(max(first, -low)), int(min(last, high)) + 1, dtype=np.int64)
    missing = 0.0 if k[0] == first and k[-1] == last else unseen
    return LatticeDistribution(start=int(k[0]), mass=law.pmf(k), missing=missing)


def _positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InvalidArgument(f"{name} must be positive and finite, got {value}.")
