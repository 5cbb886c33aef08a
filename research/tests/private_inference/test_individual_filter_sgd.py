"""Budgets spent gradient by gradient: nobody's sum of squares passes the own limit."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.dp_sgd.losses import Huber, Logistic, Softmax, Squared
from discreet.models.dp_sgd.train import FeatureMap, SlopeGrid, TrainingRun, descend
from discreet.noise.random_source import seeded_rng
from discreet_studies.private_inference.individual_filter_sgd import Contributions, descend_filtered

RUN = TrainingRun(
    objective=Logistic(l2=0.0),
    rate=Fraction(1),
    steps=20,
    noise=Fraction(8),
    clip=0.5,
    rows=200.0,
    learning_rate=2.0,
    momentum=0.0,
    average=0.0,
)


def data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    mapped = FeatureMap.of((-1, 1), columns=3, names=None, intercept=True, row_norm=2.0)
    return mapped.steps(x), (x[:, 0] + 0.2 * rng.normal(size=n) > 0).astype(float)


@pytest.mark.parametrize(
    "objective", [Logistic(l2=0.0), Squared(weight=1.0), Softmax(classes=2, intercept=True)]
)
def test_no_record_passes_its_budget(objective):
    """Adaptive parameters, all records: sums of squared lengths, counted in exact integers."""
    steps, y = data(60)
    rng = np.random.default_rng(1)
    run = replace(RUN, objective=objective)
    full = float(SlopeGrid(clip=run.clip).sensitivity) ** 2
    budgets = rng.uniform(0, 6, 60) * full
    budgets[:3] = 0
    shares = Contributions(steps, y, run=run, budgets=budgets)
    alone = [
        Contributions(steps[i : i + 1], y[i : i + 1], run=run, budgets=budgets[i : i + 1])
        for i in range(60)
    ]
    spent = [0] * 60
    for _ in range(25):
        theta = rng.normal(size=objective.dimension(4)) * 3
        parts = [each.sum(theta) for each in alone]
        # What a record contributes is a function of itself alone, so the parts make the sum.
        assert (shares.sum(theta) == np.sum(parts, axis=0)).all()
        for i, part in enumerate(parts):
            spent[i] += sum(int(c) ** 2 for c in part)
    assert all(s <= b for s, b in zip(spent, budgets, strict=True))
    assert spent[:3] == [0, 0, 0]
    # Budgets are used, too.
    assert np.median(np.array(spent[3:], dtype=float) / budgets[3:]) > 0.9
    assert (shares.left >= 0).all()


def test_with_large_budgets_it_is_plain_descent():
    steps, y = data()
    tame = replace(RUN, noise=Fraction(1, 1 << 20))
    plain = descend(steps, y, run=tame, rng=seeded_rng(1))
    found = descend_filtered(steps, y, np.full(200, 1e18), run=tame, rng=seeded_rng(1))
    assert found == pytest.approx(plain, abs=1e-4)


def test_limits_are_in_rho():
    """A limit of k full steps stops a record with the longest gradients after k of them."""
    steps, _ = data(1)
    y = np.ones(1)  # at zero its residual has the full slope
    run = replace(RUN, objective=Huber(huber_threshold=1.0), clip=2.0**-10, rows=1.0)
    full = float(SlopeGrid(clip=run.clip).sensitivity) ** 2
    rho = 3 / (2 * float(run.noise) ** 2)  # three times clip^2 / (2 (noise clip)^2)
    worth = rho * 2 * float(run.noise) ** 2 * full
    shares = Contributions(steps, y, run=run, budgets=np.array([worth]))
    lengths = [float(np.linalg.norm(shares.sum(np.zeros(4)))) for _ in range(6)]
    assert lengths[:2] == pytest.approx([full**0.5] * 2, rel=1e-2)
    assert max(lengths[4:]) < 0.2 * full**0.5


def test_bad_input_is_named():
    steps, y = data(5)
    with pytest.raises(InvalidArgument, match="rate"):
        descend_filtered(
            steps, y, np.ones(5), run=replace(RUN, rate=Fraction(1, 2)), rng=seeded_rng(1)
        )
    with pytest.raises(InvalidArgument, match="one rho"):
        descend_filtered(steps, y, np.ones(4), run=RUN, rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="one rho"):
        descend_filtered(steps, y, -np.ones(5), run=RUN, rng=seeded_rng(1))
