"""The personalized exponential mechanism: an answer is as likely as it is cheap to reach (M34).

The distance from the data to an answer is the smallest sum of budgets of people whose values would
have to change for the answer to be true. An answer r has probability proportional to
``exp(-distance(r) / 2)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core._rational import Number
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.mechanisms.personalized._prices import PricedLevels, clip_values, quantile_rank
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import exponential_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizedCount:
    """How many people have a property; made by `personalized_count`."""

    # Theorem: the release keeps each level's epsilon under replace-one, whatever the property.
    # Proof: let the value of one person with budget e change. A set of people that leads from the
    #   new data to an answer leads, with this person, from the old data to it; so no distance
    #   moves by more than e. Every weight then moves by a factor of at most exp(e/2), and so
    #   does their sum.
    # Source: Jorgensen, Yu, Cormode 2015; Muehl 2021, section 3.2.3, without its slips (M34, T12).
    # Needs: a public list of people, each with a public level. Being absent counts as 0.

    menu: PricedLevels

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays."""
        return self.menu.limits

    def release(
        self, having: ArrayLike, privacy_levels: ArrayLike, *, rng: RandomSource | None = None
    ) -> int:
        """A private count of those who have the property."""
        distances = self.distances(having, privacy_levels)
        return _choose(distances, self.menu, resolve_rng(rng))

    def distances(self, having: ArrayLike, privacy_levels: ArrayLike) -> Ints:
        """The price of each answer 0 .. n in units; private."""
        held = np.asarray(having)
        if held.ndim != 1 or not np.isin(held, (0, 1)).all():
            raise OutOfDomain("having must be one 0 or 1 for each person.")
        codes = self.menu.codes(privacy_levels, len(held))
        size = len(self.menu.names)
        ones = np.bincount(codes[held.astype(np.bool_)], minlength=size)
        zeros = np.bincount(codes, minlength=size) - ones
        steps = np.arange(len(held) + 1, dtype=np.int64) - int(ones.sum())
        up = self.menu.costs(np.maximum(steps, 0), list(zeros))
        down = self.menu.costs(np.maximum(-steps, 0), list(ones))
        return up + down

    def probabilities(self, having: ArrayLike, privacy_levels: ArrayLike) -> Floats:
        """The exact law, in double precision: private, for audits and planning."""
        return _pmf(self.distances(having, privacy_levels), self.menu)


def personalized_count(limits: Mapping[str, Guarantee]) -> PersonalizedCount:
    """A count in which each person is protected with the epsilon of the own level.

    >>> from discreet.accounting.guarantee import pure_dp
    >>> from discreet.core.relation import NeighboringRelation
    >>> limits = {"strict": pure_dp(0.2, relation=NeighboringRelation.REPLACE_ONE),
    ...         "open": pure_dp(2, relation=NeighboringRelation.REPLACE_ONE)}
    >>> personalized_count(limits).guarantee["strict"].epsilon()
    0.2
    """
    return PersonalizedCount(menu=PricedLevels.of(limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizedQuantile:
    """A quantile of whole numbers between public bounds; made by `personalized_quantile`.

    Theorem, Proof, Needs: as for `PersonalizedCount`; an answer v is true when at most ``rank - 1``
    values are below v and at most ``n - rank`` above.
    """

    menu: PricedLevels
    quantile: Fraction
    lower: int
    upper: int

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays."""
        return self.menu.limits

    def release(
        self, values: ArrayLike, privacy_levels: ArrayLike, *, rng: RandomSource | None = None
    ) -> int:
        """A private quantile. Values beyond the bounds are clipped to them."""
        distances = self.distances(values, privacy_levels)
        return self.lower + _choose(distances, self.menu, resolve_rng(rng))

    def distances(self, values: ArrayLike, privacy_levels: ArrayLike) -> Ints:
        """The price of each answer lower .. upper in units; private."""
        held = clip_values(values, lower=self.lower, upper=self.upper)
        rank = quantile_rank(held, self.quantile)
        codes = self.menu.codes(privacy_levels, len(held))
        below, above = [], []
        for code in range(len(self.menu.names)):
            here = held[codes == code] - self.lower
            counts = np.bincount(here, minlength=self.upper - self.lower + 1)
            upto = np.cumsum(counts)
            below.append(upto - counts)
            above.append(upto[-1] - upto)
        # Only one of the two can be too many.
        low = np.maximum(np.sum(below, axis=0) - (rank - 1), 0)
        high = np.maximum(np.sum(above, axis=0) - (len(held) - rank), 0)
        return self.menu.costs(low, below) + self.menu.costs(high, above)

    def probabilities(self, values: ArrayLike, privacy_levels: ArrayLike) -> Floats:
        """The exact law, in double precision: private, for audits and planning."""
        return _pmf(self.distances(values, privacy_levels), self.menu)


def personalized_quantile(
    limits: Mapping[str, Guarantee], *, quantile: Number = 0.5, lower: int, upper: int
) -> PersonalizedQuantile:
    """A quantile in which each person is protected with the epsilon of the own level.

    ``quantile=0`` is the minimum, 1 the maximum. The domain is the whole numbers from ``lower`` to
    ``upper``, declared, never taken from the data.
    """
    low, high = (
        count(name, x, minimum=-(2**62)) for name, x in (("lower", lower), ("upper", upper))
    )
    if not low < high or high - low >= 1 << 24:
        raise InvalidArgument(
            f"lower must be below upper, by less than 2**24, got {lower} and {upper}."
        )
    return PersonalizedQuantile(
        menu=PricedLevels.of(limits),
        quantile=probability("quantile", quantile),
        lower=low,
        upper=high,
    )


def _choose(distances: Ints, menu: PricedLevels, rng: RandomSource) -> int:
    return exponential_choice(-distances, menu.unit / 2, rng)


def _pmf(distances: Ints, menu: PricedLevels) -> Floats:
    weights = np.exp(-float(menu.unit / 2) * distances)  # the truth costs nothing: no underflow
    shares: Floats = weights / weights.sum()
    return shares
