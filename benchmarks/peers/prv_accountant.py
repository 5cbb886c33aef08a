"""prv-accountant: Microsoft's numerical accountant for subsampled Gaussians."""

from __future__ import annotations

from collections.abc import Callable

from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant


def sgd(
    *, rate: float, sigma: float, steps: int, delta: float
) -> Callable[[], tuple[float, float]]:
    """Noisy gradient descent with Poisson batches; its bracket at its default accuracy."""

    def work() -> tuple[float, float]:
        accountant = PRVAccountant(
            prvs=PoissonSubsampledGaussianMechanism(
                sampling_probability=rate, noise_multiplier=sigma
            ),
            max_self_compositions=steps,
            eps_error=0.1,
            delta_error=delta / 1000,
        )
        lower, _, upper = accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])
        return float(lower), float(upper)

    return work
