"""Keys shown by a threshold: exact output laws over all small inputs, thresholds, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.partition_selection import partition_selection
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng

EPSILON, DELTA = 1.0, 0.02
MAKE = {
    "laplace": {"epsilon": EPSILON, "delta": DELTA, "method": "laplace"},
    "gaussian": {"epsilon": EPSILON, "delta": DELTA, "method": "gaussian"},
    "rho": {"rho": 0.2, "delta": DELTA},
}


def key_law(mechanism, units, *, at_threshold=False):
    """The law of what is shown of a key: hidden first, then every noisy count within reach."""
    reach = 12 * math.ceil(mechanism.std) + 10
    first = mechanism.threshold + 1 - at_threshold
    values = np.arange(first, first + reach)
    above = units - (mechanism.minimum - 1)
    if above < 1:
        return np.concatenate(([1.0], np.zeros(reach)))
    shown = mechanism.noise.pmf(values - above)
    return np.concatenate(([float(mechanism.noise.cdf(first - 1 - above))], shown))


def divergence(mechanism, left, right, epsilon, **how):
    """Exact delta between two inputs, given as counts of units per key."""
    p = q = np.ones(1)
    for a, b in zip(left, right, strict=True):
        if a != b:
            p = np.outer(p, key_law(mechanism, a, **how)).ravel()
            q = np.outer(q, key_law(mechanism, b, **how)).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def neighbors(groups, relation, counts):
    """Pairs that differ in one unit which has at most ``groups`` of two keys."""
    for left, right in product(product(counts, repeat=2), repeat=2):
        steps = [b - a for a, b in zip(left, right, strict=True)]
        more, less = steps.count(1), steps.count(-1)
        whole = more + less + steps.count(0) == 2
        if relation is NeighboringRelation.ADD_REMOVE:
            if whole and more <= groups and less == 0:
                yield left, right
        elif whole and more <= groups and less <= groups:
            yield left, right


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("how", MAKE)
@pytest.mark.parametrize("minimum", [1, 3])
def test_no_pair_of_neighbors_is_told_apart_better(how, groups, relation, minimum):
    mechanism = partition_selection(groups=groups, relation=relation, minimum=minimum, **MAKE[how])
    t = mechanism.threshold + minimum - 1
    counts = sorted({0, 1, minimum - 1, minimum, minimum + 1, t, t + 1})
    for epsilon in (0.0, EPSILON / 2, EPSILON):
        claimed = mechanism.guarantee.delta(epsilon)
        if epsilon == EPSILON and how != "rho":
            assert claimed <= DELTA * (1 + 1e-12)
        for left, right in neighbors(groups, relation, counts):
            for pair in ((left, right), (right, left)):
                assert divergence(mechanism, *pair, epsilon) <= claimed * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("how", MAKE)
def test_the_threshold_is_the_smallest(how):
    for groups in (1, 2, 7):
        mechanism = partition_selection(groups=groups, **MAKE[how])
        share = DELTA / 2 if how == "gaussian" else DELTA
        tail = float(mechanism.noise.sf(mechanism.threshold - 1))
        assert groups * tail <= share < groups * float(mechanism.noise.sf(mechanism.threshold - 2))
        assert float(mechanism.mass) == pytest.approx(groups * tail, rel=1e-9)


def test_mistakes_are_noticed_by_the_same_sums():
    two = partition_selection(groups=2, **MAKE["laplace"])
    claimed = two.guarantee.delta(EPSILON)
    assert divergence(two, (0, 0), (1, 1), EPSILON) <= claimed
    assert divergence(two, (1, 1), (0, 0), EPSILON, at_threshold=True) > claimed
    for_one = replace(two, threshold=two.threshold - 1)
    assert divergence(for_one, (1, 1), (0, 0), EPSILON) > claimed
    assert divergence(two, (2, 2), (0, 0), EPSILON) > claimed  # two rows of a unit in each key


def test_release_is_the_thresholded_noise():
    mechanism = partition_selection(groups=1, epsilon=1, delta=0.01, minimum=2, method="laplace")
    counts = np.array([0, 1, 2, 3, 8, 30, 31, 50])
    places, noisy = mechanism.release(counts, rng=seeded_rng(3))
    noise = mechanism.noise.sample(len(counts), seeded_rng(3))
    expected = [
        (i, c + z)
        for i, (c, z) in enumerate(zip(counts.tolist(), noise.tolist(), strict=True))
        if c >= 2 and c - 1 + z > mechanism.threshold
    ]
    assert list(zip(places.tolist(), noisy.tolist(), strict=True)) == expected
    assert {5, 6, 7} <= set(places.tolist())
    places, noisy = mechanism.release(np.zeros(0, dtype=np.int64), rng=seeded_rng(1))
    assert len(places) == len(noisy) == 0


def test_a_key_that_nobody_has_is_never_shown():
    mechanism = partition_selection(groups=1, epsilon=0.01, delta=0.4, method="laplace")
    places, _ = mechanism.release(np.zeros(100_000, dtype=np.int64), rng=seeded_rng(5))
    assert len(places) == 0
    ones, _ = mechanism.release(np.ones(100_000, dtype=np.int64), rng=seeded_rng(5))
    assert len(ones) > 0
    assert mechanism.chance(0) == 0
    assert mechanism.chance(1) <= 0.4 < mechanism.chance(1000)


def test_the_better_noise_is_taken():
    few = partition_selection(groups=1, epsilon=1, delta=1e-6)
    many = partition_selection(groups=50, epsilon=1, delta=1e-6)
    assert isinstance(few.noise, DiscreteLaplace)
    assert not isinstance(many.noise, DiscreteLaplace)
    forced = partition_selection(groups=50, epsilon=1, delta=1e-6, method="laplace")
    assert many.threshold < forced.threshold


@pytest.mark.parametrize(
    "arguments",
    [
        {"groups": 1, "epsilon": 1, "delta": 1e-6},
        {"groups": 4, "epsilon": 0.1, "delta": Fraction(1, 10**9), "minimum": 5},
        {"groups": 3, "rho": 0.01, "delta": 1e-6, "relation": NeighboringRelation.REPLACE_ONE},
        {"groups": 2000, "rho": 1e-5, "delta": 1e-6},
    ],
)
def test_certificates(arguments):
    mechanism = partition_selection(**arguments)
    assert mechanism.certify().holds
    wrong = replace(mechanism, target=(Fraction(1, 1000), Fraction(1, 10**12)))
    with pytest.raises(Exception, match="NOT CERTIFIED"):
        wrong.certify()


@pytest.mark.parametrize(
    "arguments",
    [
        {"groups": 0, "epsilon": 1, "delta": 0.1},
        {"groups": 1, "epsilon": 1, "delta": 0},
        {"groups": 1, "epsilon": 1, "delta": 1},
        {"groups": 1, "delta": 0.1},
        {"groups": 1, "epsilon": 1, "rho": 1, "delta": 0.1},
        {"groups": 1, "rho": 1, "delta": 0.1, "method": "laplace"},
        {"groups": 1, "epsilon": 1, "delta": 0.1, "method": "other"},
        {"groups": 1, "epsilon": 1, "delta": 0.1, "minimum": 0},
    ],
)
def test_refusals(arguments):
    with pytest.raises(InvalidArgument):
        partition_selection(**arguments)


def test_counts_are_flat():
    mechanism = partition_selection(groups=1, epsilon=1, delta=0.1)
    for counts in (np.array([[1]]), 3):
        with pytest.raises(OutOfDomain):
            mechanism.release(counts)
