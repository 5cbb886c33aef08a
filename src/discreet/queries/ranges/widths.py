"""How wide the intervals of answers are, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.noise.law import Floats, Ints, floats
from discreet.queries.ranges import tails
from discreet.queries.ranges.strategy import Strategy
from discreet.queries.ranges.tails import Law

_CLOSE = 1000
_MOST_TERMS = 1 << 20
"""The close bound is for so many ranges, and weights of noise in all of them."""


def half_widths(
    strategy: Strategy, laws: Sequence[Law], a: Ints, b: Ints, *, tail: float
) -> Floats:
    """Half-widths that the noise of ranges of cells ``a .. b`` leaves with probability ``tail``.

    Theorem: each noise stays within its half-width with probability at least ``1 - tail``.
    Proof: `tails.quick`, `tails.normal` and `tails.close` are valid, and so is the smallest.
    Source: docs/theory/ranges.md.
    """
    noise = tails.variances(laws)
    variance = strategy.variance(a, b, noise)
    width = tails.quick(laws, strategy.largest_weights(noise), variance, tail)
    if tails.fine(laws):
        return np.minimum(width, tails.normal(laws, np.sqrt(variance), tail))
    ends = list(zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True))
    if not 0 < len(ends) <= _CLOSE:
        return width
    first = strategy.terms(*ends[0], noise)
    if len(ends) * sum(len(weights) for weights, _ in first) > _MOST_TERMS:
        return width
    close = [
        tails.close(laws, strategy.terms(p, q, noise), float(v), tail)
        for (p, q), v in zip(ends, np.ravel(variance), strict=True)
    ]
    return floats(np.minimum(width, np.reshape(close, np.shape(width))))
