"""Aggregates are a sum: any order, any split, through bytes and back; hostile input is refused."""

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.local import registry as catalog
from discreet.local import registry as mechanisms
from discreet.local.collection import aggregator as aggregate
from discreet.local.collection.aggregator import Aggregator
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue, sue, threshold_histogram_encoding
from discreet.local.ranges.hybrid_grid import hybrid_grid
from discreet.local.registry import randomizer_from_json
from discreet.noise.random_source import seeded_rng
from discreet.ranges.domain import integers

ORACLES = [
    build(categories=11, epsilon=1.5)
    for build in (grr, sue, oue, threshold_histogram_encoding, summation_histogram_encoding)
]


def reports(oracle, n=101):
    return oracle.randomize(np.arange(n) % 11, rng=seeded_rng(90))


@pytest.fixture(params=ORACLES, ids=lambda oracle: oracle.kind)
def oracle(request):
    return request.param


def test_order_and_splits_do_not_matter(oracle):
    rows = reports(oracle)
    whole = Aggregator(oracle).add(rows)
    assert (whole.reports, whole.refused) == (101, 0)
    assert Aggregator(oracle).add(rows[::-1]) == whole
    parts = [Aggregator(oracle).add(rows[start::3]) for start in range(3)]
    assert parts[0] + parts[1] + parts[2] == whole
    assert parts[2] + (parts[0] + parts[1]) == whole
    assert whole + whole.empty() == whole
    assert Aggregator(oracle).add(rows[:0]) == whole.empty()
    assert parts[0] != whole
    assert whole != 1


def test_a_copy_is_apart_and_a_sum_leaves_its_parts(oracle):
    one = Aggregator(oracle).add(reports(oracle))
    copy = one.copy()
    _ = one + one
    assert one == copy
    copy.add(reports(oracle, 5))
    assert copy.reports == 106
    assert one.reports == 101


def test_bytes_and_lists_are_reports_too(oracle):
    rows = reports(oracle)
    whole = Aggregator(oracle).add(rows)
    assert Aggregator(oracle).add(rows.tobytes()) == whole
    assert Aggregator(oracle).add([row.tobytes() for row in rows]) == whole
    assert Aggregator(oracle).add(memoryview(rows.tobytes())) == whole
    assert Aggregator(oracle).add(b"") == Aggregator(oracle).add([]) == whole.empty()


def test_reports_of_another_width_are_counted_and_move_nothing(oracle):
    rows = reports(oracle)
    counted = Aggregator(oracle).add([b"", rows[0].tobytes(), rows[1].tobytes() + b"\0"])
    assert (counted.reports, counted.refused) == (1, 2)
    counted = Aggregator(oracle).add(np.zeros((7, oracle.width + 1), dtype=np.uint8))
    assert (counted.reports, counted.refused, counted.counts.any()) == (0, 7, False)
    if oracle.width > 1:
        cut = Aggregator(oracle).add(rows.tobytes()[:-1])
        assert (cut.reports, cut.refused) == (100, 1)


def test_one_report_that_is_no_bytes_is_refused_and_moves_nothing(oracle):
    rows = [row.tobytes() for row in reports(oracle)]
    for odd in (None, "text", 7, ["x"], np.zeros(oracle.width)):
        counted = Aggregator(oracle).add([*rows, odd])
        assert (counted.reports, counted.refused) == (len(rows), 1)
        assert np.array_equal(counted.counts, Aggregator(oracle).add(rows).counts)


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 1)), np.zeros(3, dtype=np.uint8), np.full((1, 1), 300), ["text"], [1]]
)
def test_what_is_no_bytes_is_an_error_of_the_caller(bad):
    with pytest.raises(InvalidArgument, match="reports must"):
        Aggregator(ORACLES[0]).add(bad)


