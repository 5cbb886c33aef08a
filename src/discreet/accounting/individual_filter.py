"""A filter for each of many people: who has spent the own budget is left out from then on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting import conversion
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import doubles
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation

Grains: TypeAlias = NDArray[np.int64]
"""Amounts of rho in units of 10**-12: sums and comparisons are exact."""
Admitted: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.integer]

GRAIN = Fraction(1, 10**12)
LARGEST_RHO = 10**6  # so that limit and cost together stay far below 2**63 grains
LARGEST = LARGEST_RHO * 10**12


class IndividualFilter:
    """Personal budgets in zCDP, one for each of ``len(limits)`` people."""

    # Theorem: let every query be chosen from what was released before, and let person i take part
    #   only if `admit` says so. Then the whole sequence, of whatever length, is
    #   `limits[i]`-zCDP for person i.
    # Proof: at every order the individual Rényi filter of Feldman and Zrnic holds: costs of person
    #   i add up to at most `limits[i] * order`, and a step that would pass it is taken without this
    #   person, whose data then move nothing. Whether person i takes part depends on earlier outputs
    #   and person i alone. Costs are rounded up and limits down to a grid, so the sums of integers
    #   never fall behind the true ones.
    # Source: Feldman, Zrnic 2021, Theorem 4.3; Muehl 2021 (M36; its bound lacks a square, T9).
    # Needs: a neighbor lacks person i (add/remove). The cost of person i may depend on the data of
    #   person i and on past outputs, not on other people. Who is left out depends on private
    #   data whenever costs do: never publish it.

    def __init__(self, limits: ArrayLike) -> None:
        self._limits = _grains(limits, up=False, name="limits")
        if self._limits.ndim != 1:
            raise InvalidArgument("limits must be one number per person, a flat array.")
        self._spent: Grains = np.zeros_like(self._limits)

    @classmethod
    def of_levels(cls, codes: Codes, limits: tuple[Guarantee, ...]) -> IndividualFilter:
        """People with the limits of their levels: person i has ``limits[codes[i]]``.

        A limit in epsilon and delta is taken as the zCDP that implies it.
        """
        return cls.of_grains(codes, tuple(limit_grains(limit) for limit in limits))

    @classmethod
    def of_grains(cls, codes: Codes, limits: tuple[int, ...]) -> IndividualFilter:
        """As `of_levels`, for limits that are in grains already."""
        found = np.asarray(codes)
        if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
            raise InvalidArgument("codes must be one whole number per person: the person's level.")
        if found.size and not 0 <= found.min() <= found.max() < len(limits):
            raise InvalidArgument(f"codes must lie in 0..{len(limits) - 1}, one for each limit.")
        made = cls(np.zeros(len(found)))
        made._limits = np.array(limits, dtype=np.int64)[found]
        return made

    def __len__(self) -> int:
        return len(self._limits)

    @property
    def limits(self) -> Grains:
        """Limits in grains."""
        return self._limits.copy()

    @property
    def spent(self) -> Grains:
        """What each person has spent, in grains. Sensitive when costs depend on data."""
        return self._spent.copy()

    def admit(self, cost: Guarantee | ArrayLike) -> Admitted:
        """Charge everyone who can afford it, and say who: the query must use only their data.

        ``cost``: a guarantee that is the same for everybody, or one rho per person. One that is
        no rho (missing, infinite, negative, no number, above `LARGEST_RHO`) is more than every
        limit: that person is left out, and nobody else notices.
        """
        return self.take(self.price(cost))

    def take(self, price: Grains) -> Admitted:
        """``admit`` for a cost that is in grains already."""
        taking = self.affordable(price)
        self._spent += np.where(taking, price, 0)
        return taking

    def affordable(self, price: Grains) -> Admitted:
        """Who could pay now; nothing is charged."""
        # No overflow: both terms are below 2**61.
        return np.asarray(self._spent + price <= self._limits)

    def price(self, cost: Guarantee | ArrayLike) -> Grains:
        """A cost in grains, rounded up, for everybody or for each."""
        if isinstance(cost, Guarantee):
            if cost.relation is not NeighboringRelation.ADD_REMOVE:
                raise RelationMismatch(
                    f"Personal budgets are under NeighboringRelation.ADD_REMOVE, the cost under "
                    f"{cost.relation!r}."
                )
            rho = rho_of(cost.event)
            # More than every limit: nobody can afford it.
            return np.asarray(min(math.ceil(rho / GRAIN), LARGEST + 1), dtype=np.int64)
        found = _each(cost) if _is_list(cost) else _grains(cost, up=True, name="cost")
        if found.ndim and found.shape != self._limits.shape:
            raise InvalidArgument(
                f"cost must be one number or one per person ({len(self)}), got {found.shape}."
            )
        return found

    def restore(self, spent: Grains) -> None:
        """Go on from what was spent before."""
        found = np.asarray(spent, dtype=np.int64)
        if found.shape != self._limits.shape or (found < 0).any() or (found > self._limits).any():
            raise InvalidArgument("spent must be one amount per person within the person's limit.")
        self._spent = found.copy()

    def __repr__(self) -> str:
        return f"PeopleFilter({len(self)} people)"


def limit_grains(limit: Guarantee) -> int:
    """What a limit lets spend, in grains, rounded down."""
    return min(math.floor(limit_rho(limit) / GRAIN), LARGEST)


def limit_rho(limit: Guarantee) -> Fraction:
    """The largest zCDP whose conversion keeps the limit, rounded down."""
    if limit.relation is not NeighboringRelation.ADD_REMOVE:
        raise RelationMismatch(
            "Personal limits are under NeighboringRelation.ADD_REMOVE, this one under "
            f"{limit.relation!r}."
        )
    match limit.event:
        case events.ZcdpEvent(rho, xi) if xi == 0:
            return rho
        case events.ApproxEvent(epsilon, delta) if epsilon > 0 and delta > 0:
            # Whole grains, so that a limit can be spent to the end.
            return math.floor(_rho_below(float(epsilon), delta=float(delta)) / GRAIN) * GRAIN
        case _:
            raise InvalidArgument(
                "A personal limit must be discreet.zcdp(rho) or discreet.approx_dp(epsilon, delta) "
                "with a positive delta; a pure limit has no zCDP that implies it."
            )


def _rho_below(epsilon: float, *, delta: float) -> Fraction:
    """By bisection; the lower end is certified by the conversion itself."""
    low, high = 0.0, 4 * epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        if conversion.zcdp_epsilon_optimal(middle, delta=delta) <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low)


def _is_list(cost: ArrayLike) -> bool:
    """Whether a cost is one for each person, by what holds it alone."""
    if isinstance(cost, np.ndarray):
        return cost.ndim == 1
    return isinstance(cost, list | tuple) or hasattr(cost, "__len__")


def _each(cost: ArrayLike) -> Grains:
    """What each person pays; a cost that is no rho is more than every limit."""
    if isinstance(cost, str | bytes):
        raise InvalidArgument("cost must be numbers, or a guarantee.")
    found = doubles(cost)
    fits = (found >= 0) & (found <= LARGEST_RHO)  # NaN does not
    return np.where(fits, _grains(np.where(fits, found, 0.0), up=True, name="cost"), LARGEST + 1)


def _grains(values: ArrayLike, *, up: bool, name: str) -> Grains:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be numbers, or a guarantee.") from None
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidArgument(f"{name} must be finite and not negative.")
    if (found > LARGEST_RHO).any():
        raise InvalidArgument(f"{name} must be at most {LARGEST_RHO}.")
    # The product is rounded to nearest; the next float is beyond the true one.
    scaled = np.where(found > 0, np.nextafter(found * 1e12, np.inf if up else -np.inf), 0)
    return (np.ceil(scaled) if up else np.floor(scaled)).astype(np.int64)
