"""The grid of a numerical composition: its tilt, its step, and the composition itself.

The choice only affects tightness; every tilt and every step give valid bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from discreet.accounting import cells, pld
from discreet.accounting.conversion import Floats
from discreet.accounting.leaves import Side
from discreet.accounting.pairs import Atoms, LaplacePair, LatticeLaplacePair, Pair

Parts = list[tuple[Pair, int]]

# The largest loss that is worth following; beyond it numerical composition abstains.
LARGEST_LOSS = 400.0
# Steps per standard deviation of one use; the grid adds 1e-4 at most to the variance (T4).
_FINENESS = 64.0
# Points of the grid across the widest part.
_MOST_POINTS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
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


def sketch(parts: Parts, tail: float) -> Sketch:
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
    return Sketch(
        losses=np.concatenate(losses),
        logs=np.concatenate(logs),
        starts=np.asarray(starts, dtype=np.intp),
        counts=np.asarray([count for _, count in parts], dtype=np.float64),
    )


def tilt_for_delta(drawn: Sketch, delta: float) -> float:
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


def tilt_for_epsilon(drawn: Sketch, epsilon: float) -> tuple[float, float]:
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
class Grid:
    """How to compose: the tilt, the step, the mass to cut from each tail of each part."""

    tilt: float
    step: float
    tail: float
    steps: tuple[float, ...]
    """The step of each part on the lower side: the common one divided by a power of two."""


def choose(parts: Parts, drawn: Sketch, *, tilt: float, tail: float) -> Grid:
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
        return Grid(tilt=tilt, step=step, tail=tail, steps=(step,))
    steps = []
    for (pair, _), variance in zip(parts, variances, strict=True):
        wanted = math.sqrt(variance) / _lower_fineness(pair)
        wanted = max(wanted, floor)
        steps.append(step / 2.0 ** min(max(0, math.ceil(math.log2(step / wanted))), 8))
    return Grid(tilt=tilt, step=step, tail=tail, steps=tuple(steps))


def composed(parts: Parts, *, side: Side, grid: Grid) -> pld.Composed:
    """Compose the parts; on the lower side each has a grid of its own fineness."""
    step, tilt, tail = grid.step, grid.tilt, grid.tail
    made = []
    for (pair, count), finer in zip(parts, grid.steps, strict=True):
        own, cut = (step, cells.upper) if side == "upper" else (finer, cells.lower)
        masses = cut(pair, step=own, tail=tail)
        made.append(pld.power(pld.tilted(masses, step=own, tilt=tilt), count))
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


def _lower_fineness(pair: Pair) -> float:
    """Steps per standard deviation on the lower side; atoms cannot be centred in their cells."""
    if isinstance(pair, (LaplacePair, LatticeLaplacePair)):
        return 100.0
    return 200.0 if cells.atoms_of(pair) is not None else 12.0


def as_atoms(parts: Parts) -> Atoms:
    """A composition as one pair with atoms on a grid (an upper bound), not tilted."""
    drawn = sketch(parts, 1e-17)
    grid = choose(parts, drawn, tilt=0.0, tail=1e-17)
    total = composed(parts, side="upper", grid=grid)
    losses = total.losses() + 2 * cells.SNAP * total.step * total.count
    return Atoms(
        losses, total.weights * math.exp(total.log_scale), min(1.0, total.infinity + total.lost)
    )
