"""The dominating pairs of a leaf in both directions, also where only a curve is known.

A curve (zCDP, a group on a sample, the worst of several) becomes a pair by its convex hull: the
true profile is convex in ``e^eps`` and lies below the curve, hence below the hull at the dots and
below the chords between them; the chords are the profile of a pair with atoms at the dots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.accounting import conversion, pairs, shuffle
from discreet.accounting.cells import atoms_of
from discreet.accounting.conversion import Floats
from discreet.accounting.grid import LARGEST_LOSS, as_atoms
from discreet.accounting.leaves import Side, reduced, sampling_rate, simple_pair
from discreet.accounting.pairs import (
    AddPair,
    Atoms,
    GaussianPair,
    Pair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.core.errors import Unsupported
from discreet.core.events import (
    BoundedRange,
    Either,
    Event,
    Group,
    Pure,
    Sampled,
    SampledWithoutReplacement,
    Shuffled,
    ShuffledTwoLevel,
)
from discreet.core.exact import round_up

Both = tuple[Pair, Pair, float]
"""The pairs for removal and for addition, and the slack of the laws behind them."""


def part_pairs(
    parts: tuple[tuple[Event, int], ...], mu_squared: float, *, side: Side
) -> tuple[list[tuple[Pair, int]], list[tuple[Pair, int]], float]:
    """All pairs with counts, for removal and for addition, and the total slack."""
    removal: list[tuple[Pair, int]] = []
    addition: list[tuple[Pair, int]] = []
    slack = 0.0
    for leaf, count in parts:
        remove, add, loose = leaf_pairs(leaf, side)
        removal.append((remove, count))
        addition.append((add, count))
        slack += count * loose
    if mu_squared > 0:
        gaussian = GaussianPair(math.sqrt(mu_squared))
        removal.append((gaussian, 1))
        addition.append((gaussian, 1))
    return removal, addition, slack


@lru_cache(maxsize=4096)
def leaf_pairs(leaf: Event, side: Side) -> Both:
    """The pairs of one leaf; for the lower side, pairs that some such mechanism attains."""
    match leaf:
        case BoundedRange(epsilon) if side == "lower":
            return leaf_pairs(Pure(epsilon / 2), side)  # t = eps/2 of the family
        case Either(branches):
            if side == "lower":
                # Any branch may be the one: the best to show is the most telling at epsilon 0.
                return max((event_pairs(branch, side) for branch in branches), key=_at_zero)
            pair = _worst(branches)
            return pair, pair, 0.0
        case Group(
            size,
            (Sampled() | SampledWithoutReplacement() | Shuffled() | ShuffledTwoLevel()) as inner,
        ):
            if side == "lower":
                return event_pairs(inner, side)
            pair = _grouped(inner, size)
            return pair, pair, 0.0
        case Shuffled() | ShuffledTwoLevel():
            # Nothing is said from below: what a mechanism with this event attains is not known.
            pair = _shuffled(leaf) if side == "upper" else _NOTHING
            return pair, pair, 0.0
        case Sampled(rate, inner):
            remove, add, slack = event_pairs(inner, side)
            share = round_up(rate)
            return RemovePair(share, remove), AddPair(share, add), slack
        case SampledWithoutReplacement(_, _, inner):
            pair, _, slack = event_pairs(inner, side)
            share = round_up(sampling_rate(leaf))
            if side == "lower":
                # A record that is not drawn may look like the second one: attained.
                return RemovePair(share, pair), RemovePair(share, pair), slack
            drawn = WithoutReplacementPair(share, pair)
            return drawn, drawn, slack
        case _:
            simple = simple_pair(leaf)
            if simple is None:
                raise Unsupported(f"{type(leaf).__name__} has no numerical pair.")
            return simple, simple, 0.0


@lru_cache(maxsize=1024)
def event_pairs(event: Event, side: Side) -> Both:
    """The pairs of a whole event: its only part, or the composition set on a grid."""
    rest = reduced(event, side)
    found = part_pairs(rest.parts, rest.mu_squared, side=side)
    removal, addition, slack = found[0], found[1], found[2] + rest.slack
    if rest.rho or rest.xi:
        if side == "lower":
            mu = math.sqrt(rest.mu_squared + 2 * float(rest.rho))
            return GaussianPair(mu), GaussianPair(mu), slack
        hull = concentrated(rest.rho, rest.xi)
        removal, addition = [*removal, (hull, 1)], [*addition, (hull, 1)]
    if not removal:
        return _NOTHING, _NOTHING, slack
    if len(removal) == 1 and removal[0][1] == 1:
        return removal[0][0], addition[0][0], slack
    if side == "lower":
        return removal[0][0], addition[0][0], slack  # a part of the whole
    remove = as_atoms(removal)
    return remove, (remove if removal == addition else as_atoms(addition)), slack


_NOTHING = Atoms(np.zeros(1), np.ones(1))


@lru_cache(maxsize=256)
def concentrated(rho: Fraction, xi: Fraction) -> Atoms:
    """The hull of what (xi, rho)-zCDP allows (CKS)."""
    r, x = float(rho) * conversion.UP, float(xi) * conversion.UP
    top = conversion.zcdp_epsilon(r, delta=1e-40, xi=x)
    return curve(lambda e: conversion.zcdp_delta(e, rho=r, xi=x), top)


Profile = Callable[[Floats], Floats]


def leaf_delta(leaf: Event, epsilon: Floats) -> Floats:
    """The profile of one leaf at each epsilon >= 0, the worse of both directions."""
    match leaf:
        case Either(branches):
            return _worst_profile(branches)(epsilon)
        case Group(size, (Sampled() | SampledWithoutReplacement()) as inner):
            return _grouped_profile(_both(event_pairs(inner, "upper")), size)(epsilon)
        case Group(size, (Shuffled() | ShuffledTwoLevel()) as inner):
            return _grouped_profile(_shuffled_profile(inner), size)(epsilon)
        case Shuffled() | ShuffledTwoLevel():
            return _shuffled_profile(leaf)(epsilon)
        case _:
            return _both(leaf_pairs(leaf, "upper"))(epsilon)


def _both(found: Both) -> Profile:
    remove, add, slack = found

    def profile(epsilon: Floats) -> Floats:
        inside = pairs.delta(remove, epsilon - 2 * slack)
        if add is not remove:
            inside = np.maximum(inside, pairs.delta(add, epsilon - 2 * slack))
        return np.minimum(math.exp(slack) * inside, 1.0)

    return profile


def _at_zero(found: Both) -> float:
    return float(_both(found)(np.zeros(1))[0])


def _worst_profile(branches: tuple[Event, ...]) -> Profile:
    """The pointwise worst of several profiles; the maximum of convex curves is convex."""
    profiles = [_both(event_pairs(branch, "upper")) for branch in branches]

    def profile(epsilon: Floats) -> Floats:
        worst = profiles[0](epsilon)
        for other in profiles[1:]:
            worst = np.maximum(worst, other(epsilon))
        return worst

    return profile


def _worst(branches: tuple[Event, ...]) -> Pair:
    found = [pair for branch in branches for pair in event_pairs(branch, "upper")[:2]]
    top = max(float(pair.spread(1e-30, count=50)[-1]) for pair in found)
    listed = [atoms.losses for pair in found if (atoms := atoms_of(pair)) is not None]
    kinks = np.unique(np.concatenate([np.zeros(1), *listed]))
    return curve(_worst_profile(branches), top, kinks=kinks[:: max(1, kinks.size // 3000)])


def _grouped_profile(one_step: Profile, size: int) -> Profile:
    """A group on a sample: ``delta_k(eps) = delta(eps/k) expm1(eps)/expm1(eps/k)`` (B24)."""

    def profile(epsilon: Floats) -> Floats:
        one = np.maximum(epsilon / size, 1e-12)  # the growth tends to k at zero, from above
        inside = one_step(epsilon / size)
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.expm1(size * one) / np.expm1(one)
            return np.minimum(np.where(inside > 0, inside * growth, 0.0), 1.0)

    return profile


def _grouped(inner: Event, size: int) -> Pair:
    found = event_pairs(inner, "upper")
    top = size * float(found[0].spread(1e-30, count=50)[-1])
    atoms = atoms_of(found[0])
    kinks = None if atoms is None or atoms.losses.size > 3000 else size * atoms.losses
    return curve(_grouped_profile(_both(found), size), top, kinks=kinks)


def _shuffled_profile(event: Shuffled | ShuffledTwoLevel) -> Profile:
    local = round_up(event.epsilon)
    parts = event.parts if isinstance(event, ShuffledTwoLevel) else ()
    return lambda epsilon: shuffle.shuffled_delta(
        epsilon, local=local, reports=event.reports, parts=parts
    )


def _shuffled(event: Shuffled | ShuffledTwoLevel) -> Atoms:
    """The hull of the profile; its dots lie where delta is not yet negligible."""
    profile = _shuffled_profile(event)
    end = round_up(event.epsilon)
    near, far = (_falls_to(profile, level, end) for level in (1e-25, 1e-95))
    dots = (np.linspace(0.0, near, 220), np.linspace(near, far, 60), np.linspace(far, end, 8))
    return curve(profile, end, kinks=np.concatenate(dots), count=2)


def _falls_to(profile: Profile, level: float, end: float) -> float:
    """About where a profile falls to a level."""
    low, high = 0.0, end
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float(profile(np.asarray(middle))) > level else (low, middle)
    return high


def curve(profile: Profile, top: float, *, kinks: Floats | None = None, count: int = 1200) -> Atoms:
    """A pair whose profile is at least the given one at every epsilon >= 0 and its mirror image.

    Theorem: see the head of this module; the mirror is HS_{-e}(P|Q) = 1 - e^-e (1 - HS_e(Q|P)).
    Needs: ``profile`` bounds the profile of both orders.
    """
    top = min(max(top, 1e-6), LARGEST_LOSS)
    right = np.linspace(0.0, top, count)
    if kinks is not None:
        right = np.unique(np.concatenate([right, kinks[(kinks > 0) & (kinks < top)]]))
    dots = np.minimum(profile(right) * (1 + 1e-12), 1.0)
    left = -right[:0:-1]
    mirrored = -np.expm1(left) + np.exp(left) * dots[:0:-1]
    x = np.concatenate([[0.0], np.exp(left), np.exp(right)])
    y = np.concatenate([[1.0], np.minimum(mirrored * (1 + 1e-15), 1.0), dots])
    keep = _hull(x, y)
    x, y = x[keep], y[keep]
    slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    q = np.maximum(np.diff(slopes), 0.0)
    losses = np.log(x[1:])
    mass = q * x[1:] * (1 + 1e-9)
    used = mass > 0
    return Atoms(losses[used], mass[used], float(y[-1]))


def _hull(x: Floats, y: Floats) -> list[int]:
    """Indices of the lower convex hull (monotone chain)."""
    chain: list[int] = []
    for i in range(x.size):
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            chain.pop()
        chain.append(i)
    return chain
