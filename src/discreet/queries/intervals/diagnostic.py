"""Looking at private data without privacy: what may be looked at, and never be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import check
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.mechanisms.values import read
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Floats
from discreet.noise.uniform import below

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
    """The largest change of a statistic when one row is left out: a diagnostic, not private (C7).

    In time O(n): sums without one row, and the three middle values for medians.
    """
    check.one_of("statistic", statistic, get_args(Statistic))
    given = read(values)
    least = 3 if statistic == "variance" else 2
    if len(given.shape) != 1 or given.size < least:
        raise OutOfDomain(f"values must be a sequence of {least} numbers or more.")
    x = given.doubles
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
        left, centre, right = middle[half - 1], middle[half], middle[half + 1]
        others = [(left + centre) / 2, (centre + right) / 2, (left + right) / 2]
        return np.asarray([centre - other for other in others])
    left, right = middle[half - 1], middle[half]
    return np.asarray([(left + right) / 2 - left, (left + right) / 2 - right])


def fractional_ages(ages: ArrayLike, *, bits: Bits | None = None) -> Floats:
    """Ages in whole years made fractional: plus a day of the year, uniform (C8).

    Data preparation, not a mechanism: it protects nobody.
    """
    given = read(ages)
    if given.whole is None or len(given.shape) != 1:
        raise OutOfDomain("ages must be a sequence of whole numbers.")
    days = 1 + below(_DAYS, given.size, source_of(bits))
    return np.asarray(given.whole + days / _DAYS)
