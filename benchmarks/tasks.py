"""The same data and the same measure of error for every library.

Imported inside each library's own environment: the standard library and NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def drop(_: object) -> None:
    """The answer is the time."""


def column(n: int, shape: int) -> NDArray[np.float64]:
    """Values between 0 and 128, of one of five shapes."""
    rng = np.random.default_rng(shape)
    draws = (
        rng.uniform(0, 100, n),
        rng.normal(50, 10, n),
        rng.exponential(10, n),
        rng.normal(40, 20, n).round(),
        rng.lognormal(3, 1, n),
    )
    return np.clip(draws[shape], 0, 128)


def rmse(answer: Callable[[], float], truth: float, repetitions: int) -> float:
    """The root of the mean squared error of an answer."""
    return math.sqrt(sum((answer() - truth) ** 2 for _ in range(repetitions)) / repetitions)


def codes(categories: int, n: int) -> NDArray[np.int64]:
    """What clients have: small categories more often."""
    return (categories * np.random.default_rng(1).random(n) ** 2).astype(np.int64)


def ends(cells: int, ranges: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last cells of random ranges."""
    first, last = np.sort(np.random.default_rng(1).integers(0, cells, (2, ranges)), axis=0)
    return first, last


def range_rmse(
    release: Callable[[], Sequence[float]], *, cells: int, ranges: int, repetitions: int
) -> float:
    """The root of the mean squared error of random ranges, as sums of cells of twenty rows."""
    first, last = ends(cells, ranges)
    squares = 0.0
    for _ in range(repetitions):
        sums = np.concatenate([[0.0], np.cumsum(release())])
        errors = sums[last + 1] - sums[first] - 20 * (last - first + 1)
        squares += float(np.mean(np.square(errors)))
    return math.sqrt(squares / repetitions)


def linear_rows(n: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows and targets between -1 and 1."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n, d))
    return x, np.clip(x @ rng.uniform(-1, 1, d) / d + rng.normal(0, 0.1, n), -1, 1)


def regression_table(table: int, *, given: int) -> Mapping[str, NDArray[Any]]:
    """Rows, bounds, splits and the error of least squares, of one table of `regression_data`."""
    held: Mapping[str, NDArray[Any]] = np.load(
        f".bench/data/regression-{'given' if given else 'own'}-{table}.npz"
    )
    return held


def split_error(
    held: Mapping[str, NDArray[Any]],
    predict: Callable[[NDArray[np.bool_]], NDArray[np.float64]],
    *,
    fits: int,
) -> float:
    """The mean error over splits and fits, in multiples of least squares without privacy.

    ``predict`` fits the rows of a split and predicts the others.
    """
    errors = [
        float(np.mean(np.square(predict(train) - held["y"][~train])))
        for train in held["train"]
        for _ in range(fits)
    ]
    return float(np.mean(errors) / np.mean(held["least"])) if errors else 0.0


def adult(file: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows and labels to learn from, and to test with."""
    held = np.load(file)
    return held["x"], held["y"], held["x_test"], held["y_test"]
