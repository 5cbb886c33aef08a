"""Magnitudes of Gaussian integers by inverse transform from a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np

from discreet.core.exact import Enclosure, ceil_div, exp_minus
from discreet.noise.bits import Bits, Words
from discreet.noise.law import Ints
from discreet.noise.lazy import LazyUniform, invert

_GUIDE_BITS = 14
_VALUE_BITS = np.uint64((1 << 63) - 1)
# Cumulated probabilities are held in units of 2**-63; their error stays below this many.
_TABLE_ERROR = 1 << 18


@dataclass(frozen=True)
class Magnitude:
    """P(k) proportional to exp(-k^2 / (2 square)) on k = 0, 1, 2, ...

    ``folded`` doubles all but k = 0: the magnitude of a symmetric law on all integers.
    """

    square: Fraction
    folded: bool

    @cached_property
    def ends(self) -> Ints:
        """P(X <= k) in units of 2**-63, for all k within reach.

        Proof of _TABLE_ERROR: a weight e^-x is good to a relative (x + 4) 2**-51. Under the law x
        is 1/2 on average, so any cumulated probability is good to 2**-47; rounding to integers
        adds half a unit for each of at most 2**15 entries, and the sum of integers is exact.
        Together below 2**-46, which is 2**17 units. What is out of reach has less than 2**-63.
        """
        reach = math.ceil(9.4 * math.sqrt(self.square)) + 2
        k = np.arange(reach, dtype=np.float64)
        weights = np.exp(-k * k / (2 * float(self.square)))
        if self.folded:
            weights[1:] *= 2
        units = np.rint(weights * (2.0**63 / math.fsum(weights))).astype(np.uint64)
        ends = np.minimum(np.cumsum(units), np.uint64((1 << 63) - 1)).astype(np.int64)
        ends[-1] = (1 << 63) - 1
        return ends

    @cached_property
    def _guide(self) -> Ints:
        """First candidate for each value of the leading bits."""
        starts = np.arange(1 << _GUIDE_BITS, dtype=np.int64) << np.int64(63 - _GUIDE_BITS)
        return np.searchsorted(self.ends, starts, side="right").astype(np.int64)

    def draw(self, words: Words, bits: Bits) -> Ints:
        """One draw for each word, from its lower 63 bits (narrow words are left-aligned)."""
        u = (words & _VALUE_BITS).view(np.int64)
        known = bits.width - 1
        half = (1 << (63 - known)) >> 1
        if half:
            u += np.int64(half)  # the middle of what a narrow word stands for
        # The guide is worth its making only for many draws.
        k = self._guided(u) if len(u) >= 256 else self._searched(u)
        ends = self.ends
        # Distances are at most 2**63 - 1; nothing is below the first end, so its own is not used.
        above = ends[k] - u
        under = u - ends[k - 1]
        error = np.int64(_TABLE_ERROR + half)
        doubtful = above <= error
        doubtful |= (under <= error) & (k > 0)
        if doubtful.any():
            for i in np.flatnonzero(doubtful):
                value = int(words[i] & _VALUE_BITS) >> (63 - known)
                uniform = LazyUniform(bits, value=(1 << known) - 1 - value, bits=known)
                k[i] = invert(uniform, self._at_least, int(k[i]))
        return k

    def _searched(self, u: Ints) -> Ints:
        k: Ints = np.searchsorted(self.ends, u, side="right").astype(np.int64)
        return np.minimum(k, len(self.ends) - 1, out=k)

    def _guided(self, u: Ints) -> Ints:
        ends = self.ends
        k: Ints = self._guide[u >> np.int64(63 - _GUIDE_BITS)]
        k += u >= ends[k]
        np.minimum(k, len(ends) - 1, out=k)
        k += u >= ends[k]
        np.minimum(k, len(ends) - 1, out=k)
        far = np.flatnonzero(u >= ends[k])
        if far.size:
            k[far] = self._searched(u[far])
        return k

    def _at_least(self, k: int) -> partial[Enclosure]:
        return partial(self.at_least, k)

    def at_least(self, k: int, precision: int) -> Enclosure:
        """Enclose P(X >= k) * 2**precision."""
        if k <= 0:
            return 1 << precision, 1 << precision
        low, high, rest = _cumulated(self.square, precision)
        k = min(k, len(low))
        under = low[k - 1], high[k - 1]
        above = low[-1] - low[k - 1], high[-1] - high[k - 1] + rest
        if self.folded:
            under = 2 * under[0] - high[0], 2 * under[1] - low[0]
            above = 2 * above[0], 2 * above[1]
        return (
            (above[0] << precision) // (above[0] + under[1]),
            ceil_div(above[1] << precision, above[1] + under[0]),
        )


@lru_cache(maxsize=8)
def _cumulated(square: Fraction, precision: int) -> tuple[list[int], list[int], int]:
    """Cumulated bounds of exp(-k^2 / (2 square)) for k = 0, 1, ..., and a bound on the rest.

    By the recurrence w(k+1) = w(k) q(k), q(k+1) = q(k) exp(-1/square) with directed rounding. The
    factors decrease, so the rest after the last k is below w(k) q(k) / (1 - q(k)).
    """
    # Roundings add up to the square of the last k, which is about this many times the square.
    work = precision + int(2 * precision * square).bit_length() + 32
    one = 1 << work
    w_low = w_high = one
    q_low, q_high = exp_minus(1 / (2 * square), work)
    s_low, s_high = exp_minus(1 / square, work)
    low, high = [one], [one]
    while w_high > 1 << 8:
        w_low, w_high = w_low * q_low >> work, ceil_div(w_high * q_high, one)
        q_low, q_high = q_low * s_low >> work, ceil_div(q_high * s_high, one)
        low.append(low[-1] + w_low)
        high.append(high[-1] + w_high)
    return low, high, ceil_div(w_high * q_high, one - q_high)
