"""Leaves, sums and zCDP, one by one: what each kind of event is worth."""

import math
from fractions import Fraction

import pytest

from discreet.accounting import _event_tree as leaves
from discreet.accounting import composition, conversion, filters
from discreet.accounting.filters import rho_of
from discreet.core.errors import Unsupported
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
    SampledWithoutReplacementEvent,
    ShuffledEvent,
    TruncatedLaplaceEvent,
    ZcdpEvent,
)
from discreet.core.relation import NeighboringRelation

F = Fraction
REPLACE = NeighboringRelation.REPLACE_ONE


# ── leaves ───────────────────────────────────────────────────────────────────

GROWN = [
    (PureEvent(F(1, 2)), PureEvent(F(3, 2))),
    (ApproxEvent(F(1, 2), F(0)), PureEvent(F(3, 2))),
    (ApproxEvent(F(1, 2), F(1, 9)), GroupEvent(3, ApproxEvent(F(1, 2), F(1, 9)))),
    (ZcdpEvent(F(1, 2), F(1, 5)), ZcdpEvent(F(9, 2), F(1, 5) * 3 * F(11, 6))),
    (GdpEvent(F(1, 2)), GdpEvent(F(3, 2))),
    (GaussianEvent(F(2)), GdpEvent(F(3, 2))),
    (LaplaceEvent(F(2)), LaplaceEvent(F(2, 3))),
    (DiscreteLaplaceEvent(F(2), 2), DiscreteLaplaceEvent(F(2), 6)),
    (TruncatedLaplaceEvent(F(2), 2, 9), TruncatedLaplaceEvent(F(2), 6, 9)),
    (BoundedRangeEvent(F(1, 2)), BoundedRangeEvent(F(3, 2))),
    (ShuffledEvent(F(1), 10), GroupEvent(3, ShuffledEvent(F(1), 10))),
    (DiscreteGaussianEvent(F(4), F(2), 1), DiscreteGaussianEvent(F(4), F(16), 1)),  # isqrt(18)^2
    (DiscreteGaussianEvent(F(4), F(2), 5), DiscreteGaussianEvent(F(4), F(18), 5)),
]


@pytest.mark.parametrize(("event", "grown"), GROWN)
def test_groups_are_pushed_into_leaves(event, grown):
    assert list(leaves.leaves(GroupEvent(3, event))) == [(grown, 1)]
    nested = GroupEvent(3, ComposedEvent(((event, 4),)))
    assert list(leaves.leaves(nested)) == [(grown, 4)]


NONE = [
    PureEvent(F(0)),
    ApproxEvent(F(0), F(0)),
    ZcdpEvent(F(0)),
    GdpEvent(F(0)),
    DiscreteLaplaceEvent(F(1), 0),
    TruncatedLaplaceEvent(F(1), 0, 3),
    BoundedRangeEvent(F(0)),
    ShuffledEvent(F(0), 10),
    DiscreteGaussianEvent(F(1), F(0), 1),
    DiscreteGaussianEvent(F(1), F(1, 2), 7),  # integers do not move by less than one
    SampledEvent(F(0), PureEvent(F(1))),
    SampledEvent(F(1, 2), NOTHING),
    SampledWithoutReplacementEvent(0, 5, PureEvent(F(1))),
]


@pytest.mark.parametrize("event", NONE)
def test_what_says_nothing_has_no_leaf(event):
    assert list(leaves.leaves(event)) == []


def test_short_shifts_move_coordinates_by_one():
    def found(shift, dimension):
        return list(leaves.leaves(DiscreteGaussianEvent(F(4), F(shift), dimension)))

    one = DiscreteGaussianEvent(F(4), F(1), 1)
    assert found(3, 7) == [(one, 3)]
    assert found(3, 2) == [(one, 2)]
    assert found(4, 7) == [(DiscreteGaussianEvent(F(4), F(4), 7), 1)]
    assert found(8, 1) == [(DiscreteGaussianEvent(F(4), F(4), 1), 1)]


