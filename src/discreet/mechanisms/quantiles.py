"""Private quantiles of a column: one at a time, or many by splitting."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import doubles
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import (
    as_tuple,
    bounds,
    exponent_below,
    one_of,
    positive,
    power_of_two,
    probability,
)
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms._drawn import FEW, cumulated, releases_follow
from discreet.mechanisms._inputs import check_column
from discreet.mechanisms._piecewise_exponential import PiecewiseExponential, pieces
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.mechanisms.selection import PermuteAndFlip, permute_and_flip
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

# ── A sorted column ──────────────────────────────────────────────────────────────────────────────
# A column of private numbers between declared bounds, as sorted whole steps of a public grid.


# Steps between the bounds: by default, and at most (sums of squares then fit).
_RESOLUTION = 26
_FAR = 38
_LARGEST_SPAN = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedColumn:
    """Values are clipped to the bounds and rounded to multiples of ``2**exponent``.

    Both act on each value by itself, so neighbors stay neighbors, and no digit below the grid
    survives. Steps are counted from the lower bound.
    """

    first: int
    """The lower bound, in steps from zero."""
    span: int
    """Steps between the bounds."""
    exponent: int

    @classmethod
    def of(cls, lower: Number, upper: Number, granularity: Number | None) -> SortedColumn:
        """The bounds, moved outward to steps of ``granularity``, or fine enough for most."""
        low, high = bounds(lower, upper)
        if granularity is None:
            # Not finer than a double is: numbers far from zero have fewer digits behind the point.
            far = exponent_below(max(abs(low), abs(high)), resolution=_FAR)
            exponent = max(far, exponent_below(high - low, resolution=_RESOLUTION))
        else:
            exponent = power_of_two(granularity)
        step = Fraction(2) ** exponent
        first = math.floor(low / step)
        span = math.ceil(high / step) - first
        if max(span, abs(first)) > _LARGEST_SPAN:
            raise InvalidArgument(
                "The bounds must lie within 2**40 steps of zero and of each other: "
                "use a coarser grid."
            )
        return cls(first=first, span=span, exponent=exponent)

    def refined(self) -> tuple[SortedColumn, int]:
        """The same bounds on a grid of the default fineness, and how many of its steps are one."""
        stride = 1 << max(0, _RESOLUTION - self.span.bit_length())
        while max(abs(self.first), self.span) * stride > _LARGEST_SPAN:
            stride //= 2
        exponent = self.exponent - stride.bit_length() + 1
        return SortedColumn(
            first=self.first * stride, span=self.span * stride, exponent=exponent
        ), stride

    @property
    def step(self) -> float:
        """Size of a step."""
        return 2.0**self.exponent

    def sorted(self, values: ArrayLike, *, rows: int | None = None) -> Ints:
        """Private values as sorted steps from the lower bound, each read by itself.

        Infinite and huge values are clipped. A missing value, or one that is no number, is left
        out; where the number of ``rows`` is public it counts as the middle between the bounds.
        """
        check_column(values)
        reals = doubles(values)
        if rows is not None and reals.size != rows:
            raise OutOfDomain(f"values must have the declared number of rows, {rows}.")
        missing = np.isnan(reals)
        if missing.any():
            reals = np.where(missing, 0.0, reals)
        codes = self.places(reals)
        if missing.any():
            codes = codes[~missing] if rows is None else np.where(missing, self.span // 2, codes)
        codes.sort()
        return codes

    def places(self, values: NDArray[np.float64]) -> Ints:
        """Private numbers, not nan, as steps from the lower bound, each by itself."""
        with np.errstate(all="ignore"):  # a warning would tell that a value is huge, or tiny
            steps = np.floor(np.ldexp(values, -self.exponent) + 0.5)
        codes: Ints = np.clip(steps, self.first, self.first + self.span).astype(np.int64)
        codes -= self.first
        return codes

    def number(self, steps: int) -> float:
        """The real number so many steps above the lower bound."""
        return (self.first + steps) * self.step


# ── One quantile ─────────────────────────────────────────────────────────────────────────────────
# A private median or quantile: a choice among all points of a grid.
#
# A point is the likelier the fewer rows would have to change for it to be the quantile (inverse
# sensitivity). There is no noise to add, the answer lies between the bounds, and where rows are
# dense the error is a few ranks, whatever the range.


Method: TypeAlias = Literal["interpolated", "exponential", "permute_and_flip"]

# Size of the exhaustive check.
_CHECKED_SPAN = 5
_CHECKED_ROWS = 3
# Rows at each point of it, at most, where choices are drawn.
_MOST_TIED = 1 << 10
_LARGEST_LISTED = 300
# Steps times the level's denominator then fit 64 bits.
_LARGEST_DENOMINATOR = 1 << 20
_MOST_FLIPS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateQuantile(Mechanism):
    """A private quantile of a column. Made by `private_quantile`."""

    column: SortedColumn
    quantile: Fraction
    epsilon: Fraction
    method: Method
    relation: NeighboringRelation
    stride: int = 1
    """Steps between the points that may be flipped; the values keep the finer grid."""

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        if self.method == "permute_and_flip":
            return Guarantee(events.PureEvent(self.epsilon), self.relation)
        return Guarantee(events.BoundedRangeEvent(self.epsilon), self.relation)

    @property
    def moved(self) -> Fraction:
        """By how many ranks a unit may change a score."""
        if self.relation is NeighboringRelation.REPLACE_ONE:
            return Fraction(1)
        return max(self.quantile, 1 - self.quantile)

    @property
    def rate(self) -> Fraction:
        """What a rank is worth, as a logarithm of probability."""
        return self.epsilon / (2 * self.moved)

    @property
    def std(self) -> float:
        """A choice has no standard deviation that holds for all data."""
        raise Unsupported("A chosen quantile has no standard deviation; interval() is in ranks.")

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound how far the rank of the answer may be from the quantile.

        The bound assumes that outputs are finer than the distances of the values.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound, in ranks.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_quantile(lower=0, upper=100, epsilon=1)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        if self.method == "permute_and_flip":
            raise Unsupported("The points of a coarse grid may all be far from the quantile.")
        inside = float(probability("confidence", confidence, zero=False, one=False))
        ranks = math.log((self.column.span + 1) / (1 - inside)) / float(self.rate) + 0.5
        return -ranks, ranks

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """Release the quantile of a column.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            The chosen value.

        Raises:
            OutOfDomain: The input does not have the right shape.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_quantile(lower=0, upper=100, epsilon=1)
            >>> 0 <= mechanism.release([12, 37, 41]) <= 100
            True
        """
        codes = self.column.sorted(values)
        source = resolve_rng(rng)
        if self.method == "permute_and_flip":
            chosen = self._flip.choose(self._scores(codes, self.column.span), source)
            return self.column.number(chosen * self.stride)
        choice = PiecewiseExponential(
            values=codes,
            span=self.column.span,
            level=self.quantile,
            climbing=self.method == "interpolated",
            rate=self.rate,
        )
        return self.column.number(choice.draw(source))

    @property
    def _flip(self) -> PermuteAndFlip:
        moved = self.moved * self.quantile.denominator
        return permute_and_flip(sensitivity=moved, epsilon=self.epsilon, relation=self.relation)

    def _scores(self, codes: Ints, span: int) -> Ints:
        """Scores of all points, in ranks times the level's denominator."""
        points = np.arange(0, span + 1, self.stride)
        low = np.searchsorted(codes, points) * self.quantile.denominator
        high = np.searchsorted(codes, points, side="right") * self.quantile.denominator
        target = self.quantile.numerator * len(codes)
        return -np.maximum(np.maximum(low - target, target - high), 0).astype(np.int64)

    def probabilities(self, values: ArrayLike) -> Floats:
        """The law over all points that may be chosen, for audits of small grids: private."""
        return self._law(self.column.sorted(values), self.column.span)

    def _law(self, codes: Ints, span: int) -> Floats:
        if self.method == "permute_and_flip":
            return self._flip.probabilities(self._scores(codes, span))
        climbing = self.method == "interpolated"
        found = pieces(codes, span, level=self.quantile, climbing=climbing)
        least = found.scores().min()
        weights = np.zeros(span + 1)
        for i, (start, way, points, gap) in enumerate(
            zip(found.start, found.way, found.points, found.gap, strict=True)
        ):
            j = np.arange(points)
            scores = float(found.exact(i)) + (j / gap if gap else 0 * j)
            weights[start + way * j] += np.exp(-float(self.rate) * (scores - least))
        law: Floats = weights / weights.sum()
        return law

    def certify(self) -> Certificate:
        """Compare the exact distributions of all neighbors on a small grid.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_quantile(lower=0, upper=100, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        worst = 0.0
        small = self._small()
        # Of a larger epsilon the laws at this one, at the same rate for it: doubles hold them.
        listed = replace(small, epsilon=min(self.epsilon, Fraction(_LARGEST_LISTED)))
        factor = math.exp(min(float(listed.epsilon), self.guarantee.epsilon()))
        laws = {
            data: listed.probabilities(np.array(data, dtype=np.int64))
            for rows in range(_CHECKED_ROWS + 1)
            for data in itertools.combinations_with_replacement(range(_CHECKED_SPAN + 1), rows)
        }
        for data, law in laws.items():
            for i in range(len(data)):
                rest = data[:i] + data[i + 1 :]
                for other in self._neighbors(rest):
                    worst = max(worst, _excess(law, laws[other], factor))
                    worst = max(worst, _excess(laws[other], law, factor))
        check = CertificateCheck(
            part=f"all data of up to {_CHECKED_ROWS} rows on {_CHECKED_SPAN + 1} points",
            epsilon=float(self.epsilon),
            claimed=0.0,
            exact=worst,
            route="exact law of the choice",
        )
        return Certificate(
            mechanism=repr(self),
            guarantee=self.guarantee,
            checks=(check,),
            drawn=(self._drawn(small),),
        ).demand()

    def _small(self) -> Self:
        """The same choice on the points 0 to 5."""
        column = SortedColumn(first=0, span=_CHECKED_SPAN, exponent=0)
        return replace(self, column=column, stride=1)

    def _drawn(self, small: PrivateQuantile) -> DrawCheck:
        """Choices for as many rows at each point as one e-fold of probability is worth."""
        each = min(max(1, round(1 / self.rate)), _MOST_TIED)
        rows = np.repeat(np.arange(_CHECKED_SPAN + 1), each)
        return releases_follow(
            f"choices for {len(rows)} rows",
            lambda rng: round(small.release(rows, rng=rng)),
            cumulated(small.probabilities(rows)),
        )

    def _neighbors(self, rest: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Neighbors of a data set that has one row more than ``rest``."""
        if self.relation is not NeighboringRelation.REPLACE_ONE:
            return [rest]
        return [tuple(sorted((*rest, v))) for v in range(_CHECKED_SPAN + 1)]

    def __repr__(self) -> str:
        return f"private_quantile({float(self.quantile):g}; {self.guarantee!r})"


