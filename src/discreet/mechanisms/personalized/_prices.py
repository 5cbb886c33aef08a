"""Levels with whole prices: budgets as multiples of one unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core.errors import InvalidArgument, OutOfDomain, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedLevels:
    """Levels with whole prices: budgets as multiples of one ``unit``, cheapest first."""

    limits: PersonalizedGuarantee
    names: tuple[str, ...]
    prices: tuple[int, ...]
    unit: Fraction

    @classmethod
    def of(cls, limits: Mapping[str, Guarantee]) -> PricedLevels:
        menu = personalized(limits)
        if menu.relation is not NeighboringRelation.REPLACE_ONE:
            raise RelationMismatch(
                "limits must be under NeighboringRelation.REPLACE_ONE here: the people are "
                "known, their "
                f"values change. Got {menu.relation!r}."
            )
        budgets = {name: _epsilon(menu[name]) for name in menu}
        common = math.lcm(*(epsilon.denominator for epsilon in budgets.values()))
        order = sorted(budgets, key=lambda name: budgets[name])
        return cls(
            limits=menu,
            names=tuple(order),
            prices=tuple(int(budgets[name] * common) for name in order),
            unit=Fraction(1, common),
        )

    def costs(self, wanted: Ints, available: list[Ints]) -> Ints:
        """The smallest price of ``wanted`` people, given how many there are of each level."""
        left, total = wanted.copy(), np.zeros_like(wanted)
        for price, people in zip(self.prices, available, strict=True):
            taken = np.minimum(left, people)
            total += price * taken
            left -= taken
        return total

    def codes(self, privacy_levels: ArrayLike, people: int) -> NDArray[np.intp]:
        """The place of each person's level in the order of prices."""
        if max(self.prices) * people >= 1 << 62:
            raise InvalidArgument("limits have too many digits for exact sums; round them down.")
        chosen = np.asarray(privacy_levels).astype(str)
        if chosen.shape != (people,):
            raise InvalidArgument(
                f"privacy_levels must name one level for each of the {people} values."
            )
        known = {name: code for code, name in enumerate(self.names)}
        kinds, places = np.unique(chosen, return_inverse=True)
        if not set(kinds.tolist()) <= set(known):
            raise InvalidArgument(f"privacy_levels must be among {', '.join(sorted(known))}.")
        order = np.array([known[kind] for kind in kinds.tolist()], dtype=np.intp)
        found: NDArray[np.intp] = order[places]
        return found


def clip_values(values: ArrayLike, *, lower: int, upper: int) -> Ints:
    """Private whole numbers, one for each person, brought between the bounds."""
    held = np.asarray(values)
    if held.ndim != 1 or not np.issubdtype(held.dtype, np.integer):
        raise OutOfDomain("values must be whole numbers, one for each person.")
    # In 64 bits first: bounds need not fit the type of the values.
    wide = np.minimum(held, np.iinfo(np.int64).max) if held.dtype == np.uint64 else held
    return np.clip(wide.astype(np.int64), lower, upper)


def quantile_rank(held: Ints, quantile: Fraction) -> int:
    """Which of the values, counted from 1, is a quantile."""
    if not held.size:
        raise OutOfDomain("values must be whole numbers, one for each person, at least one.")
    return max(1, math.ceil(quantile * len(held)))


def _epsilon(limit: Guarantee) -> Fraction:
    match limit.event:
        case events.PureEvent(epsilon) if epsilon > 0:
            return epsilon
        case _:
            raise Unsupported("A level's limit must be discreet.pure_dp(epsilon) here, above zero.")
