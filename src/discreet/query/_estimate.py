"""From noisy integers to published numbers, with intervals that cover the noise.

All of it is post-processing: it reads noisy integers and public constants only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import round_down, round_up
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.noise.distribution import Distribution
from discreet.query import _fieller as fieller
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query.builders import Kind

# ── Counts, sums, means and variances ────────────────────────────────────────────────────────────
# Everything here is post-processing: it reads noisy integers and public constants only.


Floats: TypeAlias = NDArray[np.float64]
Range: TypeAlias = tuple[Floats, Floats]
_ROUNDING = 2.0**-48
"""Room for the rounding of a dozen operations on doubles, relative to the largest number."""
_EXACT = 2.0**53
"""Whole numbers below are doubles, and a power of two times one is, too."""
NO_SAMPLING = (
    "Sampling is covered for counts, means and quantiles: the spread of what a sum, a "
    "variance or a covariance adds up is not known from their noisy parts."
)
Noise: TypeAlias = Distribution | float
"""The exact law of a noise, or the rate of a choice."""
_PARTS: Mapping[str, tuple[int, ...]] = {
    "count": (1,),
    "units": (1,),
    "sum": (1, 2),
    "mean": (2, 3),
    "variance": (3,),
    "std": (3,),
}
"""How many parts a kind of answer is read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedError:
    """The error of an answer before its release; what does not depend on rows has no ``rows``."""

    std: float | None = None
    width: float | None = None
    rows: int | None = None
    step: float | None = None


