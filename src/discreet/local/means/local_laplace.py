"""The mean of bounded numbers with Laplace noise on every client."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local._window_channel import LARGEST_ALPHABET
from discreet.local.means.base import BoundedMeanRandomizer, bounds, on_grid, uniforms
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource

# Reports stop this many noise scales beyond the bounds: one in e^32 (10^14) reports would go on.
_REACH = 32
_FEWEST = 16


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LocalLaplace(BoundedMeanRandomizer):
    """A grid point with discrete Laplace noise, cut off far outside. Made by `local_laplace`."""

    kind: ClassVar[str] = "local_laplace"

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    grid: int

    @property
    def steps(self) -> int:
        return self.grid

    @property
    def noise(self) -> DiscreteLaplace:
        """Of scale steps / epsilon: two clients are at most ``steps`` apart."""
        return DiscreteLaplace(self.grid / self.epsilon)

    @property
    def reach(self) -> int:
        """Steps beyond the bounds at which a report is cut off."""
        return math.ceil(_REACH * self.grid / self.epsilon)

    @property
    def bias(self) -> float:
        """How far the cut-off can shift the estimate, in the unit of the numbers."""
        # Proof: at either end the mean excess over the cut-off is at most that of noise beyond
        #   `reach`, sum over k > reach of P(noise >= k) = P(noise > reach) / (1 - r).
        tail = float(self.noise.sf(self.reach)) / -math.expm1(-1 / float(self.noise.scale))
        return tail / self.grid * float(self.upper - self.lower)

    @property
    def levels(self) -> Floats:
        return np.arange(-self.reach, self.grid + self.reach + 1) / self.grid

    @property
    def squares(self) -> Floats:
        """An upper bound, short of exact by the cut-off (which only reduces a variance)."""
        d = np.arange(self.grid + 1) / self.grid - 0.5
        return d * d + self.noise.moment(2) / self.grid**2

    def draw(self, places: Floats, rng: RandomSource) -> Ints:
        points = on_grid(places, self.grid, uniforms(len(places), rng))
        noisy = points + self.noise.sample(len(places), rng)
        noisy += self.reach
        return np.clip(noisy, 0, self.grid + 2 * self.reach, out=noisy)

    def parameters(self) -> dict[str, Any]:
        return {**BoundedMeanRandomizer.parameters(self), "steps": self.grid}

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        at = self.reach + (self.grid if last else 0)
        symbols = np.arange(self.size)
        law = self.noise.pmf(symbols - at)
        law[0] = float(self.noise.cdf(-at))
        law[-1] = float(self.noise.sf(self.size - 2 - at))
        return law

    def certify(self) -> Certificate:
        """The noise's scale against the largest distance of two clients."""
        epsilon = float(self.epsilon)
        # Two laws with r^|k| at most ``grid`` apart have a ratio of at most r^-grid = e^epsilon.
        kept = self.grid / self.noise.scale <= self.epsilon
        check = CertificateCheck(
            part=f"{self.grid} steps",
            epsilon=epsilon,
            claimed=0.0,
            exact=0.0 if kept else 1.0,
            route="ratio of discrete Laplace laws",
        )
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()


def local_laplace(
    *, epsilon: Number, lower: Number, upper: Number, steps: int | None = None
) -> LocalLaplace:
    """Create Laplace noise for a mean in the local model, for comparison.

    Other randomizers, such as `best_mean_randomizer`, have less error.

    Args:
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one.
        steps: Number of levels into which the bounds are cut. If None, as many as fit a short
            report.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.local_laplace(epsilon=1, lower=0, upper=10).guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model. The estimate is unbiased but for a
    #   cut-off at 32 noise scales (`LocalLaplace.bias`), with variance 2 (range / epsilon)^2 / n
    #   up to the grid.
    # Proof: two grid points are at most `steps` apart, the noise has scale steps / epsilon and is
    #   sampled exactly; cutting off is post-processing.
    # Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    # Needs: lower < upper; numbers outside count as the nearer bound.
    low, high = bounds(lower, upper)
    eps = positive("epsilon", epsilon)
    fine = max(_FEWEST, math.ceil(_FEWEST * eps)) if steps is None else count("steps", steps)
    made = LocalLaplace(epsilon=eps, lower=low, upper=high, grid=fine)
    symbols = fine + 2 * made.reach + 1
    if symbols > LARGEST_ALPHABET:
        raise InvalidArgument(
            f"epsilon={float(eps):g} with {fine} steps needs {symbols} symbols, at most "
            f"{LARGEST_ALPHABET} are allowed: take fewer steps, or duchi."
        )
    return made
