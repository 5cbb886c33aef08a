"""NumPy: not private (floating point, predictable generator), but the limit of speed."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from benchmarks.tasks import drop


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Continuous Laplace noise."""
    rng = np.random.default_rng(1)
    return lambda: drop(rng.laplace(0.0, scale, n))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Continuous Gaussian noise."""
    rng = np.random.default_rng(1)
    return lambda: drop(rng.normal(0.0, sigma, n))


def range_answers(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Differences of prefix sums."""
    rng = np.random.default_rng(1)
    sums = np.concatenate([[0.0], np.cumsum(20 + rng.laplace(0.0, 1 / epsilon, cells))])
    first, last = np.sort(rng.integers(0, cells, (2, ranges)), axis=0)
    return lambda: drop(sums[last + 1] - sums[first])


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
    return lambda: drop(values + rng.uniform(-k, k, n))


def crowds(*, n: int, points: int) -> Callable[[], None]:
    """One pass over all records for each point."""
    rng = np.random.default_rng(1)
    values, at = rng.normal(50, 15, n), rng.normal(50, 15, points)

    def work() -> None:
        for point in at:
            d = values - point
            inside = np.minimum(2 - d, 1) - np.maximum(-2 - d, -1)
            drop(np.maximum(inside, 0).sum() / 2)

    return work


def local_write(*, n: int, width: int, **_: float) -> Callable[[], None]:
    """As many random bytes into a file."""
    rng, target = np.random.default_rng(1), _file()

    def work() -> None:
        with target.open("wb") as file:
            for start in range(0, n, 1 << 20):
                file.write(rng.bytes(min(n - start, 1 << 20) * width))
            file.flush()
            os.fsync(file.fileno())

    return work


def local_read(*, n: int, width: int, **_: float) -> Callable[[], None]:
    """The sum of all bytes of a file."""
    target = _file()
    with target.open("wb") as file:
        some = np.random.default_rng(1).bytes(min(n, 1 << 20) * width)
        for start in range(0, n, 1 << 20):
            file.write(some[: (n - start) * width])

    def work() -> None:
        with target.open("rb") as file:
            while data := file.read(1 << 22):
                drop(np.frombuffer(data, np.uint8).sum())

    return work


def _file() -> Path:
    folder = Path(mkdtemp(prefix="numpy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "reports"
