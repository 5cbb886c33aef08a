"""Buffered linear Toeplitz matrices: nearly the square root of the prefix matrix, in few numbers.

C is lower triangular and Toeplitz with c_0 = 1 and c_k = sum of omega_i theta_i^(k-1). A product
with it needs one buffer for each i. Its inverse has the same form, with the eigenvalues phi_i of
diag(theta) - 1 omega^T, and so have prefix sums of the inverse: a_k = g_0 + sum of g_i phi_i^k.
Everything about errors is therefore a sum of geometric series.

Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024; McMahan, Xu, Zhang 2024. F33.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.noise.law import Floats, Ints
from discreet.queries.ranges.blt_table import PARAMETERS

LONGEST = 1 << 27
"""Steps for which the fixed point arithmetic of the counter is fine enough."""


@dataclass(frozen=True, slots=True)
class Blt:
    """The parameters: 0 < omega_i, 0 < theta_i < 1, all theta different."""

    omega: tuple[float, ...]
    theta: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.omega) != len(self.theta) or not self.omega:
            raise InvalidArgument("omega and theta must have the same length, at least 1.")
        if not all(0 < theta < 1 for theta in self.theta) or min(self.omega) <= 0:
            raise InvalidArgument("omega must be positive and theta between 0 and 1.")

    def column(self, size: int) -> Floats:
        """c_0, ..., c_(size-1)."""
        k = np.arange(size - 1)[:, None]
        tail: Floats = (np.array(self.omega) * np.array(self.theta) ** k).sum(axis=1)
        return np.concatenate((np.ones(1), tail))

    def norm_squared(self, size: int) -> float:
        """Sum of the squares of the first ``size`` coefficients."""
        omega, theta = np.array(self.omega), np.array(self.theta)
        both = theta[:, None] * theta
        return 1 + float(omega @ _series(both, np.array(size - 1)) @ omega)

    def prefixes(self) -> tuple[Floats, Floats]:
        """``(g, phi)`` of the coefficients a_k of prefix sums of the inverse; phi_0 is 1."""
        omega, theta = np.array(self.omega), np.array(self.theta)
        phi = np.linalg.eigvals(np.diag(theta) - np.outer(np.ones(len(theta)), omega)).real
        gaps = phi[:, None] - theta
        between = phi[:, None] - phi + np.eye(len(phi))
        weight = np.prod(gaps, axis=1) / np.prod(between, axis=1)
        g = -weight / (1 - phi)
        return np.concatenate(([1 - g.sum()], g)), np.concatenate(([1.0], phi))

    def variance(self, t: Ints) -> Floats:
        """Variance of the prefix after t steps, for noise of variance 1 on C x."""
        g, phi = self.prefixes()
        sums = _series(phi[:, None] * phi, np.asarray(t)[..., None, None])
        found: Floats = np.einsum("i,...ij,j->...", g, sums, g)
        return found

    def suffix_variance(self, t: Ints, *, size: int) -> Floats:
        """Variance of the sum after t, out of ``size`` steps: of a difference of prefixes."""
        g, phi = self.prefixes()
        at = np.asarray(t)[..., None, None]
        lagged = _series(phi[:, None] * phi, at) * phi ** (size - at)
        shared = np.einsum("i,...ij,j->...", g, lagged, g)
        found: Floats = self.variance(np.array(size)) + self.variance(t) - 2 * shared
        return np.maximum(found, 0)


def _series(ratio: Floats, size: Ints) -> Floats:
    """1 + ratio + ... + ratio**(size - 1), also where the ratio is 1."""
    one = ratio == 1
    small = ratio < 0.5
    low, high = np.where(small, ratio, 0.0), np.where(small | one, 0.5, ratio)
    # Near 1 the power is close to 1 and must not be subtracted from it.
    found = np.where(small, 1 - low**size, -np.expm1(size * np.log(high)))
    return np.where(one, size, found / np.where(one, 1.0, 1 - ratio))


def best_blt(horizon: int) -> Blt:
    """Parameters whose largest error over ``horizon`` steps is nearly the least.

    Heuristic: no theorem is needed, any parameters are private; the error is told from those used.
    """
    size = check.count("horizon", horizon)
    if size > LONGEST:
        raise InvalidArgument(f"horizon must be at most {LONGEST} steps, got {size}.")
    omega, gaps = PARAMETERS[max(0, (size - 1).bit_length() - 2)]
    return Blt(omega, tuple(1 - gap for gap in gaps))
