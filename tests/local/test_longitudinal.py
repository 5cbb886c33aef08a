"""Repeated reports: exact cost of any number of them, exact error, and clients that refuse."""

import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.core._rational import exp_minus
from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.client import BudgetedClient, MemoizedClient
from discreet.local.longitudinal import RAPPOR, l_osue, rappor
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import ONE, oue
from discreet.local.registry import rebuild
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA

MAKERS = [rappor, l_osue]
ROWS = list(itertools.product([0, 1], repeat=3))


def joint(plan, value, times):
    """Exact law of some reports from one permanent response, three categories, in rationals."""
    p, q = (Fraction(coin, ONE) for coin in plan.response.coins)
    law = {}
    for stored in ROWS:
        prior = Fraction(1)
        for i, bit in enumerate(stored):
            one = p if i == value else q
            prior *= one if bit else 1 - one
        for sent in itertools.product(ROWS, repeat=times):
            flips = sum(a != b for row in sent for a, b in zip(row, stored, strict=True))
            mass = plan.flip**flips * (1 - plan.flip) ** (3 * times - flips)
            law[sent] = law.get(sent, 0) + prior * mass
    return law


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("times", [1, 2])
def test_cost_of_several_reports_is_exact(make, times):
    plan = make(categories=3, epsilon=Fraction(1, 2), permanent_epsilon=2)
    first, second = joint(plan, 0, times), joint(plan, 2, times)
    worst = max(first[sent] / second[sent] for sent in first)
    claimed = plan.ratio_after(times)
    assert worst <= claimed <= worst * (1 + Fraction(1, 1 << 200))
    assert plan.after(times).epsilon() == pytest.approx(math.log(worst), rel=1e-8)
    assert Fraction(plan.after(times).epsilon()) >= Fraction(math.log(worst))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("epsilon", "permanent"), [(0.1, 0.5), (1, 2), (1, 8), (3, 3.5)])
def test_both_epsilons_hold_and_no_noise_is_wasted(make, epsilon, permanent):
    plan = make(categories=5, epsilon=epsilon, permanent_epsilon=permanent)
    one = Fraction(exp_minus(plan.epsilon, 256)[0], 1 << 256)
    assert plan.ratio_after(1) <= 1 / one
    assert plan.ratio_after() <= math.exp(permanent) * (1 + 1e-12)
    assert plan.certify().holds
    assert math.log(plan.ratio_after(1)) == pytest.approx(epsilon, rel=1e-6)
    costs = [plan.ratio_after(k) for k in (1, 2, 5, 50, 5000, 1 << 20)]
    assert costs == sorted(costs)
    assert costs[-1] == plan.ratio_after() == plan.response.ratio
    assert plan.after() == plan.after(None)
    assert plan.after().epsilon() == permanent


def test_a_small_cost_is_never_understated():
    with localcontext(prec=60):
        for step, times in itertools.product(range(1, 200), (2, 3, 7)):
            plan = rappor(
                categories=4,
                epsilon=Fraction(step, 100_000),
                permanent_epsilon=Fraction(step, 1000),
            )
            ratio, cost = plan.ratio_after(times), plan.after(times).event.epsilon
            exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert exact <= Decimal(cost.numerator) / Decimal(cost.denominator)


def test_a_smaller_flip_is_not_certified():
    class Careless(RAPPOR):
        @property
        def flip(self):
            return super(RAPPOR, self).flip * Fraction(99, 100)

    plan = Careless(categories=5, epsilon=Fraction(1), permanent_epsilon=Fraction(2))
    with pytest.raises(Exception, match="does not keep the claim"):
        plan.certify()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("value", [0, 2])
def test_mean_and_variance_are_exact(make, value):
    """Of one report, and of the mean of two reports of the same client."""
    plan = make(categories=3, epsilon=1, permanent_epsilon=2)
    for times in (1, 2):
        law = joint(plan, value, times)
        p = np.array([float(mass) for mass in law.values()])
        ones = np.array([np.mean(sent, axis=0) for sent in law])
        shares = (ones - plan.other) / (plan.keep - plan.other)
        np.testing.assert_allclose(p @ shares, np.eye(3)[value], atol=1e-12)
        variances = p @ shares**2 - (p @ shares) ** 2
        np.testing.assert_allclose(
            variances, plan.mean_variance(np.eye(3)[value], rounds=times), rtol=1e-10
        )
        if times == 1:
            np.testing.assert_allclose(variances, plan.variance(np.eye(3)[value]), rtol=1e-10)
            pair = shares[:, 0] + shares[:, 2]
            exact = plan.range_variance(2, 1)
            assert p @ pair**2 - (p @ pair) ** 2 == pytest.approx(float(exact))


