"""Events: canonical, closed, and the same after a trip through JSON."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import (
    ApproxEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EitherEvent,
    GaussianEvent,
    GdpEvent,
    GroupEvent,
    LaplaceEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    ShuffledEvent,
    ShuffledTwoLevelEvent,
    TruncatedLaplaceEvent,
    ZcdpEvent,
)

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)
leaf = st.one_of(
    st.builds(PureEvent, positive),
    st.builds(ApproxEvent, positive, st.fractions(min_value=0, max_value=Fraction(1, 2))),
    st.builds(ZcdpEvent, positive, positive),
    st.builds(GdpEvent, positive),
    st.builds(LaplaceEvent, positive),
    st.builds(GaussianEvent, positive),
    st.builds(DiscreteLaplaceEvent, positive, st.integers(0, 50)),
    st.builds(DiscreteGaussianEvent, positive, positive, st.integers(1, 9)),
    st.builds(TruncatedLaplaceEvent, positive, st.integers(0, 9), st.integers(0, 99)),
    st.builds(BoundedRangeEvent, positive),
    st.builds(ShuffledEvent, positive, st.integers(1, 10**9)),
    st.builds(
        lambda epsilon, share: ShuffledTwoLevelEvent(epsilon, 100, ((1, share, share / 2),)),
        positive,
        st.fractions(min_value=Fraction(1, 100), max_value=Fraction(1, 2)),
    ),
)


def nested(inner):
    rate = st.fractions(min_value=0, max_value=1)
    return st.one_of(
        st.builds(
            lambda parts: ComposedEvent(tuple(parts)),
            st.lists(st.tuples(inner, st.integers(0, 5)), max_size=4),
        ),
        st.builds(
            lambda branches: EitherEvent(tuple(branches)), st.lists(inner, min_size=1, max_size=3)
        ),
        st.builds(SampledEvent, rate, inner),
        st.builds(lambda n, i: SampledWithoutReplacementEvent(n, 50, i), st.integers(0, 50), inner),
        st.builds(GroupEvent, st.integers(1, 9), inner),
    )


any_event = st.recursive(leaf, nested, max_leaves=6)


@given(any_event)
def test_json_round_trip_is_canonical(event):
    text = events.to_json(event)
    again = events.from_json(text)
    assert again == event
    assert hash(again) == hash(event)
    assert events.to_json(again) == text


@given(st.lists(st.tuples(leaf, st.integers(0, 5)), max_size=6), st.randoms(use_true_random=False))
def test_composition_ignores_order_and_nesting(parts, random):
    shuffled = list(parts)
    random.shuffle(shuffled)
    whole = ComposedEvent(tuple(parts))
    assert ComposedEvent(tuple(shuffled)) == whole
    assert ComposedEvent(((whole, 1),)) == whole
    half = len(parts) // 2
    assert (
        ComposedEvent(
            ((ComposedEvent(tuple(parts[:half])), 1), (ComposedEvent(tuple(parts[half:])), 1))
        )
        == whole
    )


def test_equal_events_merge_and_zero_counts_vanish():
    pure = PureEvent(Fraction(1, 10))
    assert ComposedEvent(
        ((pure, 3), (ComposedEvent(((pure, 7), (GdpEvent(Fraction(1)), 0))), 1))
    ).parts == ((pure, 10),)
    assert events.compose([pure]) == pure
    assert events.repeat(pure, 0) == events.NOTHING


def test_decimals_are_read_as_written():
    assert PureEvent(0.1) == PureEvent(Fraction(1, 10))
    assert json.loads(events.to_json(PureEvent(0.1)))["epsilon"] == "1/10"


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"personal","version":1}',
        '{"epsilon":"1/1","kind":"pure","version":2}',
        '{"epsilon":"1/1","kind":"pure"}',
        '{"epsilon":"1/1","extra":1,"kind":"pure","version":1}',
        '{"kind":"pure","version":1}',
        '["pure"]',
        '{"inner":{"kind":"new"},"kind":"group","size":2,"version":1}',
        '{"inner":3,"kind":"group","size":2,"version":1}',
    ],
)
def test_the_unknown_is_refused(text):
    with pytest.raises(Unsupported):
        events.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"epsilon":"1/0","kind":"pure","version":1}',
        '{"epsilon":"x","kind":"pure","version":1}',
        '{"epsilon":"1e999999999","kind":"pure","version":1}',
        '{"epsilon":"1e-999999999","kind":"pure","version":1}',
        '{"kind":"composed","parts":[1],"version":1}',
        '{"kind":"composed","parts":5,"version":1}',
        '{"events":null,"kind":"either","version":1}',
        '{"kind":[],"version":1}',
        '{"version":1,' + '"kind":"group","size":1,"inner":{' * 900 + "}" * 901,
    ],
)
def test_broken_texts_are_refused(text):
    with pytest.raises(InvalidArgument):
        events.from_json(text)


BAD = [
    PureEvent,
    lambda bad: ApproxEvent(bad, 0),
    lambda bad: ApproxEvent(1, bad),
    ZcdpEvent,
    GdpEvent,
    LaplaceEvent,
    GaussianEvent,
    lambda bad: DiscreteLaplaceEvent(bad, 1),
    lambda bad: DiscreteGaussianEvent(bad, 1),
    lambda bad: DiscreteGaussianEvent(1, bad),
    lambda bad: TruncatedLaplaceEvent(bad, 1, 1),
    BoundedRangeEvent,
    lambda bad: SampledEvent(bad, PureEvent(1)),
]


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, "1", None, True])
def test_bad_numbers_are_refused(make, bad):
    with pytest.raises(InvalidArgument):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ApproxEvent(1, 1),
        lambda: LaplaceEvent(0),
        lambda: DiscreteLaplaceEvent(1, 1.5),
        lambda: DiscreteLaplaceEvent(1, -1),
        lambda: DiscreteGaussianEvent(1, 1, 0),
        lambda: SampledEvent(2, PureEvent(1)),
        lambda: SampledWithoutReplacementEvent(3, 2, PureEvent(1)),
        lambda: GroupEvent(0, PureEvent(1)),
        lambda: ComposedEvent(((PureEvent(1), -1),)),
        lambda: EitherEvent(()),
    ],
)
def test_bad_shapes_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupEvent(2, "pure"),
        lambda: ComposedEvent((("pure", 1),)),
        lambda: EitherEvent((1,)),
        lambda: SampledEvent(1, object()),
    ],
)
def test_what_is_not_an_event_is_refused(make):
    with pytest.raises(Unsupported):
        make()
