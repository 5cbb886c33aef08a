"""Runs without privacy: the minimiser to compare with, and simulations of noisy runs (C33, C35).

Nothing here may be published about private data: there is no guarantee, the stopping rules look at
the data, and the noise is that of a plain seeded generator in double precision (C45).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.sgd.objectives import Objective, Squared
from discreet.models.sgd.schedule import Floats, positives

Noise: TypeAlias = Literal["laplace", "gaussian"]


def largest_row(x: Floats) -> float:
    """The largest L2 norm of a row. Not private: a release needs a declared bound."""
    return float(np.linalg.norm(x, axis=1).max())


def gradient_descent(
    objective: Objective,
    x: Floats,
    y: Floats,
    *,
    rate: float | None = None,
    tolerance: float = 1e-8,
    steps: int = 100_000,
) -> Floats:
    """Plain gradient descent until the gradient is small, from zero (C33). Not private.

    It stops where the data say so, which is why a private run has a fixed number of steps (M26).
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


def minimiser(objective: Objective, x: Floats, y: Floats) -> Floats:
    """The minimiser of the mean loss, as well as doubles allow. Not private."""
    if isinstance(objective, Squared):
        return objective.minimiser(x, y)
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
class Runs:
    """Repetitions of a simulated run, one in each row."""

    last: Floats
    average: Floats
    """The average of the iterates that gradients were taken at, weighted by their rates."""

    def excess(self, objective: Objective, x: Floats, y: Floats, *, best: float) -> Floats:
        """Mean loss above the minimum, of the average of each run."""
        return excess(self.average, objective, x, y, best=best)


def excess(thetas: Floats, objective: Objective, x: Floats, y: Floats, *, best: float) -> Floats:
    """Mean loss above ``best``, of each row of ``thetas``."""
    return np.array([objective.mean_loss(theta, x, y) - best for theta in thetas])


def simulate(  # noqa: PLR0913 - the data, the schedule, the repetitions
    objective: Objective,
    x: Floats,
    y: Floats,
    *,
    rates: ArrayLike,
    scales: ArrayLike | None,
    noise: Noise = "laplace",
    repetitions: int = 1,
    seed: int = 0,
    start: Floats | None = None,
) -> Runs:
    """Stochastic gradient descent on one random record a step, with noise, many runs at once.

    ``scales`` is the noise of each step in units of the gradient; None for no noise. C35, C36.
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
    return Runs(last=theta, average=weighted / eta.sum())


def record_gradients(
    objective: Objective, thetas: Floats, x: Floats, y: Floats, records: ArrayLike
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
