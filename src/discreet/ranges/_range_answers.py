"""What noisy cells of a domain answer: ranges, unions, curves, quantiles, cells above a threshold.

Every release of ranges, central or local, offers these. Releases differ in where the cells come
from, how large their errors are and how far those reach.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.tabular import Record
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query.result import (
    AnyGuarantee,
    FixedResult,
    Result,
    check_confidence,
    records,
)
from discreet.ranges.domain import Domain, span
from discreet.ranges.strategies.base import Strategy

# ── Nonnegative answers ──────────────────────────────────────────────────────────────────────────
# No negative counts, a fixed total. Biased; the raw answers stay available (F41).


_MOST_STEPS = 3000
_PRECISION = 1e-7


def non_negative(strategy: Strategy, noise: Floats, estimate: Floats, *, total: float) -> Floats:
    """The cells closest to the estimate that are not negative and sum to ``total``.

    Heuristic: no theorem about its error. Distance is measured as the noise measures it: the
    precision matrix of the estimate. Without a fixed total the bias of clipping would add up over
    long ranges, so there is no such option (F41).
    """
    # Source: accelerated projected gradients with restarts (Beck, Teboulle 2009).
    if total <= 0:
        return np.zeros(strategy.size)
    largest = _largest_eigenvalue(strategy, noise)
    found = before = _onto_simplex(estimate, total)
    ahead, speed = found, 1.0
    for _ in range(_MOST_STEPS):
        slope = strategy.precision(ahead - estimate, noise)
        found = _onto_simplex(ahead - slope / largest, total)
        step = found - before
        if np.abs(step).max() <= _PRECISION * max(1.0, np.abs(found).max()):
            break
        if float(((ahead - found) * step).sum()) > 0:  # going uphill: start afresh
            speed = 1.0
        faster = (1 + np.sqrt(1 + 4 * speed * speed)) / 2
        ahead = found + (speed - 1) / faster * step
        before, speed = found, faster
    return found


def _onto_simplex(x: Floats, total: float) -> Floats:
    """The nearest point that is not negative and sums to ``total``."""
    ordered = np.sort(x)[::-1]
    above = np.cumsum(ordered) - total
    places = np.arange(1, len(x) + 1)
    last = int(np.flatnonzero(ordered - above / places > 0)[-1])
    return floats(np.maximum(x - above[last] / (last + 1), 0.0))


def _largest_eigenvalue(strategy: Strategy, noise: Floats) -> float:
    """A bound of the precision matrix's largest eigenvalue, by power iteration and some room."""
    x = np.ones(strategy.size) + np.sin(np.arange(strategy.size))
    size = 0.0
    for _ in range(30):
        x /= np.linalg.norm(x)
        x = strategy.precision(x, noise)
        size = float(np.linalg.norm(x))
    return 1.1 * size


# ── Quantiles from noisy prefix sums (F39) ───────────────────────────────────────────────────────


Variance: TypeAlias = Callable[[Ints, Ints], Floats]
"""The variance of the difference of the prefix sums at two points of 0 .. size."""
Width: TypeAlias = Callable[[Floats, float], Floats]
"""Half-widths that noise of these variances leaves with at most this probability."""


def monotone(prefixes: Floats) -> Floats:
    """The nearest prefix sums that never fall, between zero and the total.

    Heuristic: no theorem about its error; least squares, so closer to the truth on average.
    """
    rising: Floats = scipy.optimize.isotonic_regression(prefixes[1:]).x
    top = max(float(prefixes[-1]), 0.0)
    return np.concatenate([[0.0], np.clip(rising, 0.0, top)])


def quantile_cell(prefixes: Floats, share: float) -> int:
    """The first cell up to which the monotone prefix sums reach a share of the total."""
    rising = monotone(prefixes)
    cell = int(np.searchsorted(rising[1:], share * rising[-1]))
    return min(cell, len(rising) - 2)


