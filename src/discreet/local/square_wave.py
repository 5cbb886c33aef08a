"""The square wave: the whole distribution of a bounded number, from one symbol of each client."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, positive
from discreet.core.errors import OutOfDomain
from discreet.core.exact import Number
from discreet.mechanisms.local.distribution import Bootstrap, Distribution
from discreet.mechanisms.local.mean import Mean, bounds, plain
from discreet.mechanisms.local.randomiser import Randomiser, Reports, Tally
from discreet.mechanisms.local.reconstruct import fit
from discreet.mechanisms.local.window import Window, bytes_of, histogram, rows
from discreet.mechanisms.local.window import window as weights
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats, Ints

_CHUNK = 1 << 17
_SERIES = 1e-3  # below this epsilon the closed form of the half width cancels


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SquareWave(Randomiser):
    """A symbol from a window around the number's cell. Made by `square_wave`."""

    kind: ClassVar[str] = "square_wave"

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    window: Window

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

    def encode(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        source = source_of(bits)
        every = self._cells_of(value)
        out = np.empty((len(every), self.width), dtype=np.uint8)
        for start in range(0, len(every), _CHUNK):
            part = every[start : start + _CHUNK]
            out[start : start + _CHUNK] = rows(self.window.draw(part, source), self.width)
        return out

    def tally(self, reports: Reports) -> Tally:
        return histogram(reports, self.size)

    def estimate(self, counts: Ints, reports: int, *, smooth: bool = True) -> Distribution:
        """The distribution of the clients' numbers.

        With ``smooth`` neighbouring cells are averaged after every step (EMS): much better if the
        distribution is smooth, and biased if it has spikes, which it spreads out however many
        clients there are. Without it (EM) the most likely distribution is sought: it follows
        spikes, and turns noise into spikes.
        """
        found = fit(self.window, counts, smooth=smooth)
        return Distribution(
            shares=found.shares,
            bounds=(float(self.lower), float(self.upper)),
            reports=reports,
            iterations=found.iterations,
            converged=found.converged,
        )

    def mean(self, counts: Ints, reports: int) -> Mean:
        """The mean of the clients' numbers, each taken as the middle of its cell: unbiased.

        Proof: the mean symbol is linear in the cell (`Window.moment`).
        """
        symbols, gain = np.arange(self.size, dtype=np.float64), self.window.gain
        levels = (symbols - (self.size - 1) / 2) / gain
        shift = math.fsum(counts * levels) / reports if reports else 0.0
        lower, upper = float(self.lower), float(self.upper)
        return Mean(
            value=(lower + upper) / 2 + shift * self._cell,
            reports=reports,
            std=self.std / math.sqrt(reports) if reports else math.inf,
            bounds=(lower, upper),
            one=(self.std, (self.size - 1) / gain * self._cell),
            bias=self._cell / 2,
        )

    def bootstrap(
        self,
        estimate: Distribution,
        *,
        smooth: bool = True,
        replicates: int = 100,
        bits: Bits | None = None,
    ) -> Bootstrap:
        """Estimates from simulated reports of clients distributed like ``estimate``.

        Post-processing: no report is read again.
        """
        source = source_of(bits)
        rng = np.random.Generator(np.random.Philox(source.words(2)))
        chances = self.window.shares(estimate.shares)
        drawn = rng.multinomial(estimate.reports, chances / chances.sum(), size=replicates)
        made = tuple(self.estimate(one, estimate.reports, smooth=smooth) for one in drawn)
        return Bootstrap(estimate=estimate, replicates=made)

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
