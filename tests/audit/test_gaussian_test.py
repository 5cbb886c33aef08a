"""The audit by one score: tight for what is Gaussian, and false alarms are rare."""

import numpy as np
import pytest
from scipy.stats import norm

from discreet.audit._attack import lower_bound, upper_bound
from discreet.audit.exact import gaussian_lower_bound
from discreet.core.errors import InvalidArgument


def scores(mu, n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_it_comes_close_to_mu_from_below(mu):
    found = gaussian_lower_bound(*scores(mu, 400_000, 1), threshold=mu / 2)
    assert mu - 0.03 * max(1, mu) < found < mu


def test_the_bound_is_that_of_both_shares():
    left, right = np.array([1.0] * 90 + [0.0] * 10), np.array([1.0] * 20 + [0.0] * 80)
    found = gaussian_lower_bound(left, right, threshold=0.5, failure_probability=0.02)
    expected = norm.ppf(lower_bound(90, 100, 0.01)) - norm.ppf(upper_bound(20, 100, 0.01))
    assert found == pytest.approx(expected)


def test_false_alarms_are_as_rare_as_stated():
    rng = np.random.default_rng(2)
    alarms = sum(
        gaussian_lower_bound(rng.normal(0.5, 1, 400), rng.normal(0, 1, 400), threshold=0.25,
                             failure_probability=0.2) > 0.5
        for _ in range(400)
    )  # fmt: skip
    # At most 80 are expected; Clopper-Pearson on either side makes it far fewer.
    assert 0 <= alarms < 80
    looser = sum(
        gaussian_lower_bound(rng.normal(0.9, 1, 400), rng.normal(0, 1, 400), threshold=0.45,
                             failure_probability=0.2) > 0.5
        for _ in range(400)
    )  # fmt: skip
    assert looser > 300


def test_nothing_shows_nothing():
    with pytest.raises(InvalidArgument, match="scores"):
        gaussian_lower_bound(np.array([]), np.array([1.0]), threshold=0.0)
    assert gaussian_lower_bound(np.zeros(5), np.zeros(5), threshold=1.0) == -np.inf
