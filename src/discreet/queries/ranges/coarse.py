"""Coarser cells: neighbours merged before anything is measured, in declared blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import check
from discreet.core.errors import OutOfDomain
from discreet.core.exact import Number
from discreet.noise.law import Ints
from discreet.queries.ranges.domain import Bins, Domain, Integers, bins, declared, ordered

_CELLS_CONSTANT = 10


def coarsened(domain: Domain, *, block: int) -> Domain:
    """A domain whose cells are ``block`` neighbouring cells of another; the last may be fewer.

    Numbers become bins, named by their edges; days and categories become categories such as
    ``"2024-01-01 .. 2024-01-07"``.
    """
    step = check.count("block", block)
    starts = range(0, declared(domain).size, step)
    match domain:
        case Integers():
            return bins([*(domain.lower + start for start in starts), domain.upper + 1])
        case Bins():
            return bins([*(domain.edges[start] for start in starts), domain.edges[-1]])
        case _:
            lasts = (min(start + step, domain.size) - 1 for start in starts)
            names = [_name(domain, first, last) for first, last in zip(starts, lasts, strict=True)]
            return ordered(names)


def merged(counts: ArrayLike, *, blocks: Sequence[int]) -> Ints:
    """Counts of the coarser cells: sums over ``blocks`` cells along each axis. Private, as given.

    Every row still counts in exactly one cell, so sensitivities stay what they are.
    """
    steps = [check.count("blocks", block) for block in check.listed("blocks", blocks)]
    try:
        cells = np.asarray(counts)
    except ValueError:  # rows of different lengths
        cells = np.empty(0)
    if cells.dtype.kind not in "iu" or cells.ndim != len(steps):
        raise OutOfDomain(f"counts must be an array of integers with {len(steps)} axes.")
    found: Ints = cells.astype(np.int64)
    for axis, step in enumerate(steps):
        found = np.add.reduceat(found, np.arange(0, found.shape[axis], step), axis=axis)
    return found


def suggested_cells(rows: int, *, epsilon: Number) -> int:
    """Cells for each of two axes, if what is inside counts as even: ``sqrt(rows epsilon/10)``.

    Heuristic: no theorem. ``rows`` is public or a guess.
    Source: Qardaji, Yang, Li 2013. F40.
    """
    guess = check.count("rows", rows)
    price = float(check.positive("epsilon", epsilon))
    return max(1, round(math.sqrt(guess * price / _CELLS_CONSTANT)))


def _name(domain: Domain, first: int, last: int) -> str:
    low, high = str(domain.label(first)), str(domain.label(last))
    return low if first == last else f"{low} .. {high}"
