"""The distribution of a bounded number, from one symbol of each client (square wave).

The square wave is a randomizer with a window. The estimate is the distribution that makes the
reports most likely, found by expectation-maximization, as shares of equal cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import OutOfDomain
from discreet.local._window_channel import WindowChannel, bytes_of, histogram, rows
from discreet.local._window_channel import window as weights
from discreet.local.means.base import MeanEstimate, bounds, plain
from discreet.local.randomizer import LocalRandomizer, Reports, Tally
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Estimates ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionEstimate:
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
            f"DistributionEstimate({len(self.shares)} cells from {lower:g} to {upper:g}, mean "
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
class DistributionBootstrap:
    """An estimate, and estimates from reports simulated as if it were the truth."""

    estimate: DistributionEstimate
    replicates: tuple[DistributionEstimate, ...]

    def __repr__(self) -> str:
        return f"DistributionBootstrap({self.estimate!r}, {len(self.replicates)} replicates)"

    def interval(
        self, statistic: Callable[[DistributionEstimate], ArrayLike], confidence: float = 0.95
    ) -> tuple[Floats, Floats]:
        """About where the truth lies: the estimate less the error that the replicates made.

        Heuristic: no theorem. It sees noise, and the bias that the estimate itself would suffer;
        a spike that smoothing has already spread out is not brought back.
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        center = np.asarray(statistic(self.estimate), dtype=np.float64)
        every = np.array([statistic(one) for one in self.replicates], dtype=np.float64)
        low, high = np.quantile(every, [(1 - inside) / 2, (1 + inside) / 2], axis=0)
        return 2 * center - high, 2 * center - low


# ── Maximum likelihood ───────────────────────────────────────────────────────────────────────────


MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class MaximumLikelihoodFit:
    """Shares of the inputs, the number of iterations, and whether the likelihood settled."""

    shares: Floats
    iterations: int
    converged: bool


def fit(
    channel: WindowChannel,
    counts: Ints,
    *,
    smooth: bool,
    enough: float | None = None,
    most: int = MOST_ITERATIONS,
) -> MaximumLikelihoodFit:
    """Maximize the likelihood, or with ``smooth`` also average neighbors after each step.

    Each step multiplies the shares by the transposed channel applied to counts / expectation and
    takes time linear in the number of symbols, because a window is a difference of cumulated
    sums. It ends when the log-likelihood gains less than ``enough``, as published 1e-3, or without
    smoothing 1e-3 e^epsilon. Ending early is part of the method: the likeliest shares are jagged.

    Source: Li et al. 2020 (EM and EMS for the square wave). F52.
    """
    shares = np.full(channel.inputs, 1 / channel.inputs)
    observed = counts.astype(np.float64)
    total = observed.sum()
    if total == 0:
        return MaximumLikelihoodFit(shares, 0, converged=True)
    published = 1e-3 if smooth else 1e-3 * (channel.near / channel.far)
    limit = published if enough is None else enough
    expected = channel.shares(shares)
    likelihood = _log_likelihood(observed, expected)
    for iteration in range(1, most + 1):
        # The smallest expectation is far / total > 0, so that nothing is divided by zero.
        shares = shares * channel.back(observed / expected) / total
        if smooth:
            shares = _smoothed(shares)
        shares /= shares.sum()
        expected = channel.shares(shares)
        before, likelihood = likelihood, _log_likelihood(observed, expected)
        if likelihood - before < limit:
            return MaximumLikelihoodFit(shares, iteration, converged=True)
    return MaximumLikelihoodFit(shares, most, converged=False)


def _log_likelihood(observed: Floats, expected: Floats) -> float:
    return float(observed @ np.log(expected))


def _smoothed(shares: Floats) -> Floats:
    """Weights 1/4, 1/2, 1/4; what would leave at an end stays there, so that the sum stays."""
    padded = np.concatenate((shares[:1], shares, shares[-1:]))
    inner: Floats = (padded[:-2] + 2 * shares + padded[2:]) / 4
    return inner


# ── Square wave ──────────────────────────────────────────────────────────────────────────────────


