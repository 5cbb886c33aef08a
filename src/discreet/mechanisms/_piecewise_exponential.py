"""Points of a grid by how far they are, in ranks, from a quantile; and an exact choice among them.

Between two values all points of the grid are candidates, so there are far too many to list. They
come in pieces: runs of points whose scores rise in equal steps, or do not rise at all. A piece is
chosen with exactly its share of the total weight, then a point in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.core._rational import Enclosure, ceil_div, exp_minus
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.noise.uniform import LazyUniform, invert, uniform_integers


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPieces:
    """Runs of points ``start + way * j`` with scores ``(ranks + rest / gap) / unit + j / gap``."""

    start: Ints
    way: Ints
    points: Ints
    ranks: Ints
    rest: Ints
    gap: Ints
    """Points in which the score climbs by one rank, or 0 for a level piece (whose rest is 0)."""
    unit: int

    def scores(self) -> Floats:
        """Scores of the first points, in ranks."""
        return np.asarray((self.ranks + self.rest / np.maximum(self.gap, 1)) / self.unit)

    def exact(self, index: int) -> Fraction:
        """The score of a piece's first point, in ranks."""
        rest = Fraction(int(self.rest[index]), max(int(self.gap[index]), 1))
        return (int(self.ranks[index]) + rest) / self.unit

    def masses(self, rate: Fraction) -> Floats:
        """Weights ``sum exp(-rate * score)`` of the pieces, the best score counted as 0."""
        scores = self.scores()
        first = np.exp(-float(rate) * (scores - scores.min()))
        climbs = self.gap > 0
        slope = float(rate) / np.where(climbs, self.gap, 1)
        runs = np.expm1(-slope * self.points) / np.expm1(-slope)
        return np.asarray(first * np.where(climbs, runs, self.points))


def pieces(
    values: Ints, span: int, *, level: Fraction, climbing: bool, reach: int | None = None
) -> RankPieces:
    """Points from 0 to ``span``, by their distance in ranks from a quantile of sorted values.

    The rank curve has the bounds as its first and last knots. At a knot it takes all ranks of the
    values there, so the score of a value that holds the quantile is 0. Between knots it climbs in
    a line by one rank, or (not ``climbing``) stays at the number of values below. With a ``reach``
    points that are more than ``reach - 1`` ranks away may be left out; all others are there, in the
    same order.
    """
    n, unit = len(values), level.denominator
    target = level.numerator * (n + 1 if climbing else n)  # in units of 1/unit
    inner = np.concatenate(([0], values, [span])) if climbing else values
    low_end, high_end = 0, len(inner)
    if reach is not None and n:
        # Whole blocks of ties only.
        center = target // unit
        low_end = int(np.searchsorted(inner, inner[max(0, center - reach)]))
        last = inner[min(center + reach, len(inner) - 1)]
        high_end = int(np.searchsorted(inner, last, side="right"))
    knots, first, sizes = np.unique(inner[low_end:high_end], return_index=True, return_counts=True)
    # Ranks: with the bounds as knots 0 .. n + 1, without them between the counts below and above.
    low = first + low_end
    high = low + sizes - (1 if climbing else 0)
    atoms = _atoms(knots, low * unit, high * unit, target, unit)
    if climbing:
        return _joined([atoms, *_climbing(knots, high, target, unit)])
    ends = (-1 if low_end == 0 else None, span + 1 if high_end == n else None)
    return _joined([atoms, _level(knots, high, target, unit, ends)])


def _atoms(knots: Ints, low: Ints, high: Ints, target: int, unit: int) -> RankPieces:
    score = np.maximum(np.maximum(low - target, target - high), 0)
    ones = np.ones(len(knots), dtype=np.int64)
    zeros = 0 * ones
    return RankPieces(
        start=knots, way=ones, points=ones, ranks=score, rest=zeros, gap=zeros, unit=unit
    )


def _level(
    knots: Ints, high: Ints, target: int, unit: int, ends: tuple[int | None, int | None]
) -> RankPieces:
    """The open gaps between the values, and before and after them, at constant rank."""
    left, right, ranks = knots[:-1], knots[1:], high[:-1]
    if ends[0] is not None:
        left, ranks = np.append(ends[0], left), np.append(0, ranks)
        right = np.append(knots[:1], right) if len(knots) else right
    if ends[1] is not None:
        right = np.append(right, ends[1])
        left = np.append(left, knots[-1:])
        ranks = np.append(ranks, high[-1:])
    points = right - left - 1
    one = np.ones(len(left), dtype=np.int64)
    found = RankPieces(
        start=left + 1,
        way=one,
        points=points,
        ranks=abs(ranks * unit - target),
        rest=0 * one,
        gap=0 * one,
        unit=unit,
    )
    return _some(found, points > 0)


