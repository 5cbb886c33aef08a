"""Less error for free: what has been published, smoothed with the model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from discreet.core.check import finite
from discreet.core.errors import InvalidArgument
from discreet.leakage.series.model import VAR, Floats, numbers
from discreet.leakage.series.moments import covariances
from discreet.leakage.series.threat import Releases


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smoothed:
    """Estimates of the releases without noise."""

    values: Floats
    covariance: Floats = field(repr=False)
    """Of their errors, under the model."""

    @property
    def std(self) -> Floats:
        """The standard error of each."""
        return np.sqrt(np.diag(self.covariance))


def smooth(
    published: ArrayLike, *, model: VAR, releases: Releases, level: float | None = None
) -> Smoothed:
    """The best linear estimates of the releases without noise, from all of them together.

    ``published`` is in the order of ``releases.times``. ``level`` is what values vary around; one
    constant is estimated if it is not given. Like a Kalman smoother, but for correlated noise as
    well. Costs nothing: only what is published is used. With a wrong model the estimates are
    biased, and the errors are not those told.

    Theorem: with C the covariance of the releases without noise and ``V = C + S``, the estimates
        ``l + C V^-1 (q - l)`` have errors with covariance ``C - C V^-1 C``. For an unknown level, l
        is ``1'V^-1 q / 1'V^-1 1`` and ``d d' / 1'V^-1 1``, ``d = 1 - C V^-1 1``, is added.
    Proof: regression in a joint normal law; generalised least squares for the level, whose error
        is independent of the residuals.
    Source: Kalman 1960; Le Ny, Pappas 2014.
    """
    q = numbers("published", published)
    size = len(releases.times)
    if q.shape != (size,):
        raise InvalidArgument(f"published must be {size} numbers, one for each release.")
    if len(releases.weights) != model.people:
        raise InvalidArgument(
            f"releases must be of the model's {model.people} people, got {len(releases.weights)}."
        )
    C = covariances(model, releases=releases, horizon=releases.times[-1] + 1).total
    factor = cho_factor(C + releases.covariance)
    error = C - C @ cho_solve(factor, C)
    ones = cho_solve(factor, np.ones(size))
    if level is None:
        weight = float(ones.sum())
        middle = float(ones @ q) / weight
        d = 1 - C @ ones
        error = error + np.outer(d, d) / weight
    else:
        middle = float(finite("level", level))
    values = middle + C @ cho_solve(factor, q - middle)
    return Smoothed(values=values, covariance=(error + error.T) / 2)
