"""E11: what the thesis's private gradient descent learns at epsilon 1, and what others do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import expit

from discreet.accounting.guarantee import Guarantee
from discreet.core.events import GaussianNoise
from discreet.models.sgd.laplace import GradientBound, final_noise_scale
from discreet.models.sgd.objectives import Logistic
from discreet.models.sgd.published import PublishedLaplaceDescent
from discreet.models.sgd.reference import Runs, minimiser, simulate
from discreet.models.sgd.schedule import PowerSchedule
from discreet.noise.law import Floats
from discreet.studies.checks import Claims
from discreet.studies.study import Check, Figure, Findings, Line, Setting, Table

_ROWS, _FEATURES = 5000, 10
_STRENGTH = 55.5
"""Norm of the coefficients that labels are drawn with: the minimiser then is as far as stated."""
_OBJECTIVE = Logistic(l2=1e-3)
_BOUND = GradientBound(dimension=_FEATURES, diameter=2.0)
"""Rows have L1 norm 1, and so has every gradient at most."""
_STEPS = (1, 2, 5, 10, 30, 100, 300, 1000)
_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0)
_SIZES = (10, 100, 1000)
_EPSILON = 1.0
_SMALL = 1e-6
_Trainer = Callable[[int, float, int, int], Runs]
"""From steps, rate, repetitions and seed to runs."""
_STANDS_IN = "The data set is not at hand; one with the same norm and excess is made up."
_USELESS = (
    "The thesis does not ask what is learned: at a fixed epsilon its scheme is no better than "
    "predicting 0."
)


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


def made_up(setting: Setting) -> Data:
    """Normal rows of L1 norm 1, labels from a logistic model."""
    rng = setting.rng("E11")
    x = rng.normal(size=(_ROWS, _FEATURES))
    x /= np.abs(x).sum(axis=1, keepdims=True)
    truth = rng.normal(size=_FEATURES)
    truth *= _STRENGTH / np.linalg.norm(truth)
    y = (rng.random(_ROWS) < expit(x @ truth)).astype(np.float64)
    best = minimiser(_OBJECTIVE, x, y)
    return Data(x=x, y=y, best=best, least=_OBJECTIVE.mean_loss(best, x, y))


# ── methods ───────────────────────────────────────────────────────────────────────────────────


def thesis(data: Data) -> _Trainer:
    """Theorem 7.6.1 at a constant rate: for the last iterate; the average costs more (M27)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> Runs:
        return PublishedLaplaceDescent(
            schedule=PowerSchedule(start=rate), sensitivity=2.0, epsilon=_EPSILON
        ).simulate(_OBJECTIVE, data.x, data.y, steps=steps, repetitions=repetitions, seed=seed)

    return train


def last_noise(data: Data) -> _Trainer:
    """The same guarantee with noise in the last step only (C42)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> Runs:
        rates = np.full(steps, rate)
        scales = np.zeros(steps)
        scales[-1] = final_noise_scale(rates, bound=_BOUND, epsilon=_EPSILON) / rate
        return _simulated(data, rates, scales, repetitions, seed)

    return train


def sampled_laplace(data: Data) -> _Trainer:
    """Constant noise for the whole run, steps on one secret record each (C37)."""

    def train(steps: int, rate: float, repetitions: int, seed: int) -> Runs:
        each = math.log1p(_ROWS * math.expm1(_EPSILON / steps))
        scales = np.full(steps, 2.0 / each)
        return _simulated(data, np.full(steps, rate), scales, repetitions, seed)

    return train


def _simulated(data: Data, rates: Floats, scales: Floats, repetitions: int, seed: int) -> Runs:
    return simulate(
        _OBJECTIVE, data.x, data.y, rates=rates, scales=scales, repetitions=repetitions, seed=seed
    )


def output_noise(data: Data, *, l2: float, draws: int, rng: np.random.Generator) -> Floats:
    """Noise of the L2-Laplace law on a minimiser, which moves by 2/(l2 n) at most (C42)."""
    theta = minimiser(Logistic(l2=l2), data.x, data.y)
    way = rng.normal(size=(draws, _FEATURES))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    far = rng.gamma(_FEATURES, 2 / (l2 * _ROWS * _EPSILON), size=(draws, 1))
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
        late += thetas * (2 * step >= steps)
    return np.asarray(late / (steps - (steps + 1) // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How to train, what is published, and the setting that was stated as the best."""

    trainer: Callable[[Data], _Trainer]
    stated: tuple[int, float]
    average: bool = False


