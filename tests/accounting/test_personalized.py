"""Guarantees by level, and a filter for each person."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import conversion
from discreet.accounting.guarantee import approx_dp, gdp, pure_dp, zcdp
from discreet.accounting.individual_filter import GRAIN, LARGEST_RHO, IndividualFilter, limit_rho
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation

MENU = {"strict": pure_dp(1), "open": pure_dp(3)}


# ── levels ─────────────────────────────────────────────────────────────────────────────────────


def test_levels_compose_each_for_itself():
    twice = personalized(MENU) + personalized({"open": pure_dp(2), "strict": pure_dp(0.5)})
    assert twice.epsilons() == {"open": 5.0, "strict": 1.5}
    assert (personalized(MENU) * 3)["open"].epsilon() == 9
    assert sum([personalized(MENU)] * 2)["strict"].epsilon() == 2


def test_the_worst_level_holds_for_everybody():
    assert personalized(MENU).worst.epsilon() == 3
    assert personalized({"a": pure_dp(1), "b": pure_dp(1)}).worst == pure_dp(1)
    # Of stated pairs the larger holds for all; of two that are not ordered neither does.
    low, high, other = approx_dp(1, 1e-6), approx_dp(2, 1e-6), approx_dp(1, 1e-5)
    assert (
        personalized({"a": high, "b": low}).worst
        == personalized({"a": low, "b": high}).worst
        == high
    )
    mixed = personalized({"a": low, "b": high, "c": other}).worst
    assert mixed.event == events.EitherEvent((high.event, other.event))


def test_json_comes_back():
    whole = personalized({"a": approx_dp(1, 1e-6), "b": gdp(0.5)})
    assert PersonalizedGuarantee.from_json(whole.to_json()) == whole
    with pytest.raises(InvalidArgument, match="JSON"):
        PersonalizedGuarantee.from_json("{}")


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({}, "at least one"),
        ({"": pure_dp(1)}, "names"),
        ({1: pure_dp(1)}, "names"),
        ({"a": 1.0}, "guarantees"),
        ([("a", pure_dp(1))], "map names"),
    ],
)
def test_bad_menus(levels, words):
    with pytest.raises(InvalidArgument, match=words):
        personalized(levels)


def test_levels_must_agree():
    with pytest.raises(RelationMismatch):
        personalized({"a": pure_dp(1), "b": pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)})
    with pytest.raises(InvalidArgument, match="same levels"):
        personalized(MENU) + personalized({"strict": pure_dp(1)})
    with pytest.raises(InvalidArgument, match="no level 'other'; there are: open, strict"):
        personalized(MENU)["other"]


# ── people ─────────────────────────────────────────────────────────────────────────────────────


class Careless(IndividualFilter):
    """Looks at what was spent before, not after: the last query passes the limit."""

    def admit(self, cost):
        price = self.price(cost)
        taking = self._spent <= self._limits
        self._spent += np.where(taking, price, 0)
        return taking


def passed(filter_, queries):
    """The largest overdraft, by exact sums of what each person took part in."""
    limits = filter_.limits * GRAIN
    sums = np.full(len(filter_), Fraction(0))
    for asked in queries:
        # Adaptive: the next cost depends on who was admitted before.
        cost = asked * (1 + (sums > 0).mean())
        taking = filter_.admit(cost)
        exact = [Fraction(float(c)) for c in np.broadcast_to(cost, limits.shape)]
        sums += np.where(taking, exact, 0)
    assert (sums <= filter_.spent * GRAIN).all()
    assert (filter_.spent * GRAIN <= sums + 2 * len(queries) * GRAIN).all()
    return max(sums - limits)


AMOUNTS = st.floats(0, 2, allow_nan=False)
QUERIES = st.lists(st.lists(AMOUNTS, min_size=4, max_size=4).map(np.array), max_size=12)


@given(limits=st.lists(AMOUNTS, min_size=4, max_size=4), queries=QUERIES)
def test_nobody_ever_passes_the_own_limit(limits, queries):
    assert passed(IndividualFilter(limits), queries) <= 0


def test_a_filter_that_looks_back_is_caught():
    assert passed(Careless([1.0] * 4), [np.full(4, 0.4)] * 5) > 0


def test_who_cannot_pay_is_left_out_and_may_pay_less_later():
    people = IndividualFilter([1.0, 0.25, 0.0])
    assert people.admit(zcdp(0.5)).tolist() == [True, False, False]
    assert people.admit([0.4999, 0.2499, 0.0]).tolist() == [True, True, True]
    assert people.admit(zcdp(0.0002)).tolist() == [False, False, False]
    assert people.admit(zcdp(LARGEST_RHO * 10)).tolist() == [False] * 3
    assert (people.spent * float(GRAIN)).tolist() == pytest.approx([0.9999, 0.2499, 0.0])


def test_decimals_fit_exactly():
    people = IndividualFilter.of_levels(np.array([0]), (zcdp(0.3),))
    assert people.admit(zcdp(0.1)).all()
    assert people.admit(zcdp(0.2)).all()
    assert not people.admit(zcdp(GRAIN)).any()


def test_limits_in_epsilon_and_delta():
    rho = limit_rho(approx_dp(1, 1e-5))
    # The classic conversion allows 0.0208199 (M4); the better one more, but no more
    # than Gaussian noise, whose exact curve reaches mu = 0.268051.
    assert 0.0208199 < rho < 0.268051**2 / 2
    assert conversion.zcdp_epsilon_optimal(float(rho), delta=1e-5) <= 1
    assert conversion.zcdp_epsilon_optimal(float(rho) * 1.0001, delta=1e-5) > 1
    levels = IndividualFilter.of_levels(np.array([0, 1, 0]), (approx_dp(1, 1e-5), zcdp(0.5)))
    assert levels.limits[1] == 5 * 10**11
    assert levels.limits[0] == levels.limits[2] == math.floor(rho / GRAIN)


def test_a_filter_goes_on_from_what_was_spent():
    people = IndividualFilter([1.0, 1.0])
    people.admit([0.5, 0.25])
    again = IndividualFilter([1.0, 1.0])
    again.restore(people.spent)
    assert again.admit(zcdp(0.7)).tolist() == [False, True]
    with pytest.raises(InvalidArgument, match="within"):
        again.restore(np.array([10**13, 0]))


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda: IndividualFilter([-1.0]), "negative"),
        (lambda: IndividualFilter([np.nan]), "finite"),
        (lambda: IndividualFilter([[1.0]]), "flat"),
        (lambda: IndividualFilter([1e9]), "at most"),
        (lambda: IndividualFilter([1.0]).admit([0.1, 0.1]), "per person"),
        (lambda: IndividualFilter([1.0]).admit(-0.1), "negative"),
        (lambda: limit_rho(pure_dp(1)), "positive delta"),
        (lambda: IndividualFilter.of_levels(np.array([0, 2]), (zcdp(1), zcdp(1))), "0..1"),
        (lambda: IndividualFilter.of_levels(np.array([0.5]), (zcdp(1),)), "whole number"),
    ],
)
def test_bad_input_names_the_argument(do, words):
    with pytest.raises(InvalidArgument, match=words):
        do()


def test_relations_are_not_mixed():
    with pytest.raises(RelationMismatch):
        IndividualFilter([1.0]).admit(zcdp(0.1, relation=NeighboringRelation.REPLACE_ONE))
    with pytest.raises(RelationMismatch):
        limit_rho(zcdp(1, relation=NeighboringRelation.REPLACE_ONE))
