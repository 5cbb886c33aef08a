"""Who is a neighbour of whom, as people name it, the distances that fit, and drawn neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

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

    A distance that was given is used as it is; otherwise public data choose one that fits.
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
        if metric not in get_args(Level):
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
        fine = getattr(metric, "level", "record") == "attribute"
        return cls(level="attribute" if fine else "record", given=metric)

    @property
    def words(self) -> str:
        """What is hidden."""
        return self._grouped(self._leveled()).relation_words

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

    def families(
        self, inputs: Floats, *, lower: Floats, upper: Floats, size: int, seed: int = 0
    ) -> Floats:
        """Drawn inputs that are all neighbours of each other, for each given input.

        ``(inputs, size, positions, attributes)``: the first is the input itself; the rest have one
        unit replaced by ends of the domain and by draws. Of counts there are just two.
        """
        draw = np.random.default_rng(seed)
        kin = np.repeat(inputs[:, None], size, axis=1)
        positions, attributes = inputs.shape[1:]
        for family in kin:
            at = int(draw.integers(max(1, positions - self.group + 1)))
            if self.level == "count":
                family[1:, at, 0] += 1.0
                continue
            where = slice(at, at + self.group)
            new = draw.uniform(lower, upper, (size - 1, *family[0, where].shape))
            new[0], new[1] = lower, upper
            if self.level == "attribute":
                one = int(draw.integers(attributes))
                family[1:, where, one] = new[:, :, one]
            else:
                family[1:, where] = new
        return kin
