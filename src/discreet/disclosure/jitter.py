"""Crowd-adaptive jitter: more noise where fewer people are. Experimental.

The width of the noise is computed from the data and leaks through the noise itself. It is here to
be compared, not to be used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import positive
from discreet.core.exact import Number
from discreet.disclosure.classes import Floats
from discreet.disclosure.knoise import expected_crowd
from discreet.disclosure.metrics import Utility, sample, utility
from discreet.disclosure.uniform import symmetric
from discreet.noise.bits import Bits, source_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveJitter:
    """Values with noise of different widths. Experimental."""

    experimental: ClassVar[bool] = True
    values: Floats = field(repr=False)
    widths: Floats = field(repr=False)
    """Half-width of the noise of each value. Made of the data: do not publish."""
    cap: float
    utility: Utility

    def __repr__(self) -> str:
        return (
            f"AdaptiveJitter({len(self.values):,} values, noise at most ±{self.cap:g}; "
            f"experimental)\n  {self.utility}\n"
            "  Not differentially private: even the widths are made of the data."
        )


def crowd_jitter(
    values: ArrayLike,
    *,
    half_width: Number,
    window: Number,
    cap: Number,
    bits: Bits | None = None,
) -> AdaptiveJitter:
    """Uniform noise on ±min(cap, mean crowd / crowd), the crowd being that of k-noise.

    Heuristic: no theorem. Experimental. Without a cap a lonely record is moved out of all reason.
    Source: Biswal 2024, listings. B13.
    """
    x, most = sample("values", values), float(positive("cap", cap))
    crowd = expected_crowd(x, at=x, half_width=half_width, window=window)
    with np.errstate(divide="ignore"):
        widths = np.minimum(most, crowd.mean() / crowd)
    drawn = x + widths * symmetric(len(x), source_of(bits))
    return AdaptiveJitter(values=drawn, widths=widths, cap=most, utility=utility(x, released=drawn))
