"""Subset selection: its law by enumeration, uniform sets, both wire forms, hostile reports."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles import subset_selection as subset
from discreet.local.oracles.subset_selection import SubsetSelection, subset_selection
from discreet.local.randomizer import unpack
from discreet.local.registry import rebuild
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from tests.block_reports import blocks, check_moments, every_report, follow, work

SMALL = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 2), (5, 4), (7, 3), (8, 2)]


class Listed(SubsetSelection):
    """Sends a list whatever its length, so that small domains enumerate it."""

    @property
    def listed(self):
        return True


def listed(categories, chosen, epsilon=1):
    return Listed(categories=categories, epsilon=Fraction(epsilon), chosen=chosen)


@pytest.mark.parametrize(("categories", "chosen"), SMALL)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2])
def test_mean_and_variance_are_exact(categories, chosen, epsilon):
    check_moments(subset_selection(categories=categories, epsilon=epsilon, chosen=chosen))


@pytest.mark.parametrize(("categories", "chosen"), SMALL)
def test_what_is_accepted_is_a_set_of_the_size(categories, chosen):
    """Over all strings of bytes, in both forms: each set once, nothing else."""
    wanted = sorted(
        tuple(float(i in members) for i in range(categories))
        for members in itertools.combinations(range(categories), chosen)
    )
    oracle = subset_selection(categories=categories, epsilon=1, chosen=chosen)
    assert sorted(map(tuple, blocks(oracle))) == wanted
    also = listed(categories, chosen)
    if also.width <= 1:
        assert sorted(map(tuple, blocks(also))) == wanted


def test_epsilon_is_exact():
    oracle = subset_selection(categories=10, epsilon=Fraction(3, 2), chosen=3)
    low, high = oracle._lie(60)
    lie = 7 / (3 * math.exp(1.5) + 7)
    assert low / 2**60 <= lie * (1 + 1e-14)
    assert high / 2**60 >= lie * (1 - 1e-14)
    # 36 sets hold a category, 84 do not.
    assert math.log((1 - lie) / 36 / (lie / 84)) == pytest.approx(1.5, rel=1e-14)
    assert oracle.certify().holds


def reports_follow(oracle, value, *, n=40_000, rng=None):
    rows = oracle.randomize(np.full(n, value), rng=rng or seeded_rng(21))
    return follow(oracle, rows, value, number=math.comb(oracle.categories, oracle.chosen))


@pytest.mark.parametrize(("categories", "chosen"), [(2, 1), (5, 2), (6, 4), (8, 3)])
@pytest.mark.parametrize("value", [0, 1, -1])
def test_reports_follow_their_law(categories, chosen, value):
    oracle = subset_selection(categories=categories, epsilon=1, chosen=chosen)
    assert reports_follow(oracle, value % categories)
    assert reports_follow(listed(categories, chosen), value % categories)


def test_short_words_serve_too():
    oracle = subset_selection(categories=5, epsilon=1, chosen=2)
    assert reports_follow(oracle, 3, n=3000, rng=SeededRandomSource(2, width=9))


def test_a_lie_that_may_tell_the_truth_is_seen(monkeypatch):
    """The last member drawn from all, members too: sets come out too small."""

    def anyone(maps, categories, rng):
        return 1 + subset.uniform_integers(categories - 1, len(maps), rng)

    monkeypatch.setattr(subset, "_outsiders", anyone)
    assert not reports_follow(subset_selection(categories=6, epsilon=1, chosen=4), 2)


def test_sets_that_are_not_uniform_are_seen(monkeypatch):
    """Others join from the lowest number on, instead of at random."""

    def lowest(maps, times, categories, rng, *, joining):
        left = times.copy()
        for client, i in itertools.product(range(len(maps)), range(1, categories)):
            if left[client] > 0 and (maps[client, 0] >> i & 1 == 0) == joining:
                maps[client, 0] ^= 1 << i
                left[client] -= 1

    monkeypatch.setattr(subset, "_flip", lowest)
    assert not reports_follow(subset_selection(categories=6, epsilon=1, chosen=4), 2, n=5000)


@pytest.mark.parametrize(("categories", "chosen"), [(100, 27), (129, 1), (1000, 5), (64, 63)])
def test_every_draft_ends_with_the_right_size(categories, chosen):
    """Also where the first draft is far off, and where numbers do not fill the last byte."""
    oracle = subset_selection(categories=categories, epsilon=1, chosen=chosen)
    rows = oracle.randomize(np.arange(5000) % categories, rng=seeded_rng(3))
    tally = oracle.tally(rows)
    assert (tally.accepted, tally.refused) == (5000, 0)
    assert tally.counts.sum() == 5000 * chosen


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_estimates_within_their_error(epsilon):
    oracle = subset_selection(categories=100, epsilon=epsilon)
    assert oracle.listed == (epsilon == 4)
    values = np.minimum(np.arange(100_000) % 150, 99)
    rows = oracle.randomize(values, rng=seeded_rng(6))
    first, second = Aggregator(oracle).add(rows[:30_001]), Aggregator(oracle).add(rows[30_001:])
    found = first.merge(second).estimate()
    truth = np.bincount(values, minlength=100) / len(values)
    error = (found.shares - truth) / np.sqrt(oracle.variance(truth) / len(values))
    assert np.abs(error).max() < 7
    assert 0.5 < np.mean(error**2) < 1.7
    assert found.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("epsilon", "chosen", "variance"), [(0.5, 12, 90.9016), (1, 9, 21.2386), (2, 4, 4.0242)]
)
def test_published_vectors(epsilon, chosen, variance):
    oracle = subset_selection(categories=32, epsilon=epsilon)
    assert oracle.chosen == chosen
    assert oracle.range_variance(8, 0.25) == pytest.approx(variance, abs=1e-4)
    assert oracle.range_variance(32, 1) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("d", "contrast"), [(2, 1.841), (4, 2.519), (16, 3.398), (64, 3.610)])
def test_contrast_variance(d, contrast):
    """F49 at epsilon 1; the formula of the general size as well."""
    oracle = subset_selection(categories=d, epsilon=1)
    assert oracle.contrast_variance() == pytest.approx(contrast, abs=1e-3)
    e, k = math.e, oracle.chosen
    exact = (d - 1) * (k * e + d - k) ** 2 / (d * k * (d - k) * (e - 1) ** 2) - 1 / d
    assert oracle.contrast_variance() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 8])
def test_no_other_size_is_better(epsilon):
    for d in (2, 3, 7, 40):
        best = subset_selection(categories=d, epsilon=epsilon).contrast_variance()
        sizes = [subset_selection(categories=d, epsilon=epsilon, chosen=k) for k in range(1, d)]
        assert best == min(oracle.contrast_variance() for oracle in sizes)


def test_a_list_is_sorted_and_packed():
    oracle = subset_selection(categories=1024, epsilon=5.7)
    assert (oracle.chosen, oracle.width, oracle.listed) == (3, 4, True)
    rows = oracle.randomize(np.arange(2000) % 1024, rng=seeded_rng(9))
    members = unpack(rows, [10] * 3)
    assert (np.diff(members, axis=0) > 0).all()
    twice = rows[:1].copy()
    twice[0] = np.frombuffer((5 | 5 << 10 | 9 << 20).to_bytes(4, "little"), dtype=np.uint8)
    swapped = np.frombuffer((9 | 5 << 10 | 7 << 20).to_bytes(4, "little"), dtype=np.uint8)[None]
    stray = rows[:1] | np.array([0, 0, 0, 0x80], dtype=np.uint8)
    for bad in (twice, swapped, stray):
        assert (oracle.tally(bad).accepted, oracle.tally(bad).refused) == (0, 1)


def test_hostile_bitmaps_are_refused():
    oracle = subset_selection(categories=6, epsilon=1, chosen=2)
    tally = oracle.tally(every_report(oracle))
    assert (tally.accepted, tally.refused) == (15, 241)
    assert (tally.counts == 5).all()


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="chosen must be below categories=4, got 4"):
        subset_selection(categories=4, epsilon=1, chosen=4)
    with pytest.raises(InvalidArgument, match="use olh"):
        subset_selection(categories=(1 << 24) + 1, epsilon=1)
    with pytest.raises(OutOfDomain, match="whole numbers from 0 to 3"):
        subset_selection(categories=4, epsilon=1).randomize([4])


def test_no_reports():
    for oracle in (subset_selection(categories=9, epsilon=1), listed(9, 2)):
        assert oracle.randomize([], rng=seeded_rng(1)).shape == (0, oracle.width)
        assert oracle.tally(np.empty((0, oracle.width), dtype=np.uint8)).accepted == 0


def test_a_description_is_read_back():
    for epsilon in (0.1, 2):
        oracle = subset_selection(categories=100, epsilon=epsilon)
        assert rebuild(json.dumps(oracle.describe())) == oracle


def test_clients_draw_as_many_words_whatever_they_have():
    for oracle in (subset_selection(categories=60, epsilon=1), listed(60, 5)):
        assert len(work(oracle, range(60))) == 1
