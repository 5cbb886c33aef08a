"""What is fitted to private rows before a private model is refused, with what to do instead."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from discreet.core.errors import InvalidArgument
from discreet.models import (
    AutoLinearRegression,
    OutputPerturbationLogisticRegression,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateLogit,
    PrivatePoisson,
    PrivateRidge,
)

X = np.linspace(-1, 1, 60)[:, None]
Y = (X[:, 0] > 0).astype(float)
TARGETS = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "target_bounds": (0, 2)}
LABELS = {"epsilon": 1, "bounds": (-1, 1), "classes": (0.0, 1.0)}
MODELS = [
    PrivateLinearRegression(**TARGETS),
    AutoLinearRegression(**TARGETS, expected_rows=60),
    PrivatePoisson(**TARGETS),
    PrivateRidge(**TARGETS, steps=2),
    PrivateHuberRegressor(**TARGETS, steps=2),
    PrivateLogit(**LABELS, delta=1e-6),
    PrivateLogisticRegression(**LABELS, delta=1e-6, steps=2),
    OutputPerturbationLogisticRegression(**LABELS, method="output", public_rows=60),
]


def test_an_encoder_of_listed_levels_learns_nothing():
    rows = np.array([["a"], ["b"], ["strange"]] * 20, dtype=object)
    listed = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False)
    fitted = make_pipeline(listed, PrivateLogisticRegression(**LABELS, delta=1e-6, steps=2))
    assert fitted.fit(rows, Y).predict(rows).shape == (60,)
    for learned in (
        OneHotEncoder(categories=[["a", "b", "strange"]], sparse_output=False),  # fails for a row
        listed.set_params(max_categories=1),
    ):
        with pytest.raises(InvalidArgument, match="OneHotEncoder .*not private"):
            make_pipeline(learned, PrivateLogit(**LABELS, delta=1e-6)).fit(rows, Y)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_a_scaler_of_the_rows_is_refused_with_the_remedy(model):
    with pytest.raises(InvalidArgument, match=r"StandardScaler .*not private.*FrozenEstimator"):
        make_pipeline(StandardScaler(), model).fit(X, Y)


@pytest.mark.parametrize(
    "before",
    [
        SimpleImputer(),
        FeatureUnion([("a", StandardScaler())]),
        ColumnTransformer([("a", OneHotEncoder(handle_unknown="ignore"), [0])]),
        make_pipeline(FunctionTransformer(), StandardScaler()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_so_is_everything_that_learns_wherever_it_stands(before):
    model = make_pipeline(before, PrivateLinearRegression(**TARGETS))
    with pytest.raises(InvalidArgument, match="not private"):
        model.fit(X, Y)
    with pytest.raises(InvalidArgument, match="not private"):
        cross_val_predict(model, X, Y, cv=2)
    with pytest.raises(InvalidArgument, match="not private"):
        make_pipeline(before, make_pipeline("passthrough", PrivateLinearRegression(**TARGETS))).fit(
            X, Y
        )


def test_targets_that_are_scaled_by_themselves_are_refused():
    model = TransformedTargetRegressor(
        PrivateLinearRegression(**TARGETS), transformer=StandardScaler()
    )
    with pytest.raises(InvalidArgument, match="StandardScaler"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "before",
    [
        FrozenEstimator(StandardScaler().fit([[-1.0], [1.0]])),
        FunctionTransformer(np.abs),
        "passthrough",
        ColumnTransformer([("a", "passthrough", [0])], remainder="drop"),
    ],
    ids=lambda one: getattr(type(one), "__name__", one),
)
def test_public_and_fixed_steps_are_accepted(before):
    made = make_pipeline(before, PrivateLinearRegression(**TARGETS)).fit(X, Y)
    assert made.predict(X).shape == (60,)
    # A scaler that others fit somewhere else does not matter.
    StandardScaler().fit(X)
    assert PrivateLinearRegression(**TARGETS).fit(X, Y).n_features_in_ == 1