@pytest.mark.parametrize("build", [grr, sue, oue, threshold_histogram_encoding])
def test_no_string_of_bytes_moves_an_estimate_further_than_a_client_can(build):
    """All 256 reports of one byte, added to ten honest ones: n times the share moves by
    (support - other) / (keep - other), support zero or one, or by nothing at all."""
    survey = build(categories=5, epsilon=1)
    honest = Aggregator(survey).add(survey.randomize([0, 1, 2, 3, 4] * 2, rng=seeded_rng(92)))
    before = honest.estimate().counts
    gap = survey.keep - survey.other
    for byte in range(256):
        after = honest.copy().add(bytes([byte]))
        moved = after.estimate().counts - before
        if after.refused:
            assert after.reports == 10
            assert not moved.any()
        else:
            supported = moved > 0
            assert moved[supported] == pytest.approx((1 - survey.other) / gap, rel=1e-9)
            assert moved[~supported] == pytest.approx(-survey.other / gap, rel=1e-9)
            assert build is not grr or supported.sum() == 1


def test_random_bytes_never_raise(oracle):
    generator = np.random.default_rng(91)
    counted = Aggregator(oracle)
    for _ in range(20):
        rows = generator.integers(0, 256, (generator.integers(0, 40), oracle.width), dtype=np.uint8)
        before = counted.reports + counted.refused
        counted.add(rows)
        assert counted.reports + counted.refused == before + len(rows)
    assert np.isfinite(counted.estimate().shares).all()


def test_state_round_trips(oracle):
    counted = Aggregator(oracle).add(reports(oracle)).add([b"bad bytes"])
    state = counted.to_bytes()
    assert Aggregator.from_bytes(state) == counted
    assert Aggregator.from_bytes(state, oracle) == counted
    assert Aggregator.from_bytes(state).add(reports(oracle)).reports == 202


def test_a_state_cut_off_anywhere_is_refused():
    state = Aggregator(ORACLES[0]).add(reports(ORACLES[0])).to_bytes()
    for end in range(len(state)):
        with pytest.raises(InvalidArgument, match="state"):
            Aggregator.from_bytes(state[:end])
    with pytest.raises(InvalidArgument, match="state"):
        Aggregator.from_bytes(state + b"\0")


def test_a_state_with_one_bit_changed_is_refused():
    state = Aggregator(ORACLES[0]).add(reports(ORACLES[0])).to_bytes()
    for place in range(len(state)):
        damaged = bytearray(state)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(InvalidArgument, match="state"):
            Aggregator.from_bytes(bytes(damaged))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"no JSON", b"[" * 100_000, b"[]"])
def test_a_state_with_a_broken_description_is_refused(text):
    """Whoever makes it up can make the digest too."""
    body = aggregate._MAGIC + aggregate._HEAD.pack(0, 0, len(text), 0) + text
    state = body + sha256(body).digest()[:16]
    for randomizer in (None, ORACLES[0]):
        with pytest.raises(InvalidArgument):
            Aggregator.from_bytes(state, randomizer)


def test_states_of_another_collection_are_refused():
    state = Aggregator(oue(categories=11, epsilon=1)).to_bytes()
    for other in (oue(categories=11, epsilon=2), oue(categories=12, epsilon=1), ORACLES[1]):
        with pytest.raises(InvalidArgument, match="another collection"):
            Aggregator.from_bytes(state, other)
        with pytest.raises(InvalidArgument, match="same collection"):
            Aggregator.from_bytes(state).merge(Aggregator(other))


def test_shown_without_what_was_counted():
    counted = Aggregator(ORACLES[2]).add(reports(ORACLES[2])).add([b""])
    assert repr(counted) == "Aggregator(oue, reports=101, refused=1)"


def test_descriptions_round_trip(oracle):
    described = oracle.describe()
    assert randomizer_from_json(described) == oracle
    assert randomizer_from_json(json.dumps(described)) == oracle
    assert described == oracle.describe()  # untouched
    others = [other.fingerprint for other in ORACLES]
    assert others.count(oracle.fingerprint) == 1


