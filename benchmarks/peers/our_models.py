"""Our models, measured in the same way as everyone else's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tasks import adult, drop, linear_rows, regression_table, split_error
from discreet.models.dp_sgd import OutputPerturbationLogisticRegression, PrivateLogisticRegression
from discreet.models.pate._data_dependent_cost import data_dependent_cost
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.regression.auto import AutoLinearRegression
from discreet.models.regression.linear_regression import PrivateLinearRegression


def adult_descent(  # noqa: PLR0913 - the public choices of a run
    *,
    file: str,
    batches: int,
    epochs: int,
    clip: float,
    learning_rate: float,
    momentum: float,
    epsilon: float,
    delta: float,
    fits: int,
    fastest: int,  # noqa: ARG001 - there is one way only
) -> Callable[[], float]:
    """Mean accuracy of several fits of logistic regression, everything chosen."""
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=(0, 1),
        classes=(0, 1),
        public_rows=32_561,
        rate=Fraction(1, batches),
        steps=batches * epochs,
        clip=clip,
        learning_rate=learning_rate,
        momentum=momentum,
    )
    return _accuracy(model, file, fits)


def adult_pure(*, file: str, epsilon: float, delta: float, fits: int) -> Callable[[], float]:
    """Mean accuracy under pure epsilon, as diffprivlib's."""
    del delta
    model = OutputPerturbationLogisticRegression(
        epsilon=epsilon, bounds=(0, 1), classes=(0, 1), public_rows=len(adult(file)[0])
    )
    return _accuracy(model, file, fits)


def adult_untuned(*, file: str, epsilon: float, delta: float, fits: int) -> Callable[[], float]:
    """The same with nothing chosen but the budget, the bounds and the classes."""
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=delta, bounds=(0, 1), classes=(0, 1), public_rows=32_561
    )
    return _accuracy(model, file, fits)


def _accuracy(
    model: PrivateLogisticRegression | OutputPerturbationLogisticRegression, file: str, fits: int
) -> Callable[[], float]:
    x, y, x_test, y_test = adult(file)
    if isinstance(model, PrivateLogisticRegression):
        # The noise is found beforehand, as it is for the peer.
        model.plan(features=x.shape[1], public_rows=len(x))

    def work() -> float:
        return sum(float(model.fit(x, y).score(x_test, y_test)) for _ in range(fits)) / fits

    return work


def regression_error(
    *, table: int, epsilon: float, delta: float, fits: int, given: int
) -> Callable[[], float]:
    """The mean error over splits and fits, in multiples of least squares without privacy."""
    held = regression_table(table, given=given)
    x, y = held["x"], held["y"]

    def predict(train: NDArray[np.bool_]) -> NDArray[np.float64]:
        model = AutoLinearRegression(
            epsilon=epsilon,
            delta=delta,
            bounds=list(zip(held["lower"].tolist(), held["upper"].tolist(), strict=True)),
            target_bounds=tuple(held["target"].tolist()),
            expected_rows=int(train.sum()),
        )
        return model.fit(x[train], y[train]).predict(x[~train])

    return lambda: split_error(held, predict, fits=fits)


def regression_fit(*, n: int, d: int, epsilon: float, best: int) -> Callable[[], None]:
    """A fit of rows in memory: from moments, or by the method that is chosen."""
    x, y = linear_rows(n, d)
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6}
    budget |= {"bounds": (-1, 1), "target_bounds": (-1, 1)}
    model = (
        AutoLinearRegression(**budget, expected_rows=n)
        if best
        else PrivateLinearRegression(**budget)
    )
    return lambda: drop(model.fit(x, y))


def regression_file(*, file: str, n: int, d: int, epsilon: float) -> Callable[[], None]:
    """A fit of rows in files, through DuckDB."""
    del n  # under add/remove nobody tells
    names = [f"x{i}" for i in range(d)]
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=1e-6,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        scaling="bounds",
        mapping="ball",
    )
    return lambda: drop(model.fit_source(file, features=names, target="y"))


def vote_costs(*, n: int, classes: int) -> Callable[[], None]:
    """Two-sided costs for the noise that is drawn, of all rows at once; two levels."""
    rng = np.random.default_rng(1)
    votes = rng.multinomial(250, rng.dirichlet(np.full(classes, 0.1), size=n)) * 1000
    rule = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)
    told = np.ones(n, dtype=bool)
    return lambda: drop(
        data_dependent_cost(votes, told, aggregator=rule, shares={"low": 667, "high": 1333})
    )
