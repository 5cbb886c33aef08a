"""The Gaussian counter: its sensitivity over all neighbors, exactly; its inverse; its errors."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet.mechanisms.additive import gaussian
from discreet.noise.random_source import seeded_rng
from discreet.ranges.stream.blt_counter import BITS, BLT, CHUNK, BLTCounter, best_blt, fixed
from tests.distributions import ALPHA

HORIZON = 300
SMALL = fixed(best_blt(HORIZON), HORIZON)


class Nothing:
    """No noise, and a record of what would get some."""

    def __init__(self):
        self.seen = []

    def release(self, values, rng):
        self.seen.append(values)
        return values


def product(matrix, counts, batches=(1 << 20,)):
    """F(x) as it is released, and the prefixes read from it, both without noise."""
    noise = Nothing()
    counter = BLTCounter(fixed=matrix, noise=noise)
    rows = np.array(counts)
    rows = rows[:, None] if rows.ndim == 1 else rows
    state, prefixes = counter.start(rows.shape[1]), []
    for size in itertools.cycle(batches):
        if not len(rows):
            break
        state, fed = counter.feed(state, rows[:size], None)
        rows = rows[size:]
        prefixes.append(fed.prefix)
    lanes = state.total.size
    released = np.concatenate([seen.reshape(-1, lanes) for seen in noise.seen])
    return released, np.concatenate(prefixes)


def crowd(lanes):
    return np.random.default_rng(3).integers(0, 100_000, (HORIZON, 1)) * np.ones(lanes, dtype=int)


def distances(moves):
    """Squared distance of F at a crowded stream and at its neighbors, one lane for each."""
    base = crowd(moves.shape[1])
    apart = product(SMALL, base + moves)[0] - product(SMALL, base)[0]
    return (apart.astype(object) ** 2).sum(axis=0)


def test_sensitivity_over_all_neighbors():
    """Every single event, in integers: no further than claimed, and the claim is nearly reached."""
    found = distances(np.eye(HORIZON, dtype=np.int64))
    claimed = SMALL.squared(max_rows_per_unit=1, replaced=False)
    assert max(found) <= claimed
    assert max(found) >= 0.99999 * claimed
    # The check can fail: the norm of a matrix with one buffer less would be too small.
    less = fixed(BLT(SMALL.blt.omega[:-1], SMALL.blt.theta[:-1]), HORIZON)
    assert max(found) > less.squared(max_rows_per_unit=1, replaced=False)


def test_sensitivity_of_replacements():
    """Every step against the first, the last of a chunk, the first of the next and the last."""
    for step in (0, CHUNK - 1, CHUNK, HORIZON - 1):
        moves = np.eye(HORIZON, dtype=np.int64)
        moves[step] -= 1
        assert max(distances(moves)) <= SMALL.squared(max_rows_per_unit=1, replaced=True)


def test_sensitivity_of_units():
    """Three events: all at one step reach the claim, spread out they stay below."""
    claimed = SMALL.squared(max_rows_per_unit=3, replaced=False)
    together = max(distances(3 * np.eye(HORIZON, dtype=np.int64)))
    assert 0.99999 * claimed <= together <= claimed
    rng = np.random.default_rng(4)
    spread = np.zeros((HORIZON, 200), dtype=np.int64)
    for lane in range(200):
        np.add.at(spread[:, lane], rng.integers(0, 20, 3), 1)
    assert max(distances(spread)) <= claimed


def test_the_product_is_that_of_the_matrix():
    """Against the dense matrix, to the grid; in any batches the same, to the last integer."""
    counts = np.random.default_rng(5).integers(0, 1000, HORIZON)
    released, prefixes = product(SMALL, counts)
    column = SMALL.blt.column(HORIZON)
    dense = np.convolve(column, counts)[:HORIZON]
    assert np.ldexp(released[:, 0].astype(float), -BITS) == pytest.approx(dense, rel=1e-6)
    assert prefixes[:, 0] == pytest.approx(np.cumsum(counts), abs=1e-4)
    for batches in [(1,), (127, 1, 2), (200, 5)]:
        again, same = product(SMALL, counts, batches)
        assert np.array_equal(again, released)
        assert same == pytest.approx(prefixes, abs=1e-6)


def test_a_long_and_crowded_stream_is_read_back():
    horizon = 1 << 18
    matrix = fixed(best_blt(horizon), horizon)
    counts = np.full(horizon, BLTCounter(fixed=matrix, noise=None).most)
    assert product(matrix, counts, (50_000,))[1][-1, 0] == pytest.approx(counts.sum(), rel=1e-11)
    assert float(matrix.slack / matrix.norm) < 1e-3


@pytest.mark.parametrize("wrong", [1.0, 0.9])
def test_simulated_variance(wrong):
    """Errors of prefixes and of what comes after them; 10% less noise is caught."""
    noise = gaussian(
        sensitivity=1,
        norm="linf",
        dimension=SMALL.squared(max_rows_per_unit=1, replaced=False),
        mu=1,
    )
    less = gaussian(sensitivity=1, sigma=wrong * noise.std, domain="integers")
    counter = BLTCounter(fixed=SMALL, noise=less)
    honest = BLTCounter(fixed=SMALL, noise=noise)
    lanes = 5_000
    state, fed = counter.feed(
        counter.start(lanes), np.zeros((HORIZON, lanes), dtype=np.int64), seeded_rng(7)
    )
    behind = fed.part + counter.closing(state)[1]
    z = stats.norm.isf(ALPHA / 2)
    for t in (1, 100, 129, HORIZON - 1):
        for suffix, errors in ((False, fed.prefix), (True, behind)):
            variance = honest.variance(np.array([t]), suffix=suffix)[0]
            seen = np.mean(np.square(errors[t - 1]))
            agrees = abs(seen / variance - 1) < z * math.sqrt(2 / lanes)
            assert agrees == (wrong == 1.0)


def test_memory_is_constant():
    for horizon in (1000, 10**6):
        matrix = fixed(best_blt(horizon), horizon)
        counter = BLTCounter(fixed=matrix, noise=Nothing())
        state = counter.start(1)
        for _ in range(5):
            state, _ = counter.feed(state, np.ones((177, 1), dtype=np.int64), None)
            assert state.numbers <= 2 * CHUNK + 2 * len(matrix.blt.theta) + 3
