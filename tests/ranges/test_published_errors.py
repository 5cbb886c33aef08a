"""Published variances of central range counting, from closed forms and from simulation.

Tables print variances of continuous noise. Discrete noise has those in the limit of small budgets:
at epsilon 1/1024 the variance times epsilon^2 differs by less than 1e-6.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import workload as w
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import integers
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies import square_root as roots
from discreet.ranges.strategies.base import Contribution, measurement_cost, rounded_shares
from discreet.ranges.strategies.haar import haar, optimal_haar
from discreet.ranges.strategies.hierarchical_histogram import (
    HierarchicalHistogram,
    flat,
    optimal_blocks,
    tree,
)
from discreet.ranges.strategies.square_root import SquareRootStrategy
from discreet.ranges.strategies.weighted_sums import WeightProblem, covered, optimal_sums
from tests.distributions import ALPHA

SMALL = 2**-10
ALL, PREFIXES = w.all_ranges(), w.prefixes()
ONE = {"relation": NeighboringRelation.ADD_REMOVE, "contribution": Contribution()}


def budgets(family, size=SMALL):
    return budget(epsilon=size) if family == "laplace" else budget(rho=size**2)


def mean(strategy, workload, family, size=SMALL):
    """The mean variance at epsilon 1 or rho 1, in the limit of continuous noise."""
    cost = measurement_cost(budgets(family, size), family=family)
    noise = cost.variances(strategy.shares, strategy.moves(**ONE))
    return strategy.mean_variance(workload, noise) * size**2


def optimal(make, size, workload, family):
    return make(
        size, workload=workload, price=measurement_cost(budgets(family), family=family), **ONE
    )


LAPLACE = {
    # name: structure, {size: all ranges}, {size: prefixes}
    "flat": (flat, {64: 44, 256: 172, 1024: 684, 4096: 2732}, {64: 65, 256: 257, 1024: 1025}),
    "binary tree with root": (
        lambda size: tree(size, branching=2, root=True),
        {64: 127.3, 256: 264.8, 1024: 476.6},
        {64: 88.8, 256: 173.2, 1024: 298.9},
    ),
    "binary tree": (
        lambda size: tree(size, branching=2),
        {64: 99.9, 256: 220.1, 1024: 410.6, 4096: 687},
        {64: 77.8, 256: 158.5, 1024: 280.5},
    ),
    "tree of four with root": (
        lambda size: tree(size, branching=4, root=True),
        {64: 74.4, 256: 153.8, 1024: 275.6},
        {64: 53.4, 256: 102.0, 1024: 173.9},
    ),
    "tree of four": (
        lambda size: tree(size, branching=4),
        {64: 49.1, 256: 110.7, 1024: 210.2, 4096: 357},
        {64: 44.1, 256: 89.6, 1024: 158.3},
    ),
    "tree of eight": (lambda size: tree(size, branching=8), {64: 37.07, 4096: 277}, {64: 38.2}),
    "tree of 16": (lambda size: tree(size, branching=16), {256: 79.23, 4096: 262}, {256: 80.5}),
    "tree of 32": (lambda size: tree(size, branching=32), {1024: 164.3}, {}),
    "haar": (haar, {64: 102.3, 256: 221.1, 1024: 410.3}, {64: 87.9, 256: 171.3, 1024: 295.9}),
}
GAUSSIAN = {
    "flat": (flat, {64: 11, 256: 43, 1024: 171}, {64: 16.25, 256: 64.25, 1024: 256.25}),
    "binary tree with root": (
        lambda size: tree(size, branching=2, root=True),
        {64: 4.545, 256: 7.355, 1024: 10.83},
        {64: 3.170, 256: 4.812, 1024: 6.794},
    ),
    "tree of four with root": (
        lambda size: tree(size, branching=4, root=True),
        {64: 4.652, 256: 7.691, 1024: 11.48},
        {64: 3.339, 256: 5.102, 1024: 7.245},
    ),
    "haar": (haar, {64: 3.652, 256: 6.143, 1024: 9.325}, {64: 3.139, 256: 4.759, 1024: 6.725}),
    "square root": (
        lambda size: SquareRootStrategy(size=size, normalized=False),
        {64: 3.462, 256: 5.324, 1024: 7.588},
        {64: 2.486, 256: 3.561, 1024: 4.835},
    ),
    "normalized square root": (
        lambda size: SquareRootStrategy(size=size),
        {64: 3.038, 256: 4.762, 1024: 6.887, 4096: 9.406},
        {64: 2.264, 256: 3.270, 1024: 4.474},
    ),
}


def cells(table, family):
    for name, (make, every, heads) in table.items():
        for workload, printed in ((ALL, every), (PREFIXES, heads)):
            for size, value in printed.items():
                yield pytest.param(
                    make, size, workload, family, value, id=f"{family}-{name}-{workload}-{size}"
                )


@pytest.mark.parametrize(
    ("make", "size", "workload", "family", "printed"),
    [*cells(LAPLACE, "laplace"), *cells(GAUSSIAN, "gaussian")],
)
def test_printed_variances(make, size, workload, family, printed):
    # Printed to three or four digits; integer rounding of the square root costs 5e-4.
    assert mean(make(size), workload, family) == pytest.approx(printed, rel=2e-3)


def test_the_largest_prefix_variances():
    for normalized, printed in ((False, 5.3549), (True, 4.7455)):
        strategy = SquareRootStrategy(size=1024, normalized=normalized)
        (move,) = strategy.moves(**ONE)
        stops = np.arange(1024)
        found = strategy.variance(0 * stops, stops, np.array([move.l2_squared / 2]))
        assert found.max() == pytest.approx(printed, rel=1e-3)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(
    "workload",
    [
        ALL,
        PREFIXES,
        w.points(),
        w.short(),
        w.long(),
        w.length(300),
        w.ranges([(3, 800), (0, 2000)]),
    ],
    ids=str,
)
def test_square_roots_of_large_domains_are_interpolated(monkeypatch, workload, normalized):
    strategy = SquareRootStrategy(size=2048, normalized=normalized)
    quick = strategy.mean_variance(workload, np.ones(1))
    monkeypatch.setattr(roots, "_ALL_COLUMNS", 2048)
    assert quick == pytest.approx(strategy.mean_variance(workload, np.ones(1)), rel=3e-3)


@pytest.mark.parametrize(
    ("size", "workload", "printed", "sizes"),
    [
        (32, ALL, 22.667, (1,)),
        (64, ALL, 36.57, (1, 16)),
        (128, ALL, 53.88, (1, 16)),
        (256, ALL, 78.94, (1, 16)),
        (512, ALL, 115.14, (1, 32)),
        (1024, ALL, 154.51, (1, 16, 128)),
        (2048, ALL, 202.34, (1, 16, 256)),
        (4096, ALL, 260.87, (1, 16, 256)),
        (16384, ALL, 416.94, (1, 16, 128, 2048)),
        (65536, ALL, 613.63, (1, 16, 256, 4096)),
        (1 << 20, ALL, 1193.1, (1, 16, 256, 4096, 65536)),
        (64, PREFIXES, 34.41, (1, 16)),
        (256, PREFIXES, 70.77, (1, 8, 64)),
        (1024, PREFIXES, 118.96, (1, 16, 256)),
        (2048, PREFIXES, 153.74, (1, 16, 256)),
        (4096, PREFIXES, 193.28, (1, 16, 128, 1024)),
        (65536, PREFIXES, 420.88, (1, 32, 512, 8192)),
    ],
    ids=str,
)
def test_optimal_blocks_for_laplace_noise(size, workload, printed, sizes):
    found = optimal(optimal_blocks, size, workload, "laplace")
    assert found.sizes == sizes
    assert mean(found, workload, "laplace") == pytest.approx(printed, rel=2e-4)


def test_errors_of_optimal_blocks_by_length():
    lengths = np.array([1, 4, 16, 32, 64, 128, 256, 512])
    found = optimal(optimal_blocks, 1024, ALL, "laplace")
    noise = measurement_cost(budget(epsilon=SMALL), family="laplace").variances(
        found.shares, found.moves(**ONE)
    )
    printed = [10.6, 35.6, 71.2, 85.7, 105.1, 121.8, 143.2, 186.0]
    # Printed for starts that are uniform modulo the blocks; here they are uniform in the domain,
    # which for 1000 of 1024 cells makes a tenth (243 instead of 268), and little for these.
    assert found.by_length(lengths, noise) * SMALL**2 == pytest.approx(printed, rel=0.05)


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("workload", [ALL, PREFIXES, w.long(), w.short()], ids=str)
@pytest.mark.parametrize("size", [64, 100, 256, 1000])
def test_optimal_blocks_are_never_worse(size, workload, family):
    best = mean(optimal(optimal_blocks, size, workload, family), workload, family)
    assert best <= mean(flat(size), workload, family) * (1 + 1e-9)
    for branching in (2, 4, 8, 16):
        assert best <= mean(tree(size, branching=branching), workload, family) * (1 + 1e-4)


@pytest.mark.parametrize(
    ("size", "workload", "laplace", "gaussian"),
    [
        (64, ALL, 95.6, 3.479),
        (256, ALL, 209.3, 5.904),
        (1024, ALL, 392.0, 9.025),
        (64, PREFIXES, 79.0, 2.891),
        (256, PREFIXES, 156.3, 4.431),
        (1024, PREFIXES, 272.9, 6.312),
    ],
    ids=str,
)
def test_optimal_haar(size, workload, laplace, gaussian):
    found = [
        mean(optimal(optimal_haar, size, workload, family), workload, family)
        for family in ("laplace", "gaussian")
    ]
    assert found == pytest.approx([laplace, gaussian], rel=1e-3)
    # For Gaussian noise the best binary blocks and the best wavelet are the same family.
    blocks = mean(optimal(optimal_blocks, size, workload, "gaussian"), workload, "gaussian")
    assert blocks == pytest.approx(found[1], rel=1e-3)


@pytest.mark.parametrize(
    ("size", "workload", "printed"),
    [(64, ALL, 2.650), (64, PREFIXES, 2.205), (256, ALL, 4.209)],
    ids=str,
)
def test_the_optimal_matrix_for_gaussian_noise(size, workload, printed):
    strategy = dense.optimal_gaussian(size, workload=workload)
    assert mean(strategy, workload, "gaussian") == pytest.approx(printed, rel=2e-3)
    values = np.linalg.eigvalsh(w.gram(workload, size))
    bound = np.sqrt(np.maximum(values, 0)).sum() ** 2 / size / 2
    assert bound <= mean(strategy, workload, "gaussian")


@pytest.mark.slow
def test_the_optimal_matrix_on_1024_cells():
    strategy = dense.optimal_gaussian(1024, workload=ALL)
    assert mean(strategy, ALL, "gaussian") == pytest.approx(6.178, rel=0.01)


def test_an_unfinished_optimum_is_calibrated_by_what_it_is(monkeypatch):
    monkeypatch.setattr(dense, "_ROUNDS", 1)
    strategy = dense.optimal_gaussian(64, workload=PREFIXES)
    (move,) = strategy.moves(**ONE)
    assert move.l2_squared == np.square(strategy.matrix).sum(axis=0).max()
    assert mean(strategy, PREFIXES, "gaussian") > 2.205


def test_the_lower_factor_would_have_other_norms():
    x = np.corrcoef(np.random.default_rng(1).normal(size=(6, 20)))
    factor = dense._upper_factor(x)
    assert factor.T @ factor == pytest.approx(x, abs=1e-9)
    assert np.linalg.norm(factor, axis=0) == pytest.approx(np.ones(6))
    assert np.linalg.norm(factor.T, axis=0).max() > 1.1


@pytest.mark.parametrize(
    ("size", "workload", "limit"), [(64, ALL, 30.84), (64, PREFIXES, 28.4)], ids=str
)
def test_the_optimized_matrix_for_laplace_noise(size, workload, limit):
    strategy = optimal_sums(size, workload=workload)
    assert mean(strategy, workload, "laplace") <= limit * 1.001


@pytest.mark.parametrize(
    ("size", "workload", "limit"),
    # Optimal blocks have 115.1, 154.5 and 119.0 (F30).
    [(512, ALL, 94), (1024, ALL, 130), (1024, PREFIXES, 97)],
    ids=str,
)
def test_weighted_sums_of_blocks_for_laplace_noise(size, workload, limit):
    strategy = optimal_sums(size, workload=workload)
    assert mean(strategy, workload, "laplace") <= limit


@pytest.mark.parametrize(("sizes", "block"), [((1,), 1), ((1,), 4), ((1, 2), 2), ((1, 2, 4), 8)])
def test_its_gradient(sizes, block):
    gram, energies = covered(ALL, 24, (*sizes, block))
    problem = WeightProblem(
        gram=gram / block, drops=-np.diff(energies, axis=0), sizes=sizes, block=block, rows=3
    )
    x = np.random.default_rng(2).uniform(0.1, 0.5, 3 * len(gram) + len(sizes) - 1)
    _, gradient = problem.cost(x)
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-5
        ahead, behind = (problem.cost(x + s)[0] for s in (step, -step))
        assert gradient[i] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-6)


def test_printed_two_passes():
    # Spec 6.2 (b).
    noisy = [np.array([3, 5, 2, 8]), np.array([9, 9]), np.array([20])]
    strategy = tree(4, branching=2, root=True)
    found = strategy.estimate(noisy, np.ones(3))
    assert found == pytest.approx([3.619048, 5.619048, 1.952381, 7.952381], abs=1e-6)
    found = strategy.estimate(noisy, np.array([4.0, 1.0, 1.0]))
    assert found == pytest.approx([3.764444, 5.764444, 1.875556, 7.875556], abs=1e-6)
    known = HierarchicalHistogram(size=4, sizes=(1, 2), shares=rounded_shares(np.ones(2)), total=20)
    found = known.estimate(noisy[:2], np.ones(2))
    assert found == pytest.approx([3.833333, 5.833333, 2.166667, 8.166667], abs=1e-6)


def test_printed_variances_of_single_ranges():
    # Spec 6.2 (c).
    a, b = np.array([0, 1, 3, 0]), np.array([7, 6, 3, 3])
    binary = tree(8, branching=2, root=True).variance(a, b, np.ones(4))
    assert binary == pytest.approx([0.533333, 1.466667, 0.609524, 0.419048], abs=1e-6)
    assert haar(8).variance(a, b, np.ones(4)) == pytest.approx([1, 1.1875, 0.34375, 0.5])
    a, b = np.array([0, 1, 3, 0]), np.array([15, 14, 3, 7])
    four = tree(16, branching=4, root=True).variance(a, b, np.ones(3))
    assert four == pytest.approx([0.761905, 2.133333, 0.790476, 0.990476], abs=1e-6)


# ── what must be shown: 1024 cells, epsilon 1, and the variances of the discrete noise ─────────


def test_what_must_be_shown_at_epsilon_one():
    shown = {
        "flat": mean(flat(1024), ALL, "laplace"),
        "with root": mean(tree(1024, branching=2, root=True), ALL, "laplace"),
        "without": mean(tree(1024, branching=2), ALL, "laplace"),
        "haar": mean(haar(1024), ALL, "laplace"),
        "blocks": mean(optimal(optimal_blocks, 1024, ALL, "laplace"), ALL, "laplace"),
    }
    assert shown == pytest.approx(
        {"flat": 684, "with root": 476.6, "without": 410.6, "haar": 410.3, "blocks": 154.5},
        rel=1e-3,
    )
    # The noise that is really added is discrete: 8 percent less for single counts.
    assert mean(flat(1024), ALL, "laplace", size=1) == pytest.approx(629.74, abs=0.01)
    best = optimal_blocks(
        1024, workload=ALL, price=measurement_cost(budget(epsilon=1), family="laplace"), **ONE
    )
    assert mean(best, ALL, "laplace", size=1) <= 153.0


SIMULATED = {
    "flat": (flat(64), "laplace"),
    "blocks": (optimal(optimal_blocks, 256, ALL, "laplace"), "laplace"),
    "blocks, gaussian": (optimal(optimal_blocks, 64, ALL, "gaussian"), "gaussian"),
    "haar": (haar(64), "laplace"),
    "square root": (SquareRootStrategy(size=64), "gaussian"),
    "weighted sums": (optimal_sums(32, workload=ALL, block=4), "laplace"),
}


def squared_errors(design, times, ranges):
    """Squared errors, each over its exact variance, one row for each release."""
    a, b = ranges
    size = design.domain.size
    counts = np.arange(size) % 7
    truth = np.concatenate([[0], np.cumsum(counts)])
    exact = truth[b + 1] - truth[a]
    rows = [
        design.release(counts, rng=seeded_rng(seed)).answer_many(a, b) - exact
        for seed in range(times)
    ]
    return np.square(rows) / design.variance(a, b)


@pytest.mark.parametrize("name", SIMULATED)
def test_simulation_agrees_with_the_exact_variance(name):
    strategy, family = SIMULATED[name]
    size = strategy.size
    design = RangeDesign(
        domain=integers(0, size - 1), strategy=strategy, budget=budgets(family, 1), family=family
    )
    a, b = np.array([0, 3, 1, size // 3]), np.array([size - 1, 3, size - 2, size // 2])
    times = 600
    found = squared_errors(design, times, (a, b)).mean(axis=0)
    # Excess kurtosis of a sum is below that of Laplace noise, 3 (discrete: at most 3 + 1/v < 3.6):
    # the variance of a squared error is at most 4.6 (Gaussian: 2) times the squared variance.
    spread = 4.6 if family == "laplace" else 2.0
    room = float(norm.isf(ALPHA / 2)) * math.sqrt(spread / times)
    assert np.abs(found - 1).max() <= room
    # The check can fail: noise of half the scale, or twice, would be seen.
    assert abs(found / 4 - 1).min() > room
    assert abs(found * 4 - 1).min() > room
