"""MWEM: what it costs, what it measures, and that it learns."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import workload as w
from discreet.ranges.domain import integers
from discreet.ranges.grid import domain as g
from discreet.ranges.grid.domain import GridDomain
from discreet.ranges.grid.plan import plan_grid
from discreet.ranges.plan import plan_ranges
from discreet.ranges.strategies.base import Contribution
from discreet.ranges.strategies.data_dependent import MWEM

GRID = GridDomain(domains=(integers(0, 7), integers(0, 5)))


def mwem(**options):
    given = {"grid": GRID, "workload": g.all_rectangles(), "budget": budget(epsilon=1)}
    return MWEM(**(given | options))


def spiky():
    counts = np.zeros((8, 6), dtype=np.int64)
    counts[2:4, 1:3] = 2000
    return counts


@pytest.mark.parametrize("rounds", [1, 7])
def test_all_rounds_together_cost_the_budget(rounds):
    made = mwem(rounds=rounds)
    assert made.guarantee.epsilon() == pytest.approx(1, abs=1e-9)
    assert made.guarantee.epsilon() <= 1
    assert made.each * (2 * rounds + 1) == 1


def test_scores_and_counts_move_by_the_rows_of_a_unit():
    # A rectangle's count moves by one when a row comes or goes, and also when one is replaced.
    for relation in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        made = mwem(relation=relation)
        assert made.measuring.integers.noise.scale == 1 / made.each
        assert made.choosing.rate == made.each / 2
        three = mwem(relation=relation, contribution=Contribution(rows=3))
        assert three.measuring.integers.noise.scale == 3 / made.each
        assert three.choosing.rate == made.each / 6


def test_counts_of_rectangles_move_by_no_more():
    ends, _ = g.listed_rectangles(g.all_rectangles(), (3, 2))
    cells = np.eye(6).reshape(6, 3, 2)
    sums = np.array([g.signed_sums(g.corners(cell), ends) for cell in cells])
    assert np.abs(sums).max() == 1
    assert np.abs(sums[:, None] - sums[None]).max() == 1


def test_it_learns():
    counts = spiky()
    ends, _ = g.listed_rectangles(g.all_rectangles(), (8, 6))
    truth = g.signed_sums(g.corners(counts.astype(float)), ends)

    def error(cells):
        return np.sqrt(np.square(g.signed_sums(g.corners(cells), ends) - truth).mean())

    release = mwem(budget=budget(epsilon=20), rounds=20).release(counts, rng=seeded_rng(1))
    even = np.full((8, 6), 8000 / 48)
    assert error(release.cells) < error(even) / 2
    assert release.total == pytest.approx(8000, abs=30)
    assert release.cells.min() >= 0
    assert "no prior error" in str(release)
    assert release.answer((2, 3), None) > 4000


def test_wild_noise_does_no_harm():
    release = mwem(budget=budget(epsilon=1e-6)).release(spiky(), rng=seeded_rng(2))
    assert np.isfinite(release.cells).all()


def test_mwem_refuses():
    with pytest.raises(Unsupported):
        mwem(budget=budget(epsilon=1, delta=1e-6))
    with pytest.raises(InvalidArgument, match="relation"):
        mwem(relation=NeighboringRelation.LOCAL)
    with pytest.raises(InvalidArgument, match="list fewer"):
        mwem(grid=GridDomain(domains=(integers(0, 99), integers(0, 99))))
    with pytest.raises(OutOfDomain):
        mwem().release(np.zeros((6, 8), dtype=int))


def test_planners_offer_it_only_on_request():
    ages, price = integers(0, 31), budget(epsilon=1)
    plan = plan_ranges(ages, w.all_ranges(), price)
    assert plan.aware == ()
    asked = plan_ranges(ages, w.all_ranges(), price, data_aware=True)
    assert [type(offer).__name__ for offer in asked.aware] == ["DAWA", "MWEM"]
    assert str(asked).count("no prior error") == 2
    assert [one.mean for one in asked.candidates] == [one.mean for one in plan.candidates]
    release = asked.aware[0].release(np.full(32, 30), rng=seeded_rng(1))
    assert release.guarantee.epsilon() == pytest.approx(1)
    grid = plan_grid(GRID.domains, g.points(), price, data_aware=True)
    assert [type(offer).__name__ for offer in grid.aware] == ["MWEM"]
    # A hundred by a hundred cells have too many rectangles to choose from.
    axes = [integers(1, 100)] * 2
    assert plan_grid(axes, g.all_rectangles(), price, data_aware=True).aware == ()
    with pytest.raises(InvalidArgument, match="pure"):
        plan_grid(GRID.domains, g.points(), budget(rho=1), data_aware=True)
