"""Arguments at the door, and the one way in which things are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import pytest

from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core._validate import power_of_two
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation, central_relation


def test_bounds_are_read_as_typed_and_ordered() -> None:
    assert check.bounds(0.1, 2) == (Fraction(1, 10), Fraction(2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check.bounds(2, 2), "lower must be below upper, got 2 and 2"),
        (lambda: check.bounds(3, 2), "lower must be below upper, got 3 and 2"),
        (lambda: check.bounds(float("nan"), 2), "lower must be finite"),
        (lambda: check.bounds(0, float("inf")), "upper must be finite"),
        (lambda: check.one_of("how", "x", ("a", "b")), r"how must be 'a' or 'b', got 'x'"),
        (
            lambda: check.one_of("how", [], ("a", "b", "c")),
            r"how must be 'a', 'b' or 'c', got \[\]",
        ),
        (lambda: check.one_of("how", "x", {"a": 1, "b": 2}), r"how must be 'a' or 'b', got 'x'"),
        (
            lambda: central_relation(NeighboringRelation.LOCAL),
            "relation must be ADD_REMOVE or REPLACE_ONE",
        ),
        (lambda: power_of_two(3), "granularity must be a power of two, for example 2"),
        (lambda: power_of_two(0), "granularity must be positive"),
        (lambda: canonical.read_ratio("share", "1e9"), "share must be a ratio of whole numbers"),
        (lambda: canonical.read_ratio("share", "1/0"), "share must be a ratio of whole numbers"),
        (lambda: canonical.read_ratio("share", 1), "share must be a ratio of whole numbers"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        call()


def test_allowed_words_and_relations_pass() -> None:
    check.one_of("how", "b", ("a", "b"))
    assert central_relation(NeighboringRelation.ADD_REMOVE) is NeighboringRelation.ADD_REMOVE
    assert central_relation(NeighboringRelation.REPLACE_ONE) is NeighboringRelation.REPLACE_ONE


@pytest.mark.parametrize("exponent", [-40, -1, 0, 7])
def test_a_grid_is_its_exponent(exponent: int) -> None:
    assert power_of_two(2.0**exponent) == exponent


def test_ratios_come_back() -> None:
    assert canonical.ratio(Fraction(3)) == "3/1"
    assert canonical.read_ratio("share", canonical.ratio(Fraction(22, 7))) == Fraction(22, 7)
    assert canonical.read_ratio("share", "4") == 4


def test_equal_contents_are_written_alike() -> None:
    assert canonical.text({"b": [1, 2], "a": None}) == '{"a":null,"b":[1,2]}'


@pytest.mark.parametrize("broken", ["no", "[" * 100_000, "[1]", '{"a": 0}', "{}"])
def test_what_cannot_be_read_is_refused_by_name(broken: str) -> None:
    refused = pytest.raises(InvalidArgument, match="text must be the JSON of a share")
    with refused, canonical.reading("a share"):
        Fraction(1, json.loads(broken)["a"])


def test_what_is_refused_for_a_reason_keeps_it() -> None:
    with (
        pytest.raises(InvalidArgument, match="granularity must be positive"),
        canonical.reading("a grid"),
    ):
        power_of_two(0)
