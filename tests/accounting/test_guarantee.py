"""Guarantees: what a user holds."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting._event_tree import leaves
from discreet.accounting.guarantee import Guarantee, approx_dp, gdp, pure_dp, zcdp
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import (
    ApproxEvent,
    GaussianEvent,
    GdpEvent,
    GroupEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ZcdpEvent,
)
from discreet.core.relation import NeighboringRelation

REPLACE = NeighboringRelation.REPLACE_ONE


def test_ten_tenths_are_exactly_one():
    assert (pure_dp(0.1) * 10).epsilon(0) == 1.0
    assert sum([pure_dp(0.1)] * 10).epsilon(0) == 1.0
    assert (pure_dp(0.1) + pure_dp(0.2)).epsilon() == 0.3 < 0.1 + 0.2


def test_declared_budgets_are_worth_what_they_say():
    assert approx_dp(1, 1e-6).epsilon(1e-6) <= 1.0
    assert approx_dp(1, 1e-6).delta(1) == pytest.approx(1e-6, rel=1e-9)
    assert approx_dp(1, 1e-6).epsilon(1e-7) == math.inf
    assert approx_dp(1, 0) == Guarantee(ApproxEvent(Fraction(1), Fraction(0)))
    assert approx_dp(1, 0).epsilon() == 1.0
    assert zcdp(0).epsilon() == gdp(0).epsilon() == pure_dp(0).epsilon() == 0


@pytest.mark.parametrize("bottom", range(300_001, 300_020))
def test_a_fraction_is_asked_as_it_is(bottom):
    """It is not rounded on the way: half of all fractions are above what their double reads as."""
    part = Fraction(1, bottom)
    assert approx_dp(1, part).epsilon(part) == 1
    assert approx_dp(part, 1e-5).delta(part) == 1e-5
    assert approx_dp(1, part).epsilon(part * (1 - Fraction(1, 10**20))) == math.inf
    # What is returned may be asked again: it is read as no less.
    assert Fraction(repr(approx_dp(1, part).delta(1))) >= part
    assert approx_dp(part, 1e-5).delta(approx_dp(part, 1e-5).epsilon(1e-5)) == 1e-5


def test_what_underflows_is_not_pure():
    """Far tails of a Gaussian are smaller than any double, and still not zero."""
    for g in (gdp(0.1), gdp(0.1).sampled(0.1), gdp(0.1) * 3, zcdp(0.1), gdp(0.1) + pure_dp(1)):
        assert g.epsilon(0) == math.inf
        assert 0 < g.delta(100.0) < 1e-30


def test_the_tour_of_the_design():
    g = pure_dp(0.1) * 10 + gdp(0.3)
    assert 1.0 < g.epsilon(1e-6) < 2.6
    assert g.delta(1.0) < 0.05


@given(st.fractions(0, 3), st.fractions(0, 3), st.integers(0, 6))
def test_algebra(a, b, k):
    assert pure_dp(a) + pure_dp(b) == pure_dp(b) + pure_dp(a)
    assert (pure_dp(a) + pure_dp(b)) * k == pure_dp(a) * k + pure_dp(b) * k
    assert pure_dp(a) * k == k * pure_dp(a)
    assert hash(pure_dp(a) * k) == hash(k * pure_dp(a))


def test_relations_do_not_mix():
    with pytest.raises(RelationMismatch):
        pure_dp(1) + pure_dp(1, relation=REPLACE)
    assert pure_dp(1) != pure_dp(1, relation=REPLACE)
    with pytest.raises(RelationMismatch):
        pure_dp(1, relation=REPLACE).to_replace_one()
    with pytest.raises(RelationMismatch):
        pure_dp(1, relation=NeighboringRelation.LOCAL).to_replace_one()
    with pytest.raises(InvalidArgument):
        Guarantee(PureEvent(Fraction(1)), "ADD_REMOVE")
    with pytest.raises(TypeError):
        pure_dp(1) + 1


def test_to_replace_one():
    """B1."""
    assert pure_dp(1).to_replace_one().epsilon() == 2.0
    moved = approx_dp(1, 1e-6).to_replace_one()
    assert moved.relation is REPLACE
    assert moved.delta(2.0) == pytest.approx(3.718e-6, rel=1e-4)
    assert gdp(0.5).to_replace_one().epsilon(1e-6) == pytest.approx(gdp(1).epsilon(1e-6))


def test_groups():
    """B24, and the families that do better than it."""
    assert approx_dp(1, 1e-6).for_group(3).delta(3.0) == pytest.approx(1.1107e-5, rel=1e-4)
    assert pure_dp(0.5).for_group(4).epsilon() == 2.0
    assert zcdp(0.1).for_group(3).rdp(2.0) == pytest.approx(1.8)
    assert gdp(0.1).for_group(3).epsilon(1e-6) == pytest.approx(gdp(0.3).epsilon(1e-6))
    both = (pure_dp(0.1) + gdp(0.1)).for_group(2)
    assert both.epsilon(1e-6) == pytest.approx((pure_dp(0.2) + gdp(0.2)).epsilon(1e-6))
    assert pure_dp(1).for_group(1) == pure_dp(1)


def test_sampling_needs_its_relation():
    assert pure_dp(1).sampled(0.1).epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    drawn = pure_dp(1, relation=REPLACE).sampled(sample=1, population=10)
    assert drawn.epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    with pytest.raises(RelationMismatch):
        pure_dp(1, relation=REPLACE).sampled(0.1)
    with pytest.raises(RelationMismatch):
        pure_dp(1).sampled(sample=1, population=10)
    with pytest.raises(RelationMismatch):
        pure_dp(1, relation=NeighboringRelation.LOCAL).sampled(0.1)
    with pytest.raises(InvalidArgument):
        pure_dp(1).sampled()
    with pytest.raises(InvalidArgument):
        pure_dp(1).sampled(0.1, sample=1, population=10)
    # Sampled first, converted afterwards: a replacement is two steps of the sampled mechanism.
    assert pure_dp(1).sampled(0.1).to_replace_one().epsilon() == pytest.approx(
        2 * pure_dp(1).sampled(0.1).epsilon()
    )
    with pytest.raises(RelationMismatch):
        Guarantee(GroupEvent(3, SampledEvent(Fraction(1, 2), PureEvent(Fraction(1)))), REPLACE)


def test_edges_of_sampling():
    g = Guarantee(GaussianEvent(Fraction(1)))
    assert g.sampled(0).epsilon(1e-6) == 0
    assert g.sampled(1).epsilon(1e-6) == g.epsilon(1e-6)
    assert g.sampled(0.5).sampled(0.2).epsilon(1e-6) == pytest.approx(g.sampled(0.1).epsilon(1e-6))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, "1", None, True])
def test_bad_numbers_are_refused(bad):
    for make in (
        pure_dp,
        zcdp,
        gdp,
        lambda x: approx_dp(x, 0),
        lambda x: approx_dp(1, x),
        pure_dp(1).delta,
    ):
        with pytest.raises(InvalidArgument):
            make(bad)
    for ask in (
        pure_dp(1).epsilon,
        pure_dp(1).bounds,
        pure_dp(1).rdp,
        pure_dp(1).for_group,
        pure_dp(1).sampled,
    ):
        with pytest.raises(InvalidArgument):
            ask(bad)


@pytest.mark.parametrize("delta", [1, 1.5, -1e-9])
def test_delta_lies_in_its_range(delta):
    with pytest.raises(InvalidArgument):
        pure_dp(1).epsilon(delta)
    with pytest.raises(InvalidArgument):
        approx_dp(1, delta)


def test_orders_above_one_only():
    with pytest.raises(InvalidArgument):
        gdp(1).rdp(1)
    assert gdp(1).rdp(3) == pytest.approx(1.5)


@pytest.mark.parametrize("count", [-1, 1.5, "2"])
def test_counts_are_whole(count):
    with pytest.raises(InvalidArgument):
        pure_dp(1) * count


def test_json_round_trip():
    for g in (
        pure_dp(0.1) * 3 + gdp(0.2),
        approx_dp(1, 1e-6, relation=REPLACE),
        zcdp(0.1).sampled(0.5),
    ):
        assert Guarantee.from_json(g.to_json()) == g
    with pytest.raises(InvalidArgument):
        Guarantee.from_json("{}")
    with pytest.raises(Unsupported):
        Guarantee.from_json('{"event":{"kind":"new","version":1},"relation":"ADD_REMOVE"}')


def test_it_prints_and_explains():
    assert repr(pure_dp(0.1) * 10) == "Guarantee(10 x epsilon 0.1)"
    assert repr(gdp(1, relation=REPLACE)) == "Guarantee(mu 1, NeighboringRelation.REPLACE_ONE)"
    text = (pure_dp(0.1) * 100).explain(delta=1e-6)
    assert "by privacy-loss distributions" in text
    assert "by basic composition it would be 10" in text
    assert "add or remove one unit" in text


def test_unknown_events_are_refused():
    with pytest.raises(Unsupported):
        Guarantee("pure")


def test_gaussians_add_in_squares():
    assert (gdp(0.3) + gdp(0.4)).epsilon(1e-6) == pytest.approx(gdp(0.5).epsilon(1e-6), rel=1e-9)
    assert Guarantee(GaussianEvent(Fraction(2))).epsilon(1e-6) == Guarantee(
        GdpEvent(Fraction(1, 2))
    ).epsilon(1e-6)


def test_two_replacements_do_not_make_a_poisson_sample_within_a_drawn_one_sound():
    """One drawn unit is replaced, not removed: two values of it are as far apart as e^1 here."""
    inside = SampledWithoutReplacementEvent(1, 2, SampledEvent(Fraction(1, 2), PureEvent(1)))
    for event in (inside, GroupEvent(2, inside)):
        with pytest.raises(RelationMismatch):
            Guarantee(event, REPLACE)
    sound = pure_dp(1).sampled(0.5).to_replace_one().sampled(sample=1, population=2)
    assert sound.for_group(2).epsilon() > 1


def test_large_groups_of_concentrated_privacy():
    assert zcdp(Fraction(1, 10**12)).for_group(10**6).epsilon(1e-6) == zcdp(1).epsilon(1e-6)
    for size in (100, 101, 1000):
        exact = sum(Fraction(1, i) for i in range(1, size + 1))
        ((grown, _),) = leaves(ZcdpEvent(Fraction(1), Fraction(1)), size=size)
        assert size * exact <= grown.xi <= size * exact * (1 + Fraction(1, 10**5))


def test_rates_that_no_double_holds():
    almost = gdp(1).sampled(1 - Fraction(1, 10**20))
    assert gdp(1).epsilon(1e-6) * (1 - 1e-9) < almost.epsilon(1e-6) <= gdp(1).epsilon(1e-6)
    hardly = Fraction(1, 10**400)
    assert 0 < pure_dp(1).sampled(hardly).epsilon() < 1e-300
    assert 0 < gdp(1).sampled(hardly).delta(1) < 1e-299
    assert pure_dp(700).sampled(0.5).epsilon() == 700


def test_numbers_that_hardly_a_double_holds_are_worth_nothing():
    for beyond in (Fraction(10) ** 400, 1e301):
        for make in (pure_dp, gdp, zcdp):
            with pytest.raises(InvalidArgument, match="at most 1e300"):
                make(beyond)
    huge = Fraction(10) ** 300
    assert pure_dp(huge).epsilon(1e-6) == 1e300
    assert 1e300 <= zcdp(huge).epsilon(1e-6) <= 1.02e300
    for guarantee in (gdp(huge), gdp(1e200)):
        assert guarantee.epsilon(1e-6) == math.inf
        assert guarantee.delta(1) == 1
    assert pure_dp(huge).delta(1) == zcdp(huge).delta(1) == 1
    assert gdp(1).delta(huge) < 1e-299
    for mu in (1e-320, 1e-200, 1e-20):
        assert 0 < gdp(mu).delta(1) < 1e-299
