"""The truncated Laplace mechanism: bounded noise, at the price of a delta."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.calibrate import truncation
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._inputs import Domain, ScoreScale
from discreet.mechanisms.scalar._base import ScalarNoise
from discreet.noise.bounded_laplace import BoundedDiscreteLaplace

# A tail is known to 2**-128: no bound would be shown to keep less than this.
_SMALLEST_DELTA = Fraction(1, 1 << 100)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TruncatedLaplaceMechanism(ScalarNoise):
    """Discrete Laplace noise conditioned on a bound. Made by `truncated_laplace`."""

    name = "truncated_laplace"
    scale: ScoreScale
    noise: BoundedDiscreteLaplace
    target: tuple[Fraction, Fraction]
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs, with the noise named: composition is tighter than a pair's."""
        event = events.TruncatedLaplaceEvent(self.noise.scale, self.scale.shift, self.noise.upper)
        return Guarantee(event, self.relation)

    @property
    def bound(self) -> float:
        """The noise is never larger than this."""
        return self.noise.upper * self.scale.step

    def exact(self) -> tuple[float, str]:
        """The sum of the divergence over the lattice."""
        return divergence.exact_delta(self.guarantee.event, float(self.target[0]))

    def __repr__(self) -> str:
        return f"truncated_laplace({self.guarantee!r}, |noise| <= {self.bound:g})"


def truncated_laplace(
    *,
    sensitivity: Number,
    epsilon: Number,
    delta: Number,
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> TruncatedLaplaceMechanism:
    """Laplace noise that never exceeds a bound: for counts that must not be off by much.

    Theorem: (epsilon, delta)-DP under ``relation``; delta is the probability of an output that
        one of two neighbors cannot produce.
    Proof: inside both supports the ratio is at most exp(shift / scale) = e^epsilon; outside, the
        neighbor has mass zero, and the bound is the smallest whose outside mass, summed exactly,
        is at most delta.
    Source: Geng, Ding, Guo, Kumar 2020. B49.
    Needs: 2**-100 <= delta <= 1/2; a scalar. Its delta is a distinguishing event: keep it
        negligible.
    """
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False)
    if not _SMALLEST_DELTA <= dlt <= Fraction(1, 2):
        raise InvalidArgument(f"delta must lie between 2**-100 and 1/2, got {delta}.")
    scale = ScoreScale.of(sensitivity, domain=domain)
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
    noise = BoundedDiscreteLaplace(width, lower=-high, upper=high)
    return TruncatedLaplaceMechanism(scale=scale, noise=noise, target=(eps, dlt), relation=relation)


def _keeps(width: Fraction, shift: int, bound: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the mass out of the neighbor's reach is at most delta (rounded against us)."""
    law = BoundedDiscreteLaplace(width, lower=-bound, upper=bound)
    _, high = law.at_least(bound - shift + 1, 128)
    # Within both supports the ratio never exceeds e^(shift/width) = e^epsilon.
    assert shift / width <= epsilon  # noqa: S101 - width is shift / epsilon
    return Fraction(high, 1 << 128) <= delta
