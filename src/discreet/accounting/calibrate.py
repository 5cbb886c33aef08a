"""One calibrator: the smallest noise of a family that meets a target (B46).

The certificate is the accountant's own answer for the event with that noise, so that what is
calibrated is what will be charged. Scales are rationals with short denominators, on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.accounting import composition, conversion
from discreet.accounting._event_tree import leaves
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import round_up
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import Event

Family: TypeAlias = Literal["laplace", "gaussian", "discrete laplace", "discrete gaussian"]
Target: TypeAlias = Guarantee | tuple[float, float]

_PRECISION = 1e-9
_LITTLE = 1e-3


def calibrate(
    family: Family,
    *,
    sensitivity: float | Fraction,
    target: Target,
    count: int = 1,
    dimension: int = 1,
) -> Fraction:
    """The smallest scale (sigma for Gaussians) whose ``count``-fold use meets the target."""
    # Theorem: the returned scale is certified, and a scale smaller by 1e-9 relative is not.
    # Proof: the certificate is monotone in the scale (a larger one is more noise added, or, for
    #   discrete Gaussians, a smaller bound); bisect and return the certified end.
    # Source: B46; for (epsilon, 0) and Laplace the closed form `sensitivity count / epsilon`.
    # Needs: `sensitivity` in L1 (Laplace) or L2 (Gaussian), whole for discrete Laplace families;
    #   a target of (epsilon, delta) or a declared pure, approx, zCDP or GDP guarantee.
    shift = check.positive("sensitivity", sensitivity)
    uses = check.count("count", count)
    make = _event_maker(family, shift, check.count("dimension", dimension))
    exact = _closed_form(family, shift, uses, target)
    if exact is not None:
        return exact
    if family == "gaussian" and isinstance(target, tuple):
        # The analytic mechanism: count uses are one use of sensitivity sqrt(count).
        epsilon, delta = _pair(target)
        sigma = conversion.gaussian_sigma(epsilon, delta=delta) * math.sqrt(uses)
        return settled(
            lambda scale: events.repeat(make(scale), uses), shift * _short(sigma), target=target
        )
    return smallest_scale(make, target=target, start=shift, count=uses)


def smallest_scale(
    make: Callable[[Fraction], Event],
    *,
    target: Target,
    start: Fraction,
    count: int = 1,
    precision: float = _PRECISION,
) -> Fraction:
    """The smallest scale whose event, used ``count`` times, meets the target.

    ``make(scale)`` is the event of a mechanism with that scale; ``start`` is where to look first.
    """
    meets = _certificate(target)

    def made(scale: Fraction) -> Event:
        return events.repeat(make(scale), count)

    found = _bisect(lambda scale: meets(made(scale)), start=start, precision=precision)
    return settled(made, found, target=target)


def settled(make: Callable[[Fraction], Event], scale: Fraction, *, target: Target) -> Fraction:
    """The scale, or one just above it, at which users read an epsilon that meets the target."""
    # A delta at epsilon and an epsilon at delta are two bounds with roundings of their own: what
    # was certified by one may be read beyond the target by the other, in the last digits.
    if not isinstance(target, tuple):
        return scale
    epsilon, delta = _pair(target)
    step = 2.0**-40
    while (read := composition.epsilon(make(scale), delta=delta).value) > epsilon:
        if epsilon <= 0 or step > 1:
            raise Unsupported("No scale is read to meet the target.")
        scale = _short(float(scale) * max(read / epsilon, 1 + step))
        step *= 4
    return scale


def smallest_asked(
    spent: Callable[[Fraction], float], epsilon: float, *, start: Fraction
) -> Fraction:
    """``start``, or a scale just above it at which `Guarantee.epsilon` says at most ``epsilon``.

    Delta at an epsilon and epsilon at a delta are found by different grids. What was asked for is
    an epsilon, and that is what users look up. ``start`` must be certified by its delta: it is
    returned where a little more noise does not help, because the search for epsilon is loose.
    """
    scale, more = start, _PRECISION
    while spent(scale) > epsilon:
        if more > _LITTLE:
            return start
        scale, more = _short(float(start) * (1 + more)), 2 * more
    return scale


def _event_maker(family: Family, shift: Fraction, dimension: int) -> Callable[[Fraction], Event]:
    if family == "laplace":
        return lambda scale: events.LaplaceEvent(scale / shift)
    if family == "gaussian":
        return lambda scale: events.GaussianEvent(scale / shift)
    if family == "discrete gaussian":
        return lambda sigma: events.DiscreteGaussianEvent(sigma**2, shift**2, dimension)
    if family == "discrete laplace":
        if shift.denominator != 1:
            raise InvalidArgument(f"sensitivity must be whole for {family}, got {shift}.")
        moved = int(shift)
        return lambda scale: events.DiscreteLaplaceEvent(scale, moved)
    raise InvalidArgument(
        f"family must be laplace, gaussian, discrete laplace or discrete gaussian, got {family!r}."
    )


def truncation(target: Target, *, sensitivity: int) -> int:
    """A bound for truncated Laplace noise at (epsilon, delta): the continuous optimum, up."""
    # Theorem: support half-width `(D/eps) ln(1 + (e^eps - 1)/(2 delta))` is optimal on the line.
    # Source: Geng, Ding, Guo, Kumar 2020 (B49). The discrete law is certified, not quoted.
    # Needs: `0 < delta <= 1/2`.
    epsilon, delta = _pair(target)
    if not 0 < delta <= 0.5 or epsilon <= 0:
        raise InvalidArgument(
            f"target must have epsilon > 0 and delta in (0, 1/2], got {epsilon} and {delta}."
        )
    # The exponential of a large epsilon overflows; from 600 on the logarithm is linear.
    log = math.log1p(math.expm1(min(epsilon, 600.0)) / (2 * delta)) + max(0.0, epsilon - 600)
    width = sensitivity / epsilon * log
    return max(sensitivity, math.ceil(width) + 1)


def _pair(target: Target) -> tuple[float, float]:
    if isinstance(target, tuple):
        return (
            float(check.non_negative("epsilon", target[0])),
            float(check.probability("delta", target[1], one=False)),
        )
    match target.event:
        case events.PureEvent(epsilon):
            return float(epsilon), 0.0
        case events.ApproxEvent(epsilon, delta):
            return float(epsilon), float(delta)
        case _:
            raise Unsupported("The target must be a pair (epsilon, delta) for this family.")


def _certificate(target: Target) -> Callable[[Event], bool]:
    """Whether an event meets the target, in the language of the target."""
    if not isinstance(target, tuple):
        match target.event:
            case events.ZcdpEvent(rho, xi) if xi == 0:
                return lambda event: rho_of(event) <= rho
            case events.GdpEvent(mu):
                return lambda event: _gaussian_mu(event) <= mu
    epsilon, delta = _pair(target)
    exact = check.finite("epsilon", epsilon)

    def meets(event: Event) -> bool:
        total, failure = composition.basic(event)
        if total is not None and total <= exact and float(failure) <= delta:
            return True
        return delta > 0 and composition.delta(event, epsilon=epsilon).value <= delta

    return meets


def _gaussian_mu(event: Event) -> Fraction:
    """The GDP of Gaussian events; others have none that is proved here."""
    total = Fraction(0)
    for leaf, count in leaves(event):
        if not isinstance(leaf, events.GdpEvent):
            raise Unsupported("Only Gaussian noise can be calibrated to a GDP target.")
        total += count * leaf.mu**2
    return Fraction(math.sqrt(round_up(total)) * conversion.UP)


def _closed_form(family: Family, shift: Fraction, uses: int, target: Target) -> Fraction | None:
    """Pure targets of Laplace noise and concentrated targets of discrete Gaussians are exact."""
    if family in ("laplace", "discrete laplace"):
        try:
            epsilon, delta = _pair(target)
        except Unsupported:
            return None
        if delta == 0:
            if epsilon == 0:
                raise InvalidArgument("epsilon must be positive, got 0.")
            return shift * uses / check.finite("epsilon", epsilon)
    return None


def _bisect(
    certified: Callable[[Fraction], bool], *, start: Fraction, precision: float = _PRECISION
) -> Fraction:
    """The smallest certified scale, to a relative precision."""
    high = float(start)
    for _ in range(400):
        if certified(_short(high)):
            break
        high *= 2
    else:
        raise Unsupported("No scale meets the target.")
    low = high / 2
    while low > 1e-12 * float(start) and certified(_short(low)):
        low, high = low / 2, low
    while high - low > precision * high:
        middle = (low + high) / 2
        if certified(_short(middle)):
            high = middle
        else:
            low = middle
    return _short(high)


def _short(scale: float) -> Fraction:
    """A rational just above ``scale``, within a relative 2^-40, with a power of two below."""
    digits = 40 - math.floor(math.log2(scale))
    unit = Fraction(2) ** digits
    return Fraction(math.ceil(Fraction(scale) * unit)) / unit
