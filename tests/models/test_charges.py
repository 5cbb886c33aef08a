"""Classifiers, robust and generalized regressions: each relation, number of rows per unit and kind
of limit is charged, or refused in words that name a way that works."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.core.errors import BudgetExceeded, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models import (
    OutputPerturbationLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateLogit,
    PrivatePoisson,
    PrivateRidge,
)

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
X = np.linspace(-1, 1, 60)[:, None]
Y = (X[:, 0] > 0).astype(int)
PAIR, RHO = {"epsilon": 1, "delta": 1e-6}, {"rho": 0.02}
TARGETS = {"bounds": (-1, 1), "target_bounds": (0, 2)}
LABELS = {"bounds": (-1, 1), "classes": (0, 1)}
MODELS = {
    "logistic": lambda **how: PrivateLogisticRegression(**LABELS, steps=5, **how),
    "huber": lambda **how: PrivateHuberRegressor(**TARGETS, steps=5, **how),
    "ridge": lambda **how: PrivateRidge(**TARGETS, steps=5, **how),
    "logit": lambda **how: PrivateLogit(**LABELS, **how),
    "poisson": lambda **how: PrivatePoisson(**TARGETS, **how),
}
LIMITS = {
    "approximate": lambda relation: discreet.approx_dp(1, 1e-6, relation=relation),
    "zcdp": lambda relation: discreet.zcdp(0.1, relation=relation),
    "gdp": lambda relation: discreet.gdp(1, relation=relation),
    "pure": lambda relation: discreet.pure_dp(4, relation=relation),
}
SAMPLED = ("logistic", "huber", "ridge")
"""With epsilon and delta their steps use samples of the rows."""


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_charged_or_refused_in_words_that_help(name, relation, rows):
    ledger = discreet.Ledger("memory://")
    places = itertools.count()

    def fit(kind, budget):
        account = ledger.account(f"a{next(places)}", limit=LIMITS[kind](relation))
        how = {"relation": relation, "max_rows_per_unit": rows, "account": account}
        return account, MODELS[name](**how, **budget).fit(X, Y)

    # What was asked for is granted by an empty account with just that limit.
    account, made = fit("approximate", PAIR)
    assert made.guarantee_.epsilon(1e-6) <= 1
    assert made.receipt_ is not None
    assert 0 < account.spent.epsilon(1e-6) <= 1
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        MODELS[name](relation=relation, max_rows_per_unit=rows, account=account, **PAIR).fit(X, Y)
    # The ways that a refusal names do work.
    account, made = fit("zcdp", RHO)
    assert made.receipt_ is not None
    for kind in ("zcdp", "gdp", "pure"):
        if kind == "zcdp" and name not in SAMPLED:
            fit(kind, PAIR)
            continue
        with pytest.raises(Unsupported, match=r"approx_dp\(epsilon, delta\).* zcdp\(rho\)"):
            fit(kind, PAIR)


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("kind", LIMITS)
def test_a_pure_fit_is_charged_to_every_limit(kind, relation):
    limit = LIMITS[kind](relation)
    account = discreet.Ledger("memory://").account("a", limit=limit)
    model = OutputPerturbationLogisticRegression(
        epsilon=0.1, relation=relation, method="output", public_rows=60, account=account, **LABELS
    ).fit(X, Y)
    assert model.guarantee_.epsilon() <= 0.1
    assert model.receipt_ is not None


@settings(max_examples=15, deadline=None)
@given(
    epsilon=st.floats(0.2, 10),
    delta=st.sampled_from([1e-8, 1e-6, 1e-4]),
    relation=st.sampled_from([ADD, REPLACE]),
    rows=st.integers(1, 3),
    name=st.sampled_from(sorted(MODELS)),
    public=st.sampled_from([None, 1_000]),
)
def test_a_guarantee_is_never_above_what_was_asked(epsilon, delta, relation, rows, name, public):
    model = MODELS[name](epsilon=epsilon, delta=delta, relation=relation, max_rows_per_unit=rows)
    known = {"public_rows": public} if name in SAMPLED else {}
    guarantee = model.plan(features=3, **known).guarantee
    assert 0.99 * epsilon <= guarantee.epsilon(delta) <= epsilon
    assert guarantee.delta(epsilon) <= delta
