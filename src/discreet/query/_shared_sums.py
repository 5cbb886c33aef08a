"""Statistics that are quotients and differences of shared sums, with intervals by one engine.

Correlations, ratios of two sums, weighted means, shares of a total, differences between groups and
numbers of distinct values. All of it is post-processing: it reads noisy integers and public
constants only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.noise.distribution import Distribution
from discreet.query import _fieller as fieller
from discreet.query._estimate import (
    Floats,
    Noise,
    PredictedError,
    Range,
    SumEstimator,
    check_parts,
    expected_sums,
    half_width,
    listed,
    outward,
)
from discreet.query._noisy_integers import NoisyIntegers

_EXACT_TERMS = 5
"""More Laplace variables of one scale than this are near enough to a normal one."""
NO_POPULATION = "{} has no interval for the population: leave sampling=True out."


def noisy_sums(parts: Sequence[NoisyIntegers], shifts: Sequence[int]) -> list[Floats]:
    """Noisy sums in steps; what rounding down took away is given back on average."""
    return [
        np.asarray(np.ldexp(part.floats + (0.5 if shift else 0.0), shift))
        for part, shift in zip(parts, shifts, strict=True)
    ]


# ── Ratios of two sums, and weighted means ───────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimator:
    """A sum over another one: the parts are both, and for the population their three squares.

    In steps the ratio lies in ``lower .. upper`` (None: no bound); the published number is
    ``(ratio + offset) * 2**exponent``.
    """

    lower: Fraction | None
    upper: Fraction | None
    offset: int
    exponent: int
    positive: bool
    """Whether the denominator is a sum of numbers that are not negative."""
    denominator: int
    """The largest value that a row adds to the denominator."""
    numerator: int
    """The largest value that a row adds to the numerator, in absolute value."""
    population: bool
    shifts: tuple[int, ...]

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        check_parts(parts, self.shifts, keys)
        if len(parts) != (5 if self.population else 2):
            raise InvalidArgument("An answer needs the parts of its kind.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The published numbers."""
        return listed(self._number(self._ratio(noisy_sums(parts, self.shifts))))

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise, to first order at the published values."""
        sums = noisy_sums(parts, self.shifts)
        noise = [p.law.std * 2.0**shift for p, shift in zip(parts, self.shifts, strict=True)]
        found = np.hypot(noise[0], self._ratio(sums) * noise[1]) / np.abs(self._below(sums[1]))
        return listed(np.ldexp(found, self.exponent))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the ratio of the exact sums (with ``sampling``: of the population's)."""
        # Theorem: as for means (`SumEstimator`): noise only, without any assumption; with sampling,
        #   if the sum of the residuals y - theta x is normal with the variance of their squares.
        # Proof: `y - theta x` summed is zero at the truth, but for noise and residuals. Their
        #   squares are at most the noisy ones plus a margin, but for `gamma`.
        # Source: Fieller 1954; docs/theory/queries.md.
        # Needs: with sampling, independent rows.
        if sampling and not self.population:
            raise Unsupported(
                "sampling=True needs the squares: ask for this ratio or weighted mean with "
                "sampling=True when it is released."
            )
        sums = noisy_sums(parts, self.shifts)
        laws, y, x = [part.law for part in parts], sums[0], sums[1]
        gamma = fieller.nuisance_tail(confidence) if sampling else 0.0
        fail = 1 - confidence - gamma
        start = self._ratio(sums)

        def residuals(theta: Floats) -> Floats | float:
            if not sampling:
                return 0.0
            factors = (np.ones_like(theta), -2 * theta, np.square(theta))
            noisy = fieller.form_noise(laws[2:], self.shifts[2:], factors)
            seen = sums[2] - 2 * theta * sums[3] + np.square(theta) * sums[4]
            found: Floats = np.maximum(seen, 0) + fieller.margin_of(noisy, gamma)
            return found

        def inside(theta: Floats) -> NDArray[np.bool_]:
            noise = fieller.form_noise(laws[:2], self.shifts[:2], (1.0, theta))
            away = np.abs(y - theta * x)
            return np.asarray(noise.tail(away, sampling=residuals(theta)) >= fail)

        alone = fieller.form_noise(laws[1:2], self.shifts[1:2], (np.ones_like(x),))
        spread: Floats | float = 0.0
        if sampling:
            squares = fieller.form_noise(laws[4:], self.shifts[4:], (np.ones_like(x),))
            spread = np.maximum(sums[4], 0) + fieller.margin_of(squares, gamma)
        known = alone.tail(np.abs(x), sampling=spread) < fail
        known &= (x > 0) | (not self.positive)
        ends = [
            default if end is None else float(end)
            for end, default in ((self.lower, -math.inf), (self.upper, math.inf))
        ]
        unit = np.maximum(np.abs(start), self.numerator / max(self.denominator, 1))
        low, high = fieller.accepted_range(
            inside, start, lower=ends[0], upper=ends[1], unit=unit, scan=sampling
        )
        low, high = np.where(known, low, ends[0]), np.where(known, high, ends[1])
        with np.errstate(over="ignore"):
            limits = tuple(float(self._number(np.array(end))) for end in ends)
        size = max([abs(end) for end in limits if math.isfinite(end)], default=0.0)
        return outward(
            self._number(low), self._number(high), limits=(limits[0], limits[1]), size=size
        )

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error if rows have the middle of the declared range of the denominator.

        Unlike the bounds of means this is a guess: sums that nearly cancel have no bounded ratio.
        """
        if rows is None:
            return PredictedError()
        stds, _ = expected_sums(noises[:2], self.shifts[:2], confidence)
        below = rows * max(self.denominator / 2, 1.0)
        at = self.numerator / max(self.denominator, 1) / (1 if self.offset else 2)
        laws = [law for law in noises[:2] if isinstance(law, Distribution)]
        noise = fieller.form_noise(laws, self.shifts[:2], (1.0, np.array([at])))
        std = math.hypot(stds[0], at * stds[1]) / below
        width = float(fieller.quantile(noise, 1 - confidence)[0]) / below
        std, width = (math.ldexp(one, self.exponent) for one in (std, width))
        return PredictedError(std=std, width=width, rows=rows)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, shifts=shifts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        ends = {
            name: None if end is None else str(end)
            for name, end in (("lower", self.lower), ("upper", self.upper))
        }
        return {**asdict(self), **ends, "kind": "ratio"}

    def _below(self, x: Floats) -> Floats:
        """A denominator that is not zero: of nothing, one step."""
        if self.positive:
            return np.maximum(x, 1.0)
        return np.where(np.abs(x) < 1, np.where(x < 0, -1.0, 1.0), x)

    def _ratio(self, sums: Sequence[Floats]) -> Floats:
        found = sums[0] / self._below(sums[1])
        lower = None if self.lower is None else float(self.lower)
        upper = None if self.upper is None else float(self.upper)
        if lower is None and upper is None:
            return found
        return np.asarray(np.clip(found, lower, upper))

    def _number(self, theta: Floats) -> Floats:
        return np.asarray(np.ldexp(theta + float(self.offset), self.exponent))


# ── Correlations ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationEstimator:
    """How the six sums of a correlation are read: n, s, s', t, t' and p; widths of both ranges."""

    width: int
    other: int
    shifts: tuple[int, ...]

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        check_parts(parts, self.shifts, keys)
        if len(parts) != 6:
            raise InvalidArgument("An answer needs the parts of its kind.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The published numbers; zero where a variance is not above zero."""
        _, _, _, a, c, p = self._moments(parts)
        product = np.sqrt(np.maximum(a, 0) * np.maximum(c, 0))
        found = np.where(product > 0, p / np.where(product > 0, product, 1.0), 0.0)
        return listed(np.clip(found, -1.0, 1.0))

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise, to first order at the published values; at most 1."""
        n, x, y, a, c, _ = self._moments(parts)
        rho = np.array(self.values(parts))
        known = (a > 0) & (c > 0)
        a, c = np.where(known, a, 1.0), np.where(known, c, 1.0)
        factors = self._factors(rho, x, y, np.sqrt(a / c))
        noise = [p.law.std * 2.0**shift for p, shift in zip(parts, self.shifts, strict=True)]
        squares = sum(np.square(f * one) for f, one in zip(factors, noise, strict=True))
        found = np.sqrt(squares) / np.maximum(n, 1) / np.sqrt(a * c)
        return listed(np.where(known, np.minimum(found, 1.0), 1.0))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the correlation of the rows; -1 and 1 where a spread is not determined."""
        # Theorem: they hold the correlation of a group's rows, if both vary, with probability at
        #   least `confidence`.
        # Proof: with the true means x, y and l the ratio of the true deviations, the sum of
        #   `(d - x)(e - y) - rho / 2 ((d - x)**2 / l + l (e - y)**2)` is zero at the true rho, and
        #   linear in the six sums. x, y and both variances lie in their own intervals but for
        #   `gamma`. Around the published means the form changes by squares of the deviations from
        #   them, and by what l changes, which has its least value at the published one: over the
        #   box it has the extremes taken here, and the noise is taken with the largest factors of
        #   its corners. rho is rejected if no point of the box explains it.
        # Source: docs/theory/queries.md.
        # Needs: 0 < level < 1.
        if sampling:
            raise Unsupported(NO_POPULATION.format("A correlation"))
        n, x, y, a, c, p = self._moments(parts)
        laws, gamma = [part.law for part in parts], 2 * fieller.nuisance_tail(confidence)
        fail = 1 - confidence - gamma
        each = 1 - gamma / 2  # one interval of a variance holds its mean as well
        boxes = [self._one(parts, which, each) for which in (0, 1)]
        (means_x, spread_x), (means_y, spread_y) = boxes
        known = (spread_x[0] > 0) & (spread_y[0] > 0) & (a > 0) & (c > 0)
        spread_x, spread_y, a, c = _where(known, (spread_x, spread_y, a, c))
        ratios = (
            np.sqrt(spread_x[0] / spread_y[1]),
            np.sqrt(spread_x[1] / spread_y[0]),
        )
        u = np.maximum(np.abs(means_x[0] - x), np.abs(means_x[1] - x))
        v = np.maximum(np.abs(means_y[0] - y), np.abs(means_y[1] - y))
        rows = np.maximum(n, 0)
        corners = [(i, j, one) for i in (*means_x, x) for j in (*means_y, y) for one in ratios]
        # The half of the squares, at its least and at its most.
        best = np.clip(np.sqrt(a / c), *ratios)
        least = rows * (a / best + best * c) / 2
        tops = [(a + u**2) / one + one * (c + v**2) for one in ratios]
        most = rows * np.maximum(*tops) / 2

        def inside(rho: Floats) -> NDArray[np.bool_]:
            every = [self._factors(rho, *corner) for corner in corners]
            factors = [np.max(np.abs(one), axis=0) for one in zip(*every, strict=True)]
            noise = fieller.form_noise(laws, self.shifts, factors)
            ends = rho * least, rho * most
            low = rows * (p - u * v) - np.maximum(*ends)
            high = rows * (p + u * v) - np.minimum(*ends)
            away = np.maximum(np.maximum(low, -high), 0)
            return np.asarray(noise.tail(away) >= fail)

        start = np.array(self.values(parts))
        low, high = fieller.accepted_range(inside, start, lower=-1.0, upper=1.0, scan=True)
        low, high = np.where(known, low, -1.0), np.where(known, high, 1.0)
        return outward(low, high, limits=(-1.0, 1.0), size=1.0)

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error for values that are spread evenly over their ranges and do not depend.

        Unlike the bounds of means this is a guess: nothing bounds the error for a constant column.
        """
        if rows is None:
            return PredictedError()
        h, k = float(self.width), float(self.other)
        laws = [law for law in noises if isinstance(law, Distribution)]
        factors = (0.0, 0.0, 0.0, 0.0, 0.0, np.array([1.0]))
        noise = fieller.form_noise(laws, self.shifts, factors)
        below = rows * h * k / 3
        width = min(float(fieller.quantile(noise, 1 - confidence)[0]) / below, 1.0)
        stds, _ = expected_sums(noises, self.shifts, confidence)
        return PredictedError(std=min(stds[5] / below, 1.0), width=width, rows=rows)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, shifts=shifts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "correlation", **asdict(self)}

    def _one(
        self, parts: Sequence[NoisyIntegers], which: int, confidence: float
    ) -> tuple[Range, Range]:
        """Intervals of the mean and of the variance of one value, which hold together."""
        width = (self.width, self.other)[which]
        places = (0, 1 + which, 3 + which)
        one = SumEstimator(
            kind="variance",
            lower=0,
            upper=width,
            exponent=0,
            shifts=tuple(self.shifts[place] for place in places),
        )
        return one.centered_moments([parts[place] for place in places], confidence)

    def _factors(
        self, rho: Floats, x: Floats, y: Floats, slope: Floats
    ) -> tuple[Floats | float, ...]:
        """The factors of n, s, s', t, t' and p in the form that is zero at the true rho."""
        first, second = rho / (2 * slope), rho * slope / 2
        h, k = float(self.width), float(self.other)
        rows = x * y - first * (np.square(x) + h**2 / 2) - second * (np.square(y) + k**2 / 2)
        one = np.ones_like(rows)
        return rows, -y + 2 * first * x, -x + 2 * second * y, -first / 2, -second / 2, one

    def _moments(self, parts: Sequence[NoisyIntegers]) -> tuple[Floats, ...]:
        """Rows, means, variances and covariance of the centered values."""
        n, s, r, t, w, p = noisy_sums(parts, self.shifts)
        rows, h, k = np.maximum(n, 1), float(self.width), float(self.other)
        x, y = s / rows, r / rows
        a = (t / rows + h**2) / 2 - np.square(x)
        c = (w / rows + k**2) / 2 - np.square(y)
        return n, x, y, a, c, p / rows - x * y


def _where(known: NDArray[np.bool_], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The given numbers where they are known, else one, so that nothing divides by zero."""
    return tuple(
        tuple(np.where(known, end, 1.0) for end in one)
        if isinstance(one, tuple)
        else np.where(known, one, 1.0)
        for one in given
    )


