"""Composition: bounds that bracket known truths, on every route, and never cross."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import _numeric_composition as numeric
from discreet.accounting import conversion, pld
from discreet.accounting import pld as cells
from discreet.accounting.dominating_pairs import AddPair, GaussianPair, LaplacePair, RemovePair
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import (
    NOTHING,
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
    TruncatedLaplaceEvent,
    ZcdpEvent,
    compose,
    repeat,
)


def F(a, b=1):  # noqa: N802
    return Fraction(a, b)


KINDS = [
    PureEvent(F(1, 4)),
    ApproxEvent(F(1, 4), F(1, 10**8)),
    ZcdpEvent(F(1, 50)),
    ZcdpEvent(F(1, 50), F(1, 10)),
    GdpEvent(F(1, 4)),
    LaplaceEvent(F(4)),
    GaussianEvent(F(4)),
    DiscreteLaplaceEvent(F(4), 1),
    DiscreteLaplaceEvent(F(4 * 10**5), 10**5),
    DiscreteGaussianEvent(F(16), F(1)),
    DiscreteGaussianEvent(F(16 * 10**8), F(10**8)),
    DiscreteGaussianEvent(F(25), F(5), 7),
    DiscreteGaussianEvent(F(1), F(5), 7),
    TruncatedLaplaceEvent(F(4), 1, 70),
    BoundedRangeEvent(F(1, 4)),
    EitherEvent((DiscreteGaussianEvent(F(16), F(1)), DiscreteLaplaceEvent(F(4), 1))),
    SampledEvent(F(1, 10), GaussianEvent(F(1))),
    SampledEvent(F(1, 10), LaplaceEvent(F(1))),
    SampledEvent(F(1, 10), PureEvent(F(1))),
    SampledEvent(F(1, 10), ApproxEvent(F(1), F(1, 10**8))),
    SampledEvent(F(1, 10), ZcdpEvent(F(1, 4))),
    SampledEvent(F(1, 2), ComposedEvent(((LaplaceEvent(F(4)), 2), (GaussianEvent(F(4)), 3)))),
    GroupEvent(2, SampledEvent(F(1, 10), GaussianEvent(F(2)))),
    GroupEvent(3, ApproxEvent(F(1, 10), F(1, 10**9))),
]


def name(event):
    return repr(Guarantee(event))


@pytest.mark.parametrize("event", KINDS, ids=name)
def test_every_kind_keeps_the_contract(event):
    one = Guarantee(event)
    delta = 1e-6
    values = [(one * k).epsilon(delta) for k in (0, 1, 2, 7)]
    assert values[0] == 0
    assert all(0 < value < math.inf for value in values[1:])
    assert values == sorted(values)
    assert (one * 7).epsilon(delta) <= 7 * one.epsilon(1e-7) + 1e-9  # basic composition
    for guarantee in (one, one * 7):
        low, high = guarantee.bounds(delta)
        assert 0 <= low <= high == guarantee.epsilon(delta)
        across = [guarantee.epsilon(d) for d in (1e-7, 1e-6, 1e-4, 1e-2)]
        assert across == sorted(across, reverse=True)
        down = [guarantee.delta(e) for e in (0.0, 0.2, 1.0, 3.0)]
        assert down == sorted(down, reverse=True)
        assert 0 <= down[-1] <= down[0] <= 1
        assert guarantee.delta(high) <= delta * 1.01
    orders = [one.rdp(order) for order in (1.5, 2.0, 8.0, 64.0)]
    assert orders == sorted(orders)


@pytest.mark.parametrize("event", KINDS, ids=name)
def test_together_costs_at_least_each_part(event):
    other = LaplaceEvent(F(8))
    both = Guarantee(compose([event, other]))
    assert both.epsilon(1e-6) >= Guarantee(other).epsilon(1e-6) * (1 - 1e-9)
    # The bound of a curve is a little looser inside a sum than alone.
    assert both.epsilon(1e-6) >= Guarantee(event).bounds(1e-6)[0] * (1 - 1e-9)


def test_nothing_costs_nothing():
    nothing = Guarantee(NOTHING)
    assert nothing.epsilon(0.0) == nothing.epsilon(1e-9) == nothing.delta(0.0) == 0
    assert nothing.bounds(1e-6) == (0, 0)


# ── numerical composition brackets what is known exactly ─────────────────────


@given(st.floats(0.02, 1.5), st.integers(1, 400), st.sampled_from([1e-3, 1e-6, 1e-12, 1e-60]))
@settings(max_examples=40)
def test_gaussians_are_bracketed(mu, count, delta):
    """Gaussian parts composed the hard way; the truth is one Gaussian."""
    from discreet.accounting import _numeric_composition as grid

    parts = [(GaussianPair(mu), count)]
    truth = conversion.gaussian_epsilon(delta, mu=mu * math.sqrt(count))
    tail = delta * 1e-5 / count
    drawn = grid.sketch(parts, tail)
    if truth > 100:
        return
    chosen = grid.choose_grid(parts, drawn, tilt=grid.tilt_for_delta(drawn, delta), tail=tail)
    high = pld.profile(
        grid.compose_on_grid(parts, side="upper", grid=chosen), side="upper"
    ).epsilon(delta)
    low = pld.profile(grid.compose_on_grid(parts, side="lower", grid=chosen), side="lower").epsilon(
        delta
    )
    assert low <= truth <= high
    assert high - low <= 2e-3 * high


@given(st.fractions(F(1, 100), 2), st.integers(1, 200), st.sampled_from([1e-2, 1e-6, 1e-30]))
@settings(max_examples=40)
def test_responses_are_bracketed(epsilon, count, delta):
    """Randomized response against the binomial formula of Kairouz, Oh, Viswanath."""
    event = repeat(PureEvent(epsilon), count)
    truth = conversion.optimal_composition(float(epsilon), delta=0.0, count=count, target=delta)
    if count * epsilon > 100:
        return
    low = numeric.epsilon(event, delta=delta, side="lower")
    high = numeric.epsilon(event, delta=delta, side="upper")
    assert low <= truth * (1 + 1e-9)
    assert high >= truth * (1 - 1e-8)
    assert high - low <= 1e-3 * high + 1e-9


def test_responses_of_two_kinds_are_bracketed():
    """Two binomials, summed directly; the losses of the two do not share a lattice."""
    a, n, b, m = 0.11, 40, 0.073, 60
    i, j = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    from scipy.stats import binom

    mass = binom.pmf(i, n, 1 / (1 + math.exp(-a))) * binom.pmf(j, m, 1 / (1 + math.exp(-b)))
    loss = a * (2 * i - n) + b * (2 * j - m)
    event = ComposedEvent(((PureEvent(F(11, 100)), n), (PureEvent(F(73, 1000)), m)))
    for delta in (1e-3, 1e-6, 1e-10):
        low = numeric.epsilon(event, delta=delta, side="lower")
        high = numeric.epsilon(event, delta=delta, side="upper")

        def profile(e):
            return float((mass * np.maximum(-np.expm1(np.minimum(e - loss, 0)), 0)).sum())

        assert profile(low) >= delta * (1 - 1e-9)
        assert profile(high) <= delta * (1 + 1e-9)
        assert high - low <= 0.01 * high


@pytest.mark.parametrize(
    "inner", [PureEvent(F(1, 2)), DiscreteLaplaceEvent(F(2), 1), DiscreteLaplaceEvent(F(4), 3)]
)
@pytest.mark.parametrize("count", [2, 20, 200])
def test_samples_of_few_losses_are_bracketed(inner, count):
    low, high = Guarantee(repeat(SampledEvent(F(3, 10), inner), count)).bounds(1e-5)
    assert 0 < high - low < 0.005 * high


@pytest.mark.parametrize("direction", [RemovePair, AddPair])
@pytest.mark.parametrize(("rate", "mu"), [(0.01, 1.0), (0.2, 0.5), (0.5, 2.0), (0.001, 3.0)])
@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_cells_bracket_the_profile(direction, rate, mu, step):
    """Every epsilon, one use: the grid's profile is above, or below, the closed form."""
    check_cells(direction(rate, GaussianPair(mu)), step)


