"""How far a noisy run ends from the minimum: a bound, and simulated runs to compare with.

The bound is on the average of the iterates. The constants of a problem (distance,
variance, minimizer) are computed from the data. A bound made of them is for planning on public or
synthetic data, and is never published about private data.

The same holds for the simulated runs: there is no guarantee, the stopping rules look at
the data, and the noise is that of a seeded generator in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.dp_sgd._laplace_rates import Floats, positives, schedule_sums
from discreet.models.dp_sgd.losses import Loss, Squared

# ── Runs without privacy ─────────────────────────────────────────────────────────────────────────


Noise: TypeAlias = Literal["laplace", "gaussian"]


def largest_row(x: Floats) -> float:
    """The largest L2 norm of a row. Not private: a release needs a declared bound."""
    return float(np.linalg.norm(x, axis=1).max())


def gradient_descent(
    objective: Loss,
    x: Floats,
    y: Floats,
    *,
    rate: float | None = None,
    tolerance: float = 1e-8,
    steps: int = 100_000,
) -> Floats:
    """Plain gradient descent until the gradient is small, from zero. Not private.

    It stops where the data say so, which is why a private run has a fixed number of steps.
    """
    eta = 1 / objective.smoothness(largest_row(x)) if rate is None else rate
    positive("rate", eta)
    theta = np.zeros(objective.dimension(x.shape[1]))
    for _ in range(count("steps", steps)):
        slope = objective.mean_gradient(theta, x, y)
        if float(np.linalg.norm(slope)) <= tolerance:
            break
        theta = theta - eta * slope
    return theta


def minimizer(objective: Loss, x: Floats, y: Floats) -> Floats:
    """The minimizer of the mean loss, as well as doubles allow. Not private."""
    if isinstance(objective, Squared):
        return objective.minimizer(x, y)
    # Doubles cannot do better than this; the limits are never reached on a convex loss.
    options = {"maxiter": 10_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-11, "maxcor": 30}
    solve: Any = optimize.minimize  # its stubs know fewer arrays than it does
    found = solve(
        lambda theta: objective.mean_loss(theta, x, y),
        np.zeros(objective.dimension(x.shape[1])),
        jac=lambda theta: objective.mean_gradient(theta, x, y),
        method="L-BFGS-B",
        options=options,
    )
    theta: Floats = np.asarray(found.x, dtype=np.float64)
    return theta


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRuns:
    """Repetitions of a simulated run, one in each row."""

    last: Floats
    average: Floats
    """The average of the iterates that gradients were taken at, weighted by their rates."""

    def excess(self, objective: Loss, x: Floats, y: Floats, *, best: float) -> Floats:
        """Mean loss above the minimum, of the average of each run."""
        return excess(self.average, objective, x, y, best=best)


def excess(thetas: Floats, objective: Loss, x: Floats, y: Floats, *, best: float) -> Floats:
    """Mean loss above ``best``, of each row of ``thetas``."""
    return np.array([objective.mean_loss(theta, x, y) - best for theta in thetas])


def simulate(  # noqa: PLR0913 - the data, the schedule, the repetitions
    objective: Loss,
    x: Floats,
    y: Floats,
    *,
    rates: ArrayLike,
    scales: ArrayLike | None,
    noise: Noise = "laplace",
    repetitions: int = 1,
    seed: int = 0,
    start: Floats | None = None,
) -> SimulatedRuns:
    """Stochastic gradient descent on one random record a step, with noise, many runs at once.

    ``scales`` is the noise of each step in units of the gradient; None for no noise.
    """
    eta = positives("rates", rates)
    if objective.outputs != 1:
        raise Unsupported("Simulated runs take objectives with one margin a record.")
    gamma = np.zeros_like(eta) if scales is None else np.asarray(scales, dtype=np.float64)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    rng = np.random.default_rng(seed)
    runs = (count("repetitions", repetitions), x.shape[1])
    theta = np.zeros(runs) if start is None else np.broadcast_to(start, runs).copy()
    weighted = np.zeros(runs)
    for rate, scale in zip(eta, gamma, strict=True):
        weighted += rate * theta
        slope = record_gradients(objective, theta, x, y, rng.integers(len(x), size=runs[0]))
        if scale > 0:
            slope += scale * (
                rng.laplace(size=runs) if noise == "laplace" else rng.normal(size=runs)
            )
        theta = theta - rate * slope
    return SimulatedRuns(last=theta, average=weighted / eta.sum())


def record_gradients(
    objective: Loss, thetas: Floats, x: Floats, y: Floats, records: ArrayLike
) -> Floats:
    """Gradient of record ``records[r]`` at ``thetas[r]``, for every r (penalty included)."""
    chosen = x[np.asarray(records)]
    margins = np.einsum("rp,rp->r", chosen, thetas)
    slopes = objective.slopes(margins, y[np.asarray(records)])
    free = np.full(x.shape[1], objective.l2)
    if objective.intercept:
        free[0] = 0.0
    result: Floats = slopes[:, None] * chosen + free * thetas
    return result


# ── Bound ────────────────────────────────────────────────────────────────────────────────────────


# The expected square of one coordinate of unit noise.
SECOND_MOMENT: dict[Noise, float] = {"laplace": 2.0, "gaussian": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceProblem:
    """Constants of an optimization problem that the error bound needs.

    If they are computed from private records, they are private.

    Args:
        dimension: Number of parameters.
        smoothness: Lipschitz constant of the gradient of every record.
        variance: Mean squared norm of the gradients of the records at the minimizer.
        distance: Distance from the start to the minimizer.

    Attributes:
        not_private: True: what was computed from private records must stay with them.

    Raises:
        InvalidArgument: A number is outside its range.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> problem = dp_sgd.ConvergenceProblem(dimension=2, smoothness=1, variance=1, distance=1)
        >>> problem.largest_rate
        0.25
    """

    not_private: ClassVar[bool] = True
    dimension: int
    smoothness: float
    variance: float
    distance: float

    def __post_init__(self) -> None:
        count("dimension", self.dimension)
        positive("smoothness", self.smoothness)
        non_negative("variance", self.variance)
        non_negative("distance", self.distance)

    @property
    def largest_rate(self) -> float:
        """Largest learning rate for which the error bound holds."""
        return 1 / (4 * self.smoothness)


def convergence_problem(
    objective: Loss, x: Floats, y: Floats, *, start: Floats | None = None
) -> ConvergenceProblem:
    """The constants of an objective on these records. Not private."""
    best = minimizer(objective, x, y)
    slopes = objective.gradient(best, x, y)
    origin = np.zeros_like(best) if start is None else start
    return ConvergenceProblem(
        dimension=best.size,
        smoothness=objective.smoothness(largest_row(x)),
        variance=float((slopes**2).sum(axis=1).mean()),
        distance=float(np.linalg.norm(origin - best)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceBound:
    """The three terms of the bound on the expected excess loss of the average."""

    distance: float
    """What is left of the way to go."""
    variance: float
    """Random records in the place of all."""
    noise: float
    """The price of privacy."""

    @property
    def total(self) -> float:
        """The bound."""
        return self.distance + self.variance + self.noise


def convergence_bound(
    facts: ConvergenceProblem,
    *,
    rates: ArrayLike,
    scales: ArrayLike | None,
    noise: Noise = "laplace",
) -> ConvergenceBound:
    """The bound on the expected excess loss of the rate-weighted average of the iterates."""
    # Theorem: `(R^2 + 2 sigma^2 sum eta_j^2 + c p sum eta_j^2 gamma_{j+1}^2) / sum eta_j` with
    #   c = 2 for Laplace noise of scale gamma and 1 for Gaussian noise of that deviation.
    # Proof: theory/sgd-convergence. The noise of the step that *uses* rate eta_j is gamma_{j+1}:
    #   the printed theorem is one off (M25).
    # Source: Biswal 2024, Theorem 7.7.1.
    # Needs: convex L-smooth records, rates up to 1/(4 L), unbiased gradients: clipping that is ever
    #   active breaks it.
    eta = positives("rates", rates)
    # A rate that was computed as 1/(4 L) may be above it by its rounding.
    if float(eta.max()) > facts.largest_rate * (1 + 1e-12):
        raise InvalidArgument(
            f"rates must not exceed 1/(4L) = {facts.largest_rate:g}, got {eta.max():g}."
        )
    if noise not in SECOND_MOMENT:
        raise Unsupported(f"noise must be 'laplace' or 'gaussian', got {noise!r}.")
    parts = schedule_sums(eta, scales=np.zeros_like(eta) if scales is None else scales)
    return ConvergenceBound(
        distance=facts.distance**2 * parts.distance,
        variance=2 * facts.variance * parts.variance,
        noise=SECOND_MOMENT[noise] * facts.dimension * parts.noise,
    )


def variance_transfer(
    objective: Loss, x: Floats, y: Floats, *, theta: Floats, best: Floats
) -> tuple[float, float]:
    """Both sides of ``E||g_I(theta)||^2 <= 4 L (Psi(theta) - Psi(best)) + 2 sigma^2``."""
    # Needs: records' losses that are convex *and* L-smooth; the printed lemma forgets convexity
    #   (M32).
    left = float((objective.gradient(theta, x, y) ** 2).sum(axis=1).mean())
    variance = float((objective.gradient(best, x, y) ** 2).sum(axis=1).mean())
    gap = objective.mean_loss(theta, x, y) - objective.mean_loss(best, x, y)
    return left, 4 * objective.smoothness(largest_row(x)) * gap + 2 * variance
