"""Coefficients shrunk by what the moments themselves say about noise and signal: no cost at all.

A prior ``theta ~ N(0, tau^2)`` for slopes, the known noise of the moments, and residuals: the
posterior mean is a filter on the eigenvalues of the noisy matrix, and tau is the one under which
the released products are likeliest. Where noise hides everything, tau and the slopes go to zero,
and what is left is the mean: the guard against fits that are worse than none.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.models.inputs import Floats
from discreet.models.regression.moments import PrivateMoments
from discreet.models.regression.solve import Solution

_PRIORS = np.exp(np.linspace(math.log(1e-6), math.log(1e3), 91))


def shrunken(moments: PrivateMoments) -> Solution:
    """Empirical Bayes on released moments: for `PrivateLinearRegression(method=shrunken)`.

    Theorem: post-processing; private as the moments are.
    Proof: nothing but released numbers and public noise levels is used. With
        ``b = G theta + X'e + noise`` and ``G`` known up to symmetric noise, ``b - G theta`` has the
        variance ``s^2 G + sigma_b^2 + sigma_G^2 |theta|^2 / 2`` in each direction; so the posterior
        mean is ``tau^2 l / (tau^2 l^2 + v)`` times ``b`` along an eigenvector with eigenvalue l.
    Source: Robbins 1956; Stein 1981 for the idea; K9 for the noise of the matrix.
    Needs: moments with an intercept and with sums of squares.
    """
    if not moments.intercept or moments.squares is None:
        raise InvalidArgument("shrunken needs moments with an intercept and sums of squares.")
    first = max(float(moments.gram[0, 0]), 2 * moments.sigma)
    edge = moments.gram[0, 1:]
    centred = moments.gram[1:, 1:] - np.outer(edge, edge) / first
    values, vectors = np.linalg.eigh(centred)
    values = _denoised(values, moments.sigma)
    rows = first / moments.intercept**2
    theta = np.empty((moments.columns, moments.cross.shape[1]))
    for output, products in enumerate(moments.cross.T):
        along = vectors.T @ (products[1:] - edge * products[0] / first)
        least = (moments.sigma_squares or 0.0) / 2
        squares = max(float(moments.squares[output]) - products[0] ** 2 / first, least)
        slopes = vectors @ (_filter(values, along, squares / rows, moments) * along)
        theta[1:, output] = slopes
        theta[0, output] = (products[0] - edge @ slopes) / first
    return Solution(
        theta=theta,
        penalty=0.0,
        method="shrunken",
        smallest=float(values.min(initial=first)),
        condition=math.inf,
    )


def _denoised(values: Floats, sigma: float) -> Floats:
    """Eigenvalues without what the noise added; those within its bulk share what is left.

    Symmetric noise of this shape fills ``[-2 s, 2 s]`` with ``s = sigma sqrt(d / 2)``, and lifts an
    eigenvalue l beyond it to ``l + s^2 / l`` (Benaych-Georges, Nadakuditi 2011).
    """
    bulk = sigma * math.sqrt(len(values) / 2)
    found = values.copy()
    above = values > 2 * bulk
    found[above] = (values[above] + np.sqrt(np.square(values[above]) - 4 * bulk**2)) / 2
    if not above.all():
        left = max(float(values.sum() - found[above].sum()), 0.0)
        found[~above] = left / np.count_nonzero(~above)
    return np.asarray(found)


def _filter(values: Floats, along: Floats, residual: float, moments: PrivateMoments) -> Floats:
    """Factors for the products along each eigenvector, for the likeliest prior."""
    prior = _PRIORS[:, None]
    noise = (
        moments.sigma_cross**2
        + moments.sigma**2 * len(values) * prior / 2
        + residual * np.maximum(values, 0.0)
    )
    spread = prior * np.square(values) + noise
    likelihood = -np.sum(np.log(spread) + np.square(along) / spread, axis=1)
    best = int(np.argmax(likelihood))
    return np.asarray((prior * values / spread)[best])
