"""The worth of a composition: every accountant that supports the event, the best answer wins."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import conversion, renyi
from discreet.accounting._event_tree import leaves, reduce_event, sampling_rate, simple_pair
from discreet.accounting._numeric_composition import leaf_delta
from discreet.accounting.conversion import Floats
from discreet.core._rational import rational, round_up
from discreet.core.errors import Unsupported
from discreet.core.events import (
    ApproxEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EitherEvent,
    Event,
    GdpEvent,
    GroupEvent,
    LaplaceEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ShuffledEvent,
    ShuffledTwoLevelEvent,
    TruncatedLaplaceEvent,
    ZcdpEvent,
)

_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingResult:
    """A certified number, the theorem behind it, and what every accountant gave."""

    value: float
    by: str
    others: tuple[tuple[str, float], ...]


def epsilon(event: Event, *, delta: float | Fraction, compare: bool = False) -> AccountingResult:
    """The smallest epsilon at ``delta`` over all accountants."""
    # Theorem: every accountant gives an upper bound, hence so does the smallest.
    #   `compare` asks also those that cannot win.
    near = float(delta)
    return _best(
        event,
        [
            ("basic composition", lambda: _basic_epsilon(event, rational(delta))),
            ("the exact profile", lambda: _closed_epsilon(event, near)),
            ("privacy-loss distributions", lambda: _numeric_epsilon(event, near)),
            ("Rényi divergences", lambda: renyi.epsilon(event, delta=near)),
        ],
        compare=compare,
    )


def delta(event: Event, *, epsilon: float | Fraction) -> AccountingResult:
    """The smallest delta at ``epsilon`` over all accountants."""
    near = float(min(epsilon, Fraction(_LARGEST)))
    return _best(
        event,
        [
            ("basic composition", lambda: _basic_delta(event, rational(epsilon))),
            ("the exact profile", lambda: _closed_delta(event, near)),
            ("privacy-loss distributions", lambda: _numeric_delta(event, near)),
            ("Rényi divergences", lambda: renyi.delta(event, epsilon=near)),
        ],
        limit=1.0,
    )


def profile(event: Event, epsilons: Floats) -> Floats:
    """Delta at many epsilons (zero or above, increasing): upper bounds from few compositions."""
    total, failure = basic(event)
    most = math.inf if total is None else round_up(total)
    best = np.where(epsilons >= most, min(1.0, round_up(failure)), 1.0)
    closed = _closed_profile(event, epsilons)
    if closed is not None:
        return np.minimum(best, closed)
    best = np.minimum(best, numeric.profile(event, epsilons))
    if not _has_exact_pairs(event):
        # Slow, so at few points: a profile is convex in exp(epsilon), and chords lie above it.
        few = epsilons[np.unique(np.linspace(0, epsilons.size - 1, 24).astype(np.int64))]
        known = [min(1.0, _or_infinity(partial(_renyi_delta, event, float(e)))) for e in few]
        best = np.minimum(best, np.interp(np.exp(epsilons), np.exp(few), known))
    return best


def _renyi_delta(event: Event, epsilon: float) -> float:
    return renyi.delta(event, epsilon=epsilon)


def _closed_profile(event: Event, epsilons: Floats) -> Floats | None:
    found = list(leaves(event))
    if len(found) == 1 and found[0][1] == 1 and not isinstance(found[0][0], ZcdpEvent):
        try:
            return leaf_delta(found[0][0], epsilons)
        except Unsupported:
            pass
    if not math.isfinite(_closed_delta(event, 1.0)):
        return None
    return np.array([_closed_delta(event, float(one)) for one in epsilons])


def rdp(event: Event, *, order: float) -> float:
    """The Rényi divergence of the given order, an upper bound."""
    bound = basic(event)
    divergence = renyi.divergence(event, order=order)
    if bound[0] is not None and bound[1] == 0:  # D_order <= D_infinity
        divergence = min(divergence, round_up(bound[0]))
    return divergence


def bounds(event: Event, *, delta: float | Fraction) -> tuple[float, float]:
    """A lower and an upper bound of epsilon at ``delta``."""
    # Theorem: some mechanism with this event attains at least the lower one.
    high = epsilon(event, delta=delta).value
    low = numeric.epsilon(event, delta=float(delta), side="lower")
    if _closed_delta(event, 0.0) <= 1.0 and _is_attained(event):
        low = max(low, high * (1 - 1e-9))
    return min(low, high), high


def _is_attained(event: Event) -> bool:
    """Whether the closed form is the exact profile and not merely a bound."""
    found = list(leaves(event))
    kinds = (
        GdpEvent,
        PureEvent,
        ApproxEvent,
        LaplaceEvent,
        DiscreteLaplaceEvent,
        TruncatedLaplaceEvent,
    )
    if len(found) == 1 and found[0][1] == 1:
        leaf = found[0][0]
        return isinstance(leaf.inner if isinstance(leaf, SampledEvent) else leaf, kinds)
    return all(isinstance(leaf, GdpEvent) for leaf, _ in found)


def _numeric_epsilon(event: Event, delta: float) -> float:
    return (
        math.inf if _has_closed_form(event) else numeric.epsilon(event, delta=delta, side="upper")
    )


def _numeric_delta(event: Event, epsilon: float) -> float:
    return 1.0 if _has_closed_form(event) else numeric.delta(event, epsilon=epsilon, side="upper")


def _has_closed_form(event: Event) -> bool:
    return math.isfinite(_closed_delta(event, 1.0))


def _best(
    event: Event,
    accountants: list[tuple[str, Callable[[], float]]],
    *,
    limit: float = math.inf,
    compare: bool = False,
) -> AccountingResult:
    """Ask the accountants in turn; Rényi divergences come last and often cannot win."""
    *others, last = accountants
    values = [(name, min(limit, _or_infinity(call))) for name, call in others]
    if compare or min(value for _, value in values[1:]) >= limit or not _has_exact_pairs(event):
        values.append((last[0], min(limit, _or_infinity(last[1]))))
    by, value = min(values, key=lambda item: item[1])
    return AccountingResult(value=value, by=by, others=tuple(values))


def _or_infinity(call: Callable[[], float]) -> float:
    """What an accountant says; of numbers that no double holds it can say nothing."""
    try:
        return call()
    except OverflowError:
        return math.inf


def _has_exact_pairs(event: Event) -> bool:
    """Whether all parts are composed by their own laws: Rényi divergences then lose."""
    rest = reduce_event(event, "upper")
    curves = (BoundedRangeEvent, EitherEvent, GroupEvent)
    vectors = any(isinstance(leaf, DiscreteGaussianEvent) for leaf, _ in leaves(event))
    return not (rest.rho or rest.xi or vectors) and not any(
        isinstance(part, curves) for part, _ in rest.parts
    )


# ── basic composition ────────────────────────────────────────────────────────


def _basic_epsilon(event: Event, delta: Fraction) -> float:
    total, failure = basic(event)
    return _readable(total) if total is not None and failure <= delta else math.inf


def _basic_delta(event: Event, epsilon: Fraction) -> float:
    total, failure = basic(event)
    return _readable(failure) if total is not None and total <= epsilon else math.inf


def _readable(value: Fraction) -> float:
    """The smallest double that is *read* as no less (0.3 is read as 3/10)."""
    nearest = round_up(value)
    if not math.isfinite(nearest):
        return nearest
    near = (math.nextafter(nearest, 0.0), nearest)
    found = (each for each in near if rational(each) >= value)
    return next(found, math.nextafter(nearest, math.inf))


def basic(event: Event) -> tuple[Fraction | None, Fraction]:
    """The sums of epsilons and deltas; None where a part has no bounded loss (B25, K6)."""
    total, failure = Fraction(0), Fraction(0)
    for leaf, count in leaves(event):
        bound = _bounded(leaf)
        if bound is None:
            return None, Fraction(1)
        total += count * bound[0]
        failure += count * bound[1]
    return total, min(failure, Fraction(1))


def _bounded(leaf: Event) -> tuple[Fraction, Fraction] | None:
    """The largest finite loss of a leaf and the chance of an infinite one, rounded up."""
    match leaf:
        case (
            PureEvent(epsilon)
            | BoundedRangeEvent(epsilon)
            | ShuffledEvent(epsilon)
            | ShuffledTwoLevelEvent(epsilon)
        ):
            return epsilon, Fraction(0)
        case ApproxEvent(epsilon, delta):
            return epsilon, delta
        case LaplaceEvent(scale):
            return 1 / scale, Fraction(0)
        case DiscreteLaplaceEvent(scale, shift):
            return shift / scale, Fraction(0)
        case TruncatedLaplaceEvent(scale, shift):
            pair = simple_pair(leaf)
            return None if pair is None else (shift / scale, Fraction(pair.infinity))
        case ZcdpEvent(rho, xi):
            return (xi, Fraction(0)) if rho == 0 else None
        case GroupEvent(size, ApproxEvent(epsilon, delta)):
            grown = conversion.group(float(epsilon), delta=float(delta), size=size)[1]
            return size * epsilon, Fraction(grown)
        case _:
            return _bounded_whole(leaf)


def _bounded_whole(leaf: Event) -> tuple[Fraction, Fraction] | None:
    """The same for leaves that contain events."""
    match leaf:
        case GroupEvent(size, inner):
            bound = _bounded(inner)
            if bound is None or bound[1]:
                return None
            return size * bound[0], Fraction(0)
        case EitherEvent(branches):
            pairs = [basic(branch) for branch in branches]
            tops = [top for top, _ in pairs if top is not None]
            if len(tops) < len(pairs):
                return None
            return max(tops), max(failure for _, failure in pairs)
        case SampledEvent() | SampledWithoutReplacementEvent():
            top, failure = basic(leaf.inner)
            if top is None:
                return None
            rate = sampling_rate(leaf)
            if top > 600:  # too large for a double's exponential: as if everyone took part
                return top, rate * failure
            amplified = math.log1p(round_up(rate) * math.expm1(round_up(top))) * conversion.UP
            return min(Fraction(amplified), top), rate * failure
        case _:
            return None


# ── closed forms: one leaf, used once, or Gaussians only ─────────────────────


def _single_delta(event: Event, epsilon: float) -> float:
    """The profile of a single leaf, the worse of both directions; infinity if it is not one."""
    found = list(leaves(event))
    if len(found) != 1 or found[0][1] != 1 or isinstance(found[0][0], ZcdpEvent):
        return math.inf
    try:
        return float(leaf_delta(found[0][0], np.asarray([epsilon]))[0])
    except Unsupported:
        return math.inf


def _closed_delta(event: Event, epsilon: float) -> float:
    single = _single_delta(event, epsilon)
    if math.isfinite(single):
        return single
    rest = reduce_event(event, "upper")
    if rest.parts or rest.rho or rest.xi:
        return math.inf
    mu = math.sqrt(rest.mu_squared) * conversion.UP
    inside = conversion.gaussian_delta(epsilon - 2 * rest.slack, mu=mu)
    floor = conversion.UNDERFLOW if mu > 0 else 0.0  # a Gaussian is never pure
    return min(1.0, math.exp(rest.slack) * float(inside) * conversion.UP + floor)


def _closed_epsilon(event: Event, delta: float) -> float:
    if delta <= 0 or not math.isfinite(_closed_delta(event, 0.0)):
        return math.inf
    return solve_epsilon(lambda e: _closed_delta(event, e), delta)


def solve_epsilon(profile: Callable[[float], float], delta: float) -> float:
    """The smallest epsilon >= 0 where a decreasing profile is at most ``delta``, rounded up."""
    if profile(0.0) <= delta:
        return 0.0
    high = 1.0
    while profile(high) > delta:
        high *= 2
        if high > 1e6:
            return math.inf
    return conversion.round_root(lambda e: profile(e) - delta, 0.0, high)
