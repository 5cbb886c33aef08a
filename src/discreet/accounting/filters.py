"""Filters and odometers: adaptive budgets, charged one event at a time in constant time.

A filter refuses the event that would pass its limit, and then nothing is spent. An odometer has no
limit and reports what was spent. Both may be driven by choices that depend on earlier outputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from discreet.accounting import composition, conversion, renyi
from discreet.accounting._event_tree import leaves
from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import round_up
from discreet.core.errors import BudgetExceeded, InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation


@dataclass(slots=True, kw_only=True)
class _ExactFilter(ABC):
    """A sum of exact costs that may not pass a limit."""

    measure: ClassVar[str]

    limit: Fraction
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.limit = check.non_negative("limit", self.limit)
        self.spent = check.non_negative("spent", self.spent)

    @abstractmethod
    def cost(self, event: Event) -> Fraction:
        """What an event costs; refused if that has no bound."""

    def charge(self, guarantee: Guarantee) -> Fraction:
        """Spend the event's cost, or raise BudgetExceeded and spend nothing."""
        _same(guarantee, self.relation)
        price = self.cost(guarantee.event)
        if self.spent + price > self.limit:
            raise BudgetExceeded(
                f"The event costs {self.measure} {float(price):g}, "
                f"{float(self.limit - self.spent):g} of {float(self.limit):g} is left."
            )
        self.spent += price
        return price


@dataclass(slots=True, kw_only=True)
class PureDPFilter(_ExactFilter):
    """A filter for pure epsilon, in exact rationals.

    Theorem: if every adaptively chosen event is charged its epsilon and the sum never passes the
        limit, the whole is limit-DP.
    Source: Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6.
    """

    measure: ClassVar[str] = "epsilon"

    def cost(self, event: Event) -> Fraction:
        """The epsilon of an event; refused if it has none."""
        total, failure = composition.basic(event)
        if total is None or failure:
            raise Unsupported("A pure filter takes events with a bounded loss and delta 0 only.")
        return total


@dataclass(slots=True, kw_only=True)
class ZcdpFilter(_ExactFilter):
    """A filter for zCDP, in exact rationals (irrational costs are rounded up).

    Theorem: if the sum of adaptively chosen rho never passes the limit, the whole is limit-zCDP.
    Source: Feldman, Zrnic 2021, Theorem 4.3; Whitehouse et al. 2023.
    """

    measure: ClassVar[str] = "rho"

    def cost(self, event: Event) -> Fraction:
        """The rho of an event; refused if it has none."""
        return rho_of(event)


def rho_of(event: Event) -> Fraction:
    """The zCDP of an event, rounded up: exact for Gaussians, tight for Laplace and pure (C16)."""
    total = Fraction(0)
    for leaf, count in leaves(event):
        total += count * _leaf_rho(leaf)
    return total


def _leaf_rho(leaf: Event) -> Fraction:
    match leaf:
        case events.GdpEvent(mu):
            return mu**2 / 2
        case events.ZcdpEvent(rho, xi) if xi == 0:
            return rho
        case events.DiscreteGaussianEvent(variance, shift_squared, _):
            return shift_squared / (2 * variance)
        case events.PureEvent(epsilon):
            return _up(conversion.pure_to_rho(float(epsilon) * conversion.UP))
        case events.LaplaceEvent(scale):
            return _up(conversion.laplace_to_rho(float(1 / scale) * conversion.UP))
        case events.DiscreteLaplaceEvent(scale, shift):
            return _up(conversion.pure_to_rho(float(shift / scale) * conversion.UP))
        case events.BoundedRangeEvent(epsilon):
            return epsilon**2 / 8
        case events.EitherEvent(branches):
            return max(rho_of(branch) for branch in branches)
        case _:
            bound = composition.basic(leaf)
            if bound[0] is None or bound[1]:
                raise Unsupported(
                    f"{type(leaf).__name__.removesuffix('Event')} has no zCDP; use a Rényi filter."
                )
            return _up(conversion.pure_to_rho(float(bound[0]) * conversion.UP))


def _up(value: float) -> Fraction:
    # Short rationals keep a long ledger fast; the rounding is upward, and what happens is not free.
    return Fraction(max(1, math.ceil(value * 2**60)), 2**60)


