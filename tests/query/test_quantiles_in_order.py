"""Quantiles of one column never cross, whoever asks for them, and neither do their intervals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import query as queries
from discreet.data.schema import category, integer
from discreet.noise.random_source import seeded_rng
from discreet.query._quantile_estimate import isotonic
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget

GROUPS = 1000
SCHEMA = {"x": integer(lower=0, upper=63), "g": category(range(GROUPS), include_other=False)}
Q = [0.05, 0.25, 0.5, 0.75, 0.95]


def released(asked, *, epsilon, rows, seed):
    made = plan_release(
        asked, setting=TableSpec(schema=SCHEMA), budget=QueryBudget(epsilon=Fraction(epsilon))
    )
    rng = np.random.default_rng(seed)
    chances = np.exp(-np.arange(64) / 9.0)
    counts = rng.multinomial(rows, chances / chances.sum(), size=GROUPS).astype(np.int64)
    exact = [dict.fromkeys(one.aggregates, counts.ravel()) for one in made.passes]
    noisy = made.noisy(exact, rng=seeded_rng(seed + 1))
    return list(zip(made.questions, noisy, strict=True))


@pytest.mark.parametrize("rows", [0, 3, 200])
@pytest.mark.parametrize("method", ["tree", "exponential"])
def test_quantiles_of_one_query_do_not_cross(method, rows):
    asked = [queries.quantiles("x", Q, by="g", method=method)]
    ((question, parts),) = released(asked, epsilon=1, rows=rows, seed=3)
    found = np.array(question.estimator.values(parts)).reshape(GROUPS, len(Q))
    assert np.all(np.diff(found, axis=1) >= 0)


@pytest.mark.parametrize("rows", [0, 3, 200, 2000])
def test_a_median_is_never_above_an_upper_quartile_that_was_asked_with_it(rows):
    asked = [queries.quantiles("x", [0.75], by="g"), queries.median("x", by="g")]
    upper, middle = released(asked, epsilon=1, rows=rows, seed=5)
    quartile, median = (np.array(q.estimator.values(p)) for q, p in (upper, middle))
    assert np.all(median <= quartile)
    assert upper[1] == middle[1]  # the same noisy tree, paid once


@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize("rows", [0, 30, 500])
def test_intervals_are_nested(rows, sampling):
    asked = [queries.quantiles("x", Q, by="g", method="tree")]
    ((question, parts),) = released(asked, epsilon=1, rows=rows, seed=7)
    ends = question.estimator.interval(parts, 0.9, sampling=sampling)
    low, high = (np.array(end).reshape(GROUPS, len(Q)) for end in ends)
    found = np.array(question.estimator.values(parts)).reshape(GROUPS, len(Q))
    for one in (low, high):
        assert np.all(np.diff(one, axis=1) >= 0)
    assert np.all((low <= found) & (found <= high))


def test_the_curve_is_the_nearest_monotone_one():
    """Least weighted squares, and never further from a monotone truth, in either norm."""
    rng = np.random.default_rng(9)
    truth = np.sort(rng.normal(size=(50, 40)), axis=1)
    noisy = truth + rng.normal(size=truth.shape)
    weights = rng.uniform(0.5, 2, size=40)
    found = isotonic(noisy, weights)
    assert np.all(np.diff(found, axis=1) >= -1e-12)

    def squares(one):
        return (weights * (one - truth) ** 2).sum(axis=1)

    assert np.all(squares(found) <= squares(noisy) + 1e-9)
    far = np.abs(noisy - truth).max(axis=1)
    assert np.all(np.abs(found - truth).max(axis=1) <= far + 1e-9)
    halfway = (
        np.maximum.accumulate(noisy, axis=1)
        + np.minimum.accumulate(noisy[:, ::-1], axis=1)[:, ::-1]
    ) / 2
    assert squares(found).mean() < squares(halfway).mean()  # what was done before
