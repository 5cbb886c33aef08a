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


def between(low: Floats, high: Floats, bits: Bits) -> Floats:
    """Uniform on the centres of 2**52 equal parts of each [low, high), rounded, never past high."""
    unit = np.ldexp((2 * below(STEPS, len(low), bits) + 1).astype(np.float64), -53)
    return np.clip(low + (high - low) * unit, low, np.nextafter(high, low))
