"""Frequency oracles: randomizers from whose reports the share of every category is estimated.

Each report supports some categories. The client's own is supported with probability ``keep``, any
other with probability ``other``, so the supports of n reports, less n * other, divided by
keep - other, are unbiased counts. Oracles differ in how supports of two categories depend on each
other, and so in the error of sums (ranges).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.tabular import Record
from discreet.local.randomizer import LocalRandomizer
from discreet.noise.distribution import Floats, Ints
from discreet.query.result import Result, records

# ── Estimates ────────────────────────────────────────────────────────────────────────────────────
# The estimate itself is unbiased and its variance is exact. Everything under "adjusted" is post-
# processing: it costs no privacy. Each kind makes the numbers plausible and has a drawback that
# its docstring names.


class ReportProbabilities(Protocol):
    """What an oracle knows about the error of its estimates."""

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n of the share of ``length`` categories that hold ``share``."""

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """The same once the total was pinned to one."""

    def error_bound(self, reports: int, miss: float) -> float:
        """How far a share can be off, but for a probability of at most ``miss``."""


class Share(NamedTuple):
    """The estimated share of one category or range, and its standard deviation."""

    category: int | tuple[int, int]
    share: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Frequencies(Result):
    """Hold estimated shares of the clients by category.

    The shares are unbiased, so single ones can be negative. The variance is exact for given true
    shares; it is computed at the estimated ones.

    Attributes:
        shares: Share of each category.
        reports: Number of reports.
        variance: Variance of each share.
        oracle: Frequency oracle of the reports.
        adjusted: What was done to the shares afterwards; empty if nothing.

    Examples:
        >>> from discreet import local
        >>> import numpy as np
        >>> oracle = local.grr(categories=4, epsilon=1)
        >>> estimate = oracle.estimate(np.array([400, 250, 200, 150]), 1000)
        >>> estimate.shares.round(2).tolist()
        [0.75, 0.25, 0.08, -0.08]
        >>> estimate.std.round(2).tolist()
        [0.05, 0.04, 0.04, 0.04]
    """

    shares: Floats
    reports: int
    variance: Floats
    oracle: ReportProbabilities | None = None
    adjusted: str = ""

    @property
    def guarantee(self) -> Guarantee | None:
        """What each report satisfies, if the oracle is known."""
        found: Guarantee | None = getattr(self.oracle, "guarantee", None)
        return found

    @property
    def counts(self) -> Floats:
        """Estimated number of clients by category."""
        return self.shares * self.reports

    @property
    def std(self) -> Floats:
        """Standard deviation of each share, before any adjustment."""
        return np.sqrt(self.variance)

    def interval(
        self, confidence: float = 0.95, *, guaranteed: bool = False
    ) -> tuple[Floats, Floats]:
        """Return bounds for the share of each category.

        By default a score interval, which uses a normal approximation with the exact variance. With
        `guaranteed` the bounds hold for any number of reports and any data, and are wider.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1. Each interval
                holds on its own.
            guaranteed: Whether the bounds must hold without approximation.

        Returns:
            Lower and upper ends.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.
            Unsupported: Guaranteed bounds were asked for, but the shares were adjusted.

        Examples:
            >>> low, high = estimate.interval(0.95)
            >>> low.round(2).tolist(), high.round(2).tolist()
            ([0.65, 0.17, 0.01, -0.16], [0.85, 0.34, 0.17, -0.0])
        """
        self._unbiased("interval")
        inside = float(probability("confidence", confidence, zero=False, one=False))
        if guaranteed:
            if self.oracle is None or self.adjusted:
                raise Unsupported("guaranteed bounds need the oracle's own, unadjusted estimate.")
            width = self.oracle.error_bound(self.reports, 1 - inside)
            return self.shares - width, self.shares + width
        z = NormalDist().inv_cdf((1 + inside) / 2)
        law = self._law()
        if law is None or not self.reports:
            return self.shares - z * self.std, self.shares + z * self.std
        # The variance is linear in the share: (estimate - f)^2 = z^2 (a + b f) / n is a quadratic.
        a, b = float(law(1, 0)), float(law(1, 1)) - float(law(1, 0))
        shift = z * z * b / (2 * self.reports)
        square = shift**2 + z * z * (a + b * self.shares) / self.reports
        half = np.sqrt(np.maximum(square, 0))
        return self.shares + shift - half, self.shares + shift + half

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """Return one record for each category.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Dictionaries with the category, `value`, `std`, `low` and `high` (None once the shares
            were adjusted).

        Examples:
            >>> row = estimate.rows()[0]
            >>> row["category"], round(row["value"], 2), round(row["low"], 2), round(row["high"], 2)
            (0, 0.75, 0.65, 0.85)
        """
        low, high = (None, None) if self._is_biased else self.interval(confidence)
        places = ((place,) for place in range(len(self.shares)))
        return records(("category",), places, value=self.shares, std=self.std, low=low, high=high)

    def _law(self) -> Callable[[ArrayLike, ArrayLike], Floats] | None:
        """Variance times n of a range of this estimate, if an oracle knows it."""
        if self.oracle is None:
            return None
        return self.oracle.pinned_variance if self.adjusted else self.oracle.range_variance

    def range(self, low: int, high: int) -> Share:
        """Estimate the share of neighboring categories.

        Args:
            low: First category.
            high: Last category, included.

        Returns:
            The share with the standard deviation of the sum.

        Raises:
            InvalidArgument: The categories are not in order, or not in range.

        Examples:
            >>> found = estimate.range(0, 1)
            >>> found.category, round(found.share, 2), round(found.std, 2)
            ((0, 1), 1.0, 0.05)
        """
        self._unbiased("range")
        law = self._law()
        if law is None:
            raise Unsupported("range needs an estimate that comes from an oracle.")
        if not 0 <= low <= high < len(self.shares):
            raise InvalidArgument(
                f"low and high must satisfy 0 <= low <= high < {len(self.shares)}, "
                f"got {low} and {high}."
            )
        share = float(self.shares[low : high + 1].sum())
        held = min(max(share, 0.0), 1.0)
        times_n = float(law(high - low + 1, held))
        variance = max(times_n, 0.0) / self.reports if self.reports else np.inf
        return Share((low, high), share, float(np.sqrt(variance)))

    def top(self, k: int) -> list[Share]:
        """List the largest shares. So chosen, they tend to be too large.

        Args:
            k: Number of shares.

        Returns:
            The shares, largest first.

        Raises:
            InvalidArgument: `k` is not a positive whole number.

        Examples:
            >>> [one.category for one in estimate.top(2)]
            [0, 1]
        """
        k = min(count("k", k), len(self.shares))
        order = np.argsort(-self.shares, kind="stable")[:k]
        return [Share(int(i), float(self.shares[i]), float(self.std[i])) for i in order]

    def pinned(self) -> Frequencies:
        """Move all shares alike so that they add up to one.

        The shares stay unbiased and can be negative. Long ranges gain most.

        Returns:
            Adjusted shares.

        Examples:
            >>> round(float(estimate.pinned().shares.sum()), 6)
            1.0
        """
        self._unbiased("pinned")
        shares = self.shares + (1 - self.shares.sum()) / len(self.shares)
        if self.oracle is None or not self.reports:
            return replace(self, shares=shares, adjusted="pinned")
        law = self.oracle.pinned_variance(1, np.clip(shares, 0, 1))
        return replace(
            self, shares=shares, variance=np.maximum(law, 0) / self.reports, adjusted="pinned"
        )

    def projected(self) -> Frequencies:
        """Project the shares on the nearest distribution (Norm-Sub).

        No share is negative, and they add up to one. The total squared error never grows, but sums
        of many small shares become too low.

        Returns:
            Adjusted shares.

        Examples:
            >>> estimate.projected().shares.round(2).tolist()
            [0.72, 0.22, 0.06, 0.0]
        """
        order = np.sort(self.shares)[::-1]
        # The largest k for which the k-th largest share stays positive (Held, Wolfe, Crowder 1974).
        excess = (np.cumsum(order) - 1) / np.arange(1, len(order) + 1)
        level = excess[np.flatnonzero(order > excess)[-1]]
        return self._after("projected", np.maximum(self.shares - level, 0))

    def norm_mul(self) -> Frequencies:
        """Set negative shares to zero and scale the rest to add up to one.

        Large shares become too small if many small ones are noise.

        Returns:
            Adjusted shares.

        Examples:
            >>> estimate.norm_mul().shares.round(2).tolist()
            [0.69, 0.23, 0.08, 0.0]
        """
        positive = np.maximum(self.shares, 0)
        return self._after("norm_mul", _scaled(positive))

    def norm_cut(self) -> Frequencies:
        """Set negative shares to zero, and the smallest until the rest is at most one.

        Large shares stay unbiased. Rare categories become zero.

        Returns:
            Adjusted shares.

        Examples:
            >>> estimate.norm_cut().shares.round(2).tolist()
            [0.75, 0.25, 0.0, 0.0]
        """
        order = np.argsort(-self.shares, kind="stable")
        kept = np.maximum(self.shares[order], 0)
        within = np.cumsum(kept) <= 1
        within[0] = True
        shares = np.zeros_like(self.shares)
        shares[order] = np.minimum(np.where(within, kept, 0), 1)
        return self._after("norm_cut", shares)

    def base_cut(self, *, miss: float = 0.05) -> Frequencies:
        """Keep shares that noise alone would seldom reach; set the others to zero.

        Args:
            miss: Probability with which noise alone keeps any empty category, between 0 and 1.

        Returns:
            Adjusted shares. Their sums are too low.

        Raises:
            InvalidArgument: `miss` is not between 0 and 1.

        Examples:
            >>> estimate.base_cut(miss=0.01).shares.round(2).tolist()
            [0.75, 0.25, 0.0, 0.0]
        """
        if self.oracle is None:
            raise Unsupported("base_cut needs an estimate that comes from an oracle.")
        alone = float(probability("miss", miss, zero=False, one=False)) / len(self.shares)
        empty = float(self.oracle.range_variance(1, 0)) / max(self.reports, 1)
        line = NormalDist().inv_cdf(1 - alone / 2) * np.sqrt(empty)
        return self._after("base_cut", np.where(self.shares > line, self.shares, 0.0))

    def _after(self, name: str, shares: Floats) -> Frequencies:
        return replace(self, shares=shares, adjusted=name)

    @property
    def _is_biased(self) -> bool:
        return self.adjusted not in ("", "pinned")

    def _unbiased(self, asked: str) -> None:
        if self._is_biased:
            raise Unsupported(
                f"{asked} needs the unbiased estimate: ask before {self.adjusted}(), "
                "which has no error law."
            )

    def _shown(self) -> list[Record]:
        """The largest first: there may be thousands of categories."""
        return sorted(self.rows(), key=lambda row: -row["value"])

    def _title(self) -> str:
        note = f", {self.adjusted}" if self.adjusted else ""
        return f"{len(self.shares)} shares from {self.reports:,} reports{note}"