_METHODS = {
    "thesis, last iterate": Method(trainer=thesis, stated=(5, 0.003)),
    "thesis, average": Method(trainer=thesis, stated=(5, 0.003), average=True),
    "noise in the last step": Method(trainer=last_noise, stated=(1, 0.01)),
    "Laplace on sampled records": Method(trainer=sampled_laplace, stated=(1000, 0.03)),
}


def tuned(setting: Setting, data: Data, method: Method) -> Tuned:
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
    mean, error = _mean(found(steps, rate, setting.times(2000, quick=400), setting.seed + 1))
    return Tuned(steps=steps, rate=rate, sweep=sweep[steps, rate], fresh=mean, error=error)


# ── the experiment ────────────────────────────────────────────────────────────────────────────


def learning(setting: Setting) -> Findings:
    """Logistic regression at epsilon 1, tuned without paying for it: upper bounds on quality."""
    data = made_up(setting)
    found = {name: tuned(setting, data, method) for name, method in _METHODS.items()}
    fixed = _fixed(setting, data)
    others = _others(setting, data)
    return Findings(
        checks=(
            *_facts(data),
            *_tuned_checks(data, found),
            *_fixed_checks(fixed),
            *_other_checks(others),
            *_accounting(),
        ),
        tables=(_table(data, found, fixed, others),),
        figures=(_figure(data, fixed, others),),
    )


def _facts(data: Data) -> list[Check]:
    stand_in = Claims(source="E11", why=_STANDS_IN)
    return [
        stand_in.number("E11/norm", "norm of the minimiser", expected=13.4,
                        got=float(np.linalg.norm(data.best)), absolute=0.15),
        stand_in.number("E11/nothing", "excess loss of predicting 0", expected=0.2813,
                        got=data.nothing, absolute=0.002),
    ]  # fmt: skip


def _tuned_checks(data: Data, found: dict[str, Tuned]) -> list[Check]:
    useless = Claims(source="E11, M27 to M29", why=_USELESS)
    made = [
        useless.number(
            f"E11/{name}", f"tuned excess less that of predicting 0, {name}", expected=0.0,
            got=found[name].fresh - data.nothing, absolute=0.001,
        )
        for name in ("thesis, last iterate", "thesis, average", "noise in the last step")
    ]  # fmt: skip
    sampled = found["Laplace on sampled records"]
    return [
        *made,
        Claims(source="C37, E11", why="The thesis leaves out that a step sees one record of n.")
        .number("E11/Laplace on sampled records", "tuned excess", expected=0.2645,
                got=sampled.fresh, absolute=0.006),
    ]  # fmt: skip


def _fixed(setting: Setting, data: Data) -> dict[str, dict[int, float]]:
    """The largest admissible rate, 1, for several numbers of steps."""
    runs = setting.times(400, quick=40)
    trainers = {"thesis": thesis(data), "noise in the last step": last_noise(data)}
    return {
        name: {
            steps: float(data.excess(train(steps, 1.0, runs, setting.seed + 2).last).mean())
            for steps in (1, *_SIZES)
        }
        for name, train in trainers.items()
    }


def _fixed_checks(fixed: dict[str, dict[int, float]]) -> list[Check]:
    stated = {
        "thesis": {1: 0.39, 10: 25.0, 100: 1.1e4, 1000: 1e7},
        "noise in the last step": {10: 7.4, 100: 435.0, 1000: 4.6e4},
    }
    made: list[Check] = []
    for name, values in stated.items():
        made += Claims(source="E11", why=_STANDS_IN).numbers(
            f"E11/rate 1, {name}", f"excess at rate 1, {name}",
            expected={f"{steps} steps": value for steps, value in values.items()},
            got={f"{steps} steps": fixed[name][steps] for steps in values}, relative=0.3,
        )  # fmt: skip
    useless = Claims(source="M29, C42", why="Noise before the last step only hurts.")
    return [
        *made,
        useless.at_most(
            "E11/intermediate noise", "largest ratio of noise in the last step over noise in all",
            expected=0.5, got=max(fixed["noise in the last step"][s] / fixed["thesis"][s]
                                  for s in _SIZES)),
    ]  # fmt: skip


def _others(setting: Setting, data: Data) -> dict[str, tuple[float, float]]:
    """Excess and its standard error of methods with a guarantee for what they publish."""
    rng = setting.rng("E11 others")
    runs = setting.times(60, quick=10)
    fewer = setting.times(60, quick=5)
    settings = {
        "Gaussian mini-batches": (200, 3.2, 8.0, runs),
        "the same, twice the noise": (200, 6.4, 8.0, runs),
        "the same, 600 steps": (600, 5.31, 8.0, fewer),
        "the same, rate 1": (200, 3.2, 1.0, fewer),
    }
    made = {
        name: _mean(data.excess(
            mini_batches(data, steps=steps, multiplier=z, rate=rate, runs=many, rng=rng)
        ))
        for name, (steps, z, rate, many) in settings.items()
    }  # fmt: skip
    noisy = [
        _mean(data.excess(output_noise(data, l2=l2, draws=300, rng=rng)))
        for l2 in (1e-3, 3e-3, 0.01, 0.03)
    ]
    return {"noise on the minimiser": min(noisy), **made}