def test_samples_of_samples():
    inner = LaplaceEvent(F(2))
    twice = SampledEvent(F(1, 2), SampledEvent(F(1, 3), inner))
    assert list(leaves.leaves(twice)) == [(SampledEvent(F(1, 6), inner), 1)]
    assert list(leaves.leaves(SampledEvent(F(1), inner))) == [(inner, 1)]
    assert list(leaves.leaves(GroupEvent(2, SampledEvent(F(1), inner)))) == [
        (LaplaceEvent(F(1)), 1)
    ]
    plain = SampledEvent(F(1, 2), GroupEvent(2, inner))
    assert list(leaves.leaves(plain)) == [(SampledEvent(F(1, 2), LaplaceEvent(F(1))), 1)]
    assert list(leaves.leaves(GroupEvent(2, plain))) == [
        (GroupEvent(2, SampledEvent(F(1, 2), LaplaceEvent(F(1)))), 1)
    ]
    several = SampledEvent(F(1, 2), ComposedEvent(((inner, 2),)))
    assert list(leaves.leaves(several)) == [(several, 1)]
    drawn = SampledWithoutReplacementEvent(1, 4, inner)
    assert list(leaves.leaves(drawn)) == [(drawn, 1)]
    assert leaves.sampling_rate(drawn) == F(1, 4)
    branch = EitherEvent((PureEvent(F(1)),))
    assert list(leaves.leaves(GroupEvent(2, branch))) == [(PureEvent(F(2)), 1)]
    two = EitherEvent((PureEvent(F(1)), GdpEvent(F(1))))
    assert list(leaves.leaves(GroupEvent(2, two))) == [
        (EitherEvent((GroupEvent(2, PureEvent(F(1))), GroupEvent(2, GdpEvent(F(1))))), 1)
    ]


def test_parts_of_one_kind_become_one():
    event = ComposedEvent(
        ((GdpEvent(F(3)), 2), (GaussianEvent(F(1, 4)), 1), (ZcdpEvent(F(1, 2), F(1, 3)), 2))
    )
    found = leaves.reduce_event(event, "upper")
    assert found.parts == ()
    assert found.mu_squared == pytest.approx(9 * 2 + 16, rel=1e-13)
    assert found.mu_squared > 34 > leaves.reduce_event(event, "lower").mu_squared
    assert (found.rho, found.xi, found.slack) == (1, F(2, 3), 0)
    # A vector on a coarse lattice: its zCDP above, one coordinate below.
    coarse = DiscreteGaussianEvent(F(1, 2), F(5), 7)
    assert leaves.reduce_event(coarse, "upper").rho == 5
    assert leaves.reduce_event(coarse, "lower").parts == (
        (DiscreteGaussianEvent(F(1, 2), F(4), 1), 1),
    )
    line = DiscreteGaussianEvent(F(1, 2), F(4), 1)
    assert leaves.reduce_event(ComposedEvent(((line, 3),)), "upper").parts == ((line, 3),)


@pytest.mark.parametrize("dimension", [1, 3, 4, 9])
def test_fine_lattices_are_nearly_gaussian(dimension):
    """T2 and T3: smoothing t with total slack below 1e-8, variance v - t above and v + t below."""
    variance, shift, count = 10**4 + 1, 90, 5
    event = ComposedEvent(((DiscreteGaussianEvent(F(variance), F(shift), dimension), count),))
    high, low = (leaves.reduce_event(event, side) for side in ("upper", "lower"))
    moved = shift if dimension > 1 else 81
    t = variance - count * moved / high.mu_squared
    assert 0.5 < t < 1.5
    eta = 2 * sum(math.exp(-2 * math.pi**2 * t * j * j) for j in range(1, 4))
    exact = count * dimension * (math.log1p(eta) - math.log1p(-eta))
    assert exact <= high.slack <= exact * 1.01
    assert high.slack <= 1.1e-8
    attained = shift if dimension >= 4 else 81
    below = count * attained / low.mu_squared - variance
    few = min(dimension, 4)
    assert 0.5 < below < 1.5
    assert below == pytest.approx(t, abs=1e-3) or dimension > 4
    width = variance * below / (variance + below)
    eta = 2 * sum(math.exp(-2 * math.pi**2 * width * j * j) for j in range(1, 4))
    exact = count * few * (math.log1p(eta) - math.log1p(-eta))
    assert exact * (1 - 1e-6) <= low.slack <= exact * 1.01


def test_lattices_that_are_too_coarse_stay():
    def smooth(variance, dimension):
        leaf = DiscreteGaussianEvent(F(variance), F(9), dimension)
        return leaves._as_gaussian(leaf, 1, "upper")

    assert smooth(10**4, 1) is None
    assert smooth(10**4 + 1, 1) is not None
    assert smooth(3, 2) is not None
    assert smooth(2, 2) is None
    from discreet.accounting._event_tree import simple_pair

    assert simple_pair(DiscreteGaussianEvent(F(4 * 10**6), F(1), 1)) is not None
    assert simple_pair(DiscreteGaussianEvent(F(4 * 10**6 + 1), F(1), 1)) is None


# ── basic composition ────────────────────────────────────────────────────────

