"""Intervals for quantiles: failure computed exactly for hard laws, guarantee, bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.intervals._coverage import coverage
from discreet.intervals._quantile import _rank, quantile_interval
from discreet.noise.random_source import seeded_rng

UNIT = {"lower": 0, "upper": 1}


def fails(plan, law, quantile):
    """How often the lower end is above the quantile: exact choice, rows of a law on few codes."""
    end = plan.ends[0]
    codes, weights = law
    below = sum(w for code, w in zip(codes, weights, strict=True) if code <= quantile)
    made_up = np.random.default_rng(1)
    points = np.arange(plan.column.span + 1)
    found = []
    for _ in range(400):
        rows = np.sort(made_up.choice(codes, plan.public_rows, p=weights))
        low = np.searchsorted(rows, points)
        high = np.searchsorted(rows, points, side="right")
        far = np.maximum(np.maximum(low - end.rank, end.rank - high), 0)
        weight = np.exp(-float(end.rate) * far)
        found.append(weight[points > quantile].sum() / weight.sum())
    assert below >= plan.quantile
    return float(np.mean(found))


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 4)])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_narrow_law_far_from_the_upper_bound_is_the_hard_one(quantile, epsilon):
    plan = quantile_interval(
        quantile, **UNIT, public_rows=400, epsilon=epsilon, granularity=2.0**-8
    )
    q = float(quantile)
    # All rows at two neighboring points low down: everything above is empty, and there is much.
    hard = fails(plan, ([0, 1], [q, 1 - q]), 0)
    assert 0 < hard <= 0.025
    assert fails(plan, ([100, 101], [q, 1 - q]), 100) <= 0.025


def test_the_rank_is_the_largest_that_holds():
    rank = _rank(256, 400, 0.5, 0.5, 0.025)
    counts = np.arange(401)
    law = stats.binom.pmf(counts, 400, 0.5)

    def failed(target):
        odds = 256 * np.exp(np.minimum(-0.5 * (counts - target), 600))
        return float(law @ (odds / (1 + odds)))

    assert failed(rank) <= 0.025 < failed(rank + 1)
    assert _rank(256, 3, 0.5, 0.5, 0.025) is None


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_covers_and_is_as_wide_as_forecast(quantile):
    plan = quantile_interval(quantile, **UNIT, public_rows=500, epsilon=2, std=0.1)
    truth = float(stats.norm(0.5, 0.1).ppf(quantile))
    draws = {"draw": lambda g, size: g.normal(0.5, 0.1, size), "truth": truth}
    found = coverage(plan.simulate, **draws, rows=500, confidence=0.95, trials=300)
    assert found.bounds()[1] >= 0.99  # far on the safe side
    assert found.width == pytest.approx(plan.forecast(0.1, mean=0.5).width, rel=0.15)
    assert found.width < 0.2


def test_covers_discrete_laws():
    plan = quantile_interval(lower=0, upper=10, public_rows=200, epsilon=3, granularity=1)
    draws = {"draw": lambda g, size: g.integers(0, 3, size) * 1.0, "truth": 1}
    found = coverage(plan.simulate, **draws, rows=200, confidence=0.95, trials=200)
    assert found.rate == 1
    assert found.width == 1  # one point, and what the grid may have moved


def test_guarantee_and_split():
    plan = quantile_interval(0.9, **UNIT, public_rows=1000, epsilon=1, std=0.1)
    assert plan.guarantee.epsilon() == pytest.approx(1)
    assert plan.guarantee.relation is NeighboringRelation.REPLACE_ONE
    assert sum(end.epsilon for end in plan.ends) == 1
    assert plan.certify().holds
    few = quantile_interval(**UNIT, public_rows=5, epsilon=0.1)
    found = few.release([0.2] * 5)
    assert (found.low, found.high) == (0, 1)
    assert few.guarantee.epsilon() == 0
    with pytest.raises(Unsupported, match="standard deviation"):
        _ = plan.std


def test_a_guess_makes_it_shorter():
    for std in (0.01, 0.2):
        best = quantile_interval(**UNIT, public_rows=1000, epsilon=1, std=std).forecast(std).width
        for bits in (6, 8, 10, 12):
            other = quantile_interval(**UNIT, public_rows=1000, epsilon=1, granularity=2.0**-bits)
            assert best <= other.forecast(std).width * (1 + 1e-9)


def test_release_lies_within_the_bounds():
    plan = quantile_interval(lower=-5, upper=5, public_rows=100, epsilon=5)
    found = plan.release(np.full(100, 5.0), rng=seeded_rng(1))  # zero variance, at the bound
    assert -5 <= found.low <= found.high == 5
    assert found.guaranteed == 0.95


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"public_rows": 0}, "public_rows must be at least 1"),
        ({"upper": 0}, "lower must be below upper"),
        ({"quantile": 1}, "quantile must lie"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"std": 0}, "std must be positive"),
        ({"granularity": 0.3}, "power of two"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(InvalidArgument, match=message):
        quantile_interval(**{**UNIT, "public_rows": 10, "epsilon": 1, **change})


def test_wrong_values():
    plan = quantile_interval(**UNIT, public_rows=3, epsilon=1)
    with pytest.raises(OutOfDomain, match="3 numbers"):
        plan.release([])
