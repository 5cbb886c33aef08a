"""Stretching: the stricter a person, the less the person's value weighs in a sum (M32)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core import events
from discreet.core.check import count
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import Relation
from discreet.mechanisms.personal.prices import Priced
from discreet.noise.bits import Bits, system
from discreet.noise.laplace import DiscreteLaplace


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchedSum:
    """A weighted sum of whole numbers between public bounds; made by `stretched_sum`.

    Theorem: the release keeps each level's epsilon under replace-one.
    Proof: values count with the weight p of their level, a whole number proportional to its
        epsilon. One value moves the sum by at most ``p * (upper - lower)``, and the noise is
        discrete Laplace of a scale s with ``p * (upper - lower) / s`` equal to the level's epsilon.
    Source: Alaggan, Gambs, Kermarrec 2016, for linear queries; Muehl 2021 (M32).
    Needs: a public list of people, each with a public level. The sum is that of weighted values:
        ``weights`` are public, but what the weighting takes off the plain sum is not noise, and
        grows with the values of strict people.
    """

    menu: Priced
    lower: int
    upper: int

    @property
    def weights(self) -> dict[str, Fraction]:
        """How much a value of each level counts; 1 for the most generous."""
        most = max(self.menu.prices)
        return {
            name: Fraction(price, most)
            for name, price in zip(self.menu.names, self.menu.prices, strict=True)
        }

    @property
    def guarantee(self) -> PersonalGuarantee:
        """What each level pays, from the noise that is drawn."""
        span, scale = self.upper - self.lower, self._scale
        return personal(
            {
                name: Guarantee(events.DiscreteLaplace(scale, price * span), Relation.REPLACE_ONE)
                for name, price in zip(self.menu.names, self.menu.prices, strict=True)
            }
        )

    @property
    def std(self) -> float:
        """Of the noise, in units of the sum."""
        return DiscreteLaplace(self._scale).std / max(self.menu.prices)

    def release(self, values: ArrayLike, levels: ArrayLike, *, bits: Bits | None = None) -> float:
        """The noisy weighted sum. Values beyond the bounds are clipped to them."""
        held = np.asarray(values)
        if held.ndim != 1 or not np.issubdtype(held.dtype, np.integer):
            raise OutOfDomain("values must be whole numbers, one for each person.")
        codes = self.menu.codes(levels, len(held))
        most = max(abs(self.lower), abs(self.upper), 1) * max(self.menu.prices)
        if len(held) * most >= 1 << 61:
            raise InvalidArgument("limits have too many digits for exact sums; round them down.")
        clipped = np.clip(held.astype(object), self.lower, self.upper).astype(np.int64)
        total = int((np.array(self.menu.prices)[codes] * clipped).sum())
        noise = DiscreteLaplace(self._scale).sample(1, system() if bits is None else bits)
        return float(Fraction(total + int(noise[0]), max(self.menu.prices)))

    @property
    def _scale(self) -> Fraction:
        # epsilon = price * unit for every level, so shift / scale = epsilon for all of them.
        return (self.upper - self.lower) / self.menu.unit


def stretched_sum(limits: Mapping[str, Guarantee], *, lower: int, upper: int) -> StretchedSum:
    """A sum in which each person is protected with the epsilon of the own level.

    >>> from discreet.accounting.guarantee import pure
    >>> menu = {"strict": pure(0.5, relation=Relation.REPLACE_ONE),
    ...         "open": pure(2, relation=Relation.REPLACE_ONE)}
    >>> mechanism = stretched_sum(menu, lower=0, upper=10)
    >>> mechanism.guarantee.epsilons()
    {'open': 2.0, 'strict': 0.5}
    """
    low, high = count("lower", lower, minimum=-(2**40)), count("upper", upper, minimum=-(2**40))
    if not low < high:
        raise InvalidArgument(f"lower must be below upper, got {lower} and {upper}.")
    return StretchedSum(menu=Priced.of(limits), lower=low, upper=high)
