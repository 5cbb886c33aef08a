"""What a mechanism really draws and really hands to its noise, seen by driving its own release.

A certificate from the parameters alone says nothing about the sampler. So `certify` also runs
``release`` on made-up data, with words that are spread evenly, and compares what comes out with
the law that the guarantee was computed from; and it swaps the noise for something that only notes
what it is handed, on neighbors, and compares how far that moves with the sensitivity. No private
number is read, and the words are the same each time, so a certificate is always the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import NotCertified
from discreet.mechanisms.mechanism import DrawCheck
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import Words

MANY = 1 << 14
"""Draws where one call makes many."""
FEW = 500
"""Draws where each is a release of its own."""
REFUSED = 1e-12
"""A faithful release is refused with at most this probability a look, over the choice of words."""
_SEED = 2026
# Requests of fewer words than this are not spread.
_LONG = 1 << 12
# Words needed beyond one a draw: up to this share they count as draws that may be anything.
_REFINED = 1 / 32
# Half-lines of outcomes are made of at most two intervals of words: four ends, each of which
# divides one of the cells over which a request is spread.
_ENDS = 4


class EvenWords:
    """Random words, of which those of one long request are spread evenly, in random order.

    Every word is uniform, and pairs of them are as good as independent; but a sampler that takes
    one word a draw and rises or falls with it makes each outcome as often as its law says, but for
    a few draws. Short requests get independent words: their draws may belong to one release.
    """

    __slots__ = ("_generator", "requests", "taken")
    width = 64
    private = False

    def __init__(self) -> None:
        self._generator = np.random.Generator(np.random.Philox(_SEED))
        self.requests = 0
        self.taken = 0

    def words(self, count: int) -> Words:
        """``count`` words: of a long request one from each of so many equal parts of all words."""
        self.taken += count
        if count < _LONG:
            return self._generator.integers(0, 1 << 64, size=count, dtype=np.uint64)
        self.requests += 1
        part = (1 << 64) // count
        places = self._generator.permutation(count).astype(np.uint64) * np.uint64(part)
        places += self._generator.integers(0, part, size=count, dtype=np.uint64)
        return places

    def allowed(self, draws: int) -> float:
        """How far so many draws of a faithful sampler may be from their law."""
        # For a sampler of one word a draw, surely: each end of an interval of words divides one
        # cell of a request, and a draw that took more words counts as wrong. Else but for a
        # probability of 1e-12, by Massart's constant for independent draws, of which evenly spread
        # ones are no worse (Massart 1990; McKay, Beckman, Conover 1979).
        chance = math.sqrt(math.log(2 / REFUSED) / (2 * draws))
        further = self.taken - draws
        if self.requests and 0 <= further <= _REFINED * draws:
            return min(chance, (_ENDS * self.requests + further) / draws)
        return chance


def draws_follow(
    part: str,
    draw: Callable[[EvenWords], ArrayLike],
    cdf: Callable[[Ints], Floats],
    *,
    slack: float = 0.0,
) -> DrawCheck:
    """Compare whole numbers, many drawn at once, with their cumulated law."""
    words = EvenWords()
    drawn = np.asarray(draw(words), dtype=np.int64).ravel()
    return _compared(part, drawn, cdf, words.allowed(len(drawn)) + slack)


def releases_of_many(
    part: str, draw: Callable[[EvenWords], Ints], cdf: Callable[[Ints], Floats]
) -> DrawCheck:
    """Compare part of what is drawn at once with its cumulated law: by chance, not evenly."""
    drawn = draw(EvenWords())
    return _compared(part, drawn, cdf, math.sqrt(math.log(2 / REFUSED) / (2 * len(drawn))))


def releases_follow(
    part: str,
    release: Callable[[EvenWords], int],
    cdf: Callable[[Ints], Floats],
    *,
    many: int = FEW,
    slack: float = 0.0,
) -> DrawCheck:
    """Compare releases of one whole number each with their cumulated law."""
    words = EvenWords()
    drawn = np.array([release(words) for _ in range(many)], dtype=np.int64)
    chance = math.sqrt(math.log(2 / REFUSED) / (2 * many))
    return _compared(part, drawn, cdf, chance + slack)


def cumulated(law: ArrayLike) -> Callable[[Ints], Floats]:
    """The cumulated law of the indices 0, 1, ..., from their probabilities."""
    sums = np.concatenate(([0.0], np.cumsum(np.asarray(law, dtype=np.float64))))
    last = len(sums) - 1
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) + 1, 0, last)]


def _compared(part: str, drawn: Ints, cdf: Callable[[Ints], Floats], allowed: float) -> DrawCheck:
    places, counts = np.unique(drawn, return_counts=True)
    reached = np.cumsum(counts) / len(drawn)
    before = reached - counts / len(drawn)
    found = max(
        float(np.abs(reached - cdf(places)).max()), float(np.abs(before - cdf(places - 1)).max())
    )
    return DrawCheck(
        part=part,
        found=found,
        allowed=allowed,
        route=f"{len(drawn)} draws of the release, largest distance from their law",
    )


class SameWords:
    """One word, over and over: for noise by inverse transform, always the same noise."""

    __slots__ = ("_word",)
    width = 64
    private = False

    def __init__(self, word: int) -> None:
        self._word = word

    @classmethod
    def exceeded(cls, chance: float) -> SameWords:
        """Words for which a Laplace draw is positive, and exceeded in size with this chance."""
        return cls(min(int(chance * 2**64), 2**64 - 1) & ~1)

    def words(self, count: int) -> Words:
        """The word, so many times."""
        return np.full(count, self._word, dtype=np.uint64)


class Handed:
    """Stands for the noise in a release: notes what it is handed, and adds nothing.

    With an ``answer`` it returns that instead, whatever it is handed.
    """

    def __init__(self, inner: object, *, answer: object = None) -> None:
        self._inner = inner
        self._answer = answer
        self.seen: list[NDArray[Any]] = []

    def release(self, value: object, *, rng: object = None) -> Any:  # noqa: ARG002 - no noise
        """What was handed, or the answer."""
        self.seen.append(np.array(value, dtype=object))
        return value if self._answer is None else self._answer

    @property
    def handed(self) -> NDArray[Any]:
        """What the release handed over; NotCertified if it never came."""
        if not self.seen:
            raise NotCertified("The release does not use the noise that its guarantee names.")
        return self.seen[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def moves(part: str, found: float, allowed: float) -> DrawCheck:
    """How far neighbors are apart in what the release hands to its noise."""
    return DrawCheck(
        part=part,
        found=float(found),
        allowed=float(allowed),
        route="what the release hands to its noise, on neighbors",
    )


def laplace_cdf(scale: float) -> Callable[[Ints], Floats]:
    """The cumulated law of Laplace noise, rounded to whole numbers."""

    def cdf(k: Ints) -> Floats:
        z = (np.asarray(k, dtype=np.float64) + 0.5) / scale
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, tail, 1 - tail)

    return cdf


def tells_nothing_else(part: str, answers: list[Any]) -> DrawCheck:
    """Whether releases of different data are one, where the noise answers the same."""
    first = np.asarray(answers[0])
    differ = sum(not np.array_equal(first, np.asarray(other)) for other in answers[1:])
    return DrawCheck(
        part=part,
        found=float(differ),
        allowed=0.0,
        route="releases that differ although the noise answers the same",
    )


def with_stand_in(made: Any, **parts: Any) -> Any:
    """The same mechanism with stand-ins for its noise (`Handed`), which have no common type."""
    return replace(made, **parts)


def charges(part: str, guarantee: Guarantee, inner: Guarantee) -> DrawCheck:
    """Whether what is charged covers what the noise costs."""
    delta = 1e-6
    return DrawCheck(
        part=part,
        found=inner.epsilon(delta),
        allowed=guarantee.epsilon(delta),
        route="epsilon of the noise, and epsilon charged, at delta 1e-6",
    )
