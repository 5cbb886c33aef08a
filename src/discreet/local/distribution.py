"""The distribution of a bounded number, from one symbol of each client (square wave).

The square wave is a randomizer with a window. The estimate is the distribution that makes the
reports most likely, found by expectation-maximization, as shares of equal cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import OutOfDomain
from discreet.core.number_format import short
from discreet.core.tabular import Record
from discreet.local._window_channel import WindowChannel, bytes_of, histogram, rows
from discreet.local._window_channel import window as weights
from discreet.local.means.base import MeanEstimate, bounds, plain
from discreet.local.randomizer import LocalRandomizer, Reports, Tally, reals
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

# ── Estimates ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DistributionEstimate(Result):
    """Shares of equal cells between two bounds, never negative; evenly spread within a cell.

    Attributes:
        shares: Estimated share of each cell; together they are 1.
        bounds: Lower and upper bound of the numbers.
        reports: Number of reports.
        iterations: Number of iterations until the estimate.
        converged: Whether the likelihood had settled; if not, more iterations would move the
            estimate.
        guarantee: What each report satisfies.

    Examples:
        >>> from discreet import local
        >>> wave = local.square_wave(cells=4, epsilon=2, lower=0, upper=100)
        >>> reports = wave.randomize([10] * 5000)
        >>> estimate = wave.estimate(wave.tally(reports).counts, 5000, smooth=False)
        >>> estimate.edges.tolist()
        [0.0, 25.0, 50.0, 75.0, 100.0]
        >>> int(estimate.shares.argmax())
        0
    """

    shares: Floats
    bounds: tuple[float, float]
    reports: int
    iterations: int
    converged: bool
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        self.shares.setflags(write=False)

    def _title(self) -> str:
        lower, upper = self.bounds
        settled = "" if self.converged else ", not settled"
        return (
            f"Distribution in {len(self.shares)} cells from {lower:g} to {upper:g}, mean "
            f"{short(self.mean)}, of {self.reports:,} reports{settled}"
        )

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the share of each cell; `SquareWave.bootstrap` simulates its error.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each cell: from, to, value, std, low and high, the last three None.

        Examples:
            >>> row = estimate.rows()[0]
            >>> row["from"], row["to"], row["value"] > 0.5
            (0.0, 25.0, True)
        """
        edges = self.edges.tolist()
        return records(("from", "to"), pairwise(edges), value=self.shares)

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
        """Return the share of the clients with at most a value.

        Args:
            value: Number, or array of numbers.

        Returns:
            The estimated share for each number.

        Examples:
            >>> float(estimate.cdf(100).round(6))
            1.0
        """
        sums = np.concatenate(([0.0], np.cumsum(self.shares)))
        return np.interp(np.asarray(value, dtype=np.float64), self.edges, sums)

    def range(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return the share of the clients between two numbers.

        Args:
            low: Smallest number, or array of numbers.
            high: Largest number, or array of numbers.

        Returns:
            The estimated share.

        Raises:
            OutOfDomain: The ends are not in order.

        Examples:
            >>> bool(estimate.range(0, 25) > 0.5)
            True
        """
        if not (np.asarray(low) <= np.asarray(high)).all():
            raise OutOfDomain("low must not lie above high.")
        return self.cdf(high) - self.cdf(low)

    def quantile(self, share: float) -> float:
        """Return the number that a share of the clients do not exceed.

        Args:
            share: Share of the clients, between 0 and 1.

        Returns:
            The estimated number.

        Raises:
            InvalidArgument: The share is not between 0 and 1.

        Examples:
            >>> 0 < estimate.quantile(0.5) < 25
            True
        """
        inside = float(probability("share", share))
        sums = np.concatenate(([0.0], np.cumsum(self.shares)))
        last = int(np.searchsorted(sums, inside * sums[-1], side="left"))
        edges = self.edges
        if last == 0:
            return float(edges[0])
        part = (inside * sums[-1] - sums[last - 1]) / (sums[last] - sums[last - 1])
        return float(edges[last - 1] + part * (edges[last] - edges[last - 1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DistributionBootstrap(Result):
    """An estimate, and estimates from reports simulated as if it were the truth."""

    estimate: DistributionEstimate
    replicates: tuple[DistributionEstimate, ...]

    def _title(self) -> str:
        return f"{self.estimate._title()}, {len(self.replicates)} replicates"  # noqa: SLF001 - its own

    @property
    def guarantee(self) -> Guarantee | None:
        """What each report satisfies."""
        return self.estimate.guarantee

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the share of each cell with about where the truth lies.

        Args:
            confidence: Share of the replicates that lie within.

        Returns:
            One record for each cell: from, to, value, std, low and high.
        """
        low, high = self.interval_of(lambda one: one.shares, confidence)
        every = np.array([one.shares for one in self.replicates])
        shares = self.estimate.shares
        # An estimate that is biased may lie outside of where the truth is.
        return records(
            ("from", "to"),
            pairwise(self.estimate.edges.tolist()),
            value=shares,
            std=every.std(axis=0),
            low=np.minimum(low, shares),
            high=np.maximum(high, shares),
        )

    def interval_of(
        self, statistic: Callable[[DistributionEstimate], ArrayLike], confidence: float = 0.95
    ) -> tuple[Floats, Floats]:
        """Return about where the truth of a statistic lies, by the errors of the replicates.

        Heuristic: no theorem. It sees noise, and the bias that the estimate itself would suffer;
        a spike that smoothing has already spread out is not brought back.

        Args:
            statistic: What to compute of an estimate, a number or an array.
            confidence: Share of the replicates that lie within.

        Returns:
            The lower and the upper end, in the shape of the statistic.
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
    """
    # Source: Li et al. 2020 (EM and EMS for the square wave). F52.
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
    """Randomize a number into a symbol near its cell. Made by `square_wave`.

    Attributes:
        epsilon: Privacy loss of one report.
        lower: Public lower bound of the numbers.
        upper: Public upper bound of the numbers.
        window: Probabilities of the symbols: those near the cell are likelier than the others.

    Examples:
        >>> from discreet import local
        >>> wave = local.square_wave(cells=4, epsilon=2, lower=0, upper=100)
        >>> wave.lower, wave.upper, wave.cells
        (Fraction(0, 1), Fraction(100, 1), 4)
    """

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
        """Estimate the distribution of the clients' numbers.

        Args:
            counts: Counts of `tally`.
            reports: Number of reports that were counted.
            smooth: Whether neighboring cells are averaged after every step (EMS). This is much
                better for smooth distributions, and spreads out spikes. Without it (EM), noise can
                look like spikes.

        Returns:
            The distribution.

        Examples:
            >>> estimate = wave.estimate(wave.tally(reports).counts, 5000)
            >>> round(float(estimate.shares.sum()), 6)
            1.0
        """
        found = fit(self.window, counts, smooth=smooth)
        return DistributionEstimate(
            shares=found.shares,
            bounds=(float(self.lower), float(self.upper)),
            reports=reports,
            iterations=found.iterations,
            converged=found.converged,
            guarantee=self.guarantee,
        )

    def mean(self, counts: Ints, reports: int) -> MeanEstimate:
        """Estimate the mean of the clients' numbers.

        Each counts as the middle of its cell. The estimate is unbiased.

        Args:
            counts: Number of reports of each symbol.
            reports: Number of all reports.

        Returns:
            The mean with its error.

        Examples:
            >>> wave.mean(wave.tally(reports).counts, 5000).value < 25
            True
        """
        # Proof: the mean symbol is linear in the cell (`Window.moment`).
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
            guarantee=self.guarantee,
        )

    def bootstrap(
        self,
        estimate: DistributionEstimate,
        *,
        smooth: bool = True,
        replicates: int = 100,
        rng: RandomSource | None = None,
    ) -> DistributionBootstrap:
        """Simulate the error of an estimate.

        Reports of clients that are distributed like the estimate are simulated. No report is read
        again.

        Args:
            estimate: Estimate of `estimate`.
            smooth: Whether the simulated estimates are smoothed, as the estimate was.
            replicates: Number of simulations.
            rng: Random source of the simulation. If None, the operating system's.

        Returns:
            The simulated estimates, with intervals.

        Privacy:
            This is post-processing: it costs nothing.

        Examples:
            >>> simulated = wave.bootstrap(estimate, replicates=5)
            >>> len(simulated.replicates)
            5
        """
        source = resolve_rng(rng)
        generator = np.random.Generator(np.random.Philox(source.words(2)))
        chances = self.window.shares(estimate.shares)
        drawn = generator.multinomial(estimate.reports, chances / chances.sum(), size=replicates)
        made = tuple(self.estimate(one, estimate.reports, smooth=smooth) for one in drawn)
        return DistributionBootstrap(estimate=estimate, replicates=made)

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return np.full(many, float(self.lower)), np.full(many, float(self.upper))

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        return self.window.weights(self.cells - 1 if last else 0) / self.window.total

    def certify(self) -> Certificate:
        """Check the ratio of the integer weights, and how they are drawn.

        Returns:
            The certificate.

        Examples:
            >>> wave.certify().mechanism
            'square_wave'
        """
        check = self.window.check(self.epsilon, f"{self.cells} cells")
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()

    @property
    def _cell(self) -> float:
        return float(self.upper - self.lower) / self.cells

    def _cells_of(self, value: ArrayLike) -> Ints:
        given = reals(value)
        # Not by way of a share of the range: codes 0, 1, 2, ... must land in their own cells.
        with np.errstate(over="ignore"):  # what is infinitely far outside is outside
            shifted = given - float(self.lower)
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
    """Create the square wave mechanism, which estimates a whole distribution.

    Args:
        cells: Number of cells into which the bounds are cut, at least 2.
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one. If None, the values are the
            codes 0 to `cells - 1`.
        window: Number of cells of the window that reports are drawn from. If None, the one that
            keeps most information about the number.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> wave = local.square_wave(cells=8, epsilon=1)
        >>> wave.guarantee.epsilon()
        1.0
    """
    # Theorem: each report is epsilon-DP in the local model.
    # Proof: the report depends on the number through its cell only, and `Window` is epsilon-DP.
    # Source: Li et al. 2020, on a public grid. F52.
    # Needs: cells >= 2, lower < upper; numbers outside count as the nearer bound.
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
