"""Geometric and discrete Laplace noise, and Laplace noise rounded to a granularity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._rational import Enclosure, Number, ceil_div, exp_minus, in_steps
from discreet.core._validate import positive
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import (
    Distribution,
    Floats,
    Ints,
    check_size,
    floats,
    moment_order,
    split_steps,
)
from discreet.noise.random_source import RandomSource, Words
from discreet.noise.uniform import LazyUniform, bernoulli_exp, invert, uniform_integers

# ── Signed exponential variables ─────────────────────────────────────────────────────────────────
# The inner loop of every Laplace-like sampler: signed exponential variables, one word each.
#
# A word is a sign and a uniform ``V``; ``-scale * log(V)`` is an exponential variable. It is
# computed in double precision together with a bound on its error, added to an offset and floored.
# Where the floor is certain it is final. Where the sum is too close to an integer (about one draw
# in 500,000, whatever its size), or ``V`` too small for its first bits to tell, the caller decides
# exactly.


# Small enough for all buffers to stay in the second-level cache, large enough to hide call costs.
CHUNK = 1 << 13
# Beyond this many steps a double no longer resolves the integers well enough.
LARGEST_SCALE = 1 << 33
# Noise this large leaves the range of a release whatever it is added to: see mechanisms/additive.
SATURATION = (3 << 61) - 1
_LOW = (1 << 63) - 1
_VALUE_BITS = np.uint64(_LOW)

Decide: TypeAlias = Callable[[int, int, LazyUniform], int]
"""Exact value of draw ``i`` with sign +1 or -1 from the uniform it came from."""


@dataclass(frozen=True, slots=True)
class _Precision:
    """What double precision can tell for a scale and a width of words.

    Proof of ``error``: with ``smallest <= V`` the first bits place V within a relative
    ``0.5 / (smallest * 2**bits)``, conversion to double and the logarithm (assumed good to 4 units
    in the last place, which tests check) add at most 2**-46 to ``log V`` for ``-log V <= 28``, the
    products and the sum a relative 2**-51; all is multiplied by the scale. The bound doubles that.
    """

    half: float
    """Center of the interval of V, in units of 2**-63 above its lower end."""
    longest: float
    """``-log V`` above this means that V is too small for its first bits."""
    error: float

    @classmethod
    def of(cls, scale: float, width: int) -> _Precision:
        bits = width - 1
        # As far into the tail as the bits reach: a draw must not be refined because it is large.
        spare = bits - 20 - max(0, math.ceil(math.log2(scale)))
        split = min(40, max(min(17, bits // 3), spare))
        relative = 0.51 * 2.0 ** (split - bits)
        return cls(
            half=2.0 ** (63 - width),
            longest=split * math.log(2) * 0.999,
            error=scale * (relative + 2.0**-44) + 2.0**-44,
        )


@lru_cache(maxsize=256)
def _precision(scale: float, width: int) -> _Precision:
    return _Precision.of(scale, width)


def floored_exponentials(
    size: int,
    rng: RandomSource,
    *,
    scale: Fraction,
    decide: Decide,
    offset: float | Floats = 0.0,
    reflect: bool = False,
    signed: bool = True,
) -> Ints:
    """``floor(offset + E)`` or, reflected, ``floor(offset + S * E)`` for exponential E, sign S.

    Without ``reflect`` the sign is applied after the floor. ``scale`` is at most LARGEST_SCALE.
    """
    steps = float(scale)
    precision = _precision(steps, rng.width)
    if size == 1:
        # The same in plain numbers: calls on arrays of one cost more than the draw.
        place = offset if isinstance(offset, float) else float(offset[0])
        kind = _Kind(reflect=reflect, signed=signed)
        return np.array([_single(rng, steps, place, precision, kind, decide)])
    out = np.empty(size, dtype=np.int64)
    width_shift = np.uint64(64 - rng.width)
    longest = precision.longest * steps
    certain = 0.5 - precision.error
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        words = rng.words(stop - start)
        if width_shift:
            words = words << width_shift
        y = _exponentials(words, precision.half, -steps)
        doubtful = y > longest
        if reflect:
            y = np.copysign(y, words.view(np.float64), out=y)
        y += offset if isinstance(offset, float) else offset[start:stop]
        whole = np.floor(y)
        y -= whole
        y -= 0.5
        np.abs(y, out=y)
        doubtful |= y > certain
        if signed and not reflect:
            whole = np.copysign(whole, words.view(np.float64), out=whole)
        out[start:stop] = whole
        if doubtful.any():
            for i in np.flatnonzero(doubtful):
                out[start + i] = _decided(int(words[i]), start + int(i), rng, decide)
    return out


class _Kind(NamedTuple):
    reflect: bool
    signed: bool


def _single(
    rng: RandomSource,
    steps: float,
    offset: float,
    precision: _Precision,
    kind: _Kind,
    decide: Decide,
) -> int:
    word = int(rng.words(1)[0]) << (64 - rng.width)
    length = -steps * math.log(((word & _LOW) + precision.half) * 2.0**-63)
    sign = -1 if word >> 63 else 1
    y = offset + (sign * length if kind.reflect else length)
    whole = math.floor(y)
    near = abs(y - whole - 0.5) > 0.5 - precision.error
    if near or length > precision.longest * steps:
        return _decided(word, 0, rng, decide)
    return sign * whole if kind.signed and not kind.reflect else whole


def _decided(word: int, index: int, rng: RandomSource, decide: Decide) -> int:
    """The exact value of a draw whose word, left-aligned, does not settle it."""
    value = (word & _LOW) >> (64 - rng.width)
    uniform = LazyUniform(rng, value=value, bits=rng.width - 1)
    exact = decide(index, -1 if word >> 63 else 1, uniform)
    return max(-SATURATION, min(exact, SATURATION))


def _exponentials(words: Words, half: float, factor: float) -> Floats:
    """``factor * log(V)`` for the uniform in the lower 63 bits of each word."""
    y = (words & _VALUE_BITS).view(np.int64).astype(np.float64)
    y += half
    y *= 2.0**-63
    np.log(y, out=y)
    y *= factor
    return y


def guess(uniform: LazyUniform, scale: Fraction) -> float:
    """``-scale * log(V)`` in double precision, after learning one more word of V."""
    uniform.extend()
    return -float(scale) * (math.log(2 * uniform.value + 1) - (uniform.bits + 1) * math.log(2))


# ── Distributions ────────────────────────────────────────────────────────────────────────────────


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
class Geometric(Distribution):
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

    def sample(self, size: int, rng: RandomSource) -> Ints:
        size = check_size(size)
        if self.scale > LARGEST_SCALE:
            return _large_geometric(size, self.scale, rng)
        return floored_exponentials(size, rng, scale=self.scale, decide=self._decide, signed=False)

    def _decide(self, _index: int, _sign: int, uniform: LazyUniform) -> int:
        first = math.floor(guess(uniform, self.scale))
        return invert(uniform, lambda k: partial(self.at_least, k), first)


@dataclass(frozen=True)
class DiscreteLaplace(Distribution):
    """P(k) = tanh(1 / (2 scale)) r^|k| with r = exp(-1/scale): Laplace noise for integers.

    The magnitude M has P(M >= m) = 2 r^m / (1 + r) for m >= 1, which is ``floor(C + E)`` for an
    exponential E of the same scale and ``C = scale * log(2 / (1 + r))``; the sign is a bit. One
    word a draw and no rejection, so the time does not tell the size.
    """

    # Source: Ghosh, Roughgarden, Sundararajan 2009 (the law).

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

    def sample(self, size: int, rng: RandomSource) -> Ints:
        size = check_size(size)
        if self.scale > LARGEST_SCALE:
            return _large_laplace(size, self.scale, rng)
        return floored_exponentials(
            size, rng, scale=self.scale, decide=self._decide, offset=self._offset
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

    def add(self, values: NDArray[Any], rng: RandomSource) -> Ints:
        """``floor(values / step + noise + 1/2)``, exactly, for doubles or exact Python numbers."""
        whole, rest = split_steps(values, self.exponent)
        rest += 0.5
        noise = floored_exponentials(
            len(values),
            rng,
            scale=self.scale,
            decide=partial(self._decide, values, whole),
            offset=rest,
            reflect=True,
        )
        noise += whole
        return noise

    def _decide(
        self, values: NDArray[Any], whole: Ints, index: int, sign: int, uniform: LazyUniform
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


def _large_geometric(size: int, scale: Fraction, rng: RandomSource) -> Ints:
    """Geometric draws for scales at which a double does not resolve single steps."""
    # Proof: write k = block * high + low. P(k) is proportional to r^(block * high) r^low, so the
    #   two are independent: high is geometric of scale / block, low is uniform, accepted with
    #   r^low.
    block = 1 << ((scale / LARGEST_SCALE).__ceil__() - 1).bit_length()
    high = Geometric(scale / block).sample(size, rng)
    low = uniform_integers(block, size, rng)
    rejected = np.flatnonzero(~bernoulli_exp(low, 1 / scale, rng))
    while rejected.size:
        low[rejected] = uniform_integers(block, rejected.size, rng)
        rejected = rejected[~bernoulli_exp(low[rejected], 1 / scale, rng)]
    return high * block + low


def _large_laplace(size: int, scale: Fraction, rng: RandomSource) -> Ints:
    """A sign and a geometric magnitude; the second zero goes back (Canonne et al. 2020, Alg. 2)."""
    out = np.empty(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        magnitude = _large_geometric(todo.size, scale, rng)
        negative = uniform_integers(2, todo.size, rng) == 1
        out[todo] = np.where(negative, -magnitude, magnitude)
        todo = todo[negative & (magnitude == 0)]
    return out
