"""SSP, AdaSSP and other ways from noisy sufficient statistics to coefficients (K10-K14, K32, K33).

`ssp` solves the noisy normal equations as they are, `adassp` with the penalty of Wang (2018),
`project_psd` with the least penalty above the noise, `ridge` with a given one, and `shrink` by
empirical Bayes. Nothing here sees a row: all of it is post-processing of released moments, and
costs nothing. `plan_published` plans moments with the noise of the publications.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, gaussian
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import RowLattice
from discreet.models.regression.sufficient_statistics import (
    NoisySufficientStatistics,
    SufficientStatisticsPlan,
    eigenvalue_sensitivity,
    moment_sensitivities,
)
from discreet.query.budget import BudgetChange

ADASSP_RHO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients:
    """Coefficients in mapped units (columns x outputs), and the penalty they were found with."""

    theta: Floats
    penalty: float
    method: str
    smallest: float
    """The smallest eigenvalue of the noisy matrix with the penalty."""
    condition: float

    @property
    def stable(self) -> bool:
        """Whether the matrix that was inverted is positive definite (else it is garbage: M23)."""
        return self.smallest > 0


def ridge(
    moments: NoisySufficientStatistics, penalty: float, *, method: str = "ridge"
) -> Coefficients:
    """``(G + penalty I)^-1 b`` (K3)."""
    if not 0 <= penalty < math.inf:
        raise InvalidArgument(f"penalty must be finite and not negative, got {penalty}.")
    matrix = moments.gram + penalty * np.eye(moments.columns)
    values = np.linalg.eigvalsh(matrix)
    largest = float(np.abs(values).max())
    try:
        theta = np.linalg.solve(matrix, moments.cross)
    except np.linalg.LinAlgError:
        raise Unsupported("The noisy matrix is singular: use another method.") from None
    least = float(np.abs(values).min())
    return Coefficients(
        theta=np.asarray(theta, dtype=np.float64),
        penalty=float(penalty),
        method=method,
        smallest=float(values[0]),
        condition=largest / least if least > 0 else math.inf,
    )


def ssp(moments: NoisySufficientStatistics) -> Coefficients:
    """Plain sufficient-statistics perturbation, without any penalty: unstable (K10)."""
    return ridge(moments, 0.0, method="ssp")


def noise_edge(moments: NoisySufficientStatistics) -> float:
    """Where the eigenvalues of the noise end: a matrix above it is surely definite (K9, K33)."""
    return moments.sigma * (math.sqrt(2 * moments.columns) + 1)


def project_psd(moments: NoisySufficientStatistics) -> Coefficients:
    """The least penalty that lifts the noisy matrix above the edge of its own noise (K33).

    Theorem: post-processing; the penalty is a function of the released matrix, so the smallest
        eigenvalue costs nothing.
    """
    least = float(np.linalg.eigvalsh(moments.gram)[0])
    return ridge(moments, max(0.0, noise_edge(moments) - least), method="psd")


def adassp(moments: NoisySufficientStatistics) -> Coefficients:
    """The penalty from a separately released smallest eigenvalue (K11, K12, K32).

    With the exact joint calibration the target is the edge of the noise, ``sigma (sqrt(2 d) + 2)``,
    and two deviations are taken off the eigenvalue; with the published constants both are as
    published.
    """
    if moments.smallest is None or moments.sigma_smallest is None:
        raise InvalidArgument("moments must hold a smallest eigenvalue: plan them for AdaSSP.")
    d = moments.columns
    if moments.published_log is None:
        target = moments.sigma * (math.sqrt(2 * d) + 2)
        shift = 2 * moments.sigma_smallest
    else:
        target = moments.sigma * math.sqrt(d * math.log(2 * d * d / ADASSP_RHO))
        shift = math.sqrt(moments.published_log) * moments.sigma_smallest
    least = max(0.0, moments.smallest - shift)
    return ridge(moments, max(0.0, target - least), method="adassp")


# ── Shrinkage ────────────────────────────────────────────────────────────────────────────────────
# A prior ``theta ~ N(0, tau^2)`` for slopes, the known noise of the moments, and residuals: the
# posterior mean is a filter on the eigenvalues of the noisy matrix, and tau is the one under which
# the released products are likeliest. Where noise hides everything, tau and the slopes go to zero,
# and what is left is the mean: the guard against fits that are worse than none.

_PRIORS = np.exp(np.linspace(math.log(1e-6), math.log(1e3), 91))


def shrink(moments: NoisySufficientStatistics) -> Coefficients:
    """Empirical Bayes on released moments: for `PrivateLinearRegression(method=shrink)`.

    Theorem: post-processing; private as the moments are.
    Proof: nothing but released numbers and public noise levels is used. With
        ``b = G theta + X'e + noise`` and ``G`` known up to symmetric noise, ``b - G theta`` has the
        variance ``s^2 G + sigma_b^2 + sigma_G^2 |theta|^2 / 2`` in each direction; so the posterior
        mean is ``tau^2 l / (tau^2 l^2 + v)`` times ``b`` along an eigenvector with eigenvalue l.
    Source: Robbins 1956; Stein 1981 for the idea; K9 for the noise of the matrix.
    Needs: moments with an intercept and with sums of squares.
    """
    if not moments.intercept or moments.squares is None:
        raise InvalidArgument("shrink needs moments with an intercept and sums of squares.")
    first = max(float(moments.gram[0, 0]), 2 * moments.sigma)
    edge = moments.gram[0, 1:]
    centered = moments.gram[1:, 1:] - np.outer(edge, edge) / first
    values, vectors = np.linalg.eigh(centered)
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
    return Coefficients(
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


def _filter(
    values: Floats, along: Floats, residual: float, moments: NoisySufficientStatistics
) -> Floats:
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


# ── Feature selection ────────────────────────────────────────────────────────────────────────────


def select_features(
    moments: NoisySufficientStatistics, *, keep: int, output: int = 0
) -> tuple[int, ...]:
    """The features that explain most, one after the other, by the noisy moments.

    Use the result with `NoisySufficientStatistics.subset`: noise in a small matrix does less harm.

    Theorem: post-processing (K39): the moments were paid for, the choice is free.
    Proof: only released numbers are used. At each step the feature is taken whose residual product
        with the target, over the root of its own square, is largest: forward selection, with the
        penalty that lifts the matrix above its noise (K33).
    """
    many = count("keep", keep)
    first = moments.columns - len(moments.kept)
    if many > len(moments.kept):
        raise InvalidArgument(f"keep must be at most {len(moments.kept)}, got {keep}.")
    if not 0 <= output < moments.cross.shape[1]:
        raise InvalidArgument(f"output must be below {moments.cross.shape[1]}, got {output}.")
    edge = moments.sigma * (math.sqrt(2 * moments.columns) + 1)
    least = float(np.linalg.eigvalsh(moments.gram)[0])
    matrix = moments.gram + max(0.0, edge - least) * np.eye(moments.columns)
    products = moments.cross[:, output]
    inside = list(range(first))
    left = list(range(first, moments.columns))
    for _ in range(many):
        gains = []
        for place in left:
            gain = float(products[place])
            square = float(matrix[place, place])
            if inside:
                known = np.linalg.solve(
                    matrix[np.ix_(inside, inside)],
                    np.column_stack((products[inside], matrix[inside, place])),
                )
                gain -= float(matrix[place, inside] @ known[:, 0])
                square -= float(matrix[place, inside] @ known[:, 1])
            gains.append(abs(gain) / math.sqrt(max(square, edge * 1e-6, 1e-300)))
        best = left.pop(int(np.argmax(gains)))
        inside.append(best)
    return tuple(moments.kept[place - first] for place in inside[first:])


# ── Published noise ──────────────────────────────────────────────────────────────────────────────
# The formulas split epsilon and add it up again; the joint release costs more or less than that. A
# plan is made only if the guarantee of its own noise is within the nominal claim (K10-K14, M3).

Constants: TypeAlias = Literal["wang", "wang-code", "thesis"]


def published_std(method: str, constants: Constants, *, epsilon: float, delta: float) -> float:
    """Noise of each release for rows and targets of norm one, as printed."""
    found = {
        ("adassp", "wang"): 3 * math.sqrt(math.log(6 / delta)) / epsilon,
        ("adassp", "thesis"): 3 * math.sqrt(2 * math.log(3.75 / delta)) / epsilon,
        ("ssp", "wang"): 2 * math.sqrt(math.log(4 / delta)) / epsilon,
        ("ssp", "wang-code"): math.sqrt(math.log(4 / delta)) / epsilon,
        ("ssp", "thesis"): 2 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon,
    }.get((method, constants))
    if found is None:
        raise InvalidArgument(
            "constants are published for method='adassp' ('wang', 'thesis') and method='ssp' "
            f"('wang', 'wang-code', 'thesis'), got {constants!r} with {method!r}."
        )
    return found


def published_log(constants: Constants, *, delta: float) -> float:
    """What the printed shift of the smallest eigenvalue is the root of, in deviations (K11)."""
    return math.log(6 / delta) if constants == "wang" else 2 * math.log(3.75 / delta)


def plan_published(
    lattice: RowLattice,
    *,
    method: str,
    constants: Constants,
    epsilon: Number,
    delta: Number,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    max_rows_per_unit: int = 1,
    certified: bool = True,
) -> SufficientStatisticsPlan:
    """Moments with published noise; the guarantee is that of the noise, not the printed one.

    With ``certified`` a claim that the noise does not keep is refused.
    """
    nominal = float(positive("epsilon", epsilon))
    failure = float(probability("delta", delta, zero=False, one=False))
    sd = published_std(method, constants, epsilon=nominal, delta=failure)
    sigma = Fraction(sd) * lattice.row_squared * max_rows_per_unit
    joint, _ = moment_sensitivities(lattice, relation=relation, max_rows_per_unit=max_rows_per_unit)
    least = eigenvalue_sensitivity(lattice, max_rows_per_unit=max_rows_per_unit)
    ada = method == "adassp"
    plan = SufficientStatisticsPlan(
        lattice=lattice,
        relation=relation,
        max_rows_per_unit=max_rows_per_unit,
        joint=_noise(joint, sigma, relation),
        squares=None,
        smallest=_noise(least, sigma, relation) if ada else None,
        published_log=published_log(constants, delta=failure) if ada else None,
    )
    spent = plan.guarantee.epsilon(failure)
    if certified and spent > nominal:
        raise NotCertified(
            f"The published noise costs epsilon {spent:.4g} at delta {failure:g}, not the "
            f"nominal {nominal:g}: use constants='exact'."
        )
    return plan


def _noise(move: BudgetChange, sigma: Fraction, relation: NeighboringRelation) -> AdditiveMechanism:
    return gaussian(
        sensitivity=1,
        norm="linf",
        dimension=move.l2_squared,
        sigma=sigma,
        domain="integers",
        relation=relation,
    )
