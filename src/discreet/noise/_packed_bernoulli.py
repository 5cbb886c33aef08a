"""Rows of independent coins of one dyadic probability, packed into bytes: two random bits a coin.

Eight coins of probability p show one of 256 patterns x, with probability P(x). Of the 2**16 values
of a random index, floor(P(x) * 2**16) stand for the pattern x; the few that are left over stand
for a second draw, from what the first left out: weight P(x) * 2**16 - floor(P(x) * 2**16) for x.
The two together give x exactly the probability P(x). The second draw places a random word on the
cumulated weights; a word that a border cuts is refined in integers until it is clear.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import Enclosure, Number, Real, ceil_div
from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import check_size
from discreet.noise.random_source import RandomSource, Words
from discreet.noise.uniform import LazyUniform

Packed: TypeAlias = NDArray[np.uint8]
"""Rows of bits, eight to a byte, the first in the lowest place; bits past the end are zero."""

# Bytes of coins made at once: indices, and what is found in them, stay in the cache.
_CHUNK = 1 << 18
_INDEX_BITS = 16
# Weights of patterns are whole numbers of 8 times this many bits.
_LONGEST = 64


def dyadic(p: Real, *, up: bool, places: int = 32) -> int:
    """The irrational number ``p`` as a whole number of 2**-places, rounded up or down."""
    precision = places + 32
    while True:
        low, high = (end >> (precision - places) for end in p(precision))
        if low == high:
            return low + up
        precision *= 2


def packed_bernoulli(p: Number, *, rows: int, columns: int, rng: RandomSource) -> Packed:
    """Packed rows of coins, each True with probability exactly ``p``, a multiple of 2**-64."""
    rows, columns = check_size(rows), check_size(columns)
    width = ceil_div(columns, 8)
    patterns = _patterns(probability("p", p), 8, _INDEX_BITS)
    out = np.empty(rows * width, dtype=np.uint8)
    for start in range(0, len(out), _CHUNK):
        part = out[start : start + _CHUNK]
        patterns.draw(part, rng)
    packed = out.reshape(rows, width)
    if columns % 8:
        packed[:, -1] &= np.uint8((1 << columns % 8) - 1)
    return packed


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The law of ``coins`` coins at once, split into a table and a remainder."""

    table: NDArray[np.uint8]
    """Pattern of each index below the number of those that are settled, then zeros."""
    settled: int
    rest: NDArray[np.uint8]
    """Patterns of the remainder, and in units of its total where the weight of each ends."""
    ends: tuple[Fraction, ...]
    index_bits: int

    @classmethod
    def of(cls, p: Fraction, coins: int, index_bits: int) -> Patterns:
        """Split the law of ``coins`` coins of probability ``p``."""
        masses = [p**ones * (1 - p) ** (coins - ones) for ones in range(coins + 1)]
        slots = [mass * (1 << index_bits) for mass in masses]
        settled = [slot.numerator // slot.denominator for slot in slots]
        ones = [pattern.bit_count() for pattern in range(1 << coins)]
        found = np.repeat(np.arange(1 << coins), [settled[k] for k in ones])
        left = (1 << index_bits) - len(found)
        table = np.concatenate((found, np.zeros(left, dtype=np.int64))).astype(np.uint8)
        rest, ends, end = [], [], Fraction(0)
        for pattern, k in enumerate(ones):
            if slots[k] != settled[k]:
                end += (slots[k] - settled[k]) / left
                rest.append(pattern)
                ends.append(end)
        return cls(table, len(found), np.array(rest, dtype=np.uint8), tuple(ends), index_bits)

    def draw(self, out: NDArray[np.uint8], rng: RandomSource) -> None:
        """Fill ``out`` with independent patterns."""
        indices = _indices(len(out), self.index_bits, rng)
        np.take(self.table, indices, out=out)
        if self.rest.size:
            open_ones = np.flatnonzero(indices >= self.settled)
            out[open_ones] = self.rest[self._remainder(open_ones.size, rng)]

    def _remainder(self, size: int, rng: RandomSource) -> NDArray[np.intp]:
        """Places in ``rest``, with exactly the weights of the remainder."""
        words = rng.words(size)
        borders = _borders(self, rng.width)
        first = np.searchsorted(borders, words, side="left")
        places = np.searchsorted(borders, words, side="right")
        for i in np.flatnonzero(first != places):
            uniform = LazyUniform(rng, value=int(words[i]), bits=rng.width)
            places[i] = self._decide(uniform, int(first[i]))
        return places

    def _decide(self, uniform: LazyUniform, first: int) -> int:
        """The place whose end is the first above the uniform number, from ``first`` on."""
        place = first
        while place < len(self.ends) - 1 and not uniform.below(partial(_scaled, self.ends[place])):
            place += 1
        return place


@lru_cache(maxsize=64)
def _borders(patterns: Patterns, width: int) -> Words:
    """The words in which ends of weights lie, but for the last.

    A word w is the interval [w, w + 1) / 2**width. An end at or below w is passed, an end at or
    above w + 1 is not; only an end whose border is w itself can lie between them and cut it.
    """
    scaled = [end * (1 << width) for end in patterns.ends[:-1]]
    return np.array([s.numerator // s.denominator for s in scaled], dtype=np.uint64)


@lru_cache(maxsize=64)
def _patterns(p: Fraction, coins: int, index_bits: int) -> Patterns:
    if p.denominator & (p.denominator - 1) or p.denominator > 1 << _LONGEST:
        raise InvalidArgument(f"p must be a multiple of 2**-{_LONGEST}, got {p}.")
    return Patterns.of(p, coins, index_bits)


def _indices(size: int, index_bits: int, rng: RandomSource) -> NDArray[np.unsignedinteger]:
    """Uniform whole numbers of ``index_bits`` bits, of which a word of 64 holds several."""
    if rng.width == 64 and index_bits == 16:
        return rng.words(ceil_div(size, 4)).view(np.uint16)[:size]
    gathered: Words = np.zeros(size, dtype=np.uint64)
    held = 0
    while held < index_bits:
        gathered = gathered << np.uint64(rng.width) | rng.words(size)
        held += rng.width
    return gathered >> np.uint64(held - index_bits)


def _scaled(value: Fraction, precision: int) -> Enclosure:
    scaled = value.numerator << precision
    return scaled // value.denominator, ceil_div(scaled, value.denominator)
