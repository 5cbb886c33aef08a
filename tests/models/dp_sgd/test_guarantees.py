"""What private gradient descent is worth at a fixed budget (E11), and whether samples refute it."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.audit._attack import Finding, attack
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import gaussian
from discreet.models.dp_sgd import PrivateLogisticRegression, train
from discreet.models.dp_sgd.budget import TrainingBudget, noise_for, training_cost
from discreet.models.dp_sgd.losses import Floats, Huber, Logistic
from discreet.models.dp_sgd.train import (
    FEATURE_BITS,
    FeatureMap,
    SlopeGrid,
    Steps,
    TrainingRun,
    descend,
)
from discreet.noise.random_source import seeded_rng

RATE = Fraction(round(0.05 * 2**32), 2**32)
BUDGET = TrainingBudget.of(
    relation=NeighboringRelation.ADD_REMOVE, epsilon=1, delta=1e-6, rho=None, mu=None
)


def e11() -> tuple[Floats, Floats, Logistic, float]:
    """Synthetic logistic data, n=5000, p=10, rows of L1 norm 1, ridge 1e-3; and the best loss."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5000, 10))
    x /= np.abs(x).sum(axis=1, keepdims=True)
    truth = rng.standard_normal(10)
    truth *= 45 / np.linalg.norm(truth)
    y = (rng.random(5000) < 1 / (1 + np.exp(-x @ truth))).astype(float)
    loss = Logistic(l2=1e-3)
    best = minimize(
        lambda theta: loss.mean_loss(theta, x, y),
        np.zeros(10),
        jac=lambda theta: loss.mean_gradient(theta, x, y),
        tol=1e-12,
    )
    assert 12 < np.linalg.norm(best.x) < 15
    assert 0.25 < loss.mean_loss(np.zeros(10), x, y) - best.fun < 0.31
    return x, y, loss, best.fun


def excess(runs: int, *, pace: float, times: int = 1, average: float = 0.0) -> Floats:
    """Excess loss of fresh runs with the budget's noise, or a multiple of it."""
    x, y, loss, best = e11()
    mapped = FeatureMap.of((-1, 1), columns=10, names=None, intercept=False, row_norm=1.0)
    run = TrainingRun(
        objective=loss,
        rate=RATE,
        steps=200,
        noise=times * noise_for(BUDGET, rate=RATE, steps=200),
        clip=1.0,
        rows=5000.0,
        learning_rate=pace,
        average=average,
    )
    rows = mapped.steps(x)
    return np.array(
        [
            loss.mean_loss(descend(rows, y, run=run, rng=seeded_rng(seed)), x, y) - best
            for seed in range(runs)
        ]
    )


@pytest.mark.slow
def test_gaussian_descent_is_useful_at_epsilon_one() -> None:
    """E11, C43: below .005 at learning rate 8, below .01 with doubled noise; .09 at rate 1."""
    assert excess(40, pace=8.0).mean() < 0.005
    assert excess(40, pace=8.0, average=0.5).mean() < 0.003
    assert excess(40, pace=8.0, times=2, average=0.5).mean() < 0.01
    assert 0.05 < excess(30, pace=1.0).mean() < 0.15


@pytest.mark.slow
def test_without_any_choice_it_is_as_good() -> None:
    x, y, loss, best = e11()
    found = [
        loss.mean_loss(
            PrivateLogisticRegression(
                epsilon=1,
                delta=1e-6,
                bounds=(-1, 1),
                classes=(0, 1),
                l2=1e-3,
                fit_intercept=False,
                rng=seeded_rng(seed),
            )
            .fit(x, y)
            .theta_,
            x,
            y,
        )
        - best
        for seed in range(30)
    ]
    assert np.mean(found) < 0.005


# Its slope at zero is the longest there is for a target of one.
TINY = TrainingRun(
    objective=Huber(huber_threshold=1.0),
    rate=Fraction(1),
    steps=1,
    noise=Fraction(3, 4),
    clip=0.5,
    rows=1.0,
    learning_rate=1.0,
)
# One record that pulls as hard as it can, against no record at all.
ROW = np.full((1, 1), 2**FEATURE_BITS, dtype=np.int16)
NONE = (ROW[:0], np.zeros(0))


def audited(run: TrainingRun) -> Finding:
    """Try to refute the claimed cost of a run from its outputs."""
    bits = seeded_rng(7)

    def draw(data: tuple[Steps, Floats], n: int) -> Any:
        return np.array([descend(*data, run=run, rng=bits)[0] for _ in range(n)])

    claim = training_cost(
        relation=NeighboringRelation.ADD_REMOVE, rate=run.rate, steps=run.steps, noise=run.noise
    )
    return attack(
        draw, (ROW, np.ones(1)), NONE, claimed=claim, samples=700, failure_probability=1e-9
    )


def half_the_noise(run: TrainingRun) -> Any:
    return gaussian(
        sensitivity=SlopeGrid(clip=run.clip).sensitivity, mu=2 / run.noise, domain="integers"
    )


def everyone(*_: object, rows: int, columns: int, rng: object) -> Any:
    return np.full((rows, columns), 1, dtype=np.uint8)


def unclipped(_: SlopeGrid, steps: Steps) -> Floats:
    return np.full(len(steps), 2.0**40)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "owner", "name", "mistake"),
    [
        (TINY, TrainingRun, "mechanism", property(half_the_noise)),
        (replace(TINY, rate=Fraction(1, 8)), train, "packed_bernoulli", everyone),
        (replace(TINY, clip=0.1), SlopeGrid, "caps", unclipped),
    ],
    ids=["half the noise", "everyone in every sample", "no clipping"],
)
def test_samples_refute_mistakes_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, run: TrainingRun, owner: Any, name: str, mistake: Any
) -> None:
    assert not audited(run).broken
    monkeypatch.setattr(owner, name, mistake)
    assert audited(run).broken
