"""Noise before a query against noise after it: what both cost, for mean, variance and median.

Local: every client adds Laplace noise of scale b = range / epsilon to its own number. Central: the
answer gets it. One row is replaced between neighbors, and the number of rows n is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

from scipy.optimize import brentq
from scipy.special import erfcx

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.tabular import Record, Tabular, aligned

Statistic: TypeAlias = Literal["mean", "variance", "median"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralLocalComparison:
    """The error of one statistic of n rows at one epsilon, noise before and after the query."""

    statistic: Statistic
    public_rows: int
    epsilon: float
    central: float
    """Root mean squared error of the noisy answer; of a median, of a choice by rank."""
    local: float
    """Of the best use of noisy rows: the known noise is taken off a variance."""
    uncorrected: float
    """Of noisy rows taken as they are."""
    matched: float
    """The epsilon at which noisy rows are as good as the noisy answer."""
    output: float
    """Of Laplace noise on the answer, for its global sensitivity."""
    sampling: float
    """Deviation of the statistic itself, for normal rows."""
    exact: bool = True
    """Or for many normal rows."""

    def width(self, confidence: float = 0.95, *, local: bool) -> float:
        """About how wide an interval for the population will be, before anything is sent.

        For errors that are normal: sampling and noise together.
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        z = 2 * NormalDist().inv_cdf((1 + inside) / 2)
        return z * math.hypot(self.sampling, self.local if local else self.central)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CentralLocalComparisons(Tabular):
    """The same for several numbers of rows; drawn by `discreet.plot`."""

    comparisons: tuple[CentralLocalComparison, ...]
    width: float
    epsilon: float
    std: float

    def of(self, statistic: Statistic) -> tuple[CentralLocalComparison, ...]:
        """The rows of one statistic."""
        return tuple(row for row in self.comparisons if row.statistic == statistic)

    def rows(self) -> list[Record]:
        """List each comparison: statistic, rows, both errors, and the epsilon that matches."""
        return [
            {
                "statistic": one.statistic,
                "rows": one.public_rows,
                "central": one.central,
                "local": one.local,
                "matched epsilon": one.matched,
            }
            for one in self.comparisons
        ]

    def __str__(self) -> str:
        return "\n".join(["Errors with one trusted server and with none:", *aligned(self.rows())])

    __repr__ = __str__


def compare_central_local(
    *, lower: Number, upper: Number, public_rows: int, epsilon: Number, std: Number
) -> list[CentralLocalComparison]:
    """Compare the errors of central and local Laplace noise for one column.

    In the local model each client adds noise to its own number. In the central model noise is added
    to the statistic.

    Args:
        lower: Public lower bound of the values.
        upper: Public upper bound.
        public_rows: Public number of rows, at least 2.
        epsilon: Privacy loss in both models.
        std: Public guess of the standard deviation of the rows.

    Returns:
        One comparison each for mean, variance and median, with the errors `central` and `local` and
        the epsilon `matched` at which both errors are equal. The median is left out if `std` is 0.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        The comparison reads public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> rows = discreet.intervals.compare_central_local(
        ...     lower=0, upper=100, public_rows=10_000, epsilon=1, std=10
        ... )
        >>> [(row.statistic, round(row.matched, 1)) for row in rows]
        [('mean', 100.0), ('variance', 24.0), ('median', 249.7)]

    See Also:
        `compare_by_rows`, [theory](../theory/intervals.md).
    """
    # Theorem: the errors of mean and variance are exact, and at `matched` both ways have the same
    #   mean squared error. For the median see `_median`.
    # Proof: central, 2 (sensitivity / epsilon)^2 with sensitivities w/n and w^2/n. Local mean,
    #   2 b^2 / n. The sample variance S of noisy rows has mean s^2 + 2 b^2 and variance
    #   `4 b^4 (5n - 3) / (n (n - 1)) + 8 b^2 s^2 / (n - 1)`: docs/theory/intervals.md. With
    #   u = 1 / epsilon^2 matching is a quadratic equation with one positive root.
    # Source: Biswal 2024, section 5.6, corrected: there the cross terms of a square are missing.
    low, high = check.bounds(lower, upper)
    w = float(check.moderate("The distance of lower and upper", high - low))
    n = check.count("public_rows", public_rows, minimum=2)
    price = float(check.moderate("epsilon", check.positive("epsilon", epsilon)))
    deviation = float(check.moderate("std", check.non_negative("std", std)))
    found = [_mean(w, n, price, deviation), _variance(w, n, price, deviation**2)]
    if deviation > 0:  # a constant column has no density
        found.append(_median(w, n, price, deviation))
    return found


