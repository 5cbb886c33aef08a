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
    """A source of random bits for noise.

    Functions that draw noise take it as `rng`. By default they use `system_rng()`. Pass
    `seeded_rng(n)` to repeat a simulation.

    Examples:
        >>> import discreet
        >>> discreet.seeded_rng(1).private
        False
        >>> discreet.system_rng().private
        True
    """

    @property
    def width(self) -> int:
        """Number of random bits in a word: 64, or fewer in tests."""

    @property
    def private(self) -> bool:
        """Whether a release made with these bits may be published."""

    def words(self, count: int) -> Words:
        """Draw random words that were never returned before.

        Args:
            count: Number of words.

        Returns:
            An array of `count` independent integers, each uniform on 0 to `2**width - 1`.

        Examples:
            >>> import discreet
            >>> discreet.seeded_rng(1).words(3).shape
            (3,)
        """


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
        return "system_rng()"


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
        return f"seeded_rng({self.seed})"


def system_rng() -> RandomSource:
    """Return the random source of the operating system.

    It is the default of every function that draws noise, and the only source for releases that are
    published. It is not buffered, so a fork or a restored snapshot cannot repeat its bits.

    Returns:
        A random source that cannot be seeded.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=1)
        >>> isinstance(mechanism.release(100, rng=discreet.system_rng()), int)
        True

    See Also:
        `seeded_rng`: a source for simulations and tests.
    """
    return SystemRandomSource()


def seeded_rng(seed: int) -> RandomSource:
    """Return a reproducible random source for simulations and tests.

    Noise from a seed can be computed again and subtracted, so it protects nothing. An account of a
    ledger refuses to pay for such a release.

    Args:
        seed: Non-negative integer. The same seed gives the same random bits.

    Returns:
        A random source whose `private` is False.

    Raises:
        InvalidArgument: `seed` is not a non-negative integer.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=1)
        >>> first = mechanism.release(100, rng=discreet.seeded_rng(7))
        >>> first == mechanism.release(100, rng=discreet.seeded_rng(7))
        True

    See Also:
        `system_rng`: the source for releases.
    """
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
