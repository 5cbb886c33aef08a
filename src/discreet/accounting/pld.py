"""Composition of privacy-loss distributions, with everything that is left out accounted for.

All masses are *tilted*: multiplied by ``e^{tilt * loss}`` and scaled to sum to one. The tilt moves
the bulk of the distribution to the epsilon that is asked for, so that rounding errors and
truncated tails, which are relative to the bulk, are relative to delta and not to one.

Whatever tilted mass is lost, wrapped around or mistaken adds to ``lost``; it can change
``delta(eps)`` by at most ``lost * e^{log_scale - tilt * eps}`` (T6).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from discreet.accounting.conversion import UNDERFLOW, Floats
from discreet.accounting.dominating_pairs import (
    ROUNDING,
    AddPair,
    AtomPair,
    DominatingPair,
    LaplacePair,
    LatticeLaplacePair,
    RemovePair,
)

# ── From a dominating pair to masses ─────────────────────────────────────────────────────────────
# From a dominating pair to masses on a grid of losses, on the safe side of either bound.
#
# *Upper* (connect the dots): the mass (p, q) of a cell goes to the two grid points at its ends so
# that both its P- and its Q-mass stay: between two dots the profile is replaced by its chord.
# *Lower* (merge and move down): a cell becomes one atom, which is post-processing, and its P-mass
# moves down to a grid point. Proofs: docs/theory/accounting.md, theorems T4 and T5.


# A loss this close to a grid point (in steps) counts as on it; the caller pays for the difference.
SNAP = 1e-7
_NODES = 700
_MOST_ATOMS = 4000
# Of a sample with more atoms the lower bound is better from cells.
_MOST_SAMPLED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMasses:
    """P-masses at the losses ``offset + step * index``, and at infinity."""

    index: NDArray[np.int64]
    mass: Floats
    infinity: float
    offset: float = 0.0


def atoms_of(pair: DominatingPair) -> AtomPair | None:
    """The atoms of a pair that has few enough of them to be listed."""
    if isinstance(pair, AtomPair):
        return pair
    if isinstance(pair, LatticeLaplacePair) and pair.shift < _MOST_ATOMS:
        losses = pair.decay * np.arange(-pair.shift, pair.shift + 1, 2, dtype=np.float64)
        between = np.concatenate([[-np.inf], (losses[1:] + losses[:-1]) / 2, [np.inf]])
        at = pair.tails(between)
        mass = np.where(
            at.p_above[:-1] < at.p_below[1:],
            at.p_above[:-1] - at.p_above[1:],
            at.p_below[1:] - at.p_below[:-1],
        )
        return AtomPair(losses, np.maximum(mass, 0.0), pair.infinity)
    if isinstance(pair, (RemovePair, AddPair)):
        inner = atoms_of(pair.inner)
        if inner is not None and inner.losses.size <= _MOST_SAMPLED:
            return _sampled(pair, inner)
    return None


def _sampled(pair: RemovePair | AddPair, inner: AtomPair) -> AtomPair:
    """The atoms of a sample: ``(1-q) Q + q P`` against Q, or ``P`` against ``(1-q) P + q Q``."""
    q, sign = pair.rate, 1.0 if isinstance(pair, RemovePair) else -1.0
    loss = sign * inner.losses
    with np.errstate(over="ignore"):
        moved = np.where(loss > 700, loss + math.log(q), np.log1p(q * np.expm1(loss)))
    end = sign * math.log1p(-q)
    if isinstance(pair, AddPair):  # outputs that Q never gives have the largest loss
        return AtomPair(np.append(-moved, end), np.append(inner.masses, inner.infinity))
    # Outputs that P never gives have the smallest.
    rest = max(0.0, 1.0 - float(inner.other.sum()))
    masses = (1 - q) * np.append(rest, inner.other) + q * np.append(0.0, inner.masses)
    return AtomPair(np.append(end, moved), masses, pair.infinity)


def _trimmed(atoms: AtomPair, tail: float) -> tuple[Floats, Floats, float, float]:
    """Losses and masses without both tails, and the tails' masses (low, high)."""
    below = np.cumsum(atoms.masses)
    above = np.cumsum(atoms.masses[::-1])[::-1]
    keep = (above > tail) & (below > tail)
    if not keep.any():
        keep = np.arange(atoms.masses.size) == int(np.argmax(atoms.masses))
    first = int(np.argmax(keep))
    last = keep.size - int(np.argmax(keep[::-1]))
    low = float(below[first - 1]) if first else 0.0
    high = float(above[last]) if last < keep.size else 0.0
    return atoms.losses[first:last], atoms.masses[first:last], low, high


