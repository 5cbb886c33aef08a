"""Releases of a grid: noisy measurements that answer every rectangle later (F61)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.core.tabular import Record
from discreet.noise.distribution import Floats, floats
from discreet.noise.gaussian import DiscreteGaussian
from discreet.query.result import (
    AnyGuarantee,
    FixedResult,
    Result,
    check_confidence,
    records,
)
from discreet.ranges import _noise_tails as tails
from discreet.ranges._measurements import NoisyMeasurements
from discreet.ranges._range_answers import DEFAULT_CONFIDENCE, plain
from discreet.ranges.grid.box_strategy import BoxStrategy, read_boxes
from discreet.ranges.grid.domain import Ends, GridDomain, corners, read_grid, signed_sums
from discreet.ranges.strategies.base import Terms

_CLOSE = 100
"""For more rectangles at once, intervals come from variances alone: valid, but wider."""
_SMALL = 130.0
_SMOOTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyCell:
    """A cell that is above a threshold, for all that is stated together at the level."""

    labels: tuple[object, ...]
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Marginal(FixedResult):
    """Totals of each cell of one axis, with standard deviations, and bounds for each by itself.

    Attributes:
        labels: Label of each cell.
        values: Noisy total of each cell.
        std: Standard deviation of the noise of each total.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
        confidence: Probability with which each interval holds.
        guarantee: Privacy guarantee of the release.

    Examples:
        >>> from discreet import ranges
        >>> axes = [ranges.integers(0, 3), ranges.ordered(["a", "b"])]
        >>> design = ranges.plan_grid(axes, "points", epsilon=1).best
        >>> letters = design.release([[1, 2], [3, 4], [5, 6], [7, 8]]).marginal(1)
        >>> letters.labels, letters.values.shape
        (('a', 'b'), (2,))
    """

    labels: tuple[object, ...]
    values: Floats
    std: Floats
    low: Floats
    high: Floats
    confidence: float
    guarantee: AnyGuarantee | None = None

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the total of each cell of the axis.

        Args:
            confidence: That of the intervals, if it is given.

        Returns:
            One record for each cell: its label, value, std, low and high.

        Examples:
            >>> len(letters.rows())
            2
        """
        check_confidence(confidence, self.confidence)
        labels = ((label,) for label in self.labels)
        return records(
            ("cell",), labels, value=self.values, std=self.std, low=self.low, high=self.high
        )

    def _title(self) -> str:
        return f"Totals of {len(self.labels):,} cells of one axis"

    @property
    def _confidence(self) -> float:
        return self.confidence


