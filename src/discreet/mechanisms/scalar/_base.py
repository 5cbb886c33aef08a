"""Noise on one number: its expected loss, and the mechanism that its distribution makes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._exact_divergence import half_width
from discreet.mechanisms._inputs import Released, ScoreScale, add_clamped
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism, target_guarantee
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace
from discreet.noise.piecewise_constant import PiecewiseConstant, Staircase
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Expected loss ────────────────────────────────────────────────────────────────────────────────
# What an error costs: the expected loss of a law of noise, in steps of its grid.


Loss: TypeAlias = Literal["mse", "mae", "p95"]
Noise: TypeAlias = Distribution | RoundedLaplace | RoundedGaussian


def mean_square(noise: Noise) -> float:
    """Expected squared error."""
    match noise:
        case RoundedLaplace():
            return 2 * float(noise.scale) ** 2 + 1 / 12
        case RoundedGaussian():
            return float(noise.square) + 1 / 12
        case _:
            return noise.moment(2)


def mean_absolute(noise: Noise) -> float:
    """Expected absolute error."""
    match noise:
        case RoundedLaplace():
            return float(noise.scale)
        case RoundedGaussian():
            return math.sqrt(2 * float(noise.square) / math.pi)
        case DiscreteLaplace():
            return 1 / math.sinh(1 / float(noise.scale))
        case BoundedDiscreteLaplace() | Staircase() | PiecewiseConstant():
            return noise.absolute_moment(1)
        case _:
            return _summed(noise)


def large_error(noise: Noise) -> float:
    """The error that 95 of 100 releases do not exceed."""
    return half_width(noise, 0.95)


LOSSES: dict[Loss, Callable[[Noise], float]] = {
    "mse": mean_square,
    "mae": mean_absolute,
    "p95": large_error,
}
LOSS_NAMES: dict[Loss, str] = {
    "mse": "root of the mean squared error",
    "mae": "mean absolute error",
    "p95": "error that 95 of 100 releases stay below",
}


def _summed(noise: Distribution) -> float:
    reach = math.ceil(40 * noise.std) + 2
    k = np.arange(1, reach + 1)
    return 2 * math.fsum(k * noise.pmf(k))


# ── Noise on one number ──────────────────────────────────────────────────────────────────────────


class ScalarNoise(Mechanism):
    """Integer noise on one number, on a public grid. Subclasses are frozen dataclasses."""

    name: str
    scale: ScoreScale
    noise: Distribution
    target: tuple[Fraction, Fraction]
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return target_guarantee(*self.target, relation=self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.noise.std * self.scale.step

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``confidence``."""
        high = divergence.half_width(self.noise, confidence) * self.scale.step
        return -high, high

    def release(self, value: float, *, rng: RandomSource | None = None) -> Released:
        """Add noise to one number: a whole one stays whole if the sensitivity is whole."""
        if np.ndim(value) != 0:
            raise OutOfDomain("value must be one number: this noise is made for a scalar.")
        steps = self.scale.read(np.reshape(np.asarray(value), 1), name="value")
        noisy = add_clamped(steps, self.noise.sample(1, resolve_rng(rng)))
        return noisy.item() if self.scale.exponent == 0 else noisy.item() * self.scale.step

    @abstractmethod
    def exact(self) -> tuple[float, str]:
        """The divergence at the target's epsilon, from the law itself, and how it was found."""

    def certify(self) -> Certificate:
        """Recompute the divergence from the exact law, both directions being equal by symmetry."""
        epsilon, delta = map(float, self.target)
        found, route = self.exact()
        check = CertificateCheck(
            part=f"noise of std {self.std:.6g}",
            epsilon=epsilon,
            claimed=delta,
            exact=found,
            route=route,
        )
        return Certificate(mechanism=self.name, guarantee=self.guarantee, checks=(check,)).demand()

    def __repr__(self) -> str:
        return f"{self.name}({self.guarantee!r}; std {self.std:.4g})"
