"""Laplace noise that follows the learning rates (C36): the marginal claim and its conditions.

The claim is about *one* iterate: it is published, all others are forgotten, and their number is
fixed in advance. Of averages and of the whole path `trajectory` speaks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, positive
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.sgd.schedule import Floats, positives


def noise_scales(
    rates: ArrayLike, *, diameter: float, epsilon: float, growths: ArrayLike | None = None
) -> Floats:
    """The scale of the Laplace noise of each step, in units of the gradient (C36, 7.10).

    ``gamma_t = S_t D / (eta_{t-1} beta_t eps)`` with ``S_t`` the sum of the first t rates: it makes
    iterate t cost ``eps beta_t`` (`marginal_epsilons`).
    """
    eta = positives("rates", rates)
    beta = np.ones_like(eta) if growths is None else positives("growths", growths)
    if beta.shape != eta.shape:
        raise InvalidArgument("growths must have one number for each of the rates.")
    unit = float(positive("diameter", diameter)) / float(positive("epsilon", epsilon))
    scales: Floats = np.cumsum(eta) / (eta * beta) * unit
    return scales


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientBound:
    """How far apart two gradients can be: the condition of the marginal claim.

    ``diameter`` is the L1 diameter of *all* gradients, over every theta and every record: with
    per-example clipping to L1 norm C it is 2 C. ``same_theta`` is the L2 distance of two records'
    gradients at one theta; it is enough only where steps cannot drive two runs apart.
    """

    dimension: int
    diameter: float | None = None
    same_theta: float | None = None
    convex: bool = False
    smoothness: float | None = None
    clipped: bool = False

    def __post_init__(self) -> None:
        count("dimension", self.dimension)
        if (self.diameter is None) == (self.same_theta is None):
            raise InvalidArgument("give either diameter or same_theta.")
        positive("diameter" if self.same_theta is None else "same_theta", self.width)
        if self.smoothness is not None:
            positive("smoothness", self.smoothness)

    @property
    def width(self) -> float:
        """The bound that was given, in its own norm."""
        if self.diameter is not None:
            return self.diameter
        assert self.same_theta is not None  # noqa: S101 - checked when made
        return self.same_theta

    def drift(self, rates: ArrayLike) -> float:
        """The L1 distance of two runs on neighbouring data, for each unit of summed rates.

        Theorem: with the same noise and the same draws, the means of iterate t on two data sets
            are at most ``drift * S_t`` apart, in L1.
        Proof: every step adds at most ``eta D`` by the diameter. For a convex and L-smooth loss
            and ``eta <= 2/L`` a step on a common record is non-expansive in L2, and a step on the
            replaced record adds ``eta`` times the distance at one theta; L1 is at most sqrt(p) L2.
        Needs: for ``same_theta`` a convex smooth loss, rates up to 2/L, no clipping: a clipped
            gradient need not be the gradient of a convex function (M25).
        """
        eta = positives("rates", rates)
        if self.diameter is not None:
            return self.diameter
        if not self.convex or self.smoothness is None:
            raise Unsupported(
                "same_theta bounds the drift of a convex and smooth loss only: for any other "
                "give diameter, over all theta (2C after clipping to L1 norm C)."
            )
        if self.clipped:
            raise Unsupported(
                "Clipping can make a step expansive: give diameter=2C, the clipping norm being C."
            )
        if float(eta.max()) * self.smoothness > 2:
            raise Unsupported(f"Rates above 2/L = {2 / self.smoothness:g} can drive runs apart.")
        return self.width * math.sqrt(self.dimension)


def marginal_epsilons(rates: ArrayLike, *, scales: ArrayLike, bound: GradientBound) -> Floats:
    """The epsilon of each iterate, if it alone is published (Theorem 7.6.1, corrected).

    Theorem: iterate t is ``D S_t / (eta_{t-1} gamma_t)``-DP under replace-one.
    Proof: given the draws and the noise of the steps before, its mean moves by at most ``D S_t`` in
        L1 (`GradientBound.drift`), and the last step adds Laplace noise of scale
        ``eta_{t-1} gamma_t``. The noise of all other steps contributes nothing (M29).
    Source: Biswal 2024, Theorem 7.6.1, with the conditions of C36.
    Needs: one iterate, its number fixed in advance; never an average, never a stop by progress.
    """
    eta, gamma = positives("rates", rates), positives("scales", scales)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    found: Floats = bound.drift(eta) * np.cumsum(eta) / (eta * gamma)
    return found


def final_noise_scale(rates: ArrayLike, *, bound: GradientBound, epsilon: float) -> float:
    """The scale of Laplace noise on the last iterate of a run without any other noise (C42).

    The same guarantee as the schedule's for its last iterate, with less noise: ``D S_N / eps``.
    """
    eta = positives("rates", rates)
    return bound.drift(eta) * float(eta.sum()) / float(positive("epsilon", epsilon))
