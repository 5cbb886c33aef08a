"""Confidence intervals for the mean of the population a private column was drawn from.

The number of rows is public and one row is replaced between neighbours. The column is clipped to
declared bounds and put on a grid; its sum and its variance are whole numbers of steps, and get
noise by the exact mechanisms. All else is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import OutOfDomain
from discreet.core.exact import ceil_div
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.column import Column
from discreet.mechanisms.laplace import laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.values import read
from discreet.noise.bits import Bits, system
from discreet.noise.law import Ints
from discreet.queries.intervals import law
from discreet.queries.intervals.law import Floats

Method: TypeAlias = Literal["safe", "calibrated", "published"]
Assume: TypeAlias = Literal["normal", "nothing"]

LARGEST_SPAN = 1 << 27
LARGEST_SUM = 1 << 53
_LOW_BITS = 14
_ROUNDING = 1 + 2.0**-40
_POINTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A released interval; nothing in it is private."""

    low: float
    high: float
    value: float
    """The noisy mean, before it is kept within the bounds."""
    spread: float | None
    """What was taken as the standard deviation of the rows."""
    nominal: float
    guaranteed: float | None

    @property
    def width(self) -> float:
        """Of the interval, cut off at the declared bounds."""
        return self.high - self.low

    def __str__(self) -> str:
        return (
            f"{self.value:.6g}, {100 * self.nominal:g} % within {self.low:.6g} to {self.high:.6g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalForecast:
    """An interval before it is released, from public numbers only."""

    width: float
    """Expected, if the rows have the stated standard deviation."""
    largest: float
    """What no released interval exceeds."""
    plain: float
    """The width without privacy: the normal interval with a known spread."""
    std: float
    nominal: float
    guaranteed: float | None
    needs: str

    def __str__(self) -> str:
        return (
            f"{100 * self.nominal:g} % interval of width {self.width:.4g} if the standard "
            f"deviation is {self.std:.4g} ({self.plain:.4g} without privacy, at most "
            f"{self.largest:.4g}); holds for {self.needs}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval(Mechanism):
    """A noisy mean with its confidence interval. Made by `mean_interval`."""

    column: Column
    rows: int
    centre: Additive
    spread: Additive | None
    """Noise on the variance, if it is released."""
    variance: float | None
    """Known to the public, if at all."""
    level: float
    gamma: float
    """What may fail because of the noise on the variance."""
    reach: float
    """What is added to a noisy variance, in scales of its noise."""
    tail: float
    """What may fail on each side, given the variance in use."""
    method: Method
    assume: Assume

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: the noisy mean, and the noisy variance if there is one."""
        mean = self.centre.guarantee
        return mean if self.spread is None else mean + self.spread.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on the mean."""
        return self.centre.std * self._unit

    @property
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""
        return self.level if self.assume == "nothing" else None

    @property
    def needs(self) -> str:
        """What the nominal coverage rests on."""
        if self.assume == "nothing":
            return "independent rows of any law"
        if self.method == "published" and self.spread is not None:
            return "independent rows, so many that the noise on the variance does not matter"
        if self.method == "calibrated":
            return "independent rows, so many that their mean is normal (computed on a grid)"
        return "independent rows, so many that their mean is normal"

    def release(self, values: ArrayLike, *, bits: Bits | None = None) -> Interval:
        """The interval for one private column."""
        given = read(values)
        if len(given.shape) != 1 or given.size != self.rows:
            raise OutOfDomain(f"values must be {self.rows} numbers, the declared number of rows.")
        mean, variance = self._noisy(given.doubles[None, :], system() if bits is None else bits)
        used = self._spread(variance)
        low, high = self._ends(mean, used)
        return Interval(
            low=float(low[0]),
            high=float(high[0]),
            value=float(mean[0]),
            spread=None if self._plain_cap else math.sqrt(float(used[0])),
            nominal=self.level,
            guaranteed=self.guaranteed,
        )

    def simulate(self, tables: Floats, bits: Bits) -> tuple[Floats, Floats]:
        """Ends of one interval for each row of ``tables``: made-up columns, for `coverage`."""
        if tables.ndim != 2 or tables.shape[1] != self.rows:
            raise OutOfDomain(f"tables must have {self.rows} columns, the declared number of rows.")
        mean, variance = self._noisy(tables, bits)
        return self._ends(mean, self._spread(variance))

    def forecast(self, std: float) -> IntervalForecast:
        """The width before release, if the rows have this standard deviation: a public guess."""
        public = np.full(1, self._cap if self.variance is None else self.variance)
        used = public
        if self.spread is not None:
            used = std**2 + _laplace_points() * self._noise_on_variance
        widths = np.minimum(2 * self._half(self._spread(used)), self._range)
        largest = 2 * self._half(public)
        plain = 2 * law.normal(np.full(1, std), 0.0, tail=(1 - self.level) / 2)
        return IntervalForecast(
            width=float(widths.mean()),
            largest=min(float(largest[0]), self._range),
            plain=min(float(plain[0]) / math.sqrt(self.rows), self._range),
            std=std,
            nominal=self.level,
            guaranteed=self.guaranteed,
            needs=self.needs,
        )

    def worst_miss(self) -> float:
        """How often the interval misses at worst, over all variances, if the mean is normal.

        Given the sample variance s^2, the mean of the rows is taken as normal with variance
        s^2 / n, widened by Student's factor if the interval is. What is missed, on average over
        the noise of the variance, is computed, not simulated, for variances on a fine grid up to
        the largest that there can be.
        """
        assert self.centre.grid is not None  # noqa: S101 - made on reals
        if self.spread is None:
            return 2 * self.tail
        noise = self.centre.grid.scale * self._unit
        edges = np.linspace(0.0, 1.0, _POINTS + 1) ** 2  # spreads, denser near zero
        halves = self._half(self._cap * edges**2)
        true = self._cap * np.geomspace(1e-7, 1.0, _POINTS)[:, None]
        used = self._spread(true + _laplace_points() * self._noise_on_variance)
        half = np.interp(np.sqrt(used / self._cap), edges, halves)
        wider = law.student(self.rows, tail=self.tail) if self.method != "published" else 1.0
        sigma = np.broadcast_to(np.sqrt(true / self.rows) * wider, half.shape)
        if self.centre.name == "laplace":
            sides = law.exceeds(half, sigma, np.maximum(noise, sigma / 1e4))
        else:
            sides = law.normal_exceeds(half, sigma, noise)
        return 2 * float(sides.mean(axis=1).max())

    def certify(self) -> Certificate:
        """Recompute the guarantees of both noises from their exact laws."""
        parts = [self.centre] if self.spread is None else [self.centre, self.spread]
        checks = tuple(check for part in parts for check in part.certify().checks)
        return Certificate(
            mechanism="mean_interval", guarantee=self.guarantee, checks=checks
        ).demand()

    @property
    def _range(self) -> float:
        return self.column.span * self.column.step

    @property
    def _unit(self) -> float:
        """A step of the sum, in the unit of the mean."""
        return self.column.step / self.rows

    @property
    def _cap(self) -> float:
        """The largest variance of a sample between the bounds (Popoviciu)."""
        return self._range**2 / 4 * self.rows / (self.rows - 1)

    @property
    def _plain_cap(self) -> bool:
        return self.spread is None and self.variance is None

    @property
    def _shift(self) -> int:
        return variance_shift(self.column.span, self.rows)

    @property
    def _noise_on_variance(self) -> float:
        """Laplace scale of the noise, in the unit of the variance."""
        assert self.spread is not None  # noqa: S101 - asked only where it is
        assert self.spread.grid is not None  # noqa: S101 - made on reals
        return self.spread.grid.scale * self._variance_unit

    @property
    def _variance_unit(self) -> float:
        pairs = self.rows * (self.rows - 1)
        return math.ldexp(1 / pairs, self._shift + 2 * self.column.exponent)

    def _noisy(self, tables: Floats, bits: Bits) -> tuple[Floats, Floats]:
        """Noisy means and, if it is released, noisy variances of private columns."""
        total, pairs = sums(self.column, tables)
        noisy = np.asarray(self.centre.release(total.astype(np.float64), bits=bits))
        mean = self.column.first * self.column.step + noisy * self._unit
        if self.spread is None:
            return mean, np.full(len(mean), self._cap if self.variance is None else self.variance)
        steps = np.array([number >> self._shift for number in pairs], dtype=np.float64)
        return mean, np.asarray(self.spread.release(steps, bits=bits)) * self._variance_unit

    def _spread(self, variance: Floats) -> Floats:
        """The variance to use, from the noisy one (C11, or C10 as published).

        Theorem: P(sample variance > result) <= gamma for the method "safe".
        Proof: there ``reach`` is log(1 / 2 gamma), and Laplace noise is below minus that many
            scales with probability gamma; what rounding down
            to a step took away is added; neither clamp goes below the sample variance.
        """
        if self.spread is None:
            return variance
        if self.method == "published":
            return np.maximum(variance, 0.0)
        reach = self._noise_on_variance * self.reach + self._variance_unit
        return np.clip(variance + reach * _ROUNDING, 0.0, self._cap)

    def _half(self, variance: Floats) -> Floats:
        """Half-widths for the variances in use.

        Theorem: for "safe", the interval misses the mean of the (clipped) law with probability at
            most ``1 - level``, over rows and noise: always if nothing is assumed; otherwise if the
            mean of the rows is normal and their sample variance is that of their law.
        Proof: gamma fails for the variance (see `_spread`), the rest is the exact law of the sum
            of sampling error and noise; or, if nothing is assumed, half of the rest each for the
            noise and for a bound of Hoeffding, Bernstein, or Maurer and Pontil. Union bound. That
            the sample variance varies is met by Student's factor: exact without noise. For
            "calibrated" see `worst_miss`.
        Source: C9-C12; docs/theory/intervals.md.
        """
        assert self.centre.grid is not None  # noqa: S101 - made on reals
        if self.assume == "nothing":
            alpha = 2 * self.tail
            reach = self.centre.interval(1 - alpha / 2)[1] * self._unit
            return self._outward(reach + self._range * self._any(variance, tail=alpha / 4))
        sigma = np.sqrt(variance / self.rows)
        if self.method != "published" and self.spread is not None:
            sigma = sigma * law.student(self.rows, tail=self.tail)
        exact = law.normal_laplace if self.centre.name == "laplace" else law.normal
        noise = self.centre.grid.scale * self._unit
        return self._outward(exact(sigma, noise, tail=self.tail))

    def _any(self, variance: Floats, *, tail: float) -> Floats:
        """Sampling error for any law, as a share of the range."""
        scaled = variance / self._range**2
        if self.spread is not None:
            return law.empirical_bernstein(scaled, self.rows, tail=tail)
        if self.variance is None:
            return np.full(len(scaled), law.hoeffding(self.rows, tail=tail))
        return np.full(len(scaled), law.bernstein(float(scaled[0]), self.rows, tail=tail))

    def _outward(self, half: Floats) -> Floats:
        """Wider by what the grid may have moved and what doubles round."""
        return half * _ROUNDING + self.column.step / 2 if self.method != "published" else half

    def _ends(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Ends of intervals; the mean of the clipped law lies within the bounds."""
        half = self._half(variance)
        lower, upper = self.column.number(0), self.column.number(self.column.span)
        return np.clip(mean - half, lower, upper), np.clip(mean + half, lower, upper)


def _laplace_points() -> Floats:
    """Quantiles of the Laplace law of scale one, each for an equal share of it."""
    shares = (np.arange(_POINTS) + 0.5) / _POINTS - 0.5
    return np.asarray(-np.sign(shares) * np.log1p(-2 * np.abs(shares)))


def sums(column: Column, tables: Floats) -> tuple[Ints, list[int]]:
    """For each row of ``tables`` the sum of codes, and n times the sum of squares less its square.

    Exact: a code has at most 28 bits and is squared in two halves, which fit 64 bits when added.
    """
    steps = np.floor(np.ldexp(tables, -column.exponent) + 0.5)
    codes = np.clip(steps, column.first, column.first + column.span).astype(np.int64)
    codes -= column.first
    total = codes.sum(axis=1)
    top, low = codes >> _LOW_BITS, codes & ((1 << _LOW_BITS) - 1)
    parts = [np.einsum("ij,ij->i", a, b).tolist() for a, b in ((top, top), (top, low), (low, low))]
    squares = [
        (a << 2 * _LOW_BITS) + (b << _LOW_BITS + 1) + c for a, b, c in zip(*parts, strict=True)
    ]
    rows = codes.shape[1]
    return total, [rows * q - s * s for q, s in zip(squares, total.tolist(), strict=True)]


def variance_shift(span: int, rows: int) -> int:
    """How many bits of n (n - 1) times the variance are dropped, so that the rest is a double."""
    return max(0, (rows * rows * span * span // 4).bit_length() - 53)


def variance_noise(span: int, rows: int, *, epsilon: Fraction) -> Additive:
    """Laplace noise for n (n - 1) times the sample variance, rounded down.

    Theorem: epsilon-DP if one row is replaced.
    Proof: the sample variance of numbers in a range of length w moves by at most w^2 / n (C1), so
        its n (n - 1)-fold, a whole number, by at most (n - 1) w^2; and floors of a / 2^k and
        b / 2^k differ by at most ceil(|a - b| / 2^k).
    """
    moved = ceil_div(span * span * (rows - 1), 1 << variance_shift(span, rows))
    return laplace(sensitivity=moved, epsilon=epsilon, on="reals", relation=Relation.REPLACE_ONE)
