"""Answers that look right: no negative counts, a fixed total. Biased; raw answers stay (F41)."""

from __future__ import annotations

import numpy as np

from discreet.noise.law import Floats, floats
from discreet.queries.ranges.strategy import Strategy

_MOST_STEPS = 3000
_PRECISION = 1e-7


def non_negative(strategy: Strategy, noise: Floats, estimate: Floats, *, total: float) -> Floats:
    """The cells closest to the estimate that are not negative and sum to ``total``.

    Heuristic: no theorem about its error. Distance is measured as the noise measures it: the
    precision matrix of the estimate. Without a fixed total the bias of clipping would add up over
    long ranges, so there is no such option (F41).

    Source: accelerated projected gradients with restarts (Beck, Teboulle 2009).
    """
    if total <= 0:
        return np.zeros(strategy.size)
    largest = _largest_eigenvalue(strategy, noise)
    found = before = _onto_simplex(estimate, total)
    ahead, speed = found, 1.0
    for _ in range(_MOST_STEPS):
        slope = strategy.precision(ahead - estimate, noise)
        found = _onto_simplex(ahead - slope / largest, total)
        step = found - before
        if np.abs(step).max() <= _PRECISION * max(1.0, np.abs(found).max()):
            break
        if float(((ahead - found) * step).sum()) > 0:  # going uphill: start afresh
            speed = 1.0
        faster = (1 + np.sqrt(1 + 4 * speed * speed)) / 2
        ahead = found + (speed - 1) / faster * step
        before, speed = found, faster
    return found


def _onto_simplex(x: Floats, total: float) -> Floats:
    """The nearest point that is not negative and sums to ``total``."""
    ordered = np.sort(x)[::-1]
    above = np.cumsum(ordered) - total
    places = np.arange(1, len(x) + 1)
    last = int(np.flatnonzero(ordered - above / places > 0)[-1])
    return floats(np.maximum(x - above[last] / (last + 1), 0.0))


def _largest_eigenvalue(strategy: Strategy, noise: Floats) -> float:
    """A bound of the precision matrix's largest eigenvalue, by power iteration and some room."""
    x = np.ones(strategy.size) + np.sin(np.arange(strategy.size))
    size = 0.0
    for _ in range(30):
        x /= np.linalg.norm(x)
        x = strategy.precision(x, noise)
        size = float(np.linalg.norm(x))
    return 1.1 * size
