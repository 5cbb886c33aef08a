"""Who is a neighbour of whom, as people name it, and the distances that fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.models.inputs import Floats
from discreet.models.learned.metrics import (
    Cells,
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)

Level: TypeAlias = Literal["record", "attribute", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """One record, one attribute of one record, one event of a count, or a run of records.

    A distance that was given is used as it is; otherwise public data choose one that fits. It must
    be one whose neighbours are known: nothing here could tell what any other distance hides.
    """

    level: Level = "record"
    group: int = 1
    given: Metric | None = None

    @classmethod
    def of(cls, metric: Level | Metric, *, group: int = 1) -> Adjacency:
        """From what the user said; there is no default."""
        run = count("group", group)
        if isinstance(metric, Metric):
            if run != 1:
                raise InvalidArgument("group is for a named metric: use WindowGroups here.")
            return cls._from(metric)
        word: object = metric
        if not isinstance(word, str) or word not in get_args(Level):
            raise InvalidArgument(
                f"metric must be 'record', 'attribute', 'count' or a Metric, got {metric!r}."
            )
        if run > 1 and metric != "record":
            raise InvalidArgument("group is for metric='record': consecutive records.")
        return cls(level=metric, group=run)

    @classmethod
    def _from(cls, metric: Metric) -> Adjacency:
        if isinstance(metric, UnitCount):
            return cls(level="count", given=metric)
        if isinstance(metric, WindowGroups):
            return cls(level="record", group=metric.length, given=metric)
        if not isinstance(metric, Records | Truncated):
            raise InvalidArgument(
                f"metric must be Records, Cells, Truncated, UnitCount or WindowGroups, or derived "
                f"from one: who is a neighbour under {type(metric).__name__} is not known here."
            )
        return cls(level=metric.level, given=metric)

    @property
    def words(self) -> str:
        """What is hidden."""
        return self.plain.relation_words

    @property
    def plain(self) -> Metric:
        """The distance that counts units that differ."""
        return self._grouped(self._leveled())

    def truncated(self, widths: Floats) -> Metric:
        """Distances that grow up to one for each record, with these widths of ``(n, d)``."""
        if self.level == "attribute":
            return Truncated(width=widths.tolist(), level="attribute")
        return self._grouped(Truncated(width=widths.tolist()))

    def cells(self, cuts: list[list[float]]) -> Metric:
        """Distances between cells; one list of cuts for each attribute."""
        if self.level == "attribute":
            return Cells(cuts=tuple(map(tuple, cuts)), level="attribute")
        return self._grouped(Cells(cuts=tuple(map(tuple, cuts))))

    def _leveled(self) -> Metric:
        if self.level == "count":
            return UnitCount()
        return Records(level="attribute") if self.level == "attribute" else Records()

    def _grouped(self, metric: Metric) -> Metric:
        if self.group == 1:
            return metric
        return WindowGroups(length=self.group, parts_of=metric)
