"""Private numbers on a public grid: each by itself, and without a word about any of them."""

import warnings

import numpy as np

from discreet.mechanisms.quantiles import SortedColumn

COLUMN = SortedColumn.of(0, 128, 1)


def test_values_are_rounded_and_clipped_one_by_one():
    values = np.array([[-5.0, 0.4, 0.5], [127.5, 300.0, 1e300]])
    assert COLUMN.places(values).tolist() == [[0, 0, 1], [128, 128, 128]]
    assert COLUMN.sorted(values[:, ::-1].ravel()[1:]).tolist() == [0, 0, 128, 128, 128]


def test_steps_are_counted_from_the_lower_bound():
    assert SortedColumn.of(-3, 5, 1).places(np.array([-9.0, -3.0, 0.0, 5.0])).tolist() == [
        0,
        0,
        3,
        8,
    ]


def test_no_error_tells_of_a_tiny_value():
    with np.errstate(all="raise"):
        assert SortedColumn.of(0, 2**60, None).places(np.array([5e-324])).tolist() == [0]


def test_no_warning_tells_of_a_huge_value():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = SortedColumn.of(0, 128, None)
        assert fine.sorted([1.7e308, -1.7e308]).tolist() == [0, fine.span]