_CHUNK = 1 << 17
_SERIES = 1e-3  # below this epsilon the closed form of the half width cancels


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SquareWave(LocalRandomizer):
    """A symbol from a window around the number's cell. Made by `square_wave`."""

    kind: ClassVar[str] = "square_wave"

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    window: WindowChannel

    @property
    def cells(self) -> int:
        """Equal cells from lower to upper."""
        return self.window.inputs

    @property
    def size(self) -> int:
        return self.window.symbols

    @property
    def width(self) -> int:
        return bytes_of(self.size)

    @property
    def std(self) -> float:
        """Of the mean estimated from one report, at worst: see `mean`."""
        gain, end = self.window.gain, (self.cells - 1) / 2
        worst = self.window.moment / gain**2 + end * end * (1 / gain - 1)
        return math.sqrt(worst) * self._cell

    def parameters(self) -> dict[str, Any]:
        ends = {"lower": plain(self.lower), "upper": plain(self.upper)}
        return {"cells": self.cells, **ends, "window": self.window.width}

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        source = resolve_rng(rng)
        every = self._cells_of(value)
        out = np.empty((len(every), self.width), dtype=np.uint8)
        for start in range(0, len(every), _CHUNK):
            part = every[start : start + _CHUNK]
            out[start : start + _CHUNK] = rows(self.window.draw(part, source), self.width)
        return out

    def tally(self, reports: Reports) -> Tally:
        return histogram(reports, self.size)

    def estimate(self, counts: Ints, reports: int, *, smooth: bool = True) -> DistributionEstimate:
        """The distribution of the clients' numbers.

        With ``smooth`` neighboring cells are averaged after every step (EMS): much better if the
        distribution is smooth, and biased if it has spikes, which it spreads out however many
        clients there are. Without it (EM) the most likely distribution is sought: it follows
        spikes, and turns noise into spikes.
        """
        found = fit(self.window, counts, smooth=smooth)
        return DistributionEstimate(
            shares=found.shares,
            bounds=(float(self.lower), float(self.upper)),
            reports=reports,
            iterations=found.iterations,
            converged=found.converged,
        )

    def mean(self, counts: Ints, reports: int) -> MeanEstimate:
        """The mean of the clients' numbers, each taken as the middle of its cell: unbiased.

        Proof: the mean symbol is linear in the cell (`Window.moment`).
        """
        symbols, gain = np.arange(self.size, dtype=np.float64), self.window.gain
        levels = (symbols - (self.size - 1) / 2) / gain
        shift = math.fsum(counts * levels) / reports if reports else 0.0
        lower, upper = float(self.lower), float(self.upper)
        return MeanEstimate(
            value=(lower + upper) / 2 + shift * self._cell,
            reports=reports,
            std=self.std / math.sqrt(reports) if reports else math.inf,
            bounds=(lower, upper),
            one=(self.std, (self.size - 1) / gain * self._cell),
            bias=self._cell / 2,
        )

    def bootstrap(
        self,
        estimate: DistributionEstimate,
        *,
        smooth: bool = True,
        replicates: int = 100,
        rng: RandomSource | None = None,
    ) -> DistributionBootstrap:
        """Estimates from simulated reports of clients distributed like ``estimate``.

        Post-processing: no report is read again.
        """
        source = resolve_rng(rng)
        generator = np.random.Generator(np.random.Philox(source.words(2)))
        chances = self.window.shares(estimate.shares)
        drawn = generator.multinomial(estimate.reports, chances / chances.sum(), size=replicates)
        made = tuple(self.estimate(one, estimate.reports, smooth=smooth) for one in drawn)
        return DistributionBootstrap(estimate=estimate, replicates=made)

    def certify(self) -> Certificate:
        """The ratio of the integer weights."""
        check = self.window.check(self.epsilon, f"{self.cells} cells")
        return Certificate(mechanism=self.kind, guarantee=self.guarantee, checks=(check,)).demand()

    @property
    def _cell(self) -> float:
        return float(self.upper - self.lower) / self.cells

    def _cells_of(self, value: ArrayLike) -> Ints:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise OutOfDomain("value must hold finite numbers: replace what is missing beforehand.")
        # Not by way of a share of the range: codes 0, 1, 2, ... must land in their own cells.
        with np.errstate(over="ignore"):  # what is infinitely far outside is outside
            shifted = array.astype(np.float64).ravel() - float(self.lower)
            scaled: Floats = shifted * (self.cells / float(self.upper - self.lower))
        return np.clip(np.floor(scaled), 0, self.cells - 1).astype(np.int64)


def square_wave(
    *,
    cells: int,
    epsilon: Number,
    lower: Number = 0,
    upper: Number | None = None,
    window: int | None = None,
) -> SquareWave:
    """A number, blurred over a window of cells, for an estimate of the whole distribution.

    Without bounds, the numbers are the codes 0 .. cells - 1. One byte up to about 125 cells, two
    up to about 32,000.

    Theorem: each report is epsilon-DP in the local model.
    Proof: the report depends on the number through its cell only, and `Window` is epsilon-DP.
    Source: Li et al. 2020, on a public grid. F52.
    Needs: cells >= 2, lower < upper; numbers outside count as the nearer bound.
    """
    number = count("cells", cells, minimum=2)
    low, high = bounds(lower, number if upper is None else upper)
    eps = positive("epsilon", epsilon)
    best = 2 * math.floor(half_width(float(eps)) * number) + 1
    width = best if window is None else count("window", window)
    made = weights(inputs=number, width=width, epsilon=eps)
    return SquareWave(epsilon=eps, lower=low, upper=high, window=made)


def half_width(epsilon: float) -> float:
    """Half the width of the window on a range of length one: most information about the number.

    b = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)), which cancels for small epsilon and
    overflows for large. Any width keeps epsilon, as the weights follow from it. F52.
    """
    if epsilon < _SERIES:
        return 0.5 - epsilon / 3
    small = math.exp(-epsilon)
    above = (
        small * (epsilon - 1 + small) if epsilon > 1 else small * (math.expm1(-epsilon) + epsilon)
    )
    return above / (2 * (1 - (1 + epsilon) * small))
