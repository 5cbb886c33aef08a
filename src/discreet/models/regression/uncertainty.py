"""Standard errors and intervals that cover the noise as well as the sample.

Intervals are built around the solution *without* penalty: its error is the inverse of the released
matrix times a vector whose law is known, so no bias of a penalty is left out. Where the matrix is
hardly above its noise they become wide, which is the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.special import stdtrit

from discreet.accounting.guarantee import Guarantee
from discreet.core._validate import positive, probability
from discreet.core.errors import Unsupported
from discreet.core.tabular import Record
from discreet.models._model_inputs import Flags, Floats
from discreet.models.regression.ssp_and_adassp import Coefficients, noise_edge
from discreet.models.regression.sufficient_statistics import (
    NoisySufficientStatistics,
    residual_variance,
)
from discreet.query.result import FixedResult, check_confidence, records

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
    noise: Floats
    """Covariance by the noise, of each output (outputs x columns x columns)."""
    sampling: Floats
    """Covariance by the sample, where errors spread equally everywhere."""
    scores: Floats
    """The same by released squared residuals, which say where they do not (with their noise)."""
    inverse: Floats
    """Inverse of the noisy matrix."""
    residual: Floats
    """Variance of the residuals, upward, in mapped units."""
    moments: NoisySufficientStatistics = field(repr=False)

    def variance(self, output: int, change: Floats) -> Floats:
        """Variances of combinations of coefficients, one for each row of ``change``.

        The sample counts by the larger of what both ways of estimating it say.
        """
        noise, equal, found = (
            np.einsum("ij,jk,ik->i", change, one[output], change)
            for one in (self.noise, self.sampling, self.scores)
        )
        return np.asarray(noise + np.maximum(np.maximum(equal, found), 0.0))

    def determined(self, change: Floats) -> Flags:
        """Which combinations stand clear of the noise of the matrix."""
        # Proof: what the rows know of a combination c is `1 / (c' G^-1 c)`; the noise moves that by
        #   a normal of deviation `sigma |G^-1 c|^2 / (c' G^-1 c)^2`. For an eigenvector this says
        #   that its eigenvalue is above the edge of the noise.
        known = change @ self.inverse
        size = np.einsum("ij,ij->i", known, change)
        return np.asarray(size > noise_edge(self.moments) * np.square(known).sum(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CoefficientIntervals(FixedResult):
    """The table of coefficients in original units: slopes (outputs x features), intercepts.

    The value of a coefficient is the estimate without penalty or, with a declared bound and where
    its interval is shorter, the penalized one. The interval of a coefficient that the noise hides
    is the whole line, and its standard error is infinite.
    """

    confidence: float
    slope: Floats
    low: Floats
    high: Floats
    slope_std: Floats
    intercept: Floats
    intercept_low: Floats
    intercept_high: Floats
    intercept_std: Floats
    identified: bool
    guarantee: Guarantee | None = None

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List each coefficient: those of each output, then its intercept.

        Args:
            confidence: That of the intervals, if it is given.

        Returns:
            One record for each: output, term, value, std, low and high.
        """
        check_confidence(confidence, self.confidence)
        outputs, features = self.low.shape
        terms = [*(f"feature {place}" for place in range(features)), "intercept"]
        value, low, high, std = (
            np.column_stack(pair).ravel()
            for pair in (
                (self.slope, self.intercept),
                (self.low, self.intercept_low),
                (self.high, self.intercept_high),
                (self.slope_std, self.intercept_std),
            )
        )
        keys = product(range(outputs), terms)
        return records(("output", "term"), keys, value=value, std=std, low=low, high=high)

    def _title(self) -> str:
        note = "" if self.identified else ", some not determined: the noise is too large"
        return f"Coefficients{note}"

    @property
    def _confidence(self) -> float:
        return self.confidence


