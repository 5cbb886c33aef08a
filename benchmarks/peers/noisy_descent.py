"""Plain noisy gradient descent, as anyone would write it: bounds to -1 and 1, clip, add noise.

All rows in each of a hundred steps, so that its accounting is exact without any library: a hundred
Gaussian releases are one of a hundredth of the variance. Floats, NumPy's normals: not for release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.tasks import regression_table, split_error

STEPS = 100
RATE = 0.2
CLIP = 1.0


def regression_error(
    *, table: int, epsilon: float, delta: float, fits: int, given: int
) -> Callable[[], float]:
    """The mean error over splits and fits, in multiples of least squares without privacy."""
    held = regression_table(table, given=given)
    x, y, target = held["x"], np.clip(held["y"], *held["target"]), held["target"]
    half, middle = (held["upper"] - held["lower"]) / 2, (held["upper"] + held["lower"]) / 2
    design = np.column_stack((np.ones(len(x)), np.clip((x - middle) / half, -1, 1)))
    scaled = (y - target.mean()) / (np.ptp(target) / 2)
    sigma = CLIP * math.sqrt(STEPS) / _mu(epsilon, delta)

    def predict(train: NDArray[np.bool_]) -> NDArray[np.float64]:
        theta = _descend(design[train], scaled[train], sigma)
        seen = target.mean() + np.ptp(target) / 2 * (design[~train] @ theta)
        return np.asarray(np.clip(seen, *target))

    return lambda: split_error(held, predict, fits=fits)


def _descend(x: NDArray[np.float64], y: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    rng = np.random.default_rng()
    theta, mean = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    lengths = np.sqrt(np.square(x).sum(axis=1))
    for step in range(STEPS):
        residuals = x @ theta - y
        residuals *= np.minimum(1, CLIP / np.maximum(np.abs(residuals) * lengths, 1e-300))
        noisy = x.T @ residuals + sigma * rng.normal(size=len(theta))
        theta = theta - RATE * noisy / len(x)
        if step >= STEPS // 2:
            mean += theta / (STEPS - STEPS // 2)
    return mean


def _mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian noise that is (epsilon, delta)-DP (Balle, Wang 2018)."""
    normal = NormalDist()
    low, high = 1e-9, 20.0
    for _ in range(200):
        mu = (low + high) / 2
        reached = normal.cdf(mu / 2 - epsilon / mu)
        reached -= math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if reached < delta else (low, mu)
    return low