def test_the_order_of_names_has_no_meaning():
    """A state keeps its description as JSON: what is read from it must be the same randomizer."""
    days, ages = integers(0, 9), integers(0, 99)
    one = hybrid_grid({"b": days, "a": ages}, epsilon=1, fine=4, coarse=2)
    two = hybrid_grid({"a": ages, "b": days}, epsilon=1, fine=4, coarse=2)
    assert one == two == randomizer_from_json(dict(reversed(one.describe().items())))
    assert Aggregator.from_bytes(Aggregator(one).to_bytes()).randomizer == one


def test_what_a_description_names_is_not_chosen_anew():
    """Another version may find other windows, parts and oracles better: the bytes must stay."""
    ends = {"version": 1, "epsilon": "1/1", "lower": 0, "upper": 1}
    wave = {**ends, "kind": "square_wave", "cells": 20, "window": 9}
    assert randomizer_from_json(wave).size == 28
    days = {"kind": "integers", "lower": 0, "upper": 9}
    shape = {"domain": days, "starts": [0, 3, 5], "round": 0}
    shape |= {"oracle": {"kind": "oue", "categories": 3}}
    with pytest.raises(InvalidArgument, match="not as ranges.partition writes it"):
        randomizer_from_json({"version": 1, "epsilon": "1/1", "kind": "ranges.partition", **shape})


GOOD = {"version": 1, "kind": "oue", "epsilon": "3/2", "categories": 11}
BAD = [
    ({"version": 2}, "version"),
    ({"version": True}, "version"),
    ({"version": None}, "version"),
    ({"kind": "ouija"}, "kind"),
    ({"kind": ["oue"]}, "kind"),
    ({"epsilon": 1.5}, "epsilon"),
    ({"epsilon": "6/4"}, "not as oue writes it"),
    ({"epsilon": "0/1"}, "epsilon"),
    ({"epsilon": "1/0"}, "epsilon"),
    ({"epsilon": "-1/2"}, "epsilon"),
    ({"categories": "11"}, "categories"),
    ({"categories": 1}, "categories"),
    ({"categories": None}, "categories"),
    ({"color": 1}, "no field 'color'"),
    ({"kind": "the", "threshold": [1]}, "threshold"),
    ({"kind": "the", "threshold": "1e900000000"}, "threshold"),
    ({"kind": "the"}, "not as the writes it"),
    ({"kind": "she", "steps": 10**9}, "steps"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_descriptions_that_are_not_understood_are_refused(change, message):
    with pytest.raises(InvalidArgument, match=message):
        randomizer_from_json({**GOOD, **change})


def test_a_share_is_no_power():
    """Written out, it would fill the memory."""
    days = {"kind": "integers", "lower": 0, "upper": 3}
    shape = {"domain": days, "shares": ["1e900000000", "1/2"]}
    with pytest.raises(InvalidArgument, match="ratio"):
        randomizer_from_json({"version": 1, "epsilon": "1/1", "kind": "ranges.haar", **shape})


@pytest.mark.parametrize("text", ["", "[]", "{", "1", '"oue"', "[" * 100_000, b"{}", {1: {2}}, 7])
def test_what_is_no_description_is_refused(text):
    with pytest.raises(InvalidArgument, match="JSON object"):
        randomizer_from_json(text)


def test_a_field_left_out_is_refused():
    for name in GOOD:
        with pytest.raises(InvalidArgument):
            randomizer_from_json({key: value for key, value in GOOD.items() if key != name})


def test_every_kind_has_a_factory_that_takes_epsilon():
    assert mechanisms.KINDS.items() <= catalog.KINDS.items()
    for kind in catalog.KINDS:
        with pytest.raises(InvalidArgument, match="no field 'color'"):
            randomizer_from_json({"version": 1, "kind": kind, "epsilon": "1/1", "color": 1})


def test_the_bytes_of_every_kind_are_written_down():
    page = Path(__file__).parents[3] / "docs" / "reference" / "wire-format.md"
    headings = [line for line in page.read_text("utf-8").splitlines() if line.startswith("### ")]
    assert set(re.findall(r"`([a-z_.]+)`", "\n".join(headings))) == catalog.KINDS.keys()