# ── Shares of a total ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareEstimator:
    """The share of each group in the total of all groups, from one vector of counts or sums."""

    counted: bool
    """Whether rows were counted: then there is an interval for the population."""
    shifts: tuple[int, ...]

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        check_parts(parts, self.shifts, keys)
        if len(parts) != 1:
            raise InvalidArgument("An answer needs the parts of its kind.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The shares of the noisy numbers, those below zero as zero: they add up to one."""
        (cells,) = noisy_sums(parts, self.shifts)
        held = np.maximum(cells, 0.0)
        whole = held.sum()
        return listed(held / whole if whole > 0 else np.full(len(held), 1 / len(held)))

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise, to first order at the published values; at most 1."""
        (cells,) = noisy_sums(parts, self.shifts)
        q, noise = np.array(self.values(parts)), parts[0].law.std * 2.0 ** self.shifts[0]
        found = noise * np.sqrt(np.square(1 - q) + np.square(q) * (len(q) - 1))
        return listed(np.minimum(found / max(float(cells.sum()), 1.0), 1.0))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of each share (with ``sampling``: of the probability of the group)."""
        # Theorem: each holds its share of the exact numbers with probability at least `confidence`
        #   if there are at most six groups, or the noise is Gaussian; with more, the noise of the
        #   others together is taken as normal.
        # Proof: `(1 - q) cell - q others` is zero at the true q. Given n rows the expected square
        #   of its sampling error is n q (1 - q); n is at most the noisy one plus a margin but for
        #   `gamma`.
        # Source: Fieller 1954; docs/theory/queries.md.
        # Needs: with sampling, independent rows; many, or much noise.
        if sampling and not self.counted:
            raise Unsupported(NO_POPULATION.format("A share of a sum"))
        (cells,) = noisy_sums(parts, self.shifts)
        law, shift, many = parts[0].law, self.shifts[0], len(cells)
        gamma = fieller.nuisance_tail(confidence) if sampling else 0.0
        fail, total = 1 - confidence - gamma, cells.sum()
        whole = self._noise(law, shift, many, np.zeros(1), np.ones(1), extra=1)
        known = bool(total > 0) and bool(whole.tail(np.array([total]))[0] < fail)
        most = max(float(total), 0.0) + float(fieller.margin_of(whole, max(gamma, 1e-9))[0])

        def inside(q: Floats) -> NDArray[np.bool_]:
            noise = self._noise(law, shift, many, 1 - q, q)
            spread = most * q * (1 - q) if sampling else 0.0
            return np.asarray(noise.tail(np.abs(cells - q * total), sampling=spread) >= fail)

        start = np.clip(cells / max(float(total), 1.0), 0.0, 1.0)
        low, high = fieller.accepted_range(inside, start, lower=0.0, upper=1.0, scan=sampling)
        if not known:
            low, high = np.zeros(many), np.ones(many)
        published = np.array(self.values(parts))
        low, high = np.minimum(low, published), np.maximum(high, published)
        return outward(low, high, limits=(0.0, 1.0), size=1.0)

    def _noise(
        self, law: Distribution, shift: int, many: int, own: Floats, others: Floats, extra: int = 0
    ) -> fieller.FormNoise:
        """That of ``own * cell`` and ``others`` times each of the other cells."""
        copies = many - 1 + extra
        if copies <= _EXACT_TERMS:
            laws, factors = [law] * (1 + copies), [own, *[others] * copies]
            return fieller.form_noise(laws, [shift] * len(laws), factors)
        alone = fieller.form_noise([law], [shift], [own])
        variance = copies * (law.variance * 4.0**shift) * np.square(others)
        return replace(alone, variance=alone.variance + variance)

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error of a share of a half, at so many rows in the group."""
        if rows is None:
            return PredictedError()
        laws = [law for law in noises if isinstance(law, Distribution)]
        noise = fieller.form_noise(laws, self.shifts, (np.array([1.0]),))
        width = float(fieller.quantile(noise, 1 - confidence)[0]) / rows
        std = laws[0].std * 2.0 ** self.shifts[0] / rows
        return PredictedError(std=min(std, 1.0), width=min(width, 1.0), rows=rows)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, shifts=shifts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "share", **asdict(self)}


# ── Differences between groups ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceEstimator:
    """The means of all groups but one, less the mean of that one."""

    mean: SumEstimator
    to: int
    """The place of the group that the others are compared with."""

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        self.mean.check(parts, keys + 1)
        if not 0 <= self.to <= keys:
            raise InvalidArgument("An answer needs the group that it compares with.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The published numbers."""
        means = np.array(self.mean.values(parts), dtype=np.float64)
        return listed(np.delete(means, self.to) - means[self.to])

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise, to first order."""
        found = np.array(self.mean.std(parts))
        return listed(np.hypot(np.delete(found, self.to), found[self.to]))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of all differences at once."""
        # Theorem: all differences are inside together with about the stated probability.
        # Proof: each misses with at most its share of what may fail (union bound). Of two intervals
        #   of means with the ends l and u around m, the difference has the ends
        #   `m1 - m2 -+ sqrt((m1 - l1)**2 + (u2 - m2)**2)`, as variances recovered from the ends add
        #   up (MOVER); the tests measure its coverage, at 95 % and above. Below 95 % the ends are
        #   subtracted from intervals of half the failure each, which needs no assumption.
        # Source: Zou, Donner 2008; docs/theory/queries.md.
        # Needs: 0 < level < 1.
        many = len(parts[0].values) - 1
        fail = (1 - confidence) / max(many, 1)
        recovered = fail <= 0.05 + 1e-12
        inside = 1 - fail if recovered else 1 - fail / 2
        low, high = map(np.array, self.mean.interval(parts, inside, sampling=sampling))
        means = np.array(self.mean.values(parts), dtype=np.float64)
        others = [np.delete(one, self.to) for one in (low, means, high)]
        own = low[self.to], means[self.to], high[self.to]
        down, up = others[1] - others[0], others[2] - others[1]
        below, above = own[1] - own[0], own[2] - own[1]
        middle = others[1] - own[1]
        if recovered:
            ends = middle - np.hypot(down, above), middle + np.hypot(up, below)
        else:
            ends = middle - down - above, middle + up + below
        most = math.ldexp(self.mean.width, self.mean.exponent)
        return outward(ends[0], ends[1], limits=(-most, most), size=2 * most)

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error of one difference at so many rows in each of both groups, at worst."""
        found = self.mean.forecast(noises[:2], rows, 1 - (1 - confidence) / 2)
        if found.std is None or found.width is None:
            return found
        return replace(found, std=math.sqrt(2) * found.std, width=2 * found.width)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, mean=self.mean.with_shifts(shifts))

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "compare", "to": self.to, "mean": self.mean.content()}


# ── Distinct values ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctEstimator:
    """How many of the declared values at least so many units have, from noisy counts of units."""

    at_least: int
    levels: int
    """How many values there are in each group."""
    counted: int
    """How many of the first of them count: not those of undeclared or unknown values."""

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        if len(parts) != 1 or len(parts[0].values) != keys * self.levels:
            raise InvalidArgument("An answer needs the parts of its kind.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[int]:
        """The numbers of values whose noisy count is at least the threshold."""
        return [int(one) for one in (self._counts(parts) >= self.at_least).sum(axis=1)]

    def std(self, parts: Sequence[NoisyIntegers]) -> list[None]:
        """None for each: it depends on how many values are near the threshold."""
        return [None] * len(self._counts(parts))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the number of values that at least ``at_least`` units have."""
        # Proof: but for `1 - confidence` the noise of all values of the group is within w at once
        #   (union bound). Then a value whose noisy count is at least the threshold plus w has
        #   enough units, and one that is below the threshold minus w has not.
        if sampling:
            raise Unsupported(NO_POPULATION.format("A number of distinct values"))
        w, counts = self._width(parts[0].law, confidence), self._counts(parts)
        low = (counts >= self.at_least + w).sum(axis=1)
        high = (counts >= self.at_least - w).sum(axis=1)
        return [int(one) for one in low], [int(one) for one in high]

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """At worst all values are near the threshold: the width is that of the noisy counts."""
        law = next(one for one in noises if isinstance(one, Distribution))
        del rows
        return PredictedError(std=law.std, width=float(self._width(law, confidence)))

    def with_shifts(self, shifts: tuple[int, ...]) -> NoReturn:  # noqa: ARG002 - of the protocol
        """Refused: units that count by weights are not counted against a threshold."""
        raise Unsupported("Distinct values have no weights by level: ask by_level().")

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "count_distinct", **asdict(self)}

    def _width(self, law: Distribution, confidence: float) -> int:
        return half_width(law, 1 - (1 - confidence) / max(self.counted, 1))

    def _counts(self, parts: Sequence[NoisyIntegers]) -> NDArray[np.int64]:
        return np.array(parts[0].values, dtype=np.int64).reshape(-1, self.levels)[:, : self.counted]
