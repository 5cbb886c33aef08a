"""The mean of numbers of which no bounds are known.

Bounds are found privately, by quantiles: first the quartiles on a ladder of powers that reaches
everywhere, then outer quantiles on a fine grid around those. The values are clipped to them, and
their mean gets noise. All of it comes out of one budget, and the bounds are released with the mean,
so its noise can be told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.sums import exact_sum
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.mechanisms._drawn import EvenWords, laplace_cdf, moves, releases_follow
from discreet.mechanisms._inputs import read_column
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw
from discreet.mechanisms.mechanism import Certificate, DrawCheck, Mechanism
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
# A certificate looks at the noise on a grid of so many steps, and at releases of so many rows,
# so many times, whose error is counted in so many parts of the scale.
_SPAN = 1 << 20
_ROWS = 1 << 10
_RELEASES = 120
_FINENESS = 1000
_SMALLEST_EPSILON = Fraction(1, 1 << 40)
_SMALLEST_TAIL = Fraction(1, 1000)
_LARGEST_TAIL = Fraction(1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateMean(Tabular):
    """A released mean, with the bounds it was clipped to; nothing in it is private."""

    value: float
    lower: float
    upper: float
    std: float
    """Of the noise, given the bounds. What clipping does to the mean is not in it."""

    def rows(self) -> list[Record]:
        """List the mean as one row: value, std, and the bounds that were used."""
        names = ("value", "std", "lower", "upper")
        return [{name: getattr(self, name) for name in names}]

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        value, std = number(self.value, error=self.std), number(self.std, error=self.std)
        return f"{value} ± {std}, of values clipped to {number(self.lower)} .. {number(self.upper)}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanWithoutBounds(Mechanism):
    """A mean without declared bounds. Made by `mean_without_bounds`."""

    unit: Fraction
    tail: Fraction | None
    epsilon: Fraction
    public_rows: int | None
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release.

        It composes four quantiles, the noise of the mean, and that of the number of rows.
        """
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
        """Find bounds, clip the values, and release the mean.

        Args:
            values: Private values. Missing values, and values that are not numbers, are dropped;
                with a public number of rows they count as zero.
            rng: Random source. By default the operating system's.

        Returns:
            The mean, the bounds to which values were clipped, and the standard deviation of the
            noise.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.mean_without_bounds(unit=1, epsilon=1)
            >>> mechanism.release(range(1_000)).std > 0
            True
        """
        reals = read_column(values)
        if self.public_rows is not None and len(reals) != self.public_rows:
            raise OutOfDomain(f"values must have the declared number of rows, {self.public_rows}.")
        missing = np.isnan(reals)
        reals = reals[~missing] if self.public_rows is None else np.where(missing, 0.0, reals)
        source = resolve_rng(rng)
        rows = self.public_rows
        if rows is None:
            rows = self._noisy_rows(len(reals), source)
        quartiles = self._quantiles(_LARGEST_TAIL, _COARSE, self._ladder())
        low, high = _in_order(quartiles, self._rungs(reals), source)
        first, last = self._height(low - 1), self._height(high + 1)
        room = _WIDE * (last - first)
        wide = SortedColumn.of(first - room, last + room, None)
        low, high = _in_order(self._quantiles(self._tail(rows), _FINE, wide), reals, source)
        column = SortedColumn.of(low, high if high > low else low + wide.step, None)
        return self._mean(column, column.sorted(reals), rows, source)

    def _noisy_rows(self, rows: int, rng: RandomSource) -> int:
        return max(1, rows + laplace_draw(1 / (self.epsilon * _COUNT), rng))

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
        total = exact_sum(codes) - middle * len(codes) + laplace_draw(scale, rng)
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
        with np.errstate(over="ignore"):  # a warning would tell that a value is huge
            far = np.log1p(np.abs(reals) / float(self.unit)) / math.log1p(_RATIO)
        return np.asarray(np.copysign(np.minimum(np.rint(far), _RUNGS), reals))

    def _height(self, rung: float) -> float:
        size = math.expm1(min(abs(rung), _RUNGS) * math.log1p(_RATIO))
        return math.copysign(float(self.unit) * size, rung)

    def certify(self) -> Certificate:
        """Recompute the guarantees of the private quantiles.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.mean_without_bounds(unit=1, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        parts = [
            quantile.certify()
            for tail, share in ((_LARGEST_TAIL, _COARSE), (self._tail(1000), _FINE))
            for quantile in self._quantiles(tail, share, self._ladder())
        ]
        checks = tuple(check for part in parts for check in part.checks)
        drawn = [look for part in parts for look in part.drawn]
        drawn += [*self._mean_drawn(), *self._release_drawn(), self._charged()]
        if self.public_rows is None:
            drawn.append(self._rows_drawn())
        return Certificate(
            mechanism=repr(self), guarantee=self.guarantee, checks=checks, drawn=tuple(drawn)
        ).demand()

    def _charged(self) -> DrawCheck:
        """All parts of a release, as they are drawn, against what is charged."""
        choices = 2 * (_COARSE + _FINE) * self.epsilon
        rows = self.epsilon * _COUNT if self.public_rows is None else 0
        return DrawCheck(
            part="four choices, the noise of the mean and of the rows",
            found=float(choices + rows + self._price),
            allowed=self.guarantee.epsilon(),
            route="epsilons of the parts, added up",
        )

    def _mean_drawn(self) -> tuple[DrawCheck, DrawCheck]:
        """The noise of the mean, from no rows; and how far one row, or another one, moves it."""
        column = SortedColumn(first=-_SPAN // 2, span=_SPAN, exponent=0)
        rows = math.ceil(64 / self._price)  # the noise then stays within the bounds
        worth = _SPAN - _SPAN // 2 if self.public_rows is None else _SPAN

        def total(codes: list[int], rng: RandomSource) -> int:
            given = np.array(codes, dtype=np.int64)
            return round(self._mean(column, given, rows, rng).value * rows)

        follows = releases_follow(
            "noise of the mean", lambda rng: total([], rng), laplace_cdf(float(worth / self._price))
        )
        data: list[list[int]] = [[0], [_SPAN // 2], [_SPAN]]
        if self.public_rows is None:
            data.append([])
        seen = [total(codes, EvenWords()) for codes in data]
        far = max(abs(a - b) for a, b in _neighbors(seen, secret=self.public_rows is None))
        return follows, moves("sum that the mean is made of", far, worth)

    def _release_drawn(self) -> tuple[DrawCheck, ...]:
        """Whole releases of a public number of rows: the error, given the released bounds."""
        small = replace(self, public_rows=_ROWS, relation=NeighboringRelation.REPLACE_ONE)
        price = float(small._price)  # noqa: SLF001 - its own
        if 16 / price > _ROWS:
            return ()  # the noise would mostly leave the bounds
        reals = np.linspace(-8, 8, _ROWS) * float(self.unit)

        def error(rng: RandomSource) -> int:
            found = small.release(reals, rng=rng)
            exact = float(np.clip(reals, found.lower, found.upper).mean())
            # Of the width of the bounds, which are not the public's to choose.
            width = (found.upper - found.lower) / _ROWS / price
            return round((found.value - exact) / width * _FINENESS)

        return (releases_follow("releases", error, laplace_cdf(_FINENESS), many=_RELEASES),)

    def _rows_drawn(self) -> DrawCheck:
        scale = 1 / (self.epsilon * _COUNT)
        many = math.ceil(64 * scale)
        return releases_follow(
            "noise of the number of rows",
            lambda rng: self._noisy_rows(many, rng) - many,
            laplace_cdf(float(scale)),
        )

    def __repr__(self) -> str:
        return f"mean_without_bounds(epsilon {float(self.epsilon):g}, {self.relation.value})"


def _neighbors(seen: list[int], *, secret: bool) -> list[tuple[int, int]]:
    """Which of the sums of one row (and, last, of none) belong to neighbors."""
    return [(one, seen[-1]) for one in seen[:-1]] if secret else list(combinations(seen, 2))


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
    """Create a mechanism for the mean of a column whose bounds are not known.

    The mechanism finds bounds privately, clips the values to them, and releases the mean with the
    bounds. It needs thousands of rows. If you know bounds, `Table.mean` is more accurate.

    Args:
        unit: Size that does not matter in your application, in the unit of the data, for example 1
            for incomes in dollars.
        epsilon: Privacy loss of bounds and mean together.
        tail: Share of rows that is clipped at each end, below 1/2. By default a few hundred rows
            divided by epsilon.
        public_rows: Public number of rows. Required with the replace-one relation, not allowed with
            add/remove.
        relation: Neighboring relation: one row is added or removed, or one row is replaced.

    Returns:
        A mechanism. `release(values)` returns `value`, `lower`, `upper` and `std` of the noise.

    Raises:
        InvalidArgument: A number is outside its range, or `public_rows` does not fit the relation.

    Privacy:
        epsilon-DP. The standard deviation of the result covers noise, but not the bias of clipping.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.mean_without_bounds(unit=1, epsilon=1)
        >>> found = mechanism.release(range(1_000))
        >>> found.lower <= found.value <= found.upper
        True

    References:
        Smith (2011). Durfee (2023).
        [Proof](../theory/theorems.md#mechanisms.mean_without_bounds.mean_without_bounds).
    """
    # Theorem: epsilon-DP under `relation`.
    # Proof: four quantiles (`private_quantile`) on public grids, the fine one between bounds that
    #   the coarse ones released; then Laplace noise on the sum of the values clipped to released
    #   bounds, and on the number of rows if it is secret. Adaptive composition; the rest is
    #   post-processing. Nothing is read from the data outside these.
    # Source: B55; Durfee 2023 (ladders of powers); Smith 2011.
    # Needs: unit public; values in doubles. Clipping moves the mean of skewed data: by how much is
    #   a private number and is not told.
    if (public_rows is None) != (relation is NeighboringRelation.ADD_REMOVE):
        raise InvalidArgument("public_rows is for, and needed by, the relation REPLACE_ONE.")
    if not _SMALLEST_EPSILON <= positive("epsilon", epsilon) <= 1 / _SMALLEST_EPSILON:
        raise InvalidArgument(f"epsilon must lie within 2**-40 and 2**40, got {epsilon}.")
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
