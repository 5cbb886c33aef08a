"""Uniform draws on an interval, exact on a grid of 2**52 steps."""

from __future__ import annotations

import numpy as np

from discreet.disclosure.classes import Floats
from discreet.noise.bits import Bits
from discreet.noise.uniform import below

STEPS = 1 << 52


def symmetric(size: int, bits: Bits) -> Floats:
    """Uniform on the multiples of 2**-51 in [-1, 1], both ends included: the mean is exactly 0."""
    return np.ldexp((below(STEPS + 1, size, bits) - STEPS // 2).astype(np.float64), -51)


def unit(size: int, bits: Bits) -> Floats:
    """Uniform on the centres of 2**52 equal parts of [0, 1]."""
    return np.ldexp((2 * below(STEPS, size, bits) + 1).astype(np.float64), -53)