def infer(moments: NoisySufficientStatistics, solution: Coefficients) -> Inference:
    """The law of the error, from released moments alone."""
    # Needs: the sums of squares (`squares_share` above zero). Errors may spread unequally if
    #   `moments.scores` was released. What is estimated is the coefficient of the mapped rows.
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
    residual = residual_variance(moments, solution.theta)
    noise, sampled, scores = (np.empty((k, d, d)) for _ in range(3))
    for i in range(k):
        t = theta[:, i]
        level = moments.sigma_cross**2 + moments.sigma**2 * float(t @ t) / 2
        middle = level * np.eye(d) + moments.sigma**2 / 2 * np.outer(t, t)
        sampled[i] = inverse @ (residual[i] * definite) @ inverse * _WIDER**2
        noise[i] = inverse @ middle @ inverse * _WIDER**2
        scores[i] = sampled[i]
        if moments.scores is not None:
            scores[i] = inverse @ moments.scores[i] @ inverse * _WIDER**2
    return Inference(
        theta=theta,
        shrunk=solution.theta,
        noise=noise,
        sampling=sampled,
        scores=scores,
        inverse=inverse,
        residual=residual,
        moments=moments,
    )


def coefficient_intervals(
    inference: Inference, *, confidence: float = 0.95, bound: float | None = None
) -> CoefficientIntervals:
    """Intervals for slopes and intercepts in original units."""
    # Theorem: to first order, each covers the coefficient of the mapped rows with at least
    #   `confidence`.
    # Proof: `Inference`; simulated over a grid in the tests. With `bound`, a declared bound of the
    #   norm of the mapped coefficients, the penalized solution is used where that is shorter: its
    #   bias is at most `penalty |row of the inverse| bound`.
    moments = inference.moments
    z = _quantile(moments, confidence)
    rows, grid = moments.map, moments.map.lattice
    if not rows.linear:
        raise Unsupported("Coefficients in original units need mapping='weighted' or 'box'.")
    first = grid.columns - grid.features
    change = np.zeros((len(moments.kept) + 1, moments.columns))
    per = 1 / (rows.scale * rows.radius)
    for row, place in enumerate(moments.kept):
        change[row, first + row] = per[place]
        change[-1, first + row] = -per[place] * rows.center[place]
    if first:
        change[-1, 0] = moments.intercept
    slopes = np.full((grid.outputs, grid.features, 4), 0.0)
    levels = np.empty((grid.outputs, 4))
    known = inference.determined(change)
    for i in range(grid.outputs):
        std = np.where(known, np.sqrt(inference.variance(i, change)), np.inf)
        center, half = change @ inference.theta[:, i], z * std
        if bound is not None:
            center, std, half = _shorter(inference, i, change, z, bound, (center, std, half))
        unit = rows.target_half[i]
        found = np.column_stack((center - half, center + half, std, center)) * unit
        slopes[i, list(moments.kept)] = found[:-1]
        levels[i] = found[-1] + rows.target_center[i] * np.array([1.0, 1.0, 0.0, 1.0])
    return CoefficientIntervals(
        confidence=confidence,
        slope=slopes[:, :, 3],
        low=slopes[:, :, 0],
        high=slopes[:, :, 1],
        slope_std=slopes[:, :, 2],
        intercept=levels[:, 3],
        intercept_low=levels[:, 0],
        intercept_high=levels[:, 1],
        intercept_std=levels[:, 2],
        identified=bool(known.all()),
        guarantee=moments.guarantee,
    )


def _quantile(moments: NoisySufficientStatistics, confidence: float) -> float:
    """Student's: few rows know little of the variance of their residuals."""
    inside = float(probability("confidence", confidence, zero=False, one=False))
    return float(stdtrit(max(moments.rows - moments.columns, 1.0), (1 + inside) / 2))


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
    variance = np.column_stack([inference.variance(i, design) for i in range(fitted.shape[1])])
    half = np.abs(fitted - plain) + z * np.sqrt(variance + inference.residual * _WIDER**2)
    ends = (np.clip(fitted + side * half, -1.0, 1.0) for side in (0.0, -1.0, 1.0))
    middle, low, high = (rows.target_center + rows.target_half * end for end in ends)
    return middle, low, high
