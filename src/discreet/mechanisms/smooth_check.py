"""Divergences of pairs of laws of different scale and centre, by integrating their densities.

A route that the calibration does not use: it finds where the ratio of two densities passes
e^epsilon on a fine grid, and integrates there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from scipy import optimize

from discreet.mechanisms.smooth_noise import Family
from discreet.noise.law import Floats

LogDensity: TypeAlias = Callable[[Floats], Floats]

# A ratio this much above e^epsilon is rounding.
_ROUNDING = 1e-11
_POINTS = 4000
# Where the density is below the exponential of this, nothing is left to count.
_FURTHEST = -200.0
_GAUSS = np.polynomial.legendre.leggauss(20)


def worst_divergence(family: Family) -> float:
    """The largest divergence over ratios of scales and distances of centres, both directions."""
    epsilon = float(family.epsilon)
    ratios = np.exp(family.beta * np.array([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]))
    shifts = np.array([0.0, 0.5, 1.0]) / float(family.multiplier)
    worst = 0.0
    for ratio in ratios:
        for shift in shifts:
            narrow, wide = (0.0, 1.0), (shift, float(ratio))
            worst = max(
                worst,
                divergence(family.log_density, narrow, wide, epsilon),
                divergence(family.log_density, wide, narrow, epsilon),
            )
    return worst


def divergence(
    log_density: LogDensity, p: tuple[float, float], q: tuple[float, float], epsilon: float
) -> float:
    """The hockey-stick divergence of one shape at two (centre, scale), at ``epsilon``."""

    def log_p(x: Floats) -> Floats:
        return log_density((x - p[0]) / p[1]) - math.log(p[1])

    def loss(x: Floats) -> Floats:
        return log_p(x) - log_density((x - q[0]) / q[1]) + math.log(q[1]) - epsilon - _ROUNDING

    far = np.geomspace(1e-6, 1e8, _POINTS)
    grid = np.unique(np.concatenate((p[0] - far, p[0] + far, q[0] - far, q[0] + far, [p[0], q[0]])))
    grid = grid[log_p(grid) > _FURTHEST]
    above = loss(grid) > 0
    turns = np.flatnonzero(above[1:] != above[:-1])
    edges = [_root(loss, grid[i], grid[i + 1]) for i in turns]
    ends = np.array([grid[0], *edges, grid[-1]])
    total = 0.0
    for number, (low, high) in enumerate(pairwise(ends)):
        if above[0] == (number % 2 == 0):  # signs alternate from the first on
            nodes, weights = _nodes(low, high, (p[0], q[0], *edges), p[1])
            excess = np.exp(log_p(nodes)) * -np.expm1(-loss(nodes))
            total += float(weights @ excess)
    return total


def _root(loss: LogDensity, low: float, high: float) -> float:
    return float(optimize.brentq(lambda x: float(loss(np.array([x]))[0]), low, high, xtol=1e-14))


def _nodes(
    low: float, high: float, marks: tuple[float, ...], scale: float
) -> tuple[Floats, Floats]:
    """Nodes and weights of an integral from ``low`` to ``high``: pieces grow away from the marks.

    Between them the integrands are analytic.
    """
    steps = scale * np.concatenate(([0.0], np.geomspace(0.125, 1e8, 80)))
    ends = np.concatenate([np.concatenate((mark - steps, mark + steps)) for mark in marks])
    ends = np.unique(np.clip(np.concatenate((ends, [low, high])), low, high))
    half = np.diff(ends)[:, None] / 2
    nodes = ends[:-1, None] + half * (_GAUSS[0] + 1)
    return nodes.ravel(), (half * _GAUSS[1]).ravel()
