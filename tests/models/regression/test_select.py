"""Post-processing of moments: shrinkage and selection of features."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.models.regression.linear_regression import PrivateLinearRegression
from discreet.models.regression.ssp_and_adassp import select_features, shrink
from discreet.noise.random_source import seeded_rng


def data(n, d, seed=0, strong=(1.0, -0.7)):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d))
    slopes = np.zeros(d)
    slopes[[1, 3]] = strong
    return x, np.clip(x @ slopes / 2 + rng.normal(0, 0.1, n), -1, 1), slopes / 2


def fitted(x, y, *, method, epsilon=None, seed=1, **changes):
    return PrivateLinearRegression(
        epsilon=epsilon,
        delta=None if epsilon is None else 1e-6,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        method=method,
        rng=seeded_rng(seed),
        **{"scaling": "bounds", "mapping": "ball", **changes},
    ).fit(x, y)


def test_with_much_data_shrinkage_is_least_squares():
    x, y, slopes = data(100_000, 5)
    model = fitted(x, y, epsilon=3, method=shrink, mapping="box")
    assert model.coef_ == pytest.approx(slopes, abs=0.02)


def test_with_little_data_neither_shrinkage_nor_the_default_is_worse_than_the_mean():
    x, y, _ = data(1_000, 12, strong=(0.3, -0.2))
    test, truth, _ = data(4_000, 12, seed=9, strong=(0.3, -0.2))
    errors = {"psd": [], "shrunken": []}
    for seed in range(12):
        for name, method in (("psd", "psd"), ("shrunken", shrink)):
            model = fitted(x, y, rho=0.003, method=method, seed=seed)
            errors[name].append(np.mean(np.square(model.predict(test) - truth)))
    # "psd" shrinks slopes that the noise has made, too: the two are close.
    for found in errors.values():
        assert np.mean(found) < 1.05 * np.var(truth) + np.mean(truth) ** 2 + 0.01
    assert np.mean(errors["shrunken"]) < 1.1 * np.mean(errors["psd"])


def test_several_targets_are_shrunk_each_by_itself():
    x, y, slopes = data(50_000, 4)
    both = fitted(x, np.column_stack((y, -y)), epsilon=3, method=shrink, mapping="box")
    assert both.coef_[0] == pytest.approx(slopes, abs=0.04)
    assert both.coef_[1] == pytest.approx(-slopes, abs=0.04)


def test_shrinkage_needs_sums_of_squares_and_an_intercept():
    x, y, _ = data(500, 4)
    with pytest.raises(InvalidArgument, match="sums of squares"):
        fitted(x, y, epsilon=1, method=shrink, squares_share=0)
    with pytest.raises(InvalidArgument, match="intercept"):
        fitted(x, y, epsilon=1, method=shrink, fit_intercept=False)


def test_the_features_that_matter_are_selected_at_no_cost():
    x, y, _ = data(50_000, 8)
    moments = fitted(x, y, epsilon=1, method="psd").moments_
    assert select_features(moments, keep=2) == (1, 3)
    assert select_features(moments, keep=1) == (1,)
    fewer = moments.subset(select_features(moments, keep=2))
    assert fewer.guarantee == moments.guarantee
    assert select_features(fewer, keep=2) == (1, 3)


def test_selection_refuses_what_is_not_there():
    x, y, _ = data(500, 4)
    moments = fitted(x, y, epsilon=1, method="psd").moments_
    with pytest.raises(InvalidArgument, match="keep"):
        select_features(moments, keep=5)
    with pytest.raises(InvalidArgument, match="output"):
        select_features(moments, keep=1, output=1)
