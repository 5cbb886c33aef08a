"""Events of other libraries: the same numbers as theirs, refused where the meaning is not known."""

import math
from fractions import Fraction

import dp_accounting as dpa
import opendp.prelude as dp
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

import discreet
from discreet import interop
from discreet.core import events
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)

ADD = discreet.NeighboringRelation.ADD_REMOVE
REPLACE = discreet.NeighboringRelation.REPLACE_ONE
LOCAL = discreet.NeighboringRelation.LOCAL
G = dp_event.GaussianDpEvent
SAMPLED = dp_event.PoissonSampledDpEvent(0.01, G(1.0))
LAPLACE = dp_event.LaplaceDpEvent(2.0)
WITHOUT = dp_event.SampledWithoutReplacementDpEvent(1000, 10, G(2.0))


def peer(event):
    accountant = PLDAccountant(dpa.NeighboringRelation.ADD_OR_REMOVE_ONE)
    return accountant.compose(event).get_epsilon(1e-6)


@pytest.mark.parametrize(
    ("event", "known"),
    [
        (G(2.0), 2.254085),
        (dp_event.SelfComposedDpEvent(G(10.0), 100), 4.886554),
        (dp_event.LaplaceDpEvent(2.0), 0.5),
        (dp_event.DiscreteLaplaceDpEvent(0.5, 2), 1.0),
    ],
)
def test_numbers_are_those_of_the_peer(event, known):
    found = interop.from_dp_event(event).epsilon(1e-6)
    assert found == pytest.approx(known, abs=2e-6)
    assert found == pytest.approx(peer(event), rel=1e-3)


def test_ten_thousand_sampled_steps():
    found = interop.from_dp_event(dp_event.SelfComposedDpEvent(SAMPLED, 10_000))
    assert found.epsilon(1e-6) == pytest.approx(6.907846, rel=1e-4)
    assert found == interop.from_opacus([(1.0, 0.01, 10_000)])


def test_under_replace_one_the_multiplier_must_be_explained():
    for event, per, known in [
        (G(2.0), "replace_one", 2.254085),
        (G(2.0), "add_remove", 4.886554),
        (WITHOUT, "replace_one", 0.04367),
        (WITHOUT, "add_remove", 0.36395),
    ]:
        found = interop.from_dp_event(event, REPLACE, multiplier_per=per).epsilon(1e-6)
        assert found == pytest.approx(known, rel=2e-3), (event, per)
        with pytest.raises(InvalidArgument, match="multiplier_per must say"):
            interop.from_dp_event(event, REPLACE)
    with pytest.raises(InvalidArgument, match="no meaning under add/remove"):
        interop.from_dp_event(G(2.0), multiplier_per="replace_one")


def test_randomized_response_is_its_log_ratio():
    found = interop.from_dp_event(dp_event.RandomizedResponseDpEvent(0.5, 4), REPLACE)
    assert found.epsilon() == pytest.approx(math.log((0.5 + 0.125) / 0.125))
    assert found.epsilon() >= math.log(5)


ROUND_TRIP = [
    (dp_event.NoOpDpEvent(), ADD),
    (G(0.7), ADD),
    (dp_event.LaplaceDpEvent(3.3), ADD),
    (dp_event.DiscreteLaplaceDpEvent(0.25, 3), ADD),
    (dp_event.ZCDpEvent(0.015, 0.0), ADD),
    (
        dp_event.ComposedDpEvent(
            [G(0.7), dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(2.0), 3)]
        ),
        ADD,
    ),
    (dp_event.SelfComposedDpEvent(SAMPLED, 50), ADD),
    (WITHOUT, REPLACE),
]


@pytest.mark.parametrize(("event", "relation"), ROUND_TRIP)
def test_a_round_trip_is_equal(event, relation):
    per = "replace_one" if relation is REPLACE else None
    held = interop.from_dp_event(event, relation, multiplier_per=per)
    back = interop.to_dp_event(held, multiplier_per=per)
    assert interop.from_dp_event(back, relation, multiplier_per=per) == held
    if not isinstance(event, dp_event.ComposedDpEvent):  # there the order is ours
        assert back == event


def test_noise_is_rounded_down_on_the_way_back():
    third = discreet.Guarantee(events.GaussianEvent(Fraction(1, 3)), ADD)
    assert Fraction(interop.to_dp_event(third).noise_multiplier) <= Fraction(1, 3)
    rate = discreet.Guarantee(events.SampledEvent(Fraction(1, 3), events.GaussianEvent(1)), ADD)
    assert Fraction(interop.to_dp_event(rate).sampling_probability) >= Fraction(1, 3)


