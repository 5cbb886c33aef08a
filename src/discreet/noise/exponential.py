"""The inner loop of every Laplace-like sampler: signed exponential variables, one word each.

A word is a sign and a uniform ``V``; ``-scale * log(V)`` is an exponential variable. It is computed
in double precision together with a bound on its error, added to an offset and floored. Where the
floor is certain it is final. Where the sum is too close to an integer (about one draw in 500,000,
whatever its size), or ``V`` too small for its first bits to tell, the caller decides exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from discreet.noise.bits import Bits, Words
from discreet.noise.law import Floats, Ints
from discreet.noise.lazy import LazyUniform

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
    """Centre of the interval of V, in units of 2**-63 above its lower end."""
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
    bits: Bits,
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
    precision = _precision(steps, bits.width)
    if size == 1:
        # The same in plain numbers: calls on arrays of one cost more than the draw.
        place = offset if isinstance(offset, float) else float(offset[0])
        kind = _Kind(reflect=reflect, signed=signed)
        return np.array([_single(bits, steps, place, precision, kind, decide)])
    out = np.empty(size, dtype=np.int64)
    width_shift = np.uint64(64 - bits.width)
    longest = precision.longest * steps
    certain = 0.5 - precision.error
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        words = bits.words(stop - start)
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
                out[start + i] = _decided(int(words[i]), start + int(i), bits, decide)
    return out


class _Kind(NamedTuple):
    reflect: bool
    signed: bool


def _single(
    bits: Bits, steps: float, offset: float, precision: _Precision, kind: _Kind, decide: Decide
) -> int:
    word = int(bits.words(1)[0]) << (64 - bits.width)
    length = -steps * math.log(((word & _LOW) + precision.half) * 2.0**-63)
    sign = -1 if word >> 63 else 1
    y = offset + (sign * length if kind.reflect else length)
    whole = math.floor(y)
    near = abs(y - whole - 0.5) > 0.5 - precision.error
    if near or length > precision.longest * steps:
        return _decided(word, 0, bits, decide)
    return sign * whole if kind.signed and not kind.reflect else whole


def _decided(word: int, index: int, bits: Bits, decide: Decide) -> int:
    """The exact value of a draw whose word, left-aligned, does not settle it."""
    value = (word & _LOW) >> (64 - bits.width)
    uniform = LazyUniform(bits, value=value, bits=bits.width - 1)
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
