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

from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.local.randomizer import LocalRandomizer
from discreet.noise.distribution import Floats, Ints

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frequencies:
    """Shares of the reports' clients by category: unbiased, so single ones may be negative.

    ``variance`` is exact for given true shares; since those are unknown it is read at the
    estimates. ``adjusted`` names what was done to the shares afterwards; nothing if empty.
    """

    shares: Floats
    reports: int
    variance: Floats
    oracle: ReportProbabilities | None = None
    adjusted: str = ""

    @property
    def counts(self) -> Floats:
        """Estimated number of clients by category."""
        return self.shares * self.reports

    @property
    def std(self) -> Floats:
        """Standard deviation of each share (of the unbiased estimate, if this one is adjusted)."""
        return np.sqrt(self.variance)

    def interval(
        self, confidence: float = 0.95, *, guaranteed: bool = False
    ) -> tuple[Floats, Floats]:
        """Bounds that hold each share with this probability, taken one at a time.

        By default about so: all shares that the estimate does not contradict, each judged by the
        normal law with its own exact variance (a score interval, as Wilson's for one proportion).
        ``guaranteed=True``: at least so, for any n and any data, by Hoeffding's or Bernstein's
        inequality; wider.
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

    def _law(self) -> Callable[[ArrayLike, ArrayLike], Floats] | None:
        """Variance times n of a range of this estimate, if an oracle knows it."""
        if self.oracle is None:
            return None
        return self.oracle.pinned_variance if self.adjusted else self.oracle.range_variance

    def range(self, low: int, high: int) -> Share:
        """Share of the categories ``low`` to ``high``, both included, by the law of sums.

        The error of a sum is not the sum of errors: supports may exclude each other (F13, F48).
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
        """The ``k`` largest shares. Being largest they tend to be too large: so chosen, biased."""
        k = min(count("k", k), len(self.shares))
        order = np.argsort(-self.shares, kind="stable")[:k]
        return [Share(int(i), float(self.shares[i]), float(self.std[i])) for i in order]

    def pinned(self) -> Frequencies:
        """All shares moved alike so that they add up to one: linear, so still unbiased. F15.

        Long ranges gain most: their error falls as r (1 - r/d) and the whole has none. Shares may
        still be negative.
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
        """The nearest distribution: no share negative, all adding up to one.

        The squared error summed over categories never grows: the truth lies in the simplex, and a
        projection onto a convex set brings every point nearer to all of it. But small shares are
        pulled to zero and sums of many small ones come out too low: biased. This is Norm-Sub
        (Wang et al. 2020) computed exactly.
        """
        order = np.sort(self.shares)[::-1]
        # The largest k for which the k-th largest share stays positive (Held, Wolfe, Crowder 1974).
        excess = (np.cumsum(order) - 1) / np.arange(1, len(order) + 1)
        level = excess[np.flatnonzero(order > excess)[-1]]
        return self._after("projected", np.maximum(self.shares - level, 0))

    def norm_mul(self) -> Frequencies:
        """Negative shares to zero, the rest multiplied so that they add up to one.

        Large shares come out too small when many small ones are noise: biased in proportion.
        """
        positive = np.maximum(self.shares, 0)
        return self._after("norm_mul", _scaled(positive))

    def norm_cut(self) -> Frequencies:
        """Negative shares to zero, then the smallest until the rest adds up to at most one.

        Leaves large shares as they are, unbiased; rare categories come out as zero.
        """
        order = np.argsort(-self.shares, kind="stable")
        kept = np.maximum(self.shares[order], 0)
        within = np.cumsum(kept) <= 1
        within[0] = True
        shares = np.zeros_like(self.shares)
        shares[order] = np.minimum(np.where(within, kept, 0), 1)
        return self._after("norm_cut", shares)

    def base_cut(self, *, miss: float = 0.05) -> Frequencies:
        """Shares that pure noise would seldom reach stay, all others become zero.

        The line is the two-sided normal quantile of an empty category's noise at ``miss`` over the
        number of categories. What stays is unbiased but for its selection; sums are too low.
        """
        if self.oracle is None:
            raise Unsupported("base_cut needs an estimate that comes from an oracle.")
        alone = float(probability("miss", miss, zero=False, one=False)) / len(self.shares)
        empty = float(self.oracle.range_variance(1, 0)) / max(self.reports, 1)
        line = NormalDist().inv_cdf(1 - alone / 2) * np.sqrt(empty)
        return self._after("base_cut", np.where(self.shares > line, self.shares, 0.0))

    def _after(self, name: str, shares: Floats) -> Frequencies:
        return replace(self, shares=shares, adjusted=name)

    def _unbiased(self, asked: str) -> None:
        if self.adjusted not in ("", "pinned"):
            raise Unsupported(
                f"{asked} needs the unbiased estimate: ask before {self.adjusted}(), "
                "which has no error law."
            )

    def __repr__(self) -> str:
        note = f", {self.adjusted}" if self.adjusted else ""
        return f"Frequencies({len(self.shares)} categories, {self.reports:,} reports{note})"

    def __str__(self) -> str:
        rows = [f"{s.category:>10}  {s.share:>9.4f} ± {s.std:.4f}" for s in self.top(10)]
        left = len(self.shares) - len(rows)
        more = [f"{'':>10}  and {left:,} more"] if left else []
        return "\n".join([repr(self), f"{'category':>10}  {'share':>9}   (std)", *rows, *more])


def _scaled(positive: Floats) -> Floats:
    total = positive.sum()
    return positive / total if total > 0 else np.full_like(positive, 1 / len(positive))


# ── Oracles ──────────────────────────────────────────────────────────────────────────────────────


class FrequencyOracle(LocalRandomizer):
    """A randomizer of one of ``categories`` codes with constant probabilities of support."""

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
        """How many reports support each category; the counts themselves unless coded."""
        return counts.astype(np.float64)

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories}

    @property
    def std(self) -> float:
        """Of an estimated share from one report, at worst (divide by sqrt(n) for n reports)."""
        return math.sqrt(max(self.variance(0.0), self.variance(1.0)))

    def variance(self, share: ArrayLike) -> Floats:
        """Variance times n of the estimated share of a category whose share is ``share``. F13."""
        return self.range_variance(1, share)

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n of the estimated share of ``length`` categories, holding ``share``.

        Conditional on the data: only the randomization is random. This is the law of independent
        supports (F48); oracles whose supports exclude each other have their own.
        """
        p, q = self.keep, self.other
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        return (r * q * (1 - q) + f * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def pinned_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """The same once all shares were moved alike so that they add up to one. F15.

        Exact where categories are equally frequent, whatever the oracle: the error of a range is
        then that of a contrast of squared length r (1 - r/d). Oracles may know more.
        """
        r = np.asarray(length, dtype=np.float64)
        whole: Floats = np.zeros_like(np.asarray(share, dtype=np.float64))
        return whole + self.contrast_variance() * r * (1 - r / self.categories)

    def contrast_variance(self) -> float:
        """Variance times n of a contrast of unit length between equally frequent categories. F49.

        A contrast is a weighted sum with weights that add up to zero: all that a tree learns from
        a level whose total is known.
        """
        return float(self.range_variance(1, 1 / self.categories))

    def error_bound(self, reports: int, miss: float) -> float:
        """How far an estimated share can be off, but for a probability of at most ``miss``.

        Theorem: P(|estimate - share| > bound) <= miss, for any data and any n.
        Proof: the estimate is a mean of n independent terms in an interval of length
        1 / (keep - other), of variance at most the worst of the law. Hoeffding's and Bernstein's
        inequalities both hold for it; which is smaller depends on public numbers only.
        Source: Hoeffding 1963; Bernstein 1924.
        Needs: supports that are zero or one (other oracles have their own).
        """
        if reports == 0:
            return math.inf
        room, gap = math.log(2 / miss) / reports, self.keep - self.other
        hoeffding = math.sqrt(room / 2) / gap
        bernstein = math.sqrt(2 * room) * self.std + room / (3 * gap)
        return min(hoeffding, bernstein)

    def estimate(self, counts: Ints, reports: int) -> Frequencies:
        """Unbiased shares of all categories."""
        if reports == 0:
            shares = np.full(self.categories, 1 / self.categories)
            variance = np.full_like(shares, np.inf)
            return Frequencies(shares=shares, reports=0, variance=variance, oracle=self)
        shares = (self.supports(counts) / reports - self.other) / (self.keep - self.other)
        # The true shares are unknown: the law is read at the estimate, within its range.
        variance = self.variance(np.clip(shares, 0, 1)) / reports
        return Frequencies(shares=shares, reports=reports, variance=variance, oracle=self)
