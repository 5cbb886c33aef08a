"""Memoized hashing: both costs, the error of averages, and the sampler, against enumeration."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.client import MemoizedClient
from discreet.local.longitudinal import MemoizedHashing, l_osue, longitudinal_olh, rappor
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.randomizer import unpack
from discreet.local.registry import rebuild
from discreet.noise.random_source import seeded_rng
from tests.block_reports import work
from tests.distributions import ALPHA


def channel(g, epsilon):
    """Randomized response as a matrix: rows are inputs."""
    e = math.exp(epsilon)
    return (np.ones((g, g)) + (e - 1) * np.eye(g)) / (e + g - 1)


def copy_of(plan):
    """The second step as a matrix, from the integers that the client compares with."""
    low, high = plan._second_lie(80)
    assert high - low <= 2
    g = plan.hashes
    wrong = low / 2.0**80 / (g - 1)
    return np.full((g, g), wrong) + (1 - g * wrong) * np.eye(g)


def copies(plan, times):
    """Probabilities of all copies, for each hash value of the client."""
    first, second = channel(plan.hashes, float(plan.permanent_epsilon)), copy_of(plan)
    values = range(plan.hashes)
    sent = list(itertools.product(values, repeat=times))
    likelihood = np.array([[math.prod(second[z, y] for y in ys) for ys in sent] for z in values])
    return sent, first @ likelihood


PLANS = [(2, 2), (4, 2), (4, 4), (8, 4), (7, 8)]


@pytest.mark.parametrize(("categories", "hashes"), PLANS)
@pytest.mark.parametrize(("epsilon", "permanent"), [(0.5, 2), (1, 1.25), (3, 6)])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_cost_of_several_reports_is_exact(categories, hashes, epsilon, permanent, times):
    plan = longitudinal_olh(
        categories=categories, epsilon=epsilon, permanent_epsilon=permanent, hashes=hashes
    )
    _, p = copies(plan, times)
    worst = math.log((p[:, None] / p[None, :]).max())
    assert plan.after(times).epsilon() == pytest.approx(worst, rel=1e-8)
    assert plan.loss_after(times) >= worst
    assert worst <= permanent
    assert plan.certify().holds


def test_no_finer_claim_where_doubles_end():
    plan = longitudinal_olh(categories=4, epsilon=800, permanent_epsilon=5000)
    assert plan.after(2).epsilon() == 5000


def test_many_reports_cost_the_permanent_response():
    plan = longitudinal_olh(categories=100, epsilon=1, permanent_epsilon=2)
    costs = [plan.after(k).epsilon() for k in (1, 2, 3, 10, 100, 10**6)]
    assert costs == sorted(costs)
    assert costs[0] == 1
    assert costs[-1] == plan.after().epsilon() == 2


@pytest.mark.parametrize(("categories", "hashes"), [(4, 2), (4, 4), (8, 4), (7, 4)])
@pytest.mark.parametrize("times", [1, 2])
def test_mean_and_variance_are_exact(categories, hashes, times):
    """Over all independent forms, all copies, and every value: the estimate is their average."""
    plan = longitudinal_olh(categories=categories, epsilon=1, permanent_epsilon=2, hashes=hashes)
    sent, p = copies(plan, times)
    all_forms = itertools.product(range(plan.points), repeat=plan.hash_digits)
    hashed = [
        [sum((a & i).bit_count() % 2 << j for j, a in enumerate(forms)) for i in range(plan.points)]
        for forms in all_forms
    ]
    hashed = np.array([h for h in hashed if len(set(h)) == hashes])
    agree = np.array([[[y == z for y in ys] for ys in sent] for z in range(hashes)]).mean(axis=2)
    for v in range(categories):
        # agree[hash of i, copies], weighted by the law of the copies given the hash of v.
        shares = (agree[hashed] - plan.other) / (plan.keep - plan.other)
        weights = p[hashed[:, v]][:, None, :] / len(hashed)
        mean = (shares * weights).sum(axis=(0, 2))[:categories]
        square = (shares**2 * weights).sum(axis=(0, 2))[:categories]
        truth = np.eye(categories)[v]
        np.testing.assert_allclose(mean, truth, atol=1e-12)
        np.testing.assert_allclose(square - mean**2, plan.mean_variance(truth, rounds=times))
        if times == 1:
            np.testing.assert_allclose(square - mean**2, plan.variance(truth))


def follow(plan, value, *, again, n=60_000):
    """Whether pairs of copies of n clients come with their exact probabilities."""
    bits = seeded_rng(41)
    memory = plan.remember(np.full(n, value), rng=bits)
    first, second = (unpack(plan.report(memory, rng=bits), plan._fields) for _ in range(2))
    if not again:
        second[-1] = unpack(plan.randomize(np.full(n, value), rng=bits), plan._fields)[-1]
    assert (first[:-1] == second[:-1]).all()
    form, g = first[0], plan.hashes
    cells = (form - 1) * g * g + first[-1] * g + second[-1]
    seen = np.bincount(cells, minlength=3 * g * g)
    sent, p = copies(plan, 2)
    hashed = [(a & value).bit_count() % 2 for a in (1, 2, 3)]
    expected = np.concatenate([p[h] for h in hashed]) * n / 3
    assert [y * g + z for y, z in sent] == list(range(g * g))
    return np.sum((seen - expected) ** 2 / expected) <= chi2.isf(ALPHA, len(seen) - 1)


@pytest.mark.parametrize("value", [0, 1, 3])
def test_copies_follow_their_law(value):
    plan = longitudinal_olh(categories=4, epsilon=1, permanent_epsilon=2, hashes=2)
    assert follow(plan, value, again=True)
    assert not follow(plan, value, again=False)  # a memory that is drawn anew is seen


def test_one_report_is_local_hashing():
    plan = longitudinal_olh(categories=1000, epsilon=1, permanent_epsilon=2)
    plain = olh(categories=1000, epsilon=1, hashes=plan.hashes)
    assert isinstance(plan, MemoizedHashing)
    assert (plan.width, plan.hashes) == (3, 4)
    for law in ("keep", "other", "width", "size"):
        assert getattr(plan, law) == getattr(plain, law)
    assert plan.contrast_variance() == plain.contrast_variance()


def test_estimates_within_their_error():
    plan = longitudinal_olh(categories=50, epsilon=1, permanent_epsilon=2)
    values = np.arange(100_000) % 75 % 50
    bits = seeded_rng(3)
    memory = plan.remember(values, rng=bits)
    truth = np.bincount(values, minlength=50) / len(values)
    rounds = [Aggregator(plan).add(plan.report(memory, rng=bits)).estimate() for _ in range(6)]
    error = (rounds[0].shares - truth) / np.sqrt(plan.variance(truth) / len(values))
    assert np.abs(error).max() < 7
    error = np.mean([found.shares for found in rounds], axis=0) - truth
    error /= np.sqrt(plan.mean_variance(truth, rounds=6) / len(values))
    assert np.abs(error).max() < 7
    assert 0.4 < np.mean(error**2) < 2


def test_a_client_keeps_it():
    plan = longitudinal_olh(categories=1000, epsilon=1, permanent_epsilon=2)
    client = MemoizedClient(plan, budget=3)
    client.memoize(123, rng=seeded_rng(1))
    client.report(rng=seeded_rng(2))
    again = MemoizedClient.from_json(client.to_json(), plan=plan)
    assert (again.report(rng=seeded_rng(3)) == client.report(rng=seeded_rng(3))).all()
    with pytest.raises(BudgetExceeded):
        again.memoize(123)


def test_a_description_is_read_back():
    plan = longitudinal_olh(categories=1000, epsilon=Fraction(1, 3), permanent_epsilon=2)
    assert rebuild(json.dumps(plan.describe())) == plan


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="epsilon must be below permanent_epsilon=1"):
        longitudinal_olh(categories=4, epsilon=1, permanent_epsilon=1)
    with pytest.raises(InvalidArgument, match="power of two"):
        longitudinal_olh(categories=4, epsilon=1, permanent_epsilon=2, hashes=3)


@pytest.mark.parametrize("make", [longitudinal_olh, l_osue, rappor])
def test_clients_draw_as_many_words_whatever_they_have(make):
    assert len(work(make(categories=30, epsilon=1, permanent_epsilon=2), range(30))) == 1


@pytest.mark.parametrize("epsilon", [1e-6, 50, 900, 10**9])
def test_the_ends_of_epsilon(epsilon):
    values = np.arange(100) % 10
    for oracle in (
        olh(categories=10, epsilon=epsilon),
        subset_selection(categories=10, epsilon=epsilon),
        longitudinal_olh(categories=10, epsilon=epsilon, permanent_epsilon=2 * epsilon),
    ):
        if epsilon < 10**9:
            assert oracle.certify().holds
        else:  # nobody can know such a coin: what is not known is not certified
            with pytest.raises(NotCertified):
                oracle.certify()
        found = Aggregator(oracle).add(oracle.randomize(values, rng=seeded_rng(1))).estimate()
        assert found.reports == 100
        if epsilon >= 50:
            np.testing.assert_allclose(found.shares, 0.1, atol=1e-12)
