"""dp-accounting: privacy-loss distributions, one event convolved after another."""

from __future__ import annotations

from collections.abc import Callable

import dp_accounting as dp
from dp_accounting import pld


def mixed_events(*, count: int, delta: float) -> Callable[[], float]:
    """Laplace, Gaussian and Poisson-sampled Gaussian events, all different."""
    spread = [i / count for i in range(count)]
    kinds = (
        lambda u: dp.LaplaceDpEvent(50 + 50 * u),
        lambda u: dp.GaussianDpEvent(50 + 50 * u),
        lambda u: dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1 + u)),
    )
    events = [kinds[i % 3](u) for i, u in enumerate(spread)]
    return lambda: _epsilon(events, delta)


def sgd(*, rate: float, sigma: float, steps: int, delta: float) -> Callable[[], float]:
    """Noisy gradient descent with Poisson batches."""
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    return lambda: _epsilon([dp.SelfComposedDpEvent(step, steps)], delta)


def gaussians(*, count: int, delta: float) -> Callable[[], float]:
    """Gaussian events, all different."""
    events = [dp.GaussianDpEvent(20 + 20 * i / count) for i in range(count)]
    return lambda: _epsilon(events, delta)


def _epsilon(events: list[dp.DpEvent], delta: float) -> float:
    accountant = pld.PLDAccountant()
    for event in events:
        accountant.compose(event)
    return float(accountant.get_epsilon(delta))
