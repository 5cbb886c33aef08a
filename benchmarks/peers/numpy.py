"""NumPy: not private (floating point, predictable generator), but the limit of speed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Continuous Laplace noise."""
    rng = np.random.default_rng(1)
    return lambda: _drop(rng.laplace(0.0, scale, n))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Continuous Gaussian noise."""
    rng = np.random.default_rng(1)
    return lambda: _drop(rng.normal(0.0, sigma, n))


def range_answers(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Differences of prefix sums."""
    rng = np.random.default_rng(1)
    sums = np.concatenate([[0.0], np.cumsum(20 + rng.laplace(0.0, 1 / epsilon, cells))])
    first, last = np.sort(rng.integers(0, cells, (2, ranges)), axis=0)
    return lambda: _drop(sums[last + 1] - sums[first])


def range_errors(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """The same: nobody else knows errors."""
    return range_answers(cells=cells, epsilon=epsilon, ranges=ranges)


def stream(*, events: int, steps: int, batches: int, **_: float) -> Callable[[], None]:
    """Counts of steps and their running total, without noise and without a file."""
    at = np.sort(np.random.default_rng(1).integers(1, steps + 1, events))
    marks = [steps * k // batches for k in range(batches + 1)]
    cuts = np.searchsorted(at, marks, side="right")

    def work() -> None:
        total = 0
        for k in range(batches):
            steps_of = at[cuts[k] : cuts[k + 1]] - marks[k] - 1
            counts = np.bincount(steps_of, minlength=marks[k + 1] - marks[k])
            total += int(np.cumsum(counts)[-1])

    return work


def k_noise(*, n: int, k: int) -> Callable[[], None]:
    """Uniform noise alone, its width given."""
    rng = np.random.default_rng(1)
    values = rng.normal(50, 15, n)
    return lambda: _drop(values + rng.uniform(-k, k, n))


def crowds(*, n: int, points: int) -> Callable[[], None]:
    """One pass over all records for each point."""
    rng = np.random.default_rng(1)
    values, at = rng.normal(50, 15, n), rng.normal(50, 15, points)

    def work() -> None:
        for point in at:
            d = values - point
            inside = np.minimum(2 - d, 1) - np.maximum(-2 - d, -1)
            _drop(np.maximum(inside, 0).sum() / 2)

    return work


def _drop(_: object) -> None:
    """The answer is the time."""
