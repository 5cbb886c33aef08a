"""What could be reached at all: the optima that a search is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.models.blackbox.interval_fit import fit_intervals
from discreet.models.blackbox.lipschitz_fit import fit_centers
from discreet.noise.distribution import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Optima:
    """Mean absolute errors on the training inputs themselves."""

    half: float
    """Centers whose gaps are at most S/2, as the search wants them."""
    whole: float
    """Centers whose gaps are at most S."""
    ranges: float
    """Ranges of sensitivity S: no clipping mechanism does better."""
    window: float
    """One window of width S for all inputs."""
    constant: float

    @classmethod
    def of(cls, y: Floats, cells: Ints, sensitivity: float) -> Optima:
        """From outputs and the cells of their inputs."""
        apart = (cells[:, None] != cells[None]).sum(axis=-1).astype(np.float64)
        many = len(y)
        return cls(
            half=fit_centers(y, apart, sensitivity / 2).loss / many,
            whole=fit_centers(y, apart, sensitivity).loss / many,
            ranges=fit_intervals(y, apart, sensitivity).loss / many,
            window=window_error(y, y, sensitivity),
            constant=float(np.abs(y - np.median(y)).mean()),
        )


def window_error(train: Floats, test: Floats, width: float) -> float:
    """Mean distance of test values from the best window for the training values."""
    lows = np.concatenate((train, train - width))
    over = np.maximum(train - lows[:, None] - width, 0) + np.maximum(lows[:, None] - train, 0)
    low = lows[over.mean(axis=1).argmin()]
    return float((np.maximum(test - low - width, 0) + np.maximum(low - test, 0)).mean())