def _scaled(positive: Floats) -> Floats:
    total = positive.sum()
    return positive / total if total > 0 else np.full_like(positive, 1 / len(positive))


# ── Oracles ──────────────────────────────────────────────────────────────────────────────────────


class FrequencyOracle(LocalRandomizer):
    """Randomize one of several categories, and estimate their shares.

    Attributes:
        categories: Number of categories.

    Examples:
        >>> from discreet import local
        >>> oracle = local.grr(categories=4, epsilon=1)
        >>> oracle.categories, oracle.keep > oracle.other
        (4, True)
    """

    categories: int

    @property
    @abstractmethod
    def keep(self) -> float:
        """Probability that a report supports the client's own category (as really drawn)."""

    @property
    @abstractmethod
    def other(self) -> float:
        """Probability that a report supports any one other category (as really drawn)."""

    def supports(self, counts: Ints) -> Floats:
        """Count the reports that support each category.

        Args:
            counts: What the aggregator has counted.

        Returns:
            A number for each category; the counts themselves unless they are coded.

        Examples:
            >>> oracle.supports(np.array([400, 250, 200, 150])).tolist()
            [400.0, 250.0, 200.0, 150.0]
        """
        return counts.astype(np.float64)

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories}

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return np.zeros(many, dtype=np.int64), np.full(many, self.categories - 1)

    def _told(self, counts: Ints) -> Floats:
        return self.supports(counts)

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        means = np.full(self.categories, self.other)
        means[self.categories - 1 if last else 0] = self.keep
        return means

    @property
    def std(self) -> float:
        """Largest standard deviation of a share from one report.

        Divide it by `sqrt(n)` for `n` reports.
        """
        return math.sqrt(max(self.variance(0.0), self.variance(1.0)))

    def variance(self, share: ArrayLike) -> Floats:
        """Return the variance of the estimated share of one category, times n.

        Args:
            share: Share of the category, or an array.

        Returns:
            Variance times the number of reports.

        Examples:
            >>> round(float(oracle.variance(0.5)), 2)
            2.18
        """
        return self.range_variance(1, share)

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Return the variance of the estimated share of a range of categories, times n.

        Conditional on the data: only the randomization is random. Oracles whose supports exclude
        each other have their own.

        Args:
            length: Number of categories of the range, or an array.
            share: Share that the range holds, or an array.

        Returns:
            Variance times the number of reports.

        Examples:
            >>> round(float(oracle.range_variance(2, 0.5)), 2)
            2.52
        """
        p, q = self.keep, self.other
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        return (r * q * (1 - q) + f * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Return the variance of ranges, times n, once shares add up to one.

        All shares are moved alike until they do.
        Exact where categories are equally frequent, whatever the oracle: the error of a range is
        then that of a contrast of squared length r (1 - r / d). Oracles may know more.

        Args:
            length: Number of categories of the range, or an array.
            share: Share that the range holds, or an array.

        Returns:
            Variance times the number of reports.

        Examples:
            >>> round(float(local.oue(categories=4, epsilon=1).pinned_variance(2, 0.5)), 2)
            3.93
        """
        r = np.asarray(length, dtype=np.float64)
        whole: Floats = np.zeros_like(np.asarray(share, dtype=np.float64))
        return whole + self.contrast_variance() * r * (1 - r / self.categories)

    def contrast_variance(self) -> float:
        """Return the variance of a contrast between equally frequent categories.

        A contrast is a weighted sum with weights that add up to zero: all that a tree learns from
        a level whose total is known. Here it is of unit length.

        Returns:
            The variance times the number of reports.

        Examples:
            >>> round(oracle.contrast_variance(), 2)
            2.52
        """
        return float(self.range_variance(1, 1 / self.categories))

    def error_bound(self, reports: int, miss: float) -> float:
        """Bound the error of an estimated share.

        Args:
            reports: Number of reports.
            miss: Probability of a larger error, between 0 and 1.

        Returns:
            The largest error of a share, but for this probability.

        Examples:
            >>> round(oracle.error_bound(10_000, 0.05), 3)
            0.045
        """
        # Theorem: P(|estimate - share| > bound) <= miss, for any data and any n.
        # Proof: the estimate is a mean of n independent terms in an interval of length 1 / (keep -
        #   other), of variance at most the worst of the law. Hoeffding's and Bernstein's
        #   inequalities both hold for it; which is smaller depends on public numbers only.
        # Source: Hoeffding 1963; Bernstein 1924.
        # Needs: supports that are zero or one (other oracles have their own).
        if reports == 0:
            return math.inf
        room, gap = math.log(2 / miss) / reports, self.keep - self.other
        hoeffding = math.sqrt(room / 2) / gap
        bernstein = math.sqrt(2 * room) * self.std + room / (3 * gap)
        return min(hoeffding, bernstein)

    def estimate(self, counts: Ints, reports: int) -> Frequencies:
        """Estimate the shares of all categories, without bias.

        Args:
            counts: Counts of `tally`.
            reports: Number of reports that were counted.

        Returns:
            The shares, with their errors.

        Examples:
            >>> oracle.estimate(np.array([400, 250, 200, 150]), 1000).counts.round().tolist()
            [749.0, 250.0, 84.0, -83.0]
        """
        if reports == 0:
            shares = np.full(self.categories, 1 / self.categories)
            variance = np.full_like(shares, np.inf)
            return Frequencies(shares=shares, reports=0, variance=variance, oracle=self)
        shares = (self.supports(counts) / reports - self.other) / (self.keep - self.other)
        # The true shares are unknown: the law is read at the estimate, within its range.
        variance = self.variance(np.clip(shares, 0, 1)) / reports
        return Frequencies(shares=shares, reports=reports, variance=variance, oracle=self)
