"""What all confidence intervals share: tail bounds, released ends, forecasts, and quantiles.

The functions take public and released numbers only, and are vectorized over the spread.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri, stdtrit

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import OutOfDomain
from discreet.core.number_format import number, percent, short
from discreet.core.tabular import Record, Tabular
from discreet.intervals.statistics import IntervalStatistic
from discreet.mechanisms._inputs import read_column
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.mechanism import Mechanism
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import FixedResult, check_confidence, records

# ── Tail bounds for every distribution ───────────────────────────────────────────────────────────
# Chernoff: P(error > t) <= exp(log E exp(rate * error) - rate * t) for every rate, and the errors
# of sampling and of the noise are independent, so that their logarithms add up. Any rate gives a
# bound; the best of many is taken.


LogMgf: TypeAlias = Callable[[Floats], Floats]
_RATES = 300
_ROUNDING = 1 + 2.0**-40


def reach(
    sampling: LogMgf, noise: AdditiveMechanism, unit: float, *, tail: float, std: float
) -> Floats:
    """The t that sampling error plus noise exceeds with probability at most ``tail``.

    ``sampling`` gives rows of bounds for a column of rates; ``std`` is about that of the sum.
    """
    # Theorem: holds for the noise as it is released.
    # Proof: if P(Z > z) <= c exp(-rate z) for all z, then P(S + Z > t) <= c E exp(rate (S - t)).
    #   For normal noise c = exp(rate^2 sigma^2 / 2). For Laplace noise of scale b and a = rate b <=
    #   1, the supremum of P(Z > z) exp(rate z) is (2a / (1 + a))^a / (1 + a), below zero: less than
    #   E exp(rate Z), and finite at rate = 1 / b. Rounding to the grid of the noise moves it by at
    #   most half a step, which is added.
    assert noise.reals is not None  # noqa: S101 - made on reals
    scale = noise.reals.scale * unit
    center = math.sqrt(-2 * math.log(tail)) / std
    if noise.name == "laplace":
        rates = np.minimum(np.geomspace(center / 1e3, center * 1e3, _RATES), 1 / scale)
        part = rates * scale
        own = part * np.log(2 * part / (1 + part)) - np.log1p(part)
    else:
        rates = np.geomspace(center / 1e3, center * 1e3, _RATES)
        own = (rates * scale) ** 2 / 2
    rates, own = rates[:, None], own[:, None]
    with np.errstate(over="ignore"):
        bounds = (sampling(rates) + own - math.log(tail)) / rates
    return np.asarray(bounds.min(axis=0) * _ROUNDING + noise.reals.step * unit / 2)


@lru_cache(maxsize=32)
def upper_variance(
    statistic: IntervalStatistic, noise: AdditiveMechanism, unit: float, *, tail: float
) -> tuple[Floats, Floats]:
    """Noisy sample variances, and what the variance of the law then does not exceed."""
    # Theorem: the law's variance is above the second, read at the noisy one, with probability at
    #   most `tail`.
    # Proof: v is refused if the noisy variance is below v - t(v), which has probability at most
    #   `tail` if v is the truth; the largest v that is not refused is returned.
    top = statistic.bounds[1]
    found = top * np.linspace(0.0, 1.0, 513) ** 2
    std = math.hypot(top / math.sqrt(statistic.rows), noise.std * unit)

    def sampling(rates: Floats) -> Floats:
        return statistic.log_mgf(-rates, found[None, :])

    refused = found - reach(sampling, noise, unit, tail=tail, std=std)
    # For the largest: what a larger v needs, a smaller one may not undercut. One place outward.
    least = np.minimum.accumulate(refused[::-1])[::-1]
    return least, np.append(found[1:], top)


def bennett(rate: Floats, variance: Floats, width: float, rows: int) -> Floats:
    """At least ``log E exp(rate * (mean - expectation))`` for rows of at most this variance."""
    # Theorem: for rows whose distance above their expectation is at most `width` (Bennett 1962): a
    #   law with two points has the largest.
    part, square = rate / rows, width**2
    weight = variance / (variance + square)
    up = np.expm1(part * (width + variance / width))
    return np.asarray(rows * (np.log1p(weight * up) - part * variance / width))


# ── Intervals and their plans ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Interval(FixedResult):
    """A released interval; nothing in it is private.

    Attributes:
        low: Lower end, within the declared bounds.
        high: Upper end, within the declared bounds.
        value: Noisy statistic, before it is kept within the bounds.
        spread: What was taken as the standard deviation of the rows, or of the reports; None if
            the interval needs none.
        nominal: Confidence that was asked for.
        guaranteed: Coverage that holds for any law of the rows and any number of them; None if
            none does.
        released: All noisy numbers that the interval was made from.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.proportion(public_rows=1_000, epsilon=1)
        >>> smokers = plan.release([True] * 400 + [False] * 600)
        >>> 0 <= smokers.low <= smokers.high <= 1
        True
    """

    low: float
    high: float
    value: float
    spread: float | None
    nominal: float
    guaranteed: float | None
    released: tuple[float, ...] = ()

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the statistic with its interval, within the declared bounds.

        Args:
            confidence: That of the interval, if it is given.

        Returns:
            One record: value, std, low and high. The noisy value may lie outside of the bounds, and
            then outside of the interval; std is None.

        Examples:
            >>> import discreet
            >>> plan = discreet.intervals.proportion(public_rows=1_000, epsilon=1)
            >>> row = plan.release([True] * 400 + [False] * 600).rows()[0]
            >>> row["low"] <= row["high"]
            True
        """
        check_confidence(confidence, self.nominal)
        return records((), [()], value=[self.value], low=[self.low], high=[self.high])

    @property
    def _confidence(self) -> float:
        return self.nominal

    @property
    def width(self) -> float:
        """Of the interval, cut off at the declared bounds."""
        return self.high - self.low

    def __str__(self) -> str:
        # Half the width is about two standard errors: enough to see how many digits are known.
        error = self.width / 4
        value, low, high = (number(x, error=error) for x in (self.value, self.low, self.high))
        return f"{value} ({percent(self.nominal)} between {low} and {high})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IntervalForecast(Tabular):
    """An interval before it is released, from public numbers only.

    Attributes:
        width: Expected width, if the guess is right.
        largest: Width that no released interval exceeds.
        plain: Width without privacy.
        guess: What was supposed about the rows, in words.
        nominal: Confidence that was asked for.
        guaranteed: Coverage that holds for any law of the rows and any number of them; None if
            none does.
        needs: What the interval holds for, in words.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.proportion(public_rows=1_000, epsilon=1)
        >>> forecast = plan.forecast(0.4)
        >>> forecast.plain < forecast.width <= forecast.largest
        True
    """

    width: float
    largest: float
    plain: float
    guess: str
    nominal: float
    guaranteed: float | None
    needs: str

    def rows(self) -> list[Record]:
        """List the forecast as one row: what is supposed, and the widths.

        Returns:
            One record with `guess`, `nominal`, `width`, `largest`, `plain`, `guaranteed` and
            `needs`.

        Examples:
            >>> forecast = plan.forecast(0.4)
            >>> forecast.rows()[0]["nominal"]
            0.95
        """
        names = ("guess", "nominal", "width", "largest", "plain", "guaranteed", "needs")
        return [{name: getattr(self, name) for name in names}]

    def __str__(self) -> str:
        return (
            f"{percent(self.nominal)} interval of width {short(self.width)} if {self.guess} "
            f"({short(self.plain)} without privacy, at most {short(self.largest)}); holds for "
            f"{self.needs}"
        )

    __repr__ = __str__


