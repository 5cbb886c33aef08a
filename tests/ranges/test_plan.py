"""The planner: its ranking is right, its errors are those of the releases, it reads nothing."""

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import plan
from discreet.ranges import workload as w
from discreet.ranges.domain import dates, integers
from discreet.ranges.plan import plan_ranges
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies.base import Contribution, measurement_cost
from discreet.ranges.strategies.haar import haar
from discreet.ranges.strategies.hierarchical_histogram import flat, tree
from discreet.ranges.strategies.square_root import SquareRootStrategy
from tests.distributions import ALPHA

WORKLOADS = [w.points(), w.short(), w.long(), w.prefixes(), w.all_ranges()]
BUDGETS = [budget(epsilon=1), budget(rho=1), budget(epsilon=1, delta=1e-6)]


def planned(size, workload, cost, **more):
    return plan_ranges(integers(1, size), workload, cost, **more)


# ── published trees, corrected for privacy ─────────────────────────────────────────────────────
# A node of Friis 2021 (section 7.2) carries the noise of its whole path from the root; as that is
# T L for a unit triangular T, the noise must have the scale 1 + (B - 1) h of the rows of T^-1 A
# (F12). A node of Dwork and Roth 2014 carries its own noise only, of scale h + 1 (F10).


def decompositions(a, b, branching, height):
    """How many nodes of a complete tree make up each range (F9)."""
    low, high = a.copy(), b + 1
    nodes, live = np.zeros(len(a)), np.ones(len(a), dtype=bool)
    for level in range(height + 1):
        up_low, up_high = -(-low // branching), high // branching
        last = live & ((up_low >= up_high) | (level == height))
        on = live & ~last
        nodes += np.where(last, high - low, 0)
        nodes += np.where(on, up_low * branching - low + high - up_high * branching, 0)
        low, high, live = np.where(on, up_low, low), np.where(on, up_high, high), on
    return nodes


def drawn(workload, size):
    """Every range of a workload, or many of them with a fixed seed."""
    if size <= 1024 or isinstance(workload, w.PrefixWorkload):
        return w.listed(workload, size)[:2]
    source = np.random.default_rng(1)
    low, high = workload.bounds(size)
    lengths = np.arange(low, high + 1)
    chances = (size - lengths + 1) / (size - lengths + 1).sum()
    r = source.choice(lengths, size=100_000, p=chances)
    a = np.floor(source.random(len(r)) * (size - r + 1)).astype(np.int64)
    return a, a + r - 1


def digit_sums(numbers, branching):
    """How many nodes make up the first ``numbers`` leaves below a node."""
    total, left = np.zeros(len(numbers)), numbers.copy()
    while left.any():
        total += left % branching
        left //= branching
    return total


def on_paths(a, b, branching, height):
    """Sum of squares of how often the variable of each node enters a range (F12)."""
    nodes = decompositions(a, b, branching, height)
    squares = nodes.copy()
    for level in range(height + 1):
        block = branching**level
        left, right = a // block, b // block
        whole = (left == right) & (b - a + 1 < block)
        squares += np.where(whole, nodes**2, 0)
        for reach in ((left + 1) * block - a, b + 1 - right * block):
            part = (left != right) & (reach < block)
            squares += np.where(part, digit_sums(np.where(part, reach, 0), branching) ** 2, 0)
    return squares


def published(size, workload, branching, *, pushed_down=False):
    """Mean variance of a corrected tree at epsilon 1, without inference."""
    height = 0
    while branching**height < size:
        height += 1
    if pushed_down:
        scale, squares = 1 + (branching - 1) * height, on_paths
    else:
        scale, squares = height + 1, decompositions
    entering = squares(*drawn(workload, size), branching, height)
    return DiscreteLaplace(scale).variance * float(entering.mean())


@pytest.mark.parametrize(("branching", "height"), [(2, 4), (3, 3), (4, 2)])
def test_noise_on_paths_by_adding_it_up(branching, height):
    leaves = branching**height
    tree_rows, above = [], []  # every node as its leaves; its path from the root
    for level in range(height + 1):
        for k in range(leaves // branching**level):
            row = np.zeros(leaves)
            row[k * branching**level : (k + 1) * branching**level] = 1
            tree_rows.append(row)
    tree_rows = np.array(tree_rows)
    above = np.array([[(up >= row).all() for up in tree_rows] for row in tree_rows], dtype=float)
    scale = np.abs(np.linalg.solve(above, tree_rows)).sum(axis=0).max()
    assert round(scale, 9) == 1 + (branching - 1) * height
    a, b, _ = w.listed(w.all_ranges(), leaves)
    for first, last, found in zip(a, b, on_paths(a, b, branching, height), strict=True):
        wanted = np.zeros(leaves)
        wanted[first : last + 1] = 1
        taken = np.zeros(len(tree_rows))
        for index in reversed(range(len(tree_rows))):  # the largest nodes first
            if (tree_rows[index] <= wanted).all():
                taken[index], wanted = 1, wanted - tree_rows[index]
        assert found == ((taken @ above) ** 2).sum()


def test_decompositions_that_are_printed():
    # Spec 6.2 (a): numbers of nodes.
    for branching, height, a, b, nodes in (
        (2, 5, 2, 22, 6),
        (4, 3, 5, 57, 11),
        (3, 3, 1, 25, 9),
        (2, 5, 0, 31, 1),
    ):
        assert decompositions(np.array([a]), np.array([b]), branching, height) == [nodes]
    a, b, _ = w.listed(w.all_ranges(), 64)
    for branching, height in ((2, 6), (4, 3)):
        most = (branching - 1) * (2 * np.log(b - a + 1) / np.log(branching) + 1)
        assert (decompositions(a, b, branching, height) <= most + 1e-9).all()


def ratios(sizes):
    """How many times smaller the RMSE of the planner's choice is: both trees, by degree."""
    for size in sizes:
        for workload in WORKLOADS:
            best = planned(size, workload, budget(epsilon=1)).candidates[0]
            found = [
                math.sqrt(published(size, workload, b, pushed_down=pushed) / best.mean)
                for pushed in (True, False)
                for b in (2, 3, 4)
            ]
            yield size, workload, best, found


def check_ratios(sizes):
    for size, workload, best, found in ratios(sizes):
        print(
            f"{size:6} {workload!s:24} {best.name:45} {best.rmse:8.2f}",
            *map("{:.2f}".format, found),
        )
        # Searches end a little differently on other machines: one percent of room.
        assert min(found[:3]) >= 2.5
        assert found[3] >= 3
        assert found[4] >= 2.7
        assert found[5] >= 2.3
        if not isinstance(workload, w.PrefixWorkload):
            assert found[5] >= (2.42 if size == 65536 else 2.48)


def test_better_than_the_published_tree_on_a_small_domain():
    check_ratios([32])


@pytest.mark.slow
def test_better_than_the_published_tree():
    check_ratios([256, 1024, 4096, 65536])


# ── the ranking ────────────────────────────────────────────────────────────────────────────────


def rivals(size, family):
    yield flat(size)
    yield haar(size)
    for branching in (2, 3, 4, 5, 8, 10, 16, 32, 64):
        if branching < size:
            yield tree(size, branching=branching)
            yield tree(size, branching=branching, root=True)
    if family == "gaussian":
        yield SquareRootStrategy(size=size)
        yield SquareRootStrategy(size=size, normalized=False)


def check_best(size, workload, cost):
    best = planned(size, workload, cost).candidates[0]
    for family in ("laplace",) if cost.rho is None else ("gaussian",):
        paid = measurement_cost(cost, family=family)
        for rival in rivals(size, family):
            moves = rival.moves(Contribution(), NeighboringRelation.ADD_REMOVE)
            error = rival.mean_variance(workload, paid.variances(rival.shares, moves))
            assert best.mean <= 1.01 * error, rival.describe()


@pytest.mark.parametrize("cost", BUDGETS[:2], ids=str)
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_nothing_is_better_on_a_small_domain(workload, cost):
    check_best(32, workload, cost)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_nothing_is_better_for_gaussian_noise(workload):
    check_best(256, workload, BUDGETS[1])


@pytest.mark.slow
@pytest.mark.parametrize("cost", BUDGETS[:2], ids=str)
@pytest.mark.parametrize("size", [256, 1024, 4096, 65536])
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_nothing_is_better(workload, size, cost):
    check_best(size, workload, cost)


def test_square_roots_are_left_out_where_listed_ranges_take_too_long():
    many = w.ranges([(i, i + 9) for i in range(5000)])
    names = [one.name for one in planned(6000, many, budget(rho=1)).candidates]
    assert not any("square root" in name for name in names)
    few = planned(6000, w.ranges([(0, 4000), (10, 20)]), budget(rho=1))
    assert any("square root" in one.name for one in few.candidates)
    for one in few.candidates:
        direct = one.design.variance(np.array([0, 10]), np.array([4000, 20])).mean()
        assert one.mean == pytest.approx(direct, rel=1e-6)


@pytest.mark.parametrize("cost", BUDGETS, ids=str)
def test_the_forecast_is_the_error_of_the_release(cost):
    found = planned(48, w.all_ranges(), cost)
    assert [one.mean for one in found.candidates] == sorted(one.mean for one in found.candidates)
    for one in found.candidates:
        assert one.mean == pytest.approx(one.design.mean_variance(w.all_ranges()), rel=0.01)
        assert one.mean <= one.largest
        a, b, _ = w.listed(w.all_ranges(), 48)
        assert one.largest == pytest.approx(one.design.variance(a, b).max(), rel=0.02)


def test_the_forecast_is_what_happens():
    found = planned(48, w.all_ranges(), budget(epsilon=1))
    counts = np.arange(48)
    truth = np.concatenate([[0], np.cumsum(counts)])
    a, b, _ = w.listed(w.all_ranges(), 48)
    times = 500
    for one in (found.candidates[0], found.candidates[-1]):
        errors = [
            np.square(
                one.design.release(counts, rng=seeded_rng(seed)).answer_many(a + 1, b + 1)
                - (truth[b + 1] - truth[a])
            ).mean()
            for seed in range(times)
        ]
        # A mean over ranges varies less than one range (Jensen); that has variance 4.6 at most.
        room = math.sqrt(2 * math.log(2 / ALPHA) * 4.6 / times)
        assert np.mean(errors) / one.mean == pytest.approx(1, abs=room)
        assert np.mean(errors) / one.mean / 4 != pytest.approx(1, abs=room)


def test_choices_that_are_known():
    # F59: flat for short ranges, blocks for all, Laplace noise at a single (1, 1e-6).
    assert planned(1024, w.short(), budget(epsilon=1)).best.describe() == "flat, laplace noise"
    found = planned(1024, w.all_ranges(), budget(epsilon=1)).candidates
    assert found[0].name == "cells and 32 weighted sums of blocks of 8, laplace noise"
    assert found[0].mean <= 130
    assert found[1].design.strategy.sizes == (1, 16, 128)
    assert found[1].mean <= 155


def test_at_one_release_laplace_noise_may_win(monkeypatch):
    monkeypatch.setattr(plan, "_SMALL_GAUSSIAN", 0)
    one = planned(1024, w.all_ranges(), budget(epsilon=1, delta=1e-6))
    assert one.best.family == "laplace"
    assert one.best.guarantee.epsilon() == 1
    gaussian = next(c for c in one.candidates if c.design.family == "gaussian")
    assert gaussian.mean == pytest.approx(246, rel=0.01)  # 13.77 times 4.2247^2


def test_the_table_is_printed_without_reading_anything():
    found = planned(100, w.all_ranges(), budget(epsilon=1), expected_rows=10_000)
    text = str(found)
    lines = text.splitlines()
    assert lines[0].startswith("Ranges of 1 .. 100, all ranges, epsilon 1")
    assert len(lines) == 2 + len(found.candidates)
    assert "of all rows" in lines[1]
    assert found.best.describe() in lines[2]
    lengths, curves = found.curves()
    assert lengths[0] == 1
    assert lengths[-1] == 100
    assert len(curves) == len(found.candidates)
    assert all(len(curve) == len(lengths) for curve in curves.values())


def test_a_public_number_of_rows_is_used_where_it_is_public():
    size, cost = 64, budget(epsilon=1)
    replaced = planned(size, w.all_ranges(), cost, relation=NeighboringRelation.REPLACE_ONE)
    known = planned(
        size, w.all_ranges(), cost, relation=NeighboringRelation.REPLACE_ONE, expected_rows=500
    )
    assert known.candidates[0].mean < replaced.candidates[0].mean
    assert known.best.release(np.full(size, 5), rng=seeded_rng(1)).guarantee.epsilon() == 1
    guess = planned(size, w.all_ranges(), cost, expected_rows=500)
    assert guess.candidates[0].mean == planned(size, w.all_ranges(), cost).candidates[0].mean
    several = planned(
        size,
        w.all_ranges(),
        cost,
        relation=NeighboringRelation.REPLACE_ONE,
        expected_rows=500,
        contribution=Contribution(rows=2),
    )
    assert all(getattr(c.design.strategy, "total", None) is None for c in several.candidates)


def test_more_rows_of_a_unit_cost_more():
    one = planned(64, w.all_ranges(), budget(epsilon=1)).candidates[0].rmse
    two = (
        planned(64, w.all_ranges(), budget(epsilon=1), contribution=Contribution(rows=2))
        .candidates[0]
        .rmse
    )
    assert 1.8 * one < two <= 2.1 * one


@pytest.mark.parametrize("cost", BUDGETS, ids=str)
def test_single_cells(cost):
    found = planned(1, w.all_ranges(), cost)
    assert {one.design.strategy for one in found.candidates} == {flat(1)}
    assert found.best.release(np.array([7]), rng=seeded_rng(1)).answer() != 0
    with pytest.raises(InvalidArgument, match="nothing to measure"):
        planned(1, w.points(), cost, relation=NeighboringRelation.REPLACE_ONE, expected_rows=5)


def test_what_cannot_be_planned():
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        planned(8, w.points(), BUDGETS[0], relation=NeighboringRelation.LOCAL)
    with pytest.raises(InvalidArgument, match="rows must be"):
        planned(8, w.points(), BUDGETS[0], expected_rows=0)
    with pytest.raises(InvalidArgument, match="outside"):
        planned(8, w.ranges([(0, 8)]), BUDGETS[0])
    with pytest.raises(InvalidArgument, match="9"):
        planned(8, w.length(9), BUDGETS[0])


def test_listed_ranges_get_a_matrix_of_their_own():
    quarters = w.ranges([(0, 15), (16, 31), (32, 47), (48, 63)])
    found = planned(64, quarters, budget(rho=1))
    assert found.candidates[0].mean < 0.6  # four numbers, nearly as if asked alone: 1 / (2 rho)
    assert found.candidates[0].mean > 0.49


def test_a_thorough_plan_may_optimize_larger_matrices(monkeypatch):
    monkeypatch.setattr(plan, "_SMALL_GAUSSIAN", 8)
    days = dates("2024-01-01", "2024-01-20")
    quick = plan_ranges(days, w.all_ranges(), budget(rho=1))
    thorough = plan_ranges(days, w.all_ranges(), budget(rho=1), thorough=True)
    assert len(thorough.candidates) == len(quick.candidates) + 1
    assert isinstance(thorough.best.strategy, dense.ExplicitMatrix)
