"""An exact distribution on the integers: the oracle of tests, intervals and error forecasts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Enclosure
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.noise.random_source import RandomSource

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Distribution(ABC):
    """A distribution on the integers, with its exact sampler.

    Every law has two routes to its cumulative probabilities: ``cdf`` in double precision from a
    closed form, and ``at_least`` by integer enclosures of any width. Tests hold them together.
    """

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest value (infinite where unbounded)."""

    @abstractmethod
    def log_pmf(self, k: ArrayLike) -> Floats:
        """Natural logarithm of the probability of ``k``."""

    @abstractmethod
    def cdf(self, k: ArrayLike) -> Floats:
        """Probability of a value of at most ``k``."""

    @abstractmethod
    def sf(self, k: ArrayLike) -> Floats:
        """Probability of a value above ``k``, accurate in the upper tail."""

    @abstractmethod
    def at_least(self, k: int, precision: int) -> Enclosure:
        """Integers that enclose ``P(X >= k) * 2**precision``."""

    @abstractmethod
    def moment(self, order: int) -> float:
        """``E[X**order]`` for orders 1 to 4."""

    @abstractmethod
    def sample(self, size: int, rng: RandomSource) -> Ints:
        """``size`` independent draws, exactly from this law."""

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of ``k``."""
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
        """The smallest ``k`` with ``cdf(k) >= p``."""
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
        """Integers ``(low, high)`` with ``P(low <= X <= high) >= level``, equal tails."""
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


def moment_order(order: int) -> int:
    """A checked order of a moment: 1 to 4."""
    if count("order", order) > 4:
        raise InvalidArgument(f"order must be at most 4, got {order}.")
    return order


def check_size(size: int) -> int:
    """A checked number of draws; zero is allowed and draws nothing."""
    return count("size", size, minimum=0)
