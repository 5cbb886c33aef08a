"""The largest move of a release when each of several values moves by plus or minus its width."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from discreet.leakage.series.model import Floats

# Up to this many values all sign patterns are tried: 2^15 of them.
_ALL = 16
_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Bounds on a maximum; equal where it is found exactly."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the bounds agree, up to rounding."""
        return self.upper <= self.lower * (1 + 1e-12)


def largest(factor: Floats) -> Peak:
    """The largest length of ``factor @ d`` over all d of plus and minus ones (C28).

    Theorem: exact for one or two rows, and for up to 16 columns. Otherwise ``upper`` is the
        smaller of ``sqrt(sum |G_ij|)`` and ``sqrt(columns x largest eigenvalue of G)``,
        ``G = factor' factor``; the first is attained when no sign pattern is contradictory.
    Proof: ``|factor d|^2 = d'Gd``. One row: take its signs. Two rows: the maximum is attained at a
        vertex of the projected cube, and a vertex is the signs of ``factor' u`` for a direction u;
        these change only where u is perpendicular to a column, so one u between every two
        such directions meets all vertices. The upper bounds: ``|d_i| = 1``.
    """
    columns = factor.shape[1]
    if factor.shape[0] == 1:
        value = float(np.abs(factor).sum())
        return Peak(lower=value, upper=value)
    if columns <= _ALL:
        patterns = np.array([(1, *d) for d in itertools.product((1, -1), repeat=columns - 1)]).T
    elif factor.shape[0] == 2:
        patterns = _directions(factor)
    else:
        return _bounds(factor)
    value = math.sqrt(float(((factor @ patterns) ** 2).sum(axis=0).max()))
    return Peak(lower=value, upper=value)


def _directions(factor: Floats) -> Floats:
    turns = np.sort((np.arctan2(factor[1], factor[0]) + math.pi / 2) % math.pi)
    between = (turns + np.append(turns[1:], turns[0] + math.pi)) / 2
    result: Floats = np.where(
        np.outer(factor[0], np.cos(between)) + np.outer(factor[1], np.sin(between)) >= 0, 1.0, -1.0
    )
    return result


def _bounds(factor: Floats) -> Peak:
    gram = factor.T @ factor
    values, vectors = np.linalg.eigh(gram)
    upper = min(float(np.abs(gram).sum()), float(values[-1]) * len(gram))
    d = np.where(vectors[:, -1] >= 0, 1.0, -1.0)
    for _ in range(_ROUNDS):  # each round follows the gradient of a convex function: it rises
        new = np.where(gram @ d >= 0, 1.0, -1.0)
        if np.array_equal(new, d):
            break
        d = new
    lower = math.sqrt(float(d @ gram @ d))
    return Peak(lower=lower, upper=max(math.sqrt(upper), lower))
