"""Confidence intervals from reports to which every client added noise: post-processing.

The noise has mean zero on each number (Laplace, of a public scale), or reports are randomized
responses. The intervals cover the parameter of the population, not that of the clients at hand.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.intervals.interval import Interval
from discreet.intervals.studentized import Assume
from discreet.mechanisms._inputs import read_column
from discreet.noise.distribution import Floats

_PLACES = 128
_CELLS = 1 << 21


def mean_from_reports(reports: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Compute an interval for the population mean from numbers with noise.

    Args:
        reports: Noisy numbers that the clients sent. They must be unbiased, at least two, with
            noise of the same scale.
        confidence: Probability with which the interval holds the population value, between 0 and 1.

    Returns:
        The interval with its estimate. It assumes that the mean of the reports is normal.

    Raises:
        InvalidArgument: There are too few reports, or the confidence is not between 0 and 1.

    Examples:
        >>> from discreet import intervals
        >>> found = intervals.mean_from_reports([1.0, 2, 3, 4, 5] * 20)
        >>> found.low < 3 < found.high
        True
    """
    # Theorem: post-processing of what the clients sent: it costs nothing. It covers at its level if
    #   the mean of the reports is normal.
    # Proof: reports are independent with the population's mean, and their sample variance estimates
    #   the variance of the rows and of the noise together. Student's law.
    # Needs: unbiased reports, at least two, with noise of mean zero and the same scale.
    inside, numbers = _level(confidence), _numbers("reports", reports, 2)
    n, mean, std = len(numbers), float(numbers.mean()), float(numbers.std(ddof=1))
    half = float(stdtrit(n - 1, (1 + inside) / 2)) * std / math.sqrt(n)
    return _interval(mean, half, inside, spread=std)


