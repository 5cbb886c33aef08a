"""The artefact: noisy measurements that answer every range later, without the data (F61)."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.noise.law import Floats, Ints, floats
from discreet.queries.ranges import domain, polish, quantile, tails
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

VERSION = 1
_LEVEL = 0.95
_ROUNDING = 2.0**-44
_CLOSE = 1000
"""For more ranges at once, intervals come from variances alone: valid, up to twice as wide."""


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
        return _plain(sums[b + 1] - sums[a])


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeRelease:
    """Noisy measurements of a domain: answers to all ranges, with exact errors."""

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
        """The exact standard deviation of the answers, in the shape of the ends."""
        a, b = span(self.domain, lower, upper)
        return _plain(np.sqrt(self.strategy.variance(a, b, self._noise)))

    def interval(
        self, lower: Any = None, upper: Any = None, *, level: float = _LEVEL
    ) -> tuple[Any, Any]:
        """Bounds that hold the exact count, each with probability at least ``level``.

        Up to a thousand ranges at a time get bounds from the law of their own noise; more get
        Chernoff's bound, which is wider (`tails`).
        """
        tail = 1 - float(check.probability("level", level, zero=False, one=False))
        a, b = span(self.domain, lower, upper)
        value = self._prefixes[b + 1] - self._prefixes[a]
        width = self._widths(a, b, tail)
        return _plain(value - width), _plain(value + width)

    def union(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float]:
        """The answer to several disjoint ranges together, and its standard deviation."""
        ends = sorted(self._one(*pair) for pair in pairs)
        if any(b >= c for (_, b), (c, _) in pairwise(ends)):
            raise InvalidArgument("pairs must be disjoint ranges.")
        value = sum(float(self._prefixes[b + 1] - self._prefixes[a]) for a, b in ends)
        points = np.array([(a, b + 1) for a, b in ends])
        first, second = points[:, None, :], points[None, :, :]
        variance = float(self._covariances(first, second).sum())
        return value, math.sqrt(max(variance, 0.0))

    def covariance(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> float:
        """The exact covariance of the answers to two ranges."""
        a, b = self._one(*first)
        c, d = self._one(*second)
        return float(self._covariances(np.array([a, b + 1]), np.array([c, d + 1])))

    def cdf(self, *, level: float = _LEVEL) -> Curve:
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

    def quantile(self, share: float, *, level: float = _LEVEL) -> Quantile:
        """The first label up to which there is a share of the rows, with an interval of labels."""
        part = float(check.probability("share", share))
        inside = float(check.probability("level", level, zero=False, one=False))
        cell = quantile.quantile_cell(self._prefixes, part)
        low, high = quantile.quantile_interval(
            self._prefixes, part, 1 - inside, variance=self._variances, width=self._quick
        )
        label = self.domain.label
        return Quantile(label=label(cell), low=label(low), high=label(high), level=inside)

    def heavy(self, threshold: float, *, level: float = _LEVEL) -> list[Heavy]:
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
        deviation = float(np.sqrt(self.strategy.variance(*whole, self._noise)))
        return (
            f"ranges of {self.domain} by {self.strategy.describe()} "
            f"(total {self.total:,.0f} ± {deviation:,.3g}; {self.guarantee!r}{note})"
        )

    __repr__ = __str__

    @cached_property
    def _noise(self) -> Floats:
        return np.array([law.variance for law in self.laws])

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
        found = self.strategy.variance(
            np.where(apart, low, 0), np.where(apart, high - 1, 0), self._noise
        )
        return np.where(apart, found, 0.0)

    def _covariances(self, first: Ints, second: Ints) -> Floats:
        """Of ranges between points, from variances of differences alone."""
        p, q = first[..., 0], first[..., 1]
        r, s = second[..., 0], second[..., 1]
        v = self._variances
        return (v(*_pair(p, s)) + v(*_pair(q, r)) - v(*_pair(q, s)) - v(*_pair(p, r))) / 2

    @cached_property
    def _rounding(self) -> float:
        """Room for the rounding of estimates in doubles: far below the noise."""
        return _ROUNDING * max(1.0, float(np.abs(self._prefixes).max()))

    def _quick(self, variance: Floats, tail: float) -> Floats:
        largest = self.strategy.largest_weights(self._noise)
        return tails.quick(self.laws, largest, variance, tail) + self._rounding

    def _widths(self, a: Ints, b: Ints, tail: float) -> Floats:
        variance = self.strategy.variance(a, b, self._noise)
        width = self._quick(variance, tail)
        if tails.fine(self.laws):
            normal = tails.normal(self.laws, np.sqrt(variance), tail)
            return np.minimum(width, normal + self._rounding)
        if a.size > _CLOSE:
            return width
        close = [
            tails.close(self.laws, self.strategy.terms(int(p), int(q), self._noise), float(v), tail)
            for p, q, v in zip(a.ravel(), b.ravel(), variance.ravel(), strict=True)
        ]
        return floats(np.minimum(width, np.reshape(close, width.shape) + self._rounding))


def _pair(p: Ints, q: Ints) -> tuple[Ints, Ints]:
    left, right = np.broadcast_arrays(p, q)
    return left, right


def _plain(values: Floats) -> Any:
    return values if np.ndim(values) else float(values)
