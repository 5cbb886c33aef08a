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
        """Charge a release, or raise `BudgetExceeded` and spend nothing.

        Args:
            guarantee: Guarantee of the release, under the relation of the filter.

        Returns:
            The cost, as an exact fraction.

        Raises:
            BudgetExceeded: The cost exceeds what is left.
            RelationMismatch: The guarantee is under another neighboring relation.
            Unsupported: The guarantee has no finite cost in the unit of this filter.

        Examples:
            >>> import discreet
            >>> budget = discreet.PureDPFilter(limit=1)
            >>> budget.charge(discreet.pure_dp(0.3))
            Fraction(3, 10)
            >>> budget.spent
            Fraction(3, 10)
        """
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
    """A privacy filter for pure DP: a limit for the sum of all epsilons.

    A filter is kept in memory. To record charges durably, use an account of a `Ledger`.

    Args:
        limit: Total epsilon that may be spent, zero or above.
        relation: Neighboring relation of all charges.
        spent: Epsilon that was spent before, zero by default.

    Attributes:
        measure: What is summed, `"epsilon"`.

    Privacy:
        All charged releases together satisfy limit-DP, even if each is chosen after seeing the
        results of the earlier ones.

    Examples:
        >>> import discreet
        >>> budget = discreet.PureDPFilter(limit=1)
        >>> cost = budget.charge(discreet.pure_dp(0.75))
        >>> budget.limit - budget.spent
        Fraction(1, 4)

    References:
        Rogers, Roth, Ullman and Vadhan (2016).
        [Proof](../theory/theorems.md#accounting.filters.PureDPFilter).
    """

    # Theorem: if every adaptively chosen event is charged its epsilon and the sum never passes the
    #   limit, the whole is limit-DP.
    # Source: Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6.

    measure: ClassVar[str] = "epsilon"

    def cost(self, event: Event) -> Fraction:
        """Compute the epsilon of an event.

        Args:
            event: Event of a guarantee, `Guarantee.event`.

        Returns:
            The cost, as an exact fraction.

        Raises:
            Unsupported: The event has no pure DP guarantee.

        Examples:
            >>> import discreet
            >>> discreet.PureDPFilter(limit=1).cost(discreet.pure_dp(0.25).event)
            Fraction(1, 4)
        """
        total, failure = composition.basic(event)
        if total is None or failure:
            raise Unsupported("A pure filter takes events with a bounded loss and delta 0 only.")
        return total


