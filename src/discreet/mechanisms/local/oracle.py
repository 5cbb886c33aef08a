"""Frequency oracles: randomisers from whose reports the share of every category is estimated.

Each report supports some categories. The client's own is supported with probability ``keep``, any
other with probability ``other``, so the supports of n reports, less n * other, divided by
keep - other, are unbiased counts. Oracles differ in how supports of two categories depend on each
other, and so in the error of sums (ranges).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.mechanisms.local.frequencies import Frequencies
from discreet.mechanisms.local.randomiser import Randomiser
from discreet.noise.law import Floats, Ints


class Oracle(Randomiser):
    """A randomiser of one of ``categories`` codes with constant probabilities of support."""

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

        Conditional on the data: only the randomisation is random. This is the law of independent
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
