"""What is made for an epsilon and a delta is read as at most that epsilon, by whoever reads it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.accounting.conversion import gaussian_epsilon, gaussian_sigma
from discreet.core.relation import NeighboringRelation
from discreet.data.program import ContributionLimits
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import BudgetChange, budget

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
EPSILONS = st.floats(-2, 1).map(lambda x: float(f"{10**x:.4g}"))
DELTAS = st.integers(3, 10).map(lambda x: 10.0**-x)


@settings(max_examples=20, deadline=None)
@given(EPSILONS, DELTAS, st.sampled_from([0.5, 1, 2, 3, Fraction(7, 3)]))
def test_mechanisms(epsilon, delta, sensitivity):
    made = [discreet.gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta)]
    whole = max(int(sensitivity), 1)
    made.append(discreet.laplace(sensitivity=whole, epsilon=epsilon, delta=delta))
    made.append(discreet.gaussian(sensitivity=whole, epsilon=epsilon, delta=delta))
    for one in made:
        assert one.guarantee.epsilon(delta) <= epsilon
        assert one.guarantee.delta(epsilon) <= delta


@settings(max_examples=12, deadline=None)
@given(EPSILONS, DELTAS, st.sampled_from(["laplace", "gaussian"]), st.integers(1, 12), st.data())
def test_vectors_together(epsilon, delta, noise, many, data):
    moves = [
        BudgetChange(l1=n * n, l2_squared=n * n)
        for n in data.draw(st.lists(st.integers(1, 30), min_size=many, max_size=many))
    ]
    shares = [Fraction(1, many)] * many
    made = budget(epsilon=epsilon, delta=delta, noise=noise).mechanisms(
        moves, shares=shares, relation=NeighboringRelation.ADD_REMOVE
    )
    whole = sum([one.guarantee for one in made[1:]], start=made[0].guarantee)
    assert whole.epsilon(delta) <= epsilon


QUERIES = {
    "mean": lambda: discreet.query.mean("x"),
    "mean of a sample": lambda: discreet.query.mean("x", sampling=True),
    "variance": lambda: discreet.query.variance("x", by="g"),
    "correlation": lambda: discreet.query.correlation("x", "y"),
    "quantiles": lambda: discreet.query.quantiles("x", [0.1, 0.5, 0.9]),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("noise", [None, "laplace", "gaussian"])
def test_tables(name, noise):
    columns = {
        "x": discreet.integer(0, 99),
        "y": discreet.real(0, 10, granularity=1 / 64),
        "g": discreet.category(["a", "b"]),
    }
    spec = TableSpec(
        schema=columns, privacy_unit="id", limits=ContributionLimits(max_rows_per_unit=3)
    )
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-9)):
        amount = budget(epsilon=epsilon, delta=delta, noise=noise)
        made = plan_release([QUERIES[name]()], setting=spec, budget=amount)
        assert made.guarantee.epsilon(delta) <= epsilon


MODELS = {
    "linear": lambda: discreet.models.PrivateLinearRegression(
        bounds=(-1, 1), target_bounds=(-5, 5)
    ),
    "automatic": lambda: discreet.models.AutoLinearRegression(
        bounds=(-1, 1), target_bounds=(-5, 5), expected_rows=400
    ),
    "output": lambda: discreet.models.OutputPerturbationLogisticRegression(
        bounds=(-1, 1), classes=(0, 1), method="last iterate", public_rows=400
    ),
    "logistic": lambda: discreet.models.PrivateLogisticRegression(bounds=(-1, 1), classes=(0, 1)),
    "ridge": lambda: discreet.models.PrivateRidge(bounds=(-1, 1), target_bounds=(-5, 5)),
    "huber": lambda: discreet.models.PrivateHuberRegressor(bounds=(-1, 1), target_bounds=(-5, 5)),
}


@pytest.mark.parametrize(("epsilon", "relation"), [(0.5, ADD), (3, ADD), (1, REPLACE)])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, relation, epsilon):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (400, 2))
    y = x @ [1.0, -1.0] + rng.normal(size=400)
    model = MODELS[name]().set_params(epsilon=epsilon, delta=1e-6, relation=relation)
    if "classes" in model.get_params():
        y = (y > 0).astype(int)
    if relation is REPLACE and "public_rows" in model.get_params():
        model.set_params(public_rows=400)
    if name == "output" and relation is ADD:
        model.set_params(method="output")
    model.fit(x, y)
    assert model.guarantee_.epsilon(1e-6) <= epsilon


@pytest.mark.parametrize("delta", [5e-324, 1e-320, 1e-310, 1e-300])
def test_the_smallest_deltas(delta):
    # Below 1e-308 a double has few digits, and 1/delta is none: the search must end all the same.
    for epsilon in (1e-6, 1, 500):
        sigma = gaussian_sigma(epsilon, delta=delta)
        assert gaussian_epsilon(delta, mu=1 / sigma) <= epsilon
        # Not far from where it must be: log(1/delta) grows slowly.
        assert sigma < 1.2 * gaussian_sigma(epsilon, delta=1e-290)
