"""What an analysis says: the leakage under the model, beside what needs no model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from discreet.accounting.conversion import gaussian_epsilon
from discreet.core.check import probability
from discreet.leakage.series.model import VAR, Floats
from discreet.leakage.series.signs import Peak, largest
from discreet.leakage.series.threat import KNOWN, Known, Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFree:
    """How well the noise alone hides values in the range, whatever depends on whom (as GDP mu).

    The first two are no bounds on what dependence gives away. The third is, but only for values
    that really are clipped to the range.
    """

    direct: float
    """The secret's own values change, and nothing else: what differential privacy promises."""
    user: float
    """All values of the secret's people change, at all times."""
    everything: float
    """All values of everybody change, at all times."""

    def __str__(self) -> str:
        return (
            f"without a model: mu {self.direct:.4g} if only the secret changes, {self.user:.4g} "
            f"if all values of its people do, {self.everything:.4g} if everybody's do"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leakage:
    """How well one secret is hidden, under the model and without it."""

    model: float
    """Telling two values of the secret apart is as hard as N(0, 1) from N(model, 1)."""
    exact: bool
    """Whether ``model`` is the exact value (or an upper bound)."""
    free: ModelFree
    assumptions: tuple[str, ...]

    @property
    def mu(self) -> float:
        """The number to act on: the model's, or what the noise alone gives away if that is more."""
        return max(self.model, self.free.direct)

    def epsilon(self, delta: float) -> float:
        """The epsilon of mu-GDP at this delta, under the assumptions."""
        return epsilon_of(self.mu, delta=float(probability("delta", delta, zero=False, one=False)))

    def __str__(self) -> str:
        bound = "" if self.exact else " at most"
        epsilon = self.epsilon(1e-6)
        return "\n".join(
            [
                f"leakage: mu{bound} {self.mu:.4g} (epsilon {epsilon:.4g} at delta 1e-6)",
                str(self.free),
                *(f"assumed: {line}" for line in self.assumptions),
            ]
        )


def epsilon_of(mu: float, *, delta: float) -> float:
    """The epsilon of mu-GDP; infinite where mu is."""
    return gaussian_epsilon(delta, mu=mu) if mu < math.inf else math.inf


def assumptions(model: VAR, known: Known) -> tuple[str, ...]:
    """What an answer under the model rests on."""
    start = "its stationary law" if model.stationary else "the given start"
    return (
        f"values follow this Gaussian VAR({model.order}) from {start}, and are not clipped",
        "the attacker knows the model, but not the random part of anybody's values",
        KNOWN[known],
    )


def model_free(releases: Releases, *, people: tuple[int, ...], times: tuple[int, ...]) -> ModelFree:
    """The three numbers for the secret of these people and times."""
    some = float(np.abs(releases.weights[list(people)]).sum())
    every = float(np.abs(releases.weights).sum())
    whole = noise_alone(releases, times=releases.times).upper
    direct = noise_alone(releases, times=times).upper
    return ModelFree(direct=some * direct, user=some * whole, everything=every * whole)


def noise_alone(releases: Releases, *, times: tuple[int, ...]) -> Peak:
    """The largest mu when the releases of these times each move by at most the width.

    The moves form a box and the square is convex: its maximum is at a corner, all signs.
    """
    moved = np.isin(releases.times, times)
    if not moved.any():
        return Peak(lower=0.0, upper=0.0)
    root = np.linalg.cholesky(releases.covariance)
    factor: Floats = solve_triangular(root, np.eye(len(root))[:, moved], lower=True)
    return largest(factor * releases.width)
