"""Ways to train a private logistic regression, on made-up records: for E11."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from discreet.models.dp_sgd._laplace_rates import GradientBound, PowerSchedule, final_noise_scale
from discreet.models.dp_sgd.convergence import SimulatedRuns, minimizer, simulate
from discreet.models.dp_sgd.estimators import PrivateLogisticRegression
from discreet.models.dp_sgd.losses import Logistic
from discreet.noise.distribution import Floats
from discreet.noise.random_source import seeded_rng
from discreet_studies.private_inference.published_sgd import PublishedLaplaceDescent
from discreet_studies.study import StudySetting

EPSILON = 1.0
DELTA = 1e-6
"""For Gaussian noise; the others need none."""
_ROWS, _FEATURES = 5000, 10
_STRENGTH = 55.5
"""Norm of the coefficients that labels are drawn with: the minimizer then is as far as stated."""
_OBJECTIVE = Logistic(l2=1e-3)
_BOUND = GradientBound(dimension=_FEATURES, diameter=2.0)
"""Rows have L1 norm 1, and so has every gradient at most."""
_STEPS = (1, 2, 5, 10, 30, 100, 300, 1000)
_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0)
Trainer: TypeAlias = Callable[[int, float, int, int], SimulatedRuns]
"""From steps, rate, repetitions and seed to runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Made-up records with labels, and the least loss on them."""

    x: Floats
    y: Floats
    best: Floats
    least: float

    def excess(self, thetas: Floats) -> Floats:
        """Mean loss above the least, for each row of parameters."""
        margins = thetas @ self.x.T
        losses = np.maximum(margins, 0) + np.log(1 + np.exp(-np.abs(margins))) - self.y * margins
        penalty = _OBJECTIVE.l2 / 2 * (thetas**2).sum(axis=1)
        return np.asarray(losses.mean(axis=1) + penalty - self.least)

    @property
    def nothing(self) -> float:
        """The excess of predicting 0."""
        return float(self.excess(np.zeros((1, _FEATURES)))[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The best of all settings of one method, run once more with fresh noise."""

    steps: int
    rate: float
    sweep: float
    fresh: float
    error: float


def made_up(setting: StudySetting) -> Data:
    """Normal rows of L1 norm 1, labels from a logistic model."""
    rng = setting.rng("E11")
    x = rng.normal(size=(_ROWS, _FEATURES))
    x /= np.abs(x).sum(axis=1, keepdims=True)
    truth = rng.normal(size=_FEATURES)
    truth *= _STRENGTH / np.linalg.norm(truth)
    y = (rng.random(_ROWS) < expit(x @ truth)).astype(np.float64)
    best = minimizer(_OBJECTIVE, x, y)
    return Data(x=x, y=y, best=best, least=_OBJECTIVE.mean_loss(best, x, y))


def thesis(data: Data) -> Trainer:
    """Theorem 7.6.1 at a constant rate: for the last iterate; the average costs more (M27)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> SimulatedRuns:
        return PublishedLaplaceDescent(
            schedule=PowerSchedule(start=rate), sensitivity=2.0, epsilon=EPSILON
        ).simulate(_OBJECTIVE, data.x, data.y, steps=steps, repetitions=repetitions, seed=seed)

    return train


def last_noise(data: Data) -> Trainer:
    """The same guarantee with noise in the last step only (C42)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> SimulatedRuns:
        rates = np.full(steps, rate)
        scales = np.zeros(steps)
        scales[-1] = final_noise_scale(rates, bound=_BOUND, epsilon=EPSILON) / rate
        return _simulated(data, rates, scales, repetitions, seed)

    return train


