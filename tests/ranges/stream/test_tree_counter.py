"""Counting on a tree: the proof of privacy carried out, the errors against simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.ranges.stream.tree_counter import Chain, TreeCounter, best_chain, half_width
from tests.distributions import ALPHA, frequency

CHAINS = [
    Chain((1,), 5),
    Chain((1, 2, 4), 2),
    Chain((1, 3), 4),
    Chain((1, 2, 6), 3),
    Chain((1, 4, 8, 16), 1),
]


class Planted:
    """Noise that is given: the counter draws for level after level, at every feed."""

    def __init__(self, noise):
        self.noise = [list(level) for level in noise]
        self.calls = 0

    def sample(self, size, rng):
        level = self.noise[self.calls % len(self.noise)]
        self.calls += 1
        return np.array([level.pop(0) for _ in range(size)], dtype=np.int64)


def published(chain, noise, counts, batches=(1000,)):
    """Everything that leaves the counter, of the whole epoch."""
    counter = TreeCounter(chain=chain, law=Planted(noise))
    state = counter.start(1)
    rows = np.array(counts)[:, None]
    prefix, whole, part = [], [], []
    for size in itertools.cycle(batches):
        if not len(rows):
            break
        state, fed = counter.feed(state, rows[:size], None)
        rows = rows[size:]
        prefix.append(fed.prefix)
        whole.append(fed.whole)
        part.append(fed.part)
    closing = counter.closing(state)
    behind = (np.concatenate(whole) + closing[0]) + (np.concatenate(part) + closing[1])
    return np.concatenate(prefix)[:, 0].tolist(), behind[:, 0].tolist()


def planted(chain, rng):
    return [rng.integers(-9, 10, chain.horizon // size).tolist() for size in chain.sizes]


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_a_neighbor_publishes_the_same_with_noise_moved_by_the_sensitivity(chain):
    """Theorem 1, for every neighbor, bit for bit: what is published depends on noisy blocks."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 50, chain.horizon)
    noise = planted(chain, rng)
    for batches in [(chain.horizon,), (1,), (3, 1, 2)]:
        expected = published(chain, noise, counts, batches)
        for step in range(chain.horizon):
            more = counts.copy()
            more[step] += 1
            moved = [list(level) for level in noise]
            for level, size in zip(moved, chain.sizes, strict=True):
                level[step // size] -= 1
            assert published(chain, moved, more, batches) == expected
            pairs = zip(itertools.chain(*moved), itertools.chain(*noise), strict=True)
            assert sum(abs(a - b) for a, b in pairs) == chain.levels


def test_moving_less_noise_is_not_enough():
    """The check above can fail: without the leaf's noise the neighbor shows."""
    chain = Chain((1, 2, 4), 2)
    noise = planted(chain, np.random.default_rng(2))
    moved = [list(level) for level in noise]
    for level, size in zip(moved[1:], chain.sizes[1:], strict=True):
        level[3 // size] -= 1
    counts = np.zeros(8, dtype=np.int64)
    more = counts.copy()
    more[3] = 1
    assert published(chain, moved, more) != published(chain, noise, counts)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_weights_are_least_squares(chain):
    """Against the dense solution over the blocks beside the path."""
    for t in range(1, chain.horizon + 1):
        blocks = []
        for size, width in zip(chain.sizes, chain.widths, strict=True):
            whole = size * width
            if t % whole or size == chain.sizes[-1]:
                group = range(t // whole * width, (t // whole + 1) * width)
                if size == chain.sizes[-1]:
                    group = range(chain.top)
                blocks += [(size * i, size * (i + 1)) for i in group]
        leaves = range(chain.horizon)
        rows = np.array([[float(a <= i < b) for i in leaves] for a, b in blocks])
        information = np.linalg.pinv(rows.T @ rows)
        for suffix in (False, True):
            wanted = np.arange(chain.horizon) < t
            wanted = (~wanted if suffix else wanted).astype(float)
            # The blocks tell the sum: it is in the span of their rows.
            assert np.allclose(rows.T @ np.linalg.lstsq(rows.T, wanted)[0], wanted)
            found = chain.variance(np.array([t]), suffix=suffix)[0]
            assert found == pytest.approx(wanted @ information @ wanted, abs=1e-9)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_errors_have_the_stated_weights(chain):
    """One block's noise at a time: the answers move by its weight, so the variance is exact."""
    zero = np.zeros(chain.horizon, dtype=np.int64)
    total = np.zeros((2, chain.horizon))
    for level, size in enumerate(chain.sizes):
        for block in range(chain.horizon // size):
            noise = [[0] * (chain.horizon // s) for s in chain.sizes]
            noise[level][block] = 1
            total += np.square(published(chain, noise, zero))
    t = np.arange(1, chain.horizon + 1)
    assert total[0] == pytest.approx(chain.variance(t))
    assert total[1][:-1] == pytest.approx(chain.variance(t[:-1], suffix=True))


@pytest.mark.parametrize("wrong", [1.0, 0.9])
def test_simulated_variance(wrong):
    """Error squared against the exact variance; noise that is 10% too small is caught."""
    chain = best_chain(40)
    counter = TreeCounter(chain=chain, law=DiscreteLaplace(2))
    lanes = 30_000
    drawn = TreeCounter(chain=chain, law=DiscreteLaplace(2 * wrong))
    _, fed = drawn.feed(drawn.start(lanes), np.zeros((40, lanes), dtype=np.int64), seeded_rng(5))
    z = stats.norm.isf(ALPHA / 2)  # E e^4 of a sum of Laplace variables is at most 6 var^2
    for t in (1, 7, 22, 39):
        variance = counter.variance(np.array([t]))[0]
        seen = np.mean(np.square(fed.prefix[t - 1]))
        agrees = abs(seen / variance - 1) < z * math.sqrt(5 / lanes)
        assert agrees == (wrong == 1.0)


@pytest.mark.parametrize("scale", [0.3, 1, 5])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_cover(scale, level):
    chain = best_chain(64)
    counter = TreeCounter(chain=chain, law=DiscreteLaplace(scale))
    lanes = 40_000
    _, fed = counter.feed(
        counter.start(lanes), np.zeros((64, lanes), dtype=np.int64), seeded_rng(6)
    )
    t = np.array([1, 13, 30, 64])
    terms = [(times, np.abs(weight) * scale) for times, weight in chain.terms(t)]
    for at, reach in zip(t, half_width(terms, level), strict=True):
        covered = int((np.abs(fed.prefix[at - 1]) <= reach).sum())
        assert covered >= lanes * level or frequency(covered, lanes, level)
        if scale == 5:  # and not by much: half a step is little here
            assert covered / lanes < level + 0.06


def test_quantiles_of_one_laplace_variable():
    for level in (0.5, 0.95, 0.99):
        found = half_width([(np.ones(1), np.ones(1))], level)[0]
        assert found == pytest.approx(-math.log(1 - level) + 0.5, abs=1e-3)


def test_memory_is_logarithmic():
    for horizon, most in [(2**10, 60), (2**20, 130), (2**40, 260)]:
        counter = TreeCounter(chain=best_chain(horizon), law=DiscreteLaplace(1))
        state = counter.start(1)
        for _ in range(3):
            state, _ = counter.feed(state, np.ones((777, 1), dtype=np.int64), seeded_rng(1))
            assert state.numbers <= most


def test_mean_variances():
    """At epsilon 1 with continuous noise: below what is published for streams."""

    def mean(chain, horizon):
        return chain.variance(np.arange(1, horizon + 1)).mean() * 2 * chain.levels**2

    for horizon, ours, raw in [(64, 36.0, 295.5), (256, 72.3, 648.6), (1024, 123.6, 1210)]:
        assert mean(best_chain(horizon), horizon) == pytest.approx(ours, abs=0.05)
        # The binary tree without inference (F11), by counting ones.
        levels = horizon.bit_length()
        ones = np.mean([t.bit_count() for t in range(1, horizon + 1)])
        assert 2 * levels**2 * ones == pytest.approx(raw, rel=2e-3)
    # A tree of sixteens with inference from all blocks, past and future, is hardly better (F30).
    assert mean(best_chain(1024), 1024) < 1.05 * 118.96


def test_inference_from_the_past_alone():
    """F36: the published recursion for a binary tree, here for comparison only."""
    v = [1.0]
    for _ in range(9):
        v.append(1 / (1 + 1 / (2 * v[-1])))
    assert v[:5] == pytest.approx([1, 0.6667, 0.5714, 0.5333, 0.5161], abs=5e-5)
    sums = [sum(v[j] for j in range(10) if t >> j & 1) for t in range(1, 1024)]
    honaker = 11 / 2 * np.mean([*sums, 1 / (1 + 1 / (2 * v[-1]))])
    assert honaker == pytest.approx(15.96, rel=2e-3)
    ours = best_chain(1024)
    laplace = ours.variance(np.arange(1, 1025)).mean() * 2 * ours.levels**2
    assert laplace < 0.2 * (2 * 11**2 * honaker * 2 / 11)
