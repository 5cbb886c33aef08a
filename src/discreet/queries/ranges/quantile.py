"""Quantiles with intervals from noisy prefix sums (F39)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy

from discreet.noise.law import Floats, Ints

Variance: TypeAlias = Callable[[Ints, Ints], Floats]
"""The variance of the difference of the prefix sums at two points of 0 .. size."""
Width: TypeAlias = Callable[[Floats, float], Floats]
"""Half-widths that noise of these variances leaves with at most this probability."""


def monotone(prefixes: Floats) -> Floats:
    """The nearest prefix sums that never fall, between zero and the total.

    Heuristic: no theorem about its error; least squares, so closer to the truth on average.
    """
    rising: Floats = scipy.optimize.isotonic_regression(prefixes[1:]).x
    top = max(float(prefixes[-1]), 0.0)
    return np.concatenate([[0.0], np.clip(rising, 0.0, top)])


def quantile_cell(prefixes: Floats, share: float) -> int:
    """The first cell up to which the monotone prefix sums reach a share of the total."""
    rising = monotone(prefixes)
    cell = int(np.searchsorted(rising[1:], share * rising[-1]))
    return min(cell, len(rising) - 2)


def quantile_interval(
    prefixes: Floats, share: float, tail: float, *, variance: Variance, width: Width
) -> tuple[int, int]:
    """Cells between which the true quantile lies.

    Theorem: the first cell up to which the exact counts reach ``share`` of their total is in the
        interval with probability at least ``1 - tail``.
    Proof: let Z_i be the exact prefix sum at i minus ``share`` times the total. The true cell c has
        ``Z_c <= 0 <= Z_(c+1)``. All cells are kept at which neither inequality is refuted by the
        noisy Z, each refuted wrongly with probability at most ``tail / 2`` (in fact half of that);
        so c is kept. This needs no bound for all cells at once, because c is one cell.
    Source: inversion of tests; docs/theory/ranges.md.
    Needs: the exact total is positive.
    """
    size = len(prefixes) - 1
    points = np.arange(size + 1)
    zero, last = np.zeros_like(points), np.full_like(points, size)
    below, above = variance(zero, points), variance(points, last)
    both = variance(zero, last)
    together = (both - below - above) / 2
    spread = (1 - share) ** 2 * below + share**2 * above - 2 * share * (1 - share) * together
    reach = width(np.maximum(spread, 0.0), tail / 2)
    z = prefixes - share * prefixes[-1]
    kept = np.flatnonzero((z[:-1] <= reach[:-1]) & (z[1:] >= -reach[1:]))
    if not kept.size:  # the noise refutes every cell: no statement is left
        return 0, size - 1
    return int(kept[0]), int(kept[-1])
