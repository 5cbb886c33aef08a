"""How far a sum of independent Laplace terms goes: quantiles from the characteristic function."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from discreet.noise.law import Floats

_NODES = 256
_PERIOD = 40.0
"""In standard deviations: beyond half of it a Laplace variable goes once in e^28."""
_ROUNDS = 40
_PIECE = 2048


def half_width(terms: Iterable[tuple[Floats, Floats]], level: float) -> Floats:
    """For each answer, the x with P(|error| <= x) = level.

    A term ``(times, scales)`` holds, for each answer, how often a Laplace variable of a scale
    occurs in its error. The distribution function is the trapezoidal sum of the inversion integral,
    good to about 1e-5. Discrete noise goes less than half a step further than continuous noise of
    the same scale, in law, and half a step is added for it.
    """
    listed = [(np.asarray(times), np.asarray(scales)) for times, scales in terms]
    size = len(listed[0][0])
    found = np.empty(size)
    for start in range(0, size, _PIECE):
        piece = slice(start, min(start + _PIECE, size))
        found[piece] = _quantile([(n[piece], b[piece]) for n, b in listed], level)
    return found


def _quantile(terms: list[tuple[Floats, Floats]], level: float) -> Floats:
    variance = sum(2 * times * np.square(scales) for times, scales in terms)
    std = np.sqrt(variance)
    nodes = np.arange(1, _NODES + 1) * (2 * np.pi / _PERIOD)
    log = np.zeros((len(std), _NODES))
    for times, scales in terms:
        relative = np.square(scales / np.where(std > 0, std, 1))[:, None]
        log -= times[:, None] * np.log1p(relative * np.square(nodes))
    weight = np.exp(log) / nodes

    low, high = np.zeros(len(std)), np.full(len(std), _PERIOD / 2)
    for _ in range(_ROUNDS):
        x = (low + high) / 2
        inside = (2 / _PERIOD) * (x + 2 * np.sum(np.sin(x[:, None] * nodes) * weight, axis=1))
        low, high = np.where(inside < level, x, low), np.where(inside < level, high, x)
    return high * std + 0.5
