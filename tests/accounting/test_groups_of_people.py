"""A guarantee for several people knows that it is one."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet
from discreet.core.errors import InvalidArgument


def test_a_sample_of_a_group_is_not_a_sample_of_one_person():
    # Two people, discrete Laplace of epsilon 3, each sampled with 0.1: delta(0) is 0.1724 exactly,
    # and 0.0950 for one person: the group comes last.
    one = discreet.laplace(sensitivity=1, scale=Fraction(1, 3), domain="integers").guarantee
    with pytest.raises(InvalidArgument, match="for_group"):
        one.for_group(2).sampled(0.1)
    assert one.sampled(0.1).for_group(2).delta(0) >= 0.1724


def test_groups_of_different_sizes_do_not_add_up():
    one = discreet.pure_dp(1)
    with pytest.raises(InvalidArgument, match="for_group"):
        one.for_group(3) + one
    assert (one + one).for_group(3).epsilon() == 6
    assert (one.for_group(3) + one.for_group(3)).epsilon() == 6
    assert (one.for_group(3) * 2).group_size == 3
    assert one.for_group(1) == one
