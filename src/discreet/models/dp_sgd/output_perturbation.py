"""Output perturbation: the minimiser of a strongly convex loss, with noise at the end (C42)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from discreet.accounting.guarantee import Guarantee
from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.gaussian import gaussian
from discreet.mechanisms.laplace import laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.models.inputs import doubles, matrix_shape, same_rows, shaped
from discreet.models.sgd.bolt_on import minimiser_sensitivity
from discreet.models.sgd.objectives import Floats, Logistic, Norm, Objective, Softmax
from discreet.models.sgd.rounding import (
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
from discreet.noise.bits import Bits, source_of

# The solver stops at this part of what one record can do to the gradient.
_TOLERANCE = 2.0**-10
# The minimiser is looked for within this many G/m of zero: it lies there if there are at most so
# many times more records than declared.
_ROOM = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPerturbation(Mechanism):
    """The minimiser with noise. Made by `output_perturbation`."""

    objective: Objective
    features: int
    rows: int
    row_norm: float
    relation: Relation
    noise: Additive
    sensitivity: float
    """How far one record moves what is computed, in L2."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on one parameter."""
        return self.noise.std

    def certify(self) -> Certificate:
        """Recompute the divergence of the noise from its exact law."""
        found = self.noise.certify()
        return Certificate(
            mechanism="output perturbation", guarantee=self.guarantee, checks=found.checks
        )

    def release(self, x: object, y: object, *, bits: Bits | None = None) -> Floats:
        """The noisy parameters, a multiple of a public grid each."""
        rows, targets = read_records(
            self.objective,
            x,
            y,
            features=self.features,
            row_norm=self.row_norm,
            rows=self.rows if self.relation is Relation.REPLACE_ONE else None,
        )
        theta = _solved(self, rows, targets)
        released: Floats = self.noise.release(theta, bits=source_of(bits))
        return released

    @property
    def radius(self) -> float:
        """The minimiser is looked for within this distance of zero."""
        return _ROOM * self.objective.lipschitz(self.row_norm) / self.objective.strong_convexity()

    @property
    def tolerance(self) -> float:
        """The length of the gradient at which the solver may stop."""
        return _TOLERANCE * self.objective.lipschitz(self.row_norm) / self.rows


