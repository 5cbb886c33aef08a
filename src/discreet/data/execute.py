"""Keys that occur, with the number of different units of each: private, for a threshold only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.data.bounded import Bounded
from discreet.data.code import Ref, columns
from discreet.data.collect import engine_of
from discreet.data.expression import Expression
from discreet.data.plan import Key, Limits, Program, condition, radix
from discreet.data.schema import Schema
from discreet.data.source import Source, sealed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyPlan:
    """Which keys are looked for: values of open text and of declared expressions.

    Rows without a unit, and rows whose open text is missing, are left out. Of each unit at most
    ``groups_per_unit`` keys count, chosen by its own keys (in the order of their bytes) only.
    """

    schema: Schema
    by: Mapping[str, Expression]
    groups_per_unit: int
    unit: str | None = None
    where: Expression | None = None

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidArgument("by must name the columns whose values are looked for.")
        groups = check.count("groups_per_unit", self.groups_per_unit)
        if self.unit is None and groups != 1:
            raise InvalidArgument("groups_per_unit is 1 when each row is another unit.")
        self.program()

    def program(self) -> Program:
        """What the engine is asked."""
        where = condition(self.where, self.schema)
        index, size = radix(self._coded())
        codes = [index, *([] if where is None else [where])]
        used = sorted(set().union(*map(columns, codes)) | set(self._texts()))
        return Program(
            columns=tuple((name, self.schema[name]) for name in used),
            unit=self.unit,
            where=where,
            index=index,
            cells=None,
            size=size,
            values=(),
            sums=(),
            count_units=True,
            limits=Limits(groups_per_unit=self.groups_per_unit) if self.unit else Limits(),
            texts=self._texts(),
        )

    def key(self, index: int, texts: tuple[str, ...]) -> Key:
        """The values that a group stands for, in the order of ``by``."""
        coded: list[Any] = []
        for one in reversed(self._coded()):
            index, place = divmod(index, one.upper - one.lower + 1)
            coded.append(one.label(place + one.lower))
        rest, coded = iter(texts), coded[::-1]
        return tuple(next(rest) if d.kind == "text" else coded.pop(0) for d in self._dimensions())

    def _dimensions(self) -> tuple[Bounded, ...]:
        return tuple(one.bind(self.schema) for one in self.by.values())

    def _coded(self) -> tuple[Bounded, ...]:
        return tuple(one for one in self._dimensions() if one.kind != "text")

    def _texts(self) -> tuple[str, ...]:
        texts = [d.code for d in self._dimensions() if d.kind == "text"]
        return tuple(code.column for code in texts if isinstance(code, Ref))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Found:
    """Private: the keys that occur, in the order of their values, and how many units have each."""

    keys: tuple[Key, ...]
    units: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Found(private)"


def collect_keys(plan: KeyPlan, *, source: Source, key: int) -> Found:
    """The keys that occur; ``key`` decides which keys of a unit above its limit are kept."""
    rows = engine_of(source).keys(plan.program(), key=check.count("key", key, minimum=0))
    return sealed("sorting the keys", lambda: _found(plan, rows))


def _found(plan: KeyPlan, rows: Sequence[Sequence[Any]]) -> Found:
    # Not the engine's order: by texts as bytes, then by declared values.
    ordered = sorted(rows, key=lambda row: (*(str(t).encode() for t in row[2:]), int(row[0])))
    return Found(
        keys=tuple(plan.key(int(row[0]), tuple(row[2:])) for row in ordered),
        units=np.array([int(row[1]) for row in ordered], dtype=np.int64),
    )
