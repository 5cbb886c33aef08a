"""diffprivlib: scalar mechanisms in Python, and a budget in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.mechanisms import GaussianAnalytic, Geometric
from diffprivlib.models import LinearRegression, LogisticRegression
from diffprivlib.tools import histogram
from diffprivlib.tools import median as private_median
from numpy.typing import NDArray

from benchmarks.tasks import (
    adult,
    column,
    drop,
    linear_rows,
    range_rmse,
    regression_table,
    rmse,
    split_error,
)


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """The two-sided geometric mechanism, one integer at a time."""
    mechanism = Geometric(epsilon=1 / scale, sensitivity=1)

    def work() -> None:
        for _ in range(n):
            mechanism.randomize(0)

    return work


def charges(*, history: int, charges: int) -> Callable[[], None]:
    """Scalar Gaussian queries charged to the accountant in memory, composed with a slack."""
    accountant = BudgetAccountant(epsilon=1e9, delta=0.99, slack=1e-6)
    cost = 0.01, 1e-9
    mechanism = GaussianAnalytic(epsilon=cost[0], delta=cost[1], sensitivity=1.0)
    for _ in range(history):
        accountant.spend(*cost)

    def work() -> None:
        for _ in range(charges):
            accountant.spend(*cost)
            mechanism.randomize(0.0)

    return work


def range_build(*, cells: int, epsilon: float) -> Callable[[], None]:
    """A flat histogram of twenty rows in each cell."""
    rows = np.repeat(np.arange(cells) + 0.5, 20)
    return lambda: drop(histogram(rows, epsilon=epsilon, bins=cells, range=(0, cells)))


def range_release(*, cells: int, epsilon: float) -> Callable[[], None]:
    """The same: there is nothing to choose."""
    return range_build(cells=cells, epsilon=epsilon)


def range_error(
    *, cells: int, epsilon: float, ranges: int, repetitions: int
) -> Callable[[], float]:
    """The root of the mean squared error of random ranges: sums of cells."""
    rows = np.repeat(np.arange(cells) + 0.5, 20)

    def release() -> Sequence[float]:
        found: Sequence[float] = histogram(rows, epsilon=epsilon, bins=cells, range=(0, cells))[0]
        return found

    return lambda: range_rmse(release, cells=cells, ranges=ranges, repetitions=repetitions)


def median(*, n: int, shape: int, epsilon: float) -> Callable[[], None]:
    """The exponential mechanism over the gaps between the values."""
    values = column(n, shape)
    return lambda: drop(private_median(values, epsilon=epsilon, bounds=(0.0, 128.0)))


def median_error(*, n: int, shape: int, epsilon: float, repetitions: int) -> Callable[[], float]:
    """The root of the mean squared error."""
    values = column(n, shape)
    truth = float(np.median(values))

    def one() -> float:
        return float(private_median(values, epsilon=epsilon, bounds=(0.0, 128.0)))

    return lambda: rmse(one, truth, repetitions)


def adult_untuned(
    *,
    file: str,
    epsilon: float,
    delta: float,  # noqa: ARG001 - it spends none
    fits: int,
) -> Callable[[], float]:
    """Mean accuracy of logistic regression by objective perturbation."""
    x, y, x_test, y_test = adult(file)
    longest = math.sqrt(13)  # five numbers up to 1, one of each of eight groups of columns

    def work() -> float:
        models = (LogisticRegression(epsilon=epsilon, data_norm=longest) for _ in range(fits))
        return sum(float(model.fit(x, y).score(x_test, y_test)) for model in models) / fits

    return work


def adult_pure(*, file: str, epsilon: float, delta: float, fits: int) -> Callable[[], float]:
    """The same: it is pure anyway."""
    return adult_untuned(file=file, epsilon=epsilon, delta=delta, fits=fits)


def regression_error(
    *,
    table: int,
    epsilon: float,
    delta: float,  # noqa: ARG001 - it spends none
    fits: int,
    given: int,
) -> Callable[[], float]:
    """The mean error over splits and fits, of the better of two ways to an intercept.

    Columns are shifted and scaled to -1 and 1. Its own intercept shifts them back by a noisy mean,
    and then claims too small a sensitivity; a column of ones is sound. The better is taken in
    hindsight.
    """
    held = regression_table(table, given=given)
    half, middle = (held["upper"] - held["lower"]) / 2, (held["upper"] + held["lower"]) / 2
    target, x = held["target"], np.clip((held["x"] - middle) / half, -1, 1)
    center, reach = float(target.mean()), float(np.ptp(target) / 2)
    y = (np.clip(held["y"], *target) - center) / reach
    ones = np.column_stack((x, np.ones(len(x))))

    def error(rows: NDArray[np.float64], *, own: bool) -> float:
        def predict(train: NDArray[np.bool_]) -> NDArray[np.float64]:
            model = LinearRegression(
                epsilon=epsilon,
                bounds_X=(-1, 1),
                bounds_y=(-1, 1),
                fit_intercept=own,
            )
            model.fit(rows[train], y[train])
            return np.asarray(np.clip(model.predict(rows[~train]) * reach + center, *target))

        return split_error(held, predict, fits=fits)

    return lambda: min(error(x, own=True), error(ones, own=False))


def regression_fit(*, n: int, d: int, epsilon: float, best: int) -> Callable[[], None]:  # noqa: ARG001
    """A fit of rows in memory."""
    x, y = linear_rows(n, d)
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1))
    return lambda: drop(model.fit(x, y))
