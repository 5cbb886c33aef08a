"""Releases of ranges: noisy measurements that answer every range later, without the data (F61)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.result import Result, records
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
class DataDependentRelease(Result):
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

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the estimate of each cell.

        Args:
            confidence: Without effect: the error depends on the data, so none is known.

        Returns:
            One record for each cell: a label for each axis, then value, std, low and high, the
            last three None.
        """
        names = [f"cell {axis + 1}" for axis in range(len(self.grid.shape))]
        return records(names, product(*self.grid.labels), value=self.cells.ravel())

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
            f"{self.method} of {self.grid} (total about {number(round(self.total))}; "
            f"{NO_PRIOR_ERROR}; {describe_epsilon(self.guarantee)}{note})"
        )

    __repr__ = __str__

    @cached_property
    def _corners(self) -> Floats:
        return corners(self.cells)


# ── Releases with exact errors ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True, repr=False)
class NonnegativeRelease(Result):
    """Cells that are not negative and sum to a fixed total: post-processing, biased.

    Side effects: single cells and sparse data gain; where the exact counts are near zero the
    answers are too large, elsewhere too small. No variance or interval holds for these.

    Attributes:
        domain: Declared domain of the values.
        cells: Estimated count of each cell.
        pinned: Total of the cells.
        guarantee: Guarantee of the release that was post-processed.

    Examples:
        >>> from discreet import ranges
        >>> release = ranges.plan_ranges(4, "points", epsilon=1).best.release([5, 3, 8, 1])
        >>> found = release.nonnegative()
        >>> bool((found.cells >= 0).all()), abs(found.answer() - found.pinned) < 1e-6
        (True, True)
    """

    domain: Domain
    cells: Floats
    pinned: float
    guarantee: Guarantee | None = None

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List each cell.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each cell: its label, value, std, low and high, the last three None.

        Examples:
            >>> all(row["value"] >= 0 for row in found.rows())
            True
        """
        labels = ((self.domain.label(place),) for place in range(self.domain.size))
        return records(("cell",), labels, value=self.cells)

    def answer(self, lower: Any = None, upper: Any = None) -> Any:
        """Answer one range, or arrays of ranges, from the cells that are not negative.

        Args:
            lower: First value of the range, or an array. If None, the first of all.
            upper: Last value of the range, or an array. If None, the last of all.

        Returns:
            The count, or one for each range.

        Examples:
            >>> found.answer(0, 1) >= 0
            True
        """
        a, b = span(self.domain, lower, upper)
        sums = np.concatenate([[0.0], np.cumsum(self.cells)])
        return plain(sums[b + 1] - sums[a])

    def _title(self) -> str:
        return (
            f"{self.domain} without negative cells, total {number(self.pinned)}, no error is known"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeRelease(NoisyMeasurements, RangeAnswers):
    """Hold noisy measurements of a column, which answer every range.

    Made by `Table.ranges`, or by the design of `plan_ranges`. Up to a thousand ranges at a time get
    intervals from the exact distribution of their noise. More get a bound by Chernoff's inequality,
    which is wider.

    Args:
        strategy: What was measured.
        laws: Noise distribution of each group of measurements.
        measured: Noisy measurements.
        guarantee: Privacy guarantee of the release.
        contribution: Largest contribution of one privacy unit.
        private: Whether the noise came from a private random source.
        domain: Cells of the column.

    Examples:
        >>> from discreet import ranges
        >>> release = ranges.plan_ranges(4, "points", epsilon=1).best.release([5, 3, 8, 1])
        >>> release.guarantee.epsilon()
        1.0
    """

    _kind: ClassVar[str] = "ranges"
    _what: ClassVar[str] = "ranges"
    _place: ClassVar[str] = "domain"
    _precision: ClassVar[float] = 2.0**-44

    domain: Domain
    strategy: Strategy

    def nonnegative(self, *, total: int | None = None) -> NonnegativeRelease:
        """Estimate cells that are not negative.

        This is post-processing: it costs nothing. The intervals are lost.

        Args:
            total: Public number of rows that the cells add up to. Allowed only under `REPLACE_ONE`
                with exactly one row of each privacy unit. If None, the noisy total.

        Returns:
            Cells that are not negative, for all ranges.

        Raises:
            InvalidArgument: `total` is negative, or it is not public under this neighboring
                relation.

        Examples:
            >>> bool((release.nonnegative().cells >= 0).all())
            True
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
        return NonnegativeRelease(
            domain=self.domain, cells=cells, pinned=pinned, guarantee=self.guarantee
        )

    @classmethod
    def _read(cls, place: Any, strategy: Any) -> dict[str, Any]:
        return {"domain": domain.read(place), "strategy": read_strategy(strategy)}

    def _fits(self) -> bool:
        if self.strategy.size != self.domain.size:
            return False
        shapes = [group.shape for group in self.strategy.measure(np.zeros(self.domain.size, int))]
        return shapes == [group.shape for group in self.measured]

    def __str__(self) -> str:
        return self._told(self.total, self.answer_std())

    __repr__ = __str__

    @property
    def _sums(self) -> Floats:
        return self._prefixes

    def _variance(self, a: Ints, b: Ints) -> Floats:
        return self.strategy.variance(a, b, self._noise)

    def _widths(self, a: Ints, b: Ints, tail: float) -> Floats:
        found = half_widths(self.strategy, self.laws, a, b, tail=tail)
        return floats(found + self._rounding)
