"""Distributions on the integers as arrays, for exact audits.

A `LatticeDistribution` lists the probabilities of consecutive integers. The probability that is not
listed is bounded, so that everything derived from it can be bounded too.
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
    """Probabilities of consecutive integers.

    Args:
        start: First listed integer.
        mass: Probabilities of `start`, `start + 1` and so on.
        missing: Upper bound of the probability of integers that are not listed.
        error: Upper bound of the total absolute error of the listed probabilities.

    Raises:
        InvalidArgument: The probabilities are negative, or do not sum to 1 up to `missing` and
            `error`.

    Examples:
        >>> from discreet.audit.lattice_distribution import LatticeDistribution
        >>> LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25]).stop
        2
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
        """Return the probability of each integer.

        Args:
            k: One or more integers.

        Returns:
            The probabilities, zero where nothing is listed.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25]).pmf([0, 5]).tolist()
            [0.5, 0.0]
        """
        index = np.asarray(k, dtype=np.int64) - self.start
        inside = (index >= 0) & (index < self.mass.size)
        return np.where(inside, self.mass[np.clip(index, 0, self.mass.size - 1)], 0.0)

    def cdf(self, k: Ints | int) -> Floats:
        """Return the listed probability at or below each integer.

        Args:
            k: One or more integers.

        Returns:
            The probabilities.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25]).cdf([-1, 0]).tolist()
            [0.25, 0.75]
        """
        sums = np.concatenate(([0.0], np.cumsum(self.mass)))
        index = np.asarray(k, dtype=np.int64) - self.start + 1
        return np.asarray(sums[np.clip(index, 0, self.mass.size)], dtype=np.float64)

    def sf(self, k: Ints | int) -> Floats:
        """Return the listed probability above each integer.

        Args:
            k: One or more integers.

        Returns:
            The probabilities, summed from the far end so that small ones are accurate.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25]).sf([0, 1]).tolist()
            [0.25, 0.0]
        """
        sums = np.concatenate((np.cumsum(self.mass[::-1])[::-1], [0.0]))
        index = np.asarray(k, dtype=np.int64) - self.start + 1
        return np.asarray(sums[np.clip(index, 0, self.mass.size)], dtype=np.float64)

    def shift(self, by: int) -> LatticeDistribution:
        """Return the distribution of X + by.

        Args:
            by: Integer to add.

        Returns:
            The shifted distribution.

        Examples:
            >>> from discreet.audit import lattice_distribution
            >>> lattice_distribution.point(0).shift(3).start
            3
        """
        return replace(self, start=self.start + by)

    def clamp(self, lower: int, upper: int) -> LatticeDistribution:
        """Return the distribution of X clamped to an interval.

        Args:
            lower: Smallest value.
            upper: Largest value.

        Returns:
            The distribution on `lower` to `upper`. Probability that was missing becomes an error of
            the listed probabilities.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25]).clamp(0, 1).mass.tolist()
            [0.75, 0.25]
        """
        k = np.clip(self.support, lower, upper) - lower
        mass = np.zeros(upper - lower + 1)
        np.add.at(mass, k, self.mass)
        return LatticeDistribution(start=lower, mass=mass, error=self.missing + self.error)

    def condition(self, lower: int, upper: int) -> LatticeDistribution:
        """Return the distribution of X, given that it lies in an interval.

        This is noise that is redrawn until it falls inside.

        Args:
            lower: Smallest value.
            upper: Largest value.

        Returns:
            The conditional distribution.

        Raises:
            InvalidArgument: The interval has no listed probability.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> noise = LatticeDistribution(start=-1, mass=[0.25, 0.5, 0.25])
            >>> noise.condition(0, 1).mass.round(3).tolist()
            [0.667, 0.333]
        """
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
        """Return the distribution of the sum of two independent variables.

        Args:
            other: Distribution of the second variable.

        Returns:
            The distribution of the sum.

        Examples:
            >>> from discreet.audit.lattice_distribution import LatticeDistribution
            >>> coin = LatticeDistribution(start=0, mass=[0.5, 0.5])
            >>> coin.plus(coin).mass.tolist()
            [0.25, 0.5, 0.25]
        """
        return LatticeDistribution(
            start=self.start + other.start,
            mass=np.convolve(self.mass, other.mass),
            missing=self.missing + other.missing,
            error=self.error + other.error,
        )


