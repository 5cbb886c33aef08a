"""Adaptive trees: the combination is least squares, the error is what was promised."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.ranges import adaptive as module
from discreet.local.ranges.adaptive import Block, PartitionOracle, adaptive_hierarchy
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from discreet.ranges.domain import IntegerDomain

DAYS = IntegerDomain(lower=0, upper=255)


def collect(state, values, rng):
    for part in np.array_split(values, state.rounds):
        reports = state.randomizer.randomize(part, rng=rng)
        state = state.learn(Aggregator(state.randomizer).add(reports))
    return state


def dense(tree, total):
    """Generalized least squares over all measured blocks, given the total."""
    leaves = tree.leaves
    index = {leaf.start: i for i, leaf in enumerate(leaves)}
    rows, values, weights = [], [], []

    def walk(block):
        if block.weight:
            rows.append([float(block.start <= leaf.start < block.end) for leaf in leaves])
            values.append(block.share)
            weights.append(block.weight)
        for part in block.parts:
            walk(part)

    for part in tree.parts:
        walk(part)
    a, w = np.array(rows), np.diag(weights)
    ones = np.ones((1, len(index)))
    matrix = np.block([[a.T @ w @ a, ones.T], [ones, np.zeros((1, 1))]])
    right = np.concatenate([a.T @ w @ np.array(values), [total]])
    return np.linalg.solve(matrix, right)[: len(leaves)]


def test_the_two_passes_are_least_squares():
    rng = np.random.default_rng(4)

    def block(start, end, parts=()):
        return Block(
            start=start, end=end, share=rng.normal(), weight=rng.uniform(0.5, 3), parts=parts
        )

    left = block(0, 4, (block(0, 1), block(1, 4, (block(1, 2), block(2, 4)))))
    whole = Block(start=0, end=10, parts=(left, block(4, 10)))
    assert np.allclose(module._downward(whole, 1.0), dense(whole, 1.0), atol=1e-12)
    # and not if the weights are ignored
    flat = Block(start=0, end=10, parts=(left, block(4, 10)))
    assert not np.allclose(module._downward(whole, 1.0), dense(flat, 1.0), atol=1e-3)


def test_answers_of_a_leaf_are_averaged_by_their_weights():
    leaf = Block(start=3, end=5).heard({3: 0.2}, 4.0).heard({3: 0.5}, 2.0)
    assert leaf.share == pytest.approx(0.3)
    assert leaf.weight == 6.0


@pytest.mark.parametrize("branching", [2, 3, 4, 16])
def test_blocks_are_split_into_all_of_their_cells(branching):
    state = adaptive_hierarchy(
        domain=IntegerDomain(lower=0, upper=99), epsilon=1, branching=branching
    )
    tree = state.tree
    for _ in range(state.rounds):
        tree = tree.split(branching, {leaf.start for leaf in tree.leaves})
    assert [(leaf.start, leaf.end) for leaf in tree.leaves] == [(i, i + 1) for i in range(100)]


def test_a_round_is_private_and_described():
    randomizer = adaptive_hierarchy(domain=DAYS, epsilon=1).randomizer
    assert randomizer.certify().holds
    assert randomizer.guarantee.epsilon(0) == 1
    assert randomizer_from_json(randomizer.describe()) == randomizer
    with pytest.raises(OutOfDomain):
        randomizer.randomize([256])
    wrong = randomizer.describe() | {"starts": [0, 300]}
    with pytest.raises(InvalidArgument, match="starts"):
        randomizer_from_json(wrong)


def test_reports_count_for_their_own_round():
    """Also if nothing stood out, so that the next round asks about the same blocks."""
    state = adaptive_hierarchy(domain=DAYS, epsilon=0.1)
    counted = Aggregator(state.randomizer).add(
        state.randomizer.randomize([0] * 30, rng=seeded_rng(2))
    )
    after = state.learn(counted)
    assert after.randomizer.starts == state.randomizer.starts
    with pytest.raises(InvalidArgument, match="this round"):
        after.learn(counted)


def mean_square(values, seed):
    estimate = collect(
        adaptive_hierarchy(domain=DAYS, epsilon=1), values, seeded_rng(seed)
    ).estimate()
    n = len(values)
    truth = np.concatenate([[0], np.cumsum(np.bincount(values, minlength=256))]) / n
    found = np.concatenate([[0], np.cumsum(estimate.cells)]) / n
    rng = np.random.default_rng(seed)
    a, b = np.sort(rng.integers(0, 257, (2, 2000)), axis=0)
    return np.mean((found[b] - found[a] - truth[b] + truth[a]) ** 2)


def shapes(name, rng):
    if name == "beta":
        return np.minimum((rng.beta(5, 2, 100_000) * 256).astype(int), 255)
    return rng.choice([10, 50, 90, 128, 200, 240], 100_000)


@pytest.mark.parametrize("name", ["beta", "spikes"])
def test_the_error_is_at_most_half_of_a_fixed_tree(name):
    # F53. A tree of degree four with consistency: n Var = 44.2 for every distribution.
    values = shapes(name, np.random.default_rng(1))
    errors = [mean_square(values, seed) for seed in range(3)]
    assert np.mean(errors) <= 0.5 * 44.2 / 100_000


def test_a_tree_that_never_splits_fails_this_test(monkeypatch):
    monkeypatch.setattr(module, "_worth_asking", lambda *_: 2.0)
    values = shapes("beta", np.random.default_rng(1))
    assert mean_square(values, 0) > 44.2 / 100_000


def test_what_is_released_is_a_distribution():
    values = shapes("beta", np.random.default_rng(2))[:20_000]
    estimate = collect(adaptive_hierarchy(domain=DAYS, epsilon=1), values, seeded_rng(3)).estimate()
    assert (estimate.cells >= 0).all()
    assert estimate.answer() == pytest.approx(20_000)
    assert estimate.answer(128, 255) == pytest.approx(np.sum(values >= 128), abs=3_000)


def test_rounds_are_kept_apart():
    state = adaptive_hierarchy(domain=DAYS, epsilon=1)
    with pytest.raises(InvalidArgument, match="No round is over"):
        state.estimate()
    with pytest.raises(InvalidArgument, match="no reports"):
        state.learn(Aggregator(state.randomizer))
    other = PartitionOracle(epsilon=state.epsilon, domain=DAYS, starts=(0, 7))
    with pytest.raises(InvalidArgument, match="this round"):
        state.learn(Aggregator(other).add(other.randomize([1, 2], rng=seeded_rng(1))))
    done = collect(state, np.arange(256).repeat(10), seeded_rng(1))
    assert done.finished
    with pytest.raises(InvalidArgument, match="rounds are over"):
        done.learn(Aggregator(done.randomizer))
    with pytest.raises(InvalidArgument, match="two cells"):
        adaptive_hierarchy(domain=IntegerDomain(lower=0, upper=0), epsilon=1)
