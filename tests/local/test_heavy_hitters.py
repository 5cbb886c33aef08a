"""Heavy hitters: exact parts, planted texts, hostile reports, the stated power."""

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local._heavy_hitters import (
    HeavyHitters,
    PublicHash,
    extended,
    heavy_hitters,
    prefixes,
    readable,
    texts,
)
from discreet.local.collection.aggregator import Aggregator
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA, frequency


def test_texts_are_cut_filled_and_read_back():
    rows = texts(["ab", b"\xff\x01", "longer than four"], 4)
    assert rows.shape == (3, 4)
    assert readable(rows) == [b"ab", b"\xff\x01", b"long"]
    with pytest.raises(OutOfDomain, match="texts or bytes") as caught:
        texts(["fine", 123456], 4)
    assert "123456" not in str(caught.value)
    with pytest.raises(OutOfDomain, match="texts or bytes"):
        texts(123456, 4)


@pytest.mark.parametrize("digits", [1, 7, 8, 9, 15, 16, 23, 24])
def test_a_prefix_keeps_the_first_bits(digits):
    row = np.frombuffer(b"\xff\xff\xff", dtype=np.uint8)[None]
    kept = np.unpackbits(prefixes(row, digits))
    assert kept[:digits].all()
    assert not kept[digits:].any()


@pytest.mark.parametrize(("digits", "step"), [(0, 3), (5, 6), (8, 8), (11, 4)])
def test_extending_gives_every_continuation_once(digits, step):
    whole = texts([b"\xa5\x5a\x00"], 3)
    start = prefixes(whole, digits)
    found = extended(start, digits, step)
    assert len(np.unique(found, axis=0)) == 1 << step
    assert (prefixes(found, digits) == start).all()
    assert (prefixes(whole, digits + step) == found).all(axis=1).sum() == 1


def test_different_texts_share_a_cell_as_often_as_chance_says():
    first, second = texts([b"abc"], 3), texts([b"abd"], 3)
    same = sum(
        int((PublicHash.of(seed=seed, number=0, length=3, digits=4).cells(row))[0])
        == int(PublicHash.of(seed=seed, number=0, length=3, digits=4).cells(second)[0])
        for seed in range(4000)
        for row in [first]
    )
    assert frequency(same, 4000, 1 / 16)
    assert not frequency(same, 4000, 1 / 8)


def test_the_group_does_not_depend_on_the_text():
    randomizer = heavy_hitters(length=4, epsilon=1, cell_digits=8)
    one = randomizer.randomize(["aaaa"] * 1000, rng=seeded_rng(5))
    two = randomizer.randomize(["zz"] * 1000, rng=seeded_rng(5))
    assert (one[:, 0] == two[:, 0]).all()
    groups = np.bincount(one[:, 0], minlength=randomizer.groups)
    assert stats.chisquare(groups).pvalue > ALPHA


def test_it_certifies_and_comes_back_from_its_description():
    randomizer = heavy_hitters(length=4, epsilon=1, cell_digits=8)
    assert randomizer.certify().holds
    assert randomizer.guarantee.epsilon(0) == 1
    assert randomizer_from_json(randomizer.describe()) == randomizer


def planted(hashes, seed):
    shares = {"alpha": 0.2, "beta": 0.15, "gamma": 0.1}
    values = [text for text, share in shares.items() for _ in range(int(share * 60_000))]
    rng = np.random.default_rng(7)
    values += ["".join(rng.choice(list("bcdfghjk"), 4)) for _ in range(60_000 - len(values))]
    randomizer = heavy_hitters(length=5, epsilon=4, hashes=hashes, cell_digits=10, step=8)
    aggregate = Aggregator(randomizer)
    half = len(values) // 2
    aggregate.add(randomizer.randomize(values[:half], rng=seeded_rng(seed)))
    aggregate.merge(
        Aggregator(randomizer).add(randomizer.randomize(values[half:], rng=seeded_rng(seed + 1)))
    )
    return shares, aggregate.estimate()


def test_planted_texts_are_found_with_their_shares_and_nothing_else():
    shares, found = planted(hashes=4, seed=11)
    assert found.texts == tuple(shares)
    z = stats.norm.isf(ALPHA / 2)
    # Collisions with the rest add at most a share of 0.55 / 1024 in the mean.
    assert (np.abs(found.shares - list(shares.values())) < z * found.std + 0.003).all()
    low, high = found.interval(0.95)
    assert (low < found.shares).all()
    assert (found.shares < high).all()
    assert "3 texts found in 60,000 reports" in str(found)


def test_with_one_hash_texts_are_found_that_nobody_holds():
    # The wrong version: nothing tells a text from one that shares its cell.
    shares, found = planted(hashes=1, seed=11)
    assert set(found.texts) - set(shares)


def test_the_stated_power_is_reached():
    randomizer = heavy_hitters(length=3, epsilon=3, cell_digits=10, step=8, most=8)
    n, runs = 6_000, 30
    held = int(np.ceil(randomizer.detects(n, power=0.9) * n))
    values = ["key"] * held + [f"{i % 997:03x}" for i in range(n - held)]
    found = 0
    for run in range(runs):
        reports = randomizer.randomize(values, rng=seeded_rng(100 + run))
        found += b"key" in Aggregator(randomizer).add(reports).estimate().items
    # 0.9 up to the normal approximation: 0.8 would give fewer than this once in a million.
    assert found >= stats.binom.ppf(1e-6, runs, 0.8)
    rare = ["key"] * (held // 2) + values[-(n - held // 2) :]
    rare = ["zzz" if i >= held // 2 and text == "key" else text for i, text in enumerate(rare)]
    missed = sum(
        b"key"
        not in Aggregator(randomizer).add(randomizer.randomize(rare, rng=bits)).estimate().items
        for bits in map(seeded_rng, range(200, 210))
    )
    assert missed >= 5  # a text half as frequent is not found: the power test can fail


def test_hostile_reports_are_counted_and_move_no_more_than_one_client():
    randomizer = heavy_hitters(length=4, epsilon=1, cell_digits=8)
    rows = np.random.default_rng(3).integers(0, 256, (5000, randomizer.width), dtype=np.uint8)
    tally = randomizer.tally(rows)
    assert tally.accepted + tally.refused == 5000
    assert tally.refused >= np.sum(rows[:, 0] >= randomizer.groups)
    states = tally.counts.reshape(randomizer.groups, -1)
    assert states[:, -1].sum() == tally.accepted
    assert (np.abs(states[:, :-1]) <= states[:, -1:]).all()
    assert randomizer.estimate(np.zeros(randomizer.size, dtype=np.int64), 0).items == ()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"length": 0}, "length"),
        ({"length": 65}, "length"),
        ({"length": 64, "step": 1}, "step"),
        ({"length": 4, "cell_digits": 25}, "cell_digits"),
        ({"length": 4, "most": 1 << 20}, "most"),
        ({"length": 64, "most": 1 << 12, "step": 20, "hashes": 1}, "most"),
    ],
)
def test_bad_parameters_are_named(given, name):
    with pytest.raises(InvalidArgument, match=name):
        heavy_hitters(epsilon=1, **given)


def test_it_is_a_frozen_description():
    randomizer = heavy_hitters(length=2, epsilon=1)
    assert isinstance(randomizer, HeavyHitters)
    assert randomizer.levels == (16,)
    assert heavy_hitters(length=5, epsilon=1, step=8).levels == (16, 24, 32, 40)
