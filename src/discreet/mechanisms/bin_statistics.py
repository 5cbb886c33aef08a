"""Values in bins of equal width: what can be told about each bin, and what that is good for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.sums import prefix_sums
from discreet.core._rational import Number, ceil_div
from discreet.core._validate import count, one_of, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms._drawn import Handed, charges, moves, tells_nothing_else
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

Statistic: TypeAlias = Literal["median", "mean", "lower_median", "largest"]
Empty: TypeAlias = Literal["middle", "lower"]
"""What an empty bin counts as."""

_MOST_BINS = 1 << 20
# Rows of the neighbors that a certificate compares, at most.
_ROWS = 3


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

    def fewer(self, many: int) -> EqualWidthBins:
        """The first so many of them, as wide as the widest."""
        kept = min(many, self.many)
        column = replace(self.column, span=(self.reach + 1) * kept - 1)
        return EqualWidthBins(column=column, many=kept)

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
        """Recompute the guarantee of the noise, and how far neighbors move what it is added to.

        All neighbors of up to three rows at the ends of two bins as wide as these.
        """
        return _certified(self, replace(self, bins=self.bins.fewer(2)), self.inner)

    def __repr__(self) -> str:
        return f"bin_statistics({self.statistic} of {self.bins.many} bins; {self.inner!r})"


def _certified(
    made: BinStatistics | BinCounts, small: BinStatistics | BinCounts, noise: AdditiveMechanism
) -> Certificate:
    """The noise's certificate, with a look at the release on neighbors with few rows.

    The bins of ``small`` hold rows at their ends only: there the statistics move farthest.
    """
    starts = small.bins.starts
    ends = np.unique(np.concatenate([starts[:-1], starts[1:] - 1]))
    places = [small.bins.column.number(int(end)) for end in ends]
    handed: dict[tuple[float, ...], NDArray[np.object_]] = {}
    answers = []
    for rows in range(_ROWS + 1):
        for data in combinations_with_replacement(places, rows):
            noted = Handed(noise)
            replace(small, inner=cast("AdditiveMechanism", noted)).release(list(data))
            handed[data] = noted.handed
    fixed = handed[()] * 0 + 1
    for data in handed:
        told = Handed(noise, answer=fixed.astype(np.int64))
        answers.append(_told(replace(small, inner=cast("AdditiveMechanism", told)), data))
    replaced = noise.relation is NeighboringRelation.REPLACE_ONE
    worst = 0
    for data, found in handed.items():
        for i in range(len(data)):
            rest = data[:i] + data[i + 1 :]
            others = [tuple(sorted((*rest, new))) for new in places] if replaced else [rest]
            worst = max(worst, *(int(np.abs(found - handed[other]).sum()) for other in others))
    inner = noise.certify()
    drawn = (
        *inner.drawn,
        moves(f"up to {_ROWS} rows in {small.bins.many} bins", worst, float(noise.sensitivity)),
        tells_nothing_else("bins", answers),
        charges("all bins", made.guarantee, noise.guarantee),
    )
    return replace(inner, mechanism=repr(made), guarantee=made.guarantee, drawn=drawn).demand()


def _told(small: BinStatistics | BinCounts, data: tuple[float, ...]) -> object:
    found = small.release(list(data))
    return found.counts if isinstance(found, BinnedColumn) else found


def bin_sensitivity(
    statistic: Statistic, *, empty: Empty, relation: NeighboringRelation
) -> Fraction:
    """How far one row moves the statistics of all bins together, in widths of a bin."""
    # Theorem: under ADD_REMOVE 1/2 for a median (the mean of the two middle ones) or a mean with
    #   empty bins in the middle, else 1; under REPLACE_ONE twice that.
    # Proof: a row that is added to a bin of k moves its mean by at most 1/(k + 1) of a width, and
    #   its median by half a gap, both at most 1/2 for k >= 1; for k = 0 from the value of an empty
    #   bin to the row: 1/2 from the middle, 1 from the lower end. A lower median and a maximum
    #   move to another row, by up to 1. A replaced row is one removed and one added. The tests
    #   compare with all neighbors of small data.
    # Source: B41, where parallel composition was claimed for a replaced row (M41).
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
    """
    # Theorem: (epsilon, delta)-DP under `relation`.
    # Proof: Laplace noise for the L1 sensitivity of the vector, `bin_sensitivity` times the reach
    #   of a bin, counted in half steps: a whole number for each bin, so that rounding a mean down
    #   keeps it.
    # Source: B41, M40 (what it does not estimate).
    # Needs: public bounds, bins and grid.
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
    """Noisy counts of bins. Made by `private_bin_counts`."""

    bins: EqualWidthBins
    inner: AdditiveMechanism

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release, all bins together."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one count."""
        return self.inner.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise of one count.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_bin_counts(lower=0, upper=100, bins=10, epsilon=1)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        return self.inner.interval(confidence)

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> BinnedColumn:
        """Release noisy counts of all bins, including empty ones.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            Edges and noisy counts of all bins, with `quantile(q)` and `mean()`.

        Raises:
            OutOfDomain: The input does not have the right shape.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_bin_counts(lower=0, upper=100, bins=10, epsilon=1)
            >>> len(mechanism.release([12, 37, 41]).counts)
            10
        """
        exact = np.diff(self.bins.ends(self.bins.column.sorted(values)))
        noisy = self.inner.release(exact, rng=rng)
        return BinnedColumn(edges=tuple(self.bins.edges.tolist()), counts=tuple(noisy.tolist()))

    def certify(self) -> Certificate:
        """Recompute the guarantee from exact distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_bin_counts(lower=0, upper=100, bins=10, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        return _certified(self, replace(self, bins=self.bins.fewer(2)), self.inner)

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
    """Create a mechanism that counts values in bins of equal width.

    The counts give quantiles and a mean at no further cost.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        bins: Number of bins, at most 2**20.
        epsilon: Privacy loss of all counts together.
        delta: If positive, calibrate the noise to (epsilon, delta)-DP.
        granularity: Spacing to which values are rounded, a power of two. The default is fine enough
            for most data.
        relation: Neighboring relation: one row is added or removed, or one row is replaced.

    Returns:
        A mechanism. `release(values)` returns `edges`, `counts`, `total`, `quantile(q)` and
        `mean()`.

    Raises:
        InvalidArgument: The bounds, the number of bins or the budget are not valid.

    Privacy:
        All counts together are (epsilon, delta)-DP.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.private_bin_counts(lower=0, upper=100, bins=10, epsilon=1)
        >>> binned = mechanism.release([12, 37, 41, 58, 93])
        >>> len(binned.counts)
        10
        >>> 0 <= binned.quantile(0.5) <= 100
        True

    References:
        [Proof](../theory/theorems.md#mechanisms.bin_statistics.private_bin_counts).
    """
    # Theorem: (epsilon, delta)-DP under `relation`.
    # Proof: an added row changes one count by one, a replaced one two: L1 sensitivity 1 or 2.
    #   Quantiles and means are computed from the noisy counts.
    # Source: B41, as it should be.
    # Needs: public bounds, bins and grid.
    central_relation(relation)
    noise = laplace(
        sensitivity=2 if relation is NeighboringRelation.REPLACE_ONE else 1,
        epsilon=epsilon,
        delta=delta,
        domain="integers",
        relation=relation,
    )
    return BinCounts(bins=EqualWidthBins.of(lower, upper, bins, granularity), inner=noise)
