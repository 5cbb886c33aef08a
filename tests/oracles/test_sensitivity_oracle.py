"""The random version of the sensitivity oracle accepts what is right and refuses what is not."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from discreet.core.relation import NeighboringRelation
from tests.oracles.sensitivity import assert_sensitivity, neighboring

VALUES = st.integers(-100, 100)


@given(neighboring(VALUES, relation=NeighboringRelation.ADD_REMOVE))
def test_right_claims_pass_when_one_is_removed(pair) -> None:
    assert_sensitivity(sum, 100, pair)


@given(neighboring(VALUES, relation=NeighboringRelation.REPLACE_ONE, min_size=2))
def test_right_claims_pass_when_one_is_replaced(pair) -> None:
    assert_sensitivity(sum, 200, pair)
    assert_sensitivity(statistics.mean, 200 / len(pair[0]), pair)
    assert_sensitivity(statistics.stdev, 200 / math.sqrt(len(pair[0])), pair)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (sum, lambda n: 100),
        (statistics.mean, lambda n: 100 / n),
        (statistics.stdev, lambda n: 200 / n),
    ],
)
def test_wrong_claims_are_found(query, wrong) -> None:
    def fails(pair) -> bool:
        try:
            assert_sensitivity(query, wrong(len(pair[0])), pair)
        except AssertionError:
            return True
        return False

    pairs = neighboring(VALUES, relation=NeighboringRelation.REPLACE_ONE, min_size=2)
    find(pairs, fails, settings=settings(max_examples=2000, derandomize=True, database=None))
