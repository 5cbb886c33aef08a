"""Values in bins of equal width: what can be told about each bin, and what that is good for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.sums import prefix_sums
from discreet.core._rational import Number, ceil_div
from discreet.core._validate import count, one_of, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

Statistic: TypeAlias = Literal["median", "mean", "lower_median", "largest"]
Empty: TypeAlias = Literal["middle", "lower"]
"""What an empty bin counts as."""

_MOST_BINS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualWidthBins:
    """A column cut into bins of equal width, but for one step."""

    column: SortedColumn
    many: int

    @classmethod
    def of(
        cls, lower: Number, upper: Number, bins: int, granularity: Number | None
    ) -> EqualWidthBins:
        """Public bins."""
        column = SortedColumn.of(lower, upper, granularity)
        if count("bins", bins) > min(_MOST_BINS, column.span):
            raise InvalidArgument(
                f"bins must be at most 2**20, and at most the steps of the grid, got {bins}."
            )
        return cls(column=column, many=bins)

    @property
    def starts(self) -> Ints:
        """First step of each bin, and the first beyond the last."""
        starts = [i * (self.column.span + 1) // self.many for i in range(self.many + 1)]
        return np.array(starts, dtype=np.int64)

    @property
    def reach(self) -> int:
        """Steps between the smallest and the largest value of a bin."""
        return ceil_div(self.column.span + 1, self.many) - 1

    @property
    def edges(self) -> Floats:
        """Bounds of the bins, in the unit of the data."""
        return (
            np.append(self.column.first + self.starts[:-1], self.column.first + self.column.span)
            * self.column.step
        )

    def ends(self, codes: Ints) -> Ints:
        """How many of the sorted values come before each start."""
        return np.searchsorted(codes, self.starts).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinStatistics(Mechanism):
    """One noisy statistic for each bin. Made by `bin_statistics`."""

    bins: EqualWidthBins
    statistic: Statistic
    empty: Empty
    inner: AdditiveMechanism

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs, all bins together."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one bin."""
        return self.inner.std * self.bins.column.step / 2

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise of one bin with probability at least ``confidence``."""
        high = self.inner.interval(confidence)[1] * self.bins.column.step / 2
        return -high, high

    def exact(self, codes: Ints) -> Ints:
        """The statistics of sorted values, in half steps: private."""
        starts, ends = self.bins.starts, self.bins.ends(codes)
        first, last = ends[:-1], ends[1:]
        full = last > first
        low, high = first[full], last[full] - 1
        found = 2 * starts[:-1]
        if self.empty == "middle":
            found = starts[:-1] + starts[1:] - 1
        match self.statistic:
            case "median":
                found[full] = codes[(low + high) // 2] + codes[(low + high + 1) // 2]
            case "lower_median":
                found[full] = 2 * codes[(low + high) // 2]
            case "largest":
                found[full] = 2 * codes[high]
            case "mean":
                sums = prefix_sums(codes)
                found[full] = 2 * (sums[high + 1] - sums[low]) // (high + 1 - low)
        return found

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> Floats:
        """A number for each bin, within its bounds."""
        noisy = self.inner.release(self.exact(self.bins.column.sorted(values)), rng=rng)
        starts = self.bins.starts
        inside = np.clip(noisy, 2 * starts[:-1], 2 * (starts[1:] - 1))
        out: Floats = (2 * self.bins.column.first + inside) * (self.bins.column.step / 2)
        return out

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise from its exact law."""
        return self.inner.certify()

    def __repr__(self) -> str:
        return f"bin_statistics({self.statistic} of {self.bins.many} bins; {self.inner!r})"


def bin_sensitivity(
    statistic: Statistic, *, empty: Empty, relation: NeighboringRelation
) -> Fraction:
    """How far one row moves the statistics of all bins together, in widths of a bin.

    Theorem: under ADD_REMOVE 1/2 for a median (the mean of the two middle ones) or a mean with
        empty bins in the middle, else 1; under REPLACE_ONE twice that.
    Proof: a row that is added to a bin of k moves its mean by at most 1/(k + 1) of a width, and
        its median by half a gap, both at most 1/2 for k >= 1; for k = 0 from the value of an empty
        bin to the row: 1/2 from the middle, 1 from the lower end. A lower median and a maximum
        move to another row, by up to 1. A replaced row is one removed and one added. The tests
        compare with all neighbors of small data.
    Source: B41, where parallel composition was claimed for a replaced row (M41).
    """
    one_of("statistic", statistic, get_args(Statistic))
    one_of("empty", empty, get_args(Empty))
    central_relation(relation)
    one = Fraction(1, 2) if statistic in ("median", "mean") and empty == "middle" else Fraction(1)
    return 2 * one if relation is NeighboringRelation.REPLACE_ONE else one