def compare_by_rows(
    *, lower: Number, upper: Number, rows: Sequence[int], epsilon: Number, std: Number
) -> CentralLocalComparisons:
    """Compare central and local noise for several numbers of rows.

    Args:
        lower: Public lower bound of the values.
        upper: Public upper bound.
        rows: Numbers of rows, each at least 2.
        epsilon: Privacy loss in both models.
        std: Public guess of the standard deviation of the rows.

    Returns:
        A table of comparisons that you can print or draw with `discreet.plot`.

    Raises:
        InvalidArgument: `rows` is empty, or an argument is outside its range.

    Privacy:
        The comparison reads public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> table = discreet.intervals.compare_by_rows(
        ...     lower=0, upper=100, rows=[100, 10_000], epsilon=1, std=10
        ... )
        >>> [row.public_rows for row in table.of("mean")]
        [100, 10000]

    See Also:
        `compare_central_local`.
    """
    several = [check.count("rows", n, minimum=2) for n in check.as_tuple("rows", rows)]
    if not several:
        raise InvalidArgument("rows must be one number of rows or more.")
    setting = {"lower": lower, "upper": upper, "epsilon": epsilon, "std": std}
    found = [
        row for n in sorted(several) for row in compare_central_local(public_rows=n, **setting)
    ]
    order = {"mean": 0, "variance": 1, "median": 2}
    return CentralLocalComparisons(
        comparisons=tuple(sorted(found, key=lambda row: order[row.statistic])),
        width=float(upper) - float(lower),
        epsilon=float(epsilon),
        std=float(std),
    )


def _mean(w: float, n: int, epsilon: float, std: float) -> CentralLocalComparison:
    central, local = math.sqrt(2) * w / (n * epsilon), math.sqrt(2 / n) * w / epsilon
    return CentralLocalComparison(
        statistic="mean",
        public_rows=n,
        epsilon=epsilon,
        central=central,
        local=local,
        uncorrected=local,
        matched=math.sqrt(n) * epsilon,
        output=central,
        sampling=std / math.sqrt(n),
    )


def _variance(w: float, n: int, epsilon: float, square: float) -> CentralLocalComparison:
    b, central = w / epsilon, math.sqrt(2) * w * w / (n * epsilon)
    fourth, second = 4 * (5 * n - 3) / (n * (n - 1)), 8 * square / (n - 1)
    error = fourth * b**4 + second * b**2
    # central^2 = fourth w^4 u^2 + second w^2 u, solved without cancellation
    c, d = fourth * w**4, second * w**2
    u = 2 * central**2 / (d + math.sqrt(d * d + 4 * c * central**2))
    return CentralLocalComparison(
        statistic="variance",
        public_rows=n,
        epsilon=epsilon,
        central=central,
        local=math.sqrt(error),
        uncorrected=math.sqrt(error + 4 * b**4),
        matched=1 / math.sqrt(u),
        output=central,
        sampling=square * math.sqrt(2 / (n - 1)),
    )


def _median(w: float, n: int, epsilon: float, std: float) -> CentralLocalComparison:
    """Of many normal rows.

    Central: a choice with weight exp(-epsilon d / 2), d in ranks: about Laplace noise of scale
    2 / epsilon on the rank, over n times the density at the median. Local: the median of noisy rows
    has the deviation 1 / (2 g sqrt(n)), g the density of row plus noise there; that of the median
    of the rows is taken off. (Not biased only
    because normal rows are symmetric.) With its global sensitivity, w, a noisy median is worse than
    either.
    """
    dense = 1 / (std * math.sqrt(2 * math.pi))
    central = min(math.sqrt(2) * 2 / (epsilon * n * dense), w)

    def whole(price: float) -> float:
        b = w / price
        # exp(r^2 / 2) Phi(-r) / b with r = std / b
        at = float(erfcx(std / (b * math.sqrt(2)))) / (2 * b)
        return 1 / (2 * math.sqrt(n) * at)

    # With ever less noise, the error of sampling is left; what is compared is what noise adds.
    sampling = 1 / (2 * math.sqrt(n) * dense)

    def local(price: float) -> float:
        return math.sqrt(max(whole(price) ** 2 - sampling**2, 0.0))

    def added(price: float) -> float:
        return local(price) - central

    low, high = epsilon / 1e3, epsilon * 1e6
    matched = brentq(added, low, high) if added(low) > 0 > added(high) else math.inf
    return CentralLocalComparison(
        statistic="median",
        public_rows=n,
        epsilon=epsilon,
        central=central,
        local=local(epsilon),
        uncorrected=local(epsilon),
        matched=float(matched),
        output=math.sqrt(2) * w / epsilon,
        sampling=sampling,
        exact=False,
    )
