"""An exact distribution on the integers: the oracle of tests, intervals and error forecasts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Enclosure, in_steps
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.noise.random_source import RandomSource

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Distribution(ABC):
    """A distribution on the integers, with its exact sampler.

    Every law has two routes to its cumulative probabilities: ``cdf`` in double precision from a
    closed form, and ``at_least`` by integer enclosures of any width. Tests hold them together.

    Examples:
        >>> import discreet
        >>> noise = discreet.laplace(sensitivity=1, epsilon=1).integers.noise
        >>> noise.mean, round(noise.std, 2)
        (0.0, 1.36)
    """

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest value (infinite where unbounded)."""

    @abstractmethod
    def log_pmf(self, k: ArrayLike) -> Floats:
        """Natural logarithm of the probability of ``k``.

        Examples:
            >>> round(float(noise.log_pmf(0)), 3)
            -0.772
        """

    @abstractmethod
    def cdf(self, k: ArrayLike) -> Floats:
        """Probability of a value of at most ``k``.

        Examples:
            >>> noise.cdf([-1, 0, 1]).round(3).tolist()
            [0.269, 0.731, 0.901]
        """

    @abstractmethod
    def sf(self, k: ArrayLike) -> Floats:
        """Probability of a value above ``k``, accurate in the upper tail.

        Examples:
            >>> round(float(noise.sf(20)), 12)
            5.54e-10
        """

    @abstractmethod
    def at_least(self, k: int, precision: int) -> Enclosure:
        """Integers that enclose ``P(X >= k) * 2**precision``."""

    @abstractmethod
    def moment(self, order: int) -> float:
        """``E[X**order]`` for orders 1 to 4.

        Examples:
            >>> round(noise.moment(2), 3)
            1.841
        """

    @abstractmethod
    def sample(self, size: int, rng: RandomSource) -> Ints:
        """``size`` independent draws, exactly from this law.

        Examples:
            >>> noise.sample(5, discreet.system_rng()).shape
            (5,)
        """

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of ``k``.

        Examples:
            >>> noise.pmf([0, 1]).round(3).tolist()
            [0.462, 0.17]
        """
        return np.exp(self.log_pmf(k))

    @property
    def mean(self) -> float:
        """Expected value."""
        return self.moment(1)

    @property
    def variance(self) -> float:
        """Second central moment."""
        return self.moment(2) - self.moment(1) ** 2

    @property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)

    def quantile(self, p: float) -> int:
        """The smallest ``k`` with ``cdf(k) >= p``.

        Examples:
            >>> noise.quantile(0.975)
            3
        """
        wanted = float(probability("p", p, zero=False, one=False))
        low, high = self._bracket(wanted)
        while high - low > 1:
            middle = (low + high) // 2
            if self.cdf(middle) >= wanted:
                high = middle
            else:
                low = middle
        return high

    def interval(self, confidence: float) -> tuple[int, int]:
        """Integers ``(low, high)`` with ``P(low <= X <= high) >= level``, equal tails.

        Examples:
            >>> noise.interval(0.95)
            (-3, 3)
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        tail = (1 - inside) / 2
        low = self.quantile(tail)
        return low, max(low, self._upper_quantile(tail))

    def _upper_quantile(self, tail: float) -> int:
        """The smallest ``k`` with ``sf(k) <= tail``: exact where 1 - tail is not a double."""
        low, high = self._bracket(1 - tail)
        while self.sf(high) > tail:
            high += max(1, abs(high))
        while high - low > 1:
            middle = (low + high) // 2
            if self.sf(middle) <= tail:
                high = middle
            else:
                low = middle
        return high

    def _bracket(self, p: float) -> tuple[int, int]:
        """Integers with ``cdf(low) < p <= cdf(high)``."""
        first, last = self.support
        step = 1
        low = high = round(self.mean)
        while low >= first and self.cdf(low) >= p:
            low, step = low - step, step * 2
        step = 1
        while high < last and self.cdf(high) < p:
            high, step = high + step, step * 2
        return low, high


def floats(k: ArrayLike) -> Floats:
    """Values as doubles, whatever they came as."""
    return np.asarray(k, dtype=np.float64)


def split_steps(values: NDArray[Any], exponent: int) -> tuple[Ints, Floats]:
    """Whole steps of ``2**exponent`` below numbers, and what is left, between 0 and 1.

    For doubles both are exact. For exact Python numbers what is left is good to 2**-53, which the
    samplers' bounds on the error of a sum leave room for.
    """
    if values.dtype.kind == "O":
        exact = [in_steps(value, exponent) for value in values]
        floors = [math.floor(value) for value in exact]
        rest = [float(value - floor) for value, floor in zip(exact, floors, strict=True)]
        return np.array(floors, dtype=np.int64), np.array(rest, dtype=np.float64)
    steps = np.ldexp(values, -exponent)
    whole = np.floor(steps)
    steps -= whole
    return whole.astype(np.int64), steps


def moment_order(order: int) -> int:
    """A checked order of a moment: 1 to 4."""
    if count("order", order) > 4:
        raise InvalidArgument(f"order must be at most 4, got {order}.")
    return order


def check_size(size: int) -> int:
    """A checked number of draws; zero is allowed and draws nothing."""
    return count("size", size, minimum=0)
