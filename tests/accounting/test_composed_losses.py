"""Composed losses to the last digit: margins, drifts, windows, and what is left when one asks."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy

from discreet.accounting import _numeric_composition as grid
from discreet.accounting import composition, conversion, pld
from discreet.accounting.dominating_pairs import AtomPair
from discreet.accounting.filters import PrivacyOdometer
from discreet.accounting.guarantee import zcdp
from discreet.accounting.individual_filter import IndividualFilter
from discreet.core import events
from discreet.core.errors import InvalidArgument

F = Fraction


def close(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=0)


def halves(**more):
    """Half of the mass has no loss, half a loss of one."""
    weights = np.zeros(10_001)
    weights[[0, -1]] = 0.5
    return pld.ComposedLoss(step=1e-4, tilt=0.0, start=0, weights=weights, log_scale=0.0, **more)


def test_a_distribution_has_lost_nothing_unless_told():
    bare = halves()
    assert (bare.infinity, bare.lost, bare.offset, bare.count) == (0, 0, 0, 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("side", "sign"), [("upper", 1), ("lower", -1)])
def test_bounds_are_moved_by_the_snap_and_the_margin(side, sign, count):
    """Each loss may be off by 2e-7 of a step, each delta by 1e-11, each epsilon by 1e-11 more."""
    found = pld.profile(halves(count=count), side=side)
    drift = sign * 2e-7 * 1e-4 * count
    for epsilon in (0.25, 0.5, 0.99995):
        with mpmath.workdps(40):
            gap = mpmath.mpf(epsilon) - mpmath.mpf(drift) - 1
            true = float(-mpmath.expm1(gap) / 2)
        margin = 1 + sign * 1e-11
        assert found.delta(epsilon) == close(true * margin, rel=1e-12 if epsilon < 0.9 else 1e-10)
    for delta in (0.01, 0.1, 0.3):
        root = 1 + drift + math.log1p(-2 * delta / (1 + sign * 1e-11))
        last = 1 + (1e-11 if side == "upper" else -1e-10)
        assert found.epsilon(delta) == close(root * last, rel=3e-13)


def test_what_is_lost_and_what_is_infinite_is_added_above_and_left_out_below():
    for side, lost in (("upper", 1e-3), ("lower", -1e-3)):
        found = pld.profile(halves(lost=1e-3, infinity=0.125), side=side)
        true = 0.125 + lost - math.expm1(-0.5) / 2
        assert found.delta(0.5) == close(true, rel=1e-9)
    # Never more than certain, never less than the infinite part.
    assert pld.profile(halves(lost=2.0, infinity=0.125), side="upper").delta(0.5) == 1
    assert pld.profile(halves(lost=2.0, infinity=0.125), side="lower").delta(0.5) == close(
        0.125, rel=1e-10
    )


@pytest.mark.parametrize("count", [2, 7, 60])
@pytest.mark.parametrize(
    "weights",
    [[0.5, 0.5], [0.05, 0.2, 0.5, 0.2, 0.05], [0.9, 0.0, 0.0, 0.1], [1e-3, 0.5, 0.499]],
)
def test_windows_reach_as_far_as_chernoff_says(weights, count):
    """No rate of Chernoff's bound gives a narrower window than a whole number inside the best."""
    law = np.array(weights)
    index = np.arange(law.size, dtype=float)
    low, high = pld._window(index, law, count)
    mean = float(law @ index)
    rates = np.geomspace(1e-3, 200, 4001)
    budget = math.log(1e15)
    logs = np.log(np.exp(np.outer(rates, index - mean)) @ law)
    back = np.log(np.exp(np.outer(-rates, index - mean)) @ law)
    up = float(((count * logs + budget) / rates).min())
    down = float(((count * back + budget) / rates).min())
    assert low <= count * mean - down
    assert high >= count * mean + up
    assert low >= count * mean - 1.02 * down - 1.5
    assert high <= count * mean + 1.02 * up + 1.5


