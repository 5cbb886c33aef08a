"""Noise of any exact law on one number, with the (epsilon, delta) it was made for."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import OutOfDomain
from discreet.core.relation import Relation
from discreet.mechanisms import divergence
from discreet.mechanisms.mechanism import Certificate, Check, Mechanism, promised
from discreet.mechanisms.scores import Scale
from discreet.mechanisms.values import Released, clamped_sum
from discreet.noise.bits import Bits, source_of
from discreet.noise.law import Law


class Scalar(Mechanism):
    """Integer noise on one number, on a public grid. Subclasses are frozen dataclasses."""

    name: str
    scale: Scale
    noise: Law
    target: tuple[Fraction, Fraction]
    relation: Relation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return promised(*self.target, relation=self.relation)

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
            raise OutOfDomain("value must be one number: this noise is made for a scalar.")
        steps = self.scale.read(np.reshape(np.asarray(value), 1), name="value")
        noisy = clamped_sum(steps, self.noise.sample(1, source_of(bits)))
        return noisy.item() if self.scale.exponent == 0 else noisy.item() * self.scale.step

    @abstractmethod
    def exact(self) -> tuple[float, str]:
        """The divergence at the target's epsilon, from the law itself, and how it was found."""

    def certify(self) -> Certificate:
        """Recompute the divergence from the exact law, both directions being equal by symmetry."""
        epsilon, delta = map(float, self.target)
        found, route = self.exact()
        check = Check(
            part=f"noise of std {self.std:.6g}",
            epsilon=epsilon,
            claimed=delta,
            exact=found,
            route=route,
        )
        return Certificate(mechanism=self.name, guarantee=self.guarantee, checks=(check,)).demand()

    def __repr__(self) -> str:
        return f"{self.name}({self.guarantee!r}; std {self.std:.4g})"
