"""The mean of numbers of which no bounds are known.

Bounds are found privately, by quantiles: first the quartiles on a ladder of powers that reaches
everywhere, then outer quantiles on a fine grid around those. The values are clipped to them, and
their mean gets noise. All of it comes out of one budget, and the bounds are released with the mean,
so its noise can be told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import read
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantiles import PrivateQuantile, SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

# A rung of the ladder is this much farther from zero than the one before; this many each way.
_RATIO = 1 / 16
_RUNGS = 1024
# Shares of epsilon: the number of rows if it is secret, each quartile, each fine quantile. The
# noise of the mean gets the rest.
_COUNT = Fraction(1, 16)
_COARSE = Fraction(1, 16)
_FINE = Fraction(1, 8)
# The fine quantiles are looked for within so many distances of the quartiles beyond them,
_WIDE = 8
# and so many times e^-1 away from being lost in what lies empty there.
_SURE = 18
_SMALLEST_TAIL = Fraction(1, 1000)
_LARGEST_TAIL = Fraction(1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateMean:
    """A released mean, with the bounds it was clipped to; nothing in it is private."""

    value: float
    lower: float
    upper: float
    std: float
    """Of the noise, given the bounds. What clipping does to the mean is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanWithoutBounds(Mechanism):
    """A mean without declared bounds. Made by `unbounded_mean`."""

    unit: Fraction
    tail: Fraction | None
    epsilon: Fraction
    public_rows: int | None
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: four quantiles, the noise of the mean and of the rows."""
        parts: list[events.Event] = [
            *(events.BoundedRangeEvent(self.epsilon * share) for share in 2 * (_COARSE, _FINE)),
            events.LaplaceEvent(1 / self._price),
        ]
        if self.public_rows is None:
            parts.append(events.LaplaceEvent(1 / (self.epsilon * _COUNT)))
        return Guarantee(events.compose(parts), self.relation)

    @property
    def _price(self) -> Fraction:
        """The epsilon of the mean."""
        known = 2 * (_COARSE + _FINE) + (_COUNT if self.public_rows is None else 0)
        return self.epsilon * (1 - known)

    @property
    def std(self) -> float:
        """Not known before the bounds are."""
        raise Unsupported("The noise depends on the bounds that are found: see the release's std.")

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> PrivateMean:
        """Find bounds, clip, and release the mean with them."""
        given = read(values)
        if self.public_rows is not None and given.size != self.public_rows:
            raise OutOfDomain(f"values must have the declared number of rows, {self.public_rows}.")
        reals = given.real if given.whole is None else given.whole.astype(np.float64)
        assert reals is not None  # noqa: S101 - Values holds one or the other
        source = resolve_rng(rng)
        rows = self.public_rows
        if rows is None:
            rows = max(1, len(reals) + laplace_draw(1 / (self.epsilon * _COUNT), source))
        quartiles = self._quantiles(_LARGEST_TAIL, _COARSE, self._ladder())
        low, high = _in_order(quartiles, self._rungs(reals), source)
        first, last = self._height(low - 1), self._height(high + 1)
        room = _WIDE * (last - first)
        wide = SortedColumn.of(first - room, last + room, None)
        low, high = _in_order(self._quantiles(self._tail(rows), _FINE, wide), reals, source)
        column = SortedColumn.of(low, high if high > low else low + wide.step, None)
        return self._mean(column, column.sorted(reals), rows, source)

    def _tail(self, rows: int) -> Fraction:
        """The share clipped at each end: declared, or as small as the quantiles can be found."""
        if self.tail is not None:
            return self.tail
        ranks = Fraction(_SURE * 2) / (self.epsilon * _FINE)
        return min(max(ranks / rows, _SMALLEST_TAIL), _LARGEST_TAIL).limit_denominator(10**4)

    def _mean(self, column: SortedColumn, codes: Ints, rows: int, rng: RandomSource) -> PrivateMean:
        # Counted from the middle, a row is worth half the span; a replaced one moves all of it.
        middle = column.span // 2
        worth = column.span - middle if self.public_rows is None else column.span
        scale = worth / self._price
        total = int(codes.sum()) - middle * len(codes) + laplace_draw(scale, rng)
        mean = min(max(middle + Fraction(total, rows), Fraction(0)), Fraction(column.span))
        return PrivateMean(
            value=float((column.first + mean) * Fraction(2) ** column.exponent),
            lower=column.number(0),
            upper=column.number(column.span),
            std=math.sqrt(2) * float(scale) * column.step / rows,
        )

    def _quantiles(
        self, tail: Fraction, share: Fraction, column: SortedColumn
    ) -> list[PrivateQuantile]:
        return [
            PrivateQuantile(
                column=column,
                quantile=level,
                epsilon=self.epsilon * share,
                method="interpolated",
                relation=self.relation,
            )
            for level in (tail, 1 - tail)
        ]

    @staticmethod
    def _ladder() -> SortedColumn:
        return SortedColumn.of(-_RUNGS, _RUNGS, 1)

    def _rungs(self, reals: Floats) -> Floats:
        """Numbers as places on a ladder of powers: of each value by itself."""
        far = np.log1p(np.abs(reals) / float(self.unit)) / math.log1p(_RATIO)
        return np.asarray(np.copysign(np.minimum(np.rint(far), _RUNGS), reals))

    def _height(self, rung: float) -> float:
        size = math.expm1(min(abs(rung), _RUNGS) * math.log1p(_RATIO))
        return math.copysign(float(self.unit) * size, rung)

    def certify(self) -> Certificate:
        """Recompute the quantiles' guarantees; the noise of the mean is that of `laplace`."""
        parts = [
            quantile.certify()
            for tail, share in ((_LARGEST_TAIL, _COARSE), (self._tail(1000), _FINE))
            for quantile in self._quantiles(tail, share, self._ladder())
        ]
        checks = tuple(check for part in parts for check in part.checks)
        return Certificate(mechanism=repr(self), guarantee=self.guarantee, checks=checks).demand()

    def __repr__(self) -> str:
        return f"mean_without_bounds(epsilon {float(self.epsilon):g}, {self.relation.value})"


