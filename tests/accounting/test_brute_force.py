"""Random compositions of small discrete mechanisms against the full product of their laws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import _numeric_composition as numeric
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import (
    ApproxEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    SampledEvent,
    TruncatedLaplaceEvent,
    repeat,
)

scale = st.fractions(Fraction(1, 2), 8, max_denominator=50)
simple = st.one_of(
    st.builds(PureEvent, st.fractions(Fraction(1, 50), 1, max_denominator=100)),
    st.builds(
        ApproxEvent,
        st.fractions(Fraction(1, 50), 1, max_denominator=100),
        st.sampled_from([Fraction(1, 10**4), Fraction(1, 10**7)]),
    ),
    st.builds(DiscreteLaplaceEvent, scale, st.integers(1, 4)),
    st.builds(TruncatedLaplaceEvent, scale, st.integers(1, 2), st.integers(20, 40)),
    st.builds(DiscreteGaussianEvent, st.fractions(1, 6, max_denominator=20), st.just(Fraction(1))),
)
part = st.one_of(
    simple,
    st.builds(
        SampledEvent, st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=50), simple
    ),
)


def laws(event):
    """The output laws on two neighbors, written out."""
    match event:
        case SampledEvent(rate, inner):
            p, q = laws(inner)
            r = float(rate)
            return (1 - r) * q + r * p, q
        case PureEvent(epsilon):
            e = math.exp(float(epsilon))
            return np.array([e, 1]) / (1 + e), np.array([1, e]) / (1 + e)
        case ApproxEvent(epsilon, delta):
            e, d = math.exp(float(epsilon)), float(delta)
            share = (1 - d) / (1 + e)
            return np.array([d, e * share, share, 0]), np.array([0, share, e * share, d])
        case DiscreteLaplaceEvent(scale, shift):
            k = np.arange(0, shift + 1)  # beyond either end the ratio is constant
            r = math.exp(-1 / float(scale))
            inner = (1 - r) / (1 + r) * r**k
            inner[0], inner[-1] = 1 / (1 + r), r**shift / (1 + r)
            return inner, inner[::-1]
        case TruncatedLaplaceEvent(scale, shift, bound):
            k = np.arange(-bound, bound + shift + 1)
            w = np.where(np.abs(k) <= bound, np.exp(-np.abs(k) / float(scale)), 0.0)
            return w / w.sum(), w[::-1] / w.sum()
        case DiscreteGaussianEvent(variance, _, _):
            k = np.arange(-29, 31)
            w = np.exp(-(k**2) / (2 * float(variance)))
            return w / w.sum(), w[::-1] / w.sum()


def product(parts):
    """All outputs of all runs together, merged by their ratio to keep the product small."""
    p, q = np.ones(1), np.ones(1)
    for event, count in parts:
        a, b = laws(event)
        for _ in range(count):
            p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
            keep = (p > 1e-20) | (q > 1e-20)
            p, q = p[keep], q[keep]
    return p, q


def hockey(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@given(st.lists(st.tuples(part, st.integers(1, 2)), min_size=1, max_size=3))
@settings(max_examples=40)
def test_the_bounds_hold(parts):
    event = ComposedEvent(tuple(parts))
    p, q = product(parts)
    guarantee = Guarantee(event)
    for epsilon in (0.0, 0.1, 0.5, 1.5):
        true = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
        assert guarantee.delta(epsilon) >= true - 1e-12
        assert numeric.delta(event, epsilon=epsilon, side="upper") >= true - 1e-12
        assert numeric.delta(event, epsilon=epsilon, side="lower") <= true + 1e-12
    for delta in (1e-2, 1e-5):
        low = numeric.epsilon(event, delta=delta, side="lower")
        high = guarantee.epsilon(delta)
        assert low <= high
        if low > 0:
            assert max(hockey(p, q, low), hockey(q, p, low)) >= delta * (1 - 1e-6)
        if high < math.inf:
            assert max(hockey(p, q, high), hockey(q, p, high)) <= delta * (1 + 1e-6) + 1e-13


def test_the_product_is_a_law():
    p, q = product([(DiscreteLaplaceEvent(Fraction(2), 3), 2), (PureEvent(Fraction(1, 2)), 1)])
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)


@given(part)
@settings(max_examples=60)
def test_renyi_divergences_hold(event):
    p, q = laws(event)
    guarantee = Guarantee(repeat(event, 1))
    for order in (1.3, 2.0, 7.0):
        if ((p > 0) & (q == 0)).any() or ((q > 0) & (p == 0)).any():
            assert guarantee.rdp(order) == math.inf or isinstance(event, SampledEvent)
            continue
        a, b = np.log(p), np.log(q)
        ahead = math.log(np.exp(order * a + (1 - order) * b).sum()) / (order - 1)
        back = math.log(np.exp(order * b + (1 - order) * a).sum()) / (order - 1)
        assert guarantee.rdp(order) >= max(ahead, back) * (1 - 1e-9) - 1e-12
