"""Measure how often an interval covers the truth in simulations, with the error of that rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import ClassVar, Literal, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import number, short
from discreet.core.tabular import Record
from discreet.mechanisms._inputs import read_column
from discreet.noise.distribution import Floats
from discreet.noise.random_source import RandomSource, resolve_rng, seeded_rng
from discreet.noise.uniform import uniform_integers
from discreet.query.result import Result, records

# ── Coverage by simulation ───────────────────────────────────────────────────────────────────────


Method: TypeAlias = Callable[[Floats, RandomSource], tuple[Floats, Floats]]
"""Ends of one interval for each row of a table of made-up columns."""
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""A table of independent numbers of the law under test."""

_CELLS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CoverageEstimate(Result):
    """How often an interval held the truth, in a simulation."""

    held: int
    trials: int
    nominal: float
    width: float
    """Median."""
    quartiles: tuple[float, float]
    """Of the width."""
    plain: float
    """Median width of the normal interval of the same columns, without privacy."""

    @property
    def rate(self) -> float:
        """Share of the trials in which the truth was held."""
        return self.held / self.trials

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the share of the trials in which the truth was held, with Wilson's interval.

        Args:
            confidence: Probability with which the interval holds the true coverage.

        Returns:
            One record: value, std, low and high.
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        low, high = self.bounds((1 + inside) / 2)
        std = math.sqrt(self.rate * (1 - self.rate) / self.trials)
        return records((), [()], value=[self.rate], std=[std], low=[low], high=[high])

    def bounds(self, confidence: float = 0.999) -> tuple[float, float]:
        """Wilson's interval for the true coverage, one-sided on each side at ``confidence``."""
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        z = NormalDist().inv_cdf(inside)
        n, p = self.trials, self.rate
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, center - half), min(1.0, center + half)

    def holds(self, confidence: float = 0.999) -> bool:
        """Whether the true coverage is nominal or above, with this confidence."""
        return self.bounds(confidence)[0] >= self.nominal

    def __str__(self) -> str:
        low, high = self.bounds()
        return (
            f"coverage {short(self.rate)} ({short(low)} to {short(high)}) of "
            f"{number(self.nominal)}, width {short(self.width)} ({short(self.plain)} without "
            "privacy)"
        )

    __repr__ = __str__


