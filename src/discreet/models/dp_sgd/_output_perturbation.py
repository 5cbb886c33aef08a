"""Output perturbation: train without noise, then add noise to the finished model.

The sensitivity is how far one record moves the finished model, in L2. It takes Gaussian noise, or
Laplace noise of sqrt(p) times the scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import Handed, charges, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.mechanism import Certificate, DrawCheck, Mechanism
from discreet.models._model_inputs import doubles, fitting, matrix, same_rows, target_table
from discreet.models.dp_sgd._laplace_rates import Floats, positives
from discreet.models.dp_sgd.losses import Logistic, Loss, Norm, Softmax
from discreet.models.dp_sgd.train import (
    ROW_BITS,
    UNIT,
    clipped_rows,
    data_gradient,
    gradient_error,
    largest_share,
    piece_error,
    representable,
    widened,
)
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Sensitivity of models trained without noise ──────────────────────────────────────────────────


Order: TypeAlias = Literal["permutation", "with replacement"]


def contraction(rate: ArrayLike, *, smoothness: float, strong_convexity: float = 0.0) -> Floats:
    """By how much a gradient step shrinks distances: ``max(|1 - eta m|, |1 - eta L|)``."""
    # Theorem: for an m-strongly convex, L-smooth loss the step is Lipschitz with this constant; up
    #   to `eta = 2/L` it is at most 1.
    # Proof: the mean of the Hessian between two points has its eigenvalues in [m, L].
    eta = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    top, low = float(positive("smoothness", smoothness)), float(strong_convexity)
    if not 0 <= low <= top:
        raise InvalidArgument("strong_convexity must lie between 0 and smoothness.")
    if float(eta.max()) * top > 2:
        raise Unsupported(f"Rates above 2/L = {2 / top:g} can drive two runs apart.")
    return np.maximum(np.abs(1 - eta * low), np.abs(1 - eta * top))


def pass_sensitivity(
    rates: ArrayLike,
    *,
    rows: int,
    passes: int,
    lipschitz: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    order: Order = "permutation",
) -> float:
    """How far one replaced record moves the last iterate of noiseless passes, in L2.

    ``rates`` holds one rate for each update, ``passes * rows`` of them, one record at a time in an
    order that does not depend on the data and is the same in every pass. ``lipschitz`` bounds a
    record's gradient without the penalty.
    """
    # Theorem: a record at place i of the order moves the iterate by at most
    #   `2 G sum_t eta_t prod_{s > t} c_s` over its own updates t; this is the largest over i.
    # Proof: an update with the same record is c-Lipschitz; with the replaced one it adds the
    #   distance of two gradients at one theta, `2 eta G`, once more.
    # Source: Wu et al. 2017, for their rates: `2 k eta G` (convex),
    #   `2 eta G / (1 - (1 - eta m)^n)` (strongly convex, constant rate), `2 G / (m n)`
    #   (strongly convex, `min(1/L, 1/(m t))`).
    # Needs: no clipping that is ever active, no draws with replacement.
    if order != "permutation":
        raise Unsupported(
            "Drawn with replacement, a record may be met in every step: take "
            "with_replacement_sensitivity, or noise in every step (trajectory)."
        )
    eta = positives("rates", rates)
    n, k = count("rows", rows), count("passes", passes)
    if eta.size != n * k:
        raise InvalidArgument(f"rates must have {n * k} numbers, one for each update.")
    shrink = contraction(eta, smoothness=smoothness, strong_convexity=strong_convexity)
    later = np.append(np.cumprod(shrink[:0:-1])[::-1], 1.0)
    moved = (2 * float(positive("lipschitz", lipschitz)) * eta * later).reshape(k, n).sum(axis=0)
    return float(moved.max()) * (1 + 4 * eta.size * 2.0**-52)


def constant_rate_limit(
    *, rate: float, rows: int, lipschitz: float, strong_convexity: float
) -> float:
    """The limit of `pass_sensitivity` for many passes: ``2 eta G / (1 - (1 - eta m)^n)``.

    For ``eta <= 1/L``. The printed ``2 G / (m n)`` is smaller, and false for a constant rate: the
    last record alone moves the model by ``2 eta G``.
    """
    eta, m = float(positive("rate", rate)), float(positive("strong_convexity", strong_convexity))
    if eta * m >= 1:
        raise InvalidArgument("rate must be below 1/m.")
    kept = -math.expm1(count("rows", rows) * math.log1p(-eta * m))
    return 2 * eta * float(positive("lipschitz", lipschitz)) / kept


def falling_rates(*, rows: int, passes: int, smoothness: float, strong_convexity: float) -> Floats:
    """``min(1/L, 1/(m t))`` for t = 1, 2, ...: the sensitivity is then at most 2 G / (m n)."""
    top = float(positive("smoothness", smoothness))
    low = float(positive("strong_convexity", strong_convexity))
    t = np.arange(1, count("rows", rows) * count("passes", passes) + 1, dtype=np.float64)
    rates: Floats = np.minimum(1 / top, 1 / (low * t))
    return rates


def with_replacement_sensitivity(rates: ArrayLike, *, lipschitz: float) -> float:
    """``2 G sum eta``: all that holds if records are drawn with replacement (convex, smooth)."""
    return 2 * float(positive("lipschitz", lipschitz)) * float(positives("rates", rates).sum())


def minimizer_sensitivity(
    *,
    lipschitz: float,
    strong_convexity: float,
    rows: int,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
    tolerance: float = 0.0,
) -> float:
    """Largest move by one record of the minimizer of `sum of losses / rows + l2/2 ||theta||^2`."""
    # Theorem: `2 G / (m n)` for a replaced record, `G / (m n)` for one added or removed, if the
    #   sum is divided by a public constant n; a gradient of length `tolerance` in the place of
    #   zero adds `2 tolerance / m`.
    # Proof: with F m-strongly convex, `m ||a - b|| <= ||F'(a) - F'(b)||`. At the two minimizers
    #   the gradients of one objective differ by that of the records that are not shared.
    # Source: Chaudhuri, Monteleoni, Sarwate 2011; Wu et al. 2017. C42.
    g, m = positive("lipschitz", lipschitz), positive("strong_convexity", strong_convexity)
    match relation:
        case NeighboringRelation.REPLACE_ONE:
            records = 2
        case NeighboringRelation.ADD_REMOVE:
            records = 1
        case _:
            raise InvalidArgument(f"relation must be replace-one or add/remove, got {relation!r}.")
    moved = records * float(g) / count("rows", rows) + 2 * float(
        non_negative("tolerance", tolerance)
    )
    return moved / float(m)


# ── The minimizer of a strongly convex loss, with noise ──────────────────────────────────────────


# The solver stops at this part of what one record can do to the gradient.
_TOLERANCE = 2.0**-10
# The minimizer is looked for within this many G/m of zero: it lies there if there are at most so
# many times more records than declared.
_REACH = 8


# A certificate makes up records of so many numbers together, at most.
_MADE_UP = 1 << 14
Records: TypeAlias = tuple[Floats, Floats]


def neighboring_records(rows: int, features: int, row_norm: float) -> list[tuple[Records, Records]]:
    """Made-up records of which one's target is replaced: alone in its direction, and not."""
    if rows * features > _MADE_UP:
        return []
    pairs = []
    for share in (0, rows // 2, rows):
        x, y = np.zeros((rows, features)), np.zeros(rows)
        x[0, 0] = x[:share, 0] = row_norm
        other = y.copy()
        other[0] = 1.0
        pairs.append(((x, y), (x, other)))
    return pairs


def distance(noise: AdditiveMechanism, gap: Floats) -> float:
    """How far apart what is handed to a noise is, in the sensitivity that the noise is made for."""
    if noise.name == "laplace":
        return float(np.abs(gap).sum()) / float(noise.sensitivity)
    return float(np.sqrt(np.square(gap).sum() / float(noise.sensitivity)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPerturbation(Mechanism):
    """A mechanism that adds noise to a trained model. Made by `output_perturbation`.

    Attributes:
        objective: Loss that is minimized.
        features: Number of features.
        rows: Public number of records.
        row_norm: Largest L2 norm of a row.
        relation: Neighboring relation.
        noise: Mechanism that adds noise to the parameters.
        sensitivity: Largest change of the computed parameters by one record, in L2.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> mechanism = dp_sgd.output_perturbation(
        ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, epsilon=1
        ... )
        >>> mechanism.guarantee.epsilon()
        1.0
    """

    objective: Loss
    features: int
    rows: int
    row_norm: float
    relation: NeighboringRelation
    noise: AdditiveMechanism
    sensitivity: float

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one parameter."""
        return self.noise.std

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise from its exact distribution.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: The exact distribution does not satisfy the guarantee.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> mechanism = dp_sgd.output_perturbation(
            ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, epsilon=1
            ... )
            >>> mechanism.certify().holds
            True
        """
        found = self.noise.certify()
        drawn = (
            *found.drawn,
            *self._moved(),
            charges("what is charged", self.guarantee, self.noise.guarantee),
        )
        return replace(
            found, mechanism="output perturbation", guarantee=self.guarantee, drawn=drawn
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        worst = 0.0
        for records in neighboring_records(self.rows, self.features, self.row_norm):
            seen = []
            for x, y in records:
                noted = Handed(self.noise)
                with_stand_in(self, noise=noted).release(x, y)
                seen.append(noted.handed.astype(np.float64))
            worst = max(worst, distance(self.noise, seen[0] - seen[1]))
        return (moves("one record's target", worst, 1.0),) if worst else ()

    def release(self, x: object, y: object, *, rng: RandomSource | None = None) -> Floats:
        """Train on private records and release noisy parameters.

        Args:
            x: Features, one row per record. Longer rows than `row_norm` are shrunk.
            y: Target of each record.
            rng: Random source. By default the operating system's.

        Returns:
            The parameters.

        Privacy:
            The release satisfies `guarantee` for one record. This method charges no account;
            `OutputPerturbationLogisticRegression` does.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> mechanism = dp_sgd.output_perturbation(
            ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, epsilon=1
            ... )
            >>> x = numpy.linspace(-1, 1, 500)[:, None]
            >>> mechanism.release(x, (x[:, 0] > 0).astype(float)).shape
            (1,)
        """
        rows, targets = read_records(
            self.objective,
            x,
            y,
            features=self.features,
            row_norm=self.row_norm,
            rows=self.rows if self.relation is NeighboringRelation.REPLACE_ONE else None,
        )
        theta = _solved(self, rows, targets)
        released: Floats = self.noise.release(theta, rng=resolve_rng(rng))
        return released

    @property
    def radius(self) -> float:
        """Distance from zero within which the minimizer is searched."""
        return _REACH * self.objective.lipschitz(self.row_norm) / self.objective.strong_convexity()

    @property
    def tolerance(self) -> float:
        """Length of the gradient at which the solver stops."""
        return _TOLERANCE * self.objective.lipschitz(self.row_norm) / self.rows


def output_perturbation(  # noqa: PLR0913 - four ways to say how much, each named
    objective: Loss,
    *,
    features: int,
    public_rows: int,
    row_norm: float,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    mu: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> OutputPerturbation:
    """Create a mechanism that trains without noise and adds noise to the result.

    Pure epsilon uses Laplace noise. A delta, rho or mu uses Gaussian noise.

    Args:
        objective: Loss with bounded gradient and `l2` above zero, also on an intercept.
        features: Number of features.
        public_rows: Public number of records; approximate under add/remove.
        row_norm: Largest L2 norm of a row. Longer rows are shrunk.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP.
        mu: Privacy loss in Gaussian DP.
        relation: Neighboring relation of the guarantee.

    Returns:
        A mechanism with `release(x, y)`.

    Raises:
        InvalidArgument: Not exactly one budget is given, or an argument is outside its range.
        Unsupported: The loss has no bounded gradient or is not strongly convex.

    Privacy:
        The mechanism satisfies the budget for one record, for all data.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> mechanism = dp_sgd.output_perturbation(
        ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, epsilon=1
        ... )
        >>> mechanism.std > 0
        True

    References:
        Chaudhuri, Monteleoni and Sarwate (2011). Wu et al. (2017).
        [Proof](../theory/theorems.md#models.dp_sgd._output_perturbation.output_perturbation).
    """
    # Theorem: as asked, under `relation`, for all data.
    # Proof: `minimizer_sensitivity`; what the solver leaves and what rounding adds
    #   (`gradient_error`) is in the sensitivity; L1 is at most sqrt(p) L2. Constraining parameters
    #   to a ball changes nothing: a projected step has the same constants. See
    #   theory/sgd-convergence.
    # Source: Chaudhuri, Monteleoni, Sarwate 2011; Wu et al. 2017. C42.
    # Needs: a loss with bounded gradient; l2 above zero, also on an intercept.
    width = count("features", features)
    divisor = count("public_rows", public_rows)
    piece_error(width)  # refuses too many features before a row is read
    length = widened(float(positive("row_norm", row_norm)), width)
    g, m = gradient_constants(objective, length)
    share = 1.0 if relation is NeighboringRelation.REPLACE_ONE else largest_share(divisor, width)
    # Points ahead of the present one are at most three times as far away (`_accelerated`).
    error = gradient_error(objective, row_norm=length, radius=3 * _REACH * g / m, share=share)
    sensitivity = minimizer_sensitivity(
        lipschitz=g,
        strong_convexity=m,
        rows=divisor,
        relation=relation,
        tolerance=_TOLERANCE * g / divisor + error,
    )
    # The last step of the slow solver is rounded, too.
    sensitivity = (sensitivity + 64 * UNIT * _REACH * g / m) * (1 + 1e-9)
    dimension = objective.dimension(width)
    noise = _noise(
        sensitivity, dimension, epsilon=epsilon, delta=delta, rho=rho, mu=mu, relation=relation
    )
    return OutputPerturbation(
        objective=objective,
        features=width,
        rows=divisor,
        row_norm=float(row_norm),
        relation=relation,
        noise=noise,
        sensitivity=sensitivity,
    )


def longest_gradient(objective: Loss, row_norm: float, *, norm: Norm = "l2") -> float:
    """The length of a record's gradient, at most; a loss without such a bound is refused."""
    g = objective.lipschitz(row_norm, norm=norm)
    if not objective.convex or not math.isfinite(g):
        raise InvalidArgument(
            f"{type(objective).__name__} has no bounded gradient: take Huber or Logistic."
        )
    return g


def gradient_constants(objective: Loss, row_norm: float) -> tuple[float, float]:
    """The Lipschitz constant of a record without the penalty and the strong convexity."""
    g, m = longest_gradient(objective, row_norm), objective.strong_convexity()
    if not m > 0:
        raise InvalidArgument(
            "l2 must be positive and the intercept penalized (intercept=False, a column of ones): "
            "without strong convexity one record can move the minimizer without bound."
        )
    return g, m


def _noise(
    sensitivity: float,
    dimension: int,
    *,
    epsilon: Number | None,
    delta: Number,
    rho: Number | None,
    mu: Number | None,
    relation: NeighboringRelation,
) -> AdditiveMechanism:
    if epsilon is not None and delta == 0 and rho is None and mu is None:
        return laplace(
            sensitivity=sensitivity,
            norm="l2",
            dimension=dimension,
            epsilon=epsilon,
            domain="reals",
            relation=relation,
        )
    return gaussian(
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta or None,
        rho=rho,
        mu=mu,
        domain="reals",
        relation=relation,
    )


def read_records(
    objective: Loss,
    x: object,
    y: object,
    *,
    features: int,
    row_norm: float,
    rows: int | None = None,
    norm: Norm = "l2",
    bits: int = ROW_BITS,
) -> tuple[Floats, Floats]:
    """Private records: rows shrunk to the declared length, targets that the loss understands.

    ``rows``: their number, where it is public. A record that does not fit is a row of zeros, whose
    gradient is zero: a value is missing or unreadable, or the target is not the number of a class.
    """
    table = matrix("X", x, columns=features)
    given, flat = target_table(y)
    if table.shape[1] != features:
        raise InvalidArgument(f"X must have {features} columns, got {table.shape[1]}.")
    if not flat:
        raise InvalidArgument("y should be a 1d array, got 2 dimensions.")
    same_rows(table, given)
    if rows is not None and len(table) != rows:
        raise OutOfDomain(f"X must have the declared number of rows, {rows}.")
    given_x, targets = doubles(table), doubles(given[:, 0])
    if isinstance(objective, Logistic | Softmax):
        classes = max(objective.outputs, 2)
        targets = np.where(np.isin(targets, np.arange(classes)), targets, np.nan)
    kept = fitting(given_x, targets) & np.isfinite(targets)
    largest = np.finfo(np.float64).max
    clipped = np.where(kept[:, None], np.clip(given_x, -largest, largest), 0.0)
    read = clipped_rows(clipped, row_norm, norm=norm, bits=bits)
    return read, np.where(kept, targets, 0.0)


def _solved(plan: OutputPerturbation, x: Floats, y: Floats) -> Floats:
    """Parameters within ``tolerance / m`` of the minimizer over the ball: private."""
    objective, radius = plan.objective, plan.radius

    def slope(theta: Floats) -> Floats:
        gradient: Floats = data_gradient(objective, theta, x, y) / plan.rows
        return gradient + objective.penalty_gradient(theta)

    def fast(theta: Floats) -> tuple[float, Floats]:
        margins = objective.margins(theta, x)
        loss = float(objective.losses(margins, y).sum()) / plan.rows + objective.penalty(theta)
        slopes = objective.slopes(margins, y).reshape(len(x), objective.outputs)
        gradient: Floats = (slopes.T @ x).ravel() / plan.rows
        return loss, gradient + objective.penalty_gradient(theta)

    start = np.zeros(objective.dimension(plan.features))
    solve: Any = optimize.minimize  # its stubs know fewer arrays than it does
    options = {"maxiter": 3000, "ftol": 0.0, "gtol": plan.tolerance / (4 * math.sqrt(start.size))}
    found = solve(fast, start, jac=True, method="L-BFGS-B", options=options)
    theta = representable(np.asarray(found.x, dtype=np.float64), plan.features)
    # How it was found does not matter: what is claimed rests on this one gradient.
    if float(np.linalg.norm(theta)) <= radius and _length(slope(theta)) <= plan.tolerance:
        return theta
    return _accelerated(plan, project_to_ball(theta, radius), slope, share=len(x) / plan.rows)


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


def project_to_ball(theta: NDArray[np.float64], radius: float) -> Floats:
    """The nearest point of the ball."""
    length = _length(theta)
    return theta if length <= radius else theta * (radius / length)


def _accelerated(plan: OutputPerturbation, start: Floats, slope: Any, *, share: float) -> Floats:
    """Nesterov's projected descent: slower, but sure to arrive."""
    # Proof: the projected step T is Lipschitz with 1 - m/L, so that `L ||z - T z|| <= tolerance`
    #   puts z and T z within `tolerance / m` of its fixed point, the minimizer over the ball.
    objective = plan.objective
    m = objective.strong_convexity()
    top = objective.curvature * plan.row_norm**2 * max(share, 1.0) + m
    root = math.sqrt(m / top)
    momentum = (1 - root) / (1 + root)
    here = ahead = start
    for _ in range(1000 + math.ceil(200 / root)):
        ahead = representable(ahead, plan.features)
        there = project_to_ball(ahead - slope(ahead) / top, plan.radius)
        if top * _length(ahead - there) <= plan.tolerance:
            return there
        here, ahead = there, there + momentum * (there - here)
    raise NotCertified("The minimizer was not found to the needed precision: take a larger l2.")
