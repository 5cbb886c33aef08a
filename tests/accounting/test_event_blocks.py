"""The sums behind shuffling: blocks, masses and points of a mixture of binomial laws."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.accounting import shuffle
from discreet.accounting.shuffle import block_design_parts
from discreet.core.errors import InvalidArgument


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    ("first", "last", "mean"),
    [(1, 50, 10.0), (1, 60, 59.5), (3, 4, 3.2), (7, 7, 7.0), (10**6, 10**6 + 9000, 10**6 + 5e3)],
)
def test_blocks_follow_each_other(first, last, mean, silent):
    sd = math.sqrt(mean)
    starts = shuffle._starts(first, last, mean, sd, silent=silent)
    assert starts[0] == first
    assert starts[-1] <= last
    widths = np.diff(np.append(starts, last + 1))
    assert (widths > 0).all()
    near = (starts > mean - 7 * sd) & (starts < mean + 7 * sd)
    most = {False: 4000, True: 200}[silent]
    relative = {False: 3e-5, True: 1e-3}[silent]
    allowed = max(1, relative * mean, math.ceil((16 * sd + 3) / most))
    assert widths[near].max(initial=1) <= allowed
    assert widths.max() <= max(allowed, sd / 4)
    if allowed == 1 and sd < 8:
        assert starts.tolist() == list(range(first, last + 1))


def test_wide_blocks_are_as_wide_as_they_may():
    starts = shuffle._starts(1, 4 * 10**6, 2e6, 1000.0, silent=False)
    widths = np.diff(starts)
    near = (starts[:-1] > 2e6 - 7000) & (starts[:-1] < 2e6 + 7000)
    assert set(widths[near]) == {60}
    assert set(widths[starts[:-1] > 2e6 + 9000]) == {250}
    assert set(widths[starts[:-1] < 2e6 - 9000]) == {250}
    few = shuffle._starts(1, 4 * 10**6, 2e6, 1000.0, silent=True)
    near = (few[:-1] > 2e6 - 5000) & (few[:-1] < 2e6 + 5000)
    assert set(np.diff(few)[near]) == {2000}


@pytest.mark.parametrize("by_tails", [False, True])
def test_masses_of_blocks(monkeypatch, by_tails):
    if by_tails:
        monkeypatch.setattr(shuffle, "_MOST_TERMS", 0)
    n, chance = 400, 0.3
    starts = np.array([80, 100, 118, 119, 130, 170])
    ends = np.append(starts[1:] - 1, 190)
    found = shuffle._masses(starts, ends, n, chance)
    law = stats.binom(n, chance)
    true = [law.pmf(np.arange(a, b + 1)).sum() for a, b in zip(starts, ends, strict=True)]
    assert found == pytest.approx(true, rel=3e-8 if by_tails else 1e-11)
    assert (found >= np.array(true) * (1 - 1e-11)).all()


@pytest.mark.parametrize(("trials", "chance"), [(30, 0.4), (200, 0.05), (1, 0.5), (50, 1.0)])
def test_points_lie_above_the_law_in_convex_decreasing_order(trials, chance):
    points, chances = shuffle._silent(np.array([float(trials)]), chance)
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    assert (chances >= 0).all()
    assert (np.diff(points[0]) >= 0).all()
    assert points[0, 0] == 0
    k = np.arange(trials + 1)
    law = stats.binom(trials, chance).pmf(k)
    mean = float(points[0] @ chances[0])
    assert mean <= trials * chance * (1 + 1e-12)
    assert mean >= trials * chance * 0.95 - 1
    for cut in (trials * chance * 0.5, trials * chance, trials * chance + 2):
        true = float(law @ np.maximum(cut - k, 0))
        found = float(chances[0] @ np.maximum(cut - points[0], 0))
        assert true * (1 - 1e-8) <= found <= true * 1.3 + 0.5


def test_a_mixture_has_the_law_of_the_counts():
    """K ~ Bin(n, 2 rate) weighted by its block, the drift of each, and nothing more is lost."""
    law = shuffle.clones(1.0)
    found = shuffle._terms(law, 50, 1e-100)
    assert found.lost == 0
    k = np.arange(1, 51)
    assert found.trials.tolist() == k.tolist()
    assert found.mass == pytest.approx(stats.binom(50, 2 * law.rate).pmf(k), rel=1e-9)
    assert found.drift == pytest.approx(law.weight * (law.ratio + 1) / 2 * k)
    narrow = shuffle._terms(law, 5000, 1e-9)
    assert narrow.lost == pytest.approx(2e-9)
    span = shuffle.binomial.window(5000, chance=2 * law.rate, tail=1e-9)
    assert narrow.trials[-1] == span.last + 1
    assert narrow.mass.sum() == pytest.approx(1, abs=1e-8)
    thin = shuffle.two_level(1.0, block_design_parts(points=5, chosen=2))[1]
    both = shuffle._terms(thin, 50, 1e-30)
    assert both.mass.sum() == pytest.approx(1 - (1 - 2 * thin.rate) ** 50, rel=1e-6)
    silent = float(both.mass @ (both.drift - thin.weight * (thin.ratio + 1) / 2 * both.trials))
    expected = 50 * thin.same * thin.same_weight
    assert silent == pytest.approx(expected, rel=0.1)
    assert both.lost == pytest.approx(1e-30, rel=1e-6)


def test_ways_to_hide():
    law = shuffle.clones(1.5)
    assert law.ratio == pytest.approx(math.exp(1.5))
    assert law.rate == pytest.approx(math.exp(-1.5) / 2)
    # With the chance of a clone, the changed report is a randomized response of it.
    assert law.weight * law.rate * (law.ratio + 1) == pytest.approx(1)
    parts = block_design_parts(points=5, chosen=2)
    ((_, share, differ),) = parts
    binary, thin, thick = shuffle.two_level(1.5, parts)
    floor = 1 / (1 + math.expm1(1.5) * float(share))
    alpha = floor * float(differ)
    assert binary.rate == pytest.approx(1 / (1 + math.exp(1.5)))
    assert thin.rate == thick.rate == pytest.approx(alpha)
    assert thin.same == pytest.approx(floor - 2 * alpha)
    assert thick.same == pytest.approx((1 - (1 + math.exp(1.5)) * alpha) / math.exp(1.5))
    assert (thin.same_weight, thick.same_weight) == (1, pytest.approx(math.exp(1.5)))
    assert binary.weight == thin.weight == thick.weight == 1
    assert len(shuffle.two_level(1.5, block_design_parts(points=2))) == 1
    assert shuffle.two_level(1.5, ((1, share, 0),)) == ()


def test_the_closed_form_at_its_end():
    delta, n = 1e-6, 10**4
    end = math.log(n / (16 * math.log(2 / delta)))
    for local in (end * 0.999, 1.0, 0.1):
        p = math.exp(local)
        inner = 8 * math.sqrt(p * math.log(4 / delta) / n) + 8 * p / n
        true = math.log(1 + (p - 1) / (p + 1) * inner)
        found = shuffle.closed_form(local, delta=delta, reports=n)
        assert found == pytest.approx(min(true, local), rel=1e-11)
    assert shuffle.closed_form(end * 1.001, delta=delta, reports=n) == end * 1.001
    assert shuffle.closed_form(0.0, delta=delta, reports=n) == 0
    for bad in ({"delta": 0.0}, {"delta": 1.0}, {"reports": 0}):
        with pytest.raises(InvalidArgument):
            shuffle.closed_form(1.0, **{"delta": delta, "reports": n, **bad})


def test_reports_beyond_the_largest_say_all():
    at = np.array([0.0, 299.0, 300.0, 301.0])
    assert shuffle.shuffled_delta(at, local=300.5, reports=5).tolist() == [1, 1, 1, 0]
    assert shuffle.shuffled_delta(at[2:], local=300.0, reports=5).tolist() == [0, 0]
    none = shuffle.shuffled_delta(at, local=2.0, reports=5, parts=((1, 1, 0),))
    assert none.tolist() == [0, 0, 0, 0]


def test_many_points_take_one_law_that_holds():
    parts = block_design_parts(points=5, chosen=2)
    few = np.array([0.1, 0.5, 1.0])
    many = np.linspace(0.1, 1.0, 19)
    best = shuffle.shuffled_delta(few, local=1.5, reports=12, parts=parts)
    one = shuffle.shuffled_delta(many, local=1.5, reports=12, parts=parts)
    laws = shuffle.two_level(1.5, parts)
    each = [shuffle.profile(law, many, reports=12) for law in laws]
    assert any((one == profile).all() for profile in each)
    assert (best <= one[[0, 8, 18]] * (1 + 1e-12)).all()
    assert one[9] == min(profile[9] for profile in each)
