"""Intervals for a proportion: exact coverage, computed for every share, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.intervals import interval as law
from discreet.intervals._coverage import coverage
from discreet.intervals._proportion import proportion_interval
from discreet.noise.random_source import seeded_rng


def covered(plan, share, *, level=None):
    """The exact coverage, by summing over all counts and all noise that matters."""
    noise = plan.noise.integers.noise
    reach = noise.interval(1 - 1e-13)[1]
    counts = np.arange(-reach, plan.public_rows + reach + 1)
    low, high = plan.ends(counts)
    k = np.arange(plan.public_rows + 1)
    law = noise.pmf(counts[:, None] - k) @ stats.binom.pmf(k, plan.public_rows, share)
    return float(law[(low <= share) & (share <= high)].sum())


@pytest.mark.parametrize("rows", [1, 2, 7, 30])
@pytest.mark.parametrize("epsilon", [0.2, 1, 6])
@pytest.mark.parametrize("delta", [0, 1e-4])
def test_covers_at_every_share_exactly(rows, epsilon, delta):
    plan = proportion_interval(public_rows=rows, epsilon=epsilon, delta=delta, confidence=0.9)
    found = [covered(plan, share) for share in np.linspace(0, 1, 41)]
    assert min(found) >= 0.9 - 1e-12
    assert min(found) <= 0.98  # not for being far too wide


def test_an_interval_that_forgets_the_noise_is_found_out():
    plan = proportion_interval(public_rows=30, epsilon=0.2, confidence=0.9)
    sharp = proportion_interval(public_rows=30, epsilon=50, confidence=0.9)
    counts = np.arange(-200, 231)
    low, high = sharp.ends(counts)
    k = np.arange(31)
    law = plan.noise.integers.noise.pmf(counts[:, None] - k) @ stats.binom.pmf(k, 30, 0.3)
    assert law[(low <= 0.3) & (high >= 0.3)].sum() < 0.7


def test_without_noise_it_is_clopper_and_pearsons():
    plan = proportion_interval(public_rows=40, epsilon=60)
    for count in (0, 1, 13, 40):
        same = stats.binomtest(count, 40).proportion_ci(0.95, method="exact")
        low, high = plan.ends([count])
        assert (low[0], high[0]) == pytest.approx((same.low, same.high), abs=1e-6)


def test_release_and_its_words():
    plan = proportion_interval(public_rows=50, epsilon=1)
    column = np.arange(50) < 20
    found = plan.release(column, rng=seeded_rng(1))
    assert found == plan.release(column.astype(float), rng=seeded_rng(1))
    assert 0 <= found.low <= found.high <= 1
    assert found.guaranteed == found.nominal == 0.95
    assert plan.guarantee.epsilon() == 1
    assert plan.guarantee.relation is NeighboringRelation.REPLACE_ONE
    assert plan.certify().holds
    assert round(found.value * 50) == pytest.approx(found.value * 50)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4])
def test_a_forecast_is_the_width(share):
    plan = proportion_interval(public_rows=200, epsilon=0.5)
    draws = {"draw": lambda g, size: (g.random(size) < share) * 1.0, "truth": share}
    found = coverage(plan.simulate, **draws, rows=200, confidence=0.95, trials=2000)
    said = plan.forecast(share)
    assert found.width == pytest.approx(said.width, rel=0.08)
    assert found.holds() or found.bounds()[1] > 0.95
    assert found.quartiles[1] <= said.largest


def test_many_rows_take_no_time():
    plan = proportion_interval(public_rows=10_000_000, epsilon=0.01)
    low, high = plan.ends([3_000_000])
    assert low[0] < 0.3 < high[0]
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * (0.21 / 1e7) ** 0.5, rel=0.2)


def test_wrong_arguments():
    with pytest.raises(InvalidArgument, match="public_rows must be at least 1"):
        proportion_interval(public_rows=0, epsilon=1)
    with pytest.raises(InvalidArgument, match="confidence must lie"):
        proportion_interval(public_rows=5, epsilon=1, confidence=1)
    plan = proportion_interval(public_rows=3, epsilon=1)
    with pytest.raises(OutOfDomain, match="3 numbers"):
        plan.release([1, 0])
    with pytest.raises(OutOfDomain, match="one for each row"):
        plan.release(np.array([[1], [1], [0]]))
    assert plan.release([True, False, True], rng=seeded_rng(1)).nominal == 0.95
    with pytest.raises(InvalidArgument, match="share must lie"):
        plan.forecast(1.5)


@pytest.mark.parametrize("rows", [10, 10**6, 10**10])
@pytest.mark.parametrize("share", [1e-7, 0.3, 0.5])
def test_the_binomial_law_is_exact_for_many_rows(rows, share):
    counts, found, left = law.binomial(rows, share)
    kept = found[1:] > 1e-200
    ratio = (found[1:] / np.maximum(found[:-1], 1e-300))[kept]
    exact = ((rows - counts[:-1]) / counts[1:] * share / (1 - share))[kept]
    assert ratio == pytest.approx(exact, rel=1e-9)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert left < 1e-12


@pytest.mark.parametrize("share", [0, 1])
def test_the_binomial_law_of_a_sure_thing(share):
    counts, found, _ = law.binomial(7, share)
    assert counts[found == 1].tolist() == [7 * share]
    assert found.sum() == 1
