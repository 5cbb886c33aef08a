"""SSP, AdaSSP and other ways from noisy sufficient statistics to coefficients.

`ssp` solves the noisy normal equations as they are, `adassp` with the penalty of Wang (2018),
`project_psd` with the least penalty above the noise, `ridge` with a given one, and `shrink` by
empirical Bayes. Nothing here sees a row: all of it is post-processing of released moments, and
costs nothing. `plan_published` plans moments with the noise of the publications.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.number_format import short
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
    """Coefficients in mapped units, with the penalty that was used.

    Attributes:
        theta: Coefficients, columns x outputs.
        penalty: Penalty that was added to the diagonal of the matrix.
        method: Name of the method.
        smallest: Smallest eigenvalue of the noisy matrix with the penalty.
        condition: Condition number of this matrix.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.project_psd(model.moments_).theta.shape
        (3, 1)
    """

    theta: Floats
    penalty: float
    method: str
    smallest: float
    condition: float

    @property
    def stable(self) -> bool:
        """Whether the inverted matrix is positive definite.

        If it is not, the coefficients are meaningless.
        """
        return self.smallest > 0


def ridge(
    moments: NoisySufficientStatistics, penalty: float, *, method: str = "ridge"
) -> Coefficients:
    """Solve the noisy normal equations with a given penalty.

    Args:
        moments: Released moments.
        penalty: Number that is added to the diagonal of the Gram matrix, zero or above.
        method: Name for the result.

    Returns:
        The coefficients.

    Raises:
        InvalidArgument: `penalty` is negative or not finite.
        Unsupported: The matrix is singular.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.ridge(model.moments_, 10.0).penalty
        10.0
    """
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
    """Solve the noisy normal equations without a penalty (SSP).

    The result is unstable if the noise is large. `project_psd` is more robust.

    Args:
        moments: Released moments.

    Returns:
        The coefficients.

    Raises:
        Unsupported: The matrix is singular.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.ssp(model.moments_).penalty
        0.0
    """
    return ridge(moments, 0.0, method="ssp")


def noise_edge(moments: NoisySufficientStatistics) -> float:
    """Where the eigenvalues of the noise end: a matrix above it is surely definite."""
    return moments.sigma * (math.sqrt(2 * moments.columns) + 1)


def project_psd(moments: NoisySufficientStatistics) -> Coefficients:
    """Solve with the smallest penalty that lifts the matrix above its own noise.

    Args:
        moments: Released moments.

    Returns:
        The coefficients.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.project_psd(model.moments_).stable
        True

    References:
        [Proof](../theory/theorems.md#models.regression.ssp_and_adassp.project_psd).
    """
    # Theorem: post-processing; the penalty is a function of the released matrix, so the smallest
    #   eigenvalue costs nothing.
    least = float(np.linalg.eigvalsh(moments.gram)[0])
    return ridge(moments, max(0.0, noise_edge(moments) - least), method="psd")


def toward_level(moments: NoisySufficientStatistics, found: Coefficients) -> Coefficients:
    """Shrink slopes that needed a penalty by what noise explains of them.

    Slopes of noise predict worse than the level alone. They are multiplied by one factor between 0
    and 1, for each output; without a penalty, coefficients stay what they are.
    """
    # Between the level and `found` the expected error is a parabola. The products that its best
    # point is read from were found by the same noise: what that adds to the one and takes off the
    # other is known on average, to the first order (James, Stein 1961; Stein 1981).
    if found.penalty <= 0 or not moments.intercept:
        return found
    gram, sigma = moments.gram, moments.sigma
    inverse = float(np.sum(1 / (np.linalg.eigvalsh(gram) + found.penalty)))
    theta = np.zeros_like(found.theta)
    theta[0] = moments.cross[0] / max(float(gram[0, 0]), 2 * sigma)
    for output in range(theta.shape[1]):
        full, level = found.theta[:, output], theta[:, output].copy()
        move = full - level
        squared = float(full @ full) / 2
        noise = moments.sigma_cross**2 + sigma**2 * squared
        gained = float(move @ (moments.cross[:, output] - gram @ level)) - noise * inverse
        lost = max(float(move @ gram @ move), 0.0) + 2 * sigma**2 * squared * inverse
        if gained < lost:
            move = max(0.0, gained) / lost * move
        theta[:, output] = level + move
    return replace(found, theta=theta)


def adassp(moments: NoisySufficientStatistics) -> Coefficients:
    """Solve with a penalty from a released smallest eigenvalue (AdaSSP).

    Args:
        moments: Released moments that contain the smallest eigenvalue.

    Returns:
        The coefficients.

    Raises:
        InvalidArgument: The moments do not contain the smallest eigenvalue.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression, regression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(
        ...     rho=1, bounds=(0, 10), target_bounds=(-10, 20), method="adassp"
        ... )
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> regression.adassp(model.moments_).method
        'adassp'

    References:
        Wang (2018).
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
    """Shrink coefficients by empirical Bayes.

    Use it as `PrivateLinearRegression(method=shrink)`.

    Args:
        moments: Released moments with an intercept and with sums of squares.

    Returns:
        The coefficients.

    Raises:
        InvalidArgument: The moments lack an intercept or sums of squares.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.shrink(model.moments_).method
        'shrunken'

    References:
        Robbins (1956). Stein (1981).
        [Proof](../theory/theorems.md#models.regression.ssp_and_adassp.shrink).
    """
    # Theorem: post-processing; private as the moments are.
    # Proof: nothing but released numbers and public noise levels is used. With
    #   `b = G theta + X'e + noise` and `G` known up to symmetric noise, `b - G theta` has the
    #   variance `s^2 G + sigma_b^2 + sigma_G^2 |theta|^2 / 2` in each direction; so the posterior
    #   mean is `tau^2 l / (tau^2 l^2 + v)` times `b` along an eigenvector with eigenvalue l.
    # Source: Robbins 1956; Stein 1981 for the idea; K9 for the noise of the matrix.
    # Needs: moments with an intercept and with sums of squares.
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
    """Select the features that explain most, by the noisy moments.

    This is forward selection. Use the result with `NoisySufficientStatistics.subset`.

    Args:
        moments: Released moments.
        keep: Number of features to select.
        output: Index of the target.

    Returns:
        Indices of the features, the most important first.

    Raises:
        InvalidArgument: `keep` or `output` is too large.

    Privacy:
        Post-processing of released moments. It costs no budget.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> len(regression.select_features(model.moments_, keep=1))
        1
    """
    # Theorem: post-processing (K39): the moments were paid for, the choice is free.
    # Proof: only released numbers are used. At each step the feature is taken whose residual
    #   product with the target, over the root of its own square, is largest: forward selection,
    #   with the penalty that lifts the matrix above its noise (K33).
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
    """What the printed shift of the smallest eigenvalue is the root of, in deviations."""
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
            f"The published noise costs epsilon {short(spent)} at delta {failure:g}, not the "
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