@dataclass(slots=True, kw_only=True)
class ZcdpFilter(_ExactFilter):
    """A privacy filter for zero-concentrated DP: a limit for the sum of all rhos.

    A filter is kept in memory. To record charges durably, use an account of a `Ledger`.

    Args:
        limit: Total rho that may be spent, zero or above.
        relation: Neighboring relation of all charges.
        spent: Rho that was spent before, zero by default.

    Attributes:
        measure: What is summed, `"rho"`.

    Privacy:
        All charged releases together satisfy limit-zCDP, even if each is chosen after seeing the
        results of the earlier ones.

    Examples:
        >>> import discreet
        >>> budget = discreet.ZcdpFilter(limit=0.5)
        >>> cost = budget.charge(discreet.zcdp(0.125))
        >>> budget.limit - budget.spent
        Fraction(3, 8)

    References:
        Feldman and Zrnic (2021). Whitehouse et al. (2023).
        [Proof](../theory/theorems.md#accounting.filters.ZcdpFilter).
    """

    # Theorem: if the sum of adaptively chosen rho never passes the limit, the whole is limit-zCDP.
    # Source: Feldman, Zrnic 2021, Theorem 4.3; Whitehouse et al. 2023.

    measure: ClassVar[str] = "rho"

    def cost(self, event: Event) -> Fraction:
        """Compute the rho of an event, rounded up.

        Args:
            event: Event of a guarantee, `Guarantee.event`.

        Returns:
            The cost. It is exact for Gaussian noise and for zCDP.

        Raises:
            Unsupported: The event has no zCDP guarantee.

        Examples:
            >>> import discreet
            >>> discreet.ZcdpFilter(limit=1).cost(discreet.gdp(1).event)
            Fraction(1, 2)
        """
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
            any_pure = conversion.pure_to_rho(float(shift / scale) * conversion.UP)
            if shift == 1:  # randomized response: the same number
                return _up(any_pure)
            step = float(1 / scale) * conversion.UP
            return _up(min(any_pure, conversion.discrete_laplace_to_rho(step, shift)))
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
    """A privacy filter for (epsilon, delta)-DP that adds up Rényi divergences.

    A filter is kept in memory. To record charges durably, use an account of a `Ledger`.

    Args:
        epsilon: Limit of the privacy loss, above zero.
        delta: Probability parameter of the limit, between 0 and 1.
        relation: Neighboring relation of all charges.
        orders: Orders of the Rényi divergences, each above 1. By default one order, which is best
            for Gaussian noise. With several orders, `delta` is divided among them.
        totals: Divergences that were spent before, one per order. By default zero.

    Raises:
        InvalidArgument: A limit or an order is outside its range.

    Privacy:
        All charged releases together satisfy (epsilon, delta)-DP, even if each is chosen after
        seeing the results of the earlier ones.

    Examples:
        >>> import discreet
        >>> budget = discreet.RenyiFilter(epsilon=2, delta=1e-6)
        >>> for _ in range(10):
        ...     budget.charge(discreet.gdp(0.1))
        >>> round(budget.spent, 3)
        1.473

    References:
        Feldman and Zrnic (2021). [Proof](../theory/theorems.md#accounting.filters.RenyiFilter).
    """

    # Theorem: fix an order; if the sum of adaptively chosen divergences of that order never passes
    #   its budget, the whole is (epsilon, delta)-DP. With m orders each gets delta/m, and the
    #   filter goes on while *one* of them is kept: which one may depend on the outputs, so their
    #   failures add up.
    # Source: Feldman, Zrnic 2021, Theorem 4.3 for one order; the union over orders is ours (to go
    #   on while any of several orders holds, each at the full delta, is not proved).
    # Needs: `orders` fixed in advance; by default the one that is best for Gaussian noise.

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
        """Charge a release, or raise `BudgetExceeded` and spend nothing.

        Args:
            guarantee: Guarantee of the release, under the relation of the filter.

        Raises:
            BudgetExceeded: The release would exceed epsilon at delta.
            RelationMismatch: The guarantee is under another neighboring relation.

        Examples:
            >>> import discreet
            >>> budget = discreet.RenyiFilter(epsilon=2, delta=1e-6)
            >>> budget.charge(discreet.gdp(0.1))
        """
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
        """Epsilon at the delta of the filter that all charges so far amount to."""
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
    """A privacy odometer: the total of all charges, without a limit.

    Args:
        relation: Neighboring relation of all charges.
        unit: Smallest total of rho that a reading distinguishes. Readings round rho up to a power
            of two times this unit.
        rho: Rho that was spent before, zero by default.
        epsilon: Pure epsilon that was spent before, zero by default. None if it is not bounded.

    Privacy:
        A reading at delta is valid even if you decide to stop because of what you have seen.

    Examples:
        >>> import discreet
        >>> odometer = discreet.PrivacyOdometer()
        >>> odometer.charge(discreet.zcdp(0.01))
        >>> odometer.charge(discreet.pure_dp(0.1))
        >>> round(odometer.reading(1e-6), 3)
        0.979

    References:
        Rogers, Roth, Ullman and Vadhan (2016). Feldman and Zrnic (2021).
        [Proof](../theory/theorems.md#accounting.filters.PrivacyOdometer).
    """

    # Theorem: at every *fixed* time the reading is valid at its delta. For a reading at a time that
    #   depends on outputs, spend delta over a grid of limits: `reading(delta)` rounds the sum
    #   of rho up to the next power of two times `unit` and pays delta/(k(k+1)) for the k-th.
    # Proof: a zCDP filter stands at each limit; its guarantee holds when it is passed, and the
    #   failure probabilities sum to delta.
    # Source: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021, section 5.

    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    unit: Fraction = Fraction(1, 1 << 20)
    rho: Fraction = Fraction(0)
    epsilon: Fraction | None = Fraction(0)

    def charge(self, guarantee: Guarantee) -> None:
        """Record a release.

        Args:
            guarantee: Guarantee of the release, under the relation of the odometer.

        Raises:
            RelationMismatch: The guarantee is under another neighboring relation.
            Unsupported: The guarantee has no zCDP bound.

        Examples:
            >>> import discreet
            >>> odometer = discreet.PrivacyOdometer()
            >>> odometer.charge(discreet.gdp(1))
            >>> odometer.rho
            Fraction(1, 2)
        """
        _same(guarantee, self.relation)
        event = guarantee.event
        self.rho += rho_of(event)
        total, failure = composition.basic(event)
        if self.epsilon is not None:
            self.epsilon = None if total is None or failure else self.epsilon + total

    def reading(self, delta: float) -> float:
        """Compute an epsilon that holds whenever you stop.

        Args:
            delta: Probability parameter of the reading, between 0 and 1.

        Returns:
            The total privacy loss, or zero before the first charge.

        Raises:
            InvalidArgument: `delta` is not a probability.

        Examples:
            >>> import discreet
            >>> odometer = discreet.PrivacyOdometer()
            >>> odometer.charge(discreet.pure_dp(0.25))
            >>> odometer.reading(1e-6)
            0.25
        """
        check.probability("delta", delta)
        if self.rho == 0:
            return 0.0
        pure = math.inf if self.epsilon is None else round_up(self.epsilon)
        level, limit = 1, self.unit
        while limit < self.rho:
            level, limit = level + 1, limit * 2
        share = delta / (level * (level + 1))
        return min(pure, conversion.zcdp_epsilon_optimal(round_up(limit), delta=share))
