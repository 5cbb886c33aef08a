"""Functions and inputs that a learned mechanism is tried on: all public or made up (A21)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats

HOURS = (164, 113, 42, 5, 1, 2, 100, 213, 306, 362, 392, 445, 504, 468, 525, 537, 573, 570, 455,
         352, 351, 331, 355, 252)  # fmt: skip
"""Vehicles per five minutes at the half of every hour, as on a road into a large city."""
READINGS = 288
"""Of a day: one every five minutes."""
MOST = 633
"""The largest reading of the published day."""


def wave(data: ArrayLike, *, norm: Literal["spectral", "euclidean"] = "spectral") -> Floats:
    """``sin(4 pi |D|)``: the listing's norm of an (n, d) array is the spectral one."""
    held = np.asarray(data, dtype=np.float64)
    if norm == "spectral":
        size = np.linalg.norm(held, ord=2, axis=(-2, -1))
    elif norm == "euclidean":
        size = np.sqrt(np.square(held).sum(axis=(-2, -1)))
    else:
        raise InvalidArgument(f"norm must be 'spectral' or 'euclidean', got {norm!r}.")
    return np.asarray(np.sin(4 * np.pi * size))


def hyperplane(data: ArrayLike, *, weights: ArrayLike = 1.0, offset: float = 0.0) -> Floats:
    """``w . x + b`` over all positions and attributes."""
    held = np.asarray(data, dtype=np.float64)
    return np.asarray((held * np.asarray(weights)).sum(axis=(-2, -1)) + offset)


def uniform(*, many: int, positions: int, attributes: int, seed: int) -> Floats:
    """Uniform inputs from numpy's legacy generator, as the listing draws them."""
    size = (count("many", many), count("positions", positions), count("attributes", attributes))
    return np.random.RandomState(seed).uniform(low=0, high=1, size=size)


def traffic_day(rng: np.random.Generator) -> Floats:
    """A made-up day of readings with the daily course and the spread of the published one."""
    at = (np.arange(READINGS) + 0.5) * 24 / READINGS
    base = np.interp(at, np.arange(24) + 0.5, HOURS, period=24)
    noisy = base + rng.normal(size=READINGS) * 26 * np.sqrt(np.maximum(base, 20) / 300)
    return np.clip(np.rint(noisy), 0, MOST)


def windows(day: ArrayLike, *, lags: int = 4, drop_last: bool = True) -> tuple[Floats, Floats]:
    """Windows (many, lags, 1) and the reading after each; the published script loses the last."""
    held = np.asarray(day, dtype=np.float64)
    every = np.lib.stride_tricks.sliding_window_view(held, count("lags", lags) + 1)
    every = every[:-1] if drop_last else every
    return every[:, :-1, None].copy(), every[:, -1].copy()


class Forecaster:
    """Ordinary least squares on the readings of a window, in the place of an LSTM."""

    def __init__(self, inputs: Floats, targets: Floats) -> None:
        self.weights = np.linalg.lstsq(_with_one(inputs), targets, rcond=None)[0]

    def __call__(self, data: ArrayLike) -> Floats:
        return np.asarray(_with_one(np.asarray(data, dtype=np.float64)) @ self.weights)

    predict = __call__


def _with_one(data: Floats) -> Floats:
    flat = data.reshape(*data.shape[:-2], -1)
    return np.concatenate((flat, np.ones((*flat.shape[:-1], 1))), axis=-1)
