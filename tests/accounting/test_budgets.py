"""Filters, odometers, parallel composition, calibration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import conversion
from discreet.accounting.calibrate import calibrate, truncation
from discreet.accounting.filters import (
    PrivacyOdometer,
    PureDPFilter,
    RenyiFilter,
    ZcdpFilter,
    rho_of,
)
from discreet.accounting.guarantee import Guarantee, approx_dp, gdp, pure_dp, zcdp
from discreet.core.errors import BudgetExceeded, InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    TruncatedLaplaceEvent,
    repeat,
)
from discreet.core.relation import NeighboringRelation
from discreet_studies.noise_mechanisms.parallel_composition import RecordPartition, parallel

REPLACE = NeighboringRelation.REPLACE_ONE


def test_a_pure_filter_is_exact():
    budget = PureDPFilter(limit=Fraction(1))
    for _ in range(10):
        budget.charge(pure_dp(0.1))
    assert budget.spent == 1
    with pytest.raises(BudgetExceeded):
        budget.charge(pure_dp(1e-12))
    assert budget.spent == 1
    with pytest.raises(Unsupported):
        budget.charge(gdp(0.1))
    with pytest.raises(RelationMismatch):
        budget.charge(pure_dp(0, relation=REPLACE))


def test_a_concentrated_filter_is_exact():
    budget = ZcdpFilter(limit=Fraction(1, 2))
    for _ in range(100):
        budget.charge(gdp(0.1))
    assert budget.spent == Fraction(1, 2)
    with pytest.raises(BudgetExceeded):
        budget.charge(zcdp(1e-9))
    with pytest.raises(Unsupported):
        budget.charge(approx_dp(0.1, 1e-6))


@given(st.lists(st.sampled_from([pure_dp(0.05), gdp(0.1), zcdp(0.01), pure_dp(0.3)]), max_size=60))
@settings(max_examples=30)
def test_a_renyi_filter_never_passes_its_limit(charges):
    budget = RenyiFilter(epsilon=1.0, delta=1e-6)
    accepted = []
    for charge in charges:
        try:
            budget.charge(charge)
        except BudgetExceeded:
            continue
        accepted.append(charge)
    assert budget.spent <= 1.0
    if accepted:
        assert sum(accepted).epsilon(1e-6) <= 1.0


def test_a_renyi_filter_uses_its_limit():
    budget = RenyiFilter(epsilon=1.0, delta=1e-6)
    count = 0
    while True:
        try:
            budget.charge(gdp(0.02))
        except BudgetExceeded:
            break
        count += 1
    best = next(
        k for k in range(1, 10**4) if conversion.zcdp_epsilon_optimal(k * 2e-4, delta=1e-6) > 1
    )
    assert 0.9 * best <= count <= best


def test_several_orders_share_delta():
    one = RenyiFilter(epsilon=1.0, delta=1e-6, orders=(20.0,))
    three = RenyiFilter(epsilon=1.0, delta=3e-6, orders=(20.0, 20.0, 20.0))
    one.charge(gdp(0.1))
    three.charge(gdp(0.1))
    assert one.spent == pytest.approx(three.spent)
    with pytest.raises(InvalidArgument):
        RenyiFilter(epsilon=1.0, delta=1e-6, orders=(1.0,))
    with pytest.raises(InvalidArgument):
        RenyiFilter(epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("order", [math.inf, math.nan])
def test_a_renyi_filter_has_orders_at_which_something_is_spent(order):
    for orders in [(order,), (20.0, order)]:
        with pytest.raises(InvalidArgument, match="orders"):
            RenyiFilter(epsilon=1.0, delta=1e-6, orders=orders)
    assert conversion.renyi_epsilon(math.nan, order=20.0, delta=1e-6) == math.inf


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_a_filter_that_goes_on_has_spent_a_number(wrong):
    with pytest.raises(InvalidArgument, match="totals"):
        RenyiFilter(epsilon=1.0, delta=1e-6, orders=(20.0,), totals=[wrong])
    for kind in (PureDPFilter, ZcdpFilter):
        with pytest.raises(InvalidArgument, match="spent"):
            kind(limit=Fraction(1), spent=wrong)
    more = RenyiFilter(epsilon=1.0, delta=1e-6, orders=(20.0, 30.0), totals=[0.1, math.inf])
    assert more.spent == pytest.approx(conversion.renyi_epsilon(0.1, order=20.0, delta=5e-7))


def test_an_odometer_reads_at_least_the_truth():
    meter = PrivacyOdometer()
    assert meter.reading(1e-6) == 0
    before = 0.0
    for k in range(1, 60):
        meter.charge(gdp(0.05))
        reading = meter.reading(1e-6)
        assert reading >= (gdp(0.05) * k).epsilon(1e-6)
        assert reading >= before
        before = reading
    for wrong in (math.nan, math.inf, -0.1):
        with pytest.raises(InvalidArgument, match="delta"):
            meter.reading(wrong)
    with pytest.raises(RelationMismatch):
        meter.charge(gdp(0.1, relation=REPLACE))


def test_rho_is_tight():
    assert rho_of(GaussianEvent(Fraction(10))) == Fraction(1, 200)
    assert float(rho_of(LaplaceEvent(Fraction(1)))) == pytest.approx(math.exp(-1))
    assert float(rho_of(DiscreteLaplaceEvent(Fraction(1), 1))) == pytest.approx(math.tanh(0.5))


# ── B26 ──────────────────────────────────────────────────────────────────────


def test_parallel_by_value_under_replace_one():
    parts = [pure_dp(1), pure_dp(0.1)]
    both = parallel(parts, partition=RecordPartition.VALUE, relation=REPLACE)
    assert both.relation is REPLACE
    assert both.epsilon() == 2.0
    counts = parallel(
        parts,
        partition=RecordPartition.VALUE,
        relation=REPLACE,
        in_part=[pure_dp(0, relation=REPLACE)] * 2,
    )
    assert counts.epsilon() == pytest.approx(1.1)
    equal = parallel(
        [pure_dp(1)] * 3,
        partition=RecordPartition.VALUE,
        relation=REPLACE,
        in_part=[pure_dp(0, relation=REPLACE)] * 3,
    )
    assert equal.epsilon() == 2.0
    with pytest.raises(RelationMismatch):
        parallel([pure_dp(1, relation=REPLACE)], partition=RecordPartition.VALUE, relation=REPLACE)
    with pytest.raises(InvalidArgument):
        parallel(
            parts,
            partition=RecordPartition.VALUE,
            relation=REPLACE,
            in_part=[pure_dp(0, relation=REPLACE)],
        )


def test_parallel_takes_the_worst():
    parts = [pure_dp(1), pure_dp(0.1), pure_dp(0.5)]
    assert (
        parallel(
            parts, partition=RecordPartition.VALUE, relation=NeighboringRelation.ADD_REMOVE
        ).epsilon()
        == 1.0
    )
    assert (
        parallel(
            parts, partition=RecordPartition.IDENTITY, relation=NeighboringRelation.ADD_REMOVE
        ).epsilon()
        == 1.0
    )
    mixed = [approx_dp(0.5, 1e-7), gdp(0.3)]
    worst = parallel(
        mixed, partition=RecordPartition.IDENTITY, relation=NeighboringRelation.ADD_REMOVE
    )
    assert worst.epsilon(1e-6) == pytest.approx(max(g.epsilon(1e-6) for g in mixed), rel=1e-6)


def test_parallel_refuses_what_does_not_hold():
    with pytest.raises(RelationMismatch):
        parallel(
            [pure_dp(1)],
            partition=RecordPartition.POSITION,
            relation=NeighboringRelation.ADD_REMOVE,
        )
    with pytest.raises(RelationMismatch):
        parallel([pure_dp(1)], partition=RecordPartition.IDENTITY, relation=REPLACE)
    with pytest.raises(RelationMismatch):
        parallel(
            [pure_dp(1)], partition=RecordPartition.IDENTITY, relation=NeighboringRelation.LOCAL
        )
    with pytest.raises(InvalidArgument):
        parallel([], partition=RecordPartition.IDENTITY, relation=REPLACE)
    with pytest.raises(InvalidArgument):
        parallel(
            [pure_dp(1)],
            partition=RecordPartition.VALUE,
            relation=NeighboringRelation.ADD_REMOVE,
            in_part=[pure_dp(1)],
        )
    held = parallel(
        [pure_dp(1, relation=REPLACE)], partition=RecordPartition.POSITION, relation=REPLACE
    )
    assert held.epsilon() == 1.0


# ── calibration ──────────────────────────────────────────────────────────────


def event_of(family, scale, sensitivity):
    match family:
        case "laplace":
            return LaplaceEvent(scale / sensitivity)
        case "gaussian":
            return GaussianEvent(scale / sensitivity)
        case "discrete laplace":
            return DiscreteLaplaceEvent(scale, sensitivity)
        case "discrete gaussian":
            return DiscreteGaussianEvent(scale**2, Fraction(sensitivity) ** 2, 1)


@pytest.mark.parametrize("family", ["laplace", "gaussian", "discrete laplace", "discrete gaussian"])
@pytest.mark.parametrize(("sensitivity", "count"), [(1, 1), (3, 1), (2, 5)])
def test_the_scale_is_the_smallest(family, sensitivity, count):
    target = (1.0, 1e-5)
    scale = calibrate(family, sensitivity=sensitivity, target=target, count=count)

    def delta(at):
        event = event_of(family, at, sensitivity)
        return Guarantee(repeat(event, count)).delta(1.0)

    assert delta(scale) <= 1e-5
    assert delta(scale * Fraction(9999, 10000)) > 1e-5


def test_pure_targets_are_exact():
    assert calibrate("laplace", sensitivity=1, target=pure_dp(0.5)) == 2
    assert calibrate("discrete laplace", sensitivity=3, target=(0.1, 0), count=2) == 60
    assert calibrate("laplace", sensitivity=1, target=approx_dp(0.5, 0)) == 2


def test_analytic_and_discrete_gaussian():
    analytic = calibrate("gaussian", sensitivity=1, target=(1, 1e-6))
    assert float(analytic) == pytest.approx(1 / 0.2367044, rel=1e-6)
    integer = calibrate("discrete gaussian", sensitivity=1, target=(1, 1e-6))
    assert analytic < integer < analytic * Fraction(101, 100)  # K36
    fine = calibrate("discrete gaussian", sensitivity=2**30, target=(1, 1e-6))
    assert float(fine / 2**30) == pytest.approx(float(analytic), rel=1e-6)


def test_other_targets():
    assert float(calibrate("laplace", sensitivity=1, target=(0.5, 0.01))) == pytest.approx(
        1 / (0.5 - 2 * math.log(0.99)), rel=1e-8
    )  # B16
    rho = calibrate("discrete gaussian", sensitivity=1, target=zcdp(0.1))
    assert float(rho) == pytest.approx(math.sqrt(5), rel=1e-8)
    assert rho**2 >= 5
    mu = calibrate("gaussian", sensitivity=1, target=gdp(0.5), count=4)
    assert float(mu) == pytest.approx(4, rel=1e-8)
    with pytest.raises(Unsupported):
        calibrate("laplace", sensitivity=1, target=gdp(0.5))


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1"])
def test_calibration_refuses_bad_numbers(bad):
    with pytest.raises(InvalidArgument):
        calibrate("laplace", sensitivity=bad, target=(1, 1e-6))
    with pytest.raises(InvalidArgument):
        calibrate("laplace", sensitivity=1, target=(bad, 0))


def test_calibration_refuses_what_cannot_be():
    with pytest.raises(InvalidArgument):
        calibrate("cauchy", sensitivity=1, target=(1, 1e-6))
    with pytest.raises(InvalidArgument):
        calibrate("discrete laplace", sensitivity=1.5, target=(1, 1e-6))
    # Its bound is part of the search: `truncated_laplace` has its own.
    with pytest.raises(InvalidArgument, match="family"):
        calibrate("truncated laplace", sensitivity=1, target=(1, 1e-6))


@pytest.mark.parametrize("scale", [10, 10**4, 2**54])
def test_wide_noise_that_is_cut_short_hides_little(scale):
    """It is nearly uniform: one output in 49 tells that the other law was not drawn from."""
    mass = np.exp(-np.abs(np.arange(-24, 25)) / scale)
    beyond = float((mass / mass.sum())[-2:].sum())
    found = Guarantee(TruncatedLaplaceEvent(Fraction(scale), 2, 24))
    assert found.delta(1.0) == pytest.approx(beyond, rel=1e-9)
    assert (found * 5).delta(1.0) >= 1 - (1 - beyond) ** 5


def test_no_event_is_free():
    """The square of a tiny epsilon is no double."""
    assert rho_of(pure_dp(1e-200).event) > 0
    assert rho_of(pure_dp(0).event) == 0
    with pytest.raises(BudgetExceeded):
        ZcdpFilter(limit=0).charge(pure_dp(1e-200))


def test_the_bound_of_truncated_noise_of_a_large_epsilon():
    assert truncation((1e6, 1e-6), sensitivity=3) == 5
    assert truncation((600.0, 1e-6), sensitivity=3) == truncation((601.0, 1e-6), sensitivity=3) == 5
