"""Noisy integers of a structure: what a release of ranges and one of a grid have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical
from discreet.core.errors import InvalidArgument
from discreet.noise.law import Floats, Ints
from discreet.queries.noisy import law_content, read_law
from discreet.queries.ranges import tails
from discreet.queries.ranges.boxes import Boxes
from discreet.queries.ranges.content import packed, unpacked
from discreet.queries.ranges.domain import Domain
from discreet.queries.ranges.grid import Grid
from discreet.queries.ranges.strategy import Contribution, Strategy
from discreet.queries.ranges.tails import Law

VERSION = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(ABC):
    """What was measured with which noise. Subclasses say of what, and answer."""

    _kind: ClassVar[str]
    """Of the artefact, in its text."""
    _what: ClassVar[str]
    """The same in errors."""
    _place: ClassVar[str]
    """The field that holds the cells' labels."""
    _precision: ClassVar[float]
    """The share of the largest sum that rounding in doubles may take."""

    strategy: Strategy | Boxes
    laws: tuple[Law, ...]
    measured: tuple[Ints, ...]
    guarantee: Guarantee
    contribution: Contribution
    private: bool = True
    """False if the noise came from a seed: for tests and simulations only."""

    def __post_init__(self) -> None:
        for group in self.measured:
            group.setflags(write=False)

    @cached_property
    def cells(self) -> Floats:
        """The best linear unbiased estimate of each cell."""
        found = self.strategy.estimate(self.measured, self._noise)
        found.setflags(write=False)
        return found

    def to_json(self) -> str:
        """The whole artefact as text; ``from_json`` reads it back."""
        content = {
            f"discreet_{self._kind}": VERSION,
            self._place: self._labelled.content(),
            "strategy": self.strategy.content(),
            "noise": [law_content(law) for law in self.laws],
            "measured": [packed(group) for group in self.measured],
            "guarantee": json.loads(self.guarantee.to_json()),
            "contribution": {
                "rows": self.contribution.rows,
                "per_cell": self.contribution.per_cell,
            },
            "private": self.private,
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The artefact of a text."""
        with canonical.reading(f"a release of {cls._what}"):
            content = json.loads(text)
            if content[f"discreet_{cls._kind}"] != VERSION:
                raise InvalidArgument(f"text is a release of {cls._what} of another version.")
            made = cls(
                **cls._read(content[cls._place], content["strategy"]),
                laws=tuple(read_law(law) for law in content["noise"]),
                measured=tuple(unpacked(group) for group in content["measured"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                contribution=Contribution(**content["contribution"]),
                private=bool(content["private"]),
            )
        if len(made.laws) != len(made.strategy.shares) or not made._fits():
            raise InvalidArgument(f"text holds measurements that do not fit its {cls._place}.")
        return made

    def _told(self, total: float, deviation: float) -> str:
        note = "" if self.private else "; made with a seed: not private"
        return (
            f"{self._kind} of {self._labelled} by {self.strategy.describe()} "
            f"(total {total:,.0f} ± {deviation:,.3g}; {self.guarantee!r}{note})"
        )

    @property
    def _labelled(self) -> Domain | Grid:
        labelled: Domain | Grid = getattr(self, self._place)
        return labelled

    @classmethod
    @abstractmethod
    def _read(cls, place: Any, strategy: Any) -> dict[str, Any]:
        """The fields of labels and structure of their JSON."""

    @abstractmethod
    def _fits(self) -> bool:
        """Whether the measurements are those of the structure, and it that of the labels."""

    @property
    @abstractmethod
    def _sums(self) -> Floats:
        """The sums of cells from which all answers are differences."""

    @cached_property
    def _noise(self) -> Floats:
        return tails.variances(self.laws)

    @cached_property
    def _rounding(self) -> float:
        """Room for the rounding of estimates in doubles: far below the noise."""
        return self._precision * max(1.0, float(np.abs(self._sums).max()))

    def _quick(self, variance: Floats, tail: float) -> Floats:
        largest = self.strategy.largest_weights(self._noise)
        return tails.quick(self.laws, largest, variance, tail) + self._rounding