def coverage(
    method: Method,
    *,
    draw: Draw,
    truth: float,
    rows: int,
    confidence: float,
    trials: int = 20_000,
    seed: int = 0,
) -> CoverageEstimate:
    """Measure by simulation how often an interval covers the true parameter.

    Args:
        method: Function `(table, rng)` that returns the lower and upper ends, one interval per row
            of the table. Plans have a method `simulate` for this; `per_column` adapts a function
            for one column.
        draw: Function `(generator, size)` that draws a table of simulated values.
        truth: True parameter of the simulated distribution.
        rows: Number of values per simulated column, at least 2.
        confidence: Confidence level that the interval claims.
        trials: Number of simulated columns.
        seed: Seed of the simulation.

    Returns:
        An estimate with `rate`, `bounds(confidence)`, `holds(confidence)` and widths.

    Raises:
        InvalidArgument: A number is outside its range, or `draw` returns a table of another size.
        OutOfDomain: `method` does not return one interval per row.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.mean(
        ...     lower=-4, upper=4, public_rows=50, epsilon=1, variance=1
        ... )
        >>> estimate = discreet.intervals.coverage(
        ...     plan.simulate,
        ...     draw=lambda generator, size: generator.normal(size=size),
        ...     truth=0,
        ...     rows=50,
        ...     confidence=0.95,
        ...     trials=200,
        ... )
        >>> 0.8 < estimate.rate <= 1
        True
    """
    many, size = check.count("trials", trials), check.count("rows", rows, minimum=2)
    nominal = float(check.probability("confidence", confidence, zero=False, one=False))
    aim = float(check.finite("truth", truth))
    made_up, bits = np.random.default_rng(seed), seeded_rng(seed)
    held, widths, plain = 0, np.empty(many), np.empty(many)
    z = 2 * NormalDist().inv_cdf((1 + nominal) / 2) / math.sqrt(size)
    piece = max(1, _CELLS // size)
    for start in range(0, many, piece):
        part = slice(start, min(start + piece, many))
        table = np.asarray(draw(made_up, (part.stop - start, size)), dtype=np.float64)
        if table.shape != (part.stop - start, size):
            raise InvalidArgument("draw must give a table of the size that it is asked for.")
        low, high = method(table, bits)
        if len(low) != len(table) or not np.all(low <= high):  # also catches NaN
            raise OutOfDomain("method must give one interval, low <= high, for each row.")
        held += int(((low <= aim) & (aim <= high)).sum())
        widths[part] = high - low
        plain[part] = z * table.std(axis=1, ddof=1)
    lower, middle, upper = np.quantile(widths, (0.25, 0.5, 0.75))
    return CoverageEstimate(
        held=held,
        trials=many,
        nominal=nominal,
        width=float(middle),
        quartiles=(float(lower), float(upper)),
        plain=float(np.median(plain)),
    )


def per_column(release: Callable[[Floats, RandomSource], tuple[float, float]]) -> Method:
    """Adapt an interval for one column to a method for `coverage`.

    Args:
        release: Function `(column, rng)` that returns the lower and the upper end.

    Returns:
        A function for tables that calls `release` for each row.

    Examples:
        >>> import discreet
        >>> method = discreet.intervals.per_column(lambda column, rng: (min(column), max(column)))
        >>> low, high = method([[1, 2, 3], [4, 5, 6]], discreet.seeded_rng(1))
        >>> low.tolist(), high.tolist()
        ([1.0, 4.0], [3.0, 6.0])
    """

    def method(table: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        ends = np.array([release(column, rng) for column in table], dtype=np.float64)
        return ends[:, 0], ends[:, 1]

    return method


# ── Leave-one-out diagnostics ────────────────────────────────────────────────────────────────────


Statistic: TypeAlias = Literal["mean", "median", "variance"]
_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """By how much a statistic of these very rows moves if one of them is left out.

    A function of private data: not a sensitivity. It is not a number, so that no mechanism takes it
    for one, and is not shown.
    """

    not_private: ClassVar[bool] = True
    statistic: Statistic
    value: float = field(repr=False)
    """Private."""

    def __float__(self) -> NoReturn:
        raise InvalidArgument(
            "A leave-one-out difference is private and no sensitivity: noise scaled to it protects "
            "nobody. Declare bounds, and use a global or a smooth sensitivity."
        )


def leave_one_out(values: ArrayLike, *, statistic: Statistic) -> LeaveOneOut:
    """Compute the largest change of a statistic when one row is left out.

    This is a diagnostic of private data. It is not a sensitivity, and noise scaled to it protects
    nobody.

    Args:
        values: Private column of at least 2 numbers, or 3 for the variance.
        statistic: `"mean"`, `"median"` or `"variance"`.

    Returns:
        An object that hides the number from its representation and refuses to be a float. Its
        attribute `value` is private.

    Raises:
        InvalidArgument: `statistic` is not one of the three.
        OutOfDomain: `values` is not a column, or has too few numbers.

    Privacy:
        The result is private data, with no guarantee. Do not publish it.

    Examples:
        >>> import discreet
        >>> discreet.intervals.leave_one_out([1, 2, 3, 10], statistic="mean").value
        2.0
    """
    check.one_of("statistic", statistic, get_args(Statistic))
    x = read_column(values)
    x = x[np.isfinite(x)]
    least = 3 if statistic == "variance" else 2
    if len(x) < least:
        raise OutOfDomain(f"values must be a sequence of {least} numbers or more.")
    moved = {"mean": _mean, "variance": _variance, "median": _median}[statistic](x)
    return LeaveOneOut(statistic=statistic, value=float(np.abs(moved).max()))


def _mean(x: Floats) -> Floats:
    """Xbar - xbar without i = (x_i - xbar) / (n - 1)."""
    return np.asarray((x - x.mean()) / (len(x) - 1))


def _variance(x: Floats) -> Floats:
    """The sum of squares without i is less by n / (n - 1) (x_i - xbar)^2."""
    n, off = len(x), (x - x.mean()) ** 2
    total = off.sum()
    return np.asarray(total / (n - 1) - (total - n / (n - 1) * off) / (n - 2))


def _median(x: Floats) -> Floats:
    n, half = len(x), len(x) // 2
    middle = np.partition(x, sorted({max(half - 1, 0), half, min(half + 1, n - 1)}))
    if n % 2:  # without a row on either side, or the middle one: of the two that are then inner
        left, center, right = middle[half - 1], middle[half], middle[half + 1]
        others = [(left + center) / 2, (center + right) / 2, (left + right) / 2]
        return np.asarray([center - other for other in others])
    left, right = middle[half - 1], middle[half]
    return np.asarray([(left + right) / 2 - left, (left + right) / 2 - right])


def fractional_ages(ages: ArrayLike, *, rng: RandomSource | None = None) -> Floats:
    """Ages in whole years made fractional: plus a day of the year, uniform (C8).

    Data preparation, not a mechanism: it protects nobody.
    """
    years = read_column(ages)
    if (years != np.floor(years)).any():
        raise OutOfDomain("ages must be a sequence of whole numbers.")
    days = 1 + uniform_integers(_DAYS, len(years), resolve_rng(rng))
    return np.asarray(years + days / _DAYS)
