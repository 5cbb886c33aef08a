"""Statistics whose sensitivity depends on the data, with smooth bounds on it.

Data are whole numbers of steps of a public grid between public bounds, sorted; neighbors differ in
one of ``rows`` values. A function S of the data is a beta-smooth bound if it is at least the local
sensitivity and changes by a factor of at most e^beta between neighbors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet.boundary.sums import exact_sum
from discreet.core._rational import Number
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Ints

# Sums of squares are taken in halves of this many bits, over pieces of this many rows: no overflow.
_HALF = 20
_PIECE = 1 << 20


class SmoothStatistic(Protocol):
    """A number computed from sorted whole ``values`` between 0 and ``span``."""

    @property
    def public_rows(self) -> int:
        """How many values there are: public."""

    @property
    def power(self) -> int:
        """Answers are in steps to this power: 1, or 2 for a variance."""

    @property
    def whole(self) -> bool:
        """Whether every answer is a whole number of steps."""

    def value(self, values: Ints) -> Fraction:
        """The statistic, in steps."""

    def largest(self, span: int) -> Fraction:
        """The global sensitivity: no bound is above it."""

    def domain(self, span: int) -> tuple[int, int]:
        """Whole numbers between which every answer lies."""

    def smooth_bound(self, values: Ints, span: int, *, beta: float, least: float) -> float:
        """``max(S, least)`` for a beta-smooth bound S, up to a relative error of 2**-40."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean:
    """The mean of what is left without the ``below`` smallest and the ``above`` largest values.

    Without anything trimmed it is the mean; with all but one value trimmed an order statistic.
    """

    public_rows: int
    below: int
    above: int
    power: int = 1

    def __post_init__(self) -> None:
        for name in ("below", "above"):
            count(name, getattr(self, name), minimum=0)
        if self.kept < 1:
            raise InvalidArgument(f"Trimming must leave one of {self.public_rows} rows.")

    @classmethod
    def quantile(cls, public_rows: int, q: Number) -> TrimmedMean:
        """The smallest value that a share ``q`` of the rows does not exceed."""
        rank = max(1, math.ceil(probability("q", q) * public_rows))
        return cls(public_rows=public_rows, below=rank - 1, above=public_rows - rank)

    @property
    def kept(self) -> int:
        """Values that are averaged."""
        return self.public_rows - self.below - self.above

    @property
    def whole(self) -> bool:
        return self.kept == 1

    def value(self, values: Ints) -> Fraction:
        return Fraction(exact_sum(values[self.below : self.public_rows - self.above]), self.kept)

    def largest(self, span: int) -> Fraction:
        return Fraction(span, self.kept)

    def domain(self, span: int) -> tuple[int, int]:
        return 0, span

    def reach(self, padded: Ints, changes: int) -> int:
        """``kept`` times the largest local sensitivity within so many changes, exactly.

        ``padded`` are the sorted values between the two bounds, `bounded`.
        """
        # Theorem: it is the largest `x[i + kept + changes] - x[i]` over `below - changes <= i <=
        #   below + 1`, where x[1..rows] are the sorted values, x[0] and x[rows + 1] the bounds.
        # Proof: a value that crosses the kept window moves it by one place, so the trimmed sum
        #   changes by the distance between the value that enters and the one that leaves it, and
        #   `changes` values can be cleared from between the two. Places beyond the bounds hold
        #   the bounds again and lose to x[0] and x[rows + 1]. The tests compare with all data sets
        #   of up to five rows.
        # Source: Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019. B34.
        # Needs: changes at most rows + 1 - kept; from there on it is the span.
        first, wide = max(0, self.below - changes), self.kept + changes
        last = min(self.below + 1, self.public_rows + 1 - wide)
        gaps = padded[first + wide : last + wide + 1] - padded[first : last + 1]
        return int(gaps.max())

    def smooth_bound(self, values: Ints, span: int, *, beta: float, least: float) -> float:
        """The smallest beta-smooth bound: max over k of e^(-beta k) times `reach` of k changes.

        Widths at which all of the span, or all that lies within reach, could not pass what was
        found are left out: w = log(span / bound) / beta widths after the sort, O(w^2) steps at
        worst, whatever the number of rows.
        """
        padded = pad_with_bounds(values, span)
        best = least * self.kept
        for changes in range(self.public_rows + 2 - self.kept):
            weight = math.exp(-beta * changes)
            if span * weight <= best:
                break
            low = padded[max(0, self.below - changes)]
            high = padded[min(self.below + 1 + self.kept + changes, self.public_rows + 1)]
            if int(high - low) * weight > best:
                best = max(best, self.reach(padded, changes) * weight)
        return best / self.kept

    def distance(self, values: Ints, span: int, *, bound: Fraction) -> int:
        """How many values must change before the local sensitivity can pass ``bound``."""
        padded = pad_with_bounds(values, span)
        low, high = 0, self.public_rows + 2 - self.kept  # reach does not decrease in the changes
        while low < high:
            middle = (low + high) // 2
            passes = Fraction(self.reach(padded, middle), self.kept) > bound
            low, high = (low, middle) if passes else (middle + 1, high)
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothVariance:
    """The sample variance, with divisor rows - 1."""

    public_rows: int
    power: int = 2
    whole: bool = False

    def __post_init__(self) -> None:
        count("public_rows", self.public_rows, minimum=2)

    def value(self, values: Ints) -> Fraction:
        n, total = self.public_rows, exact_sum(values)
        return Fraction(n * _squares(values) - total * total, n * (n - 1))

    def largest(self, span: int) -> Fraction:
        return Fraction(span * span, self.public_rows)

    def domain(self, span: int) -> tuple[int, int]:
        return 0, math.ceil(Fraction(span * span * self.public_rows, 4 * (self.public_rows - 1)))

    def smooth_bound(self, values: Ints, span: int, *, beta: float, least: float) -> float:
        """A beta-smooth bound between a quarter of the global sensitivity and all of it."""
        # Theorem: `max over k of e^(-beta k) U_k` is a beta-smooth bound, where `U_k = D_k^2 /
        #   rows` and D_k is the largest distance, after k changes, from a bound to the mean of
        #   all values but one.
        # Proof: without the replaced value the mean is m, and the variance changes by `|(b - m)^2 -
        #   (a - m)^2| / rows` when a becomes b, at most the squared distance from m to the farther
        #   bound: U_0 bounds the local sensitivity. U_k is the largest U_0 within k changes, so
        #   `U_k(x) <= U_(k+1)(y)` for neighbors x and y. The mean is smallest when the k largest
        #   values become the lower bound and the next one is left out; likewise upwards.
        # Source: Nissim, Raskhodnikova, Smith 2007 (the construction). B34.
        others, total = self.public_rows - 1, exact_sum(values)
        best, top, bottom = least, 0, 0
        for changes in range(self.public_rows):
            weight = math.exp(-beta * changes)
            top += int(values[-1 - changes])
            bottom += int(values[changes])
            if float(self.largest(span)) * weight <= best:
                break
            # Sums of the others: as small as possible, and as large as possible.
            smallest, largest = total - top, total - bottom + changes * span
            distance = Fraction(max(others * span - smallest, largest), others)
            best = max(best, float(distance**2 / self.public_rows) * weight)
        return best


def pad_with_bounds(values: Ints, span: int) -> Ints:
    """Sorted values with the bounds before and after them."""
    return np.concatenate(([0], values, [span]))


def _squares(values: Ints) -> int:
    """The sum of squares of whole numbers below 2**40, exactly."""
    total = 0
    for start in range(0, len(values), _PIECE):
        piece = values[start : start + _PIECE]
        high, low = piece >> _HALF, piece & ((1 << _HALF) - 1)
        total += int(high @ high) << 2 * _HALF
        total += int(high @ low) << (_HALF + 1)
        total += int(low @ low)
    return total
