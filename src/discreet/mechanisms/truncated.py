"""The truncated Laplace mechanism: bounded noise, at the price of a delta."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.calibrate import truncation
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.check import positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.mechanisms import divergence
from discreet.mechanisms.mechanism import Certificate, Check, Mechanism
from discreet.mechanisms.scores import Scale
from discreet.mechanisms.values import Released, clamped_sum
from discreet.noise.bits import Bits, system
from discreet.noise.bounded import BoundedLaplace


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplace(Mechanism):
    """Discrete Laplace noise conditioned on a bound. Made by `truncated_laplace`."""

    scale: Scale
    noise: BoundedLaplace
    target: tuple[Fraction, Fraction]
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        event = events.TruncatedLaplace(self.noise.scale, self.scale.shift, self.noise.upper)
        return Guarantee(event, self.relation)

    @property
    def bound(self) -> float:
        """The noise is never larger than this."""
        return self.noise.upper * self.scale.step

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.noise.std * self.scale.step

    def interval(self, level: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``level``."""
        high = divergence.half_width(self.noise, level) * self.scale.step
        return -high, high

    def release(self, value: float, *, bits: Bits | None = None) -> Released:
        """Add noise to one number: a whole one stays whole if the sensitivity is whole."""
        if np.ndim(value) != 0:
            raise OutOfDomain("value must be one number: the bound's delta is for a scalar.")
        steps = self.scale.read(np.reshape(np.asarray(value), 1), name="value")
        noisy = clamped_sum(steps, self.noise.sample(1, system() if bits is None else bits))
        return noisy.item() if self.scale.exponent == 0 else noisy.item() * self.scale.step

    def certify(self) -> Certificate:
        """Sum the divergence over the lattice, both directions being equal by symmetry."""
        epsilon, delta = map(float, self.target)
        exact, route = divergence.exact_delta(self.guarantee.event, epsilon)
        where = f"noise within {self.bound:g}"
        check = Check(part=where, epsilon=epsilon, claimed=delta, exact=exact, route=route)
        return Certificate(
            mechanism="truncated_laplace", guarantee=self.guarantee, checks=(check,)
        ).demand()

    def __repr__(self) -> str:
        return f"truncated_laplace({self.guarantee!r}, |noise| <= {self.bound:g})"


def truncated_laplace(
    *,
    sensitivity: Number,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
) -> TruncatedLaplace:
    """Laplace noise that never exceeds a bound: for counts that must not be off by much.

    Theorem: (epsilon, delta)-DP under ``relation``; delta is the probability of an output that
        one of two neighbours cannot produce.
    Proof: inside both supports the ratio is at most exp(shift / scale) = e^epsilon; outside, the
        neighbour has mass zero, and the bound is the smallest whose outside mass, summed exactly,
        is at most delta.
    Source: Geng, Ding, Guo, Kumar 2020. B49.
    Needs: 0 < delta <= 1/2; a scalar. Its delta is a distinguishing event: keep it negligible.
    """
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False)
    if dlt > Fraction(1, 2):
        raise InvalidArgument(f"delta must be at most 1/2, got {delta}.")
    scale = Scale.of(sensitivity)
    width = scale.shift / eps
    # From the optimum on the line to the smallest bound that keeps delta exactly.
    low = scale.shift - 1
    high = truncation((float(eps), float(dlt)), sensitivity=scale.shift)
    while not _keeps(width, scale.shift, high, eps, dlt):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _keeps(width, scale.shift, middle, eps, dlt) else (middle, high)
        )
    noise = BoundedLaplace(width, lower=-high, upper=high)
    return TruncatedLaplace(scale=scale, noise=noise, target=(eps, dlt), relation=relation)


def _keeps(width: Fraction, shift: int, bound: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the mass out of the neighbour's reach is at most delta (rounded against us)."""
    law = BoundedLaplace(width, lower=-bound, upper=bound)
    _, high = law.at_least(bound - shift + 1, 128)
    # Within both supports the ratio never exceeds e^(shift/width) = e^epsilon.
    assert shift / width <= epsilon  # noqa: S101 - width is shift / epsilon
    return Fraction(high, 1 << 128) <= delta