BASIC = [
    (PureEvent(F(1, 2)), F(1, 2), F(0)),
    (BoundedRangeEvent(F(1, 2)), F(1, 2), F(0)),
    (ApproxEvent(F(1, 2), F(1, 9)), F(1, 2), F(1, 9)),
    (LaplaceEvent(F(2)), F(1, 2), F(0)),
    (DiscreteLaplaceEvent(F(2), 3), F(3, 2), F(0)),
    (ZcdpEvent(F(0), F(1, 3)), F(1, 3), F(0)),
    (GroupEvent(2, PureEvent(F(1, 2))), F(1), F(0)),
    (EitherEvent((PureEvent(F(1)), ApproxEvent(F(1, 2), F(1, 9)))), F(1), F(1, 9)),
    (ShuffledEvent(F(1), 10), F(1), F(0)),
    (GroupEvent(2, ShuffledEvent(F(1), 10)), F(2), F(0)),
]


@pytest.mark.parametrize(("event", "epsilon", "delta"), BASIC)
def test_largest_losses_add_up(event, epsilon, delta):
    assert composition.basic(event) == (epsilon, delta)
    assert composition.basic(ComposedEvent(((event, 3),))) == (3 * epsilon, 3 * delta)


@pytest.mark.parametrize(
    "event",
    [
        GdpEvent(F(1)),
        ZcdpEvent(F(1)),
        EitherEvent((PureEvent(F(1)), GdpEvent(F(1)))),
        SampledEvent(F(1, 2), GdpEvent(F(1))),
        GroupEvent(2, SampledEvent(F(1, 2), ApproxEvent(F(1), F(1, 9)))),
    ],
)
def test_what_has_no_largest_loss(event):
    assert composition.basic(ComposedEvent(((PureEvent(F(1)), 1), (event, 1)))) == (None, 1)


def test_the_largest_loss_of_truncated_noise_and_what_is_beyond_it():
    mass = [math.exp(-abs(k) / 2) for k in range(-9, 10)]
    beyond = mass[0] / math.fsum(mass)  # the last output, which the other law does not have
    epsilon, delta = composition.basic(TruncatedLaplaceEvent(F(2), 1, 9))
    assert epsilon == F(1, 2)
    assert beyond <= float(delta) <= beyond * (1 + 1e-11)


def test_a_loss_that_no_exponential_holds_is_not_amplified():
    assert composition.basic(SampledEvent(F(1, 2), PureEvent(F(601)))) == (601, 0)
    assert composition.basic(SampledEvent(F(1, 2), ApproxEvent(F(601), F(1, 9)))) == (601, F(1, 18))
    assert composition.basic(SampledEvent(F(1, 2), PureEvent(F(600))))[0] < 600


def test_basic_composition_of_samples_and_groups():
    epsilon, delta = composition.basic(SampledEvent(F(1, 4), ApproxEvent(F(1), F(1, 100))))
    assert float(epsilon) == pytest.approx(math.log1p(math.expm1(1) / 4), rel=1e-11)
    assert delta == F(1, 400)
    # Rounding up never claims more than the whole.
    nearly = F(10**15 - 1, 10**15)
    assert composition.basic(SampledEvent(nearly, PureEvent(F(1))))[0] == 1
    epsilon, delta = composition.basic(GroupEvent(2, ApproxEvent(F(1), F(1, 100))))
    assert epsilon == 2
    assert float(delta) == pytest.approx((1 + math.e) / 100, rel=1e-11)
    assert composition.basic(ComposedEvent(((ApproxEvent(F(1), F(1, 2)), 3),)))[1] == 1
    assert math.isfinite(composition._basic_epsilon(SampledEvent(F(1, 2), PureEvent(F(600))), F(0)))


def test_sums_read_as_no_less():
    assert composition._readable(F(3, 10)) == 0.3
    assert composition._readable(F(1, 3)) >= 1 / 3
    just = F(3, 10) + F(1, 10**30)
    assert composition._readable(just) == math.nextafter(0.3, 1)
    assert composition._readable(F(10) ** 400) == math.inf
    assert composition._basic_epsilon(ApproxEvent(F(1), F(1, 10)), F(1, 10)) == 1
    assert composition._basic_epsilon(ApproxEvent(F(1), F(1, 10)), F(99, 1000)) == math.inf
    assert composition._basic_delta(ApproxEvent(F(1), F(1, 10)), F(1)) == 0.1
    assert composition._basic_delta(ApproxEvent(F(1), F(1, 10)), F(99, 100)) == math.inf


def asked(event, **more):
    return [name for name, _ in composition.epsilon(event, delta=1e-6, **more).others]


def test_accountants_that_cannot_win_are_not_asked():
    three = ["basic composition", "the exact profile", "privacy-loss distributions"]
    exact = ComposedEvent(((LaplaceEvent(F(2)), 2), (SampledEvent(F(1, 2), GdpEvent(F(1))), 1)))
    assert asked(exact) == three
    assert asked(exact, compare=True) == [*three, "Rényi divergences"]
    for curve in (
        ComposedEvent(((BoundedRangeEvent(F(1)), 2),)),
        ComposedEvent(((ZcdpEvent(F(1)), 1), (PureEvent(F(1)), 1))),
        ComposedEvent(((DiscreteGaussianEvent(F(25), F(5), 7), 1), (PureEvent(F(1)), 1))),
        ComposedEvent(
            ((GroupEvent(2, SampledEvent(F(1, 2), GdpEvent(F(1)))), 1), (PureEvent(F(1)), 1))
        ),
    ):
        assert asked(curve) == [*three, "Rényi divergences"]
    # What the others cannot say is asked, too.
    huge = ComposedEvent(((GdpEvent(F(1)), 1), (PureEvent(F(401)), 2)))
    assert asked(huge) == [*three, "Rényi divergences"]