def quantile_interval(
    prefixes: Floats, share: float, tail: float, *, variance: Variance, width: Width
) -> tuple[int, int]:
    """Cells between which the true quantile lies."""
    # Theorem: the first cell up to which the exact counts reach `share` of their total is in the
    #   interval with probability at least `1 - tail`.
    # Proof: let Z_i be the exact prefix sum at i minus `share` times the total. The true cell c has
    #   `Z_c <= 0 <= Z_(c+1)`. All cells are kept at which neither inequality is refuted by the
    #   noisy Z, each refuted wrongly with probability at most `tail / 2` (in fact half of that);
    #   so c is kept. This needs no bound for all cells at once, because c is one cell.
    # Source: inversion of tests; docs/theory/ranges.md.
    # Needs: the exact total is positive.
    size = len(prefixes) - 1
    points = np.arange(size + 1)
    zero, last = np.zeros_like(points), np.full_like(points, size)
    below, above = variance(zero, points), variance(points, last)
    both = variance(zero, last)
    together = (both - below - above) / 2
    spread = (1 - share) ** 2 * below + share**2 * above - 2 * share * (1 - share) * together
    reach = width(np.maximum(spread, 0.0), tail / 2)
    z = prefixes - share * prefixes[-1]
    kept = np.flatnonzero((z[:-1] <= reach[:-1]) & (z[1:] >= -reach[1:]))
    if not kept.size:  # the noise refutes every cell: no statement is left
        return 0, size - 1
    return int(kept[0]), int(kept[-1])


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────