def upper_masses(pair: DominatingPair, *, step: float, tail: float) -> LossMasses:
    """Masses on the grid whose composition is at least that of the pair (T4)."""
    atoms = atoms_of(pair)
    if atoms is not None:
        losses, mass, low, high = _trimmed(atoms, tail)
        # Aligned with the highest loss, so that an even lattice stays exact.
        offset = math.remainder(float(losses[-1]), step)
        place = (losses - offset) / step
        index = np.floor(place + SNAP)
        part = np.expm1(-step * np.maximum(place - index, 0.0)) / math.expm1(-step)
        mass = mass * (1 + 1e-13)
        split = _gather(
            np.concatenate([index, index + 1]), np.concatenate([mass * (1 - part), mass * part])
        )
        split[1][0] += low
        return LossMasses(
            index=split[0], mass=split[1], infinity=atoms.infinity + high, offset=offset
        )
    edges = _edges(pair, step=step, tail=tail)
    losses = edges * step
    p, q, p_error, q_error, low, high = cells(pair, losses)
    weight = np.exp(losses[:-1])
    chord = -np.expm1(losses[:-1] - losses[1:])
    up = (p - q * weight + p_error + q_error * weight) / chord
    up = np.clip(up, 0.0, p + p_error)
    down = p + p_error - up
    mass = np.zeros(edges.size)
    mass[1:] += up
    mass[:-1] += down
    mass[0] += low
    used = mass > 0
    return LossMasses(
        index=edges[used].astype(np.int64),
        mass=mass[used] * (1 + 1e-13),
        infinity=pair.infinity + high,
    )


def lower_masses(pair: DominatingPair, *, step: float, tail: float) -> LossMasses:
    """Masses on a grid whose composition is at most that of the pair (T5)."""
    atoms = atoms_of(pair)
    if atoms is not None:
        losses, mass, _, _ = _trimmed(atoms, tail)
        mass = mass * (1 - 1e-13)
        offset = math.remainder(float(losses[-1]), step)
    else:
        ends, offset = _lower_ends(pair, step=step, tail=tail)
        p, q, p_error, q_error, _, _ = cells(pair, ends)
        mass, other = p - p_error, q + q_error
        good = (mass > 0) & (other > 0)
        mass = mass[good]
        losses = np.log(mass / other[good])
        order = np.argsort(losses, kind="stable")  # rounding may swap neighbors
        losses, mass = losses[order], mass[order]
    index, mass = _merged(losses - offset, mass, step)
    points, mass = _gather(index, mass)
    infinity = pair.infinity * (1 - 1e-11) if pair.infinity > UNDERFLOW else 0.0
    return LossMasses(index=points, mass=mass, infinity=infinity, offset=offset)


def _lower_ends(pair: DominatingPair, *, step: float, tail: float) -> tuple[Floats, float]:
    """Ends of cells that are centered on grid points; the atoms of a Laplace pair stand alone."""
    edges = _edges(pair, step=step, tail=tail) * step
    middle = (edges[1:] + edges[:-1]) / 2
    if not isinstance(pair, LaplacePair):
        return np.concatenate([[edges[0] - step], middle, [edges[-1]]]), 0.0
    top = pair.epsilon
    offset = math.remainder(top, step)
    middle = middle + offset
    inner = middle[(middle > -top) & (middle < top * (1 - 1e-9))]
    ends = np.concatenate([[-top - step, -top], inner, [top * (1 - 1e-15), top]])
    return ends, offset


def _merged(losses: Floats, mass: Floats, step: float) -> tuple[Floats, Floats]:
    """Bring atoms to grid points by merging each with a little of a neighbor (T5).

    To rise to a grid point an atom takes a share of the next higher atom, to fall to one a share
    of the next lower; both P- and Q-mass are kept, so that nothing is lost to first order. Where
    the share would be large, the atom moves down alone.
    """
    place = losses / step
    floor = np.floor(place + SNAP)
    exact = place - floor < SNAP
    up = _share(losses, mass, (floor + 1) * step, 1)
    down = _share(losses, mass, floor * step, -1)
    rise = (up < down) & ~exact
    share = np.where(exact, 0.0, np.minimum(up, down))
    share = np.where(share > 0.3, 0.0, share)
    rise &= share > 0
    # own[j] + (what both neighbors take of j) = 1: a tridiagonal system, (1 + S) own = 1. Shares
    # are at most 0.3, so own = (1 + S^2 + S^4 + ...)(1 - S) 1 lies in [0.4, 1].
    bands = np.ones((3, losses.size))
    bands[2] = np.where(rise, share, 0.0)  # i takes of i + 1
    bands[0] = np.where(rise, 0.0, share)  # i takes of i - 1
    bands[2][-1] = bands[0][0] = 0.0
    own = scipy.linalg.solve_banded((1, 1), bands, np.ones(losses.size))
    other = np.where(rise, np.append(mass[1:], 0.0), np.insert(mass[:-1], 0, 0.0))
    return floor + rise, own * (mass + share * other)


