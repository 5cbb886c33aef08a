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

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number, rational
from discreet.core._validate import finite, probability
from discreet.core.errors import InvalidArgument
from discreet.core.tabular import Record
from discreet.local._window_channel import bytes_of, histogram, rows
from discreet.local.randomizer import LocalRandomizer, Reports, Tally, reals
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

_CHUNK = 1 << 17
_DOUBLE = 53
_LARGEST = 10**300


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeanEstimate(Result):
    """Hold an estimated mean of bounded numbers.

    It is unbiased, so it can lie outside of the bounds.

    Attributes:
        value: Estimated mean.
        reports: Number of reports.
        std: Bound on the standard deviation.
        bounds: Public bounds of the numbers.
        one: Smallest and largest level of one report.
        bias: Bound on the bias; zero for most randomizers.
        guarantee: Privacy guarantee of one report.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.duchi(epsilon=1, lower=0, upper=10)
        >>> estimate = randomizer.estimate([400, 600], 1000)
        >>> round(estimate.value, 2), round(estimate.std, 2)
        (7.16, 0.34)
    """

    value: float
    reports: int
    std: float
    """At most, over all data with this mean: only the clients' randomness is random."""
    bounds: tuple[float, float]
    one: tuple[float, float]
    """Of one report, at worst: the standard deviation, and how far two levels are apart."""
    bias: float = 0.0
    """How far the mean of the estimate can be off, because reports were cut off or cells wide."""
    guarantee: Guarantee | None = None
    """What each report satisfies."""

    def _title(self) -> str:
        return f"Mean of {self.reports:,} reports"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the mean of the clients, by normal approximation.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper end, with the bias.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> [round(end, 2) for end in estimate.interval(0.95)]
            [6.51, 7.82]
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        return self._within(NormalDist().inv_cdf((1 + inside) / 2) * self.std + self.bias)

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the mean as one record.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            One dictionary with `value`, `std`, `low` and `high`.

        Examples:
            >>> {name: round(number, 2) for name, number in estimate.rows()[0].items()}
            {'value': 7.16, 'std': 0.34, 'low': 6.51, 'high': 7.82}
        """
        low, high = self.interval(confidence)
        return records((), [()], value=[self.value], std=[self.std], low=[low], high=[high])

    def guaranteed(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the mean that holds for any number of reports.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper end.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> [round(end, 2) for end in estimate.guaranteed(0.95)]
            [6.23, 8.09]
        """
        # Theorem: P(|estimate - mean| > t + bias) <= 1 - level for the smaller t of Hoeffding's and
        #   Bernstein's inequality.
        # Proof: the levels of the reports are independent, each in a fixed range of length s with
        #   its mean within the bias of the client's number and variance at most v. With
        #   L = log(2 / (1 - level)), Hoeffding gives t = s sqrt(L / 2n), and Bernstein, as a
        #   deviation is at most s, t = sqrt(2 v L / n + (s L / 3n)^2) + s L / 3n.
        # Source: Hoeffding 1963; Bernstein's inequality as in Boucheron, Lugosi, Massart 2013, 2.8.
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
    """Randomize numbers between public bounds, and estimate their mean.

    Attributes:
        lower: Public lower bound.
        upper: Public upper bound.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.duchi(epsilon=1, lower=0, upper=10)
        >>> randomizer.lower, randomizer.upper
        (Fraction(0, 1), Fraction(10, 1))
    """

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
        """Draw one symbol for each place.

        Args:
            places: Places between 0 and 1.
            rng: Random source.

        Returns:
            One symbol for each place.

        Privacy:
            Each symbol satisfies the randomizer's guarantee.

        Examples:
            >>> import discreet
            >>> import numpy as np
            >>> randomizer = local.duchi(epsilon=1, lower=0, upper=10)
            >>> randomizer.draw(np.array([0.0, 1.0]), discreet.seeded_rng(1)).shape
            (2,)
        """

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
        """Turn private numbers into places between 0 and 1.

        Args:
            value: Private numbers. One outside the bounds counts as the nearer bound.

        Returns:
            One place for each number.

        Examples:
            >>> randomizer.places([-1, 5, 10]).tolist()
            [0.0, 0.5, 1.0]
        """
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

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return np.full(many, float(self.lower)), np.full(many, float(self.upper))

    def variance(self, value: ArrayLike) -> Floats:
        """Return the exact variance of what a client reports.

        Args:
            value: Number of the client, or an array.

        Returns:
            Variance, in squared units of the value.

        Examples:
            >>> randomizer.variance([0, 5]).round(1).tolist()
            [92.1, 117.1]
        """
        return self._variance(self.places(value)) * self._range**2

    @property
    def std(self) -> float:
        """Of the estimate from one report, at worst (divide by sqrt(n) for n reports)."""
        return math.sqrt(self._worst) * self._range

    def estimate(self, counts: Ints, reports: int) -> MeanEstimate:
        """Estimate the mean of the clients' numbers, without bias.

        Args:
            counts: Counts of `tally`.
            reports: Number of reports that were counted.

        Returns:
            The mean, with its error.

        Examples:
            >>> randomizer.estimate([500, 500], 1000).value
            5.0
        """
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
            guarantee=self.guarantee,
        )

    def mean_variance(self, place: float) -> float:  # noqa: ARG002 - some depend on it
        """Bound the average variance of the clients' reports.

        Args:
            place: Place of the clients' mean, between 0 and 1.

        Returns:
            The bound.

        Examples:
            >>> round(randomizer.mean_variance(0.5), 2)
            1.17
        """
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
    given = reals(value)
    with np.errstate(over="ignore"):  # what is infinitely far outside is outside
        shifted = given - float(lower)
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
