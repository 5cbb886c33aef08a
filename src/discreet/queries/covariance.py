"""From four noisy sums to a covariance, with intervals that cover the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core.exact import round_up
from discreet.queries.estimate import Floats, box, listed, outward, quotient, ratio
from discreet.queries.noisy import Noisy


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """How the parts of a covariance are read: widths of both ranges, grid, powers taken out.

    The parts are rows n, centred sums s and t, and the sum p of centred products. The covariance
    is ``(p / n - (s / n) (t / n)) / 4`` steps, and lies within ``width * other / 4`` of zero.
    """

    width: int
    other: int
    exponent: int
    shifts: tuple[int, ...]

    @property
    def limits(self) -> tuple[int, int, int]:
        """Bounds of the mean centred values and of their product."""
        return self.width, self.other, self.width * self.other

    def values(self, parts: Sequence[Noisy]) -> list[float]:
        """The published numbers."""
        b, c, a = self._means(parts)
        return listed(self._number(a - b * c))

    def std(self, parts: Sequence[Noisy]) -> list[float]:
        """Standard deviation of the noise, to first order at the published values."""
        noise = [p.law.std * 2.0**shift for p, shift in zip(parts, self.shifts, strict=True)]
        b, c, a = self._means(parts)
        terms = noise[3], c * noise[1], b * noise[2], (2 * b * c - a) * noise[0]
        found = np.sqrt(sum(np.square(term) for term in terms)) / np.maximum(self._sum(parts, 0), 1)
        return listed(np.ldexp(found, self.exponent - 2))

    def interval(self, parts: Sequence[Noisy], level: float) -> tuple[list[float], list[float]]:
        """Bounds of the answer without noise, for each group that is not empty.

        Theorem and proof: as for a variance, by a box of the four parts; a product of two intervals
        has its extremes at their ends.
        """
        boxes = [
            box(part, shift, 1 - (1 - level) / len(parts))
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

    def _means(self, parts: Sequence[Noisy]) -> tuple[Floats, Floats, Floats]:
        rows = self._sum(parts, 0)
        b, c, a = (
            ratio(self._sum(parts, i), rows, limit) for i, limit in enumerate(self.limits, start=1)
        )
        return b, c, a

    def _sum(self, parts: Sequence[Noisy], place: int) -> Floats:
        shift = self.shifts[place]
        return np.asarray(np.ldexp(parts[place].floats + (0.5 if shift else 0.0), shift))

    def _number(self, centred: Floats) -> Floats:
        limit = float(self.limits[2])
        return np.asarray(np.ldexp(np.clip(centred, -limit, limit), self.exponent - 2))
