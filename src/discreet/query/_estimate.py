"""From noisy integers to published numbers, with intervals that cover the noise.

All of it is post-processing: it reads noisy integers and public constants only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core._rational import round_down, round_up
from discreet.core.errors import Unsupported
from discreet.noise.distribution import Distribution
from discreet.query._measure import SumEstimator
from discreet.query._noisy_integers import NoisyIntegers

# ── Counts, sums, means and variances ────────────────────────────────────────────────────────────
# Everything here is post-processing: it reads noisy integers and public constants only.


Floats: TypeAlias = NDArray[np.float64]
Range: TypeAlias = tuple[Floats, Floats]
_ROUNDING = 2.0**-48
"""Room for the rounding of a dozen operations on doubles, relative to the largest number."""
_EXACT = 2.0**53
"""Whole numbers below are doubles, and a power of two times one is, too."""


def value(scale: SumEstimator, parts: Sequence[NoisyIntegers]) -> list[int] | list[float]:
    """The published numbers, one for each group."""
    sums = _sums(scale, parts)
    match scale.kind:
        case "count" | "units" if not scale.shifts[0]:
            return list(parts[0].values)
        case "count" | "units":  # rows that count by weights
            return listed(sums[0])
        case "sum" if len(parts) > 1:
            return listed(np.ldexp(_doubled(scale, sums), scale.exponent - 1))
        case "sum":
            step = scale.exponent + scale.shifts[0]
            if step >= 0:
                return [number << step for number in parts[0].values]
            return [float(number) for number in np.ldexp(sums[0], scale.exponent)]
        case "mean":
            return listed(_place(scale, ratio(sums[1], sums[0], scale.width)))
        case "variance":
            return listed(_spread(scale, *_moments(scale, sums)))
        case _:
            raise Unsupported(f"{scale.kind} is not read from sums.")


def std(scale: SumEstimator, parts: Sequence[NoisyIntegers]) -> list[float]:
    """Standard deviation of the noise: exact for sums, to first order for means and variances."""
    sums = _sums(scale, parts)
    noise = [part.law.std * 2.0**shift for part, shift in zip(parts, scale.shifts, strict=True)]
    if len(parts) == 1:
        return listed(np.full(len(sums[0]), float(np.ldexp(noise[0], scale.exponent))))
    if scale.kind == "sum":
        both = math.hypot(noise[1], (scale.lower + scale.upper) * noise[0])
        return listed(np.full(len(sums[0]), math.ldexp(both, scale.exponent - 1)))
    n = np.maximum(sums[0], 1)
    b = ratio(sums[1], sums[0], scale.width)
    if scale.kind == "mean":
        found = np.hypot(noise[1], b * noise[0]) / n
        return listed(np.ldexp(found, scale.exponent - 1))
    a = ratio(sums[2], sums[0], scale.width**2)
    terms = noise[2] / 2, 2 * b * noise[1], (a / 2 - 2 * b**2) * noise[0]
    found = np.sqrt(sum(np.square(term) for term in terms)) / n
    return listed(np.ldexp(found, 2 * scale.exponent - 2))


def interval(
    scale: SumEstimator, parts: Sequence[NoisyIntegers], confidence: float
) -> tuple[list[float], list[float]]:
    """Bounds of the answer without noise, for each group by itself.

    Theorem: each group's interval holds the noiseless answer (of the rows that were kept, clipped)
        with probability at least ``confidence``; for means and variances, if the group has a row.
    Proof: each of the k measured numbers leaves its own interval with probability at most
        ``(1 - level) / k`` by its exact law; otherwise all are inside (union bound), and the answer
        lies between the extremes of the formula over that box. ``s / n`` is monotone in s, and in n
        for either sign of s; the square is monotone on either side of zero.
    Source: docs/theory/queries.md.
    Needs: 0 < level < 1. Intervals of several groups hold one by one, not all at once.
    """
    inside = float(check.probability("confidence", confidence, zero=False, one=False))
    boxes = [
        box(part, shift, 1 - (1 - inside) / len(parts))
        for part, shift in zip(parts, scale.shifts, strict=True)
    ]
    if len(parts) == 1:
        low, high = (np.ldexp(end, scale.exponent) for end in boxes[0])
        if max(np.abs(boxes[0][0]).max(), np.abs(boxes[0][1]).max()) < _EXACT:
            return listed(low), listed(high)
        return outward(low, high, limits=(-math.inf, math.inf), size=0.0)
    if scale.kind == "sum":
        middle = float(scale.lower + scale.upper)
        rows = boxes[0] if middle >= 0 else boxes[0][::-1]
        terms = [(end, middle * many) for end, many in zip(boxes[1], rows, strict=True)]
        low, high = (np.ldexp(a + b, scale.exponent - 1) for a, b in terms)
        size = max(float(np.abs(term).max()) for pair in terms for term in pair)
        room = math.ldexp(size, scale.exponent)
        return outward(low, high, limits=(-math.inf, math.inf), size=room)
    least, most = np.maximum(boxes[0][0], 1), np.maximum(boxes[0][1], 1)
    b = quotient(boxes[1], least, most, scale.width)
    if scale.kind == "mean":
        low, high = _place(scale, b[0]), _place(scale, b[1])
        ends = [end * Fraction(2) ** scale.exponent for end in (scale.lower, scale.upper)]
        limits = round_down(ends[0]) + 0.0, round_up(ends[1])  # no minus zero
        return outward(low, high, limits=limits, size=max(map(abs, limits)))
    a = quotient(boxes[2], least, most, scale.width**2)
    squares = np.square(b[0]), np.square(b[1])
    largest = np.maximum(*squares)
    smallest = np.where((b[0] <= 0) & (b[1] >= 0), 0.0, np.minimum(*squares))
    low, high = _spread(scale, a[0], largest), _spread(scale, a[1], smallest)
    top = round_up((scale.width * Fraction(2) ** scale.exponent / 2) ** 2)
    return outward(low, high, limits=(0.0, top), size=4 * top)


def half_width(law: Distribution, confidence: float) -> int:
    """The smallest w with P(|noise| <= w) >= level."""
    return max(map(abs, law.interval(confidence)))


def _sums(scale: SumEstimator, parts: Sequence[NoisyIntegers]) -> list[Floats]:
    """Noisy sums in steps of the grid; what rounding down took away is given back on average."""
    return [
        np.ldexp(part.floats + (0.5 if shift else 0.0), shift)
        for part, shift in zip(parts, scale.shifts, strict=True)
    ]


def _doubled(scale: SumEstimator, sums: Sequence[Floats]) -> Floats:
    """Twice a sum, from the number of rows and the sum of d = 2 c - (lower + upper)."""
    return sums[1] + float(scale.lower + scale.upper) * sums[0]


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


def _place(scale: SumEstimator, centered: Floats) -> Floats:
    """A mean of d = 2 c - (lower + upper) as a mean of values."""
    return np.ldexp(centered + float(scale.lower + scale.upper), scale.exponent - 1)


def _moments(scale: SumEstimator, sums: Sequence[Floats]) -> Range:
    a = ratio(sums[2], sums[0], scale.width**2)
    return a, np.square(ratio(sums[1], sums[0], scale.width))


def _spread(scale: SumEstimator, a: Floats, b_squared: Floats) -> Floats:
    """The variance from the means of ``2 d**2 - width**2`` and of d, within what can be."""
    largest = float(scale.width) ** 2
    found = np.clip((a + largest) / 2 - b_squared, 0.0, largest)
    return np.ldexp(found, 2 * scale.exponent - 2)


def outward(
    low: Floats, high: Floats, *, limits: tuple[float, float], size: float
) -> tuple[list[float], list[float]]:
    """Wider by what rounding may have moved, but not beyond what can be."""
    room = _ROUNDING * np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    return listed(np.maximum(low - room, limits[0])), listed(np.minimum(high + room, limits[1]))


def listed(numbers: Floats) -> list[float]:
    """As plain numbers."""
    return [float(number) for number in numbers]


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

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float
    ) -> tuple[list[float], list[float]]:
        """Bounds of the answer without noise, for each group that is not empty.

        Theorem and proof: as for a variance, by a box of the four parts; a product of two intervals
        has its extremes at their ends.
        """
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
        self, stds: Sequence[float], widths: Sequence[float], rows: int
    ) -> tuple[float, float]:
        """Deviation to first order, and certain width, at worst.

        ``|2 b c - a| <= h k``, because ``a >= |b k + c h| - h k`` for any values; the rest is as
        for a variance.
        """
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
        return math.ldexp(std, self.exponent - 2), math.ldexp(width, self.exponent - 2)

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
