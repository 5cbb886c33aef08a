"""Ranges on any graph of neighbors: one interval for each clique, and their intersections."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.blackbox.metrics import Ints
from discreet.models.blackbox.output_ranges import whole_steps


def clique_ranges(
    centers: ArrayLike, cliques: Iterable[ArrayLike], *, width: int
) -> tuple[Ints, Ints]:
    """The ranges of areas from whole centers: each clique is given the middle of its centers.

    ``cliques`` must cover every pair of neighbors; an area that none of them holds is given one of
    its own, because two inputs of one area are neighbors too (A34).

    >>> clique_ranges([4, 2, 0], [(0, 1), (1, 2)], width=4)
    (array([ 1,  1, -1]), array([5, 3, 3]))
    """
    values = whole_steps("centers", centers)
    sets = _covering(cliques, len(values))
    doubled = [int(values[members].min() + values[members].max()) for members in sets]
    return intersections(sets, doubled, areas=len(values), width=width)


def intersections(
    cliques: Iterable[ArrayLike], doubled: ArrayLike, *, areas: int, width: int
) -> tuple[Ints, Ints]:
    """The ranges from intervals of length ``width`` around ``doubled / 2``, one for each clique.

    >>> intersections([(0, 1), (2, 3), (0, 2), (1, 3)], [0, 20, 0, -20], areas=4, width=1)
    Traceback (most recent call last):
        ...
    discreet.core.errors.NotCertified: The intervals around area 3 do not meet.
    """
    # Theorem: clipping to these ranges changes by at most `width` steps between neighbors.
    # Proof: neighbors share a clique; both ranges lie between the floors of (T - width) / 2 and
    #   (T + width) / 2 of that clique, which are `width` apart. Every range is checked not to be
    #   empty, and every area to lie in a clique: otherwise NotCertified. Conversely every family
    #   of ranges of this sensitivity lies in one of this form: take single pairs as cliques.
    # Source: Aoutouf 2021, corrected: lines of a product grid are cliques, of a path they are not.
    size = count("width", width, minimum=0)
    sets = [np.asarray(members, dtype=np.int64) for members in cliques]
    centers = whole_steps("doubled", doubled)
    if len(centers) != len(sets):
        raise InvalidArgument(f"doubled must have one entry for each of {len(sets)} cliques.")
    lowest = np.full(areas, np.iinfo(np.int64).min)
    highest = np.full(areas, np.iinfo(np.int64).max)
    for members, center in zip(sets, centers, strict=True):
        lowest[members] = np.maximum(lowest[members], center)
        highest[members] = np.minimum(highest[members], center)
    if (lowest == np.iinfo(np.int64).min).any():
        raise NotCertified("Every area must lie in a clique, at least in one of its own.")
    low: Ints = (lowest - size) // 2
    high: Ints = (highest + size) // 2
    if (low > high).any():
        raise NotCertified(f"The intervals around area {int((low - high).argmax())} do not meet.")
    return low, high


def _covering(cliques: Iterable[ArrayLike], areas: int) -> list[Ints]:
    """The cliques, and one for each area that lies in none of them."""
    sets = [np.asarray(members, dtype=np.int64) for members in cliques]
    seen = np.zeros(areas, dtype=bool)
    for members in sets:
        if members.size == 0 or members.min() < 0 or members.max() >= areas:
            raise InvalidArgument(f"cliques must hold areas from 0 to {areas - 1}.")
        seen[members] = True
    return sets + [np.array([area]) for area in np.flatnonzero(~seen)]
