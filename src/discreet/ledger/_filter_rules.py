"""What an event costs an account, and whether the limit still holds.

Every rule is a filter: it decides from running sums alone, in constant time, and it is valid when
each event is chosen after seeing the outputs of the earlier ones. The proofs that are ours are
written out in docs/theory/ledger.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, Protocol, TypeAlias

from discreet.accounting import composition, conversion, renyi
from discreet.accounting._event_tree import leaves
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee, describe
from discreet.core import events
from discreet.core._rational import root_down, round_down, round_up
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import Event
from discreet.core.number_format import number

Sums: TypeAlias = tuple[Fraction | None, ...]
"""Running sums; None stands for a loss without a bound."""
Composition: TypeAlias = Literal["basic", "concentrated"]

UNIT = 1 << 60  # Rényi divergences are kept as whole multiples of 1/UNIT, rounded up
_LONGEST = 256  # bits of a denominator before a sum is rounded up


class FilterRule(Protocol):
    """A filter: prices, their sums, and the question whether the limit holds."""

    @property
    def zero(self) -> Sums: ...

    def price(self, event: Event) -> Sums: ...

    def mode(self, event: Event) -> str:
        """How this account composes, fixed by its first event, before any output."""
        ...

    def allows(self, sums: Sums, mode: str) -> bool: ...

    def allows_exactly(self, event: Event) -> bool:
        """Whether the whole composition fits, when no event depends on an output."""
        ...

    def remaining(self, sums: Sums, mode: str) -> Fraction:
        """What is left, rounded down, in the currency of the limit."""
        ...

    def shortage(self, before: Sums, after: Sums, mode: str) -> str:
        """Why ``after`` is not allowed, for people."""
        ...


def add(sums: Sums, price: Sums) -> Sums:
    """The new sums. A fraction that grows long is rounded up, so that the cost stays constant."""
    return tuple(
        None if a is None or b is None else _tidy(a + b) for a, b in zip(sums, price, strict=True)
    )


def _tidy(value: Fraction) -> Fraction:
    if value.denominator.bit_length() <= _LONGEST:
        return value
    return Fraction(math.ceil(value * (1 << _LONGEST - 64)), 1 << _LONGEST - 64)


def rule_for(
    limit: Guarantee,
    *,
    composition: Composition | None = None,
    orders: tuple[float, ...] = (),
) -> FilterRule:
    """The filter of a limit: pure, approximate, zero-concentrated or Gaussian."""
    match limit.event:
        case events.PureEvent(epsilon) | events.ApproxEvent(epsilon, 0):
            rule: FilterRule = SumRule(limit=epsilon, cost=_pure_cost, left=_same)
        case events.ZcdpEvent(rho, 0):
            rule = SumRule(limit=rho, cost=rho_of, left=_same)
        case events.GdpEvent(mu):
            rule = SumRule(limit=mu**2, cost=_gaussian_cost, left=root_down)
        case events.ApproxEvent(epsilon, delta):
            return ApproxRule(
                epsilon=epsilon,
                delta=delta,
                composition=composition,
                orders=orders or (best_order(epsilon, delta / 2),),
            )
        case _:
            raise InvalidArgument(
                f"limit must be pure_dp, approx_dp, zcdp or gdp, got {describe(limit.event)}."
            )
    if composition is not None or orders:
        raise InvalidArgument("composition and orders belong to a limit approx_dp(epsilon, delta).")
    return rule


# ── One sum: pure DP, zCDP, GDP ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRule:
    """A filter on one exact sum."""

    # Theorem: if the sum of the adaptively chosen epsilon (rho, mu^2) never passes the limit, the
    #   whole is limit-DP (limit-zCDP, sqrt(limit)-GDP).
    # Source: Rogers, Roth, Ullman, Vadhan 2016 (pure); Feldman, Zrnic 2021 and Whitehouse, Ramdas,
    #   Rogers, Wu 2023 (zCDP); Smith, Thakurta 2022 and Koskela, Tobaben, Honkela 2023 (GDP).

    limit: Fraction
    cost: Callable[[Event], Fraction]
    left: Callable[[Fraction], Fraction]

    @property
    def zero(self) -> Sums:
        return (Fraction(0),)

    def price(self, event: Event) -> Sums:
        return (_cost(self.cost, event),)

    def mode(self, event: Event) -> str:  # noqa: ARG002 — there is one way only
        return "sum"

    def allows(self, sums: Sums, mode: str) -> bool:  # noqa: ARG002
        return sums[0] is not None and sums[0] <= self.limit

    def allows_exactly(self, event: Event) -> bool:  # noqa: ARG002 — the sum is exact already
        return False

    def remaining(self, sums: Sums, mode: str) -> Fraction:  # noqa: ARG002
        return self.left(max(self.limit - (sums[0] or 0), Fraction(0)))

    def shortage(self, before: Sums, after: Sums, mode: str) -> str:  # noqa: ARG002
        return f"{max(round_down(self.remaining(before, mode)), 0.0):.6g} is left"


@lru_cache(maxsize=4096)
def _cost(cost: Callable[[Event], Fraction], event: Event) -> Fraction:
    return cost(event)


def _same(value: Fraction) -> Fraction:
    return value


def _pure_cost(event: Event) -> Fraction:
    total, failure = composition.basic(event)
    if total is None or failure:
        raise Unsupported(
            "The limit of this account is a pure epsilon, and this release has none "
            f"({describe(event)}): use an account with a limit approx_dp(epsilon, delta) or "
            "zcdp(rho)."
        )
    return total


def _gaussian_cost(event: Event) -> Fraction:
    total = Fraction(0)
    for leaf, count in leaves(event):
        if isinstance(leaf, events.GdpEvent):
            total += count * leaf.mu**2
            continue
        bound, failure = composition.basic(leaf)
        if bound is None or failure:
            raise Unsupported(
                f"{describe(leaf)} is not known to be Gaussian-private; charge it to an account "
                "with a limit zcdp(rho) or approx_dp(epsilon, delta)."
            )
        total += count * pure_to_mu(bound) ** 2
    return total


def pure_to_mu(epsilon: Fraction) -> Fraction:
    """The GDP of an arbitrary epsilon-DP mechanism, rounded up."""
    # Theorem: epsilon-DP implies mu-GDP with `mu = -2 Phi^-1(1/(1 + e^eps))`, attained.
    # Proof: the worst trade-off curve is that of randomized response, a polygon with the corner
    #   (a, a), a = 1/(1 + e^eps). A convex curve below the corners of a polygon is below it;
    #   that of mu-GDP passes through (a, a) for this mu. For small epsilon the tangent at 0,
    #   `eps sqrt(pi/2)`, is above, because the curve is concave.
    # Source: Dong, Roth, Su 2022, Proposition 2.5; the corner is ours.
    value = round_up(epsilon)
    if value > 600:
        raise Unsupported(f"epsilon {number(value)} is too large for a Gaussian limit.")
    if value < 1e-3:
        mu = value * math.sqrt(math.pi / 2)
    else:
        mu = -2 * NormalDist().inv_cdf(1 / (1 + math.exp(value)))
    return Fraction(mu * (1 + 1e-9))


# ── Approximate DP ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxRule:
    """A filter for (epsilon, delta), by basic sums or by Rényi divergences of fixed orders."""

    # Theorem: "basic" goes on while the epsilons sum to at most epsilon and the deltas to at most
    #   delta. "concentrated" goes on while the deltas of events sum to at most delta/2 and
    #   either the epsilons to at most epsilon, or, for one of m fixed orders, the divergences to
    #   an amount that gives epsilon at delta/(2m). Both are (epsilon, delta)-DP, however events
    #   are chosen.
    # Proof: docs/theory/ledger.md. Paths that end within the sum of epsilons cannot fail at all, so
    #   only the m orders share delta/2.
    # Source: Rogers et al. 2016; Feldman, Zrnic 2021, Theorem 4.3; Whitehouse et al. 2023.
    # Needs: composition and orders fixed before the first output.

    epsilon: Fraction
    delta: Fraction
    orders: tuple[float, ...]
    composition: Composition | None = None

    def __post_init__(self) -> None:
        if self.composition not in (None, "basic", "concentrated"):
            raise InvalidArgument(
                f"composition must be 'basic' or 'concentrated', got {self.composition!r}."
            )
        if not all(1 < order < math.inf for order in self.orders):
            raise InvalidArgument(f"orders must be finite and exceed 1, got {self.orders}.")

    @property
    def zero(self) -> Sums:
        return (Fraction(0),) * (2 + len(self.orders))

    def price(self, event: Event) -> Sums:
        return approx_cost(event, self.orders)

    def mode(self, event: Event) -> str:
        """Basic if the first event has an epsilon, and is declared with a delta.

        An event without an epsilon, such as a threshold on Gaussian counts, cannot be basic.
        """
        if self.composition is not None:
            return self.composition
        declared = [leaf for leaf, _ in leaves(event) if isinstance(leaf, events.ApproxEvent)]
        total = self.price(event)[0] if declared else None
        return "concentrated" if total is None else "basic"

    def allows(self, sums: Sums, mode: str) -> bool:
        total, failure, *divergences = sums
        if failure is None:
            return False
        if failure > self._allowed_delta(mode):
            return False
        if total is not None and total <= self.epsilon:
            return True
        if mode == "basic":
            return False
        share = round_down(self.delta / (2 * len(self.orders)))
        return any(
            divergence is not None
            and conversion.renyi_epsilon(round_up(divergence), order=order, delta=share)
            <= round_down(self.epsilon)
            for divergence, order in zip(divergences, self.orders, strict=True)
        )

    def allows_exactly(self, event: Event) -> bool:
        return _within_exactly(event, self.epsilon, self.delta)

    def remaining(self, sums: Sums, mode: str) -> Fraction:
        """The largest pure epsilon that would still be granted."""
        total = sums[0]
        best = Fraction(0)
        if total is not None and total <= self.epsilon and self.allows(sums, mode):
            best = self.epsilon - total
        if mode == "basic":
            return best
        low, high = 0, math.ceil(2 * self.epsilon * (1 << 40))
        while high - low > 1:  # whole multiples of 2^-40
            middle = (low + high) // 2
            price = self.price(events.PureEvent(Fraction(middle, 1 << 40)))
            low, high = (middle, high) if self.allows(add(sums, price), mode) else (low, middle)
        return max(best, Fraction(low, 1 << 40))

    def shortage(self, before: Sums, after: Sums, mode: str) -> str:
        failure, allowed = after[1], self._allowed_delta(mode)
        if not self.allows(before, mode):
            return "the first release took all of it"
        if failure is not None and failure > allowed:
            return (
                f"the deltas of its events would sum to {float(failure):.3g}, and {mode} "
                f"composition allows {float(allowed):.3g}"
            )
        rest = max(round_down(self.remaining(before, mode)), 0.0)
        left = f"a pure epsilon of {rest:.6g} is left"
        if mode == "basic" and after[0] is None:
            left += "; it adds epsilons, which this event has not: open it as 'concentrated'"
        return left

    def _allowed_delta(self, mode: str) -> Fraction:
        return self.delta if mode == "basic" else self.delta / 2


@lru_cache(maxsize=4096)
def _within_exactly(event: Event, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the exact composition fits, by either of its two bounds."""
    total, leak = composition.basic(event)
    if total is not None and total <= epsilon and leak <= delta:
        return True
    most, failure = round_down(epsilon), round_down(delta)
    return (
        composition.epsilon(event, delta=failure).value <= most
        or composition.delta(event, epsilon=most).value <= failure
    )