def difference_from_reports(
    first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """Compute an interval for the difference of two population means.

    Args:
        first: Noisy numbers that the clients sent. They must be unbiased.
        second: Noisy numbers of the other population. Their noise may have another scale.
        confidence: Probability with which the interval holds the population value, between 0 and 1.

    Returns:
        The interval with its estimate. It assumes that both means are normal, with Welch's degrees
        of freedom.

    Raises:
        InvalidArgument: There are too few reports, or the confidence is not between 0 and 1.

    Examples:
        >>> found = intervals.difference_from_reports([1.0, 2, 3] * 20, [2.0, 3, 4] * 20)
        >>> found.low < -1 < found.high
        True
    """
    # Theorem: as for `mean_from_reports`; the scales of the noise may differ. Degrees of freedom
    #   are Welch's.
    inside = _level(confidence)
    one, two = _numbers("first", first, 2), _numbers("second", second, 2)
    errors = np.array([one.var(ddof=1) / len(one), two.var(ddof=1) / len(two)])
    total = float(errors.sum())
    free = float(errors[0] ** 2 / (len(one) - 1) + errors[1] ** 2 / (len(two) - 1))
    freedom = total**2 / free if free else min(len(one), len(two)) - 1
    half = float(stdtrit(freedom, (1 + inside) / 2)) * math.sqrt(total)
    return _interval(float(one.mean() - two.mean()), half, inside)


def reports_variance(reports: ArrayLike, *, scale: Number) -> float:
    """The sample variance of the rows, from reports with Laplace noise of a public scale (C4).

    Unbiased: the variance of the noise, 2 scale^2, is taken off. It may be negative.
    """
    noise = _scale(scale)
    return float(np.var(_numbers("reports", reports, 2), ddof=1)) - 2 * noise**2


def variance_from_reports(
    reports: ArrayLike, *, scale: Number, confidence: float = 0.95
) -> Interval:
    """Compute an interval for the population variance from noisy numbers.

    For reports with Laplace noise.

    Args:
        reports: Noisy numbers that the clients sent. At least four.
        scale: Scale of the Laplace noise, in the unit of the reports.
        confidence: Probability with which the interval holds the population value, between 0 and 1.

    Returns:
        The interval with its estimate. It assumes that the sample variance of the reports is
        normal.

    Raises:
        InvalidArgument: There are too few reports, or an argument is not valid.

    Examples:
        >>> found = intervals.variance_from_reports([1.0, 2, 3, 4, 5] * 20, scale=0.1)
        >>> found.low < 2 < found.high
        True
    """
    # Theorem: covers at its level if the reports are so many that their sample variance is normal.
    # Proof: its variance is (m - s^4 (n - 3) / (n - 1)) / n, with the fourth central moment m of
    #   the reports, which is estimated from them; the known 2 scale^2 is taken off.
    # Source: C4; docs/theory/intervals.md.
    # Needs: four reports or more, the scale of the noise.
    inside, numbers = _level(confidence), _numbers("reports", reports, 4)
    n, value = len(numbers), reports_variance(reports, scale=scale)
    square = float(numbers.var(ddof=1))
    fourth = float(((numbers - numbers.mean()) ** 4).mean())
    error = max(0.0, fourth - square**2 * (n - 3) / (n - 1)) / n
    half = float(stdtrit(n - 1, (1 + inside) / 2)) * math.sqrt(error)
    found = _interval(value, half, inside, spread=math.sqrt(square))
    return Interval(
        low=max(found.low, 0.0),
        high=max(found.high, 0.0),
        value=value,
        spread=found.spread,
        nominal=inside,
        guaranteed=None,
    )


def proportion_from_reports(
    reports: ArrayLike, *, epsilon: Number, confidence: float = 0.95
) -> Interval:
    """Compute an interval for a population share from randomized responses.

    Args:
        reports: Randomized responses, each 0 or 1.
        epsilon: Privacy loss of each response.
        confidence: Probability with which the interval holds the population value, between 0 and 1.

    Returns:
        The interval with its estimate. It holds for every share and number of reports.

    Raises:
        InvalidArgument: A report is not 0 or 1, or an argument is not valid.

    Examples:
        >>> found = intervals.proportion_from_reports([0, 1] * 50, epsilon=1)
        >>> found.low < 0.5 < found.high
        True
    """
    # Theorem: covers with probability at least `confidence`, for every share and number of reports.
    # Proof: a report is 1 with probability 1 - keep + p (2 keep - 1), which grows with the share p,
    #   keep = e^epsilon / (e^epsilon + 1); Clopper and Pearson's interval for it is mapped back.
    # Source: Warner 1965; Clopper, Pearson 1934.
    inside, numbers = _level(confidence), _numbers("reports", reports, 1)
    numbers = numbers[np.isin(numbers, (0.0, 1.0))]  # another is none that a client can send
    if not len(numbers):
        raise InvalidArgument("reports must be 0 or 1.")
    price = min(float(check.positive("epsilon", epsilon)), 700.0)
    lie, slope = 1 / (1 + math.exp(price)), math.tanh(price / 2)
    if not slope > 0:
        raise InvalidArgument("epsilon must be so large that reports tell anything at all.")
    n, ones, tail = len(numbers), float(numbers.sum()), (1 - inside) / 2
    low = float(betaincinv(ones, n - ones + 1, tail)) if ones > 0 else 0.0
    high = float(betaincinv(ones + 1, n - ones, 1 - tail)) if ones < n else 1.0
    ends = [(end - lie) / slope for end in (low, high)]
    return Interval(
        low=min(max(ends[0], 0.0), 1.0),
        high=min(max(ends[1], 0.0), 1.0),
        value=(ones / n - lie) / slope,
        spread=None,
        nominal=inside,
        guaranteed=inside,
    )


def quantile_from_reports(
    reports: ArrayLike,
    *,
    quantile: Number = 0.5,
    lower: Number,
    upper: Number,
    scale: Number,
    confidence: float = 0.95,
    assume: Assume = "nothing",
) -> Interval:
    """Compute an interval for a population quantile from reports with Laplace noise.

    The quantile of the reports themselves would be biased, because noise moves it where the values
    are skewed.

    Args:
        reports: Noisy numbers that the clients sent. At least two.
        quantile: Level of the quantile, between 0 and 1.
        lower: Public lower bound of the values without noise.
        upper: Public upper bound of the values without noise.
        scale: Scale of the Laplace noise, in the unit of the reports.
        confidence: Probability with which the interval holds the population value, between 0 and 1.
        assume: "nothing" for an interval that holds for every distribution, or "normal" for a
            shorter one that assumes normal means.

    Returns:
        The interval with its estimate.

    Raises:
        InvalidArgument: An argument is not valid.

    Examples:
        >>> noisy = [1.0, 2, 3, 4, 5] * 20
        >>> found = intervals.quantile_from_reports(noisy, lower=0, upper=10, scale=1)
        >>> 0 <= found.low <= found.high <= 10
        True
    """
    # Theorem: covers with probability at least `confidence`, for any law of rows between the
    #   bounds and
    #   any number of reports; with `assume="normal"`, for so many that means are normal.
    # Proof: let S fall smoothly from 1 at a to 0 at a + h. For Laplace noise Z of scale b,
    #   E[S(x + Z) - b^2 S''(x + Z)] = S(x). So the mean of S - b^2 S'' over the reports estimates
    #   E S(X), which is at least P(X <= a), and at most P(X < a + h). A point below the quantile's
    #   lower end is refused if that mean is too small even so; one above, if it is too large.
    #   Bounds: Maurer, Pontil 2009, or the normal law. Between two places of the grid the outer one
    #   decides.
    # Source: docs/theory/intervals.md.
    # Needs: rows between public bounds, two reports or more, the scale of the noise.
    inside, numbers = _level(confidence), _numbers("reports", reports, 2)
    q = float(check.probability("quantile", quantile, zero=False, one=False))
    low, high = map(float, check.bounds(lower, upper))
    noise = _scale(scale)
    tail = (1 - inside) / 2
    sure = check.one_of("assume", assume, ("normal", "nothing")) == "nothing"
    h = _window(high - low, noise, len(numbers), tail=tail, sure=sure)
    places = np.linspace(low, high, _PLACES + 1)
    # Falling from the place on: at least the share up to it. Falling up to the place: at most.
    mean, slack = _steps(numbers, places, noise, h, tail=tail, sure=sure)
    could = mean + slack >= q
    first = max(int(np.argmax(could)) - 1, 0) if could.any() else _PLACES
    mean, slack = _steps(numbers, places - h, noise, h, tail=tail, sure=sure)
    could = mean - slack <= q
    last = min(_PLACES - int(np.argmax(could[::-1])) + 1, _PLACES) if could.any() else 0
    ends = sorted((float(places[first]), float(places[last])))
    return Interval(
        low=ends[0],
        high=ends[1],
        value=(ends[0] + ends[1]) / 2,
        spread=None,
        nominal=inside,
        guaranteed=inside if sure else None,
    )


def _steps(
    numbers: Floats, places: Floats, noise: float, h: float, *, tail: float, sure: bool
) -> tuple[Floats, Floats]:
    """Means of S - b^2 S'' for steps that begin at the places, and how far they may be off."""
    n, bend = len(numbers), 4 * (noise / h) ** 2
    total, squares = np.zeros(len(places)), np.zeros(len(places))
    piece = max(1, _CELLS // len(places))
    for start in range(0, n, piece):
        u = (numbers[start : start + piece, None] - places) / h
        left = 1 - 2 * u**2 + bend
        right = 2 * (1 - u) ** 2 - bend
        values = np.where(u <= 0, 1.0, np.where(u < 0.5, left, np.where(u < 1, right, 0.0)))
        total += values.sum(axis=0)
        squares += (values**2).sum(axis=0)
    mean = total / n
    variance = np.maximum(squares - n * mean**2, 0.0) / (n - 1)
    return mean, _slack(variance, n, 1 + 2 * bend, tail=tail, sure=sure)


def _slack(variance: Floats, n: int, width: float, *, tail: float, sure: bool) -> Floats:
    if not sure:
        return np.asarray(-float(ndtri(tail)) * np.sqrt(variance / n))
    log = -math.log(tail / 2)
    return np.asarray(np.sqrt(2 * variance * log / n) + 7 * width * log / (3 * (n - 1)))


def _window(width: float, noise: float, n: int, *, tail: float, sure: bool) -> float:
    """A public choice of h: what is lost by its length and by the error, for uniform rows."""

    def loss(h: float) -> float:
        bend = 4 * (noise / h) ** 2
        variance = np.full(1, 0.25 + (bend**2 + bend) * min(1.0, h / (2 * noise)))
        slack = _slack(variance, n, 1 + 2 * bend, tail=tail, sure=sure)
        return h + 2 * width * float(slack[0])

    return float(min((width * 2.0 ** (-k / 2) for k in range(-2, 16)), key=loss))


def _level(confidence: float) -> float:
    return float(check.probability("confidence", confidence, zero=False, one=False))


def _numbers(name: str, reports: ArrayLike, least: int) -> Floats:
    given = read_column(reports)
    # A report that is no number is left out: one client must not stop the estimate of all.
    given = given[np.isfinite(given)]
    if len(given) < least:
        words = {1: "one number", 2: "two numbers", 4: "four numbers"}[least]
        raise InvalidArgument(f"{name} must be a sequence of {words} or more.")
    return given


def _interval(
    value: float, half: float, confidence: float, spread: float | None = None
) -> Interval:
    return Interval(
        low=value - half,
        high=value + half,
        value=value,
        spread=spread,
        nominal=confidence,
        guaranteed=None,
    )


def _scale(scale: Number) -> float:
    return float(check.moderate("scale", check.positive("scale", scale)))