class Estimator(Protocol):
    """How the noisy integers of a query are read: its numbers, their errors, and their JSON."""

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""

    def values(self, parts: Sequence[NoisyIntegers]) -> list[int] | list[float]:
        """The published numbers in the order of the keys."""

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float] | list[None]:
        """The standard deviation of the noise of each, where it is known."""

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the answers without noise (with ``sampling``: of what they estimate)."""

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error before a release."""

    def with_shifts(self, shifts: tuple[int, ...]) -> Estimator:
        """The same for sums on another scale: those in which people count by weights."""

    def content(self) -> dict[str, Any]:
        """As JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumEstimator:
    """Counts, sums, means and variances: public bounds, grid, and powers of two taken out."""

    kind: Kind
    lower: int
    upper: int
    exponent: int
    shifts: tuple[int, ...]
    population: bool = False
    """Whether a mean was asked with `sampling=True`: then its spread is measured, too."""

    @property
    def width(self) -> int:
        """The distance of the bounds, in steps of the grid."""
        return self.upper - self.lower

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        check_parts(parts, self.shifts, keys)
        if len(parts) not in _PARTS.get(self.kind, ()):
            raise InvalidArgument("An answer needs the parts of its kind.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[int] | list[float]:
        """The published numbers, one for each group."""
        sums = self._sums(parts)
        match self.kind:
            case "count" | "units" if not self.shifts[0]:
                return list(parts[0].values)
            case "count" | "units":  # rows that count by weights
                return listed(sums[0])
            case "sum" if len(parts) > 1:
                return listed(np.ldexp(self._doubled(sums), self.exponent - 1))
            case "sum":
                step = self.exponent + self.shifts[0]
                if step >= 0:
                    return [number << step for number in parts[0].values]
                return [float(number) for number in np.ldexp(sums[0], self.exponent)]
            case "mean":
                return listed(self._place(ratio(sums[1], sums[0], self.width)))
            case "variance":
                return listed(self._spread(*self._moments(sums)))
            case "std":
                return listed(np.sqrt(self._spread(*self._moments(sums))))
            case _:
                raise Unsupported(f"{self.kind} is not read from sums.")

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise: exact for sums, else to first order."""
        sums = self._sums(parts)
        noise = [part.law.std * 2.0**shift for part, shift in zip(parts, self.shifts, strict=True)]
        if len(parts) == 1:
            return listed(np.full(len(sums[0]), float(np.ldexp(noise[0], self.exponent))))
        if self.kind == "sum":
            both = math.hypot(noise[1], (self.lower + self.upper) * noise[0])
            return listed(np.full(len(sums[0]), math.ldexp(both, self.exponent - 1)))
        n = np.maximum(sums[0], 1)
        b = ratio(sums[1], sums[0], self.width)
        if self.kind == "mean":
            found = np.hypot(noise[1], b * noise[0]) / n
            return listed(np.ldexp(found, self.exponent - 1))
        a = ratio(sums[2], sums[0], self.width**2)
        terms = noise[2] / 2, 2 * b * noise[1], (a / 2 - 2 * b**2) * noise[0]
        found = np.ldexp(np.sqrt(sum(np.square(term) for term in terms)) / n, 2 * self.exponent - 2)
        if self.kind == "variance":
            return listed(found)
        value = np.array(self.values(parts))  # where it is zero, the slope of a root is infinite
        return listed(np.minimum(found / np.maximum(2 * value, np.sqrt(found)), np.sqrt(found)))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the answer without noise, for each group by itself."""
        # Theorem: each group's interval holds the noiseless answer (of the rows that were kept,
        #   clipped) with probability at least `confidence`; for means and variances, if the group
        #   has a row.
        # Proof: a sum of two parts: each leaves its own interval with probability at most
        #   `(1 - level) / 2` by its exact law; otherwise both are inside (union bound), and the
        #   answer lies between the extremes over that box. Means, variances: `_centered_mean` and
        #   `_centered_variance`.
        # Source: docs/theory/queries.md.
        # Needs: 0 < level < 1. Intervals of several groups hold one by one, not all at once.
        if sampling:
            return self._sampled(parts, confidence)
        if self.kind == "mean":
            return self._in_bounds(self._centered_mean(parts, confidence))
        if self.kind in ("variance", "std"):
            return self._spread_in_bounds(self._centered_variance(parts, confidence))
        boxes = [
            box(part, shift, 1 - (1 - confidence) / len(parts))
            for part, shift in zip(parts, self.shifts, strict=True)
        ]
        if len(parts) == 1:
            low, high = (np.ldexp(end, self.exponent) for end in boxes[0])
            if max(np.abs(boxes[0][0]).max(), np.abs(boxes[0][1]).max()) < _EXACT:
                return listed(low), listed(high)
            return outward(low, high, limits=(-math.inf, math.inf), size=0.0)
        if self.kind == "sum":
            middle = float(self.lower + self.upper)
            rows = boxes[0] if middle >= 0 else boxes[0][::-1]
            terms = [(end, middle * many) for end, many in zip(boxes[1], rows, strict=True)]
            low, high = (np.ldexp(a + b, self.exponent - 1) for a, b in terms)
            size = max(float(np.abs(term).max()) for pair in terms for term in pair)
            room = math.ldexp(size, self.exponent)
            return outward(low, high, limits=(-math.inf, math.inf), size=room)
        raise Unsupported(f"{self.kind} is not read from sums.")

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error before a release; of means and variances at so many rows, at worst."""
        # Proof: with probability `confidence` all k parts are within their half-widths w (union
        #   bound). Then
        #   `|s'/n' - s/n| = |(s' - s) - (n' - n) s/n| / n' <= (w_s + h w_n) / (n - w_n)` with h the
        #   bound of |s/n|, and a variance moves by half of the error of its first term and 2 h
        #   times that of the mean.
        if self.kind == "mean":  # its spread does not change it
            noises = noises[:2]
        stds, widths = expected_sums(noises, self.shifts[: len(noises)], confidence)
        if len(noises) == 1:
            std, width = (math.ldexp(x, self.exponent) for x in (stds[0], widths[0]))
            return PredictedError(std=std, width=width)
        if self.kind == "sum":
            middle = abs(self.lower + self.upper)
            std = math.ldexp(math.hypot(stds[1], middle * stds[0]), self.exponent - 1)
            width = math.ldexp(widths[1] + middle * widths[0], self.exponent - 1)
            return PredictedError(std=std, width=width)
        if rows is None:
            return PredictedError()
        h = float(self.width)
        left = rows - widths[0]
        b = min((widths[1] + h * widths[0]) / left, 2 * h) if left > 0 else 2 * h
        if self.kind == "mean":
            std, width, step = min(math.hypot(stds[1], h * stds[0]) / rows, h), b, self.exponent - 1
        else:
            a = (widths[2] + h**2 * widths[0]) / left if left > 0 else 2 * h**2
            first = math.hypot(stds[2] / 2, 2 * h * stds[1], 1.5 * h**2 * stds[0]) / rows
            std, width = min(first, h**2), min(a / 2 + 2 * h * b, h**2)
            step = 2 * self.exponent - 2
            if self.kind == "std":
                # Roots differ by at most the root of the difference; of values that are spread
                # evenly, by about this much. The smaller counts: for a constant column it is more.
                even, step = 2 * h / math.sqrt(3), self.exponent - 1
                std, width = (min(one / even, math.sqrt(one)) for one in (std, width))
        return PredictedError(std=math.ldexp(std, step), width=math.ldexp(width, step), rows=rows)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, shifts=shifts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        found = asdict(self)
        return found if self.population else {x: y for x, y in found.items() if x != "population"}

    def _centered_mean(self, parts: Sequence[NoisyIntegers], confidence: float) -> Range:
        """Bounds of the mean of d = 2 c - (lower + upper)."""
        # Theorem: they hold s / n of a group with a row, with probability at least `confidence`.
        # Proof: `s - theta n` of the exact sums is zero at the true theta, which is rejected only
        #   if the noise of that form passes what was seen: with probability at most `1 -
        #   confidence` (`FormNoise.tail`). If noise alone would not explain so many rows, the
        #   accepted set is bounded and has no gaps: the quantile of the form's noise is a norm of
        #   (1, theta). Else nothing is claimed but the declared range.
        # Source: Fieller 1954; docs/theory/queries.md.
        n, s = self._sums(parts)[:2]
        laws, shifts = [part.law for part in parts[:2]], self.shifts[:2]
        h, fail = float(self.width), 1 - confidence
        start = ratio(s, n, h)

        def inside(theta: Floats) -> NDArray[np.bool_]:
            noise = fieller.form_noise(laws, shifts, (theta, 1.0))
            return np.asarray(noise.tail(np.abs(s - theta * n)) >= fail)

        low, high = fieller.accepted_range(inside, start, lower=-h, upper=h, scan=False)
        noise = fieller.form_noise(laws[:1], shifts[:1], (np.ones_like(n),))
        known = fieller.determined(n, noise, fail)
        return np.where(known, low, -h), np.where(known, high, h)

    def _centered_variance(self, parts: Sequence[NoisyIntegers], confidence: float) -> Range:
        return self.centered_moments(parts, confidence)[1]

    def centered_moments(
        self, parts: Sequence[NoisyIntegers], confidence: float
    ) -> tuple[Range, Range]:
        """Bounds of the mean and of the variance of d, which hold together."""
        # Theorem: they hold the mean and the variance of the rows of a group with a row, both with
        #   probability at least `confidence`.
        # Proof: with U the sum of d**2, `U - 2 mu s + mu**2 n - v n` is zero at the true mean mu
        #   and variance v, and linear in the sums. mu lies in the interval of the mean but for
        #   `gamma`. The form depends on mu through `n (mu - s / n)**2` only, so over that interval
        #   it has the extremes taken here; the noise is taken with the largest factors. v is
        #   rejected if no mu of the interval explains it: at the truth with probability at most
        #   `1 - confidence - gamma`.
        # Source: docs/theory/queries.md.
        n, s, t = self._sums(parts)
        laws, shifts = [part.law for part in parts], self.shifts
        h, gamma = float(self.width), 2 * fieller.nuisance_tail(confidence)
        fail = 1 - confidence - gamma
        ends = self._centered_mean(parts, 1 - gamma)
        middle = s / np.maximum(n, 1)  # not within the bounds: there the form is smallest
        reach = np.maximum(np.abs(ends[1] - middle), np.abs(ends[0] - middle))
        largest = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
        squares = np.square(ends[0]), np.square(ends[1])
        least = np.where(ends[0] * ends[1] < 0, 0.0, np.minimum(*squares))
        # Around the middle of the interval; `U = (t + h**2 n) / 2`.
        total = (t + h**2 * n) / 2 - 2 * middle * s + np.square(middle) * n
        slack = np.maximum(n, 0) * np.square(reach)

        def inside(v: Floats) -> NDArray[np.bool_]:
            rows = [np.abs(h**2 / 2 + end - v) for end in (least, np.maximum(*squares))]
            noise = fieller.form_noise(laws, shifts, (np.maximum(*rows), 2 * largest, 0.5))
            form = total - v * n
            away = np.where(form > 0, form, np.maximum(-form - slack, 0.0))
            return np.asarray(noise.tail(away) >= fail)

        start = np.clip(total / np.maximum(n, 1), 0.0, h**2)
        low, high = fieller.accepted_range(inside, start, lower=0.0, upper=h**2, scan=True)
        noise = fieller.form_noise(laws[:1], shifts[:1], (np.ones_like(n),))
        known = fieller.determined(n, noise, min(fail, gamma))
        return ends, (np.where(known, low, 0.0), np.where(known, high, h**2))

    def _population_mean(self, parts: Sequence[NoisyIntegers], confidence: float) -> Range:
        """Bounds of the mean of d in the population, from a measured spread."""
        # Theorem: they hold the mean of the population with probability at least `confidence`, if
        #   the sum of the rows' deviations from it is normal with the variance of their squares.
        # Proof: at the true theta, `s - theta n` is that sum and noise. The sum of squares
        #   `U - 2 theta s + theta**2 n` is at most the noisy one plus a margin, but for `gamma`,
        #   and in expectation at most `n (h**2 - theta**2)` (Bhatia, Davis 2000), with a margin
        #   of n, but for `gamma`. The tail grows with the variance; union bound.
        # Source: docs/theory/queries.md.
        # Needs: independent rows; many, or much noise: a sum of few rows is not normal.
        sums = self._sums(parts)
        n, s = sums[0], sums[1]
        laws, shifts, h = [part.law for part in parts], self.shifts, float(self.width)
        gamma = fieller.nuisance_tail(confidence)
        fail = 1 - confidence - gamma * (len(parts) - 1)
        alone = fieller.form_noise(laws[:1], shifts[:1], (np.ones_like(n),))
        most = np.maximum(n, 0) + fieller.margin_of(alone, gamma)

        def inside(theta: Floats) -> NDArray[np.bool_]:
            spread = most * np.maximum(h**2 - np.square(theta), 0)
            if len(parts) > 2:
                squares = np.square(theta) + h**2 / 2
                noisy = fieller.form_noise(laws, shifts, (squares, 2 * theta, 0.5))
                seen = squares * n - 2 * theta * s + sums[2] / 2
                seen = np.maximum(seen, 0) + fieller.margin_of(noisy, gamma)
                spread = np.minimum(spread, seen)
            noise = fieller.form_noise(laws[:2], shifts[:2], (theta, 1.0))
            return np.asarray(noise.tail(np.abs(s - theta * n), sampling=spread) >= fail)

        start = ratio(s, n, h)
        low, high = fieller.accepted_range(inside, start, lower=-h, upper=h, scan=True)
        known = fieller.determined(n, alone, min(gamma, fail))
        return np.where(known, low, -h), np.where(known, high, h)

    def _in_bounds(self, ends: Range) -> tuple[list[float], list[float]]:
        """Means of d as means of values, outward."""
        limits = [end * Fraction(2) ** self.exponent for end in (self.lower, self.upper)]
        first, last = round_down(limits[0]) + 0.0, round_up(limits[1])  # no minus zero
        low, high = self._place(ends[0]), self._place(ends[1])
        return outward(low, high, limits=(first, last), size=max(abs(first), abs(last)))

    def _spread_in_bounds(self, ends: Range) -> tuple[list[float], list[float]]:
        """Variances of d as those of values, or their roots, outward."""
        top = round_up((self.width * Fraction(2) ** self.exponent / 2) ** 2)
        low, high = (np.ldexp(end, 2 * self.exponent - 2) for end in ends)
        found = outward(low, high, limits=(0.0, top), size=4 * top)
        if self.kind == "variance":
            return found
        low, high = (np.sqrt(np.array(end)) for end in found)
        return outward(low, high, limits=(0.0, math.sqrt(top) * (1 + _ROUNDING)), size=0.0)

    def _sampled(
        self, parts: Sequence[NoisyIntegers], confidence: float
    ) -> tuple[list[float], list[float]]:
        """Bounds of expected counts and of means in the population."""
        # Theorem: each group's interval holds its target with probability at least `confidence`,
        #   over the noise and the drawing of the rows. The target of a count is its expectation,
        #   that of a mean or quantile the one of the distribution from which the group's rows
        #   (clipped) are drawn.
        # Proof: half of what may fail goes to the noise, half to sampling (union bound). A count is
        #   a sum of independent indicators, whose generating function is at most that of a Poisson
        #   law of the same mean m, so P(N >= x) and, below m, P(N <= x) are at most `exp(-(x
        #   log(x/m) - x + m))`. A mean of n independent values in [0, 1] passes x on one side of
        #   its expectation m with probability at most `exp(-n kl(x, m))`. Both are inverted at the
        #   ends of the noise box, where they are widest. Quantiles: see
        #   `QuantileEstimator.interval`.
        # Source: Chernoff 1952; Hoeffding 1963, theorem 1; docs/theory/queries.md.
        # Needs: independent units, at most one row of each in a group; 0 < level < 1.
        if self.kind not in ("count", "units", "mean"):
            raise Unsupported(NO_SAMPLING)
        if self.population:
            return self._in_bounds(self._population_mean(parts, confidence))
        half = 1 - (1 - confidence) / 2
        bound = math.log(4 / (1 - confidence))  # two sides, half of what may fail
        if self.kind != "mean":
            low, high = box(parts[0], self.shifts[0], half)
            return _counts(np.maximum(low, 0), np.maximum(high, 0), bound)
        ends = tuple(np.array(end) for end in self.interval(parts, half))
        rows = box(parts[0], self.shifts[0], 1 - (1 - half) / 2)[0]
        first, last = (math.ldexp(end, self.exponent) for end in (self.lower, self.upper))
        return _means((ends[0], ends[1]), np.maximum(rows, 1), bound, limits=(first, last))

    def _sums(self, parts: Sequence[NoisyIntegers]) -> list[Floats]:
        """Noisy sums in steps; what rounding down took away is given back on average."""
        return [
            np.ldexp(part.floats + (0.5 if shift else 0.0), shift)
            for part, shift in zip(parts, self.shifts, strict=True)
        ]

    def _doubled(self, sums: Sequence[Floats]) -> Floats:
        """Twice a sum, from the number of rows and the sum of d = 2 c - (lower + upper)."""
        return sums[1] + float(self.lower + self.upper) * sums[0]

    def _place(self, centered: Floats) -> Floats:
        """A mean of d = 2 c - (lower + upper) as a mean of values."""
        return np.ldexp(centered + float(self.lower + self.upper), self.exponent - 1)

    def _moments(self, sums: Sequence[Floats]) -> Range:
        a = ratio(sums[2], sums[0], self.width**2)
        return a, np.square(ratio(sums[1], sums[0], self.width))

    def _spread(self, a: Floats, b_squared: Floats) -> Floats:
        """The variance from the means of ``2 d**2 - width**2`` and of d, within what can be."""
        largest = float(self.width) ** 2
        found = np.clip((a + largest) / 2 - b_squared, 0.0, largest)
        return np.ldexp(found, 2 * self.exponent - 2)


