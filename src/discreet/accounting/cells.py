"""From a dominating pair to masses on a grid of losses, on the safe side of either bound.

*Upper* (connect the dots): the mass (p, q) of a cell goes to the two grid points at its ends so
that both its P- and its Q-mass stay: between two dots the profile is replaced by its chord.
*Lower* (merge and move down): a cell becomes one atom, which is post-processing, and its P-mass
moves down to a grid point. Proofs: docs/theory/accounting.md, theorems T4 and T5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from discreet.accounting.conversion import UNDERFLOW, Floats
from discreet.accounting.pairs import (
    ROUNDING,
    AddPair,
    Atoms,
    LaplacePair,
    LatticeLaplacePair,
    Pair,
    RemovePair,
)

# A loss this close to a grid point (in steps) counts as on it; the caller pays for the difference.
SNAP = 1e-7
_NODES = 700
_MOST_ATOMS = 4000
# Of a sample with more atoms the lower bound is better from cells.
_MOST_SAMPLED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Masses:
    """P-masses at the losses ``offset + step * index``, and at infinity."""

    index: NDArray[np.int64]
    mass: Floats
    infinity: float
    offset: float = 0.0


def atoms_of(pair: Pair) -> Atoms | None:
    """The atoms of a pair that has few enough of them to be listed."""
    if isinstance(pair, Atoms):
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
        return Atoms(losses, np.maximum(mass, 0.0), pair.infinity)
    if isinstance(pair, (RemovePair, AddPair)):
        inner = atoms_of(pair.inner)
        if inner is not None and inner.losses.size <= _MOST_SAMPLED:
            return _sampled(pair, inner)
    return None


def _sampled(pair: RemovePair | AddPair, inner: Atoms) -> Atoms:
    """The atoms of a sample: ``(1-q) Q + q P`` against Q, or ``P`` against ``(1-q) P + q Q``."""
    q, sign = pair.rate, 1.0 if isinstance(pair, RemovePair) else -1.0
    loss = sign * inner.losses
    with np.errstate(over="ignore"):
        moved = np.where(loss > 700, loss + math.log(q), np.log1p(q * np.expm1(loss)))
    end = sign * math.log1p(-q)
    if isinstance(pair, AddPair):  # outputs that Q never gives have the largest loss
        return Atoms(np.append(-moved, end), np.append(inner.masses, inner.infinity))
    # Outputs that P never gives have the smallest.
    rest = max(0.0, 1.0 - float(inner.other.sum()))
    masses = (1 - q) * np.append(rest, inner.other) + q * np.append(0.0, inner.masses)
    return Atoms(np.append(end, moved), masses, pair.infinity)


def _trimmed(atoms: Atoms, tail: float) -> tuple[Floats, Floats, float, float]:
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


def upper(pair: Pair, *, step: float, tail: float) -> Masses:
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
        return Masses(index=split[0], mass=split[1], infinity=atoms.infinity + high, offset=offset)
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
    return Masses(
        index=edges[used].astype(np.int64),
        mass=mass[used] * (1 + 1e-13),
        infinity=pair.infinity + high,
    )


def lower(pair: Pair, *, step: float, tail: float) -> Masses:
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
        order = np.argsort(losses, kind="stable")  # rounding may swap neighbours
        losses, mass = losses[order], mass[order]
    index, mass = _merged(losses - offset, mass, step)
    points, mass = _gather(index, mass)
    infinity = pair.infinity * (1 - 1e-11) if pair.infinity > UNDERFLOW else 0.0
    return Masses(index=points, mass=mass, infinity=infinity, offset=offset)


def _lower_ends(pair: Pair, *, step: float, tail: float) -> tuple[Floats, float]:
    """Ends of cells that are centred on grid points; the atoms of a Laplace pair stand alone."""
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
    """Bring atoms to grid points by merging each with a little of a neighbour (T5).

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
    # own[j] + (what both neighbours take of j) = 1: a tridiagonal system, (1 + S) own = 1. Shares
    # are at most 0.3, so own = (1 + S^2 + S^4 + ...)(1 - S) 1 lies in [0.4, 1].
    bands = np.ones((3, losses.size))
    bands[2] = np.where(rise, share, 0.0)  # i takes of i + 1
    bands[0] = np.where(rise, 0.0, share)  # i takes of i - 1
    bands[2][-1] = bands[0][0] = 0.0
    own = scipy.linalg.solve_banded((1, 1), bands, np.ones(losses.size))
    other = np.where(rise, np.append(mass[1:], 0.0), np.insert(mass[:-1], 0, 0.0))
    return floor + rise, own * (mass + share * other)


def _share(losses: Floats, mass: Floats, target: Floats, side: int) -> Floats:
    """How much of the neighbour on one side brings each atom to its target (infinity if none)."""
    near, weight = np.roll(losses, -side), np.roll(mass, -side)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -mass * np.expm1(target - losses) / (weight * np.expm1(target - near))
    share[-1 if side > 0 else 0] = np.inf
    return np.where(np.isfinite(share) & (share >= 0), share, np.inf)


def _gather(index: Floats, mass: Floats) -> tuple[NDArray[np.int64], Floats]:
    points, inverse = np.unique(index.astype(np.int64), return_inverse=True)
    gathered = np.bincount(inverse, weights=mass, minlength=points.size)
    return points, gathered.astype(np.float64)


def _edges(pair: Pair, *, step: float, tail: float) -> Floats:
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


def cells(pair: Pair, losses: Floats) -> tuple[Floats, Floats, Floats, Floats, float, float]:
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
