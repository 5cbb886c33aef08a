"""Where random bits come from: the only source of randomness, always an argument.

`system()` keeps nothing: every word is fetched for the call that uses it and dropped afterwards.
There is no buffer that a fork could duplicate, that two threads could share or that a crash dump
could reveal. A short request reads the operating system's generator. A long one reads OpenSSL's
(AES-256 in counter mode, NIST SP 800-90A), several times faster than the kernel's, after mixing
256 fresh bits of the operating system into it: so not even a machine restored from a snapshot can
see the same words twice, and that generator cannot be run backwards from its state.
"""

from __future__ import annotations

import os
import ssl
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core._validate import count as checked_count
from discreet.core.errors import InvalidArgument

Words: TypeAlias = NDArray[np.uint64]

# Words from which on mixing fresh bits into OpenSSL's generator pays, and words fetched at a time.
_LONG = 1 << 10
_PIECE = 1 << 15


class RandomSource(Protocol):
    """A stream of independent uniform words of ``width`` bits."""

    @property
    def width(self) -> int:
        """Random bits in a word: 64 in production, fewer in exhaustive tests."""

    @property
    def private(self) -> bool:
        """Whether a release made with these bits may be published."""

    def words(self, count: int) -> Words:
        """``count`` fresh words, each uniform on 0 .. 2**width - 1. Never repeated."""


class SystemRandomSource:
    """The operating system's cryptographic generator, and OpenSSL's seeded by it; unbuffered."""

    __slots__ = ()
    width = 64
    private = True

    def words(self, count: int) -> Words:
        """Fetch exactly ``count`` words."""
        if count < _LONG:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        ssl.RAND_add(os.urandom(32), 32.0)
        words = np.empty(count, dtype=np.uint64)
        for start in range(0, count, _PIECE):
            piece = words[start : start + _PIECE]
            piece[:] = np.frombuffer(ssl.RAND_bytes(piece.nbytes), dtype=np.uint64)
        return words

    def __repr__(self) -> str:
        return "system()"


class SeededRandomSource:
    """A reproducible stream for tests and simulations: what it touches is not private.

    A ``width`` below 64 forces the samplers' refinement path, which is how tests reach it.
    """

    __slots__ = ("_source", "seed", "width")
    private = False

    def __init__(self, seed: int, *, width: int = 64) -> None:
        self.seed = checked_count("seed", seed, minimum=0)
        self.width = checked_count("width", width, minimum=2)
        self._source = np.random.Philox(self.seed)

    def words(self, count: int) -> Words:
        """The next ``count`` words of the stream."""
        words = self._source.random_raw(count)
        return words if self.width == 64 else words >> np.uint64(64 - self.width)

    def __repr__(self) -> str:
        return f"seeded({self.seed})"


def system_rng() -> RandomSource:
    """Randomness from the operating system: the default, and the only one fit for a release."""
    return SystemRandomSource()


def seeded_rng(seed: int) -> RandomSource:
    """Reproducible randomness for tests and simulations. Never for a release."""
    return SeededRandomSource(seed)


def resolve_rng(rng: RandomSource | None) -> RandomSource:
    """The bits that were asked for, or the operating system's."""
    if rng is None:
        return system_rng()
    if not (callable(getattr(rng, "words", None)) and hasattr(rng, "width")):
        raise InvalidArgument(
            f"rng must be left out, or seeded_rng(n) for a simulation, not {type(rng).__name__}."
        )
    return rng