def half_width(law: Distribution, confidence: float) -> int:
    """The smallest w with P(|noise| <= w) >= level."""
    return max(map(abs, law.interval(confidence)))


def box(part: NoisyIntegers, shift: int, confidence: float) -> Range:
    """Bounds of the exact sum, which was rounded down to a multiple of ``2**shift``."""
    reach = half_width(part.law, confidence)
    low, high = part.floats - reach, part.floats + reach + (1 if shift else 0)
    return np.ldexp(low, shift), np.ldexp(high, shift)


def ratio(total: Floats, rows: Floats, limit: float) -> Floats:
    """A mean, within what any rows can give."""
    return np.clip(total / np.maximum(rows, 1), -float(limit), float(limit))


def quotient(total: Range, least: Floats, most: Floats, limit: float) -> Range:
    """The extremes of ``total / rows`` over a box, within what any rows can give."""
    low = total[0] / np.where(total[0] < 0, least, most)
    high = total[1] / np.where(total[1] > 0, least, most)
    return np.clip(low, -float(limit), float(limit)), np.clip(high, -float(limit), float(limit))


def outward(
    low: Floats, high: Floats, *, limits: tuple[float, float], size: float
) -> tuple[list[float], list[float]]:
    """Wider by what rounding may have moved, but not beyond what can be."""
    room = _ROUNDING * np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    return listed(np.maximum(low - room, limits[0])), listed(np.minimum(high + room, limits[1]))