def _in_order(
    pair: list[PrivateQuantile], values: Floats, rng: RandomSource
) -> tuple[float, float]:
    low, high = sorted(quantile.release(values, rng=rng) for quantile in pair)
    return low, high


def mean_without_bounds(
    *,
    unit: Number,
    epsilon: Number,
    tail: Number | None = None,
    public_rows: int | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> MeanWithoutBounds:
    """The mean of a column of which only a ``unit`` is known: a size that does not matter.

    A share ``tail`` of the rows at each end is clipped to private bounds; by default a few hundred
    rows divided by epsilon, so it takes thousands of rows. Under REPLACE_ONE give the public number
    of ``public_rows``; under ADD_REMOVE it is secret and noised.

    Theorem: epsilon-DP under ``relation``.
    Proof: four quantiles (`private_quantile`) on public grids, the fine one between bounds that the
        coarse ones released; then Laplace noise on the sum of the values clipped to released
        bounds, and on the number of rows if it is secret. Adaptive composition; the rest is
        post-processing. Nothing is read from the data outside these.
    Source: B55; Durfee 2023 (ladders of powers); Smith 2011.
    Needs: unit public; values in doubles. Clipping moves the mean of skewed data: by how much is a
        private number and is not told.
    """
    if (public_rows is None) != (relation is NeighboringRelation.ADD_REMOVE):
        raise InvalidArgument("public_rows is for, and needed by, the relation REPLACE_ONE.")
    share = None if tail is None else probability("tail", tail, zero=False)
    if share is not None and (share >= Fraction(1, 2) or share.denominator > 1 << 20):
        raise InvalidArgument(f"tail must be below 1/2, with a denominator to 2**20, got {tail}.")
    return MeanWithoutBounds(
        unit=positive("unit", unit),
        tail=share,
        epsilon=positive("epsilon", epsilon),
        public_rows=None if public_rows is None else count("public_rows", public_rows),
        relation=relation,
    )
