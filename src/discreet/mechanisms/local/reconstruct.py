"""The distribution that makes the reports of a window most likely, by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.mechanisms.local.window import Window
from discreet.noise.law import Floats, Ints

MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Shares of the inputs, the number of iterations, and whether the likelihood settled."""

    shares: Floats
    iterations: int
    converged: bool


def fit(
    channel: Window,
    counts: Ints,
    *,
    smooth: bool,
    enough: float | None = None,
    most: int = MOST_ITERATIONS,
) -> Fit:
    """Maximise the likelihood, or with ``smooth`` also average neighbours after each step.

    Each step multiplies the shares by the transposed channel applied to counts / expectation and
    takes time linear in the number of symbols, because a window is a difference of cumulated
    sums. It ends when the log-likelihood gains less than ``enough``, as published 1e-3, or without
    smoothing 1e-3 e^epsilon. Ending early is part of the method: the likeliest shares are jagged.

    Source: Li et al. 2020 (EM and EMS for the square wave). F52.
    """
    shares = np.full(channel.inputs, 1 / channel.inputs)
    observed = counts.astype(np.float64)
    total = observed.sum()
    if total == 0:
        return Fit(shares, 0, converged=True)
    published = 1e-3 if smooth else 1e-3 * (channel.near / channel.far)
    limit = published if enough is None else enough
    expected = channel.shares(shares)
    likelihood = _log_likelihood(observed, expected)
    for iteration in range(1, most + 1):
        # The smallest expectation is far / total > 0, so that nothing is divided by zero.
        shares = shares * channel.back(observed / expected) / total
        if smooth:
            shares = _smoothed(shares)
        shares /= shares.sum()
        expected = channel.shares(shares)
        before, likelihood = likelihood, _log_likelihood(observed, expected)
        if likelihood - before < limit:
            return Fit(shares, iteration, converged=True)
    return Fit(shares, most, converged=False)


def _log_likelihood(observed: Floats, expected: Floats) -> float:
    return float(observed @ np.log(expected))


def _smoothed(shares: Floats) -> Floats:
    """Weights 1/4, 1/2, 1/4; what would leave at an end stays there, so that the sum stays."""
    padded = np.concatenate((shares[:1], shares, shares[-1:]))
    inner: Floats = (padded[:-2] + 2 * shares + padded[2:]) / 4
    return inner
