"""Descriptions lead back to their randomizers, or are refused by name; words and certificates."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain, PrivacyError
from discreet.local.collection.client import BudgetedClient
from discreet.local.distributed_noise import distributed_laplace
from discreet.local.distribution import square_wave
from discreet.local.means.local_laplace import local_laplace
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue, threshold_histogram_encoding
from discreet.local.registry import KINDS, rebuild

GOOD = {"version": 1, "kind": "grr", "epsilon": "1/2", "categories": 5}
MADE = [
    grr(categories=5, epsilon=0.5),
    sue(categories=5, epsilon=1),
    oue(categories=5, epsilon=1),
    threshold_histogram_encoding(categories=5, epsilon=1, threshold=0.75),
    summation_histogram_encoding(categories=5, epsilon=1),
    olh(categories=9, epsilon=1),
    subset_selection(categories=9, epsilon=1),
    duchi(epsilon=1, lower=0, upper=1),
    piecewise_mean(epsilon=1, lower=0, upper=1),
    local_laplace(epsilon=1, lower=-2, upper=3),
    multidimensional_mean(columns={"a": (0, 1), "b": (-1, 1)}, epsilon=1),
]


@pytest.mark.parametrize("made", MADE, ids=lambda one: one.kind)
def test_a_description_leads_back(made):
    assert made.kind in KINDS
    assert rebuild(made.describe()) == made
    assert rebuild(json.dumps(made.describe())) == made
    assert made.certify().holds


def test_descriptions_hold_what_they_must():
    assert summation_histogram_encoding(categories=5, epsilon=1, steps=64).parameters() == {
        "categories": 5,
        "steps": 64,
    }
    cut = threshold_histogram_encoding(categories=5, epsilon=1, threshold=0.75).parameters()
    assert cut == {"categories": 5, "threshold": "3/4"}
    assert rebuild(GOOD) == grr(categories=5, epsilon=Fraction(1, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version must be 1, got 2"),
        ({"version": True}, "version must be 1, got True"),
        ({"version": None}, "version must be 1"),
        ({"kind": "rr"}, "kind must be one of balanced, duchi"),
        ({"kind": 3}, "kind must be one of"),
        ({"epsilon": 0.5}, "epsilon"),
        ({"epsilon": "0.5"}, "epsilon"),
        ({"epsilon": "2/4"}, "not as grr writes it"),
        ({"color": 1, "weight": 2}, "no field 'color', 'weight'"),
        ({"categories": "5"}, "categories"),
        ({"categories": 1}, "categories"),
    ],
)
def test_a_wrong_description_is_refused_by_name(change, words):
    with pytest.raises(InvalidArgument, match=words):
        rebuild({**GOOD, **change})


def test_missing_fields_are_told_without_the_error_of_python():
    without = {name: value for name, value in GOOD.items() if name != "categories"}
    with pytest.raises(InvalidArgument, match="fields of grr are missing or of the wrong kind"):
        rebuild(without)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"grr"', "3", "[" * 100_000], ids=range(6))
def test_what_is_no_object_is_refused(text):
    with pytest.raises(InvalidArgument, match="JSON object"):
        rebuild(text)


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(InvalidArgument, match="JSON object"):
        rebuild({**GOOD, "categories": Fraction(5)})


def test_a_part_is_a_randomizer_of_one_number():
    made = multidimensional_mean(columns={"a": (0, 1), "b": (-1, 1)}, epsilon=1)
    told = made.describe()
    for part in ({"kind": "grr", "categories": 2}, {"kind": "square_wave", "cells": 8}):
        with pytest.raises(PrivacyError):
            rebuild({**told, "part": part})
    wave = square_wave(cells=8, epsilon=1, upper=1)
    kept = {k: v for k, v in wave.describe().items() if k not in ("version", "epsilon")}
    with pytest.raises(InvalidArgument, match="one bounded number"):
        rebuild({**told, "part": kept})
    wrong = dataclasses.replace(made, part=duchi(epsilon=2, lower=0, upper=1))
    with pytest.raises(InvalidArgument, match="epsilon / sampled"):
        wrong.certify()


def test_words():
    for make in (sue, summation_histogram_encoding):
        made = make(categories=5, epsilon=1)
        assert repr(made) == f"{make.__name__}({made.guarantee!r}, categories=5)"
    one = duchi(epsilon=1, lower=0, upper=1)
    assert repr(one) == f"duchi({one.guarantee!r}, reports of {one.width} bytes)"
    assert one.fingerprint != duchi(epsilon=2, lower=0, upper=1).fingerprint
    mean = one.estimate(np.array([1000, 3000]), 4000)
    assert repr(mean).startswith("Mean of 4,000 reports (epsilon 1)\n")
    assert f"{mean.value:.3f}" in repr(mean)
    hashed = olh(categories=9, epsilon=1)
    start = f"olh({hashed.guarantee!r}, categories=9, hashes={1 << hashed.hash_digits}"
    assert repr(hashed) == start + ")"
    assert repr(dataclasses.replace(hashed, kept=2)) == start + ", kept=2)"
    chosen = subset_selection(categories=9, epsilon=1, chosen=3)
    assert repr(chosen) == f"subset_selection({chosen.guarantee!r}, categories=9, chosen=3)"
    client = BudgetedClient(grr(categories=5, epsilon=0.5), budget=2)
    assert repr(client) == f"BudgetedClient({client.randomizer!r}, sent=0, budget=2)"


def test_laplace_noise_that_is_too_small_is_not_certified(monkeypatch):
    made = local_laplace(epsilon=1, lower=0, upper=1)
    assert made.certify().checks[0].part == f"{made.grid} steps"
    smaller = type(made.noise)(made.noise.scale * Fraction(999, 1000))
    monkeypatch.setattr(type(made), "noise", property(lambda _: smaller))
    with pytest.raises(NotCertified):
        made.certify()


def test_a_window_leaves_room_for_a_step():
    with pytest.raises(InvalidArgument, match="window must be below 256, got 256"):
        piecewise_mean(epsilon=1, lower=0, upper=1, window=256)
    assert piecewise_mean(epsilon=1, lower=0, upper=1, window=255).window.inputs == 2


def test_sums_of_shares_are_whole():
    shares = distributed_laplace(sensitivity=1, epsilon=1, min_honest_reports=10, modulus=101)
    assert shares.decode([50, 51, 101], clients=10).tolist() == [50, -50, 0]
    with pytest.raises(OutOfDomain, match="whole numbers"):
        shares.decode([0.5], clients=10)