def listed(numbers: Floats) -> list[float]:
    """As plain numbers."""
    return [float(number) for number in numbers]


def check_parts(parts: Sequence[NoisyIntegers], shifts: Sequence[int], keys: int) -> None:
    """Refuse parts without a number for each key."""
    if {len(part.values) for part in parts} != {keys} or len(parts) != len(shifts):
        raise InvalidArgument("An answer needs a number of each part for each key.")


def expected_sums(
    noises: Sequence[Noise], shifts: Sequence[int], confidence: float
) -> tuple[list[float], list[float]]:
    """Deviations of noisy sums, and widths that hold all of them at once, in steps of the grid."""
    laws = [law for law in noises if isinstance(law, Distribution)]
    factors = [2.0**shift for shift in shifts]
    stds = [law.std * factor for law, factor in zip(laws, factors, strict=True)]
    widths = [
        (half_width(law, 1 - (1 - confidence) / len(laws)) + (shift > 0)) * factor
        for law, factor, shift in zip(laws, factors, shifts, strict=True)
    ]
    return stds, widths


# ── Intervals that also cover sampling ───────────────────────────────────────────────────────────
# Valid for any number of rows and any distribution, if the units were drawn independently and each
# gives at most one row to a group.


_HALVINGS = 80
_OUTWARD = 2.0**-40


