"""Intervals of many answers at once: all ranges, sub-tables, and how often all of them hold."""

import json
import math

import numpy as np
import pytest

import discreet
from discreet import seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.marginals import _at_once as at_once
from discreet.marginals.counting import count_tables
from discreet.marginals.design import support
from tests.marginals.test_errors import planned

RANGES = [{"c0": (a, b)} for a in range(8) for b in range(a, 8)]
CODES = np.column_stack([np.arange(200) % 8, np.arange(200) % 3])
EXACT = np.bincount(CODES[:, 0], minlength=8)
TRUTH = np.array([EXACT[one["c0"][0] : one["c0"][1] + 1].sum() for one in RANGES])


def ranged(**amount):
    return planned((8, 3), [(0, 1)], ordered=(0,), **amount)


def covered(release, confidence):
    low, high = np.array(release.answer_intervals(RANGES, confidence=confidence)).T
    return bool(((low <= TRUTH) & (high >= TRUTH)).all())


@pytest.mark.parametrize("amount", [{"rho": 0.5}, {"epsilon": 1}], ids=["gaussian", "laplace"])
def test_all_ranges_hold_at_once_as_often_as_stated(amount, monkeypatch):
    # Few copies, so that the exact rank shows: k / (M + 1) with M = 9 is 0.8, k / M would be less.
    monkeypatch.setattr(at_once, "COPIES", 9)
    plan, runs = ranged(**amount), 100
    held = [covered(plan.release(CODES, rng=seeded_rng(k)), 0.8) for k in range(runs)]
    assert np.mean(held) > 0.8 - 5 * math.sqrt(0.16 / runs)
    assert np.mean(held) < 0.8 + 5 * math.sqrt(0.16 / runs)


def test_the_rank_counts_the_release_itself_among_the_copies(monkeypatch):
    # Deviations of nothing but the rank: copies have maxima 1, 2, ..., M.
    monkeypatch.setattr(at_once, "COPIES", 9)
    monkeypatch.setattr(at_once, "_largest", lambda *a: np.arange(1.0, a[3] + 1))
    design = ranged(rho=0.5)._design
    answers = [{0: np.ones(8)}]
    std = math.sqrt(design.answer_variance(answers[0]))
    for confidence, rank in ((0.8, 8), (0.81, 9), (0.9, 9)):
        width = at_once.widths_at_once(design, answers, confidence=confidence, seed=1)
        assert width[0] == pytest.approx(rank * std), confidence


def test_dependent_answers_are_closer_than_the_union_bound_says():
    release = ranged(rho=0.5).release(CODES, rng=seeded_rng(1))
    low, high = np.array(release.answer_intervals(RANGES)).T
    union = [release.answer_interval(one, confidence=1 - 0.05 / len(RANGES)) for one in RANGES]
    assert np.all(high - low < np.diff(union, axis=1).ravel())
    alone = [release.answer_interval(one) for one in RANGES]
    assert np.mean(high - low) > 1.1 * np.mean(np.diff(alone, axis=1))


def test_copies_are_drawn_once_and_stored_apart_from_the_noise():
    plan = ranged(rho=0.5)
    release = plan.release(CODES)
    again = discreet.MarginalRelease.from_json(release.to_json())
    assert again.answer_intervals(RANGES[:5]) == release.answer_intervals(RANGES[:5])
    # What is stored does not draw the noise again: neither from the seed nor from its like.
    tables = [support(place) for place in plan._design.places]
    exact = plan._exact(count_tables([CODES.T], (8, 3), tables))
    noise = np.concatenate([np.ravel(a - b) for a, b in zip(release.measured, exact, strict=True)])
    for seed in (release.interval_seed, 0, 1):
        source = seeded_rng(seed)
        drawn = np.concatenate(
            [
                law.sample(one.size, rng=source)
                for law, one in zip(release.design.laws, exact, strict=True)
            ]
        )
        assert not np.array_equal(drawn, noise)
    seeds = {plan.release(CODES, rng=seeded_rng(3)).interval_seed for _ in range(5)}
    assert len(seeds) == 5
    old = json.loads(release.to_json())
    del old["interval_seed"]
    assert discreet.MarginalRelease.from_json(json.dumps(old)).interval_seed == 0


@pytest.mark.parametrize(
    ("wanted", "more", "words"),
    [
        ([], {}, "list answers"),
        ({"c0": 1}, {}, "list answers"),
        ([{"c0": 99}], {}, "not a value"),
        ([{"c0": 1}], {"confidence": 0.99999}, "at most"),
        ([{"c0": 1}], {"confidence": 1}, "confidence"),
    ],
)
def test_nonsense_is_refused(wanted, more, words):
    with pytest.raises(InvalidArgument, match=words):
        ranged(rho=0.5).release(CODES, rng=seeded_rng(1)).answer_intervals(wanted, **more)
