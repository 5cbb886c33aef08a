"""Standard errors and intervals that cover the noise as well as the sample (K38).

Intervals are built around the solution *without* penalty: its error is the inverse of the released
matrix times a vector whose law is known, so no bias of a penalty is left out. Where the matrix is
hardly above its noise they become wide, which is the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from discreet.core._validate import positive, probability
from discreet.core.errors import Unsupported
from discreet.models._model_inputs import Floats
from discreet.models.regression.ssp_and_adassp import Coefficients, noise_edge
from discreet.models.regression.sufficient_statistics import NoisySufficientStatistics

# For what is estimated in the covariance itself.
_WIDER = 1.03


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inference:
    """The law of the coefficients' error, to first order: mapped units, one covariance an output.

    The error of the solution without penalty is ``G^-1 r`` with the noisy matrix G and a normal
    ``r`` of covariance ``s^2 G + sigma_b^2 I + sigma^2 (|t|^2 I + t t') / 2``: the sample, the
    noise of the products, and the noise of the matrix times the true coefficients t.
    """

    theta: Floats
    """Without penalty (columns x outputs)."""
    shrunk: Floats
    """As fitted, with the penalty."""
    covariance: Floats
    """Of each output (outputs x columns x columns)."""
    residual: Floats
    """Variance of the residuals, upward, in mapped units."""
    identified: bool
    """Whether the noisy matrix stands clear of its noise in every direction (no penalty needed)."""
    moments: NoisySufficientStatistics = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoefficientIntervals:
    """Intervals in original units: slopes (outputs x features), then intercepts."""

    confidence: float
    low: Floats
    high: Floats
    std: Floats
    intercept_low: Floats
    intercept_high: Floats
    intercept_std: Floats
    identified: bool


def infer(moments: NoisySufficientStatistics, solution: Coefficients) -> Inference:
    """The law of the error, from released moments alone.

    Needs: the sums of squares (``squares_share`` above zero); errors of about the same variance
        everywhere. What is estimated is the coefficient of clipped and projected rows.
    """
    if moments.squares is None or moments.sigma_squares is None:
        raise Unsupported("Intervals need y'y: fit with squares_share above 0.")
    d, k = moments.cross.shape
    values, vectors = np.linalg.eigh(moments.gram)
    # A direction that happens to be zero is one that is not identified: wide, not undefined.
    tiny = 1e-9 * moments.sigma
    safe = np.where(np.abs(values) < tiny, tiny, values)
    inverse = (vectors / safe) @ vectors.T
    definite = (vectors * np.maximum(values, 0.0)) @ vectors.T
    theta = inverse @ moments.cross
    residual = np.array([_residual(moments, solution.theta[:, i], i) for i in range(k)])
    covariance = np.empty((k, d, d))
    for i in range(k):
        t = theta[:, i]
        noise = moments.sigma_cross**2 + moments.sigma**2 * float(t @ t) / 2
        middle = residual[i] * definite + noise * np.eye(d)
        middle += moments.sigma**2 / 2 * np.outer(t, t)
        covariance[i] = inverse @ middle @ inverse * _WIDER**2
    return Inference(
        theta=theta,
        shrunk=solution.theta,
        covariance=covariance,
        residual=residual,
        identified=bool(values[0] >= noise_edge(moments)),
        moments=moments,
    )


def _residual(moments: NoisySufficientStatistics, theta: Floats, output: int) -> float:
    """Variance of the residuals: estimated, and one deviation of its own error more."""
    assert moments.squares is not None  # noqa: S101 - checked by the caller
    assert moments.sigma_squares is not None  # noqa: S101 - checked by the caller
    free = max(moments.rows - len(theta), 1.0)
    total = moments.squares[output] - 2 * theta @ moments.cross[:, output]
    total += theta @ moments.gram @ theta
    found = max(0.0, float(total) / free)
    norm = float(theta @ theta)
    error = math.hypot(
        moments.sigma_squares, 2 * math.sqrt(norm) * moments.sigma_cross, norm * moments.sigma
    )
    return min(1.0, found + math.hypot(error / free, found * math.sqrt(2 / free)))


def coefficient_intervals(
    inference: Inference, *, confidence: float = 0.95, bound: float | None = None
) -> CoefficientIntervals:
    """Intervals for slopes and intercepts in original units.

    Theorem: to first order, each covers the coefficient of the mapped rows with at least
        ``confidence``.
    Proof: `Inference`; simulated over a grid in the tests. With ``bound``, a declared bound of the
        norm of the mapped coefficients, the penalized solution is used where that is shorter: its
        bias is at most ``penalty |row of the inverse| bound``.
    """
    moments = inference.moments
    z = _quantile(moments, confidence)
    rows, grid = moments.map, moments.map.lattice
    if not rows.linear:
        raise Unsupported("Coefficients in original units need mapping='ball' or 'box'.")
    first = grid.columns - grid.features
    change = np.zeros((len(moments.kept) + 1, moments.columns))
    per = 1 / (rows.scale * rows.radius)
    for row, place in enumerate(moments.kept):
        change[row, first + row] = per[place]
        change[-1, first + row] = -per[place] * rows.center[place]
    if first:
        change[-1, 0] = moments.intercept
    slopes = np.full((grid.outputs, grid.features, 3), 0.0)
    levels = np.empty((grid.outputs, 3))
    for i in range(grid.outputs):
        center, std, half = _unpenalized(inference, i, change, z)
        if bound is not None:
            center, std, half = _shorter(inference, i, change, z, bound, (center, std, half))
        unit = rows.target_half[i]
        found = np.column_stack((center - half, center + half, std)) * unit
        slopes[i, list(moments.kept)] = found[:-1]
        levels[i] = found[-1] + [rows.target_center[i], rows.target_center[i], 0.0]
    return CoefficientIntervals(
        confidence=confidence,
        low=slopes[:, :, 0],
        high=slopes[:, :, 1],
        std=slopes[:, :, 2],
        intercept_low=levels[:, 0],
        intercept_high=levels[:, 1],
        intercept_std=levels[:, 2],
        identified=inference.identified,
    )


def _quantile(moments: NoisySufficientStatistics, confidence: float) -> float:
    """Student's: few rows know little of the variance of their residuals."""
    inside = float(probability("confidence", confidence, zero=False, one=False))
    return float(stdtrit(max(moments.rows - moments.columns, 1.0), (1 + inside) / 2))


def _unpenalized(
    inference: Inference, output: int, change: Floats, z: float
) -> tuple[Floats, Floats, Floats]:
    variance = np.einsum("ij,jk,ik->i", change, inference.covariance[output], change)
    std = np.sqrt(np.maximum(variance, 0.0))
    return change @ inference.theta[:, output], std, z * std


def _shorter(
    inference: Inference,
    output: int,
    change: Floats,
    z: float,
    bound: float,
    plain: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats]:
    """For each number the shorter of the plain interval and that around the shrunk solution."""
    moments, limit = inference.moments, float(positive("bound", bound))
    penalty = max(0.0, noise_edge(moments) - float(np.linalg.eigvalsh(moments.gram)[0]))
    lifted = moments.gram + penalty * np.eye(moments.columns)
    rows = np.linalg.solve(lifted, change.T).T
    theta = np.linalg.solve(lifted, moments.cross[:, output])
    norm = min(float(np.linalg.norm(theta)), limit) ** 2
    noise = moments.sigma_cross**2 + moments.sigma**2 * max(norm, limit**2)
    sampled = np.einsum("ij,jk,ik->i", rows, lifted, rows) * inference.residual[output]
    std = np.sqrt(sampled + noise * np.square(rows).sum(axis=1)) * _WIDER
    half = z * std + penalty * np.linalg.norm(rows, axis=1) * limit
    better = half < plain[2]
    return (
        np.where(better, change @ theta, plain[0]),
        np.where(better, std, plain[1]),
        np.where(better, half, plain[2]),
    )


def prediction_intervals(
    inference: Inference, x: Floats, *, confidence: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Prediction, lower and upper end of the target of each row (rows x outputs), original units.

    The interval is centered at the fitted prediction and reaches as far as that around the solution
    without penalty; targets lie within the range that they were clipped to, and so do the ends.
    """
    moments = inference.moments
    z = _quantile(moments, confidence)
    rows = moments.map
    full = rows.design(x)
    first = rows.lattice.columns - rows.lattice.features
    design = full[:, [*range(first), *(first + place for place in moments.kept)]]
    fitted, plain = design @ inference.shrunk, design @ inference.theta
    variance = np.einsum("ij,kjl,il->ik", design, inference.covariance, design)
    half = np.abs(fitted - plain) + z * np.sqrt(
        np.maximum(variance, 0.0) + inference.residual * _WIDER**2
    )
    ends = (np.clip(fitted + side * half, -1.0, 1.0) for side in (0.0, -1.0, 1.0))
    middle, low, high = (rows.target_center + rows.target_half * end for end in ends)
    return middle, low, high
