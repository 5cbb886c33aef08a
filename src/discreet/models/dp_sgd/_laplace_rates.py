"""Learning rates and the Laplace noise that goes with them.

Step t = 1, 2, ... of a run uses ``rates[t - 1]``. A power schedule has the rates ``start (1 +
t)**-decay`` for t = 0, 1, ... and guarantees ``epsilon t**growth`` for iterate t.

Noise that follows the rates has a guarantee for *one* iterate: it is published, all others
are forgotten, and their number is fixed in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core._validate import count, non_negative, positive
from discreet.core.errors import InvalidArgument, Unsupported

# ── Schedules ────────────────────────────────────────────────────────────────────────────────────


Floats: TypeAlias = NDArray[np.float64]
Verdict: TypeAlias = Literal["converges", "converges to a neighborhood", "stalls", "diverges"]


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
    """Learning rates that decay as a power of the step.

    Step t = 0, 1, ... has the rate `start * (1 + t)**-decay`.

    Args:
        start: First learning rate, above zero.
        decay: Exponent of the decay, from 0 up to but not including 1.
        growth: Exponent with which the guaranteed epsilon of an iterate may grow, zero or above.

    Raises:
        InvalidArgument: A number is outside its range.

    Examples:
        >>> from discreet.models import dp_sgd
        >>> dp_sgd.PowerSchedule(start=0.5, decay=0.5).rates(4).round(3).tolist()
        [0.5, 0.354, 0.289, 0.25]
    """

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
        """Compute the learning rates of a run.

        Args:
            steps: Number of steps.

        Returns:
            One rate per step.

        Raises:
            InvalidArgument: `steps` is not a positive integer.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.PowerSchedule(start=0.5).rates(2).tolist()
            [0.5, 0.5]
        """
        t = np.arange(1, count("steps", steps) + 1, dtype=np.float64)
        rates: Floats = self.start * t**-self.decay
        return rates

    def growths(self, steps: int) -> Floats:
        """Compute by which factor the guaranteed epsilon of each iterate grows.

        Args:
            steps: Number of steps.

        Returns:
            One factor per step, 1 for the first.

        Raises:
            InvalidArgument: `steps` is not a positive integer.

        Examples:
            >>> from discreet.models import dp_sgd
            >>> dp_sgd.PowerSchedule(growth=1).growths(3).tolist()
            [1.0, 2.0, 3.0]
        """
        return np.arange(1, count("steps", steps) + 1, dtype=np.float64) ** self.growth

    @property
    def exponents(self) -> Exponents:
        """Exponents with which the terms of the error bound grow with the steps."""
        # Theorem: distance `decay - 1`; variance `-decay` up to decay 1/2, then `decay - 1`
        #   (at 1/2 with a logarithm); noise `2 - decay - 2 growth` while
        #   `2 decay + 2 growth < 3`, then `decay - 1` (at 3 with a logarithm).
        # Proof: `sum t**-a` grows as `N**(1 - a)` for a < 1 and stays bounded for a > 1; the
        #   noise of step t enters as `(S_t / t**growth)**2` with `S_t ~ t**(1 - decay)`.
        rho, kappa = self.decay, self.growth
        return Exponents(
            distance=rho - 1,
            variance=max(-rho, rho - 1),
            noise=max(2 - rho - 2 * kappa, rho - 1),
        )

    @property
    def noise_vanishes(self) -> bool:
        """Whether the noise term of the error bound converges to zero.

        This is the case if 2 growth + decay > 2.
        """
        return 2 * self.growth + self.decay > 2

    @property
    def verdict(self) -> Verdict:
        """Behavior of the error bound as the number of steps grows.

        With a constant rate the bound does not converge to zero, because the variance of single
        gradients remains.
        """
        if self.noise_vanishes:
            return "converges" if self.decay > 0 else "converges to a neighborhood"
        return "stalls" if 2 * self.growth + self.decay == 2 else "diverges"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSums:
    """The three sums of the bound, without the constants of the problem: A1, A2, A3."""

    distance: float
    variance: float
    noise: float


def schedule_sums(rates: ArrayLike, *, scales: ArrayLike) -> ScheduleSums:
    """``1/sum eta``, ``sum eta^2 / sum eta`` and ``sum (eta gamma)^2 / sum eta``.

    ``scales[t - 1]`` is the noise of step t, which uses ``rates[t - 1]``: the published sum pairs
    ``gamma_t`` with ``eta_t``, one step off.
    """
    eta, gamma = positives("rates", rates), np.asarray(scales, dtype=np.float64)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    total = float(eta.sum())
    return ScheduleSums(
        distance=1 / total,
        variance=float((eta**2).sum()) / total,
        noise=float(((eta * gamma) ** 2).sum()) / total,
    )


def measured_exponents(schedule: PowerSchedule, *, steps: int, factor: int = 10) -> Exponents:
    """The slopes of the three sums between ``steps`` and ``factor`` times as many."""
    few, many = count("steps", steps), count("steps", steps) * count("factor", factor, minimum=2)
    rates = schedule.rates(many)
    scales = noise_scales(rates, growths=schedule.growths(many), diameter=1.0, epsilon=1.0)
    first, last = (
        schedule_sums(rates[:few], scales=scales[:few]),
        schedule_sums(rates, scales=scales),
    )
    base = math.log(factor)
    return Exponents(
        distance=math.log(last.distance / first.distance) / base,
        variance=math.log(last.variance / first.variance) / base,
        noise=math.log(last.noise / first.noise) / base,
    )


# ── the best noise for given rates and a fixed budget of the whole run ────────────────────────


def best_laplace_scales(rates: ArrayLike, *, sensitivity: float, epsilon: float) -> Floats:
    """Laplace scales that minimize the noise term for one epsilon over the whole run."""
    # Theorem: `gamma_t = (D/eps) eta_t**(-2/3) sum_j eta_j**(2/3)` minimizes
    #   `sum eta_t^2 gamma_t^2` under `sum D/gamma_t = eps`.
    # Proof: both are convex in the epsilons `e_t = D/gamma_t`; Lagrange: `eta_t^2 / e_t^3` is the
    #   same for all t.
    # Needs: `sensitivity` in L1 and at one theta, both records; no amplification by sampling.
    eta = positives("rates", rates)
    unit = float(positive("sensitivity", sensitivity)) / float(positive("epsilon", epsilon))
    scales: Floats = unit * eta ** (-2 / 3) * float((eta ** (2 / 3)).sum())
    return scales


def best_gaussian_sigmas(rates: ArrayLike, *, sensitivity: float, rho: float) -> Floats:
    """Gaussian sigmas that minimize the noise term for one rho over the whole run."""
    # Theorem: `sigma_t^2 = (D^2 / (2 rho)) sum_j eta_j / eta_t` minimizes `sum eta_t^2 sigma_t^2`
    #   under `sum D^2 / (2 sigma_t^2) = rho`; the minimum is `(D sum eta)^2 / (2 rho)`.
    # Proof: Cauchy and Schwarz on `sum eta_t sigma_t / sigma_t`.
    # Needs: `sensitivity` in L2 and at one theta, both records; no amplification by sampling.
    eta = positives("rates", rates)
    unit = float(positive("sensitivity", sensitivity)) ** 2 / (2 * float(positive("rho", rho)))
    sigmas: Floats = np.sqrt(unit * float(eta.sum()) / eta)
    return sigmas


def best_steps(
    *, distance: float, epsilon: float, dimension: int, rate: float, diameter: float
) -> float:
    """The number of steps that minimizes the bound at a constant rate and a constant guarantee.

    ``N = (3 R^2 eps^2 / (4 p eta^2 D^2))**(1/3)``: beyond it, every step makes the bound worse.
    The noise term is ``2 p (D/eps)^2 eta N^2 / 3`` to the first order.
    """
    r, e = float(positive("distance", distance)), float(positive("epsilon", epsilon))
    step = float(positive("rate", rate)) * float(positive("diameter", diameter))
    return float((3 * r**2 * e**2 / (4 * count("dimension", dimension) * step**2)) ** (1 / 3))


# ── Noise that follows the rates ─────────────────────────────────────────────────────────────────


def noise_scales(
    rates: ArrayLike, *, diameter: float, epsilon: float, growths: ArrayLike | None = None
) -> Floats:
    """The scale of the Laplace noise of each step, in units of the gradient.

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
        """The L1 distance of two runs on neighboring data, for each unit of summed rates."""
        # Theorem: with the same noise and the same draws, the means of iterate t on two data sets
        #   are at most `drift * S_t` apart, in L1.
        # Proof: every step adds at most `eta D` by the diameter. For a convex and L-smooth loss
        #   and `eta <= 2/L` a step on a common record is non-expansive in L2, and a step on the
        #   replaced record adds `eta` times the distance at one theta; L1 is at most sqrt(p) L2.
        # Needs: for `same_theta` a convex smooth loss, rates up to 2/L, no clipping: a clipped
        #   gradient need not be the gradient of a convex function (M25).
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
    """The epsilon of each iterate, if it alone is published (Theorem 7.6.1, corrected)."""
    # Theorem: iterate t is `D S_t / (eta_{t-1} gamma_t)`-DP under replace-one.
    # Proof: given the draws and the noise of the steps before, its mean moves by at most `D S_t` in
    #   L1 (`GradientBound.drift`), and the last step adds Laplace noise of scale
    #   `eta_{t-1} gamma_t`. The noise of all other steps contributes nothing (M29).
    # Source: Biswal 2024, Theorem 7.6.1, with the conditions of C36.
    # Needs: one iterate, its number fixed in advance; never an average, never a stop by progress.
    eta, gamma = positives("rates", rates), positives("scales", scales)
    if gamma.shape != eta.shape:
        raise InvalidArgument("scales must have one number for each of the rates.")
    found: Floats = bound.drift(eta) * np.cumsum(eta) / (eta * gamma)
    return found


def final_noise_scale(rates: ArrayLike, *, bound: GradientBound, epsilon: float) -> float:
    """The scale of Laplace noise on the last iterate of a run without any other noise.

    The same guarantee as the schedule's for its last iterate, with less noise: ``D S_N / eps``.
    """
    eta = positives("rates", rates)
    return bound.drift(eta) * float(eta.sum()) / float(positive("epsilon", epsilon))
