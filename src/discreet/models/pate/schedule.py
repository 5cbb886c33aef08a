"""Teachers that sit out some votes: a public schedule, drawn before any data are seen (M21).

Weighting is never worse: a level that takes part in a fraction f of the votes pays 1/f times what
teachers of a constant weight with the same mean would pay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.models.pate.assignment import UNITS, Assignment, weighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A cycle of assignments, one for each question in turn.

    Owners and teachers stay together; who sits out weighs nothing, the others so much more that
    all votes add up to the same.
    """

    slots: tuple[Assignment, ...]

    def __post_init__(self) -> None:
        first = self.slots[0] if self.slots else None
        if first is None or not all(first.same_teachers(slot) for slot in self.slots):
            raise InvalidArgument("slots must have the same teachers for everybody, at least one.")

    def at(self, question: int) -> Assignment:
        """Who votes on a question, counted from 0."""
        return self.slots[question % len(self.slots)]

    def moves(self, level: str) -> NDArray[np.int64]:
        """Units that an owner may move, a row for each slot, a column for each teacher.

        Owners of several teachers: one column, as if each of theirs was the heaviest of the slot.
        """
        first = self.slots[0]
        place = first.names.index(level)
        weights = np.stack([slot.weights[slice(*first.blocks[place])] for slot in self.slots])
        copies = first.copies[place]
        return weights if copies == 1 else copies * weights.max(axis=1, keepdims=True)

    @property
    def squares(self) -> dict[str, int]:
        """For each level the square units that its busiest owner moves in a whole cycle."""
        return {
            name: int((self.moves(name) ** 2).sum(axis=0).max()) for name in self.slots[0].names
        }


def vanishing(
    teachers: int, *, people: Mapping[str, float], turns: Mapping[str, int], key: str = ""
) -> Schedule:
    """Teachers of each level take part in ``turns[level]`` votes of every cycle.

    The cycle is as long as the largest number of turns. Each teacher of a level has exactly its
    turns; how many of them vote differs by at most one from slot to slot.
    """
    plain = weighting(teachers, people=people, sensitivities=dict.fromkeys(people, 1.0), key=key)
    if sorted(turns) != list(plain.names):
        raise InvalidArgument("people and turns must name the same levels.")
    length = max(count(f"turns[{name!r}]", turns[name]) for name in plain.names)
    present = np.zeros((length, plain.teachers), dtype=bool)
    # The order is public; the key only makes it another one.
    seed = hashlib.blake2b(f"turns:{key}".encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    for name, (first, end) in zip(plain.names, plain.blocks, strict=True):
        for place, teacher in enumerate(rng.permutation(np.arange(first, end)).tolist()):
            taken = (place * turns[name] + np.arange(turns[name])) % length
            present[taken, teacher] = True
    # The level with the most turns has all of them, so nobody is alone with an empty vote.
    voting = present.sum(axis=1)
    weights = present * (UNITS * plain.teachers // voting)[:, None]
    return Schedule(slots=tuple(replace(plain, weights=row) for row in weights.astype(np.int64)))
