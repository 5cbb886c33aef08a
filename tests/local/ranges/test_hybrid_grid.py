"""Grids over several attributes in the local model."""

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.base import Frequencies
from discreet.local.ranges._consistency import BlockShares, GridEstimate
from discreet.local.ranges.hybrid_grid import granularity, hybrid_grid
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from discreet.ranges.domain import IntegerDomain
from tests.distributions import ALPHA

DOMAINS = {
    "age": IntegerDomain(lower=0, upper=63),
    "day": IntegerDomain(lower=1, upper=31),
    "sex": IntegerDomain(lower=0, upper=1),
}


def population(size, seed):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(30, 12, size), 0, 63).astype(int)
    day = np.clip(age // 2 + rng.integers(-4, 5, size), 1, 31)
    return {"age": age, "day": day, "sex": (age + rng.integers(0, 40, size) > 50).astype(int)}


def exact(grid, people):
    """What the grids would say without noise."""
    cells = {name: people[name] - DOMAINS[name].lower for name in DOMAINS}
    measured = {}
    for group in grid.groups:
        edges = tuple(grid.edges(name, group) for name in group)
        table = np.histogramdd([cells[name] for name in group], bins=edges)[0]
        shares = table.ravel() / table.sum()
        measured[group] = BlockShares(
            edges=edges,
            shares=Frequencies(shares=shares, reports=1, variance=np.zeros_like(shares)),
        )
    return GridEstimate(domains=DOMAINS, measured=measured, reports=len(people["age"]))


def test_the_granularity_of_the_specification():
    computed, powers = granularity(reports=10**6, epsilon=1, attributes=6)
    assert computed == pytest.approx((23.3, 3.69), abs=0.02)
    assert powers == (16, 4)


def test_it_certifies_and_comes_back_from_its_description():
    grid = hybrid_grid(DOMAINS, epsilon=1, fine=16, coarse=4)
    assert grid.certify().holds
    assert grid.guarantee.epsilon(0) == 1
    assert randomizer_from_json(grid.describe()) == grid


def test_the_group_does_not_depend_on_the_values():
    grid = hybrid_grid(DOMAINS, epsilon=1, fine=16, coarse=4)
    ones = {"age": np.zeros(2000, int), "day": np.ones(2000, int), "sex": np.zeros(2000, int)}
    others = {"age": np.full(2000, 63), "day": np.full(2000, 31), "sex": np.ones(2000, int)}
    first = grid.randomize(ones, rng=seeded_rng(1))[:, 0]
    assert (first == grid.randomize(others, rng=seeded_rng(1))[:, 0]).all()
    assert stats.chisquare(np.bincount(first, minlength=len(grid.groups))).pvalue > ALPHA


def test_without_noise_aligned_ranges_are_exact():
    grid = hybrid_grid(DOMAINS, epsilon=1, fine=16, coarse=4)
    people = population(20_000, 1)
    found = exact(grid, people)
    ages = grid.edges("age", ("age", "day"))
    days = grid.edges("day", ("age", "day")) + DOMAINS["day"].lower
    inside = (people["age"] >= ages[1]) & (people["age"] < ages[3])
    inside &= (people["day"] >= days[1]) & (people["day"] < days[2])
    share = found.share(age=(ages[1], ages[3] - 1), day=(days[1], days[2] - 1))
    assert share == pytest.approx(inside.mean(), abs=1e-5)
    fine = grid.edges("age", ("age",))
    assert found.share(age=(fine[5], fine[6] - 1)) == pytest.approx(
        np.mean((people["age"] >= fine[5]) & (people["age"] < fine[6])), abs=1e-5
    )
    assert found.share() == 1.0
    # three at once: in or out of each, from pairs; nearly right where pairs say nearly all
    all_three = inside & (people["sex"] == 1)
    assert found.share(
        age=(ages[1], ages[3] - 1), day=(days[1], days[2] - 1), sex=(1, 1)
    ) == pytest.approx(all_three.mean(), abs=0.03)


def test_each_group_is_unbiased_with_its_stated_error():
    grid = hybrid_grid(DOMAINS, epsilon=2, fine=8, coarse=4)
    people = population(60_000, 2)
    found = Aggregator(grid).add(grid.randomize(people, rng=seeded_rng(7))).estimate()
    truth = exact(grid, people)
    z = stats.norm.isf(ALPHA / 2)
    for group, one in found.measured.items():
        wanted = truth.measured[group].shares.shares
        # Which clients are in a group is random too: their share is a sample of the whole.
        n = one.shares.reports
        spread = np.sqrt(one.shares.variance + wanted * (1 - wanted) / n)
        assert (np.abs(one.shares.shares - wanted) < z * spread + 5 / n).all()
    shifted = np.roll(truth.measured["age",].shares.shares, 1)
    one = found.measured["age",].shares
    assert (np.abs(one.shares - shifted) > z * one.std + 5 / one.reports).any()


def test_answers_know_that_attributes_depend():
    grid = hybrid_grid(DOMAINS, epsilon=2, expected_clients=60_000)
    people = population(60_000, 3)
    found = Aggregator(grid).add(grid.randomize(people, rng=seeded_rng(9))).estimate()
    young = (people["age"] >= 16) & (people["age"] <= 31)
    early = (people["day"] >= 8) & (people["day"] <= 15)
    truth = np.mean(young & early)
    alone = young.mean() * early.mean()
    answer = found.share(age=(16, 31), day=(8, 15))
    assert abs(answer - truth) < 0.05 < abs(alone - truth)
    assert found.answer(age=(16, 31)) == pytest.approx(young.sum(), abs=3_000)


def test_hostile_reports_are_counted():
    grid = hybrid_grid(DOMAINS, epsilon=1, fine=8, coarse=4)
    rows = np.random.default_rng(5).integers(0, 256, (4000, grid.width), dtype=np.uint8)
    tally = grid.tally(rows)
    assert tally.accepted + tally.refused == 4000
    assert tally.refused >= np.sum(rows[:, 0] >= len(grid.groups))


def test_errors_name_what_to_do():
    grid = hybrid_grid(DOMAINS, epsilon=1, fine=8, coarse=4)
    with pytest.raises(OutOfDomain, match="age, day, sex"):
        grid.randomize({"age": [1]})
    with pytest.raises(OutOfDomain, match="equally many"):
        grid.randomize({"age": [1, 2], "day": [1], "sex": [0]})
    with pytest.raises(InvalidArgument, match="multiple"):
        hybrid_grid(DOMAINS, epsilon=1, fine=10, coarse=4)
    with pytest.raises(InvalidArgument, match="expected number"):
        hybrid_grid(DOMAINS, epsilon=1)
    with pytest.raises(InvalidArgument, match="2 to 16"):
        hybrid_grid({"age": DOMAINS["age"]}, epsilon=1, fine=8, coarse=4)
    found = exact(grid, population(100, 1))
    with pytest.raises(InvalidArgument, match="height"):
        found.share(height=(1, 2))
