"""What an error costs: the expected loss of a law of noise, in steps of its grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from discreet.mechanisms.divergence import half_width
from discreet.noise.bounded import BoundedLaplace
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace
from discreet.noise.law import Law
from discreet.noise.staircase import Staircase
from discreet.noise.stepped import Stepped

Loss: TypeAlias = Literal["mse", "mae", "p95"]
Noise: TypeAlias = Law | RoundedLaplace | RoundedGaussian


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
        case BoundedLaplace() | Staircase() | Stepped():
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
WORDS: dict[Loss, str] = {
    "mse": "root of the mean squared error",
    "mae": "mean absolute error",
    "p95": "error that 95 of 100 releases stay below",
}


def _summed(noise: Law) -> float:
    reach = math.ceil(40 * noise.std) + 2
    k = np.arange(1, reach + 1)
    return 2 * math.fsum(k * noise.pmf(k))
