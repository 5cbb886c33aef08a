"""Personalized mechanisms: published vectors, and every neighbor of small data by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.guarantee import approx_dp, gdp, pure_dp, zcdp
from discreet.core.errors import InvalidArgument, OutOfDomain, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.personalized import exponential_mechanism as pe
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.partition import privacy_aware, utility_based
from discreet.mechanisms.personalized.sampling import PersonalizedSampling, personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA

BUDGETS = {"a": 0.2, "b": 0.5, "c": 1, "d": 1, "e": 2}
PEOPLE = list(BUDGETS)
MENU = {name: pure_dp(e, relation=NeighboringRelation.REPLACE_ONE) for name, e in BUDGETS.items()}


def log_ratio(p, q):
    return float(np.abs(np.log(p) - np.log(q)).max())


# ── sampling (M33) ─────────────────────────────────────────────────────────────────────────────


def geometric_count(total, n_max, epsilon):
    """The law of a count with two-sided geometric noise, wide enough."""
    k = np.arange(-200, n_max + 200)
    return np.exp(-epsilon * np.abs(k - total)) * math.tanh(epsilon / 2)


def sampled_count(present, rates, epsilon):
    """The exact law of a geometric count on the sample, all coins enumerated."""
    law = 0.0
    for coins in itertools.product((0, 1), repeat=len(present)):
        chance = math.prod(r if c else 1 - r for c, r in zip(coins, rates, strict=True))
        taking = sum(c for c, x in zip(coins, present, strict=True) if x)
        law = law + chance * geometric_count(taking, len(present), epsilon)
    return law


def losses(rates):
    """The log ratio when each of three people leaves, the others present."""
    whole = sampled_count((1, 1, 1), rates, 1.0)
    return [
        log_ratio(whole, sampled_count(tuple(int(i != j) for j in range(3)), rates, 1.0))
        for i in range(3)
    ]


def test_rates_of_the_thesis_and_a_tight_count():
    sample = personalized_sampling(
        pure_dp(1), {"x": pure_dp(0.2), "y": pure_dp(0.5), "z": pure_dp(1)}
    )
    rates = [float(rate) for _, rate in sample.rates]
    assert rates == pytest.approx([0.12885125, 0.37754067, 1], abs=1e-8)
    found = losses(rates)
    assert found == pytest.approx([0.2, 0.5, 1.0], abs=1e-6)
    assert all(f <= e + 1e-12 for f, e in zip(found, (0.2, 0.5, 1.0), strict=True))
    assert sample.guarantee.epsilons()["x"] <= 0.2


def test_a_rate_that_is_too_high_is_caught():
    assert losses([0.13, 0.37, 1])[0] > 0.2


def test_a_gaussian_base_keeps_every_limit():
    limits = {"x": approx_dp(0.2, 1e-6), "z": approx_dp(3, 1e-6), "none": approx_dp(0, 0)}
    sample = personalized_sampling(gdp(0.5), limits)
    rates = dict(sample.rates)
    assert rates["z"] == 1
    assert rates["none"] == 0
    assert 0.9999 * 0.2 < sample.guarantee["x"].epsilon(1e-6) <= 0.2
    more = gdp(0.5).sampled(rates["x"] * Fraction(10001, 10000))
    assert more.epsilon(1e-6) > 0.2


def test_people_are_drawn_at_their_rates():
    sample = PersonalizedSampling(
        base=pure_dp(1), rates=(("x", Fraction(1, 8)), ("y", Fraction(1)), ("z", Fraction(0)))
    )
    levels = np.repeat(["x", "y", "z"], 200_000)
    taking = sample.draw(levels, rng=seeded_rng(7))
    assert taking[200_000:400_000].all()
    assert not taking[400_000:].any()

    def rejected(rate):
        deviation = math.sqrt(200_000 * rate * (1 - rate))
        return abs(taking[:200_000].sum() - 200_000 * rate) > 4.9 * deviation * (ALPHA < 1e-5)

    assert not rejected(1 / 8)
    assert rejected(1 / 8 + 0.005)
    # An error would tell of one person: who has no listed level takes no part.
    for level in ("secret", "x\0", None, 3, math.nan, "\ud800", [1, 2]):
        taking = sample.draw([*"yyy", level], rng=seeded_rng(1))
        assert taking.tolist() == [True, True, True, False]


def test_what_a_sample_refuses():
    with pytest.raises(RelationMismatch, match="ADD_REMOVE"):
        personalized_sampling(pure_dp(1, relation=NeighboringRelation.REPLACE_ONE), MENU)
    with pytest.raises(RelationMismatch):
        personalized_sampling(pure_dp(1), MENU)
    with pytest.raises(Unsupported):
        personalized_sampling(pure_dp(1), {"x": zcdp(1)})
    with pytest.raises(InvalidArgument, match="base must be a guarantee, got int"):
        personalized_sampling(1, MENU)


# ── the personalized exponential mechanism (M34) ───────────────────────────────────────────────


def test_the_printed_count():
    mechanism = personalized_count(MENU)
    having = [1, 0, 1, 0, 0]
    unit = float(mechanism.menu.unit)
    assert (-mechanism.distances(having, PEOPLE) * unit).tolist() == pytest.approx(
        [-1.2, -0.2, 0, -0.5, -1.5, -3.5]
    )
    assert mechanism.probabilities(having, PEOPLE).tolist() == pytest.approx(
        [0.141498, 0.233290, 0.257826, 0.200795, 0.121788, 0.044803], abs=5e-7
    )


def worst_count(mechanism):
    """The largest log ratio of each person over all data of five people."""
    worst = dict.fromkeys(PEOPLE, 0.0)
    for having in itertools.product((0, 1), repeat=5):
        here = mechanism.probabilities(having, PEOPLE)
        for i, name in enumerate(PEOPLE):
            other = list(having)
            other[i] = 1 - other[i]
            there = mechanism.probabilities(other, PEOPLE)
            worst[name] = max(worst[name], log_ratio(here, there))
    return worst


def test_no_neighbor_of_a_count_passes_the_own_budget(monkeypatch):
    mechanism = personalized_count(MENU)
    worst = worst_count(mechanism)
    assert [worst[name] for name in PEOPLE] == pytest.approx(
        [0.145, 0.334, 0.614, 0.614, 1.077], abs=5e-4
    )
    # Without the half of the exponent the strictest person is not protected.
    monkeypatch.setattr(
        pe,
        "_pmf",
        lambda distances, menu: (
            np.exp(-float(menu.unit) * distances) / np.exp(-float(menu.unit) * distances).sum()
        ),
    )
    assert worst_count(mechanism)["a"] == pytest.approx(0.263, abs=5e-4)


@pytest.mark.parametrize("quantile", [0, 0.5, 0.7, 1])
def test_no_neighbor_of_a_quantile_passes_the_own_budget(quantile):
    menu = {name: MENU[name] for name in ("a", "c", "e")}
    names = list(menu)
    mechanism = personalized_quantile(menu, quantile=quantile, lower=0, upper=3)
    for values in itertools.product(range(4), repeat=3):
        here = mechanism.probabilities(np.array(values), names)
        # The true quantile costs nothing.
        rank = max(1, math.ceil(Fraction(str(quantile)) * 3))
        truth = sorted(values)[rank - 1]
        assert mechanism.distances(np.array(values), names)[truth] == 0
        for i, other in itertools.product(range(3), range(4)):
            near = np.array(values)
            near[i] = other
            there = mechanism.probabilities(near, names)
            assert log_ratio(here, there) <= BUDGETS[names[i]] + 1e-12


def brute_distance(values, budgets, target, rank, domain):
    """The cheapest set of people whose change makes ``target`` the value of the rank."""
    best = math.inf
    for chosen in itertools.product((False, True), repeat=len(values)):
        free = [i for i, c in enumerate(chosen) if c]
        price = sum(budgets[i] for i in free)
        for new in itertools.product(domain, repeat=len(free)):
            moved = list(values)
            for i, v in zip(free, new, strict=True):
                moved[i] = v
            if sorted(moved)[rank - 1] == target:
                best = min(best, price)
    return best


def test_distances_are_the_cheapest_changes():
    menu = {name: MENU[name] for name in ("a", "b", "e")}
    mechanism = personalized_quantile(menu, quantile=0.5, lower=0, upper=2)
    unit = float(mechanism.menu.unit)
    levels = ["a", "b", "e", "a"]
    budgets = [BUDGETS[level] for level in levels]
    for values in itertools.product(range(3), repeat=4):
        found = mechanism.distances(np.array(values), levels) * unit
        assert found.tolist() == pytest.approx(
            [brute_distance(values, budgets, v, 2, range(3)) for v in range(3)]
        )


def test_releases_follow_the_law():
    mechanism = personalized_count(MENU)
    having = [1, 0, 1, 0, 0]
    draws = [mechanism.release(having, PEOPLE, rng=seeded_rng(i)) for i in range(2000)]
    law = mechanism.probabilities(having, PEOPLE)
    counts = np.bincount(draws, minlength=6)

    def chi(expected):
        return float(((counts - 2000 * expected) ** 2 / (2000 * expected)).sum())

    # 36.46 is passed once in a million by chi-square with five degrees of freedom.
    assert chi(law) < 36.46
    assert chi(np.roll(law, 1)) > 36.46
    quantile = personalized_quantile(MENU, lower=10, upper=20)
    assert 10 <= quantile.release([3, 15, 99, 15, 15], PEOPLE, rng=seeded_rng(1)) <= 20


@pytest.mark.parametrize(
    ("do", "error", "words"),
    [
        (lambda: personalized_count({"a": pure_dp(1)}), RelationMismatch, "REPLACE_ONE"),
        (
            lambda: personalized_count({"a": zcdp(1, relation=NeighboringRelation.REPLACE_ONE)}),
            Unsupported,
            "pure",
        ),
        (lambda: personalized_count(MENU).release([2], ["a"]), OutOfDomain, "0 or 1"),
        (lambda: personalized_count(MENU).release([1], ["a", "b"]), InvalidArgument, "one level"),
        (lambda: personalized_count(MENU).release([1], ["z"]), InvalidArgument, "among"),
        (lambda: personalized_quantile(MENU, lower=3, upper=3), InvalidArgument, "below upper"),
        (
            lambda: personalized_quantile(MENU, lower=0, upper=3).release([0.5], ["a"]),
            OutOfDomain,
            "whole",
        ),
    ],
)
def test_bad_input_is_named(do, error, words):
    with pytest.raises(error, match=words):
        do()


# ── partitions (M35) ───────────────────────────────────────────────────────────────────────────


def brute_cut(budgets, runs, smallest):
    best = math.inf
    n = len(budgets)
    low = np.sort(budgets)
    for k in range(1, runs + 1):
        for cuts in itertools.combinations(range(1, n), k - 1):
            ends = [0, *cuts, n]
            if min(np.diff(ends)) < smallest:
                continue
            waste = sum(
                float(((low[a:b] - low[a]) ** 2).sum()) for a, b in itertools.pairwise(ends)
            )
            best = min(best, waste)
    return best


@pytest.mark.parametrize("smallest", [1, 2, 3])
@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_runs_waste_the_least(runs, smallest):
    rng = np.random.default_rng(runs * 10 + smallest)
    for _ in range(20):
        budgets = rng.choice([0.1, 0.5, 1.0, 2.0, 3.0], size=9) + rng.random(9) * 0.2
        found = privacy_aware(budgets, runs=runs, smallest=smallest)
        assert found.cost == pytest.approx(brute_cut(budgets, runs, smallest), abs=1e-9)
        assert sum(len(part) for part in found.parts) == 9
        assert min(len(part) for part in found.parts) >= smallest
        for part, epsilon in zip(found.parts, found.epsilons, strict=True):
            assert epsilon == budgets[part].min()


def test_runs_of_many_people():
    budgets = np.repeat([0.5, 1.0, 3.0], 20_000)
    found = privacy_aware(budgets, runs=5)
    assert found.cost == pytest.approx(0, abs=1e-6)
    assert set(found.epsilons) >= {0.5, 1.0, 3.0}


def test_a_loss_of_ones_own():
    """Any table of losses, without structure, against all ways to cut."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        table = rng.random((8, 3))
        budgets = rng.choice([1.0, 2.0, 3.0], size=7)
        low = np.sort(budgets)

        def loss(size, epsilon, table=table):
            return table[size, (epsilon - 1).astype(int)]

        ways = [
            sum(table[b - a, int(low[a]) - 1] for a, b in itertools.pairwise([0, *cuts, 7]))
            for k in range(3)
            for cuts in itertools.combinations(range(1, 7), k)
        ]
        assert utility_based(budgets, loss=loss, runs=3).cost == pytest.approx(min(ways))