def follow(plan, value, *, again, n=60_000):
    """Whether two reports of each of n clients come with the exact probabilities of pairs."""
    bits = seeded_rng(31)
    memory = plan.remember(np.full(n, value), rng=bits)
    first = plan.report(memory, rng=bits)
    if not again:
        memory = plan.remember(np.full(n, value), rng=bits)
    second = plan.report(memory, rng=bits)
    seen = np.bincount((first[:, 0].astype(int) << 3) + second[:, 0], minlength=64)
    expected = np.zeros(64)
    for sent, mass in joint(plan, value, 2).items():
        left, right = (sum(bit << i for i, bit in enumerate(row)) for row in sent)
        expected[(left << 3) + right] = n * float(mass)
    assert expected.min() > 50
    return np.sum((seen - expected) ** 2 / expected) <= chi2.isf(ALPHA, 63)


@pytest.mark.parametrize("make", MAKERS)
def test_reports_follow_their_law(make):
    plan = make(categories=3, epsilon=1, permanent_epsilon=2)
    assert follow(plan, 1, again=True)
    assert not follow(plan, 1, again=False)  # a memory that is drawn anew is seen


@pytest.mark.parametrize("make", MAKERS)
def test_estimates_within_their_error(make):
    plan = make(categories=20, epsilon=1, permanent_epsilon=2)
    values = np.arange(50_000) % 30 % 20
    bits = seeded_rng(12)
    memory = plan.remember(values, rng=bits)
    truth = np.bincount(values, minlength=20) / len(values)
    rounds = []
    for _ in range(8):
        found = Aggregator(plan).add(plan.report(memory, rng=bits)).estimate()
        rounds.append(found.shares)
        error = (found.shares - truth) / np.sqrt(plan.variance(truth) / len(values))
        assert np.abs(error).max() < 7
    error = np.mean(rounds, axis=0) - truth
    error /= np.sqrt(plan.mean_variance(truth, rounds=8) / len(values))
    assert np.abs(error).max() < 7
    assert 0.3 < np.mean(error**2) < 2.5


def test_the_optimized_one_loses_nothing_in_its_first_report():
    plan = l_osue(categories=9, epsilon=1, permanent_epsilon=2)
    assert plan.variance(0) == pytest.approx(oue(categories=9, epsilon=1).variance(0), rel=1e-6)
    assert plan.variance(0) < rappor(categories=9, epsilon=1, permanent_epsilon=2).variance(0)


def test_a_fresh_client_refuses_the_report_beyond_its_budget():
    client = BudgetedClient(grr(categories=4, epsilon=0.1), budget=0.3)
    for sent in range(3):
        assert client.report(2, rng=seeded_rng(sent)).shape == (1, 1)
    with pytest.raises(BudgetExceeded, match=r"budget of 0\.3 is spent: after 3 reports"):
        client.report(2)
    assert client.sent == 3
    assert client.guarantee.epsilon() == pytest.approx(0.3)
    with pytest.raises(OutOfDomain):
        BudgetedClient(grr(categories=4, epsilon=0.1), budget=1).report(4)


def test_a_fresh_client_may_have_several_numbers():
    client = BudgetedClient(
        multidimensional_mean(columns={"a": (0, 1), "b": (0, 2)}, epsilon=1), budget=2
    )
    assert client.report({"a": 0.5, "b": 1}, rng=seeded_rng(1)).shape == (1, 2)
    with pytest.raises(InvalidArgument, match="one client"):
        client.report({"a": [0.5, 1], "b": [1, 2]})
    assert client.sent == 1


def test_a_fresh_client_is_saved():
    source = grr(categories=4, epsilon=0.1)
    client = BudgetedClient(source, budget=0.3)
    client.report(1, rng=seeded_rng(1))
    again = BudgetedClient.from_json(client.to_json(), randomizer=source)
    assert again.to_json() == client.to_json()
    assert again.guarantee == client.guarantee