def _climbing(knots: Ints, high: Ints, target: int, unit: int) -> list[RankPieces]:
    """The open gaps between knots: below the target, above it, and the one that holds it."""
    left, right, rank = knots[:-1], knots[1:], high[:-1] * unit
    gap = right - left
    under, over = rank + unit <= target, rank >= target
    way = np.where(under, -1, 1)
    start = np.where(under, right - 1, left + 1)
    # The first point is one step of the climb from the nearer knot.
    ranks = np.where(under, target - rank - unit, rank - target)
    rest = np.full(len(gap), unit)
    sides = RankPieces(
        start=start, way=way, points=gap - 1, ranks=ranks, rest=rest, gap=gap, unit=unit
    )
    found = [_some(sides, (under | over) & (gap > 1))]
    for k in np.flatnonzero(~(under | over)):
        found += _across(int(left[k]), int(gap[k]), target - int(rank[k]), unit)
    return found


def _across(left: int, gap: int, ahead: int, unit: int) -> list[RankPieces]:
    """The gap that holds the target, ``ahead`` units after its left end: two pieces."""
    last = ahead * gap // unit  # the last point not above the target
    parts = []
    if last >= 1:
        parts.append((left + last, -1, last, ahead * gap - last * unit))
    if last + 1 <= gap - 1:
        parts.append((left + last + 1, 1, gap - 1 - last, (last + 1) * unit - ahead * gap))
    return [
        RankPieces(
            start=np.array([start]),
            way=np.array([way]),
            points=np.array([points]),
            ranks=np.array([0]),
            rest=np.array([rest]),
            gap=np.array([gap]),
            unit=unit,
        )
        for start, way, points, rest in parts
    ]


def _some(found: RankPieces, chosen: NDArray[np.bool_]) -> RankPieces:
    return RankPieces(
        start=found.start[chosen],
        way=found.way[chosen],
        points=found.points[chosen],
        ranks=found.ranks[chosen],
        rest=found.rest[chosen],
        gap=found.gap[chosen],
        unit=found.unit,
    )


