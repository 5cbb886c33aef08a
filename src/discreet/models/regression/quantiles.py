"""Centres and radii by private choice: the exponential mechanism on counts of a public grid.

A candidate is the likelier, the fewer rows would have to change for it to be the quantile. The
error is a few ranks, however wide the declared bounds are; a mean would pay for their width.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.mechanisms.selection import Exponential
from discreet.models.inputs import Floats
from discreet.models.regression.rows import Ints
from discreet.models.regression.task import Task
from discreet.noise.bits import Bits
from discreet.queries.budget import Move

CELLS = 1024
"""Cells of the grid between the bounds of a column."""
RADII = 56
"""Candidates for a radius: from the top down by quarters of an octave."""
# The radius that holds 4 of 5 rows.
_PART, _OF = 4, 5
# How much likelier the midpoint of the bounds is than all other candidates, before a row is read.
_PRIOR = 1000.0


def median_move(task: Task) -> Move:
    """A row moves ``2 below - n`` by one if added, by two if replaced."""
    return task.choice(1, 2)


def radius_move(task: Task) -> Move:
    """A row moves ``5 below - 4 n`` by at most four if added, by five if replaced."""
    return task.choice(max(_PART, _OF - _PART), _OF)


def cell_counts(values: Floats, lower: Floats, upper: Floats) -> Ints:
    """Rows in each cell of each column, clipped to the bounds: (columns, CELLS), private."""
    places = np.floor((np.clip(values, lower, upper) - lower) * (CELLS / (upper - lower)))
    codes = np.minimum(places, CELLS - 1).astype(np.int64)
    codes += np.arange(len(lower)) * CELLS
    found = np.bincount(codes.ravel(), minlength=len(lower) * CELLS)
    return found.astype(np.int64).reshape(len(lower), CELLS)


def radius_counts(values: Floats, tops: Floats) -> Ints:
    """Rows between one candidate radius and the next: (columns, RADII), private."""
    found = np.empty((len(tops), RADII), dtype=np.int64)
    for column, top in enumerate(tops):
        edges = radii(float(top))[::-1]
        places = np.minimum(np.searchsorted(edges, values[:, column], side="left"), RADII - 1)
        found[column] = np.bincount(places, minlength=RADII)
    return found


def radii(top: float) -> Floats:
    """All candidates, the largest first."""
    return np.asarray(top * np.exp2(-np.arange(RADII) / 4))


def median(
    counts: Ints,
    lower: float,
    upper: float,
    *,
    mechanism: Exponential,
    bits: Bits,
    prior: float | None = None,
) -> float:
    """The middle of the chosen cell; with ``prior`` on the midpoint, that may be chosen itself.

    Theorem: as private as ``mechanism``, whose sensitivity is `median_move`.
    Proof: the score of a cell is minus ``max(0, 2 below - n, n - 2 (below + inside))``; each term
        moves by at most one if a row is added, and by at most two if one is replaced. The bonus of
        the midpoint is a public constant.
    Source: McSherry, Talwar 2007; Smith 2011.
    """
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    scores = -np.maximum(0, np.maximum(2 * below - many, many - 2 * upto))
    middles = lower + (np.arange(CELLS) + 0.5) * ((upper - lower) / CELLS)
    if prior is not None:
        bonus = math.ceil(math.log(_PRIOR * CELLS) / float(mechanism.rate))
        at = min(max(math.floor((prior - lower) / (upper - lower) * CELLS), 0), CELLS - 1)
        scores = np.append(scores, scores[at] + bonus)
        middles = np.append(middles, prior)
    return float(middles[mechanism.choose(scores.astype(np.int64), bits)])


def radius(counts: Ints, top: float, *, mechanism: Exponential, bits: Bits) -> float:
    """The chosen radius: about four of five rows lie within.

    Theorem: as private as ``mechanism``, whose sensitivity is `radius_move`; proof as for `median`.
    """
    upto = np.cumsum(counts)
    below, many = upto - counts, upto[-1]
    scores = -np.maximum(0, np.maximum(_OF * below - _PART * many, _PART * many - _OF * upto))
    return float(radii(top)[::-1][mechanism.choose(scores.astype(np.int64), bits)])
