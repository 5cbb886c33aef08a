"""Targets: the smallest amount that meets them, by the forecast itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import query as queries
from discreet.core.errors import InvalidArgument
from discreet.data.program import ContributionLimits
from discreet.data.schema import category, integer
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import QueryBudget
from discreet.query.error_forecast import budget_for, forecast

SETTING = TableSpec(
    schema={"x": integer(lower=0, upper=1000), "g": category(["a", "b"], include_other=False)},
    privacy_unit="u",
    limits=ContributionLimits(max_rows_per_unit=2),
)
CASES = {
    "count": (queries.count(by="g"), 50),
    "sum": (queries.sum("x"), 10_000),
    "mean": (queries.mean("x"), 10),
    "variance": (queries.variance("x"), 20_000),
    "covariance": (queries.covariance("x", "x"), 20_000),
    "median": (queries.median("x"), 0.01),
    "quantiles": (queries.quantiles("x", [0.1, 0.5, 0.9], method="tree"), 0.01),
}


def width(query, budget):
    (question,) = plan_release([query], setting=SETTING, budget=budget).questions
    return forecast(question, expected_rows=2000).width


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
@pytest.mark.parametrize("kind", CASES)
def test_the_target_is_met_and_less_would_not_do(kind, currency):
    query, within = CASES[kind]
    found = budget_for(query, setting=SETTING, within=within, expected_rows=2000, measure=currency)
    amount = getattr(found, currency)
    assert found == QueryBudget(**{currency: amount})
    assert width(query, found) <= within
    less = replace(found, **{currency: amount * Fraction(995, 1000)})
    assert width(query, less) > within


def test_an_amount_at_a_delta():
    found = budget_for(queries.count(), setting=SETTING, within=20, delta=1e-6)
    assert found.delta == Fraction(1, 10**6)
    assert width(queries.count(), found) <= 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"within": 0},
        {"within": -1},
        {"within": 10, "measure": "euro"},
        {"within": 10, "measure": "rho", "delta": 1e-6},
        {"within": 10, "confidence": 1},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        budget_for(queries.count(), setting=SETTING, **wrong)


def test_what_cannot_be_met_is_said():
    with pytest.raises(InvalidArgument, match="rows must be stated"):
        budget_for(queries.mean("x"), setting=SETTING, within=10)
    with pytest.raises(InvalidArgument, match="cannot be met"):
        budget_for(queries.median("x"), setting=SETTING, within=1e-9, expected_rows=2)
