"""Noise before a query against noise after it: what both cost, and an interval from local reports.

Local: every client adds Laplace noise of scale b = range / epsilon to its own number. Central: the
answer gets it. One row is replaced between neighbours, and the number of rows n is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.mechanisms.values import read
from discreet.queries.intervals.interval import Interval

Statistic: TypeAlias = Literal["mean", "variance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The error of one statistic of n rows at one epsilon, noise before and after the query."""

    statistic: Statistic
    rows: int
    epsilon: float
    central: float
    """Root mean squared error of the noisy answer."""
    local: float
    """Of the best use of noisy rows: the known noise is taken off a variance."""
    uncorrected: float
    """Of noisy rows taken as they are."""
    matched: float
    """The epsilon at which noisy rows are as good as the noisy answer."""


def reports_interval(reports: ArrayLike, *, level: float = 0.95) -> Interval:
    """An interval for the mean of the population, from numbers to which noise was added (C13).

    Theorem: post-processing of what the clients sent: it costs nothing. It covers at its level if
        the mean of the reports is normal.
    Proof: reports are independent with the population's mean, and their sample variance estimates
        the variance of the rows and of the noise together. Student's law.
    Needs: unbiased reports, at least two, with noise of mean zero and the same scale.
    """
    inside = float(check.probability("level", level, zero=False, one=False))
    given = read(reports)
    if len(given.shape) != 1 or given.size < 2:
        raise InvalidArgument("reports must be a sequence of two numbers or more.")
    numbers, n = given.doubles, given.size
    half = float(stdtrit(n - 1, (1 + inside) / 2) * numbers.std(ddof=1)) / math.sqrt(n)
    mean = float(numbers.mean())
    return Interval(
        low=mean - half,
        high=mean + half,
        value=mean,
        spread=float(numbers.std(ddof=1)),
        nominal=inside,
        guaranteed=None,
    )


def reports_variance(reports: ArrayLike, *, scale: Number) -> float:
    """The sample variance of the rows, from reports with Laplace noise of a public scale (C4).

    Unbiased: the variance of the noise, 2 scale^2, is taken off. It may be negative.
    """
    noise = float(check.positive("scale", scale))
    given = read(reports)
    if len(given.shape) != 1 or given.size < 2:
        raise InvalidArgument("reports must be a sequence of two numbers or more.")
    return float(np.var(given.doubles, ddof=1)) - 2 * noise**2


def central_and_local(
    *, lower: Number, upper: Number, rows: int, epsilon: Number, std: Number
) -> list[Comparison]:
    """Mean and variance, with noise before and after the query (C1-C5).

    ``std`` is the standard deviation of the rows: a public guess, not a function of private data.

    Theorem: the errors are exact, and at ``matched`` both ways have the same mean squared error.
    Proof: central, 2 (sensitivity / epsilon)^2 with sensitivities w/n and w^2/n. Local mean,
        2 b^2 / n. The sample variance S of noisy rows has mean s^2 + 2 b^2 and variance
        ``4 b^4 (5n - 3) / (n (n - 1)) + 8 b^2 s^2 / (n - 1)``: docs/theory/intervals.md. With
        u = 1 / epsilon^2 matching is a quadratic equation with one positive root.
    Source: Biswal 2024, section 5.6, corrected: there the cross terms of a square are missing.
    """
    w = float(check.finite("upper", upper) - check.finite("lower", lower))
    if w <= 0:
        raise InvalidArgument(f"lower must be below upper, got {lower} and {upper}.")
    n = check.count("rows", rows, minimum=2)
    price = float(check.positive("epsilon", epsilon))
    square = float(check.non_negative("std", std)) ** 2
    b = w / price
    central = math.sqrt(2) * w / (n * price)
    mean = Comparison(
        statistic="mean",
        rows=n,
        epsilon=price,
        central=central,
        local=b * math.sqrt(2 / n),
        uncorrected=b * math.sqrt(2 / n),
        matched=math.sqrt(n) * price,
    )
    fourth, second = 4 * (5 * n - 3) / (n * (n - 1)), 8 * square / (n - 1)
    error = fourth * b**4 + second * b**2
    # central^2 w^2 = fourth w^4 u^2 + second w^2 u, solved without cancellation
    c, d = fourth * w**4, second * w**2
    u = 2 * (central * w) ** 2 / (d + math.sqrt(d * d + 4 * c * (central * w) ** 2))
    variance = Comparison(
        statistic="variance",
        rows=n,
        epsilon=price,
        central=central * w,
        local=math.sqrt(error),
        uncorrected=math.sqrt(error + 4 * b**4),
        matched=1 / math.sqrt(u),
    )
    return [mean, variance]
