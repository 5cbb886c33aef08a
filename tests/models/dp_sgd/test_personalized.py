"""Descent with a budget for each level: limits kept, shares of records bounded in integers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd.losses import Logistic
from discreet.models.dp_sgd.personalized import descend_personalized, plan_personalized
from discreet.models.dp_sgd.train import FeatureMap, SlopeGrid, TrainingRun, descend
from discreet.noise.random_source import seeded_rng

LIMITS = {"open": discreet.approx_dp(3, 1e-5), "strict": discreet.approx_dp(1, 1e-5)}
PEOPLE = {"open": 2000, "strict": 2000}
RUN = TrainingRun(
    objective=Logistic(l2=0.0),
    rate=Fraction(1, 16),
    steps=40,
    noise=Fraction(1),
    clip=1.0,
    rows=1.0,
    learning_rate=1.0,
    momentum=0.5,
    average=0.5,
)


def data(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-6 * x[:, 0] + 3 * x[:, 1]))).astype(float)
    mapped = FeatureMap.of((-1, 1), columns=3, names=None, intercept=True, row_norm=2.0)
    return mapped.steps(x), y, np.where(np.arange(n) % 2, "open", "strict")


@pytest.fixture(scope="module", params=["sampling", "clipping"])
def plan(request):
    return plan_personalized(RUN, LIMITS, PEOPLE, method=request.param)


def test_every_level_spends_what_it_may(plan):
    spent = plan.guarantee.epsilons(1e-5)
    assert 0.97 < spent["strict"] <= 1
    assert 2.97 < spent["open"] <= 3
    assert plan.rates["strict"] < plan.rates["open"] or plan.clips["strict"] < 1
    assert plan.rates["open"] == RUN.rate
    # The whole noise of the strictest level would be more.
    one = plan_personalized(RUN, {"open": LIMITS["strict"]}, {"open": 1}, method="sampling")
    assert plan.run.noise < one.run.noise


def test_a_record_moves_the_sum_by_no_more_than_its_level_may(plan):
    """Without noise: the sum with and without each record, in steps, for both levels."""
    steps, y, levels = data(40)
    calm = replace(
        plan,
        rates=dict.fromkeys(plan.rates, Fraction(1)),
        run=replace(
            plan.run, steps=1, rate=Fraction(1), rows=1.0, average=0.0, noise=Fraction(1, 1 << 24)
        ),
    )
    grid = SlopeGrid(clip=calm.run.clip)
    # The slope at zero is a half: long rows are cut, by more where the level is stricter.
    whole = descend_personalized(steps, y, levels, plan=calm, rng=seeded_rng(1))
    longest = dict.fromkeys(plan.rates, 0.0)
    for i in range(40):
        kept = np.arange(40) != i
        left = descend_personalized(
            steps[kept], y[kept], levels[kept], plan=calm, rng=seeded_rng(1)
        )
        moved = float(np.linalg.norm((whole - left) / grid.unit))
        longest[levels[i]] = max(longest[levels[i]], moved)
    for name, length in longest.items():
        most = grid.sensitivity * float(plan.clips[name])
        assert length <= most * (1 + 1e-9)
        if plan.clips[name] < 0.5:
            assert length > 0.9 * most


def test_levels_take_part_at_their_rates(plan):
    """Rows of one level only, all alike: the noiseless step counts those that were drawn."""
    steps = np.tile(data(1)[0], (20_000, 1))
    run = replace(plan.run, steps=1, rows=1.0, average=0.0, noise=Fraction(1, 1 << 24))
    for name in plan.rates:
        calm = replace(plan, run=run)
        theta = descend_personalized(
            steps, np.zeros(20_000), np.full(20_000, name), plan=calm, rng=seeded_rng(3)
        )
        every = replace(calm, rates=dict.fromkeys(plan.rates, Fraction(1)))
        most = descend_personalized(
            steps, np.zeros(20_000), np.full(20_000, name), plan=every, rng=seeded_rng(3)
        )
        share = float(theta[0] / most[0])
        rate = float(plan.rates[name])
        assert share == pytest.approx(rate, abs=6 * (rate / 20_000) ** 0.5)


def test_it_learns_and_with_one_level_it_is_plain_descent(plan):
    steps, y, levels = data()
    theta = descend_personalized(steps, y, levels, plan=plan, rng=seeded_rng(2))
    margins = steps @ theta
    assert ((margins > 0) == y).mean() > 0.8
    alone = plan_personalized(
        replace(RUN, rate=Fraction(1)), {"all": LIMITS["open"]}, {"all": 4000}, method="sampling"
    )
    tame = replace(alone, run=replace(alone.run, noise=Fraction(1, 1 << 24)))
    same = descend(steps, y, run=tame.run, rng=seeded_rng(5))
    found = descend_personalized(steps, y, np.full(4000, "all"), plan=tame, rng=seeded_rng(5))
    assert found == pytest.approx(same, abs=1e-4)


def test_bad_input_is_named(plan):
    steps, y, levels = data(10)
    with pytest.raises(InvalidArgument, match="levels"):
        descend_personalized(steps, y, levels[1:], plan=plan, rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="same levels"):
        plan_personalized(RUN, LIMITS, {"open": 1}, method="sampling")
    with pytest.raises(InvalidArgument, match="method"):
        plan_personalized(RUN, LIMITS, PEOPLE, method="other")
    with pytest.raises(Unsupported, match="approx"):
        plan_personalized(RUN, {"open": discreet.pure_dp(1)}, {"open": 1}, method="sampling")
    replaced = discreet.approx_dp(1, 1e-5, relation=NeighboringRelation.REPLACE_ONE)
    with pytest.raises(Unsupported, match="ADD_REMOVE"):
        plan_personalized(RUN, {"open": replaced}, {"open": 1}, method="sampling")
