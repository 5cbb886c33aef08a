"""A mean without bounds: near the truth, one budget, and blind to all but its quantiles."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.noise.random_source import seeded_rng

DATA = {
    "normal": stats.norm(1000, 3),
    "t": stats.t(5),
    "exponential": stats.expon(scale=20),
    "pareto": stats.pareto(5),
    "negative": stats.norm(-5e6, 1e4),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
def test_means_are_near(name, relation):
    rows = 10_000
    public = {"public_rows": rows} if relation is NeighboringRelation.REPLACE_ONE else {}
    mechanism = mean_without_bounds(unit=1e-3, epsilon=1, relation=relation, **public)
    law = DATA[name]
    off = []
    for seed in range(12):
        values = law.rvs(rows, random_state=seed)
        found = mechanism.release(values, rng=seeded_rng(seed))
        assert found.lower <= found.value <= found.upper
        assert found.upper - found.lower < 100 * law.std()
        assert found.std < 0.03 * law.std()
        off.append((found.value - values.mean()) / law.std())
    assert np.abs(off).max() < 0.2
    assert abs(np.mean(off)) < 0.07


def test_one_budget_pays_for_all():
    for public in ({}, {"public_rows": 100, "relation": NeighboringRelation.REPLACE_ONE}):
        mechanism = mean_without_bounds(unit=1, epsilon=1, **public)
        assert mechanism.guarantee.epsilon() == pytest.approx(1.0, rel=1e-9)
        assert mechanism.certify().holds


def test_the_noise_of_the_sum_has_the_stated_scale():
    """The noise pays for half the span (a row more or less), or for all of it (a row replaced)."""
    values = np.repeat([-1.0, 1.0], 5000)
    secret = mean_without_bounds(unit=0.01, epsilon=1)
    found = secret.release(values, rng=seeded_rng(3))
    share = 9 / 16
    assert found.std == pytest.approx(
        math.sqrt(2) * (found.upper - found.lower) / 2 / share / 10_000, rel=0.02
    )
    public = mean_without_bounds(
        unit=0.01, epsilon=1, public_rows=10_000, relation=NeighboringRelation.REPLACE_ONE
    )
    found = public.release(values, rng=seeded_rng(3))
    assert found.std == pytest.approx(
        math.sqrt(2) * (found.upper - found.lower) / (5 / 8) / 10_000, rel=1e-6
    )


def test_one_far_row_is_clipped():
    values = np.append(np.random.default_rng(1).normal(0, 1, 5000), 1e300)
    assert (
        abs(mean_without_bounds(unit=1e-3, epsilon=2).release(values, rng=seeded_rng(2)).value)
        < 0.3
    )


def test_values_far_from_zero_and_close_together():
    values = 1e15 + np.arange(4000) / 8
    found = mean_without_bounds(unit=1, epsilon=4).release(values, rng=seeded_rng(2))
    assert found.value == pytest.approx(values.mean(), rel=1e-6)
    same = mean_without_bounds(unit=1, epsilon=4).release(np.full(4000, 7.25), rng=seeded_rng(2))
    assert same.value == pytest.approx(7.25, rel=1e-3)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="rows"):
        mean_without_bounds(unit=1, epsilon=1, public_rows=5)
    with pytest.raises(InvalidArgument, match="rows"):
        mean_without_bounds(unit=1, epsilon=1, relation=NeighboringRelation.REPLACE_ONE)
    with pytest.raises(InvalidArgument, match="tail"):
        mean_without_bounds(unit=1, epsilon=1, tail=0.5)
    with pytest.raises(Unsupported):
        _ = mean_without_bounds(unit=1, epsilon=1).std
