"""Diversity and closeness against their definitions, class by class."""

import math
from collections import Counter, defaultdict
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.disclosure import disclosure_risk

rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(-3, 3), st.sampled_from("xyz")),
    min_size=1,
    max_size=30,
)


def moved(p, q, *, ordered):
    """Earth mover's distance of two laws on the same values."""
    if not ordered:
        return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    if len(p) == 1:
        return 0.0
    return float(np.abs(np.cumsum(p) - np.cumsum(q)).sum()) / (len(p) - 1)


@given(rows)
def test_every_measure_is_that_of_its_definition(table):
    frame = pl.DataFrame(table, schema=["a", "b", "number", "text"], orient="row")
    found = disclosure_risk(frame, quasi_identifiers=["a", "b"], sensitive=["number", "text"])
    classes = defaultdict(list)
    for row in table:
        classes[row[:2]].append(row)
    sizes = sorted(len(members) for members in classes.values())
    assert found.sizes.tolist() == sizes
    assert (found.k, found.row_count, found.classes) == (sizes[0], len(table), len(sizes))
    assert found.unique == sizes.count(1)
    assert found.average == pytest.approx(len(sizes) / len(table))
    for place, name in ((2, "number"), (3, "text")):
        values = sorted({row[place] for row in table})
        law = lambda members: [  # noqa: E731
            sum(row[place] == value for row in members) / len(members)  # noqa: B023
            for value in values  # noqa: B023
        ]
        laws = [law(members) for members in classes.values()]
        entropy = min(-sum(p * math.log(p) for p in one if p) for one in laws)
        far = max(moved(one, law(table), ordered=name == "number") for one in laws)
        told = found.sensitive[name]
        assert told.distinct == min(sum(p > 0 for p in one) for one in laws)
        assert told.entropy == pytest.approx(math.exp(entropy))
        assert told.closeness == pytest.approx(far)


def test_homogeneous_classes_show():
    # M8: k is 3, and whoever finds the class knows the illness.
    frame = pl.DataFrame({"age": ["young"] * 3 + ["old"] * 3, "ill": list("aaabcd")})
    found = disclosure_risk(frame, quasi_identifiers=["age"], sensitive=["ill"])
    assert found.k == 3
    assert found.sensitive["ill"].distinct == 1
    assert found.sensitive["ill"].closeness == pytest.approx(0.5)
    assert "fewest values in a class 1 " in str(found)


def test_without_quasi_identifiers_all_rows_are_alike():
    found = disclosure_risk(pl.DataFrame({"x": [1, 2, 3]}), quasi_identifiers=[])
    assert (found.k, found.classes) == (3, 1)


def test_missing_values_are_a_value():
    found = disclosure_risk(
        pl.DataFrame({"x": [1.5, None, None], "t": ["a", None, None]}), quasi_identifiers=["x", "t"]
    )
    assert Counter(found.sizes.tolist()) == {1: 1, 2: 1}


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([2**53, 2**53 + 1, None]),
        pl.Series([2**100, 2**100 + 1, None], dtype=pl.Int128),
        pl.Series([Decimal("90071992547409920.1"), Decimal("90071992547409920.2"), None]),
    ],
)
def test_long_numbers_stay_apart_beside_a_missing_one(values):
    found = disclosure_risk(
        pl.DataFrame({"x": values, "y": values}), quasi_identifiers=["x"], sensitive=["y"]
    )
    assert (found.k, found.unique) == (1, 3)
    assert disclosure_risk(pl.DataFrame({"x": values[:2]}), quasi_identifiers=["x"]).unique == 2


def test_decimals_are_as_far_apart_as_their_ranks():
    numbers = [10, 9, 2, 2]
    frames = [
        pl.DataFrame({"a": list("xxyy"), "n": [kind(number) for number in numbers]})
        for kind in (int, Decimal)
    ]
    whole, exact = (
        disclosure_risk(frame, quasi_identifiers=["a"], sensitive=["n"]) for frame in frames
    )
    assert whole.sensitive == exact.sensitive


def test_names_that_can_be_read_once_are_read_once():
    """A second reading would find no column: three rows that differ would seem to be alike."""
    frame = pl.DataFrame({"zip": [1, 2, 3], "ill": [0, 0, 1]})
    once = disclosure_risk(
        frame, quasi_identifiers=(name for name in ["zip"]), sensitive=iter(["ill"])
    )
    assert once.k == 1
    assert repr(once) == repr(disclosure_risk(frame, quasi_identifiers=["zip"], sensitive=["ill"]))
