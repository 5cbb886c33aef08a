"""Shuffled reports at their limits, and how much the sums behind them lose against exact ones."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from discreet.accounting import shuffle
from discreet.accounting.shuffle import block_design_parts, window_parts
from discreet.core.errors import InvalidArgument, Unsupported


def test_reports_beyond_ten_thousand_million_are_not_counted():
    law = shuffle.clones(2.0)
    at = np.array([1e-4])
    found = [
        float(shuffle.profile(law, at, reports=n)[0])
        for n in (10**9, 10**10 - 10**9, 10**10, 10**10 + 1, 10**12)
    ]
    assert all(more > less for more, less in pairwise(found[:3]))
    assert found[2] == found[3] == found[4]


def test_blocks_are_fine_within_eight_deviations():
    for mean, sd in ((2e6, 1000.0), (5e6, 2000.0)):
        starts = shuffle._starts(1, int(2 * mean), mean, sd, silent=False)
        widths = np.diff(starts)
        wide = math.floor(sd / 4)
        far = np.abs(starts[:-1] - mean) > 8.2 * sd
        near = np.abs(starts[:-1] - mean) < 7.9 * sd
        assert widths[far].max() == wide
        assert (widths[far] < wide).sum() <= 2  # where two pieces join
        assert set(widths[near]) == {math.floor(3e-5 * mean)}


def masses(n, chance):
    return np.array([math.comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in range(n + 1)])


def exact(law, n, epsilon):
    """The mean over K, N+ and G, term by term."""
    chance = 2 * law.rate
    slope = law.weight * (law.ratio - 1) * (1 + math.exp(epsilon))
    total = 0.0
    for k in range(1, n + 1):
        heads = np.arange(k + 1)
        quiet = np.arange(n - k + 1)
        coins, silent = masses(k, 0.5), masses(n - k, law.same / (1 - chance))
        drift = law.weight * (law.ratio + 1) * k / 2 + law.same_weight * quiet
        gain = slope * (heads[:, None] - k / 2) - math.expm1(epsilon) * drift
        inside = coins @ np.maximum(gain, 0) @ silent
        total += float(masses(n, chance)[k] * inside)
    return total / n


@pytest.mark.parametrize("local", [0.5, 2.0])
@pytest.mark.parametrize("n", [3, 12, 25])
def test_the_sum_over_all_counts(local, n):
    """Of reports that hide among clones it is the sum itself; silent ones cost a little."""
    for epsilon in (0.0, 0.05, 0.2):
        law = shuffle.clones(local)
        (found,) = shuffle.profile(law, np.array([epsilon]), reports=n)
        true = exact(law, n, epsilon)
        assert true <= found == pytest.approx(true, rel=1e-7, abs=1e-13)
        for part in shuffle.two_level(local, block_design_parts(points=6, chosen=2))[1:]:
            (found,) = shuffle.profile(part, np.array([epsilon]), reports=n)
            true = exact(part, n, epsilon)
            assert true * (1 - 1e-9) <= found <= true * 1.06 + 1e-12


def test_points_of_silent_reports_keep_their_mean():
    """Up to the last point, two deviations above, nothing of the mean is lost but its margin."""
    trials = np.array([500.0, 3000.0])
    points, chances = shuffle._silent(trials, 0.25)
    for row, n in enumerate(trials):
        law = stats.binom(n, 0.25)
        last = points[row, -1]
        assert last == math.floor(n / 4 + 2 * math.sqrt(n * 3 / 16))
        k = np.arange(n + 1)
        true = float(law.pmf(k) @ np.minimum(k, last))
        assert float(points[row] @ chances[row]) == pytest.approx(true, rel=1e-8)
        assert float(points[row] @ chances[row]) <= true


@pytest.mark.parametrize(
    ("epsilon", "delta", "n"), [(0.5, 1e-6, 1000), (1.0, 1e-9, 10**5), (0.1, 1e-3, 200)]
)
def test_the_largest_local_epsilon_is_the_largest(epsilon, delta, n):
    found = shuffle.local_epsilon(epsilon, delta=delta, reports=n)
    assert found > epsilon
    at = np.array([epsilon])
    assert float(shuffle.shuffled_delta(at, local=found, reports=n)[0]) <= delta
    assert float(shuffle.shuffled_delta(at, local=found * (1 + 1e-6), reports=n)[0]) > delta


def test_local_epsilons_at_their_ends():
    # A report that may say anything: one report alone hides nowhere.
    assert shuffle.local_epsilon(0.25, delta=1e-9, reports=1) == 0.25
    # A delta within a factor of e of that of a report a billionth above the target.
    near = shuffle.shuffled_delta(np.array([1.0]), local=1 + 1e-9, reports=1)
    assert shuffle.local_epsilon(1.0, delta=float(near[0]) / 2, reports=1) == 1
    with pytest.raises(Unsupported):
        shuffle.local_epsilon(1.0, delta=1e-3, reports=10, parts=((1, 1, 0),))
    for beyond in (300.0, 1e300):
        with pytest.raises(Unsupported, match="epsilon must be below 300"):
            shuffle.local_epsilon(beyond, delta=1e-3, reports=10)
    for wrong in ({"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"reports": 0}):
        given = {"epsilon": 1.0, "delta": 1e-6, "reports": 10} | wrong
        with pytest.raises(InvalidArgument):
            shuffle.local_epsilon(given.pop("epsilon"), **given)


def test_windows_of_the_mixture_reach_one_further():
    """The changed report is not a clone: K is one more than the clones there are, or none."""
    law = shuffle.clones(1.0)
    found = shuffle._terms(law, 5000, 1e-9)
    span = shuffle.binomial.window(5000, chance=2 * law.rate, tail=1e-9)
    lows = found.drift / (law.weight * (law.ratio + 1) / 2)
    assert lows[0] == pytest.approx(span.first - 1)
    assert found.trials[-1] == span.last + 1
    # A law at one end has one tail only.
    rare = shuffle._terms(shuffle.clones(6.0), 2000, 1e-9)
    assert rare.lost == pytest.approx(1e-9)
    assert rare.trials[0] == 1


def test_eight_points_take_the_best_law_each():
    parts = block_design_parts(points=8, chosen=2)
    at = np.linspace(0.0, 1.2, 8)
    laws = shuffle.two_level(1.5, parts)
    each = [shuffle.profile(law, at, reports=30) for law in laws]
    found = shuffle.shuffled_delta(at, local=1.5, reports=30, parts=parts)
    assert (found == np.minimum.reduce(each)).all()


def test_a_report_hides_among_clones_alone_unless_told():
    law = shuffle.CloneParameters(ratio=2.0, rate=0.25, weight=1.0)
    assert (law.same, law.same_weight) == (0, 0)
    assert (shuffle.clones(1.0).same, shuffle.clones(1.0).same_weight) == (0, 0)


def test_the_smallest_randomizers():
    half = Fraction(1, 2)
    assert window_parts(inputs=2, width=1) == ((1, half, half),)
    assert window_parts(inputs=2, width=3) == ((1, Fraction(3, 4), Fraction(1, 4)),)
    assert block_design_parts(points=2, chosen=1) == ((1, half, half),)
    for refused in (
        lambda: window_parts(inputs=1, width=1),
        lambda: window_parts(inputs=2, width=0),
        lambda: block_design_parts(points=1, chosen=1),
        lambda: block_design_parts(points=2, chosen=0),
        lambda: block_design_parts(points=2, chosen=2),
    ):
        with pytest.raises(InvalidArgument):
            refused()
