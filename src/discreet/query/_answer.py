"""Intervals that also cover sampling: for the population that the rows were drawn from.

Valid for any number of rows and any distribution, if the units were drawn independently and each
gives at most one row to a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import Unsupported
from discreet.queries import estimate
from discreet.queries.estimate import Floats, Range
from discreet.queries.noisy import Noisy
from discreet.queries.parts import Scale
from discreet.queries.quantiles import Quantiles
from discreet.queries.reading import Reading

_HALVINGS = 80
_OUTWARD = 2.0**-40


def interval(
    reading: Reading, parts: Sequence[Noisy], level: float
) -> tuple[list[float], list[float]]:
    """Bounds of expected counts, and of means and quantiles in the population.

    Theorem: each group's interval holds its target with probability at least ``level``, over the
        noise and the drawing of the rows. The target of a count is its expectation, that of a mean
        or quantile the one of the distribution from which the group's rows (clipped) are drawn.
    Proof: half of what may fail goes to the noise, half to sampling (union bound). A count is a sum
        of independent indicators, whose generating function is at most that of a Poisson law of the
        same mean m, so P(N >= x) and, below m, P(N <= x) are at most
        ``exp(-(x log(x/m) - x + m))``. A mean of n independent values in [0, 1] passes x on one
        side of its expectation m with probability at most ``exp(-n kl(x, m))``. Both are inverted
        at the ends of the noise box, where they are widest. Quantiles: see `Quantiles.interval`.
    Source: Chernoff 1952; Hoeffding 1963, theorem 1; docs/theory/queries.md.
    Needs: independent units, at most one row of each in a group; 0 < level < 1.
    """
    if isinstance(reading, Quantiles):
        return reading.interval(parts, level, sampling=True)
    if not isinstance(reading, Scale) or reading.kind not in ("count", "units", "mean"):
        raise Unsupported(
            "Sampling is covered for counts, means and quantiles: the spread of what a sum, a "
            "variance or a covariance adds up is not known from their noisy parts."
        )
    half = 1 - (1 - level) / 2
    bound = math.log(4 / (1 - level))  # two sides, half of what may fail
    if reading.kind != "mean":
        low, high = estimate.box(parts[0], reading.shifts[0], half)
        return _counts(np.maximum(low, 0), np.maximum(high, 0), bound)
    ends = tuple(np.array(end) for end in estimate.interval(reading, parts, half))
    rows = estimate.box(parts[0], reading.shifts[0], 1 - (1 - half) / 2)[0]
    first, last = (math.ldexp(end, reading.exponent) for end in (reading.lower, reading.upper))
    return _means((ends[0], ends[1]), np.maximum(rows, 1), bound, limits=(first, last))


def _counts(low: Floats, high: Floats, bound: float) -> tuple[list[float], list[float]]:
    """All m with ``x log(x/m) - x + m <= bound``, for x at the ends of the box."""

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(x > 0, x * np.log(np.where(x > 0, x / m, 1.0)), 0.0)
        return np.asarray(logs - x + m)

    least = _edge(lambda m: np.asarray(divergence(low, m) > bound), np.zeros_like(low), low)
    far = high + bound + np.sqrt(2 * bound * high + bound**2) + 1
    most = _edge(lambda m: np.asarray(divergence(high, m) > bound), far, high)
    return (
        estimate.listed(least * (1 - _OUTWARD)),
        estimate.listed(most * (1 + _OUTWARD)),
    )


def _means(
    ends: Range, rows: Floats, bound: float, *, limits: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """All m with ``rows * kl(x, m) <= bound`` for x at the ends of the box, scaled to [0, 1]."""
    span = limits[1] - limits[0] or 1.0
    x_low, x_high = (np.clip((end - limits[0]) / span, 0.0, 1.0) for end in ends)

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(x > 0, x * np.log(x / m), 0.0)
            right = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - m)), 0.0)
        return np.asarray(left + right)

    zero, one = np.zeros_like(x_low), np.ones_like(x_low)
    least = _edge(lambda m: np.asarray(rows * divergence(x_low, m) > bound), zero, x_low)
    most = _edge(lambda m: np.asarray(rows * divergence(x_high, m) > bound), one, x_high)
    room = _OUTWARD * max(map(abs, limits))
    return (
        estimate.listed(np.maximum(limits[0] + span * least - room, limits[0])),
        estimate.listed(np.minimum(limits[0] + span * most + room, limits[1])),
    )


def _edge(outside: Callable[[Floats], NDArray[np.bool_]], far: Floats, near: Floats) -> Floats:
    """The outer side of where a set that holds ``near`` ends, towards ``far``; by halving."""
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        out = outside(middle)
        far, near = np.where(out, middle, far), np.where(out, near, middle)
    return far
