"""Guarantees by level, and a filter for each person."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import conversion
from discreet.accounting.guarantee import approx, gdp, pure, zcdp
from discreet.accounting.individual_filter import GRAIN, LARGEST_RHO, PeopleFilter, limit_rho
from discreet.accounting.personalized import PersonalGuarantee, personal
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import Relation

MENU = {"strict": pure(1), "open": pure(3)}


# ── levels ─────────────────────────────────────────────────────────────────────────────────────


def test_levels_compose_each_for_itself():
    twice = personal(MENU) + personal({"open": pure(2), "strict": pure(0.5)})
    assert twice.epsilons() == {"open": 5.0, "strict": 1.5}
    assert (personal(MENU) * 3)["open"].epsilon() == 9
    assert sum([personal(MENU)] * 2)["strict"].epsilon() == 2


def test_the_worst_level_holds_for_everybody():
    assert personal(MENU).worst.epsilon() == 3
    assert personal({"a": pure(1), "b": pure(1)}).worst == pure(1)
    # Of stated pairs the larger holds for all; of two that are not ordered neither does.
    low, high, other = approx(1, 1e-6), approx(2, 1e-6), approx(1, 1e-5)
    assert personal({"a": high, "b": low}).worst == personal({"a": low, "b": high}).worst == high
    mixed = personal({"a": low, "b": high, "c": other}).worst
    assert mixed.event == events.Either((high.event, other.event))


def test_json_comes_back():
    whole = personal({"a": approx(1, 1e-6), "b": gdp(0.5)})
    assert PersonalGuarantee.from_json(whole.to_json()) == whole
    with pytest.raises(InvalidArgument, match="JSON"):
        PersonalGuarantee.from_json("{}")


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({}, "at least one"),
        ({"": pure(1)}, "names"),
        ({1: pure(1)}, "names"),
        ({"a": 1.0}, "guarantees"),
        ([("a", pure(1))], "map names"),
    ],
)
def test_bad_menus(levels, words):
    with pytest.raises(InvalidArgument, match=words):
        personal(levels)


def test_levels_must_agree():
    with pytest.raises(RelationMismatch):
        personal({"a": pure(1), "b": pure(1, relation=Relation.REPLACE_ONE)})
    with pytest.raises(InvalidArgument, match="same levels"):
        personal(MENU) + personal({"strict": pure(1)})
    with pytest.raises(InvalidArgument, match="no level 'other'; there are: open, strict"):
        personal(MENU)["other"]


# ── people ─────────────────────────────────────────────────────────────────────────────────────


class Careless(PeopleFilter):
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
    assert passed(PeopleFilter(limits), queries) <= 0


def test_a_filter_that_looks_back_is_caught():
    assert passed(Careless([1.0] * 4), [np.full(4, 0.4)] * 5) > 0


def test_who_cannot_pay_is_left_out_and_may_pay_less_later():
    people = PeopleFilter([1.0, 0.25, 0.0])
    assert people.admit(zcdp(0.5)).tolist() == [True, False, False]
    assert people.admit([0.4999, 0.2499, 0.0]).tolist() == [True, True, True]
    assert people.admit(zcdp(0.0002)).tolist() == [False, False, False]
    assert people.admit(zcdp(LARGEST_RHO * 10)).tolist() == [False] * 3
    assert (people.spent * float(GRAIN)).tolist() == pytest.approx([0.9999, 0.2499, 0.0])


def test_decimals_fit_exactly():
    people = PeopleFilter.of_levels(np.array([0]), (zcdp(0.3),))
    assert people.admit(zcdp(0.1)).all()
    assert people.admit(zcdp(0.2)).all()
    assert not people.admit(zcdp(GRAIN)).any()


def test_limits_in_epsilon_and_delta():
    rho = limit_rho(approx(1, 1e-5))
    # The classic conversion allows 0.0208199 (M4); the better one more, but no more
    # than Gaussian noise, whose exact curve reaches mu = 0.268051.
    assert 0.0208199 < rho < 0.268051**2 / 2
    assert conversion.zcdp_epsilon_optimal(float(rho), delta=1e-5) <= 1
    assert conversion.zcdp_epsilon_optimal(float(rho) * 1.0001, delta=1e-5) > 1
    levels = PeopleFilter.of_levels(np.array([0, 1, 0]), (approx(1, 1e-5), zcdp(0.5)))
    assert levels.limits[1] == 5 * 10**11
    assert levels.limits[0] == levels.limits[2] == math.floor(rho / GRAIN)


def test_a_filter_goes_on_from_what_was_spent():
    people = PeopleFilter([1.0, 1.0])
    people.admit([0.5, 0.25])
    again = PeopleFilter([1.0, 1.0])
    again.restore(people.spent)
    assert again.admit(zcdp(0.7)).tolist() == [False, True]
    with pytest.raises(InvalidArgument, match="within"):
        again.restore(np.array([10**13, 0]))


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda: PeopleFilter([-1.0]), "negative"),
        (lambda: PeopleFilter([np.nan]), "finite"),
        (lambda: PeopleFilter([[1.0]]), "flat"),
        (lambda: PeopleFilter([1e9]), "at most"),
        (lambda: PeopleFilter([1.0]).admit([0.1, 0.1]), "per person"),
        (lambda: PeopleFilter([1.0]).admit([-0.1]), "negative"),
        (lambda: limit_rho(pure(1)), "positive delta"),
        (lambda: PeopleFilter.of_levels(np.array([0, 2]), (zcdp(1), zcdp(1))), "0..1"),
        (lambda: PeopleFilter.of_levels(np.array([0.5]), (zcdp(1),)), "whole number"),
    ],
)
def test_bad_input_names_the_argument(do, words):
    with pytest.raises(InvalidArgument, match=words):
        do()


def test_relations_are_not_mixed():
    with pytest.raises(RelationMismatch):
        PeopleFilter([1.0]).admit(zcdp(0.1, relation=Relation.REPLACE_ONE))
    with pytest.raises(RelationMismatch):
        limit_rho(zcdp(1, relation=Relation.REPLACE_ONE))
