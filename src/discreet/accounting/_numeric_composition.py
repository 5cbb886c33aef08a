"""Numerical composition of an event: its grid, its dominating pairs, and what they compose to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy

from discreet.accounting import conversion, pld, shuffle
from discreet.accounting import dominating_pairs as pairs
from discreet.accounting import pld as cells
from discreet.accounting._event_tree import Side, reduce_event, sampling_rate, simple_pair
from discreet.accounting.conversion import Floats
from discreet.accounting.dominating_pairs import (
    AddPair,
    AtomPair,
    DominatingPair,
    GaussianPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
    WithoutReplacementPair,
)
from discreet.accounting.pld import atoms_of
from discreet.core._rational import round_up
from discreet.core.errors import Unsupported
from discreet.core.events import (
    BoundedRangeEvent,
    EitherEvent,
    Event,
    GroupEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ShuffledEvent,
    ShuffledTwoLevelEvent,
)

# ── The grid ─────────────────────────────────────────────────────────────────────────────────────
# The grid of a numerical composition: its tilt, its step, and the composition itself.
#
# The choice only affects tightness; every tilt and every step give valid bounds.


Parts = list[tuple[DominatingPair, int]]

# The largest loss that is worth following; beyond it numerical composition abstains.
LARGEST_LOSS = 400.0
# Steps per standard deviation of one use; the grid adds 1e-4 at most to the variance (T4).
_FINENESS = 64.0
# Points of the grid across the widest part.
_MOST_POINTS = 1 << 16
# Compositions for a whole curve; each is sharp near its own epsilon and valid everywhere.
_ANCHORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSketch:
    """A few atoms per part: enough to choose the tilt and the step."""

    losses: Floats
    logs: Floats
    starts: np.ndarray[tuple[int], np.dtype[np.intp]]
    counts: Floats

    def moments(self, tilt: float) -> tuple[float, Floats]:
        """Cumulant generating function of the total loss; tilted variance of each part."""
        raw = self.logs + tilt * self.losses
        top = np.maximum.reduceat(raw, self.starts)
        sizes = np.diff(np.append(self.starts, raw.size))
        weight = np.exp(raw - np.repeat(top, sizes))
        total = np.add.reduceat(weight, self.starts)
        mean = np.add.reduceat(weight * self.losses, self.starts) / total
        square = np.add.reduceat(weight * self.losses**2, self.starts) / total
        cumulant = float(self.counts @ (top + np.log(total)))
        return cumulant, np.maximum(square - mean**2, 0.0)


def sketch(parts: Parts, tail: float) -> LossSketch:
    """Sketch each part; losses that are too large to follow raise OverflowError."""
    losses, logs, starts, at = [], [], [], 0
    for pair, _ in parts:
        atoms = cells.atoms_of(pair)
        if atoms is None:
            nodes = pair.spread(tail, count=80)
            p, q, *_ = cells.cells(pair, np.append(nodes[0] - 1e-9, nodes))
            good = (p > 0) & (q > 0)
            mass, loss = p[good], np.log(p[good] / q[good])
        else:
            good = atoms.masses > tail
            mass, loss = atoms.masses[good], atoms.losses[good]
        if mass.size == 0 or not np.isfinite(loss).all() or np.abs(loss).max() > LARGEST_LOSS:
            raise OverflowError
        losses.append(loss)
        logs.append(np.log(mass))
        starts.append(at)
        at += mass.size
    return LossSketch(
        losses=np.concatenate(losses),
        logs=np.concatenate(logs),
        starts=np.asarray(starts, dtype=np.intp),
        counts=np.asarray([count for _, count in parts], dtype=np.float64),
    )


def tilt_for_delta(drawn: LossSketch, delta: float) -> float:
    """The tilt that gives the best Chernoff bound of epsilon at delta."""

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        cks = tilt * math.log1p(-1 / (1 + tilt)) - math.log1p(tilt)
        return (drawn.moments(tilt)[0] - math.log(delta) + cks) / tilt

    limit = math.log(500 / max(float(np.abs(drawn.losses).max()), 1e-3))
    best = scipy.optimize.minimize_scalar(
        bound, bounds=(-6.0, limit), method="bounded", options={"xatol": 0.02}
    )
    return math.exp(float(best.x))


def tilt_for_epsilon(drawn: LossSketch, epsilon: float) -> tuple[float, float]:
    """The tilt that gives the best Chernoff bound at epsilon, and that bound of log delta."""

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        cks = tilt * math.log1p(-1 / (1 + tilt)) - math.log1p(tilt)
        return drawn.moments(tilt)[0] - tilt * epsilon + cks

    limit = math.log(500 / max(float(np.abs(drawn.losses).max()), 1e-3))
    best = scipy.optimize.minimize_scalar(
        bound, bounds=(-6.0, limit), method="bounded", options={"xatol": 0.02}
    )
    return math.exp(float(best.x)), float(best.fun)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossGrid:
    """How to compose: the tilt, the step, the mass to cut from each tail of each part."""

    tilt: float
    step: float
    tail: float
    steps: tuple[float, ...]
    """The step of each part on the lower side: the common one divided by a power of two."""


def choose_grid(parts: Parts, drawn: LossSketch, *, tilt: float, tail: float) -> LossGrid:
    """Steps fine enough for the spread of one use; one evenly spaced part is aligned with it."""
    variances = drawn.moments(tilt)[1]
    uses = float(drawn.counts.sum())
    spreads = (pair.spread(tail, count=3) for pair, _ in parts)
    widest = max(float(spread[-1] - spread[0]) for spread in spreads)
    step = math.sqrt(float(drawn.counts @ variances) / uses) / _FINENESS
    floor = max(widest / _MOST_POINTS, 1e-12)
    step = max(step, floor)
    pitch = _pitch(parts)
    if pitch is not None and pitch >= step:
        step = pitch / (2 * math.ceil(pitch / step / 2))
        return LossGrid(tilt=tilt, step=step, tail=tail, steps=(step,))
    steps = []
    for (pair, _), variance in zip(parts, variances, strict=True):
        wanted = math.sqrt(variance) / _lower_fineness(pair)
        wanted = max(wanted, floor)
        steps.append(step / 2.0 ** min(max(0, math.ceil(math.log2(step / wanted))), 8))
    return LossGrid(tilt=tilt, step=step, tail=tail, steps=tuple(steps))


def compose_on_grid(parts: Parts, *, side: Side, grid: LossGrid) -> pld.ComposedLoss:
    """Compose the parts; on the lower side each has a grid of its own fineness."""
    step, tilt, tail = grid.step, grid.tilt, grid.tail
    made = []
    for (pair, count), finer in zip(parts, grid.steps, strict=True):
        own, cut = (step, cells.upper_masses) if side == "upper" else (finer, cells.lower_masses)
        masses = cut(pair, step=own, tail=tail)
        made.append(pld.power(pld.tilt_masses(masses, step=own, tilt=tilt), count))
    return pld.compose(made)


def _pitch(parts: Parts) -> float | None:
    """The spacing of the losses, if there is one part and its losses are evenly spaced."""
    if len(parts) != 1:
        return None
    pair = parts[0][0]
    if isinstance(pair, LaplacePair):
        return 2 * pair.epsilon
    atoms = cells.atoms_of(pair)
    if atoms is None or atoms.losses.size < 2:
        return None
    gaps = np.diff(atoms.losses)
    even = float(gaps.max() - gaps.min()) <= 1e-9 * float(gaps.max())
    return float(atoms.losses[-1] - atoms.losses[0]) / gaps.size if even else None


def _lower_fineness(pair: DominatingPair) -> float:
    """Steps per standard deviation on the lower side; atoms cannot be centered in their cells."""
    if isinstance(pair, (LaplacePair, LatticeLaplacePair)):
        return 100.0
    return 200.0 if cells.atoms_of(pair) is not None else 12.0


def as_atoms(parts: Parts) -> AtomPair:
    """A composition as one pair with atoms on a grid (an upper bound), not tilted."""
    drawn = sketch(parts, 1e-17)
    grid = choose_grid(parts, drawn, tilt=0.0, tail=1e-17)
    total = compose_on_grid(parts, side="upper", grid=grid)
    losses = total.losses() + 2 * cells.SNAP * total.step * total.count
    return AtomPair(
        losses, total.weights * math.exp(total.log_scale), min(1.0, total.infinity + total.lost)
    )


# ── Dominating pairs of a leaf ───────────────────────────────────────────────────────────────────
# The dominating pairs of a leaf in both directions, also where only a curve is known.
#
# A curve (zCDP, a group on a sample, the worst of several) becomes a pair by its convex hull: the
# true profile is convex in ``e^eps`` and lies below the curve, hence below the hull at the dots
# and below the chords between them; the chords are the profile of a pair with atoms at the dots.


Both = tuple[DominatingPair, DominatingPair, float]
"""The pairs for removal and for addition, and the slack of the laws behind them."""


def part_pairs(
    parts: tuple[tuple[Event, int], ...], mu_squared: float, *, side: Side
) -> tuple[list[tuple[DominatingPair, int]], list[tuple[DominatingPair, int]], float]:
    """All pairs with counts, for removal and for addition, and the total slack."""
    removal: list[tuple[DominatingPair, int]] = []
    addition: list[tuple[DominatingPair, int]] = []
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
        case BoundedRangeEvent(epsilon) if side == "lower":
            return leaf_pairs(PureEvent(epsilon / 2), side)  # t = eps/2 of the family
        case EitherEvent(branches):
            if side == "lower":
                # Any branch may be the one: the best to show is the most telling at epsilon 0.
                return max((event_pairs(branch, side) for branch in branches), key=_at_zero)
            pair = _worst(branches)
            return pair, pair, 0.0
        case GroupEvent(
            size,
            (
                SampledEvent()
                | SampledWithoutReplacementEvent()
                | ShuffledEvent()
                | ShuffledTwoLevelEvent()
            ) as inner,
        ):
            if side == "lower":
                return event_pairs(inner, side)
            pair = _grouped(inner, size)
            return pair, pair, 0.0
        case ShuffledEvent() | ShuffledTwoLevelEvent():
            # Nothing is said from below: what a mechanism with this event attains is not known.
            pair = _shuffled(leaf) if side == "upper" else _NOTHING
            return pair, pair, 0.0
        case SampledEvent(rate, inner):
            remove, add, slack = event_pairs(inner, side)
            share = round_up(rate)
            return RemovePair(share, remove), AddPair(share, add), slack
        case SampledWithoutReplacementEvent(_, _, inner):
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
                raise Unsupported(
                    f"{type(leaf).__name__.removesuffix('Event')} has no numerical pair."
                )
            return simple, simple, 0.0


@lru_cache(maxsize=1024)
def event_pairs(event: Event, side: Side) -> Both:
    """The pairs of a whole event: its only part, or the composition set on a grid."""
    rest = reduce_event(event, side)
    found = part_pairs(rest.parts, rest.mu_squared, side=side)
    removal, addition, slack = found[0], found[1], found[2] + rest.slack
    if rest.rho or rest.xi:
        if side == "lower":
            mu = math.sqrt(rest.mu_squared + 2 * float(rest.rho))
            return GaussianPair(mu), GaussianPair(mu), slack
        hull = zcdp_pair(rest.rho, rest.xi)
        removal, addition = [*removal, (hull, 1)], [*addition, (hull, 1)]
    if not removal:
        return _NOTHING, _NOTHING, slack
    if len(removal) == 1 and removal[0][1] == 1:
        return removal[0][0], addition[0][0], slack
    if side == "lower":
        return removal[0][0], addition[0][0], slack  # a part of the whole
    remove = as_atoms(removal)
    return remove, (remove if removal == addition else as_atoms(addition)), slack


_NOTHING = AtomPair(np.zeros(1), np.ones(1))


@lru_cache(maxsize=256)
def zcdp_pair(rho: Fraction, xi: Fraction) -> AtomPair:
    """The hull of what (xi, rho)-zCDP allows (CKS)."""
    r, x = float(rho) * conversion.UP, float(xi) * conversion.UP
    top = conversion.zcdp_epsilon(r, delta=1e-40, xi=x)
    return curve(lambda e: conversion.zcdp_delta(e, rho=r, xi=x), top)


Profile = Callable[[Floats], Floats]


def leaf_delta(leaf: Event, epsilon: Floats) -> Floats:
    """The profile of one leaf at each epsilon >= 0, the worse of both directions."""
    match leaf:
        case EitherEvent(branches):
            return _worst_profile(branches)(epsilon)
        case GroupEvent(size, (SampledEvent() | SampledWithoutReplacementEvent()) as inner):
            return _grouped_profile(_both(event_pairs(inner, "upper")), size)(epsilon)
        case GroupEvent(size, (ShuffledEvent() | ShuffledTwoLevelEvent()) as inner):
            return _grouped_profile(_shuffled_profile(inner), size)(epsilon)
        case ShuffledEvent() | ShuffledTwoLevelEvent():
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


def _worst(branches: tuple[Event, ...]) -> DominatingPair:
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


def _grouped(inner: Event, size: int) -> DominatingPair:
    found = event_pairs(inner, "upper")
    top = size * float(found[0].spread(1e-30, count=50)[-1])
    atoms = atoms_of(found[0])
    kinks = None if atoms is None or atoms.losses.size > 3000 else size * atoms.losses
    return curve(_grouped_profile(_both(found), size), top, kinks=kinks)


def _shuffled_profile(event: ShuffledEvent | ShuffledTwoLevelEvent) -> Profile:
    local = round_up(event.epsilon)
    parts = event.parts if isinstance(event, ShuffledTwoLevelEvent) else ()
    return lambda epsilon: shuffle.shuffled_delta(
        epsilon, local=local, reports=event.reports, parts=parts
    )


def _shuffled(event: ShuffledEvent | ShuffledTwoLevelEvent) -> AtomPair:
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


def curve(
    profile: Profile, top: float, *, kinks: Floats | None = None, count: int = 1200
) -> AtomPair:
    """A pair whose profile is at least the given one at every epsilon >= 0 and its mirror image."""
    # Theorem: see the head of this module; the mirror is HS_{-e}(P|Q) = 1 - e^-e (1 - HS_e(Q|P)).
    # Needs: `profile` bounds the profile of both orders.
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
    return AtomPair(losses[used], mass[used], float(y[-1]))


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


# ── Composition ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionProblem:
    """The parts of an event: those alike in both directions, and the others in each."""

    alike: Parts
    removal: Parts
    addition: Parts
    slack: float

    @property
    def uses(self) -> int:
        return sum(count for _, count in self.alike + self.removal)


@lru_cache(maxsize=64)
def composition_problem(event: Event, side: Side) -> CompositionProblem:
    """Reduce an event and look up the pairs of its parts."""
    rest = reduce_event(event, side)
    mu_squared = rest.mu_squared
    if side == "lower":
        mu_squared += 2 * float(rest.rho)  # a Gaussian has exactly this zCDP
    removal, addition, slack = part_pairs(rest.parts, mu_squared, side=side)
    if side == "upper" and (rest.rho or rest.xi):
        hull = zcdp_pair(rest.rho, rest.xi)
        removal, addition = [*removal, (hull, 1)], [*addition, (hull, 1)]
    both = list(zip(removal, addition, strict=True))
    return CompositionProblem(
        alike=[a for a, b in both if a[0] is b[0]],
        removal=[a for a, b in both if a[0] is not b[0]],
        addition=[b for a, b in both if a[0] is not b[0]],
        slack=slack + rest.slack,
    )


@lru_cache(maxsize=128)
def _profiles(event: Event, side: Side, grid: LossGrid) -> tuple[pld.PrivacyProfile, ...]:
    """The composed profile of each direction (one where they agree)."""
    found = composition_problem(event, side)
    cut = len(found.alike)
    shared = replace(grid, steps=grid.steps[:cut])
    own = replace(grid, steps=grid.steps[cut:])
    common = [compose_on_grid(found.alike, side=side, grid=shared)] if found.alike else []
    if not found.removal:
        return (pld.profile(common[0], side=side),)
    # One direction is enough for a lower bound, and removal is where a sample leaks most.
    directions = (found.removal, found.addition) if side == "upper" else (found.removal,)
    totals = [
        pld.compose([*common, compose_on_grid(parts, side=side, grid=own)]) for parts in directions
    ]
    return tuple(pld.profile(total, side=side) for total in totals)


def epsilon(event: Event, *, delta: float, side: Side) -> float:
    """Epsilon at ``delta`` by numerical composition: an upper or a lower bound."""
    hopeless = math.inf if side == "upper" else 0.0
    if delta <= 0:
        return hopeless
    try:
        found = composition_problem(event, side)
        parts = found.alike + found.removal
        if not parts:
            return 0.0
        tail = max(delta * 1e-5 / found.uses, 1e-290)
        drawn = sketch(parts, tail)
        grid = choose_grid(parts, drawn, tilt=tilt_for_delta(drawn, delta), tail=tail)
        # T2 and T3: the laws are within e^{+-slack} of those composed.
        target = delta * math.exp(-found.slack if side == "upper" else found.slack)
        worst = max(profile.epsilon(target) for profile in _profiles(event, side, grid))
    except (OverflowError, Unsupported):
        return hopeless
    shift = 2 * found.slack
    return worst + shift if side == "upper" else max(0.0, worst - shift)


def delta(event: Event, *, epsilon: float, side: Side) -> float:
    """Delta at ``epsilon`` by numerical composition: an upper or a lower bound."""
    try:
        found = composition_problem(event, side)
        parts = found.alike + found.removal
        if not parts:
            return 0.0
        tilt, guess = tilt_for_epsilon(sketch(parts, 1e-20), epsilon)
        tail = max(math.exp(max(guess, -600.0)) * 1e-8 / found.uses, 1e-290)
        drawn = sketch(parts, tail)
        tilt, _ = tilt_for_epsilon(drawn, epsilon)
        grid = choose_grid(parts, drawn, tilt=tilt, tail=tail)
        shift = 2 * found.slack
        at = epsilon - shift if side == "upper" else epsilon + shift
        worst = max(profile.delta(at) for profile in _profiles(event, side, grid))
    except (OverflowError, Unsupported):
        return 1.0 if side == "upper" else 0.0
    return min(1.0, worst * math.exp(found.slack if side == "upper" else -found.slack))


def profile(event: Event, epsilons: Floats) -> Floats:
    """Upper bounds of delta at many epsilons, each the best of a few compositions."""
    best = np.ones(epsilons.size)
    try:
        found = composition_problem(event, "upper")
        parts = found.alike + found.removal
        if not parts:
            return np.zeros(epsilons.size)
        first = sketch(parts, 1e-20)
        for epsilon in epsilons[np.linspace(0, epsilons.size - 1, _ANCHORS).astype(np.int64)]:
            _, guess = tilt_for_epsilon(first, float(epsilon))
            tail = max(math.exp(max(guess, -600.0)) * 1e-8 / found.uses, 1e-290)
            drawn = sketch(parts, tail)
            tilt, _ = tilt_for_epsilon(drawn, float(epsilon))
            grid = choose_grid(parts, drawn, tilt=tilt, tail=tail)
            made = [
                one.deltas(epsilons - 2 * found.slack) for one in _profiles(event, "upper", grid)
            ]
            best = np.minimum(best, np.max(made, axis=0) * math.exp(found.slack))
    except (OverflowError, Unsupported):
        pass
    return best
