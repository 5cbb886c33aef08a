"""Variance and standard deviation of a column, released within what they can be at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number, root_down
from discreet.core._validate import count, flag, one_of
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.bounded.mechanism import (
    BoundedLaplaceMechanism,
    BoundedOutput,
    bounded_laplace,
    clamp_output,
    reflect_output,
)
from discreet.mechanisms.data_dependent._smooth_statistics import SmoothVariance
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import RandomSource

Method: TypeAlias = Literal["clamp", "fold", "bounded"]

# A statistic as a double is off by less than a 2**-52 part of its largest value; twice that, and
# the rounding of the sensitivity itself, is added to the sensitivity.
_ALLOWANCE = Fraction(1, 1 << 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSpread(Mechanism):
    """A variance or a standard deviation. Made by `private_variance` and `private_sd`."""

    column: SortedColumn
    public_rows: int
    inner: BoundedLaplaceMechanism | BoundedOutput
    takes_root: Literal["never", "before", "after"]
    """Whether the noise is on the variance, on its root, or on the variance before the root."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: one of the rows is replaced, their number is public."""
        return self.inner.guarantee

    @property
    def std(self) -> float:
        """At most this: roots differ by no more than the root of the difference."""
        return math.sqrt(self.inner.std) if self.takes_root == "after" else self.inner.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the error with probability at least ``confidence``, for all data."""
        high = self.inner.interval(confidence)[1]
        if self.takes_root == "after":
            high = math.sqrt(high)
        return -high, high

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """The noisy statistic."""
        codes = self.column.sorted(values, rows=self.public_rows)
        exact = (
            float(SmoothVariance(public_rows=self.public_rows).value(codes)) * self.column.step**2
        )
        noisy = self.inner.release(
            math.sqrt(exact) if self.takes_root == "before" else exact, rng=rng
        )
        return math.sqrt(noisy) if self.takes_root == "after" else float(noisy)

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise from its exact law."""
        return self.inner.certify()

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
    """The sample variance of a column of a public number of rows.

    Theorem: (epsilon, delta)-DP if one row is replaced; the release lies between 0 and the
        largest variance that rows between the bounds can have.
    Proof: with m the mean of all rows but the replaced one, the variance changes by ``((b - m)^2
        - (a - m)^2) / rows``, at most ``(upper - lower)^2 / rows``. Half of the rows at either
        bound have the largest variance.
    Source: B2, B45.
    Needs: public bounds and number of rows, at least 2.
    """
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
    """The sample standard deviation: the root of a noisy variance, or with noise of its own.

    The root is free and better, unless the deviation is below ``(upper - lower) / (2
    sqrt(rows))``; then ``direct=True`` is.

    Theorem: (epsilon, delta)-DP if one row is replaced; the release is never negative.
    Proof: of the root, as for `private_variance`: post-processing. Directly: the deviation is the
        length of the rows without their mean, over sqrt(rows - 1). A row that moves by d moves
        that vector by ``d sqrt(1 - 1 / rows)``, so the deviation by at most ``d / sqrt(rows)``.
        (Not by ``d / rows``, as has been published: M49.)
    Source: B2, B45.
    Needs: public bounds and number of rows, at least 2.
    """
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