@dataclass(slots=True, kw_only=True)
class RenyiFilter:
    """A filter for (epsilon, delta) by Rényi divergences of fixed orders.

    Theorem: fix an order; if the sum of adaptively chosen divergences of that order never passes
        its budget, the whole is (epsilon, delta)-DP. With m orders each gets delta/m, and the
        filter goes on while *one* of them is kept: which one may depend on the outputs, so their
        failures add up.
    Source: Feldman, Zrnic 2021, Theorem 4.3 for one order; the union over orders is ours (to go on
        while any of several orders holds, each at the full delta, is not proved).
    Needs: ``orders`` fixed in advance; by default the one that is best for Gaussian noise.
    """

    epsilon: float
    delta: float
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    orders: tuple[float, ...] = ()
    totals: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.epsilon = float(check.positive("epsilon", self.epsilon))
        self.delta = float(check.probability("delta", self.delta, zero=False, one=False))
        if not self.orders:
            rho = conversion.zcdp_rho(self.epsilon, delta=self.delta)
            self.orders = (1 + math.sqrt(math.log(1 / self.delta) / rho),)
        # Of an order without end, or that is no number, nothing would ever be counted.
        if min(check.finite("orders", order) for order in self.orders) <= 1:
            raise InvalidArgument(f"orders must exceed 1, got {min(self.orders)}.")
        self.totals = self.totals or [0.0] * len(self.orders)
        if not all(total >= 0 for total in self.totals):
            raise InvalidArgument("totals must be zero or above: what was spent at each order.")

    def charge(self, guarantee: Guarantee) -> None:
        """Spend, or raise BudgetExceeded and spend nothing."""
        _same(guarantee, self.relation)
        # Rounded up: a long sum of floats never falls behind the true one.
        totals = [
            math.nextafter(total + renyi.divergence(guarantee.event, order=order), math.inf)
            for order, total in zip(self.orders, self.totals, strict=True)
        ]
        if self._epsilon(totals) > self.epsilon:
            raise BudgetExceeded(
                f"The event would pass epsilon {self.epsilon:g} at delta {self.delta:g}; "
                "nothing was spent."
            )
        self.totals = totals

    @property
    def spent(self) -> float:
        """The epsilon at the filter's delta that the charges so far amount to."""
        return self._epsilon(self.totals) if any(self.totals) else 0.0

    def _epsilon(self, totals: list[float]) -> float:
        share = self.delta / len(self.orders)
        return min(
            conversion.renyi_epsilon(total, order=order, delta=share)
            for order, total in zip(self.orders, totals, strict=True)
        )


def _same(guarantee: Guarantee, relation: NeighboringRelation) -> None:
    if guarantee.relation is not relation:
        raise RelationMismatch(
            f"The budget is under {relation!r}, the event under {guarantee.relation!r}."
        )


@dataclass(slots=True, kw_only=True)
class PrivacyOdometer:
    """Counts what was spent in zCDP and pure epsilon, without a limit.

    Theorem: at every *fixed* time the reading is valid at its delta. For a reading at a time that
        depends on outputs, spend delta over a grid of limits: ``reading(delta)`` rounds the sum
        of rho up to the next power of two times ``unit`` and pays delta/(k(k+1)) for the k-th.
    Proof: a zCDP filter stands at each limit; its guarantee holds when it is passed, and the
        failure probabilities sum to delta.
    Source: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021, section 5.
    """

    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    unit: Fraction = Fraction(1, 1 << 20)
    rho: Fraction = Fraction(0)
    epsilon: Fraction | None = Fraction(0)

    def charge(self, guarantee: Guarantee) -> None:
        """Record an event."""
        _same(guarantee, self.relation)
        event = guarantee.event
        self.rho += rho_of(event)
        total, failure = composition.basic(event)
        if self.epsilon is not None:
            self.epsilon = None if total is None or failure else self.epsilon + total

    def reading(self, delta: float) -> float:
        """An epsilon that holds at ``delta`` even if one stops because of what was seen."""
        check.probability("delta", delta)
        if self.rho == 0:
            return 0.0
        pure = math.inf if self.epsilon is None else round_up(self.epsilon)
        level, limit = 1, self.unit
        while limit < self.rho:
            level, limit = level + 1, limit * 2
        share = delta / (level * (level + 1))
        return min(pure, conversion.zcdp_epsilon_optimal(round_up(limit), delta=share))