def _excess(p: Floats, q: Floats, factor: float) -> float:
    """The divergence, without what is rounding."""
    return float(np.maximum(p - factor * q * (1 + 1e-12), 0).sum())


def private_quantile(
    quantile: Number = Fraction(1, 2),
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    method: Method = "interpolated",
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PrivateQuantile:
    """Create a mechanism for a quantile of a column, by default the median.

    Args:
        quantile: Level of the quantile, between 0 and 1.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        epsilon: Privacy loss.
        method: `"interpolated"` interpolates ranks between the values. `"exponential"` is the
            exponential mechanism. `"permute_and_flip"` is better for few possible outputs: at most
            2**16 multiples of a coarse `granularity`.
        granularity: Spacing of the outputs, a power of two. The default is fine enough for most
            data.
        relation: Neighboring relation. Under add/remove the number of rows stays private.

    Returns:
        A mechanism with `release(values)`, `interval(confidence)` (in ranks) and `guarantee`.

    Raises:
        InvalidArgument: The level, the bounds, the method or the granularity are not valid.

    Privacy:
        epsilon-DP for one row.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.private_quantile(0.5, lower=0, upper=100, epsilon=1)
        >>> 0 <= mechanism.release([12, 37, 41, 58, 93]) <= 100
        True

    See Also:
        `private_quantiles`. For tables, use `Table.median` and `Table.quantiles`.

    References:
        McSherry and Talwar (2007). Smith (2011). Asi and Duchi (2020). McKenna and Sheldon (2020).
        Durfee (2025). [Proof](../theory/theorems.md#mechanisms.quantiles.private_quantile).
    """
    # Theorem: epsilon-DP under `relation`, and of bounded range but for "permute_and_flip".
    # Proof: with weights exp(-rate * score) the log-ratio of two neighbors lies, but for one
    #   constant, within rate times the changes of the scores. A score is the distance of the
    #   target `quantile * (n + 1)` to the ranks of the point. Knots of neighbors interlace, so a
    #   replaced row moves a rank by at most 1 and the target not at all; an added row moves their
    #   difference by at least `-quantile` and at most `1 - quantile`. See theory/smooth.
    # Source: McSherry, Talwar 2007; Smith 2011; Asi, Duchi 2020; McKenna, Sheldon 2020 (the flips);
    #   Durfee 2025 (the climbing). B48.
    # Needs: public bounds and grid. The number of rows may be secret under ADD_REMOVE.
    share = probability("quantile", quantile, zero=False, one=False)
    if share.denominator > _LARGEST_DENOMINATOR:
        raise InvalidArgument(f"quantile must have a denominator of at most 2**20, got {quantile}.")
    central_relation(relation)
    one_of("method", method, get_args(Method))
    column, stride = SortedColumn.of(lower, upper, granularity), 1
    if method == "permute_and_flip":
        if column.span > _MOST_FLIPS:
            raise InvalidArgument(
                "permute_and_flip takes at most 2**16 points: give a coarse grid."
            )
        column, stride = column.refined()
    return PrivateQuantile(
        column=column,
        quantile=share,
        epsilon=positive("epsilon", epsilon),
        method=method,
        relation=relation,
        stride=stride,
    )


# ── Many quantiles ───────────────────────────────────────────────────────────────────────────────


_MOST = 1 << 10
# Binary digits of the grid on which splits are followed: more than there are depths.
_FOLLOWED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateQuantiles(Mechanism):
    """Several private quantiles of a column. Made by `private_quantiles`."""

    column: SortedColumn
    q: tuple[Fraction, ...]
    epsilon: Fraction
    relation: NeighboringRelation

    @property
    def depth(self) -> int:
        """How often the column is split: every row takes part in one choice each time."""
        return len(self.q).bit_length()

    @property
    def step(self) -> Fraction:
        """The epsilon of one choice, for a row added or removed."""
        replaced = 2 if self.relation is NeighboringRelation.REPLACE_ONE else 1
        return self.epsilon / (self.depth * replaced)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release of all quantiles."""
        one = events.BoundedRangeEvent(self.epsilon / self.depth)
        return Guarantee(events.repeat(one, self.depth), self.relation)

    @property
    def std(self) -> float:
        """A choice has no standard deviation that holds for all data."""
        raise Unsupported("A chosen quantile has no standard deviation.")

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> list[float]:
        """Release all quantiles of a column.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            One value per level, in increasing order.

        Raises:
            OutOfDomain: The input does not have the right shape.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_quantiles([0.25, 0.75], lower=0, upper=100, epsilon=1)
            >>> len(mechanism.release([12, 37, 41]))
            2
        """
        codes = self.column.sorted(values)
        found = [0] * len(self.q)
        source = resolve_rng(rng)
        self._split(
            codes,
            (0, self.column.span),
            (0, len(found)),
            found,
            lambda choice: choice.draw(source),
        )
        return [self.column.number(place) for place in found]

    def _split(
        self,
        codes: Ints,
        ends: tuple[int, int],
        part: tuple[int, int],
        found: list[int],
        choose: Callable[[PiecewiseExponential], int],
    ) -> None:
        """Fill in the levels of ``part``, from the values that lie between ``ends``."""
        first, last = part
        if first == last:
            return
        middle = (first + last) // 2
        below = self.q[first - 1] if first else Fraction(0)
        above = self.q[last] if last < len(self.q) else Fraction(1)
        level = (self.q[middle] - below) / (above - below)
        low, high = ends
        if low == high:
            found[first:last] = [low] * (last - first)
            return
        level = level.limit_denominator(_LARGEST_DENOMINATOR)
        choice = PiecewiseExponential(
            values=codes - low,
            span=high - low,
            level=level,
            climbing=True,
            rate=self.step / (2 * max(level, 1 - level)),
        )
        place = low + choose(choice)
        found[middle] = place
        # A value at the split belongs to one side only.
        cut = int(np.searchsorted(codes, place))
        self._split(codes[:cut], (low, place), (first, middle), found, choose)
        self._split(codes[cut:], (place, high), (middle + 1, last), found, choose)

    def certify(self) -> Certificate:
        """Recompute the guarantee of one choice, for the hardest level.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_quantiles([0.25, 0.75], lower=0, upper=100, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        single = PrivateQuantile(
            column=self.column,
            quantile=Fraction(1, 2),
            epsilon=self.step,
            method="interpolated",
            relation=NeighboringRelation.ADD_REMOVE,
        )
        one = single.certify()
        return Certificate(
            mechanism=repr(self),
            guarantee=self.guarantee,
            checks=one.checks,
            drawn=(*one.drawn, self._charged(), self._drawn()),
        ).demand()

    def _charged(self) -> DrawCheck:
        """What the choices that one person takes part in cost together, at most."""
        span = 1 << _FOLLOWED
        rows = np.arange(1, span, 2)
        worst = 0.0
        for row in (0, len(rows) // 3, len(rows) - 1):
            others = np.delete(rows, row)
            if self.relation is NeighboringRelation.REPLACE_ONE:
                moved = [np.sort(np.append(others, place)) for place in (0, span // 2, span)]
            else:
                moved = [others]
            with_row = self._followed(rows, span)
            for neighbor in moved:
                parts = zip(with_row, self._followed(neighbor, span), strict=True)
                worst = max(worst, sum(_difference(one, other) for one, other in parts))
        return DrawCheck(
            part=f"choices of {len(self.q)} levels",
            found=worst,
            allowed=self.guarantee.epsilon(),
            route="cost of the choices that see a person, added up, on neighbors",
        )

    def _followed(self, rows: Ints, span: int) -> list[PiecewiseExponential]:
        """The choices of a release in which always the middle is chosen."""
        seen: list[PiecewiseExponential] = []

        def choose(choice: PiecewiseExponential) -> int:
            seen.append(choice)
            return choice.span // 2

        self._split(rows, (0, span), (0, len(self.q)), [0] * len(self.q), choose)
        return seen

    def _drawn(self) -> DrawCheck:
        middle = len(self.q) // 2
        level = self.q[middle].limit_denominator(_LARGEST_DENOMINATOR)
        small = replace(self, column=SortedColumn(first=0, span=_CHECKED_SPAN, exponent=0))
        choice = PrivateQuantile(
            column=small.column,
            quantile=level,
            epsilon=self.step,
            method="interpolated",
            relation=NeighboringRelation.ADD_REMOVE,
        )
        each = min(max(1, round(1 / choice.rate)), _MOST_TIED)
        rows = np.repeat(np.arange(_CHECKED_SPAN + 1), each)
        return releases_follow(
            "middle level",
            lambda rng: round(small.release(rows, rng=rng)[middle]),
            cumulated(choice.probabilities(rows)),
            many=max(64, FEW // len(self.q)),
        )

    def __repr__(self) -> str:
        return f"private_quantiles({len(self.q)} levels; {self.guarantee!r})"


def _difference(one: PiecewiseExponential, other: PiecewiseExponential) -> float:
    """What one choice costs for rows that differ: a range of probability for each of them."""
    apart = Counter(one.values.tolist())
    apart.subtract(other.values.tolist())
    rows = sum(map(abs, apart.values()))
    return rows * float(2 * one.rate * max(one.level, 1 - one.level))


def private_quantiles(
    q: Sequence[Number],
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PrivateQuantiles:
    """Create a mechanism for several quantiles of a column.

    It chooses the middle level first and then continues on each side, so m levels need about log2(m
    + 1) choices.

    Args:
        q: Levels between 0 and 1, strictly increasing, at most 1024.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        epsilon: Privacy loss of all quantiles together.
        granularity: Spacing of the outputs, a power of two. The default is fine enough for most
            data.
        relation: Neighboring relation. Under add/remove the number of rows stays private.

    Returns:
        A mechanism. `release(values)` returns one number per level, in increasing order.

    Raises:
        InvalidArgument: The levels, the bounds or the granularity are not valid.

    Privacy:
        All quantiles together are epsilon-DP for one row.

    Examples:
        >>> import discreet
        >>> levels = [0.25, 0.5, 0.75]
        >>> mechanism = discreet.private_quantiles(levels, lower=0, upper=100, epsilon=1)
        >>> quartiles = mechanism.release([12, 37, 41, 58, 93])
        >>> quartiles == sorted(quartiles)
        True

    See Also:
        `private_quantile`.

    References:
        Kaplan, Schnapp and Stemmer (2022).
        [Proof](../theory/theorems.md#mechanisms.quantiles.private_quantiles).
    """
    # Theorem: epsilon-DP under `relation`.
    # Proof: a row added or removed is in one part of every splitting, the parts being made by
    #   points that were released; so of the choices of one depth only one changes, and its
    #   log-ratio has a range of epsilon / depth (`private_quantile`). A replaced row changes at
    #   most two, each made for half of that. Depths compose.
    # Source: Kaplan, Schnapp, Stemmer 2022. B48.
    # Needs: levels strictly increasing, in (0, 1); public bounds and grid.
    given = as_tuple("q", q)
    asked = tuple(probability("levels", level, zero=False, one=False) for level in given)
    if not asked or len(asked) > _MOST or any(a >= b for a, b in pairwise(asked)):
        raise InvalidArgument("q must be strictly increasing, from 1 to 1024 of them.")
    central_relation(relation)
    return PrivateQuantiles(
        column=SortedColumn.of(lower, upper, granularity),
        q=asked,
        epsilon=positive("epsilon", epsilon),
        relation=relation,
    )
