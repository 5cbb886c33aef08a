"""One raw value has one meaning, whatever stands beside it."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import uuid
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.boundary.owners import NOBODY, number_owners, owner_key
from discreet.boundary.rows import cells, choose_rows, matrix
from discreet.boundary.sums import exact_dot, exact_sum, prefix_sums
from discreet.boundary.values import as_double, as_number, as_whole, doubles, steps


class _Raises:
    def __float__(self) -> float:
        raise ZeroDivisionError

    __int__ = __index__ = __str__ = __len__ = __hash__ = __eq__ = __float__  # type: ignore[assignment]


class _FloatWithCode(float):
    def __float__(self) -> float:
        raise ZeroDivisionError


STRANGE = [
    None, True, False, 0, -1, 3, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**64, 10**5000, -(10**400),
    0.0, -0.0, 3.5, 5e-324, 1e305, math.inf, -math.inf, math.nan, -math.nan, _FloatWithCode(2.5),
    Decimal("3.5"), Decimal("1e999999"), Decimal("-1e-999999"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("Infinity"), Fraction(7, 2), Fraction(10**400), 1 + 2j,
    np.int8(3), np.uint64(2**64 - 1), np.float16(3.5), np.float32("nan"), np.longdouble("1e400"),
    np.bool_(True), np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(5, "m"),
    np.str_("x"), np.array(3), np.array([1, 2]), np.array(None), np.array("x"),
    "", "3", "n/a", "a\0", "\ud800", "e\u0301", "\u202eabc", "x" * 10**6, b"a", b"\xff",
    dt.date(1, 1, 1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC), dt.time(3), dt.timedelta(days=1),
    pd.NA, pd.NaT,
    pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), uuid.UUID(int=5), [1], (1, 2), {}, {1}, object(),
    _Raises(), type, lambda: 3,
]  # fmt: skip


def _same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_a_value_means_the_same_beside_any_other(place: int) -> None:
    value = STRANGE[place]
    own = as_double(value)
    code = steps([value], exponent=-2, lower=-40, upper=4000, misfit=7)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in STRANGE:
            assert _same(doubles([value, other])[0], own)
            assert _same(doubles([other, value])[1], own)
            assert steps([other, value], exponent=-2, lower=-40, upper=4000, misfit=7)[1] == code
            assert _same(matrix([[value, 1.0], [other]], columns=2)[0, 0], own)
    assert code == 7 or not math.isnan(own)


@pytest.mark.parametrize("exponent", [-70, -30, -2, 0, 1, 5, 62, 64, 80])
def test_steps_of_arrays_equal_steps_of_single_values(exponent: int) -> None:
    whole = [0, 1, -1, 2, 3, 5, 6, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**53) - 1, 10]
    real = [0.0, -0.0, 0.5, -0.5, 0.49999999999999994, 2.5, 1e300, -1e300, math.inf, -math.inf,
            math.nan, 5e-324, 2.0**53, 0.125, 0.375, -0.125]  # fmt: skip
    for lower, upper in ((-3, 9), (0, 2**62), (-(2**61), 2**61), (-(2**63) + 1, 2**63 - 1)):
        for values, kind in ((whole, np.int64), (real, np.float64)):
            want = [
                steps([v], exponent=exponent, lower=lower, upper=upper, misfit=-5)[0]
                for v in values
            ]
            array = np.array(values, dtype=kind)
            found = steps(array, exponent=exponent, lower=lower, upper=upper, misfit=-5)
            assert found.tolist() == want
        small = np.array([0, 1, 255], dtype=np.uint8)
        big = np.array([0, 1, 2**64 - 1], dtype=np.uint64)
        for array in (small, big):
            want = [
                steps([int(v)], exponent=exponent, lower=lower, upper=upper, misfit=-5)[0]
                for v in array
            ]
            found = steps(array, exponent=exponent, lower=lower, upper=upper, misfit=-5)
            assert found.tolist() == want


def test_steps_round_to_the_nearest_with_halves_up() -> None:
    given = [2.5, -2.5, 0.49999999999999994, 7, Decimal("2.5"), Fraction(-5, 2), "3"]
    assert steps(given, exponent=0, lower=-9, upper=9, misfit=0).tolist() == [3, -2, 0, 7, 3, -2, 0]


@pytest.mark.parametrize("frame", [pd.Series, pl.Series, pa.array])
def test_series_of_all_libraries_are_read_alike(frame: object) -> None:
    for given in ([1, 2, None], [1.5, None, 3.0], [True, None, False], ["a", None, "3"]):
        series = frame(given)  # type: ignore[operator]
        for found, value in zip(doubles(series), given, strict=True):
            assert _same(found, as_double(value))


WHOLE = [
    lambda rows: pl.Series(rows, dtype=pl.Int64),
    lambda rows: pa.array(rows, pa.int64()),
    lambda rows: pa.chunked_array([rows], pa.int64()),
    lambda rows: pd.Series(rows, dtype="Int64"),
    lambda rows: pd.array(rows, dtype="Int64"),
    lambda rows: pd.Series(rows, dtype="int64[pyarrow]"),
]


@pytest.mark.parametrize("hold", WHOLE)
def test_a_missing_integer_does_not_round_the_others(hold) -> None:
    """NumPy has no missing integer: what a series becomes there would be doubles of all."""
    given = {"exponent": 0, "lower": 0, "upper": 2**60, "misfit": -1}
    large = [2**53 + 1, 2**60 - 1]
    assert steps(hold(large), **given).tolist() == large
    assert steps(hold([*large, None]), **given).tolist() == [*large, -1]
    assert cells(hold([*large, None]), shape=(3,), lower=0, upper=2**60).tolist() == [*large, 0]


def test_owners_are_told_apart_one_by_one() -> None:
    same = [[7, 7.0, np.int8(7), Decimal(7), Fraction(7), np.float32(7)], [1, True, np.bool_(True)]]
    for group in same:
        assert len({owner_key(value) for value in group}) == 1
    apart = [
        7,
        "7",
        b"7",
        "7\0",
        "7 ",
        (7,),
        dt.date(2020, 1, 1),
        "2020-01-01",
        7.5,
        2**60,
        2**60 + 1,
    ]
    assert len({owner_key(value) for value in apart}) == len(apart)
    for nobody in (None, math.nan, math.inf, pd.NA, pd.NaT, np.datetime64("NaT"), [7], _Raises()):
        assert owner_key(nobody) is None


def test_one_strange_owner_leaves_the_numbers_of_all_others() -> None:
    ids = [2**61 + 7 * i for i in range(50)] * 2
    want = [i % 50 for i in range(100)]
    for strange in STRANGE:
        found, many = number_owners([*ids, strange])
        assert found[:-1].tolist() == want
        assert found[-1] in (NOBODY, 50)
        assert many == 50 + (found[-1] == 50)
    assert number_owners(np.array(ids))[0].tolist() == want


def test_every_pair_of_owners_is_numbered_by_its_keys() -> None:
    for left, right in itertools.product(STRANGE, repeat=2):
        (a, b), _ = number_owners([left, right])
        keys = owner_key(left), owner_key(right)
        assert (a == NOBODY) == (keys[0] is None)
        assert (b == NOBODY) == (keys[1] is None)
        if None not in keys:
            assert (a == b) == (keys[0] == keys[1])


def test_rows_of_a_group_get_their_type_from_the_group() -> None:
    rows = [1, 2, 3, "n/a", [1, 2], None]
    assert choose_rows(rows, np.array([0, 1, 2])).dtype == np.int64
    assert len(choose_rows(rows, np.array([0, 4]))) == 2


def test_sums_never_wrap() -> None:
    for values in ([2**62] * 4, [-(2**63)] * 3, [2**63 - 1, -(2**63), 5], [], [1, 2, 3]):
        array = np.array(values, dtype=np.int64)
        assert exact_sum(array) == sum(values)
        assert exact_dot(array, array) == sum(v * v for v in values)
        assert prefix_sums(array).tolist() == [0, *itertools.accumulate(values)]


def test_numbers_are_exact() -> None:
    assert as_number(Decimal("0.1")) == Fraction(1, 10)
    assert as_whole(2.0**60) == 2**60
    assert as_whole(2.5) is None
    assert as_whole(math.inf) is None
    assert as_double(10**5000) == math.inf
