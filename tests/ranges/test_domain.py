"""Labels become places; what is reversed or outside is refused."""

import datetime as dt

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.ranges import domain as d

DOMAINS = [
    d.integers(-3, 9),
    d.dates("2024-02-27", dt.date(2024, 3, 2)),
    d.bins([0, 0.5, 2, 10]),
    d.ordered(["low", "middle", "high"]),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda one: type(one).__name__)
def test_labels_and_places_are_inverse(domain):
    for cell in range(domain.size):
        label = domain.label(cell)
        low, high = label if isinstance(domain, d.BinnedDomain) else (label, label)
        assert [int(end) for end in d.span(domain, low, high)] == [cell, cell]
    assert d.read(domain.content()) == domain
    a, b = d.span(domain, None, None)
    assert (int(a), int(b)) == (0, domain.size - 1)


def test_arrays_of_ends():
    days = d.dates("2024-02-27", "2024-03-02")
    a, b = d.span(days, np.array(["2024-02-28", "2024-03-01"], dtype="datetime64[D]"), None)
    assert a.tolist() == [1, 3]
    assert b.tolist() == [4, 4]
    assert days.size == 5  # the leap day is there
    a, b = d.span(d.ordered(["a", "b", "c"]), ["a", "b"], ["b", "c"])
    assert (a.tolist(), b.tolist()) == ([0, 1], [1, 2])


@pytest.mark.parametrize(
    ("domain", "low", "high", "why"),
    [
        (DOMAINS[0], 4, 3, "reversed"),
        (DOMAINS[0], -4, 3, "declared domain"),
        (DOMAINS[0], 0, 10, "declared domain"),
        (DOMAINS[0], 0, np.iinfo(np.int64).max, "declared domain"),
        (DOMAINS[0], np.iinfo(np.int64).min, 0, "declared domain"),
        (DOMAINS[0], np.uint64(2**64 - 1), None, "must lie"),
        (DOMAINS[0], 0.5, 3, "whole"),
        (DOMAINS[0], [1, 2], [1, 2, 3], "as many"),
        (DOMAINS[1], "2024-02-26", None, "declared domain"),
        (DOMAINS[1], "yesterday", None, "dates"),
        (DOMAINS[1], "NaT", None, "dates"),
        (DOMAINS[2], 0.25, None, "edges"),
        (DOMAINS[2], 10, 10, "declared domain"),
        (DOMAINS[2], 2, 2, "reversed"),
        (DOMAINS[3], "tall", None, "labels"),
    ],
)
def test_wrong_ranges_are_refused(domain, low, high, why):
    with pytest.raises(InvalidArgument, match=why):
        d.span(domain, low, high)


@pytest.mark.parametrize(
    "make",
    [
        lambda: d.integers(3, 2),
        lambda: d.integers(0, 2**40),
        lambda: d.integers(0, 1.5),
        lambda: d.dates("2024-02-27", "2024-02-26"),
        lambda: d.dates("2024-02-30", "2024-03-01"),
        lambda: d.dates(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-03-01"),
        lambda: d.bins([1]),
        lambda: d.bins([1, 1]),
        lambda: d.bins([1, float("inf")]),
        lambda: d.ordered([]),
        lambda: d.ordered(["a", "a"]),
        lambda: d.read({"kind": "circle"}),
    ],
)
def test_wrong_domains_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize("label", ["low", object(), [[0], [1, 2]]])
def test_ends_of_bins_that_are_no_numbers(label):
    with pytest.raises(InvalidArgument, match="needs numbers"):
        d.span(d.bins([0, 1, 2.5]), label, None)
