"""Enclosures hold the true value, rounding goes outward, floats are read as people type them."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import _validate as check
from discreet.core._rational import (
    ceil_div,
    exp_minus,
    in_steps,
    rational,
    root_down,
    round_down,
    round_up,
)
from discreet.core._validate import exponent_below, granularity_exponent
from discreet.core.errors import InvalidArgument

positive_fractions = st.fractions(min_value=0, max_value=1000)


@given(positive_fractions, st.integers(1, 300))
def test_exponentials_are_enclosed(x, precision):
    mpmath.mp.prec = precision + 80
    true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** precision
    low, high = exp_minus(x, precision)
    assert low <= true <= high
    assert high - low <= 2


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_roots_are_rounded_down_a_little(x):
    root = root_down(x)
    assert root**2 <= x < (root * (1 + Fraction(1, 2**60))) ** 2


def test_roots_of_squares_are_exact():
    assert root_down(Fraction(9, 4)) == Fraction(3, 2)
    assert root_down(Fraction(2)) ** 2 < 2


@given(st.fractions())
def test_rounding_goes_outward_by_one_double_at_most(x):
    assert Fraction(round_up(x)) >= x >= Fraction(round_down(x))
    assert Fraction(math.nextafter(round_up(x), -math.inf)) < x


def test_rounding_at_the_ends():
    assert round_up(Fraction(10) ** 400) == math.inf
    assert round_down(Fraction(10) ** 400) in (math.inf, math.nextafter(math.inf, 0))
    assert round_up(Fraction(1, 10**400)) > 0


def test_floats_are_read_as_typed():
    assert rational(0.1) == Fraction(1, 10)
    assert rational(np.float64(0.1)) == Fraction(1, 10)
    assert sum(rational(0.01) for _ in range(100)) == 1
    assert rational(Decimal("0.3")) == Fraction(3, 10)


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_division_rounds_up(a, b):
    assert ceil_div(a, b) == math.ceil(Fraction(a, b))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-60, 60))
def test_values_in_steps_are_exact(x, exponent):
    assert in_steps(x, exponent) * Fraction(2) ** exponent == Fraction(x)


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_the_grid_is_the_largest_power_of_two_below(scale):
    step = Fraction(2) ** exponent_below(scale)
    assert step * 2**20 <= scale < step * 2**21
    assert granularity_exponent(None, scale) == exponent_below(scale)


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", None, True, 1j, [1]], ids=repr)
def test_checks_name_the_argument(bad):
    for function in (
        check.finite,
        check.positive,
        check.non_negative,
        check.probability,
        check.count,
    ):
        with pytest.raises(InvalidArgument, match="^scale must"):
            function("scale", bad)


def test_checks_know_their_ends():
    assert check.probability("p", 1) == 1
    assert check.probability("p", 0) == 0
    for wrong, ends in ((0, {"zero": False}), (1, {"one": False}), (-0.1, {}), (1.1, {})):
        with pytest.raises(InvalidArgument, match="must lie in"):
            check.probability("p", wrong, **ends)
    assert check.count("n", np.int32(3)) == 3
    with pytest.raises(InvalidArgument, match="at least 1"):
        check.count("n", 0)
    with pytest.raises(InvalidArgument, match="positive"):
        check.positive("x", 0)
    with pytest.raises(InvalidArgument, match="negative"):
        check.non_negative("x", -1)
