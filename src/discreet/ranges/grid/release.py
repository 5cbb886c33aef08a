"""Releases of a grid: noisy measurements that answer every rectangle later (F61)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats, floats
from discreet.noise.gaussian import DiscreteGaussian
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Marginal:
    """Totals of each cell of one axis, with standard deviations, and bounds for each by itself."""

    labels: tuple[object, ...]
    values: Floats
    std: Floats
    low: Floats
    high: Floats
    confidence: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GridRelease(NoisyMeasurements):
    """Noisy measurements of a grid: answers to all rectangles, with exact errors."""

    _kind: ClassVar[str] = "grid"
    _what: ClassVar[str] = "a grid"
    _place: ClassVar[str] = "grid"
    _precision: ClassVar[float] = 2.0**-40

    grid: GridDomain
    strategy: BoxStrategy

    @property
    def labels(self) -> tuple[tuple[object, ...], ...]:
        """The labels of each axis."""
        return self.grid.labels

    @cached_property
    def cell_std(self) -> Floats:
        """The exact standard deviation of each cell's estimate."""
        ends = tuple((np.arange(size), np.arange(size)) for size in self.grid.shape)
        found = np.sqrt(self.strategy.outer_variance(ends, self._noise))
        found.setflags(write=False)
        return found

    @property
    def total(self) -> float:
        """The estimate of the whole grid."""
        return float(self._corners[(-1,) * len(self.grid.shape)])

    def answer(self, *spans: Any) -> Any:
        """The number of rows in a rectangle: for each axis a pair (lower, upper) of labels.

        None stands for a whole axis, and within a pair for an open end. Pairs of arrays ask for
        many rectangles at once.
        """
        return plain(self._answers(self.grid.ends(spans)))

    def std(self, *spans: Any) -> Any:
        """The exact standard deviation of the answers."""
        return plain(np.sqrt(self.strategy.variance(self.grid.ends(spans), self._noise)))

    def interval(self, *spans: Any, confidence: float = DEFAULT_CONFIDENCE) -> tuple[Any, Any]:
        """Bounds that hold the exact count, each with probability at least ``confidence``.

        Up to a hundred rectangles at a time get bounds from the law of their own noise; more get
        Chernoff's bound, which is wider (`tails`).
        """
        tail = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        ends = self.grid.ends(spans)
        value, width = self._answers(ends), self._widths(ends, tail)
        return plain(value - width), plain(value + width)

    def marginal(self, axis: int, *, confidence: float = DEFAULT_CONFIDENCE) -> Marginal:
        """The totals along one axis, summed over all others."""
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
        )

    def cells_above(
        self, threshold: float, *, confidence: float = DEFAULT_CONFIDENCE
    ) -> list[HeavyCell]:
        """Cells that surely hold more than ``threshold`` rows: all of them at once, at the level.

        Proof: by the union bound over all cells, every exact count is above the lower bound.
        """
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
        return self._told(self.total, self.std(*[None] * len(self.grid.shape)))

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
        """The weights of the noise, with many small Gaussian ones taken together.

        Proof: `tails.close` looks at characteristic functions up to ``125 / deviation``. There a
            discrete Gaussian of ``square >= 2`` and weight below ``deviation / 130`` has that of a
            normal variable up to a factor ``1 +- 1e-11`` (Poisson summation), and normal variables
            of equal squared weights in sum are the same.
        """
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
