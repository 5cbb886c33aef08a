"""Which teacher learns from which owners, and in which votes a teacher takes part.

The assignment is public, and for each owner a function of the owner alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.boundary.owners import NOBODY, OwnerKey, check_owner_type, level_places, owner_key
from discreet.boundary.values import listed
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument

UNITS = 1000
"""Units in a vote: weights are whole numbers of them, so that counts are whole numbers."""
_MANY_DIGITS = 10**38


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TeacherAssignment:
    """Which teachers learn from which people, and how much their votes weigh.

    The assignment of a person depends on the person's name and level only, so no other person
    changes it. Make one with `assign_weighting`, `assign_upsampling` or `assign_hybrid`.

    Args:
        names: Names of the privacy levels.
        copies: Number of teachers that learn from each person, by level.
        blocks: First teacher, and one past the last teacher, of each level.
        weights: Weight of each teacher's vote, in units.
        key: Public text that selects one of many assignments, at most 64 bytes.

    Raises:
        InvalidArgument: The arguments do not fit together.

    Examples:
        >>> from discreet.models import pate
        >>> pate.assign_upsampling(100, copies={"low": 1, "high": 3}).teachers
        100

    References:
        [Proof](../theory/theorems.md#models.pate.teacher_assignment.TeacherAssignment).
    """

    # Theorem: when the data of one owner change or vanish, at most `shares[level]` units of votes
    #   move, from any classes to any others; everything else about the vote stays.
    # Proof: an owner's teachers are a function of the owner's name and level, of the public numbers
    #   here and of the public key. So no other owner changes teacher, and the votes of those
    #   teachers weigh at most `shares[level]` together.
    # Source: Muehl 2021, chapter 5, with assignments that do not depend on others (M7, M19, T7).

    names: tuple[str, ...]
    copies: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]
    weights: NDArray[np.int64] = field(repr=False)
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
        """Number of teachers."""
        return len(self.weights)

    @property
    def shares(self) -> dict[str, int]:
        """Units of votes that one person of each level can move."""
        return {
            name: copies * int(self.weights[slice(*block)].max(initial=0))
            for name, copies, block in zip(self.names, self.copies, self.blocks, strict=True)
        }

    def same_teachers(self, other: TeacherAssignment) -> bool:
        """Test whether every person has the same teachers in another assignment.

        Args:
            other: The other assignment. Its weights may differ.

        Returns:
            True if the teachers are the same.

        Examples:
            >>> from discreet.models import pate
            >>> one = pate.assign_upsampling(100, copies={"all": 1}, key="a")
            >>> one.same_teachers(pate.assign_upsampling(100, copies={"all": 1}, key="b"))
            False
        """
        parts = [(x.names, x.copies, x.blocks, x.key, x.teachers) for x in (self, other)]
        return parts[0] == parts[1]

    def __eq__(self, other: object) -> bool:
        # By value: a plan may have been written to a file with its assignment and read back.
        if not isinstance(other, TeacherAssignment):
            return NotImplemented
        return self.same_teachers(other) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.names, self.copies, self.blocks, self.key, self.teachers))

    def rows(self, owners: object, privacy_levels: object) -> list[NDArray[np.intp]]:
        """List the records of each teacher.

        Records without an owner or with an undeclared level are not used, nor records of people who
        name several levels.

        Args:
            owners: Person of each record.
            privacy_levels: Privacy level of each record's person.

        Returns:
            Indices of records, one array per teacher.

        Raises:
            InvalidArgument: The arguments have different lengths.

        Examples:
            >>> from discreet.models import pate
            >>> teachers = pate.assign_upsampling(4, copies={"all": 1})
            >>> rows = teachers.rows(["ann", "bob", "ann"], ["all", "all", "all"])
            >>> sum(len(one) for one in rows)
            3
        """
        return self.deal(owners, privacy_levels)[0]

    def deal(
        self, owners: object, privacy_levels: object
    ) -> tuple[list[NDArray[np.intp]], frozenset[tuple[str, str]]]:
        """List the records of each teacher, and the people who take part.

        Args:
            owners: Person of each record.
            privacy_levels: Privacy level of each record's person.

        Returns:
            Indices of records as in `rows`, and pairs of person and level.

        Raises:
            InvalidArgument: The arguments have different lengths.

        Examples:
            >>> from discreet.models import pate
            >>> teachers = pate.assign_upsampling(4, copies={"all": 1})
            >>> rows, members = teachers.deal(["ann", "bob"], ["all", "unknown"])
            >>> sorted(members)
            [('ann', 'all')]
        """
        codes, names = name_owners(owners)
        levels = level_places(privacy_levels, self.names)
        if codes.ndim != 1 or codes.shape != levels.shape:
            raise InvalidArgument("owners and privacy_levels must have an entry for every record.")
        used = np.flatnonzero((codes != NOBODY) & (levels != NOBODY))
        least = np.full(len(names), len(self.names), dtype=np.int64)
        most = np.full(len(names), NOBODY, dtype=np.int64)
        np.minimum.at(least, codes[used], levels[used])
        np.maximum.at(most, codes[used], levels[used])
        teachers = [
            self._teachers(name, int(level)) if level == other else ()
            for name, level, other in zip(names, least, most, strict=True)
        ]
        found: list[list[int]] = [[] for _ in range(self.teachers)]
        for row, owner in zip(used.tolist(), codes[used].tolist(), strict=True):
            for teacher in teachers[owner]:
                found[teacher].append(row)
        members = (
            (name, self.names[level])
            for name, level, mine in zip(names, least.tolist(), teachers, strict=True)
            if mine
        )
        return [np.array(rows, dtype=np.intp) for rows in found], frozenset(members)

    def _teachers(self, owner: str, level: int) -> tuple[int, ...]:
        """Distinct teachers of an owner: neighbors on a ring, from a place that a hash chooses."""
        first, end = self.blocks[level]
        # Also names that are no valid text: an error would quote them.
        text = owner.encode(errors="surrogatepass")
        digest = hashlib.blake2b(text, key=self.key.encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") % (end - first)
        return tuple(first + (place + i) % (end - first) for i in range(self.copies[level]))


def name_owners(owners: object) -> tuple[NDArray[np.int64], list[str]]:
    """A number for each record's owner, `NOBODY` for none, and the owners' names as texts.

    Owners are compared value by value: a missing one would turn 1 into 1.0 for all. The number 7
    and the text "7" are two owners with one name, and so with the same teachers.
    """
    check_owner_type("owners", owners)
    if isinstance(owners, np.ndarray) and owners.ndim == 1 and owners.dtype.kind in "iu":
        names, places = np.unique(owners, return_inverse=True)
        return places.reshape(-1).astype(np.int64), names.astype(str).tolist()
    if isinstance(owners, np.ndarray) and owners.ndim != 1:
        return np.full(owners.shape, NOBODY, dtype=np.int64), []
    numbers: dict[OwnerKey, int] = {}
    keys = [owner_key(owner) for owner in listed(owners)]
    codes = [NOBODY if key is None else numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(codes, dtype=np.int64), [_name(key) for key in numbers]


def _name(key: OwnerKey) -> str:
    kind, value = key
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        whole = value.denominator == 1 and abs(value) < _MANY_DIGITS
        # Hexadecimal digits have no limit on their number.
        return str(value.numerator) if whole else f"{value.numerator:x}/{value.denominator:x}"
    if isinstance(value, tuple):
        return f"{kind} ({', '.join(_name(part) for part in value)})"
    return f"{kind} {value.hex() if isinstance(value, bytes) else value}"


def assign_weighting(
    teachers: int, *, people: Mapping[str, float], sensitivities: Mapping[str, float], key: str = ""
) -> TeacherAssignment:
    """Give each privacy level its own teachers, with votes of its own weight.

    Args:
        teachers: Number of teachers.
        people: Public size of each level, in any unit.
        sensitivities: Weight of each level, for example from `vote_weights`. The weights are scaled
            to one vote per teacher on average.
        key: Public text that selects one of many assignments.

    Returns:
        The assignment.

    Raises:
        InvalidArgument: There are too few teachers for the levels, or the levels differ.

    Examples:
        >>> from discreet.models import pate
        >>> teachers = pate.assign_weighting(
        ...     100, people={"low": 60, "high": 40}, sensitivities={"low": 1, "high": 3}
        ... )
        >>> teachers.blocks
        ((0, 40), (40, 100))

    References:
        Boenisch et al. (2023).
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
    """Let several teachers learn from each person, more for higher privacy levels.

    Args:
        teachers: Number of teachers.
        copies: Number of teachers that learn from each person, by level.
        key: Public text that selects one of many assignments.

    Returns:
        The assignment.

    Raises:
        InvalidArgument: A number is not positive or exceeds the number of teachers.

    Examples:
        >>> from discreet.models import pate
        >>> pate.assign_upsampling(100, copies={"low": 1, "high": 3}).copies
        (3, 1)

    References:
        Boenisch et al. (2023).
    """
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
    """Combine weighting with upsampling for small privacy levels.

    Levels that fill at least `fewest` teachers get their own teachers. People of smaller levels
    join several teachers of the nearest lower level.

    Args:
        teachers: Number of teachers.
        people: Public size of each level, in any unit.
        sensitivities: Weight of each level, for example from `vote_weights`.
        fewest: Number of teachers that a level must fill to get its own.
        key: Public text that selects one of many assignments.

    Returns:
        The assignment.

    Raises:
        InvalidArgument: There are too few teachers for the levels, or the levels differ.

    Examples:
        >>> from discreet.models import pate
        >>> teachers = pate.assign_hybrid(
        ...     100, people={"low": 99, "high": 1}, sensitivities={"low": 1, "high": 3}
        ... )
        >>> dict(zip(teachers.names, teachers.copies))
        {'high': 3, 'low': 1}
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
    """The assignment when levels have spent their budgets: their teachers weigh nothing.

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
    """Add up the weighted votes for each class.

    Args:
        votes: Classes, items x teachers.
        assignment: Assignment with the weights of the teachers.
        classes: Number of classes, at least 2.

    Returns:
        Units of votes, items x classes. They are private if the votes are.

    Raises:
        InvalidArgument: `votes` does not have one column per teacher, or names an undeclared class.

    Examples:
        >>> from discreet.models import pate
        >>> teachers = pate.assign_upsampling(3, copies={"all": 1})
        >>> counts = pate.count_votes([[0, 1, 1]], teachers, classes=2)
        >>> (counts / counts.sum()).round(2).tolist()
        [[0.33, 0.67]]
    """
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
