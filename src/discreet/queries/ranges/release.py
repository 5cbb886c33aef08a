"""The artefact: noisy measurements that answer every range later, without the data (F61)."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.noise.law import Floats, Ints, floats
from discreet.queries.ranges import domain, polish, tails
from discreet.queries.ranges.answers import RangeAnswers, plain
from discreet.queries.ranges.content import (
    law_content,
    packed,
    read_law,
    read_strategy,
    unpacked,
)
from discreet.queries.ranges.domain import Domain, span
from discreet.queries.ranges.strategy import Contribution, Strategy
from discreet.queries.ranges.tails import Law
from discreet.queries.ranges.widths import half_widths

VERSION = 1
_ROUNDING = 2.0**-44


@dataclass(frozen=True, kw_only=True)
class Polished:
    """Cells that are not negative and sum to a fixed total: post-processing, biased (F41).

    Side effects: single cells and sparse data gain; where the exact counts are near zero the
    answers are too large, elsewhere too small. No variance or interval holds for these.
    """

    domain: Domain
    cells: Floats
    pinned: float

    def answer(self, lower: Any = None, upper: Any = None) -> Any:
        """The polished answer to one range, or to arrays of ends."""
        a, b = span(self.domain, lower, upper)
        sums = np.concatenate([[0.0], np.cumsum(self.cells)])
        return plain(sums[b + 1] - sums[a])


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeRelease(RangeAnswers):
    """Noisy measurements of a domain: answers to all ranges, with exact errors.

    Intervals hold the exact count with at least their level. Up to a thousand ranges at a time get
    bounds from the law of their own noise; more get Chernoff's bound, which is wider (`tails`).
    """

    domain: Domain
    strategy: Strategy
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

    def polished(self, *, total: int | None = None) -> Polished:
        """Cells that are not negative, with the estimated total or a public one.

        A public total is allowed only if replacing one unit leaves it as it is.
        """
        if total is not None:
            check.count("total", total, minimum=0)
            if self.guarantee.relation is not Relation.REPLACE_ONE or self.contribution.rows != 1:
                raise InvalidArgument(
                    "total may be public only under REPLACE_ONE with exactly one row of each unit."
                )
        pinned = max(self.total, 0.0) if total is None else float(total)
        cells = polish.non_negative(self.strategy, self._noise, self.cells, total=pinned)
        return Polished(domain=self.domain, cells=cells, pinned=pinned)

    def to_json(self) -> str:
        """The whole artefact as text; ``from_json`` reads it back."""
        content = {
            "discreet_ranges": VERSION,
            "domain": self.domain.content(),
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
    def from_json(cls, text: str) -> RangeRelease:
        """The artefact of a text."""
        try:
            content = json.loads(text)
            if content["discreet_ranges"] != VERSION:
                raise InvalidArgument("text is a release of ranges of another version.")
            made = cls(
                domain=domain.read(content["domain"]),
                strategy=read_strategy(content["strategy"]),
                laws=tuple(read_law(law) for law in content["noise"]),
                measured=tuple(unpacked(group) for group in content["measured"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                contribution=Contribution(**content["contribution"]),
                private=bool(content["private"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument("text must be the JSON of a release of ranges.") from None
        if not made._fits():
            raise InvalidArgument("text holds measurements that do not fit its domain.")
        return made

    def _fits(self) -> bool:
        if self.strategy.size != self.domain.size or len(self.laws) != len(self.strategy.shares):
            return False
        shapes = [group.shape for group in self.strategy.measure(np.zeros(self.domain.size, int))]
        return shapes == [group.shape for group in self.measured]

    def __str__(self) -> str:
        note = "" if self.private else "; made with a seed: not private"
        whole = span(self.domain, None, None)
        deviation = float(np.sqrt(self._variance(*whole)))
        return (
            f"ranges of {self.domain} by {self.strategy.describe()} "
            f"(total {self.total:,.0f} ± {deviation:,.3g}; {self.guarantee!r}{note})"
        )

    __repr__ = __str__

    @cached_property
    def _noise(self) -> Floats:
        return np.array([law.variance for law in self.laws])

    def _variance(self, a: Ints, b: Ints) -> Floats:
        return self.strategy.variance(a, b, self._noise)

    @cached_property
    def _rounding(self) -> float:
        """Room for the rounding of estimates in doubles: far below the noise."""
        return _ROUNDING * max(1.0, float(np.abs(self._prefixes).max()))

    def _quick(self, variance: Floats, tail: float) -> Floats:
        largest = self.strategy.largest_weights(self._noise)
        return tails.quick(self.laws, largest, variance, tail) + self._rounding

    def _widths(self, a: Ints, b: Ints, tail: float) -> Floats:
        found = half_widths(self.strategy, self.laws, a, b, tail=tail)
        return floats(found + self._rounding)
