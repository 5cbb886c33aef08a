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
from discreet.mechanisms._inputs import read
from discreet.noise.distribution import Floats

_PLACES = 128
_CELLS = 1 << 21


def mean_from_reports(reports: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """An interval for the mean of the population, from numbers to which noise was added (C13).

    Theorem: post-processing of what the clients sent: it costs nothing. It covers at its level if
        the mean of the reports is normal.
    Proof: reports are independent with the population's mean, and their sample variance estimates
        the variance of the rows and of the noise together. Student's law.
    Needs: unbiased reports, at least two, with noise of mean zero and the same scale.
    """
    inside, numbers = _level(confidence), _numbers("reports", reports, 2)
    n, mean, std = len(numbers), float(numbers.mean()), float(numbers.std(ddof=1))
    half = float(stdtrit(n - 1, (1 + inside) / 2)) * std / math.sqrt(n)
    return _interval(mean, half, inside, spread=std)


def difference_from_reports(
    first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """An interval for the difference of the means of two populations, from noisy numbers.

    Theorem: as for `mean_from_reports`; the scales of the noise may differ. Degrees of freedom are
        Welch's.
    """
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
    """An interval for the variance of the population, from reports with Laplace noise.

    Theorem: covers at its level if the reports are so many that their sample variance is normal.
    Proof: its variance is (m - s^4 (n - 3) / (n - 1)) / n, with the fourth central moment m of the
        reports, which is estimated from them; the known 2 scale^2 is taken off.
    Source: C4; docs/theory/intervals.md.
    Needs: four reports or more, the scale of the noise.
    """
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
    """An interval for the share of yes, from randomized responses of 0 and 1 with this epsilon.

    Theorem: covers with probability at least ``confidence``, for every share and number of reports.
    Proof: a report is 1 with probability 1 - keep + p (2 keep - 1), which grows with the share p,
        keep = e^epsilon / (e^epsilon + 1); Clopper and Pearson's interval for it is mapped back.
    Source: Warner 1965; Clopper, Pearson 1934.
    """
    inside, numbers = _level(confidence), _numbers("reports", reports, 1)
    if not np.isin(numbers, (0.0, 1.0)).all():
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
    """An interval for a quantile of the population, from reports with Laplace noise.

    Not the quantile of the reports: noise moves that wherever the rows are skewed.

    Theorem: covers with probability at least ``confidence``, for any law of rows between the
        bounds and
        any number of reports; with ``assume="normal"``, for so many that means are normal.
    Proof: let S fall smoothly from 1 at a to 0 at a + h. For Laplace noise Z of scale b,
        E[S(x + Z) - b^2 S''(x + Z)] = S(x). So the mean of S - b^2 S'' over the reports estimates
        E S(X), which is at least P(X <= a), and at most P(X < a + h). A point below the quantile's
        lower end is refused if that mean is too small even so; one above, if it is too large.
        Bounds: Maurer, Pontil 2009, or the normal law. Between two places of the grid the outer one
        decides.
    Source: docs/theory/intervals.md.
    Needs: rows between public bounds, two reports or more, the scale of the noise.
    """
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
    given = read(reports)
    if len(given.shape) != 1 or given.size < least:
        words = {1: "one number", 2: "two numbers", 4: "four numbers"}[least]
        raise InvalidArgument(f"{name} must be a sequence of {words} or more.")
    return given.doubles


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
