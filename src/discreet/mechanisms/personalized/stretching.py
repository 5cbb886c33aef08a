"""Stretching: the stricter a person, the less the person's value can move (M32).

In a sum a strict value weighs less; for a quantile it is pulled toward a public anchor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.personalized._prices import PricedLevels, clip_values, quantile_rank
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# Bounds lie at most so far from zero.
_FAR = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretched:
    """Whole numbers between public bounds, the result in units of the largest price."""

    menu: PricedLevels
    lower: int
    upper: int

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays, from the noise that is drawn."""
        span = self.upper - self.lower
        return personalized(
            {
                name: Guarantee(
                    events.DiscreteLaplaceEvent(self._scale, price * span),
                    NeighboringRelation.REPLACE_ONE,
                )
                for name, price in zip(self.menu.names, self.menu.prices, strict=True)
            }
        )

    @property
    def std(self) -> float:
        """Of the noise, in units of the values."""
        return DiscreteLaplace(self._scale).std / max(self.menu.prices)

    def _noisy(self, exact: int, rng: RandomSource | None) -> Fraction:
        noise = DiscreteLaplace(self._scale).sample(1, resolve_rng(rng))
        return Fraction(exact + int(noise[0]), max(self.menu.prices))

    @property
    def _scale(self) -> Fraction:
        # epsilon = price * unit for every level, so shift / scale = epsilon for all of them.
        return (self.upper - self.lower) / self.menu.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchedSum(_Stretched):
    """A weighted sum of whole numbers between public bounds; made by `stretched_sum`."""

    # Theorem: the release keeps each level's epsilon under replace-one.
    # Proof: values count with the weight p of their level, a whole number proportional to its
    #   epsilon. One value moves the sum by at most `p * (upper - lower)`, and the noise is
    #   discrete Laplace of a scale s with `p * (upper - lower) / s` equal to the level's epsilon.
    # Source: Alaggan, Gambs, Kermarrec 2016, for linear queries; Muehl 2021 (M32).
    # Needs: a public list of people, each with a public level. The sum is that of weighted values:
    #   `weights` are public, but what the weighting takes off the plain sum is not noise, and
    #   grows with the values of strict people.

    @property
    def weights(self) -> dict[str, Fraction]:
        """How much a value of each level counts; 1 for the most generous."""
        most = max(self.menu.prices)
        return {
            name: Fraction(price, most)
            for name, price in zip(self.menu.names, self.menu.prices, strict=True)
        }

    def release(
        self, values: ArrayLike, privacy_levels: ArrayLike, *, rng: RandomSource | None = None
    ) -> float:
        """The noisy weighted sum. Values beyond the bounds are clipped to them."""
        held = clip_values(values, lower=self.lower, upper=self.upper)
        codes = self.menu.codes(privacy_levels, len(held))
        most = max(abs(self.lower), abs(self.upper)) * max(self.menu.prices)
        if len(held) * most >= 1 << 61:
            raise InvalidArgument("limits have too many digits for exact sums; round them down.")
        total = int((np.array(self.menu.prices)[codes] * held).sum())
        return float(self._noisy(total, rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchedQuantile(_Stretched):
    """A quantile of whole numbers, pulled toward an anchor; made by `stretched_quantile`."""

    # Theorem: the release keeps each level's epsilon under replace-one.
    # Proof: a value x of price p is used as `anchor + p/P (x - anchor)`, P the largest price, which
    #   lies between the bounds, as the anchor does. As a function of one value, the others fixed,
    #   the k-th smallest is that value clamped between two of the others: it moves no further than
    #   the value does, so by at most `p/P (upper - lower)`. In units of 1/P all of this is whole,
    #   and the noise is discrete Laplace of a scale s with `p (upper - lower) / s` equal to the
    #   level's epsilon. (The same holds for every function that one value moves by at most a
    #   known multiple of its own move; where that is not so, shrinking one value can make another
    #   move the result further, as in x/y, and stretching promises nothing.)
    # Source: Alaggan, Gambs, Kermarrec 2016; Muehl 2021 (M32); the anchor and the quantile are
    #   ours.
    # Needs: a public list of people, each with a public level. The pull is bias, not noise.

    quantile: Fraction
    anchor: int

    def release(
        self, values: ArrayLike, privacy_levels: ArrayLike, *, rng: RandomSource | None = None
    ) -> float:
        """The noisy quantile of pulled values. Values beyond the bounds are clipped to them."""
        found = self.anchor + self._noisy(self.exact(values, privacy_levels), rng)
        return float(min(max(found, Fraction(self.lower)), Fraction(self.upper)))

    def exact(self, values: ArrayLike, privacy_levels: ArrayLike) -> int:
        """Without noise, from the anchor, in units of 1/P: private."""
        held = clip_values(values, lower=self.lower, upper=self.upper)
        rank = quantile_rank(held, self.quantile)
        codes = self.menu.codes(privacy_levels, len(held))
        pulled = np.array(self.menu.prices)[codes] * (held - self.anchor)
        return int(np.partition(pulled, rank - 1)[rank - 1])


def stretched_quantile(
    limits: Mapping[str, Guarantee],
    *,
    quantile: Number = 0.5,
    lower: int,
    upper: int,
    anchor: int | None = None,
) -> StretchedQuantile:
    """A quantile in which each person is protected with the epsilon of the own level.

    Values of strict people are pulled toward ``anchor``, a public guess of the answer between the
    bounds (by default their middle). ``quantile=0`` is the minimum, 1 the maximum.

    >>> from discreet.accounting.guarantee import pure_dp
    >>> limits = {"strict": pure_dp(0.5, relation=NeighboringRelation.REPLACE_ONE),
    ...         "open": pure_dp(2, relation=NeighboringRelation.REPLACE_ONE)}
    >>> stretched_quantile(limits, lower=0, upper=100).guarantee.epsilons()
    {'open': 2.0, 'strict': 0.5}
    """
    low, high = _bounds(lower, upper)
    middle = (low + high) // 2 if anchor is None else count("anchor", anchor, minimum=-_FAR)
    if not low <= middle <= high:
        raise InvalidArgument(
            f"anchor must lie between lower and upper, got {anchor}: pulled values must stay there."
        )
    menu = PricedLevels.of(limits)
    if (high - low) * max(menu.prices) >= 1 << 61:
        raise InvalidArgument("limits have too many digits for exact values; round them down.")
    return StretchedQuantile(
        menu=menu,
        quantile=probability("quantile", quantile),
        lower=low,
        upper=high,
        anchor=middle,
    )


def stretched_sum(limits: Mapping[str, Guarantee], *, lower: int, upper: int) -> StretchedSum:
    """A sum in which each person is protected with the epsilon of the own level.

    >>> from discreet.accounting.guarantee import pure_dp
    >>> limits = {"strict": pure_dp(0.5, relation=NeighboringRelation.REPLACE_ONE),
    ...         "open": pure_dp(2, relation=NeighboringRelation.REPLACE_ONE)}
    >>> mechanism = stretched_sum(limits, lower=0, upper=10)
    >>> mechanism.guarantee.epsilons()
    {'open': 2.0, 'strict': 0.5}
    """
    low, high = _bounds(lower, upper)
    return StretchedSum(menu=PricedLevels.of(limits), lower=low, upper=high)


def _bounds(lower: int, upper: int) -> tuple[int, int]:
    low, high = count("lower", lower, minimum=-_FAR), count("upper", upper, minimum=-_FAR)
    if not low < high <= _FAR:
        raise InvalidArgument(f"lower must be below upper, got {lower} and {upper}.")
    return low, high