class Lookalike:
    """Has a known class's number; a test is named by it, so its text is fixed."""

    noise_multiplier = 1.0

    def __repr__(self):
        return "GaussianDpEvent()"


Lookalike.__name__ = "GaussianDpEvent"


@pytest.mark.parametrize(
    ("event", "relation", "error"),
    [
        (dp_event.NonPrivateDpEvent(), ADD, Unsupported),
        (dp_event.UnsupportedDpEvent(), ADD, Unsupported),
        (dp_event.SampledWithReplacementDpEvent(100, 5, G(1.0)), ADD, Unsupported),
        (dp_event.SingleEpochTreeAggregationDpEvent(1.0, [4]), ADD, Unsupported),
        (dp_event.RepeatAndSelectDpEvent(G(1.0), 2, 1), ADD, Unsupported),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [0, 1], [0.5, 0.5]), ADD, Unsupported),
        (dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0), ADD, Unsupported),
        (dp_event.ZCDpEvent(0.1, 0.2), ADD, Unsupported),
        (SAMPLED, REPLACE, RelationMismatch),
        (WITHOUT, ADD, RelationMismatch),
        (dp_event.RandomizedResponseDpEvent(0.5, 2), ADD, RelationMismatch),
        (G(0.0), ADD, InvalidArgument),
        (G(1.0), LOCAL, InvalidArgument),
        (dp_event.ComposedDpEvent([G(1.0), dp_event.NonPrivateDpEvent()]), ADD, Unsupported),
        (7, ADD, Unsupported),
        (Lookalike(), ADD, Unsupported),
    ],
    ids=str,
)
def test_everything_else_is_refused(event, relation, error):
    with pytest.raises(error):
        interop.from_dp_event(event, relation, multiplier_per=None)


def test_every_kind_of_the_library_is_read_or_refused_in_words():
    kinds = [
        one
        for one in vars(dp_event).values()
        if isinstance(one, type) and issubclass(one, dp_event.DpEvent)
    ]
    assert len(kinds) >= 18
    for kind in kinds:
        made = object.__new__(kind)  # without fields: only its type is known
        if kind is dp_event.NoOpDpEvent:
            continue
        with pytest.raises((PrivacyError, AttributeError)):
            interop.from_dp_event(made)


def test_what_the_peer_cannot_say_is_not_written():
    for guarantee in (
        discreet.pure_dp(1),
        discreet.zcdp(1).for_group(2),
        discreet.approx_dp(1, 0.1),
    ):
        with pytest.raises(Unsupported):
            interop.to_dp_event(guarantee)


def test_measurements_of_opendp():
    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=2.0)
    gaussian = dp.m.make_gaussian(*space, scale=2.0)
    assert interop.from_opendp(laplace, 3).epsilon() == pytest.approx(1.5)
    assert interop.from_opendp(laplace, 3).epsilon() >= 1.5
    rho = interop.from_opendp(gaussian, 1).event.rho
    assert Fraction(1, 8) <= rho <= Fraction(1, 8) * (1 + Fraction(1, 10**12))
    with pytest.raises(InvalidArgument, match="Measurement of OpenDP"):
        interop.from_opendp(7, 1)
    smooth = dp.c.make_zCDP_to_approxDP(gaussian)
    with pytest.raises(Unsupported, match="output measure"):
        interop.from_opendp(smooth, 1)


@pytest.mark.parametrize(
    "history", [7, [1], [(1.0, 0.1)], [(0.0, 0.1, 3)], [(1.0, 2.0, 3)], ["abc"]]
)
def test_what_is_no_history_is_refused(history):
    with pytest.raises(InvalidArgument):
        interop.from_opacus(history)


def test_a_claim_is_charged_and_marked_everywhere():
    account = discreet.Ledger("memory://").account("model", limit=discreet.approx_dp(8, 1e-6))
    training = interop.from_opacus([(1.0, 0.01, 1_000)])
    claim = interop.charge(account, training, label="model", claimed_by="opacus 1.5")
    assert account.history[-1].label == "model (claimed by opacus 1.5, not certified)"
    assert account.history[-1].guarantee == training
    card = discreet.card(claim, account=account)
    (measured,) = card.content["measurements"]
    assert (measured["certified"], measured["claimed_by"]) == (False, "opacus 1.5")
    assert card.content["software"]["guests"] == ["opacus 1.5"]
    assert "claimed, not certified" in card.to_markdown()
    assert card.verify(account=account).ok
    before = account.remaining
    with pytest.raises(BudgetExceeded):
        interop.charge(account, training * 100, label="more", claimed_by="opacus 1.5")
    assert account.remaining == before
    for wrong in ("", " ", 7):
        with pytest.raises(InvalidArgument):
            interop.charge(account, training, label="x", claimed_by=wrong)