def point(value: int) -> LatticeDistribution:
    """Create the distribution of a constant.

    Args:
        value: The integer that always occurs.

    Returns:
        The distribution.

    Examples:
        >>> from discreet.audit import lattice_distribution
        >>> lattice_distribution.point(7).pmf(7).item()
        1.0
    """
    return LatticeDistribution(start=value, mass=np.ones(1))


def discrete_laplace(scale: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """Create a discrete Laplace distribution.

    P(k) = tanh(1 / (2 scale)) exp(-|k| / scale).

    Args:
        scale: Scale of the distribution, above zero.
        unseen: Probability of both tails together that may stay unlisted.

    Returns:
        The distribution.

    Raises:
        InvalidArgument: `scale` is not positive and finite.

    Examples:
        >>> from discreet.audit import lattice_distribution
        >>> round(lattice_distribution.discrete_laplace(1).pmf(0).item(), 4)
        0.4621
    """
    # Proof: P(|X| > B) = 2 r^(B+1) / (1 + r) <= 2 exp(-(B+1)/scale), r = exp(-1/scale).
    _positive("scale", scale)
    radius = math.ceil(scale * math.log(2 / unseen))
    k = np.abs(np.arange(-radius, radius + 1))
    mass = math.tanh(0.5 / scale) * np.exp(-k / scale)
    return LatticeDistribution(start=-radius, mass=mass, missing=unseen)


def geometric(scale: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """Create a geometric distribution on 0, 1, 2 and so on.

    P(k) = (1 - r) r^k with r = exp(-1 / scale): exponential noise on the integers.

    Args:
        scale: Scale of the distribution, above zero.
        unseen: Probability of the tail that may stay unlisted.

    Returns:
        The distribution.

    Raises:
        InvalidArgument: `scale` is not positive and finite.

    Examples:
        >>> from discreet.audit import lattice_distribution
        >>> round(lattice_distribution.geometric(1).pmf(0).item(), 4)
        0.6321
    """
    _positive("scale", scale)
    radius = math.ceil(scale * math.log(1 / unseen))
    mass = -math.expm1(-1 / scale) * np.exp(-np.arange(radius + 1) / scale)
    return LatticeDistribution(start=0, mass=mass, missing=unseen)


def discrete_gaussian(sigma: float, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """Create a discrete Gaussian distribution.

    P(k) is proportional to exp(-k² / (2 sigma²)).

    Args:
        sigma: Parameter of the distribution, above zero.
        unseen: Probability of the tails that may stay unlisted.

    Returns:
        The distribution.

    Raises:
        InvalidArgument: `sigma` is not positive and finite.

    Examples:
        >>> from discreet.audit import lattice_distribution
        >>> round(lattice_distribution.discrete_gaussian(1).pmf(0).item(), 4)
        0.3989

    References:
        Canonne, Kamath and Steinke (2020).
    """
    # Proof: P(|X| >= B) <= 2 exp(-B^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020, Cor. 26).
    _positive("sigma", sigma)
    radius = math.ceil(sigma * math.sqrt(2 * math.log(2 / unseen))) + 1
    mass = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return LatticeDistribution(start=-radius, mass=mass / mass.sum(), missing=unseen)


def listed(law: Distribution, *, unseen: float = UNSEEN) -> LatticeDistribution:
    """List the probabilities of a noise distribution of discreet.

    Args:
        law: Distribution with `support`, `pmf`, `cdf` and `sf`, for example `mechanism.part.noise`
            of a Laplace mechanism on integers.
        unseen: Probability of the tails that may stay unlisted.

    Returns:
        The distribution as an array.

    Examples:
        >>> import discreet
        >>> noise = discreet.laplace(sensitivity=1, epsilon=1).part.noise
        >>> listed = discreet.audit.lattice_distribution.listed(noise)
        >>> round(listed.pmf(0).item(), 4)
        0.4621
    """
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
