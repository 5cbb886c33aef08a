"""Bounds and contribution limits read from noisy histograms of units: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

LARGEST = 40
"""Without a declared range, values are looked for up to this power of two,"""
FINEST = -12
"""and told apart down to this one."""
_STEPS = 53  # bits between the two: what a column holds
CLASSES = 21
"""Rows of a unit: 1, 2, up to 4, up to 8, ..., up to 2**20 and more."""
_LEVEL = 0.95
_GRID = 16  # bits of a suggested grid


def power_of_two_edges(lower: Fraction, upper: Fraction) -> tuple[list[Fraction], Fraction]:
    """Zero and the powers of two of either sign inside a range, and the grid that holds them."""
    if not lower < upper:
        raise InvalidArgument("outermost must be a pair of numbers that increase.")
    top = math.ceil(math.log2(max(abs(lower), abs(upper))))
    finest = max(top - _STEPS + 1, min(FINEST, top - 1))
    powers = [Fraction(2) ** k for k in range(finest, top + 1)]
    marks = [*(-p for p in reversed(powers)), Fraction(0), *powers]
    return [mark for mark in marks if lower < mark < upper], Fraction(2) ** finest


def sum_width(law: Distribution, many: int, confidence: float, *, choices: float = 0.0) -> float:
    """A bound that the sum of ``many`` noises stays within with probability ``confidence``.

    If it is not known beforehand which sum is meant, ``choices`` is the logarithm of the number of
    sums that it may be; the bound then holds for all of them together.
    """
    # Proof: Chernoff. P(sum >= t) <= exp(many K(x) - x t) for each x > 0, K the logarithm of the
    #   moment generating function (that of a discrete Gaussian is at most x^2 sigma^2 / 2); both
    #   signs by symmetry. Any x gives a valid t; the best of many is taken.
    # Source: Canonne, Kamath, Steinke 2020, for the discrete Gaussian.
    if many == 0:
        return 0.0
    target = math.log(2 / (1 - confidence)) + choices
    if isinstance(law, DiscreteGaussian):
        return math.sqrt(2 * target * many * float(law.square)) * (1 + 1e-12)
    if not isinstance(law, DiscreteLaplace):
        raise Unsupported(f"No bound of sums is known for {type(law).__name__}.")
    rate = 1 / float(law.scale)
    x = rate * (1 - np.geomspace(1e-6, 1 - 1e-6, 4000))
    logs = (
        2 * math.log(-math.expm1(-rate))
        - np.log(-np.expm1(x - rate))
        - np.log(-np.expm1(-x - rate))
    )
    return float(((many * logs + target) / x).min()) * (1 + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedRange:
    """A range that leaves out few: places among the limits of the bins, and at most which share."""

    first: int
    last: int
    outside: float


def covering_range(
    counts: Sequence[int],
    law: Distribution,
    *,
    coverage: float,
    limits: Sequence[Fraction] = (),
    confidence: float = _LEVEL,
) -> SuggestedRange:
    """The narrowest range of bins which leaves out no more than is allowed or than noise hides.

    If the ``limits`` of the bins are given, an end that is near zero becomes zero: that costs
    little noise.
    """
    # Theorem: with probability `confidence` at most the share `outside` lies out of the range.
    # Proof: each of the 2 B sums from an end is within its width of the truth with probability
    #   `1 - (1 - level) / (2 B)`; by the union bound all are, whichever is chosen. The total is
    #   one of them.
    bins, total = len(counts), max(sum(counts), 1)
    widths = [sum_width(law, many, 1 - (1 - confidence) / (2 * bins)) for many in range(bins + 1)]
    allowed = (1 - coverage) / 2 * total
    above = np.concatenate((np.cumsum(counts[::-1])[::-1], [0]))
    below = np.concatenate(([0], np.cumsum(counts)))
    last = next(
        place for place in range(1, bins + 1) if above[place] <= max(allowed, widths[bins - place])
    )
    first = next(
        place for place in range(last - 1, -1, -1) if below[place] <= max(allowed, widths[place])
    )
    first, last = _to_zero(first, last, limits)
    lost = float(above[last] + widths[bins - last]) if last < bins else 0.0
    lost += float(below[first] + widths[first]) if first else 0.0
    least = total - widths[bins]
    return SuggestedRange(
        first=first, last=last, outside=min(1.0, max(0.0, lost) / least) if least > 0 else 1.0
    )


def _to_zero(first: int, last: int, limits: Sequence[Fraction]) -> tuple[int, int]:
    if 0 not in limits:
        return first, last
    zero, low, high = limits.index(Fraction(0)), limits[first], limits[last]
    if 0 < low <= high / 4:
        return zero, last
    return (first, zero) if low / 4 <= high < 0 else (first, last)


def granularity_of(lower: Fraction, upper: Fraction) -> Fraction:
    """A power of two of which the range has some 2**16 steps."""
    return Fraction(2) ** (math.frexp(float(upper - lower))[1] - _GRID)


def count_classes(pairs: Iterable[Sequence[int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many units are in each class, from pairs of (rows, units)."""
    found = np.zeros(CLASSES, dtype=np.int64)
    for many, units in pairs:
        found[min((int(many) - 1).bit_length(), CLASSES - 1)] += int(units)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChoice:
    """A limit with what it is expected to cost: rows that are left out, and noise."""

    limit: int
    lost: float
    noise: float

    @property
    def error(self) -> float:
        """Both together."""
        return math.hypot(self.lost, self.noise)


def limit_choices(
    counts: Sequence[int], law: Distribution, *, noise: float, confidence: float = _LEVEL
) -> list[LimitChoice]:
    """For each limit 1, 2, 4, ...: rows lost, and the noise of a count with that limit.

    A class whose noisy count noise alone explains is taken as empty; the units of a class are taken
    to have as many rows as it allows. ``noise`` is the deviation of a count with the limit 1.
    """
    width = sum_width(law, 1, 1 - (1 - confidence) / len(counts))
    kept = [max(0, n) if n > width else 0 for n in counts]
    return [
        LimitChoice(
            limit=2**place,
            lost=float(sum(n * (2**i - 2**place) for i, n in enumerate(kept) if i > place)),
            noise=noise * 2**place,
        )
        for place in range(len(counts))
    ]
