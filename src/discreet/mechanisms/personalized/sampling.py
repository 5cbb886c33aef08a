"""The sample mechanism: the stricter a person, the less often the person's data are used (M33)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting import composition
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.boundary.owners import level_places
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli

RATE_BITS = 32
"""Rates are multiples of 2**-32, rounded down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizedSampling:
    """A secret sample in which members of each level take part at their own rate."""

    # Theorem: run `base` once, on the data of those whom `draw` picks and of nobody else. This
    #   keeps `guarantee`, level by level, under add/remove.
    # Proof: fix a person and everybody else's coins. With the person's coin the mechanism is `base`
    #   on a Poisson sample of this person at the rate of the level; the divergences of that are
    #   what `Guarantee.sampled` computes, and averaging over the other coins is convex.
    # Source: Jorgensen, Yu, Cormode 2015; Muehl 2021 (M33).
    # Needs: `base` certified under add/remove; a base that prints or uses the exact size of the
    #   sample is not. The sample and its size stay secret.

    base: Guarantee
    rates: tuple[tuple[str, Fraction], ...]

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays for one run."""
        return personalized({name: self._at(rate) for name, rate in self.rates})

    def draw(
        self, privacy_levels: ArrayLike, *, rng: RandomSource | None = None
    ) -> NDArray[np.bool_]:
        """Who takes part, given everyone's level. Secret, and so is their number.

        Levels are read one by one; who has none of the listed ones takes no part.
        """
        source = resolve_rng(rng)
        place = level_places(privacy_levels, [name for name, _ in self.rates])
        taking = np.zeros(place.shape, dtype=np.bool_)
        for number, (_, rate) in enumerate(self.rates):
            here = np.flatnonzero(place == number)
            taking[here] = bernoulli(rate, len(here), source)
        return taking

    def _at(self, rate: Fraction) -> Guarantee:
        if rate == 0:
            return Guarantee(events.NOTHING, self.base.relation)
        return self.base if rate == 1 else self.base.sampled(rate)


def personalized_sampling(base: Guarantee, limits: Mapping[str, Guarantee]) -> PersonalizedSampling:
    """Sample people by their privacy level, so that one query respects every level.

    For each level it computes the largest sampling rate at which `base` satisfies the limit of the
    level. People whose limit covers all of `base` always take part.

    Args:
        base: Guarantee of the query on the sample, under add/remove neighbors.
        limits: Limit of each privacy level: `pure_dp(epsilon)` or `approx_dp(epsilon, delta)`.

    Returns:
        A sampler with `rates`, `guarantee` and `draw(privacy_levels)`.

    Raises:
        InvalidArgument: `base` is not a guarantee, or `limits` is not valid.
        RelationMismatch: `base` or a limit is not under add/remove neighbors.
        Unsupported: A limit is neither pure nor approximate DP.

    Privacy:
        A query on the sample satisfies the limit of each person's level. The sample and its size
        must stay secret.

    Examples:
        >>> import discreet
        >>> limits = {"strict": discreet.pure_dp(0.2), "open": discreet.pure_dp(1)}
        >>> sampling = discreet.personalized_sampling(discreet.pure_dp(1), limits)
        >>> {level: round(float(rate), 3) for level, rate in sampling.rates}
        {'open': 1.0, 'strict': 0.129}

    See Also:
        [Personalized privacy](../how-to/personal.md).

    References:
        Jorgensen, Yu and Cormode (2015).
        [Proof](../theory/theorems.md#mechanisms.personalized.sampling.PersonalizedSampling).
    """
    if not isinstance(base, Guarantee):
        raise InvalidArgument(f"base must be a guarantee, got {type(base).__name__}.")
    if base.relation is not NeighboringRelation.ADD_REMOVE:
        raise RelationMismatch(
            "base must be certified under NeighboringRelation.ADD_REMOVE, this is "
            f"{base.relation!r}: only "
            "then does leaving a person out protect the person."
        )
    menu = personalized(limits)
    if menu.relation is not base.relation:
        raise RelationMismatch(f"limits must be under {base.relation!r}, got {menu.relation!r}.")
    return PersonalizedSampling(
        base=base, rates=tuple((name, _largest(base, menu[name])) for name in menu)
    )


def _largest(base: Guarantee, limit: Guarantee) -> Fraction:
    """By bisection over multiples of 2**-32; the answer itself is certified."""
    epsilon, delta = _target(limit)

    def keeps(event: Guarantee) -> bool:
        total, failure = composition.basic(event.event)
        if total is not None and not failure:  # pure events: exact in rationals
            return total <= epsilon
        return event.epsilon(delta) <= epsilon

    if keeps(base):
        return Fraction(1)
    whole = 1 << RATE_BITS
    low, high = 0, whole
    while high - low > 1:
        middle = (low + high) // 2
        kept = keeps(base.sampled(Fraction(middle, whole)))
        low, high = (middle, high) if kept else (low, middle)
    return Fraction(low, whole)


def _target(limit: Guarantee) -> tuple[Fraction, float]:
    match limit.event:
        case events.PureEvent(epsilon):
            return epsilon, 0.0
        case events.ApproxEvent(epsilon, delta):
            return epsilon, float(delta)
        case _:
            raise Unsupported(
                "A level's limit must be discreet.pure_dp or discreet.approx_dp here."
            )