class IntervalPayer(Protocol):
    """An account of a ledger, or what behaves like one."""

    def reserve(
        self, guarantee: Guarantee, *, label: str, private: bool = True
    ) -> AbstractContextManager[object]:
        """Spend before the data are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalAnswers:
    """Intervals of many columns at once."""

    low: Floats
    high: Floats
    value: Floats
    spread: Floats | None = None
    released: tuple[Floats, ...] = ()


class IntervalPlan(Mechanism):
    """An interval that is planned: known cost, coverage and width before any row is read."""

    public_rows: int
    confidence: float

    @property
    @abstractmethod
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""

    @property
    @abstractmethod
    def needs(self) -> str:
        """What the nominal coverage rests on."""

    @abstractmethod
    def answers(self, tables: Floats, rng: RandomSource) -> IntervalAnswers:
        """One interval for each row of ``tables``, which is one column."""

    def release(
        self,
        values: ArrayLike,
        *,
        rng: RandomSource | None = None,
        account: IntervalPayer | None = None,
        label: str = "interval",
    ) -> Interval:
        """The interval for one private column; an ``account`` pays before the column is read."""
        source = resolve_rng(rng)
        if account is None:
            return self._one(values, source)
        with account.reserve(self.guarantee, label=label, private=source.private):
            return self._one(values, source)

    def simulate(self, tables: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        """Ends of one interval for each row of ``tables``: made-up columns, for `coverage`."""
        if tables.ndim != 2 or tables.shape[1] != self.public_rows:
            raise OutOfDomain(
                f"tables must have {self.public_rows} columns, the declared number of rows."
            )
        found = self.answers(tables, rng)
        return found.low, found.high

    @property
    @abstractmethod
    def misfit(self) -> float:
        """What a row counts as that is missing, or no number."""

    def _one(self, values: ArrayLike, rng: RandomSource) -> Interval:
        reals = read_column(values)
        if len(reals) != self.public_rows:
            raise OutOfDomain(
                f"values must be {self.public_rows} numbers, the declared number of rows."
            )
        found = self.answers(np.where(np.isnan(reals), self.misfit, reals)[None, :], rng)
        return Interval(
            low=float(found.low[0]),
            high=float(found.high[0]),
            value=float(found.value[0]),
            spread=None if found.spread is None else float(found.spread[0]),
            nominal=self.confidence,
            guaranteed=self.guaranteed,
            released=tuple(float(part[0]) for part in found.released),
        )


def laplace_points(many: int) -> Floats:
    """Quantiles of the Laplace law of scale one, each for an equal share of it."""
    shares = (np.arange(many) + 0.5) / many - 0.5
    return np.asarray(-np.sign(shares) * np.log1p(-2 * np.abs(shares)))


# ── Normal and Laplace errors together ───────────────────────────────────────────────────────────


# Beyond these ratios of the two spreads, the smaller one is replaced by a larger one.
_LARGEST_RATIO = 1e4
_SMALLEST_RATIO = 1e-9
_STEPS = 8
_ROUND_UP = 1 + 1e-8


def normal_laplace(sigma: Floats, scale: float, *, tail: float) -> Floats:
    """The t with P(N(0, sigma^2) + Laplace(scale) > t) = tail, from above (C12)."""
    # Theorem: the sum exceeds the returned t with probability at most `tail` (up to rounding).
    # Proof: both laws are log-concave, so the sum's is, and the logarithm of its tail is concave. A
    #   tangent lies above, so Newton's steps for it from the right stay on the right. At the start,
    #   N exceeds its part and Laplace its part with probability tail / 2 each. A ratio of the
    #   spreads outside the range of doubles is moved into it by raising the smaller spread: both
    #   laws are symmetric and unimodal, so this only raises the tail.
    # Source: Reed 2006; Biswal 2024, section 5.7, where this interval is called infeasible.
    # Needs: sigma >= 0, scale > 0, 0 < tail < 1/2.
    spread = np.maximum(sigma, scale * _SMALLEST_RATIO)
    width = np.maximum(scale, spread / _LARGEST_RATIO)
    found = -spread * ndtri(tail / 2) - width * math.log(tail)
    for _ in range(_STEPS):
        above, density = _tail(found, spread, width)
        found = found + np.minimum(np.log(above / tail), 0.0) * above / density
    return np.asarray(found * _ROUND_UP)


def normal(sigma: Floats, noise: float, *, tail: float) -> Floats:
    """The t with P(N(0, sigma^2) + N(0, noise^2) > t) = tail (C9)."""
    return np.asarray(-float(ndtri(tail)) * np.hypot(sigma, noise))


def normal_exceeds(x: Floats, sigma: Floats, noise: float) -> Floats:
    """P(N(0, sigma^2) + N(0, noise^2) > x)."""
    return np.asarray(ndtr(-x / np.hypot(sigma, noise)))


def student(freedom: int, *, tail: float) -> float:
    """How much wider Student's law is than the normal one, with so many degrees of freedom."""
    return float(stdtrit(freedom, tail) / ndtri(tail))


