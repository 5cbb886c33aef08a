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

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument
from discreet.models.sgd.schedule import Floats, positives

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
    reach: float = 30.0,
    size: int = 4001,
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
    log = _laplace(
        points[:, None] - _moved(gradients, np.array([start]), eta[0]), eta[0] * gamma[0]
    )
    mass = np.exp(log).mean(axis=1)
    for rate, scale in zip(eta[1:], gamma[1:], strict=True):
        mass = _step(mass, points, gradients, float(rate), float(rate * scale))
    with np.errstate(divide="ignore"):
        return Density(points=points, log=np.log(mass))


def _moved(gradients: Sequence[Gradient], at: Floats, rate: float) -> Floats:
    """Where a step takes the points: one row for each record."""
    return np.concatenate([at - rate * gradient(at) for gradient in gradients])


def _laplace(distance: Floats, scale: float) -> Floats:
    log: Floats = -np.abs(distance) / scale - math.log(2 * scale)
    return log


def _step(
    mass: Floats, points: Floats, gradients: Sequence[Gradient], rate: float, scale: float
) -> Floats:
    """One step: every cell moves, then the noise spreads it."""
    width = float(points[1] - points[0])
    out = np.zeros_like(mass)
    for gradient in gradients:
        centres = points - rate * gradient(points)
        # Kernels are summed in pieces: the whole matrix would be large.
        for piece in np.array_split(np.arange(points.size), 8):
            kernel = np.exp(_laplace(points[piece][:, None] - centres[None, :], scale))
            out[piece] += kernel @ mass * width
    return out / len(gradients)


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
