"""What an argument is if it is left out, and where forecasts look."""

from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bin_statistics import bin_statistics, private_bin_counts
from discreet.mechanisms.bounded._error import ErrorDistribution, _Window
from discreet.mechanisms.bounded.compare import compare_bounded_noise
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.data_dependent._smooth_statistics import SmoothVariance, TrimmedMean
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.personalized.exponential_mechanism import personalized_quantile
from discreet.mechanisms.personalized.partition import privacy_aware
from discreet.mechanisms.personalized.stretching import stretched_quantile
from discreet.mechanisms.quantiles import SortedColumn, private_quantile
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.noise.random_source import seeded_rng
from discreet_studies.noise_mechanisms import median_errors

ONE = {"sensitivity": 3, "epsilon": 1}
UNIT = {"lower": 0, "upper": 1, "epsilon": 1}
ROWS = {**UNIT, "public_rows": 9}
MENU = {"a": discreet.pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)}

DEFAULTS = [
    (discreet.laplace, ONE, {"delta": 0, "norm": "l1"}),
    (discreet.exponential_mechanism, ONE, {"monotonic": False}),
    (discreet.permute_and_flip, ONE, {"monotonic": False}),
    (discreet.report_noisy_max, ONE, {"monotonic": False}),
    (discreet.above_threshold, ONE, {"monotonic": False, "positives": 1}),
    (best_additive_noise, ONE, {"delta": 0, "loss": "mse"}),
    (bounded_laplace, {**UNIT, "sensitivity": 1}, {"delta": 0}),
    (
        compare_bounded_noise,
        {**UNIT, "sensitivity": 1},
        {"delta": 0, "loss": "mse", "prior": "uniform"},
    ),
    (bin_statistics, {**UNIT, "bins": 4}, {"delta": 0, "statistic": "median", "empty": "middle"}),
    (private_bin_counts, {**UNIT, "bins": 4}, {"delta": 0}),
    (private_variance, ROWS, {"delta": 0, "method": "clamp"}),
    (private_std, ROWS, {"delta": 0, "method": "clamp", "direct": False}),
    (
        partition_selection,
        {"groups": 1, "epsilon": 1, "delta": 1e-3, "method": "laplace"},
        {"minimum": 1},
    ),
    (propose_test_release, {**ROWS, "bound": 1, "delta": 1e-6}, {"test": Fraction(1, 2)}),
    (private_quantile, UNIT, {"quantile": Fraction(1, 2), "method": "interpolated"}),
    (smooth_sensitivity, ROWS, {"statistic": "median", "delta": 0, "order": 4, "noise": "lomax"}),
    (
        lambda **given: personalized_quantile(MENU, lower=0, upper=4, **given),
        {},
        {"quantile": Fraction(1, 2)},
    ),
    (
        lambda **given: stretched_quantile(MENU, lower=0, upper=4, **given),
        {},
        {"quantile": Fraction(1, 2), "anchor": 2},
    ),
    (lambda **given: privacy_aware([1, 2, 5], runs=3, **given).ends, {}, {"smallest": 1}),
    (TrimmedMean, {"public_rows": 5, "below": 1, "above": 1}, {"power": 1}),
    (SmoothVariance, {"public_rows": 5}, {"power": 2, "whole": False}),
]


@pytest.mark.parametrize(("make", "given", "more"), DEFAULTS)
def test_what_is_left_out(make, given, more):
    assert repr(make(**given)) == repr(make(**given, **more))
    if not isinstance(make(**given), tuple) and make is not compare_bounded_noise:
        assert make(**given) == make(**given, **more)


def test_medians_are_compared_on_a_thousand_rows(monkeypatch):
    asked, calls = [], []

    def mechanisms(rows, *, epsilon, delta):
        asked.append((rows, epsilon, delta))
        return {"none": lambda values, bits: calls.append(len(values)) or 0.0}

    monkeypatch.setattr(median_errors, "mechanisms", mechanisms)
    found = median_errors.median_errors()
    assert asked == [(1001, 1, 1e-6)]
    assert calls == [1001] * (200 * len(found))
    first = found[0]
    assert (first.shape, first.mechanism) == ("uniform", "none")
    assert first.mean_absolute == pytest.approx(50)
    assert first.root_mean_square == pytest.approx(50)
    assert first.mean_ranks == pytest.approx(500.5)


def test_all_private_medians_are_near_for_a_large_epsilon():
    values = np.linspace(40, 60, 99)
    far = median_errors.mechanisms(99, epsilon=90, delta=1e-6)
    for name, release in far.items():
        answers = [release(values, seeded_rng(seed)) for seed in range(3)]
        assert all(0 <= answer <= 100 for answer in answers), name
        assert np.median(answers) == pytest.approx(50, abs=4), name


# -- where forecasts look -----------------------------------------------------------------------


def test_forecasts_look_so_far():
    column = SortedColumn(first=0, span=10**6, exponent=0)
    window = _Window.of(10, column, 2.0)
    assert window.is_lattice
    assert window.errors.tolist() == list(range(-10, 91))  # 45 scales up, to the bound down
    assert (window.below, window.above) == (10, 10**6 - 10)
    assert _Window.of(10, column, 128.0).is_lattice
    cells = _Window.of(1000, column, 129.0)
    assert not cells.is_lattice
    low, high = cells.ends
    assert (low[0], high[-1]) == (-1000, 45 * 129)
    assert len(low) == len(high) == 2 * 2048
    assert low[2048] == high[2047] == 0
    assert cells.errors[0] == (low[0] + high[0]) / 2


def test_sizes_that_errors_do_not_pass():
    law = ErrorDistribution(
        errors=np.array([-3.0, -1.0, 0.0, 2.0]), masses=np.array([1, 2, 4, 3]) / 10
    )
    for level, size in ((0.1, 0), (0.4, 0), (0.41, 1), (0.6, 1), (0.9, 2), (0.91, 3), (1.0, 3)):
        assert law.size(level) == size
    assert law.bias == pytest.approx(0.1)
    assert law.mean_absolute == pytest.approx(1.1)
    assert law.root_mean_square == pytest.approx((0.9 + 0.2 + 1.2) ** 0.5)