def normal_points(many: int) -> Floats:
    """Quantiles of the standard normal law, each for an equal share of it."""
    return np.asarray(ndtri((np.arange(many) + 0.5) / many))


def exceeds(x: Floats, sigma: Floats, scale: Floats) -> Floats:
    """P(N(0, sigma^2) + Laplace(scale) > x) for x >= 0.

    ``Phi(-x/sigma) + (h(x) - h(-x)) / 2``, as in `accounting.normal_laplace`, in arrays.
    """
    return _tail(x, sigma, scale)[0]


def _tail(x: Floats, sigma: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """The same, and the density, ``(h(x) + h(-x)) / (2 scale)``."""
    ratio = sigma / scale
    up = np.exp(-x / scale + ratio**2 / 2 + log_ndtr(x / sigma - ratio))
    down = np.exp(x / scale + ratio**2 / 2 + log_ndtr(-x / sigma - ratio))
    return np.asarray(ndtr(-x / sigma) + (up - down) / 2), np.asarray((up + down) / (2 * scale))


def binomial(rows: int, share: float) -> tuple[Floats, Floats, float]:
    """Counts that matter, their probabilities, and more than the mass of all others.

    Beyond nine deviations and 45 more, less than 1e-15 is left (Bernstein). From one count to the
    next the law changes by a known factor; logarithms of factorials would lose what matters from a
    hundred million rows on.
    """
    center, wide = rows * share, 9 * math.sqrt(rows * share * (1 - share)) + 45
    counts = np.arange(max(0, math.floor(center - wide)), min(rows, math.ceil(center + wide)) + 1.0)
    if share in (0, 1):
        return counts, np.asarray(counts == center, dtype=np.float64), 1e-13
    before = counts[:-1]
    steps = np.log((rows - before) / (before + 1) * (share / (1 - share)))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    law = np.exp(logs - logs.max())
    return counts, np.asarray(law / law.sum()), 1e-13
