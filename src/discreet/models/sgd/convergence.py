"""How far a noisy run ends from the minimum: the bound on the average of its iterates (C38, C40).

The constants of a problem (distance, variance, minimiser) are computed from the data. A bound made
of them is for planning on public or made-up data, and is never published about private data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, non_negative, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.sgd.objectives import Objective
from discreet.models.sgd.reference import Noise, largest_row, minimiser
from discreet.models.sgd.schedule import Floats, positives, sums

# The expected square of one coordinate of unit noise.
SECOND_MOMENT: dict[Noise, float] = {"laplace": 2.0, "gaussian": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The constants of a problem that the bound needs. They are facts about the data: private."""

    not_private: ClassVar[bool] = True
    dimension: int
    smoothness: float
    """L: the gradient of *every* record is L-Lipschitz."""
    variance: float
    """Mean squared norm of the records' gradients at the minimiser."""
    distance: float
    """From the start to the minimiser."""

    def __post_init__(self) -> None:
        count("dimension", self.dimension)
        positive("smoothness", self.smoothness)
        non_negative("variance", self.variance)
        non_negative("distance", self.distance)

    @property
    def largest_rate(self) -> float:
        """The largest learning rate that the bound allows: 1/(4 L)."""
        return 1 / (4 * self.smoothness)


def problem(objective: Objective, x: Floats, y: Floats, *, start: Floats | None = None) -> Problem:
    """The constants of an objective on these records. Not private."""
    best = minimiser(objective, x, y)
    slopes = objective.gradient(best, x, y)
    origin = np.zeros_like(best) if start is None else start
    return Problem(
        dimension=best.size,
        smoothness=objective.smoothness(largest_row(x)),
        variance=float((slopes**2).sum(axis=1).mean()),
        distance=float(np.linalg.norm(origin - best)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
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


def bound(
    facts: Problem, *, rates: ArrayLike, scales: ArrayLike | None, noise: Noise = "laplace"
) -> Bound:
    """The bound on the expected excess loss of the rate-weighted average of the iterates (C38).

    Theorem: ``(R^2 + 2 sigma^2 sum eta_j^2 + c p sum eta_j^2 gamma_{j+1}^2) / sum eta_j`` with
        c = 2 for Laplace noise of scale gamma and 1 for Gaussian noise of that deviation.
    Proof: theory/sgd-convergence. The noise of the step that *uses* rate eta_j is gamma_{j+1}: the
        printed theorem is one off (M25).
    Source: Biswal 2024, Theorem 7.7.1.
    Needs: convex L-smooth records, rates up to 1/(4 L), unbiased gradients: clipping that is ever
        active breaks it.
    """
    eta = positives("rates", rates)
    # A rate that was computed as 1/(4 L) may be above it by its rounding.
    if float(eta.max()) > facts.largest_rate * (1 + 1e-12):
        raise InvalidArgument(
            f"rates must not exceed 1/(4L) = {facts.largest_rate:g}, got {eta.max():g} (M31)."
        )
    if noise not in SECOND_MOMENT:
        raise Unsupported(f"noise must be 'laplace' or 'gaussian', got {noise!r}.")
    parts = sums(eta, scales=np.zeros_like(eta) if scales is None else scales)
    return Bound(
        distance=facts.distance**2 * parts.distance,
        variance=2 * facts.variance * parts.variance,
        noise=SECOND_MOMENT[noise] * facts.dimension * parts.noise,
    )


def variance_transfer(
    objective: Objective, x: Floats, y: Floats, *, theta: Floats, best: Floats
) -> tuple[float, float]:
    """Both sides of ``E||g_I(theta)||^2 <= 4 L (Psi(theta) - Psi(best)) + 2 sigma^2`` (C40).

    Needs: records' losses that are convex *and* L-smooth; the printed lemma forgets convexity
        (M32).
    """
    left = float((objective.gradient(theta, x, y) ** 2).sum(axis=1).mean())
    variance = float((objective.gradient(best, x, y) ** 2).sum(axis=1).mean())
    gap = objective.mean_loss(theta, x, y) - objective.mean_loss(best, x, y)
    return left, 4 * objective.smoothness(largest_row(x)) * gap + 2 * variance
