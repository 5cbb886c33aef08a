"""Certificates: as strict as brute force, exact, and able to refuse."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.mechanisms.additive import laplace
from discreet.models.blackbox.certificate import (
    certify_all,
    certify_drawn,
    certify_table,
    delta_at_worst,
    loss_at_worst,
)
from discreet.models.blackbox.interval_fit import IntervalClip
from discreet.models.blackbox.lipschitz_fit import TubeClip
from discreet.models.blackbox.metrics import CellMetric, Records, Truncated, UnitCount, WindowGroups
from discreet.models.blackbox.output_ranges import LeaveOneOutRange, OutputRanges
from discreet.noise.random_source import seeded_rng


def prototype(centers, width):
    """The ranges of the first prototype, in whole steps, from whole centers."""
    doubled = np.stack(
        np.broadcast_arrays(
            *(
                centers.max(axis=i, keepdims=True) + centers.min(axis=i, keepdims=True)
                for i in range(centers.ndim)
            )
        )
    )
    return (doubled.max(axis=0) - width) // 2, (doubled.min(axis=0) + width) // 2


@pytest.mark.parametrize("adjacency", ["replace", "step"])
def test_a44_tables_as_by_trying_all_pairs(adjacency):
    rng = np.random.default_rng(1)
    for _ in range(60):
        shape = tuple(rng.integers(1, 4, int(rng.integers(1, 4))))
        low = rng.integers(-9, 9, shape)
        high = low + rng.integers(0, 9, shape)
        cells = list(np.ndindex(shape))

        def near(a, b, adjacency=adjacency):
            moved = [abs(i - j) for i, j in zip(a, b, strict=True)]
            return sum(moved) <= 1 if adjacency == "step" else sum(m > 0 for m in moved) <= 1

        worst = max(high[a] - low[b] for a in cells for b in cells if near(a, b))
        found = certify_table(low, high, width=20, adjacency=adjacency)
        assert found.largest == worst
        a, b = found.witness
        assert near(a, b)
        assert high[a] - low[b] == worst
        assert found.holds == (worst <= 20)


def test_a44_one_unit_more_is_refused():
    rng = np.random.default_rng(2)
    for _ in range(20):
        low, high = prototype(rng.integers(0, 6, (3, 3, 3)), 12)
        found = certify_table(low, high, width=12).demand()
        assert found.largest <= 12
        at = found.witness[0]
        high[at] += 1 + 12 - found.largest
        with pytest.raises(NotCertified, match="NOT CERTIFIED: changes by at most 13 of 12"):
            certify_table(low, high, width=12).demand()


def test_a44_an_empty_range_is_refused_whatever_the_rest():
    found = certify_table([[0, 5], [0, 0]], [[1, 4], [1, 1]], width=100)
    assert found.empty == (0, 1)
    assert not found.holds
    with pytest.raises(NotCertified, match="is empty"):
        found.demand()


def test_a44_doubles_are_taken_as_they_are():
    low, high = np.array([0.0, 0.1]), np.array([0.3, 0.1 + 0.3])
    assert certify_table(low, high, width=Fraction(2, 5)).largest == Fraction(0.1 + 0.3)
    found = certify_table(low, high, width=0.1 + 0.3)
    assert found.holds
    assert not certify_table(low, high, width=np.nextafter(0.1 + 0.3, 0)).holds


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.array([-(2**62)]), np.array([2**62])),
        (np.array([0, 0], dtype=np.uint64), np.array([0, 2**64 - 1], dtype=np.uint64)),
    ],
)
def test_a44_differences_do_not_wrap_around(low, high):
    found = certify_table(low, high, width=1)
    assert found.largest == int(high[-1]) - int(low[-1])
    assert not found.holds


def test_a16_a_path_is_no_clique():
    # The three cells of the counterexample, with four steps for S.
    low, high = np.array([1, 0, -1]), np.array([5, 4, 3])
    found = certify_table(low, high, width=4, adjacency="step")
    assert found.largest == 5  # 1.25 S
    assert not found.holds


class Claimed(OutputRanges):
    """Ranges that claim less than they have."""

    def __init__(self, ranges, *, width):
        self.inner, self.width, self.step = ranges, width, ranges.step

    relation_words = property(lambda self: self.inner.relation_words)
    hull = property(lambda self: self.inner.hull)

    def ranges(self, inputs):
        return self.inner.ranges(inputs)


MODELS = [
    (Records(), LeaveOneOutRange),
    (CellMetric(cuts=(0.5,)), LeaveOneOutRange),
    (Truncated(width=1.6), LeaveOneOutRange),
    (WindowGroups(length=2, parts_of=Truncated(width=1.6)), LeaveOneOutRange),
    (UnitCount(), TubeClip),
    (Truncated(width=1.6), TubeClip),
]


@pytest.mark.parametrize(("metric", "kind"), MODELS, ids=repr)
def test_a44_lazy_models_by_all_inputs_and_by_drawn_ones(metric, kind):
    rng = np.random.default_rng(3)
    anchors = rng.integers(0, 3, (5, 4, 1))
    ranges = kind(
        anchors=anchors, centers=rng.integers(-60, 60, 5), slope=6, width=10, metric=metric
    )
    whole = certify_all(ranges, metric, [0, 1, 2], positions=4).demand()
    assert whole.proof
    drawn = certify_drawn(ranges, metric, anchors, pairs=500).demand()
    assert not drawn.proof
    assert "500 drawn pairs" in str(drawn)
    assert drawn.largest == whole.largest == 10
    # The same ranges under a smaller claim are refused by both.
    claimed = Claimed(ranges, width=9)
    assert not certify_all(claimed, metric, [0, 1, 2], positions=4).holds
    assert not certify_drawn(claimed, metric, anchors, pairs=500).holds


def test_a44_ranges_of_areas_lazily_as_in_a_table():
    rng = np.random.default_rng(4)
    metric = CellMetric(cuts=(0.5, 1.5))
    clip = IntervalClip.fitted(
        anchors=rng.integers(0, 3, (6, 3)), y=rng.integers(-30, 30, 6), width=8, metric=metric
    )
    areas = np.array(list(itertools.product(range(3), repeat=3)), dtype=float)
    low, high = (ends.reshape(3, 3, 3) for ends in clip.ranges(areas))
    table = certify_table(low, high, width=8).demand()
    assert certify_all(clip, metric, [0, 1, 2], positions=3).largest == table.largest
    with pytest.raises(InvalidArgument, match="more than"):
        certify_all(clip, metric, range(10), positions=6)


@pytest.mark.parametrize(("width", "epsilon"), [(1, 1), (7, Fraction(1, 2)), (40, 3)])
def test_a44_the_law_at_the_worst_pair(width, epsilon):
    mechanism = laplace(sensitivity=width, epsilon=epsilon)
    noise = mechanism.integers.noise
    assert loss_at_worst(width=width, scale=noise.scale) == epsilon  # exactly, as rationals
    k = np.arange(-2000, 2000)
    ratio = noise.log_pmf(k) - noise.log_pmf(k - width)
    assert ratio.max() == pytest.approx(float(epsilon), abs=1e-12)
    delta = delta_at_worst(width=width, scale=noise.scale, epsilon=epsilon)
    assert delta == pytest.approx(0, abs=1e-12)
    # One step more would not be covered.
    assert loss_at_worst(width=width + 1, scale=noise.scale) > epsilon
    more = delta_at_worst(width=width + 1, scale=noise.scale, epsilon=epsilon)
    direct = np.maximum(
        np.exp(noise.log_pmf(k)) - math.exp(epsilon) * np.exp(noise.log_pmf(k - width - 1)), 0
    ).sum()
    assert more == pytest.approx(direct, rel=1e-9)
    assert more > 1e-4
    assert delta_at_worst(width=0, scale=1, epsilon=1) == 0


def lower_bound(one, other, event):
    """A lower bound on epsilon from samples, wrong once in a million (Clopper-Pearson)."""
    hits, misses = int(event(one).sum()), int(event(other).sum())
    low = stats.beta.ppf(5e-7, hits, len(one) - hits + 1)
    high = stats.beta.ppf(1 - 5e-7, misses + 1, len(other) - misses)
    return math.log(low / high)


def test_a44_a_million_releases_do_not_show_more_than_epsilon():
    clip = LeaveOneOutRange(
        anchors=[[0, 0], [1, 1]], centers=[0, 30], slope=4, width=5, metric=Records()
    )
    worst = certify_all(clip, clip.metric, [0, 1], positions=2).witness
    # The worst pair, and the worst function for it.
    high, low = clip.clip([1e300], [worst[0]]), clip.clip([-1e300], [worst[1]])
    assert (high - low).item() == 5
    mechanism = laplace(sensitivity=clip.width, epsilon=1)
    noise = mechanism.integers.noise
    one = high + noise.sample(500_000, seeded_rng(1))
    other = low + noise.sample(500_000, seeded_rng(2))
    found = lower_bound(one, other, lambda y: y >= high)
    assert 0.97 < found <= 1
    # Noise for four steps only would be caught.
    weak = laplace(sensitivity=4, epsilon=1).integers.noise
    one, other = (
        high + weak.sample(500_000, seeded_rng(3)),
        low + weak.sample(500_000, seeded_rng(4)),
    )
    assert lower_bound(one, other, lambda y: y >= high) > 1