def _share(losses: Floats, mass: Floats, target: Floats, side: int) -> Floats:
    """How much of the neighbor on one side brings each atom to its target (infinity if none)."""
    near, weight = np.roll(losses, -side), np.roll(mass, -side)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -mass * np.expm1(target - losses) / (weight * np.expm1(target - near))
    share[-1 if side > 0 else 0] = np.inf
    return np.where(np.isfinite(share) & (share >= 0), share, np.inf)


def _gather(index: Floats, mass: Floats) -> tuple[NDArray[np.int64], Floats]:
    points, inverse = np.unique(index.astype(np.int64), return_inverse=True)
    gathered = np.bincount(inverse, weights=mass, minlength=points.size)
    return points, gathered.astype(np.float64)


def _edges(pair: DominatingPair, *, step: float, tail: float) -> Floats:
    """Grid indices that follow the pair's own spread: fine where its mass is, coarse in tails.

    Within a run the spacing is one power of two, so that cells around grid points are symmetric.
    """
    spread = pair.spread(tail, count=_NODES) / step
    gaps = np.maximum(np.diff(spread), 1.0)
    level = np.floor(np.log2(gaps))
    turns = np.concatenate([[0], np.flatnonzero(np.diff(level)) + 1, [gaps.size]])
    pieces = [np.array([math.floor(spread[0])])]
    for begin, end in pairwise(turns):
        width = 2.0 ** float(level[begin])
        first, last = math.ceil(spread[begin] / width), math.floor(spread[end] / width)
        pieces.append(np.arange(first, last + 1) * width)
    pieces.append(np.array([math.ceil(spread[-1])]))
    edges = np.unique(np.concatenate(pieces))
    return edges if edges.size > 1 else np.array([edges[0], edges[0] + 1])


def cells(
    pair: DominatingPair, losses: Floats
) -> tuple[Floats, Floats, Floats, Floats, float, float]:
    """P- and Q-mass of each cell, bounds of their rounding errors, and P beyond both ends."""
    at = pair.tails(losses)
    p, p_error = _difference(at.p_above, at.p_below)
    q, q_error = _difference(at.q_above, at.q_below)
    return p, q, p_error, q_error, float(at.p_below[0]), float(at.p_above[-1])


