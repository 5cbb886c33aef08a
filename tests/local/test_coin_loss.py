"""Certificates look at the coin that is thrown: a coin that lies too seldom is not certified."""

from fractions import Fraction

import pytest

from discreet.core._rational import exp_minus, light_share
from discreet.core.errors import NotCertified
from discreet.local.longitudinal import MemoizedHashing
from discreet.local.oracles.local_hashing import LocalHashing
from discreet.local.oracles.randomized_response import RandomizedResponse
from discreet.local.oracles.subset_selection import SubsetSelection
from discreet.local.ranges.haar import HaarResponse

EPSILONS = [Fraction(1, 1000), Fraction(1), Fraction(800)]
MAKERS = [
    (RandomizedResponse, "_lie", {"categories": 5}),
    (LocalHashing, "_lie", {"categories": 8, "hash_digits": 2}),
    (SubsetSelection, "_lie", {"categories": 7, "chosen": 3}),
    (HaarResponse, "_lie", {"pairs": 4}),
    (MemoizedHashing, "_second_lie", {"categories": 8, "hash_digits": 2}),
]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("kind", "coin", "given"), MAKERS)
def test_a_coin_that_lies_too_seldom_is_not_certified(kind, coin, given, epsilon, monkeypatch):
    if kind is MemoizedHashing:
        given = {**given, "permanent_epsilon": 2 * epsilon}
    made = kind(epsilon=epsilon, **given)
    assert made.certify().holds
    right = getattr(kind, coin)

    def seldom(self, precision):
        # Less by a millionth: what a coin of single precision could be off by.
        return tuple(end - end // 10**6 for end in right(self, precision))

    monkeypatch.setattr(kind, coin, seldom)
    with pytest.raises(NotCertified):
        made.certify()


@pytest.mark.parametrize(("light", "heavy"), [(1, 1), (7, 1), (3, 5)])
def test_the_light_share_is_enclosed(light, heavy):
    low, high = light_share(Fraction(3, 2), 80, light=light, heavy=heavy)
    rarer = Fraction(sum(exp_minus(Fraction(3, 2), 200)), 2 << 200)
    share = light * rarer / (heavy + light * rarer)
    assert low <= share * 2**80 <= high <= low + 2
