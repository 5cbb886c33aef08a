"""The mean of bounded numbers in the local model: what all its randomizers share.

A number is placed on a public grid of ``steps`` steps between declared bounds, by rounding to one
of its two neighbors at random so that its mean stays; then one symbol of a finite alphabet is
drawn with exact weights that depend on the grid point alone. Each symbol stands for a level, and
the mean of the levels is an unbiased estimate. A server keeps a histogram of the symbols.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number, rational
from discreet.core._validate import finite, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local._window_channel import bytes_of, histogram, rows
from discreet.local.randomizer import LocalRandomizer, Reports, Tally
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

_CHUNK = 1 << 17
_DOUBLE = 53
_LARGEST = 10**300


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """An estimated mean of bounded numbers: unbiased, so it may fall outside the bounds."""

    value: float
    reports: int
    std: float
    """At most, over all data with this mean: only the clients' randomness is random."""
    bounds: tuple[float, float]
    one: tuple[float, float]
    """Of one report, at worst: the standard deviation, and how far two levels are apart."""
    bias: float = 0.0
    """How far the mean of the estimate can be off, because reports were cut off or cells wide."""

    def __repr__(self) -> str:
        sent = f"{self.reports:,} reports"
        return f"MeanEstimate({self.value:.6g}, std at most {self.std:.3g}, of {sent})"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold the mean with about this probability (normal law, and the bias)."""
        inside = float(probability("confidence", confidence, zero=False, one=False))
        return self._within(NormalDist().inv_cdf((1 + inside) / 2) * self.std + self.bias)

    def guaranteed(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold the mean with at least this probability, for any number of reports.

        Theorem: P(|estimate - mean| > t + bias) <= 1 - level for the smaller t of Hoeffding's and
            Bernstein's inequality.
        Proof: the levels of the reports are independent, each in a fixed range of length s with
            its mean within the bias of the client's number and variance at most v. With
            L = log(2 / (1 - level)), Hoeffding gives t = s sqrt(L / 2n), and Bernstein, as a
            deviation is at most s, t = sqrt(2 v L / n + (s L / 3n)^2) + s L / 3n.
        Source: Hoeffding 1963; Bernstein's inequality as in Boucheron, Lugosi, Massart 2013, 2.8.
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        if self.reports == 0:
            return self.bounds
        std, span = self.one
        tail = math.log(2 / (1 - inside)) / self.reports
        third = span * tail / 3
        bernstein = third + math.sqrt(2 * std * std * tail + third * third)
        return self._within(min(span * math.sqrt(tail / 2), bernstein) + self.bias)

    def _within(self, half: float) -> tuple[float, float]:
        """The true mean lies within the declared bounds, whatever the noise says."""
        lower, upper = self.bounds
        if not math.isfinite(half):
            return self.bounds
        ends = self.value - half, self.value + half
        return min(max(ends[0], lower), upper), min(max(ends[1], lower), upper)


class BoundedMeanRandomizer(LocalRandomizer):
    """A randomizer of numbers in [lower, upper]. Places count from 0 (lower) to 1 (upper)."""

    lower: Fraction
    upper: Fraction

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the grid from lower to upper."""

    @property
    @abstractmethod
    def levels(self) -> Floats:
        """The place that each symbol stands for: far outside 0 .. 1 if epsilon is small."""

    @property
    @abstractmethod
    def squares(self) -> Floats:
        """Mean square of the reported level about the place 1/2, at each point of the grid."""

    @abstractmethod
    def draw(self, places: Floats, rng: RandomSource) -> Ints:
        """One symbol for each place in 0 .. 1."""

    @property
    def bias(self) -> float:
        """How far the mean of a report's level can be off the number: not at all."""
        return 0.0

    @property
    def size(self) -> int:
        return len(self.levels)

    @property
    def width(self) -> int:
        return bytes_of(self.size)

    def parameters(self) -> dict[str, Any]:
        return {"lower": plain(self.lower), "upper": plain(self.upper)}

    def places(self, value: ArrayLike) -> Floats:
        """Private numbers as places; what lies outside the bounds counts as the nearer bound."""
        return places(value, self.lower, self.upper)

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        source = resolve_rng(rng)
        every = self.places(value)
        out = np.empty((len(every), self.width), dtype=np.uint8)
        for start in range(0, len(every), _CHUNK):
            part = every[start : start + _CHUNK]
            out[start : start + _CHUNK] = rows(self.draw(part, source), self.width)
        return out

    def tally(self, reports: Reports) -> Tally:
        return histogram(reports, self.size)

    def variance(self, value: ArrayLike) -> Floats:
        """Exact variance of the level that a client with this number reports, in its unit."""
        return self._variance(self.places(value)) * self._range**2

    @property
    def std(self) -> float:
        """Of the estimate from one report, at worst (divide by sqrt(n) for n reports)."""
        return math.sqrt(self._worst) * self._range

    def estimate(self, counts: Ints, reports: int) -> MeanEstimate:
        """The unbiased mean of the clients' numbers."""
        levels, lower = self.levels, float(self.lower)
        place, std = 0.5, math.inf
        if reports:
            # From the middle, so that small shifts of large levels are not rounded away.
            place += math.fsum(counts * (levels - 0.5)) / reports
            std = math.sqrt(self.mean_variance(min(max(place, 0.0), 1.0)) / reports)
        return MeanEstimate(
            value=lower + place * self._range,
            reports=reports,
            std=std * self._range,
            bounds=(lower, float(self.upper)),
            one=(self.std, float(levels.max() - levels.min()) * self._range),
            bias=self.bias,
        )

    def mean_variance(self, place: float) -> float:  # noqa: ARG002 - some depend on it
        """A bound on the clients' average variance if their mean is at this place."""
        return self._worst

    @property
    def _range(self) -> float:
        return float(self.upper - self.lower)

    def _variance(self, places: Floats) -> Floats:
        """The mean square is linear between grid points, because rounding is a mixture."""
        knots = np.linspace(0, 1, self.steps + 1)
        return np.interp(places, knots, self.squares) - (places - 0.5) ** 2

    @property
    def _worst(self) -> float:
        """The largest variance over all places, exactly.

        Between two grid points the variance is a parabola that opens downwards; its top is where
        the slope is zero, or at an end.
        """
        squares, steps = self.squares, self.steps
        start = np.arange(steps) / steps - 0.5
        rise = np.diff(squares) * steps
        top = np.clip(rise / 2, start, start + 1 / steps)
        return float(np.max(squares[:-1] + rise * (top - start) - top**2))