def sampled_laplace(data: Data) -> Trainer:
    """Constant noise for the whole run, steps on one secret record each (C37)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> SimulatedRuns:
        each = math.log1p(_ROWS * math.expm1(EPSILON / steps))
        scales = np.full(steps, 2.0 / each)
        return _simulated(data, np.full(steps, rate), scales, repetitions, seed)

    return train


def _simulated(
    data: Data, rates: Floats, scales: Floats, repetitions: int, seed: int
) -> SimulatedRuns:
    return simulate(
        _OBJECTIVE, data.x, data.y, rates=rates, scales=scales, repetitions=repetitions, seed=seed
    )


def output_noise(data: Data, *, l2: float, draws: int, rng: np.random.Generator) -> Floats:
    """Noise of the L2-Laplace law on a minimizer, which moves by 2/(l2 n) at most (C42)."""
    theta = minimizer(Logistic(l2=l2), data.x, data.y)
    way = rng.normal(size=(draws, _FEATURES))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    far = rng.gamma(_FEATURES, 2 / (l2 * _ROWS * EPSILON), size=(draws, 1))
    return np.asarray(theta + far * way)


def mini_batches(
    data: Data, *, steps: int, multiplier: float, rate: float, runs: int, rng: np.random.Generator
) -> Floats:
    """Gaussian noise on Poisson batches of a twentieth: averages of the second half (C43).

    A simulation in doubles. Gradients have norm 1 at most, so nothing is clipped. All iterates are
    paid for, so their average is free.
    """
    thetas = np.zeros((runs, _FEATURES))
    late = np.zeros_like(thetas)
    expected = _ROWS / 20
    for step in range(steps):
        slopes = expit(thetas @ data.x.T) - data.y
        slopes *= rng.random(slopes.shape, dtype=np.float32) < 0.05
        noise = multiplier * rng.normal(size=thetas.shape)
        thetas -= rate * ((slopes @ data.x + noise) / expected + _OBJECTIVE.l2 * thetas)
        late += thetas * (step >= steps // 2)
    return np.asarray(late / (steps - steps // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMethod:
    """How to train, what is published, and the setting that was stated as the best."""

    trainer: Callable[[Data], Trainer]
    stated: tuple[int, float]
    average: bool = False


METHODS = {
    "thesis, last iterate": TrainingMethod(trainer=thesis, stated=(5, 0.003)),
    "thesis, average": TrainingMethod(trainer=thesis, stated=(5, 0.003), average=True),
    "noise in the last step": TrainingMethod(trainer=last_noise, stated=(1, 0.01)),
    "Laplace on sampled records": TrainingMethod(trainer=sampled_laplace, stated=(1000, 0.03)),
}


def tuned(setting: StudySetting, data: Data, method: TrainingMethod) -> Tuned:
    """The best of 64 combinations by its mean, without paying for the search, then again.

    A quick run takes the stated combination, and does not search.
    """
    train = method.trainer(data)

    def found(steps: int, rate: float, many: int, seed: int) -> Floats:
        runs = train(steps, rate, many, seed)
        return data.excess(runs.average if method.average else runs.last)

    searched = [(steps, rate) for steps in _STEPS for rate in _RATES]
    grid = [method.stated] if setting.quick else searched
    sweep = {key: float(found(*key, 200, setting.seed).mean()) for key in grid}
    steps, rate = min(sweep, key=sweep.__getitem__)
    fresh, error = mean_and_error(
        found(steps, rate, setting.times(2000, quick=400), setting.seed + 1)
    )
    return Tuned(steps=steps, rate=rate, sweep=sweep[steps, rate], fresh=fresh, error=error)


def fitted(data: Data, runs: int) -> Floats:
    """Our estimator as anybody would use it, with exact noise; nothing is tuned."""
    found = []
    for seed in range(runs):
        model = PrivateLogisticRegression(
            epsilon=EPSILON, delta=DELTA, bounds=(-1, 1), classes=(0, 1), l2=_OBJECTIVE.l2,
            fit_intercept=False, rng=seeded_rng(seed),
        )  # fmt: skip
        found.append(np.ravel(model.fit(data.x, data.y.astype(np.int64)).coef_))
    return data.excess(np.array(found))


def mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean of some runs and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
