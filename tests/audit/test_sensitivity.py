"""The oracle knows the right table, and refuses the mistakes of the field."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.sensitivity import (
    Data,
    Norm,
    SensitivityError,
    check_sensitivity,
    neighbors,
    true_sensitivity,
)
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation

LO, HI = Fraction(-1), Fraction(3)
R = HI - LO
GRID = [LO, Fraction(0), Fraction(1), HI]
ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def mean(x: Data) -> Fraction:
    return sum(x, start=Fraction(0)) / len(x)


def population_variance(x: Data) -> Fraction:
    return sum(((v - mean(x)) ** 2 for v in x), start=Fraction(0)) / len(x)


def variance(x: Data) -> Fraction:
    return population_variance(x) * len(x) / (len(x) - 1)


def deviation(x: Data) -> float:
    return math.sqrt(variance(x))


def median_low(x: Data) -> Fraction:
    return Fraction(statistics.median_low(x))


def histogram(x: Data) -> list[int]:
    return [sum(v == g for v in x) for g in GRID]


def positive(x: Data) -> int:
    return sum(v > 0 for v in x)


SIZES = (2, 3, 4, 5, 6)
# B2: query, norm, smallest size for REPLACE_ONE and for REMOVE, and both columns by n.
TABLE: list[tuple[Callable[[Data], object], Norm, int, int, object, object]] = [
    (sum, "l1", 1, 1, lambda n: R, lambda n: max(abs(LO), abs(HI))),
    (mean, "l1", 1, 2, lambda n: R / n, lambda n: R / n),
    (statistics.median, "l1", 1, 2, lambda n: R if n % 2 else R / 2, lambda n: R / 2),
    (median_low, "l1", 1, 2, lambda n: R, lambda n: R),
    (variance, "l1", 2, 3, lambda n: R**2 / n, lambda n: R**2 / n),
    (
        population_variance,
        "l1",
        1,
        2,
        lambda n: R**2 * (n - 1) / n**2,
        lambda n: R**2 * (n - 1) / n**2,
    ),
    (deviation, "l1", 2, 3, lambda n: float(R) / math.sqrt(n), lambda n: float(R) / math.sqrt(n)),
    (min, "l1", 1, 2, lambda n: R, lambda n: R),
    (max, "l1", 1, 2, lambda n: R, lambda n: R),
    (positive, "l1", 1, 1, lambda n: 1, lambda n: 1),
    (len, "l1", 1, 1, lambda n: 0, lambda n: 1),
    (histogram, "l1", 1, 1, lambda n: 2, lambda n: 1),
    (histogram, "l2", 1, 1, lambda n: math.sqrt(2), lambda n: 1),
    (histogram, "linf", 1, 1, lambda n: 1, lambda n: 1),
    (histogram, "l0", 1, 1, lambda n: 2, lambda n: 1),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0].__name__}-{row[1]}")
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_table_of_sensitivities(row, relation: NeighboringRelation) -> None:
    query, norm, first_replace, first_remove, replace, remove = row
    claim, first = (replace, first_replace) if relation is REPLACE else (remove, first_remove)
    for size in (1, *SIZES):
        if size >= first:
            check_sensitivity(
                query, claim(size), values=GRID, rows=size, relation=relation, norm=norm
            )


def test_identity_moves_one_coordinate() -> None:
    for norm in ("l1", "l2"):
        check_sensitivity(list, R, values=GRID, rows=3, relation=REPLACE, norm=norm, ordered=True)


def test_mean_by_the_largest_bound_is_refused() -> None:
    """M2: on [-1, 1] the mean moves by 2/n."""
    values = [Fraction(-1), Fraction(0), Fraction(1)]
    for n, true in [(3, Fraction(2, 3)), (5, Fraction(2, 5))]:
        with pytest.raises(SensitivityError, match="too small"):
            check_sensitivity(mean, Fraction(1, n), values=values, rows=n, relation=REPLACE)
        check_sensitivity(mean, true, values=values, rows=n, relation=REPLACE)


def test_deviation_by_range_over_n_is_refused() -> None:
    """M49."""
    with pytest.raises(SensitivityError, match="too small"):
        check_sensitivity(deviation, R / 4, values=GRID, rows=4, relation=REPLACE)


def test_grouped_sum_with_a_limit_per_group_is_refused() -> None:
    """A limit of rows per group does not limit the groups: opendp#2945 charged half."""

    def grouped(data: Data) -> tuple[int, ...]:
        rows = [row for unit in data for row in unit]
        return tuple(min(3, sum(group == g for group in rows)) for g in "ab")

    # One unit owns up to six rows: three in each of two groups.
    units = [tuple("a" * i + "b" * j) for i in range(4) for j in range(4)]
    with pytest.raises(SensitivityError, match="too small"):
        check_sensitivity(grouped, 3, values=units, rows=2, relation=ADD)
    check_sensitivity(grouped, 6, values=units, rows=2, relation=ADD)