def bin_statistics(  # noqa: PLR0913 - each has a default and a name
    *,
    lower: Number,
    upper: Number,
    bins: int,
    epsilon: Number,
    delta: Number = 0,
    statistic: Statistic = "median",
    empty: Empty = "middle",
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> BinStatistics:
    """A median, mean or maximum of the values in each bin of a public range.

    It tells where in its bin the values lie. It does not tell how many there are, so the average
    over the bins says nothing about the median or the mean of all values: it stays within half a
    bin of the middle of the range, whatever the data. For those use `bin_counts`,
    `private_quantile` or `sample_aggregate`.

    Theorem: (epsilon, delta)-DP under ``relation``.
    Proof: Laplace noise for the L1 sensitivity of the vector, `bin_sensitivity` times the reach of
        a bin, counted in half steps: a whole number for each bin, so that rounding a mean down
        keeps it.
    Source: B41, M40 (what it does not estimate).
    Needs: public bounds, bins and grid.
    """
    cut = EqualWidthBins.of(lower, upper, bins, granularity)
    factor = bin_sensitivity(statistic, empty=empty, relation=relation)
    noise = laplace(
        sensitivity=2 * factor * cut.reach,
        epsilon=epsilon,
        delta=delta,
        domain="integers",
        relation=relation,
    )
    return BinStatistics(bins=cut, statistic=statistic, empty=empty, inner=noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedColumn:
    """Noisy counts of bins: as many questions as one likes, at no further cost."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many values there are, by the noisy counts."""
        return sum(self.counts)

    def quantile(self, q: float = 0.5) -> float:
        """Where the noisy counts reach a share ``q`` of their total.

        Cumulated counts are unbiased as they are; they are made to rise by the mean of the lowest
        curve above and the highest below them, and a bin is taken to be filled evenly.
        """
        share = float(probability("q", q))
        climb = np.append(0, np.cumsum(self.counts)).astype(np.float64)
        if climb[-1] <= 0:
            return (self.edges[0] + self.edges[-1]) / 2
        upper = np.maximum.accumulate(climb)
        lower = np.minimum.accumulate(climb[::-1])[::-1]
        curve = np.clip((upper + lower) / 2, 0, climb[-1])
        return float(np.interp(share * climb[-1], curve, self.edges))

    def mean(self) -> float:
        """The mean, with every value taken to be in the middle of its bin."""
        edges = np.array(self.edges)
        middles = (edges[:-1] + edges[1:]) / 2
        if self.total <= 0:
            return float(edges[0] + edges[-1]) / 2
        found = float(middles @ np.array(self.counts) / self.total)
        return min(max(found, self.edges[0]), self.edges[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class BinCounts(Mechanism):
    """Noisy counts of bins. Made by `bin_counts`."""

    bins: EqualWidthBins
    inner: AdditiveMechanism

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs, all bins together."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of one count."""
        return self.inner.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise of one count with probability at least ``confidence``."""
        return self.inner.interval(confidence)

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> BinnedColumn:
        """Noisy counts of all bins, empty ones too."""
        exact = np.diff(self.bins.ends(self.bins.column.sorted(values)))
        noisy = self.inner.release(exact, rng=rng)
        return BinnedColumn(edges=tuple(self.bins.edges.tolist()), counts=tuple(noisy.tolist()))

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise from its exact law."""
        return self.inner.certify()

    def __repr__(self) -> str:
        return f"private_bin_counts({self.bins.many} bins; {self.inner!r})"


def private_bin_counts(
    *,
    lower: Number,
    upper: Number,
    bins: int,
    epsilon: Number,
    delta: Number = 0,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> BinCounts:
    """How many values lie in each bin: from it the median, all quantiles and the mean.

    Theorem: (epsilon, delta)-DP under ``relation``.
    Proof: an added row changes one count by one, a replaced one two: L1 sensitivity 1 or 2.
        Quantiles and means are computed from the noisy counts.
    Source: B41, as it should be.
    Needs: public bounds, bins and grid.
    """
    central_relation(relation)
    noise = laplace(
        sensitivity=2 if relation is NeighboringRelation.REPLACE_ONE else 1,
        epsilon=epsilon,
        delta=delta,
        domain="integers",
        relation=relation,
    )
    return BinCounts(bins=EqualWidthBins.of(lower, upper, bins, granularity), inner=noise)
