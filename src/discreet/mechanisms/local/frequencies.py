"""Estimated shares of all categories, with their error."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.core.check import probability
from discreet.noise.law import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """Shares of the reports' clients by category: unbiased, so single ones may be negative."""

    shares: Floats
    reports: int
    variance: Floats

    @property
    def counts(self) -> Floats:
        """Estimated number of clients by category."""
        return self.shares * self.reports

    @property
    def std(self) -> Floats:
        """Standard deviation of each share."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that hold each share with about this probability (normal approximation)."""
        inside = float(probability("level", level, zero=False, one=False))
        z = NormalDist().inv_cdf((1 + inside) / 2)
        return self.shares - z * self.std, self.shares + z * self.std