@dataclass(frozen=True, kw_only=True, eq=False)
class GridRelease(NoisyMeasurements, Result):
    """Hold noisy measurements of several columns, which answer every rectangle.

    Made by `Table.ranges` with a list of columns, or by the design of `ranges.plan_grid`.

    Args:
        strategy: What was measured.
        laws: Noise distribution of each group of measurements.
        measured: Noisy measurements.
        guarantee: Privacy guarantee of the release.
        contribution: Largest contribution of one privacy unit.
        private: Whether the noise came from a private random source.
        grid: Cells of all columns.

    Examples:
        >>> from discreet import ranges
        >>> axes = [ranges.integers(0, 3), ranges.ordered(["a", "b"])]
        >>> design = ranges.plan_grid(axes, "points", epsilon=1).best
        >>> release = design.release([[1, 2], [3, 4], [5, 6], [7, 8]])
        >>> release.guarantee.epsilon()
        1.0
    """

    _kind: ClassVar[str] = "grid"
    _what: ClassVar[str] = "a grid"
    _place: ClassVar[str] = "grid"
    _precision: ClassVar[float] = 2.0**-40

    grid: GridDomain
    strategy: BoxStrategy

    @property
    def labels(self) -> tuple[tuple[object, ...], ...]:
        """Labels of the cells of each axis."""
        return self.grid.labels

    @cached_property
    def cell_std(self) -> Floats:
        """Exact standard deviation of the noise of each cell."""
        ends = tuple((np.arange(size), np.arange(size)) for size in self.grid.shape)
        found = np.sqrt(self.strategy.outer_variance(ends, self._noise))
        found.setflags(write=False)
        return found

    @property
    def total(self) -> float:
        """Noisy number of all rows."""
        return float(self._corners[(-1,) * len(self.grid.shape)])

    def answer(self, *spans: Any) -> Any:
        """Return the number of rows in a rectangle.

        Args:
            spans: For each axis a pair (lower, upper) of labels, both included. None stands for a
                whole axis, and in a pair for an open end. Pairs of arrays give many rectangles at
                once.

        Returns:
            The noisy count, or an array of counts. Counts can be negative.

        Examples:
            >>> release.answer(None, None) == release.total
            True
        """
        return plain(self._answers(self.grid.ends(spans)))

    def answer_std(self, *spans: Any) -> Any:
        """Return the exact standard deviation of answers.

        Args:
            spans: For each axis a pair of labels or None, as in `answer`.

        Returns:
            A number, or an array.

        Examples:
            >>> release.answer_std((0, 1), None) > 0
            True
        """
        return plain(np.sqrt(self.strategy.variance(self.grid.ends(spans), self._noise)))

    def answer_interval(
        self, *spans: Any, confidence: float = DEFAULT_CONFIDENCE
    ) -> tuple[Any, Any]:
        """Return bounds that hold the exact counts.

        Up to a hundred rectangles at a time get bounds from the exact distribution of their noise.
        More get a bound by Chernoff's inequality, which is wider.

        Args:
            spans: For each axis a pair of labels or None, as in `answer`.
            confidence: Probability with which each interval holds the exact count, between 0 and 1.

        Returns:
            Lower and upper ends, each a number or an array.

        Raises:
            InvalidArgument: A label is not in the domain, or the confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.answer_interval((0, 1), ("a", "a"))
            >>> low <= release.answer((0, 1), ("a", "a")) <= high
            True
        """
        tail = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        ends = self.grid.ends(spans)
        value, width = self._answers(ends), self._widths(ends, tail)
        return plain(value - width), plain(value + width)

    @property
    def values(self) -> Floats:
        """The estimate of each cell, the last axis running fastest."""
        return self.cells.ravel()

    value = values

    @property
    def std(self) -> Floats:
        """The standard deviation of the estimate of each cell."""
        return self.cell_std.ravel()

    def interval(self, confidence: float = DEFAULT_CONFIDENCE) -> tuple[Floats, Floats]:
        """Return bounds that hold the exact count of each cell.

        Args:
            confidence: Probability with which each interval holds, at least.

        Returns:
            The lower and the upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.interval(0.9)
            >>> len(low)
            8
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        width = self._quick(np.square(self.std), 1 - inside)
        return self.values - width, self.values + width

    def rows(self, confidence: float = DEFAULT_CONFIDENCE) -> list[Record]:
        """Return one record for each cell.

        Args:
            confidence: Probability with which each interval holds the exact count, between 0 and 1.

        Returns:
            Dictionaries with a label for each axis, `value`, `std`, `low` and `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> len(release.rows())
            8
        """
        low, high = self.interval(confidence)
        names = [f"cell {axis + 1}" for axis in range(len(self.grid.shape))]
        labels = product(*self.labels)
        return records(names, labels, value=self.values, std=self.std, low=low, high=high)

    def __len__(self) -> int:
        return self.grid.size

    def marginal(self, axis: int, *, confidence: float = DEFAULT_CONFIDENCE) -> Marginal:
        """Return the totals along one axis, summed over all others.

        Args:
            axis: Number of the axis, counted from zero.
            confidence: Probability with which each interval holds the exact total, between 0 and 1.

        Returns:
            A marginal with `labels`, `values`, `std`, `low` and `high`.

        Raises:
            InvalidArgument: There is no such axis, or the confidence is not between 0 and 1.

        Examples:
            >>> release.marginal(1).labels
            ('a', 'b')
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        number = len(self.grid.shape)
        if check.count("axis", axis, minimum=0) >= number:
            raise InvalidArgument(f"axis must be 0 .. {number - 1}, got {axis}.")
        here = np.arange(self.grid.shape[axis])
        ends = tuple(
            (here, here) if k == axis else (np.zeros_like(here), np.full_like(here, size - 1))
            for k, size in enumerate(self.grid.shape)
        )
        values, width = self._answers(ends), self._widths(ends, 1 - inside)
        return Marginal(
            labels=self.labels[axis],
            values=values,
            std=np.sqrt(self.strategy.variance(ends, self._noise)),
            low=values - width,
            high=values + width,
            confidence=inside,
            guarantee=self.guarantee,
        )

    def cells_above(
        self, threshold: float, *, confidence: float = DEFAULT_CONFIDENCE
    ) -> list[HeavyCell]:
        """List the cells that hold more rows than a threshold.

        Args:
            threshold: Number of rows.
            confidence: Probability with which all listed cells hold more than `threshold` rows.

        Returns:
            The cells with their counts and intervals.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> release.cells_above(1_000)
            []
        """
        # Proof: by the union bound over all cells, every exact count is above the lower bound.
        least = float(check.finite("threshold", threshold))
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        width = self._quick(np.square(self.cell_std), (1 - inside) / self.grid.size)
        places = np.argwhere(self.cells - width > least)
        found = [
            HeavyCell(
                labels=tuple(names[i] for names, i in zip(self.labels, place, strict=True)),
                value=float(self.cells[tuple(place)]),
                low=float((self.cells - width)[tuple(place)]),
                high=float((self.cells + width)[tuple(place)]),
            )
            for place in places
        ]
        return sorted(found, key=lambda cell: -cell.value)

    @classmethod
    def _read(cls, place: Any, strategy: Any) -> dict[str, Any]:
        return {"grid": read_grid(place), "strategy": read_boxes(strategy)}

    def _fits(self) -> bool:
        if self.strategy.shape != self.grid.shape:
            return False
        sizes = [int(np.prod(shape)) for shape in self.strategy.shapes()]
        return sizes == [len(group) for group in self.measured]

    def __str__(self) -> str:
        return self._told(self.total, self.answer_std(*[None] * len(self.grid.shape)))

    __repr__ = __str__

    @property
    def _sums(self) -> Floats:
        return self._corners

    @cached_property
    def _corners(self) -> Floats:
        return corners(self.cells)

    def _answers(self, ends: Ends) -> Floats:
        return signed_sums(self._corners, ends)

    def _widths(self, ends: Ends, tail: float) -> Floats:
        variance = self.strategy.variance(ends, self._noise)
        width = self._quick(variance, tail)
        if tails.fine(self.laws):
            normal = tails.normal(self.laws, np.sqrt(variance), tail)
            return np.minimum(width, normal + self._rounding)
        if variance.size > _CLOSE:
            return width
        flat = [(np.ravel(a).tolist(), np.ravel(b).tolist()) for a, b in ends]
        close = [
            tails.close(
                self.laws,
                self._terms([(a[i], b[i]) for a, b in flat], float(v)),
                float(v),
                tail,
            )
            for i, v in enumerate(variance.ravel())
        ]
        return floats(np.minimum(width, np.reshape(close, width.shape) + self._rounding))

    def _terms(self, rectangle: Sequence[tuple[int, int]], variance: float) -> Terms:
        """The weights of the noise, with many small Gaussian ones taken together."""
        # Proof: `tails.close` looks at characteristic functions up to `125 / deviation`. There a
        #   discrete Gaussian of `square >= 2` and weight below `deviation / 130` has that of a
        #   normal variable up to a factor `1 +- 1e-11` (Poisson summation), and normal variables
        #   of equal squared weights in sum are the same.
        terms = self.strategy.terms(rectangle, self._noise)
        small = math.sqrt(variance) / _SMALL
        found = []
        for law, (weights, counts) in zip(self.laws, terms, strict=True):
            if not isinstance(law, DiscreteGaussian) or law.square < _SMOOTH:
                found.append((weights, counts))
                continue
            few = weights <= small
            square = float(np.square(weights[few]) @ counts[few])
            number = float(max(1, math.ceil(square / small**2))) if small else 1.0
            found.append(
                (
                    np.append(weights[~few], math.sqrt(square / number)),
                    np.append(counts[~few], number),
                )
            )
        return tuple(found)