def _joined(parts: list[RankPieces]) -> RankPieces:
    return RankPieces(
        start=np.concatenate([part.start for part in parts]),
        way=np.concatenate([part.way for part in parts]),
        points=np.concatenate([part.points for part in parts]),
        ranks=np.concatenate([part.ranks for part in parts]),
        rest=np.concatenate([part.rest for part in parts]),
        gap=np.concatenate([part.gap for part in parts]),
        unit=parts[0].unit,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseExponential:
    """Points of a grid with probabilities proportional to ``exp(-rate * score)``."""

    values: Ints
    span: int
    level: Fraction
    climbing: bool
    rate: Fraction

    def pieces(self, reach: int | None = None) -> RankPieces:
        """The points, or those within reach."""
        return pieces(self.values, self.span, level=self.level, climbing=self.climbing, reach=reach)

    def draw(self, rng: RandomSource) -> int:
        """A point, exactly.

        One uniform number is placed on the cumulated weights of the pieces near the quantile. If
        it is too close to a border for doubles to tell, all pieces are made and their borders
        enclosed in integers.

        Proof of ``error``: a mass is good to a relative ``(x + 16) 2**-52``, x its exponent above
        the smallest; under the law itself x is on average at most the logarithm of the number of
        points, below 2**41, so all together are good to 64 * 2**-52 of the total, and the
        sequential sum to a relative 2**-53 for each piece. A best point is within a rank of the
        quantile, so what is left out weighs less than ``2**41 exp(-rate (reach - 2))``, at most
        2**-60 of it.
        """
        near = self.pieces(math.ceil(101 * math.log(2) / self.rate) + 3)
        ends = np.cumsum(near.masses(self.rate))
        uniform = LazyUniform(rng)
        uniform.extend()
        total = float(ends[-1])
        u = (uniform.value + 0.5) * 2.0**-rng.width * total
        error = total * ((len(ends) + 64) * 2.0**-51 + 2.0**-rng.width)
        first, last = map(int, np.searchsorted(ends, (u - error, u + error), side="right"))
        if first == last and u > error:
            return _point(near, first, self.rate, rng)
        every = self.pieces()
        low, high = 0, len(every.start) - 1
        while low < high:
            middle = (low + high) // 2
            below_it = uniform.below(partial(_end, every, self.rate, middle))
            low, high = (low, middle) if below_it else (middle + 1, high)
        return _point(every, low, self.rate, rng)


def _point(found: RankPieces, piece: int, rate: Fraction, rng: RandomSource) -> int:
    place = _place(int(found.points[piece]), int(found.gap[piece]), rate, rng)
    return int(found.start[piece]) + int(found.way[piece]) * place


def _end(found: RankPieces, rate: Fraction, index: int, precision: int) -> Enclosure:
    """Enclose the share of the pieces up to ``index``."""
    work = precision + 64
    scores = found.scores()
    best = int(np.argmin(scores))
    # Pieces so far from the best that all their points together weigh less than one unit.
    near = np.flatnonzero((scores - scores[best]) * float(rate) <= (work + 45) * math.log(2))
    low, high = _sum(found, rate, best, near[near <= index], work)
    rest_low, rest_high = _sum(found, rate, best, near[near > index], work)
    high, rest_high = high + 1, rest_high + 1
    return (low << precision) // (low + rest_high), ceil_div(high << precision, high + rest_low)


def _sum(found: RankPieces, rate: Fraction, best: int, chosen: Ints, work: int) -> Enclosure:
    low = high = 0
    least = found.exact(best)
    for i in chosen.tolist():
        gap, points = int(found.gap[i]), int(found.points[i])
        first_low, first_high = _weight(rate * (found.exact(i) - least), work)
        run_low, run_high = _run(points, gap, rate, work)
        low += first_low * run_low >> work
        high += ceil_div(first_high * run_high, 1 << work)
    return low, high


def _weight(exponent: Fraction, work: int) -> Enclosure:
    """Enclose ``exp(-exponent) * 2**work`` for an exponent of either sign."""
    if exponent >= 0:
        return exp_minus(exponent, work)
    low, high = exp_minus(-exponent, work)
    return (1 << 2 * work) // high, ceil_div(1 << 2 * work, low)


def _run(points: int, gap: int, rate: Fraction, work: int) -> Enclosure:
    """Enclose ``sum of exp(-rate * j / gap) for j < points``, times ``2**work``."""
    if gap == 0 or points == 1:
        return points << work, points << work
    fine = work + 2 * gap.bit_length() + max(0, -_log2(rate)) + 8
    one = 1 << fine
    low, high = exp_minus(rate * points / gap, fine)
    step_low, step_high = exp_minus(rate / gap, fine)
    return (
        ((one - high) << work) // (one - step_low),
        ceil_div((one - low) << work, one - step_high),
    )


def _log2(rate: Fraction) -> int:
    return rate.numerator.bit_length() - rate.denominator.bit_length()


def _place(points: int, gap: int, rate: Fraction, rng: RandomSource) -> int:
    """Which point of a piece: P(j) proportional to exp(-rate * j / gap)."""
    if points == 1:
        return 0
    if gap == 0:
        return int(uniform_integers(points, 1, rng)[0])
    uniform = LazyUniform(rng)
    uniform.extend()
    slope = float(rate) / gap
    u = (uniform.value + 0.5) * 2.0**-uniform.bits
    # u < P(J >= j) iff exp(-slope j) > u + (1 - u) exp(-slope points)
    less = (1 - u) * math.expm1(-slope * points)
    # A number next to 1 may be 1 as a double, which has no logarithm: its neighbor has.
    guess = -math.log1p(max(less, 2.0**-53 - 1)) / slope
    return invert(uniform, partial(_at_least, points, rate / gap), math.floor(guess))


def _at_least(points: int, slope: Fraction, j: int) -> partial[Enclosure]:
    return partial(_tail, points, slope, min(max(j, 0), points))


def _tail(points: int, slope: Fraction, j: int, precision: int) -> Enclosure:
    """Enclose P(J >= j)."""
    fine = precision + 16 + max(0, -_log2(slope * points))
    one = 1 << fine
    low, high = exp_minus(slope * j, fine)
    end_low, end_high = exp_minus(slope * points, fine)
    return (
        ((low - end_high) << precision) // (one - end_low),
        ceil_div((high - end_low) << precision, one - end_high),
    )
