"""diffprivlib: scalar mechanisms in Python, and a budget in memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.mechanisms import GaussianAnalytic, Geometric
from diffprivlib.models import LinearRegression, LogisticRegression
from diffprivlib.tools import histogram
from diffprivlib.tools import median as private_median
from numpy.typing import NDArray


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """The two-sided geometric mechanism, one integer at a time."""
    mechanism = Geometric(epsilon=1 / scale, sensitivity=1)

    def work() -> None:
        for _ in range(n):
            mechanism.randomise(0)

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
            mechanism.randomise(0.0)

    return work


def range_build(*, cells: int, epsilon: float) -> Callable[[], None]:
    """A flat histogram of twenty rows in each cell."""
    rows = np.repeat(np.arange(cells) + 0.5, 20)
    return lambda: _drop(histogram(rows, epsilon=epsilon, bins=cells, range=(0, cells)))


def range_release(*, cells: int, epsilon: float) -> Callable[[], None]:
    """The same: there is nothing to choose."""
    return range_build(cells=cells, epsilon=epsilon)


def range_error(
    *, cells: int, epsilon: float, ranges: int, repetitions: int
) -> Callable[[], float]:
    """The root of the mean squared error of random ranges: sums of cells."""
    rows = np.repeat(np.arange(cells) + 0.5, 20)
    first, last = np.sort(np.random.default_rng(1).integers(0, cells, (2, ranges)), axis=0)

    def work() -> float:
        squares = 0.0
        for _ in range(repetitions):
            found, _ = histogram(rows, epsilon=epsilon, bins=cells, range=(0, cells))
            sums = np.concatenate([[0.0], np.cumsum(found)])
            errors = sums[last + 1] - sums[first] - 20 * (last - first + 1)
            squares += float(np.mean(np.square(errors)))
        return math.sqrt(squares / repetitions)

    return work


def median(*, n: int, shape: int, epsilon: float) -> Callable[[], None]:
    """The exponential mechanism over the gaps between the values."""
    values = _column(n, shape)
    return lambda: _drop(private_median(values, epsilon=epsilon, bounds=(0.0, 128.0)))


def median_error(*, n: int, shape: int, epsilon: float, repetitions: int) -> Callable[[], float]:
    """The root of the mean squared error."""
    values = _column(n, shape)
    truth = float(np.median(values))

    def one() -> float:
        return float(private_median(values, epsilon=epsilon, bounds=(0.0, 128.0)))

    return lambda: _rmse(one, truth, repetitions)


def _column(n: int, shape: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(shape)
    draws = (
        rng.uniform(0, 100, n),
        rng.normal(50, 10, n),
        rng.exponential(10, n),
        rng.normal(40, 20, n).round(),
        rng.lognormal(3, 1, n),
    )
    return np.clip(draws[shape], 0, 128)


def _rmse(median: Callable[[], float], truth: float, repetitions: int) -> float:
    return math.sqrt(sum((median() - truth) ** 2 for _ in range(repetitions)) / repetitions)


def _drop(_: object) -> None:
    """The answer is the time."""


def adult_untuned(
    *,
    file: str,
    epsilon: float,
    delta: float,  # noqa: ARG001 - it spends none
    fits: int,
) -> Callable[[], float]:
    """Mean accuracy of logistic regression by objective perturbation."""
    held = np.load(file)
    x, y, x_test, y_test = (held[name] for name in ("x", "y", "x_test", "y_test"))
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
    held = np.load(f".bench/data/regression-{'given' if given else 'own'}-{table}.npz")
    half, middle = (held["upper"] - held["lower"]) / 2, (held["upper"] + held["lower"]) / 2
    target, x = held["target"], np.clip((held["x"] - middle) / half, -1, 1)
    centre, reach = float(target.mean()), float(np.ptp(target) / 2)
    y = (np.clip(held["y"], *target) - centre) / reach
    ones = np.column_stack((x, np.ones(len(x))))

    def error(rows: NDArray[np.float64], *, own: bool) -> float:
        errors = []
        for train in held["train"]:
            for _ in range(fits):
                model = LinearRegression(
                    epsilon=epsilon,
                    bounds_X=(-1, 1),
                    bounds_y=(-1, 1),
                    fit_intercept=own,
                )
                model.fit(rows[train], y[train])
                seen = np.clip(model.predict(rows[~train]) * reach + centre, *target)
                errors.append(float(np.mean(np.square(seen - held["y"][~train]))))
        return float(np.mean(errors) / np.mean(held["least"])) if errors else 0.0

    return lambda: min(error(x, own=True), error(ones, own=False))


def regression_fit(*, n: int, d: int, epsilon: float, best: int) -> Callable[[], None]:  # noqa: ARG001
    """A fit of rows in memory."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n, d))
    y = np.clip(x @ rng.uniform(-1, 1, d) / d + rng.normal(0, 0.1, n), -1, 1)
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1))
    return lambda: _drop(model.fit(x, y))
