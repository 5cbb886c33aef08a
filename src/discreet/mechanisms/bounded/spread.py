"""Variance and standard deviation of a column, released within what they can be at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number, root_down
from discreet.core._validate import count, flag, one_of
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import Handed, charges, moves, tells_nothing_else
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.bounded.mechanism import (
    BoundedLaplaceMechanism,
    BoundedOutput,
    bounded_laplace,
    clamp_output,
    reflect_output,
)
from discreet.mechanisms.data_dependent._smooth_statistics import SmoothVariance
from discreet.mechanisms.mechanism import Certificate, DrawCheck, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import RandomSource

Method: TypeAlias = Literal["clamp", "fold", "bounded"]

# A statistic as a double is off by less than a 2**-52 part of its largest value; twice that, and
# the rounding of the sensitivity itself, is added to the sensitivity.
_ALLOWANCE = Fraction(1, 1 << 50)
# A certificate makes up columns of so many rows, at most.
_MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSpread(Mechanism):
    """A private variance or standard deviation.

    Made by `private_variance` and `private_std`.
    """

    column: SortedColumn
    public_rows: int
    inner: BoundedLaplaceMechanism | BoundedOutput
    takes_root: Literal["never", "before", "after"]
    """Whether the noise is on the variance, on its root, or on the variance before the root."""

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release, if one row is replaced."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """Upper bound of the standard deviation of the error."""
        return math.sqrt(self.inner.std) if self.takes_root == "after" else self.inner.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the error of a release, for all data.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_variance(lower=0, upper=10, public_rows=3, epsilon=1)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        high = self.inner.interval(confidence)[1]
        if self.takes_root == "after":
            high = math.sqrt(high)
        return -high, high

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """Release the statistic of a column.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy statistic, zero or above.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_variance(lower=0, upper=10, public_rows=3, epsilon=1)
            >>> mechanism.release([1, 2, 9]) >= 0
            True
        """
        codes = self.column.sorted(values, rows=self.public_rows)
        exact = (
            float(SmoothVariance(public_rows=self.public_rows).value(codes)) * self.column.step**2
        )
        noisy = self.inner.release(
            math.sqrt(exact) if self.takes_root == "before" else exact, rng=rng
        )
        return math.sqrt(noisy) if self.takes_root == "after" else float(noisy)

    def certify(self) -> Certificate:
        """Recompute the guarantee from exact distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.private_variance(lower=0, upper=10, public_rows=3, epsilon=1)
            >>> mechanism.certify().holds
            True
        """
        inner = self.inner.certify()
        drawn = (
            *inner.drawn,
            *self._moved(),
            charges("what is charged", self.guarantee, self.inner.guarantee),
        )
        return replace(inner, mechanism=repr(self), guarantee=self.guarantee, drawn=drawn).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        many = self.public_rows
        if many > _MOST_ROWS:
            return ()
        low, high = self.column.number(0), self.column.number(self.column.span)
        worst, answers = 0.0, []
        for share in (0, 1, many // 2, many - 1):
            rows = np.repeat([low, high], [many - share, share])
            values = []
            for last in (low, high):
                rows[0] = last
                noted, told = Handed(self.inner), Handed(self.inner, answer=0.0)
                replace(self, inner=noted).release(rows)  # type: ignore[arg-type]
                values.append(float(noted.handed))
                answers.append(replace(self, inner=told).release(rows))  # type: ignore[arg-type]
            worst = max(worst, abs(values[0] - values[1]))
        return (
            moves(f"{many} rows at the bounds", worst, float(self._allowed)),
            tells_nothing_else("spread", answers),
        )

    @property
    def _allowed(self) -> Fraction:
        """By how much the noise lets neighbors differ."""
        if isinstance(self.inner, BoundedLaplaceMechanism):
            return self.inner.outputs.shift * Fraction(2) ** self.inner.column.exponent
        assert isinstance(self.inner.inner, AdditiveMechanism)  # noqa: S101 - made with Laplace noise
        return self.inner.inner.sensitivity

    def __repr__(self) -> str:
        name = "private_variance" if self.takes_root == "never" else "private_std"
        return f"{name}({self.inner!r})"


def private_variance(
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number = 0,
    method: Method = "clamp",
    granularity: Number | None = None,
) -> PrivateSpread:
    """Create a mechanism for the sample variance of a column.

    The number of rows is public, and the output lies between 0 and the largest possible variance.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Number of rows, at least 2.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP.
        method: How outputs stay within their range: `"clamp"`, `"fold"` (reflection) or `"bounded"`
            (bounded Laplace noise).
        granularity: Spacing to which values are rounded, a power of two.

    Returns:
        A mechanism with `release(values)`, `interval(confidence)`, `std` and `guarantee`.

    Raises:
        InvalidArgument: The bounds, the number of rows, the budget or the method are not valid.

    Privacy:
        (epsilon, delta)-DP if one row is replaced (bounded DP).

    Examples:
        >>> import discreet
        >>> mechanism = discreet.private_variance(lower=0, upper=10, public_rows=5, epsilon=1)
        >>> mechanism.release([1, 2, 4, 8, 9]) >= 0
        True

    See Also:
        `private_std`. For tables, use `Table.variance`.

    References:
        [Proof](../theory/theorems.md#mechanisms.bounded.spread.private_variance).
    """
    # Theorem: (epsilon, delta)-DP if one row is replaced; the release lies between 0 and the
    #   largest variance that rows between the bounds can have.
    # Proof: with m the mean of all rows but the replaced one, the variance changes by `((b - m)^2
    #   - (a - m)^2) / rows`, at most `(upper - lower)^2 / rows`. Half of the rows at either
    #   bound have the largest variance.
    # Source: B2, B45.
    # Needs: public bounds and number of rows, at least 2.
    column, square = _prepare(lower, upper, granularity, public_rows)
    moved = square * (Fraction(1, public_rows) + _ALLOWANCE)
    inner = _within(method, square * _largest(public_rows), moved, epsilon, delta)
    return PrivateSpread(column=column, public_rows=public_rows, inner=inner, takes_root="never")


def private_std(
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number = 0,
    method: Method = "clamp",
    direct: bool = False,
    granularity: Number | None = None,
) -> PrivateSpread:
    """Create a mechanism for the sample standard deviation of a column.

    By default it releases a noisy variance and takes the root.

    Args:
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Number of rows, at least 2.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP.
        method: How outputs stay within their range: `"clamp"`, `"fold"` (reflection) or `"bounded"`
            (bounded Laplace noise).
        direct: Whether to add noise to the standard deviation itself. This is more accurate if it
            is below `(upper - lower) / (2 * sqrt(public_rows))`.
        granularity: Spacing to which values are rounded, a power of two.

    Returns:
        A mechanism with `release(values)`, `interval(confidence)`, `std` and `guarantee`.

    Raises:
        InvalidArgument: The bounds, the number of rows, the budget or the method are not valid.

    Privacy:
        (epsilon, delta)-DP if one row is replaced (bounded DP).

    Examples:
        >>> import discreet
        >>> mechanism = discreet.private_std(lower=0, upper=10, public_rows=5, epsilon=1)
        >>> mechanism.release([1, 2, 4, 8, 9]) >= 0
        True

    See Also:
        `private_variance`.

    References:
        [Proof](../theory/theorems.md#mechanisms.bounded.spread.private_std).
    """
    # Theorem: (epsilon, delta)-DP if one row is replaced; the release is never negative.
    # Proof: of the root, as for `private_variance`: post-processing. Directly: the deviation is the
    #   length of the rows without their mean, over sqrt(rows - 1). A row that moves by d moves
    #   that vector by `d sqrt(1 - 1 / rows)`, so the deviation by at most `d / sqrt(rows)`.
    #   (Not by `d / rows`, as has been published: M49.)
    # Source: B2, B45.
    # Needs: public bounds and number of rows, at least 2.
    column, square = _prepare(lower, upper, granularity, public_rows)
    if not flag("direct", direct):
        moved = square * (Fraction(1, public_rows) + _ALLOWANCE)
        inner = _within(method, square * _largest(public_rows), moved, epsilon, delta)
        return PrivateSpread(
            column=column, public_rows=public_rows, inner=inner, takes_root="after"
        )
    span = column.span * Fraction(2) ** column.exponent
    moved = span * (root_down(Fraction(1, public_rows)) + _ALLOWANCE)
    top = span * (root_down(_largest(public_rows)) + _ALLOWANCE)
    inner = _within(method, top, moved, epsilon, delta)
    return PrivateSpread(column=column, public_rows=public_rows, inner=inner, takes_root="before")


def _prepare(
    lower: Number, upper: Number, granularity: Number | None, public_rows: int
) -> tuple[SortedColumn, Fraction]:
    """The column, and the square of its width."""
    count("public_rows", public_rows, minimum=2)
    column = SortedColumn.of(lower, upper, granularity)
    return column, (column.span * Fraction(2) ** column.exponent) ** 2


def _largest(public_rows: int) -> Fraction:
    """The largest sample variance of rows between 0 and 1."""
    return Fraction((public_rows // 2) * ((public_rows + 1) // 2), public_rows * (public_rows - 1))


def _within(
    method: Method, upper: Fraction, moved: Fraction, epsilon: Number, delta: Number
) -> BoundedLaplaceMechanism | BoundedOutput:
    one_of("method", method, get_args(Method))
    if method == "bounded":
        return bounded_laplace(
            lower=0,
            upper=upper,
            sensitivity=moved,
            epsilon=epsilon,
            delta=delta,
            domain="reals",
            relation=NeighboringRelation.REPLACE_ONE,
        )
    noise = laplace(
        sensitivity=moved,
        epsilon=epsilon,
        delta=delta,
        domain="reals",
        relation=NeighboringRelation.REPLACE_ONE,
    )
    return (reflect_output if method == "fold" else clamp_output)(noise, lower=0, upper=upper)