def output_perturbation(  # noqa: PLR0913 - four ways to say how much, each named
    objective: Objective,
    *,
    features: int,
    rows: int,
    row_norm: float,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    mu: Number | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> OutputPerturbation:
    """Noise on the minimiser of ``sum of losses / rows + l2/2 ||theta||^2``.

    Pure ``epsilon`` takes Laplace noise, ``epsilon`` with ``delta``, ``rho`` or ``mu`` Gaussian.
    Rows longer than ``row_norm`` are shrunk to it. ``rows`` is a public number: under replace-one
    the number of records, under add/remove roughly that.

    Theorem: as asked, under ``relation``, for all data.
    Proof: `minimiser_sensitivity`; what the solver leaves and what rounding adds (`gradient_error`)
        is in the sensitivity; L1 is at most sqrt(p) L2. Constraining parameters to a ball changes
        nothing: a projected step has the same constants. See theory/sgd-convergence.
    Source: Chaudhuri, Monteleoni, Sarwate 2011; Wu et al. 2017. C42.
    Needs: a loss with bounded gradient; l2 above zero, also on an intercept.
    """
    width = count("features", features)
    divisor = count("rows", rows)
    piece_error(width)  # refuses too many features before a row is read
    length = widened(float(positive("row_norm", row_norm)), width)
    g, m = bounded(objective, length)
    share = 1.0 if relation is Relation.REPLACE_ONE else largest_share(divisor, width)
    # Points ahead of the present one are at most three times as far away (`_accelerated`).
    error = gradient_error(objective, row_norm=length, radius=3 * _ROOM * g / m, share=share)
    sensitivity = minimiser_sensitivity(
        lipschitz=g,
        strong_convexity=m,
        rows=divisor,
        relation=relation,
        tolerance=_TOLERANCE * g / divisor + error,
    )
    # The last step of the slow solver is rounded, too.
    sensitivity = (sensitivity + 64 * UNIT * _ROOM * g / m) * (1 + 1e-9)
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


def longest_gradient(objective: Objective, row_norm: float, *, norm: Norm = "l2") -> float:
    """The length of a record's gradient, at most; a loss without such a bound is refused."""
    g = objective.lipschitz(row_norm, norm=norm)
    if not objective.convex or not math.isfinite(g):
        raise InvalidArgument(
            f"{type(objective).__name__} has no bounded gradient: take Huber or Logistic."
        )
    return g


def bounded(objective: Objective, row_norm: float) -> tuple[float, float]:
    """The Lipschitz constant of a record without the penalty and the strong convexity."""
    g, m = longest_gradient(objective, row_norm), objective.strong_convexity()
    if not m > 0:
        raise InvalidArgument(
            "l2 must be positive and the intercept penalised (intercept=False, a column of ones): "
            "without strong convexity one record can move the minimiser without bound."
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
    relation: Relation,
) -> Additive:
    if epsilon is not None and delta == 0 and rho is None and mu is None:
        return laplace(
            sensitivity=sensitivity,
            norm="l2",
            dimension=dimension,
            epsilon=epsilon,
            on="reals",
            relation=relation,
        )
    return gaussian(
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta or None,
        rho=rho,
        mu=mu,
        on="reals",
        relation=relation,
    )


def read_records(
    objective: Objective,
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

    ``rows``: their number, where it is public.
    """
    table, given = shaped("X", x), shaped("y", y)
    matrix_shape(table)
    if table.shape[1] != features:
        raise InvalidArgument(f"X must have {features} columns, got {table.shape[1]}.")
    if given.ndim != 1:
        raise InvalidArgument(f"y should be a 1d array, got {given.ndim} dimensions.")
    same_rows(table, given)
    if rows is not None and len(table) != rows:
        raise OutOfDomain(f"X must have the declared number of rows, {rows}.")
    targets = doubles("y", given)
    if isinstance(objective, Logistic | Softmax):
        classes = max(objective.outputs, 2)
        if not (np.isin(targets, np.arange(classes))).all():
            raise OutOfDomain(f"y must hold the numbers of classes, 0 to {classes - 1}.")
    return clipped_rows(doubles("X", table), row_norm, norm=norm, bits=bits), targets


def _solved(plan: OutputPerturbation, x: Floats, y: Floats) -> Floats:
    """Parameters within ``tolerance / m`` of the minimiser over the ball: private."""
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
    return _accelerated(plan, projected(theta, radius), slope, share=len(x) / plan.rows)


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


def projected(theta: NDArray[np.float64], radius: float) -> Floats:
    """The nearest point of the ball."""
    length = _length(theta)
    return theta if length <= radius else theta * (radius / length)


def _accelerated(plan: OutputPerturbation, start: Floats, slope: Any, *, share: float) -> Floats:
    """Nesterov's projected descent: slower, but sure to arrive.

    Proof: the projected step T is Lipschitz with 1 - m/L, so that ``L ||z - T z|| <= tolerance``
        puts z and T z within ``tolerance / m`` of its fixed point, the minimiser over the ball.
    """
    objective = plan.objective
    m = objective.strong_convexity()
    top = objective.curvature * plan.row_norm**2 * max(share, 1.0) + m
    root = math.sqrt(m / top)
    momentum = (1 - root) / (1 + root)
    here = ahead = start
    for _ in range(1000 + math.ceil(200 / root)):
        ahead = representable(ahead, plan.features)
        there = projected(ahead - slope(ahead) / top, plan.radius)
        if top * _length(ahead - there) <= plan.tolerance:
            return there
        here, ahead = there, there + momentum * (there - here)
    raise NotCertified("The minimiser was not found to the needed precision: take a larger l2.")
