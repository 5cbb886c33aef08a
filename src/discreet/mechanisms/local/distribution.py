"""The distribution of bounded numbers as it was estimated: shares of equal cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import probability
from discreet.core.errors import OutOfDomain
from discreet.noise.law import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """Shares of equal cells between two bounds, never negative; evenly spread within a cell."""

    shares: Floats
    bounds: tuple[float, float]
    reports: int
    iterations: int
    converged: bool
    """Whether the likelihood had settled; if not, more iterations would move the estimate."""

    def __post_init__(self) -> None:
        self.shares.setflags(write=False)

    def __repr__(self) -> str:
        lower, upper = self.bounds
        settled = "" if self.converged else ", not settled"
        return (
            f"Distribution({len(self.shares)} cells from {lower:g} to {upper:g}, mean "
            f"{self.mean:.4g}, {self.reports:,} reports{settled})"
        )

    @property
    def edges(self) -> Floats:
        """Ends of the cells."""
        return np.linspace(*self.bounds, len(self.shares) + 1)

    @property
    def density(self) -> Floats:
        """Share by unit of the numbers, in each cell."""
        lower, upper = self.bounds
        return self.shares * (len(self.shares) / (upper - lower))

    @property
    def mean(self) -> float:
        """The mean of this distribution (not unbiased: see `SquareWave.mean` for one that is)."""
        edges = self.edges
        return float(self.shares @ (edges[1:] + edges[:-1])) / 2

    def cdf(self, value: ArrayLike) -> Floats:
        """Share of the clients whose number is at most ``value``."""
        sums = np.concatenate(([0.0], np.cumsum(self.shares)))
        return np.interp(np.asarray(value, dtype=np.float64), self.edges, sums)

    def range(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Share of the clients from ``low`` to ``high``."""
        if not (np.asarray(low) <= np.asarray(high)).all():
            raise OutOfDomain("low must not lie above high.")
        return self.cdf(high) - self.cdf(low)

    def quantile(self, share: float) -> float:
        """The number that this share of the clients do not exceed."""
        inside = float(probability("share", share))
        sums = np.concatenate(([0.0], np.cumsum(self.shares)))
        last = int(np.searchsorted(sums, inside * sums[-1], side="left"))
        edges = self.edges
        if last == 0:
            return float(edges[0])
        part = (inside * sums[-1] - sums[last - 1]) / (sums[last] - sums[last - 1])
        return float(edges[last - 1] + part * (edges[last] - edges[last - 1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """An estimate, and estimates from reports simulated as if it were the truth."""

    estimate: Distribution
    replicates: tuple[Distribution, ...]

    def __repr__(self) -> str:
        return f"Bootstrap({self.estimate!r}, {len(self.replicates)} replicates)"

    def interval(
        self, statistic: Callable[[Distribution], ArrayLike], level: float = 0.95
    ) -> tuple[Floats, Floats]:
        """About where the truth lies: the estimate less the error that the replicates made.

        Heuristic: no theorem. It sees noise, and the bias that the estimate itself would suffer;
        a spike that smoothing has already spread out is not brought back.
        """
        inside = float(probability("level", level, zero=False, one=False))
        centre = np.asarray(statistic(self.estimate), dtype=np.float64)
        every = np.array([statistic(one) for one in self.replicates], dtype=np.float64)
        low, high = np.quantile(every, [(1 - inside) / 2, (1 + inside) / 2], axis=0)
        return 2 * centre - high, 2 * centre - low
