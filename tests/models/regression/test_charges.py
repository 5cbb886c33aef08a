"""Every estimator, relation, number of rows per unit and kind of limit: charged, or refused in
words that name a way that works."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.core.errors import BudgetExceeded, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.models import AutoLinearRegression, PrivateLinearRegression

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
BOUNDS = {"bounds": (0, 1), "target_bounds": (0, 1)}
X = np.linspace(0, 1, 60)[:, None]


def moments(**how):
    return PrivateLinearRegression(**{**BOUNDS, **how})


def auto(method, **how):
    return AutoLinearRegression(**{**BOUNDS, **how}, method=method, expected_rows=60)


MODELS = {
    "moments": moments,
    "moments, ball": lambda **how: moments(scaling="bounds", mapping="ball", **how),
    "moments, box": lambda **how: moments(scaling="bounds", mapping="box", **how),
    "moments, adassp": lambda **how: moments(method="adassp", **how),
    "level": lambda **how: auto("level", **how),
    "gradient": lambda **how: auto("gradient", **how),
    "boosted": lambda **how: auto("boosted", **how),
    "theil_sen": lambda **how: auto("theil_sen", **how),
}
PURE = ("level", "theil_sen")
"""These cost a pure epsilon."""
BUDGETS = ({"epsilon": 1, "delta": 1e-6}, {"rho": 0.02})
LIMITS = {
    "pure": lambda relation: discreet.pure_dp(4, relation=relation),
    "approximate": lambda relation: discreet.approx_dp(4, 1e-5, relation=relation),
    "zcdp": lambda relation: discreet.zcdp(0.6, relation=relation),
}


@pytest.mark.filterwarnings("ignore:The noisy matrix is not positive definite")
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_charged_or_refused_in_words_that_help(name, relation, rows, tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    places = itertools.count()

    def fit(kind, other=relation, **budget):
        account = ledger.account(f"a{next(places)}", limit=LIMITS[kind](other))
        how = {"relation": relation, "max_rows_per_unit": rows, "account": account}
        return account, MODELS[name](**how, **budget).fit(X, X[:, 0])

    for kind, budget in itertools.product(LIMITS, BUDGETS):
        if kind == "pure" and (name not in PURE or "rho" in budget):
            # Gaussian noise has no pure epsilon, and a budget in rho buys none.
            if name == "level":
                continue
            way = re.escape("approx_dp(epsilon, delta) or zcdp(rho)")
            with pytest.raises(Unsupported, match=way):
                fit(kind, **budget)
            continue
        account, made = fit(kind, **budget)
        assert made.receipt_ is not None
        assert made.guarantee_.relation is relation
        if "epsilon" in budget:
            assert made.guarantee_.epsilon(1e-6) <= 1
        assert account.spent.epsilon(1e-5) > 0
        for statistic in made.released_:
            assert statistic.name in str(statistic)
    with pytest.raises(RelationMismatch, match=re.escape("approx_dp(..., relation=...)")):
        fit("approximate", other=REPLACE if relation is ADD else ADD, **BUDGETS[0])
    with pytest.raises(BudgetExceeded, match="left; nothing was spent"):
        fit("approximate", epsilon=5, delta=1e-6)


@settings(max_examples=12, deadline=None)
@given(
    epsilon=st.floats(0.02, 8),
    digits=st.integers(4, 9),
    relation=st.sampled_from([ADD, REPLACE]),
    name=st.sampled_from(["moments", "moments, ball", "gradient", "boosted"]),
)
def test_a_guarantee_is_never_above_what_was_asked(epsilon, digits, relation, name):
    delta = 10.0**-digits
    model = MODELS[name](epsilon=epsilon, delta=delta, relation=relation)
    planned = model.plan(features=3)
    guarantee = planned[1].guarantee if isinstance(planned, tuple) else planned.guarantee
    assert guarantee.epsilon(delta) <= epsilon
    assert guarantee.epsilon(delta) >= 0.999 * epsilon
