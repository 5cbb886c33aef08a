"""Where random bits come from: the only source of randomness, always an argument.

`system()` reads the operating system's generator and keeps nothing: every word is fetched for the
call that uses it and dropped afterwards. There is no buffer that a fork could duplicate, that two
threads could share or that a crash dump could reveal, and a block of words costs the same per word
as a buffered reader would (the kernel's generator is the cost, not the call).
"""

from __future__ import annotations

import os
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import count as checked_count

Words: TypeAlias = NDArray[np.uint64]


class Bits(Protocol):
    """A stream of independent uniform words of ``width`` bits."""

    @property
    def width(self) -> int:
        """Random bits in a word: 64 in production, fewer in exhaustive tests."""

    @property
    def private(self) -> bool:
        """Whether a release made with these bits may be published."""

    def words(self, count: int) -> Words:
        """``count`` fresh words, each uniform on 0 .. 2**width - 1. Never repeated."""


class SystemBits:
    """The operating system's cryptographic generator, unbuffered."""

    __slots__ = ()
    width = 64
    private = True

    def words(self, count: int) -> Words:
        """Read exactly ``count`` words from the operating system."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "system()"


class SeededBits:
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


def system() -> Bits:
    """Randomness from the operating system: the default, and the only one fit for a release."""
    return SystemBits()


def seeded(seed: int) -> Bits:
    """Reproducible randomness for tests and simulations. Never for a release."""
    return SeededBits(seed)