@lru_cache(maxsize=4096)
def approx_cost(event: Event, orders: tuple[float, ...]) -> Sums:
    """Epsilon, delta and Rényi divergences of an event: three ways to bound the same loss."""
    # Theorem: with probability 1 - delta (in a coupling) the loss is that of a mechanism with the
    #   stated epsilon and divergences.
    # Proof: an (epsilon, delta)-DP pair is, with probability 1 - delta, randomized response of
    #   epsilon, processed (Kairouz, Oh, Viswanath 2015); divergences are those of that.
    total: Fraction | None = Fraction(0)
    failure = Fraction(0)
    divergences: list[Fraction | None] = [Fraction(0)] * len(orders)
    for leaf, count in leaves(event):
        bound, leak = _bounded(leaf)
        source: Event = events.PureEvent(bound) if bound is not None and leak else leaf
        worth = [renyi.divergence(source, order=order) for order in orders]
        if bound is not None:
            worth = [min(value, round_up(bound)) for value in worth]
        elif min(worth) == math.inf:
            raise Unsupported(f"{describe(leaf)} has no bound that holds under adaptive choice.")
        total = None if total is None or bound is None else total + count * bound
        failure += count * leak
        divergences = [
            None if a is None or b == math.inf else a + _units(b, count)
            for a, b in zip(divergences, worth, strict=True)
        ]
    return (total, failure, *divergences)


