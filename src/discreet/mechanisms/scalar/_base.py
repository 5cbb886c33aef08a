"""Noise on one number: its expected loss, and the mechanism that its distribution makes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._drawn import MANY, draws_follow, releases_follow
from discreet.mechanisms._exact_divergence import half_width
from discreet.mechanisms._inputs import Released, ScoreScale, add_clamped
from discreet.mechanisms.mechanism import (
    Certificate,
    CertificateCheck,
    DrawCheck,
    Mechanism,
    target_guarantee,
)
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
        """Privacy guarantee of one release."""
        return target_guarantee(*self.target, relation=self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.noise.std * self.scale.step

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-6)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        high = divergence.half_width(self.noise, confidence) * self.scale.step
        return -high, high

    def release(self, value: float, *, rng: RandomSource | None = None) -> Released:
        """Add noise to a number.

        On integers the number is rounded first. Numbers beyond 2**61 steps count as the largest
        one.

        Args:
            value: Private number.
            rng: Random source. By default the operating system's.

        Returns:
            A noisy number, an integer on integers and a float on reals.

        Raises:
            OutOfDomain: The input is not one number.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-6)
            >>> isinstance(mechanism.release(100), int)
            True
        """
        steps = self.scale.read_one(value)
        noisy = add_clamped(steps, self.noise.sample(1, resolve_rng(rng)))
        return noisy.item() if self.scale.exponent == 0 else noisy.item() * self.scale.step

    @abstractmethod
    def exact(self) -> tuple[float, str]:
        """The divergence at the target's epsilon, from the law itself, and how it was found."""

    def certify(self) -> Certificate:
        """Recompute the guarantee from exact distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-6)
            >>> mechanism.certify().holds
            True
        """
        epsilon, delta = map(float, self.target)
        found, route = self.exact()
        check = CertificateCheck(
            part=f"noise of std {short(self.std, digits=6)}",
            epsilon=epsilon,
            claimed=max(delta, self.guarantee.delta(epsilon)),
            exact=found,
            route=route,
        )
        certificate = Certificate(
            mechanism=self.name, guarantee=self.guarantee, checks=(check,)
        ).demand()
        drawn = (
            draws_follow("noise", lambda rng: self.noise.sample(MANY, rng), self.noise.cdf),
            *(self._drawn(steps) for steps in (0, self.scale.shift)),
        )
        return replace(certificate, drawn=drawn).demand()

    def _drawn(self, steps: int) -> DrawCheck:
        """Releases of one number, against the law of the noise."""
        step = self.scale.step
        value = steps if self.scale.exponent == 0 else steps * step

        def release(rng: RandomSource) -> int:
            return round(Fraction(self.release(value, rng=rng)) / Fraction(step)) - steps

        name = f"releases {'one sensitivity from' if steps else 'at'} zero"
        return releases_follow(name, release, self.noise.cdf)

    def __repr__(self) -> str:
        return f"{self.name}({self.guarantee!r}; std {short(self.std)})"
