"""The choice tree: run a sampler on every possible string of bits, with exact masses.

A sampler that draws words is a tree whose branches are the words. Walking all of it gives the
exact law of the output as rational numbers; strings longer than the allowed depth are left over,
and their total mass is reported, so that every probability is enclosed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from discreet.noise.random_source import RandomSource, Words

Outcome = TypeVar("Outcome", bound=Hashable)


class _TooDeep(Exception):
    """The string of words is longer than the walk allows."""


class TreeBits:
    """Replays one path of the tree and takes the first branch beyond its end."""

    __slots__ = ("_depth", "_next", "path", "width")
    private = False

    def __init__(self, *, width: int, depth: int) -> None:
        self.width = width
        self.path: list[int] = []
        self._depth = depth
        self._next = 0

    def words(self, count: int) -> Words:
        """The next ``count`` branches of the path."""
        taken = []
        for _ in range(count):
            if self._next == len(self.path):
                if len(self.path) == self._depth:
                    raise _TooDeep
                self.path.append(0)
            taken.append(self.path[self._next])
            self._next += 1
        return np.array(taken, dtype=np.uint64)

    def mass(self) -> Fraction:
        """Probability of the words used so far."""
        return Fraction(1, 1 << (self.width * self._next))

    def advance(self) -> bool:
        """Move to the next path; False when the tree is exhausted."""
        self._next = 0
        while self.path and self.path[-1] == (1 << self.width) - 1:
            self.path.pop()
        if not self.path:
            return False
        self.path[-1] += 1
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """Exact masses of the outcomes, and the mass of the strings that were too long."""

    masses: dict[Hashable, Fraction]
    unresolved: Fraction


def enumerate_sampler(
    sampler: Callable[[RandomSource], Outcome], *, width: int = 8, depth: int = 3
) -> Enumerated:
    """Walk every string of at most ``depth`` words of ``width`` bits through ``sampler``."""
    bits = TreeBits(width=width, depth=depth)
    masses: dict[Hashable, Fraction] = {}
    unresolved = Fraction(0)
    while True:
        try:
            outcome = sampler(bits)
        except _TooDeep:
            unresolved += bits.mass()
        else:
            masses[outcome] = masses.get(outcome, Fraction(0)) + bits.mass()
        if not bits.advance():
            return Enumerated(masses=masses, unresolved=unresolved)
