"""DAWA: the promise of its first stage, exactly; and what versions in use do instead."""

import math
from itertools import product

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges.domain import integers
from discreet.ranges.release import DataDependentRelease
from discreet.ranges.strategies.base import Contribution
from discreet.ranges.strategies.data_dependent import DAWA, DELTA, BucketSelection, cheapest

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def partitions(size):
    """All partitions into intervals of 1, 2, 4, ... cells, as lengths."""
    if size == 0:
        yield ()
    for level in range(size.bit_length()):
        if 1 << level <= size:
            for rest in partitions(size - (1 << level)):
                yield (*rest, 1 << level)


def test_the_cheapest_partition_is_found_with_ties_in_a_fixed_order():
    source = np.random.default_rng(1)
    for size in (1, 2, 5, 8):
        for _ in range(60):
            levels = size.bit_length()
            costs = [
                source.integers(-3, 4, size=size + 1 - (1 << k)).tolist() for k in range(levels)
            ]

            def cost(lengths, costs=costs):
                starts = np.cumsum([0, *lengths[:-1]])
                return sum(
                    costs[n.bit_length() - 1][s] for s, n in zip(starts, lengths, strict=True)
                )

            first = min(partitions(size), key=lambda one: (cost(one), one[::-1]))
            assert cheapest(costs).tolist() == np.cumsum([0, *first[:-1]]).tolist()


def deviation(x):
    return float(np.abs(x - x.mean()).sum())


def test_costs_are_exact_deviations():
    partition = BucketSelection(
        size=11, epsilon=budget(epsilon=1).epsilon, penalty=budget(epsilon=3).epsilon
    )
    x = np.random.default_rng(2).integers(0, 50, size=11)
    for level, found in enumerate(partition.costs(x)):
        length = 1 << level
        direct = [deviation(x[i : i + length]) + 3 for i in range(12 - length)]
        assert found / partition.unit == pytest.approx(direct, abs=1e-9)


def test_no_deviation_moves_further_than_delta():
    moved = 0.0
    for x in product(range(3), repeat=4):
        for cell in range(4):
            y = np.array(x)
            y[cell] += 1
            moved = max(moved, abs(deviation(y) - deviation(np.array(x))))
    assert moved == pytest.approx(2 * (1 - 1 / 4))
    assert moved <= DELTA


def chances(partition, x):
    """The exact law of the partition of three cells: 1+1+1, 2+1, 1+2.

    With noise z on cells and y on pairs, costs are A = z0 + z1 + z2, B = y0 + z2, C = z0 + y1.
    """
    (c0, c1, c2), (d0, d1) = (costs.tolist() for costs in partition.costs(np.array(x)))
    k = np.arange(-120, 121)
    p = partition.noise.pmf(k)
    apart = np.cumsum(np.convolve(p, p))  # of the difference of two, from -240 on
    steps = len(k) - 1

    def below(t):  # P(difference <= t)
        return apart[np.clip(t + steps, 0, 2 * steps)]

    # A wins iff z0 - y0 <= d0 - c0 - c1 - z1 and z2 - y1 <= d1 - c1 - c2 - z1.
    a = float(p @ (below(d0 - c0 - c1 - k) * below(d1 - c1 - c2 - k)))
    # B wins iff y0 + d0 < z0 + z1 + c0 + c1 and y0 + z2 + d0 + c2 <= z0 + y1 + c0 + d1.
    u = np.arange(-steps, steps + 1)  # z0 - y0
    pu = np.convolve(p, p)
    upper = np.append(0.0, np.cumsum(p))
    at_least = 1 - upper[np.clip(d0 - c0 - c1 + 1 - u + 120, 0, len(k))]  # z1 >= d0 - .. + 1 - u
    b = float(pu @ (at_least * below(u + c0 + d1 - d0 - c2)))
    return np.array([a, b, 1 - a - b])


def test_the_law_of_the_partition_is_the_one_that_is_drawn():
    partition = BucketSelection(
        size=3, epsilon=budget(epsilon=4).epsilon, penalty=budget(epsilon=1).epsilon
    )
    x = np.array([0, 1, 3])
    names = {(0, 1, 2): 0, (0, 2): 1, (0, 1): 2}
    drawn = np.zeros(3)
    number = 2000
    for seed in range(number):
        drawn[names[tuple(partition.release(x, rng=seeded_rng(seed)).tolist())]] += 1
    exact = chances(partition, x)
    assert (np.abs(drawn / number - exact) < 6 * np.sqrt(exact / number)).all()
    assert exact.min() > 0.02