DEFAULT_CONFIDENCE = 0.95
"""Of intervals, unless another is asked for."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CumulativeCurve(FixedResult):
    """Counts up to each cell, with a band that holds all of them at once.

    Attributes:
        labels: Label of each cell.
        values: Count up to each cell, itself included.
        low: Lower ends of the band.
        high: Upper ends of the band.
        confidence: Probability with which the whole band holds.
        guarantee: Privacy guarantee of the release.

    Examples:
        >>> from discreet import ranges
        >>> curve = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1]).cdf()
        >>> curve.labels, bool((curve.low <= curve.high).all())
        ((0, 1, 2, 3), True)
    """

    labels: tuple[object, ...]
    values: Floats
    low: Floats
    high: Floats
    confidence: float
    guarantee: AnyGuarantee | None = None

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the count up to each cell, with the ends of the band.

        Args:
            confidence: That of the band, if it is given.

        Returns:
            One record for each cell: up to, value, std, low and high; std is None.

        Examples:
            >>> from discreet import ranges
            >>> curve = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1]).cdf()
            >>> [row["up to"] for row in curve.rows()]
            [0, 1, 2, 3]
        """
        check_confidence(confidence, self.confidence)
        labels = ((label,) for label in self.labels)
        return records(("up to",), labels, value=self.values, low=self.low, high=self.high)

    def _title(self) -> str:
        return f"Counts up to each of {len(self.labels):,} cells"

    @property
    def _confidence(self) -> float:
        return self.confidence


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantileEstimate(FixedResult):
    """A cell with an interval of cells.

    Attributes:
        label: Label of the cell that holds the quantile, as estimated.
        low: Label of the first cell of the interval.
        high: Label of the last cell of the interval.
        confidence: Probability with which the interval holds.
        guarantee: Privacy guarantee of the release.

    Examples:
        >>> from discreet import ranges
        >>> median = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1]).quantile(0.5)
        >>> median.low <= median.label <= median.high
        True
    """

    label: object
    low: object
    high: object
    confidence: float
    guarantee: AnyGuarantee | None = None

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the cell as the value, with the ends of its interval.

        Args:
            confidence: That of the interval, if it is given.

        Returns:
            One record: value, std, low and high; std is None.

        Examples:
            >>> median = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1]).quantile(0.5)
            >>> row = median.rows()[0]
            >>> row["low"] <= row["value"] <= row["high"]
            True
        """
        check_confidence(confidence, self.confidence)
        return records((), [()], value=[self.label], low=[self.low], high=[self.high])

    def _title(self) -> str:
        return "Quantile"

    @property
    def _confidence(self) -> float:
        return self.confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyRange:
    """A cell that is above a threshold, for all that is stated together at the level."""

    label: object
    value: float
    low: float
    high: float


class RangeAnswers(Result):
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
        """Return the number of rows between two labels.

        Args:
            lower: Label of the first cell of the range. If None, the range is open below.
            upper: Label of the last cell, included. If None, the range is open above.

        Returns:
            The noisy count. It can be negative.

        Examples:
            >>> from discreet import ranges
            >>> release = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1])
            >>> release.answer(0, 3) == release.answer() == release.total
            True
        """
        a, b = self._one(lower, upper)
        return float(self._prefixes[b + 1] - self._prefixes[a])

    def answer_many(self, lower: Any, upper: Any) -> Floats:
        """Return the numbers of rows of many ranges.

        Args:
            lower: Array with the label of each first cell. If None, the ranges are open below.
            upper: Array with the label of each last cell, included. If None, the ranges are open
                above.

        Returns:
            An array of noisy counts.

        Examples:
            >>> release.answer_many([0, 1], [2, 3]).shape
            (2,)
        """
        a, b = span(self.domain, lower, upper)
        return self._prefixes[b + 1] - self._prefixes[a]

    def answer_std(self, lower: Any = None, upper: Any = None) -> Any:
        """Return the exact standard deviation of answers.

        Args:
            lower: Label, or array of labels, of the first cell. If None, the range is open below.
            upper: Label, or array of labels, of the last cell. If None, the range is open above.

        Returns:
            A number, or an array in the shape of the ends.

        Examples:
            >>> release.answer_std(0, 0) > 0
            True
        """
        a, b = span(self.domain, lower, upper)
        return plain(np.sqrt(self._variance(a, b)))

    def answer_interval(
        self, lower: Any = None, upper: Any = None, *, confidence: float = DEFAULT_CONFIDENCE
    ) -> tuple[Any, Any]:
        """Return bounds that hold the exact counts.

        Args:
            lower: Label, or array of labels, of the first cell. If None, the range is open below.
            upper: Label, or array of labels, of the last cell. If None, the range is open above.
            confidence: Probability with which each interval holds the exact count, between 0 and 1.

        Returns:
            Lower and upper ends, each a number or an array.

        Raises:
            InvalidArgument: A label is not in the domain, or the confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.answer_interval(1, 2)
            >>> low <= release.answer(1, 2) <= high
            True
        """
        tail = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        a, b = span(self.domain, lower, upper)
        value = self._prefixes[b + 1] - self._prefixes[a]
        width = self._widths(a, b, tail)
        return plain(value - width), plain(value + width)

    @property
    def values(self) -> Floats:
        """The estimate of each cell, as `cells`."""
        return self.cells

    value = values

    @property
    def std(self) -> Floats:
        """The standard deviation of the estimate of each cell."""
        places = np.arange(self.domain.size)
        return np.sqrt(self._variance(places, places))

    def interval(self, confidence: float = DEFAULT_CONFIDENCE) -> tuple[Floats, Floats]:
        """Return bounds of the exact count of each cell.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            The lower and the upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.interval(0.9)
            >>> len(low)
            4
        """
        tail = 1 - float(check.probability("confidence", confidence, zero=False, one=False))
        places = np.arange(self.domain.size)
        width = self._widths(places, places, tail)
        return self.cells - width, self.cells + width

    def rows(self, confidence: float = DEFAULT_CONFIDENCE) -> list[Record]:
        """Return one record for each cell.

        Args:
            confidence: Probability with which each interval holds the exact count, between 0 and 1.

        Returns:
            Dictionaries with the label of the cell, `value`, `std`, `low` and `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> len(release.rows())
            4
        """
        low, high = self.interval(confidence)
        labels = ((self.domain.label(place),) for place in range(self.domain.size))
        return records(("cell",), labels, value=self.cells, std=self.std, low=low, high=high)

    def __len__(self) -> int:
        return self.domain.size

    def __getitem__(self, key: object) -> float:
        """Return the count of one cell; `answer` gives that of a range."""
        label = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        try:
            cell, last = self._one(label, label)
        except (InvalidArgument, OutOfDomain):
            raise KeyError(key) from None
        if cell != last:  # None, which is every cell
            raise KeyError(key)
        return float(self.cells[cell])

    def union(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float]:
        """Return the number of rows in several disjoint ranges together.

        Args:
            pairs: Pairs (first, last) of labels, both included. The ranges must not overlap.

        Returns:
            The noisy count and its standard deviation.

        Raises:
            InvalidArgument: The ranges overlap.

        Examples:
            >>> count, std = release.union([(0, 0), (2, 3)])
            >>> std > 0
            True
        """
        ends = sorted(self._one(*pair) for pair in check.as_tuple("pairs", pairs))
        if not ends or any(b >= c for (_, b), (c, _) in pairwise(ends)):
            raise InvalidArgument("pairs must be disjoint ranges, at least one.")
        value = sum(float(self._prefixes[b + 1] - self._prefixes[a]) for a, b in ends)
        points = np.array([(a, b + 1) for a, b in ends])
        first, second = points[:, None, :], points[None, :, :]
        variance = float(self._covariances(first, second).sum())
        return value, math.sqrt(max(variance, 0.0))

    def covariance(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> float:
        """Return the covariance of the answers to two ranges.

        Args:
            first: Pair (first, last) of labels of one range, both included.
            second: Pair of labels of the other range.

        Returns:
            The covariance of the noise of both answers.

        Examples:
            >>> abs(release.covariance((1, 2), (1, 2)) - release.answer_std(1, 2) ** 2) < 1e-9
            True
        """
        a, b = self._one(*first)
        c, d = self._one(*second)
        return float(self._covariances(np.array([a, b + 1]), np.array([c, d + 1])))

    def cdf(self, *, confidence: float = DEFAULT_CONFIDENCE) -> CumulativeCurve:
        """Return cumulative counts that never decrease, with a band for all of them.

        Args:
            confidence: Probability with which the band holds all exact cumulative counts at once.

        Returns:
            A curve with `labels`, `values`, `low` and `high`.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> curve = release.cdf()
            >>> bool((curve.low <= curve.values).all())
            True
        """
        # Proof: by the union bound over the cells. The band is around the unbiased answers;
        #   narrowing it to a monotone one keeps what it holds, because exact prefix counts never
        #   fall.
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        size = self.domain.size
        variance = self._variances(np.zeros(size, dtype=np.int64), np.arange(1, size + 1))
        width = self._quick(variance, (1 - inside) / size)
        low = np.maximum.accumulate(np.maximum(self._prefixes[1:] - width, 0.0))
        high = np.minimum.accumulate((self._prefixes[1:] + width)[::-1])[::-1]
        return CumulativeCurve(
            labels=tuple(self.domain.label(cell) for cell in range(size)),
            values=monotone(self._prefixes)[1:],
            low=low,
            high=high,
            confidence=inside,
            guarantee=self.guarantee,
        )

    def quantile(self, share: float, *, confidence: float = DEFAULT_CONFIDENCE) -> QuantileEstimate:
        """Return the first label up to which there is a share of the rows.

        Args:
            share: Share of the rows, between 0 and 1.
            confidence: Probability with which the interval of labels holds the exact quantile.

        Returns:
            An estimate with `label`, `low` and `high`.

        Raises:
            InvalidArgument: The share or the confidence is not between 0 and 1.

        Examples:
            >>> release.quantile(0.5).label in range(4)
            True
        """
        part = float(check.probability("share", share))
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        cell = quantile_cell(self._prefixes, part)
        low, high = quantile_interval(
            self._prefixes, part, 1 - inside, variance=self._variances, width=self._quick
        )
        label = self.domain.label
        return QuantileEstimate(
            label=label(cell),
            low=label(low),
            high=label(high),
            confidence=inside,
            guarantee=self.guarantee,
        )

    def cells_above(
        self, threshold: float, *, confidence: float = DEFAULT_CONFIDENCE
    ) -> list[HeavyRange]:
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
        cells = np.arange(self.domain.size)
        width = self._quick(self._variances(cells, cells + 1), (1 - inside) / len(cells))
        found = np.flatnonzero(self.cells - width > least)
        order = found[np.argsort(-self.cells[found], kind="stable")]
        return [
            HeavyRange(
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
