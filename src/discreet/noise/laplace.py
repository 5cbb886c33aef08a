"""Geometric and discrete Laplace noise, and Laplace noise rounded to a grid: laws and samplers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Enclosure, Number, ceil_div, exp_minus, in_steps
from discreet.noise.bits import Bits
from discreet.noise.exponential import LARGEST_SCALE, floored_exponentials, guess
from discreet.noise.law import Floats, Ints, Law, floats, moment_order, sized
from discreet.noise.lazy import LazyUniform, invert
from discreet.noise.uniform import below, bernoulli_exp

# Above this, a draw could leave the 64-bit integers with a probability that matters.
LARGEST_NOISE_SCALE = 1 << 55


SMALLEST_SCALE = Fraction(1, 1 << 20)
"""Below this many steps the noise is zero but for one draw in e^(2^20): ask for no privacy."""


def _scale(name: str, value: Number) -> Fraction:
    scale = positive(name, value)
    if scale < SMALLEST_SCALE:
        raise InvalidArgument(f"{name} must be at least 2**-20 steps: this is no noise at all.")
    if scale > LARGEST_NOISE_SCALE:
        raise InvalidArgument(f"{name} must be at most 2**55 steps: use a coarser grid.")
    return scale


@dataclass(frozen=True)
class Geometric(Law):
    """P(k) = (1 - r) r^k for k = 0, 1, ... with r = exp(-1/scale)."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", _scale("scale", scale))

    @property
    def support(self) -> tuple[float, float]:
        return 0, math.inf

    def log_pmf(self, k: ArrayLike) -> Floats:
        x = floats(k)
        rate = 1 / float(self.scale)
        return np.where(x >= 0, math.log(-math.expm1(-rate)) - rate * x, -np.inf)

    def sf(self, k: ArrayLike) -> Floats:
        reached: Floats = np.maximum(np.floor(floats(k)) + 1, 0)
        return np.exp(-reached / float(self.scale))

    def cdf(self, k: ArrayLike) -> Floats:
        reached: Floats = np.maximum(np.floor(floats(k)) + 1, 0)
        return -np.expm1(-reached / float(self.scale))

    def at_least(self, k: int, precision: int) -> Enclosure:
        return exp_minus(max(k, 0) / self.scale, precision)

    def moment(self, order: int) -> float:
        # Eulerian polynomials: sum k^n r^k = r A_n(r) / (1 - r)^(n + 1).
        r = math.exp(-1 / float(self.scale))
        gap = -math.expm1(-1 / float(self.scale))
        eulerian = (1.0, 1 + r, 1 + 4 * r + r**2, 1 + 11 * r + 11 * r**2 + r**3)
        return r * eulerian[moment_order(order) - 1] / gap**order

    def sample(self, size: int, bits: Bits) -> Ints:
        size = sized(size)
        if self.scale > LARGEST_SCALE:
            return _large_geometric(size, self.scale, bits)
        return floored_exponentials(size, bits, scale=self.scale, decide=self._decide, signed=False)

    def _decide(self, _index: int, _sign: int, uniform: LazyUniform) -> int:
        first = math.floor(guess(uniform, self.scale))
        return invert(uniform, lambda k: partial(self.at_least, k), first)


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """P(k) = tanh(1 / (2 scale)) r^|k| with r = exp(-1/scale): Laplace noise for integers.

    The magnitude M has P(M >= m) = 2 r^m / (1 + r) for m >= 1, which is ``floor(C + E)`` for an
    exponential E of the same scale and ``C = scale * log(2 / (1 + r))``; the sign is a bit. One
    word a draw and no rejection, so the time does not tell the size.

    Source: Ghosh, Roughgarden, Sundararajan 2009 (the law).
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", _scale("scale", scale))

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def log_pmf(self, k: ArrayLike) -> Floats:
        rate = 1 / float(self.scale)
        return math.log(math.tanh(rate / 2)) - rate * np.abs(floats(k))

    def cdf(self, k: ArrayLike) -> Floats:
        return self.sf(-np.floor(floats(k)) - 1)

    def sf(self, k: ArrayLike) -> Floats:
        x = np.floor(floats(k))
        rate = 1 / float(self.scale)
        # P(X > x) = r^(x+1) / (1 + r) for x >= 0, and one minus the mirrored tail below.
        tail = np.exp(-rate * np.where(x >= 0, x + 1, -x)) / (1 + math.exp(-rate))
        return np.where(x >= 0, tail, 1 - tail)

    def at_least(self, k: int, precision: int) -> Enclosure:
        if k <= 0:
            low, high = self.at_least(1 - k, precision)
            return (1 << precision) - high, (1 << precision) - low
        return self._tail(k, 1, precision)

    def moment(self, order: int) -> float:
        if moment_order(order) % 2:
            return 0.0
        rate = 1 / float(self.scale)
        variance = 2 * math.exp(-rate) / math.expm1(-rate) ** 2  # 2r / (1 - r)^2
        # E X^4 = 2r (1 + 10r + r^2) / (1 - r)^4 = Var (6 Var + 1)
        return variance if order == 2 else variance * (6 * variance + 1)

    @property
    def mean_absolute(self) -> float:
        """E|X| = 2r / (1 - r^2)."""
        r = math.exp(-1 / float(self.scale))
        return 2 * r / -math.expm1(-2 / float(self.scale))

    def sample(self, size: int, bits: Bits) -> Ints:
        size = sized(size)
        if self.scale > LARGEST_SCALE:
            return _large_laplace(size, self.scale, bits)
        return floored_exponentials(
            size, bits, scale=self.scale, decide=self._decide, offset=self._offset
        )

    @property
    def _offset(self) -> float:
        return float(self.scale) * -math.log1p(math.expm1(-1 / float(self.scale)) / 2)

    def _tail(self, k: int, times: int, precision: int) -> Enclosure:
        """Enclose ``times * r^k / (1 + r)``."""
        work = precision + 8
        one = 1 << work
        low, high = exp_minus(k / self.scale, work)
        r_low, r_high = exp_minus(1 / self.scale, work)
        shift = work - precision
        return (
            times * (low << work) // (one + r_high) >> shift,
            ceil_div(ceil_div(times * high << work, one + r_low), 1 << shift),
        )

    def _decide(self, _index: int, sign: int, uniform: LazyUniform) -> int:
        first = math.floor(guess(uniform, self.scale) + self._offset)
        return sign * invert(uniform, self._magnitude_at_least, first)

    def _magnitude_at_least(self, m: int) -> partial[Enclosure]:
        return partial(self._tail, max(m, 0), 2)  # at zero 2 / (1 + r): certain


@dataclass(frozen=True)
class RoundedLaplace:
    """A real number plus continuous Laplace noise, rounded to the nearest multiple of a step.

    Rounding is post-processing: the release is as private as the ideal real-valued mechanism, in
    any dimension, and no sensitivity is added for the grid. ``scale`` is in steps of
    ``2**exponent``.
    """

    scale: Fraction
    exponent: int

    def add(self, values: Floats, bits: Bits) -> Ints:
        """``floor(values / step + noise + 1/2)``, exactly."""
        steps = np.ldexp(values, -self.exponent)
        whole = np.floor(steps)
        noise = floored_exponentials(
            len(values),
            bits,
            scale=self.scale,
            decide=partial(self._decide, values, whole),
            offset=steps - whole + 0.5,
            reflect=True,
        )
        return whole.astype(np.int64) + noise

    def _decide(
        self, values: Floats, whole: Floats, index: int, sign: int, uniform: LazyUniform
    ) -> int:
        """``floor(a + E)``, or ``-j = floor(a - E)``, where V < exp(-x/t) iff E > x.

        ``floor(a + E) >= m`` iff ``E >= m - a``; ``j >= m`` iff ``a - E < 1 - m``.
        """
        a = in_steps(values[index], self.exponent) - int(whole[index]) + Fraction(1, 2)
        size = guess(uniform, self.scale)
        shift = -a if sign > 0 else a - 1
        return sign * invert(uniform, partial(self._longer, shift), math.floor(size - shift))

    def _longer(self, shift: Fraction, m: int) -> partial[Enclosure]:
        """P(E > m + shift)."""
        return partial(exp_minus, max(m + shift, Fraction(0)) / self.scale)


def _large_geometric(size: int, scale: Fraction, bits: Bits) -> Ints:
    """Geometric draws for scales at which a double does not resolve single steps.

    Proof: write k = block * high + low. P(k) is proportional to r^(block * high) r^low, so the two
    are independent: high is geometric of scale / block, low is uniform, accepted with r^low.
    """
    block = 1 << ((scale / LARGEST_SCALE).__ceil__() - 1).bit_length()
    high = Geometric(scale / block).sample(size, bits)
    low = below(block, size, bits)
    rejected = np.flatnonzero(~bernoulli_exp(low, 1 / scale, bits))
    while rejected.size:
        low[rejected] = below(block, rejected.size, bits)
        rejected = rejected[~bernoulli_exp(low[rejected], 1 / scale, bits)]
    return high * block + low


def _large_laplace(size: int, scale: Fraction, bits: Bits) -> Ints:
    """A sign and a geometric magnitude; the second zero goes back (Canonne et al. 2020, Alg. 2)."""
    out = np.empty(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        magnitude = _large_geometric(todo.size, scale, bits)
        negative = below(2, todo.size, bits) == 1
        out[todo] = np.where(negative, -magnitude, magnitude)
        todo = todo[negative & (magnitude == 0)]
    return out