def test_an_odometer_at_a_whole_rho():
    """One is 2^20 of the usual units: the twenty-first limit, which is kept exactly."""
    meter = PrivacyOdometer()
    meter.charge(zcdp(1))
    true = conversion.zcdp_epsilon_optimal(1.0, delta=1e-6 / (21 * 22))
    assert meter.reading(1e-6) == close(true)
    other = PrivacyOdometer()
    assert other.reading(1e-6) == 0
    other.charge(zcdp(F(1, 2**20)))
    least = conversion.zcdp_epsilon_optimal(2.0**-20, delta=1e-6 / 2)
    assert other.reading(1e-6) == close(least)


def test_roots_far_away_are_given_up():
    assert conversion.round_root(lambda x: 4e11 - x, 0.0, 1.0) == close(4e11, rel=1e-11)
    assert conversion.round_root(lambda x: 2e12 - x, 0.0, 1.0) == math.inf
    found = conversion.round_root(lambda x: 1e-9 - x, 0.0, 1.0)
    assert 1e-9 <= found <= 1e-9 * (1 + 2e-12)
    with pytest.raises(InvalidArgument):
        conversion.gaussian_mu(math.nan, delta=0.1)


# ── powers and sums ──────────────────────────────────────────────────────────


def part(weights, **more):
    given = {"step": 0.25, "tilt": 1.0, "start": 0, "log_scale": 0.0} | more
    return pld.ComposedLoss(weights=np.asarray(weights, dtype=float), **given)


def test_beyond_the_last_loss_only_what_was_lost_is_left():
    upper = pld.profile(halves(lost=1e-3), side="upper")
    assert upper.delta(1.5) == close(1e-3, rel=1e-9)
    assert pld.profile(halves(), side="upper").delta(1.5) == 0


def test_powers_of_a_single_loss_and_of_certain_failure():
    five = pld.power(part([1.0], start=3), 5)
    assert five.start == 15
    assert five.weights == close([1.0])
    assert pld.power(part([0.5, 0.5], infinity=1.0), 3).infinity == close(1.0)
    flat = pld.power(part([0.5, 0.5], tilt=0.0), 2)  # not tilted: every bin may err
    assert flat.weights == close([0.25, 0.5, 0.25])
    assert 4e-15 < flat.lost < 2e-14


def test_windows_of_a_law_with_a_far_and_rare_loss():
    """All rates that suit its bulk overflow at its end; a smaller one is taken."""
    law = np.zeros(200_001)
    law[[0, 1, -1]] = 0.5, 0.5 - 1e-9, 1e-9
    low, high = pld._window(np.arange(law.size, dtype=float), law, 2)
    assert low <= 0
    # Two far losses have a chance of 1e-18, one of 2e-9: the window must hold the second.
    assert 200_001 <= high < 400_000


@pytest.mark.parametrize(("many", "other"), [(100, 150), (64, 300)])
def test_what_a_transform_loses(many, other):
    """T6: three transforms of relative error 8 units times the logarithm of their length."""
    rng = np.random.default_rng(8)
    left, right = part(rng.dirichlet(np.ones(many))), part(rng.dirichlet(np.ones(other)))
    found = pld.convolve(left, right)
    size = scipy.fft.next_fast_len(many + other - 1, real=True)
    norms = math.sqrt(float((left.weights**2).sum()) * float((right.weights**2).sum()))
    error = 3 * 8 * 2.0**-53 * math.log2(size) * norms * 5
    assert found.lost == close(2e-15 + error, rel=1e-9)


