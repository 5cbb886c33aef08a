"""Discrete Gaussian noise, and Gaussian noise rounded to a grid: laws and exact samplers.

Small parameters are drawn by inverse transform from a table of cumulated probabilities, large ones
from blocks: the block by the same table, the place inside it uniformly, accepted with the exact
probability (above 0.96 but for one draw in 10**20). Everything is in double precision with a bound
on its error; the few draws that fall inside the bound are decided in integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Enclosure, Number, ceil_div
from discreet.noise.bits import Bits
from discreet.noise.blocks import BlockGaussian
from discreet.noise.exponential import CHUNK
from discreet.noise.law import Floats, Ints, Law, floats, moment_order, sized
from discreet.noise.magnitude import Magnitude

# Up to this sigma all values within reach fit a table in the cache.
LARGEST_TABLE = 2048
_LARGEST_SIGMA = 1 << 48
_SMALLEST_SIGMA = Fraction(1, 1 << 10)


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """P(k) proportional to exp(-k^2 / (2 sigma^2)) on the integers.

    Source: Canonne, Kamath, Steinke 2020 (the law and its privacy).
    """

    square: Fraction
    """sigma^2, the parameter; the variance of the law is slightly smaller."""

    def __init__(self, sigma: Number | None = None, *, square: Fraction | None = None) -> None:
        if (sigma is None) == (square is None):
            raise InvalidArgument("give either sigma or square (sigma squared).")
        value = positive("square", square) if sigma is None else positive("sigma", sigma) ** 2
        if value < _SMALLEST_SIGMA**2:
            raise InvalidArgument("sigma must be at least 2**-10 steps: this is no noise at all.")
        if value > _LARGEST_SIGMA**2:
            raise InvalidArgument("sigma must be at most 2**48 steps: use a coarser grid.")
        object.__setattr__(self, "square", value)

    @property
    def sigma(self) -> float:
        """The parameter sigma, to the nearest double."""
        return math.sqrt(self.square)

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def _is_small(self) -> bool:
        return self.square <= LARGEST_TABLE**2

    def log_pmf(self, k: ArrayLike) -> Floats:
        x = floats(k)
        return -x * x / (2 * float(self.square)) - math.log(self._total)

    @cached_property
    def _total(self) -> float:
        """Sum of exp(-k^2 / (2 sigma^2)): directly, or by Poisson summation."""
        if self._is_small:
            return 2 * math.fsum(self._weights[1:]) + 1
        return self.sigma * math.sqrt(2 * math.pi)  # the next term is below exp(-10**7)

    @cached_property
    def _weights(self) -> Floats:
        """exp(-k^2 / (2 sigma^2)) for k = 0, 1, ... until it vanishes in double precision."""
        k = np.arange(math.ceil(39 * self.sigma) + 2, dtype=np.float64)
        return np.exp(-k * k / (2 * float(self.square)))

    @cached_property
    def _tails(self) -> Floats:
        """P(X >= k) for k = 0, 1, ..., summed from the small end."""
        tails: Floats = np.cumsum(self._weights[::-1])[::-1] / self._total
        return tails

    def cdf(self, k: ArrayLike) -> Floats:
        return self.sf(-np.floor(floats(k)) - 1)

    def sf(self, k: ArrayLike) -> Floats:
        x = np.floor(floats(k))
        first = np.where(x >= 0, x + 1, -x)  # P(X > x) = 1 - P(X >= -x) for x < 0
        if self._is_small:
            tail = self._tails[np.minimum(first, len(self._tails) - 1).astype(np.int64)]
        else:
            tail = self._smooth_tail(first)
        return np.where(x >= 0, tail, 1 - tail)

    def _smooth_tail(self, first: Floats) -> Floats:
        """P(X >= first) by the midpoint Euler-Maclaurin sum, relative error about sigma**-6."""
        z = (first - 0.5) / self.sigma
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        tail: Floats = 0.5 * np.vectorize(math.erfc, otypes=[np.float64])(z / math.sqrt(2))
        step = 1 / self.sigma
        return tail - density * (z * step**2 / 24 + 7 * (3 * z - z**3) * step**4 / 5760)

    def at_least(self, k: int, precision: int) -> Enclosure:
        if not self._is_small:
            raise InvalidArgument("exact tails are computed for sigma up to 2048.")
        if k <= 0:
            low, high = self.at_least(1 - k, precision)
            return (1 << precision) - high, (1 << precision) - low
        low, high = Magnitude(self.square, folded=True).at_least(k, precision + 1)
        return low // 4, ceil_div(high, 4)  # half of it, at one bit less

    def moment(self, order: int) -> float:
        if moment_order(order) % 2:
            return 0.0
        if self._is_small:
            k = np.arange(len(self._weights), dtype=np.float64)
            return 2 * math.fsum(k**order * self._weights) / self._total
        return float(self.square) if order == 2 else 3 * float(self.square) ** 2

    def sample(self, size: int, bits: Bits) -> Ints:
        size = sized(size)
        if self._is_small:
            return self._from_table(size, bits)
        return BlockGaussian(self.square).integers(size, bits)

    def _from_table(self, size: int, bits: Bits) -> Ints:
        table = _magnitude(self.square)
        out = np.empty(size, dtype=np.int64)
        shift = np.uint64(64 - bits.width)
        for start in range(0, size, CHUNK):
            stop = min(start + CHUNK, size)
            words = bits.words(stop - start) << shift
            draws = table.draw(words, bits)
            out[start:stop] = _signed(draws, words.view(np.int64))
        return out


def _signed(magnitude: Ints, words: NDArray[np.int64]) -> Ints:
    """Negate where the leading bit is set."""
    sign = words >> np.int64(63)  # 0 or -1
    magnitude ^= sign
    magnitude -= sign
    return magnitude


@lru_cache(maxsize=64)
def _magnitude(square: Fraction) -> Magnitude:
    """The table of a parameter, made once."""
    return Magnitude(square, folded=True)


@dataclass(frozen=True)
class RoundedGaussian:
    """A real number plus continuous Gaussian noise, rounded to the nearest multiple of a step.

    Rounding is post-processing: the release is as private as the ideal real-valued mechanism, in
    any dimension, and no sensitivity is added for the grid. ``square`` is sigma^2 in steps of
    ``2**exponent``.
    """

    square: Fraction
    exponent: int

    def add(self, values: Floats, bits: Bits) -> Ints:
        """``floor(values / step + noise + 1/2)``, exactly."""
        return BlockGaussian(self.square).rounded(values, self.exponent, bits)
