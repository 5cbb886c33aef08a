"""Discrete Laplace noise conditioned on an interval: truncated noise and bounded outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Enclosure, Number, ceil_div, exp_minus
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Distribution, Floats, Ints, check_size, floats
from discreet.noise.laplace import CHUNK, LARGEST_SCALE
from discreet.noise.random_source import RandomSource, Words
from discreet.noise.uniform import LazyUniform, invert

# Sums of more terms than this are integrals with a correction.
_LONGEST_SUM = 1 << 18


@dataclass(frozen=True)
class BoundedDiscreteLaplace(Distribution):
    """P(k) proportional to exp(-|k| / scale) on ``lower <= k <= upper``, with lower <= 0 <= upper.

    Truncated noise is ``lower = -upper``. For an output bounded to [l, u] around a center q the
    noise has ``lower = l - q`` and ``upper = u - q`` (`sample_between` takes one pair a draw).
    """

    scale: Fraction
    lower: int
    upper: int

    def __init__(self, scale: Number, *, lower: int, upper: int) -> None:
        steps = positive("scale", scale)
        if steps > LARGEST_SCALE:
            raise InvalidArgument("scale must be at most 2**33 steps: use a coarser grid.")
        object.__setattr__(self, "scale", steps)
        object.__setattr__(self, "lower", -count("-lower", -lower, minimum=0))
        object.__setattr__(self, "upper", count("upper", upper, minimum=0))

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, self.upper

    @property
    def _masses(self) -> tuple[float, float]:
        """Sums of exp(-|k|/scale) over the negative and over the other values."""
        rate = 1 / float(self.scale)
        gap = -math.expm1(-rate)
        negative = math.exp(-rate) * -math.expm1(rate * self.lower) / gap
        return negative, -math.expm1(-rate * (self.upper + 1)) / gap

    def log_pmf(self, k: ArrayLike) -> Floats:
        x = floats(k)
        inside = (x >= self.lower) & (x <= self.upper)
        log = -np.abs(x) / float(self.scale) - math.log(sum(self._masses))
        return np.where(inside, log, -np.inf)

    def cdf(self, k: ArrayLike) -> Floats:
        return self._mirrored._upper_tail(-np.floor(floats(k)))  # noqa: SLF001 - the same class, reflected

    def sf(self, k: ArrayLike) -> Floats:
        return self._upper_tail(np.floor(floats(k)) + 1)

    def at_least(self, k: int, precision: int) -> Enclosure:
        if k <= 0:
            # P(X >= k) = 1 - P(-X >= 1 - k)
            low, high = self._mirrored._tail(1 - k, precision)  # noqa: SLF001
            return (1 << precision) - high, (1 << precision) - low
        return self._tail(k, precision)

    def moment(self, order: int) -> float:
        sides = self._sides(order)
        return sides[1] - sides[0] if order % 2 else sides[1] + sides[0]

    def absolute_moment(self, order: int) -> float:
        """``E[|X|**order]``."""
        return sum(self._sides(order))

    def _sides(self, order: int) -> tuple[float, float]:
        """What the negative and the positive values add to ``E[|X|**order]``."""
        rate, total = 1 / float(self.scale), sum(self._masses)
        negative, positive_part = (
            _power_sum(order, reach, rate) / total for reach in (-self.lower, self.upper)
        )
        return negative, positive_part

    def sample(self, size: int, rng: RandomSource) -> Ints:
        size = check_size(size)
        lower = np.full(size, self.lower, dtype=np.int64)
        upper = np.full(size, self.upper, dtype=np.int64)
        return sample_between(lower, upper, self.scale, rng)

    @property
    def _mirrored(self) -> BoundedDiscreteLaplace:
        return BoundedDiscreteLaplace(self.scale, lower=-self.upper, upper=-self.lower)

    def _upper_tail(self, k: Floats) -> Floats:
        """P(X >= k) in double precision."""
        rate = 1 / float(self.scale)
        negative, other = self._masses
        gap = -math.expm1(-rate)
        k = np.clip(k, self.lower, self.upper + 1)
        up = np.maximum(k, 0)
        right = np.exp(-rate * up) * -np.expm1(rate * (up - self.upper - 1))
        left = np.exp(-rate) * -np.expm1(rate * (k - up)) / gap
        return np.where(k >= 0, right / gap, left + other) / (negative + other)

    def _tail(self, k: int, precision: int) -> Enclosure:
        """Enclose P(X >= k) = (r^k - r^(u+1)) / (1 + r - r^(1-l) - r^(u+1)) for k >= 1."""
        if k > self.upper:
            return 0, 0
        # The denominator is about 1 / scale at least: the guard bits keep its bounds positive.
        work = precision + int(self.scale).bit_length() + 16
        one = 1 << work
        power = [exp_minus(n / self.scale, work) for n in (k, self.upper + 1, 1, 1 - self.lower)]
        (k_low, k_high), (u_low, u_high), (r_low, r_high), (l_low, l_high) = power
        top_low, top_high = max(0, k_low - u_high), k_high - u_low
        down_low, down_high = one + r_low - l_high - u_high, one + r_high - l_low - u_low
        return (
            (top_low << precision) // down_high,
            ceil_div(top_high << precision, down_low),
        )


def sample_between(lower: Ints, upper: Ints, scale: Fraction, rng: RandomSource) -> Ints:
    """One draw of bounded Laplace noise for each pair ``lower[i] <= 0 <= upper[i]``.

    The inverse transform takes one word a draw, whatever the bounds: a rejection loop would take
    longer the nearer a private center is to the edge.

    Proof of ``error``: x is a sum of two positive numbers, each good to a relative 2**-46 wherever
    it matters (x is above 2**-split, so an exponential below it has an exponent below 12), and the
    word places it within a relative 2**(split - width); the rest is as in `exponential`.
    """
    out = np.empty(len(lower), dtype=np.int64)
    t = float(scale)
    split = min(17, rng.width // 3)
    error = t * (2.0 ** (split - rng.width) + 2.0**-44) + 2.0**-44
    for start in range(0, len(lower), CHUNK):
        stop = min(start + CHUNK, len(lower))
        low, high = lower[start:stop], upper[start:stop]
        words = rng.words(stop - start)
        # Both ends of the uniform from the integers: 1 - v in doubles would lose the small ones.
        last = np.uint64((1 << rng.width) - 1)
        v, rest = (_unit(side, rng.width) for side in (words, last - words))
        beyond_high = np.exp(-(high + 1) / t)
        beyond_low = np.exp((low - 1) / t)
        # In units of 1 - r: the total mass, of which v counts from the top, rest from below.
        total = -np.expm1(-(high + 1) / t) + math.exp(-1 / t) * -np.expm1(low / t)
        upper_tail = v * total + beyond_high
        is_right = upper_tail < 1
        x = np.where(is_right, upper_tail, rest * total + beyond_low)
        y = np.log(x) * np.where(is_right, -t, t) + np.where(is_right, 0.0, 1.0)
        out[start:stop] = np.clip(np.ceil(y) - 1, low, high)
        doubtful = (np.abs(y - np.floor(y) - 0.5) > 0.5 - error) | (x < 2.0**-split)
        for i in np.flatnonzero(doubtful):
            law = BoundedDiscreteLaplace(scale, lower=int(low[i]), upper=int(high[i]))
            uniform = LazyUniform(rng, value=int(words[i]), bits=rng.width)
            out[start + i] = _decide(law, uniform, int(out[start + i]))
    return out


def _unit(words: Words, width: int) -> Floats:
    return (words.astype(np.float64) + 0.5) * 2.0**-width


def _decide(law: BoundedDiscreteLaplace, uniform: LazyUniform, first: int) -> int:
    def at_least(k: int) -> partial[Enclosure]:
        return partial(law.at_least, k)

    if law.lower == law.upper:
        return law.lower
    return invert(uniform, at_least, first)


def _power_sum(order: int, upper: int, rate: float) -> float:
    """Sum of k^order exp(-rate k) over 1 <= k <= upper.

    Long sums are integrals from 1/2 to upper + 1/2, less a 24th of the change of the derivative
    (Euler and Maclaurin; the next term is of order rate^4). Beyond 800 scales there is nothing.
    """
    reach = min(upper, 800 / rate)
    if reach <= _LONGEST_SUM:
        k = np.arange(1, reach + 1, dtype=np.float64)
        return float(np.sum(k**order * np.exp(-rate * k)))
    last = min(upper, 60 / rate) + 0.5
    ends = np.array([0.5, last])
    panels = np.linspace(0.5, last, 2 + int(last * rate * 2))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(panels)[:, None] / 2
    x = panels[:-1, None] + half * (1 + nodes)
    integral = float(np.sum(half * weights * x**order * np.exp(-rate * x)))
    slopes = (order * ends ** (order - 1) - rate * ends**order) * np.exp(-rate * ends)
    return integral - float(slopes[1] - slopes[0]) / 24
