"""Private gradient descent as printed in Biswal 2024, chapter 7: simulations that cannot release.

There is no guarantee to charge, and the noise is a plain seeded generator's. What is right stands
in `laplace`, `trajectory`, `schedule`, `convergence` and `bolt_on`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd._laplace_rates import Floats, PowerSchedule, noise_scales, positives
from discreet.models.dp_sgd.convergence import (
    SECOND_MOMENT,
    ConvergenceProblem,
    SimulatedRuns,
    simulate,
)
from discreet.models.dp_sgd.losses import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLaplaceDescent:
    """The private stochastic gradient descent of Theorem 7.6.1, as printed.

    ``sensitivity`` is "the global sensitivity of the gradient", read as at one theta. The printed
    claim is false where steps are expansive, for averages and for the sequence of iterates, and for
    more than one dimension if the sensitivity is not in L1 (M25-M27).
    """

    as_published: ClassVar[bool] = True
    schedule: PowerSchedule
    sensitivity: float
    epsilon: float

    def scales(self, steps: int) -> Floats:
        """The noise of each step, in units of the gradient."""
        return noise_scales(
            self.schedule.rates(steps),
            growths=self.schedule.growths(steps),
            diameter=self.sensitivity,
            epsilon=self.epsilon,
        )

    def claimed(self, steps: int) -> Floats:
        """What the theorem says that each iterate costs."""
        return self.epsilon * self.schedule.growths(steps)

    def simulate(
        self,
        objective: Loss,
        x: Floats,
        y: Floats,
        *,
        steps: int,
        repetitions: int = 1,
        seed: int = 0,
    ) -> SimulatedRuns:
        """Runs on public or made-up records."""
        return simulate(
            objective,
            x,
            y,
            rates=self.schedule.rates(steps),
            scales=self.scales(steps),
            repetitions=repetitions,
            seed=seed,
        )


def noise_vanishes_as_published(schedule: PowerSchedule) -> bool:
    """The printed rule for a constant rate: growth above 3/2 (it is above 1, M30)."""
    if schedule.decay != 0:
        raise InvalidArgument("The printed rule is for a constant rate, decay=0.")
    return schedule.growth > 1.5


def bound_as_published(facts: ConvergenceProblem, *, rates: ArrayLike, scales: ArrayLike) -> float:
    """The printed bound: each rate with the noise of the step *before* the one that uses it (M25).

    The first rate has no such noise; it goes without.
    """
    eta, gamma = positives("rates", rates), positives("scales", scales)
    shifted = np.append(0.0, gamma[:-1])
    total = float(eta.sum())
    noise = SECOND_MOMENT["laplace"] * facts.dimension * float(((eta * shifted) ** 2).sum())
    spread = 2 * facts.variance * float((eta**2).sum())
    return (facts.distance**2 + spread + noise) / total


def pass_sensitivity_as_published(*, lipschitz: float, strong_convexity: float, rows: int) -> float:
    """``2 G / (m n)`` for passes at a constant rate: false, one record moves more (C42)."""
    g, m = positive("lipschitz", lipschitz), positive("strong_convexity", strong_convexity)
    return float(2 * g / (m * count("rows", rows)))
