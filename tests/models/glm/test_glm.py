"""Logit and Poisson regression with standard errors."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom
from sklearn.base import clone

import discreet
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models import DeclaredColumns, PrivateLogit, PrivatePoisson
from discreet.models.glm.families import LogitFamily, PoissonFamily
from discreet.models.glm.fisher_scoring import plan_scoring
from discreet.models.glm.weighted_rows import (
    LONGEST,
    WeightedRows,
    moment_sums,
    score_sums,
    whole_parameters,
)
from discreet.models.regression._row_sources import ArrayRows
from discreet.noise.random_source import seeded_rng

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
FAMILIES = [LogitFamily(), PoissonFamily(largest=0.5), PoissonFamily(largest=40.0)]
LOGIT = partial(PrivateLogit, epsilon=1, delta=1e-6, bounds=[(0, 10), (0, 1)], classes=(0, 1))
POISSON = partial(
    PrivatePoisson, epsilon=1, delta=1e-6, bounds=[(0, 10), (0, 1)], target_bounds=(0, 15)
)


def shape(rng, rows):
    """A skewed column, partly beyond its bounds, and a dummy: raw rows."""
    return np.column_stack([np.exp(rng.normal(0.5, 0.7, rows)), rng.random(rows) < 0.1])


def logits(rng, x):
    margins = -1 + 0.3 * np.clip(x[:, 0], 0, 10) + 0.8 * x[:, 1]
    return (rng.random(len(x)) < expit(margins)).astype(float)


def counts(rng, x):
    return rng.poisson(np.exp(0.2 + 0.1 * np.clip(x[:, 0], 0, 10) + 0.4 * x[:, 1])).astype(float)


TRUTH = {"logit": (0.3, 0.8, -1.0), "poisson": (0.1, 0.4, 0.2)}


# ── A row's share ────────────────────────────────────────────────────────────────────────────────

anything = st.floats(allow_nan=False, allow_infinity=True)


@settings(max_examples=80, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    row=st.lists(anything, min_size=3, max_size=3),
    target=anything,
    theta=st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4),
    scale=st.lists(st.floats(1e-9, 1.0), min_size=3, max_size=3),
    center=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    radius=st.floats(0.1, 50),
)
def test_a_row_adds_at_most_the_longest_share(family, row, target, theta, scale, center, radius):
    plan = plan_scoring(family, features=3, epsilon=1, delta=1e-6)
    ends = np.array([-1.0, -2.0, 0.0]), np.array([1.0, 5.0, 1e-3])
    rows = WeightedRows.of(*ends, radius=radius).scaled(np.array(center), np.array(scale))
    x, y = np.array([row]), np.array([[target]])
    whole, exponent = whole_parameters(np.array(theta), rows)
    totals = [
        score_sums(rows, plan._step_units(radius, many), family, whole, exponent, x, y)
        for many in (1, 2)
    ]
    looked = WeightedRows.of(*ends, radius=plan.radius).scaled(np.array(center), np.array(scale))
    totals.append(moment_sums(looked, plan._look_units(), family.most, x, y))
    for total in totals:
        assert sum(int(one) ** 2 for one in total) <= LONGEST**2


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_adds_the_same_wherever_it_stands(family):
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 2, (5_000, 3)), rng.integers(0, 30, (5_000, 1)).astype(float)
    plan = plan_scoring(family, features=3, epsilon=1, delta=1e-6)
    rows = WeightedRows.of(-np.ones(3) * 5, np.ones(3) * 5, radius=2.0).scaled(
        np.array([0.1, 0.2, 0.3]), np.array([0.7, 0.01, 1.3])
    )
    whole, exponent = whole_parameters(np.array([0.3, -2.0, 0.001, 1.0]), rows)
    piece = partial(score_sums, rows, plan._step_units(2.0, 2), family, whole, exponent)
    total, order = piece(x, y), rng.permutation(len(x))
    assert (piece(x[order], y[order]) == total).all()
    apart = piece(x[:1], y[:1]) + piece(x[1:7], y[1:7]) + piece(x[7:], y[7:])
    assert (apart == total).all()


# ── Guarantees ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=8, deadline=None)
@given(
    epsilon=st.floats(0.05, 20),
    delta=st.sampled_from([1e-9, 1e-6, 1e-3]),
    relation=st.sampled_from([ADD, REPLACE]),
    rows=st.integers(1, 3),
)
def test_a_fit_costs_at_most_what_was_asked(epsilon, delta, relation, rows):
    model = LOGIT(epsilon=epsilon, delta=delta, relation=relation, max_rows_per_unit=rows)
    guarantee = model.plan(features=2).guarantee
    assert guarantee.epsilon(delta) <= epsilon
    assert guarantee.delta(epsilon) <= delta
    assert guarantee.relation is relation


def test_the_guarantee_is_certified():
    for model in (LOGIT(), POISSON(relation=REPLACE)):
        found = model.plan(features=2).certify()
        assert found.holds
        assert any("one row" in look.part for look in found.drawn)


# ── Estimates ────────────────────────────────────────────────────────────────────────────────────


def fits(make, draw, *, repeats, rows, seed=11):
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng((seed, repeat))
        x = shape(rng, rows)
        model = make(rng=seeded_rng(repeat)).fit(x, draw(rng, x))
        found.append((model.fit_.coefficients, model.fit_.standard_errors))
    coefficients, errors = (np.array(one) for one in zip(*found, strict=True))
    return coefficients, errors


@pytest.mark.parametrize(
    ("make", "draw", "name"), [(LOGIT, logits, "logit"), (POISSON, counts, "poisson")]
)
def test_intervals_hold_the_coefficients_of_raw_rows(make, draw, name):
    repeats = 40
    coefficients, errors = fits(partial(make, epsilon=2), draw, repeats=repeats, rows=10_000)
    held = np.abs(coefficients - TRUTH[name]) <= 1.96 * errors
    least = binom.ppf(1e-7, repeats, 0.95)
    assert (held.sum(axis=0) >= least).all()
    assert np.isfinite(errors).all()
    # Errors are neither far too large nor too small: their ratio is a root of chi-squared.
    ratio = coefficients.std(axis=0) / np.median(errors, axis=0)
    assert ((ratio > 0.5) & (ratio < 1.6)).all()


def test_rows_that_are_moved_would_be_noticed(monkeypatch):
    def projected(self, x):
        rows = whole(self, x)
        lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True)) / 2.0**11
        return np.rint(rows * np.minimum(1.0, 1.3 / lengths))

    whole = WeightedRows.whole
    monkeypatch.setattr(WeightedRows, "whole", projected)
    coefficients, errors = fits(LOGIT, logits, repeats=10, rows=10_000)
    held = np.abs(coefficients - TRUTH["logit"]) <= 1.96 * errors
    assert held.sum(axis=0).min() < binom.ppf(1e-7, 10, 0.95)


def test_a_large_budget_gives_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.uniform(0, 10, 20_000), rng.random(20_000) < 0.3])
    y = logits(rng, x)
    model = LOGIT(epsilon=2_000, delta=1e-3, rng=seeded_rng(1)).fit(x, y)
    design, theta = np.column_stack([x, np.ones(len(x))]), np.zeros(3)
    for _ in range(20):
        p = expit(design @ theta)
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        theta += np.linalg.solve(hessian, design.T @ (y - p))
    assert model.fit_.coefficients == pytest.approx(theta, abs=2e-3)
    assert model.fit_.standard_errors == pytest.approx(
        np.sqrt(np.linalg.inv(hessian).diagonal()), rel=0.05
    )
    gap = model.predict_proba(x)[:, 1] - expit(design @ theta)
    assert np.abs(gap).max() < 1e-3


def test_what_noise_hides_is_not_determined():
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.uniform(0, 10, 2_000), rng.random(2_000) < 0.002])
    model = LOGIT(epsilon=0.2, rng=seeded_rng(2)).fit(x, logits(rng, x))
    summary = model.summary()
    assert np.isinf(summary.standard_errors).any()
    assert "not determined" in str(summary)
    assert "not determined" in summary.to_html()


@pytest.mark.parametrize("model", [LOGIT(), POISSON()])
def test_without_rows_nothing_is_determined(model):
    model.fit(np.empty((0, 2)), np.empty(0))
    assert np.isinf(model.fit_.standard_errors).all()
    assert np.isfinite(model.coef_).all()


# ── Rows as they come ────────────────────────────────────────────────────────────────────────────


def test_misfits_and_rows_beyond_a_unit_are_left_out():
    rng = np.random.default_rng(7)
    x = shape(rng, 3_000)
    y = logits(rng, x)
    plain = LOGIT(rng=seeded_rng(3)).fit(x, y)
    strange = np.vstack([x, [[np.nan, 1.0], [1.0, 1.0]]])
    other = LOGIT(rng=seeded_rng(3)).fit(strange, np.append(y, [1.0, 7.0]))
    assert (plain.coef_ == other.coef_).all()
    owners = np.append(np.arange(3_000), [5, 5])
    many = LOGIT(rng=seeded_rng(3)).fit(np.vstack([x, x[:2]]), np.append(y, y[:2]), units=owners)
    assert (plain.coef_ == many.coef_).all()


def test_a_source_gives_what_its_arrays_give():
    rng = np.random.default_rng(8)
    x = shape(rng, 2_000)
    frame = pd.DataFrame({"pay": x[:, 0], "new": x[:, 1], "visits": counts(rng, x)})
    first = POISSON(rng=seeded_rng(4)).fit(frame[["pay", "new"]], frame["visits"])
    second = POISSON(rng=seeded_rng(4)).fit_source(frame, features=["pay", "new"], target="visits")
    assert (first.coef_ == second.coef_).all()
    assert [row["term"] for row in second.intervals()] == ["pay", "new", "intercept"]


def test_labels_may_be_text_and_estimators_may_be_cloned():
    rng = np.random.default_rng(9)
    x = shape(rng, 2_000)
    y = np.where(logits(rng, x) > 0, "yes", "no")
    limit = discreet.approx_dp(1.3, 1e-5, relation=ADD)
    account = discreet.Ledger("memory://").account("a", limit=limit)
    model = clone(LOGIT(classes=("no", "yes"), account=account))
    assert set(model.fit(x, y).predict(x)) <= {"no", "yes"}
    assert model.receipt_ is not None
    with pytest.raises(discreet.BudgetExceeded):
        model.fit(x, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LOGIT(bounds=None), "bounds"),
        (LOGIT(classes=(0, 1, 2)), "two labels"),
        (LOGIT(delta=None), "delta"),
        (LOGIT(radius=0), "radius"),
        (LOGIT(relation=NeighboringRelation.LOCAL), "relation"),
        (POISSON(target_bounds=None), "target_bounds"),
        (POISSON(target_bounds=(1, 5)), "start at 0"),
    ],
)
def test_bad_declarations_are_refused(model, message):
    with pytest.raises((discreet.InvalidArgument, discreet.RelationMismatch), match=message):
        model.fit(np.ones((5, 2)), np.zeros(5))


@pytest.mark.parametrize("ends", [(1.0, 1.0), (0.0, 5e-324), (-1.7e308, 1.7e308), (0.0, np.inf)])
def test_a_plan_refuses_bounds_that_make_no_number_of_a_row(ends):
    plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=1)
    rows = ArrayRows(np.zeros((1, 1)), np.ones((1, 1)))
    lower, upper = np.array([[end] for end in ends])
    with pytest.raises(InvalidArgument, match="bounds"):
        plan.release(rows, lower=lower, upper=upper)


def test_too_many_features_are_refused():
    with pytest.raises(discreet.Unsupported, match="features"):
        LOGIT().plan(features=1_000)


class RepeatedRows:
    """The same few rows so often that no 64-bit sum holds them."""

    def __init__(self, times):
        self.times = times
        self.x = np.linspace(-1, 1, 8)[:, None]

    def add_up(self, piece, *, start):
        return start + piece(self.x, (self.x > 0.1).astype(float)).astype(object) * self.times


def test_no_number_of_rows_is_an_error():
    # A limit of rows would tell whether one more person is there.
    plan = PrivateLogit(epsilon=1, delta=1e-6, bounds=(-1, 1)).plan(features=1)
    ends = np.array([-1.0]), np.array([1.0])
    for times in (2**21, 2**24 // 8 + 1, 2**40, 2**80):
        rows = RepeatedRows(times)
        fit = plan.release(rows, lower=ends[0], upper=ends[1], rng=seeded_rng(4))
        assert fit.coefficients.shape == (2,)


# ── Declared columns ─────────────────────────────────────────────────────────────────────────────


def test_declared_columns_are_the_same_as_encoded_ones_in_frames_and_sources():
    rng = np.random.default_rng(5)
    people = pd.DataFrame(
        {"ward": rng.choice(["a", "b", "c"], 4000), "age": rng.uniform(18, 90, 4000)}
    )
    people["y"] = (rng.random(4000) < 0.3 + 0.3 * (people["ward"] == "b")).astype(float)
    people["who"] = np.arange(4000) // 2
    people.loc[7, "age"] = np.nan
    declared = DeclaredColumns.from_formula(
        "y ~ ward * age", {"age": (18, 90), "ward": ["a", "b", "c"]}, fill={"age": 50}
    )
    usual = {"epsilon": 3, "delta": 1e-6, "max_rows_per_unit": 2}
    model = PrivateLogit(**usual, columns=declared, rng=seeded_rng(1)).fit(people, people["y"])
    plain = PrivateLogit(**usual, bounds=declared.bounds, rng=seeded_rng(1))
    plain.fit(declared.encode(people), people["y"])
    assert (model.coef_ == plain.coef_).all()
    assert [term for (term,) in model.summary().terms] == [*declared.terms, "intercept"]
    assert (model.predict_proba(people) == plain.predict_proba(declared.encode(people))).all()
    for how in ({}, {"privacy_unit": "who"}):
        # Without owners levels must be numbers in the source.
        frame = people if how else people.assign(ward=people["ward"].map({"a": 0, "b": 1, "c": 2}))
        known = declared if how else replace(declared, columns={"ward": [0, 1, 2], "age": (18, 90)})
        again = PrivateLogit(**usual, columns=known, rng=seeded_rng(1))
        assert (again.fit_source(frame, target="y", **how).coef_ == model.coef_).all()
    # One more row of somebody who has two already.
    more = pd.concat([people, people.iloc[:1].assign(y=1.0, age=91.0)])
    again = PrivateLogit(**usual, columns=declared, rng=seeded_rng(1))
    again.fit_source(more, target="y", privacy_unit="who")
    assert (again.coef_ == model.coef_).all()
    with pytest.raises(InvalidArgument, match="bounds or columns"):
        PrivateLogit(**usual, columns=declared, bounds=(0, 1)).fit(people, people["y"])
