"""One question, several engines: the same integers from each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core import check
from discreet.data.plan import MOST_ROWS, Key, Plan, Program

PRIME = 2**31 - 1
"""Products of two residues fit into 64 bits, on every engine."""
LIMB = 2**31 - 1
"""A mask of 31 bits."""
Row: TypeAlias = Sequence[int]
"""Group, rows, units, then the sums."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Table:
    """Exact private integers per public key: for mechanisms only, so the repr shows none."""

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    columns: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        return f"Table(by={list(self.names)}, groups={len(self.keys)}, of={list(self.columns)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """Constants of a keyed hash of unit and group to ``0 .. PRIME - 1``; see docs/theory/data.md.

    Limbs of 31 bits are combined by a random linear map (two different inputs collide with
    probability 1/PRIME), then permuted twice by ``x -> (x + c)**5``. Only the fairness of the
    choice of rows rests on it; that choice is stable for any function of key and unit.
    """

    unit: tuple[int, int, int]
    group: tuple[int, int, int]
    rounds: tuple[int, int]


def mixer(key: int, *, purpose: str) -> Mixer:
    """The constants for one of the limits of one run."""
    words = []
    for i in range(8):
        digest = sha256(f"{key}/{purpose}/{i}".encode()).digest()
        words.append(1 + int.from_bytes(digest[:16], "big") % (PRIME - 1))
    return Mixer(
        unit=(words[0], words[1], words[2]),
        group=(words[3], words[4], words[5]),
        rounds=(words[6], words[7]),
    )


class Engine(Protocol):
    """Runs a program on a source that it understands."""

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        """One row for each group (or bin of one) that is not empty, in any order."""

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        """For each key that occurs, in any order: index, different units, texts of the key."""

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        """Each row that the limits leave, in any order: name of the unit, values."""

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        """How many rows, and how many groups, how many units have: number, units."""


def tabulate(plan: Plan, *, engine: Engine, key: int) -> Table:
    """Run a plan on an engine; ``key`` is a fresh random number, the same for nobody else."""
    check.count("key", key, minimum=0)
    program = plan.program()
    rows = engine.collect(program, key=key)
    table = {}
    place = 0
    for name, aggregate in plan.aggregates.items():
        weight, column = 1, 1 if aggregate.kind == "count" else 2
        if aggregate.kind == "sum":
            weight, column = program.sums[place].weight, 3 + place
            place += 1
        # Which of the two types is public: it follows from the declared bounds.
        fits = weight * MOST_ROWS < 2**63
        dense = np.zeros(program.entries, dtype=np.int64 if fits else object)
        for row in rows:
            dense[row[0]] = int(row[column])
        dense.setflags(write=False)
        table[name] = dense
    return Table(
        names=tuple(plan.by or ()),
        keys=tuple(plan.labels()),
        columns=MappingProxyType(table),
    )
