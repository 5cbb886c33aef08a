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
from functools import cached_property, lru_cache, partial
from typing import Any

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
from discreet.noise.laplace import CHUNK
from discreet.noise.random_source import RandomSource, Words
from discreet.noise.uniform import LazyUniform, invert

# ── Small sigma: a table ─────────────────────────────────────────────────────────────────────────
# Magnitudes of Gaussian integers by inverse transform from a table.


_GUIDE_BITS = 14
_VALUE_BITS = np.uint64((1 << 63) - 1)
# Cumulated probabilities are held in units of 2**-63; their error stays below this many.
_TABLE_ERROR = 1 << 18


@dataclass(frozen=True)
class GaussianMagnitude:
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

    def draw(self, words: Words, rng: RandomSource) -> Ints:
        """One draw for each word, from its lower 63 bits (narrow words are left-aligned)."""
        u = (words & _VALUE_BITS).view(np.int64)
        known = rng.width - 1
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
                uniform = LazyUniform(rng, value=(1 << known) - 1 - value, bits=known)
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


# ── Large sigma: blocks ──────────────────────────────────────────────────────────────────────────
# Gaussian noise of large sigma: a block by table, a place inside it, an exact acceptance.
#
# With blocks of s steps and s a power of two below sigma / 256, the magnitude is ``b * s +
# place``. The block b has probability proportional to exp(-(b s)^2 / (2 sigma^2)), the place is
# uniform and accepted with probability exp(-((b s + place)^2 - (b s)^2) / (2 sigma^2)): the
# product is the law.


_BLOCKS_PER_SIGMA = 256


