"""The filters: exact sums, and the worst that an adaptive analyst can do, computed exactly."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.accounting import composition
from discreet.accounting.conversion import gaussian_delta
from discreet.core import events
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.ledger import _filter_rules as rules
from discreet.ledger._filter_rules import ApproxRule, add, pure_to_mu, rule_for

HALF = Fraction(1, 2)


def filled(rule, event, *, most=100_000):
    """How often an event is granted, and the sums then."""
    sums, price, mode, times = rule.zero, rule.price(event), rule.mode(event), 0
    while times < most and rule.allows(after := add(sums, price), mode):
        sums, times = after, times + 1
    return times, sums, mode


@pytest.mark.parametrize(
    ("limit", "event", "times"),
    [
        (discreet.pure_dp(1), events.PureEvent(Fraction(1, 10)), 10),
        (discreet.pure_dp(1), events.LaplaceEvent(Fraction(30)), 30),
        (discreet.approx_dp(1, 0), events.DiscreteLaplaceEvent(Fraction(7), 1), 7),
        (discreet.zcdp(0.5), events.GaussianEvent(Fraction(10)), 100),
        (discreet.zcdp(0.5), events.ZcdpEvent(Fraction(1, 30)), 15),
        (discreet.gdp(2), events.GdpEvent(HALF), 16),
        (discreet.gdp(2), events.GaussianEvent(Fraction(10)), 400),
        (discreet.approx_dp(3, 1e-6), events.ApproxEvent(Fraction(1), Fraction(1, 3_000_000)), 3),
        (discreet.approx_dp(3, 1e-6), events.ApproxEvent(Fraction(3), Fraction(1, 10**6)), 1),
    ],
)
def test_exactly_what_the_limit_allows(limit, event, times):
    assert filled(rule_for(limit), event)[0] == times


def test_pure_events_have_a_gaussian_price():
    two = events.ComposedEvent(((events.PureEvent(HALF), 2), (events.GdpEvent(HALF), 1)))
    ((price,), mu) = rule_for(discreet.gdp(2)).price(two), pure_to_mu(HALF)
    assert price == 2 * mu**2 + HALF**2


def test_a_sum_that_is_not_known_allows_nothing():
    rule = rule_for(discreet.approx_dp(1, 1e-6))
    nothing = rule.zero
    for mode in ("basic", "concentrated"):
        assert rule.allows(nothing, mode)
        assert not rule.allows((nothing[0], None, *nothing[2:]), mode)
    assert not rule_for(discreet.pure_dp(1)).allows((None,), "sum")


@pytest.mark.parametrize(
    "limit",
    [
        discreet.pure_dp(1) + discreet.pure_dp(1),
        discreet.zcdp(1).for_group(2),
        discreet.pure_dp(1) * 0,
    ],
)
def test_a_limit_is_one_of_four_kinds(limit):
    with pytest.raises(InvalidArgument, match="limit"):
        rule_for(limit)


def test_composition_and_orders_belong_to_approx():
    with pytest.raises(InvalidArgument, match="belong"):
        rule_for(discreet.pure_dp(1), composition="basic")
    with pytest.raises(InvalidArgument, match="composition"):
        rule_for(discreet.approx_dp(1, 1e-6), composition="best")
    with pytest.raises(InvalidArgument, match="orders"):
        rule_for(discreet.approx_dp(1, 1e-6), orders=(1.0,))


@pytest.mark.parametrize(
    ("limit", "event"),
    [
        (discreet.pure_dp(1), events.GdpEvent(HALF)),
        (discreet.pure_dp(1), events.ApproxEvent(HALF, Fraction(1, 10**9))),
        (discreet.zcdp(1), events.ApproxEvent(HALF, Fraction(1, 10**9))),
        (discreet.gdp(1), events.ZcdpEvent(HALF)),
        (discreet.gdp(1), events.DiscreteGaussianEvent(Fraction(9), Fraction(1))),
        (
            discreet.approx_dp(1, 1e-6),
            events.GroupEvent(2, events.SampledEvent(HALF, events.GdpEvent(HALF))),
        ),
    ],
)
def test_what_has_no_bound_is_refused(limit, event):
    with pytest.raises(Unsupported):
        rule_for(limit).price(event)


# ── (epsilon, delta) ─────────────────────────────────────────────────────────

LIMIT = discreet.approx_dp(2, 1e-5)
KINDS = [
    events.GaussianEvent(Fraction(12)),
    events.LaplaceEvent(Fraction(20)),
    events.DiscreteLaplaceEvent(Fraction(5), 1),
    events.BoundedRangeEvent(Fraction(1, 4)),
    events.PureEvent(Fraction(1, 5)),
    events.ZcdpEvent(Fraction(1, 300)),
    events.TruncatedLaplaceEvent(Fraction(10), 1, 140),
    events.SampledEvent(Fraction(1, 10), events.GaussianEvent(Fraction(2))),
    events.DiscreteGaussianEvent(Fraction(100), Fraction(1)),
]


@pytest.mark.parametrize("event", KINDS, ids=lambda event: type(event).__name__)
def test_what_the_filter_grants_is_within_the_limit_by_the_exact_accountant(event):
    times, _, mode = filled(rule_for(LIMIT), event, most=2000)
    assert mode == "concentrated"
    assert times >= 1
    exact = composition.epsilon(events.repeat(event, times), delta=1e-5).value
    assert exact <= 2
    if times < 2000 and not isinstance(event, events.TruncatedLaplaceEvent):
        assert exact > 1.5  # and it does not waste much


def test_gaussians_get_close_to_the_best_possible():
    event = events.GaussianEvent(Fraction(50))
    times, *_ = filled(rule_for(discreet.approx_dp(1, 1e-6)), event)
    best = 1
    while composition.epsilon(events.repeat(event, best + 1), delta=1e-6).value <= 1:
        best += 1
    assert 0.7 * best < times <= best


def test_the_first_charge_decides_how_an_account_composes():
    rule = rule_for(LIMIT)
    assert rule.mode(events.ApproxEvent(HALF, Fraction(1, 10**6))) == "basic"
    assert rule.mode(events.GdpEvent(HALF)) == "concentrated"
    assert rule.mode(events.TruncatedLaplaceEvent(Fraction(10), 1, 140)) == "concentrated"
    assert rule_for(LIMIT, composition="concentrated").mode(
        events.ApproxEvent(HALF, Fraction(1, 10**6))
    ) == ("concentrated")


def test_deltas_of_events_have_half_of_delta_when_divergences_are_used():
    rule = rule_for(LIMIT, composition="concentrated")
    leaky = events.ApproxEvent(Fraction(1, 100), Fraction(1, 10**6))
    assert filled(rule, leaky)[0] == 5


def test_several_orders_share_delta():
    one = rule_for(LIMIT, orders=(8.0,))
    same = rule_for(LIMIT, orders=(8.0, 8.0))
    event = events.GaussianEvent(Fraction(50))
    assert filled(same, event)[0] < filled(one, event)[0]


def worst_delta(limit, rule, menu, unit):
    """The largest delta at ``limit`` over all adaptive analysts whom the rule lets go on.

    Dynamic programming over what was charged and the privacy loss so far (in multiples of
    ``unit``): the analyst sees the loss and picks the next event, or stops. Each event is the
    worst of its kind: randomized response, after a leak with probability delta.
    """
    prices = [rule.price(event) for event in menu]
    steps = [int(event.epsilon / unit) for event in menu]
    leaks = [float(getattr(event, "delta", 0)) for event in menu]

    def sums(counts):
        total = rule.zero
        for price, count in zip(prices, counts, strict=True):
            for _ in range(count):
                total = add(total, price)
        return total

    @cache
    def allowed(counts):
        return rule.allows(sums(counts), "concentrated")

    @cache
    def value(counts, loss):
        best = max(0.0, -math.expm1(float(limit) - loss * float(unit)))
        for i, (step, leak) in enumerate(zip(steps, leaks, strict=True)):
            more = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            if allowed(more):
                up = 1 / (1 + math.exp(-step * float(unit)))
                inside = up * value(more, loss + step) + (1 - up) * value(more, loss - step)
                best = max(best, leak + (1 - leak) * inside)
        return best

    return value((0,) * len(menu), 0)


MENUS = {
    "pure": [events.PureEvent(HALF), events.PureEvent(Fraction(1, 4))],
    "leaky": [events.PureEvent(HALF), events.ApproxEvent(Fraction(1, 4), Fraction(1, 100))],
    "large steps": [
        events.PureEvent(Fraction(1)),
        events.ApproxEvent(Fraction(1, 2), Fraction(1, 50)),
    ],
}


@pytest.mark.parametrize("menu", MENUS.values(), ids=MENUS.keys())
@pytest.mark.parametrize("orders", [(), (2.0, 4.0)], ids=["one order", "two orders"])
def test_no_adaptive_analyst_passes_the_limit(menu, orders):
    limit, delta = Fraction(2), Fraction(1, 20)
    rule = rule_for(discreet.approx_dp(limit, delta), composition="concentrated", orders=orders)
    found = worst_delta(limit, rule, menu, Fraction(1, 4))
    assert 0 < found <= float(delta)


def test_the_search_finds_a_rule_that_is_too_generous():
    limit, delta = Fraction(2), Fraction(1, 20)
    generous = ApproxRule(
        epsilon=limit * Fraction(8, 5), delta=delta, orders=(3.0,), composition="concentrated"
    )
    assert worst_delta(limit, generous, MENUS["pure"], Fraction(1, 4)) > float(delta)


# ── what is left ─────────────────────────────────────────────────────────────


@given(
    st.lists(st.sampled_from([k for k in KINDS if rules._bounded(k)[0] is not None]), max_size=6),
    st.sampled_from([None, "basic"]),
)
def test_what_is_left_is_what_would_be_granted(spent, how):
    rule = rule_for(LIMIT, composition=how)
    mode = how or "concentrated"
    sums = rule.zero
    for event in spent:
        sums = add(sums, rule.price(event))
    left = rule.remaining(sums, mode)
    if rule.allows(sums, mode):
        assert rule.allows(add(sums, rule.price(events.PureEvent(left))), mode)
    more = left + Fraction(1, 1 << 39)
    assert not rule.allows(add(sums, rule.price(events.PureEvent(more))), mode)


def test_what_is_left_of_one_sum():
    for limit, spent, left in (
        (discreet.pure_dp(1), events.PureEvent(Fraction(1, 3)), Fraction(2, 3)),
        (discreet.zcdp(1), events.ZcdpEvent(Fraction(1, 3)), Fraction(2, 3)),
        (discreet.gdp(5), events.GdpEvent(Fraction(3)), Fraction(4)),
    ):
        rule = rule_for(limit)
        assert rule.remaining(rule.price(spent), "sum") == left
    rule = rule_for(discreet.gdp(1))
    left = rule.remaining((HALF,), "sum")
    assert left**2 <= HALF < (left * (1 + Fraction(1, 10**15))) ** 2


# ── pieces ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.0009999, 0.001, 0.1, 1, 3, 10, 30])
def test_pure_is_gaussian_with_the_right_parameter(epsilon):
    mu = float(pure_to_mu(Fraction(epsilon)))
    at = np.linspace(0, epsilon, 400)
    response = -np.expm1(at - epsilon) / (1 + np.exp(-epsilon))
    assert np.all(gaussian_delta(at, mu=mu) >= response * (1 - 1e-12))
    assert np.any(gaussian_delta(at, mu=mu * 0.999) < response)


def test_a_huge_epsilon_is_no_gaussian():
    with pytest.raises(Unsupported):
        pure_to_mu(Fraction(601))


def test_long_fractions_are_rounded_up_and_stay_short():
    sums = (Fraction(0),)
    primes = [p for p in range(3, 2000) if all(p % q for q in range(2, math.isqrt(p) + 1))]
    for p in primes:
        sums = add(sums, (Fraction(1, p),))
    assert sums[0].denominator.bit_length() <= 256
    excess = sums[0] - sum(Fraction(1, p) for p in primes)
    assert 0 < excess < Fraction(len(primes), 2**190)


@pytest.mark.parametrize(
    ("how", "spent", "event", "words"),
    [
        ("basic", [], events.PureEvent(Fraction(3)), "a pure epsilon of 2 is left"),
        ("basic", [], events.GdpEvent(HALF), "'concentrated'"),
        ("concentrated", [], events.ApproxEvent(HALF, Fraction(6, 10**6)), "allows 5e-06"),
        ("basic", [], events.ApproxEvent(HALF, Fraction(2, 10**5)), "allows 1e-05"),
        (
            "concentrated",
            [events.PureEvent(HALF)],
            events.PureEvent(Fraction(2)),
            "epsilon of 1.5 is left",
        ),
    ],
)
def test_a_refusal_says_what_is_short(how, spent, event, words):
    rule = rule_for(LIMIT, composition=how)
    before = rule.zero
    for item in spent:
        before = add(before, rule.price(item))
    after = add(before, rule.price(event))
    assert not rule.allows(after, how)
    assert words in rule.shortage(before, after, how)


def test_a_sum_is_exact_already():
    assert not rule_for(discreet.pure_dp(1)).allows_exactly(events.PureEvent(HALF))


def test_unbounded_stays_unbounded():
    assert add((None, Fraction(1)), (Fraction(1), Fraction(1))) == (None, 2)


# ── The first batch ──────────────────────────────────────────────────────────────────────────────


def worst_delta_of(allowed, menu, limit, unit):
    """As `worst_delta`, for any rule of which events may follow which."""
    steps = [int(event.epsilon / unit) for event in menu]
    leaks = [float(getattr(event, "delta", 0)) for event in menu]

    @cache
    def value(history, loss):
        best = max(0.0, -math.expm1(float(limit) - loss * float(unit)))
        for i, (step, leak) in enumerate(zip(steps, leaks, strict=True)):
            if len(history) < 6 and allowed((*history, i)):
                up = 1 / (1 + math.exp(-step * float(unit)))
                more = (*history, i)
                inside = up * value(more, loss + step) + (1 - up) * value(more, loss - step)
                best = max(best, leak + (1 - leak) * inside)
        return best

    return value((), 0)


def as_the_ledger_grants(limit, menu):
    """A first batch also by its exact epsilon; whatever follows by the filter alone."""
    rule = rule_for(limit, composition="concentrated")

    @cache
    def allowed(history):
        sums = rule.zero
        for i in history:
            sums = add(sums, rule.price(menu[i]))
        return rule.allows(sums, "concentrated") or (
            len(history) == 1 and rule.allows_exactly(menu[history[0]])
        )

    return allowed


@pytest.mark.parametrize("seed", range(12))
def test_no_adaptive_analyst_gains_from_a_first_batch(seed):
    random = np.random.default_rng(seed)
    limit, delta = Fraction(2), Fraction(1, 20)
    menu = [
        events.ApproxEvent(Fraction(int(random.integers(1, 9)), 4), Fraction(int(leak), 200))
        if leak
        else events.PureEvent(Fraction(int(random.integers(1, 10)), 4))
        for leak in random.choice([0, 0, 1, 4, 8, 10], 4)
    ]
    allowed = as_the_ledger_grants(discreet.approx_dp(limit, delta), menu)
    found = worst_delta_of(allowed, menu, limit, Fraction(1, 4))
    assert found <= float(delta) * (1 + 1e-9)


def test_a_first_batch_may_use_what_the_filter_does_not_afford():
    # A leak of all of delta, which the filter halves; and more than the sum of epsilons.
    limit = discreet.approx_dp(1, Fraction(1, 20))
    rule = rule_for(limit, composition="concentrated")
    for event in (
        events.ApproxEvent(Fraction(1), Fraction(1, 20)),
        events.PureEvent(Fraction(106, 100)),
        discreet.gaussian(sensitivity=0.5, epsilon=1, delta=0.05).guarantee.event,
    ):
        assert not rule.allows(rule.price(event), "concentrated")
        assert rule.allows_exactly(event)
    assert not rule.allows_exactly(events.PureEvent(Fraction(12, 10)))


def test_the_price_of_each_history_alone_is_no_filter():
    # After a large loss the analyst asks what may lose more; after a small one, what may leak.
    limit = Fraction(1)
    first, second = HALF, Fraction(3, 4)
    both = 1 / ((1 + math.exp(-0.5)) * (1 + math.exp(-0.75)))
    delta = Fraction(both * -math.expm1(-0.25)) * Fraction(1001, 1000)
    menu = [
        events.PureEvent(first),
        events.PureEvent(second),
        events.ApproxEvent(Fraction(1, 4), delta * Fraction(999, 1000)),
    ]

    @cache
    def exact(history):
        whole = events.compose([menu[i] for i in history])
        return composition.delta(whole, epsilon=float(limit)).value <= float(delta)

    assert worst_delta_of(exact, menu, limit, Fraction(1, 4)) > 1.3 * float(delta)
    granted = as_the_ledger_grants(discreet.approx_dp(limit, delta), menu)
    assert worst_delta_of(granted, menu, limit, Fraction(1, 4)) <= float(delta)
