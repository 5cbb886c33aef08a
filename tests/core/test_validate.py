"""Checks at their ends: what is just allowed, and what is just not."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.core import _rational as exact
from discreet.core import _validate as check
from discreet.core import _validate as grid
from discreet.core.errors import InvalidArgument
from discreet.core.events import (
    ApproxEvent,
    PureEvent,
    SampledEvent,
    SampledWithoutReplacementEvent,
    compose,
    repeat,
)
from discreet.core.relation import NeighboringRelation, central_relation

HALF = Fraction(1, 2)
THIRD = Fraction(1, 3)


def test_zero_and_one_are_in_or_out():
    assert check.non_negative("x", 0) == 0
    assert check.probability("p", HALF, zero=False, one=False) == HALF
    for wrong, ends, told in (
        (-1, {}, r"\[0, 1\]"),
        (2, {}, r"\[0, 1\]"),
        (0, {"zero": False}, r"\(0, 1\]"),
        (1, {"one": False}, r"\[0, 1\)"),
        (1, {"zero": False, "one": False}, r"\(0, 1\)"),
    ):
        with pytest.raises(InvalidArgument, match=f"p must lie in {told}, got {wrong}"):
            check.probability("p", wrong, **ends)


def test_bounds_are_in_order():
    assert check.bounds(-1, HALF) == (-1, HALF)
    for lower, upper in ((1, 1), (2, 1)):
        with pytest.raises(InvalidArgument, match="lower must be below upper"):
            check.bounds(lower, upper)


def test_words_are_told():
    check.one_of("kind", "b", ("a", "b"))
    with pytest.raises(InvalidArgument, match=r"kind must be 'a', 'b' or 'c', got 'd'\."):
        check.one_of("kind", "d", ("a", "b", "c"))


def test_whole_numbers_begin_somewhere():
    assert check.count("n", 1) == 1
    assert check.count("n", 0, minimum=0) == 0
    assert type(check.count("n", np.int64(4))) is int
    for wrong, least in ((0, 1), (-1, 0), (4, 5)):
        with pytest.raises(InvalidArgument, match=f"n must be at least {least}, got {wrong}"):
            check.count("n", wrong, minimum=least)


def test_numbers_of_numpy_are_read_as_typed():
    assert check.finite("x", np.float64(0.1)) == Fraction(1, 10)
    assert check.finite("x", np.float32(0.5)) == HALF
    assert check.finite("x", np.int8(-3)) == -3


def test_parts_of_a_randomizer_are_merged_in_order():
    parts = ((HALF, THIRD, 0), (Fraction(1, 4), HALF, HALF), (Fraction(1, 4), THIRD, 0))
    merged = check.two_level(parts)
    assert merged == ((Fraction(1, 4), HALF, HALF), (Fraction(3, 4), THIRD, 0))
    assert check.two_level(((1, THIRD, THIRD),)) == ((1, THIRD, THIRD),)
    assert check.two_level(((1, 1 - THIRD, THIRD),)) == ((1, 1 - THIRD, THIRD),)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([], "sum to exactly 1"),
        ((), "sum to exactly 1"),
        (((HALF, HALF, 0),), "sum to exactly 1"),
        (((1, HALF),), "Each of parts"),
        (((1, HALF, 0, 0),), "Each of parts"),
        (([1, HALF, 0],), "Each of parts"),
        (((1, 0, 0),), r"share must lie in \(0, 1\)"),
        (((1, 1, 0),), r"share must lie in \(0, 1\)"),
        (((0, HALF, 0), (1, HALF, 0)), r"weight must lie in \(0, 1\]"),
        (((1, HALF, -HALF),), "differ must not be negative"),
        (((1, THIRD, HALF),), "differ must not exceed"),
        (((1, 1 - THIRD, HALF),), "differ must not exceed"),
    ],
)
def test_parts_that_are_no_randomizer_are_refused(parts, told):
    with pytest.raises(InvalidArgument, match=told):
        check.two_level(parts)


def test_samples_are_no_larger_than_the_population():
    assert SampledWithoutReplacementEvent(5, 5, PureEvent(1)).sample == 5
    assert SampledWithoutReplacementEvent(0, 1, PureEvent(1)).sample == 0
    with pytest.raises(InvalidArgument, match="sample must not exceed population=5, got 6"):
        SampledWithoutReplacementEvent(6, 5, PureEvent(1))
    assert SampledEvent(1, PureEvent(1)).rate == 1
    assert ApproxEvent(0, 0).delta == 0
    with pytest.raises(InvalidArgument, match="delta"):
        ApproxEvent(0, 1)


def test_one_event_stays_itself():
    one = PureEvent(1)
    assert compose([one]) is one
    assert compose([one, one]).parts == ((one, 2),)
    assert repeat(one, 1) is one
    assert repeat(one, 0).parts == ()
    with pytest.raises(InvalidArgument, match="count must be at least 0"):
        repeat(one, -1)


def test_only_data_sets_are_held_in_trust():
    for relation in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        assert central_relation(relation) is relation
    with pytest.raises(InvalidArgument, match=r"got NeighboringRelation\.LOCAL"):
        central_relation(NeighboringRelation.LOCAL)


def test_exponentials_end_where_they_say():
    with pytest.raises(ValueError, match="non-negative"):
        exact.exp_minus(Fraction(-1), 10)
    assert exact.exp_minus(Fraction(0), 10) == (1024, 1024)
    assert exact.exp_minus(Fraction(1, 10**9), 10) == (1023, 1024)
    assert exact.exp_minus(Fraction(1000), 10) == (0, 1)


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(5, 3), Fraction(40), Fraction(300)])
def test_exponentials_are_a_unit_wide(exponent):
    for precision in (1, 8, 64, 500):
        low, high = exact.exp_minus(exponent, precision)
        assert 0 <= high - low <= 1


def test_shares_of_the_light_are_enclosed():
    low, high = exact.light_share(Fraction(0), 20, light=3, heavy=5)
    assert low == (3 << 20) // 8
    assert high == low  # three eighths are a multiple of 2**-20
    for light, heavy in ((1, 1), (7, 2), (1, 1000)):
        r = np.exp(-0.5)
        low, high = exact.light_share(Fraction(1, 2), 40, light=light, heavy=heavy)
        true = light * r / (heavy + light * r) * 2.0**40
        assert low - 1e-3 <= true <= high + 1e-3
        assert high - low <= 1


def test_doubles_round_outward():
    tiny = Fraction(1, 10**400)
    assert exact.round_up(tiny) == 5e-324
    assert exact.round_down(tiny) == 0
    assert exact.round_up(-tiny) == 0
    assert exact.round_down(-tiny) == -5e-324
    huge = Fraction(10) ** 400
    assert (exact.round_up(huge), exact.round_up(-huge)) == (np.inf, -np.inf)
    assert exact.round_up(Fraction(3)) == exact.round_down(Fraction(3)) == 3


@pytest.mark.parametrize(
    "value", [Fraction(2), Fraction(1, 3), Fraction(10**80), Fraction(1, 10**60)]
)
def test_roots_are_close_from_below(value):
    root = exact.root_down(value)
    assert root * root <= value
    assert (root * (1 + Fraction(1, 1 << 64))) ** 2 > value


def test_grids_are_powers_of_two_fine_enough():
    assert grid.power_of_two(0.25) == -2
    assert grid.power_of_two(8) == 3
    with pytest.raises(InvalidArgument, match="granularity must be a power of two, for example 4"):
        grid.power_of_two(6)
    assert grid.granularity_exponent(None, Fraction(1)) == -20
    assert grid.granularity_exponent(None, Fraction(3, 4)) == -21
    assert grid.granularity_exponent(1, Fraction(16)) == 0
    with pytest.raises(InvalidArgument, match=r"sixteenth of the noise scale: 0\.5 or below"):
        grid.granularity_exponent(1, Fraction(31, 2))


def test_a_list_is_none_of_one_number_or_text():
    assert check.as_tuple("levels", iter([1, 2])) == (1, 2)
    assert check.as_tuple("levels", []) == ()
    for wrong in (0.5, None, "abc", b"abc"):
        with pytest.raises(InvalidArgument, match=f"must be a list, got {type(wrong).__name__}"):
            check.as_tuple("levels", wrong)


def test_a_map_is_no_list():
    assert check.as_mapping("columns", {"a": 1}) == {"a": 1}
    with pytest.raises(InvalidArgument, match="columns must be a dict, got list"):
        check.as_mapping("columns", ["a"])


def test_maps_are_maps():
    given = {"a": 1}
    assert check.as_mapping("columns", given) is given
    with pytest.raises(InvalidArgument, match=r"columns must be a dict, got list\."):
        check.as_mapping("columns", ["a"])


def test_decimals_that_no_memory_holds_are_refused():
    assert check.finite("x", Decimal("1E-4000")) == Fraction(1, 10**4000)
    for endless in ("1E-4001", "1E+99999999"):
        with pytest.raises(InvalidArgument, match=r"x must have at most 4,000 digits"):
            check.finite("x", Decimal(endless))
    with pytest.raises(InvalidArgument, match=r"x must be finite, got sNaN"):
        check.finite("x", Decimal("sNaN"))


def test_numbers_have_sizes_that_doubles_hold():
    assert check.positive("a", 10**300) == 10**300
    assert check.positive("a", Fraction(1, 10**307)) == Fraction(1, 10**307)
    assert check.count("a", 10**300) == 10**300
    assert check.non_negative("a", 1e-320) > 0  # deltas may be as small as they like
    for call, wrong in (
        (check.positive, 10**300 + 1),
        (check.finite, -(10**300) - 1),
        (check.positive, Fraction(1, 10**307 + 1)),
        (check.count, 10**300 + 1),
    ):
        with pytest.raises(InvalidArgument, match="a must be at (most|least) 1e"):
            call("a", wrong)


def test_moderate_numbers():
    for fine in (0, 10**70, -(10**70), Fraction(1, 10**70)):
        assert check.moderate("a", Fraction(fine)) == fine
    for wrong in (10**70 + 1, -(10**70) - 1, Fraction(1, 10**70 + 1)):
        with pytest.raises(InvalidArgument, match="change the unit"):
            check.moderate("a", Fraction(wrong))


def test_flags_and_lists_without_axes():
    assert check.flag("a", True) is True
    assert check.flag("a", np.bool_(False)) is False
    for wrong in (0, 1, "False", None, np.array([True, False])):
        with pytest.raises(InvalidArgument, match="a must be True or False"):
            check.flag("a", wrong)
    assert check.as_tuple("a", np.array([1, 2])) == (1, 2)
    with pytest.raises(InvalidArgument, match="a must be a list, got one value"):
        check.as_tuple("a", np.array(1))
    with pytest.raises(InvalidArgument, match="must be 'x' or 'y'"):
        check.one_of("a", np.array(["x", "y"]), ("x", "y"))
