"""Which teacher learns from which owners, and in which votes a teacher takes part.

The assignment is public, and for each owner a function of the owner alone (M7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument

UNITS = 1000
"""Units in a vote: weights are whole numbers of them, so that counts are whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherAssignment:
    """Teachers, their weights, and how much each level of owners may move the counts.

    Theorem: when the data of one owner change or vanish, at most ``shares[level]`` units of votes
        move, from any classes to any others; everything else about the vote stays.
    Proof: an owner's teachers are a function of the owner's name and level, of the public numbers
        here and of the public key. So no other owner changes teacher, and the votes of those
        teachers weigh at most ``shares[level]`` together.
    Source: Muehl 2021, chapter 5, with assignments that do not depend on others (M7, M19, T7).
    """

    names: tuple[str, ...]
    copies: tuple[int, ...]
    """Teachers that learn from an owner of each level."""
    blocks: tuple[tuple[int, int], ...]
    """First and one past the last teacher that a level's owners may go to."""
    weights: NDArray[np.int64] = field(repr=False)
    """Units of each teacher's vote."""
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # A part of a unit would be voted with and not paid for.
        if self.weights.ndim != 1 or self.weights.dtype.kind not in "iu":
            raise InvalidArgument("weights must be whole units of a vote, one for each teacher.")
        if (self.weights < 0).any():
            raise InvalidArgument("weights must not be negative.")
        if not len(self.names) == len(self.copies) == len(self.blocks):
            raise InvalidArgument("names, copies and blocks must have an entry for each level.")
        for times, (first, end) in zip(self.copies, self.blocks, strict=True):
            count("copies", times)
            if not 0 <= first < end <= self.teachers:
                raise InvalidArgument(
                    f"blocks must lie between 0 and {self.teachers}, the number of teachers, and "
                    f"hold one at least; got {first} to {end}."
                )
        if len(self.key.encode()) > hashlib.blake2b.MAX_KEY_SIZE:
            raise InvalidArgument("key must be at most 64 bytes long.")

    @property
    def teachers(self) -> int:
        """How many there are."""
        return len(self.weights)

    @property
    def shares(self) -> dict[str, int]:
        """Units of votes that an owner of each level can move."""
        return {
            name: copies * int(self.weights[slice(*block)].max(initial=0))
            for name, copies, block in zip(self.names, self.copies, self.blocks, strict=True)
        }

    def same_teachers(self, other: TeacherAssignment) -> bool:
        """Whether every owner has the same teachers in both, whatever these weigh."""
        parts = [(x.names, x.copies, x.blocks, x.key, x.teachers) for x in (self, other)]
        return parts[0] == parts[1]

    def rows(self, owners: ArrayLike, privacy_levels: ArrayLike) -> list[NDArray[np.intp]]:
        """For each teacher the records it learns from, given owner and level of each record."""
        who = owner_names(owners)
        chosen = np.asarray(privacy_levels).astype(str)
        if who.ndim != 1 or who.shape != chosen.shape:
            raise InvalidArgument("owners and privacy_levels must have an entry for every record.")
        known = {name: place for place, name in enumerate(self.names)}
        if not set(np.unique(chosen).tolist()) <= set(known):
            raise InvalidArgument(f"privacy_levels must be among {', '.join(self.names)}.")
        pairs, places = np.unique(np.stack([who, chosen]), axis=1, return_inverse=True)
        if len(np.unique(pairs[0])) < pairs.shape[1]:
            raise InvalidArgument("An owner must have one level; some have several.")
        teachers = [self._teachers(name, known[level]) for name, level in pairs.T.tolist()]
        flat = np.asarray(places).ravel()
        found: list[list[int]] = [[] for _ in range(self.teachers)]
        for row, place in enumerate(flat.tolist()):
            for teacher in teachers[place]:
                found[teacher].append(row)
        return [np.array(rows, dtype=np.intp) for rows in found]

    def _teachers(self, owner: str, level: int) -> tuple[int, ...]:
        """Distinct teachers of an owner: neighbors on a ring, from a place that a hash chooses."""
        first, end = self.blocks[level]
        # Also names that are no valid text: an error would quote them.
        text = owner.encode(errors="surrogatepass")
        digest = hashlib.blake2b(text, key=self.key.encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") % (end - first)
        return tuple(first + (place + i) % (end - first) for i in range(self.copies[level]))


def owner_names(owners: ArrayLike) -> NDArray[np.str_]:
    """Owners as texts, each by itself: a missing or broken number would turn 1 into 1.0 for all."""
    found = np.asarray(owners)
    whole = found.dtype.kind in "iuU" or not found.size
    if not whole and not (
        found.dtype.kind == "O"
        and all(isinstance(one, str | int | np.integer) for one in found.ravel().tolist())
    ):
        raise InvalidArgument("owners must be whole numbers or texts, and none may be missing.")
    return found.astype(str)


def assign_weighting(
    teachers: int, *, people: Mapping[str, float], sensitivities: Mapping[str, float], key: str = ""
) -> TeacherAssignment:
    """Every level has teachers of its own, whose votes weigh as much as the level allows (M22).

    ``people``: public sizes of the levels, in any unit; ``sensitivities``: how much an owner of
    each level may weigh relative to others, for example their budgets. Weights add up to one vote
    a teacher.
    """
    number = count("teachers", teachers)
    names = _levels(people, sensitivities)
    sizes = _remainders(number, [float(people[name]) for name in names])
    if min(sizes) < 1:
        raise InvalidArgument("teachers must be enough for at least one of each level.")
    wanted = np.repeat([float(sensitivities[name]) for name in names], sizes)
    weights = np.floor(wanted / wanted.sum() * number * UNITS).astype(np.int64)
    ends = np.cumsum(sizes).tolist()
    return TeacherAssignment(
        names=names,
        copies=(1,) * len(names),
        blocks=tuple(zip([0, *ends[:-1]], ends, strict=True)),
        weights=weights,
        key=key,
    )


def assign_upsampling(
    teachers: int, *, copies: Mapping[str, int], key: str = ""
) -> TeacherAssignment:
    """All teachers learn from all levels, ``copies[level]`` of them from each owner (M20)."""
    number = count("teachers", teachers)
    names = tuple(sorted(copies))
    if not names:
        raise InvalidArgument("copies must name at least one level.")
    times = tuple(count(f"copies[{name!r}]", copies[name]) for name in names)
    if max(times) > number:
        raise InvalidArgument(f"copies must be at most the number of teachers, {number}.")
    return TeacherAssignment(
        names=names,
        copies=times,
        blocks=((0, number),) * len(names),
        weights=np.full(number, UNITS, dtype=np.int64),
        key=key,
    )


def assign_hybrid(
    teachers: int,
    *,
    people: Mapping[str, float],
    sensitivities: Mapping[str, float],
    fewest: int = 2,
    key: str = "",
) -> TeacherAssignment:
    """Weighting for levels that fill ``fewest`` teachers; smaller ones join stricter levels (M23).

    A record of a level that is too small goes to several teachers of the nearest stricter level
    that has its own: as many as its sensitivity allows. The strictest level always has its own.
    """
    number = count("teachers", teachers)
    names = _levels(people, sensitivities)
    total = sum(people.values())
    strictest = min(names, key=lambda name: (sensitivities[name], name))
    hosts = sorted(
        (n for n in names if n == strictest or people[n] / total * number >= fewest),
        key=lambda name: (sensitivities[name], name),
    )
    joined = {
        name: name
        if name in hosts
        else max((h for h in hosts if sensitivities[h] <= sensitivities[name]),
                 key=lambda h: (sensitivities[h], h))
        for name in names
    }  # fmt: skip
    times = {name: int(sensitivities[name] // sensitivities[joined[name]]) for name in names}
    load = {h: sum(people[n] * times[n] for n in names if joined[n] == h) for h in hosts}
    whole = assign_weighting(
        number, people=load, sensitivities={h: sensitivities[h] for h in hosts}, key=key
    )
    blocks = dict(zip(whole.names, whole.blocks, strict=True))
    for name in names:
        first, end = blocks[joined[name]]
        times[name] = min(times[name], end - first)
    return TeacherAssignment(
        names=names,
        copies=tuple(times[name] for name in names),
        blocks=tuple(blocks[joined[name]] for name in names),
        weights=whole.weights,
        key=key,
    )


def drop_levels(assignment: TeacherAssignment, levels: Collection[str]) -> TeacherAssignment:
    """The assignment when levels have spent their budgets: their teachers weigh nothing (M26 B).

    With upsampling that is every teacher that learned from one of them.
    """
    gone = np.zeros(assignment.teachers, dtype=bool)
    for name, block in zip(assignment.names, assignment.blocks, strict=True):
        if name in levels:
            gone[slice(*block)] = True
    if gone.all():
        raise InvalidArgument("Without these levels no teacher is left.")
    return replace(assignment, weights=np.where(gone, 0, assignment.weights))


def count_votes(
    votes: ArrayLike, assignment: TeacherAssignment, *, classes: int
) -> NDArray[np.int64]:
    """Units of votes for each class; in row i of ``votes`` is what each teacher says of item i."""
    said = np.asarray(votes)
    if said.ndim != 2 or said.shape[1] != assignment.teachers:
        raise InvalidArgument(
            f"votes must have one column for each of the {assignment.teachers} teachers."
        )
    number = count("classes", classes, minimum=2)
    if said.size and not 0 <= said.min() <= said.max() < number:
        raise InvalidArgument(f"votes must be classes 0..{number - 1}.")
    found = np.zeros((len(said), number), dtype=np.int64)
    for label in range(number):
        found[:, label] = (said == label) @ assignment.weights
    return found


def _levels(*given: Mapping[str, float]) -> tuple[str, ...]:
    names = tuple(sorted(given[0]))
    for mapping in given:
        if tuple(sorted(mapping)) != names or not names:
            raise InvalidArgument("people and sensitivities must name the same levels.")
        if not all(0 < float(value) < float("inf") for value in mapping.values()):
            raise InvalidArgument("people and sensitivities must be positive and finite.")
    return names


def _remainders(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers near the shares that add up, by the largest remainders."""
    ideal = np.asarray(shares) / sum(shares) * total
    found = np.floor(ideal).astype(int)
    for place in np.argsort(found - ideal, kind="stable")[: total - int(found.sum())]:
        found[place] += 1
    return [int(size) for size in found]


# ── Teachers that sit out some votes ─────────────────────────────────────────────────────────────
# A public schedule, drawn before any data are seen (M21). Weighting is never worse: a level that
# takes part in a fraction f of the votes pays 1/f times what teachers of a constant weight with
# the same mean would pay.


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherSchedule:
    """A cycle of assignments, one for each question in turn.

    Owners and teachers stay together; who sits out weighs nothing, the others so much more that
    all votes add up to the same.
    """

    slots: tuple[TeacherAssignment, ...]

    def __post_init__(self) -> None:
        first = self.slots[0] if self.slots else None
        if first is None or not all(first.same_teachers(slot) for slot in self.slots):
            raise InvalidArgument("slots must have the same teachers for everybody, at least one.")

    def at(self, question: int) -> TeacherAssignment:
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


def vanishing_schedule(
    teachers: int, *, people: Mapping[str, float], turns: Mapping[str, int], key: str = ""
) -> TeacherSchedule:
    """Teachers of each level take part in ``turns[level]`` votes of every cycle.

    The cycle is as long as the largest number of turns. Each teacher of a level has exactly its
    turns; how many of them vote differs by at most one from slot to slot.
    """
    plain = assign_weighting(
        teachers, people=people, sensitivities=dict.fromkeys(people, 1.0), key=key
    )
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
    return TeacherSchedule(
        slots=tuple(replace(plain, weights=row) for row in weights.astype(np.int64))
    )
