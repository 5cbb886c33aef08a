"""What noisy cells of a domain answer: ranges, unions, curves, quantiles, heavy cells.

Every release of ranges, central or local, offers these; what differs is where the cells come from,
how large their errors are and how far those reach.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.noise.law import Floats, Ints
from discreet.queries.ranges import quantile
from discreet.queries.ranges.domain import Domain, span

LEVEL = 0.95
"""Of intervals, unless another is asked for."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Prefix counts with a band that holds all of them at once."""

    labels: tuple[object, ...]
    values: Floats
    low: Floats
    high: Floats
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A cell with an interval of cells."""

    label: object
    low: object
    high: object
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy:
    """A cell that is above a threshold, for all that is stated together at the level."""

    label: object
    value: float
    low: float
    high: float


class RangeAnswers(ABC):
    """Answers to all ranges of a domain. Subclasses say what is known of the cells."""

    domain: Domain

    @property
    @abstractmethod
    def cells(self) -> Floats:
        """The unbiased estimate of each cell."""

    @abstractmethod
    def _variance(self, a: Ints, b: Ints) -> Floats:
        """Of the answers to ranges of cells ``a .. b``."""

    @abstractmethod
    def _quick(self, variance: Floats, tail: float) -> Floats:
        """Half-widths that errors of these variances leave with at most this probability."""

    def _widths(self, a: Ints, b: Ints, tail: float) -> Floats:
        """The same for the answers to ranges of cells ``a .. b``, as narrow as can be."""
        return self._quick(self._variance(a, b), tail)

    @property
    def total(self) -> float:
        """The estimate of the whole domain."""
        return float(self._prefixes[-1])

    def answer(self, lower: Any = None, upper: Any = None) -> float:
        """The number of rows between two labels, both included; None is an open end."""
        a, b = self._one(lower, upper)
        return float(self._prefixes[b + 1] - self._prefixes[a])

    def answer_many(self, lower: Any, upper: Any) -> Floats:
        """The answers to arrays of ends."""
        a, b = span(self.domain, lower, upper)
        return self._prefixes[b + 1] - self._prefixes[a]

    def std(self, lower: Any = None, upper: Any = None) -> Any:
        """The standard deviation of the answers, in the shape of the ends."""
        a, b = span(self.domain, lower, upper)
        return plain(np.sqrt(self._variance(a, b)))

    def interval(
        self, lower: Any = None, upper: Any = None, *, level: float = LEVEL
    ) -> tuple[Any, Any]:
        """Bounds that hold the exact count, each with probability ``level``."""
        tail = 1 - float(check.probability("level", level, zero=False, one=False))
        a, b = span(self.domain, lower, upper)
        value = self._prefixes[b + 1] - self._prefixes[a]
        width = self._widths(a, b, tail)
        return plain(value - width), plain(value + width)

    def union(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float]:
        """The answer to several disjoint ranges together, and its standard deviation."""
        ends = sorted(self._one(*pair) for pair in check.listed("pairs", pairs))
        if not ends or any(b >= c for (_, b), (c, _) in pairwise(ends)):
            raise InvalidArgument("pairs must be disjoint ranges, at least one.")
        value = sum(float(self._prefixes[b + 1] - self._prefixes[a]) for a, b in ends)
        points = np.array([(a, b + 1) for a, b in ends])
        first, second = points[:, None, :], points[None, :, :]
        variance = float(self._covariances(first, second).sum())
        return value, math.sqrt(max(variance, 0.0))

    def covariance(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> float:
        """The covariance of the answers to two ranges."""
        a, b = self._one(*first)
        c, d = self._one(*second)
        return float(self._covariances(np.array([a, b + 1]), np.array([c, d + 1])))

    def cdf(self, *, level: float = LEVEL) -> Curve:
        """Prefix counts that never fall, with a band that holds all exact ones at once.

        Proof: by the union bound over the cells. The band is around the unbiased answers; narrowing
            it to a monotone one keeps what it holds, because exact prefix counts never fall.
        """
        inside = float(check.probability("level", level, zero=False, one=False))
        size = self.domain.size
        variance = self._variances(np.zeros(size, dtype=np.int64), np.arange(1, size + 1))
        width = self._quick(variance, (1 - inside) / size)
        low = np.maximum.accumulate(np.maximum(self._prefixes[1:] - width, 0.0))
        high = np.minimum.accumulate((self._prefixes[1:] + width)[::-1])[::-1]
        return Curve(
            labels=tuple(self.domain.label(cell) for cell in range(size)),
            values=quantile.monotone(self._prefixes)[1:],
            low=low,
            high=high,
            level=inside,
        )

    def quantile(self, share: float, *, level: float = LEVEL) -> Quantile:
        """The first label up to which there is a share of the rows, with an interval of labels."""
        part = float(check.probability("share", share))
        inside = float(check.probability("level", level, zero=False, one=False))
        cell = quantile.quantile_cell(self._prefixes, part)
        low, high = quantile.quantile_interval(
            self._prefixes, part, 1 - inside, variance=self._variances, width=self._quick
        )
        label = self.domain.label
        return Quantile(label=label(cell), low=label(low), high=label(high), level=inside)

    def heavy(self, threshold: float, *, level: float = LEVEL) -> list[Heavy]:
        """Cells that surely hold more than ``threshold`` rows: all of them at once, at the level.

        Proof: by the union bound over all cells, every exact count is above the lower bound.
        """
        least = float(check.finite("threshold", threshold))
        inside = float(check.probability("level", level, zero=False, one=False))
        cells = np.arange(self.domain.size)
        width = self._quick(self._variances(cells, cells + 1), (1 - inside) / len(cells))
        found = np.flatnonzero(self.cells - width > least)
        order = found[np.argsort(-self.cells[found], kind="stable")]
        return [
            Heavy(
                label=self.domain.label(int(cell)),
                value=float(self.cells[cell]),
                low=float(self.cells[cell] - width[cell]),
                high=float(self.cells[cell] + width[cell]),
            )
            for cell in order
        ]

    @cached_property
    def _prefixes(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.cells)])

    def _one(self, lower: Any, upper: Any) -> tuple[int, int]:
        a, b = span(self.domain, lower, upper)
        if a.shape:
            raise InvalidArgument("one range is asked; use answer_many for arrays of ends.")
        return int(a), int(b)

    def _variances(self, p: Ints, q: Ints) -> Floats:
        """Of the difference of prefix sums at any two points."""
        low, high = np.minimum(p, q), np.maximum(p, q)
        apart = high > low
        # An empty range has no noise; it is asked as the first cell and set to zero.
        found = self._variance(np.where(apart, low, 0), np.where(apart, high - 1, 0))
        return np.where(apart, found, 0.0)

    def _covariances(self, first: Ints, second: Ints) -> Floats:
        """Of ranges between points, from variances of differences alone."""
        p, q = first[..., 0], first[..., 1]
        r, s = second[..., 0], second[..., 1]
        v = self._variances
        return (v(*_pair(p, s)) + v(*_pair(q, r)) - v(*_pair(q, s)) - v(*_pair(p, r))) / 2


def plain(values: Floats) -> Any:
    """A number for one range, an array for many."""
    return values if np.ndim(values) else float(values)


def _pair(p: Ints, q: Ints) -> tuple[Ints, Ints]:
    left, right = np.broadcast_arrays(p, q)
    return left, right