def _mean(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


def _other_checks(others: dict[str, tuple[float, float]]) -> list[Check]:
    stated = {
        "noise on the minimiser": (0.030, 0.3),
        "Gaussian mini-batches": (0.0019, 0.3),
        "the same, twice the noise": (0.0065, 0.3),
        "the same, 600 steps": (0.0021, 0.3),
        "the same, rate 1": (0.093, 0.15),
    }
    better = Claims(source="C42, C43, E11", why=f"{_STANDS_IN} Not in the thesis: what to beat.")
    must = Claims(source="E11, C43", why="The thesis calls convergence under privacy unstudied.")
    return [
        *(
            better.number(f"E11/{name}", f"excess, {name}", expected=value, got=others[name][0],
                          relative=tolerance)
            for name, (value, tolerance) in stated.items()
        ),
        must.at_most("E11/must", "excess of Gaussian mini-batches", expected=0.005,
                     got=others["Gaussian mini-batches"][0]),
        must.at_most("E11/must, replace-one", "the same with twice the noise", expected=0.01,
                     got=others["the same, twice the noise"][0]),
    ]  # fmt: skip


def _accounting() -> list[Check]:
    """What the mini-batches cost, by their loss distribution: add or remove a record."""
    stated = {(3.2, 0.05, 200): 1.02, (1.0, 0.05, 50): 3.21, (0.7, 0.3, 10): 14.5,
              (5.31, 0.05, 600): 1.06}  # fmt: skip
    made = Claims(
        source="C43", why="Computed on a coarse grid, and so above the exact epsilon by up to 6 %."
    )
    keys = {f"z {z:g}, q {q:g}, {steps} steps": (z, q, steps) for z, q, steps in stated}
    return list(
        made.numbers(
            "E11/epsilon", "epsilon of Gaussian mini-batches at delta 1e-6",
            expected={name: stated[key] for name, key in keys.items()},
            got={name: mini_batch_epsilon(*key) for name, key in keys.items()}, relative=0.065,
        )
    )  # fmt: skip


def mini_batch_epsilon(multiplier: float, rate: float, steps: int) -> float:
    """The epsilon of Poisson batches with Gaussian noise, at delta 1e-6."""
    step = Guarantee(GaussianNoise(Fraction(str(multiplier)))).sampled(rate=Fraction(str(rate)))
    return (step * steps).epsilon(_SMALL)


def _table(
    data: Data,
    found: dict[str, Tuned],
    fixed: dict[str, dict[int, float]],
    others: dict[str, tuple[float, float]],
) -> Table:
    return Table(
        id="E11/excess",
        title="Excess loss of logistic regression at epsilon 1",
        columns=("method", "steps", "rate", "excess loss", "standard error"),
        rows=(
            ("predicting 0", None, None, data.nothing, 0.0),
            *(
                (f"{name}, largest rate", steps, 1.0, value, None)
                for name, row in fixed.items()
                for steps, value in row.items()
            ),
            *((f"{name}, tuned", t.steps, t.rate, t.fresh, t.error) for name, t in found.items()),
            *((name, None, None, value, error) for name, (value, error) in others.items()),
        ),
        note="5000 made-up records, 10 features; tuned without paying for it, then run again. The "
        "average of the thesis is not private at epsilon 1; delta 1e-6 for Gaussian noise.",
    )


def _figure(
    data: Data, fixed: dict[str, dict[int, float]], others: dict[str, tuple[float, float]]
) -> Figure:
    x = tuple(float(steps) for steps in (1, *_SIZES))
    level = others["Gaussian mini-batches"][0]
    return Figure(
        id="E11/excess",
        title="Excess loss of private logistic regression at epsilon 1",
        x="steps",
        y="excess loss",
        lines=(
            *(
                Line(label=f"{name}, rate 1", x=x, y=tuple(row[int(steps)] for steps in x))
                for name, row in fixed.items()
            ),
            Line(label="predicting 0", x=(x[0], x[-1]), y=(data.nothing, data.nothing)),
            Line(label="Gaussian mini-batches, 200 steps", x=(x[0], x[-1]), y=(level, level)),
        ),
        note="means of runs on 5000 made-up records; delta 1e-6 for Gaussian noise",
        log_x=True,
        log_y=True,
    )
