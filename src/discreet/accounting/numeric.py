"""Numerical composition of an event: the questions, asked of composed privacy losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from discreet.accounting import pld
from discreet.accounting.dominating import concentrated, part_pairs
from discreet.accounting.grid import (
    Grid,
    Parts,
    choose,
    composed,
    sketch,
    tilt_for_delta,
    tilt_for_epsilon,
)
from discreet.accounting.leaves import Side, reduced
from discreet.core.errors import Unsupported
from discreet.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The parts of an event: those alike in both directions, and the others in each."""

    alike: Parts
    removal: Parts
    addition: Parts
    slack: float

    @property
    def uses(self) -> int:
        return sum(count for _, count in self.alike + self.removal)


@lru_cache(maxsize=64)
def problem(event: Event, side: Side) -> Problem:
    """Reduce an event and look up the pairs of its parts."""
    rest = reduced(event, side)
    mu_squared = rest.mu_squared
    if side == "lower":
        mu_squared += 2 * float(rest.rho)  # a Gaussian has exactly this zCDP
    removal, addition, slack = part_pairs(rest.parts, mu_squared, side=side)
    if side == "upper" and (rest.rho or rest.xi):
        hull = concentrated(rest.rho, rest.xi)
        removal, addition = [*removal, (hull, 1)], [*addition, (hull, 1)]
    both = list(zip(removal, addition, strict=True))
    return Problem(
        alike=[a for a, b in both if a[0] is b[0]],
        removal=[a for a, b in both if a[0] is not b[0]],
        addition=[b for a, b in both if a[0] is not b[0]],
        slack=slack + rest.slack,
    )


@lru_cache(maxsize=128)
def _profiles(event: Event, side: Side, grid: Grid) -> tuple[pld.Profile, ...]:
    """The composed profile of each direction (one where they agree)."""
    found = problem(event, side)
    cut = len(found.alike)
    shared = replace(grid, steps=grid.steps[:cut])
    own = replace(grid, steps=grid.steps[cut:])
    common = [composed(found.alike, side=side, grid=shared)] if found.alike else []
    if not found.removal:
        return (pld.profile(common[0], side=side),)
    # One direction is enough for a lower bound, and removal is where a sample leaks most.
    directions = (found.removal, found.addition) if side == "upper" else (found.removal,)
    totals = [pld.compose([*common, composed(parts, side=side, grid=own)]) for parts in directions]
    return tuple(pld.profile(total, side=side) for total in totals)


def epsilon(event: Event, *, delta: float, side: Side) -> float:
    """Epsilon at ``delta`` by numerical composition: an upper or a lower bound."""
    hopeless = math.inf if side == "upper" else 0.0
    if delta <= 0:
        return hopeless
    try:
        found = problem(event, side)
        parts = found.alike + found.removal
        if not parts:
            return 0.0
        tail = max(delta * 1e-5 / found.uses, 1e-290)
        drawn = sketch(parts, tail)
        grid = choose(parts, drawn, tilt=tilt_for_delta(drawn, delta), tail=tail)
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
        found = problem(event, side)
        parts = found.alike + found.removal
        if not parts:
            return 0.0
        tilt, guess = tilt_for_epsilon(sketch(parts, 1e-20), epsilon)
        tail = max(math.exp(max(guess, -600.0)) * 1e-8 / found.uses, 1e-290)
        drawn = sketch(parts, tail)
        tilt, _ = tilt_for_epsilon(drawn, epsilon)
        grid = choose(parts, drawn, tilt=tilt, tail=tail)
        shift = 2 * found.slack
        at = epsilon - shift if side == "upper" else epsilon + shift
        worst = max(profile.delta(at) for profile in _profiles(event, side, grid))
    except (OverflowError, Unsupported):
        return 1.0 if side == "upper" else 0.0
    return min(1.0, worst * math.exp(found.slack if side == "upper" else -found.slack))