def _difference(above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """Differences of tails, each from the side where the tail is small."""
    right = above[:-1] < below[1:]
    value = np.where(right, above[:-1] - above[1:], below[1:] - below[:-1])
    error = ROUNDING * np.where(right, above[:-1], below[1:])
    return np.maximum(value, 0.0), error


# ── Composition ──────────────────────────────────────────────────────────────────────────────────


# Truncation per operation, in tilted mass.
TRUNCATE = 1e-15
# ||fft(a) - computed|| <= FFT_ERROR log2(n) ||fft(a)|| (Higham 2002, Theorem 24.2, generous).
FFT_ERROR = 8 * 2.0**-53
LARGEST = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedLoss:
    """A tilted distribution of losses ``offset + step * (start + i)``."""

    step: float
    tilt: float
    start: int
    weights: Floats
    log_scale: float
    offset: float = 0.0
    infinity: float = 0.0
    lost: float = 0.0
    count: int = 1

    def losses(self) -> Floats:
        index = np.arange(self.weights.size, dtype=np.float64)
        grid: Floats = self.offset + self.step * (self.start + index)
        return grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyProfile:
    """The profile of a composed distribution, rounded to one side.

    With the grid point ``l_j`` at or above eps and ``g = l_j - eps`` the tilted sum over all losses
    above eps is ``e^{-tilt g} (T_j - e^{-g} U_j)``, where T and U are running sums that decay by
    ``e^{-tilt step}`` and ``e^{-(tilt+1) step}`` from one point to the next.
    """

    source: ComposedLoss
    side: str
    points: Floats
    first: Floats
    second: Floats

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon."""
        return float(self._at(np.asarray([epsilon]))[0])

    def deltas(self, epsilons: Floats) -> Floats:
        """The bound at each epsilon."""
        return self._at(epsilons)

    def _at(self, epsilon: Floats) -> Floats:
        source = self.source
        # Snapped losses are paid for here.
        drift = 2 * SNAP * source.step * source.count
        at = epsilon - drift if self.side == "upper" else epsilon + drift
        place = np.searchsorted(self.points, at, side="left")
        inside = place < self.points.size
        j = np.minimum(place, self.points.size - 1)
        gap = np.where(inside, self.points[j] - at, 0.0)
        total = np.where(
            inside,
            np.exp(-source.tilt * gap) * (self.first[j] - np.exp(-gap) * self.second[j]),
            0.0,
        )
        total += source.lost if self.side == "upper" else -source.lost
        with np.errstate(divide="ignore"):
            exponent = source.log_scale - source.tilt * at + np.log(np.maximum(total, 0.0))
        finite = np.exp(np.minimum(exponent, 0.0))
        margin = 1 + 1e-11 if self.side == "upper" else 1 - 1e-11
        return np.minimum(1.0, (source.infinity + finite) * margin)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon certified at ``delta``, or the largest one refuted.

        Far from the target the bounds are loose, so they are scanned at all grid points.
        """
        values = self._at(self.points)
        if self.side == "upper":
            good = np.flatnonzero((values <= delta) & (self.points >= 0))
            if self.delta(0.0) <= delta:
                return 0.0
            if good.size == 0:
                beyond = float(self.points[-1]) + 10 * self.source.step
                return beyond if beyond > 0 and self.delta(beyond) <= delta else math.inf
            high = float(self.points[good[0]])
            low = max(0.0, high - self.source.step)
            return self._bisect(low, high, delta)[1] * (1 + 1e-11)
        bad = np.flatnonzero((values > delta) & (self.points > 0))
        if bad.size == 0:
            return 0.0
        low = float(self.points[bad[-1]])
        return self._bisect(low, low + self.source.step, delta)[0] * (1 - 1e-10)

    def _bisect(self, low: float, high: float, delta: float) -> tuple[float, float]:
        for _ in range(40):
            middle = (low + high) / 2
            if self.delta(middle) > delta:
                low = middle
            else:
                high = middle
        return low, high


def profile(source: ComposedLoss, *, side: str) -> PrivacyProfile:
    """Prepare the running sums."""
    backwards = source.weights[::-1]
    slow, fast = math.exp(-source.tilt * source.step), math.exp(-(source.tilt + 1) * source.step)
    return PrivacyProfile(
        source=source,
        side=side,
        points=source.losses(),
        first=scipy.signal.lfilter([1.0], [1.0, -slow], backwards)[::-1],
        second=scipy.signal.lfilter([1.0], [1.0, -fast], backwards)[::-1],
    )


def tilt_masses(masses: LossMasses, *, step: float, tilt: float) -> ComposedLoss:
    """Tilt masses and set them on a dense array."""
    start, stop = int(masses.index[0]), int(masses.index[-1])
    log = tilt * (masses.offset + step * masses.index)
    scale = float(log.max())
    values = masses.mass * np.exp(log - scale)
    total = float(values.sum())
    if stop - start >= LARGEST:
        raise OverflowError
    weights = np.zeros(stop - start + 1)
    weights[masses.index - start] = values / total
    return ComposedLoss(
        step=step,
        tilt=tilt,
        start=start,
        weights=weights,
        log_scale=scale + math.log(total),
        offset=masses.offset,
        infinity=masses.infinity,
        lost=weights.size * 1e-18,
    )


def power(part: ComposedLoss, count: int) -> ComposedLoss:
    """``count``-fold self-composition by one power in the frequency domain."""
    # Theorem: the circular result on a window that holds all but `tail` of the tilted mass differs
    #   from the true one by at most `tail` outside and by what wraps around inside.
    # Proof: Chernoff's bound on both ends of the sum of `count` tilted losses; T6 for round-off.
    if count == 1:
        return part
    index = np.arange(part.weights.size, dtype=np.float64)
    low, high = _window(index, part.weights, count)
    full = (part.weights.size - 1) * count
    low, high = max(0, low), min(full, high)
    size = next_fast_len(max(high - low + 1, part.weights.size), real=True)
    if size > LARGEST:
        raise OverflowError
    frequency = rfft(part.weights, size)
    magnitude = np.abs(frequency)
    # T6: |F^n - G^n| <= n max(|F|, |G|)^(n-1) |F - G|; by Cauchy-Schwarz over the frequencies the
    # error of one bin is at most n (mean |F|^(2n-2))^(1/2) times the 2-norm error of the transform.
    relative = FFT_ERROR * math.log2(size)
    norm = float(np.linalg.norm(part.weights))
    largest = np.minimum(magnitude + relative * math.sqrt(size) * norm, 1.0)
    forth = count * relative * norm * math.sqrt(2 * float(np.mean(largest ** (2 * count - 2))))
    back = relative * math.sqrt(2 * float(np.mean(magnitude ** (2 * count))))
    error = forth + back
    values = irfft(frequency**count, size)
    values = np.roll(values, -(low % size))[: high - low + 1]
    weights = np.maximum(values, 0.0)
    return replace(
        part,
        start=part.start * count + low,
        weights=weights,
        log_scale=part.log_scale * count,
        offset=part.offset * count,
        infinity=-math.expm1(count * math.log1p(-min(part.infinity, 1 - 1e-16))),
        lost=count * part.lost + 4 * TRUNCATE + error * _reach(part, weights.size),
        count=part.count * count,
    )


def _reach(part: ComposedLoss, size: int) -> float:
    """How many errors of one bin a tilted sum over all bins can collect."""
    if part.tilt <= 0:
        return float(size)
    return min(float(size), 1 + 1 / (part.tilt * part.step))


def _window(index: Floats, weights: Floats, count: int) -> tuple[int, int]:
    """Indices that hold all but 2 * TRUNCATE of the mass of ``count`` draws (Chernoff)."""
    mean = float(weights @ index)
    centered = index - mean
    sd = math.sqrt(max(float(weights @ centered**2), 1e-12))
    budget = math.log(1 / TRUNCATE)
    start = math.sqrt(2 * budget / count) / sd
    rates = start * np.exp(np.linspace(-4.0, 3.0, 36))
    widest = max(float(centered[-1]), -float(centered[0]), 1e-300)
    rates = rates[rates * widest < 600]
    if rates.size == 0:
        rates = np.array([600 / widest])
    grown = np.exp(np.outer(rates, centered)) @ weights
    shrunk = np.exp(np.outer(-rates, centered)) @ weights
    up = float(np.min((count * np.log(grown) + budget) / rates))
    down = float(np.min((count * np.log(shrunk) + budget) / rates))
    return math.floor(count * mean - down), math.ceil(count * mean + up)


def convolve(left: ComposedLoss, right: ComposedLoss) -> ComposedLoss:
    """The composition of two; the coarser grid is first set on the finer one."""
    left, right = _same_step(left, right)
    size = left.weights.size + right.weights.size - 1
    if size > LARGEST:
        raise OverflowError
    if min(left.weights.size, right.weights.size) < 64:
        weights = np.convolve(left.weights, right.weights)
        error = 0.0
    else:
        fast = next_fast_len(size, real=True)
        weights = irfft(rfft(left.weights, fast) * rfft(right.weights, fast), fast)[:size]
        weights = np.maximum(weights, 0.0)
        norms = float(np.linalg.norm(left.weights) * np.linalg.norm(right.weights))
        error = 3 * FFT_ERROR * math.log2(fast) * norms
    weights, skipped = _trim(weights)
    return ComposedLoss(
        step=left.step,
        tilt=left.tilt,
        start=left.start + right.start + skipped,
        weights=weights,
        log_scale=left.log_scale + right.log_scale,
        offset=left.offset + right.offset,
        infinity=left.infinity + right.infinity - left.infinity * right.infinity,
        lost=left.lost + right.lost + 2 * TRUNCATE + error * _reach(left, weights.size),
        count=left.count + right.count,
    )


def _same_step(left: ComposedLoss, right: ComposedLoss) -> tuple[ComposedLoss, ComposedLoss]:
    if left.step == right.step:
        return left, right
    step = min(left.step, right.step)
    return _refined(left, step), _refined(right, step)


def _refined(part: ComposedLoss, step: float) -> ComposedLoss:
    factor = round(part.step / step)
    if factor == 1:
        return part
    weights = np.zeros((part.weights.size - 1) * factor + 1)
    weights[::factor] = part.weights
    return replace(part, step=step, start=part.start * factor, weights=weights)


def _trim(weights: Floats) -> tuple[Floats, int]:
    """Cut TRUNCATE from both ends."""
    below = np.cumsum(weights)
    first = int(np.searchsorted(below, TRUNCATE))
    above = np.cumsum(weights[::-1])
    last = weights.size - int(np.searchsorted(above, TRUNCATE))
    return weights[first:last], first


def compose(parts: list[ComposedLoss]) -> ComposedLoss:
    """All parts, the smallest two first, so that large arrays are touched rarely."""
    heap = [(-part.step, part.weights.size, number, part) for number, part in enumerate(parts)]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        joined = convolve(first[3], second[3])
        number += 1
        heapq.heappush(heap, (-joined.step, joined.weights.size, number, joined))
    return heap[0][3]
