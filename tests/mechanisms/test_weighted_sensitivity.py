"""Weighted and blurred sensitivity: the corrected delta, and what was published."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent._smooth_noise import laplace_log_density
from discreet.mechanisms.data_dependent.smooth_sensitivity import divergence, smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import (
    smallest_share,
    weighted_delta,
    weighted_sensitivity,
)
from discreet.noise.random_source import seeded_rng
from tests.distributions import follows


def median(**options):
    given = {"lower": 0, "upper": 100, "public_rows": 99, "epsilon": 1, "delta": 1e-3, **options}
    return weighted_sensitivity("median", **given)


@pytest.mark.parametrize(
    ("epsilon", "share", "delta"),
    [(1, 0.5, 0.092), (2, 0.7, 1.2e-3), (10, 0.5, 1.1e-5), (15, 0.465, 6.0e-7), (1, 0.9, 4.78e-6)],
)
def test_deltas(epsilon, share, delta):
    """M30, B36."""
    assert weighted_delta(epsilon, share) == pytest.approx(delta, rel=0.04)


@pytest.mark.parametrize(
    ("epsilon", "share"), [(0.5, 0.579), (1, 0.487), (2, 0.381), (10, 0.152), (15, 0.113)]
)
def test_the_smallest_share_at_a_tenth(epsilon, share):
    """M31."""
    found = smallest_share(epsilon, 0.1)
    assert float(found) == pytest.approx(share, abs=1e-3)
    assert weighted_delta(epsilon, float(found)) <= 0.1
    assert weighted_delta(epsilon, float(found) - 2e-6) > 0.1


def test_no_pair_passes_the_theorem_and_one_attains_it():
    rng = np.random.default_rng(5)
    for _ in range(150):
        epsilon, b = float(rng.uniform(0.2, 8)), float(rng.uniform(0.05, 0.95))
        one, other = rng.uniform(0, 1, 2) ** rng.choice([0.2, 1, 5])
        shift = float(rng.choice([0, 1, rng.uniform()])) * min(one, other)
        scales = ((1 - b) * one + b) / epsilon, ((1 - b) * other + b) / epsilon
        found = divergence(laplace_log_density, (0.0, scales[0]), (shift, scales[1]), epsilon)
        assert found <= weighted_delta(epsilon, b) * (1 + 1e-9)
    jump = divergence(laplace_log_density, (0.0, 1.0), (0.0, 0.5), 1.0)
    assert jump == pytest.approx(weighted_delta(1, 0.5), rel=1e-9)


def test_the_theorem_must_not_be_used_for_smooth_sensitivity():
    """B36: noise S*/epsilon with beta = log 2 has a delta of 0.125 at epsilon 10, not 1.1e-5."""
    found = divergence(laplace_log_density, (0.0, 0.1), (1.0, 0.2), 10.0)
    other = divergence(laplace_log_density, (0.0, 0.2), (1.0, 0.1), 10.0)
    assert max(found, other) == pytest.approx(0.125, rel=0.02)
    assert weighted_delta(10, 0.5) < 2e-5


@pytest.mark.parametrize("options", [{}, {"epsilon": 5, "delta": 1e-9}, {"epsilon": 0.1}], ids=repr)
def test_certified_and_not_with_a_smaller_share(options):
    good = median(**options)
    assert good.certify().holds
    wrong = dataclasses.replace(good, share=good.share * Fraction(98, 100))
    with pytest.raises(NotCertified):
        wrong.certify()


def test_noise_of_a_release():
    values = np.linspace(0, 100, 99)
    mechanism = median(lower=-10_000, upper=10_000)
    share = float(mechanism.share)
    scale = (1 - share) * (100 / 98) + share * 20_000
    bits = seeded_rng(4)
    sample = np.array([mechanism.release(values, rng=bits) - 50 for _ in range(3000)])

    def cdf(x, stretch=1.0):
        z = np.asarray(x) / (scale * stretch)
        inside = np.where(z < 0, np.exp(z) / 2, 1 - np.exp(-z) / 2)
        return np.where(np.asarray(x) >= 9950, 1.0, np.where(np.asarray(x) < -10_050, 0.0, inside))

    keep = sample[np.abs(sample) < 9900]
    assert len(keep) < len(sample)  # some are clipped to the bounds
    assert np.abs(sample).max() <= 10_050
    middle = cdf(9900.0) - cdf(-9900.0)
    assert follows(keep, lambda x: (cdf(x) - cdf(-9900.0)) / middle)
    wrong = cdf(9900.0, 2.0) - cdf(-9900.0, 2.0)
    assert not follows(keep * 0.7, lambda x: (cdf(x, 2.0) - cdf(-9900.0, 2.0)) / wrong)
    assert mechanism.forecast(values) == pytest.approx(math.sqrt(2) * scale, rel=1e-3)
    assert mechanism.forecast(values) <= mechanism.std


def test_blurring_never_helps_and_must_not_go_below():
    values = np.linspace(40, 60, 99)
    plain, blurred = median(), median(blur=(1, 2))
    assert blurred.share == plain.share
    assert blurred.forecast(values) > plain.forecast(values)
    assert 0 <= blurred.release(values, rng=seeded_rng(1)) <= 100
    with pytest.raises(InvalidArgument, match="no guarantee"):
        median(blur=(0.9, 2))


def test_smooth_sensitivity_needs_less_for_a_median():
    values = np.random.default_rng(2).uniform(0, 100, 999)
    both = {"lower": 0, "upper": 100, "public_rows": 999, "epsilon": 1, "delta": 1e-6}
    assert (
        smooth_sensitivity(**both).forecast(values)
        < weighted_sensitivity(**both).forecast(values) / 10
    )


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        median(relation=NeighboringRelation.ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="variance"):
        weighted_sensitivity("variance", lower=0, upper=1, public_rows=3, epsilon=1, delta=0.1)
    with pytest.raises(InvalidArgument, match="delta"):
        median(delta=0)