def _units(divergence: float, count: int) -> Fraction:
    return Fraction(math.ceil(Fraction(divergence) * count * UNIT), UNIT)


def _bounded(leaf: Event) -> tuple[Fraction | None, Fraction]:
    """The largest finite loss and the chance of an infinite one."""
    if isinstance(leaf, events.TruncatedLaplaceEvent):
        epsilon = round_up(leaf.shift / leaf.scale)
        return Fraction(epsilon), Fraction(composition.delta(leaf, epsilon=epsilon).value)
    bound, leak = composition.basic(leaf)
    return (None, Fraction(0)) if bound is None else (bound, leak)


def best_order(epsilon: Fraction, delta: Fraction) -> float:
    """The order of an account that names none, to six digits; any order is valid.

    The largest rho with ``D = rho * order`` at (epsilon, delta) is best for Gaussian noise. Near
    that order rho is flat, while divergences of sampled noise explode: so the smallest order
    that keeps 95 % of it.
    """
    log = math.log(round_down(delta))
    limit = float(epsilon)

    def room(order: float) -> float:
        base = -(math.log(order) + log) / (order - 1) + math.log1p(-1 / order)
        return (limit - base) / order

    orders = [1 + math.exp(-3 + i / 64) for i in range(15 * 64)]
    best = max(map(room, orders))
    enough = best * (0.95 if best > 0 else 1.05)
    return float(f"{next(order for order in orders if room(order) >= enough):.6g}")
