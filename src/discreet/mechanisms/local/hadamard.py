"""The Walsh-Hadamard transform."""

from __future__ import annotations

import numpy as np

from discreet.noise.law import Ints


def walsh_hadamard(values: Ints) -> Ints:
    """Sums of values times (-1)^(number of common binary digits of i and j), for every j.

    The length is a power of two. Applied twice it multiplies by the length.
    """
    out = np.array(values, dtype=np.int64)
    step = 1
    while step < len(out):
        pairs = out.reshape(-1, 2, step)
        first = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = first
        step *= 2
    return out
