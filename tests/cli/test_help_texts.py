"""What is said about a guarantee is what it means."""

import math

import discreet
from discreet.report.html_page import plainly

REPLACE = discreet.NeighboringRelation.REPLACE_ONE


def test_pure_guarantees_have_a_factor_and_nothing_else():
    text = plainly(discreet.pure_dp(math.log(2)))
    assert "at most 2 times as likely with one unit in the data as without it" in text
    assert "plus" not in text


def test_deltas_are_added_not_excused():
    text = plainly(discreet.approx_dp(1, 1e-6))
    assert "2.72 times" in text
    assert "plus a probability of 1e-06 at most" in text


def test_the_relation_decides_what_is_compared():
    assert "any other data in their place" in plainly(discreet.pure_dp(1, relation=REPLACE))


def test_useless_guarantees_are_called_so():
    assert "beyond all use" in plainly(discreet.pure_dp(1000))
