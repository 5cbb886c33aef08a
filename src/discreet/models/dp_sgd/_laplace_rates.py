"""Schedules: how fast rates fall and noise grows, and what that does to a bound (C39, C41).

Step t = 1, 2, ... of a run uses ``rates[t - 1]``. A power schedule has the rates
``start (1 + t)**-decay`` for t = 0, 1, ... and promises ``epsilon t**growth`` for iterate t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.check import count, non_negative, positive
from discreet.core.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]
Verdict: TypeAlias = Literal["converges", "converges to a neighbourhood", "stalls", "diverges"]


def positives(name: str, values: ArrayLike) -> Floats:
    """A sequence of positive doubles, one for each step."""
    given: Floats = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not given.size:
        raise InvalidArgument(f"{name} must be a sequence with one number for each step.")
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise InvalidArgument(f"{name} must be positive and finite.")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents:
    """Powers of the number of steps by which the terms of the bound grow (logarithms left out)."""

    distance: float
    variance: float
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSchedule:
    """Rates ``start (1 + t)**-decay``, iterate t promised ``epsilon t**growth``."""

    start: float = 1.0
    decay: float = 0.0
    growth: float = 0.0

    def __post_init__(self) -> None:
        positive("start", self.start)
        non_negative("growth", self.growth)
        if not 0 <= float(non_negative("decay", self.decay)) < 1:
            raise InvalidArgument(
                f"decay must lie in [0, 1), got {self.decay}: with faster rates a run stands still."
            )

    def rates(self, steps: int) -> Floats:
        """The learning rates of so many steps."""
        t = np.arange(1, count("steps", steps) + 1, dtype=np.float64)
        rates: Floats = self.start * t**-self.decay
        return rates

    def growths(self, steps: int) -> Floats:
        """By how much the promised epsilon of each iterate exceeds that of the first."""
        return np.arange(1, count("steps", steps) + 1, dtype=np.float64) ** self.growth

    @property
    def exponents(self) -> Exponents:
        """How the three terms of the bound grow with the number of steps (C39).

        Theorem: distance ``decay - 1``; variance ``-decay`` up to decay 1/2, then ``decay - 1``
            (at 1/2 with a logarithm); noise ``2 - decay - 2 growth`` while
            ``2 decay + 2 growth < 3``, then ``decay - 1`` (at 3 with a logarithm).
        Proof: ``sum t**-a`` grows as ``N**(1 - a)`` for a < 1 and stays bounded for a > 1; the
            noise of step t enters as ``(S_t / t**growth)**2`` with ``S_t ~ t**(1 - decay)``.
        """
        rho, kappa = self.decay, self.growth
        return Exponents(
            distance=rho - 1,
            variance=max(-rho, rho - 1),
            noise=max(2 - rho - 2 * kappa, rho - 1),
        )

    @property
    def noise_vanishes(self) -> bool:
        """Whether the noise term of the bound goes to zero: ``2 growth + decay > 2`` (M30)."""
        return 2 * self.growth + self.decay > 2

    @property
    def verdict(self) -> Verdict:
        """What the bound does as the number of steps grows, the promised epsilon growing along.

        A constant rate leaves the variance of single gradients: the bound ends above zero.
        """
        if self.noise_vanishes:
            return "converges" if self.decay > 0 else "converges to a neighbourhood"
        return "stalls" if 2 * self.growth + self.decay == 2 else "diverges"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The three sums of the bound, without the constants of the problem: A1, A2, A3."""

    distance: float
    variance: float
    noise: float


def sums(rates: ArrayLike, *, scales: ArrayLike) -> Sums:
    """``1/sum eta``, ``sum eta^2 / sum eta`` and ``sum (eta gamma)^2 / sum eta``.

    ``scales[t - 1]`` is the noise of step t, which uses ``rates[t - 1]``: the published sum pairs
    ``gamma_t`` with ``eta_t``, one step off (M25).
    """
    eta, gamma = positives("rates", rates), np.asarray(scales, dtype=np.float64)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    total = float(eta.sum())
    return Sums(
        distance=1 / total,
        variance=float((eta**2).sum()) / total,
        noise=float(((eta * gamma) ** 2).sum()) / total,
    )


def measured_exponents(schedule: PowerSchedule, *, steps: int, factor: int = 10) -> Exponents:
    """The slopes of the three sums between ``steps`` and ``factor`` times as many (E9)."""
    from discreet.models.sgd.laplace import noise_scales  # noqa: PLC0415 - it needs this module

    few, many = count("steps", steps), count("steps", steps) * count("factor", factor, minimum=2)
    rates = schedule.rates(many)
    scales = noise_scales(rates, growths=schedule.growths(many), diameter=1.0, epsilon=1.0)
    first, last = sums(rates[:few], scales=scales[:few]), sums(rates, scales=scales)
    base = math.log(factor)
    return Exponents(
        distance=math.log(last.distance / first.distance) / base,
        variance=math.log(last.variance / first.variance) / base,
        noise=math.log(last.noise / first.noise) / base,
    )


# ── the best noise for given rates and a fixed budget of the whole run ────────────────────────


def best_laplace_scales(rates: ArrayLike, *, sensitivity: float, epsilon: float) -> Floats:
    """Laplace scales that minimise the noise term for one epsilon over the whole run (C41).

    Theorem: ``gamma_t = (D/eps) eta_t**(-2/3) sum_j eta_j**(2/3)`` minimises
        ``sum eta_t^2 gamma_t^2`` under ``sum D/gamma_t = eps``.
    Proof: both are convex in the epsilons ``e_t = D/gamma_t``; Lagrange: ``eta_t^2 / e_t^3`` is the
        same for all t.
    Needs: ``sensitivity`` in L1 and at one theta, both records; no amplification by sampling.
    """
    eta = positives("rates", rates)
    unit = float(positive("sensitivity", sensitivity)) / float(positive("epsilon", epsilon))
    scales: Floats = unit * eta ** (-2 / 3) * float((eta ** (2 / 3)).sum())
    return scales


def best_gaussian_sigmas(rates: ArrayLike, *, sensitivity: float, rho: float) -> Floats:
    """Gaussian sigmas that minimise the noise term for one rho over the whole run (C41).

    Theorem: ``sigma_t^2 = (D^2 / (2 rho)) sum_j eta_j / eta_t`` minimises ``sum eta_t^2 sigma_t^2``
        under ``sum D^2 / (2 sigma_t^2) = rho``; the minimum is ``(D sum eta)^2 / (2 rho)``.
    Proof: Cauchy and Schwarz on ``sum eta_t sigma_t / sigma_t``.
    Needs: ``sensitivity`` in L2 and at one theta, both records; no amplification by sampling.
    """
    eta = positives("rates", rates)
    unit = float(positive("sensitivity", sensitivity)) ** 2 / (2 * float(positive("rho", rho)))
    sigmas: Floats = np.sqrt(unit * float(eta.sum()) / eta)
    return sigmas


def best_steps(
    *, distance: float, epsilon: float, dimension: int, rate: float, diameter: float
) -> float:
    """The number of steps that minimises the bound at a constant rate and a constant promise.

    ``N = (3 R^2 eps^2 / (4 p eta^2 D^2))**(1/3)``: beyond it, every step makes the bound worse
    (C39). The noise term is ``2 p (D/eps)^2 eta N^2 / 3`` to the first order.
    """
    r, e = float(positive("distance", distance)), float(positive("epsilon", epsilon))
    step = float(positive("rate", rate)) * float(positive("diameter", diameter))
    return float((3 * r**2 * e**2 / (4 * count("dimension", dimension) * step**2)) ** (1 / 3))