def places(value: ArrayLike, lower: Fraction, upper: Fraction) -> Floats:
    """Numbers as places from 0 to 1 between the bounds."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise OutOfDomain("value must hold finite numbers: replace what is missing beforehand.")
    with np.errstate(over="ignore"):  # what is infinitely far outside is outside
        shifted = array.astype(np.float64).ravel() - float(lower)
        return np.clip(shifted / float(upper - lower), 0.0, 1.0)


def on_grid(places: Floats, steps: int, words: Floats) -> Ints:
    """Grid points 0 .. steps next to each place, at random, so that their mean is the place."""
    scaled = places * steps
    below = np.floor(scaled)
    return (below + (words < scaled - below)).astype(np.int64)


def uniforms(size: int, rng: RandomSource) -> Floats:
    """Uniform doubles: they round on a grid, which decides no privacy."""
    used = min(rng.width, _DOUBLE)
    words = rng.words(size) >> np.uint64(rng.width - used)
    return words.astype(np.float64) * 2.0**-used


def bounds(lower: Number, upper: Number) -> tuple[Fraction, Fraction]:
    """Declared bounds as numbers that survive being written down."""
    ends = finite("lower", lower), finite("upper", upper)
    if max(*map(abs, ends), abs(ends[1] - ends[0])) > _LARGEST:
        raise InvalidArgument("lower, upper and their distance must lie within -1e300 and 1e300.")
    for name, end in zip(("lower", "upper"), ends, strict=True):
        if rational(plain(end)) != end:
            raise InvalidArgument(f"{name} must be a whole or a decimal number, got {end}.")
    if ends[0] >= ends[1]:
        raise InvalidArgument(f"lower must be below upper, got {lower} and {upper}.")
    if (ends[1] - ends[0]) * _LARGEST < 1:
        raise InvalidArgument("lower and upper must be at least 1e-300 apart: change the unit.")
    return ends


def plain(number: Fraction) -> int | float:
    """A bound as JSON holds it."""
    return number.numerator if number.denominator == 1 else float(number)