@dataclass(frozen=True)
class BlockGaussian:
    """Sampler for sigma^2 = ``square`` in steps, sigma at least 1."""

    square: Fraction

    @property
    def block(self) -> int:
        """Steps in a block: the largest power of two not above sigma / 256 (at least 1)."""
        whole = math.isqrt(self.square.numerator // self.square.denominator)
        return 1 << max(0, (whole // _BLOCKS_PER_SIGMA).bit_length() - 1)

    def integers(self, size: int, rng: RandomSource) -> Ints:
        """Draws of the discrete Gaussian: the place is a whole number, and -0 goes back."""
        out = np.empty(size, dtype=np.int64)
        place_bits = self.block.bit_length() - 1
        for start in range(0, size, CHUNK):
            todo = np.arange(start, min(start + CHUNK, size))
            while todo.size:
                draw = _Draw.of(self, todo.size, rng, place_bits=place_bits)
                magnitude = draw.blocks * self.block + draw.places
                accepted = draw.accepted(exact_place=True)
                accepted &= ~(draw.negative & (magnitude == 0))
                out[todo] = np.where(draw.negative, -magnitude, magnitude)
                todo = todo[~accepted]
        return out

    def rounded(self, values: NDArray[Any], exponent: int, rng: RandomSource) -> Ints:
        """``floor(values / 2**exponent + noise + 1/2)`` for continuous noise, exactly."""
        out = np.empty(len(values), dtype=np.int64)
        place_bits = rng.width * 5 // 8
        for start in range(0, len(values), CHUNK):
            todo = np.arange(start, min(start + CHUNK, len(values)))
            while todo.size:
                draw = _Draw.of(self, todo.size, rng, place_bits=place_bits)
                accepted = draw.accepted(exact_place=False)
                out[todo] = draw.floor_of_sum(values[todo], exponent, accepted)
                todo = todo[~accepted]
        return out


@dataclass(slots=True)
class _Draw:
    """Proposals: block, sign, place (first bits of a uniform), coin (likewise)."""

    law: BlockGaussian
    rng: RandomSource
    blocks: Ints
    negative: NDArray[np.bool_]
    places: Ints
    coins: Ints
    place_bits: int
    coin_bits: int
    lazy: dict[int, LazyUniform]
    """Places of which more bits are known by now."""

    @classmethod
    def of(cls, law: BlockGaussian, size: int, rng: RandomSource, *, place_bits: int) -> _Draw:
        first = rng.words(size) << np.uint64(64 - rng.width)
        second = rng.words(size)
        coin_bits = rng.width - place_bits
        return cls(
            law=law,
            rng=rng,
            blocks=_table(law.square / law.block**2).draw(first, rng),
            negative=first.view(np.int64) < 0,
            places=(second >> np.uint64(coin_bits)).view(np.int64),
            coins=(second & np.uint64((1 << coin_bits) - 1)).view(np.int64),
            place_bits=place_bits,
            coin_bits=coin_bits,
            lazy={},
        )

    def _place(self, middle: float) -> Floats:
        """Places in steps, in double precision."""
        return (self.places.astype(np.float64) + middle) * (self.law.block * 2.0**-self.place_bits)

    def accepted(self, *, exact_place: bool) -> NDArray[np.bool_]:
        """Flip the coins; decide exactly where double precision cannot."""
        place = self._place(0.0 if exact_place else 0.5)
        edge = self.blocks * float(self.law.block)
        exponent = place * (2 * edge + place) / (2 * float(self.law.square))
        p = np.exp(-exponent)
        u = (self.coins + 0.5) * 2.0**-self.coin_bits
        # The place is known to a relative 2**-place_bits of a block, the exponent changes by less
        # than (edge + block) * block / square < 0.05 over a whole block wherever the table reaches.
        error = 2.0**-self.coin_bits + 2.0**-44
        if not exact_place:
            furthest = float(np.max(edge)) + self.law.block
            error += 2.0**-self.place_bits * furthest * self.law.block / float(self.law.square)
        coins = u < p
        for i in np.flatnonzero(np.abs(u - p) <= error):
            coins[i] = self._flip(int(i), exact_place=exact_place)
        return coins

    def _flip(self, i: int, *, exact_place: bool) -> bool:
        coin = LazyUniform(self.rng, value=int(self.coins[i]), bits=self.coin_bits)
        while True:
            low, high = self._place_bounds(i, exact_place=exact_place)
            precision = coin.bits + 8
            if coin.value << 8 >= exp_minus(self._exponent(i, low), precision)[1]:
                return False
            if (coin.value + 1) << 8 <= exp_minus(self._exponent(i, high), precision)[0]:
                return True
            coin.extend()
            if not exact_place:
                self.lazy[i].extend()

    def _exponent(self, i: int, place: Fraction) -> Fraction:
        edge = int(self.blocks[i]) * self.law.block
        return place * (2 * edge + place) / (2 * self.law.square)

    def _uniform(self, i: int) -> LazyUniform:
        if i not in self.lazy:
            value = int(self.places[i])
            self.lazy[i] = LazyUniform(self.rng, value=value, bits=self.place_bits)
        return self.lazy[i]

    def _place_bounds(self, i: int, *, exact_place: bool) -> tuple[Fraction, Fraction]:
        if exact_place:
            place = Fraction(int(self.places[i]))
            return place, place
        uniform = self._uniform(i)
        unit = Fraction(self.law.block, 1 << uniform.bits)
        return uniform.value * unit, (uniform.value + 1) * unit

    def floor_of_sum(
        self, values: NDArray[Any], exponent: int, accepted: NDArray[np.bool_]
    ) -> Ints:
        """``floor(value / step + 1/2 + S * magnitude)`` for the accepted draws."""
        whole, rest = split_steps(values, exponent)
        magnitude = self.blocks * float(self.law.block) + self._place(0.5)
        y = rest + 0.5 + np.where(self.negative, -magnitude, magnitude)
        floors = np.floor(y)
        largest = float(np.max(magnitude)) + 2
        error = self.law.block * 2.0**-self.place_bits + largest * 2.0**-50
        doubtful = np.abs(y - floors - 0.5) > 0.5 - error
        doubtful[list(self.lazy)] = True  # more of these places is known than the doubles say
        result = whole + floors.astype(np.int64)
        for i in np.flatnonzero(doubtful & accepted):
            result[i] = self._floor(int(i), in_steps(values[i], exponent) + Fraction(1, 2))
        return result

    def _floor(self, i: int, center: Fraction) -> int:
        uniform = self._uniform(i)
        edge = int(self.blocks[i]) * self.law.block
        while True:
            low, high = self._place_bounds(i, exact_place=False)
            ends = (center + edge + low, center + edge + high)
            if self.negative[i]:
                ends = (center - edge - high, center - edge - low)
            # The interval is open at the far end up to an event of probability zero.
            if math.floor(ends[0]) == math.ceil(ends[1]) - 1:
                return math.floor(ends[0])
            uniform.extend()


@lru_cache(maxsize=64)
def _table(square: Fraction) -> GaussianMagnitude:
    return GaussianMagnitude(square, folded=False)


# ── Distributions ────────────────────────────────────────────────────────────────────────────────


# Up to this sigma all values within reach fit a table in the cache.
LARGEST_TABLE = 2048
_LARGEST_SIGMA = 1 << 48
_SMALLEST_SIGMA = Fraction(1, 1 << 10)


@dataclass(frozen=True)
class DiscreteGaussian(Distribution):
    """P(k) proportional to exp(-k^2 / (2 sigma^2)) on the integers."""

    # Source: Canonne, Kamath, Steinke 2020 (the law and its privacy).

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
        low, high = GaussianMagnitude(self.square, folded=True).at_least(k, precision + 1)
        return low // 4, ceil_div(high, 4)  # half of it, at one bit less

    def moment(self, order: int) -> float:
        if moment_order(order) % 2:
            return 0.0
        if self._is_small:
            k = np.arange(len(self._weights), dtype=np.float64)
            return 2 * math.fsum(k**order * self._weights) / self._total
        return float(self.square) if order == 2 else 3 * float(self.square) ** 2

    def sample(self, size: int, rng: RandomSource) -> Ints:
        size = check_size(size)
        if self._is_small:
            return self._from_table(size, rng)
        return BlockGaussian(self.square).integers(size, rng)

    def _from_table(self, size: int, rng: RandomSource) -> Ints:
        table = _magnitude(self.square)
        out = np.empty(size, dtype=np.int64)
        shift = np.uint64(64 - rng.width)
        for start in range(0, size, CHUNK):
            stop = min(start + CHUNK, size)
            words = rng.words(stop - start) << shift
            draws = table.draw(words, rng)
            out[start:stop] = _signed(draws, words.view(np.int64))
        return out


def _signed(magnitude: Ints, words: NDArray[np.int64]) -> Ints:
    """Negate where the leading bit is set."""
    sign = words >> np.int64(63)  # 0 or -1
    magnitude ^= sign
    magnitude -= sign
    return magnitude


@lru_cache(maxsize=64)
def _magnitude(square: Fraction) -> GaussianMagnitude:
    """The table of a parameter, made once."""
    return GaussianMagnitude(square, folded=True)


@dataclass(frozen=True)
class RoundedGaussian:
    """A real number plus continuous Gaussian noise, rounded to the nearest multiple of a step.

    Rounding is post-processing: the release is as private as the ideal real-valued mechanism, in
    any dimension, and no sensitivity is added for the grid. ``square`` is sigma^2 in steps of
    ``2**exponent``.
    """

    square: Fraction
    exponent: int

    def add(self, values: NDArray[Any], rng: RandomSource) -> Ints:
        """``floor(values / step + noise + 1/2)``, exactly, for doubles or exact Python numbers."""
        return BlockGaussian(self.square).rounded(values, self.exponent, rng)
