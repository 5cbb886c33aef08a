"""The noise on a published mean that gives one value of one person a stated epsilon."""

from __future__ import annotations

from discreet.accounting.conversion import gaussian_sigma


def mean_noise(bounds: tuple[float, float], *, people: int, epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise on a mean of ``people`` values within ``bounds``.

    One value moves the mean by at most ``(upper - lower) / people``.
    """
    lower, upper = bounds
    return gaussian_sigma(epsilon, delta=delta, sensitivity=(upper - lower) / people)
