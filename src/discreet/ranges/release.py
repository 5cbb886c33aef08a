"""Releases of ranges: noisy measurements that answer every range later, without the data (F61)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, Ints, floats
from discreet.ranges import _range_answers as polish
from discreet.ranges import domain
from discreet.ranges._measurements import NoisyMeasurements, half_widths, read_strategy
from discreet.ranges._range_answers import RangeAnswers, plain
from discreet.ranges.domain import Domain, span
from discreet.ranges.grid.domain import GridDomain, corners, read_grid, signed_sums
from discreet.ranges.strategies.base import Strategy

# ── Releases whose error depends on the data ─────────────────────────────────────────────────────


VERSION = 1
NO_PRIOR_ERROR = "no prior error: it depends on the data, and no interval can be given"


@dataclass(frozen=True, kw_only=True, eq=False)
class DataDependentRelease:
    """Estimates of the cells of a grid by a mechanism that adapts to the data.

    Part of the error is a bias that nobody can state without the data, so there is no standard
    deviation and no interval here. The guarantee is the same as anywhere else.
    """

    grid: GridDomain
    cells: Floats
    method: str
    guarantee: Guarantee
    private: bool = True
    """False if the noise came from a seed: for tests and simulations only."""

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)

    @property
    def total(self) -> float:
        """The estimate of everything."""
        return float(self.cells.sum())

    def answer(self, *spans: Any) -> Any:
        """The estimated number of rows: for each axis a pair (lower, upper) of labels, or None."""
        return plain(signed_sums(self._corners, self.grid.ends(spans)))

    def to_json(self) -> str:
        """The whole artifact as text; ``from_json`` reads it back."""
        content = {
            "discreet_aware": VERSION,
            "grid": self.grid.content(),
            "cells": self.cells.ravel().tolist(),
            "method": self.method,
            "guarantee": json.loads(self.guarantee.to_json()),
            "private": self.private,
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> DataDependentRelease:
        """The artifact of a text."""
        with canonical.reading("a data-aware release"):
            content = json.loads(text)
            if content["discreet_aware"] != VERSION:
                raise InvalidArgument("text is a release of another version.")
            grid = read_grid(content["grid"])
            return cls(
                grid=grid,
                cells=np.array(content["cells"], dtype=np.float64).reshape(grid.shape),
                method=str(content["method"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                private=bool(content["private"]),
            )

    def __str__(self) -> str:
        note = "" if self.private else "; made with a seed: not private"
        return (
            f"{self.method} of {self.grid} (total about {self.total:,.0f}; {NO_PRIOR_ERROR}; "
            f"{self.guarantee!r}{note})"
        )

    __repr__ = __str__

    @cached_property
    def _corners(self) -> Floats:
        return corners(self.cells)


# ── Releases with exact errors ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class NonnegativeRelease:
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
class RangeRelease(NoisyMeasurements, RangeAnswers):
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

    def nonnegative(self, *, total: int | None = None) -> NonnegativeRelease:
        """Cells that are not negative, with the estimated total or a public one.

        A public total is allowed only if replacing one unit leaves it as it is.
        """
        if total is not None:
            check.count("total", total, minimum=0)
            if (
                self.guarantee.relation is not NeighboringRelation.REPLACE_ONE
                or self.contribution.rows != 1
            ):
                raise InvalidArgument(
                    "total may be public only under REPLACE_ONE with exactly one row of each unit."
                )
        pinned = max(self.total, 0.0) if total is None else float(total)
        cells = polish.non_negative(self.strategy, self._noise, self.cells, total=pinned)
        return NonnegativeRelease(domain=self.domain, cells=cells, pinned=pinned)

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