@pytest.mark.parametrize("count", [2, 7])
def test_what_a_power_loses(count):
    """T6 again: forth with the slope of the power, back with its norm, and Chernoff's two ends."""
    weights = np.random.default_rng(8).dirichlet(np.full(90, 0.1))
    one = part(weights, tilt=0.8, lost=1e-17)
    found = pld.power(one, count)
    size = scipy.fft.next_fast_len(max(found.weights.size, 90), real=True)
    relative = 8 * 2.0**-53 * math.log2(size)
    norm = math.sqrt(float((weights**2).sum()))
    spectrum = np.abs(scipy.fft.rfft(weights, size))
    slope = np.minimum(spectrum + relative * math.sqrt(size) * norm, 1.0) ** (2 * (count - 1))
    forth = count * relative * norm * math.sqrt(2 * slope.mean())
    back = relative * math.sqrt(2 * (spectrum ** (2 * count)).mean())
    reach = 1 + 1 / (0.8 * 0.25)
    expected = count * 1e-17 + 4e-15 + (forth + back) * reach
    assert found.lost == close(expected, rel=1e-9)


def test_ends_are_trimmed_to_the_last_weight_that_may_go():
    weights = np.array([3e-16, 5e-16, 4e-16, 0.5, 0.5, 6e-16, 6e-16, 1e-16])
    kept, first = pld._trim(weights)
    assert first == 2
    assert kept.tolist() == weights[2:6].tolist()


def test_a_sum_as_one_pair_pays_for_its_snaps():
    response = AtomPair(np.array([-1.0, 1.0]), np.array([1 / (1 + math.e), math.e / (1 + math.e)]))
    whole = grid.as_atoms([(response, 2)])
    step = float(np.diff(whole.losses).min())
    last = float(whole.losses[whole.masses > 1e-6][-1])
    assert last - 2 == pytest.approx(2 * 2 * 1e-7 * step, rel=0.1)


# ── people ───────────────────────────────────────────────────────────────────


def test_the_largest_budget_of_a_person():
    assert IndividualFilter([1e6, 0.0]).limits.tolist()[1] == 0
    assert 10**18 - 200 <= IndividualFilter([1e6]).limits[0] <= 10**18
    with pytest.raises(InvalidArgument):
        IndividualFilter([1e6 + 1])
    crowd = IndividualFilter.of_levels(np.array([0]), (zcdp(2 * 10**6),))
    assert crowd.limits.tolist() == [10**18]
    assert crowd.price(zcdp(2 * 10**6)).tolist() == 10**18 + 1
    assert not crowd.admit(zcdp(2 * 10**6)).any()
    assert crowd.admit(zcdp(10**6)).all()


# ── what the accountants take from each other ────────────────────────────────


def test_a_divergence_is_at_most_the_largest_loss_where_there_is_one():
    """Of a group on a sample and of huge losses no divergence is known but that."""
    group = events.GroupEvent(2, events.SampledEvent(F(1, 2), events.PureEvent(F(1))))
    found = composition.rdp(group, order=3.0)
    assert found == close(2 * math.log1p(math.expm1(1) / 2), rel=1e-11)
    huge = events.SampledEvent(F(1, 2), events.LaplaceEvent(F(1, 500)))
    assert composition.rdp(huge, order=2.0) == close(500 - math.log(2), rel=1e-11)
    assert composition.rdp(events.ApproxEvent(F(1), F(1, 9)), order=2.0) == math.inf
    assert composition.rdp(events.GdpEvent(F(1)), order=2.0) == close(1.0, rel=1e-11)


def test_the_widest_part_sets_the_smallest_step():
    wide = AtomPair(np.array([-1.0, 0.0, 300.0]), np.array([1e-6, 1 - 1e-6 - 1e-9, 1e-9]))
    narrow = AtomPair(np.array([-1e-3, 1e-3]), np.array([0.5, 0.5]))
    for parts in ([(wide, 1), (narrow, 1)], [(narrow, 1), (wide, 1)]):
        drawn = grid.sketch(parts, 1e-12)
        step = grid.choose_grid(parts, drawn, tilt=0.0, tail=1e-12).step
        assert step == close(301 / 65536, rel=1e-9)
