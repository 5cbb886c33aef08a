"""Gaussian noise of large sigma: a block by table, a place inside it, an exact acceptance.

With blocks of s steps and s a power of two below sigma / 256, the magnitude is ``b * s + place``.
The block b has probability proportional to exp(-(b s)^2 / (2 sigma^2)), the place is uniform and
accepted with probability exp(-((b s + place)^2 - (b s)^2) / (2 sigma^2)): the product is the law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.core.exact import exp_minus, in_steps
from discreet.noise.bits import Bits
from discreet.noise.exponential import CHUNK
from discreet.noise.law import Floats, Ints
from discreet.noise.lazy import LazyUniform
from discreet.noise.magnitude import Magnitude

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

    def integers(self, size: int, bits: Bits) -> Ints:
        """Draws of the discrete Gaussian: the place is a whole number, and -0 goes back."""
        out = np.empty(size, dtype=np.int64)
        place_bits = self.block.bit_length() - 1
        for start in range(0, size, CHUNK):
            todo = np.arange(start, min(start + CHUNK, size))
            while todo.size:
                draw = _Draw.of(self, todo.size, bits, place_bits=place_bits)
                magnitude = draw.blocks * self.block + draw.places
                accepted = draw.accepted(exact_place=True)
                accepted &= ~(draw.negative & (magnitude == 0))
                out[todo] = np.where(draw.negative, -magnitude, magnitude)
                todo = todo[~accepted]
        return out

    def rounded(self, values: Floats, exponent: int, bits: Bits) -> Ints:
        """``floor(values / 2**exponent + noise + 1/2)`` for continuous noise, exactly."""
        out = np.empty(len(values), dtype=np.int64)
        place_bits = bits.width * 5 // 8
        for start in range(0, len(values), CHUNK):
            todo = np.arange(start, min(start + CHUNK, len(values)))
            while todo.size:
                draw = _Draw.of(self, todo.size, bits, place_bits=place_bits)
                accepted = draw.accepted(exact_place=False)
                out[todo] = draw.floor_of_sum(values[todo], exponent, accepted)
                todo = todo[~accepted]
        return out


@dataclass(slots=True)
class _Draw:
    """Proposals: block, sign, place (first bits of a uniform), coin (likewise)."""

    law: BlockGaussian
    bits: Bits
    blocks: Ints
    negative: NDArray[np.bool_]
    places: Ints
    coins: Ints
    place_bits: int
    coin_bits: int
    lazy: dict[int, LazyUniform]
    """Places of which more bits are known by now."""

    @classmethod
    def of(cls, law: BlockGaussian, size: int, bits: Bits, *, place_bits: int) -> _Draw:
        first = bits.words(size) << np.uint64(64 - bits.width)
        second = bits.words(size)
        coin_bits = bits.width - place_bits
        return cls(
            law=law,
            bits=bits,
            blocks=_table(law.square / law.block**2).draw(first, bits),
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
        coin = LazyUniform(self.bits, value=int(self.coins[i]), bits=self.coin_bits)
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
            self.lazy[i] = LazyUniform(self.bits, value=value, bits=self.place_bits)
        return self.lazy[i]

    def _place_bounds(self, i: int, *, exact_place: bool) -> tuple[Fraction, Fraction]:
        if exact_place:
            place = Fraction(int(self.places[i]))
            return place, place
        uniform = self._uniform(i)
        unit = Fraction(self.law.block, 1 << uniform.bits)
        return uniform.value * unit, (uniform.value + 1) * unit

    def floor_of_sum(self, values: Floats, exponent: int, accepted: NDArray[np.bool_]) -> Ints:
        """``floor(value / step + 1/2 + S * magnitude)`` for the accepted draws."""
        steps = np.ldexp(values, -exponent)
        whole = np.floor(steps)
        magnitude = self.blocks * float(self.law.block) + self._place(0.5)
        y = steps - whole + 0.5 + np.where(self.negative, -magnitude, magnitude)
        floors = np.floor(y)
        largest = float(np.max(magnitude)) + 2
        error = self.law.block * 2.0**-self.place_bits + largest * 2.0**-50
        doubtful = np.abs(y - floors - 0.5) > 0.5 - error
        doubtful[list(self.lazy)] = True  # more of these places is known than the doubles say
        result = whole.astype(np.int64) + floors.astype(np.int64)
        for i in np.flatnonzero(doubtful & accepted):
            result[i] = self._floor(int(i), in_steps(values[i], exponent) + Fraction(1, 2))
        return result

    def _floor(self, i: int, centre: Fraction) -> int:
        uniform = self._uniform(i)
        edge = int(self.blocks[i]) * self.law.block
        while True:
            low, high = self._place_bounds(i, exact_place=False)
            ends = (centre + edge + low, centre + edge + high)
            if self.negative[i]:
                ends = (centre - edge - high, centre - edge - low)
            # The interval is open at the far end up to an event of probability zero.
            if math.floor(ends[0]) == math.ceil(ends[1]) - 1:
                return math.floor(ends[0])
            uniform.extend()


@lru_cache(maxsize=64)
def _table(square: Fraction) -> Magnitude:
    return Magnitude(square, folded=False)