def _counts(low: Floats, high: Floats, bound: float) -> tuple[list[float], list[float]]:
    """All m with ``x log(x/m) - x + m <= bound``, for x at the ends of the box."""

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(x > 0, x * np.log(np.where(x > 0, x / m, 1.0)), 0.0)
        return np.asarray(logs - x + m)

    least = _edge(lambda m: np.asarray(divergence(low, m) > bound), np.zeros_like(low), low)
    far = high + bound + np.sqrt(2 * bound * high + bound**2) + 1
    most = _edge(lambda m: np.asarray(divergence(high, m) > bound), far, high)
    return (
        listed(least * (1 - _OUTWARD)),
        listed(most * (1 + _OUTWARD)),
    )


def _means(
    ends: Range, rows: Floats, bound: float, *, limits: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """All m with ``rows * kl(x, m) <= bound`` for x at the ends of the box, scaled to [0, 1]."""
    span = limits[1] - limits[0] or 1.0
    x_low, x_high = (np.clip((end - limits[0]) / span, 0.0, 1.0) for end in ends)

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(x > 0, x * np.log(x / m), 0.0)
            right = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - m)), 0.0)
        return np.asarray(left + right)

    zero, one = np.zeros_like(x_low), np.ones_like(x_low)
    least = _edge(lambda m: np.asarray(rows * divergence(x_low, m) > bound), zero, x_low)
    most = _edge(lambda m: np.asarray(rows * divergence(x_high, m) > bound), one, x_high)
    room = _OUTWARD * max(map(abs, limits))
    return (
        listed(np.maximum(limits[0] + span * least - room, limits[0])),
        listed(np.minimum(limits[0] + span * most + room, limits[1])),
    )