def test_a_memoized_client_pays_by_period():
    plan = l_osue(categories=10, epsilon=1, permanent_epsilon=2)
    client = MemoizedClient(plan, budget=4)
    with pytest.raises(InvalidArgument, match="answer"):
        client.report()
    assert client.guarantee.epsilon() == 0
    for period in range(2):
        client.memoize(period, rng=seeded_rng(period))
        for _ in range(50):
            client.report(rng=seeded_rng(9))
        assert client.guarantee.epsilon() == 2 * (period + 1)
    with pytest.raises(BudgetExceeded, match="after 2 periods, another costs 2"):
        client.memoize(3)
    assert client.report().shape == (1, 2)  # of the old answer: already paid


def test_few_reports_a_period_cost_less():
    plan = l_osue(categories=10, epsilon=1, permanent_epsilon=4)
    client = MemoizedClient(plan, budget=4, reports=2)
    client.memoize(3, rng=seeded_rng(1))
    client.report(rng=seeded_rng(2))
    client.report(rng=seeded_rng(3))
    with pytest.raises(BudgetExceeded, match="All 2 reports"):
        client.report(rng=seeded_rng(4))
    assert client.guarantee == plan.after(2)
    assert 1 < client.guarantee.epsilon() < 2.1
    client.memoize(4, rng=seeded_rng(5))
    client.report(rng=seeded_rng(6))


def test_what_is_not_one_value_costs_nothing():
    client = MemoizedClient(rappor(categories=4, epsilon=1, permanent_epsilon=2), budget=2)
    for wrong, error in ((4, OutOfDomain), ([1, 2], InvalidArgument), (0.5, OutOfDomain)):
        with pytest.raises(error):
            client.memoize(wrong)
    assert client.periods == 0


def test_a_memoized_client_is_saved_with_its_answer():
    plan = rappor(categories=10, epsilon=1, permanent_epsilon=2)
    client = MemoizedClient(plan, budget=3, reports=5)
    assert MemoizedClient.from_json(client.to_json(), plan=plan).to_json() == client.to_json()
    client.memoize(7, rng=seeded_rng(1))
    client.report(rng=seeded_rng(2))
    again = MemoizedClient.from_json(client.to_json(), plan=plan)
    assert again.to_json() == client.to_json()
    assert (again.report(rng=seeded_rng(3)) == client.report(rng=seeded_rng(3))).all()
    assert "memory" not in repr(client)


def damaged(content):
    yield ""
    yield "[]"
    for name in content:
        yield json.dumps({k: v for k, v in content.items() if k != name})
    for name, value in [
        ("version", 2),
        ("budget", 3),
        ("budget", "1e9"),
        ("periods", -1),
        ("periods", 0),
        ("periods", "1"),
        ("sent", -1),
        ("limit", 0),
        ("memory", None),
        ("memory", "zz"),
        ("memory", "00"),
        ("memory", "00ff"),  # digits past the last category
        ("collection", "0" * 16),
    ]:
        yield json.dumps({**content, name: value})


def test_a_damaged_text_is_never_a_new_client():
    plan = rappor(categories=10, epsilon=1, permanent_epsilon=2)
    client = MemoizedClient(plan, budget=3, reports=5)
    client.memoize(7, rng=seeded_rng(1))
    for text in damaged(json.loads(client.to_json())):
        with pytest.raises(InvalidArgument):
            MemoizedClient.from_json(text, plan=plan)


def test_a_description_is_read_back():
    for make in MAKERS:
        plan = make(categories=10, epsilon=Fraction(1, 3), permanent_epsilon=2)
        assert rebuild(json.dumps(plan.describe())) == plan


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="epsilon must be below permanent_epsilon=1"):
        rappor(categories=4, epsilon=1, permanent_epsilon=1)
    with pytest.raises(InvalidArgument, match="too small"):
        l_osue(categories=4, epsilon=1e-12, permanent_epsilon=1)
    with pytest.raises(InvalidArgument, match="ratio"):
        l_osue(categories=4, epsilon=1, permanent_epsilon="1e9999999")
    with pytest.raises(OutOfDomain, match="rows of 1 bytes"):
        rappor(categories=4, epsilon=1, permanent_epsilon=2).report(
            np.zeros((1, 2), dtype=np.uint8)
        )


def test_a_client_with_a_memory_needs_a_plan_to_remember():
    with pytest.raises(InvalidArgument, match="plan must be of permanent responses.*got"):
        MemoizedClient(grr(categories=3, epsilon=1), budget=1)
