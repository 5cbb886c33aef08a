"""discreet itself, measured in the same way as everyone else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import discreet
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import Composed, Event, GaussianNoise, LaplaceNoise, Sampled
from discreet.noise.bits import system
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Discrete Laplace noise."""
    law, bits = DiscreteLaplace(scale), system()
    return lambda: _drop(law.sample(n, bits))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Discrete Gaussian noise."""
    law, bits = DiscreteGaussian(sigma), system()
    return lambda: _drop(law.sample(n, bits))


def laplace_float(*, n: int, scale: float) -> Callable[[], None]:
    """Laplace noise on floats, released as multiples of a public grid."""
    mechanism = discreet.laplace(sensitivity=1.0, epsilon=1 / scale)
    data = np.zeros(n)
    return lambda: _drop(mechanism.release(data))


def release_scalar(*, calls: int) -> Callable[[], None]:
    """One integer at a time."""
    mechanism = discreet.laplace(sensitivity=1, epsilon=1.0)

    def work() -> None:
        for _ in range(calls):
            mechanism.release(0)

    return work


def mixed_events(*, count: int, delta: float) -> Callable[[], float]:
    """Laplace, Gaussian and Poisson-sampled Gaussian events, all different."""
    spread = np.linspace(0.0, 1.0, count).tolist()
    kinds: tuple[Callable[[float], Event], ...] = (
        lambda u: LaplaceNoise(50 + 50 * u),
        lambda u: GaussianNoise(50 + 50 * u),
        lambda u: Sampled(0.01, GaussianNoise(1 + u)),
    )
    events = [kinds[i % 3](u) for i, u in enumerate(spread)]
    return lambda: _epsilon(events, delta)


def sgd(*, rate: float, sigma: float, steps: int, delta: float) -> Callable[[], float]:
    """Noisy gradient descent with Poisson batches."""
    step = Guarantee(event=Sampled(rate, GaussianNoise(sigma)))
    return lambda: (step * steps).epsilon(delta)


def gaussians(*, count: int, delta: float) -> Callable[[], float]:
    """Gaussian events, all different."""
    events: list[Event] = [GaussianNoise(s) for s in np.linspace(20.0, 40.0, count).tolist()]
    return lambda: _epsilon(events, delta)


def _epsilon(events: list[Event], delta: float) -> float:
    return Guarantee(event=Composed(tuple((event, 1) for event in events))).epsilon(delta)


def _drop(_: object) -> None:
    """The answer is the time."""
