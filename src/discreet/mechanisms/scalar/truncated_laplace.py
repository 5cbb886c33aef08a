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
from discreet.noise.laplace import SMALLEST_SCALE

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
        """Privacy guarantee of one release.

        It names the noise, so it composes better than (epsilon, delta) alone.
        """
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
    """Create a Laplace mechanism whose noise never exceeds a bound.

    Args:
        sensitivity: Largest change of the number between neighboring data sets.
        epsilon: Privacy loss.
        delta: Probability of an output that only one of two neighbors can produce, from 2**-100 to
            1/2. It should be far below 1 / number of units.
        domain: `"integers"` or `"reals"`. By default integers if the sensitivity is an integer,
            otherwise reals.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism with `release(value)`, `bound`, `guarantee`, `std` and `certify()`.

    Raises:
        InvalidArgument: A number is outside its range.

    Privacy:
        The mechanism is (epsilon, delta)-DP. discreet cannot check `sensitivity` for you.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-6)
        >>> mechanism.bound
        14.0
        >>> abs(mechanism.release(100) - 100) <= mechanism.bound
        True

    See Also:
        `bounded_laplace`: outputs between fixed bounds.

    References:
        Geng, Ding, Guo and Kumar (2020).
        [Proof](../theory/theorems.md#mechanisms.scalar.truncated_laplace.truncated_laplace).
    """
    # Theorem: (epsilon, delta)-DP under `relation`; delta is the probability of an output that
    #   one of two neighbors cannot produce.
    # Proof: inside both supports the ratio is at most exp(shift / scale) = e^epsilon; outside, the
    #   neighbor has mass zero, and the bound is the smallest whose outside mass, summed exactly,
    #   is at most delta.
    # Source: Geng, Ding, Guo, Kumar 2020. B49.
    # Needs: 2**-100 <= delta <= 1/2; a scalar. Its delta is a distinguishing event: keep it
    #   negligible.
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False)
    if not _SMALLEST_DELTA <= dlt <= Fraction(1, 2):
        raise InvalidArgument(f"delta must lie between 2**-100 and 1/2, got {delta}.")
    scale = ScoreScale.of(sensitivity, domain=domain)
    width = scale.shift / eps
    if width < SMALLEST_SCALE:
        raise InvalidArgument("epsilon is too large: the noise must have at least 2**-20 steps.")
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
