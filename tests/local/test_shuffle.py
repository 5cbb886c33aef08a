"""Randomizers behind a shuffler: their two levels, and what is gained."""

import math
from dataclasses import dataclass
from functools import partial

import pytest

from discreet.core.errors import Unsupported
from discreet.local import shuffle as shuffling
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import longitudinal_olh, rappor
from discreet.local.means.balanced_piecewise import balanced_piecewise
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import LocalHashing, hadamard_response, olh
from discreet.local.oracles.randomized_response import RandomizedResponse, randomized_response
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue, threshold_histogram_encoding

ORACLES = {
    "response": partial(randomized_response, categories=7),
    "subsets": partial(subset_selection, categories=11),
    "hashing": partial(olh, categories=20),
    "Hadamard": partial(hadamard_response, categories=20),
    "oue": partial(oue, categories=9),
    "sue": partial(sue, categories=9),
    "the": partial(threshold_histogram_encoding, categories=9),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("epsilon", [0.5, 2, 5])
def test_both_levels_give_the_chances_of_support(name, epsilon):
    """A support of the own and of another category is a matter of share and differ alone."""
    oracle = ORACLES[name](epsilon=epsilon)
    ((weight, share, differ),) = shuffling.parts(oracle)
    ratio = float(oracle.ratio) if hasattr(oracle, "ratio") else math.exp(epsilon)
    total = 1 + (ratio - 1) * float(share)
    assert weight == 1
    assert ratio <= math.exp(epsilon) * (1 + 1e-15)
    assert oracle.keep == pytest.approx(ratio * float(share) / total, rel=1e-9)
    other = (ratio * float(share - differ) + float(differ)) / total
    assert oracle.other == pytest.approx(other, rel=1e-9)


def test_windows_have_two_levels():
    for made in (
        square_wave(epsilon=1, lower=0, upper=1, cells=16),
        piecewise_mean(epsilon=1, lower=0, upper=1),
        duchi(epsilon=1, lower=0, upper=1),
        balanced_piecewise(epsilon=1, lower=0, upper=1),
    ):
        ((_, share, differ),) = shuffling.parts(made)
        rows = [made.window.weights(index) for index in range(made.window.inputs)]
        near = [row == made.window.near for row in rows]
        assert {float(row.mean()) for row in near} == {float(share)}
        assert max((row & ~near[0]).mean() for row in near) == float(differ)
        assert made.certify()  # the ratio is at most e^epsilon


def test_others_are_any_randomizer():
    other = summation_histogram_encoding(categories=4, epsilon=1)
    assert shuffling.parts(other) == ()
    assert shuffling.shuffled_guarantee(other, reports=1000) == other.guarantee.shuffled(
        reports=1000
    )


def test_memoized_reports_are_refused():
    """Their clients repeat themselves, and shuffling does not hide who does."""
    for made in (
        rappor(categories=4, permanent_epsilon=2, epsilon=1),
        longitudinal_olh(categories=8, permanent_epsilon=2, epsilon=1),
    ):
        with pytest.raises(Unsupported, match="remembers"):
            shuffling.shuffled_guarantee(made, reports=1000)


def test_what_is_derived_is_not_taken_for_known():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Other(RandomizedResponse):
        """May report anything."""

    assert shuffling.parts(Other(categories=3, epsilon=1)) == ()

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Hashed(LocalHashing):
        """May report anything, too."""

    assert shuffling.parts(Hashed(categories=4, epsilon=1, hash_digits=1, kept=1)) == ()


@pytest.mark.parametrize("name", ["response", "subsets", "hashing", "oue"])
def test_a_crowd_lets_a_client_say_more(name):
    make = ORACLES[name]
    local = shuffling.local_epsilon_for(
        lambda e: make(epsilon=e), epsilon=1.0, delta=1e-6, reports=10_000
    )
    crowd = shuffling.shuffled_guarantee(make(epsilon=local), reports=10_000)
    assert crowd.epsilon(1e-6) <= 1.0
    alone = shuffling.local_epsilon_for(epsilon=1.0, delta=1e-6, reports=10_000)
    assert local > alone > 4.797  # what any randomizer may say
    assert make(epsilon=local).std < make(epsilon=1).std / 2
