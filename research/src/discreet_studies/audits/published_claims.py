"""Published claims that samples can hardly refute, refuted by an event and its two probabilities.

At a large epsilon or a small delta an attack would need billions of outputs. The laws are known, so
the event that tells neighbors apart is computed, and with it what the claim should have said.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import gaussian, laplace
from discreet.mechanisms.data_dependent.smooth_sensitivity import Noise, smooth_sensitivity
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet_studies.audits import published_distributions as published_laws


class Event(NamedTuple):
    """Outputs in these intervals, and how likely they are on either input."""

    intervals: tuple[tuple[float, float], ...]
    at_left: float
    at_right: float

    def __str__(self) -> str:
        where = " or ".join(f"({a:.4g}, {b:.4g})" for a, b in self.intervals)
        return (
            f"outputs in {where}: {self.at_left:.4g} on one input, {self.at_right:.4g} on the other"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedClaim:
    """What was claimed, what is true, by which event, and what keeps the promise instead."""

    name: str
    epsilon: float
    claimed: float
    """Delta, as published."""
    true: float
    """Delta of the two laws."""
    event: Event
    repaired: str
    repaired_delta: float
    """The exact delta of our mechanism at the same epsilon."""

    @property
    def ok(self) -> bool:
        """Whether the event refutes the claim and what replaces it keeps the promise."""
        seen = self.event.at_left - math.exp(self.epsilon) * self.event.at_right
        return seen > self.claimed and self.repaired_delta <= self.claimed

    def record(self) -> dict[str, object]:
        """Plain values, for JSON; half-lines have no end that JSON could write."""
        return {**asdict(self), "ok": self.ok, "event": str(self.event)}

    def __str__(self) -> str:
        return (
            f"{self.name}: claims delta {self.claimed:.3g} at epsilon {self.epsilon:g}, true delta "
            f"{self.true:.3g} by {self.event};\n"
            f"  instead {self.repaired}, exact delta {self.repaired_delta:.3g}"
        )


def telling(left: Any, right: Any, epsilon: float) -> Event:
    """The outputs where the density of ``left`` exceeds e^epsilon times that of ``right``.

    Heuristic: crossings are looked for between 20,000 points that reach far into the tails. Any
    event refutes; a crossing that is missed makes it a weaker one.
    """

    def excess(x: Any) -> Any:
        return left.logpdf(x) - right.logpdf(x) - epsilon

    tiny = 1e-300
    low = min(left.ppf(tiny), right.ppf(tiny))
    high = max(left.isf(tiny), right.isf(tiny))
    grid = np.linspace(low, high, 20_001)
    above = excess(grid) > 0
    turns = np.flatnonzero(above[1:] != above[:-1])
    ends = [
        -math.inf,
        *(float(optimize.brentq(excess, grid[i], grid[i + 1], xtol=1e-14)) for i in turns),
        math.inf,
    ]
    chosen = [pair for k, pair in enumerate(pairwise(ends)) if bool(above[0]) == (k % 2 == 0)]
    p, q = (math.fsum(_mass(law, a, b) for a, b in chosen) for law in (left, right))
    return Event(intervals=tuple(chosen), at_left=p, at_right=q)


def _mass(law: Any, a: float, b: float) -> float:
    right = a >= law.median()
    return float(law.sf(a) - law.sf(b) if right else law.cdf(b) - law.cdf(a))


def claims() -> tuple[PublishedClaim, ...]:
    """Every claim, with its event and its repair."""
    return (*_mixed(), *_textbook(), *_smooth_gaussian(), *_smooth_laplace(), *_blocks())


def _mixed() -> list[PublishedClaim]:
    return [
        refuted(
            f"mixed noise mechanism, delta {delta:.3g} (M35)",
            stats.norm(0, math.sqrt(2)),
            stats.norm(1, math.sqrt(2)),
            epsilon=1,
            claimed=delta,
            repaired=best_additive_noise(sensitivity=1, epsilon=1, delta=delta),
        )
        for delta in (1 / 500, 1 / 1000, 500**-1.5, 500**-2)
    ]


def _textbook() -> list[PublishedClaim]:
    made = []
    for epsilon in (10, 20):
        sigma = published_laws.classical_sigma(epsilon, 1e-5)
        made.append(
            refuted(
                f"Gaussian noise of the textbook at epsilon {epsilon} (M13)",
                stats.norm(0, sigma),
                stats.norm(1, sigma),
                epsilon=epsilon,
                claimed=1e-5,
                repaired=gaussian(sensitivity=1, epsilon=epsilon, delta=1e-5),
            )
        )
    return made


def _smooth_gaussian() -> list[PublishedClaim]:
    made = []
    for epsilon, delta in ((8, 0.1), (8, 1e-4), (8, 1e-6), (4, 1e-9)):
        sigma = published_laws.gaussian_multiplier(epsilon, delta)
        wide = sigma * math.exp(published_laws.thesis_beta(epsilon, delta))
        made.append(
            refuted(
                f"smooth Gaussian noise, delta {delta:g} (M25)",
                stats.norm(0, wide),
                stats.norm(1, sigma),
                epsilon=epsilon,
                claimed=delta,
                repaired=_median(epsilon, delta, "gaussian"),
            )
        )
    return made


def _smooth_laplace() -> list[PublishedClaim]:
    made = []
    for epsilon in (10, 15):
        wide = math.exp(published_laws.thesis_beta(epsilon, 0.01))
        scale = 2 / epsilon
        made.append(
            refuted(
                f"smooth Laplace noise at epsilon {epsilon} (M22)",
                stats.laplace(0, scale * wide),
                stats.laplace(1, scale),
                epsilon=epsilon,
                claimed=0.005,
                repaired=_median(epsilon, 0.005, "laplace"),
            )
        )
    return made


def _blocks() -> list[PublishedClaim]:
    return [
        refuted(
            f"blocks, sensitivity from the data, epsilon {epsilon}, beta {beta} (M42)",
            stats.laplace(0, 1),
            stats.laplace(epsilon / 2 * math.exp(beta), 1),
            epsilon=epsilon,
            claimed=published_laws.general_claim(epsilon, beta),
            repaired=laplace(
                sensitivity=1, epsilon=epsilon, relation=NeighboringRelation.REPLACE_ONE
            ),
        )
        for epsilon, beta in ((10, 0.75), (10, 0.8), (10, 0.9), (15, 0.75))
    ]


def _median(epsilon: int, delta: float, noise: Noise) -> Mechanism:
    return smooth_sensitivity(
        lower=0, upper=1, public_rows=99, epsilon=epsilon, delta=delta, noise=noise
    )


def refuted(
    name: str,
    left: Any,
    right: Any,
    *,
    epsilon: float,
    claimed: float,
    repaired: Mechanism,
) -> PublishedClaim:
    """A claim about two laws, its event, and the certificate of what keeps it."""
    event = telling(left, right, epsilon)
    certificate = repaired.certify()
    # Of a curve, the check at the epsilon nearest to the claimed one.
    check = min(certificate.checks, key=lambda check: abs(check.epsilon - epsilon))
    return PublishedClaim(
        name=name,
        epsilon=epsilon,
        claimed=claimed,
        true=event.at_left - math.exp(epsilon) * event.at_right,
        event=event,
        repaired=certificate.mechanism,
        repaired_delta=check.exact,
    )
