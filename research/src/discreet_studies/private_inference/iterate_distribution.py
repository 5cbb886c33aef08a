"""The exact law of an iterate in one dimension, by quadrature on a grid (C36).

For a handful of steps the density of an iterate can be computed as it is, without any theorem, and
so can its largest privacy loss: that is how the marginal claim was tested, and where it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd._laplace_rates import Floats, positives

Gradient: TypeAlias = Callable[[Floats], Floats]
"""Of one record, at every point of a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Density:
    """A density on an even grid."""

    points: Floats
    log: Floats


def density(
    gradients: Sequence[Gradient],
    *,
    rates: ArrayLike,
    scales: ArrayLike,
    start: float = 0.0,
    reach: float = 40.0,
    size: int = 20_001,
) -> Density:
    """The density of the last iterate: one of the records' gradients a step, Laplace noise.

    The grid ends ``reach`` last scales away from the start. What falls outside is lost from both
    densities of a pair, so that ratios are right where the grid holds nearly all mass.
    """
    eta, gamma = positives("rates", rates), positives("scales", scales)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    half = float(positive("reach", reach)) * float((eta * gamma).max())
    points = start + np.linspace(-half, half, count("size", size, minimum=3))
    width = float(points[1] - points[0])
    log = _spread(np.zeros(1), np.array([start]), points, gradients, (eta[0], gamma[0]))
    for step in zip(eta[1:], gamma[1:], strict=True):
        log = _spread(log + math.log(width), points, points, gradients, step)
    return Density(points=points, log=log)


def _spread(
    log_mass: Floats,
    at: Floats,
    points: Floats,
    gradients: Sequence[Gradient],
    step: tuple[float, float],
) -> Floats:
    """One step: masses move by the gradient of a random record, then the noise spreads them."""
    rate, scale = step
    moved = [
        _noisy(at - rate * gradient(at), log_mass, points, rate * scale) for gradient in gradients
    ]
    log: Floats = np.logaddexp.reduce(moved, axis=0) - math.log(len(gradients))
    return log


def _noisy(centers: Floats, log_mass: Floats, points: Floats, scale: float) -> Floats:
    """The log-density of masses at ``centers`` with Laplace noise.

    With sorted centers both sides of a point are running sums, so this takes no matrix.
    """
    order = np.argsort(centers, kind="stable")
    place, mass = centers[order] / scale, log_mass[order]
    below = np.append(-np.inf, np.logaddexp.accumulate(mass + place))
    above = np.append(np.logaddexp.accumulate((mass - place)[::-1])[::-1], -np.inf)
    at = np.searchsorted(place, points / scale, side="right")
    log: Floats = np.logaddexp(below[at] - points / scale, above[at] + points / scale)
    return log - math.log(2 * scale)


def largest_loss(left: Density, right: Density, *, margin: float = 0.1) -> float:
    """The largest log-ratio of two densities on one grid, either way, away from its ends."""
    if left.points.shape != right.points.shape or not np.array_equal(left.points, right.points):
        raise InvalidArgument("Both densities must be on one grid.")
    cut = int(margin * left.points.size)
    inside = slice(cut, left.points.size - cut)
    return float(np.abs(left.log[inside] - right.log[inside]).max())


def affine_loss(*, rates: ArrayLike, scales: ArrayLike, slope: float, apart: float) -> float:
    """The loss of the last iterate in the tail, for gradients ``slope * theta - record``.

    Two records are ``apart``. The iterate is a constant plus a weighted sum of Laplace noise; far
    out, the loss is the move of the constant over the largest weighted scale. A negative slope is a
    loss that is not convex: its steps drive two runs apart (M25).
    """
    eta, gamma = positives("rates", rates), positives("scales", scales)
    factors = 1 - eta * slope
    # What is added in step t is multiplied by the factors of all later steps.
    later = np.append(np.cumprod(factors[:0:-1])[::-1], 1.0)
    move = abs(float((later * eta).sum())) * apart
    return move / float(np.abs(later * eta * gamma).max())
