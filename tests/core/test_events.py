"""Events: canonical, closed, and the same after a trip through JSON."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import (
    Approx,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Either,
    GaussianNoise,
    Gdp,
    Group,
    LaplaceNoise,
    Pure,
    Sampled,
    SampledWithoutReplacement,
    Shuffled,
    ShuffledTwoLevel,
    TruncatedLaplace,
    Zcdp,
)

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)
leaf = st.one_of(
    st.builds(Pure, positive),
    st.builds(Approx, positive, st.fractions(min_value=0, max_value=Fraction(1, 2))),
    st.builds(Zcdp, positive, positive),
    st.builds(Gdp, positive),
    st.builds(LaplaceNoise, positive),
    st.builds(GaussianNoise, positive),
    st.builds(DiscreteLaplace, positive, st.integers(0, 50)),
    st.builds(DiscreteGaussian, positive, positive, st.integers(1, 9)),
    st.builds(TruncatedLaplace, positive, st.integers(0, 9), st.integers(0, 99)),
    st.builds(BoundedRange, positive),
    st.builds(Shuffled, positive, st.integers(1, 10**9)),
    st.builds(
        lambda epsilon, share: ShuffledTwoLevel(epsilon, 100, ((1, share, share / 2),)),
        positive,
        st.fractions(min_value=Fraction(1, 100), max_value=Fraction(1, 2)),
    ),
)


def nested(inner):
    rate = st.fractions(min_value=0, max_value=1)
    return st.one_of(
        st.builds(
            lambda parts: Composed(tuple(parts)),
            st.lists(st.tuples(inner, st.integers(0, 5)), max_size=4),
        ),
        st.builds(
            lambda branches: Either(tuple(branches)), st.lists(inner, min_size=1, max_size=3)
        ),
        st.builds(Sampled, rate, inner),
        st.builds(lambda n, i: SampledWithoutReplacement(n, 50, i), st.integers(0, 50), inner),
        st.builds(Group, st.integers(1, 9), inner),
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
    whole = Composed(tuple(parts))
    assert Composed(tuple(shuffled)) == whole
    assert Composed(((whole, 1),)) == whole
    half = len(parts) // 2
    assert (
        Composed(((Composed(tuple(parts[:half])), 1), (Composed(tuple(parts[half:])), 1))) == whole
    )


def test_equal_events_merge_and_zero_counts_vanish():
    pure = Pure(Fraction(1, 10))
    assert Composed(((pure, 3), (Composed(((pure, 7), (Gdp(Fraction(1)), 0))), 1))).parts == (
        (pure, 10),
    )
    assert events.compose([pure]) == pure
    assert events.repeat(pure, 0) == events.NOTHING


def test_decimals_are_read_as_written():
    assert Pure(0.1) == Pure(Fraction(1, 10))
    assert json.loads(events.to_json(Pure(0.1)))["epsilon"] == "1/10"


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
    Pure,
    lambda bad: Approx(bad, 0),
    lambda bad: Approx(1, bad),
    Zcdp,
    Gdp,
    LaplaceNoise,
    GaussianNoise,
    lambda bad: DiscreteLaplace(bad, 1),
    lambda bad: DiscreteGaussian(bad, 1),
    lambda bad: DiscreteGaussian(1, bad),
    lambda bad: TruncatedLaplace(bad, 1, 1),
    BoundedRange,
    lambda bad: Sampled(bad, Pure(1)),
]


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, "1", None, True])
def test_bad_numbers_are_refused(make, bad):
    with pytest.raises(InvalidArgument):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Approx(1, 1),
        lambda: LaplaceNoise(0),
        lambda: DiscreteLaplace(1, 1.5),
        lambda: DiscreteLaplace(1, -1),
        lambda: DiscreteGaussian(1, 1, 0),
        lambda: Sampled(2, Pure(1)),
        lambda: SampledWithoutReplacement(3, 2, Pure(1)),
        lambda: Group(0, Pure(1)),
        lambda: Composed(((Pure(1), -1),)),
        lambda: Either(()),
    ],
)
def test_bad_shapes_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Group(2, "pure"),
        lambda: Composed((("pure", 1),)),
        lambda: Either((1,)),
        lambda: Sampled(1, object()),
    ],
)
def test_what_is_not_an_event_is_refused(make):
    with pytest.raises(Unsupported):
        make()
