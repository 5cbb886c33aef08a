"""The sum of Gaussian and Laplace noise: its law, and what it is worth.

What a reader of a noisy mean sees is sampling error plus Laplace noise; what two mechanisms add up
to is a convolution. Both need this law, and its tails without cancellation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from discreet.accounting.conversion import Floats
from discreet.core._validate import non_negative, probability
from discreet.core.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class NormalLaplace:
    """The law of N(0, sigma^2) + Laplace(0, scale), independent (B23)."""

    # Theorem: with `h(w) = exp(-w + s^2/2) Phi(w/s - s)`, `s = sigma/scale` and w in units of the
    #   scale, the density is `(h(w) + h(-w)) / (2 scale)`.
    # Proof: the Laplace law is an even mixture of `+scale E` and `-scale E` with E exponential;
    #   convolving `e^-x` on x > 0 with N(0, s^2) and completing the square gives h.
    # Source: Reed 2006; Biswal 2024, with the sign of the second center corrected (M19).
    # Needs: sigma, scale >= 0, not both zero.

    sigma: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", float(non_negative("sigma", self.sigma)))
        object.__setattr__(self, "scale", float(non_negative("scale", self.scale)))
        if self.sigma == 0 and self.scale == 0:
            raise InvalidArgument("sigma and scale must not both be zero.")

    @property
    def variance(self) -> float:
        """``sigma^2 + 2 scale^2``."""
        return self.sigma**2 + 2 * self.scale**2

    def logpdf(self, x: ArrayLike) -> Floats:
        """Logarithm of the density, good far into the tails."""
        value = np.asarray(x, dtype=np.float64)
        if self.scale == 0:
            return -((value / self.sigma) ** 2) / 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        if self.sigma == 0:
            return -np.abs(value) / self.scale - math.log(2 * self.scale)
        both = np.logaddexp(self._log_half(value), self._log_half(-value))
        density: Floats = both - math.log(2 * self.scale)
        return density

    def pdf(self, x: ArrayLike) -> Floats:
        """Density."""
        return np.exp(self.logpdf(x))

    def sf(self, x: ArrayLike) -> Floats:
        """P(X > x): ``Phi(-x/sigma) + (h(x) - h(-x)) / 2``, from the side without cancellation."""
        value = np.asarray(x, dtype=np.float64)
        if self.scale == 0:
            return ndtr(-value / self.sigma)
        if self.sigma == 0:
            tail = np.exp(-np.abs(value) / self.scale) / 2
            return np.where(value >= 0, tail, 1 - tail)
        right = np.abs(value)
        normal = ndtr(-right / self.sigma)
        up, down = np.exp(self._log_half(right)), np.exp(self._log_half(-right))
        tail = np.clip(normal + (up - down) / 2, 0.0, 0.5)
        return np.where(value >= 0, tail, 1 - tail)

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""
        return self.sf(-np.asarray(x, dtype=np.float64))

    def quantile(self, p: float) -> float:
        """The value that is not exceeded with probability ``p``."""
        level = float(probability("p", p, zero=False, one=False))
        if level == 0.5:
            return 0.0
        tail = min(level, 1 - level)
        high = math.sqrt(self.variance)
        while float(self.sf(high)) > tail:
            high *= 2
        root = float(
            scipy.optimize.brentq(lambda x: float(self.sf(x)) - tail, 0.0, high, xtol=1e-13 * high)
        )
        return root if level > 0.5 else -root

    def delta(self, epsilon: float, *, shift: float) -> float:
        """The hockey-stick divergence of the law and its shift, both directions alike (B22)."""
        # Proof: a convolution of log-concave densities is log-concave, so the ratio of the density
        #   and its shift is monotone and the worst set is a half-line; its end is where the
        #   log-ratio equals epsilon. No shift below `shift` is worse.

        def loss(x: float) -> float:
            return float(self.logpdf(x) - self.logpdf(x - shift))

        reach = 40 * math.sqrt(self.variance) + shift
        if loss(-reach) <= epsilon:
            return 0.0
        if loss(reach) >= epsilon:  # every output is in the set
            return -math.expm1(epsilon)
        end = float(
            scipy.optimize.brentq(lambda x: loss(x) - epsilon, -reach, reach, xtol=1e-12 * reach)
        )
        return max(0.0, float(self.cdf(end) - math.exp(epsilon) * self.cdf(end - shift)))

    def _log_half(self, x: Floats) -> Floats:
        ratio = self.sigma / self.scale
        half: Floats = -x / self.scale + ratio**2 / 2 + log_ndtr(x / self.sigma - ratio)
        return half
