"""The artefact: noisy measurements that answer every range later, without the data (F61)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.noise.law import Floats, Ints, floats
from discreet.queries.ranges import domain, polish
from discreet.queries.ranges.answers import RangeAnswers, plain
from discreet.queries.ranges.content import read_strategy
from discreet.queries.ranges.domain import Domain, span
from discreet.queries.ranges.measured import Measured
from discreet.queries.ranges.strategy import Strategy
from discreet.queries.ranges.widths import half_widths


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

    def __repr__(self) -> str:
        return f"Polished({self.domain}, total {self.pinned:,.6g}, no error bars)"


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeRelease(Measured, RangeAnswers):
    """Noisy measurements of a domain: answers to all ranges, with exact errors.

    Intervals hold the exact count with at least their level. Up to a thousand ranges at a time get
    bounds from the law of their own noise; more get Chernoff's bound, which is wider (`tails`).
    """

    _kind: ClassVar[str] = "ranges"
    _what: ClassVar[str] = "ranges"
    _place: ClassVar[str] = "domain"
    _precision: ClassVar[float] = 2.0**-44

    domain: Domain
    strategy: Strategy

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

    @classmethod
    def _read(cls, place: Any, strategy: Any) -> dict[str, Any]:
        return {"domain": domain.read(place), "strategy": read_strategy(strategy)}

    def _fits(self) -> bool:
        if self.strategy.size != self.domain.size:
            return False
        shapes = [group.shape for group in self.strategy.measure(np.zeros(self.domain.size, int))]
        return shapes == [group.shape for group in self.measured]

    def __str__(self) -> str:
        return self._told(self.total, self.std())

    __repr__ = __str__

    @property
    def _sums(self) -> Floats:
        return self._prefixes

    def _variance(self, a: Ints, b: Ints) -> Floats:
        return self.strategy.variance(a, b, self._noise)

    def _widths(self, a: Ints, b: Ints, tail: float) -> Floats:
        found = half_widths(self.strategy, self.laws, a, b, tail=tail)
        return floats(found + self._rounding)