@pytest.mark.parametrize("step", [1e-2, 1e-3, 0.037])
def test_laplace_cells_bracket_the_profile(step):
    check_cells(LaplacePair(0.731), step)


def check_cells(pair, step):
    from discreet.accounting.dominating_pairs import delta

    high = cells.upper_masses(pair, step=step, tail=1e-12)
    low = cells.lower_masses(pair, step=step, tail=1e-12)
    for epsilon in np.linspace(-1.0, 3.0, 81):
        true = float(delta(pair, np.array([epsilon]))[0])
        above = high.infinity + gain(high, step, epsilon)
        below = low.infinity + gain(low, step, epsilon)
        assert below <= true + 1e-12
        assert above >= true * (1 - 1e-9) - 1e-12
    assert high.mass.sum() + high.infinity == pytest.approx(1, abs=1e-9)
    assert low.mass.sum() <= 1 + 1e-12


def gain(masses, step, epsilon):
    losses = masses.offset + step * masses.index
    return float((masses.mass * np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0)).sum())


def test_a_wrong_side_is_caught():
    """The check above can fail: an upper grid moved down by one step breaks it."""
    pair, step = GaussianPair(1.0), 1e-2
    good = cells.upper_masses(pair, step=step, tail=1e-12)
    bad = cells.LossMasses(index=good.index - 1, mass=good.mass, infinity=good.infinity)
    from discreet.accounting.dominating_pairs import delta

    true = float(delta(pair, np.array([0.5]))[0])
    assert gain(good, step, 0.5) + good.infinity >= true * (1 - 1e-11)
    assert gain(bad, step, 0.5) + bad.infinity < true * (1 - 1e-3)