def _edge(outside: Callable[[Floats], NDArray[np.bool_]], far: Floats, near: Floats) -> Floats:
    """The outer side of where a set that holds ``near`` ends, toward ``far``; by halving."""
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        out = outside(middle)
        far, near = np.where(out, middle, far), np.where(out, near, middle)
    return far


# ── Covariances ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceEstimator:
    """How the parts of a covariance are read: widths of both ranges, grid, powers taken out.

    The parts are rows n, centered sums s and t, and the sum p of centered products. The covariance
    is ``(p / n - (s / n) (t / n)) / 4`` steps, and lies within ``width * other / 4`` of zero.
    """

    width: int
    other: int
    exponent: int
    shifts: tuple[int, ...]

    @property
    def limits(self) -> tuple[int, int, int]:
        """Bounds of the mean centered values and of their product."""
        return self.width, self.other, self.width * self.other

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The published numbers."""
        b, c, a = self._means(parts)
        return listed(self._number(a - b * c))

    def std(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """Standard deviation of the noise, to first order at the published values."""
        noise = [p.law.std * 2.0**shift for p, shift in zip(parts, self.shifts, strict=True)]
        b, c, a = self._means(parts)
        terms = noise[3], c * noise[1], b * noise[2], (2 * b * c - a) * noise[0]
        found = np.sqrt(sum(np.square(term) for term in terms)) / np.maximum(self._sum(parts, 0), 1)
        return listed(np.ldexp(found, self.exponent - 2))

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that do not fit."""
        check_parts(parts, self.shifts, keys)
        if len(parts) != 4:
            raise InvalidArgument("An answer needs the parts of its kind.")

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of the answer without noise, for each group that is not empty.

        Theorem and proof: as for a variance, by a box of the four parts; a product of two intervals
        has its extremes at their ends.
        """
        if sampling:
            raise Unsupported(NO_SAMPLING)
        boxes = [
            box(part, shift, 1 - (1 - confidence) / len(parts))
            for part, shift in zip(parts, self.shifts, strict=True)
        ]
        least, most = np.maximum(boxes[0][0], 1), np.maximum(boxes[0][1], 1)
        b, c, a = (
            quotient(one, least, most, limit)
            for one, limit in zip(boxes[1:], self.limits, strict=True)
        )
        products = [x * y for x in b for y in c]
        low = self._number(a[0] - np.max(products, axis=0))
        high = self._number(a[1] - np.min(products, axis=0))
        top = round_up(Fraction(self.limits[2]) * Fraction(2) ** (self.exponent - 2))
        return outward(low, high, limits=(-top, top), size=4 * top)

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """Deviation to first order, and certain width, at worst.

        ``|2 b c - a| <= h k``, because ``a >= |b k + c h| - h k`` for any values; the rest is as
        for a variance.
        """
        if rows is None:
            return PredictedError()
        stds, widths = expected_sums(noises, self.shifts, confidence)
        h, k, hk = map(float, self.limits)
        std = min(math.hypot(stds[3], k * stds[1], h * stds[2], hk * stds[0]) / rows, hk)
        left = rows - widths[0]
        if left <= 0:
            width = 2 * hk
        else:
            a = (widths[3] + hk * widths[0]) / left
            b, c = (
                min((w + limit * widths[0]) / left, 2 * limit)
                for w, limit in ((widths[1], h), (widths[2], k))
            )
            width = min(a + k * b + h * c, 2 * hk)
        std, width = (math.ldexp(x, self.exponent - 2) for x in (std, width))
        return PredictedError(std=std, width=width, rows=rows)

    def with_shifts(self, shifts: tuple[int, ...]) -> Self:
        """The same for sums on another scale."""
        return replace(self, shifts=shifts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "covariance", **asdict(self)}

    def _means(self, parts: Sequence[NoisyIntegers]) -> tuple[Floats, Floats, Floats]:
        rows = self._sum(parts, 0)
        b, c, a = (
            ratio(self._sum(parts, i), rows, limit) for i, limit in enumerate(self.limits, start=1)
        )
        return b, c, a

    def _sum(self, parts: Sequence[NoisyIntegers], place: int) -> Floats:
        shift = self.shifts[place]
        return np.asarray(np.ldexp(parts[place].floats + (0.5 if shift else 0.0), shift))

    def _number(self, centered: Floats) -> Floats:
        limit = float(self.limits[2])
        return np.asarray(np.ldexp(np.clip(centered, -limit, limit), self.exponent - 2))