def test_what_a_partition_refuses():
    with pytest.raises(InvalidArgument, match="positive"):
        privacy_aware([0.0], runs=1)
    with pytest.raises(InvalidArgument, match="smallest"):
        privacy_aware([1.0], runs=1, smallest=2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
def test_quantiles_of_any_whole_type_within_any_bounds(kind):
    mechanism = personalized_quantile(MENU, lower=-1000, upper=1000)
    values, levels = [1, 2, np.iinfo(kind).max], list(MENU)[:1] * 3
    plain = mechanism.distances([1, 2, min(np.iinfo(kind).max, 1000)], levels)
    assert np.array_equal(mechanism.distances(np.array(values, dtype=kind), levels), plain)


# ── stretching (M32) ───────────────────────────────────────────────────────────────────────────


def stretched_law(mechanism, values, levels):
    """The exact law of the released sum in whole units, by its masses."""
    weights = {name: int(w * max(mechanism.menu.prices)) for name, w in mechanism.weights.items()}
    total = sum(weights[level] * value for value, level in zip(values, levels, strict=True))
    law = DiscreteLaplace(next(iter(mechanism.guarantee.privacy_levels))[1].event.scale)
    return law.log_pmf(np.arange(-400, 400) - total)


def test_no_neighbor_of_a_stretched_sum_passes_the_own_budget():
    menu = {name: MENU[name] for name in ("b", "c", "e")}
    names = ["b", "c", "e"]
    mechanism = stretched_sum(menu, lower=0, upper=3)
    assert mechanism.guarantee.epsilons() == {"b": 0.5, "c": 1.0, "e": 2.0}
    assert mechanism.weights == {"b": Fraction(1, 4), "c": Fraction(1, 2), "e": 1}
    worst = dict.fromkeys(names, 0.0)
    for values in itertools.product(range(4), repeat=3):
        here = stretched_law(mechanism, values, names)
        for i, other in itertools.product(range(3), range(4)):
            near = list(values)
            near[i] = other
            loss = float(np.abs(here - stretched_law(mechanism, near, names)).max())
            worst[names[i]] = max(worst[names[i]], loss)
    # Attained, and never passed.
    assert [worst[name] for name in names] == pytest.approx([0.5, 1.0, 2.0], abs=1e-9)


@pytest.mark.parametrize("quantile", [0, 0.5, 1])
@pytest.mark.parametrize("anchor", [0, 1, 3])
def test_no_neighbor_of_a_stretched_quantile_passes_the_own_budget(quantile, anchor):
    """All data of three people; the loss between two exact values is their distance over s."""
    menu = {name: MENU[name] for name in ("b", "c", "e")}
    names = ["b", "c", "e"]
    mechanism = stretched_quantile(menu, quantile=quantile, lower=0, upper=3, anchor=anchor)
    assert mechanism.guarantee.epsilons() == {"b": 0.5, "c": 1.0, "e": 2.0}
    worst = dict.fromkeys(names, Fraction(0))
    for values in itertools.product(range(4), repeat=3):
        here = mechanism.exact(np.array(values), names)
        for i, other in itertools.product(range(3), range(4)):
            near = np.array(values)
            near[i] = other
            loss = abs(here - mechanism.exact(near, names)) / mechanism._scale
            worst[names[i]] = max(worst[names[i]], loss)
    for name in names:
        assert worst[name] <= Fraction(str(BUDGETS[name]))
    if (quantile, anchor) in ((0, 3), (1, 0)):
        assert worst == {name: Fraction(str(BUDGETS[name])) for name in names}


def test_a_stretched_quantile_is_pulled_to_its_anchor():
    menu = {name: MENU[name] for name in ("b", "e")}
    mechanism = stretched_quantile(menu, lower=0, upper=100, anchor=50)
    # The open are used as they are; the strict at a quarter of their distance.
    assert mechanism.exact(np.array([90, 90, 90]), ["e", "e", "e"]) == 4 * 40
    assert mechanism.exact(np.array([90, 90, 90]), ["b", "b", "b"]) == 40
    values, levels = np.array([10, 80, 90, 200, 90], dtype=np.uint8), ["b", "e", "e", "e", "b"]
    # Pulled values are 40, 60, 80, 90 and 100 (clipped): the middle one is 80.
    assert mechanism.exact(values, levels) == 4 * 30
    assert all(0 <= mechanism.release(values, levels, rng=seeded_rng(i)) <= 100 for i in range(50))
    with pytest.raises(InvalidArgument, match="anchor must lie"):
        stretched_quantile(menu, lower=1, upper=2, anchor=0)
    with pytest.raises(OutOfDomain, match="whole"):
        mechanism.release([0.5], ["b"])
    fine = {"x": pure_dp(Fraction(1, 3**30), relation=NeighboringRelation.REPLACE_ONE), **menu}
    with pytest.raises(InvalidArgument, match="too many digits"):
        stretched_quantile(fine, lower=0, upper=2**40)


def test_pulling_values_out_of_their_bounds_would_break_the_promise():
    """M32: x / y between 1 and 2. Shrinking y toward 0 doubles how far x moves the result."""

    def furthest(anchor):
        y = anchor + 0.5 * (np.linspace(1, 2, 101) - anchor)
        return float((2 / y - 1 / y).max())

    assert furthest(1) <= 1
    assert furthest(0) == pytest.approx(2)


def test_a_stretched_sum_is_that_of_weighted_values():
    menu = {name: MENU[name] for name in ("b", "e")}
    mechanism = stretched_sum(menu, lower=-2, upper=2)
    values, levels = np.array([2, -1, 99, 1], dtype=np.int8), ["b", "e", "e", "b"]
    expected = 0.25 * 2 - 1 + 2 + 0.25 * 1
    draws = [mechanism.release(values, levels, rng=seeded_rng(i)) for i in range(4000)]
    error = mechanism.std / math.sqrt(4000)
    assert abs(np.mean(draws) - expected) < 4.9 * error
    assert abs(np.mean(draws) - (2 - 1 + 2 + 1)) > 4.9 * error  # not the plain sum
    for bad, words in (([0.5], "whole"), ([1, 2], "one level")):
        with pytest.raises((OutOfDomain, InvalidArgument), match=words):
            mechanism.release(bad, ["b"])
    with pytest.raises(InvalidArgument, match="below upper"):
        stretched_sum(menu, lower=1, upper=1)


def test_nobody_is_counted_as_nobody():
    menu = {"all": pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)}
    assert personalized_count(menu).release([], [], rng=seeded_rng(1)) == 0