# ── figures of the field ─────────────────────────────────────────────────────


def test_private_gradient_descent():
    event = repeat(SampledEvent(F(1, 100), GaussianEvent(F(1))), 10_000)
    low, high = Guarantee(event).bounds(1e-5)
    assert high == pytest.approx(6.188, abs=1e-3)
    assert high - low < 0.005 * high


def test_ten_gaussians():
    guarantee = Guarantee(repeat(GaussianEvent(F(4)), 10))
    assert guarantee.epsilon(1e-6) == pytest.approx(3.7472, abs=1e-4)
    assert "by Rényi divergences it would be 4.010" in guarantee.explain(delta=1e-6)
    assert guarantee.rdp(2.0) == pytest.approx(10 * 2 / 32)


def test_a_hundred_laplace_never_cost_more_than_the_sum():
    hundred = Guarantee(repeat(LaplaceEvent(F(10)), 100))
    assert hundred.epsilon(0.0) == 10.0
    for delta in (1e-300, 1e-30, 1e-12, 1e-6, 1e-3):
        assert hundred.epsilon(delta) <= 10.0
    assert hundred.epsilon(1e-6) < 4.7


def mixed(count):
    """Distinct Laplace, Gaussian and sampled Gaussian events, the same in every run."""
    random = np.random.default_rng(7)
    found = []
    for _ in range(count // 3):
        found.append(LaplaceEvent(F(int(random.integers(20_000, 60_000)), 1000)))
        found.append(GaussianEvent(F(int(random.integers(20_000, 60_000)), 1000)))
        rate, sigma = (
            F(int(random.integers(500, 2000)), 10**5),
            F(int(random.integers(800, 2000)), 1000),
        )
        found.append(SampledEvent(rate, GaussianEvent(sigma)))
    return found


def test_a_thousand_mixed_events_are_bracketed_within_one_percent():
    guarantee = Guarantee(compose(mixed(999)))
    low, high = guarantee.bounds(1e-6)
    assert 0 < high - low < 0.01 * high


def test_tiny_deltas_never_undercut():
    event = compose(mixed(12))
    values = [Guarantee(event).epsilon(delta) for delta in (1e-6, 1e-20, 1e-60, 1e-200, 1e-280)]
    assert values == sorted(values)
    assert all(value < math.inf for value in values)
    assert Guarantee(event).epsilon(0.0) == math.inf


def test_huge_losses_fall_back_to_basic():
    assert Guarantee(repeat(PureEvent(F(1000)), 3)).epsilon(1e-9) == 3000
    assert Guarantee(repeat(ApproxEvent(F(1000), F(1, 10**6)), 3)).epsilon(1e-9) == math.inf
