"""What is released when the noise is known: every number of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.above_threshold import above_threshold
from discreet.mechanisms.bin_statistics import bin_statistics, private_bin_counts
from discreet.mechanisms.bounded.mechanism import clamp_output, reflect_output
from discreet.mechanisms.data_dependent import propose_test_release as propose
from discreet.mechanisms.data_dependent import weighted_sensitivity as weighted
from discreet.mechanisms.data_dependent._smooth_noise import Lomax
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.scalar.staircase import staircase
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.piecewise_constant import Staircase
from discreet.noise.random_source import seeded_rng

REPLACE = {"relation": NeighboringRelation.REPLACE_ONE}
ROWS = [-2.0, -1.0, 0.5, 1.0, 1.5, 2.0, 4.0]  # on a grid of halves, in steps: -4 -2 1 2 3 4 8


@pytest.fixture
def drawn(monkeypatch):
    """Let discrete Laplace noise be one number, or as many as are asked for."""

    def fix(*noise):
        def sample(self, size, rng):
            return np.resize(np.array(noise, dtype=np.int64), size)

        monkeypatch.setattr(DiscreteLaplace, "sample", sample)

    return fix


@pytest.mark.parametrize("noise", [0, 3, -3, 100, -100])
@pytest.mark.parametrize(
    ("statistic", "steps"), [("median", 2), ("mean", math.floor(Fraction(12, 7)))]
)
def test_noise_on_a_statistic(noise, statistic, steps, monkeypatch):
    options = {"lower": -2, "upper": 4, "public_rows": 7, "epsilon": 1, "granularity": 0.5}
    expected = min(max(steps + noise, -4), 8) / 2
    scales = []

    def draw(scale, _):
        scales.append(scale)
        return noise

    monkeypatch.setattr(weighted, "laplace_draw", draw)
    made = weighted.weighted_sensitivity(statistic, delta=1e-6, **options)
    assert made.release(ROWS, rng=seeded_rng(1)) == expected
    # Locally one row moves the median from 2 to 1 or 3, the mean by the span of 12 over 7.
    local = 1 if statistic == "median" else Fraction(12, 7) + 1
    whole = 12 if statistic == "median" else Fraction(12, 7) + 1
    assert scales == [(1 - made.share) * local + made.share * whole]
    monkeypatch.setattr(Lomax, "draw", lambda self, scale, bits: draw(scale, bits))
    made = smooth_sensitivity(statistic, **options)
    assert made.release(ROWS, rng=seeded_rng(1)) == expected
    codes = np.array([0, 2, 5, 6, 7, 8, 12])
    assert scales[1] == made.bound(codes) * made.family.multiplier


@pytest.mark.parametrize("noise", [0, 3, -3, 100, -100])
def test_a_test_and_an_answer(noise, monkeypatch, drawn):
    monkeypatch.setattr(propose, "laplace_draw", lambda scale, _: noise)
    made = propose_test_release(
        bound=1,
        lower=-2,
        upper=4,
        public_rows=7,
        epsilon=1,
        delta=1e-2,
        granularity=0.5,
        test=Fraction(1, 4),
    )
    assert (made.test, made.answer) == (Fraction(1, 4), Fraction(3, 4))
    k = np.arange(-400, 401)
    law = np.exp(-np.abs(k) / 4)
    beyond = [law[k > t].sum() / law.sum() for t in range(60)]
    assert made.threshold == min(t for t in range(60) if beyond[t] <= 1e-2)
    # The median's neighbors are one step away, so two steps are passed after one change.
    codes = np.array([0, 2, 5, 6, 7, 8, 12])
    distance = made.statistic.distance(codes, 12, bound=Fraction(2))
    drawn(made.threshold - distance)
    assert made.release(ROWS, rng=seeded_rng(1)) is None
    drawn(made.threshold - distance + 1)
    assert made.release(ROWS, rng=seeded_rng(1)) == min(max(2 + noise, -4), 8) / 2


@pytest.mark.parametrize("noise", [0, 5, -5, 1000, -1000])
def test_sums_and_counts(noise, drawn):
    drawn(noise)
    count = discreet.laplace(sensitivity=1, epsilon=1)
    assert count.release(7, rng=seeded_rng(1)) == 7 + noise
    assert count.release([7, -2], rng=seeded_rng(1)).tolist() == [7 + noise, -2 + noise]
    assert clamp_output(count, lower=0, upper=10).release(7) == min(max(7 + noise, 0), 10)
    turn = (7 + noise) % 20
    assert reflect_output(count, lower=0, upper=10).release(7) == min(turn, 20 - turn)
    turn = (5 + noise - 2) % 6
    assert reflect_output(count, lower=2, upper=5).release(7) == 2 + min(turn, 6 - turn)
    bins = private_bin_counts(lower=0, upper=8, bins=3, epsilon=1, granularity=1)
    assert bins.release([0, 2, 3, 8, 8, 8]).counts == (2 + noise, 1 + noise, 3 + noise)
    halves = bin_statistics(lower=0, upper=8, bins=3, epsilon=1, granularity=1)
    exact = np.array([2, 6, 16]) + noise
    inside = np.clip(exact, [0, 6, 12], [4, 10, 16]) / 2
    assert halves.release([0, 2, 3, 8, 8, 8]).tolist() == inside.tolist()


@pytest.mark.parametrize("noise", [0, 3, -3, 10**9, -(10**9)])
def test_means_of_groups(noise, drawn):
    drawn(noise)
    made = sample_and_aggregate(
        np.mean, lower=-1, upper=7, groups=2, epsilon=1, summary="mean", **REPLACE
    )
    step = made.column.step
    rows = [0.0, 0.0, 6.0, 6.0]
    # Two groups of two rows: whatever the groups, the estimates add up to 6, and 2 above -1 each.
    total = min(max(8 / step + noise, 0), 2 * 8 / step)
    found = made.release(rows, rng=seeded_rng(3))
    assert found == pytest.approx(-1 + total * step / 2, rel=1e-12)
    assert made.std == pytest.approx(made.inner.std * step / 2, rel=1e-12)
    low, high = made.interval(0.9)
    assert high == -low == pytest.approx(made.inner.interval(0.9)[1] * step / 2, rel=1e-12)


def test_groups_without_an_estimate_count_as_the_default():
    def first(rows):
        if rows[0] == 13:
            raise ZeroDivisionError
        return rows[0]

    options = {"lower": 0, "upper": 8, "groups": 5, "epsilon": 1}
    for default, steps in ((None, 4), (1, 1), (8, 8)):
        made = sample_and_aggregate(first, default=default, **options)
        rows = [2.0, 13.0, math.nan, 99.0, -99.0]
        found = made.estimates(rows, np.array([0, 1, 2, 3, 4])) * made.column.step
        assert found.tolist() == [2, steps, steps, 8, 0]
        found = made.estimates([5.0, 6.0], np.array([4, 4])) * made.column.step
        assert found.tolist() == [steps, steps, steps, steps, 5]


def test_groups_are_as_equal_as_can_be():
    made = sample_and_aggregate(np.mean, lower=0, upper=1, groups=3, epsilon=1, **REPLACE)
    for units in (1, 3, 7, 11):
        sizes = np.bincount(made.assign(units, seeded_rng(units)), minlength=3)
        assert sizes.sum() == units
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("minimum", [1, 4])
@pytest.mark.parametrize("noise", [-2, 0, 1, 5])
def test_keys_above_their_threshold(minimum, noise, drawn):
    made = partition_selection(groups=2, epsilon=1, delta=1e-4, minimum=minimum, method="laplace")
    drawn(noise)
    top = made.threshold + minimum - 1
    counts = [0, 1, minimum - 1, minimum, top - noise, top - noise + 1, top + 50]
    places, noisy = made.release(counts, rng=seeded_rng(1))
    shown = [i for i, n in enumerate(counts) if n >= minimum and n + noise > top]
    assert places.tolist() == shown
    assert noisy.tolist() == [counts[i] + noise for i in shown]
    law = DiscreteLaplace(made.noise.scale)
    k = np.arange(-600, 601)
    for units in (0, minimum - 1, minimum, top, top + 7):
        chance = law.pmf(k[k + units > top]).sum() if units >= minimum else 0.0
        assert made.chance(units) == pytest.approx(chance, rel=1e-9)


@pytest.mark.parametrize("positives", [1, 2, 3])
def test_answers_until_the_last_positive(positives, monkeypatch):
    made = above_threshold(sensitivity=1, epsilon=1, positives=positives)

    def sample(self, size, rng):
        return np.full(size, 2 if self.scale == made.threshold_noise.scale else -1)

    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    # Positive from 10 + 2 + 1 = 13 on.
    found = made.release([12, 13, 5, 14, 12, 99, 99], threshold=10)
    answers = [False, True, False, True, False, True]
    ends = {1: 2, 2: 4, 3: 6}
    assert found.tolist() == answers[: ends[positives]]
    assert made.release([12, 13], threshold=10).tolist() == [False, True]
    assert made.release([12, 11], threshold=10).tolist() == [False, False]


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("positives", [1, 4])
def test_noise_of_thresholds(monotonic, positives):
    made = above_threshold(sensitivity=3, epsilon=2, positives=positives, monotonic=monotonic)
    each = positives * (1 if monotonic else 2)
    share = 3 / made.threshold_noise.scale / 2
    assert share == Fraction(1 / (1 + each ** (2 / 3))).limit_denominator(1000)
    # Both parts together are worth epsilon: one move of the threshold, all of the positives.
    assert 3 / made.threshold_noise.scale + 3 * each / made.query_noise.scale == 2
    squares = made.threshold_noise.std**2 + made.query_noise.std**2
    assert made.std == pytest.approx(math.sqrt(squares), rel=1e-12)

    def total(part):
        return (1 / part) ** 2 + (each / (1 - part)) ** 2

    assert total(float(share)) <= min(total(float(share) + d) for d in (-0.01, 0.01))
    low, high = made.interval(0.9, queries=5)
    assert low == -high
    width = max(made.threshold_noise.interval(0.95)) + max(made.query_noise.interval(0.99))
    assert high == pytest.approx(width, rel=1e-9)


@pytest.mark.parametrize("noise", [0, 4, -9])
def test_numbers_with_staircase_noise(noise, monkeypatch):
    monkeypatch.setattr(Staircase, "sample", lambda self, size, bits: np.full(size, noise))
    whole = staircase(sensitivity=3, epsilon=1)
    assert whole.release(7) == 7 + noise
    real = staircase(sensitivity=0.75, epsilon=1)
    step = real.scale.step
    assert real.release(0.5) == 0.5 + noise * step
    assert real.std == pytest.approx(real.noise.std * step, rel=1e-12)
    assert real.interval(0.9)[1] == pytest.approx(max(real.noise.interval(0.9)) * step, rel=1e-12)