def test_square_by_the_lower_bound_twice_is_refused() -> None:
    """diffprivlib 0.6.6: max(|lower|, |lower|)^2 is 0 on [0, 100], the squares move by 10^4."""
    lower, upper = 0, 100

    def squares(data: Data) -> int:
        return sum(v * v for v in data)

    wrong = max(abs(lower), abs(lower)) ** 2
    with pytest.raises(SensitivityError, match="too small"):
        check_sensitivity(squares, wrong, values=[lower, 50, upper], rows=3, relation=ADD)
    right = max(abs(lower), abs(upper)) ** 2
    check_sensitivity(squares, right, values=[lower, 50, upper], rows=3, relation=ADD)


def test_pairing_by_position_is_unstable() -> None:
    """opendp#2950: after one removal every later pair is a new pair."""

    def pairs(data: Data) -> tuple[int, ...]:
        found = [data[i : i + 2] for i in range(0, len(data) - 1, 2)]
        cells = [(a, b) for a in (0, 1) for b in (0, 1)]
        return tuple(sum(p == c for p in found) for c in cells)

    found = true_sensitivity(pairs, values=[0, 1], rows=6, relation=ADD, ordered=True)
    assert found.value > 2


def test_float_sums_near_their_limit_move_further_than_claimed() -> None:
    """opendp#2923: rounding adds to the sensitivity of a float sum."""
    big = 2.0**53

    def running(data: Data) -> float:
        total = big
        for v in data:
            total += v
        return total - big

    assert true_sensitivity(running, values=[0.0, 1.0], rows=2, relation=ADD).value == 0
    assert true_sensitivity(running, values=[0.0, 1.5], rows=2, relation=ADD).value > 1.5


def test_nan_and_a_changed_length_are_infinitely_far() -> None:
    values = [0.0, math.nan]
    assert true_sensitivity(sum, values=values, rows=1, relation=ADD).value == math.inf
    assert true_sensitivity(list, values=[0], rows=2, relation=ADD).value == math.inf


def test_a_claim_that_is_not_attained_needs_a_reason() -> None:
    with pytest.raises(SensitivityError, match="not attained"):
        check_sensitivity(sum, 2 * R, values=GRID, rows=2, relation=REPLACE)
    found = check_sensitivity(
        sum, 2 * R, values=GRID, rows=2, relation=REPLACE, slack="rounded up to a power of two"
    )
    assert found.value == R
    assert found.pairs == 4 * 6
    with pytest.raises(NotCertified):
        check_sensitivity(sum, R / 2, values=GRID, rows=2, relation=REPLACE)


def test_numpy_answers_are_read() -> None:
    found = true_sensitivity(
        lambda x: np.bincount(np.array(x, dtype=int), minlength=3),
        values=[0, 1, 2],
        rows=3,
        relation=REPLACE,
    )
    assert found.value == 2


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_every_pair_is_a_pair_of_neighbors_and_none_is_left_out(
    relation: NeighboringRelation,
) -> None:
    values, size = (0, 1, 2), 3
    found = {
        frozenset((tuple(sorted(a)), tuple(sorted(b))))
        for a, b in neighbors(values, rows=size, relation=relation)
    }
    ordered = {
        frozenset((tuple(sorted(a)), tuple(sorted(b))))
        for a, b in neighbors(values, rows=size, relation=relation, ordered=True)
    }
    assert found == ordered
    gap = 1 if relation is ADD else 0
    assert all(len({len(d) for d in pair}) == 1 + gap for pair in found)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="values"):
        true_sensitivity(sum, values=[], rows=1, relation=ADD)
    with pytest.raises(InvalidArgument, match="rows"):
        true_sensitivity(sum, values=[1], rows=2, relation=NeighboringRelation.LOCAL)
    with pytest.raises(InvalidArgument, match="claimed"):
        check_sensitivity(sum, math.nan, values=[1], rows=2, relation=ADD)
