"""Every structure against the matrix that it stands for: errors, estimates, sensitivities."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.ranges import workload as w
from discreet.ranges._measurements import read_strategy
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies.base import Contribution, group_move, rounded_shares
from discreet.ranges.strategies.haar import Haar, haar
from discreet.ranges.strategies.hierarchical_histogram import HierarchicalHistogram, flat, tree
from discreet.ranges.strategies.square_root import SquareRootStrategy
from discreet.ranges.strategies.weighted_sums import WeightedSums, optimal_sums

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def blocks(size, *sizes, total=None):
    shares = rounded_shares(np.arange(1.0, len(sizes) + 1))
    return HierarchicalHistogram(size=size, sizes=sizes, shares=shares, total=total)


def sums(size, sizes, block, *, rows):
    source = np.random.default_rng(7)
    many = -(-size // block)
    return WeightedSums(
        size=size,
        sizes=sizes,
        block=block,
        weights=source.integers(1, 99, size=(len(sizes), many)),
        matrix=source.integers(0, 99, size=(rows, many)),
    )


STRUCTURES = {
    "flat": flat(10),
    "flat, public total": flat(10, total=5),
    "single cell": flat(1),
    "binary tree with root": tree(8, branching=2, root=True),
    "ternary tree, padded": tree(13, branching=3),
    "mixed radix, padded": blocks(13, 1, 3, 6),
    "two levels, public total": blocks(16, 1, 4, total=7),
    "padded, public total": blocks(19, 1, 2, 8, total=9),
    "haar": haar(8),
    "haar, padded": haar(13),
    "haar, public total": haar(7, total=9),
    "haar, single cell": haar(1),
    "square root": SquareRootStrategy(size=9, normalized=False),
    "normalized square root": SquareRootStrategy(size=9),
    "optimal matrix": dense.optimal_gaussian(9, workload=w.all_ranges()),
    "weighted sums of cells": optimal_sums(9, workload=w.all_ranges(), rows=2),
    "weighted sums of blocks": optimal_sums(16, workload=w.long(), rows=2, block=4),
    "weighted sums of blocks, padded": optimal_sums(13, workload=w.prefixes(), rows=3, block=4),
    "blocks and weighted sums": sums(13, (1, 2), 4, rows=2),
    "blocks and weighted sums of the same": sums(12, (1, 3), 3, rows=2),
    "one weighted sum of all": sums(10, (1, 2, 4), 16, rows=1),
    "no sum": sums(7, (1, 2), 4, rows=0),
}


def matrix(strategy):
    """What is measured, over the padded domain, group by group."""
    size = getattr(strategy, "padded", strategy.size)
    whole = replace(strategy, size=size) if size != strategy.size else strategy
    columns = [whole.measure(cell) for cell in np.eye(size, dtype=np.int64)]
    return [np.stack(group, axis=1).astype(float) for group in zip(*columns, strict=True)]


def dense_law(strategy, noise):
    """Covariance of the least-squares estimate, and the estimator, from scratch."""
    groups = matrix(strategy)
    a = np.concatenate(groups)
    rate = np.concatenate([np.full(len(g), 1 / v) for g, v in zip(groups, noise, strict=True)])
    precision = (a.T * rate) @ a
    if getattr(strategy, "total", None) is None:
        covariance = np.linalg.inv(precision)
        return covariance, lambda y: covariance @ (a.T @ (rate * y))
    # Lagrange: the cells sum to the public total.
    n = a.shape[1]
    system = np.block([[precision, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)

    def solve(y):
        return (inverse @ np.append(a.T @ (rate * y), strategy.total))[:n]

    return inverse[:n, :n], solve


@pytest.fixture(params=STRUCTURES, name="strategy")
def fixture_strategy(request):
    return STRUCTURES[request.param]


@pytest.fixture(name="noise")
def fixture_noise(strategy):
    return np.random.default_rng(3).uniform(0.5, 3, size=len(strategy.shares))


def test_variances_are_those_of_least_squares(strategy, noise):
    size = strategy.size
    covariance, _ = dense_law(strategy, noise)
    a, b, _ = w.listed(w.all_ranges(), size)
    cells = np.arange(len(covariance))
    rows = ((cells >= a[:, None]) & (cells <= b[:, None])).astype(float)
    direct = ((rows @ covariance) * rows).sum(axis=1)
    assert strategy.variance(a, b, noise) == pytest.approx(direct, rel=1e-9, abs=1e-12)
    for workload in (w.all_ranges(), w.points(), w.prefixes(), w.long()):
        p, q, part = w.listed(workload, size)
        mean = part @ strategy.variance(p, q, noise)
        assert strategy.mean_variance(workload, noise) == pytest.approx(mean, rel=1e-9, abs=1e-12)
    lengths = np.arange(1, size + 1)
    means = [direct[b - a + 1 == r].mean() for r in lengths]
    assert strategy.by_length(lengths, noise) == pytest.approx(means, rel=1e-9, abs=1e-12)


def test_estimates_are_least_squares(strategy, noise):
    _, solve = dense_law(strategy, noise)
    source = np.random.default_rng(4)
    groups = strategy.measure(np.zeros(strategy.size, dtype=np.int64))
    noisy = [source.integers(-(10**6), 10**6, size=len(group)) for group in groups]
    found = strategy.estimate(noisy, noise)
    assert found == pytest.approx(solve(np.concatenate(noisy))[: strategy.size], abs=1e-4)


def test_without_noise_the_counts_come_back(strategy, noise):
    counts = np.random.default_rng(5).integers(0, 1000, size=strategy.size)
    if getattr(strategy, "total", None) is not None:
        strategy = replace(strategy, total=int(counts.sum()))
    assert strategy.estimate(strategy.measure(counts), noise) == pytest.approx(counts, abs=1e-6)


def test_weights_of_the_noise(strategy, noise):
    a, b, _ = w.listed(w.all_ranges(), strategy.size)
    bounds = strategy.largest_weights(noise)
    for p, q, variance in zip(a, b, strategy.variance(a, b, noise), strict=True):
        terms = strategy.terms(int(p), int(q), noise)
        each = [
            v * float(np.square(weights) @ counts)
            for v, (weights, counts) in zip(noise, terms, strict=True)
        ]
        assert sum(each) == pytest.approx(variance, rel=1e-9, abs=1e-12)
        for (weights, _), bound in zip(terms, bounds, strict=True):
            assert np.abs(weights).max(initial=0) <= bound * (1 + 1e-9)


def test_precision_is_the_normal_matrix(strategy, noise):
    groups = matrix(strategy)
    size = strategy.size
    x = np.random.default_rng(6).normal(size=size)
    direct = sum(g[:, :size].T @ (g[:, :size] @ x) / v for g, v in zip(groups, noise, strict=True))
    assert strategy.precision(x, noise) == pytest.approx(direct, rel=1e-9)


def test_structures_are_read_back(strategy, noise):
    again = read_strategy(strategy.content())
    assert again.content() == strategy.content()
    assert again.describe() == strategy.describe()
    a, b, _ = w.listed(w.all_ranges(), strategy.size)
    assert (again.variance(a, b, noise) == strategy.variance(a, b, noise)).all()


def units(size, contribution):
    """All that one unit may have."""
    most = contribution.rows if contribution.per_cell is None else contribution.per_cell
    for cells in product(range(min(most, contribution.rows) + 1), repeat=size):
        if sum(cells) <= contribution.rows:
            yield np.array(cells)


def moved(strategy, relation, contribution):
    """The furthest that one step moves each group, by trying every step."""
    kinds = np.array(list(units(strategy.size, contribution)))
    worst = []
    for group in matrix(strategy):
        images = kinds @ group[:, : strategy.size].T
        others = images if relation is REPLACE else np.zeros((1, images.shape[1]))
        apart = images[:, None, :] - others[None, :, :]
        worst.append((np.abs(apart).sum(axis=2).max(), np.square(apart).sum(axis=2).max()))
    return worst


SMALL = {
    "flat": flat(4),
    "tree": tree(5, branching=2, root=True),
    "blocks": blocks(6, 1, 3),
    "haar": haar(4),
    "haar, padded": haar(5),
    "square root": SquareRootStrategy(size=4, normalized=False),
    "normalized": SquareRootStrategy(size=4),
    "optimal": dense.optimal_gaussian(4, workload=w.all_ranges()),
    "optimized": optimal_sums(4, workload=w.prefixes(), rows=1),
    "sums of blocks": sums(5, (1,), 2, rows=2),
    "blocks and sums": sums(4, (1, 2), 4, rows=2),
}
CONTRIBUTIONS = [
    Contribution(),
    Contribution(rows=2),
    Contribution(rows=3, per_cell=1),
    Contribution(rows=3, per_cell=2),
]


def tight(name, relation, contribution):
    """Whether the claims must be attained; else they are cautious, see theory/ranges."""
    if name.startswith("haar"):
        return contribution.rows == 1 and relation is ADD
    if name in ("flat", "tree", "blocks"):
        return relation is ADD or contribution.rows == 1
    return contribution.rows == 1 and (relation is ADD or "opti" in name or "sums" in name)


@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=str)
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=lambda one: one.name)
@pytest.mark.parametrize("name", SMALL)
def test_sensitivities_over_all_neighbors(name, relation, contribution):
    strategy = SMALL[name]
    claims = strategy.moves(contribution, relation)
    for claim, (l1, l2) in zip(claims, moved(strategy, relation, contribution), strict=True):
        assert claim.l1 >= l1
        assert claim.l2_squared >= l2
        if tight(name, relation, contribution):
            if (name, relation) != ("optimal", REPLACE):  # for Gaussian noise: L1 is not needed
                assert claim.l1 == pytest.approx(l1)
            assert claim.l2_squared == pytest.approx(l2)


def test_user_level_sensitivity_of_a_binary_tree():
    # F42: C distinct cells, C a power of two, root included: C (2C - 1) + C^2 (h - log2 C).
    strategy = tree(64, branching=2, root=True)
    for log in range(4):
        c = 1 << log
        moves = strategy.moves(Contribution(rows=c, per_cell=1), ADD)
        assert sum(move.l2_squared for move in moves) == c * (2 * c - 1) + c * c * (6 - log)
        assert all(move.l1 == c for move in moves)
        free = strategy.moves(Contribution(rows=c), ADD)
        assert sum(move.l2_squared for move in free) == c * c * 7  # C sqrt(L)


def test_one_person_in_the_table_of_published_sensitivities():
    # F4: flat 1 and 2; a tree of height h with root h + 1; Haar h + 1, and 2h below the root.
    one = Contribution()
    assert [m.l1 for m in flat(8).moves(one, REPLACE)] == [2]
    assert sum(m.l1 for m in tree(8, branching=2, root=True).moves(one, ADD)) == 4
    assert sum(m.l1 for m in tree(8, branching=2).moves(one, REPLACE)) == 6
    assert sum(m.l2_squared for m in tree(8, branching=2).moves(one, REPLACE)) == 6
    assert sum(m.l1 for m in haar(8).moves(one, ADD)) == 4
    assert max(m.l2_squared for m in haar(8).moves(one, REPLACE)) == 4


@pytest.mark.parametrize("strategy", [flat(4, total=3), haar(4, total=3)], ids=["flat", "haar"])
def test_a_public_total_needs_one_row_of_each_unit_and_replacement(strategy):
    strategy.moves(Contribution(), REPLACE)
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        strategy.moves(Contribution(), ADD)
    with pytest.raises(InvalidArgument, match="REPLACE_ONE"):
        strategy.moves(Contribution(rows=2), REPLACE)


@pytest.mark.parametrize("strategy", SMALL.values(), ids=SMALL)
def test_the_local_relation_is_refused(strategy):
    with pytest.raises(InvalidArgument, match="ADD_REMOVE"):
        strategy.moves(Contribution(), NeighboringRelation.LOCAL)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HierarchicalHistogram(size=4, sizes=(2,), shares=(Fraction(1),)),
        lambda: HierarchicalHistogram(size=4, sizes=(1, 2, 3), shares=(Fraction(1, 3),) * 3),
        lambda: HierarchicalHistogram(size=4, sizes=(1, 1), shares=(Fraction(1, 2),) * 2),
        lambda: HierarchicalHistogram(
            size=4, sizes=(1, 2), shares=(Fraction(1, 2), Fraction(1, 3))
        ),
        lambda: HierarchicalHistogram(size=4, sizes=(1, 2), shares=(Fraction(1), Fraction(0))),
        lambda: HierarchicalHistogram(size=0, sizes=(1,), shares=(Fraction(1),)),
        lambda: Haar(size=4, shares=(Fraction(1),)),
        lambda: haar(1, total=3),
        lambda: dense.ExplicitMatrix(name="short", matrix=np.ones((1, 2), dtype=np.int64)),
        lambda: dense.ExplicitMatrix(name="wide", matrix=np.eye(2, dtype=np.int64) << 30),
        lambda: sums(4, (2,), 2, rows=1),
        lambda: sums(4, (1, 2, 3), 6, rows=1),
        lambda: sums(4, (1, 2), 3, rows=1),
        lambda: replace(sums(4, (1,), 2, rows=1), block=0),
        lambda: replace(sums(4, (1,), 2, rows=1), size=5),
        lambda: replace(sums(4, (1,), 2, rows=1), weights=np.array([[1, 0]])),
        lambda: replace(sums(4, (1,), 2, rows=1), matrix=np.array([[1, -1]])),
        lambda: replace(sums(4, (1,), 2, rows=1), matrix=np.array([[1, 1 << 22]])),
        lambda: sums(1025, (1,), 1, rows=1),
        lambda: Contribution(rows=0),
        lambda: Contribution(rows=2, per_cell=0),
    ],
)
def test_wrong_structures_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_large_dense_domains_are_refused():
    with pytest.raises(Unsupported, match="2048"):
        dense.optimal_gaussian(2049, workload=w.points())
    with pytest.raises(Unsupported, match="131072"):
        optimal_sums((1 << 17) + 1, workload=w.points())
    ends = np.zeros(1 << 15, dtype=np.int64)
    with pytest.raises(Unsupported, match="too long"):
        SquareRootStrategy(size=1 << 16).variance(ends, ends, np.ones(1))


def test_huge_counts_are_clamped_and_do_not_wrap():
    counts = np.full(9, np.iinfo(np.int64).max)
    for strategy in (
        flat(9),
        tree(9, branching=2),
        haar(9),
        SquareRootStrategy(size=9),
        STRUCTURES["optimal matrix"],
        STRUCTURES["weighted sums of cells"],
    ):
        # Clamped, every cell holds the same: no sum is negative, differences are zero.
        for group in strategy.measure(counts):
            assert np.abs(group).max() <= 1 << 61
        found = strategy.estimate(strategy.measure(counts), np.ones(len(strategy.shares)))
        assert found == pytest.approx(np.full(9, found[0]), rel=1e-6)
        assert found[0] > 10**8


def test_shares_are_positive_and_sum_to_one():
    for weights in ([1.0], [1.0, 1e-9], [3.0, 2.0, 1.0], list(np.geomspace(1e-12, 1, 12))):
        shares = rounded_shares(np.array(weights))
        assert sum(shares) == 1
        assert min(shares) > 0


def test_a_group_never_moves_further_than_its_entries_can():
    # The root of a tree is one number: replacing a unit of at most three rows moves it by three.
    move = group_move(Contribution(rows=3), REPLACE, entries=1, cells=64)
    assert (move.l1, move.l2_squared) == (3, 9)


@pytest.mark.parametrize("make", [lambda n: tree(n, branching=2, root=True), haar])
def test_no_sum_of_huge_counts_wraps(make):
    counts = np.full(1 << 22, np.iinfo(np.int64).max)
    for group in make(1 << 22).measure(counts):
        assert group.min() >= 0
        assert group.max() <= 1 << 61  # what a mechanism takes
