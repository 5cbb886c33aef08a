"""Laws of the error of releases that stay between bounds, for forecasts and advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.mechanisms.scalar._base import Noise, ScalarNoise
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.laplace import RoundedLaplace

# Noise of up to so many steps is summed over its lattice, wider noise over so many cells a side.
_FEW_STEPS = 128
_CELLS = 2049
# Scales beyond which nothing counts.
_REACH = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDistribution:
    """Errors in the unit of the data, in order, and how likely they are."""

    errors: Floats
    masses: Floats

    @property
    def bias(self) -> float:
        """Expected error."""
        return float(self.errors @ self.masses)

    @property
    def root_mean_square(self) -> float:
        """Root of the expected squared error."""
        return math.sqrt(float(self.errors**2 @ self.masses))

    @property
    def mean_absolute(self) -> float:
        """Expected size of the error."""
        return float(np.abs(self.errors) @ self.masses)

    def size(self, confidence: float) -> float:
        """The size that errors do not pass with probability ``confidence``."""
        sizes = np.abs(self.errors)
        order = np.argsort(sizes, kind="stable")
        place = int(np.searchsorted(np.cumsum(self.masses[order]), confidence * (1 - 1e-12)))
        return float(sizes[order][min(place, len(sizes) - 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The errors that are possible around one truth, as points or as cells.

    Points are those of the lattice of the release; where the noise is many steps wide, cells with
    the masses of the continuous law.
    """

    below: float
    """Distance from the truth to the lower bound, in steps."""
    above: float
    scale: float
    ends: tuple[Floats, Floats]
    """Both ends of the cells; the same array for points."""

    @classmethod
    def of(cls, steps: int, column: SortedColumn, scale: float) -> _Window:
        """Around a truth so many steps above the lower bound."""
        below, above = steps, column.span - steps
        reach = math.ceil(_REACH * scale)
        low, high = -min(below, reach), min(above, reach)
        if scale <= _FEW_STEPS:
            points = np.arange(low, high + 1, dtype=np.float64)
            ends = (points, points)
        else:
            edges = np.concatenate((np.linspace(low, 0, _CELLS), np.linspace(0, high, _CELLS)[1:]))
            ends = (edges[:-1], edges[1:])
        return cls(below=below, above=above, scale=scale, ends=ends)

    @property
    def is_lattice(self) -> bool:
        return self.ends[0] is self.ends[1]

    @property
    def errors(self) -> Floats:
        """In steps."""
        return (self.ends[0] + self.ends[1]) / 2

    def masses(self, distances: tuple[Floats, Floats]) -> Floats:
        """Noise without bounds at these distances from the truth, given by both ends of a cell."""
        one, other = (np.exp(-distance / self.scale) for distance in distances)
        if self.is_lattice:
            ratio = math.exp(-1 / self.scale)
            return one * (-math.expm1(-1 / self.scale) / (1 + ratio))
        masses: Floats = np.abs(one - other) / 2
        return masses


def bounded_error(steps: int, column: SortedColumn, scale: float) -> ErrorDistribution:
    """Noise conditioned on the bounds, so many steps above the lower one."""
    window = _Window.of(steps, column, scale)
    low, high = window.ends
    masses = window.masses((np.abs(low), np.abs(high)))
    return ErrorDistribution(errors=window.errors * column.step, masses=masses / masses.sum())


def clamped_error(
    steps: int, column: SortedColumn, noise: AdditiveMechanism | ScalarNoise
) -> ErrorDistribution:
    """Any additive noise, with what leaves set to the nearer bound."""
    window = _Window.of(steps, column, noise.std / column.step)
    low, high = window.ends
    if window.is_lattice:
        low, high = low - 0.5, high + 0.5
    reached = _distribution(noise)
    ends = np.append(low, high[-1]) * column.step
    masses = np.diff(reached(ends), prepend=0.0, append=1.0)
    errors = np.concatenate(([-window.below], window.errors, [window.above]))
    return ErrorDistribution(errors=errors * column.step, masses=masses)


def _distribution(mechanism: AdditiveMechanism | ScalarNoise) -> Callable[[Floats], Floats]:
    """The probability of noise up to a number, in the unit of the data."""
    if isinstance(mechanism, ScalarNoise):
        noise: Noise = mechanism.noise
        step = mechanism.scale.step
    else:
        part = mechanism.integers or mechanism.reals
        assert part is not None  # noqa: S101 - a mechanism has one of them
        noise, step = part.noise, part.step

    def reached(x: Floats) -> Floats:
        k = x / step
        match noise:
            case RoundedLaplace():
                tail = np.exp(-np.abs(k) / float(noise.scale)) / 2
                return np.where(k > 0, 1 - tail, tail)
            case RoundedGaussian():
                found: Floats = special.ndtr(k / math.sqrt(noise.square))
                return found
            case _:
                return noise.cdf(np.floor(k))

    return reached


def folded_error(steps: int, column: SortedColumn, scale: float) -> ErrorDistribution:
    """Laplace noise, reflected at the bounds.

    The images of an output are 2 span apart, so each sum over them is geometric.
    """
    window = _Window.of(steps, column, scale)
    low, high = window.ends
    period = 2.0 * column.span
    masses = np.zeros(len(low))
    for near, far in (
        (np.abs(low), np.abs(high)),
        (low + 2 * window.below, high + 2 * window.below),
    ):
        masses += window.masses((near, far)) + window.masses((period - near, period - far))
    masses /= -math.expm1(-period / scale)
    if window.is_lattice:
        # A bound is its own image.
        masses[(low == -window.below) | (low == window.above)] /= 2
    return ErrorDistribution(errors=window.errors * column.step, masses=masses)
