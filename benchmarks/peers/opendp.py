"""OpenDP: exact noise on a lattice, one rounding at the end; a filter of adaptive composition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray
from opendp.extras.sklearn.linear_model._make_private_theil_sen import make_private_theil_sen

from benchmarks.tasks import column, drop, range_rmse, regression_table, rmse, split_error

dp.enable_features("contrib", "honest-but-curious")


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Discrete Laplace noise on a vector of integers."""
    domain = dp.vector_domain(dp.atom_domain(T=int))
    noise = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    data = np.zeros(n, dtype=np.int32)
    return lambda: drop(noise(data))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Discrete Gaussian noise on a vector of integers."""
    domain = dp.vector_domain(dp.atom_domain(T=int))
    noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(sigma))
    data = np.zeros(n, dtype=np.int32)
    return lambda: drop(noise(data))


def laplace_float(*, n: int, scale: float) -> Callable[[], None]:
    """Laplace noise on a vector of floats, on OpenDP's own lattice."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    noise = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=float(scale))
    data = np.zeros(n)
    return lambda: drop(noise(data))


def release_scalar(*, calls: int) -> Callable[[], None]:
    """One integer at a time."""
    noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)

    def work() -> None:
        for _ in range(calls):
            noise(0)

    return work


def adaptive_filter(*, queries: int) -> Callable[[], None]:
    """Gaussian queries through a zCDP filter, each charged before it is answered."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    space = domain, dp.l2_distance(T=float)
    composition = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())
    query = dp.m.make_gaussian(*space, scale=1000.0)

    def work() -> None:
        queryable = dp.c.make_privacy_filter(composition, 1.0, 1e9)([0.0] * 4)
        for _ in range(queries):
            queryable(query)

    return work


def charges(*, history: int, charges: int) -> Callable[[], None]:
    """The same filter, in memory, after a history."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    space = domain, dp.l2_distance(T=float)
    composition = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())
    query = dp.m.make_gaussian(*space, scale=1000.0)
    queryable = dp.c.make_privacy_filter(composition, 1.0, 1e9)([0.0] * 4)
    for _ in range(history):
        queryable(query)

    def work() -> None:
        for _ in range(charges):
            queryable(query)

    return work


def range_build(*, cells: int, epsilon: float) -> Callable[[], None]:
    """A tree of the branching that OpenDP suggests, Laplace noise, consistency."""
    release = _tree(cells, epsilon)
    return lambda: drop(release())


def range_release(*, cells: int, epsilon: float) -> Callable[[], None]:
    """The same: there is nothing to choose."""
    return range_build(cells=cells, epsilon=epsilon)


def range_error(
    *, cells: int, epsilon: float, ranges: int, repetitions: int
) -> Callable[[], float]:
    """The root of the mean squared error of random ranges."""
    release = _tree(cells, epsilon)
    return lambda: range_rmse(release, cells=cells, ranges=ranges, repetitions=repetitions)


def _tree(cells: int, epsilon: float) -> Callable[[], list[float]]:
    branching = dp.t.choose_branching_factor(cells)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=cells, branching_factor=branching)
    noisy = dp.binary_search_chain(
        lambda scale: tree >> dp.m.then_laplace(scale=scale), d_in=1, d_out=epsilon
    )
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    counts = [20] * cells
    return lambda: list(consistent(noisy(counts)))


def median(*, n: int, shape: int, epsilon: float) -> Callable[[], None]:
    """A noisy choice among 1025 candidates."""
    values = column(n, shape)
    choice = _choice(epsilon, 1_025)
    return lambda: drop(choice(values))


def median_error(
    *, n: int, shape: int, epsilon: float, repetitions: int, points: int
) -> Callable[[], float]:
    """The root of the mean squared error."""
    values = column(n, shape)
    choice = _choice(epsilon, points)
    truth = float(np.median(values))
    return lambda: rmse(lambda: float(choice(values)), truth, repetitions)


def _choice(epsilon: float, points: int) -> dp.Measurement:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = list(np.linspace(0.0, 128.0, points))

    def scaled(scale: float) -> dp.Measurement:
        pure = dp.max_divergence()
        return dp.m.make_private_quantile(
            *space, pure, candidates=candidates, alpha=0.5, scale=scale
        )

    return dp.binary_search_chain(scaled, d_in=1, d_out=epsilon)


def regression_error(
    *,
    table: int,
    epsilon: float,
    delta: float,  # noqa: ARG001 - it spends none
    fits: int,
    given: int,
) -> Callable[[], float]:
    """The mean error over splits and fits of Theil-Sen, which takes one regressor."""
    held = regression_table(table, given=given)
    low, high = float(held["lower"][0]), float(held["upper"][0])
    target = float(held["target"][0]), float(held["target"][1])
    x, y = np.clip(held["x"][:, 0], low, high), np.clip(held["y"], *target)

    def scaled(scale: float) -> dp.Measurement:
        return make_private_theil_sen(dp.max_divergence(), (low, high), target, scale=scale)

    fit = scaled(dp.binary_search_param(scaled, d_in=1, d_out=epsilon))

    def predict(train: NDArray[np.bool_]) -> NDArray[np.float64]:
        slope, level = fit(np.column_stack((x[train], y[train])))
        return np.asarray(np.clip(slope * x[~train] + level, *target))

    return lambda: split_error(held, predict, fits=fits)
