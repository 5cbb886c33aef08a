"""Limits of arguments: the last allowed value is taken, and the next is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import PrivacyError
from discreet.core.relation import NeighboringRelation
from discreet.local.distributed_noise import distributed_laplace
from discreet.local.means.base import bounds
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import threshold_histogram_encoding
from discreet.mechanisms.bin_statistics import private_bin_counts
from discreet.mechanisms.bounded.mechanism import bounded_laplace
from discreet.mechanisms.data_dependent._smooth_statistics import TrimmedMean
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.personalized.exponential_mechanism import personalized_quantile
from discreet.mechanisms.personalized.partition import privacy_aware
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.noise.random_source import seeded_rng

REPLACE = {"relation": NeighboringRelation.REPLACE_ONE}
MENU = {"a": discreet.pure_dp(1, **REPLACE)}
UNIT = {"lower": 0, "upper": 1, "epsilon": 1}
whole, real = (discreet.laplace(sensitivity=s, epsilon=1) for s in (1, 1.5))
coarse = discreet.laplace(sensitivity=1.5, epsilon=2.0**-20, granularity=1.0)
shares = distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=5, modulus=100)
found = Frequencies(
    shares=np.array([0.2, 0.3, 0.5]),
    reports=10,
    variance=np.zeros(3),
    oracle=grr(categories=3, epsilon=1),
)


def levels(n):
    return [Fraction(k, n + 1) for k in range(1, n + 1)]


LIMITS = {
    "whole values": (lambda v: whole.release([v], rng=seeded_rng(1)), [2**61, -(2**61)]),
    "levels": (
        lambda v: private_quantiles(v, **UNIT),
        [levels(1), levels(1024), [0.25, 0.5]],
        [[], levels(1025), [0.5, 0.5], [0.5, 0.25]],
    ),
    "denominators": (
        lambda v: private_quantile(v, **UNIT),
        [Fraction(1, 2**20)],
        [Fraction(1, 2**20 + 1), 0, 1],
    ),
    "flips": (
        lambda v: private_quantile(
            lower=0, upper=v, granularity=1, epsilon=1, method="permute_and_flip"
        ),
        [2**16],
        [2**16 + 1],
    ),
    "sigma": (
        lambda v: discreet.gaussian(sensitivity=1, sigma=v, granularity=1, domain="reals"),
        [2**58],
        [2**58 + 1],
    ),
    "half a delta": (
        lambda v: truncated_laplace(sensitivity=1, epsilon=1, delta=v),
        [0.5],
        [0.500001],
    ),
    "smooth epsilon": (
        lambda v: smooth_sensitivity(lower=0, upper=1, public_rows=9, epsilon=v),
        [100, Fraction(1, 2**18)],
        [100.001, Fraction(1, 2**18 + 1)],
    ),
    "smooth Gaussian delta": (
        lambda v: smooth_sensitivity(**UNIT, public_rows=9, delta=v, noise="gaussian"),
        [1e-12],
        [9.99e-13],
    ),
    "smooth rows": (lambda v: TrimmedMean(public_rows=v, below=1, above=1), [3], [2]),
    "tails": (
        lambda v: mean_without_bounds(unit=1, epsilon=1, tail=v),
        [Fraction(1, 2) - Fraction(1, 2**20), Fraction(1, 2**20)],
        [Fraction(1, 2), Fraction(1, 2**20 + 1)],
    ),
    "blur": (
        lambda v: weighted_sensitivity(**UNIT, public_rows=9, delta=1e-6, blur=v),
        [(1, 2)],
        [(0.999, 2), ()],
    ),
    "a bound of one step": (
        lambda v: propose_test_release(
            **UNIT, public_rows=9, delta=1e-6, bound=v, granularity=0.25
        ),
        [0.25],
        [0.249],
    ),
    "points of a personal quantile": (
        lambda v: personalized_quantile(MENU, lower=1, upper=v),
        [2, 2**24],
        [1, 2**24 + 1],
    ),
    "anchors": (
        lambda v: stretched_quantile(MENU, lower=-3, upper=5, anchor=v),
        [-3, 5],
        [-4, 6],
    ),
    "stretched upper bounds": (
        lambda v: stretched_sum(MENU, lower=0, upper=v),
        [1, 2**40],
        [0, 2**40 + 1],
    ),
    "stretched prices": (
        lambda v: stretched_quantile({"a": discreet.pure_dp(v, **REPLACE)}, lower=0, upper=2),
        [2**60 - 1],
        [2**60],
    ),
    "smallest runs": (lambda v: privacy_aware([1, 2, 3], runs=2, smallest=v), [1, 3], [4, 0]),
    "budgets": (lambda v: privacy_aware([1, v], runs=1), [1e-300], [0, -1, math.inf, math.nan]),
    "defaults": (
        lambda v: sample_and_aggregate(np.mean, **UNIT, groups=3, default=v),
        [0, 1],
        [-0.001, 1.001],
    ),
    "bins": (
        lambda v: private_bin_counts(lower=0, upper=8, granularity=1, epsilon=1, bins=v),
        [1, 8],
        [0, 9],
    ),
    "bounded epsilon": (
        lambda v: bounded_laplace(lower=0, upper=1, sensitivity=1, epsilon=v),
        [256],
        [257],
    ),
    "sampled": (
        lambda v: multidimensional_mean(columns={"a": (0, 1), "b": (0, 1)}, epsilon=0.5, sampled=v),
        [1, 2],
        [0, 3],
    ),
    "columns": (
        lambda v: multidimensional_mean(
            columns={str(i): (0, 1) for i in range(v)}, epsilon=1, sampled=1
        ),
        [1, 255],
        [0, 256],
    ),
    "local lower bounds": (
        lambda v: bounds(v, 0),
        [-(10**300), -1e-300],
        [-(10**300) - 1, 0, 1, -9.9e-301],
    ),
    "local distances": (lambda v: bounds(-v, 10**300 - v), [0, 10**299], [-1, 10**300 + 1]),
    "response categories": (lambda v: grr(categories=v, epsilon=1), [2, 2**31], [1, 2**31 + 1]),
    "hashed categories": (
        lambda v: olh(categories=v, epsilon=1, hashes=2),
        [2, 2**24],
        [1, 2**24 + 1],
    ),
    "hashes": (
        lambda v: olh(categories=9, epsilon=1, hashes=v),
        [2, 4, 8, 16],
        [1, 3, 5, 6, 7, 9, 12, 17, 32],
    ),
    "kept": (lambda v: olh(categories=9, epsilon=1, hashes=4, kept=v), [1, 3], [0, 4]),
    "set categories": (
        lambda v: subset_selection(categories=v, epsilon=1, chosen=1),
        [2, 2**24],
        [1, 2**24 + 1],
    ),
    "chosen": (lambda v: subset_selection(categories=5, epsilon=1, chosen=v), [1, 4], [0, 5]),
    "threshold": (
        lambda v: threshold_histogram_encoding(categories=5, epsilon=1, threshold=v),
        [0.5, 1, "1/2"],
        [0.499, 1.001, "1/3"],
    ),
    "steps of she": (
        lambda v: summation_histogram_encoding(categories=5, epsilon=1, steps=v),
        [1, 32767 // 97],
        [0, 32767 // 97 + 1],
    ),
    "epsilon of she": (
        lambda v: summation_histogram_encoding(categories=5, epsilon=v),
        [Fraction(96, 32766)],
        [Fraction(96, 32767)],
    ),
    "share of a hybrid": (
        lambda v: hybrid_mean(epsilon=1, lower=0, upper=1, share=v),
        [0, 2**16],
        [-1, 2**16 + 1],
    ),
    "scale of shares": (
        lambda v: distributed_laplace(sensitivity=1, epsilon=v, min_honest_reports=1),
        [Fraction(1, 2**16)],
        [Fraction(1, 2**16 + 1)],
    ),
    "modulus of shares": (
        lambda v: distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=1, modulus=v),
        [2, 2**62],
        [1, 2**62 + 1],
    ),
    "shared values": (lambda v: shares.randomize([v], rng=seeded_rng(1)), [49, -49], [50, -50]),
    "honest clients": (lambda v: shares.decode([1], clients=v), [5, 6], [4]),
    "ranges of categories": (
        lambda v: found.range(*v),
        [(0, 2), (0, 0), (2, 2)],
        [(-1, 2), (0, 3), (2, 1)],
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    make, allowed, *refused = LIMITS[name]
    for value in allowed:
        make(value)
    for value in refused[0] if refused else []:
        with pytest.raises(PrivacyError):
            make(value)