def test_the_first_stage_keeps_its_promise_exactly():
    worst = 0.0
    for epsilon in (1, 4):
        partition = BucketSelection(
            size=3, epsilon=budget(epsilon=epsilon).epsilon, penalty=budget(epsilon=1).epsilon
        )
        for x in product(range(4), repeat=3):
            for cell in range(3):
                y = list(x)
                y[cell] += 1
                ratio = np.abs(np.log(chances(partition, x) / chances(partition, y))).max()
                assert ratio <= epsilon
                worst = max(worst, ratio / epsilon)
    assert worst > 0.25  # not vacuous: sizable, and below one


def loss_in_use(size, scale, *, penalty=100.0):
    """Loss of a first stage in its epsilon, if single cells have no noise; scales by length.

    Constant counts, one more row in a middle cell. All single cells win iff every longer interval
    has noise of at least ``(length - 1) penalty - deviation``: a product of independent events.
    """
    loss = 0.0
    cell = size // 2
    for length in (1 << k for k in range(1, size.bit_length())):
        moved = 2 * (1 - 1 / length)
        for start in range(size - length + 1):
            if start <= cell < start + length:
                assert (length - 1) * penalty > moved  # both thresholds are positive
                # P(noise >= t) is exp(-t / scale) / 2 for t > 0.
                loss += moved / scale(length)
    return loss


def test_without_noise_on_single_cells_the_promise_breaks():
    assert loss_in_use(4, lambda _: 2 * 1.5) == pytest.approx(7 / 6)
    assert loss_in_use(4, lambda length: 4 * (1 - 1 / length)) == pytest.approx(1.5)
    assert loss_in_use(8, lambda _: 2 * 2) == pytest.approx(2.4, abs=0.05)
    assert loss_in_use(16, lambda _: 2 * 2) == pytest.approx(6, abs=0.05)
    assert loss_in_use(256, lambda _: 2 * 2) == pytest.approx(124, abs=1)
    # Half the noise, by length and size of the domain, as in code that circulates.
    assert loss_in_use(4, lambda length: 2 - 1 / length - 1 / 4) == pytest.approx(2.6)
    assert loss_in_use(256, lambda length: 2 - 1 / length - 1 / 256) == pytest.approx(252, abs=1)


@pytest.mark.parametrize(
    ("relation", "rows", "factor"), [(ADD, 1, 1), (REPLACE, 1, 2), (ADD, 3, 3)]
)
def test_more_steps_get_more_noise(relation, rows, factor):
    epsilon = budget(epsilon=1).epsilon
    partition = BucketSelection(
        size=8, epsilon=epsilon, penalty=epsilon, relation=relation, rows=rows
    )
    assert partition.noise == DiscreteLaplace(epsilon * 2 * DELTA * 8 * factor)


def test_a_release_costs_its_budget_and_says_that_it_knows_no_error():
    domain = integers(0, 63)
    dawa = DAWA(domain=domain, budget=budget(epsilon=1))
    counts = np.repeat([100, 3], 32)
    release = dawa.release(counts, rng=seeded_rng(1))
    assert release.guarantee.epsilon() == pytest.approx(1)
    assert release.guarantee.relation is ADD
    assert release.answer((0, 31)) == pytest.approx(3200, abs=300)
    assert release.answer((np.array([0, 32]), np.array([31, 63]))).shape == (2,)
    assert "no prior error" in str(release)
    assert set(release.std) == set(release.interval()[0]) == {None}
    again = DataDependentRelease.from_json(release.to_json())
    assert again.answer((3, 40)) == release.answer((3, 40))
    with pytest.raises(InvalidArgument):
        DataDependentRelease.from_json("{}")


def test_huge_budgets_bring_back_what_is_constant_in_buckets():
    counts = np.repeat([100, 3, 50, 0], 16)
    dawa = DAWA(domain=integers(0, 63), budget=budget(epsilon=200))
    assert dawa.release(counts, rng=seeded_rng(1)).cells == pytest.approx(counts, abs=1e-6)


def test_dawa_refuses():
    with pytest.raises(Unsupported):
        DAWA(domain=integers(0, 63), budget=budget(rho=1))
    with pytest.raises(InvalidArgument, match="at most"):
        DAWA(domain=integers(0, 1 << 17), budget=budget(epsilon=1))
    with pytest.raises(InvalidArgument, match="relation"):
        DAWA(domain=integers(0, 63), budget=budget(epsilon=1), relation=NeighboringRelation.LOCAL)
    dawa = DAWA(domain=integers(0, 63), budget=budget(epsilon=1), contribution=Contribution(rows=2))
    with pytest.raises(OutOfDomain):
        dawa.release(np.zeros(63, dtype=int))
    assert math.isclose(dawa.guarantee.epsilon(), 1)