def test_numbers_and_their_theorems():
    answer = composition.epsilon(ComposedEvent(((GdpEvent(F(1, 4)), 3),)), delta=1e-6)
    assert answer.by == "the exact profile"
    assert answer.value == pytest.approx(
        conversion.gaussian_epsilon(1e-6, mu=math.sqrt(3) / 4), rel=1e-9
    )
    small = composition.epsilon(ComposedEvent(((PureEvent(F(1, 10)), 2),)), delta=0)
    assert (small.value, small.by) == (0.2, "basic composition")
    assert composition.delta(GdpEvent(F(100)), epsilon=0).value <= 1
    assert composition.delta(ComposedEvent(((PureEvent(F(401)), 2),)), epsilon=1).value == 1


def test_what_is_attained_is_bracketed_to_nine_digits():
    for event in (
        GdpEvent(F(1)),
        ComposedEvent(((GdpEvent(F(1)), 3),)),
        LaplaceEvent(F(2)),
        SampledEvent(F(1, 10), LaplaceEvent(F(1, 2))),
        TruncatedLaplaceEvent(F(2), 1, 30),
    ):
        low, high = composition.bounds(event, delta=1e-4)
        assert high * (1 - 2e-9) <= low < high
    for event in (
        ZcdpEvent(F(1, 10)),
        BoundedRangeEvent(F(1)),
        EitherEvent((GdpEvent(F(1)), PureEvent(F(2)))),
    ):
        low, high = composition.bounds(event, delta=1e-4)
        assert low < high * (1 - 1e-6)


def test_the_solved_epsilon():
    assert composition.solve_epsilon(lambda e: 0.5 - e, 0.5) == 0
    assert composition.solve_epsilon(lambda e: 10.0 - e, 0.5) == pytest.approx(9.5, rel=1e-11)
    assert composition.solve_epsilon(lambda _: 1.0, 0.5) == math.inf
    assert composition.solve_epsilon(lambda e: 5e5 - e, 0.5) == pytest.approx(5e5)


# ── zCDP of events ───────────────────────────────────────────────────────────

RHO = [
    (GdpEvent(F(1, 2)), 1 / 8),
    (GaussianEvent(F(2)), 1 / 8),
    (ZcdpEvent(F(1, 8)), 1 / 8),
    (DiscreteGaussianEvent(F(4), F(4), 1), 1 / 2),
    (PureEvent(F(1, 2)), 0.5 * math.tanh(0.25)),
    (LaplaceEvent(F(2)), 0.5 + math.expm1(-0.5)),
    (
        DiscreteLaplaceEvent(F(2), 3),  # the mean of its loss
        0.5 * (3 - 2 * math.exp(-0.5) * (1 - math.exp(-1.5)) / (1 - math.exp(-1))),
    ),
    (BoundedRangeEvent(F(1, 2)), 1 / 32),
    (EitherEvent((GdpEvent(F(1, 2)), ZcdpEvent(F(1, 4)))), 1 / 4),
    (
        SampledEvent(F(1, 2), PureEvent(F(1))),
        math.log1p(math.expm1(1) / 2) * math.tanh(math.log1p(math.expm1(1) / 2) / 2),
    ),
    (ShuffledEvent(F(1, 2), 9), 0.5 * math.tanh(0.25)),
]


@pytest.mark.parametrize(("event", "rho"), RHO)
def test_the_rho_of_every_kind(event, rho):
    found = rho_of(event)
    assert float(found) == pytest.approx(rho, rel=1e-11)
    assert found >= F(rho) * (1 - F(1, 10**14))
    assert rho_of(ComposedEvent(((event, 3),))) == 3 * found


@pytest.mark.parametrize(
    "event", [ApproxEvent(F(1), F(1, 9)), ZcdpEvent(F(1), F(1)), TruncatedLaplaceEvent(F(2), 1, 9)]
)
def test_kinds_without_rho(event):
    with pytest.raises(Unsupported):
        rho_of(event)


def test_rounding_up_is_short_and_upward():
    for value in (0.1, 1 / 3, 1e-15, 7.0):
        found = filters._up(value)
        assert found >= F(value)
        assert found - F(value) < F(1, 2**60)
        assert (found * 2**60).denominator == 1
