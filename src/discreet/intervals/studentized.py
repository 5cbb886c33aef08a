"""How the budget of an interval is split between an estimate and its standard error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.intervals import interval as chernoff
from discreet.intervals import interval as law
from discreet.intervals.interval import (
    IntervalAnswers,
    IntervalForecast,
    IntervalPlan,
    laplace_points,
)
from discreet.intervals.statistics import (
    LARGEST_SPAN,
    LARGEST_SUM,
    IntervalStatistic,
    MeanStatistic,
    VarianceStatistic,
)
from discreet.mechanisms._drawn import EvenWords, Handed, charges, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.data_dependent.smooth_sensitivity import MOST_ROWS, neighboring_columns
from discreet.mechanisms.mechanism import Certificate, DrawCheck
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource

# ── The interval ─────────────────────────────────────────────────────────────────────────────────
# Column and standard error are whole numbers that get noise by the exact mechanisms; all else is
# post-processing. See docs/theory/intervals.md.


Method: TypeAlias = Literal["safe", "calibrated", "published"]
Assume: TypeAlias = Literal["normal", "nothing"]

_ROUNDING = 1 + 2.0**-40
_POINTS = 64
_PLACES = 1024
# Between two places of `_hull`, on its scale of angles, a line is off by at most this; and where a
# curve is steep, next to the bounds, places are as close as this.
_BEND = 3e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentizedInterval(IntervalPlan):
    """A noisy mean, variance or difference with its interval.

    Made by `mean_interval`, `variance_interval` and `difference_interval`.
    """

    statistic: IntervalStatistic
    center: AdditiveMechanism
    spread: AdditiveMechanism | None
    """Noise on the squared standard error, if it is released."""
    known: float | None
    """The squared standard error, if the public knows it."""
    confidence: float
    gamma: float
    """What may fail because of the noise on the standard error."""
    reach: float
    """What is added to a noisy squared standard error, in scales of its noise."""
    tail: float
    """What may fail on each side, given the standard error in use."""
    outer: float
    """The same for the largest standard error that there can be."""
    method: Method
    assume: Assume

    @property
    def public_rows(self) -> int:  # type: ignore[override]  # the statistic says it
        """How many numbers a column has."""
        return self.statistic.rows

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: the noisy estimate, and its noisy error if there is one."""
        value = self.center.guarantee
        return value if self.spread is None else value + self.spread.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on the estimate."""
        return self.center.std * self._unit

    @property
    def misfit(self) -> float:
        """The middle between the bounds."""
        column = self.statistic.column
        return column.number(column.span // 2)

    @property
    def guaranteed(self) -> float | None:
        """Coverage that holds for any law of the rows and any number of them; None if none does."""
        return self.confidence if self.assume == "nothing" else None

    @property
    def needs(self) -> str:
        """What the nominal coverage rests on."""
        if self.assume == "nothing":
            return "independent rows of any law"
        if self.method == "published" and self.spread is not None:
            return "independent rows, so many that the noise on the variance does not matter"
        if self.method == "calibrated":
            return "independent rows, so many that the estimate is normal (computed on a grid)"
        return "independent rows, so many that the estimate is normal"

    def answers(self, tables: Floats, rng: RandomSource) -> IntervalAnswers:
        """Intervals of private columns."""
        return self.read(*self.noisy(*self.statistic.numbers(tables), rng))

    def noisy(
        self, center: Floats, error: Floats, rng: RandomSource
    ) -> tuple[Floats, Floats | None]:
        """Noisy estimates and, if they are released, noisy squared standard errors."""
        value = np.asarray(self.center.release(center, rng=rng)) * self._unit
        value += self.statistic.offset
        if self.spread is None:
            return value, None
        return value, np.asarray(self.spread.release(error, rng=rng)) * self._error_unit

    def read(self, value: Floats, error: Floats | None) -> IntervalAnswers:
        """Intervals from what was released: post-processing."""
        used = self._used(error, len(value))
        low, high = self._ends(value, used)
        shown = self.known is not None or error is not None
        rows_std = None
        if shown and isinstance(self.statistic, MeanStatistic):
            rows_std = np.sqrt(used * self.public_rows)
        return IntervalAnswers(
            low=low,
            high=high,
            value=value,
            spread=rows_std,
            released=(value,) if error is None else (value, error),
        )

    def half(self, error: Floats | None) -> Floats:
        """Half-widths for noisy squared standard errors, before anything else is made use of."""
        return self._half(self._used(error, 1))

    def forecast(self, std: float, mean: float | None = None) -> IntervalForecast:
        """The width before release, if the rows have this standard deviation: a public guess.

        With a guess of the ``mean``, too, its distance to the bounds is made use of.
        """
        at, error, shown = self.statistic.guess(std)
        low, high = self.statistic.bounds
        errors = None
        if self.spread is not None:
            errors = shown + laplace_points(_POINTS) * self._error_noise
        used, places = self._used(errors, 1), np.full(1, at)
        if mean is not None:
            noise = math.hypot(self.std, math.sqrt(error))
            places = mean + noise * law.normal_points(_POINTS)
        lower, upper = self._ends(np.repeat(places, len(used)), np.tile(used, len(places)))
        everywhere = np.linspace(low, high, _POINTS + 1)
        most = self.statistic.most if self.known is None else self.known
        first, last = self._ends(everywhere, np.full(len(everywhere), most))
        plain = 2 * float(law.normal(np.full(1, math.sqrt(error)), 0.0, tail=self._alpha / 2)[0])
        about = "" if mean is None else f" and the mean {short(mean)}"
        return IntervalForecast(
            width=float((upper - lower).mean()),
            largest=float((last - first).max()),
            plain=min(plain, high - low),
            guess=f"the standard deviation is {short(std)}{about}",
            nominal=self.confidence,
            guaranteed=self.guaranteed,
            needs=self.needs,
        )

    def worst_miss(self) -> float:
        """How often the interval misses at worst, over all variances, if the estimate is normal.

        Given its squared error s^2, the estimate is taken as normal with that variance, widened by
        Student's factor if the interval is. What is missed, on average over the noise of the error,
        is computed, not simulated, for errors on a fine grid up to the largest that there can be.
        """
        if self.spread is None:
            return 2 * max(self.tail, self.outer)
        edges = np.linspace(0.0, 1.0, _POINTS + 1) ** 2  # deviations, denser near zero
        most = self.statistic.most
        halves = self._half(most * edges**2)
        true = most * np.geomspace(1e-7, 1.0, _POINTS)[:, None]
        used = self._used(true + laplace_points(_POINTS) * self._error_noise, 1)
        half = np.interp(np.sqrt(used / most), edges, halves)
        sigma = np.broadcast_to(np.sqrt(true), half.shape)
        if self.method != "published":
            # At worst the largest error at the true parameter is the true one.
            outer = np.interp(np.sqrt(true / most), edges, self._widest(most * edges**2))
            half = np.minimum(half, outer)
            sigma = sigma * law.student(self.statistic.freedom, tail=self.tail)
        if self.center.name == "laplace":
            sides = law.exceeds(half, sigma, np.maximum(self._noise, sigma / 1e4))
        else:
            sides = law.normal_exceeds(half, sigma, self._noise)
        return 2 * float(sides.mean(axis=1).max())

    def certify(self) -> Certificate:
        """Recompute the guarantees of both noises, and how far one row moves what they are for."""
        parts = [self.center] if self.spread is None else [self.center, self.spread]
        found = [part.certify() for part in parts]
        checks = tuple(check for one in found for check in one.checks)
        drawn = tuple(look for one in found for look in one.drawn)
        charged = sum((part.guarantee for part in parts[1:]), start=parts[0].guarantee)
        return Certificate(
            mechanism="interval",
            guarantee=self.guarantee,
            checks=checks,
            drawn=(
                *drawn,
                *self._moved(),
                charges("what is charged", self.guarantee, charged),
            ),
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        """Columns at the bounds, of which one row moves from one bound to the other."""
        if self.public_rows > MOST_ROWS:
            return ()
        names = ["estimate"] if self.spread is None else ["estimate", "squared error"]
        worst = [0.0] * len(names)
        for rows in neighboring_columns(self.statistic.column, self.public_rows):
            seen = [self._handed(values) for values in rows]
            worst = [max(w, abs(a - b)) for w, a, b in zip(worst, *seen, strict=True)]
        noises = [self.center] if self.spread is None else [self.center, self.spread]
        return tuple(
            moves(name, found, float(noise.sensitivity) ** (1 if noise.name == "laplace" else 0.5))
            for name, found, noise in zip(names, worst, noises, strict=True)
        )

    def _handed(self, values: Floats) -> list[float]:
        """What a release of a column hands to its noises."""
        center = Handed(self.center)
        spread = None if self.spread is None else Handed(self.spread)
        made = with_stand_in(self, center=center, spread=spread)
        made.noisy(*self.statistic.numbers(values[None, :]), EvenWords())
        return [float(one.handed[0]) for one in (center, spread) if one is not None]

    @property
    def _alpha(self) -> float:
        return 1 - self.confidence

    @property
    def _unit(self) -> float:
        return self.statistic.units[0]

    @property
    def _error_unit(self) -> float:
        return self.statistic.units[1]

    @property
    def _noise(self) -> float:
        """Laplace scale, or Gaussian deviation, of the noise on the estimate."""
        assert self.center.reals is not None  # noqa: S101 - made on reals
        return self.center.reals.scale * self._unit

    @property
    def _error_noise(self) -> float:
        """Laplace scale of the noise on the squared standard error."""
        assert self.spread is not None  # noqa: S101 - asked only where it is
        assert self.spread.reals is not None  # noqa: S101 - made on reals
        return self.spread.reals.scale * self._error_unit

    def _correction(self, parameter: Floats) -> Floats:
        return self.statistic.correction(parameter)

    def _used(self, error: Floats | None, many: int) -> Floats:
        """The squared error to use, from the noisy one (C11, or C10 as published)."""
        # Theorem: P(squared error > result) <= gamma for the method "safe".
        # Proof: there `reach` is log(1 / 2 gamma), and Laplace noise is below minus that many
        #   scales with probability gamma; what rounding down to a step took away is added; neither
        #   clamp goes below the squared error.
        if self.known is not None:
            return np.full(many, self.known)
        if self.spread is None or error is None:
            return np.full(many, self.statistic.most)
        if self.method == "published":
            return np.maximum(error, 0.0)
        if self.assume == "nothing":
            return np.clip(error + self._error_unit, 0.0, self.statistic.most)
        added = self._error_noise * self.reach + self._error_unit
        return np.clip(error + added * _ROUNDING, 0.0, self.statistic.most)

    def _half(self, error: Floats) -> Floats:
        """Half-widths for the squared errors in use."""
        # Theorem: for "safe", the interval misses the parameter of the (clipped) law with
        #   probability at most `1 - level`, over rows and noise: always if nothing is assumed;
        #   otherwise if the estimate is normal and its squared error is that of the law.
        # Proof: gamma fails for the squared error (see `_used`), the rest is the exact law of the
        #   sum of sampling error and noise; or, if nothing is assumed, a bound of Chernoff for it
        #   (`chernoff`). Union bound. That the squared error varies is met by Student's factor:
        #   exact without noise. For "calibrated" see `worst_miss`.
        # Source: C9-C12; docs/theory/intervals.md.
        if self.assume == "nothing":
            return self._outward(self._any(error))
        sigma = np.sqrt(error)
        if self.method != "published" and self.spread is not None:
            sigma = sigma * law.student(self.statistic.freedom, tail=self.tail)
        return self._outward(self._exact(sigma, self.tail))

    def _widest(self, error: Floats) -> Floats:
        """Half-widths for squared errors of laws, not of samples."""
        return self._outward(self._exact(np.sqrt(error), self.outer))

    def _exact(self, sigma: Floats, tail: float) -> Floats:
        exact = law.normal_laplace if self.center.name == "laplace" else law.normal
        return exact(sigma, self._noise, tail=tail)

    def _any(self, error: Floats) -> Floats:
        """For any law: from a public variance, or from a noisy one."""
        if not isinstance(self.statistic, MeanStatistic) or (
            self.known is None and self.spread is None
        ):
            return np.full(len(error), np.inf)  # what `_hull` says is all
        variances, halves = _bennett(self)
        square = error * self.public_rows
        if self.spread is not None:
            shown, upper = chernoff.upper_variance(
                VarianceStatistic(column=self.statistic.column, size=self.public_rows),
                self.spread,
                self._error_unit * self.public_rows,
                tail=self.gamma,
            )
            square = upper[np.clip(np.searchsorted(shown, square, "right") - 1, 0, None)]
        return halves[np.clip(np.searchsorted(variances, square), None, len(halves) - 1)]

    def _outward(self, half: Floats) -> Floats:
        """Wider by what the grid may have moved and what doubles round."""
        return half * _ROUNDING + self.statistic.slack if self.method != "published" else half

    def _ends(self, value: Floats, error: Floats) -> tuple[Floats, Floats]:
        """Ends of intervals; the parameter lies within its bounds."""
        low, high = self.statistic.bounds
        at = np.maximum(value - self._half(error), low)
        if isinstance(self.statistic, VarianceStatistic) and self.method != "published":
            for _ in range(2):  # what is below `at` is refused already, so the error is smaller
                at = np.maximum(value - self._half(self._less(error, at)), low)
            error = self._less(error, at)
        half = self._half(error)
        lower, upper = value - half, value + half
        if self.method != "published":
            first, last = _hull(self)
            bend = _BEND * (high - low)
            lower = np.maximum(lower, _read(value - bend, *first, low, high) - bend)
            upper = np.minimum(upper, _read(value + bend, *last, low, high) + bend)
        return np.clip(lower, low, high), np.clip(np.maximum(lower, upper), low, high)

    def _less(self, error: Floats, at: Floats) -> Floats:
        return np.maximum(error - self._correction(at), 0.0)


_Curve: TypeAlias = tuple[Floats, Floats]


@lru_cache(maxsize=64)
def _hull(plan: StudentizedInterval) -> tuple[_Curve, _Curve]:
    """What can be refused without a released error: parameters too far from the estimate."""
    # Theorem: a parameter is within its ends, read off at the noisy estimate, unless a tail of
    #   `outer` happened on one side.
    # Proof: at the parameter p the error of the estimate is at most `statistic.largest(p)`, and it
    #   leaves half(p) with that probability; or, if nothing is assumed, the bound of Chernoff at p
    #   (the rows' law being one with this p) holds. All p that are not refused lie between the
    #   ends: curves are made monotone, outward, and read between places on a scale of angles on
    #   which they are smooth.
    low, high = plan.statistic.bounds
    angles = np.linspace(0.0, math.pi, _PLACES + 1)
    places = low + (high - low) * (1 - np.cos(angles)) / 2
    if plan.assume == "nothing":
        std = math.hypot(math.sqrt(plan.statistic.most), plan.std)
        up, down = (
            plan._outward(  # noqa: SLF001 - its own
                chernoff.reach(
                    lambda rates, sign=sign: plan.statistic.log_mgf(sign * rates, places[None, :]),  # type: ignore[misc]
                    plan.center,
                    plan.statistic.units[0],
                    tail=plan.outer,
                    std=std,
                )
            )
            for sign in (1, -1)
        )
    else:
        up = down = plan._widest(plan.statistic.largest(places)) + _lattice(plan)  # noqa: SLF001
    first = np.maximum.accumulate(places + up)
    last = np.minimum.accumulate((places - down)[::-1])[::-1]
    return (first, angles), (last, angles)


def _lattice(plan: StudentizedInterval) -> float:
    """How far the law of an estimate from answers of yes or no may be from its smooth one.

    Half a step, less what the noise has smoothed: a law on a lattice plus noise oscillates by what
    the characteristic function of the noise is at the lattice's frequency.
    """
    step = plan.statistic.lattice
    turns = 2 * math.pi * plan._noise / step  # noqa: SLF001 - its own
    left = 1 / (1 + turns**2) if plan.center.name == "laplace" else math.exp(-(turns**2) / 2)
    return step / 2 * left


def _read(value: Floats, curve: Floats, angles: Floats, low: float, high: float) -> Floats:
    angle = np.interp(value, curve, angles)
    return np.asarray(low + (high - low) * (1 - np.cos(angle)) / 2)


@lru_cache(maxsize=64)
def _bennett(plan: StudentizedInterval) -> tuple[Floats, Floats]:
    """Variances of rows, and half-widths for at most that variance, whatever the law."""
    low, high = plan.statistic.bounds
    variances = (high - low) ** 2 / 4 * np.linspace(0.0, 1.0, 513)[1:] ** 2
    std = math.hypot(math.sqrt(plan.statistic.most), plan.std)

    def sampling(rates: Floats) -> Floats:
        return chernoff.bennett(rates, variances[None, :], high - low, plan.public_rows)

    found = chernoff.reach(sampling, plan.center, plan.statistic.units[0], tail=plan.tail, std=std)
    return variances, np.maximum.accumulate(found)


# ── Choosing the split of the budget ─────────────────────────────────────────────────────────────


# Shares of epsilon that the standard error may get, and how much of what may fail.
_SHARES = [Fraction(0), *(Fraction(k, 64) for k in (1, 2, 4, 6, 9, 13, 18, 24, 32))]
_GAMMA = Fraction(1, 10)
# And how much may fail where nothing but the bounds tells the error: yes or no is not quite normal.
_OUTER = 0.7
# What may be added instead to a noisy squared error, in scales of its noise; how a tail is found.
_REACHES = (1.4, 0.7, 0.0)
_OUTERS = (0.5, 0.2)
_STEPS = 6
_ALLOWED = 0.82
_BELOW = 0.999
_LARGEST_TAIL = 0.4
# Standard deviations, as parts of the range, over which a split without a guess is balanced.
_GUESSES = (1 / 3, 1 / 6, 1 / 12, 1 / 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSpec:
    """What was asked for, checked."""

    statistic: IntervalStatistic
    epsilon: Fraction
    delta: Fraction
    confidence: float
    known: float | None
    method: Method
    assume: Assume

    def best(
        self, *, share: Number | None, std: Number | None, mean: Number | None = None
    ) -> StudentizedInterval:
        """The plan with this share of epsilon for the standard error, or the shortest of many."""
        if self.method != "safe" and self.assume == "nothing":
            raise InvalidArgument(
                f"assume must be 'normal' for method={self.method!r}: it assumes that."
            )
        guesses = [_std(std)] if std is not None else self._guesses()
        about = None if mean is None else float(check.finite("mean", mean))
        plans = [plan for part in self._shares(share) for plan in self._plans(part)]
        if len(plans) == 1:
            return plans[0]
        return min(plans, key=lambda plan: _loss(plan, guesses, about))

    def _shares(self, share: Number | None) -> Sequence[Fraction]:
        if share is not None:
            part = check.probability("share", share, one=False)
            if part and self.known is not None:
                raise InvalidArgument(
                    "share must be 0 if the variance is public, or leave one out."
                )
            return [part]
        if self.known is not None:
            return [Fraction(0)]
        return _SHARES if self.method != "published" else _SHARES[1:]

    def _guesses(self) -> list[float]:
        column = self.statistic.column
        return [column.span * column.step * part for part in _GUESSES]

    def _plans(self, share: Fraction) -> Iterator[StudentizedInterval]:
        """Intervals with this share, of which the shortest is to be taken."""
        plan = self._plan(share)
        yield plan
        if self.method == "calibrated" and share:
            for reach, outer in itertools.product(_REACHES, _OUTERS):
                other = replace(plan, reach=reach, outer=outer * (1 - self.confidence) / 2)
                yield from _calibrated(other)

    def _plan(self, share: Fraction) -> StudentizedInterval:
        alpha = 1 - self.confidence
        gamma = alpha * float(_GAMMA)
        # Kept for the standard error, or for an estimate that is not quite normal.
        reserved = gamma if self.known is None and self.method != "published" else 0.0
        if self.assume == "nothing" and not share:
            reserved = 0.0
        tail = (alpha - reserved) / 2
        return StudentizedInterval(
            statistic=self.statistic,
            center=self._center(self.epsilon * (1 - share)),
            spread=self._spread(self.epsilon * share) if share else None,
            known=self.known,
            confidence=self.confidence,
            gamma=gamma,
            reach=-math.log(2 * gamma),
            tail=tail,
            outer=tail if self.assume == "nothing" else _OUTER * alpha / 2,
            method=self.method,
            assume=self.assume,
        )

    def _center(self, epsilon: Fraction) -> AdditiveMechanism:
        moved, relation = self.statistic.moved[0], NeighboringRelation.REPLACE_ONE
        if not self.delta:
            return laplace(sensitivity=moved, epsilon=epsilon, domain="reals", relation=relation)
        return gaussian(
            sensitivity=moved, epsilon=epsilon, delta=self.delta, domain="reals", relation=relation
        )

    def _spread(self, epsilon: Fraction) -> AdditiveMechanism:
        return laplace(
            sensitivity=self.statistic.moved[1],
            epsilon=epsilon,
            domain="reals",
            relation=NeighboringRelation.REPLACE_ONE,
        )


def interval_spec(
    statistic: IntervalStatistic,
    *,
    epsilon: Number,
    delta: Number,
    confidence: float,
    method: Method,
    assume: Assume,
    known: float | None = None,
) -> IntervalSpec:
    """Arguments that all intervals share, checked."""
    return IntervalSpec(
        statistic=statistic,
        epsilon=check.positive("epsilon", epsilon),
        delta=check.probability("delta", delta, one=False),
        confidence=float(check.probability("confidence", confidence, zero=False, one=False)),
        known=known,
        method=check.one_of("method", method, ("safe", "calibrated", "published")),
        assume=check.one_of("assume", assume, ("normal", "nothing")),
    )


def _calibrated(plan: StudentizedInterval) -> list[StudentizedInterval]:
    """The same with the largest tail at which no variance is missed more often than allowed.

    A part of what may fail is kept back: for variances between those that are computed, and for an
    estimate that is not quite normal.
    """
    allowed, tail, found = (1 - plan.confidence) * _ALLOWED, plan.tail, 0.0
    for _ in range(_STEPS):  # what is missed is nearly proportional to the tail
        missed = replace(plan, tail=tail).worst_miss()
        if missed <= allowed:
            found = max(found, tail)
        tail = min(tail * _BELOW * allowed / missed, _LARGEST_TAIL)
    return [replace(plan, tail=found)] if found else []  # or no tail is small enough: leave it


def _loss(plan: StudentizedInterval, guesses: Sequence[float], mean: float | None) -> float:
    return sum(math.log(plan.forecast(guess, mean).width) for guess in guesses)


def column_of(
    lower: Number, upper: Number, granularity: Number | None, public_rows: int
) -> SortedColumn:
    """A column whose sums and squares are exact."""
    low, high = check.bounds(lower, upper)
    for number in (low, high, high - low):
        check.moderate("lower, upper and their distance", number)
    column = SortedColumn.of(lower, upper, granularity)
    if column.span > LARGEST_SPAN + 1 or column.span * public_rows > LARGEST_SUM:
        raise InvalidArgument(
            "granularity must leave at most 2**27 steps between the bounds, and 2**53 in the "
            "sum of all "
            "rows: give a coarser one."
        )
    return column


def _std(std: Number) -> float:
    return float(check.moderate("std", check.positive("std", std)))
