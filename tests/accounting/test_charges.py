"""Filters, calibration, Rényi divergences and people: what is charged, and to whom."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import calibrate, conversion, filters, renyi
from discreet.accounting import individual_filter as people
from discreet.accounting.conversion import UP
from discreet.accounting.filters import PrivacyOdometer, RenyiFilter, rho_of
from discreet.accounting.guarantee import Guarantee, approx_dp, describe, gdp, pure_dp, zcdp
from discreet.accounting.individual_filter import GRAIN, LARGEST, LARGEST_RHO, IndividualFilter
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.core import events
from discreet.core.errors import BudgetExceeded, InvalidArgument, RelationMismatch, Unsupported
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
from discreet_studies.noise_mechanisms.parallel_composition import RecordPartition, parallel

F = Fraction
REPLACE = NeighboringRelation.REPLACE_ONE


# ── filters ──────────────────────────────────────────────────────────────────


def test_a_renyi_filter_takes_the_order_of_gaussian_noise():
    budget = RenyiFilter(epsilon=1.0, delta=1e-6)
    rho = conversion.zcdp_rho(1.0, delta=1e-6)
    assert budget.orders == (pytest.approx(1 + math.sqrt(math.log(1e6) / rho)),)
    assert budget.spent == 0
    budget.charge(gdp(0.1))
    order = budget.orders[0]
    assert budget.totals == [pytest.approx(order * 0.005)]
    assert budget.totals[0] > order * 0.005
    true = conversion.renyi_epsilon(budget.totals[0], order=order, delta=1e-6)
    assert budget.spent == true
    more = RenyiFilter(epsilon=1.0, delta=1e-6, orders=budget.orders, totals=budget.totals)
    assert more.spent == true
    shared = RenyiFilter(epsilon=1.0, delta=1e-6, orders=(5.0, 40.0))
    shared.charge(gdp(0.1))
    assert shared.spent == min(
        conversion.renyi_epsilon(total, order=order, delta=5e-7)
        for order, total in zip(shared.orders, shared.totals, strict=True)
    )
    for bad in ({"epsilon": 0.0, "delta": 0.1}, {"epsilon": 1.0, "delta": 1.0}):
        with pytest.raises(InvalidArgument):
            RenyiFilter(**bad)


def test_a_renyi_filter_may_be_spent_to_the_end():
    first = RenyiFilter(epsilon=1.0, delta=1e-6, orders=(30.0,))
    first.charge(gdp(0.1))
    whole = RenyiFilter(epsilon=first.spent, delta=1e-6, orders=(30.0,))
    whole.charge(gdp(0.1))
    assert whole.spent == whole.epsilon
    less = RenyiFilter(epsilon=math.nextafter(first.spent, 0), delta=1e-6, orders=(30.0,))
    with pytest.raises(BudgetExceeded):
        less.charge(gdp(0.1))
    assert less.totals == [0.0]


def test_filters_refuse_negative_limits_and_take_zero():
    for kind in (filters.PureDPFilter, filters.ZcdpFilter):
        with pytest.raises(InvalidArgument):
            kind(limit=F(-1))
        empty = kind(limit=F(0))
        assert empty.charge(pure_dp(0)) == 0
        whole = kind(limit=F(1, 2))
        assert whole.charge(Guarantee(ZcdpEvent(F(0), F(0)))) == 0
    assert filters.ZcdpFilter(limit=F(1, 2)).charge(gdp(1)) == F(1, 2)
    assert filters.PureDPFilter(limit=F(1, 2)).charge(pure_dp(0.5)) == F(1, 2)
    with pytest.raises(Unsupported):
        filters.PureDPFilter(limit=F(1)).charge(approx_dp(0.1, 1e-9))


def test_an_odometer_pays_for_each_level():
    meter = PrivacyOdometer(unit=F(1, 100))
    assert meter.reading(1e-6) == 0
    for rho, level in ((F(1, 200), 1), (F(1, 200), 1), (F(1, 1000), 2), (F(3, 100), 4)):
        meter.charge(zcdp(rho))
        limit = 0.01 * 2 ** (level - 1)
        true = conversion.zcdp_epsilon_optimal(limit, delta=1e-6 / (level * (level + 1)))
        assert meter.reading(1e-6) == pytest.approx(true, rel=1e-12)
    assert meter.epsilon is None
    mild = PrivacyOdometer()
    mild.charge(pure_dp(0.25))
    mild.charge(pure_dp(0.25))
    assert mild.epsilon == F(1, 2)
    assert mild.reading(1e-6) == 0.5  # the sum is better than any conversion
    mild.charge(Guarantee(LaplaceEvent(F(2))))
    assert mild.epsilon == 1
    with pytest.raises(Unsupported):
        mild.charge(approx_dp(0.1, 1e-9))
    mild.charge(gdp(0.1))
    mild.charge(pure_dp(0.1))
    assert mild.epsilon is None
    assert 0 < mild.reading(1e-6) < math.inf


# ── calibration ──────────────────────────────────────────────────────────────


def test_scales_are_short_and_just_above():
    for scale in (1 / 3, 0.7, 1.0, 1e-9, 12345.678, 1e20):
        found = calibrate._short(scale)
        assert F(scale) <= found <= F(scale) * (1 + F(1, 2**39))
        assert found.denominator & (found.denominator - 1) == 0
        assert found.numerator.bit_length() <= 42 or scale > 2**41


def test_the_bisection_finds_the_edge_from_both_sides():
    for start in (F(1, 10**6), F(1), F(10**6)):
        found = calibrate._bisect(lambda scale: scale >= F(7, 3), start=start)
        assert F(7, 3) <= found <= F(7, 3) * (1 + F(2, 10**9))
    with pytest.raises(Unsupported):
        calibrate._bisect(lambda _: False, start=F(1))
    # What always holds ends at a scale that is nothing beside the first.
    assert calibrate._bisect(lambda _: True, start=F(1)) <= F(1, 10**11)


def test_truncation_is_the_continuous_optimum():
    for epsilon, delta, shift in ((1.0, 1e-6, 1), (0.1, 1e-3, 7), (5.0, 0.5, 2)):
        width = shift / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
        found = calibrate.truncation((epsilon, delta), sensitivity=shift)
        assert found == max(shift, math.ceil(width) + 1)
    assert calibrate.truncation((50.0, 0.5), sensitivity=9) == 10
    assert calibrate.truncation(approx_dp(1, 1e-6), sensitivity=1) == calibrate.truncation(
        (1.0, 1e-6), sensitivity=1
    )
    for bad in ((0.0, 0.1), (1.0, 0.51), (1.0, 0.0)):
        with pytest.raises(InvalidArgument):
            calibrate.truncation(bad, sensitivity=1)
    with pytest.raises(InvalidArgument):
        calibrate.truncation(pure_dp(1), sensitivity=1)
    with pytest.raises(Unsupported):
        calibrate.truncation(gdp(1), sensitivity=1)


def test_targets_in_every_language():
    small = calibrate.calibrate("gaussian", sensitivity=2, target=(1, 1e-6), count=4)
    sigma = conversion.gaussian_sigma(1.0, delta=1e-6)
    assert float(small) == pytest.approx(4 * sigma, rel=1e-11)
    assert calibrate.calibrate("gaussian", sensitivity=2, target=approx_dp(1, 1e-6)) >= F(2 * sigma)
    for family in ("laplace", "discrete laplace"):
        with pytest.raises(InvalidArgument, match="epsilon must be positive"):
            calibrate.calibrate(family, sensitivity=1, target=(0, 0))
    concentrated = calibrate.calibrate("gaussian", sensitivity=3, target=zcdp(0.5), count=2)
    assert float(concentrated) == pytest.approx(3 * math.sqrt(2), rel=1e-8)
    rho = calibrate.calibrate("laplace", sensitivity=1, target=zcdp(0.1))
    assert rho_of(LaplaceEvent(rho)) <= F(1, 10)
    assert rho_of(LaplaceEvent(rho * F(999_999, 10**6))) > F(1, 10)
    with pytest.raises(Unsupported):
        calibrate.calibrate(
            "discrete gaussian", sensitivity=1, target=Guarantee(ZcdpEvent(F(1), F(1)))
        )
    made = calibrate.smallest_scale(
        lambda scale: LaplaceEvent(scale), target=(0.5, 0), start=F(1), count=2
    )
    assert float(made) == pytest.approx(4, rel=1e-8)
    for bad in ({"count": 0}, {"dimension": 0}):
        with pytest.raises(InvalidArgument):
            calibrate.calibrate("gaussian", sensitivity=1, target=(1, 1e-6), **bad)


# ── Rényi divergences ────────────────────────────────────────────────────────

A = 3.0
RENYI = [
    (GdpEvent(F(1, 2)), A / 8),
    (ZcdpEvent(F(1, 2), F(1, 5)), 0.2 + A / 2),
    (DiscreteGaussianEvent(F(4), F(4), 1), A / 2),
    (PureEvent(F(1, 2)), math.log((math.exp(1.5) + math.exp(-1)) / (1 + math.exp(0.5))) / 2),
    (LaplaceEvent(F(2)), math.log((3 * math.exp(1.0) + 2 * math.exp(-1.5)) / 5) / 2),
    (BoundedRangeEvent(F(1, 2)), A / 32),
    (BoundedRangeEvent(F(4)), 4.0),
    (EitherEvent((GdpEvent(F(1, 2)), GdpEvent(F(1)))), A / 2),
    (GroupEvent(2, GdpEvent(F(1, 2))), A / 2),
    (GroupEvent(2, SampledEvent(F(1, 2), GdpEvent(F(1, 2)))), math.inf),
    (GroupEvent(2, SampledWithoutReplacementEvent(1, 2, PureEvent(F(1)))), math.inf),
    (ApproxEvent(F(1), F(1, 9)), math.inf),
    (TruncatedLaplaceEvent(F(2), 1, 9), math.inf),
]


@pytest.mark.parametrize(("event", "value"), RENYI)
def test_the_divergence_of_every_kind(event, value):
    found = renyi.divergence(event, order=A)
    assert found == pytest.approx(value, rel=1e-9)
    assert found >= value * (1 - 1e-13)
    assert renyi.divergence(ComposedEvent(((event, 3),)), order=A) == pytest.approx(
        3 * value, rel=1e-9
    )


def test_divergences_from_cells_are_the_sums():
    k = np.arange(-200, 201.0)
    p, q = np.exp(-np.abs(k) / 2), np.exp(-np.abs(k - 1) / 2)
    p, q = p / p.sum(), q / q.sum()
    true = math.log((p**A * q ** (1 - A)).sum()) / (A - 1)
    assert renyi.divergence(DiscreteLaplaceEvent(F(2), 1), order=A) == pytest.approx(true, rel=1e-6)
    r = 0.3
    mixed = (1 - r) * q + r * p
    both = [math.log((a**A * b ** (1 - A)).sum()) / (A - 1) for a, b in ((mixed, q), (q, mixed))]
    sample = renyi.divergence(SampledEvent(F(3, 10), DiscreteLaplaceEvent(F(2), 1)), order=A)
    assert max(both) <= sample <= max(both) * (1 + 1e-6)


@pytest.mark.parametrize("order", [1.5, 2.0, 16.0])
def test_a_sample_of_gaussian_noise_by_quadrature(order):
    from scipy import integrate

    rate, sigma = 0.2, 1.5

    def ratio(x):
        return 1 - rate + rate * math.exp((2 * x - 1) / (2 * sigma**2))

    def moment(power, x):
        density = math.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
        return density * ratio(x) ** power

    reach = sigma * 12 + order * 2
    ahead = integrate.quad(lambda x: moment(order, x), -reach, reach, limit=400)[0]
    back = integrate.quad(lambda x: moment(1 - order, x), -reach, reach, limit=400)[0]
    true = max(math.log(ahead), math.log(back)) / (order - 1)
    event = SampledEvent(F(1, 5), GaussianEvent(F(3, 2)))
    assert true * (1 - 1e-9) <= renyi.divergence(event, order=order) <= true * (1 + 1e-3)


def test_what_is_not_a_number_is_infinite(monkeypatch):
    for wrong in (-1.0, math.nan):
        monkeypatch.setattr(renyi, "leaf_divergence", lambda *_, wrong=wrong: wrong)
        assert renyi.divergence(GdpEvent(F(1)), order=2.0) == math.inf


def test_the_best_order_is_near_the_true_one():
    rho = 0.03
    best = renyi.epsilon(ZcdpEvent(F(3, 100)), delta=1e-6)
    assert best == pytest.approx(conversion.zcdp_epsilon_optimal(rho, delta=1e-6), rel=1e-8)
    for large in (10**5, 60_000):  # orders near the smallest one
        found = renyi.epsilon(ZcdpEvent(F(large)), delta=1e-6)
        assert found == pytest.approx(conversion.zcdp_epsilon_optimal(large, delta=1e-6), rel=1e-8)
    assert renyi.epsilon(ZcdpEvent(F(3, 100)), delta=0.0) == math.inf
    found = renyi.delta(ZcdpEvent(F(3, 100)), epsilon=best)
    assert found == pytest.approx(1e-6, rel=1e-6)
    assert renyi.delta(ZcdpEvent(F(1000)), epsilon=0.0) == 1
    assert renyi.ORDERS[0] == pytest.approx(1.01)
    assert renyi.ORDERS[-1] == pytest.approx(2001)


def test_rdp_never_passes_the_largest_loss():
    assert Guarantee(PureEvent(F(1, 2))).rdp(1e6) <= 0.5
    assert Guarantee(SampledEvent(F(1, 2), LaplaceEvent(F(2)))).rdp(1e5) <= 0.5
    for order in (1, 0.5):
        with pytest.raises(InvalidArgument):
            pure_dp(1).rdp(order)


# ── people and levels ────────────────────────────────────────────────────────


def test_amounts_are_grains_on_the_safe_side():
    down = people._grains([0.0, 1.0, 0.3, 1e-13, LARGEST_RHO], up=False, name="x")
    up = people._grains([0.0, 1.0, 0.3, 1e-13, LARGEST_RHO], up=True, name="x")
    for low, high, true in zip(down, up, [0.0, 1.0, 0.3, 1e-13, float(LARGEST_RHO)], strict=True):
        assert int(low) * GRAIN <= F(true) <= int(high) * GRAIN
        assert int(high) - int(low) <= 300
    assert (up[0], down[0], down[3], up[3]) == (0, 0, 0, 1)
    for wrong in ([-1e-9], [math.nan], [math.inf], [LARGEST_RHO * 1.001], ["x"], [None]):
        with pytest.raises(InvalidArgument):
            people._grains(wrong, up=True, name="x")


def test_limits_are_rounded_down_and_costs_up():
    amounts = [0.3, 1e-13, 1.0]
    crowd = IndividualFilter(amounts)
    for limit, price, true in zip(crowd.limits, crowd.price(amounts), amounts, strict=True):
        assert int(limit) * GRAIN <= F(true) <= int(price) * GRAIN
    assert not crowd.admit(amounts)[:2].any()
    assert int(crowd.price(zcdp(F(1, 3)))) * GRAIN > F(1, 3)
    crowd.restore(np.zeros(3, dtype=np.int64))
    with pytest.raises(InvalidArgument):
        IndividualFilter.of_levels(np.array([-1, 0]), (zcdp(1),))


def test_limits_and_costs_of_people_are_checked():
    with pytest.raises(InvalidArgument, match="flat"):
        IndividualFilter([[1.0]])
    crowd = IndividualFilter([1.0, 2.0])
    assert repr(crowd) == "PeopleFilter(2 people)"
    assert crowd.price(zcdp(0.5)).tolist() == 5 * 10**11
    assert crowd.price(zcdp(10**7)).tolist() == LARGEST + 1
    assert crowd.price(0.5).ndim == 0
    with pytest.raises(InvalidArgument, match="one per person"):
        crowd.price([0.1, 0.1, 0.1])
    with pytest.raises(RelationMismatch):
        crowd.price(zcdp(1, relation=REPLACE))
    for wrong in ([0], [-1, 0], [10**12 + 1000, 0]):
        with pytest.raises(InvalidArgument):
            crowd.restore(np.array(wrong))
    crowd.restore(crowd.limits)
    assert not crowd.admit(1e-12).any()
    assert crowd.admit(0.0).all()
    for codes in (np.array([0, 2]), np.array([-1]), np.array([[0]]), np.array([0.0])):
        with pytest.raises(InvalidArgument):
            IndividualFilter.of_levels(codes, (zcdp(1), zcdp(2)))
    assert len(IndividualFilter.of_levels(np.array([], dtype=int), (zcdp(1),))) == 0
    huge = IndividualFilter.of_levels(np.array([0, 1]), (zcdp(10**9), zcdp(2)))
    assert huge.limits.tolist() == [LARGEST, 2 * 10**12]


def test_limits_that_have_no_rho():
    for limit in (
        pure_dp(1),
        approx_dp(1, 0),
        approx_dp(0, 1e-6),
        gdp(1),
        Guarantee(ZcdpEvent(F(1), F(1))),
    ):
        with pytest.raises(InvalidArgument):
            people.limit_rho(limit)
    with pytest.raises(RelationMismatch):
        people.limit_rho(zcdp(1, relation=REPLACE))
    assert people.limit_rho(zcdp(F(1, 3))) == F(1, 3)
    for epsilon, delta in ((0.1, 1e-9), (20.0, 0.1)):
        rho = people.limit_rho(approx_dp(epsilon, delta))
        assert (rho / GRAIN).denominator == 1
        assert conversion.zcdp_epsilon_optimal(float(rho), delta=delta) <= epsilon
        assert conversion.zcdp_epsilon_optimal(float(rho) * 1.00001, delta=delta) > epsilon


def test_levels_refuse_what_is_not_theirs():
    menu = personalized({"b": pure_dp(1), "a": pure_dp(2)})
    assert menu.names == tuple(menu) == ("a", "b")
    assert len(menu) == 2
    assert 0 + menu == menu
    assert repr(menu) == "PersonalizedGuarantee(a: epsilon 2, b: epsilon 1)"
    assert (2 * menu)["b"].epsilon() == 2
    assert (menu * 0).epsilons() == {"a": 0, "b": 0}
    for wrong in (1, "x", False):
        with pytest.raises(TypeError):
            wrong + menu
        with pytest.raises(TypeError):
            menu + wrong
    with pytest.raises(InvalidArgument):
        menu * -1
    with pytest.raises(InvalidArgument, match="different"):
        PersonalizedGuarantee((("a", pure_dp(1)), ("a", pure_dp(2))))
    for text in ("no", "[]", '{"levels": []}', '{"levels": {"a": 1}}'):
        with pytest.raises(InvalidArgument):
            PersonalizedGuarantee.from_json(text)


def test_parts_in_parallel():
    by_value = parallel(
        [gdp(0.5), gdp(0.25), gdp(0.5)], partition=RecordPartition.VALUE, relation=REPLACE
    )
    kinds = set(by_value.event.events)
    half, quarter = GdpEvent(F(1, 2)), GdpEvent(F(1, 4))
    assert kinds == {
        events.compose([half, half]),
        events.compose([half, quarter]),
        GroupEvent(2, half),
        GroupEvent(2, quarter),
    }
    one = parallel(
        [gdp(0.5)] * 2, partition=RecordPartition.IDENTITY, relation=NeighboringRelation.ADD_REMOVE
    )
    assert one == gdp(0.5)
    inside = [zcdp(1, relation=REPLACE)] * 2
    given = parallel(
        [gdp(0.5), gdp(0.25)], partition=RecordPartition.VALUE, relation=REPLACE, in_part=inside
    )
    assert set(given.event.events) == {events.compose([half, quarter]), ZcdpEvent(F(1))}
    with pytest.raises(RelationMismatch):
        parallel(
            [pure_dp(1)] * 2,
            partition=RecordPartition.VALUE,
            relation=REPLACE,
            in_part=[pure_dp(1)] * 2,
        )


def test_events_are_named_for_people():
    assert describe(NOTHING) == "nothing"
    assert (
        describe(ComposedEvent(((PureEvent(F(1)), 2), (GdpEvent(F(1, 2)), 1))))
        == "2 x epsilon 1 + mu 0.5"
    )
    four = tuple((PureEvent(F(i)), 2) for i in range(1, 5))
    assert describe(ComposedEvent(four)) == "8 events of 4 kinds"
    assert describe(ComposedEvent(four[:3])).count("+") == 2
    assert describe(EitherEvent((PureEvent(F(1)), GdpEvent(F(2))))) == "epsilon 1 or mu 2"
    assert describe(SampledEvent(F(1, 2), PureEvent(F(1)))) == "sample(0.5, epsilon 1)"
    assert (
        describe(SampledWithoutReplacementEvent(1, 3, PureEvent(F(1))))
        == "sample(1 of 3, epsilon 1)"
    )
    assert describe(GroupEvent(2, PureEvent(F(1)))) == "group(2, epsilon 1)"
    assert describe(ShuffledEvent(F(1), 9)) == "shuffle(9 reports, epsilon 1)"


def test_margin_of_a_gaussian_target():
    assert (
        float(calibrate._gaussian_mu(ComposedEvent(((GdpEvent(F(3)), 1), (GdpEvent(F(2)), 4)))))
        == 5 * UP
    )
